"""Tests between methods: they hold their level under the null, find differences, and are the same both ways."""

from functools import cache

import numpy as np
import pytest
from scipy import stats

from sts_regression.evaluation.bootstrap import bootstrap_spearman
from sts_regression.evaluation.significance import SeedScores, difference_test, holm, over_seeds, zero_test

NUM_PAIRS = 200  # of fewer, the bootstrap of a rank correlation is conservative
FAST, SLOW = (500, 50), (3000, 100)  # simulated comparisons, and resamples of each
LEVEL = 0.05
SEEDS = [(2, 0), (2, 2), (3, 0), (3, 3), (5, 5), (10, 10), (10, 0)]  # of both methods; none: it trains nothing
# Standard deviations of scores over seeds, over pairs, and over pairs for one seed alone.
EFFECTS = {"all": (0.15, 0.5, 0.5), "seeds": (0.15, 0.5, 0.0), "interaction": (0.0, 0.1, 0.7)}


def draw_scores(generator: np.random.Generator, gold: np.ndarray, num_seeds: int, effects: str) -> np.ndarray:
    """Scores of a method of shape (seeds, pairs): all methods are equally good."""
    of_seeds, of_pairs, of_both = EFFECTS[effects]
    if num_seeds == 0:
        return (gold + np.hypot(of_pairs, of_both) * generator.standard_normal(len(gold)))[None]
    slopes = 1 + of_seeds * generator.standard_normal((num_seeds, 1))
    noise = of_pairs * generator.standard_normal(len(gold))
    return slopes * gold + noise + of_both * generator.standard_normal((num_seeds, len(gold)))


def measure(scores: np.ndarray, gold: np.ndarray, num_resamples: int, trains: bool) -> SeedScores:
    rows = np.arange(len(gold))
    values = np.corrcoef(stats.rankdata(scores, axis=1), stats.rankdata(gold))[-1, :-1]
    resampled = bootstrap_spearman(dict(enumerate(scores)), gold, rows, {"all": rows}, num_resamples)["all"]
    return over_seeds(values.tolist(), trains, np.stack(list(resampled.values())), np.ones(len(gold)))


@cache
def simulate(size: tuple[int, int], seeds: tuple[int, int], effects: str) -> dict[str, np.ndarray]:
    """The results of many tests of two methods without a difference, of shape (comparisons,)."""
    generator = np.random.default_rng(0)
    num_rounds, num_resamples = size
    tests = []
    for _ in range(num_rounds):
        gold = generator.standard_normal(NUM_PAIRS)
        first, second = (
            measure(draw_scores(generator, gold, count, effects), gold, num_resamples, count > 0) for count in seeds
        )
        tests.append(difference_test(first, second))
    return {name: np.array([test[name] for test in tests]) for name in tests[0]}


@pytest.fixture(params=[FAST, pytest.param(SLOW, marks=pytest.mark.slow)], ids=["fast", "slow"])
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    return request.param


@pytest.mark.parametrize("seeds", SEEDS)
def test_without_a_difference_one_test_in_twenty_finds_one(size: tuple[int, int], seeds: tuple[int, int]) -> None:
    found = (simulate(size, seeds, "all")["p"] < LEVEL).sum()
    assert found <= stats.binom.ppf(0.99, size[0], 0.06)  # 7 % of the slow form, 8.6 % of the fast one


@pytest.mark.slow
@pytest.mark.parametrize("effects", ["seeds", "interaction"])
@pytest.mark.parametrize("seeds", SEEDS)
def test_so_it_does_whatever_scores_differ_by(seeds: tuple[int, int], effects: str) -> None:
    found = (simulate(SLOW, seeds, effects)["p"] < LEVEL).sum()
    assert found <= stats.binom.ppf(0.99, SLOW[0], 0.06)
    if 10 in seeds:  # with fewer seeds, the test is conservative
        assert found >= stats.binom.ppf(0.01, SLOW[0], 0.03)


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("variance_of_pairs", [0.1, 1.0])  # in variances over seeds
def test_small_p_are_as_rare_as_they_say(seeds: tuple[int, int], variance_of_pairs: float) -> None:
    level, num_rounds, generator = 0.002, 5000, np.random.default_rng(0)
    of_pairs = np.sqrt(variance_of_pairs / 2) * np.array([1.0, -1.0])  # has this variance
    found = 0
    for _ in range(num_rounds):
        shift = np.sqrt(variance_of_pairs) * generator.standard_normal()
        first, second = (generator.normal(0, count > 0, max(count, 1)) for count in seeds)
        method = SeedScores(tuple(first + shift), seeds[0] > 0, of_pairs, 0.0, np.ones(1000))
        baseline = SeedScores(tuple(second), seeds[1] > 0, 0 * of_pairs, 0.0, np.ones(1000))
        p = difference_test(method, baseline)["p"]
        found += p is not None and p < level
    assert found <= stats.binom.ppf(0.99, num_rounds, level)


