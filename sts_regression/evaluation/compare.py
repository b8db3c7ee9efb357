"""Compares two models on the same test pairs: pairs of the STS tasks, of your own files, or both.

    sts-regression compare outputs/model_a outputs/model_b

reads the scores that `run_sts.py --do_eval` left in the two folders, with `--sts_data …`, `--test_file …` or both.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from datasets import Dataset

from sts_regression.basics.hub_tokens import CommandParser
from sts_regression.basics.tables import aligned_table, percent
from sts_regression.evaluation.bootstrap import bootstrap_spearman
from sts_regression.evaluation.significance import SeedScores, difference_test, over_seeds, shown_difference, shown_p
from sts_regression.evaluation.sts_evaluation import (
    PAIR_COLUMNS,
    SCORES_FILE,
    TEST_PAIR_COLUMNS,
    correlate,
    numpy_columns,
    read_scores,
    read_test_scores,
    rows_by_value,
    score_names,
)

OWN_PAIRS = ("set", TEST_PAIR_COLUMNS)  # the columns of the part, and of the pair
STS_PAIRS = ("task", PAIR_COLUMNS)

PartName = str | tuple[str, str]  # the name of a test set or task, or task and genre


def compare_scores(first: Dataset, second: Dataset, score: str = "cosine") -> dict[str, dict[str, Any]]:
    """
    Differences in Spearman's correlation, second less first, of each task or test set and of their average.

    The interval and p hold for these two models on other pairs; pairs that share a text count as one. They do not
    cover runs with other seeds; see [`difference_test`] for these.

    Args:
        first: scored pairs of one model, see [`score_tasks`] and [`read_test_scores`].
        second: scored pairs of the other model: the same pairs in the same order.
        score: the score to compare, `cosine`, `dot` or `head`.

    Returns:
        A `dict` by task or set, with `average` last if there are several. Each entry holds Spearman's correlations
        `first` and `second`, and the result of [`difference_test`] for two models that train nothing. If the models
        are swapped, the interval is mirrored, and `p` is the same.

    Raises:
        ValueError: if a model lacks the score, or the pairs are not the same.
    """
    for name, scored_pairs in (("first", first), ("second", second)):
        if score not in scored_pairs.column_names:
            known = ", ".join(score_names(scored_pairs))
            raise ValueError(f"`score` {score!r} is not among those of the {name} model: {known}.")
    part, columns = STS_PAIRS if "task" in first.column_names else OWN_PAIRS
    differing = [name for name in columns if name != part and first[name][:] != second[name][:]]
    if not np.array_equal(*(pd.factorize(np.array(table[part]))[0] for table in (first, second))):  # paths may differ
        differing.append(part)
    if differing:
        what = "the same pairs with other labels" if differing == ["gold_score"] else "different pairs"
        raise ValueError(
            f"the two models were scored on {what}. Evaluate both with the same `--test_file`, `--sts_data`, "
            "`--sick_split` and `--stsb_version`, on one label scale."
        )
    tables = [numpy_columns(scored_pairs) for scored_pairs in (first, second)]
    gold_scores = tables[0]["gold_score"]
    parts = {name: rows for name, rows in rows_by_value(tables[0][part]).items() if np.ptp(gold_scores[rows]) > 0}
    means: dict[PartName, list[str]] = {name: [name] for name in parts}
    if len(parts) > 1:
        means["average"] = list(parts)
    one, other = (measure_parts([table], [score], parts, means, trains=False)[score] for table in tables)
    return {
        name: {"first": one[name].mean, "second": other[name].mean, **difference_test(other[name], one[name])}
        for name in map(str, means)
    }


def measure_parts(
    tables: Sequence[Mapping[str, np.ndarray]],
    scores: Sequence[str],
    parts: Mapping[Any, np.ndarray],
    means: Mapping[PartName, Sequence[Any]],
    trains: bool,
) -> dict[str, dict[PartName, SeedScores]]:
    """
    Spearman's correlations of the runs of a method, on all pairs and on resampled pairs.

    Args:
        tables: the columns of the scored pairs of each run.
        scores: the columns to measure.
        parts: rows by the name of the part.
        means: for each measure, by its name, the parts whose mean it is.
        trains: whether the runs train anything.

    Returns:
        The values over the runs, by score and name of the measure.
    """
    gold_scores, groups = tables[0]["gold_score"], tables[0]["group"]
    by_run = {(score, run): table[score] for score in scores for run, table in enumerate(tables)}
    resampled = bootstrap_spearman(by_run, gold_scores, groups, parts)
    sizes = {
        name: np.unique(np.concatenate([groups[parts[part]] for part in own]), return_counts=True)[1]
        for name, own in means.items()
    }
    measures: dict[str, dict[PartName, SeedScores]] = {}
    for score in scores:
        measures[score] = {}
        values = {
            part: [correlate(table[score][rows], gold_scores[rows])["spearman"] for table in tables]
            for part, rows in parts.items()
        }
        for name, own in means.items():
            samples = [[resampled[part][score, run] for run in range(len(tables))] for part in own]
            mean = np.mean([values[part] for part in own], axis=0).tolist()
            measures[score][name] = over_seeds(mean, trains, np.mean(samples, axis=0), sizes[name])
    return measures


def comparison_table(comparison: Mapping[str, Mapping[str, Any]]) -> str:
    """The result of [`compare_scores`] as a table, in percent."""
    rows = [["test set", "first", "second", "difference (95 % interval)", "p"]]
    for name, row in comparison.items():
        rows.append([name, percent(row["first"]), percent(row["second"]), shown_difference(row), shown_p(row["p"])])
    return aligned_table(rows)


def main(argv: list[str] | None = None) -> None:
    """Runs the command."""
    parser = CommandParser(
        prog="sts-regression compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("first", type=Path, help="folder of the first model's evaluation")
    parser.add_argument("second", type=Path, help="folder of the second model's evaluation")
    parser.add_argument("--score", default="cosine", choices=("cosine", "dot", "head"), help="default: cosine")
    args = parser.parse_args(argv)
    try:
        pairs = scored_by_both(args.first, args.second)
        tables = [comparison_table(compare_scores(first, second, args.score)) for first, second in pairs]
    except ValueError as error:
        parser.end(error)
    sys.stdout.write(f"Spearman's correlation of the {args.score}, in percent\n")
    sys.stdout.write("\n\n".join(tables) + "\n")


def scored_by_both(first: Path, second: Path) -> list[tuple[Dataset, Dataset]]:
    """
    The pairs that both runs scored: of the STS tasks, own test pairs, or both.

    Raises:
        ValueError: if there are no such pairs, or a file is damaged.
    """
    for folder in (first, second):
        if not folder.is_dir():
            raise ValueError(f"{folder}: no such folder.")
    own = read_test_scores(first), read_test_scores(second)
    of_tasks = [folder for folder in (first, second) if (folder / SCORES_FILE).is_file()]
    found = []
    if own[0] is not None and own[1] is not None:
        found.append((own[0], own[1]))
    if len(of_tasks) == 2 or not found:
        found.insert(0, (read_scores(first), read_scores(second)))
    return found
