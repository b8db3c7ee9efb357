"""A file of pairs larger than memory: checked as a whole once, then read chunk by chunk."""

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from sts_regression.basics.files import is_file
from sts_regression.data.columns import PairColumns
from sts_regression.data.pairs import open_pairs, stream_pairs


class Chunk(NamedTuple):
    """
    Some pairs of a file.

    Attributes:
        number: the number of the chunk, from 0.
        sentences1: first sentences.
        sentences2: second sentences.
        further: the other columns, by name.
    """

    number: int
    sentences1: list[str]
    sentences2: list[str]
    further: dict[str, list[Any]]


@dataclass(frozen=True)
class PairFile:
    """
    A file whose pairs have been checked, see [`check_pair_file`].

    Attributes:
        path: the file.
        sentences: names of the columns of the sentences.
        num_pairs: number of pairs in the file.
        further: names of its other columns.
        sha256: digest of the pairs in order.
        state: size and modification time at the time of the check.
    """

    path: Path
    sentences: tuple[str, str]
    num_pairs: int
    further: tuple[str, ...]
    sha256: str
    state: tuple[int, int]

    def chunks(self, size: int, wanted: Collection[int]) -> Iterator[Chunk]:
        """
        Reads the file again, one chunk at a time.

        Args:
            size: number of pairs in a chunk; the last chunk may have fewer.
            wanted: numbers of the chunks to return, from 0.

        Returns:
            An iterator over the wanted chunks, in order.

        Raises:
            ValueError: if the file has changed since it was checked.
        """
        pairs = stream_pairs(self.path, PairColumns(*self.sentences))
        remaining, number = set(wanted), 0
        while remaining:
            chunk = list(islice(pairs, size))
            if not chunk or _state(self.path) != self.state:
                raise ValueError(f"{self.path}: changed while it was read. Run the command again.")
            if number in remaining:
                first, second, further = zip(*chunk, strict=True)
                others = {name: [row.get(name) for row in further] for name in self.further}
                yield Chunk(number, list(first), list(second), others)
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
    path = Path(path)
    num_pairs, digest = 0, hashlib.sha256()
    state = _state(path) if is_file(path) else (0, 0)  # the reader reports a missing file
    names, pairs = open_pairs(path, columns)
    further: dict[str, None] = {}  # a set in order; rows of JSON lines may have different names
    for *sentences, others in pairs:
        further.update(dict.fromkeys(others))
        num_pairs += 1
        try:
            digest.update(json.dumps([*sentences, *others.items()], ensure_ascii=False, default=str).encode())
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{path}: a further column of pair {num_pairs:,} holds half of a character, such as half an emoji. "
                "Correct or remove it."
            ) from error
    return PairFile(path, names, num_pairs, tuple(further), digest.hexdigest(), state)


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
