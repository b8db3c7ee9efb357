"""What is refused of options that transformers itself checks late or not at all: NaN, too low, no mapping."""

import dataclasses
import json
import math
from typing import Any

from sts_regression.file_rows import is_file

# Options of transformers that hold mappings, written as JSON; the latter three may be files of such.
MAPPING_OPTIONS = ("lr_scheduler_kwargs", "gradient_checkpointing_kwargs", "activation_checkpointing_kwargs")
MAPPING_FILE_OPTIONS = ("accelerator_config", "fsdp_config", "deepspeed")
LOWEST = {
    **dict.fromkeys(("learning_rate", "weight_decay", "max_grad_norm", "seed", "data_seed", "eval_delay"), 0),
    **dict.fromkeys(("adam_beta1", "adam_beta2", "adam_epsilon", "dataloader_num_workers", "num_train_epochs"), 0),
    **dict.fromkeys(("per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps"), 1),
}
MAX_SEED = 2**32 - 1  # NumPy's
HIGHEST = {"seed": MAX_SEED, "data_seed": MAX_SEED}


def check_finite(options: Any) -> None:
    """Refuses options that are NaN or infinite, as no option is meant to be: a `ValueError` that names the option."""
    for option in dataclasses.fields(options):
        value = getattr(options, option.name)
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, float) and not math.isfinite(number):
                raise ValueError(f"`{option.name}` must be a finite number, but is {number}.")


def check_ranges(options: Any) -> None:
    """Refuses options of training that are too low or too high: a `ValueError` that names the option."""
    for name, lowest in LOWEST.items():
        if (value := getattr(options, name)) is not None and value < lowest:
            raise ValueError(f"`{name}` must be at least {lowest}, but is {value}.")
    for name, highest in HIGHEST.items():
        if (value := getattr(options, name)) is not None and value > highest:
            raise ValueError(f"`{name}` must be at most {highest}, but is {value}.")


def check_mappings(options: Any) -> None:
    """Refuses what should be a mapping and is neither that nor, for some, a file: a `ValueError` that names it."""
    for name in (*MAPPING_OPTIONS, *MAPPING_FILE_OPTIONS):
        value, may_be_file = getattr(options, name, None), name in MAPPING_FILE_OPTIONS
        if isinstance(value, str) and not (may_be_file and is_file(value)) and not _is_json_mapping(value):
            or_file = " or the name of a file of it" if may_be_file else ""
            raise ValueError(f"`{name}` must be a mapping as JSON{or_file}, but is {value!r:.200}.")


def _is_json_mapping(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
