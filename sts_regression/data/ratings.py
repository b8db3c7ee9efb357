"""Several ratings of the same pairs: their means, the agreement of raters, and the ceiling it sets for models."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from datasets import Dataset
from scipy import stats

from sts_regression.data.columns import numbers_of
from sts_regression.data.labels import LabelScale, is_blank, parse_labels, parse_number

RATINGS_COLUMN = "ratings"
FEW_RATINGS = 30  # the range of a rater with fewer ratings says little
OTHER_SCALE_RANGE = 0.1  # share of the range of all raters
MANY_LABELS = 100_000  # different ones; with more, labels are a measurement


class WrittenLabels:
    """
    The labels of one column or several as they are written: each different one once, and twelve bytes for its places.

    If there are very many different ones, further fractions are kept as numbers only.

    Args:
        columns: the names of the columns.
        grades: names that labels may have.

    Attributes:
        columns: the names of the columns.
        different: the different labels, in the order of the file.
    """

    def __init__(self, columns: Sequence[str], grades: Mapping[str, float] | None = None) -> None:
        self.columns, self.different = tuple(columns), list[Any]()
        self._are_names = bool(grades)
        self._number_of: dict[Any, int] = {}
        self._numbers: list[np.ndarray] = []
        self._fractions: list[np.ndarray] = []

    def add(self, labels: Sequence[Any]) -> None:
        """Adds the labels of some pairs, row by row."""
        numbers = np.fromiter(map(self._number, labels), np.int32, len(labels))
        fractions = np.full(len(labels), math.nan)
        for place in np.flatnonzero(numbers < 0).tolist():
            fractions[place] = parse_number(labels[place])[0]
        self._numbers.append(numbers)
        self._fractions.append(fractions)

    def _number(self, label: Any) -> int:
        written = label if isinstance(label, str) else (type(label), repr(label))
        number = self._number_of.get(written)
        if number is None:
            if len(self.different) >= MANY_LABELS and not self._are_names and parse_number(label)[0] % 1 > 0:
                return -1
            number = self._number_of[written] = len(self.different)
            self.different.append(label)
        return number

    @property
    def numbers(self) -> np.ndarray:
        """The place of each label in `different`, shape (pairs, columns); -1 for further fractions."""
        return np.concatenate(self._numbers or [np.empty(0, np.int32)]).reshape(-1, len(self.columns))

    def values(self, of_different: np.ndarray) -> np.ndarray:
        """The values of the labels, shape (pairs, columns), from those of the different ones."""
        numbers = self.numbers
        fractions = np.concatenate(self._fractions).reshape(numbers.shape)
        return np.where(numbers < 0, fractions, of_different[numbers])


@dataclass(frozen=True)
class Agreement:
    """
    The agreement of raters. Undefined values, as for constant ratings, are `None`.

    Attributes:
        raters: number of raters.
        pairs: number of pairs with two or more ratings.
        spearman: mean of Spearman's correlations between two raters, weighted by the pairs that both have rated.
        krippendorff_alpha: Krippendorff's alpha for interval data; 1 for perfect agreement, 0 for chance.
        ceiling_lower: Spearman's correlation of a rater with the mean of the others, averaged over raters. A model as
            good as one rater reaches at least this correlation with the mean of all raters.
        ceiling_upper: the correlation of the true grades with the mean of all raters, computed from `spearman` as the
            square root of the mean's reliability (Spearman-Brown). A model exceeds it only by chance.
    """

    raters: int
    pairs: int
    spearman: float | None
    krippendorff_alpha: float | None
    ceiling_lower: float | None
    ceiling_upper: float | None


@dataclass(frozen=True)
class ParsedRatings:
    """
    Labels of one rater or several as numbers.

    Attributes:
        ratings: shape (pairs, raters), NaN if missing.
        means: the mean rating of each pair, shape (pairs,); NaN for a pair that nobody has rated.
        problems: descriptions of bad labels, by their place among the different ones.
        scale, has_decimal_commas: see [`ParsedLabels`].
    """

    ratings: np.ndarray
    means: np.ndarray
    problems: dict[int, str]
    scale: LabelScale | None
    has_decimal_commas: bool


def parse_ratings(written: WrittenLabels, grades: Mapping[str, float] | None, is_nli: bool) -> ParsedRatings:
    """
    Parses labels as [`parse_labels`] does.

    A blank label is skipped if there are several raters; if there is only one, it is a problem.

    Args:
        written: the raw labels, with a column per rater.
        grades, is_nli: see [`parse_labels`].
    """
    are_several = len(written.columns) > 1
    places = [
        place
        for place, label in enumerate(written.different)
        # Tables in memory have NaN for a missing label.
        if not (are_several and (is_blank(label) or (isinstance(label, float) and math.isnan(label))))
    ]
    parsed = parse_labels([written.different[place] for place in places], grades, is_nli)
    of_different = np.full(len(written.different), math.nan)
    of_different[places] = np.array(parsed.values, dtype=float)  # NaN for None
    ratings = written.values(of_different)
    means = ratings[:, 0]
    if are_several:
        given = ([rating for rating in of_pair.tolist() if not math.isnan(rating)] for of_pair in ratings)
        means = np.fromiter(map(_mean, given), float, len(ratings))
    problems = {places[at]: problem for at, problem in parsed.problems.items()}
    return ParsedRatings(ratings, means, problems, parsed.scale, parsed.has_decimal_commas)


def _mean(values: Sequence[float]) -> float:
    if len(values) <= 1:
        return values[0] if values else math.nan
    # Rounding must not carry the mean of equal ratings off their node or beyond the scale.
    return min(max(math.fsum(values) / len(values), min(values)), max(values))


def ratings_of(pairs: Dataset) -> np.ndarray | None:
    """Ratings of shape (pairs, raters), NaN if missing; `None` unless there are several raters."""
    if RATINGS_COLUMN not in pairs.column_names:
        return None
    return numbers_of(pairs, RATINGS_COLUMN)


def measure_agreement(ratings: np.ndarray) -> Agreement | None:
    """
    The agreement of raters on pairs with two or more ratings; `None` if there are no such pairs.

    Sources: Krippendorff, Content Analysis (2004), chapter 11, for alpha; Nili et al., PLOS Computational Biology
    (2014), for the ceiling's lower end; Spearman and Brown (1910) for the reliability of a mean.

    Args:
        ratings: shape (pairs, raters), NaN if missing.
    """
    counts = (~np.isnan(ratings)).sum(axis=1)
    ratings, counts = ratings[counts > 1], counts[counts > 1]
    if not len(ratings):
        return None
    spearman = _mean_correlation(combinations(ratings.T, 2))
    upper = None
    if spearman is not None and spearman > 0:
        number = len(counts) / (1 / counts).sum()  # ratings per pair: the harmonic mean, as for variances of means
        upper = float(np.sqrt(number * spearman / (1 + (number - 1) * spearman)))
    return Agreement(
        raters=ratings.shape[1],
        pairs=len(ratings),
        spearman=spearman,
        krippendorff_alpha=_interval_alpha(ratings, counts),
        ceiling_lower=_mean_correlation(_each_and_others(ratings, counts)),
        ceiling_upper=upper,
    )


def _each_and_others(ratings: np.ndarray, counts: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    sums = np.nansum(ratings, axis=1)
    for own in ratings.T:
        yield own, (sums - own) / (counts - 1)


def _mean_correlation(columns: Iterator[tuple[np.ndarray, np.ndarray]]) -> float | None:
    """Spearman's correlation of pairs of columns over their common rows, averaged with weights by number of rows."""
    found, weights = [], []
    for first, second in columns:
        both = ~np.isnan(first) & ~np.isnan(second)
        if both.any() and np.ptp(first[both]) > 0 and np.ptp(second[both]) > 0:
            found.append(stats.spearmanr(first[both], second[both]).statistic)
            weights.append(both.sum())
    return float(np.average(found, weights=weights)) if found else None


