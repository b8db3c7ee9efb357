"""Reading pairs: every format and column name in use, and one clear error for whatever is wrong with a file."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import datasets
import pytest
from datasets import Dataset

from sts_regression import data
from sts_regression.data import (
    LABEL_COLUMNS,
    SENTENCE_COLUMNS,
    PairColumns,
    check_label_scale,
    check_labels_differ,
    infer_label_values,
    load_hub_pairs,
    read_pairs,
)

GRADES = {"irrelevant": 0.0, "relevant": 1.0}
Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file and returns its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def rows(pairs: Dataset) -> list[tuple[str, str, float]]:
    return list(zip(pairs["sentence1"], pairs["sentence2"], pairs["label"], strict=True))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("comma.csv", "sentence1,sentence2,label\nA cat.,A dog.,1.5\n"),
        ("semicolon.csv", "sentence1;sentence2;label\nA cat.;A dog.;1.5\n"),
        ("tab.tsv", "sentence1\tsentence2\tlabel\nA cat.\tA dog.\t1.5\n"),
        ("bom.csv", "\ufeffsentence1,sentence2,label\nA cat.,A dog.,1.5\n"),
        ("crlf.csv", "sentence1,sentence2,label\r\nA cat.,A dog.,1.5\r\n"),
        ("blank_line.csv", "sentence1,sentence2,label\n\nA cat.,A dog.,1.5\n\n"),
        ("sick.txt", "pair_ID\tsentence_A\tsentence_B\trelatedness_score\n1\tA cat.\tA dog.\t1.5\n"),
        ("lines.jsonl", '{"sentence1": "A cat.", "sentence2": "A dog.", "label": 1.5}\n\n'),
        ("text_label.jsonl", '{"sentence1": "A cat.", "sentence2": "A dog.", "score": "1.5"}\n'),
    ],
)
def test_formats(write: Write, name: str, content: str) -> None:
    assert rows(read_pairs(write(name, content))) == [("A cat.", "A dog.", 1.5)]


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    Dataset.from_dict({"sentence1": ["A cat."], "sentence2": ["A dog."], "score": [2]}).to_parquet(path)
    assert rows(read_pairs(path)) == [("A cat.", "A dog.", 2.0)]


def test_stsb_as_distributed_has_no_header_no_quoting_and_further_columns(write: Write) -> None:
    lines = (
        'main-captions\tMSRvid\t2012test\t0001\t5.000\tA "plane.\tAn air plane.\n'
        "main-news\theadlines\t2013\t0002\t3.800\tOne.\tTwo.\tsource one\tsource two\n"
    )
    pairs = read_pairs(write("sts-train.csv", lines))
    assert rows(pairs) == [('A "plane.', "An air plane.", 5.0), ("One.", "Two.", 3.8)]
    assert pairs["line"] == [1, 2]


def test_quotes_hold_separators_and_line_breaks_in_comma_separated_files(write: Write) -> None:
    path = write("pairs.csv", 'sentence1,sentence2,label\n"A, ""b""","two\nlines",1\nc,d,2\n')
    pairs = read_pairs(path)
    assert rows(pairs) == [('A, "b"', "two\nlines", 1.0), ("c", "d", 2.0)]
    assert pairs["line"] == [3, 4]


@pytest.mark.parametrize("sentence_columns", SENTENCE_COLUMNS)
@pytest.mark.parametrize("label_column", LABEL_COLUMNS)
def test_column_names_in_use_are_found_in_any_case(
    write: Write, sentence_columns: tuple[str, str], label_column: str
) -> None:
    header = ",".join((label_column.upper(), *sentence_columns)).title()
    assert rows(read_pairs(write("pairs.csv", f"{header}\n3,a,b\n"))) == [("a", "b", 3.0)]


