"""Tables as spreadsheets write them: semicolons, decimal commas, a byte-order mark; and Excel files."""

import logging
import sys
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sts_regression.basics import excel_files
from sts_regression.data.columns import PairColumns
from sts_regression.data.labels import parse_labels
from sts_regression.data.pairs import read_pairs, stream_sentences

HEADER = "sentence1;sentence2;label\r\n"


def write(folder: Path, content: str, encoding: str = "utf-8", name: str = "pairs.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("content", "encoding", "how"),
    [
        (HEADER + "a, b;c;0,75\r\nd;e;1\r\n", "utf-8-sig", "semicolon-separated, with decimal commas"),
        (HEADER + "a, b;c;0.75\r\nd;e;1\r\n", "utf-8", "semicolon-separated"),
        ("sep=;\r\n" + HEADER + "a, b;c;0,75\r\nd;e;1\r\n", "utf-8-sig", "semicolon-separated, with decimal commas"),
        ('sentence1,sentence2,label\n"a, b",c,"0,75"\nd,e,1\n', "utf-8", "comma-separated, with decimal commas"),
        ("sentence1\tsentence2\tlabel\na, b\tc\t0,75\nd\te\t1\n", "utf-8", "tab-separated, with decimal commas"),
        ("sep=\t\nsentence1\tsentence2\tlabel\na, b\tc\t+7,5E-01\nd\te\t1\n", "utf-8", "tab-separated, with decimal"),
        ('"sentence1";"sentence2";"label";"x, y, z, of 4"\na, b;c;0,75;\nd;e;1;\n', "utf-8", "semicolon-separated, w"),
    ],
)
def test_tables_of_spreadsheets_are_read_and_said_to_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str, encoding: str, how: str
) -> None:
    caplog.set_level(logging.INFO)
    path = write(tmp_path, content, encoding)
    found = read_pairs(path).pairs
    assert (found["sentence1"], found["sentence2"], found["label"]) == (["a, b", "d"], ["c", "e"], [0.75, 1.0])
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"{path}: read as {how}")
    assert list(stream_sentences(path)) == [("a, b", "c"), ("d", "e")]


@pytest.mark.parametrize(
    "content", ["sentence1,sentence2,label\na,b,1.5\n", "sentence1\tsentence2\tlabel\na\tb\t1.5\n"]
)
def test_nothing_is_said_of_tables_as_they_are_written_everywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    caplog.set_level(logging.INFO)
    assert read_pairs(write(tmp_path, content)).pairs["label"] == [1.5]
    assert caplog.messages == []


def test_a_header_without_names_is_no_note_of_the_separator(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the column '' occurs more than once"):
        read_pairs(write(tmp_path, ";\n" + HEADER + "a;b;1\n"))


def test_line_ends_of_old_programs_are_refused_by_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"line 1 is not valid CSV"):
        read_pairs(write(tmp_path, "sentence1;sentence2;label\ra;b;1\r"))


def test_the_lines_of_a_table_with_a_note_of_its_separator_are_counted_from_the_first(tmp_path: Path) -> None:
    path = write(tmp_path, "sep=;\n" + HEADER + "a;b;1\nc;d;x\n")
    with pytest.raises(ValueError, match=r"1 bad value \(line 4: `label` is 'x', not a number\)"):
        read_pairs(path)


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (["0,75", "1.5"], {0: "is '0,75', with a decimal comma, where others have a point"}),
        (["1.000,5"], {0: "is '1.000,5', not a number"}),
        (["1,000,000"], {0: "is '1,000,000', not a number"}),
        (["1,000", "2"], {0: "is '1,000', a thousand in some countries and a fraction in others"}),
        (["100,250", "2,5", "x"], {2: "is 'x', not a number"}),
        ([",5"], {0: "is ',5', not a number"}),
    ],
)
def test_a_comma_that_could_mean_two_things_is_asked_about(labels: list[str], problem: dict[int, str]) -> None:
    assert parse_labels(labels, None, is_nli=False).problems == problem


