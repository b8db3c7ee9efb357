"""The bootstrap: correlations are scipy's on the drawn pairs; intervals and p-values hold their level."""

from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from sts_regression.evaluation import bootstrap
from sts_regression.evaluation.bootstrap import bootstrap_spearman, confidence_interval

PAIRS = 200


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(1)


def resample(
    scores: Mapping[str, np.ndarray], gold: np.ndarray, num_resamples: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Of pairs that all differ, in one part."""
    rows = np.arange(len(gold))
    return bootstrap_spearman(scores, gold, rows, {"all": rows}, num_resamples, seed)["all"]


def drawn_pairs(num_distinct: int, num_resamples: int, seed: int) -> list[np.ndarray]:
    """The numbers of the pairs of each resample."""
    draws = np.random.default_rng(seed)
    rounds = [bootstrap.RESAMPLES_AT_ONCE] * (num_resamples // bootstrap.RESAMPLES_AT_ONCE)
    rounds.append(num_resamples - sum(rounds))
    return [drawn for size in rounds for drawn in draws.integers(num_distinct, size=(size, num_distinct))]


@pytest.mark.parametrize("decimals", [6, 1, 0])
def test_each_resample_has_scipys_correlation_ties_and_all(generator: np.random.Generator, decimals: int) -> None:
    gold = generator.integers(6, size=PAIRS).astype(float)
    scores = np.round(gold + generator.normal(size=PAIRS), decimals)
    count = bootstrap.RESAMPLES_AT_ONCE + 3  # more than one round
    samples = resample({"score": scores}, gold, count, seed=7)["score"]
    expected = [stats.spearmanr(scores[rows], gold[rows]).statistic for rows in drawn_pairs(PAIRS, count, 7)]
    np.testing.assert_allclose(samples, expected, atol=1e-12)


def test_a_pair_is_drawn_once_for_all_parts_that_hold_it(generator: np.random.Generator) -> None:
    pairs = np.array([f"{number:03}" for number in (*range(120), *range(40, 120))])  # 80 of them stand twice
    parts = {"first": np.arange(120), "second": np.arange(120, 200), "some": np.arange(100, 150)}
    gold, scores = generator.normal(size=(2, len(pairs)))
    samples = bootstrap_spearman({"score": scores}, gold, pairs, parts, 10, seed=3)
    assert list(samples) == list(parts)
    for part, rows in parts.items():
        expected = []
        for drawn in drawn_pairs(120, 10, 3):
            counts = np.bincount(drawn, minlength=120)
            repeated = np.repeat(rows, counts[pairs[rows].astype(int)])
            expected.append(stats.spearmanr(scores[repeated], gold[repeated]).statistic)
        np.testing.assert_allclose(samples[part]["score"], expected, atol=1e-12)


def test_an_average_of_sets_that_share_their_pairs_varies_as_much_as_one_of_them(
    generator: np.random.Generator,
) -> None:
    gold, scores = generator.normal(size=(2, PAIRS))
    parts = {"one": np.arange(PAIRS), "two": np.arange(PAIRS, 2 * PAIRS)}
    deviations = []
    for second in (np.arange(PAIRS), np.arange(PAIRS, 2 * PAIRS)):
        pairs = np.concatenate([np.arange(PAIRS), second])
        samples = bootstrap_spearman({"s": np.tile(scores, 2)}, np.tile(gold, 2), pairs, parts, 500)
        deviations.append(np.std((samples["one"]["s"] + samples["two"]["s"]) / 2))
    shared, apart = deviations
    assert apart / shared == pytest.approx(np.sqrt(1 / 2), rel=0.1)


def test_models_are_measured_on_the_same_resamples(generator: np.random.Generator) -> None:
    gold, scores = generator.normal(size=(2, PAIRS))
    samples = resample({"one": scores, "same": np.exp(scores), "reversed": -scores}, gold, 20)
    np.testing.assert_allclose(samples["one"], samples["same"], atol=1e-12)
    np.testing.assert_allclose(samples["one"], -samples["reversed"], atol=1e-12)
    alone = resample({"one": scores}, gold, 20)
    np.testing.assert_array_equal(alone["one"], samples["one"])


def test_a_score_that_is_another_one_rounded_is_measured_once(
    generator: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold, cosine = generator.normal(size=(2, PAIRS))
    scores = {"cosine": cosine, "head": (2.5 * cosine + 1).astype(np.float32), "noisy": cosine + 0.01 * gold}
    measured = []

    def correlations(weights: np.ndarray, gold: object, orders: list[object]) -> np.ndarray:
        measured.append(len(orders))
        return np.arange(len(orders))[:, None] * np.ones(weights.shape[1])

    monkeypatch.setattr(bootstrap, "_correlations", correlations)
    samples = resample({**scores, "constant": np.ones(PAIRS)}, gold, 5)
    assert measured == [3]
    assert {name: values[0] for name, values in samples.items()} == {"cosine": 0, "head": 0, "noisy": 1, "constant": 2}


def test_the_seed_decides_the_resamples(generator: np.random.Generator) -> None:
    gold, scores = generator.normal(size=(2, PAIRS))
    first, again, other = (resample({"s": scores}, gold, 5, seed=seed)["s"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_scores_that_rank_nothing_correlate_with_nothing() -> None:
    samples = resample({"constant": np.ones(10)}, np.arange(10.0), 5)
    assert samples["constant"].tolist() == [0] * 5


def test_a_part_that_is_not_drawn_has_no_correlation() -> None:
    parts = {"one": np.array([0]), "all": np.arange(3)}
    samples = bootstrap_spearman({"s": np.arange(3.0)}, np.arange(3.0), np.arange(3), parts, 20)
    assert samples["one"]["s"].tolist() == [0] * 20
    assert max(samples["all"]["s"]) == pytest.approx(1)


def test_the_interval_covers_the_true_correlation_about_as_often_as_it_says(generator: np.random.Generator) -> None:
    true = 6 / np.pi * np.arcsin(0.5 * 0.6)  # Spearman's of a normal pair with Pearson's 0.6
    rounds, covered = 200, 0
    for seed in range(rounds):
        gold = generator.normal(size=PAIRS)
        scores = 0.6 * gold + 0.8 * generator.normal(size=PAIRS)
        low, high = confidence_interval(resample({"s": scores}, gold, 200, seed)["s"])
        covered += low <= true <= high
    assert 0.89 <= covered / rounds <= 0.99