def test_named_columns_win_over_the_guess(write: Write) -> None:
    path = write("pairs.csv", "sentence1,sentence2,label,left,right,mark\na,b,1,c,d,2\n")
    assert rows(read_pairs(path, PairColumns("left", "right", "mark"))) == [("c", "d", 2.0)]


def test_names_of_grades_become_values_and_numbers_stay(write: Write) -> None:
    path = write("pairs.csv", "sentence1,sentence2,label\na,b,relevant\nc,d,irrelevant\ne,f,0.5\n")
    assert read_pairs(path, grades=GRADES)["label"] == [1.0, 0.0, 0.5]


def test_labels_are_optional_where_none_is_needed(write: Write) -> None:
    without = read_pairs(write("without.csv", "sentence1,sentence2\na,b\n"), labelled=False)
    assert without.column_names == ["sentence1", "sentence2", "line"]
    with_labels = read_pairs(write("with.csv", "sentence1,sentence2,label\na,b,1\n"), labelled=False)
    assert with_labels["label"] == [1.0]


def test_a_text_of_a_hundred_thousand_characters_is_read_whole(write: Write) -> None:
    text = "long " * 40_000
    assert read_pairs(write("pairs.csv", f"sentence1,sentence2,label\n{text},b,1\n"))["sentence1"] == [text]


HEADER = "sentence1,sentence2,label\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEADER + "a,b,1\nc,d,good\n", "1 bad values (line 3: `label` is 'good', not a number). .* `--grade_names`"),
        (HEADER + "a,b,nan\n", "line 2: `label` is 'nan', not a finite number"),
        (HEADER + "a,b,-inf\n", "line 2: `label` is '-inf', not a finite number"),
        (HEADER + "a,b,\n", "line 2: `label` is '', not a number"),
        (HEADER + "a,,1\n", "line 2: `sentence2` is empty). Correct or remove these lines."),
        (HEADER + "  ,b,1\n", "line 2: `sentence1` is '  '"),
        (HEADER + "a,b,x\n" * 5, "5 bad values (line 2: .*; line 3: .*; line 4: .*not a number)"),
        (HEADER + "a,b\n", "line 2 has 2 fields where 3 are expected (sentence1, sentence2, label)"),
        (HEADER + "a,b,c,1\n", "line 2 has 4 fields where 3 are expected .* Quote fields that hold the separator ','"),
        (HEADER + 'a,"b,1\n', "line 2 is not valid CSV (.*). Check its quotes."),
        (HEADER + '"a"x,b,1\n', "line 2 is not valid CSV"),
        (HEADER, "holds no pairs. Give a file with a header and at least one pair."),
        ("", "holds no pairs"),
        ("one,two,label\na,b,1\n", "cannot tell which of the columns ['one', 'two', 'label'] .* `--sentence1_column`"),
        ("sentence1,sentence2,points\na,b,1\n", "cannot tell which of the columns .* `--label_column`"),
        (HEADER.encode() + b"a,b,1\ncaf\xe9,d,2\n", "line 3 is not valid UTF-8. Save the file as UTF-8."),
        ((HEADER + "a,b,1\n").encode("utf-16"), "line 1 is not valid UTF-8"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_file_line_and_remedy(
    write: Write, content: str | bytes, message: str
) -> None:
    path = write("pairs.csv", content)
    pattern = ".*".join(re.escape(part) for part in message.split(".*"))
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}: .*{pattern}"):
        read_pairs(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"sentence1": "a"', "line 1 is not valid JSON (.*). Write one JSON object a line."),
        ('[{"sentence1": "a"}]', "line 1 is not a JSON object. Write one JSON object a line."),
        (json.dumps({"sentence1": "a", "sentence2": None, "label": 1}), "line 1: `sentence2` is empty"),
        (json.dumps({"sentence1": "a", "sentence2": 7, "label": 1}), "line 1: `sentence2` is 7"),
        (json.dumps({"sentence1": "a", "sentence2": "b", "label": True}), "line 1: `label` is True, not a finite"),
        (json.dumps({"sentence1": "a", "sentence2": "b", "label": None}), "line 1: `label` is None, not a number"),
    ],
)
def test_what_is_wrong_with_json_lines_is_said(write: Write, content: str, message: str) -> None:
    pattern = ".*".join(re.escape(part) for part in message.split(".*"))
    with pytest.raises(ValueError, match=pattern):
        read_pairs(write("pairs.jsonl", content))