def test_a_leading_zero_or_another_number_of_digits_tells_what_a_comma_is() -> None:
    assert parse_labels(["0,125", "1,000"], None, is_nli=False).values == [0.125, 1.0]
    parsed = parse_labels(["2,25", "1,000", "-3", "4"], None, is_nli=False)
    assert (parsed.values, parsed.problems, parsed.has_decimal_commas) == ([2.25, 1.0, -3.0, 4.0], {}, True)


def test_grades_that_are_called_by_a_number_with_a_comma_keep_their_names() -> None:
    parsed = parse_labels(["1,5", "2"], {"1,5": 0.0, "2": 1.0}, is_nli=False)
    assert (parsed.values, parsed.has_decimal_commas) == ([0.0, 1.0], False)


def write_sheet(path: Path, rows: list[list[Any]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")
    workbook = openpyxl.Workbook()
    for row in rows:
        workbook.active.append(row)
    workbook.create_sheet("notes").append(["not read"])
    workbook.save(path)
    return path


def test_the_first_sheet_of_an_excel_file_is_read_as_text(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        [],
        ["sentence1", "sentence2 ", "label", None, "by"],
        ["a, b", "c", 0.75, "beside the table", "x"],
        [None, None, None, "a note alone"],
        [2020, date(2020, 1, 31), 1, None, None, "beyond the header"],
    ]
    path = write_sheet(tmp_path / "pairs.XLSX", rows)
    found = read_pairs(path).pairs
    assert (found["sentence1"], found["sentence2"]) == (["a, b", "2020"], ["c", "2020-01-31 00:00:00"])
    assert (found["label"], found["line"]) == ([0.75, 1.0], [3, 5])
    assert list(stream_sentences(path)) == [("a, b", "c"), ("2020", "2020-01-31 00:00:00")]


def test_the_first_visible_worksheet_is_read_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")
    path = write_sheet(tmp_path / "pairs.xlsx", [["sentence1", "sentence2", "label"], ["a", "b", 1]])
    workbook = openpyxl.load_workbook(path)
    workbook.create_chartsheet("chart", 0)
    workbook.create_sheet("hidden", 1).append(["sentence1", "sentence2", "label"])
    workbook["hidden"].sheet_state = "hidden"
    workbook.save(path)
    with caplog.at_level(logging.INFO):
        assert read_pairs(path).pairs["label"] == [1.0]
    assert caplog.messages == [f"{path}: read the sheet 'Sheet', the first of 2"]


def test_rows_of_blanks_in_a_sheet_are_skipped(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["sentence1", "sentence2", "label"], ["a", "b", 1], [" ", None, "  "], ["c", "d", 2]]
    assert read_pairs(write_sheet(tmp_path / "pairs.xlsx", rows)).pairs["line"] == [2, 4]


def test_numbers_in_cells_do_not_contradict_decimal_commas(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["sentence1", "sentence2", "label"], ["a", "b", 0.5], ["c", "d", "0,75"]]
    assert read_pairs(write_sheet(tmp_path / "pairs.xlsx", rows)).pairs["label"] == [0.5, 0.75]
    rows[1][2] = "0.5"
    with pytest.raises(ValueError, match="with a decimal comma, where others have a point"):
        read_pairs(write_sheet(tmp_path / "pairs.xlsx", rows))


@pytest.mark.parametrize("title", ["My ratings 2024;;", "My ratings 2024;", "by;me;;\n;;;"])
def test_lines_above_the_header_are_to_be_removed(tmp_path: Path, title: str) -> None:
    content = f"{title}\nSentence1; sentence2;label\na;b;1\n"
    line = content[: content.index("Sentence1")].count("\n") + 1
    with pytest.raises(ValueError, match=rf"line {line} looks like the header\. Remove the lines above it\.$"):
        read_pairs(write(tmp_path, content))


@pytest.mark.parametrize("separator", [", ", "; ", " \t"])
def test_blanks_around_the_names_of_columns_are_dropped(tmp_path: Path, separator: str) -> None:
    header, sign = separator.join(["Sentence 1", "Sentence 2", "Rater"]), separator.strip(" ")
    path = write(tmp_path, f"{header}\n{sign.join('ab1')}\n")
    for names in (["Sentence 1", "Sentence 2", "Rater"], ["Sentence 1", " Sentence 2 ", " Rater"]):
        pairs = read_pairs(path, PairColumns(*names)).pairs
        assert [pairs[0][column] for column in ("sentence1", "sentence2", "label")] == ["a", "b", 1.0]


def test_empty_columns_without_a_name_are_ignored(tmp_path: Path) -> None:
    content = HEADER.replace("\r", ";;\r") + "a;b;1;;\r\n c;d;2;; \r\n"
    pairs = read_pairs(write(tmp_path, content)).pairs
    assert (pairs["sentence1"], pairs["label"]) == (["a", " c"], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"line 3 has a value in a column without a name\. Name it in the first line"):
        read_pairs(write(tmp_path, content.replace("2;; ", "2;;x")))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no pairs"),
        ([["sentence1", "sentence2", "label"]], "holds no pairs"),
        ([[]], r"at least one pair\. Only the first sheet is read, 'Sheet'\.$"),
        (
            [["note"], ["the pairs are in another sheet"]],
            r"\['note'\] to use.* Only the first sheet is read, 'Sheet'\.$",
        ),
        (
            [["Texts", None, "Rating"], ["sentence1", "sentence2", "label"], ["a", "b", 1]],
            r"\['Texts', 'Rating'\] to use.* The first row of the sheet must hold the names of its columns\. Remove "
            r"rows above it\. Only the first sheet",
        ),
        ([["sentence1", "sentence1", "label"], ["a", "b", 1]], "the column 'sentence1' occurs more than once"),
        ([["sentence1", "sentence2", "label"], ["a", None, 1]], r"1 bad value \(line 2: `sentence2` is empty\)"),
        (
            [["sentence1", "sentence2", "label"], ["a", "b", True], ["c", "d", 2]],
            r"line 2: `label` is 'True', not a number",
        ),
    ],
)
def test_what_is_wrong_with_a_sheet_is_said(tmp_path: Path, rows: list[list[Any]], message: str) -> None:
    path = write_sheet(tmp_path / "pairs.xlsx", rows)
    with pytest.raises(ValueError, match=message):
        read_pairs(path)


