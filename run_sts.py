"""Trains, evaluates and applies a model of graded similarity.

    python run_sts.py --loss smooth_k2                            the quick start: bundled pairs, bundled MiniLM
    python run_sts.py recipes/clean_dev.yaml --sts_data FOLDER    a recipe; options override it
    python run_sts.py --train_file pairs.csv --grade_names irrelevant relevant "highly relevant"
    python run_sts.py --model_name_or_path outputs/pairs-smooth_k2 --predict_file new_pairs.csv
    python run_sts.py --do_eval --model_name_or_path MODEL --sts_data FOLDER       the seven STS tasks, for any encoder

`python run_sts.py --help` lists the options; `--help_all` also lists those of transformers' TrainingArguments.
"""

import atexit
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from sts_regression.command.command_help import PROGRAM, answer_help, check_inputs, collect_garbage, prepare_process

if __name__ == "__main__":
    answer_help()  # before torch is loaded, which takes seconds
    check_inputs()
    prepare_process()

from accelerate import PartialState
from datasets import Dataset
from tqdm.contrib.logging import logging_redirect_tqdm
from transformers import set_seed
from transformers.trainer_utils import TrainOutput

from sts_regression.basics.distributed import leave_process_group, let_first_speak, set_cpu_threads
from sts_regression.basics.files import alone_in
from sts_regression.basics.hub_tokens import without_tokens
from sts_regression.basics.input_files import check_files, named_files
from sts_regression.basics.quiet import PACKAGE, draws_bars, level_of, quiet_libraries
from sts_regression.basics.stopping import resumable
from sts_regression.bundled_start import train_on_bundled_pairs
from sts_regression.command.arguments import parse_stages
from sts_regression.command.stages import Stage, could_fold
from sts_regression.conclusion import conclude, describe_outcome, drop_checkpoints, tell_outcome
from sts_regression.console import Console
from sts_regression.data.data_report import report_findings, reversal_findings
from sts_regression.evaluation.split_measures import write_scores_of_test_pairs
from sts_regression.evaluation.sts_report import evaluate_sts_tasks
from sts_regression.hub.publish import publish
from sts_regression.hub.repository import check_repository
from sts_regression.models.encoding import model_scorer, sentence_transformers_scorer
from sts_regression.outcome import Outcome, measure_outcome, score_splits, score_untouched, settle
from sts_regression.preparation import (
    Inputs,
    check_whole_weights,
    describe_inputs,
    predictions_file,
    prepare_model,
    prepare_trainer,
    read_inputs,
    report_pairs,
    start_from_bundled,
    tell_stage,
)
from sts_regression.serving.pair_file import PairFile
from sts_regression.serving.prediction import write_predictions
from sts_regression.training.inner_runs import is_scored, read_out_of_fold, read_smaller_runs, take_weights
from sts_regression.training.run_folder import (
    begin_run,
    check_output_dir,
    check_same_inputs,
    checkpoint_to_resume,
    is_finished,
    note_segment,
)
from sts_regression.training.run_record import (
    describe_arguments,
    describe_determinism,
    identify_inputs,
    write_run_record,
)
from sts_regression.training.trainer import STSTrainer
from sts_regression.training.training_arguments import repository_of

logger = logging.getLogger(PACKAGE)


def main(argv: list[str] | None = None, prog: str = PROGRAM) -> None:
    """Runs the command with the given options, or those of the command line. Prints an error of `prog` in one line."""
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    try:
        with logging_redirect_tqdm():  # lines go above a progress bar
            run_stages(argv, is_read=True)
        atexit.register(leave_process_group)  # not at once: a program may call this function again
    except (ValueError, OSError) as error:
        if os.environ.get("STS_REGRESSION_TRACEBACK"):
            raise
        if isinstance(error, OSError):
            if error.errno is None:  # raised by a library, not by the system
                raise
            error = ValueError(
                f"{error}. Saved checkpoints are intact. Fix the cause and run the command again, with "
                "`--resume_from_checkpoint true` if it was training."
            )
        let_first_speak()
        one_line = " ".join(map(str.strip, f"{error}".splitlines()))  # transformers' messages may hold lists
        sys.exit(without_tokens(f"{prog}: error: {one_line}"))