def test_pairs_that_seeds_score_differently_do_not_count_twice() -> None:
    tests = simulate(FAST, (5, 5), "interaction")
    estimated = np.mean(tests["standard_error"] ** 2)
    assert 0.8 < estimated / np.var(tests["difference"]) < 1.3  # 2 if they did


@pytest.mark.parametrize("seeds", [(3, 3), (10, 0)])
def test_a_difference_called_detectable_is_found_four_times_in_five(
    size: tuple[int, int], seeds: tuple[int, int]
) -> None:
    tests = simulate(size, seeds, "all")
    typical = np.sqrt(np.mean(tests["detectable"] ** 2))
    for shift, low, high in ((typical, 0.7, 0.9), (3 * typical, 0.99, 1.0)):
        reach = tests["high"] - tests["difference"]
        assert low <= (abs(tests["difference"] + shift) > reach).mean() <= high


@pytest.mark.parametrize(("num_seeds", "at_least"), [(3, 0.12), (5, 0.09)])
def test_a_percentile_bootstrap_over_seeds_finds_what_is_not_there(num_seeds: int, at_least: float) -> None:
    def p_value(first: np.ndarray, second: np.ndarray) -> float:
        """Of a resampled mean of resampled seeds, scores of shape (seeds, resamples)."""
        columns = np.arange(first.shape[1])
        means = [
            scores[generator.integers(len(scores), size=scores.shape), columns].mean(axis=0)
            for scores in (first, second)
        ]
        return 2 * float(min((means[0] < means[1]).mean(), (means[0] > means[1]).mean()))

    generator, found, num_rounds = np.random.default_rng(1), 0, 1000
    for _ in range(num_rounds):
        of_seeds, of_pairs = generator.standard_normal((2, num_seeds, 1)), generator.standard_normal((2, 1, 200))
        found += p_value(*(of_seeds + 0.1 * of_pairs)) < LEVEL
    assert found / num_rounds > at_least


def test_seeds_alone_are_compared_with_the_quantiles_of_their_numbers() -> None:
    first, second = (0.71, 0.74, 0.72, 0.75), (0.70, 0.69, 0.72)
    test = difference_test(over_seeds(first, True), over_seeds(second, True))
    parts = {3: np.var(first, ddof=1) / 4, 2: np.var(second, ddof=1) / 3}
    difference = np.mean(first) - np.mean(second)
    reach = np.sqrt(sum(stats.t.ppf(0.975, degrees) ** 2 * part for degrees, part in parts.items()))
    assert (test["low"], test["high"]) == pytest.approx((difference - reach, difference + reach))
    assert test["p"] is not None
    at_zero = sum(stats.t.isf(test["p"] / 2, degrees) ** 2 * part for degrees, part in parts.items())
    assert np.sqrt(at_zero) == pytest.approx(difference)
    assert test["standard_error"] == pytest.approx(np.sqrt(sum(parts.values())))
    assert test["pairs"] is None


@pytest.mark.parametrize("first", [(0.71, 0.74, 0.72), (0.71, 0.5, 0.9), (0.7, 0.70000001)])
def test_of_one_method_it_is_students_test(first: tuple[float, ...]) -> None:
    test = difference_test(over_seeds(first, True), over_seeds([0.6], False))
    expected = stats.ttest_1samp(first, 0.6)
    assert test["p"] == pytest.approx(expected.pvalue)
    assert (test["low"], test["high"]) == pytest.approx(tuple(np.array(expected.confidence_interval()) - 0.6))


