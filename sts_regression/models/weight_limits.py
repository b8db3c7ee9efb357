"""Refuses configurations that ask for far more weights than the files hold, before they cost time or memory."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch.nn.modules.module import register_module_parameter_registration_hook

from sts_regression.basics.files import reading
from sts_regression.models.sentence_transformers_files import find_file, read_object

WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
# Two weights may be packed into a byte, and a layer may create a parameter twice. A tiny model needs no limit.
WEIGHTS_SLACK, SMALL_MODEL_TENSORS, SMALL_MODEL_WEIGHTS = 4, 4096, 2**24
TENSOR_BYTES = 64  # the least size of a tensor and its name in a pickle, which is never opened to count tensors
LISTED = ("layer", "num_labels")  # a configuration makes lists of these lengths as soon as it is read
LONGEST_LIST = 2**16


def check_listed(options: Mapping[str, Any]) -> None:
    """
    Refuses impossible numbers of layers and labels, before a configuration makes lists of that length.

    Args:
        options: the content of a `config.json`.

    Raises:
        ValueError: for such a number; the message names the entry.
    """
    for name, value in options.items():
        if isinstance(value, Mapping):
            check_listed(value)
        elif isinstance(value, int) and value > LONGEST_LIST and any(part in name for part in LISTED):
            raise ValueError(f"its config.json asks for `{name}` {value:,}, more than {LONGEST_LIST:,}")


@contextmanager
def within_weights(path: str, revision: str = "main", folders: Sequence[str] = ("",)) -> Iterator[None]:
    """
    Stops the construction of a model as soon as it grows far larger than the weights that it will read.

    Args:
        path: Hub id or folder.
        revision: branch, tag or commit on the Hub.
        folders: folders within it that hold weights.

    Raises:
        ValueError: if the configuration asks for far more weights than the files hold.
    """
    files = [file for folder in folders for file in _weight_files(path, revision, folder)]
    max_tensors = max(SMALL_MODEL_TENSORS, WEIGHTS_SLACK * sum(map(_num_tensors, files)))
    max_weights = max(SMALL_MODEL_WEIGHTS, WEIGHTS_SLACK * sum(file.stat().st_size for file in files))
    num_tensors = num_weights = 0
    thread = threading.get_ident()

    def count(module: torch.nn.Module, name: str, parameter: torch.nn.Parameter | None) -> None:
        nonlocal num_tensors, num_weights
        # Models are built on the device `meta`, without memory; weights that are read later were counted then.
        if parameter is None or not parameter.is_meta or threading.get_ident() != thread:
            return
        num_tensors, num_weights = num_tensors + 1, num_weights + parameter.numel()
        if num_tensors > max_tensors or num_weights > max_weights:
            raise ValueError(
                f"its config.json asks for {num_weights:,} weights in {num_tensors:,} tensors or more, and its "
                f"weights are {', '.join(file.name for file in files[:3])} of "
                f"{sum(file.stat().st_size for file in files):,} bytes. One of the files is damaged or was changed."
            )

    if not files:  # loading the model reports that
        yield
        return
    handle = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        handle.remove()


def _weight_files(path: str, revision: str, folder: str) -> list[Path]:
    """The weight files that transformers would read: the first format found, whole or in parts."""
    for name in (f"{folder}/{name}".lstrip("/") for name in WEIGHT_FILES):
        if (whole := find_file(path, name, revision)) is not None:
            return [whole]
        parts = (read_object(path, f"{name}.index.json", revision) or {}).get("weight_map")
        if isinstance(parts, dict):
            found = (
                find_file(path, f"{folder}/{part}".lstrip("/"), revision) for part in dict.fromkeys(parts.values())
            )
            return [part for part in found if part is not None]
    return []


def _num_tensors(file: Path) -> int:
    if file.suffix == ".safetensors":
        try:
            with reading(file), safe_open(file, framework="pt") as opened:
                return len(opened.keys())
        except SafetensorError as error:
            raise ValueError(f"{file.name} is damaged ({error}). Fetch or save it again.") from error
    return file.stat().st_size // TENSOR_BYTES
