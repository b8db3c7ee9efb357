"""The outcome of a run: scores, measures, whether the model is kept, grades, and the gain from more pairs."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from datasets import Dataset
from transformers.trainer_utils import TrainOutput

from sts_regression.basics.quiet import draws_bars
from sts_regression.command.stages import Stage
from sts_regression.data.columns import numbers_of, texts_of
from sts_regression.data.data_report import reversal_findings
from sts_regression.data.leakage import pair_keys
from sts_regression.data.sources import held_out_of
from sts_regression.data.splits import Splits
from sts_regression.data.text_splits import MIN_HELD_OUT_PAIRS, groups_to_resample
from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.split_measures import measure_splits
from sts_regression.evaluation.verdict import LearningCurve, Verdict, extrapolate, judge
from sts_regression.grading.grading import Grading, fit_grading
from sts_regression.grading.in_checkpoints import for_model
from sts_regression.models.encoding import model_scorer
from sts_regression.models.loading import load_model, resolve_max_seq_length
from sts_regression.options.model_arguments import ModelArguments
from sts_regression.preparation import Inputs, count_pairs
from sts_regression.training.inner_runs import OutOfFold, SmallerRuns
from sts_regression.training.trainer import STSTrainer

logger = logging.getLogger(__name__)

ENCODER_OPTIONS = ("pooling", "encoding", "sentence1_prefix", "sentence2_prefix")  # that change cosines
SIDES = ("sentence1", "sentence2")
FITTED_MEASURES = ("pearson", "accuracy", "macro_f1", "mae", "quadratic_kappa")  # of scores and grades, not of ranks


@dataclass
class Outcome:
    """
    The outcome of a run, filled in step by step.

    Attributes:
        folds: scores of the development pairs by inner runs that were not trained on them; `None` without such runs.
        untrained: scores of each split before training; empty if nothing was scored then.
        training: the number of steps, and their duration; `None` if nothing was trained.
        scored: scores of each split by the model that is kept, after the learned map.
        results: measures by state of the model ("before training", …) and split.
        results_by_set: measures by state of the model, split and corpus.
        verdict: the comparison with the untouched encoder; `None` if there is nothing to compare.
        curve: the expected gain from more pairs; `None` if no model was trained on fewer pairs.
        grading: the learned map from scores to grades; `None` without development pairs, or if it is turned off.
    """

    folds: OutOfFold | None = None
    untrained: dict[str, PairScores] = field(default_factory=dict)
    training: TrainOutput | None = None
    scored: dict[str, PairScores] = field(default_factory=dict)
    results: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    results_by_set: dict[str, dict[str, dict[str, dict[str, float]]]] = field(default_factory=dict)
    verdict: Verdict | None = None
    curve: LearningCurve | None = None
    grading: Grading | None = None


def score_splits(
    trainer: STSTrainer,
    splits: Splits,
    encoded: Mapping[str, Dataset],
    when: str,
    out_of_fold: PairScores | None = None,
) -> dict[str, PairScores]:
    """
    The model's scores of each split that is scored.

    Args:
        trainer: the Trainer, with the model.
        splits: the pairs.
        encoded: the pairs as inputs of the model.
        when: the end of the line that tells which pairs are scored, such as "after training".
        out_of_fold: scores of the development pairs that replace the model's.
    """
    known = {} if out_of_fold is None else {"validation": out_of_fold}
    pairs = {split: splits.pairs[split] for split in splits.scored if split not in known}
    if pairs:
        logger.info(f"Scoring {count_pairs(pairs)} {when}".rstrip())
    return known | {split: trainer.score(encoded[split]) for split in pairs}


def score_untouched(
    stage: Stage,
    trainer: STSTrainer,
    inputs: Inputs,
    encoded: Mapping[str, Dataset],
    out_of_fold: PairScores | None = None,
) -> dict[str, PairScores]:
    """
    The untouched encoder's scores of each split that is scored; none if training splits its weights first.

    Args:
        stage: the options.
        trainer: the Trainer, with the model before it is trained.
        inputs: the pairs, and the untouched encoder.
        encoded: the pairs as inputs of the model.
        out_of_fold: scores of the development pairs that replace the encoder's.
    """
    if trainer.splits_weights:
        return {}
    if stage.untouched is not None:
        return _score_by_another(trainer, inputs, stage.untouched)
    with trainer.untouched_encoder():
        return score_splits(trainer, inputs.splits, encoded, "before training", out_of_fold)


def _score_by_another(trainer: STSTrainer, inputs: Inputs, model_args: ModelArguments) -> dict[str, PairScores]:
    """The untouched encoder's cosines in a later stage, whose Trainer has a trained one; none for a cross-encoder."""
    splits = inputs.splits
    pairs = {split: splits.pairs[split] for split in splits.scored}
    if not pairs or trainer.model.config.encoder_type == "cross-encoder":
        return {}
    options = model_args.config_overrides()
    logger.info(f"Loading {inputs.untouched.name}")
    with torch.random.fork_rng(devices=[]):  # training does not depend on this model's new head
        model, tokenizer = load_model(
            inputs.untouched, {name: options[name] for name in ENCODER_OPTIONS if name in options}
        )
    tokenizer.model_max_length = resolve_max_seq_length(model, tokenizer, model_args.max_seq_length)
    scorer = model_scorer(model.to(trainer.args.device), tokenizer, draws_bars(trainer.args.disable_tqdm))
    logger.info(f"Scoring {count_pairs(pairs)} before training")
    with trainer.accelerator.autocast():
        return {
            split: PairScores(None, scorer(*(list(texts_of(some, side)) for side in SIDES))["cosine"])
            for split, some in pairs.items()
        }


