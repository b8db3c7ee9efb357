"""The gain from training, of the returned score over the untouched encoder's cosine, and from more pairs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from sts_regression.basics.tables import percent
from sts_regression.evaluation.compare import measure_parts
from sts_regression.evaluation.measures import PairScores, rows_by_source
from sts_regression.evaluation.significance import SeedScores, difference_test, interval_of, over_seeds, zero_test

LITTLE = 0.01  # a difference of correlations
VERDICTS = {
    "better": "better than the untouched encoder",
    "unclear": "no significant difference from the untouched encoder",
    "worse": "worse than the untouched encoder",
}


@dataclass(frozen=True)
class Verdict:
    """
    A comparison on development pairs; Spearman's correlations are means over the corpora.

    Attributes:
        before: correlation of the untouched encoder's cosine.
        after: correlation of the score that the trained model returns.
        low, high: the 95 % interval of `after` less `before` for other pairs, see [`difference_test`].
        standard_error: standard error of this difference, from a paired bootstrap in which pairs that share a text are
            drawn as one.
        num_pairs: number of development pairs.
        num_groups: number of groups of pairs that share texts; `None` in records of earlier versions.
        kept: "trained", or "start" if the untouched encoder is kept in place of the trained one.
    """

    before: float
    after: float
    low: float
    high: float
    standard_error: float
    num_pairs: int
    num_groups: int | None = None
    kept: str = "trained"

    @property
    def difference(self) -> float:
        """`after` less `before`."""
        return self.after - self.before

    @property
    def pairs(self) -> str:
        """How many development pairs there are, and in how many groups."""
        pairs = f"{self.num_pairs:,} development pairs"
        if self.num_groups is None or self.num_groups == self.num_pairs:
            return pairs
        return f"{pairs} ({self.num_groups:,} groups of pairs with shared texts)"

    @property
    def outcome(self) -> str:
        """A key of `VERDICTS`."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "unclear"

    @property
    def is_lost(self) -> bool:
        """
        Whether the trained model is significantly worse, at 5 %.

        Most trainings help, while few held-out pairs say little: a small drop on them is mostly chance, see
        `results/graded_pairs/own_pairs_choice.md`.
        """
        return self.outcome == "worse"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for `run.json`."""
        return {**asdict(self), "difference": self.difference, "outcome": self.outcome}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Verdict":
        """The inverse of [`~Verdict.to_dict`]."""
        return cls(**{field.name: values[field.name] for field in fields(cls) if field.name in values})

    def __str__(self) -> str:
        text = (
            f"On {self.pairs}, training changed Spearman's correlation from {percent(self.before)} to "
            f"{percent(self.after)}, by {100 * self.difference:+.2f} points "
            f"(95 % interval {100 * self.low:+.2f} to {100 * self.high:+.2f}): "
            f"{VERDICTS[self.outcome]}."
        )
        if self.kept == "start":
            text += " The run keeps the untouched encoder."
        elif self.is_lost:
            text += " The run keeps the trained model all the same."
        return text


@dataclass(frozen=True)
class LearningCurve:
    """
    The expected gain from twice as many training pairs, estimated with models trained on fewer pairs.

    Spearman's correlations are those of the returned score, means over the corpora of the development pairs. The
    interval covers the choice of development pairs only, not the variation between seeds or the choice of training
    pairs.

    Attributes:
        points: number of training `pairs` and `spearman` of each model, ascending; 0 pairs stand for the untouched
            encoder's cosine.
        gain_of_doubling: slope of the least-squares line through the trained models, by log2 of the number of pairs.
        low, high: its 95 % interval for other development pairs, see [`difference_test`].
        seconds: duration of the runs on fewer pairs.
    """

    points: list[dict[str, float]]
    gain_of_doubling: float
    low: float
    high: float
    seconds: float

    def __str__(self) -> str:
        gain, low, high = (
            f"{round(100 * value, 1) + 0:+.1f}" for value in (self.gain_of_doubling, self.low, self.high)
        )
        text = (
            f"Twice as many training pairs would change Spearman's correlation by about {gain} points (95 % interval "
            f"{low} to {high}). A line through runs on a quarter, half and all of the pairs gives this estimate. Its "
            "interval covers the choice of development pairs only, not seeds."
        )
        if -LITTLE < self.low and self.high < LITTLE:
            text += " More training pairs like these would change little."
        elif self.low <= 0 <= self.high:
            text += (
                " The interval includes 0: there are too few development pairs to tell whether more training pairs "
                "would help."
            )
        return text


def extrapolate(
    trained: Mapping[int, PairScores],
    untouched: PairScores,
    gold_scores: np.ndarray,
    sources: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    seconds: float = 0.0,
) -> LearningCurve:
    """
    The learning curve of models that were trained on different numbers of the same pairs.

    Args:
        trained: scores of the development pairs, by the number of pairs that the model was trained on.
        untouched: scores of the untouched encoder, which do not enter the line.
        gold_scores: labels of shape (pairs,).
        sources: the corpus of each pair, see [`measure_scores`].
        groups: numbers of shape (pairs,), equal for pairs that share a text; by default none do.
        seconds: duration of the runs on fewer pairs.
    """
    by_size = {0: untouched.cosine} | {size: scores.returned for size, scores in sorted(trained.items())}
    known = {size: scores for size, scores in by_size.items() if scores is not None}
    measured = [_measure(scores, gold_scores, sources, groups) for scores in known.values()]
    points = [{"pairs": size, "spearman": found.mean} for size, found in zip(known, measured, strict=True)]
    of_trained = measured[1:] if 0 in known else measured
    doublings = np.log2([size for size in known if size])
    doublings -= doublings.mean()
    weights = doublings / (doublings @ doublings)  # weights of the correlations in the slope
    # Subtracts the last model, so that the slope is exactly 0 for models that rank alike.
    values = np.array([found.values for found in of_trained]).T  # (1, models)
    resampled = np.array([found.resampled for found in of_trained]).T  # (resamples, models)
    slope, of_resamples = ((rows - rows[:, -1:]) @ weights for rows in (values, resampled))
    test = zero_test(over_seeds(slope.tolist(), False, of_resamples[None], measured[-1].sizes))
    return LearningCurve(points, float(slope[0]), *interval_of(test), seconds)


def judge(
    before: PairScores,
    after: PairScores,
    gold_scores: np.ndarray,
    sources: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> Verdict | None:
    """
    Compares a trained model with the untouched encoder.

    Args:
        before: scores of the pairs before training.
        after: scores of the same pairs after training.
        gold_scores: labels of shape (pairs,).
        sources: the corpus of each pair, see [`measure_scores`].
        groups: numbers of shape (pairs,), equal for pairs that share a text; by default none do.

    Returns:
        The verdict; `None` for a cross-encoder, which has no scores before training.
    """
    if before.cosine is None or after.returned is None:
        return None
    one, other = (_measure(scores, gold_scores, sources, groups) for scores in (before.cosine, after.returned))
    test = difference_test(other, one)
    error = test["standard_error"] or 0.0
    return Verdict(one.mean, other.mean, *interval_of(test), error, len(gold_scores), len(one.sizes))


def scored_by(record: Mapping[str, Any]) -> str:
    """
    Which models scored the development pairs if it was not the trained one, in sentences; else empty.

    Args:
        record: the content of `run.json`.
    """
    if (record.get("verdict") or {}).get("kept") == "start":  # the untouched encoder scored them
        return ""
    if "refit" in record:
        return (
            "The development pairs were scored after a first round of training, which left them out. The model itself "
            "averages the weights of that round and of a second one on all pairs."
        )
    if "folds" in record:
        return (
            "Each development pair was scored by a model that was not trained on it, in "
            f"{record['folds']['count']} folds. The model itself was trained on all pairs."
        )
    return ""


def _measure(
    scores: np.ndarray, gold_scores: np.ndarray, sources: np.ndarray | None, groups: np.ndarray | None
) -> SeedScores:
    """Spearman's correlation of one model, the mean over the corpora."""
    parts = {str(number): rows for number, rows in enumerate(rows_by_source(gold_scores, sources))}
    table = {
        "score": scores,
        "gold_score": gold_scores,
        "group": np.arange(len(gold_scores)) if groups is None else groups,
    }
    return measure_parts([table], ["score"], parts, {"mean": list(parts)}, trains=False)["score"]["mean"]
