"""Thresholds: scores above which "at least this grade" has a wanted precision or recall."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from sts_regression.grading.held_out import Numbers, held_out_pairs

MEASURES = ("precision", "recall")
BOUND_CONFIDENCE = 0.95
FEWEST_ABOVE = 20  # pairs above a threshold, and pairs of the grade: a share of fewer says little
SLACK = 1e-9


@dataclass(frozen=True)
class ScoreThreshold:
    """
    A threshold, and its precision and recall on the held-out pairs.

    Attributes:
        score: the threshold; pairs that score at least this are taken.
        precision: share of the taken pairs that have at least the grade.
        precision_at_least: lower bound of the precision of this score on other pairs, with 95 % confidence. Since the
            same pairs chose the score, the bound holds for all thresholds at once: that of Clopper and Pearson (1934)
            at Bonferroni's level. It counts pairs as independent.
        recall: share of the pairs with at least the grade that are taken.
        recall_at_least: the same for the recall.
        taken: number of held-out pairs that score at least `score`.
        relevant: number of held-out pairs that have at least the grade.
    """

    score: float
    precision: float
    precision_at_least: float
    recall: float
    recall_at_least: float
    taken: int
    relevant: int


def fit_threshold(
    measure: str, scores: Numbers, labels: Numbers, grade: float, wanted: float, rounding: float = 0.0
) -> ScoreThreshold | None:
    """
    The threshold with a wanted precision or recall of "at least this grade" on held-out pairs.

    Args:
        measure: "precision" for the lowest threshold that reaches it, or "recall" for the highest.
        scores: scores of shape (pairs,), raw or mapped.
        labels: labels of shape (pairs,).
        grade: lowest label that counts.
        wanted: the wanted share, above 0, at most 1.
        rounding: scores at most this far apart count as equal. The threshold lies half of it below the lowest of
            these scores, so that it takes the same pairs if their scores are rounded.

    Returns:
        The threshold; `None` if no threshold with at least 20 pairs above it reaches the share, or if fewer than 20
        pairs have the grade.

    Raises:
        ValueError: for values that are NaN or infinite, different numbers of scores and labels, no pairs, and a share
            out of range.
    """
    values, gold = held_out_pairs(scores, labels)
    if not 0 < wanted <= 1:
        raise ValueError(f"`{measure}` must be above 0 and at most 1, but is {wanted!r}. 0.9 stands for 90 %.")
    order = np.argsort(values)
    values, relevant = values[order], gold[order] >= grade
    first = np.flatnonzero(np.r_[True, np.diff(values) > rounding])  # pair above each threshold, the lowest first
    taken, hits = len(values) - first, relevant[::-1].cumsum()[::-1][first]
    number = int(np.count_nonzero(relevant))
    shares = hits / (taken if measure == "precision" else max(number, 1))
    enough = np.flatnonzero((shares >= wanted - SLACK) & (taken >= FEWEST_ABOVE))
    if number < FEWEST_ABOVE or not len(enough):
        return None
    place = enough[0] if measure == "precision" else enough[-1]
    found: dict[str, Any] = {"taken": int(taken[place]), "relevant": number}
    level = (1 - BOUND_CONFIDENCE) / np.count_nonzero(taken >= FEWEST_ABOVE)
    for name, total in (("precision", found["taken"]), ("recall", number)):
        found[name] = float(hits[place] / total)
        found[f"{name}_at_least"] = _lower_bound(int(hits[place]), total, level)
    return ScoreThreshold(float(values[first[place]]) - rounding / 2, **found)


def _lower_bound(hits: int, total: int, level: float) -> float:
    return float(beta.ppf(level, hits, total - hits + 1)) if hits else 0.0
