"""What a training comes to: whether its model is kept, which score means which grade, what more pairs would bring."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from datasets import Dataset

from sts_regression.data.splits import Splits
from sts_regression.data.text_splits import group_by_text
from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.verdict import LearningCurve, Verdict, extrapolate, judge
from sts_regression.grading.grading import Grading, fit_grading
from sts_regression.grading.in_checkpoints import for_model
from sts_regression.training.inner_runs import SmallerRuns
from sts_regression.training.trainer import STSTrainer


class Outcome(NamedTuple):
    """
    What a training came to.

    Attributes:
        verdict: against the encoder that it began with; `None` if there is nothing to compare.
        curve: what more pairs would bring; `None` if nothing was trained on fewer.
        grading: what was learned of scores; `None` if there is nothing to learn from, or it is not wanted.
        scored: what the model that is kept says of the pairs of each split, as a user reads it.
    """

    verdict: Verdict | None
    curve: LearningCurve | None
    grading: Grading | None
    scored: dict[str, PairScores]


def score_splits(
    trainer: STSTrainer, splits: Splits, encoded: Mapping[str, Dataset], out_of_fold: PairScores | None = None
) -> dict[str, PairScores]:
    """
    What the model says of the pairs of each split that is scored.

    Args:
        trainer: of the model.
        splits: the pairs.
        encoded: the pairs as the model takes them.
        out_of_fold: scores of the development pairs that take the place of the model's.
    """
    known = {} if out_of_fold is None else {"validation": out_of_fold}
    return known | {split: trainer.score(encoded[split]) for split in splits.scored if split not in known}


def settle(
    trainer: STSTrainer,
    splits: Splits,
    encoded: Mapping[str, Dataset],
    untrained: Mapping[str, PairScores],
    scored: dict[str, PairScores],
    smaller: SmallerRuns | None = None,
) -> Outcome:
    """
    Decides by the development pairs which encoder is kept, and learns from them which score means which grade.

    Args:
        trainer: of the trained model, whose encoder and configuration may be changed.
        splits: the pairs, with their labels.
        encoded: the pairs as the model takes them.
        untrained: the scores of before; empty if nothing was scored then.
        scored: the scores of after, as the head gives them.
        smaller: what models say that were trained on fewer pairs.
    """
    curve = None if smaller is None else extrapolate_training(splits, untrained, scored, smaller)
    verdict = judge_training(trainer, splits, untrained, scored)
    if verdict is not None and verdict.kept == "start":
        scored = score_splits(trainer, splits, encoded)  # by an encoder that was trained on none of the pairs
    grading = learn_grades(trainer, splits, scored)
    mapped = {split: of_split.mapped(trainer.model.config.grading) for split, of_split in scored.items()}
    return Outcome(verdict, curve, grading, mapped)


def extrapolate_training(
    splits: Splits, untrained: Mapping[str, PairScores], scored: Mapping[str, PairScores], smaller: SmallerRuns
) -> LearningCurve:
    """
    Compares the trained model with those of fewer pairs, on development pairs.

    Args:
        splits: the pairs, with their labels.
        untrained: the scores of before.
        scored: the scores of after.
        smaller: likewise, of the other models.
    """
    return extrapolate(
        smaller.scores | {len(splits.pairs["train"]): scored["validation"]},
        untrained["validation"],
        *_what_to_measure(splits),
        smaller.seconds,
    )


def judge_training(
    trainer: STSTrainer, splits: Splits, untrained: Mapping[str, PairScores], scored: Mapping[str, PairScores]
) -> Verdict | None:
    """
    Compares the trained model with the encoder it began with, on development pairs, and goes back to that if it lost.

    Args:
        trainer: of the trained model.
        splits: the pairs, with their labels.
        untrained: the scores of before; empty if nothing was scored then.
        scored: the scores of after.
    """
    if "validation" not in untrained or splits.scale is None:
        return None
    verdict = judge(
        untrained["validation"],
        scored["validation"],
        *_what_to_measure(splits),
    )
    if verdict is not None and verdict.is_lost and trainer.args.keep_start_if_better:
        trainer.restore_start()
        verdict = replace(verdict, kept="start")
    return verdict


def _what_to_measure(splits: Splits) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, corpora and groups of shared texts of the development pairs, shape (pairs,) each."""
    pairs = splits.pairs["validation"][:]
    groups = group_by_text(pairs["sentence1"], pairs["sentence2"]).group_of_pair
    return np.asarray(pairs["label"]), splits.set_of_pair["validation"], groups


def learn_grades(trainer: STSTrainer, splits: Splits, scored: Mapping[str, PairScores]) -> Grading | None:
    """
    Learns from the development pairs which score means which grade, for the model's configuration.

    Args:
        trainer: of the trained model.
        splits: the pairs, with their labels.
        scored: what the model says of them.
    """
    level, config = trainer.args.interval_level, trainer.model.config
    if not level or "validation" not in scored or not config.head_is_trained:
        return None
    scores = scored["validation"].head
    assert scores is not None
    grading = fit_grading(scores, splits.pairs["validation"][:]["label"], config.label_values, level)
    config.grading = for_model(grading)
    return grading
