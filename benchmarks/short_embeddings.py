"""Measures the cost of shortened embeddings and 8-bit weights, with and without `--matryoshka_dims`.

    python benchmarks/short_embeddings.py --sts_data FOLDER --seeds 3 --jobs 2

Trains both recipes, and scores the seven STS tasks with the first numbers of each embedding, in float32 and with 8-bit
weights in ONNX Runtime. Finished runs are not repeated. Writes results/short_embeddings/short_embeddings.json: by
encoder, weights and length, the average Spearman correlation of the tasks for each seed.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from torch import Tensor

from sts_regression.basics.tables import write_json
from sts_regression.data.sts_tasks import STSTask, load_sts_tasks
from sts_regression.evaluation.sts_evaluation import columns_by_task, correlate, score_tasks
from sts_regression.models.encoding import encode_sentences, score_with_embeddings
from sts_regression.models.loading import find_model, load_model, prepare_for_scoring
from sts_regression.models.onnx_graphs import on_backend
from sts_regression.training.run_record import describe_environment

ROOT = Path(__file__).resolve().parent.parent
SHORT_RUNS, KEPT_FILE = (
    Path("outputs") / "short_embeddings",
    Path("results") / "short_embeddings" / "short_embeddings.json",
)
RECIPES = {name: f"recipes/minilm/{name}.yaml" for name in ("best", "matryoshka")}
LENGTHS = (384, 256, 128, 64)
BACKENDS_BY_WEIGHTS = {"float32": "torch", "8-bit integers": "onnx-int8"}  # backends, by type of their weights

Averages = dict[str, dict[str, list[float]]]  # by weights and length, one per seed


def main() -> None:
    """Trains the missing runs, scores all of them, and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sts_data", type=Path, required=True, help="folder of the STS data")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds; default: 3")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time; default: 1")
    args = parser.parse_args()
    environment = describe_environment()  # before a tracked file is written, which counts as a change
    command = [sys.executable, "-m", "sts_regression", "sweep", *RECIPES.values(), f"--seeds={args.seeds}"]
    command += [f"--jobs={args.jobs}", f"--output_dir={SHORT_RUNS}", f"--sts_data={args.sts_data}", "--keep_models"]
    subprocess.run(command, cwd=ROOT, check=True)
    tasks = load_sts_tasks(args.sts_data)
    averages = {"untouched": averages_of([None], tasks)}
    for name in RECIPES:
        averages[name] = averages_of(
            [ROOT / SHORT_RUNS / name / f"seed-{seed + 1}" for seed in range(args.seeds)], tasks
        )
    write_json({"environment": environment, "averages": averages}, KEPT_FILE)


def averages_of(folders: Sequence[Path | None], tasks: Sequence[STSTask]) -> Averages:
    """
    The average Spearman correlation of the tasks by weights and length, one per checkpoint.

    Args:
        folders: the checkpoints; `None` for the untouched encoder.
        tasks: see [`load_sts_tasks`].
    """
    found: Averages = {weights: {str(length): [] for length in LENGTHS} for weights in BACKENDS_BY_WEIGHTS}
    for folder in folders:
        model, tokenizer = load_model(find_model(None if folder is None else str(folder)), {})
        prepare_for_scoring(model, tokenizer, None, "cpu")
        for weights, backend in BACKENDS_BY_WEIGHTS.items():
            encode = remember(partial(encode_sentences, on_backend(model, tokenizer, backend), tokenizer))
            for length in LENGTHS:
                found[weights][str(length)].append(average_spearman(tasks, partial(shortened, encode, length)))
                sys.stdout.write(f"{folder}, {weights}, {length}: {found[weights][str(length)][-1]:.4f}\n")
                sys.stdout.flush()
    return found


def remember(encode: Callable[[list[str]], Tensor]) -> Callable[[list[str]], Tensor]:
    """The function, which encodes the same sentences only once."""
    known: dict[tuple[str, ...], Tensor] = {}

    def encode_once(sentences: list[str]) -> Tensor:
        if (key := tuple(sentences)) not in known:
            known[key] = encode(sentences)
        return known[key]

    return encode_once


def shortened(encode: Callable[[list[str]], Tensor], length: int, sentences: list[str]) -> Tensor:
    """The first numbers of the embeddings, (sentences, length)."""
    return encode(sentences)[:, :length]


def average_spearman(tasks: Sequence[STSTask], encode: Callable[[list[str]], Tensor]) -> float:
    """Spearman's correlation of the cosine, averaged over the tasks."""
    scored = columns_by_task(score_tasks(tasks, partial(score_with_embeddings, encode)))
    return float(
        np.mean([correlate(columns["cosine"], columns["gold_score"])["spearman"] for columns in scored.values()])
    )


if __name__ == "__main__":
    main()
