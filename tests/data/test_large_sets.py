"""Large sets stay in files that are mapped into memory, with the same content, and leave nothing behind."""

import subprocess
import sys
from pathlib import Path

import pytest
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from sts_regression.data import columns, pairs, ratings
from sts_regression.data.columns import PairColumns, take_rows
from sts_regression.data.leakage import LeakFilter
from sts_regression.data.pairs import PairSet, read_pairs
from sts_regression.models import tokenization
from sts_regression.models.tokenization import tokenize_pairs

NLI = "premise,hypothesis,label\na,b,neutral\nc,d,-\ne,f,entailment\ng,h,contradiction\ni,j,neutral\n"
RATED = "sentence1,sentence2,x,y,subset\na,b,0,1,s\nc,d,,,t\ne,f,2,,t\ng,h,0.1,0.1,t\ni,j,4,5,\n"
PLAIN = "sentence1,sentence2,label\n" + "".join(f"a {row},b {row},{row % 4 / 2}\n" for row in range(7))
READER = """
import sys
from sts_regression.data import columns
from sts_regression.data.pairs import read_pairs
columns.MAPPED_FROM = 3
pairs = read_pairs(sys.argv[1]).pairs
print(pairs.cache_files[0]["filename"], flush=True)
sys.stdin.readline()
print(pairs["sentence1"][-1])
"""


@pytest.fixture
def low_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the files, which hold sets of three pairs or more."""
    folder = tmp_path / "tables"
    folder.mkdir()
    monkeypatch.setattr(columns, "MAPPED_FROM", 3)
    for module in (columns, pairs):
        monkeypatch.setattr(module, "ROWS_READ_AT_ONCE", 2)
    monkeypatch.setattr(columns, "_folder_of_tables", lambda: folder)
    return folder


def read(folder: Path, content: str) -> PairSet:
    path = folder / "pairs.csv"
    path.write_text(content, encoding="utf-8")
    return read_pairs(path, PairColumns(label=["x", "y"] if content is RATED else None))


@pytest.mark.parametrize("content", [NLI, RATED, PLAIN], ids=["unlabelled", "rated", "plain"])
def test_a_set_in_files_equals_the_set_in_memory(tmp_path: Path, content: str, request: pytest.FixtureRequest) -> None:
    in_memory = read(tmp_path, content)
    assert not in_memory.pairs.cache_files
    request.getfixturevalue("low_limits")
    mapped = read(tmp_path, content)
    assert mapped.pairs.cache_files
    assert (mapped.pairs[:], mapped.pairs.features) == (in_memory.pairs[:], in_memory.pairs.features)
    assert (mapped.scale, mapped.notes, mapped.num_unlabelled) == (
        *(in_memory.scale, in_memory.notes),
        in_memory.num_unlabelled,
    )


def test_a_copy_of_rows_is_as_if_selected(tmp_path: Path, low_limits: Path) -> None:
    given = read(tmp_path, PLAIN).pairs
    for rows in ([], [1], [0, 2, 3, 6]):
        taken = take_rows(given.select([0, 1, 2, 3, 4, 5, 6]), rows)
        assert taken[:] == given.select(rows)[:]
        assert bool(taken.cache_files) == (len(rows) >= columns.MAPPED_FROM)
    test_pair = Dataset.from_dict({"sentence1": ["b 1"], "sentence2": ["a 1"]})
    clean, counts = LeakFilter({"test": test_pair}, "exact").apply(given)
    assert (clean["line"], counts.removed) == ([2, 4, 5, 6, 7, 8], 1)


@pytest.mark.usefixtures("low_limits")
def test_bad_values_in_files_are_counted_and_the_first_ones_named(tmp_path: Path) -> None:
    bad = PLAIN + "a,,1\nc,d,x\n" + ",,y\n" * 3
    message = r"11 bad values \(line 9: `sentence2` is empty; line 10: `label` is 'x', not a number; line 11: `sent"
    with pytest.raises(ValueError, match=message):
        read(tmp_path, bad)


@pytest.mark.parametrize("content", [PLAIN, RATED, "sentence1,sentence2,label\na,b,0.5\nc,d,-0.25\ne,f,0.75\ng,h,2\n"])
def test_further_fractions_are_read_as_the_first_ones(
    tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = read(tmp_path, content).pairs[:]
    monkeypatch.setattr(ratings, "MANY_LABELS", 1)
    assert read(tmp_path, content).pairs[:] == expected


def test_pairs_that_are_read_again_are_not_tokenised_again(
    tmp_path: Path, low_limits: Path, tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenization, "HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr(tokenization, "CACHED_FROM", 2)
    expected = tokenize_pairs(read(tmp_path, PLAIN).pairs, tokenizer, "bi-encoder")[:]
    monkeypatch.setattr(tokenization, "tokenize_texts", None)
    again = read(tmp_path, PLAIN).pairs
    assert tokenize_pairs(again, tokenizer, "bi-encoder")[:] == expected


def test_each_process_has_its_own_files_and_deletes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "pairs.csv"
    path.write_text(PLAIN, encoding="utf-8")
    command = [sys.executable, "-c", READER, str(path)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    files = [Path(process.stdout.readline().strip()) for process in processes if process.stdout is not None]
    assert all(file.is_file() for file in files)
    assert files[0].parent != files[1].parent
    assert processes[0].communicate("\n")[0] == "a 6\n"
    assert not files[0].parent.exists()
    assert files[1].is_file()
    assert processes[1].communicate("\n")[0] == "a 6\n"
    assert not files[1].parent.exists()
