"""A strictly increasing, piecewise linear map from raw scores to the label scale, which keeps ranks."""

from dataclasses import dataclass

import numpy as np

from sts_regression.grading.held_out import Numbers, finite_array, held_out_pairs

PAIRS_PER_BIN = 50
MAX_KNOTS = 20
LEAST_BINS = 3  # fewer bins do not make a curve
SMALLEST_RISE = 0.01  # of the scale, over the range of the scores: the map of an uninformative score
ONE_SCORE = 1e-6  # relative difference below which all scores count as equal: it may be rounding
LEAST_DISTANCE = 1e-3  # of the range of the scores, between knots: the map must not magnify rounding errors


@dataclass(frozen=True)
class ScoreMap:
    """
    A map through knots, linear between them and extrapolated with the slope of the outermost segments.

    Attributes:
        knots: raw scores, increasing, two or more.
        values: the mapped scores of the knots, increasing.
    """

    knots: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        knots, values = finite_array("knots", self.knots), finite_array("values", self.values)
        if len(knots) != len(values) or len(knots) < 2 or not all((np.diff(a) > 0).all() for a in (knots, values)):
            raise ValueError(
                f"`knots` and `values` must be two or more increasing numbers each, but are {self.knots!r:.200} and "
                f"{self.values!r:.200}. Fit them with `fit_score_map`."
            )

    def apply(self, scores: Numbers) -> np.ndarray:
        """
        Maps raw scores to the label scale. Extreme scores leave the scale slightly, so that none become equal.

        Args:
            scores: raw scores of shape (pairs,).

        Returns:
            Array of shape (pairs,), float64.

        Raises:
            ValueError: for scores that are NaN or infinite.
        """
        raw, knots, values = finite_array("scores", scores), np.array(self.knots), np.array(self.values)
        segment = np.searchsorted(knots[1:-1], raw, side="right")
        return values[segment] + (np.diff(values) / np.diff(knots))[segment] * (raw - knots[segment])


def fit_score_map(scores: Numbers, labels: Numbers, low: float, high: float) -> ScoreMap:
    """
    Fits the map on held-out pairs: isotonic regression (Zadrozny and Elkan, 2002) on the means of quantile bins.

    Its slope is at least 1 % of the scale over the range of the scores; scores that fall with the labels get this
    slope, too. Bins with nearly the same mean score, such as those of pairs of equal texts, are joined. Bins that
    isotonic regression pools become one knot, so that the map has no steps. Fewer than 150 pairs get a straight line
    by least squares. Beyond the ends of the scale, the map continues with the smallest slope.

    Args:
        scores: raw scores of shape (pairs,).
        labels: labels of shape (pairs,).
        low: lowest label of the scale.
        high: highest label of the scale.

    Raises:
        ValueError: for values that are NaN or infinite, different numbers of scores and labels, no pairs, and an
            empty scale.
    """
    from sklearn.isotonic import IsotonicRegression  # slow to load, and not needed before training

    raw, gold = held_out_pairs(scores, labels)
    if not -np.inf < low < high < np.inf:
        raise ValueError(f"`low` must be below `high`, but they are {low!r} and {high!r}. Give the ends of the scale.")
    spread = float(np.ptp(raw))
    if spread <= ONE_SCORE * max(1.0, float(np.abs(raw).max())):
        half_rise = SMALLEST_RISE * (high - low) / 2
        ends = raw.mean() + np.array([-0.5, 0.5]), gold.mean() + np.array([-half_rise, half_rise])
        return ScoreMap(*(tuple(part.tolist()) for part in ends))
    smallest_slope = SMALLEST_RISE * (high - low) / spread
    knots, values, counts = _bin_means(raw, gold, min(MAX_KNOTS, len(raw) // PAIRS_PER_BIN))
    if len(knots) >= LEAST_BINS:
        # Fits the excess over the smallest slope, so that pooled bins lie on a line with that slope.
        excess = IsotonicRegression().fit_transform(knots, values - smallest_slope * knots, sample_weight=counts)
        blocks = np.cumsum(np.r_[0, np.diff(excess) > SMALLEST_RISE**2 * (high - low)])
        weights = np.bincount(blocks, counts)
        knots, values = (np.bincount(blocks, counts * part) / weights for part in (knots, excess))
        values = values + smallest_slope * knots
    if len(counts) < LEAST_BINS or len(knots) == 1:
        knots, values = _line(raw, gold, smallest_slope, spread)
    knots, values = _flat_beyond(knots, values, low, high, smallest_slope * spread, spread)
    return ScoreMap(tuple(knots.tolist()), tuple(values.tolist()))


def _line(raw: np.ndarray, gold: np.ndarray, smallest_slope: float, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Two points of the least-squares line, whose slope is raised to the smallest allowed one if necessary."""
    centred = raw - raw.mean()
    slope = max(smallest_slope, float(centred @ gold) / float(centred @ centred))
    knots = raw.mean() + np.array([-0.5, 0.5]) * spread
    return knots, gold.mean() + slope * (knots - raw.mean())


def _flat_beyond(
    knots: np.ndarray, values: np.ndarray, low: float, high: float, rise: float, spread: float
) -> tuple[np.ndarray, np.ndarray]:
    """The map up to scores at which it reaches the ends of the scale, if they are near; beyond, it rises slowly."""
    slopes, ends = np.diff(values) / np.diff(knots), np.array([low, high])
    segment = np.searchsorted(values[1:-1], ends)
    start, end = knots[segment] + (ends - values[segment]) / slopes[segment]
    inside = (knots > start) & (knots < end) & (values > low) & (values < high)
    parts = [(knots[inside], values[inside])]
    if start > knots[0] - spread:
        parts.insert(0, (np.array([start - spread, start]), np.array([low - rise, low])))
    if end < knots[-1] + spread:
        parts.append((np.array([end, end + spread]), np.array([high, high + rise])))
    return np.concatenate([part for part, _ in parts]), np.concatenate([part for _, part in parts])


def _bin_means(raw: np.ndarray, gold: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean score, mean label and number of pairs of each quantile bin; nearly equal scores share a bin."""
    _, groups, counts = np.unique(raw, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    _, bins = np.unique((middle * number / len(raw)).astype(int)[groups], return_inverse=True)
    means = np.bincount(bins, raw) / np.bincount(bins)
    bins = np.cumsum(np.r_[False, np.diff(means) > LEAST_DISTANCE * np.ptp(raw)])[bins]
    sizes = np.bincount(bins).astype(float)
    return np.bincount(bins, raw) / sizes, np.bincount(bins, gold) / sizes, sizes
