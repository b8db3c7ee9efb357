"""Maps from the score to the labels of training pairs.

The same cosine means different grades in different corpora, and for different texts.
"""

from collections.abc import Sequence

import numpy as np


def fit_score_maps(
    cosines: np.ndarray, labels: np.ndarray, set_of_pair: np.ndarray, names: Sequence[str]
) -> np.ndarray:
    """
    Fits a map from the scores of the first training set to the labels of each set.

    In each set, a least-squares line, label = a + b·cosine, is fitted before training. With a₀ and b₀ for the first
    set, the score s stands for the cosine (s − a₀) / b₀, and therefore for the label a + b·(s − a₀) / b₀ in another.

    Args:
        cosines: cosines of the training pairs before training, shape (pairs,).
        labels: labels of the pairs, on the label scale, shape (pairs,).
        set_of_pair: the number of each pair's set, shape (pairs,).
        names: the names of the sets.

    Returns:
        Intercept and slope of each set's map, shape (sets, 2); 0 and 1 for the first set.

    Raises:
        ValueError: for a set whose labels do not rise with the cosine. Its map would have no slope, or a negative one.
    """
    lines = []
    for number, name in enumerate(names):
        own = set_of_pair == number
        slope, intercept = _fit_line(cosines[own], labels[own])
        if not slope > 0:
            raise ValueError(
                f"`source_scales`: the labels of {name} do not rise with the cosine of the untouched encoder. If high "
                "labels mean dissimilar texts, reverse the labels; otherwise leave out the option or these pairs."
            )
        lines.append((intercept, slope))
    first_intercept, first_slope = lines[0]
    slopes = np.array([slope / first_slope for _, slope in lines])
    intercepts = np.array([intercept for intercept, _ in lines]) - slopes * first_intercept
    return np.stack([intercepts, slopes], axis=1)


def fit_group_intercepts(
    cosines: np.ndarray, labels: np.ndarray, set_of_pair: np.ndarray, groups: np.ndarray, keys: np.ndarray
) -> np.ndarray:
    """
    Fits an intercept for each group of pairs that share a text: the common part of their labels beyond the cosines.

    A strict rater or a hard question lowers all labels of a group. An encoder that is trained to explain this learns
    the texts of the group by heart, which does not help with new texts. The intercepts belong to a random-intercept
    model, label = a + b·cosine + intercept + noise. An intercept is the mean residual of a group, shrunken by the
    ratio of variances from an analysis of variance (Searle et al. 1992, the best linear unbiased predictor). Groups of
    one pair get no intercept. Copies of a pair, by weights or several raters, count as one, with the mean of their
    labels.

    Args:
        cosines: cosines of the training pairs before training, shape (pairs,).
        labels: labels of the pairs, on the label scale, shape (pairs,).
        set_of_pair: the number of each pair's set, shape (pairs,); each set has its own line.
        groups: the number of each pair's group, shape (pairs,).
        keys: a number for each pair, equal for copies, shape (pairs,).

    Returns:
        The intercept of each pair's group, in units of the labels, shape (pairs,).
    """
    _, first_rows, copy_of = np.unique([set_of_pair, keys], axis=1, return_index=True, return_inverse=True)
    in_order = np.argsort(first_rows)  # of the pairs: keys may differ between processes, and sums with their order
    rows, copy_of = first_rows[in_order], np.argsort(in_order)[copy_of.ravel()]
    means = np.bincount(copy_of, labels) / np.bincount(copy_of)
    return _intercepts(cosines[rows], means, set_of_pair[rows], groups[rows])[copy_of]


def _intercepts(cosines: np.ndarray, labels: np.ndarray, set_of_pair: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The intercepts of [`fit_group_intercepts`], for distinct pairs."""
    residuals = np.zeros(len(labels))
    for number in np.unique(set_of_pair):
        own = set_of_pair == number
        residuals[own] = labels[own] - np.polyval(_fit_line(cosines[own], labels[own]), cosines[own])
    sizes = np.bincount(groups)
    means = np.bincount(groups, residuals) / np.maximum(sizes, 1)
    shared = sizes > 1
    num_groups, num_pairs = int(shared.sum()), int(sizes[shared].sum())
    if num_groups < 2:
        return np.zeros(len(labels))
    rows = shared[groups]
    within = float(np.sum((residuals - means[groups])[rows] ** 2) / (num_pairs - num_groups))
    grand_mean = residuals[rows].mean()
    between_squares = float(np.sum(sizes[shared] * (means[shared] - grand_mean) ** 2) / (num_groups - 1))
    typical_size = (num_pairs - float(np.sum(sizes[shared] ** 2)) / num_pairs) / (num_groups - 1)
    between = max(0.0, (between_squares - within) / typical_size)
    if between == 0:
        return np.zeros(len(labels))
    shrinkage = between / (between + within / np.maximum(sizes, 1))
    return (np.where(shared, shrinkage * means, 0.0))[groups]


def _fit_line(cosines: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Slope and intercept of the least-squares line of a set; a level one if cosines or labels are all equal."""
    if len(labels) == 0:
        return 0.0, 0.0
    if np.ptp(cosines) == 0 or np.ptp(labels) == 0:
        return 0.0, float(labels.mean())
    slope, intercept = np.polyfit(cosines.astype(float), labels.astype(float), 1)
    return float(slope), float(intercept)