def test_predicting_names_the_sheet_that_was_read(tmp_path: Path) -> None:
    path = write_sheet(tmp_path / "pairs.xlsx", [["first", "second"], ["a", "b"]])
    with pytest.raises(ValueError, match=r"Only the first sheet is read, 'Sheet'\.$"):
        list(stream_sentences(path))


def test_an_excel_file_that_is_none_or_unpacks_to_gigabytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_sheet(tmp_path / "pairs.xlsx", [["sentence1", "sentence2", "label"], ["a", "b", 1]])
    monkeypatch.setattr(excel_files, "MAX_UNPACKED_BYTES", 1000)
    with pytest.raises(
        ValueError, match=r"not a readable Excel file \(unpacks to more than 1,000 bytes\). Save the sheet"
    ):
        read_pairs(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(ValueError, match=r"not a readable Excel file \(.*\). Save the sheet as CSV."):
        read_pairs(path)
    path.write_text("sentence1,sentence2,label\na,b,1\n")
    with pytest.raises(ValueError, match=r"not a readable Excel file \(File is not a zip file\)"):
        read_pairs(path)


def test_failed_formulas_are_empty_cells() -> None:
    assert list(map(excel_files._text, ["#N/A", "#REF!", "# a title", 1.5, None])) == ["", "", "# a title", "1.5", ""]


def test_without_openpyxl_an_excel_file_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)  # as if there were none
    path = write(tmp_path, "", name="pairs.xlsx")
    message = r"Excel files need openpyxl. Install it with `pip install \"\.\[excel\]\"`, or save the sheet as CSV\.$"
    with pytest.raises(ValueError, match=message):
        read_pairs(path)
