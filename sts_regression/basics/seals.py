"""Seals: a list of the files of a checkpoint with their sizes and SHA-256, written last and checked before it is read.

A file that was cut, changed or lost is found before it decides a weight, and named in one line.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from sts_regression.basics.files import file_sha256, sync
from sts_regression.basics.tables import write_json

SEAL_FILE = "seal.json"
SEALED_FILES = ("config.json", "*.safetensors", "*.safetensors.index.json", "tokenizer*", "modules.json")
SWITCH = "STS_REGRESSION_CHECK_DIGESTS"  # in the environment: 0 checks sizes alone, for models that take long to read


def seal(folder: Path, files: Iterable[Path]) -> None:
    """
    Writes down what files hold, once they are on the disk.

    Args:
        folder: that gets the seal.
        files: in the folder, or in folders of it.
    """
    paths = sorted(files)
    sealed = {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
        for path in paths
    }
    sync(*paths)
    write_json({"files": sealed}, folder / SEAL_FILE)  # and so the names in the folder


def seal_model(folder: Path) -> None:
    """Writes down what the files of a finished model hold."""
    seal(folder, (path for pattern in SEALED_FILES for path in folder.glob(pattern)))


def broken_file(folder: Path) -> str | None:
    """The first file that is not as it was sealed, by its name in the folder; `None` if all are, or without a seal."""
    if not (folder / SEAL_FILE).is_file():
        return None
    try:
        sealed = json.loads((folder / SEAL_FILE).read_bytes())["files"]
        expected = {name: (int(entry["bytes"]), str(entry["sha256"])) for name, entry in sealed.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return SEAL_FILE
    for name, (size, _) in expected.items():
        if not (folder / name).is_file() or (folder / name).stat().st_size != size:
            return name
    if os.environ.get(SWITCH) == "0":
        return None
    return next((name for name, (_, digest) in expected.items() if file_sha256(folder / name) != digest), None)


def check_seal(folder: Path) -> None:
    """Raises `ValueError`, naming the file, if one is not as it was sealed."""
    if (broken := broken_file(folder)) is not None:
        raise ValueError(
            f"{folder / broken} is not as it was saved: damaged, changed or missing. Restore it, train again, or "
            f"delete {SEAL_FILE} beside it if the change is meant."
        )