def test_the_variance_of_pairs_is_added_less_what_seeds_show_of_it() -> None:
    values = (0.7, 0.8, 0.9)
    common = np.array([0.0, 0.1, 0.2, 0.3])
    own = np.array([[0.0, 0.01, 0.0, -0.01], [0.0, -0.01, 0.0, 0.01], [0.0, 0.0, 0.0, 0.0]])  # sums to 0 over seeds
    trained = over_seeds(values, True, 0.8 + common + own, np.ones(50))
    untrained = over_seeds([0.5], False, np.full((1, 4), 0.5), np.ones(50))
    of_seeds = 0.01 / 3
    of_pairs = (np.var(common, ddof=1) - 2 * (0.0002 / 3) / (3 * 2)) * 50 / 49
    test = difference_test(trained, untrained)
    assert test["standard_error"] == pytest.approx(np.sqrt(of_seeds + of_pairs))
    assert (test["difference"], test["pairs"]) == (pytest.approx(0.3), 50)

    def reach(*levels: float) -> float:
        quantiles = (sum(stats.t.ppf(level, degrees) for level in levels) for degrees in (2, 49))
        return np.sqrt(sum(q**2 * part for q, part in zip(quantiles, (of_seeds, of_pairs), strict=True)))

    assert test["high"] == pytest.approx(0.3 + reach(0.975))
    assert test["p"] is not None
    assert reach(1 - test["p"] / 2) == pytest.approx(0.3)
    assert test["detectable"] == pytest.approx(reach(0.975, 0.8))


def test_a_few_large_groups_of_pairs_count_as_few() -> None:
    sizes, num_rounds, generator = (
        np.array([120, 110, 100, 100, 90, 90, 80, 80, *[2] * 49]),
        2000,
        np.random.default_rng(0),
    )
    draws = generator.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), size=200)  # (resamples, groups)
    found = 0
    for errors in generator.normal(size=(num_rounds, len(sizes))):  # each pair has the error of its group
        mean, resampled = errors @ sizes / sizes.sum(), draws @ (errors * sizes) / (draws @ sizes)
        test = zero_test(over_seeds([mean], False, resampled[None], sizes))
        assert test["p"] is not None
        found += test["p"] < LEVEL
    assert found <= stats.binom.ppf(0.99, num_rounds, 0.06)  # with the number of groups as degrees of freedom, 10 %


def test_one_group_of_pairs_has_a_wide_interval() -> None:
    test = zero_test(over_seeds([0.1], False, np.array([[0.1, 0.11]]), [60]))
    assert test["pairs"] == 1
    assert test["low"] is not None
    assert np.isfinite(test["low"])


def test_two_methods_that_train_nothing_differ_by_their_pairs() -> None:
    first, second = np.random.default_rng(0).normal(0.7, 0.01, (2, 1, 500))
    test = difference_test(
        over_seeds([0.8], False, first, np.ones(1000)), over_seeds([0.7], False, second, np.ones(1000))
    )
    error = np.std(first - second, ddof=1) * np.sqrt(1000 / 999)
    assert test["standard_error"] == pytest.approx(error)
    assert test["p"] == pytest.approx(2 * stats.t.sf(0.1 / error, 999))


def test_p_ends_at_1_and_above_0() -> None:
    values = over_seeds([0.7, 0.8], True)
    assert difference_test(values, values)["p"] == pytest.approx(1.0)
    nearly_equal = over_seeds([*([0.7] * 9), float(np.nextafter(0.7, 1))], True)
    assert difference_test(nearly_equal, over_seeds([0.0], False))["p"] == pytest.approx(np.exp(-300))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (over_seeds([0.8], True), over_seeds([0.7, 0.6], True)),
        (over_seeds([0.8, 0.9], True), over_seeds([0.7], True, np.ones((1, 3)), np.ones(9))),
        (over_seeds([0.8], False), over_seeds([0.7], False)),
    ],
)
def test_there_is_no_test_of_one_seed_or_of_what_does_not_vary(first: SeedScores, second: SeedScores) -> None:
    test = difference_test(first, second)
    assert test.pop("difference") == pytest.approx(first.mean - second.mean)
    assert set(test.values()) == {None}


def test_either_method_may_be_the_baseline() -> None:
    generator = np.random.default_rng(0)
    first, second = (
        over_seeds(generator.normal(0.7, 0.1, 4).tolist(), True, generator.normal(0.7, 0.1, (4, 20)), np.ones(30))
        for _ in range(2)
    )
    there, back = difference_test(first, second), difference_test(second, first)
    mirrored = {"difference": "difference", "low": "high", "high": "low"}
    for name, value in there.items():
        other = back[mirrored.get(name, name)]
        assert value is not None
        assert value == (other if name not in mirrored else -(other or 0))


def test_holms_correction() -> None:
    adjusted = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert adjusted == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_values_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"the values of the seeds are 0\.1, nan, not all finite"):
        over_seeds([0.1, float("nan")], trains=True)
    with pytest.raises(ValueError, match="the p-value of b is NaN"):
        holm({"a": 0.01, "b": float("nan")})
