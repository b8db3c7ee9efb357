"""The end of a run: its lines on the console, its record, its report and card, and the files that it deletes."""

import logging
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sts_regression.basics.tables import read_record, results_on_screen
from sts_regression.command.stages import Stage
from sts_regression.data.columns import numbers_of
from sts_regression.data.splits import Splits
from sts_regression.evaluation.plots import plot_loss_curve, plot_scores
from sts_regression.evaluation.report_page import report_page, write_report_page
from sts_regression.grading.in_checkpoints import in_words
from sts_regression.hub.model_card import usage_example, write_model_card
from sts_regression.models.loading import ModelSource
from sts_regression.outcome import Outcome, reversed_splits
from sts_regression.training.checkpoints import delete_checkpoints
from sts_regression.training.inner_runs import drop_weights, leave_scores, leave_weights
from sts_regression.training.run_folder import CARD_FILE, REPORT_PAGE, RUN_FILE
from sts_regression.training.run_record import (
    describe_loaded_model,
    describe_stages,
    describe_training,
    peak_memory_bytes,
    write_run_record,
)
from sts_regression.training.trainer import STSTrainer

logger = logging.getLogger(__name__)


def tell_outcome(stage: Stage, outcome: Outcome, suggests_folds: bool) -> None:
    """Logs measures, verdict, expected gain and grades; if intervals lack pairs, `folds` may be suggested."""
    is_repeated = stage.fold is not None and stage.data_args.trains_twice  # by the training on all pairs
    if outcome.scored and not is_repeated:
        logger.info("\n" + results_on_screen(outcome.results))
        for finding in reversed_splits(outcome):
            logger.info(f"\n{finding}")
    if outcome.verdict is not None:
        logger.info(f"\n{outcome.verdict}")
    if outcome.curve is not None:
        logger.info(f"\n{outcome.curve}")
    if outcome.grading is not None:
        logger.info("\n" + in_words(outcome.grading))
        if outcome.grading.no_intervals and suggests_folds:
            logger.info("`--folds 5` cross-validates, and learns grades from all pairs.")


def describe_outcome(
    stage: Stage,
    trainer: STSTrainer,
    source: ModelSource,
    outcome: Outcome,
    stages_before: Sequence[Path],
    seconds: float,
) -> dict[str, Any]:
    """
    The last part of the run's record: model, training, results, costs.

    Args:
        stage: the options.
        trainer: the Trainer, with the model at the end.
        source: the model that the run, or the first of its stages, began with.
        outcome: the outcome of the run.
        stages_before: the folders of the stages before this one.
        seconds: the duration of the run.
    """
    training, verdict, grading = outcome.training, outcome.verdict, outcome.grading
    record = {
        "model": describe_loaded_model(trainer.model, source),
        "training": None if training is None else describe_training(training.metrics, trainer),
        "results": outcome.results,
        "results_by_set": outcome.results_by_set,
        "verdict": None if verdict is None else verdict.to_dict(),
        "grading": None if grading is None else grading.to_dict(),
        "stages": describe_stages(stages_before),
        "seconds": seconds,
        "peak_memory_bytes": peak_memory_bytes(),
    }
    if outcome.folds is not None:
        record["refit" if stage.data_args.trains_twice else "folds"] = outcome.folds.record
    if outcome.curve is not None:
        record["learning_curve"] = asdict(outcome.curve)
    if stage.start is not None and (stage.start / RUN_FILE).is_file():
        record["bundled_pairs"] = read_record(stage.start / RUN_FILE)
    return record


def conclude(
    stage: Stage,
    trainer: STSTrainer,
    splits: Splits,
    outcome: Outcome,
    record: dict[str, Any],
    is_last: bool,
    tells_usage: bool,
) -> None:
    """
    Writes record, report and card of a run, and deletes files that a finished run does not need.

    Args:
        stage: the options.
        trainer: the Trainer, with the model at the end.
        splits: the pairs, with their labels.
        outcome: the outcome of the run.
        record: the content of `run.json`.
        is_last: whether no run of the command follows, which would start from the same weights.
        tells_usage: whether to log how to use the model.
    """
    if outcome.scored or "sts_tasks" in record:
        if not stage.keeps_model:
            if stage.data_args.refit:
                leave_weights(stage.folder, trainer.model)
            leave_scores(stage.folder, outcome.untrained["validation"], outcome.scored["validation"])
        write_run_record(record, stage.folder)
    if outcome.training is None:
        return
    if stage.keeps_model:
        usage = present(stage, trainer, splits, outcome, record)
        start = [stage.start] if is_last and stage.start is not None else []
        for folder in (*stage.averaged, *start):
            drop_weights(folder)  # not before the run is finished: it may be resumed
        if tells_usage:
            logger.info(usage)
    drop_checkpoints(stage)


def present(stage: Stage, trainer: STSTrainer, splits: Splits, outcome: Outcome, record: Mapping[str, Any]) -> str:
    """
    Draws the plots of a training run, and writes its report and model card.

    Args:
        stage: the options.
        trainer: the Trainer, with the trained model.
        splits: the pairs, with their labels.
        outcome: the scores before and after training.
        record: the content of `run.json`.

    Returns:
        The files, and how to use the model, for people.
    """
    config, output_dir, split = trainer.model.config, stage.folder, splits.scored[-1]
    before, after = outcome.untrained.get(split), outcome.scored[split]
    labels = {name: numbers_of(pairs, "label") for name, pairs in splits.pairs.items()}
    first = splits.pairs["train"][0]
    example = usage_example(str(output_dir), config.head_is_trained, (first["sentence1"], first["sentence2"]))
    plot_loss_curve(trainer.state.log_history, output_dir / "loss_curve.png")
    plot_scores(after, labels[split].tolist(), output_dir / "scores.png", split, config.label_step)
    page = report_page(
        output_dir.resolve().name,
        record,
        splits.pairs[split],
        before=before,
        after=after,
        config=config,
        split=split,
        labels=labels,
        log_history=trainer.state.log_history,
        usage=textwrap.dedent(example),
    )
    write_report_page(page, output_dir / REPORT_PAGE)
    write_model_card(output_dir)
    files = f"\nCheckpoint: {output_dir}\nReport: {output_dir / REPORT_PAGE}\nModel card: {output_dir / CARD_FILE}"
    of_file = ""
    if config.head_is_trained:
        options = f"--model_name_or_path {shlex.quote(str(output_dir))} --predict_file new_pairs.csv"
        for name in ("sentence1_column", "sentence2_column"):
            if (column := getattr(stage.data_args, name)) is not None:
                options += f" --{name} {shlex.quote(column)}"
        of_file = f"\n\nGrade the pairs of a file:\n\n    sts-regression predict {options}"
    return f"{files}{of_file}\n\nGrade a pair in Python:\n\n{example}"


def drop_checkpoints(stage: Stage) -> None:
    """Deletes the checkpoints of a finished training, unless the user asked for them."""
    if stage.drops_checkpoints and stage.training_args.should_save:
        delete_checkpoints(stage.folder)
