"""Compares rules for whether a run starts from the bundled pairs, on development pairs.

    python benchmarks/bundled_choice.py --graded_data FOLDER --sts_data FOLDER

A run trains its encoder on the bundled pairs and compares it with the untouched one on the user's training pairs,
which neither was trained on. This program repeats the comparison for the runs of `own_pairs_choice.py` that differ in
`bundled_pairs_first` alone. Spearman's correlation on their development pairs then shows the result that each rule
would have given. Finished comparisons are not repeated; they are kept in `bundled_choice.jsonl`, and the table in
`bundled_choice.md`.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.graded_data import (
    ALL_SETS,
    add_folders,
    budget_of_pairs,
    divide_anew,
    folder_of,
    split_graded_set,
)
from benchmarks.graded_methods import Task, train_grader
from benchmarks.own_pairs_choice import ONLY_ALPHA, OWN_PAIRS_RESULTS
from benchmarks.tables.graded_table import read_runs
from sts_regression.basics.tables import markdown_table, percent, read_record
from sts_regression.training.run_record import describe_environment

WITHOUT_BUNDLED: dict[str, Any] = {"group_intercepts": True, "learning_rate": 1e-4}
WITH_BUNDLED = {**WITHOUT_BUNDLED, "bundled_pairs_first": True}
START_RULES: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "never": lambda run: False,
    "always": lambda run: True,
    "unless they rank the training pairs significantly worse": lambda run: run["high"] >= 0,
    "if they rank the training pairs better (the rule)": lambda run: run["after"] > run["before"],
    "if they rank the training pairs significantly better": lambda run: run["low"] > 0,
}


def main() -> None:
    """Compares the pairs not compared yet, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    args = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    path = OWN_PAIRS_RESULTS / "bundled_choice.jsonl"
    done = {(line["set"], line["budget"], line["draw"]) for line in read_runs(path)}
    measured = list(paired_runs(read_runs(OWN_PAIRS_RESULTS / "own_pairs_choice.jsonl")))
    with tempfile.TemporaryDirectory() as cache:
        for run in measured:
            key = (run["set"], run["budget"], run["draw"])
            if key in done:
                continue
            compared = compare_starts(*key, folder_of(run["set"], args), cache)
            line = {**dict(zip(("set", "budget", "draw"), key, strict=True)), **compared}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    (OWN_PAIRS_RESULTS / "bundled_choice.md").write_text(rules_page(measured, read_runs(path)), encoding="utf-8")


def paired_runs(lines: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Spearman's correlation on development pairs, `without` the bundled pairs and `with` them, of runs with both."""
    found = {
        (line["set"], line["budget"], line["draw"], line["setting"] == WITH_BUNDLED): line["spearman"][ONLY_ALPHA]
        for line in lines
        if line["setting"] in (WITHOUT_BUNDLED, WITH_BUNDLED)
    }
    for (name, budget, draw, is_with), spearman in found.items():
        if is_with and (name, budget, draw, False) in found:
            without = found[name, budget, draw, False]
            yield {"set": name, "budget": budget, "draw": draw, "without": without, "with": spearman}


def compare_starts(name: str, budget: int, draw: int, folder: Path, cache: str) -> dict[str, Any]:
    """How the untouched encoder (`before`) and that of the bundled pairs (`after`) rank a budget of training pairs."""
    pairs = budget_of_pairs(divide_anew(name, split_graded_set(name, folder), draw)["train"], budget, draw)
    with tempfile.TemporaryDirectory() as own:
        options = {"bundled_pairs_first": True, "max_steps": 1, "interval_level": 0, "embedding_cache": cache}
        train_grader(Task(pairs, ALL_SETS[name].top_grade, draw, Path(own)), options)
        verdict = read_record(Path(own) / "run" / "run.json")["bundled_pairs"]["verdict"]
    environment = describe_environment()
    return {
        **{measure: verdict[measure] for measure in ("before", "after", "low", "high")},
        **{name: environment[name] for name in ("commit", "uncommitted_changes")},
    }


def rules_page(measured: Sequence[Mapping[str, Any]], compared: Sequence[Mapping[str, Any]]) -> str:
    """The mean correlation with each rule by the number of training pairs, and every run, as Markdown."""
    verdicts = {(line["set"], line["budget"], line["draw"]): line for line in compared}
    runs = [{**run, **verdicts[run["set"], run["budget"], run["draw"]]} for run in measured]
    budgets = sorted({run["budget"] for run in runs})

    def mean(budget: int, holds: Callable[[Mapping[str, Any]], bool]) -> float:
        own = [run for run in runs if run["budget"] == budget]
        return float(np.mean([run["with" if holds(run) else "without"] for run in own]))

    rules = [[rule, *(percent(mean(budget, holds)) for budget in budgets)] for rule, holds in START_RULES.items()]
    rows = [
        [
            f"{run['budget']:,}",
            str(run["draw"]),
            run["set"],
            f"{100 * (run['after'] - run['before']):+.1f} ({100 * run['low']:+.1f} to {100 * run['high']:+.1f})",
            f"{100 * (run['with'] - run['without']):+.2f}",
        ]
        for run in runs
    ]
    header = ["training pairs", "draw", "corpus", "on training pairs (95 % interval)", "gain on development pairs"]
    return f"""\
# When a run starts from the bundled pairs

Generated by `python benchmarks/bundled_choice.py` from `bundled_choice.jsonl` and `own_pairs_choice.jsonl`: Spearman's
correlation on development pairs, percent, means over corpora and draws. The learning rate of these runs is
{WITHOUT_BUNDLED["learning_rate"]:g}; that of the recipe is now lower.

{markdown_table(["start from the bundled pairs", *(f"{budget:,} training pairs" for budget in budgets)], rules)}

The present rule replaced the one in the row above it after the first results on
[other corpora](../new_corpora/new_corpora.md): with pairs of machine translations, the bundled pairs lower the
correlation, and they rank the training pairs worse, but not significantly worse.

By run, the change of Spearman's correlation, in points, that the bundled pairs cause on the training pairs before
these are trained on, and on the development pairs after:

{markdown_table(header, rows)}
"""


if __name__ == "__main__":
    main()