def _interval_alpha(ratings: np.ndarray, counts: np.ndarray) -> float | None:
    """Krippendorff's alpha: 1 − observed / expected squared difference of two ratings; each row has two or more."""
    given = ratings[~np.isnan(ratings)]
    expected = 2 * given.var(ddof=1)
    within = 2 * counts / (counts - 1) * np.nanvar(ratings, axis=1) * counts
    return float(1 - within.sum() / len(given) / expected) if expected > 0 else None


def scale_notes(ratings: np.ndarray, raters: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each rater whose ratings have a much smaller range than all ratings, perhaps on another scale."""
    notes = []
    for rater, column in zip(raters, ratings.T, strict=True):
        own = column[~np.isnan(column)]
        if len(own) < FEW_RATINGS:
            continue
        low, high = np.nanmin(ratings), np.nanmax(ratings)
        if np.ptp(own) <= OTHER_SCALE_RANGE * (high - low):
            notes.append(
                f"the ratings of `{rater}` lie between {own.min():g} and {own.max():g}, those of all raters between "
                f"{low:g} and {high:g}. Are they on one scale?"
            )
    return tuple(notes)


def describe_agreement(raters: Sequence[str], agreement: Agreement | None) -> str:
    """Sentences for the data report about the raters and their agreement, without the name of the set."""
    names = ", ".join(f"`{rater}`" for rater in raters)
    said = [f"labels are means of {len(raters)} raters ({names})."]
    if agreement is None:
        return f"{said[0]} No pair has two ratings, so agreement is unknown."
    measures = [
        f"{name} {value:.2f}"
        for name, value in (
            ("Spearman", agreement.spearman),
            ("Krippendorff's alpha for interval data", agreement.krippendorff_alpha),
        )
        if value is not None
    ]
    if measures:
        said.append(f"Agreement of two raters on {agreement.pairs:,} pairs: {', '.join(measures)}.")
    if agreement.ceiling_lower is not None and agreement.ceiling_upper is not None:
        said.append(
            "The highest Spearman's correlation that a model can reach against these means lies between "
            f"{agreement.ceiling_lower:.2f} and {agreement.ceiling_upper:.2f}."
        )
    return " ".join(said)
