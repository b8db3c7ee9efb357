"""Complete checkpoints, even if a process is killed or a disk is full.

Trainer writes and deletes a checkpoint file by file. Here, a checkpoint has a mark while it is written, and loses
`trainer_state.json` first when it is deleted. Runs are never resumed from a checkpoint with the mark or without that
file. A seal holds the digests of its files, so damaged checkpoints are not used either.
"""

import math
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from accelerate import Accelerator
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, IntervalStrategy

from sts_regression.basics.files import first_line_of, sync
from sts_regression.basics.seals import SEAL_FILE, seal
from sts_regression.basics.stopping import end_by_signal, is_requested
from sts_regression.models.tokenization import SeededSampler

INCOMPLETE_MARK = "incomplete"  # in the folder of a checkpoint
CHECKPOINT_FILES = (INCOMPLETE_MARK, "*.json", "*.safetensors", "*.pt", "*.pth")  # one is left of half a checkpoint
STEPS_BETWEEN_SIGNALS = 10  # steps between checks for signals, with several accelerators
CHECKPOINT_PATTERN = re.compile(rf"{PREFIX_CHECKPOINT_DIR}-(\d+)")


@contextmanager
def explaining(folder: Path) -> Iterator[None]:
    """
    Turns any error of a library that cannot write into a `ValueError`.

    Raises:
        ValueError: if writing fails; the message names the folder, the reason and the remedy.
    """
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"{folder} cannot be written: {first_line_of(error)}. Earlier checkpoints are intact. Free disk space or "
            "fix the cause, then resume with `--resume_from_checkpoint true`."
        ) from error


@contextmanager
def writing_checkpoint(folder: Path) -> Iterator[None]:
    """Marks a checkpoint as incomplete until all of it is on the disk."""
    with explaining(folder):
        folder.mkdir(parents=True, exist_ok=True)
        mark = folder / INCOMPLETE_MARK
        mark.touch()
        (folder / SEAL_FILE).unlink(missing_ok=True)  # the seal of a checkpoint that is replaced
        sync(mark, folder)
        yield
        seal(folder, (path for path in folder.rglob("*") if path.is_file() and path != mark))
        sync(*(path for path in folder.rglob("*") if path.is_dir()), folder.parent)
        mark.unlink()
        sync(folder)


@contextmanager
def reading_state(checkpoint: str | Path | None) -> Iterator[None]:
    """
    Explains a training state that cannot be read, and replaces torch's advice to trust it.

    Raises:
        ValueError: for such a state; the message names the checkpoint and the remedy.
    """
    try:
        yield
    except (UnpicklingError, EOFError) as error:
        raise ValueError(
            f"{checkpoint}: the training state is damaged, or a pickle that holds more than tensors, which "
            "is never read. Delete this folder to resume from the previous checkpoint."
        ) from error


def is_whole(checkpoint: Path) -> bool:
    """Whether training can continue from a checkpoint: no process died while it wrote or deleted it."""
    return (checkpoint / TRAINER_STATE_NAME).is_file() and not (checkpoint / INCOMPLETE_MARK).exists()


def checkpoints(output_dir: Path) -> list[Path]:
    """The checkpoints of a run, complete or not, in the order of their steps."""
    found = {path: match for path in output_dir.glob("*") if (match := CHECKPOINT_PATTERN.fullmatch(path.name))}
    folders = [path for path in found if path.is_dir() and (_holds(path, *CHECKPOINT_FILES) or not _holds(path, "*"))]
    return sorted(folders, key=lambda path: int(found[path][1]))


def _holds(folder: Path, *patterns: str) -> bool:
    return any(next(folder.glob(pattern), None) for pattern in patterns)


def delete_checkpoint(checkpoint: Path) -> None:
    """Deletes a checkpoint. A half-deleted checkpoint never looks complete."""
    (checkpoint / TRAINER_STATE_NAME).unlink(missing_ok=True)
    sync(checkpoint)
    shutil.rmtree(checkpoint)


def delete_checkpoints(output_dir: Path) -> None:
    """Deletes all checkpoints of a run."""
    for checkpoint in checkpoints(output_dir):
        delete_checkpoint(checkpoint)