def run_stages(
    argv: list[str] | None = None,
    given: Mapping[str, Dataset] | None = None,
    is_read: bool = False,
    speaks: bool = True,
) -> Path:
    """
    Trains, evaluates or predicts, in one stage or in several.

    Args:
        argv: words of a command line; `None` for those of this process.
        given: pairs in memory, by split, in place of those that options name.
        is_read: whether a person reads the output: libraries are then kept quiet, unless `verbose` is set.
        speaks: whether to log each phase of the run and its results.

    Returns:
        The folder of the run.

    Raises:
        ValueError: for options or pairs that cannot be used, before anything is written.
        OSError: if a file cannot be read or written.
    """
    stages = parse_stages(argv, given)
    check_stages(stages, given)
    last = stages[-1]
    repository = repository_of(last.training_args)  # read before Trainer is kept from publishing
    if repository is not None:
        check_repository(repository)
    command = sys.argv[1:] if argv is None else argv
    writes = (last.training_args.do_train or last.training_args.do_eval) and last.training_args.process_index == 0
    is_quiet = is_read and not last.training_args.verbose
    level = logging.DEBUG if last.training_args.verbose else logging.INFO
    if not (speaks and last.training_args.should_log):
        level = logging.ERROR
    with level_of(PACKAGE, level), resumable() if last.training_args.do_train else nullcontext():
        with alone_in(last.folder) if writes else nullcontext(), quiet_libraries() if is_quiet else nullcontext():
            for number, stage in enumerate(stages, start=1):
                earlier, later = stages[: number - 1], stages[number:]
                if stage.is_bundled:
                    train_on_bundled_pairs(stage, later, given)
                    PartialState().wait_for_everyone()  # the next run reads files of the first process
                else:
                    run(stage, command, earlier, later, given, is_quiet)
        if repository is not None and last.training_args.process_index == 0:
            logger.info("\n" + publish(last.folder, repository, last.model_args.license, last.model_args.language))
    return last.folder


def check_stages(stages: Sequence[Stage], given: Mapping[str, Dataset] | None = None) -> None:
    """
    Checks the files, the launcher and the folders of all stages before the first one begins.

    Raises:
        ValueError: for a missing file, and for a folder that cannot be used. Errors of the inputs come before the
            folder's, so that nobody clears a folder only to meet them afterwards.
    """
    for stage in stages:
        check_files(stage.data_args)
        check_whole_weights(stage)
    try:
        for stage in (stages[-1], *stages[:-1]):  # the folder that was named before those within it
            check_output_dir(
                stage.training_args,
                describe_arguments(*stage.options),
                (stage.untouched or stage.model_args).model_name_or_path,
                named_files(stage.data_args),
                outer=stages[-1].folder,
            )
    except ValueError:
        read_inputs(stages[0], given)
        raise


