"""The files of pairs that options name. Missing ones are reported before torch is loaded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from sts_regression.basics.files import check_is_file, is_file


class FileOptions(Protocol):
    """The options that name files of pairs, and the folder in which these are also looked for."""

    train_file: list[str] | None
    validation_file: list[str] | None
    test_file: list[str] | None
    predict_file: str | None
    sts_data: str | None


def check_files(options: FileOptions) -> None:
    """
    Checks that every file that the options name exists, before anything is read.

    Raises:
        ValueError: for a missing file; the message names it.
    """
    for path in named_files(options):
        check_is_file(path)


def named_files(options: FileOptions) -> list[str | Path]:
    """The files of pairs that the options name, with their found paths."""
    new = [find_pair_file(path, options.sts_data) for path in filter(None, [options.predict_file])]
    return [*labelled_files(options), *new]


def training_files(options: FileOptions) -> list[str | Path]:
    """The files of training pairs."""
    return _find_files(options.sts_data, options.train_file)


def labelled_files(options: FileOptions) -> list[str | Path]:
    """The files of training, development and test pairs."""
    return _find_files(options.sts_data, options.train_file, options.validation_file, options.test_file)


def _find_files(sts_data: str | None, *lists: Sequence[str] | None) -> list[str | Path]:
    return [find_pair_file(path, sts_data) for paths in lists for path in paths or []]


def find_pair_file(path: str, sts_data: str | None) -> str | Path:
    """The file in the working directory, or else in the folder of the STS data, so that recipes are portable."""
    if sts_data is not None and not is_file(path) and is_file(Path(sts_data) / path):
        return Path(sts_data) / path
    return path
