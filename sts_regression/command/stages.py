"""The runs that a command consists of: the stages of a recipe, and inner runs within a stage."""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset
from transformers.trainer_utils import IntervalStrategy, SaveStrategy

from sts_regression.data.splits import CURVE_SHARES
from sts_regression.options.data_arguments import DataArguments
from sts_regression.options.model_arguments import ModelArguments
from sts_regression.training.run_folder import resumes_last
from sts_regression.training.training_arguments import MEASURED_SCHEDULES, STSTrainingArguments, name_of

# Options of the pairs that do not change which labelled pairs a run reads.
OTHER_THAN_PAIRS = ("predict_file", "predict_output", "refit")
SOUP_SEED_STEP = 1000  # between members of a model soup, so that soups of seeds 1, 2, … share no member


class Stage(NamedTuple):
    """The options of a run, or of one of the stages that a recipe asks for."""

    model_args: ModelArguments
    data_args: DataArguments
    training_args: STSTrainingArguments
    members: tuple[Path, ...] = ()  # folders of earlier runs, whose weights are averaged instead of training
    fold: int | None = None  # from 1: the part of the training pairs that is scored and not trained on; 1 with `refit`
    share: float | None = None  # the share of the training pairs to train on; `None` for all
    inner: tuple[Path, ...] = ()  # folders of earlier runs that leave scores and, with `refit`, weights
    start: Path | None = None  # folder of the training on bundled pairs, whose weights this training starts from
    is_bundled: bool = False  # whether this is the training on bundled pairs
    repeats_pairs: bool = False  # whether an earlier run of the same command has read and reported the same pairs
    repeats_training: bool = False  # whether an earlier run of the same command has trained on the same pairs
    drops_checkpoints: bool = False  # whether checkpoints serve to resume only, and go once the run is finished
    untouched: ModelArguments | None = None  # in a later stage, the options of the first, which name its model

    @property
    def options(self) -> tuple[ModelArguments, DataArguments, STSTrainingArguments]:
        """The options of the model, the pairs and the training."""
        return self.model_args, self.data_args, self.training_args

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return Path(self.training_args.output_dir or "")

    @property
    def keeps_model(self) -> bool:
        """Whether the trained model is kept; inner runs are trained only for scores of the development pairs."""
        return self.fold is None and self.share is None and not self.is_bundled

    @property
    def averaged(self) -> tuple[Path, ...]:
        """With `refit`, the folders of trainings that leave pairs out, if this is the one on all pairs."""
        return self.inner if self.data_args.refit else ()

    @property
    def about(self) -> str:
        """The purpose, for the line that begins a stage; empty for stages of a recipe and members of a soup."""
        if self.is_bundled:
            return ", on bundled pairs"
        if self.inner:
            return ", on all pairs"
        if self.share is not None:
            return f", on {100 * self.share:.0f} % of the pairs"
        if self.fold is None:
            return ""
        return f", without fold {self.fold}" if self.data_args.folds > 1 else ", without the held-out pairs"


def all_runs(stages: Sequence[Stage]) -> list[Stage]:
    """
    The stages of a command, with the inner runs that they ask for before them.

    Raises:
        ValueError: if stages ask for inner runs that other options do not allow.
    """
    if any(stage.data_args.bundled_pairs_first for stage in stages):
        _check_bundled_start(stages)
        runs = _after_bundled_pairs(stages[-1], _with_inner_runs(stages))
    else:
        runs = _with_inner_runs(stages)
    pairs = [_options_of_pairs(run) for run in runs]
    trained = [None if run.is_bundled else of_run for run, of_run in zip(runs, pairs, strict=True)]
    return [
        run._replace(repeats_pairs=of_run in pairs[:number], repeats_training=of_run in trained[:number])
        for number, (run, of_run) in enumerate(zip(runs, pairs, strict=True))
    ]


def _options_of_pairs(run: Stage) -> dict[str, Any]:
    """The options that name the labelled pairs of a run."""
    return {name: value for name, value in vars(run.data_args).items() if name not in OTHER_THAN_PAIRS}


def _with_inner_runs(stages: Sequence[Stage]) -> list[Stage]:
    """The stages, with the folds, shares, first training or members that they ask for before them."""
    if any(stage.data_args.folds > 1 for stage in stages):
        _check_inner("folds", stages)
        return _with_folds(stages[-1])
    if any(stage.data_args.learning_curve for stage in stages):
        _check_inner("learning_curve", stages)
        return _with_shares(stages[-1])
    if any(stage.data_args.trains_twice for stage in stages):
        _check_inner("refit", stages)
        return _with_first_training(stages[-1])
    return [part for stage in stages for part in _with_members(stage)]


def _check_bundled_start(stages: Sequence[Stage]) -> None:
    """Raises `ValueError` if the other options do not allow to train on bundled pairs first."""
    model_args, args = stages[-1].model_args, stages[-1].training_args
    reasons = {
        "a recipe with `stages` trains several times in a row. Name one without them": len(stages) > 1,
        "nothing is trained here. Leave it out": not args.do_train,
        "a cross-encoder has no cosine to train. Choose the bi-encoder": model_args.encoder_type == "cross-encoder",
        "`freeze_encoder` keeps the encoder as it is. Leave one of them out": model_args.freeze_encoder,
        "info_nce uses similar pairs only, which cannot judge the bundled start. Leave one of them out": (
            model_args.loss == "info_nce"
        ),
        "`use_peft` trains an adapter of the untouched encoder. Leave one of them out": model_args.use_peft,
    }
    _refuse("bundled_pairs_first", reasons)


