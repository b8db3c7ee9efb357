"""A file of pairs larger than memory: checked as a whole once, then read chunk by chunk."""

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sts_regression.basics.files import is_file
from sts_regression.data.columns import PairColumns
from sts_regression.data.pairs import stream_sentences

SentencePair = tuple[str, str]


@dataclass(frozen=True)
class PairFile:
    """
    A file whose pairs have been checked, see [`check_pair_file`].

    Attributes:
        path: the file.
        columns: names of columns that would be guessed wrong.
        num_pairs: number of pairs in the file.
        sha256: digest of their sentences in order.
        state: size and modification time at the time of the check.
    """

    path: Path
    columns: PairColumns
    num_pairs: int
    sha256: str
    state: tuple[int, int]

    def chunks(self, size: int, wanted: Collection[int]) -> Iterator[tuple[int, list[SentencePair]]]:
        """
        Reads the file again, one chunk at a time.

        Args:
            size: number of pairs in a chunk; the last chunk may have fewer.
            wanted: numbers of the chunks to return, from 0.

        Returns:
            An iterator over number and pairs of each wanted chunk, in order.

        Raises:
            ValueError: if the file has changed since it was checked.
        """
        pairs = stream_sentences(self.path, self.columns)
        remaining, number = set(wanted), 0
        while remaining:
            chunk = list(islice(pairs, size))
            if not chunk or _state(self.path) != self.state:
                raise ValueError(f"{self.path}: has changed while it was read. Run the command again.")
            if number in remaining:
                yield number, chunk
                remaining.remove(number)
            number += 1


def check_pair_file(path: str | Path, columns: PairColumns | None = None) -> PairFile:
    """
    Reads a file of pairs from beginning to end.

    Args:
        path: a CSV, TSV, JSON-lines, Parquet or Excel file, or an original file of STS-B.
        columns: names of columns that would be guessed wrong.

    Raises:
        ValueError: for an unreadable file, a missing column or an empty sentence; the message names the file, the
            first bad lines and the remedy.
    """
    path, columns = Path(path), columns or PairColumns()
    num_pairs, digest = 0, hashlib.sha256()
    state = _state(path) if is_file(path) else (0, 0)  # the reader reports a missing file
    for pair in stream_sentences(path, columns):
        digest.update(json.dumps(pair, ensure_ascii=False).encode())
        num_pairs += 1
    return PairFile(path, columns, num_pairs, digest.hexdigest(), state)


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