def run(
    stage: Stage,
    command: list[str],
    earlier: list[Stage],
    later: list[Stage],
    given: Mapping[str, Dataset] | None = None,
    is_quiet: bool = False,
) -> None:
    """
    Runs one stage: trains, evaluates or predicts.

    Args:
        stage: the options of the stage.
        command: the words of the command line.
        earlier: the stages before it.
        later: the stages after it. The last stage alone evaluates the STS tasks.
        given: pairs in memory, by split.
        is_quiet: whether our own progress bar and lines replace those of transformers.
    """
    started, count = time.perf_counter(), len(earlier) + 1 + len(later)
    set_seed(stage.training_args.seed)
    set_cpu_threads(stage.training_args.cpu_threads)
    if earlier:
        tell_stage(stage, len(earlier) + 1, count)
    # Errors in names, options or data are reported before anything is trained or written.
    inputs = read_inputs(stage, given)
    record = describe_inputs(stage, command, inputs)
    if inputs.foreign_modules:
        if stage.training_args.process_index == 0:
            record |= evaluate_foreign_model(stage, inputs)
            write_run_record({**record, "seconds": time.perf_counter() - started}, stage.folder)
        return
    model, tokenizer = prepare_model(stage, inputs)
    identity: dict[str, Any] = {}
    if stage.training_args.do_train:
        identity = identify_inputs(stage.data_args, record["data"], model, tokenizer)
        check_same_inputs(stage.training_args, identity, (later or [stage])[-1].folder)
        if is_finished(stage.training_args) or (not stage.keeps_model and is_scored(stage.training_args)):
            logger.info(f"{stage.folder} is already finished")
            drop_checkpoints(stage)  # the command may have been killed when it did so
            return
    report_pairs(stage, inputs, model, tokenizer)
    if not earlier:  # faults of the pairs concern the whole run
        tell_stage(stage, 1, count)
    untouched = start_from_bundled(stage, model)
    trainer, encoded = prepare_trainer(stage, inputs, model, tokenizer, untouched)
    record["environment"] |= describe_determinism(trainer.args)  # for some encoders, it trains in float32
    console = Console(stage.training_args.disable_tqdm)
    if is_quiet:
        console.attach(trainer)
    with closing(console):
        outcome = train_and_score(stage, trainer, inputs, encoded, record, identity, later)
    if inputs.new_pairs is not None:
        predict(stage, trainer, inputs.new_pairs)

    if not trainer.is_world_process_zero():
        return
    if "test" in outcome.scored:
        write_scores_of_test_pairs(inputs.splits, outcome.scored["test"], stage.folder)
    stages_before = [other.folder for other in earlier if other.keeps_model]
    tell_outcome(stage, outcome, suggests_folds=not stages_before and could_fold(stage, given))
    if inputs.sts_tasks and stage.training_args.do_eval and not later:
        record["sts_tasks"] = evaluate_model(stage, trainer, inputs)
    seconds = time.perf_counter() - started
    record |= describe_outcome(stage, trainer, inputs.untouched, outcome, stages_before, seconds)
    conclude(stage, trainer, inputs.splits, outcome, record, is_last=not later, tells_usage=given is None)


def train_and_score(
    stage: Stage,
    trainer: STSTrainer,
    inputs: Inputs,
    encoded: Mapping[str, Dataset],
    record: Mapping[str, Any],
    identity: Mapping[str, Any],
    later: list[Stage],
) -> Outcome:
    """
    Scores the pairs, with a training in between if the options ask for one, and saves a model that is kept.

    Args:
        stage: the options.
        trainer: the Trainer of this stage.
        inputs: the pairs, with their labels, and the untouched encoder.
        encoded: the pairs as inputs of the model.
        record, identity, later: see [`train`].
    """
    splits, outcome, smaller = inputs.splits, Outcome(), None
    if stage.inner:
        trainer.accelerator.wait_for_everyone()  # all processes read the files that the first one writes
        if stage.data_args.learning_curve:
            smaller = read_smaller_runs(stage.inner)
        else:
            outcome.folds = read_out_of_fold(stage.inner, splits)
    folds, when = outcome.folds, ""
    if stage.training_args.do_train:
        outcome.untrained = score_untouched(stage, trainer, inputs, encoded, folds and folds.before)
        measure_outcome(outcome, "before training", splits, outcome.untrained, trainer.model.config.cut_points)
        if outcome.untrained and not stage.repeats_training:
            development = outcome.results["before training"].get("validation", {}).get("spearman_cosine")
            findings = reversal_findings(development, len(splits.pairs["validation"]))
            report_findings(findings, stage.data_args.strict)
        outcome.training = train(stage, trainer, record, identity, later)
        when = "after training"
    outcome.scored = score_splits(trainer, splits, encoded, when, folds and folds.after)
    if outcome.training is not None and stage.keeps_model:
        settle(outcome, trainer, splits, encoded, smaller)
        trainer.save_model()
        trainer.accelerator.wait_for_everyone()  # the next stage reads files of the first process
    measure_outcome(outcome, when or "as loaded", splits, outcome.scored, trainer.model.config.cut_points)
    return outcome


