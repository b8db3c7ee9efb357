"""Thresholds: exact on counted cases; their lower bounds hold on other pairs."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import beta

from sts_regression.grading.thresholds import MEASURES, fit_threshold

# From the lowest score up: 40 of the low grade, 20 of both in turn, 40 of the high grade.
LABELS = np.r_[np.zeros(40), np.arange(20) % 2, np.ones(40)]
SCORES = np.arange(100.0)


def test_precision_is_counted_above_the_lowest_threshold_that_reaches_it() -> None:
    found = fit_threshold("precision", SCORES, LABELS, 1, 0.9)
    assert found is not None
    # Of the pairs from 51 up, 45 of 49 have the grade; from 50 up, 45 of 50; from 49 up, 46 of 51.
    assert (found.score, found.taken, found.relevant) == (49.0, 51, 50)
    assert (found.precision, found.recall) == (46 / 51, 46 / 50)
    assert found.precision_at_least == pytest.approx(beta.ppf(0.05, 46, 6))
    assert found.recall_at_least == pytest.approx(beta.ppf(0.05, 46, 5))


def test_recall_is_counted_above_the_highest_threshold_that_reaches_it() -> None:
    found = fit_threshold("recall", SCORES, LABELS, 1, 0.9)
    assert found is not None
    assert (found.score, found.taken, found.recall, found.precision) == (51.0, 49, 45 / 50, 45 / 49)
    everything = fit_threshold("recall", SCORES, LABELS, 1, 1)
    assert everything is not None
    assert (everything.score, everything.recall, everything.recall_at_least) == (41.0, 1.0, pytest.approx(0.05**0.02))


def test_equal_scores_are_taken_together() -> None:
    found = fit_threshold("precision", SCORES // 50, LABELS, 1, 0.9)
    assert found is not None
    assert (found.score, found.taken, found.precision) == (1.0, 50, 0.9)


def test_a_share_that_no_threshold_reaches_or_few_pairs_support_has_none() -> None:
    assert fit_threshold("precision", -SCORES, LABELS, 1, 0.9) is None
    assert fit_threshold("precision", SCORES, LABELS, 2, 0.5) is None
    few = np.r_[np.zeros(81), np.ones(19)]
    assert fit_threshold("precision", SCORES, few, 1, 0.5) is None
    assert fit_threshold("recall", SCORES, few, 1, 0.5) is None


@pytest.mark.parametrize("measure", MEASURES)
def test_lower_bounds_hold_for_nineteen_of_twenty_draws(measure: str) -> None:
    generator = np.random.default_rng(0)
    scores = np.sort(generator.normal(size=200_000))
    chance = expit(3 * scores - 2)
    hits, kept = chance[::-1].cumsum()[::-1], np.arange(len(scores), 0, -1)
    true_share = hits / (kept if measure == "precision" else hits[0])
    held = []
    for _ in range(300):
        drawn = generator.normal(size=500)
        found = fit_threshold(measure, drawn, generator.uniform(size=500) < expit(3 * drawn - 2), 1, 0.8)
        assert found is not None
        bound = found.precision_at_least if measure == "precision" else found.recall_at_least
        held.append(true_share[np.searchsorted(scores, found.score)] >= bound)
    assert 0.91 < np.mean(held) < 0.99


@pytest.mark.parametrize("measure", MEASURES)
def test_what_is_no_share_is_refused(measure: str) -> None:
    with pytest.raises(ValueError, match="must be above 0 and at most 1, but is 90"):
        fit_threshold(measure, SCORES, LABELS, 1, 90)
    with pytest.raises(ValueError, match="`scores` must be finite"):
        fit_threshold(measure, [np.nan], [1], 1, 0.9)
