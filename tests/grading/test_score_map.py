"""The score map: rises everywhere, follows its pairs, and stays honest with few pairs or a useless score."""

from dataclasses import asdict

import numpy as np
import pytest
import torch

from sts_regression.grading.score_map import ScoreMap, fit_score_map
from sts_regression.pipeline_sts_regression import map_scores


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(1)


def test_a_map_is_linear_between_its_knots_and_beyond_them() -> None:
    score_map = ScoreMap((0.0, 1.0, 3.0), (0.0, 2.0, 3.0))
    scores = [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 5.0]
    np.testing.assert_array_equal(score_map.apply(scores), [-2.0, 0.0, 1.0, 2.0, 2.5, 3.0, 4.0])


def test_a_sum_of_rectified_lines_is_the_same_map(generator: np.random.Generator) -> None:
    raw = generator.uniform(size=1000)
    score_map = fit_score_map(raw, 5 * raw**3 + generator.normal(size=1000), 0, 5)
    assert len(score_map.knots) - 2 > 3
    scores = np.linspace(-1, 2, 301)
    by_model = map_scores(torch.from_numpy(scores), {"score_map": asdict(score_map)})
    np.testing.assert_allclose(by_model, score_map.apply(scores), atol=1e-12)


@pytest.mark.parametrize("where", [0.5, 0.9, 1.0])
def test_rounding_errors_of_equal_texts_change_scores_little(where: float, generator: np.random.Generator) -> None:
    """Half of the pairs have equal texts; their labels differ, and their cosines do in the last digit."""
    for _ in range(20):
        equal = where + generator.normal(scale=1e-7, size=300)
        raw = np.r_[equal, generator.uniform(0.2, 1, size=300)]
        gold = np.r_[generator.integers(1, 3, size=300), np.round(2 * raw[300:])]
        score_map = fit_score_map(raw, gold, 0, 2)
        assert np.ptp(score_map.apply(equal)) < 1e-3
        slopes = np.diff(score_map.values) / np.diff(score_map.knots)
        assert slopes.max() < 2 / (1e-3 * np.ptp(raw))


def test_steep_maps_keep_ranks_in_float32(generator: np.random.Generator) -> None:
    raw = 1 / (1 + np.exp(generator.normal(scale=12, size=3000)))  # most of them near 0 or 1
    gold = (raw > 0.5) + (raw > 0.999) + (generator.uniform(size=3000) > 0.9)
    score_map = fit_score_map(raw, gold, 0, 3)
    scores = np.sort(raw).astype(np.float32)
    mapped = map_scores(torch.from_numpy(scores), {"score_map": asdict(score_map)}).numpy()
    assert (np.diff(mapped) >= 0).all()
    np.testing.assert_allclose(mapped, score_map.apply(scores), atol=1e-3)


def test_every_map_rises_at_least_a_hundredth_of_the_scale(generator: np.random.Generator) -> None:
    for _ in range(200):
        size = int(generator.integers(1, 1500))
        raw = np.round(generator.normal(size=size), int(generator.integers(0, 8)))
        gold = np.clip(generator.normal() * raw + generator.normal(size=size), 0, 5)
        score_map = fit_score_map(raw, gold, 0, 5)
        smallest = 0.01 * 5 / (np.ptp(raw) or 1.0)
        slopes = np.diff(score_map.values) / np.diff(score_map.knots)
        assert (slopes > 0.999 * smallest).all()
        scores = np.unique(np.r_[raw, generator.normal(scale=5, size=100)])
        assert (np.diff(score_map.apply(scores)) > 0).all()


def test_fewer_than_150_pairs_get_the_line_of_least_squares(generator: np.random.Generator) -> None:
    for size in (20, 149):
        raw = generator.normal(size=size)
        gold = 2 + raw + generator.normal(size=size)
        slope, intercept = np.polyfit(raw, gold, 1)
        score_map = fit_score_map(raw, gold, 0, 5)
        line, mapped = intercept + slope * raw, score_map.apply(raw)
        inside = (line > 0) & (line < 5)
        np.testing.assert_allclose(mapped[inside], line[inside], atol=1e-12)
        assert ((mapped > -0.05) & (mapped < 5.05)).all()