def train(
    stage: Stage, trainer: STSTrainer, record: Mapping[str, Any], identity: Mapping[str, Any], later: list[Stage]
) -> TrainOutput:
    """
    Trains as the options say, and resumes from the last checkpoint if there is one.

    Args:
        stage: the options; Trainer has changed some of them.
        trainer: the Trainer of this stage.
        record: the environment, and the options as given, which must be the same when the run is resumed.
        identity: digests of pairs and model, which must also be the same.
        later: the stages after this one.
    """
    training_args = stage.training_args
    if training_args.should_save:
        begin_run(training_args, record["arguments"], identity)
        for other in later:
            begin_run(other.training_args, describe_arguments(*other.options))
    checkpoint = checkpoint_to_resume(training_args)
    if training_args.should_save:
        note_segment(stage.folder, checkpoint, record["environment"])
    num_pairs = f"{len(trainer.train_dataset):,} training pairs"  # type: ignore[arg-type] # there is one, with a length
    if stage.members:
        logger.info(f"Averaging {len(stage.members)} trained models")
        training = trainer.average(stage.members)
    elif training_args.head_solver == "lbfgs":
        logger.info(f"Solving for the head on {num_pairs}")
        training = trainer.solve_head()
    else:
        logger.info(f"Training on {num_pairs}" + (f", from {checkpoint} on" if checkpoint else ""))
        training = trainer.train(resume_from_checkpoint=checkpoint)
    if stage.averaged:
        trainer.average_with(map(take_weights, stage.averaged))
    return training


def predict(stage: Stage, trainer: STSTrainer, new_pairs: PairFile) -> None:
    """Writes the scores of new pairs."""
    data_args, training_args = stage.data_args, stage.training_args
    logger.info(f"Scoring the pairs of {data_args.predict_file}")
    write_predictions(
        new_pairs,
        trainer.model,
        trainer.processing_class,
        trainer.accelerator,
        path=predictions_file(stage),
        chunk_size=data_args.predict_chunk_size,
        overwrite=training_args.overwrite_output_dir,
        show_progress=draws_bars(training_args.disable_tqdm),
        backend=data_args.backend,
    )


def evaluate_model(stage: Stage, trainer: STSTrainer, inputs: Inputs) -> dict[str, Any]:
    """Evaluates the model on the STS tasks, writes their tables, and returns their entries of the record."""
    source, model, tokenizer = inputs.source, trainer.model, trainer.processing_class
    logger.info("Scoring the STS tasks")
    scorer = model_scorer(model, tokenizer, draws_bars(stage.training_args.disable_tqdm))
    name = stage.folder.name if stage.training_args.do_train else source.name
    with trainer.accelerator.autocast():  # in mixed precision if the development pairs were
        return evaluate_sts_tasks(inputs.sts_tasks, scorer, name, stage.folder)


def evaluate_foreign_model(stage: Stage, inputs: Inputs) -> dict[str, Any]:
    """As [`evaluate_model`], for a sentence-transformers model with modules that ours lacks; names them."""
    training_args, source = stage.training_args, inputs.source
    shows_progress = draws_bars(training_args.disable_tqdm)
    logger.info(f"Scoring the STS tasks with {source.name}")
    scorer = sentence_transformers_scorer(
        source.path, training_args.device, **source.hub_options, show_progress=shows_progress
    )
    name = source.name
    return {
        "model": {"base_model": name, "modules": inputs.foreign_modules},
        "sts_tasks": evaluate_sts_tasks(inputs.sts_tasks, scorer, name, stage.folder),
    }


if __name__ == "__main__":
    collect_garbage()
    main()
