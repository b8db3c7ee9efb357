"""Cut points: where theory puts them, in order, and defined for all grades that occur."""

import numpy as np
import pytest

from sts_regression.grading.cut_points import fit_cut_points, grade_index


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(1)


def test_a_score_at_a_cut_point_has_the_upper_grade() -> None:
    np.testing.assert_array_equal(grade_index([-9, 0.5, 0.99, 1, 2, 9], [0.5, 1.0, 1.0]), [0, 1, 1, 3, 3, 3])


def test_grades_that_the_score_parts_are_all_found(generator: np.random.Generator) -> None:
    grades = generator.integers(4, size=400)
    scores = grades + generator.uniform(-0.4, 0.4, size=400)
    cuts = fit_cut_points(scores, grades, range(4))
    np.testing.assert_allclose(cuts, [0.5, 1.5, 2.5], atol=0.15)
    np.testing.assert_array_equal(grade_index(scores, cuts), grades)


def test_cut_points_lie_between_the_nearest_grade_and_the_frequencies(generator: np.random.Generator) -> None:
    scores = generator.uniform(0, 1, size=20_000)
    labels = (scores > 0.8).astype(float)  # of 80 % the lower grade
    assert fit_cut_points(scores, labels, [0, 1])[0] == pytest.approx((0.5 + 0.8) / 2, abs=0.01)
    assert fit_cut_points(scores, 3 * labels, [0, 3])[0] == pytest.approx((1.5 + 0.8) / 2, abs=0.01)


def test_few_pairs_or_equal_scores_get_cut_points_halfway() -> None:
    assert fit_cut_points(np.arange(19.0), np.arange(19) % 3, [0, 1, 1.2]) == (0.5, 1.1)
    assert fit_cut_points(np.ones(500), np.arange(500) % 3, [0, 1, 1.2]) == (0.5, 1.1)


@pytest.mark.parametrize("present", [[0], [2], [1], [0, 2], [1, 2]])
def test_scores_far_enough_out_reach_every_end(generator: np.random.Generator, present: list[int]) -> None:
    grades = generator.choice(present, size=300)
    cuts = fit_cut_points(grades + generator.normal(scale=0.3, size=300), grades, [0, 1, 2])
    assert grade_index([-50.0, 50.0], cuts).tolist() == [0, 2]


def test_cut_points_are_in_order_and_each_grade_between_its_bounds(generator: np.random.Generator) -> None:
    for _ in range(50):
        number, size = int(generator.integers(2, 12)), int(generator.integers(100, 400))
        values = np.cumsum(generator.uniform(0.1, 1, size=number))
        scores = np.round(generator.normal(size=size), int(generator.integers(0, 5)))
        labels = values[np.clip(scores + generator.normal(size=size) * 3, 0, number - 1).astype(int)]
        cuts = fit_cut_points(scores, labels, values)
        assert len(cuts) == number - 1
        assert np.isfinite(cuts).all()
        assert (np.diff(cuts) >= 0).all()


def test_what_cannot_be_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="`scores` must be finite"):
        fit_cut_points([np.nan], [0], [0, 1])
    with pytest.raises(ValueError, match="`label_values` must be two or more increasing numbers"):
        fit_cut_points([0.0], [0], [0, 0])
    with pytest.raises(ValueError, match="`label_values` must be two or more increasing numbers"):
        fit_cut_points([0.0], [0], [0])
    with pytest.raises(ValueError, match="`scores` must be finite"):
        grade_index([np.inf], [0.5])
