"""A file of pairs that is too large to be held: checked as a whole once, then read chunk by chunk."""

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
    A file whose pairs are known to be sound, see [`check_pair_file`].

    Attributes:
        path: the file.
        columns: names of its columns, where the guess would be wrong.
        num_pairs: how many it holds.
        sha256: digest of their sentences in order.
        state: size and time of the last change, as they were when it was checked.
    """

    path: Path
    columns: PairColumns
    num_pairs: int
    sha256: str
    state: tuple[int, int]

    def chunks(self, size: int, wanted: Collection[int]) -> Iterator[tuple[int, list[SentencePair]]]:
        """
        Reads the file again, holding one chunk at a time.

        Args:
            size: pairs of a chunk; the last one may have fewer.
            wanted: numbers of the chunks to return, from 0.

        Returns:
            An iterator over number and pairs of each, in order.

        Raises:
            ValueError: where the file has changed since it was checked.
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
        path: CSV, TSV, JSON lines, Parquet, Excel, or STS-B as its authors distribute it.
        columns: column names, where the guess would be wrong.

    Raises:
        ValueError: for an unreadable file, a missing column or an empty sentence; it names the file, the first bad
            lines and the remedy.
    """
    path, columns = Path(path), columns or PairColumns()
    num_pairs, digest = 0, hashlib.sha256()
    state = _state(path) if is_file(path) else (0, 0)  # what is missing is told by the reader
    for pair in stream_sentences(path, columns):
        digest.update(json.dumps(pair, ensure_ascii=False).encode())
        num_pairs += 1
    return PairFile(path, columns, num_pairs, digest.hexdigest(), state)


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