def measure_outcome(
    outcome: Outcome,
    state: str,
    splits: Splits,
    scored: Mapping[str, PairScores],
    cut_points: Sequence[float] | None = None,
) -> None:
    """
    Measures scores, and adds the results to the outcome.

    Args:
        outcome: the outcome so far.
        state: the state of the model that gave the scores, such as "before training".
        splits: the pairs, with their labels.
        scored: the scores of each split.
        cut_points: cut points of the model, see [`measure_scores`].
    """
    results, by_set = measure_splits(splits, scored, cut_points)
    if outcome.grading is not None:
        replace_fitted_measures(results, by_set, outcome.grading)
    outcome.results[state], outcome.results_by_set[state] = results, by_set


def reversed_splits(outcome: Outcome) -> list[str]:
    """A sentence for each split whose labels contradict the scores of the model that is kept."""
    if not outcome.scored:
        return []
    measures = list(outcome.results.values())[-1]
    return [
        finding
        for split, scored in outcome.scored.items()
        for finding in reversal_of_scores(scored, measures[split], split)
    ]


def reversal_of_scores(scored: PairScores, measures: Mapping[str, float], split: str) -> list[str]:
    """The sentence of [`reversal_findings`] on the scores that a model returns, if their labels contradict them."""
    if scored.returned is None:
        return []
    spearman = measures.get("spearman_cosine" if scored.head is None else "spearman_head")
    return reversal_findings(spearman, len(scored.returned), "The scores", split)


def settle(
    outcome: Outcome,
    trainer: STSTrainer,
    splits: Splits,
    encoded: Mapping[str, Dataset],
    smaller: SmallerRuns | None = None,
) -> None:
    """
    Decides on the development pairs which encoder is kept, and learns from them how scores map to grades.

    Args:
        outcome: the outcome so far, with raw scores of the head after training. Gets verdict, curve and grading, and
            the scores of the model that is kept.
        trainer: the Trainer, with the trained model. Its encoder and configuration may be changed.
        splits: the pairs, with their labels.
        encoded: the pairs as inputs of the model.
        smaller: scores by models that were trained on fewer pairs.
    """
    untrained, scored = outcome.untrained, outcome.scored
    if smaller is not None:
        outcome.curve = extrapolate_training(splits, untrained, scored, smaller)
    outcome.verdict = judge_training(trainer, splits, untrained, scored)
    if outcome.verdict is not None and outcome.verdict.kept == "start":
        # by an encoder that was trained on none of the pairs
        scored = {split: trainer.score(encoded[split]) for split in splits.scored}
    outcome.grading = learn_grades(trainer, splits, scored)
    outcome.scored = {split: of_split.mapped(trainer.model.config.grading) for split, of_split in scored.items()}


