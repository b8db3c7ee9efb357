"""Seals: lists of a checkpoint's files with sizes and SHA-256, written last and checked before the files are read.

A file that was cut, changed or lost is found before it affects a weight, and named in one line.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from sts_regression.basics.files import file_sha256, sync
from sts_regression.basics.tables import write_json

SEAL_FILE = "seal.json"
SEALED_FILES = ("config.json", "*.safetensors", "*.safetensors.index.json", "tokenizer*", "modules.json")
SWITCH = "STS_REGRESSION_CHECK_DIGESTS"  # environment variable; 0 checks sizes only, for models that are slow to read


def seal(folder: Path, files: Iterable[Path]) -> None:
    """
    Writes the sizes and digests of files after they are on the disk.

    Args:
        folder: folder of the seal.
        files: files in the folder or its subfolders.
    """
    paths = sorted(files)
    sealed = {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
        for path in paths
    }
    sync(*paths)
    write_json({"files": sealed}, folder / SEAL_FILE)  # also syncs the names in the folder


def seal_model(folder: Path) -> None:
    """Writes the sizes and digests of the files of a finished model."""
    seal(folder, (path for pattern in SEALED_FILES for path in folder.glob(pattern)))


def broken_file(folder: Path) -> str | None:
    """The name of the first file that differs from the seal; `None` if no file does, or if there is no seal."""
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
    """Raises `ValueError` for a file that differs from the seal; the message names it."""
    if (broken := broken_file(folder)) is not None:
        raise ValueError(
            f"{folder / broken} differs from the saved file: it is damaged, changed or missing. Restore it, train "
            f"again, or delete {SEAL_FILE} beside it if the change is intended."
        )