def delete_old_checkpoints(output_dir: Path, kept: Collection[Path], limit: int | None) -> None:
    """
    Deletes the oldest checkpoints, until no more than the limit are left.

    Args:
        output_dir: the run's folder.
        kept: checkpoints that stay, such as the latest and the best. They count towards the limit.
        limit: the largest number of checkpoints, at least 1; `None` for no limit.
    """
    others = sorted((path for path in checkpoints(output_dir) if path not in kept), key=os.path.getmtime)
    too_many = 0 if limit is None else len(others) + len(kept) - max(limit, len(kept))
    for checkpoint in others[: max(0, too_many)]:
        delete_checkpoint(checkpoint)


class FindBestCheckpoint(TrainerCallback):
    """Looks for the best checkpoint of a resumed run in its folder, which may have moved."""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Names the folder of the best step, if it is there."""
        best = Path(args.output_dir or "") / f"{PREFIX_CHECKPOINT_DIR}-{state.best_global_step}"
        if state.best_global_step and best.is_dir():
            state.best_model_checkpoint = str(best)


class OrderOfEpoch(TrainerCallback):
    """
    Sets the epoch of a sampler, see [`SeededSampler`].

    Within the loaders of accelerate, a sampler is not told the epoch of a resumed run if there are several processes.
    """

    def __init__(self, sampler_in_use: Callable[[], SeededSampler | None]) -> None:
        self.sampler_in_use = sampler_in_use

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Sets the epoch that begins, or in which the run was interrupted."""
        sampler = self.sampler_in_use()
        if sampler is not None and state.epoch is not None:
            sampler.set_epoch(math.floor(state.epoch))


class NoteFirstStep(TrainerCallback):
    """Records the step at which training began or was resumed."""

    num_steps = 0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Reads the step after Trainer has read the checkpoint."""
        self.num_steps = state.global_step


def _ends_epoch(state: TrainerState) -> bool:
    """Whether the step that was just taken is the last one of its epoch."""
    return float(state.epoch or 0).is_integer()


class EvaluateBeforeSaving(TrainerCallback):
    """
    Evaluates before a checkpoint that is due at the last step of an epoch, instead of after the epoch.

    A run that is resumed from this checkpoint begins with the next epoch, and would skip the evaluation.
    """

    last_step = 0

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Asks for the evaluation of the epoch; Trainer evaluates before it saves."""
        if args.eval_strategy == IntervalStrategy.EPOCH and control.should_save and _ends_epoch(state):
            control.should_evaluate, self.last_step = True, state.global_step

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Leaves out the evaluation that has been done."""
        if self.last_step == state.global_step:
            control.should_evaluate = False


def is_any_asked_to_stop(accelerator: Accelerator, step: int) -> bool:
    """
    Whether a signal asked any process to stop. All processes must call it at the same step.

    Args:
        accelerator: the accelerator of the training.
        step: number of the optimizer step. Several accelerators are asked only every few steps.
    """
    if not accelerator.use_distributed:
        return is_requested()
    # Checked more often, an accelerator would have to finish each step before the next is sent to it.
    if accelerator.device.type != "cpu" and step % STEPS_BETWEEN_SIGNALS:
        return False
    if is_requested():
        accelerator.set_trigger()
    return accelerator.check_trigger()


class StopWithCheckpoint(TrainerCallback):
    """
    Ends training after a step if a signal asked for it, with a checkpoint that resumes to bit-identical weights.

    If a checkpoint or an evaluation is due after that step, it comes first: a resumed run would skip it.
    """

    is_agreed = False  # whether all processes have agreed to stop

    def __init__(self, is_asked: Callable[[], bool], save: Callable[[], None]) -> None:
        """
        Args:
            is_asked: returns whether any process was asked to stop; called by all processes after each step.
            save: writes a checkpoint.
        """
        self.is_asked, self.save = is_asked, save

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Writes a checkpoint and stops, unless a checkpoint or an evaluation is due."""
        self.is_agreed = self.is_agreed or self.is_asked()
        of_epochs = IntervalStrategy.EPOCH in (args.save_strategy, args.eval_strategy) and _ends_epoch(state)
        if self.is_agreed and not (control.should_save or control.should_evaluate or of_epochs):
            self.save()
            self._stop(state)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Stops after a checkpoint that was due, unless it is the last one."""
        if self.is_agreed and state.global_step < state.max_steps:
            self._stop(state)

    def _stop(self, state: TrainerState) -> None:
        end_by_signal(f" after step {state.global_step:,} of {state.max_steps:,}")