def test_many_pairs_get_the_curve_that_they_follow(generator: np.random.Generator) -> None:
    raw = generator.uniform(size=1200)
    gold = raw + 4 * raw**3
    score_map = fit_score_map(raw, gold, 0, 5)
    assert len(score_map.knots) == 24  # two of them for each end of the scale
    np.testing.assert_allclose(score_map.apply(raw), gold, atol=0.15)


def test_labels_that_step_up_once_get_a_map_without_plateaus() -> None:
    raw = np.linspace(0, 1, 1000)
    score_map = fit_score_map(raw, np.where(raw < 0.5, 0.0, 5.0), 0, 5)
    # Ten bins below the step are one knot, those above another.
    np.testing.assert_allclose(score_map.apply([0.25, 0.5, 0.75]), [0, 2.5, 5], atol=0.03)


@pytest.mark.parametrize("size", [20, 1000])
def test_scores_beyond_those_of_the_pairs_hardly_leave_the_scale(generator: np.random.Generator, size: int) -> None:
    raw = generator.uniform(0.4, 0.8, size=size)
    score_map = fit_score_map(raw, np.clip(10 * raw - 4, 0, 2), 0, 2)
    mapped = score_map.apply([-0.2, 0.2, 0.9, 1.0])
    assert (np.diff(mapped) > 0).all()
    np.testing.assert_allclose(mapped, [0, 0, 2, 2], atol=0.04)


@pytest.mark.parametrize("size", [20, 1000])
def test_a_score_that_falls_with_the_labels_gets_a_nearly_flat_line(generator: np.random.Generator, size: int) -> None:
    raw = generator.uniform(size=size)
    score_map = fit_score_map(raw, 5 * (1 - raw), 0, 5)
    assert len(score_map.knots) == 2
    mapped = score_map.apply(raw)
    assert mapped.mean() == pytest.approx(5 * (1 - raw.mean()))
    assert np.ptp(mapped) == pytest.approx(0.05)


@pytest.mark.parametrize("size", [1, 5, 500])
def test_equal_labels_and_equal_scores_get_their_mean(size: int) -> None:
    labels = np.arange(size) % 3
    np.testing.assert_allclose(fit_score_map(np.full(size, 0.3), labels, 0, 2).apply([0.3]), [labels.mean()])
    mapped = fit_score_map(np.arange(size) / size, np.full(size, 2.0), 0, 5).apply(np.arange(size) / size)
    np.testing.assert_allclose(mapped, 2.0, atol=0.05)


def test_scores_apart_by_rounding_are_one_score() -> None:
    raw = 0.3 + 1e-16 * np.arange(3)
    assert fit_score_map(raw, [0, 5, 1], 0, 5).apply([0.3])[0] == pytest.approx(2.0)


def test_what_cannot_be_mapped_is_refused() -> None:
    with pytest.raises(ValueError, match="`scores` must be finite, but 1 of 2 are NaN"):
        fit_score_map([0.1, np.nan], [1, 2], 0, 5)
    with pytest.raises(ValueError, match="`labels` must be finite, but 2 of 2"):
        fit_score_map([0.1, 0.2], [np.inf, np.nan], 0, 5)
    with pytest.raises(ValueError, match="the same length, at least one, but have 1 and 2 items"):
        fit_score_map([0.1], [1, 2], 0, 5)
    with pytest.raises(ValueError, match="at least one, but have 0 and 0"):
        fit_score_map([], [], 0, 5)
    with pytest.raises(ValueError, match=r"`scores` must be of shape \(pairs,\), but is of shape \(1, 2\)"):
        fit_score_map(np.ones((1, 2)), [1, 2], 0, 5)
    with pytest.raises(ValueError, match="`labels` must hold numbers"):
        fit_score_map([0.1], ["high"], 0, 5)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="`low` must be below `high`"):
        fit_score_map([0.1], [1], 5, 0)
    with pytest.raises(ValueError, match="`scores` must be finite"):
        fit_score_map([0.1], [1], 0, 5).apply([np.nan])


@pytest.mark.parametrize(("knots", "values"), [((0, 1), (1, 1)), ((1, 0), (0, 1)), ((0,), (0,)), ((0, 1), (0, 1, 2))])
def test_a_map_that_would_not_rise_is_refused(knots: tuple[float, ...], values: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="`knots` and `values` must be two or more increasing numbers"):
        ScoreMap(knots, values)
