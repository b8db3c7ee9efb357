"""Score map, cut points, intervals and thresholds together: fitted on held-out pairs, measured by cross-fitting."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

from sts_regression.grading.cut_points import fit_cut_points, grade_index
from sts_regression.grading.held_out import (
    ROUNDING,
    TOLERANCE,
    Numbers,
    are_grades,
    finite_array,
    grade_values,
    held_out_pairs,
    nearest_grade,
)
from sts_regression.grading.intervals import ScoreIntervals, check_level, fewest_pairs_for_intervals, fit_intervals
from sts_regression.grading.score_map import ScoreMap, fit_score_map
from sts_regression.grading.thresholds import MEASURES, fit_threshold

NUM_FOLDS = 5
FEWEST_PAIRS_MEASURED = 20
FOLD_SEED = 0
GROUPS, FEWEST_IN_GROUP = 10, 5  # groups of pairs by score, and pairs in a group
WANTED_SHARES = (0.8, 0.9, 0.95)  # precisions and recalls for which thresholds are kept


@dataclass(frozen=True)
class Grading:
    """
    Maps raw scores to scores on the label scale, grades and intervals.

    Attributes:
        label_values: the grades, increasing.
        level: share of pairs whose label the intervals cover.
        num_pairs: number of held-out pairs that it was fitted on.
        score_map: the map from raw scores to the label scale.
        cut_points: scores between neighbouring grades, on the label scale.
        intervals: intervals on the label scale; `None` if there are too few pairs.
        no_intervals: the reason why there are no intervals, in a sentence; `None` if there are intervals.
        thresholds: a `dict` for each grade but the lowest, each measure and each wanted share that a threshold
            reaches: `grade`, `measure` ("precision" or "recall"), `wanted`, and the attributes of a
            [`ScoreThreshold`].
        report: measures by cross-fitting, see [`fit_grading`]; empty with fewer than 20 pairs.
        source: the source of the held-out pairs, if those of other sources were left out.
    """

    label_values: tuple[float, ...]
    level: float
    num_pairs: int
    score_map: ScoreMap
    cut_points: tuple[float, ...]
    intervals: ScoreIntervals | None
    no_intervals: str | None
    thresholds: tuple[dict[str, Any], ...]
    report: dict[str, Any]
    source: str | None = None

    def grade(self, scores: Numbers) -> dict[str, np.ndarray]:
        """
        Grades pairs by their raw scores.

        Args:
            scores: raw scores of shape (pairs,).

        Returns:
            A `dict` of arrays of shape (pairs,): `score` on the label scale, `grade`, an index into `label_values`,
            and, if there are intervals, their ends `low` and `high`, labels within the scale. The interval always
            contains the grade if labels are ordinal, and the score, clipped to the scale, if they are continuous.

        Raises:
            ValueError: for scores that are NaN or infinite.
        """
        return _graded(scores, np.array(self.label_values), self.score_map, self.cut_points, self.intervals)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; [`~Grading.from_dict`] is the inverse."""
        return _plain(asdict(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Grading":
        """
        The inverse of [`~Grading.to_dict`].

        Raises:
            ValueError: if names are missing or unknown, and for invalid maps and intervals.
        """
        try:
            known = {**values, "score_map": ScoreMap(**_tuples(values["score_map"]))}
            if values["intervals"] is not None:
                known["intervals"] = ScoreIntervals(**_tuples(values["intervals"]))
            tuples = {name: tuple(values[name]) for name in ("label_values", "cut_points", "thresholds")}
            grading = cls(**{**known, **tuples})
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(
                f"`values` is not a grading ({type(error).__name__}: {error}). Give the result of `to_dict`."
            ) from error
        check_level(grading.level)
        cuts, nodes = finite_array("cut_points", grading.cut_points), grade_values(grading.label_values)
        if len(cuts) != len(nodes) - 1 or (np.diff(cuts) < 0).any():
            raise ValueError(
                f"`cut_points` must be {len(nodes) - 1} numbers that do not decrease, but is {cuts.tolist()!r:.200}. "
                "Fit them again."
            )
        return grading


def fit_grading(
    scores: Numbers,
    labels: Numbers,
    label_values: Numbers,
    level: float = 0.9,
    groups: np.ndarray | None = None,
    num_different: int | None = None,
) -> Grading:
    """
    Fits all parts on held-out pairs, and measures them by cross-fitting in five folds.

    Args:
        scores: raw scores of shape (pairs,), of pairs that the model was not trained on.
        labels: labels of shape (pairs,), from the lowest of `label_values` to the highest. Labels are ordinal if each
            is one of these values, and continuous otherwise.
        label_values: the grades, increasing; their distances may differ.
        level: share of pairs whose label the intervals should cover, from 0.5 to 0.99.
        groups: number of the group of each pair, shape (pairs,), for pairs that share texts. The report then holds for
            pairs of other groups. By default, each pair is a group.
        num_different: number of different pairs, if some occur several times, for example once for each rater.
            Intervals need enough of them. By default, all pairs differ.

    Returns:
        A [`Grading`]. Its `report` holds these measures:

        - `pearson`, between scores and labels
        - the measures of [`measure_grades`]; a continuous label counts as the nearest grade
        - `midpoints`: the same for the grade nearest to the calibrated score, that is, without learned cut points
        - `reliability`: see [`groups_by_score`]
        - `coverage`, mean `width` and `coverage_by_grade` of the intervals, if there are enough pairs

    Raises:
        ValueError: for values that are NaN or infinite, different numbers of scores and labels, no pairs, grades that
            do not increase, labels beyond them, and a level out of range.
    """
    raw, gold = held_out_pairs(scores, labels)
    values = grade_values(label_values)
    check_level(level)
    slack = TOLERANCE * float(np.diff(values).min())
    if gold.min() < values[0] - slack or gold.max() > values[-1] + slack:
        raise ValueError(
            f"`labels` must lie between {values[0]:g} and {values[-1]:g}, the ends of `label_values`, but range from "
            f"{gold.min():g} to {gold.max():g}. Map them onto this scale."
        )
    gold = values[nearest_grade(gold, values)] if are_grades(gold, values) else np.clip(gold, values[0], values[-1])
    fewest, num_different = fewest_pairs_for_intervals(level), len(raw) if num_different is None else num_different
    enough = num_different >= fewest
    reason = (
        f"There are no intervals: at a level of {level:g} they need {fewest:,} held-out pairs or more, and there are "
        f"{num_different:,}{' different ones' if num_different < len(raw) else ''}."
    )
    score_map, cut_points, intervals = _fitted(raw, gold, values, level if enough else None)
    return Grading(
        label_values=tuple(values.tolist()),
        level=float(level),
        num_pairs=len(raw),
        score_map=score_map,
        cut_points=cut_points,
        intervals=intervals,
        no_intervals=None if enough else reason,
        thresholds=tuple(_thresholds(score_map.apply(raw), gold, values)),
        report=_cross_fitted_report(raw, gold, values, level if enough else None, groups),
    )


def _fitted(
    raw: np.ndarray, gold: np.ndarray, values: np.ndarray, level: float | None
) -> tuple[ScoreMap, tuple[float, ...], ScoreIntervals | None]:
    """Score map and cut points, and, if a level is given, intervals."""
    score_map = fit_score_map(raw, gold, float(values[0]), float(values[-1]))
    cut_points = fit_cut_points(score_map.apply(raw), gold, values)
    intervals = None if level is None else fit_intervals(raw, gold, values, level).on_label_scale(score_map)
    return score_map, cut_points, intervals


def _graded(
    scores: Numbers,
    values: np.ndarray,
    score_map: ScoreMap,
    cut_points: tuple[float, ...],
    intervals: ScoreIntervals | None,
) -> dict[str, np.ndarray]:
    """The arrays that [`Grading.grade`] returns."""
    mapped = score_map.apply(scores)
    index = grade_index(mapped, cut_points)
    graded = {"score": mapped, "grade": index}
    if intervals is not None:
        graded["low"], graded["high"] = _hull(intervals, values, mapped, index)
    return graded


def _hull(
    intervals: ScoreIntervals, values: np.ndarray, mapped: np.ndarray, index: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The intervals, widened if they do not contain the grade or, for continuous labels, the score."""
    low, high = intervals.apply(mapped)
    ordinal = np.array_equal(intervals.labels, values)
    centre = values[index] if ordinal else np.clip(mapped, values[0], values[-1])
    return np.minimum(low, centre), np.maximum(high, centre)


def _thresholds(mapped: np.ndarray, gold: np.ndarray, values: np.ndarray) -> Iterator[dict[str, Any]]:
    lower_ends, rounding = values[1:] - TOLERANCE * np.diff(values), ROUNDING * float(np.ptp(values))
    grades = zip(values[1:], lower_ends, strict=True)
    for (grade, lower_end), measure, wanted in product(grades, MEASURES, WANTED_SHARES):
        found = fit_threshold(measure, mapped, gold, float(lower_end), wanted, rounding)
        if found is not None:
            yield {"grade": float(grade), "measure": measure, "wanted": wanted, **asdict(found)}


def _cross_fitted_report(
    raw: np.ndarray, gold: np.ndarray, values: np.ndarray, level: float | None, groups: np.ndarray | None
) -> dict[str, Any]:
    if len(raw) < FEWEST_PAIRS_MEASURED:
        return {}
    if groups is None or len(np.unique(groups)) < NUM_FOLDS:
        groups = np.arange(len(raw))
    numbers, group_of_pair = np.unique(groups, return_inverse=True)
    fold_of_group = np.random.default_rng(FOLD_SEED).permutation(np.arange(len(numbers)) % NUM_FOLDS)
    folds = fold_of_group[group_of_pair]
    graded: dict[str, np.ndarray] = {}
    for fold in range(NUM_FOLDS):
        own, others = folds == fold, folds != fold
        for name, found in _graded(raw[own], values, *_fitted(raw[others], gold[others], values, level)).items():
            graded.setdefault(name, np.empty(len(raw), found.dtype))[own] = found
    true_index = nearest_grade(gold, values)
    report = {
        "pearson": _pearson(graded["score"], gold),
        **measure_grades(graded["grade"], true_index, values),
        "midpoints": measure_grades(nearest_grade(graded["score"], values), true_index, values),
        "reliability": groups_by_score(graded["score"], gold),
    }
    return report if level is None else {**report, **measure_intervals(graded["low"], graded["high"], gold, values)}


def measure_grades(index: np.ndarray, true_index: np.ndarray, label_values: np.ndarray) -> dict[str, float]:
    """
    Measures of predicted grades against the true grades.

    Args:
        index: index of the predicted grade of each pair, shape (pairs,).
        true_index: index of the true grade of each pair, shape (pairs,).
        label_values: the grades.

    Returns:
        A `dict` with `accuracy`, `macro_f1` (over the grades that occur), `mae`, in units of the labels, and
        `quadratic_kappa`, which is 0 if all of them are equal.
    """
    from sklearn.metrics import cohen_kappa_score, f1_score  # slow to load, and not needed before training

    kappa = 0.0
    if np.ptp(np.r_[index, true_index]) > 0:
        kappa = cohen_kappa_score(true_index, index, labels=np.arange(len(label_values)), weights="quadratic")
    return {
        "accuracy": float(np.mean(index == true_index)),
        "macro_f1": float(f1_score(true_index, index, average="macro")),
        "mae": float(np.abs(label_values[index] - label_values[true_index]).mean()),
        "quadratic_kappa": float(kappa),
    }


def measure_intervals(
    low: np.ndarray, high: np.ndarray, labels: np.ndarray, label_values: np.ndarray
) -> dict[str, Any]:
    """
    Coverage and width of intervals.

    Args:
        low: lower ends, shape (pairs,).
        high: upper ends, shape (pairs,).
        labels: the true labels, shape (pairs,).
        label_values: the grades; a continuous label counts as the nearest one.

    Returns:
        A `dict` with `coverage`, the share of labels within the ends, the mean `width`, `coverage_by_grade`, a `dict`
        of `grade`, `pairs` and `coverage` for each grade that occurs, and `single_grades`, a `dict` of the `pairs` and
        `coverage` of intervals whose ends are equal, if there are any.
    """
    slack = TOLERANCE * np.diff(label_values).min()
    covered = (low - slack <= labels) & (labels <= high + slack)
    true_index = nearest_grade(labels, label_values)
    by_grade = [
        {"grade": float(label_values[i]), "pairs": int(own.sum()), "coverage": float(covered[own].mean())}
        for i in np.unique(true_index)
        for own in [true_index == i]
    ]
    single = high == low
    of_single = {"pairs": int(single.sum()), "coverage": float(covered[single].mean())} if single.any() else None
    return {
        "coverage": float(covered.mean()),
        "width": float((high - low).mean()),
        "coverage_by_grade": by_grade,
        **({} if of_single is None else {"single_grades": of_single}),
    }


def groups_by_score(scores: np.ndarray, labels: np.ndarray) -> list[dict[str, float]]:
    """
    Divides pairs by score into tenths, or into fewer groups if there are few pairs.

    Args:
        scores: scores of shape (pairs,).
        labels: labels of shape (pairs,).

    Returns:
        For each group, the number of `pairs`, the mean `score`, the mean `label`, and the `error` of the mean label,
        half of a 95 % interval by Student's t. Its variance is that within all groups, since the labels of a small
        group may happen to be equal.
    """
    number = min(GROUPS, max(1, len(scores) // FEWEST_IN_GROUP))
    groups = np.array_split(np.argsort(scores, kind="stable"), number)
    freedom = max(len(scores) - number, 1)
    variance = sum(len(rows) * float(labels[rows].var()) for rows in groups) / freedom
    half_width = float(stats.t.ppf(0.975, freedom)) * np.sqrt(variance)
    return [
        {
            "pairs": len(rows),
            "score": float(scores[rows].mean()),
            "label": float(labels[rows].mean()),
            "error": float(half_width / np.sqrt(len(rows))),
        }
        for rows in groups
    ]


def _pearson(scores: np.ndarray, labels: np.ndarray) -> float:
    """Pearson's correlation; 0 if all scores or all labels are equal."""
    return float(stats.pearsonr(scores, labels).statistic) if np.ptp(scores) > 0 and np.ptp(labels) > 0 else 0.0


def _plain(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: _plain(value) for name, value in values.items()}
    return [_plain(value) for value in values] if isinstance(values, list | tuple) else values


def _tuples(values: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    return {name: tuple(value) for name, value in values.items()}
