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
    level = 0.05 / 81  # thresholds with 20 pairs above them
    assert found.precision_at_least == pytest.approx(beta.ppf(level, 46, 6))
    assert found.recall_at_least == pytest.approx(beta.ppf(level, 46, 5))


def test_recall_is_counted_above_the_highest_threshold_that_reaches_it() -> None:
    found = fit_threshold("recall", SCORES, LABELS, 1, 0.9)
    assert found is not None
    assert (found.score, found.taken, found.recall, found.precision) == (51.0, 49, 45 / 50, 45 / 49)
    everything = fit_threshold("recall", SCORES, LABELS, 1, 1)
    assert everything is not None
    least = pytest.approx((0.05 / 81) ** 0.02)
    assert (everything.score, everything.recall, everything.recall_at_least) == (41.0, 1.0, least)


def test_equal_scores_are_taken_together() -> None:
    found = fit_threshold("precision", SCORES // 50, LABELS, 1, 0.9)
    assert found is not None
    assert (found.score, found.taken, found.precision) == (1.0, 50, 0.9)


def test_rounded_scores_reach_the_same_share() -> None:
    """Scores of equal texts differ in the last digit, by batch, and files have six decimals."""
    generator = np.random.default_rng(0)
    equal = 4.9 + generator.normal(scale=1e-7, size=60)
    scores = np.r_[equal, generator.uniform(0, 4, size=100), generator.uniform(4.91, 5, size=40)]
    labels = np.r_[generator.permutation(np.arange(60) % 5 > 0), np.zeros(100), np.ones(40)]
    for measure, wanted in (("precision", 0.875), ("recall", 0.9), ("recall", 1.0)):
        found = fit_threshold(measure, scores, labels, 1, wanted, rounding=5e-5)
        assert found is not None
        again = np.round((scores + generator.normal(scale=1e-7, size=200)).astype(np.float32), 6)
        assert np.count_nonzero(again >= found.score) == found.taken == 100
        assert (found.precision, found.recall) == (0.88, 1.0)


def test_a_share_that_no_threshold_reaches_or_few_pairs_support_has_none() -> None:
    assert fit_threshold("precision", -SCORES, LABELS, 1, 0.9) is None
    assert fit_threshold("precision", SCORES, LABELS, 2, 0.5) is None
    few = np.r_[np.zeros(81), np.ones(19)]
    assert fit_threshold("precision", SCORES, few, 1, 0.5) is None
    assert fit_threshold("recall", SCORES, few, 1, 0.5) is None


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("slope", "wanted", "number"), [(3, 0.8, 500), (2, 0.8, 200), (1.5, 0.8, 1000)])
def test_lower_bounds_hold_for_nineteen_of_twenty_draws(
    measure: str, slope: float, wanted: float, number: int
) -> None:
    generator = np.random.default_rng(0)
    scores = np.sort(generator.normal(size=200_000))
    chance = expit(slope * scores - 2)
    hits, kept = chance[::-1].cumsum()[::-1], np.arange(len(scores), 0, -1)
    true_share = hits / (kept if measure == "precision" else hits[0])
    held = []
    for _ in range(300):
        drawn = generator.normal(size=number)
        labels = generator.uniform(size=number) < expit(slope * drawn - 2)
        found = fit_threshold(measure, drawn, labels, 1, wanted)
        if found is not None:  # few draws of weak scores reach a high precision, by luck
            bound = found.precision_at_least if measure == "precision" else found.recall_at_least
            held.append(true_share[np.searchsorted(scores, found.score)] >= bound)
    assert len(held) >= 10
    assert np.mean(held) >= 0.95


@pytest.mark.parametrize("measure", MEASURES)
def test_what_is_no_share_is_refused(measure: str) -> None:
    with pytest.raises(ValueError, match="must be above 0 and at most 1, but is 90"):
        fit_threshold(measure, SCORES, LABELS, 1, 90)
    with pytest.raises(ValueError, match="`scores` must be finite"):
        fit_threshold(measure, [np.nan], [1], 1, 0.9)
