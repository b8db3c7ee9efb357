"""Measures the cost of lower precision: the seven STS tasks with the untouched encoder in each precision.

    python benchmarks/precision.py --sts_data FOLDER

Writes results/speed/precision.json: by precision, Spearman's correlation of the cosine for each task, and the mean
absolute difference of a pair's cosine from float32.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from sts_regression.basics.tables import write_json
from sts_regression.data.sts_tasks import load_sts_tasks
from sts_regression.evaluation.sts_evaluation import columns_by_task, correlate, score_tasks
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import encode_sentences, score_with_embeddings
from sts_regression.models.loading import find_model, load_model, prepare_for_scoring
from sts_regression.models.onnx_graphs import on_backend
from sts_regression.training.run_record import describe_environment

PRECISION_FILE = Path(__file__).resolve().parent.parent / "results" / "speed" / "precision.json"

Encode = Callable[[list[str]], torch.Tensor]  # embeddings of shape (sentences, hidden)


def main() -> None:
    """Scores the tasks in every precision, and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sts_data", type=Path, required=True, help="folder of the STS data")
    args = parser.parse_args()
    environment = describe_environment()  # before a tracked file is written, which counts as a change
    tasks = load_sts_tasks(args.sts_data)
    model, tokenizer = load_model(find_model(None), {})
    prepare_for_scoring(model, tokenizer, None, "cpu")
    encoders: dict[str, Encode] = {
        "float32": partial(encode_sentences, model, tokenizer),
        "bfloat16": partial(in_bfloat16, model, tokenizer),
        "ONNX, 8-bit integers": partial(encode_sentences, on_backend(model, tokenizer, "onnx-int8"), tokenizer),
    }
    spearman: dict[str, dict[str, float]] = {}
    cosines: dict[str, np.ndarray] = {}
    for precision, encode in encoders.items():
        scored = columns_by_task(score_tasks(tasks, partial(score_with_embeddings, encode)))
        spearman[precision] = {
            task: correlate(columns["cosine"], columns["gold_score"])["spearman"] for task, columns in scored.items()
        }
        cosines[precision] = np.concatenate([columns["cosine"] for columns in scored.values()])
        sys.stdout.write(f"{precision}: {spearman[precision]}\n")
        sys.stdout.flush()
    differences = {name: float(np.abs(of_one - cosines["float32"]).mean()) for name, of_one in cosines.items()}
    write_json({"environment": environment, "spearman": spearman, "cosine_difference": differences}, PRECISION_FILE)


def in_bfloat16(
    model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str]
) -> torch.Tensor:
    """Embeddings with matrix products in bfloat16."""
    with torch.autocast("cpu", torch.bfloat16):
        return encode_sentences(model, tokenizer, sentences)


if __name__ == "__main__":
    main()
