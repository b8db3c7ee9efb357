"""Cut points: where theory puts them, in order, and defined for whatever grades occur."""

import numpy as np
import pytest
from scipy.special import expit

from sts_regression.grading.cut_points import fit_cut_points, grade_index


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(1)


def test_a_score_at_a_cut_point_has_the_upper_grade() -> None:
    np.testing.assert_array_equal(grade_index([-9, 0.5, 0.99, 1, 2, 9], [0.5, 1.0, 1.0]), [0, 1, 1, 3, 3, 3])


def test_grades_that_the_score_parts_are_all_found(generator: np.random.Generator) -> None:
    grades = generator.integers(4, size=400)
    scores = grades + generator.uniform(0.1, 0.9, size=400)
    cuts = fit_cut_points(scores, grades, range(4))
    np.testing.assert_allclose(cuts, [1, 2, 3], atol=0.15)
    np.testing.assert_array_equal(grade_index(scores, cuts), grades)


def test_the_way_leads_from_the_medians_to_the_frequencies(generator: np.random.Generator) -> None:
    scores = generator.normal(size=20_000)
    labels = (generator.uniform(size=20_000) < expit(2 * scores - 2)).astype(float)
    assert fit_cut_points(scores, labels, [0, 1], towards_frequencies=0)[0] == pytest.approx(1, abs=0.05)
    frequency_cut = np.quantile(scores, 1 - labels.mean())
    assert fit_cut_points(scores, labels, [0, 1], towards_frequencies=1)[0] == pytest.approx(frequency_cut, abs=1e-3)
    assert frequency_cut < fit_cut_points(scores, labels, [0, 1])[0] < 1


def test_distances_between_grades_do_not_matter(generator: np.random.Generator) -> None:
    grades = generator.integers(3, size=500)
    scores = grades + generator.normal(size=500)
    even, uneven = (fit_cut_points(scores, np.array(values)[grades], values) for values in ([0, 1, 2], [0, 1, 1.2]))
    assert even == uneven


def test_few_pairs_or_equal_scores_get_cut_points_halfway() -> None:
    assert fit_cut_points(np.arange(99.0), np.arange(99) % 3, [0, 1, 1.2]) == (0.5, 1.1)
    assert fit_cut_points(np.ones(500), np.arange(500) % 3, [0, 1, 1.2]) == (0.5, 1.1)


@pytest.mark.parametrize("present", [[0], [2], [1], [0, 2], [1, 2]])
def test_grades_without_pairs_are_given_to_no_pair_that_was_seen(
    generator: np.random.Generator, present: list[int]
) -> None:
    grades = generator.choice(present, size=300)
    scores = grades + generator.normal(scale=0.3, size=300)
    cuts = fit_cut_points(scores, grades, [0, 1, 2])
    assert set(grade_index(scores, cuts)) <= set(present)
    assert grade_index([-50.0, 50.0], cuts).tolist() == [0, 2]  # but scores far enough out reach every end


def test_a_score_that_falls_with_the_grade_leaves_it_to_frequency(generator: np.random.Generator) -> None:
    grades = (np.arange(400) < 100).astype(int)
    scores = -grades + generator.normal(size=400)
    given = grade_index(scores, fit_cut_points(scores, grades, [0, 1]))
    assert given.mean() == pytest.approx(0.25 * 0.25, abs=0.01)


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
    with pytest.raises(ValueError, match=r"`towards_frequencies` must lie between 0 and 1, but is 1\.1"):
        fit_cut_points([0.0], [0], [0, 1], towards_frequencies=1.1)
    with pytest.raises(ValueError, match="`scores` must be finite"):
        grade_index([np.inf], [0.5])
