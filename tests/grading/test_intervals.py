"""Intervals: exact on small cases, and on exchangeable pairs they hold their level, for every grade."""

import numpy as np
import pytest
from scipy.stats import binom

from sts_regression.grading.intervals import ScoreIntervals, fewest_pairs_for_intervals, fit_intervals
from sts_regression.grading.score_map import ScoreMap


def draw(generator: np.random.Generator, size: int, ordinal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Labels from 0 to 5, high ones rare, and noisy scores."""
    labels = 5 * generator.beta(1.5, 2.5, size=size)
    labels = np.floor(labels + 0.5) if ordinal else labels
    return 0.15 * labels + generator.normal(scale=0.12, size=size), labels


def test_the_interval_of_a_score_are_the_labels_that_it_goes_with() -> None:
    intervals = ScoreIntervals((0.0, 1.0, 3.0), (None, 0.2, 0.6), (0.5, 0.9, None))
    low, high = intervals.apply([-1.0, 0.1, 0.2, 0.5, 0.51, 0.6, 0.9, 0.95, 5.0])
    np.testing.assert_array_equal(low, [0, 0, 0, 0, 1, 1, 1, 3, 3])
    np.testing.assert_array_equal(high, [0, 0, 1, 1, 1, 3, 3, 3, 3])


def test_a_score_that_goes_with_no_label_gets_the_labels_beside_it() -> None:
    low, high = ScoreIntervals((0.0, 1.0), (None, 0.7), (0.3, None)).apply([0.3, 0.5, 0.7])
    np.testing.assert_array_equal(low, [0, 0, 1])
    np.testing.assert_array_equal(high, [0, 1, 1])


def test_bounds_are_order_statistics_of_the_scores_of_each_grade() -> None:
    scores = np.r_[np.arange(99.0), 1000 + np.arange(99.0)]
    intervals = fit_intervals(scores, np.repeat([0, 1], 99), [0, 1], 0.9)
    # Ten of (99 + 1) may lie outside: above the lower grade, below the upper one.
    assert intervals == ScoreIntervals((0.0, 1.0), (None, 1009.0), (89.0, None))


def test_a_rising_map_of_scores_moves_the_bounds_alone() -> None:
    generator = np.random.default_rng(2)
    scores, labels = draw(generator, 500, ordinal=True)
    score_map = ScoreMap((0.0, 0.2, 1.0), (0.0, 3.0, 5.0))
    intervals = fit_intervals(scores, labels, range(6))
    mapped = intervals.on_label_scale(score_map)
    np.testing.assert_array_equal(intervals.apply(scores), mapped.apply(score_map.apply(scores)))


@pytest.mark.parametrize("ordinal", [True, False])
@pytest.mark.parametrize("level", [0.8, 0.9])
def test_coverage_is_the_level_overall_and_hardly_less_of_any_grade(ordinal: bool, level: float) -> None:
    draws = []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        intervals = fit_intervals(*draw(generator, 1000, ordinal), range(6), level)
        scores, labels = draw(generator, 4000, ordinal)
        low, high = intervals.apply(scores)
        covered = (low <= labels) & (labels <= high)
        grades = np.floor(labels + 0.5)
        draws.append([covered.mean(), *(covered[grades == grade].mean() for grade in range(5))])
    overall, *by_grade = np.mean(draws, axis=0)
    assert level - 0.01 < overall < level + 0.025
    assert min(by_grade) > level - 0.015
    assert np.quantile([min(rows[1:]) for rows in draws], 0.1) > level - 0.06


def test_without_ties_and_neighbours_the_guarantee_is_exact() -> None:
    hits = total = 0
    for seed in range(150):
        generator = np.random.default_rng(seed)
        labels = generator.integers(2, size=240)
        intervals = fit_intervals(2 * labels + generator.normal(size=240), labels, [0, 1], 0.9)
        low, high = intervals.apply(2 + generator.normal(size=50))  # of the upper grade
        assert set(low) | set(high) <= {0.0, 1.0}
        hits, total = hits + int(np.count_nonzero(high == 1)), total + 50
    # The (n + 1) rule covers 0.9 or, as fewer may lie outside with few pairs, slightly more.
    assert binom.ppf(0.001, total, 0.9) < hits < 0.93 * total


@pytest.mark.parametrize("ordinal", [True, False])
def test_a_useless_score_gets_nearly_the_whole_scale(ordinal: bool) -> None:
    generator = np.random.default_rng(0)
    _, labels = draw(generator, 1000, ordinal)
    low, high = fit_intervals(generator.normal(size=1000), labels, range(6)).apply(generator.normal(size=1000))
    assert (high - low).mean() > 3.5


def test_a_grade_with_one_pair_does_not_widen_the_intervals_of_the_others() -> None:
    generator = np.random.default_rng(0)
    labels = np.r_[0, np.repeat([1, 2, 3], 100)]
    scores = labels + generator.normal(scale=0.2, size=301)
    low, high = fit_intervals(scores, labels, [0, 1, 2, 3]).apply([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(high, [1, 2, 3])
    assert (low >= [0, 2, 3]).all()


@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        (np.ones(300), np.arange(300) % 3),
        (np.arange(300.0), np.ones(300)),
        (np.ones(1), [2]),
        (np.arange(9) % 2, [0] * 9),
    ],
)
def test_degenerate_pairs_give_intervals_within_the_scale(scores: np.ndarray, labels: np.ndarray) -> None:
    low, high = fit_intervals(scores, labels, [0, 1, 2]).apply(np.linspace(-5, 305, 50))
    assert (low >= 0).all()
    assert (low <= high).all()
    assert (high <= 2).all()


def test_higher_levels_need_more_pairs() -> None:
    assert [fewest_pairs_for_intervals(level) for level in (0.5, 0.8, 0.9, 0.95, 0.99)] == [200, 200, 200, 400, 2000]


def test_what_is_no_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="`labels` must be finite"):
        fit_intervals([0.1], [np.nan], [0, 1])
    with pytest.raises(ValueError, match=r"`level` must lie between 0\.5 and 0\.99, but is 90"):
        fit_intervals([0.1], [0], [0, 1], 90)
    with pytest.raises(ValueError, match="must have the same length"):
        ScoreIntervals((0.0, 1.0), (None,), (None,))
    with pytest.raises(ValueError, match="must not decrease"):
        ScoreIntervals((0.0, 1.0), (0.5, 0.2), (0.5, None))
    with pytest.raises(ValueError, match="`scores` must be finite"):
        ScoreIntervals((0.0, 1.0), (None, 0.2), (0.5, None)).apply([np.nan])
