"""Compares two models on the STS tasks by a paired bootstrap test on the same pairs.

    sts-regression compare outputs/model_a-eval outputs/model_b-eval

reads the scores that `run_sts.py --do_eval --sts_data …` left in the two folders.
"""

import argparse
import sys
from collections.abc import Mapping

import numpy as np
from datasets import Dataset

from sts_regression.basics.hub_tokens import CommandParser
from sts_regression.basics.tables import aligned_table, percent
from sts_regression.evaluation.bootstrap import NUM_RESAMPLES, bootstrap_p_value, confidence_interval, smallest_p_value
from sts_regression.evaluation.sts_evaluation import (
    PAIR_COLUMNS,
    columns_by_task,
    correlate,
    read_scores,
    resample_tasks,
    score_names,
)


def compare_scores(
    first: Dataset, second: Dataset, score: str = "cosine", num_resamples: int = NUM_RESAMPLES
) -> dict[str, dict[str, float]]:
    """
    Differences in Spearman's correlation over all pairs of each task, and of the average, second less first.

    The interval and p hold for these two models on other pairs. They say nothing about another training with another
    seed; see [`welch_test`] for that.

    Args:
        first: scored pairs of one model, see [`score_tasks`].
        second: those of the other, on the same pairs in the same order.
        score: which of their scores, `cosine`, `dot` or `head`.
        num_resamples: of the bootstrap.

    Returns:
        `dict` by task, with `average` last: `first`, `second` and `difference` in Spearman's correlation, the ends
        `low` and `high` of the difference's 95 % interval, the two-sided `p` that it is zero, and `smallest_p`, below
        which so many resamples cannot tell. With the models swapped, the interval is mirrored and `p` the same.

    Raises:
        ValueError: if a model lacks the score, or the pairs are not the same.
    """
    for name, scored_pairs in (("first", first), ("second", second)):
        if score not in scored_pairs.column_names:
            known = ", ".join(score_names(scored_pairs))
            raise ValueError(f"`score` {score!r} is not among those of the {name} model: {known}.")
    if first.select_columns([*PAIR_COLUMNS])[:] != second.select_columns([*PAIR_COLUMNS])[:]:
        raise ValueError(
            "the two models were scored on different pairs. Evaluate both with the same `--sts_data`, `--sick_split` "
            "and `--stsb_version`."
        )
    samples = [resample_tasks(scored_pairs, [score], num_resamples)[score] for scored_pairs in (first, second)]
    models = [columns_by_task(scored_pairs) for scored_pairs in (first, second)]
    correlations = {
        task: [correlate(model[task][score], model[task]["gold_score"])["spearman"] for model in models]
        for task in models[0]
    }
    correlations["average"] = np.mean(list(correlations.values()), axis=0).tolist()
    return {
        task: {
            "first": first,
            "second": second,
            "difference": second - first,
            **_describe_difference(samples[1][task] - samples[0][task]),
        }
        for task, (first, second) in correlations.items()
    }


def _describe_difference(samples: np.ndarray) -> dict[str, float]:
    low, high = confidence_interval(samples)
    return {"low": low, "high": high, "p": bootstrap_p_value(samples), "smallest_p": smallest_p_value(len(samples))}


def comparison_table(comparison: Mapping[str, Mapping[str, float]]) -> str:
    """What [`compare_scores`] returns as a table, in percent."""
    rows = [["task", "first", "second", "difference", "95 % interval", "p"]]
    for task, row in comparison.items():
        difference, low, high = (100 * row[key] for key in ("difference", "low", "high"))
        interval = f"{low:+.2f} to {high:+.2f}"
        scores = [percent(row[key]) for key in ("first", "second")]
        rows.append([task, *scores, f"{difference:+.2f}", interval, _shown_p(row["p"], row["smallest_p"])])
    return aligned_table(rows)


def _shown_p(p: float, smallest: float) -> str:
    digits = f"{p:.3f}" if p >= 0.001 else f"{p:.1g}"
    return f"≤ {digits}" if p <= smallest else digits


def main(argv: list[str] | None = None) -> None:
    """Runs the command."""
    parser = CommandParser(
        prog="sts-regression compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("first", help="folder of the first model's evaluation")
    parser.add_argument("second", help="folder of the second model's evaluation")
    parser.add_argument("--score", default="cosine", choices=("cosine", "dot", "head"), help="default: cosine")
    parser.add_argument("--num_resamples", type=int, default=NUM_RESAMPLES, help=f"default: {NUM_RESAMPLES}")
    args = parser.parse_args(argv)
    try:
        comparison = compare_scores(read_scores(args.first), read_scores(args.second), args.score, args.num_resamples)
    except ValueError as error:
        parser.end(error)
    sys.stdout.write(f"Spearman's correlation of the {args.score}, in percent\n")
    sys.stdout.write(comparison_table(comparison) + "\n")


if __name__ == "__main__":
    main()
