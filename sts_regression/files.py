"""Files that a command writes: whole or not there, and never in place of its input or of somebody else's file."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def check_output(option: str, path: str | Path, inputs: Iterable[str | Path | None], remedy: str | None) -> None:
    """
    Refuses an output that is one of the command's inputs, and one that exists already.

    Args:
        option: that names the output, for messages.
        path: of the output.
        inputs: the files that the command reads; `None` and names that are no file are passed over.
        remedy: the option that replaces an existing file; `None` if it was given, or if the file is the command's own.

    Raises:
        ValueError: naming the file and the remedy.
    """
    path = Path(path)
    try:
        exists, is_folder = path.exists(), path.is_dir()
    except OSError as error:  # of a name that no file can have
        raise ValueError(f"`{option}` {str(path)!r:.200} cannot be written ({error.strerror}).") from error
    if is_folder:
        raise ValueError(f"`{option}` {str(path)!r} is a folder. Name a file in it.")
    if any(other is not None and is_same_place(path, other) for other in inputs):
        raise ValueError(f"`{option}` {str(path)!r} is one of the files to read. Name another file.")
    if exists and remedy is not None:
        raise ValueError(f"`{option}` {str(path)!r} exists. Name another file, or replace it with `{remedy}`.")


def is_same_place(first: str | Path, second: str | Path) -> bool:
    """Whether two names lead to one file or folder that is there."""
    try:
        return Path(first).exists() and Path(second).exists() and Path(first).samefile(second)
    except OSError:
        return False


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of another when it is whole and on the disk."""
    partial = path.with_name(f"{path.name}.partial")
    with naming(path):
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Adds a path to errors of the system that name none, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
