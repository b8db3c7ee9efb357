"""Special files are refused at once; very large files are read in bounded time and memory."""

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from transformers import PreTrainedTokenizerBase

from sts_regression.command.recipes import read_recipe
from sts_regression.data import rows as file_rows
from sts_regression.data.pairs import read_pairs
from sts_regression.data.sts_tasks import read_senteval_subset
from sts_regression.models.tokenization import tokenize_pairs
from sts_regression.serving.pair_file import check_pair_file

MILLION = 1_000_000
READERS = [read_pairs, check_pair_file, read_recipe]


@pytest.fixture(params=["folder", "pipe", "device", "loop", "dangling link"])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "x.csv"
    if request.param == "folder":
        path.mkdir()
    elif request.param == "pipe":
        os.mkfifo(path)
    else:
        targets = {"device": Path("/dev/zero"), "loop": path, "dangling link": tmp_path / "absent"}
        path.symlink_to(targets[request.param])
    return path


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_regular_file_is_refused_at_once(special: Path, reader: Callable[[Path], Any]) -> None:
    with pytest.raises(ValueError, match=r"x\.csv: (is a folder, a pipe or a device|no such (file|recipe))"):
        reader(special)


def test_a_pipe_in_the_tree_of_senteval_is_refused(tmp_path: Path) -> None:
    (tmp_path / "STS.gs.x.txt").write_text("1\n")
    os.mkfifo(tmp_path / "STS.input.x.txt")
    with pytest.raises(ValueError, match=r"STS\.input\.x\.txt: is a folder, a pipe or a device"):
        read_senteval_subset(tmp_path / "STS.input.x.txt")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "yaml"])
def test_a_file_that_the_system_does_not_let_be_read_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    if os.geteuid():
        path.write_text("x")
        path.chmod(0)
    elif Path("/proc/self/mem").exists():
        path.symlink_to("/proc/self/mem")  # root may open every file, but nothing is mapped at this one's beginning
    else:
        pytest.skip("root may read every file")
    with pytest.raises(ValueError, match=rf"x\.{suffix}: (cannot be read|not a readable Parquet file) \("):
        (read_recipe if suffix == "yaml" else read_pairs)(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sentence1,sentence2,label\na,b,1\n" + "c" * 2000, "line 3 is longer than 1,000 bytes. Check its line end"),
        ('sentence1,sentence2,label\na,"b,1\n' + "c,d,1\n" * 2000, r"line 2 is not valid CSV \(field larger than"),
    ],
    ids=["line", "open quote"],
)
def test_a_line_without_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, message: str
) -> None:
    limit = csv.field_size_limit()
    monkeypatch.setattr(file_rows, "MAX_LINE_BYTES", 1000)
    path = tmp_path / "x.csv"
    path.write_text(content)
    try:
        with pytest.raises(ValueError, match=message):
            read_pairs(path)
    finally:
        csv.field_size_limit(limit)


def write_pairs(path: Path, num_pairs: int, sentence: str) -> None:
    columns: dict[str, list[Any]] = {
        "sentence1": [f"{sentence} {i}" for i in range(num_pairs)],
        "sentence2": [f"b {i}" for i in range(num_pairs)],
        "label": [i % 6 for i in range(num_pairs)],
    }
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        else:
            for row in zip(*columns.values(), strict=True):
                file.write(json.dumps(dict(zip(columns, row, strict=True))) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_million_rows(tmp_path: Path, suffix: str, reliability: Callable[[str, int, int, int], None]) -> None:
    path = tmp_path / f"x.{suffix}"
    write_pairs(path, MILLION, "a sentence")
    process = psutil.Process()
    before = process.memory_info().rss
    assert check_pair_file(path).num_pairs == MILLION
    assert process.memory_info().rss - before < 64 * 2**20
    pairs = read_pairs(path).pairs
    assert (len(pairs), pairs[-1]["sentence1"], pairs[-1]["label"]) == (MILLION, f"a sentence {MILLION - 1}", 3.0)
    reliability("files with a million rows", 1, 1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    "sentence", ["x" * MILLION, "word " * (MILLION // 5), "👩‍👧" * (MILLION // 3)], ids=["x", "words", "emoji"]
)
def test_rows_of_a_million_characters(
    tmp_path: Path,
    suffix: str,
    sentence: str,
    tokenizer: PreTrainedTokenizerBase,
    reliability: Callable[[str, int, int, int], None],
) -> None:
    path = tmp_path / f"x.{suffix}"
    write_pairs(path, 3, sentence)
    pairs = read_pairs(path).pairs
    assert pairs["sentence1"] == [f"{sentence} {i}" for i in range(3)]
    tokenizer.model_max_length, before = 16, tokenizer.model_max_length
    try:
        inputs = tokenize_pairs(pairs, tokenizer, "bi-encoder")
    finally:
        tokenizer.model_max_length = before
    assert len(inputs) == 3
    reliability("rows of a million characters", 1, 1, 0)
