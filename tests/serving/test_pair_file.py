"""Files of pairs read in pieces: the rows of the whole reader, in the same order, without holding them."""

import json
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sts_regression.data.columns import PairColumns
from sts_regression.data.pairs import read_pairs, stream_sentences
from sts_regression.serving.pair_file import check_pair_file

MEBIBYTE = 2**20


def write_pairs(path: Path, num_pairs: int, length: int = 0) -> Path:
    """Pairs of numbered sentences, in the format of the suffix; `length` characters longer than need be."""
    columns = {name: [f"{name} {i}{' x' * (length // 2)}" for i in range(num_pairs)] for name in ("premise", "other")}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path, compression="none")  # one row group
        return path
    rows = zip(*columns.values(), strict=True)
    if path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
    else:
        lines = [",".join(row) for row in [tuple(columns), *rows]]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


COLUMNS = PairColumns("premise", "other")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_chunks_are_the_pairs_in_order(tmp_path: Path, suffix: str) -> None:
    path = write_pairs(tmp_path / f"pairs.{suffix}", 11)
    whole = read_pairs(path, COLUMNS, labelled=False).pairs
    pairs = list(zip(whole["sentence1"], whole["sentence2"], strict=True))
    file = check_pair_file(path, COLUMNS)
    assert file.num_pairs == 11
    chunks = list(file.chunks(4, range(3)))
    assert [chunk.number for chunk in chunks] == [0, 1, 2]
    assert [list(zip(chunk.sentences1, chunk.sentences2, strict=True)) for chunk in chunks] == [
        *(pairs[:4], pairs[4:8], pairs[8:])
    ]
    assert list(file.chunks(4, [2])) == chunks[2:]
    assert list(file.chunks(4, [])) == []


def test_the_digest_is_of_sentences_in_order_whatever_the_format(tmp_path: Path) -> None:
    paths = [write_pairs(tmp_path / name, 3) for name in ("a.csv", "a.jsonl", "a.parquet")]
    same = {check_pair_file(path, COLUMNS).sha256 for path in paths}
    assert len(same) == 1
    assert check_pair_file(write_pairs(tmp_path / "b.csv", 4), COLUMNS).sha256 not in same
    assert check_pair_file(paths[0], PairColumns("other", "premise")).sha256 not in same


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("sentence1,sentence2\n,b\nc, \nd,e\n,\n", None),
        ("sentence1,sentence2\na,b\nc\n", None),
        ("sentence1,sentence2\n", None),
        ("one,two\na,b\n", None),
        ("sentence1,sentence2\na,b\n", PairColumns("one")),
    ],
    ids=["empty", "ragged", "no rows", "no columns", "no such column"],
)
def test_what_is_wrong_is_said_as_when_all_is_read_at_once(
    tmp_path: Path, content: str, columns: PairColumns | None
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=re.escape(str(path))) as whole:
        read_pairs(path, columns, labelled=False)
    with pytest.raises(ValueError, match=f"^{re.escape(str(whole.value))}$"):
        check_pair_file(path, columns)


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "pairs.csv", 5)
    chunks = check_pair_file(path, COLUMNS).chunks(2, [0, 1, 2])
    next(chunks)
    write_pairs(path, 4)
    with pytest.raises(ValueError, match=r"pairs\.csv: changed while it was read. Run the command again"):
        next(chunks)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_reading_takes_memory_that_does_not_grow_with_the_file(tmp_path: Path, suffix: str) -> None:
    path = write_pairs(tmp_path / f"pairs.{suffix}", 40_000, length=200)
    size = path.stat().st_size
    assert size > 15 * MEBIBYTE
    pairs = stream_sentences(path, COLUMNS)
    tracemalloc.start()
    try:
        arrow = max(_arrow_bytes(pairs))
        python = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert arrow + python < size / 2, (arrow, python)


def _arrow_bytes(pairs: Iterator[tuple[str, str]]) -> Iterator[int]:
    """The memory that arrow holds more than before, at every 1,000th pair."""
    before = pa.total_allocated_bytes()
    for number, _ in enumerate(pairs):
        if number % 1000 == 0:
            yield pa.total_allocated_bytes() - before
