"""What a training gained: the score that a user reads against the cosine of the encoder that training began with.

And what more pairs would bring it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from sts_regression.basics.tables import percent
from sts_regression.evaluation.bootstrap import bootstrap_spearman, confidence_interval
from sts_regression.evaluation.measures import PairScores, measure_scores, rows_by_source

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
        before: of the untouched encoder's cosine.
        after: of the score that the trained model returns.
        low, high: the 95 % interval of `after` less `before`, from a paired bootstrap over pairs.
        standard_error: of this difference, likewise.
        num_pairs: development pairs.
        kept: "trained", or "start" if the trained encoder was given up for the untouched one.
    """

    before: float
    after: float
    low: float
    high: float
    standard_error: float
    num_pairs: int
    kept: str = "trained"

    @property
    def difference(self) -> float:
        """`after` less `before`."""
        return self.after - self.before

    @property
    def outcome(self) -> str:
        """A key of `VERDICTS`."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "unclear"

    @property
    def is_lost(self) -> bool:
        """
        Whether the trained model is worse by more than one standard error (Breiman et al., 1984).

        Training helps more often than not. The sign alone of a difference on few pairs would give up many gains.
        """
        return self.difference < -self.standard_error

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for `run.json`."""
        return {**asdict(self), "difference": self.difference, "outcome": self.outcome}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Verdict":
        """The inverse of [`~Verdict.to_dict`]."""
        return cls(**{field.name: values[field.name] for field in fields(cls)})

    def __str__(self) -> str:
        text = (
            f"{self.num_pairs:,} development pairs: {100 * self.difference:+.2f} (95 % interval {100 * self.low:+.2f} "
            f"to {100 * self.high:+.2f}), from {percent(self.before)} to {percent(self.after)}: "
            f"{VERDICTS[self.outcome]}."
        )
        if self.kept == "start":
            text += " The untouched encoder is kept, for the trained one is worse by more than a standard error."
        return text


@dataclass(frozen=True)
class LearningCurve:
    """
    What twice as many training pairs would bring, by models trained on fewer of them.

    Spearman's correlations are those of the score that a user reads, means over the corpora of the development pairs.
    The interval is that of these pairs alone: it knows nothing of the variation between seeds, nor of the choice of
    pairs to train on.

    Attributes:
        points: `pairs` trained on and `spearman` of each model, ascending; 0 pairs are the untouched encoder's cosine.
        gain_of_doubling: slope of the least-squares line through the trained models, by log2 of the number of pairs.
        low, high: its 95 % interval, from a paired bootstrap over pairs.
        seconds: of the runs on fewer pairs.
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
            f"{low} to {high}, from the development pairs alone), by the line through a quarter, half and all of the "
            "pairs."
        )
        if self.low <= 0 <= self.high:
            text += " The interval includes 0: these development pairs cannot tell whether more pairs would help."
        return text


def extrapolate(
    trained: Mapping[int, PairScores],
    untouched: PairScores,
    gold_scores: np.ndarray,
    label_values: Sequence[float],
    sources: np.ndarray | None = None,
    seconds: float = 0.0,
) -> LearningCurve:
    """
    The learning curve of models that were trained on different numbers of the same pairs.

    Args:
        trained: scores of the development pairs, by the number of pairs that the model was trained on.
        untouched: scores of the untouched encoder, whose cosine is left out of the line.
        gold_scores: labels of shape (pairs,).
        label_values: nodes of the scale.
        sources: the corpus of each pair, see [`measure_scores`].
        seconds: that the models cost.
    """
    by_size = {0: untouched.cosine} | {size: scores.returned for size, scores in sorted(trained.items())}
    known = {size: scores for size, scores in by_size.items() if scores is not None}
    points = []
    for size, scores in known.items():
        measures = measure_scores(PairScores(scores, None), gold_scores, label_values, sources)
        points.append({"pairs": size, "spearman": measures["spearman_head"]})
    known.pop(0, None)
    doublings = np.log2(list(known))
    doublings -= doublings.mean()
    weights = doublings / (doublings @ doublings)  # of the correlations in the slope
    rows = rows_by_source(gold_scores, sources)
    samples = bootstrap_spearman(known, gold_scores, np.arange(len(gold_scores)), dict(enumerate(rows)))
    resampled = np.mean([list(of_part.values()) for of_part in samples.values()], axis=0)  # (models, resamples)
    low, high = confidence_interval(weights @ (resampled - resampled[-1]))  # exactly 0 for models that rank alike
    measured = np.array([point["spearman"] for point in points[-len(known) :]])
    return LearningCurve(points, float(weights @ (measured - measured[-1])), low, high, seconds)


def judge(
    before: PairScores,
    after: PairScores,
    gold_scores: np.ndarray,
    label_values: Sequence[float],
    sources: np.ndarray | None = None,
) -> Verdict | None:
    """
    Compares a trained model with the encoder that it began with.

    Args:
        before: scores of the model before training.
        after: of the same pairs, after training.
        gold_scores: labels of shape (pairs,).
        label_values: nodes of the scale.
        sources: the corpus of each pair, see [`measure_scores`].

    Returns:
        `None` for a cross-encoder, which has nothing to compare before training.
    """
    untouched, returned = before.cosine, after.returned
    if untouched is None or returned is None:
        return None
    rows = rows_by_source(gold_scores, sources)
    scores = {"before": untouched, "after": returned}
    found = measure_scores(PairScores(head=returned, cosine=untouched), gold_scores, label_values, sources)
    samples = bootstrap_spearman(scores, gold_scores, np.arange(len(gold_scores)), dict(enumerate(rows)))
    differences = np.mean([of_part["after"] - of_part["before"] for of_part in samples.values()], axis=0)
    low, high = confidence_interval(differences)
    error = float(np.std(differences, ddof=1))
    return Verdict(found["spearman_cosine"], found["spearman_head"], low, high, error, len(gold_scores))
