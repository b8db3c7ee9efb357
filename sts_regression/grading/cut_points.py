"""Cut points: the lowest score of each grade but the first."""

import numpy as np

from sts_regression.grading.held_out import Numbers, finite_array, grade_values, halfway, held_out_pairs, nearest_grade

FEWEST_PAIRS = 20  # in fewer pairs, the frequencies of grades are chance


def fit_cut_points(scores: Numbers, labels: Numbers, label_values: Numbers) -> tuple[float, ...]:
    """
    Fits the cut points between neighbouring grades on held-out pairs.

    The nearest grade to a mapped score has a small absolute error, but predicts middle grades too often. Cuts that
    predict each grade as often as it occurs have nearly the largest quadratic weighted kappa, but a larger error. The
    cut points lie halfway between the two. In `results/grading/choice.json`, they have about the error of the former
    and most of the kappa of the latter, with 20 pairs as with 1,000.

    Args:
        scores: scores of shape (pairs,), on the label scale, from [`ScoreMap.apply`].
        labels: labels of shape (pairs,); a label between two grades counts as the nearest one.
        label_values: the grades, increasing; their distances may differ.

    Returns:
        The cut points, one fewer than there are grades, not decreasing, on the scale of `scores`. With fewer than 20
        pairs, or equal scores, they lie halfway between the grades.

    Raises:
        ValueError: for values that are NaN or infinite, different numbers of scores and labels, no pairs, and grades
            that do not increase.
    """
    mapped, gold = held_out_pairs(scores, labels)
    values = grade_values(label_values)
    middles = halfway(values)
    if len(mapped) < FEWEST_PAIRS or np.ptp(mapped) == 0:
        return tuple(middles.tolist())
    grades = nearest_grade(gold, values)
    shares_below = [float((grades < upper).mean()) for upper in range(1, len(values))]
    return tuple(((middles + np.quantile(mapped, shares_below)) / 2).tolist())


def grade_index(scores: Numbers, cut_points: Numbers) -> np.ndarray:
    """
    The index of the grade of each score: the number of cut points that do not exceed it.

    Args:
        scores: scores of shape (pairs,).
        cut_points: from [`fit_cut_points`].

    Returns:
        Array of shape (pairs,), int64, from 0 to the number of cut points.

    Raises:
        ValueError: for values that are NaN or infinite.
    """
    cuts = finite_array("cut_points", cut_points)
    return np.searchsorted(cuts, finite_array("scores", scores), side="right")
