"""Bootstrap intervals of Spearman's correlation, and resamples for the errors of differences between models.

Pairs are drawn with replacement (Efron and Tibshirani 1993; for comparing two systems on one test set Berg-Kirkpatrick
et al. 2012). Pairs often share texts, like the candidates of a query or the 4,927 test pairs of SICK-R, which form 831
groups. The errors of such pairs are correlated, so their group is drawn as one (Davison and Hinkley 1997). Test sets
share pairs, too: 1,007 of STS-B's 1,379 test pairs also occur in STS12-16. Groups are therefore drawn once for all
sets, and a pair has the same weight in all of them. A resample is a weight per pair: how often it was drawn. Its ranks
follow from running sums of these weights over the pairs in the order of their scores, so nothing is sorted again.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

NUM_RESAMPLES = 1000
CONFIDENCE = 0.95
RESAMPLES_AT_ONCE = 50  # bounds memory: an array holds this many numbers per pair
SAME_RANKS = 1e-5  # standard deviations; scores that differ by less are the same score with different rounding

ScoreName = TypeVar("ScoreName", bound=Hashable)
Part = TypeVar("Part", bound=Hashable)


class _Order(NamedTuple):
    """
    Values in ascending order.

    Attributes:
        rows: the pairs in that order, of shape (pairs,).
        starts: where each group of equal values starts, of shape (groups,).
        groups: the group of each pair, of shape (pairs,).
    """

    rows: np.ndarray
    starts: np.ndarray
    groups: np.ndarray


def bootstrap_spearman(
    scores: Mapping[ScoreName, np.ndarray],
    gold_scores: np.ndarray,
    units: np.ndarray,
    parts: Mapping[Part, np.ndarray],
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> dict[Part, dict[ScoreName, np.ndarray]]:
    """
    Spearman's correlation with the gold scores on resampled pairs, for each part of the pairs.

    Args:
        scores: arrays of shape (pairs,) by name. All are measured on the same resamples, so differences between them
            are paired. A score that is another one scaled or shifted is not measured again.
        gold_scores: labels of shape (pairs,).
        units: the units that are drawn, shape (pairs,): pairs with equal values, copies of a pair or a group, are
            drawn as one.
        parts: rows of the pairs by the name of the part, such as a task; parts may overlap.
        num_resamples: number of resamples.
        seed: seed of the draws, which depend only on it and on the number of units.

    Returns:
        Arrays of shape (num_resamples,) by part and name; 0 if all scores or gold scores of a resample are equal.
    """
    distinct, numbers = np.unique(units, return_inverse=True)
    same_as = _first_of_same_ranks(scores)
    measured = [name for name in scores if same_as[name] == name]
    gold_orders = {part: _ascending(gold_scores[rows]) for part, rows in parts.items()}
    orders = {part: [_ascending(scores[name][rows]) for name in measured] for part, rows in parts.items()}
    rounds: dict[Part, list[np.ndarray]] = {part: [] for part in parts}
    for weights in _draw(len(distinct), num_resamples, seed):
        for part, rows in parts.items():
            rounds[part].append(_correlations(weights[numbers[rows]], gold_orders[part], orders[part]))
    samples = {part: np.concatenate(of_part, axis=1) for part, of_part in rounds.items()}  # (scores, resamples)
    place = {name: measured.index(same_as[name]) for name in scores}
    return {part: {name: of_part[place[name]] for name in scores} for part, of_part in samples.items()}


def _draw(num_distinct: int, num_resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Yields how often each distinct unit is drawn, arrays of shape (num_distinct, up to `RESAMPLES_AT_ONCE`)."""
    generator = np.random.default_rng(seed)
    for start in range(0, num_resamples, RESAMPLES_AT_ONCE):
        count = min(RESAMPLES_AT_ONCE, num_resamples - start)
        drawn = generator.integers(num_distinct, size=(count, num_distinct)) * count + np.arange(count)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=num_distinct * count).reshape(num_distinct, count)
        yield weights.astype(float)


def _correlations(weights: np.ndarray, gold: _Order, orders: Sequence[_Order]) -> np.ndarray:
    """
    Spearman's correlation of weighted pairs.

    In a resample with weight n, a group of equal scores with weight t has the rank "weight below it + t / 2", which
    differs from the average rank of its pairs by a constant. Less n / 2, these ranks sum to 0, and their squares to
    (n³ - sum of t³) / 12.

    Args:
        weights: weights of shape (pairs, resamples).
        gold: order of the gold scores.
        orders: order of each score.

    Returns:
        Array of shape (scores, resamples).
    """
    total = weights.sum(axis=0)
    gold_weights = _by_group(weights, gold)
    weighted_gold = weights * (_ranks(gold_weights) - total / 2)[gold.groups]
    gold_squares = _sum_of_squares(gold_weights, total)
    correlations = np.zeros((len(orders), len(total)))
    for number, order in enumerate(orders):
        group_weights = _by_group(weights, order)
        # These ranks need not be centred: the weighted gold ranks sum to 0.
        products = np.einsum("gr,gr->r", _by_group(weighted_gold, order), _ranks(group_weights))
        scale = np.sqrt(gold_squares * _sum_of_squares(group_weights, total))
        np.divide(products, scale, out=correlations[number], where=scale > 0)
    return correlations


def _by_group(values: np.ndarray, order: _Order) -> np.ndarray:
    """Sums of values of shape (pairs, resamples) over each group of equal scores, of shape (groups, resamples)."""
    ascending = values[order.rows]
    return ascending if len(order.starts) == len(order.rows) else np.add.reduceat(ascending, order.starts, axis=0)


def _ranks(group_weights: np.ndarray) -> np.ndarray:
    return group_weights.cumsum(axis=0) - group_weights / 2


def _sum_of_squares(group_weights: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The sum of squares of centred ranks, shape (resamples,)."""
    cubes = np.einsum("gr,gr,gr->r", group_weights, group_weights, group_weights)
    return np.maximum(total**3 - cubes, 0) / 12


def _ascending(values: np.ndarray) -> _Order:
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    return _Order(np.argsort(groups, kind="stable"), np.cumsum(counts) - counts, groups)


def _first_of_same_ranks(scores: Mapping[ScoreName, np.ndarray]) -> dict[ScoreName, ScoreName]:
    """For each score, the first score of which it is an increasing affine function, which gives the same ranks."""
    standardised: dict[ScoreName, np.ndarray] = {}
    same_as = {}
    for name, values in scores.items():
        sd = np.std(values, dtype=float)
        own = (values - np.mean(values, dtype=float)) / (sd if sd > 0 else 1.0)
        same = (other for other, of_other in standardised.items() if np.abs(own - of_other).max() < SAME_RANKS)
        same_as[name] = next(same, name)
        if same_as[name] == name:
            standardised[name] = own
    return same_as


def confidence_interval(samples: np.ndarray) -> tuple[float, float]:
    """The percentile interval that contains 95 % of the resamples."""
    low, high = np.quantile(samples, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
