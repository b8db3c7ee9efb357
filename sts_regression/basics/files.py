"""Reads and writes files of commands: outputs are complete or missing, and never replace inputs or unknown files."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

LOCK_FILE = ".lock"  # in a folder that a process writes to
LOG_SUFFIXES = (".log", ".txt", ".out", ".err")  # of files that may lie in the folder of a run before it begins


def check_output(option: str, path: str | Path, inputs: Iterable[str | Path | None], remedy: str | None) -> None:
    """
    Refuses an output that would replace one of the command's inputs or an existing file.

    Args:
        option: the option that names the output, for messages.
        path: the output.
        inputs: files that the command reads; `None` and names that are not files are skipped.
        remedy: the option that replaces an existing file; `None` if it was given, or if the file is the command's own.

    Raises:
        ValueError: for such an output; the message names it and the remedy.
    """
    path = Path(path)
    try:
        exists, is_folder = path.exists(), path.is_dir()
    except OSError as error:  # raised for a name that no file can have
        raise ValueError(f"`{option}` {str(path)!r:.200} cannot be written ({error.strerror}).") from error
    if is_folder:
        raise ValueError(f"`{option}` {str(path)!r} is a folder. Name a file in it.")
    paths = [other for other in inputs if other is not None]
    if any(is_same_place(path, other) for other in paths):
        raise ValueError(f"`{option}` {str(path)!r} is one of the files to read. Name another file.")
    partial = _partial(path)
    if any(is_same_place(partial, other) for other in paths):
        raise ValueError(
            f"`{option}` {str(path)!r} is first written to {partial.name!r}, which is one of the files to read. Name "
            "another file."
        )
    if exists and remedy is not None:
        raise ValueError(f"`{option}` {str(path)!r} exists. Name another file, or replace it with `{remedy}`.")


def check_folder(option: str, folder: Path, others: Iterable[Path], remedy: str | None = None) -> None:
    """
    Refuses a folder that holds files of others.

    Args:
        option: the option that names the folder, for messages.
        folder: the folder to write to.
        others: files of others in it, see [`files_of_others`].
        remedy: the option that replaces files, if any.

    Raises:
        ValueError: if there are such files; the message names the first one and the remedy.
    """
    if (found := next(iter(others), None)) is not None:
        replace = "" if remedy is None else f", or replace files of the same names with `{remedy}`"
        raise ValueError(
            f"`{option}` {str(folder)!r} holds files that no run wrote, such as "
            f"{found.relative_to(folder).as_posix()!r}. Name another one{replace}."
        )


def files_of_others(folder: Path, is_own: Callable[[Path], bool]) -> Iterator[Path]:
    """
    Yields the files of a folder and its subfolders that are neither logs nor hidden.

    Args:
        folder: a folder; it may not exist.
        is_own: whether a folder is the command's own, so that its files are left out.
    """
    if not folder.is_dir() or is_own(folder):
        return
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            yield from files_of_others(path, is_own)
        elif path.suffix not in LOG_SUFFIXES and not path.name.startswith("."):
            yield path


def is_same_place(first: str | Path, second: str | Path) -> bool:
    """Whether two names lead to the same existing file or folder."""
    try:
        return Path(first).exists() and Path(second).exists() and Path(first).samefile(second)
    except OSError:
        return False


@contextmanager
def alone_in(folder: Path, option: str = "output_dir") -> Iterator[None]:
    """
    Locks a folder against other processes that ask for it, on any machine. Makes the folder if necessary.

    The lock is a file in the folder; the system releases it if the process dies.

    Args:
        folder: the folder to write to.
        option: the option that names it, for messages.

    Raises:
        ValueError: if another process writes there, and if it is a file.
    """
    if folder.is_file():
        raise ValueError(f"`{option}` {str(folder)!r} is a file. Name a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK_FILE)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise ValueError(
            f"`{option}` {str(folder)!r}: another process is writing there. Wait for it, end it, or give another "
            f"`--{option}`."
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):  # deleted before it is released; on Windows a locked file cannot be deleted
            (folder / LOCK_FILE).unlink(missing_ok=True)
            folder.rmdir()  # fails if anything was written
        lock.release()


def wait_until_free(folder: Path) -> None:
    """Waits for a process that writes to a folder, such as a run that a killed sweep has left."""
    with FileLock(folder / LOCK_FILE), suppress(OSError):
        (folder / LOCK_FILE).unlink()


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yields a file to write to that replaces `path` once it is complete and on the disk."""
    partial = _partial(path)
    with naming(path):
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync(path.parent)


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")


def sync(*paths: Path) -> None:
    """Makes the system write files, and the names in folders, to the disk."""
    if os.name == "nt":  # Windows cannot open folders, or flush files that are opened for reading
        return
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def reason_of(error: BaseException) -> str:
    """The message of an error in one line; its type if it has no message."""
    return " ".join(str(error).split()) or type(error).__name__


def first_line_of(error: BaseException) -> str:
    """The first line of an error's message, which libraries follow by advice; its type if it has no message."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Adds a path to system errors that name none, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def is_file(path: str | Path) -> bool:
    """Whether this is a regular file; `False` for names that no file can have, such as names that are too long."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def check_is_file(path: str | Path, wanted: str = "CSV, TSV, JSON-lines, Parquet or Excel file") -> None:
    """
    Refuses anything but a regular file: reading a pipe or a device may never end.

    Args:
        path: the file.
        wanted: the kind of file to give instead, for the message.

    Raises:
        ValueError: if this is not a regular file.
    """
    if is_file(path):
        return
    try:
        problem = "is a folder, a pipe or a device" if Path(path).exists() else "no such file"
    except OSError as error:
        problem = f"no such file ({error.strerror})"
    raise ValueError(f"{path}: {problem}. Give a {wanted}.")


def file_sha256(path: Path) -> str:
    """SHA-256 of the content of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raises `ValueError` if the system does not allow reading the file."""
    try:
        yield
    except OSError as error:
        raise ValueError(
            f"{path}: cannot be read ({error.strerror or error}). Check its permissions and the disk."
        ) from error
