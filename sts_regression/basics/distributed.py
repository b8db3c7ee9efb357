"""What one process of several has to know of the others: its share of the cores, its part of a loss, when to speak."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from accelerate import Accelerator
from accelerate.utils import parse_flag_from_env
from torch import Tensor, nn

SECONDS_TO_SPEAK = 15.0  # that the first process has, before the others tell an error


def set_cpu_threads(cpu_threads: int | None) -> None:
    """
    Lets this process use `cpu_threads` threads, or its share of the cores where a launcher cut it down to one.

    `accelerate launch` and `torchrun` set OMP_NUM_THREADS=1 unless told otherwise, which halves the speed of two
    cores, and costs more with more of them.
    """
    launched = "ACCELERATE_MIXED_PRECISION" in os.environ or "LOCAL_WORLD_SIZE" in os.environ
    if cpu_threads is None and launched and os.environ.get("OMP_NUM_THREADS") == "1":
        cpu_threads = max(1, available_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    if cpu_threads is not None:
        torch.set_num_threads(cpu_threads)


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def let_first_speak() -> None:
    """
    Waits, unless this is the first of several processes or the only one.

    An error of the input is met by all of them. When the first has told it and ended, the launcher ends the others.
    """
    if int(os.environ.get("RANK", "0")) > 0:
        time.sleep(SECONDS_TO_SPEAK)


def joint_loss(accelerator: Accelerator, loss_function: Callable[..., Tensor], *values: Tensor | None) -> Tensor:
    """
    A loss that compares the pairs of a batch with each other, of the batches of all processes as if they were one.

    Its gradient is that of this process's values times the number of processes: DDP takes the mean of theirs.

    Args:
        accelerator: knows the other processes.
        loss_function: of the values.
        values: of this process's pairs, each of shape `(batch, …)`, with the same batch in every process.

    Returns:
        `Tensor` of shape `()`, the same in every process.
    """
    if accelerator.num_processes == 1:
        return loss_function(*values)
    joined = []
    for value in values:
        if value is not None:
            parts = list(accelerator.gather(value.detach()).chunk(accelerator.num_processes))
            parts[accelerator.process_index] = value
            value = torch.cat(parts)
        joined.append(value)
    loss = loss_function(*joined)
    return loss.detach() + accelerator.num_processes * (loss - loss.detach())


@contextmanager
def of_class(model: nn.Module, model_class: type[nn.Module]) -> Iterator[None]:
    """Gives a model its class back while it is saved: FSDP2 derives another from it, whose code would be saved."""
    derived = type(model)
    model.__class__ = model_class
    try:
        yield
    finally:
        model.__class__ = derived


def weights_split_by() -> str:
    """What splits the model up among processes: "FSDP", "DeepSpeed", or "" if each of them holds the whole model."""
    return next((name for name in ("FSDP", "DeepSpeed") if parse_flag_from_env(f"ACCELERATE_USE_{name.upper()}")), "")
