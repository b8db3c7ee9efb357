"""The bootstrap: correlations are scipy's on the drawn pairs; intervals and p-values mean what they say."""

import numpy as np
import pytest
from scipy import stats

from sts_regression import bootstrap
from sts_regression.bootstrap import bootstrap_p_value, bootstrap_spearman, confidence_interval

PAIRS = 200


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.parametrize("decimals", [6, 1, 0])
def test_each_resample_has_scipys_correlation_ties_and_all(generator: np.random.Generator, decimals: int) -> None:
    gold = generator.integers(6, size=PAIRS).astype(float)
    scores = np.round(gold + generator.normal(size=PAIRS), decimals)
    count = bootstrap.RESAMPLES_AT_ONCE + 3  # more than one round
    samples = bootstrap_spearman({"score": scores}, gold, count, seed=7)["score"]
    draws = np.random.default_rng(7)
    rounds = [draws.integers(PAIRS, size=(size, PAIRS)) for size in (bootstrap.RESAMPLES_AT_ONCE, 3)]
    expected = [stats.spearmanr(scores[rows], gold[rows]).statistic for rows in np.concatenate(rounds)]
    np.testing.assert_allclose(samples, expected, atol=1e-12)


def test_models_are_measured_on_the_same_resamples(generator: np.random.Generator) -> None:
    gold, scores = generator.normal(size=(2, PAIRS))
    samples = bootstrap_spearman({"one": scores, "same": np.exp(scores), "reversed": -scores}, gold, 20)
    np.testing.assert_allclose(samples["one"], samples["same"], atol=1e-12)
    np.testing.assert_allclose(samples["one"], -samples["reversed"], atol=1e-12)
    alone = bootstrap_spearman({"one": scores}, gold, 20)
    np.testing.assert_array_equal(alone["one"], samples["one"])


def test_the_seed_decides_the_resamples(generator: np.random.Generator) -> None:
    gold, scores = generator.normal(size=(2, PAIRS))
    first, again, other = (bootstrap_spearman({"s": scores}, gold, 5, seed=seed)["s"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_scores_that_rank_nothing_correlate_with_nothing() -> None:
    samples = bootstrap_spearman({"constant": np.ones(10)}, np.arange(10.0), 5)
    assert samples["constant"].tolist() == [0] * 5


def test_the_interval_covers_the_true_correlation_about_as_often_as_it_says(generator: np.random.Generator) -> None:
    true = 6 / np.pi * np.arcsin(0.5 * 0.6)  # Spearman's of a normal pair with Pearson's 0.6
    rounds, covered = 200, 0
    for seed in range(rounds):
        gold = generator.normal(size=PAIRS)
        scores = 0.6 * gold + 0.8 * generator.normal(size=PAIRS)
        low, high = confidence_interval(bootstrap_spearman({"s": scores}, gold, 200, seed)["s"])
        covered += low <= true <= high
    assert 0.89 <= covered / rounds <= 0.99


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        (np.ones(999), 2 / 1000),
        (-np.ones(999), 2 / 1000),
        (np.zeros(999), 1.0),
        (np.concatenate([np.ones(950), -np.ones(49)]), 0.1),
        (np.concatenate([-np.ones(950), np.ones(49)]), 0.1),
    ],
)
def test_the_p_value_is_twice_the_smaller_tail(differences: np.ndarray, p: float) -> None:
    assert bootstrap_p_value(differences) == pytest.approx(p)