def test_an_unknown_grade_names_the_known_ones(write: Write) -> None:
    with pytest.raises(ValueError, match="line 2: `label` is 'relevnt', not one of 'irrelevant', 'relevant'"):
        read_pairs(write("pairs.csv", HEADER + "a,b,relevnt\n"), grades=GRADES)


def test_a_named_column_must_exist(write: Write) -> None:
    with pytest.raises(ValueError, match=r"`--label_column` 'mark' is not among its columns \['sentence1'"):
        read_pairs(write("pairs.csv", HEADER + "a,b,1\n"), PairColumns(label="mark"))


@pytest.mark.parametrize("name", ["absent.csv", "."])
def test_a_missing_file_or_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"{re.escape(str(tmp_path / name))}: no such file. Give a CSV"):
        read_pairs(tmp_path / name)


def test_an_unknown_kind_of_file_is_refused(write: Write) -> None:
    with pytest.raises(ValueError, match=r"unknown kind of file '.docx'. Known are .jsonl, .json, .csv"):
        read_pairs(write("pairs.docx", "x"))


def test_a_broken_parquet_file_is_refused(write: Write) -> None:
    with pytest.raises(ValueError, match="not a readable Parquet file"):
        read_pairs(write("pairs.parquet", "no parquet"))


@pytest.mark.parametrize(
    ("labels", "nodes"),
    [
        ([0, 3, 1], [0, 1, 2, 3]),
        ([1.0, 4.2], [1, 2, 3, 4, 5]),
        ([0, 1, 1], [0, 1]),
        ([0, 0.35, 1], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([-1, 1], [-1, 0, 1]),
    ],
)
def test_the_scale_is_guessed_from_the_labels(labels: list[float], nodes: list[float]) -> None:
    assert infer_label_values(labels) == nodes


def test_a_measurement_is_no_scale_of_grades() -> None:
    with pytest.raises(ValueError, match="no scale of grades is apparent from labels between 0 and 1000"):
        infer_label_values([0, 1000])


def test_labels_outside_the_scale_are_named() -> None:
    pairs = Dataset.from_dict({"label": [0.0, 5.0, 5.5, -1.0], "line": [2, 3, 4, 5]})
    message = r"test.csv: 2 of 4 labels lie outside the scale 0 to 5 \(5.5 in line 4, -1 in line 5\).*`--label_values`"
    with pytest.raises(ValueError, match=message):
        check_label_scale(pairs, "test.csv", [0, 1, 2, 3, 4, 5])


def test_equal_labels_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"test.csv: all 2 labels are 3, .*Give pairs with at least two different labels"
    ):
        check_labels_differ(Dataset.from_dict({"label": [3.0, 3.0]}), "test.csv")


def test_a_hub_data_set_is_read_like_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = {"validation": datasets.Dataset.from_dict({"sentence1": ["a"], "sentence2": ["b"], "score": [0.5]})}
    monkeypatch.setattr(data, "load_dataset", lambda name, config, split: hub[split])
    assert rows(load_hub_pairs("some/stsb", "validation")) == [("a", "b", 0.5)]


def test_a_hub_data_set_that_cannot_be_had_gives_both_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise ConnectionError("no network")

    monkeypatch.setattr(data, "load_dataset", fail)
    with pytest.raises(ValueError, match=r"'train' of 'some/stsb' \(ConnectionError: no network\).*`--train_file`"):
        load_hub_pairs("some/stsb", "train")
