"""The gain of a training, in numbers and in words."""

import dataclasses

import numpy as np
import pytest

from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.verdict import Verdict, judge


def made_up(noise_before: float, noise_after: float, num_pairs: int = 200) -> Verdict:
    generator = np.random.default_rng(0)
    gold = generator.uniform(0, 5, num_pairs)
    before, after = (gold + noise * generator.normal(size=num_pairs) for noise in (noise_before, noise_after))
    verdict = judge(PairScores(None, before), PairScores(after, before), gold)
    assert verdict is not None
    return verdict


@pytest.mark.parametrize(
    ("noise_before", "noise_after", "outcome"), [(3, 0.5, "better"), (0.5, 3, "worse"), (1, 1, "unclear")]
)
def test_the_outcome_follows_from_the_interval(noise_before: float, noise_after: float, outcome: str) -> None:
    verdict = made_up(noise_before, noise_after)
    assert verdict.outcome == outcome
    assert verdict.low < verdict.difference < verdict.high
    assert verdict.difference == verdict.after - verdict.before


def test_the_interval_covers_the_true_difference_of_equal_scores() -> None:
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(100):
        gold = generator.uniform(0, 5, 60)
        before, after = (gold + generator.normal(size=60) * 2 for _ in range(2))
        verdict = judge(PairScores(None, before), PairScores(after, None), gold)
        assert verdict is not None
        covered += verdict.low <= 0 <= verdict.high
    assert covered >= 89  # of 95 expected; fewer in one of 100 such series


@pytest.mark.parametrize(("draws_groups", "low", "high"), [(True, 0, 14), (False, 40, 200)])
def test_pairs_that_share_texts_are_drawn_as_one(draws_groups: bool, low: int, high: int) -> None:
    """A reference answer has many pairs, and a model is wrong about all of them."""
    generator, found, groups = np.random.default_rng(3), 0, np.repeat(np.arange(15), 12)
    for _ in range(200):
        gold, *noise = (generator.normal(size=15)[groups] + generator.normal(size=len(groups)) for _ in range(3))
        before, after = (gold + of_model for of_model in noise)
        verdict = judge(
            PairScores(None, before), PairScores(after, None), gold, groups=groups if draws_groups else None
        )
        assert verdict is not None
        assert verdict.num_groups == (15 if draws_groups else 180)
        found += verdict.outcome != "unclear"
    assert low <= found <= high  # 10 expected of an interval that holds


def test_corpora_are_compared_apart() -> None:
    gold = np.array([0.0, 1, 2, 3, 0, 1, 2, 3])
    before = np.array([0.0, 1, 2, 3, 3, 2, 1, 0])
    verdict = judge(PairScores(None, before), PairScores(gold, None), gold, np.repeat([0, 1], 4))
    assert verdict is not None
    assert (verdict.before, verdict.after) == (pytest.approx(0), pytest.approx(1))


def test_the_cosine_is_what_a_model_without_a_trained_head_returns() -> None:
    gold = np.arange(4.0)
    verdict = judge(PairScores(None, gold), PairScores(None, -gold), gold)
    assert verdict is not None
    assert (verdict.before, verdict.after, verdict.num_pairs) == (pytest.approx(1), pytest.approx(-1), 4)


def test_a_cross_encoder_is_compared_with_nothing() -> None:
    gold = np.arange(4.0)
    assert judge(PairScores(gold, None), PairScores(gold, None), gold) is None


def test_the_words_say_what_was_kept() -> None:
    verdict = Verdict(0.6, 0.55, -0.09, -0.01, 0.02, 1234)
    compared = (
        "On 1,234 development pairs, training changed Spearman's correlation from 60.00 to 55.00, by -5.00 points "
        "(95 % interval -9.00 to -1.00): worse than the untouched encoder."
    )
    assert str(verdict) == f"{compared} The run keeps the trained model all the same."
    grouped = dataclasses.replace(verdict, num_groups=17)
    assert str(grouped).startswith("On 1,234 development pairs (17 groups of pairs with shared texts), training")
    assert str(dataclasses.replace(verdict, num_groups=1234)) == str(verdict)
    kept = dataclasses.replace(verdict, kept="start")
    assert str(kept) == f"{compared} The run keeps the untouched encoder."
    assert kept.to_dict()["outcome"] == "worse"


@pytest.mark.parametrize(("high", "is_lost"), [(-0.01, True), (0.0, False), (0.01, False)])
def test_a_model_is_given_up_if_it_is_significantly_worse(high: float, is_lost: bool) -> None:
    assert Verdict(0.6, 0.5, -0.2, high, 0.04, 100).is_lost == is_lost
