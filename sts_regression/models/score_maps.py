"""An affine map of the score for each source of training pairs: one cosine means other grades in other corpora."""

from collections.abc import Sequence

import numpy as np


def fit_score_maps(
    cosines: np.ndarray, labels: np.ndarray, set_of_pair: np.ndarray, names: Sequence[str]
) -> np.ndarray:
    """
    Maps of the score of the first source onto the labels of each.

    In each source a least-squares line, label = a + b·cosine, is fitted before training. If the first source has a₀
    and b₀, the score s stands for the cosine (s − a₀) / b₀, and for the label a + b·(s − a₀) / b₀ in another one.

    Args:
        cosines: of the training pairs before training, of shape (pairs,).
        labels: on the label scale, likewise.
        set_of_pair: the number of each pair's source, likewise.
        names: of the sources.

    Returns:
        Intercept and slope of each source's map, of shape (sources, 2); 0 and 1 for the first one.

    Raises:
        ValueError: for a source whose labels do not rise with the cosine: a map would turn it around, or has no slope.
    """
    lines = []
    for number, name in enumerate(names):
        own = set_of_pair == number
        slope, intercept = 0.0, 0.0
        if own.any() and np.ptp(cosines[own]) > 0 and np.ptp(labels[own]) > 0:
            slope, intercept = np.polyfit(cosines[own].astype(float), labels[own].astype(float), 1)
        if not slope > 0:
            raise ValueError(
                f"`source_scales`: the labels of {name} do not rise with the cosine of the untrained encoder. If they "
                "are reversed, turn them around; otherwise leave out the option or these pairs."
            )
        lines.append((intercept, slope))
    first_intercept, first_slope = lines[0]
    slopes = np.array([slope / first_slope for _, slope in lines])
    intercepts = np.array([intercept for intercept, _ in lines]) - slopes * first_intercept
    return np.stack([intercepts, slopes], axis=1)