def _after_bundled_pairs(last: Stage, stages: Sequence[Stage]) -> list[Stage]:
    """The training on bundled pairs, and the stages that start from its weights."""
    bundled = _inner(last, "bundled")._replace(is_bundled=True)
    bundled.data_args.refit = True  # reads all training pairs
    if not resumes_last(bundled.training_args):
        bundled.training_args.resume_from_checkpoint = None  # a checkpoint of another training
    return [bundled, *(stage._replace(start=bundled.folder) for stage in stages)]


def _with_members(stage: Stage) -> list[Stage]:
    """The members of a model soup, followed by the stage that averages them; any other stage alone."""
    if stage.training_args.model_soup == 1 or not stage.training_args.do_train:
        return [stage]
    members = []
    for number in range(stage.training_args.model_soup):
        member = _inner(stage, f"member-{number + 1}")
        first_seed = stage.training_args.data_seed
        first_seed = stage.training_args.seed if first_seed is None else first_seed
        member.training_args.data_seed = first_seed + SOUP_SEED_STEP * number
        member.training_args.model_soup, member.training_args.keep_start_if_better = 1, False
        members.append(member)
    return [*members, stage._replace(members=tuple(member.folder for member in members))]


def _with_folds(stage: Stage) -> list[Stage]:
    """The runs that leave out a part of the pairs each, and the run on all pairs. None chooses a checkpoint."""
    stage.training_args.eval_strategy = IntervalStrategy.NO
    stage.training_args.load_best_model_at_end = False
    numbers = range(1, stage.data_args.folds + 1)
    folds = [_inner(stage, f"fold-{number}")._replace(fold=number) for number in numbers]
    return [*folds, stage._replace(inner=tuple(fold.folder for fold in folds))]


def _with_first_training(stage: Stage) -> list[Stage]:
    """The run without the held-out pairs, and the run on all pairs, whose development scores would mean nothing."""
    first = _inner(stage, "first")._replace(fold=1)
    stage.training_args.eval_strategy = IntervalStrategy.NO
    return [first, stage._replace(inner=(first.folder,))]


def _with_shares(stage: Stage) -> list[Stage]:
    """The runs on a share of the pairs each, the smallest first, and the run on all pairs."""
    parts = [_inner(stage, name)._replace(share=share) for name, share in CURVE_SHARES.items()]
    return [*parts, stage._replace(inner=tuple(part.folder for part in parts))]


def _inner(stage: Stage, name: str) -> Stage:
    """A run with the options of another, in a folder within its folder. It predicts nothing."""
    options = (copy.copy(stage.model_args), copy.copy(stage.data_args), copy.copy(stage.training_args))
    inner = Stage(*options, drops_checkpoints=stage.drops_checkpoints, untouched=stage.untouched)
    inner.training_args.output_dir = str(stage.folder / name)
    inner.data_args.predict_file, inner.training_args.do_predict = None, False
    return inner


def could_fold(stage: Stage, given: Mapping[str, Dataset] | None) -> bool:
    """Whether a part of the training pairs is held out, and `folds` could score all of them instead."""
    _, data_args, args = stage.options
    named = (data_args.validation_file, data_args.validation_dataset_name, data_args.dataset_name)
    has_development = any(named) or (given is not None and "validation" in given)
    trains_often = data_args.folds > 1 or data_args.learning_curve or args.model_soup > 1
    chooses = args.save_strategy == SaveStrategy.BEST or name_of(args.lr_scheduler_type) in MEASURED_SCHEDULES
    return args.do_train and not (has_development or trains_often or chooses)


def can_refit(stage: Stage, given: Mapping[str, Dataset] | None) -> bool:
    """Whether trainings leave out a part of the training pairs, and the last one does not need it."""
    held_out = could_fold(stage, given) and not stage.training_args.load_best_model_at_end
    return held_out or stage.data_args.folds > 1


def _check_inner(option: str, stages: Sequence[Stage]) -> None:
    """Raises `ValueError` if an option asks for inner runs that the other options do not allow."""
    args = stages[-1].training_args
    schedule = name_of(args.lr_scheduler_type)
    has_no_development = option == "folds"
    has_shares = option == "learning_curve"
    reasons = {
        "a recipe with `stages` trains several times in a row. Name one without them": len(stages) > 1,
        "nothing is trained here. Leave it out": not args.do_train,
        "`model_soup` trains several times, too. Leave one of them out": args.model_soup > 1,
        "`max_steps` uses as many pairs in each of its runs. Give `num_train_epochs`": (
            has_shares and args.max_steps > 0
        ),
        f"`lr_scheduler_type` {schedule} follows development pairs. Name another one": (
            has_no_development and schedule in MEASURED_SCHEDULES
        ),
        "`save_strategy` best needs development pairs. Name another one": (
            has_no_development and args.save_strategy == SaveStrategy.BEST
        ),
        "`resume_from_checkpoint` would give all runs one checkpoint. Give `true`": (
            args.resume_from_checkpoint is not None and not resumes_last(args)
        ),
    }
    _refuse(option, reasons)


def _refuse(option: str, reasons: Mapping[str, bool]) -> None:
    """Raises `ValueError` with the first reason that holds, if any does."""
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    if reason is not None:
        raise ValueError(f"`{option}`: {reason}.")
