"""Options as fields of dataclasses."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any


def option(default: object = None, help: str = "", choices: Sequence[str | int] | None = None) -> Any:
    """A field with the text of its help, as HfArgumentParser wants it."""
    metadata: dict[str, object] = {"help": help}
    if choices is not None:
        metadata["choices"] = list(choices)
    return dataclasses.field(default=default, metadata=metadata)


def check_finite(options: Any) -> None:
    """Raises `ValueError` for the first option that is NaN or infinite."""
    for option in dataclasses.fields(options):
        value = getattr(options, option.name)
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, float) and not math.isfinite(number):
                raise ValueError(f"`{option.name}` must be a finite number, but is {number}.")
