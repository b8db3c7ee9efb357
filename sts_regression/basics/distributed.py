"""Coordination of several processes: their shares of the cores, joint losses, and who reports an error."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from accelerate import Accelerator
from accelerate.utils import parse_flag_from_env
from torch import Tensor, nn
from transformers.integrations import deepspeed as deepspeed_state

SECONDS_TO_SPEAK = 15.0  # the first process has this long to report an error before the others do


def set_cpu_threads(cpu_threads: int | None) -> None:
    """
    Sets the number of threads to `cpu_threads`, or to a share of the cores if a launcher has set it to one.

    `accelerate launch` and `torchrun` set OMP_NUM_THREADS=1 by default, which halves the speed on two cores and costs
    more on machines with more cores.
    """
    launched = "ACCELERATE_MIXED_PRECISION" in os.environ or "LOCAL_WORLD_SIZE" in os.environ
    if cpu_threads is None and launched and os.environ.get("OMP_NUM_THREADS") == "1":
        cpu_threads = max(1, available_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    if cpu_threads is not None:
        torch.set_num_threads(cpu_threads)


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def let_first_speak() -> None:
    """
    Waits, unless this is the first of several processes or the only one.

    All processes meet an error in the input. When the first has reported it and ended, the launcher ends the others.
    """
    if int(os.environ.get("RANK", "0")) > 0:
        time.sleep(SECONDS_TO_SPEAK)


def leave_process_group() -> None:
    """Ends the process group, if there is one. Otherwise its threads sometimes abort a process that is done."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def joint_loss(accelerator: Accelerator, loss_function: Callable[..., Tensor], *values: Tensor | None) -> Tensor:
    """
    A loss that compares pairs with each other, over the batches of all processes as if they were one batch.

    Its gradient is the gradient of this process's values times the number of processes, since DDP averages gradients.

    Args:
        accelerator: the accelerator, which knows the other processes.
        loss_function: a function of the values.
        values: values of this process's pairs, shape `(batch, …)` each, with the same batch size in every process.

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
    """Restores a model's class while it is saved: FSDP2 derives another class, whose code would be saved instead."""
    derived = type(model)
    model.__class__ = model_class
    try:
        yield
    finally:
        model.__class__ = derived


def weights_split_by() -> str:
    """The library that splits the model among processes, "FSDP" or "DeepSpeed"; "" if each holds the whole model."""
    return next((name for name in ("FSDP", "DeepSpeed") if parse_flag_from_env(f"ACCELERATE_USE_{name.upper()}")), "")


@contextmanager
def load_whole_weights() -> Iterator[None]:
    """
    Loads models whole, although DeepSpeed will split them.

    With ZeRO-3, transformers would split them while it loads them. Nothing could then check that they encode texts.
    """
    config = deepspeed_state._hf_deepspeed_config_weak_ref
    deepspeed_state.unset_hf_deepspeed_config()
    try:
        yield
    finally:
        deepspeed_state._hf_deepspeed_config_weak_ref = config
