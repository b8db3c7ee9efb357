"""Measures what lower precision costs: the seven STS tasks with the untouched encoder in each precision.

    python benchmarks/precision.py --sts_data FOLDER

Writes results/speed/precision.json: Spearman's correlation of the cosine by precision and task.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import torch.nn.functional as F
from transformers import PreTrainedTokenizerBase

from sts_regression.basics.tables import write_json
from sts_regression.data.sts_tasks import load_sts_tasks
from sts_regression.evaluation.sts_evaluation import Scorer, columns_by_task, correlate, score_tasks
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import encode_sentences
from sts_regression.models.loading import find_model, load_model
from sts_regression.serving.onnx_graphs import EncoderGraph, GraphSession, quantize_graph, write_graph
from sts_regression.training.run_record import describe_environment

PRECISION_FILE = Path(__file__).resolve().parent.parent / "results" / "speed" / "precision.json"
GRAPH_BATCH_SIZE = 32

Encode = Callable[[list[str]], torch.Tensor]  # embeddings of shape (sentences, hidden)


def main() -> None:
    """Scores the tasks in every precision, and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sts_data", type=Path, required=True, help="folder of the STS data")
    args = parser.parse_args()
    environment = describe_environment()  # before a tracked file is written, which counts as a change
    tasks = load_sts_tasks(args.sts_data)
    model, tokenizer = load_model(find_model(None), {"encoding": "padded"})  # a graph needs one shape for all batches
    encoders: dict[str, Encode] = {
        "float32": lambda sentences: encode_sentences(model, tokenizer, sentences),
        "bfloat16": lambda sentences: in_bfloat16(model, tokenizer, sentences),
        "ONNX, 8-bit integers": lambda sentences: in_8_bits(model, tokenizer, sentences),
    }
    spearman = {}
    for precision, encode in encoders.items():
        scored = columns_by_task(score_tasks(tasks, cosine_of(encode)))
        spearman[precision] = {
            task: correlate(columns["cosine"], columns["gold_score"])["spearman"] for task, columns in scored.items()
        }
        sys.stdout.write(f"{precision}: {spearman[precision]}\n")
        sys.stdout.flush()
    write_json({"environment": environment, "spearman": spearman}, PRECISION_FILE)


def cosine_of(encode: Encode) -> Scorer:
    """A scorer that encodes each different sentence once."""

    def score(first: list[str], second: list[str]) -> dict[str, np.ndarray]:
        row_of = {sentence: row for row, sentence in enumerate(dict.fromkeys([*first, *second]))}
        embeddings = encode(list(row_of))
        u, v = (embeddings[[row_of[sentence] for sentence in side]] for side in (first, second))
        return {"cosine": F.cosine_similarity(u, v, dim=-1).numpy()}

    return score


def in_bfloat16(
    model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str]
) -> torch.Tensor:
    """Embeddings with matrix products in bfloat16."""
    with torch.autocast("cpu", torch.bfloat16):
        return encode_sentences(model, tokenizer, sentences)


def in_8_bits(model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str]) -> torch.Tensor:
    """Embeddings by the exported graph with 8-bit weights, in batches of similar length."""

    def inputs(texts: Sequence[str]) -> dict[str, torch.Tensor]:
        return dict(tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt"))

    with TemporaryDirectory() as folder:
        path = Path(folder, "encoder.onnx")
        write_graph(EncoderGraph(model), inputs(sentences[:4]), path)
        quantize_graph(path, path.with_stem("int8"))
        session = GraphSession(path.with_stem("int8"))
    order = sorted(range(len(sentences)), key=lambda row: len(sentences[row]))
    embeddings = torch.empty(len(sentences), model.config.encoder_config.hidden_size)
    for start in range(0, len(order), GRAPH_BATCH_SIZE):
        rows = order[start : start + GRAPH_BATCH_SIZE]
        outputs = session(**inputs([sentences[row] for row in rows]))
        embeddings[rows] = torch.from_numpy(outputs["sentence_embedding"])
    return embeddings


if __name__ == "__main__":
    main()
