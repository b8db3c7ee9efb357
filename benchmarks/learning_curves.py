"""Compares the gain that `--learning_curve` expects from twice as many pairs with the gain that they bring.

    python benchmarks/learning_curves.py --graded_data FOLDER --sts_data FOLDER

Each run has 500 training pairs of a corpus, some of which it holds out, and expects a gain. A second run trains on
these pairs and 500 others. The development pairs of the corpus, which neither run has seen, show the gain. Finished
runs are not repeated; they are kept in `learning_curves.jsonl`, and the table in `learning_curves.md`.
"""

import os

if __name__ == "__main__":  # before the libraries are loaded, which read this
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "TQDM_DISABLE": "1"}

import argparse
import json
import logging
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.graded_data import (
    ALL_SETS,
    GRADED_SETS,
    STS_SETS,
    LabelledPair,
    budget_of_pairs,
    divide_anew,
    split_graded_set,
)
from benchmarks.graded_methods import Task, train_grader
from benchmarks.own_pairs_choice import FEW_TEXTS, FIRST_DRAW, OWN_PAIRS_RESULTS
from benchmarks.tables.graded_table import read_runs
from sts_regression.basics.tables import markdown_table, read_record
from sts_regression.evaluation.sts_evaluation import correlate
from sts_regression.training.run_record import describe_environment

FIRST_PAIRS = 500
CURVE_OPTIONS: dict[str, Any] = {"refit": False, "keep_start_if_better": False, "interval_level": 0}


def main() -> None:
    """Runs the missing runs, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graded_data", type=Path, required=True, help=f"folder of {', '.join(GRADED_SETS)}")
    parser.add_argument("--sts_data", type=Path, required=True, help="folder of the STS data")
    parser.add_argument("--draws", type=int, nargs="+", default=[FIRST_DRAW], help=f"seeds; default: {FIRST_DRAW}")
    args = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    path = OWN_PAIRS_RESULTS / "learning_curves.jsonl"
    done = {(line["set"], line["draw"]) for line in read_runs(path)}
    for draw in args.draws:
        for name in (name for name in ALL_SETS if name not in FEW_TEXTS and (name, draw) not in done):
            pairs = split_graded_set(name, args.sts_data if name in STS_SETS else args.graded_data)
            line = {"set": name, "draw": draw, **measure_doubling(name, divide_anew(name, pairs, draw), draw)}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    (OWN_PAIRS_RESULTS / "learning_curves.md").write_text(curves_page(read_runs(path)), encoding="utf-8")


def measure_doubling(name: str, pairs: Mapping[str, list[LabelledPair]], draw: int) -> dict[str, Any]:
    """
    The gain that a run expects from twice as many pairs, with the ends of its interval, and the gain they bring.

    Args:
        name: the corpus.
        pairs: `train` and `validation` pairs.
        draw: seed of the choice of pairs and of training.
    """
    spearman = []
    for count in (FIRST_PAIRS, 2 * FIRST_PAIRS):
        with tempfile.TemporaryDirectory() as folder:
            task = Task(budget_of_pairs(pairs["train"], count, draw), ALL_SETS[name].top_grade, draw, Path(folder))
            grader = train_grader(task, {**CURVE_OPTIONS, "learning_curve": count == FIRST_PAIRS})
            if count == FIRST_PAIRS:
                curve = read_record(Path(folder) / "run" / "run.json")["learning_curve"]
            first, second, labels = (list(column) for column in zip(*pairs["validation"], strict=True))
            cosines = [row["cosine"] for row in grader.grade(list(zip(first, second, strict=True)))]
            spearman.append(correlate(np.array(cosines), np.array(labels))["spearman"])
    environment = describe_environment()
    return {
        "expected": curve["gain_of_doubling"],
        **{end: curve[end] for end in ("low", "high")},
        "spearman": spearman,
        **{entry: environment[entry] for entry in ("commit", "uncommitted_changes")},
    }


def curves_page(lines: Sequence[Mapping[str, Any]]) -> str:
    """Expected and measured gains, and how well they agree, as Markdown."""
    gains = np.array([np.diff(line["spearman"])[0] for line in lines])
    expected = np.array([line["expected"] for line in lines])
    rows = [
        [
            line["set"],
            str(line["draw"]),
            f"{100 * line['expected']:+.2f} ({100 * line['low']:+.2f} to {100 * line['high']:+.2f})",
            f"{100 * gain:+.2f}",
        ]
        for line, gain in zip(lines, gains, strict=True)
    ]
    within = sum(line["low"] <= gain <= line["high"] for line, gain in zip(lines, gains, strict=True))
    errors = [100 * float(np.mean(np.abs(gains - guess))) for guess in (expected, 0.0, gains.mean())]
    header = ["corpus", "draw", "expected (95 % interval)", "measured"]
    return f"""\
# Does the learning curve tell what more pairs bring?

Generated by `python benchmarks/learning_curves.py` from `learning_curves.jsonl`: the gain in Spearman's correlation
from 1,000 training pairs in place of 500, in points. A run with 500 pairs expected it (`--learning_curve`), and the
development pairs of the corpus, which no run has seen, measured it.

{markdown_table(header, rows)}

The interval contains the measured gain in {within} of {len(lines)} runs. On average, the expected gain is
{100 * expected.mean():+.2f}, and the measured one {100 * gains.mean():+.2f}. The expected gain is off by
{errors[0]:.2f} points on average; a guess of 0 would be off by {errors[1]:.2f}, and a guess of the mean measured gain,
which one cannot know, by {errors[2]:.2f}.
"""


if __name__ == "__main__":
    main()
