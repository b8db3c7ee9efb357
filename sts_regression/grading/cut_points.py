"""Cut points: from which score on a pair has at least a certain grade."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from sts_regression.grading.held_out import Numbers, finite_array, grade_values, halfway, held_out_pairs, nearest_grade

FEWEST_PAIRS = 100  # with fewer, a cut point would rest on a handful
# How far from the medians to the frequencies: the former give the smallest error, the latter the largest kappa.
TOWARDS_FREQUENCIES = 0.25
INVERSE_PENALTY = 1000.0  # of the logistic regression: only keeps it finite where a score parts the pairs


def fit_cut_points(
    scores: Numbers, labels: Numbers, label_values: Numbers, *, towards_frequencies: float = TOWARDS_FREQUENCIES
) -> tuple[float, ...]:
    """
    Fits the cut points between neighbouring grades on held-out pairs.

    The mean absolute error is a sum over the cut points, each with the pairs that it puts on the wrong side, whatever
    the distances between grades are. It is least if a cut lies where "at least this grade" is as likely as not, the
    conditional median, which a logistic regression finds. These cuts give middle grades too often. Cuts that give
    each grade as often as it occurs have nearly the largest quadratic weighted kappa, and a larger error. The cut
    points lie part of the way from the former to the latter, counted in pairs.

    Args:
        scores: of shape (pairs,), on the label scale, as [`ScoreMap.apply`] gives them.
        labels: of shape (pairs,); between two grades they count as the nearest one.
        label_values: the grades, increasing; their distances may differ.
        towards_frequencies: how far on this way, from 0, the least error, to 1.

    Returns:
        One number fewer than there are grades, not decreasing, on the scale of `scores`. With fewer than 100 pairs, or
        equal scores, they lie halfway between the grades.

    Raises:
        ValueError: for values that are NaN or infinite, unequal numbers of them, no pairs, grades that do not
            increase, and a `towards_frequencies` beyond 0 to 1.
    """
    mapped, gold = held_out_pairs(scores, labels)
    values = grade_values(label_values)
    if not 0 <= towards_frequencies <= 1:
        raise ValueError(f"`towards_frequencies` must lie between 0 and 1, but is {towards_frequencies!r}.")
    distinct, counts = np.unique(mapped, return_counts=True)
    if len(mapped) < FEWEST_PAIRS or len(distinct) == 1:
        return tuple(halfway(values).tolist())
    grades = nearest_grade(gold, values)
    below = np.r_[0, np.cumsum(counts)]  # pairs below each gap between distinct scores, and beyond the ends
    cuts = []
    for upper, middle in enumerate(halfway(values), start=1):
        at_least = grades >= upper
        wanted = (1 - towards_frequencies) * _pairs_below_median_cut(mapped, at_least)
        wanted += towards_frequencies * np.count_nonzero(~at_least)
        gap = int(np.abs(below - wanted).argmin())
        if gap == 0:
            cuts.append(min(middle, distinct[0]))
        elif gap == len(distinct):
            cuts.append(max(middle, np.nextafter(distinct[-1], np.inf)))
        else:
            cuts.append((distinct[gap - 1] + distinct[gap]) / 2)
    return tuple(np.maximum.accumulate(cuts).tolist())


def grade_index(scores: Numbers, cut_points: Numbers) -> np.ndarray:
    """
    The index of the grade of each score: how many cut points do not exceed it.

    Args:
        scores: of shape (pairs,).
        cut_points: from [`fit_cut_points`].

    Returns:
        Array of shape (pairs,), int64, from 0 to the number of cut points.

    Raises:
        ValueError: for values that are NaN or infinite.
    """
    cuts = finite_array("cut_points", cut_points)
    return np.searchsorted(cuts, finite_array("scores", scores), side="right")


def _pairs_below_median_cut(scores: np.ndarray, at_least: np.ndarray) -> int:
    """How many pairs score below the point at which `at_least` becomes as likely as not."""
    if at_least.all() or not at_least.any():
        return 0 if at_least.all() else len(scores)
    standard = (scores - scores.mean()) / scores.std()
    regression = LogisticRegression(C=INVERSE_PENALTY).fit(standard[:, None], at_least)
    slope, intercept = float(regression.coef_[0, 0]), float(regression.intercept_[0])
    if slope <= 0:  # the score does not tell: the more frequent side takes all
        return 0 if 2 * np.count_nonzero(at_least) >= len(scores) else len(scores)
    return int(np.count_nonzero(slope * standard + intercept < 0))
