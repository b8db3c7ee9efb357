"""Stops a run whose loss or gradient is NaN or infinite, and names the step and its pairs.

On a CPU, every step is checked before it changes the weights. On an accelerator, each check would stall the device.
There, steps are checked together: when an entry of the loss curve is due, which stalls it anyway, before every
checkpoint, and at the end. No checkpoint is written after a step with NaN or infinite values.
"""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor
from torch.utils.data import DataLoader

from sts_regression.basics.tables import write_json

NUMERICS_FILE = "numerics.json"  # in the folder of the run
ROWS_SHOWN = 8
# With float16, a step is skipped now and then to find the scale of gradients, but never this many in a row.
SKIPPED_AT_MOST = 50


class Step(NamedTuple):
    """Losses and gradient norm of an optimizer step, kept as tensors so that nothing waits for them."""

    number: int  # from 1 on
    losses: Sequence[Tensor]  # one for each accumulated batch
    gradient_norm: Tensor | float


class NumericsCheck:
    """
    Checks steps for NaN and infinite values.

    Args:
        skips_steps: whether training skips steps with infinite gradients, as with float16.
    """

    def __init__(self, skips_steps: bool) -> None:
        self.skips_steps = skips_steps
        self._steps: list[Step] = []
        self._num_skipped = 0  # in a row

    def add(self, step: Step) -> None:
        """Records a step."""
        self._steps.append(step)

    def first_bad_step(self) -> dict[str, Any] | None:
        """Checks the steps since the last call. Returns number and values of the first bad step, or `None`."""
        steps, self._steps = self._steps, []
        for step in steps:
            losses, norm = [float(loss) for loss in step.losses], float(step.gradient_norm)
            bad_batches = [batch for batch, loss in enumerate(losses) if not math.isfinite(loss)]
            self._num_skipped = 0 if math.isfinite(norm) else self._num_skipped + 1
            is_skipped = self.skips_steps and not bad_batches and self._num_skipped <= SKIPPED_AT_MOST
            if bad_batches or not (math.isfinite(norm) or is_skipped):
                return {
                    "step": step.number,
                    "quantity": "loss" if bad_batches else "gradient",
                    "losses": losses,
                    "gradient_norm": norm,
                    "batches": bad_batches or list(range(len(losses))),
                }
        return None


def rows_of_batches(loader: DataLoader, step: int, batches: Sequence[int], num_accumulated: int) -> list[int]:
    """
    The rows of the training pairs in batches of a step, in this process. Their order is drawn once more.

    Args:
        loader: the loader of the training pairs.
        step: the number of the step, from 1 on.
        batches: numbers of batches within the step, from 0 on.
        num_accumulated: number of accumulated batches per step.
    """
    steps_per_epoch = -(-len(loader) // num_accumulated)
    epoch, within = divmod(step - 1, steps_per_epoch)
    loader.set_epoch(epoch)  # type: ignore[attr-defined] # accelerate's
    start = within * num_accumulated
    drawn = list(itertools.islice(iter(loader.batch_sampler or ()), start, start + num_accumulated))
    return [int(row) for batch in batches if batch < len(drawn) for row in drawn[batch]]


def raise_for_step(found: dict[str, Any], rows: list[int], folder: Path, precision: str, process_index: int) -> None:
    """
    Writes `numerics.json`, and ends training.

    Raises:
        ValueError: in any case; the message names step, rows and remedies.
    """
    path = folder / NUMERICS_FILE
    if process_index:
        path = path.with_stem(f"{path.stem}-{process_index}")
    report = {**found, "rows": rows, "precision": precision, "process": process_index}
    write_json({name: _as_json(value) for name, value in report.items()}, path)
    values = found["losses"] if found["quantity"] == "loss" else [found["gradient_norm"]]
    value = next(value for value in values if not math.isfinite(value))
    shown = ", ".join(map(str, rows[:ROWS_SHOWN])) + (
        f" and {len(rows) - ROWS_SHOWN} more" if rows[ROWS_SHOWN:] else ""
    )
    half = "" if precision == "no" else f", leave `--{precision}` out"
    raise ValueError(
        f"the {found['quantity']} is {value} in step {found['step']}, on rows {shown} of the training pairs; "
        f"{path} lists all of them. Look at these pairs, lower `--learning_rate` and `--head_learning_rate`{half}, "
        "or name another model if the first step fails: its weights may be damaged."
    )


def _as_json(value: Any) -> Any:
    """The value with NaN and infinite numbers as text, which JSON does not know."""
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