def replace_fitted_measures(
    results: dict[str, dict[str, float]], by_set: dict[str, dict[str, dict[str, float]]], grading: Grading
) -> None:
    """
    Replaces measures of scores and grades on the development pairs, which these were fitted to, by cross-fitted ones.

    Rank correlations stay. Measures without a cross-fitted value are left out: all if there are too few pairs. If the
    grading was fitted to one of several sets, its set gets the cross-fitted values, and the measures of all sets
    together are left out.

    Args:
        results: measures by split, changed in place.
        by_set: measures by split and corpus, changed in place.
        grading: the result of fitting.
    """
    pooled = results["validation"]
    own = pooled if grading.source is None else by_set["validation"].get(grading.source, {})
    for name in [name for name in pooled if name.endswith("_head") and name.removesuffix("_head") in FITTED_MEASURES]:
        value = grading.report.get(name.removesuffix("_head"))
        pooled.pop(name)
        own.pop(name, None)
        if value is not None:
            own[name] = value


def extrapolate_training(
    splits: Splits, untrained: Mapping[str, PairScores], scored: Mapping[str, PairScores], smaller: SmallerRuns
) -> LearningCurve:
    """
    Compares the trained model with models trained on fewer pairs, on development pairs.

    Args:
        splits: the pairs, with their labels.
        untrained: scores before training.
        scored: scores after training.
        smaller: scores by the models trained on fewer pairs.
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
    Compares the trained model with the untouched encoder on development pairs; restores the latter if training lost.

    Args:
        trainer: the Trainer, with the trained model.
        splits: the pairs, with their labels.
        untrained: scores before training; empty if nothing was scored then.
        scored: scores after training.
    """
    if "validation" not in untrained or splits.scale is None:
        return None
    verdict = judge(
        untrained["validation"],
        scored["validation"],
        *_what_to_measure(splits),
    )
    if verdict is not None and verdict.is_lost and trainer.args.keep_start_if_better:
        trainer.restore_untouched()
        verdict = replace(verdict, kept="start")
    return verdict


def _what_to_measure(splits: Splits) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, corpora and groups of shared texts of the development pairs, shape (pairs,) each."""
    pairs = splits.pairs["validation"]
    groups = groups_to_resample(*(texts_of(pairs, side) for side in SIDES))
    return numbers_of(pairs, "label"), splits.set_of_pair["validation"], groups


def learn_grades(trainer: STSTrainer, splits: Splits, scored: Mapping[str, PairScores]) -> Grading | None:
    """
    Learns from the development pairs how scores map to grades, and sets `grading` of the model's configuration.

    Args:
        trainer: the Trainer, with the trained model.
        splits: the pairs, with their labels.
        scored: the model's scores of the pairs.
    """
    level, config = trainer.args.interval_level, trainer.model.config
    if not level or "validation" not in scored or not config.head_is_trained:
        return None
    scores = scored["validation"].head
    assert scores is not None
    grading = grade_first_source(splits, scores, config.label_values, level)
    config.grading = None if grading is None else for_model(grading)
    return grading


def grade_first_source(
    splits: Splits, scores: np.ndarray, label_values: Sequence[float], level: float
) -> Grading | None:
    """
    Fits a [`Grading`] to development pairs of the first source, whose scale is the model's.

    The same score means another grade in another source: intervals that were fitted to several sources would cover
    fewer labels of each than they claim.

    Args:
        splits: the pairs, with their labels.
        scores: raw scores of the development pairs, shape (pairs,).
        label_values: the grades, increasing.
        level: share of pairs whose label the intervals should cover.

    Returns:
        The grading; `None` if, of several sources, the first has too few development pairs, which is logged.
    """
    labels, set_of_pair, groups = _what_to_measure(splits)
    sets, first = splits.sets["validation"], splits.sets["train"][0].name
    is_first = held_out_of(sets[0].name) in (None, first)  # of a small source, no pair may have been held out
    rows = np.flatnonzero((set_of_pair == 0) & is_first)
    if len(rows) < len(labels) and (len(rows) < MIN_HELD_OUT_PAIRS or np.ptp(labels[rows]) == 0):
        logger.info(
            f"\nNo grades are learned: {sets[0].name if is_first else first}, the first source, has too few "
            f"development pairs ({len(rows)}) or only one label among them. Give others with `--validation_file`."
        )
        return None
    texts = splits.pairs["validation"].select(rows)
    num_different = len(np.unique(pair_keys(*(texts_of(texts, side) for side in SIDES))))
    grading = fit_grading(scores[rows], labels[rows], label_values, level, groups[rows], num_different)
    return replace(grading, source=sets[0].name if len(sets) > 1 else None)
