"""Measures development and test pairs, and writes the scores of test pairs."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from sts_regression.data.columns import numbers_of
from sts_regression.data.splits import Splits
from sts_regression.data.text_splits import groups_to_resample
from sts_regression.evaluation.measures import PairScores, find_queries, measure_scores
from sts_regression.evaluation.sts_evaluation import pair_identities, write_test_scores


def measure_splits(
    splits: Splits, scores: Mapping[str, PairScores], cut_points: Sequence[float] | None = None
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, dict[str, float]]]]:
    """
    Measures of scored pairs.

    Args:
        splits: the pairs, with their labels.
        scores: scores by split.
        cut_points: cut points of the model, see [`measure_scores`].

    Returns:
        The measures of each split, means over its sets, see [`measure_scores`]; and, for splits of several sets, the
        measures of each set, by split and name of the set.
    """
    measures: dict[str, dict[str, float]] = {}
    by_set: dict[str, dict[str, dict[str, float]]] = {}
    for split, of_split in scores.items():
        assert splits.scale is not None  # there are pairs
        gold_scores = numbers_of(splits.pairs[split], "label")
        nodes, queries = splits.scale.values, _queries_by_set(splits, split)
        has_grades = all(part.scale is None or len(part.scale.values) == len(nodes) for part in splits.sets[split])
        measure = partial(measure_scores, label_values=nodes, cut_points=cut_points, has_grades=has_grades)
        measures[split] = measure(of_split, gold_scores, sources=splits.set_of_pair[split], queries=queries)
        if len(splits.sets[split]) > 1:
            by_set[split] = {
                part.name: measure(of_split.rows(rows), gold_scores[rows], queries=queries[rows])
                for number, part in enumerate(splits.sets[split])
                if len(rows := np.flatnonzero(splits.set_of_pair[split] == number)) and np.ptp(gold_scores[rows]) > 0
            }
    return measures, by_set


def _queries_by_set(splits: Splits, split: str) -> np.ndarray:
    """The number of each pair's query within its set, shape (pairs,); -1 in sets without queries."""
    columns, set_of_pair = splits.pairs[split][:], splits.set_of_pair[split]
    first, second = (np.array(columns[name], dtype=object) for name in ("sentence1", "sentence2"))
    queries = np.full(len(set_of_pair), -1)
    for number in np.unique(set_of_pair):
        rows = np.flatnonzero(set_of_pair == number)
        queries[rows] = find_queries(first[rows], second[rows])
    return queries


def write_scores_of_test_pairs(splits: Splits, scores: PairScores, folder: Path) -> None:
    """Writes the scores of the test pairs, with which sweeps and comparisons test differences."""
    pairs = splits.pairs["test"][:]
    set_names = np.array([part.name for part in splits.sets["test"]])[splits.set_of_pair["test"]]
    texts = pairs["sentence1"], pairs["sentence2"]
    identities, groups = np.array(pair_identities(*texts)), groups_to_resample(*texts)
    found = {"cosine": scores.cosine, "head": scores.head}
    known = {name: values for name, values in found.items() if values is not None}
    write_test_scores(set_names, identities, groups, np.asarray(pairs["label"]), known, folder)
