"""Checks of held-out pairs: their scores, their labels and the grades, before anything is fitted on them."""

from collections.abc import Sequence

import numpy as np

Numbers = Sequence[float] | np.ndarray
ROUNDING = 1e-5  # of the scale: equal texts have scores that differ by less, depending on their batch
TOLERANCE = 1e-3  # share of a step between grades: labels such as 0.1667 are rounded to four digits


def held_out_pairs(scores: Numbers, labels: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """
    Scores and labels as arrays of shape (pairs,), float64.

    Raises:
        ValueError: if their numbers differ, if there are none, and for values that are NaN or infinite.
    """
    arrays = finite_array("scores", scores), finite_array("labels", labels)
    if len(arrays[0]) != len(arrays[1]) or not len(arrays[0]):
        raise ValueError(
            f"`scores` and `labels` must have the same length, at least one, but have {len(arrays[0]):,} and "
            f"{len(arrays[1]):,} items. Give a score and a label for each held-out pair."
        )
    return arrays


def finite_array(name: str, values: Numbers) -> np.ndarray:
    """
    Numbers as an array of shape (pairs,), float64.

    Raises:
        ValueError: for another shape, and for values that are NaN, infinite or not numbers; the message names the
            argument.
    """
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must hold numbers, but is {values!r:.200}. Give a number for each pair."
        ) from error
    if array.ndim != 1:
        raise ValueError(f"`{name}` must be of shape (pairs,), but is of shape {array.shape}. Give one for each pair.")
    if not np.isfinite(array).all():
        raise ValueError(
            f"`{name}` must be finite, but {np.count_nonzero(~np.isfinite(array)):,} of {len(array):,} are NaN or "
            "infinite. Leave these pairs out."
        )
    return array


def grade_values(label_values: Numbers) -> np.ndarray:
    """
    The labels that are grades, as an array of shape (grades,).

    Raises:
        ValueError: for fewer than two grades, and for grades that do not increase.
    """
    values = finite_array("label_values", label_values)
    if len(values) < 2 or not (np.diff(values) > 0).all():
        raise ValueError(
            f"`label_values` must be two or more increasing numbers, but is {values.tolist()!r:.200}. List each grade "
            "once, the lowest first."
        )
    return values


def nearest_grade(values: np.ndarray, label_values: np.ndarray) -> np.ndarray:
    """Index of the grade nearest to each value. Halfway between two grades, it is the upper one, as in the model."""
    return np.searchsorted(halfway(label_values), values, side="right")


def halfway(label_values: np.ndarray) -> np.ndarray:
    """The points halfway between neighbouring grades, of shape (grades − 1,)."""
    return (label_values[:-1] + label_values[1:]) / 2


def are_grades(labels: Numbers, label_values: Numbers) -> bool:
    """Whether every label is one of the grades."""
    given, values = np.asarray(labels, dtype=float), np.asarray(label_values, dtype=float)
    nearest = values[nearest_grade(given, values)]
    return bool((np.abs(given - nearest) <= TOLERANCE * np.diff(values).min()).all())
