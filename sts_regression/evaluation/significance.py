"""Tests whether methods differ by more than seeds and test pairs explain: Banerjee's test, Holm's correction."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import optimize, special

from sts_regression.evaluation.bootstrap import CONFIDENCE

SIGNIFICANCE = 0.05  # largest p of a difference that is called significant
POWER = 0.8
NO_TEST = "–"

Test = dict[str, float | None]  # see `difference_test`
VariancePart = tuple[float, float]  # with its degrees of freedom
LOG_SMALLEST_P = -300.0  # below, squares of quantiles with one degree of freedom overflow
Hypothesis = TypeVar("Hypothesis", bound=Hashable)


@dataclass(frozen=True)
class SeedScores:
    """
    A measure of one method; make it with [`over_seeds`].

    Attributes:
        values: the value of each seed.
        trains: whether the method trains anything. If not, its values do not depend on the seed.
        resampled: mean over the seeds on resampled test pairs, shape (resamples,); `None` if the scores of single
            pairs are unknown.
        interaction: the part of the variance of `resampled` that arises because seeds score different pairs well.
        sizes: the number of pairs in each group that is drawn as one, shape (groups,); ones for distinct pairs.
    """

    values: tuple[float, ...]
    trains: bool
    resampled: np.ndarray | None
    interaction: float
    sizes: np.ndarray

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return float(np.mean(self.values))

    @property
    def effective_groups(self) -> float:
        """
        Kish's effective number of groups: that of equal groups that tell as much. At least 2.

        Source: Kish (1965), "Survey Sampling".
        """
        sizes = self.sizes.astype(float)
        return max(2.0, float(sizes.sum() ** 2 / (sizes @ sizes)))


def over_seeds(
    values: Sequence[float], trains: bool, resampled: np.ndarray | None = None, sizes: Sequence[int] | np.ndarray = ()
) -> SeedScores:
    """
    A measure of one method over its seeds.

    Args:
        values: the value of each seed.
        trains: whether the method trains anything.
        resampled: the measure of each seed on resampled test pairs, shape (seeds, resamples).
        sizes: the number of pairs in each group that is drawn as one, shape (groups,); ones for distinct pairs.

    Raises:
        ValueError: for values that are NaN or infinite.
    """
    if not np.isfinite(values).all():
        raise ValueError(f"the values of the seeds are {', '.join(f'{value:g}' for value in values)}, not all finite.")
    if resampled is None:
        return SeedScores(tuple(values), trains, None, 0.0, np.asarray(sizes))
    mean, num_seeds = resampled.mean(axis=0), len(resampled)
    interaction = 0.0
    if num_seeds > 1:
        interaction = float(np.var(resampled - mean, axis=1, ddof=1).sum() / (num_seeds * (num_seeds - 1)))
    return SeedScores(tuple(values), trains, mean, interaction, np.asarray(sizes))


def difference_test(method: SeedScores, baseline: SeedScores) -> Test:
    """
    Tests whether two methods have the same mean over seeds and test pairs.

    The seed is the unit: another seed of a method is another draw of its score. With s² the variance over the n seeds
    of a method, the difference of the means has the variance

        s_A² / n_A + s_B² / n_B + V_pairs

    Each part has its own degrees of freedom: n - 1 of a method that trains (one that does not has no such part), and
    k - 1 of V_pairs, with k the effective number of groups of pairs. With t the quantiles of Student's distribution
    with these degrees, the interval of confidence 1 - p reaches to

        sqrt(t_A² s_A² / n_A + t_B² s_B² / n_B + t_pairs² V_pairs)

    on both sides, and p is the level at which its end is zero (Banerjee 1961, "On confidence interval for two-means
    problem based on separate estimates of variances and tabulated values of t-table"). If the parts are independent
    and of normal variables, and groups of pairs are equally large, this never claims too much, at any level and with
    any number of seeds. Welch's and Satterthwaite's common degrees of freedom do: if the seeds of a method agree by
    chance, they trust the small variance as that of thousands of pairs. In simulations of two seeds, 6 to 13 % of
    their tests found differences that are not there, instead of 5 %, and far more at the small p that survive Holm's
    correction.

    V_pairs is the variance of the difference over resamples of the test pairs, the same resamples for both methods,
    with the seeds held fixed, less the interaction of seeds and pairs, and times k / (k - 1), since the pairs estimate
    the mean, too. With the number of groups in place of k, about 8 % of simulated tests found differences that are not
    there if 8 of 57 groups hold nearly all pairs. The interaction arises because seeds of a method score different
    pairs well. It is part of s² and of the variance of the resampled mean. Counted twice, it would make the test
    conservative: in simulations in which seeds differ by nothing else, 1 % false positives instead of 5 %. Its part in
    the variance of a method's mean is estimated by the variance of single seeds around this mean over the same
    resamples, summed over the seeds and divided by n (n - 1).

    Seeds of two methods count as independent. If seed 1 sees the same batches in both, the test is conservative.

    Args:
        method: the first method.
        baseline: the second method, on the same test pairs and resamples.

    Returns:
        A `dict` with these entries:

        - `difference`: method less baseline
        - `low`, `high`: the ends of its 95 % interval
        - `p`: the two-sided p-value
        - `standard_error`
        - `detectable`: the smallest difference that such a test finds with 80 % power at 5 %, by Student's t in place
          of its noncentral form (2 % too low at 3 degrees of freedom)
        - `pairs`: the number of distinct pairs or groups; `None` if V_pairs is unknown and taken as 0, so that the
          test holds for these test pairs only

        All but `difference` and `pairs` are `None` if a method trains and has one seed, or if nothing varies. If the
        methods are swapped, difference and interval are mirrored, and the rest is the same.
    """
    both = (method, baseline)
    knows_pairs = all(scores.resampled is not None for scores in both)
    difference = method.mean - baseline.mean
    untested = ("low", "high", "p", "standard_error", "detectable")
    test: Test = {
        "difference": difference,
        **dict.fromkeys(untested),
        "pairs": len(method.sizes) if knows_pairs else None,
    }
    if any(scores.trains and len(scores.values) < 2 for scores in both):
        return test
    parts = variance_parts(method, baseline)
    variance = math.fsum(part for part, _ in parts)  # exact sums: the same in either order of the methods
    if variance == 0:
        return test
    return test | {
        **banerjee_test(difference, parts),
        "standard_error": math.sqrt(variance),
        "detectable": math.sqrt(_squared_reach(parts, (1 - CONFIDENCE) / 2, 1 - POWER)),
    }


def banerjee_test(difference: float, parts: Sequence[VariancePart]) -> dict[str, float]:
    """
    Banerjee's test of a difference, see [`difference_test`]: `low` and `high`, the ends of the interval, and `p`.

    Args:
        difference: the difference to test.
        parts: the parts of its variance, not all of them 0.
    """
    parts = [part for part in parts if part[0] > 0]
    reach = math.sqrt(_squared_reach(parts, (1 - CONFIDENCE) / 2))
    return {"low": difference - reach, "high": difference + reach, "p": _p_value(difference, parts)}


def _squared_reach(parts: Sequence[VariancePart], *tails: float) -> float:
    """The sum of the parts, each times the square of the sum of its quantiles for the tails."""
    return math.fsum(sum(_quantile(tail, degrees) for tail in tails) ** 2 * variance for variance, degrees in parts)


def _quantile(beyond: float, degrees: float) -> float:
    """The value beyond which Student's distribution has a share, as `scipy.stats.t.isf`, which is far slower."""
    return -float(special.stdtrit(degrees, beyond))


def _p_value(difference: float, parts: Sequence[VariancePart]) -> float:
    """The level at which the interval of a difference ends at zero."""

    def beyond_zero(log_p: float) -> float:
        return _squared_reach(parts, math.exp(log_p) / 2) - difference**2

    if beyond_zero(LOG_SMALLEST_P) <= 0:
        return math.exp(LOG_SMALLEST_P)
    return math.exp(optimize.brentq(beyond_zero, LOG_SMALLEST_P, 0.0, xtol=1e-12))


def variance_parts(method: SeedScores, baseline: SeedScores) -> list[VariancePart]:
    """
    The parts of the variance of the difference of two means with their degrees of freedom, see [`difference_test`].

    Args:
        method: the first method, with two seeds or more if it trains.
        baseline: the second method, likewise.
    """
    parts: list[VariancePart] = [
        (float(np.var(scores.values, ddof=1)) / len(scores.values), len(scores.values) - 1)
        for scores in (method, baseline)
        if scores.trains
    ]
    if method.resampled is not None and baseline.resampled is not None:
        parts.append((_variance_of_pairs(method, baseline), method.effective_groups - 1))
    return parts


def zero_test(scores: SeedScores) -> Test:
    """As [`difference_test`], of one method or of paired differences: whether their mean is zero."""
    return difference_test(scores, zero_like(scores))


def zero_like(scores: SeedScores) -> SeedScores:
    """A measure of the same pairs that is always zero."""
    resampled = None if scores.resampled is None else np.zeros((1, len(scores.resampled)))
    return over_seeds([0.0], False, resampled, scores.sizes)


def interval_of(test: Test) -> tuple[float, float]:
    """The ends of the interval of a test; the difference itself if nothing varies."""
    difference, low, high = (test[key] for key in ("difference", "low", "high"))
    assert difference is not None
    return (difference, difference) if low is None or high is None else (low, high)


def _variance_of_pairs(method: SeedScores, baseline: SeedScores) -> float:
    assert method.resampled is not None
    assert baseline.resampled is not None
    whole, effective = float(np.var(method.resampled - baseline.resampled, ddof=1)), method.effective_groups
    return max(0.0, whole - (method.interaction + baseline.interaction)) * effective / (effective - 1)


def holm(p_values: Mapping[Hypothesis, float]) -> dict[Hypothesis, float]:
    """
    P-values after Holm's correction (1979) for a family of tests.

    If each corrected p-value of at most 5 % is called significant, at most 5 % of such families have false positives.

    Args:
        p_values: the p-value of each test, by its name.

    Raises:
        ValueError: for a p-value that is NaN.
    """
    if missing := [name for name, p in p_values.items() if math.isnan(p)]:
        raise ValueError(f"the p-value of {missing[0]} is NaN. Leave the test out.")
    adjusted: dict[Hypothesis, float] = {}
    largest = 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p))
        adjusted[name] = largest
    return adjusted


def shown_difference(test: Mapping[str, float | None]) -> str:
    """A difference in percent with its 95 % interval, if it was tested."""
    difference, low, high = (test[key] for key in ("difference", "low", "high"))
    assert difference is not None
    if low is None or high is None:
        return f"{100 * difference:+.2f}"
    return f"{100 * difference:+.2f} ({100 * low:+.2f} to {100 * high:+.2f})"


def shown_p(p: float | None) -> str:
    """A p-value with three decimals; a dash if nothing was tested."""
    if p is None:
        return NO_TEST
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"
