"""Parquet files that unpack to far more than they are, by compression or by a dictionary; and those of pairs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sts_regression.basics import parquet_files
from sts_regression.basics.parquet_files import parquet_batches, parquet_schema, read_parquet
from sts_regression.data.pairs import read_pairs
from sts_regression.evaluation.sts_evaluation import SCORES_FILE, read_scores
from sts_regression.search.exact import read_texts
from sts_regression.serving.pair_file import check_pair_file

ROOT = Path(__file__).resolve().parent.parent.parent
MEBIBYTE = 2**20
READERS = [read_pairs, check_pair_file, read_texts, lambda path: read_scores(path.parent)]
NAMES = ("sentence1", "sentence2", "text")


def write_repeated(path: Path, text: str, num_rows: int) -> None:
    """A text that recurs: once in a dictionary, and an index that is run-length encoded."""
    column = pa.DictionaryArray.from_arrays(pa.array([0] * num_rows, pa.int32()), pa.array([text]))
    options: dict[str, Any] = {"dictionary_pagesize_limit": 2 * len(text), "compression": "zstd"}
    pq.write_table(pa.table(dict.fromkeys(NAMES, column)), path, store_schema=False, **options)


def write_long(path: Path, text: str) -> None:
    """One row, stored as it is and compressed."""
    table = pa.table({name: [text] for name in NAMES})
    pq.write_table(table, path, compression="brotli", use_dictionary=False, write_statistics=False)


READ_DAMAGED = """
import sys
sys.path.insert(0, sys.argv[1])
sys.modules.pop("sts_regression")
from pathlib import Path
from sts_regression.basics.parquet_files import read_parquet
path = Path(sys.argv[2])
sound = path.read_bytes()
footer_length = int.from_bytes(sound[-8:-4], "little")
refused = 0
for place in range(len(sound) - 8 - footer_length, len(sound)):
    for bit in (0, 1, 4):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1 << bit]) + sound[place + 1 :])
        try:
            read_parquet(path)
        except (ValueError, OSError):
            refused += 1
print(refused)
"""


def test_no_damage_of_the_footer_ends_the_process(tmp_path: Path, run_in_subprocess: Callable[..., str]) -> None:
    path = tmp_path / "pairs.parquet"
    pq.write_table(pa.table({"sentence1": ["a"], "sentence2": ["b"], "label": [0.5]}), path)
    assert int(run_in_subprocess(READ_DAMAGED, ROOT, path)) > 100


def test_a_column_chunk_that_is_damaged_is_found_without_reading_data(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    pq.write_table(pa.table({"text": [f"text {i}" for i in range(100)]}), path, row_group_size=10)
    sound = path.read_bytes()
    footer = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
    path.write_bytes(sound[:4] + bytes(footer - 4) + sound[footer:])
    assert parquet_schema(path).names == ["text"]
    with pytest.raises(OSError, match="Couldn't deserialize thrift"):
        read_parquet(path)


@pytest.mark.parametrize("reader", READERS)
def test_a_dictionary_of_one_long_text_is_refused(tmp_path: Path, reader: Callable[[Path], Any]) -> None:
    path = tmp_path / SCORES_FILE
    write_repeated(path, "x" * MEBIBYTE, 4096)  # 12 GiB
    assert path.stat().st_size < 2000
    process = psutil.Process()
    before = process.memory_info().rss
    with pytest.raises(
        ValueError, match=rf"{SCORES_FILE}: not a readable Parquet file \(its [\d,]+ bytes would unpack"
    ):
        reader(path)
    assert process.memory_info().rss - before < 256 * MEBIBYTE


@pytest.mark.parametrize("reader", READERS)
def test_a_page_that_is_compressed_too_well_is_refused(
    tmp_path: Path, reader: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "ALWAYS_ALLOWED_BYTES", MEBIBYTE)
    path = tmp_path / SCORES_FILE
    write_long(path, "x" * 16 * MEBIBYTE)
    monkeypatch.setattr(parquet_files, "_unpacked_bytes", None)  # the footer tells, and nothing is unpacked
    expected = rf"\(its [\d,]+ bytes would unpack to {3 * 16 * MEBIBYTE // 1_000_000},[\d,]+ or more\)"
    with pytest.raises(ValueError, match=expected):
        reader(path)


def test_a_million_million_rows_of_nothing_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "ALWAYS_ALLOWED_BYTES", MEBIBYTE)
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"sentence1": pa.nulls(4 * MEBIBYTE, pa.string())}), path)
    with pytest.raises(ValueError, match=r"x\.parquet: not a readable .* would unpack to 8,[\d,]+ or more"):
        read_pairs(path)


def test_a_list_of_one_long_text_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    text = pa.array(["x" * MEBIBYTE]).dictionary_encode()
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 4096, pa.int32()), text.dictionary)
    lists = pa.ListArray.from_arrays(pa.array([0, 4096], pa.int32()), repeated)
    pq.write_table(pa.table({"sentence1": ["a"], "sentence2": ["b"], "label": [1], "notes": lists}), path)
    assert parquet_schema(path).names == ["sentence1", "sentence2", "label"]
    assert read_pairs(path).pairs[0]["sentence2"] == "b"


@pytest.mark.parametrize("text_bytes", [1, 300, 4000])
def test_parts_have_few_rows_and_few_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text_bytes: int) -> None:
    monkeypatch.setattr(parquet_files, "MAX_PART_BYTES", 2048)
    path = tmp_path / "x.parquet"
    texts = ["x" * text_bytes, "y", None] * 700
    kinds = {"a": pa.string(), "b": pa.large_string(), "c": pa.binary()}
    table = pa.table({**{name: pa.array(texts, kind) for name, kind in kinds.items()}, "n": range(len(texts))})
    pq.write_table(table, path, row_group_size=900)
    batches = list(parquet_batches(path))
    assert max(batch.nbytes for batch in batches if len(batch) > 1) < 2 * 2048
    assert {len(batch) for batch in batches} <= set(range(1, 1001))
    whole = read_parquet(path)
    assert whole.to_pydict() == table.to_pydict()
    assert whole.schema == table.schema


def test_a_file_without_rows_keeps_its_columns(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([], pa.string()), "n": pa.array([], pa.int64())})
    pq.write_table(table, tmp_path / "x.parquet")
    assert read_parquet(tmp_path / "x.parquet").schema == table.schema


def test_a_text_that_honestly_recurs_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_repeated(path, "a short text", 100_000)
    assert check_pair_file(path).num_pairs == 100_000


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1"])
def test_damaged_scores_are_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / SCORES_FILE).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{SCORES_FILE}: not a readable Parquet file \(.*\)\. Evaluate again"):
        read_scores(tmp_path)
