"""Prediction intervals: ranges that contain the true label of a pair, at a level that the user names.

They are conformal intervals conditional on the label (Vovk, 2012; Sadinle, Lei and Wasserman, 2019): they cover the
level's share of the pairs of *each* grade. Intervals of one width, the score plus and minus a quantile of the error,
cover the level's share of all pairs, but a far smaller share of the pairs of rare grades.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import beta

from sts_regression.grading.held_out import (
    ROUNDING,
    Numbers,
    are_grades,
    finite_array,
    grade_values,
    halfway,
    held_out_pairs,
    nearest_grade,
)
from sts_regression.grading.score_map import ScoreMap, fit_score_map

GRID_POINTS = 51  # labels tried for an end of the interval, if labels are continuous
NEIGHBOURHOOD = 0.1  # of the scale: continuous labels at most this far apart are taken to have similar scores
FEWEST_NEIGHBOURS = 2  # times 1 / (1 − level): one pair may then lie outside on each side
FEWEST_PAIRS_WITH_INTERVAL = 10  # times the neighbours
SHORTFALL, RISK = (
    0.05,
    0.1,
)  # the coverage of a grade falls short by more than the first with the second as probability
STEP, SPARE = 0.005, 0.01  # each grade's share outside grows by the first while the pairs are covered with the second
LEVELS = (0.5, 0.99)


@dataclass(frozen=True)
class ScoreIntervals:
    """
    The range of scores of each label. The interval of a score consists of the labels whose range contains it.

    Attributes:
        labels: the grades, increasing; for continuous labels, a grid over the scale.
        lowest: lowest score of each label's range, not decreasing; `None` for no limit.
        highest: highest score of each label's range, not decreasing; `None` for no limit.
    """

    labels: tuple[float, ...]
    lowest: tuple[float | None, ...]
    highest: tuple[float | None, ...]

    def __post_init__(self) -> None:
        lowest, highest = self._bounds()
        if not len(grade_values(self.labels)) == len(lowest) == len(highest):
            raise ValueError(
                "`labels`, `lowest` and `highest` must have the same length. Fit them with `fit_intervals`."
            )
        if (lowest[1:] < lowest[:-1]).any() or (highest[1:] < highest[:-1]).any():
            raise ValueError("`lowest` and `highest` must not decrease. Fit them with `fit_intervals`.")

    def apply(self, scores: Numbers) -> tuple[np.ndarray, np.ndarray]:
        """
        The interval of each score.

        Args:
            scores: scores of shape (pairs,), on the scale on which the intervals were fitted.

        Returns:
            The lower and the upper ends, both labels, of shape (pairs,). If no label's range contains a score, as
            happens between grades that the scores separate well, its interval has the two labels beside it.

        Raises:
            ValueError: for scores that are NaN or infinite.
        """
        mapped = finite_array("scores", scores)
        lowest, highest = self._bounds()
        first = np.searchsorted(highest, mapped, side="left")
        last = np.searchsorted(lowest, mapped, side="right") - 1
        ends = np.clip([np.minimum(first, last), np.maximum(first, last)], 0, len(self.labels) - 1)
        low, high = np.array(self.labels)[ends]
        return low, high

    def on_label_scale(self, score_map: ScoreMap) -> "ScoreIntervals":
        """
        The same intervals, for mapped in place of raw scores.

        Each range is a little wider at both ends: the scores of pairs of equal texts differ by rounding.
        """
        slack = ROUNDING * (self.labels[-1] - self.labels[0])
        lowest, highest = (
            tuple(None if bound is None else float(score_map.apply([bound])[0]) + widening for bound in bounds)
            for bounds, widening in ((self.lowest, -slack), (self.highest, slack))
        )
        return ScoreIntervals(self.labels, lowest, highest)

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return (
            np.array([-np.inf if bound is None else bound for bound in self.lowest]),
            np.array([np.inf if bound is None else bound for bound in self.highest]),
        )


def fewest_pairs_for_intervals(level: float) -> int:
    """The least number of held-out pairs for intervals at a level: 200 at 0.9."""
    return FEWEST_PAIRS_WITH_INTERVAL * _fewest_neighbours(level)


def fit_intervals(scores: Numbers, labels: Numbers, label_values: Numbers, level: float = 0.9) -> ScoreIntervals:
    """
    Fits the intervals on held-out pairs.

    The range of a label lies between two order statistics of the scores of its pairs, by the (n + 1) rule.

    - Which pairs may lie outside: the share of them below the range equals the share of lower labels among the other
      pairs. It is zero for the lowest label, whose range has no lower limit. This keeps intervals short.
    - Continuous labels, and grades with few pairs, borrow pairs of the nearest labels. Their scores are shifted by the
      rise of the mean score with the label.
    - With few pairs, fewer may lie outside: the coverage of a grade must not fall short of the level by more than 5
      points with more than 10 % probability.
    - Both limits are made to rise with the label, so that an interval has no gaps. Where one limit then covers too
      many pairs, the other may leave out more.
    - If the held-out pairs are still covered by more than the level plus one point, more pairs of each label may lie
      outside, within the same limit.

    The coverage holds for pairs that are exchangeable with the held-out ones; it may be lower for other topics.

    Args:
        scores: raw scores of shape (pairs,).
        labels: labels of shape (pairs,).
        label_values: the grades, increasing. If each label is one of them, so are the ends of the intervals.
        level: share of pairs to cover, from 0.5 to 0.99.

    Raises:
        ValueError: for values that are NaN or infinite, different numbers of scores and labels, no pairs, grades that
            do not increase, and a level out of range.
    """
    raw, gold = held_out_pairs(scores, labels)
    values = grade_values(label_values)
    check_level(level)
    ordinal = are_grades(gold, values)
    gold = values[nearest_grade(gold, values)] if ordinal else gold
    points = GRID_POINTS + (len(values) == GRID_POINTS)  # the ends of intervals tell a grid from grades
    candidates = values if ordinal else np.linspace(values[0], values[-1], points)
    radius = 0.5 * float(np.diff(values).min()) if ordinal else NEIGHBOURHOOD * float(values[-1] - values[0])
    groups = _scores_by_label(raw, gold, candidates, radius, _fewest_neighbours(level))
    below = np.array([_share_below(gold, label) for label in candidates])

    def fit(outside: float) -> ScoreIntervals:
        lowest, highest = _rising_bounds(groups, np.array([_allowed(len(g), outside, level) for g in groups]), below)
        if not ordinal:  # a label of the grid stands for labels up to halfway to the next one
            lowest, highest = np.r_[lowest[0], halfway(lowest)], np.r_[halfway(highest), highest[-1]]
        return ScoreIntervals(tuple(candidates.tolist()), _finite_or_none(lowest), _finite_or_none(highest))

    kept = fit(1 - level)
    for more in np.arange(STEP, SHORTFALL, STEP):
        shorter = fit(1 - level + more)
        low, high = shorter.apply(raw)
        if np.mean((low <= gold) & (gold <= high)) < level + SPARE:
            break
        kept = shorter
    return kept


def check_level(level: float) -> None:
    """
    Refuses a level that no realistic number of held-out pairs supports.

    Raises:
        ValueError: for such a level; the message names the allowed ones.
    """
    if not LEVELS[0] <= level <= LEVELS[1]:
        raise ValueError(f"`level` must lie between {LEVELS[0]} and {LEVELS[1]}, but is {level!r}. 0.9 is usual.")


def _fewest_neighbours(level: float) -> int:
    return max(20, int(np.ceil(FEWEST_NEIGHBOURS / (1 - level) - 1e-9)))


def _scores_by_label(
    scores: np.ndarray, labels: np.ndarray, candidates: np.ndarray, radius: float, fewest: int
) -> list[np.ndarray]:
    """For each candidate label, the scores of pairs with labels near it, shifted as if they had it, ascending."""
    expected: Callable[[np.ndarray], np.ndarray]
    if np.ptp(scores) > 0:
        expected = fit_score_map(labels, scores, float(scores.min()), float(scores.max())).apply
    else:
        expected = np.zeros_like
    of_labels, of_candidates = expected(labels), expected(candidates)
    groups = []
    for label, of_label in zip(candidates, of_candidates, strict=True):
        distances = np.abs(labels - label)
        nearest = min(fewest, len(labels)) - 1
        near = distances <= max(radius, np.partition(distances, nearest)[nearest])
        groups.append(np.sort(scores[near] - of_labels[near] + of_label))
    return groups


@cache
def _allowed(pairs: int, outside: float, level: float) -> int:
    """The number of pairs that may lie outside the bounds of their label, at most the share `outside`."""
    number = int(np.floor((pairs + 1) * outside + 1e-9))
    while number > 0 and beta.cdf(level - SHORTFALL, pairs + 1 - number, number) > RISK:
        number -= 1
    return number


def _share_below(labels: np.ndarray, label: float) -> float:
    """The share of lower labels among the other labels."""
    below, above = np.count_nonzero(labels < label), np.count_nonzero(labels > label)
    return below / (below + above) if below + above else 0.5


def _rising_bounds(
    groups: list[np.ndarray], outside: np.ndarray, share_below: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the scores of each label that rise with the label; at most `outside` of its pairs lie outside."""
    below = np.round(outside * share_below).astype(int)
    lowest = _rising_lowest(groups, below)
    below = np.array([np.count_nonzero(group <= bound) for group, bound in zip(groups, lowest, strict=True)])
    highest = _rising_highest(groups, np.maximum(outside - below, 0))
    above = np.array([np.count_nonzero(group >= bound) for group, bound in zip(groups, highest, strict=True)])
    return _rising_lowest(groups, np.maximum(outside - above, 0)), highest


def _rising_lowest(groups: list[np.ndarray], outside: np.ndarray) -> np.ndarray:
    bounds = [group[number - 1] if number else -np.inf for group, number in zip(groups, outside, strict=True)]
    return np.minimum.accumulate(bounds[::-1])[::-1]


def _rising_highest(groups: list[np.ndarray], outside: np.ndarray) -> np.ndarray:
    bounds = [group[-number] if number else np.inf for group, number in zip(groups, outside, strict=True)]
    return np.maximum.accumulate(bounds)


def _finite_or_none(bounds: np.ndarray) -> tuple[float | None, ...]:
    return tuple(float(bound) if np.isfinite(bound) else None for bound in bounds)
