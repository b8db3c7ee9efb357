"""The output of the training command while it runs: a progress bar, and a line for each evaluation."""

import logging
from collections.abc import Mapping
from typing import Any

from tqdm.auto import tqdm
from transformers import PrinterCallback, ProgressCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import TrainerControl, TrainerState
from transformers.utils import logging as transformers_logging

from sts_regression.basics.quiet import draws_bars
from sts_regression.basics.tables import percent
from sts_regression.training.training_arguments import CORRELATIONS

logger = logging.getLogger(__name__)

FALLBACKS = ("spearman_cosine", "spearman_head", "loss")  # if the measure that selects the best checkpoint is missing


class Console(TrainerCallback):
    """
    One progress bar at a time, of training or of scoring, and one line for each evaluation during training.

    It replaces the printing callbacks of transformers, see [`Console.attach`]. All other callbacks, such as experiment
    trackers, stay.

    Args:
        disable_tqdm: whether to draw no bar. Outside terminals and notebooks, no bar is drawn either.
    """

    def __init__(self, disable_tqdm: bool | None = False) -> None:
        self.draws_bars = draws_bars(disable_tqdm)
        self.is_training = False
        self._bar: tqdm | None = None
        self._losses: list[float] = []  # logged since the last evaluation

    def attach(self, trainer: Trainer) -> None:
        """Replaces transformers' own printing while [`quiet_libraries`] is in effect."""
        for printing in (PrinterCallback, ProgressCallback):
            trainer.remove_callback(printing)
        trainer.add_callback(self)
        if trainer.args.log_level == "passive":  # Trainer has turned on the warnings of the other processes
            transformers_logging.set_verbosity_error()

    def close(self) -> None:
        """Removes the bar from the screen, if there is one."""
        self.is_training = False
        self._end_bar()

    def _begin_bar(self, state: TrainerState, title: str, unit: str, total: int, done: int = 0) -> None:
        if self._bar is None and self.draws_bars and state.is_world_process_zero:
            self._bar = tqdm(total=total, initial=done, desc=title, unit=unit, leave=False, dynamic_ncols=True)

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Begins the bar of training, at the step from which a resumed run continues."""
        self._losses, self.is_training = [], True
        self._begin_bar(state, "training", "step", state.max_steps, state.global_step)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Advances the bar of training."""
        if self._bar is not None:
            self._bar.update(state.global_step - self._bar.n)

    def on_prediction_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Outside training, begins a bar of the pairs that are scored, or advances it."""
        loader = kwargs.get("eval_dataloader")
        if not self.is_training and loader is not None:
            self._begin_bar(state, "scoring", "batch", len(loader))
            if self._bar is not None:
                self._bar.update()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Records the loss."""
        if (loss := (logs or {}).get("loss")) is not None:
            self._losses.append(loss)

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        """During training, prints a line; otherwise ends the bar of the pairs that are scored."""
        if not self.is_training:
            self._end_bar()
        elif state.is_world_process_zero:
            logger.info(evaluation_line(state, self._losses, metrics or {}, args.metric_for_best_model))
            self._losses = []

    def on_predict(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, metrics: Any = None, **kwargs: Any
    ) -> None:
        """Ends the bar of the pairs that are scored."""
        if not self.is_training:
            self._end_bar()

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Ends the bar of training."""
        self.close()


def evaluation_line(
    state: TrainerState, losses: list[float], metrics: Mapping[str, float], selecting: str | None
) -> str:
    """
    A line such as `step 120 of 664 · loss 0.123 · development: Spearman 83.21`.

    Args:
        state: the state of the Trainer.
        losses: training losses logged since the last evaluation; the line shows their mean.
        metrics: measures of the development pairs, with the prefix `eval_`.
        selecting: the measure that selects the best checkpoint; the line shows it.
    """
    parts = [f"step {state.global_step:,} of {state.max_steps:,}"]
    if losses:
        parts.append(f"loss {sum(losses) / len(losses):.3f}")
    names = ((selecting or "").removeprefix("eval_"), *FALLBACKS)
    if (name := next((name for name in names if f"eval_{name}" in metrics), None)) is not None:
        parts.append(f"development: {_in_words(name, metrics[f'eval_{name}'])}")
    return " · ".join(parts)


def _in_words(name: str, value: float) -> str:
    measure, _, score = name.rpartition("_")
    if measure in CORRELATIONS:
        return f"{measure.capitalize()}{' of the head' if score == 'head' else ''} {percent(value)}"
    return f"{name.replace('_', ' ')} {value:.3f}"
