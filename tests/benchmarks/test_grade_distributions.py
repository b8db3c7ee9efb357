"""The benchmark of intervals from distributions over grades."""

import json

import numpy as np
import pytest

from benchmarks.grade_distributions import (
    CALIBRATED_ON,
    KEPT_FILE_OF_DISTRIBUTIONS,
    WAYS,
    compare_intervals,
    cumulative,
    quantiles,
)


def test_cumulative_probabilities_and_quantiles_are_inverse() -> None:
    probabilities = np.random.default_rng(0).dirichlet(np.ones(6), size=50)
    for distance in (0.1, 0.3, 0.45):
        low, high = quantiles(probabilities, distance)
        np.testing.assert_allclose(cumulative(probabilities, low), 0.5 - distance)
        np.testing.assert_allclose(cumulative(probabilities, high), 0.5 + distance)


def test_a_grade_reaches_to_the_middles_beside_it() -> None:
    certain = np.array([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]])
    assert cumulative(certain, np.array([1.5])) == 0
    assert cumulative(certain, np.array([2.25])) == pytest.approx(0.75)
    low, high = quantiles(certain, 0.4)
    assert (low.item(), high.item()) == (pytest.approx(1.6), pytest.approx(2.4))


def test_calibrated_intervals_cover_the_level_of_a_distribution_that_is_too_sure() -> None:
    generator = np.random.default_rng(0)
    labels = generator.uniform(0, 5, CALIBRATED_ON + 400)
    scores = np.clip(labels + generator.normal(0, 1, len(labels)), 0, 5)
    probabilities = np.exp(-((np.arange(6) - scores[:, None]) ** 2) / 0.2)  # a tenth of the variance of the errors
    found = compare_intervals(probabilities / probabilities.sum(axis=1, keepdims=True), scores, labels)
    assert tuple(found) == WAYS
    assert found["quantiles"]["coverage"] < 0.7
    for way in WAYS[:2] + WAYS[3:]:
        assert found[way]["coverage"] == pytest.approx(0.9, abs=0.04)


def test_what_the_document_says_of_distributions_is_what_was_measured() -> None:
    sets = json.loads(KEPT_FILE_OF_DISTRIBUTIONS.read_text(encoding="utf-8"))["sets"]
    _, kept, _, calibrated = WAYS
    assert len(sets) == 7
    assert sum(found[calibrated]["width"] > found[kept]["width"] for found in sets.values()) == 5
