"""Bootstrap intervals of Spearman's correlation, and the paired bootstrap test between two models.

Pairs are drawn with replacement (Efron and Tibshirani 1993; for comparing two systems on one test set Berg-Kirkpatrick
et al. 2012). A resample is a weight per pair: how often it was drawn. Its ranks follow from running sums of these
weights over the pairs in the order of their scores, so that nothing is sorted again.
"""

from collections.abc import Mapping

import numpy as np

NUM_RESAMPLES = 1000
CONFIDENCE = 0.95
RESAMPLES_AT_ONCE = 50  # bounds memory: an array holds that many numbers per pair


def bootstrap_spearman(
    scores: Mapping[str, np.ndarray], gold_scores: np.ndarray, num_resamples: int = NUM_RESAMPLES, seed: int = 0
) -> dict[str, np.ndarray]:
    """
    Spearman's correlation with the gold scores on resampled pairs.

    Args:
        scores: arrays of shape (pairs,) by name. All are measured on the same resamples, so that differences
            between them are paired.
        gold_scores: of shape (pairs,).
        num_resamples: how many times the pairs are drawn.
        seed: of the draws; they depend on it and on the number of pairs alone.

    Returns:
        `dict` of arrays of shape (num_resamples,) by name; 0 where a resample's scores are all equal.
    """
    generator = np.random.default_rng(seed)
    num_pairs = len(gold_scores)
    gold_order, *orders = (_tied_groups(values) for values in (gold_scores, *scores.values()))
    samples: dict[str, list[np.ndarray]] = {name: [] for name in scores}
    for start in range(0, num_resamples, RESAMPLES_AT_ONCE):
        count = min(RESAMPLES_AT_ONCE, num_resamples - start)
        drawn = generator.integers(num_pairs, size=(count, num_pairs)) + np.arange(count)[:, None] * num_pairs
        weights = np.bincount(drawn.ravel(), minlength=count * num_pairs).reshape(count, num_pairs)
        gold_ranks = _centred_ranks(weights, *gold_order)  # (count, pairs)
        weighted_gold = weights * gold_ranks
        gold_variance = (weighted_gold * gold_ranks).sum(axis=1)
        for name, order in zip(scores, orders, strict=True):
            ranks = _centred_ranks(weights, *order)
            covariance = (weighted_gold * ranks).sum(axis=1)
            scale = np.sqrt(gold_variance * (weights * ranks * ranks).sum(axis=1))
            samples[name].append(np.divide(covariance, scale, out=np.zeros(count), where=scale > 0))
    return {name: np.concatenate(parts) for name, parts in samples.items()}


def _tied_groups(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs in ascending order of values, where each group of equal ones starts, and the group of each pair."""
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.argsort(groups, kind="stable"), np.cumsum(counts) - counts, groups


def _centred_ranks(weights: np.ndarray, order: np.ndarray, starts: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """
    Average ranks of weighted pairs, less the mean rank.

    Args:
        weights: how often each pair was drawn, of shape (resamples, pairs).
        order: see [`_tied_groups`], like the others.
        starts: of shape (groups,).
        groups: of shape (pairs,).

    Returns:
        Array of shape (resamples, pairs).
    """
    drawn = np.add.reduceat(weights[:, order], starts, axis=1)  # (resamples, groups)
    middle = drawn.cumsum(axis=1) - drawn / 2  # of each group; a constant away from its average rank
    return (middle - weights.shape[1] / 2)[:, groups]


def confidence_interval(samples: np.ndarray) -> tuple[float, float]:
    """The percentile interval that holds 95 % of the resamples."""
    low, high = np.quantile(samples, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def bootstrap_p_value(differences: np.ndarray) -> float:
    """
    Two-sided p-value that a difference is zero: how often its resamples lie on the other side of zero, twice.

    Args:
        differences: paired differences, of shape (resamples,).

    Returns:
        A number above 0 and at most 1; the smallest is 2 / (resamples + 1).
    """
    smaller_side = min((differences <= 0).sum(), (differences >= 0).sum())
    return float(min(1.0, 2 * (smaller_side + 1) / (len(differences) + 1)))
