"""Reading pairs: every format and column name in use, and one clear error for each fault of a file."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from sts_regression.data import pairs as data
from sts_regression.data import sources
from sts_regression.data.columns import LABEL_COLUMNS, PairColumns
from sts_regression.data.labels import NLI_SCALE, SICK_SCALE, STS_SCALE, UNIT_SCALE, LabelScale
from sts_regression.data.pairs import stream_sentences
from sts_regression.data.rows import SENTENCE_COLUMNS
from sts_regression.data.sources import load_hub_pairs
from sts_regression.data.sts_tasks import read_senteval_subset

GRADES = {"irrelevant": 0.0, "relevant": 1.0}
HEADER = "sentence1,sentence2,label\n"
Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file and returns its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def in_file(path: Path, message: str) -> str:
    """A pattern for a message about the file; `.*` in the message stands for anything, all else for itself."""
    return "^" + ".*".join(re.escape(part) for part in f"{path}: {message}".split(".*"))


def read_pairs(path: Path, *args: Any, **options: Any) -> Dataset:
    return data.read_pairs(path, *args, **options).pairs


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
        ("empty_row_of_a_spreadsheet.csv", "sentence1;sentence2;label\n;;\nA cat.;A dog.;1.5\n ; ;\n"),
        ("sick.txt", "pair_ID\tsentence_A\tsentence_B\trelatedness_score\n1\tA cat.\tA dog.\t1.5\n"),
        ("lines.jsonl", '{"sentence1": "A cat.", "sentence2": "A dog.", "label": 1.5}\n\n'),
        ("bom.jsonl", '\ufeff{"sentence1": "A cat.", "sentence2": "A dog.", "label": 1.5}\n'),
        ("upper_case_suffix.JSON", '{"sentence1": "A cat.", "sentence2": "A dog.", "label": 1.5}'),
        ("text_label.jsonl", '{"sentence1": "A cat.", "sentence2": "A dog.", "score": "1.5"}\n'),
    ],
)
def test_formats(write: Write, name: str, content: str) -> None:
    assert rows(read_pairs(write(name, content))) == [("A cat.", "A dog.", 1.5)]


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    Dataset.from_dict({"sentence1": ["A cat.", "b"], "sentence2": ["A dog.", "c"], "score": [2, 3]}).to_parquet(path)
    assert rows(read_pairs(path)) == [("A cat.", "A dog.", 2.0), ("b", "c", 3.0)]


def test_parquet_is_checked_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    columns = {"sentence1": ["a", "b"], "sentence2": ["c", None], "label": [1.0, None]}
    Dataset.from_dict(columns).to_parquet(path)
    message = "2 bad values (line 2: `sentence2` is empty; line 2: `label` is empty). Correct or remove"
    with pytest.raises(ValueError, match=in_file(path, message)):
        read_pairs(path)


def test_tab_separated_files_keep_quotation_marks(write: Write) -> None:
    path = write("pairs.tsv", 'sentence1\tsentence2\tlabel\n"A" b\t"c, d\t1\n')
    assert rows(read_pairs(path)) == [('"A" b', '"c, d', 1.0)]


@pytest.mark.parametrize(
    "content",
    [
        '"sentence1"\t"sentence2"\t"label"\n"a cat"\t"a, b"\t1\n"c"\t"d"\t2\n',  # as R writes it
        '"sentence1"\t"sentence2"\t"label"\n"a cat"\t"a, b"\t"1"\n"c"\t"d"\t"2"\n',
        'sentence1\tsentence2\tlabel\na cat\t"a, b"\t1\nc\td\t2\n',  # as Excel writes it
    ],
)
def test_quoted_fields_of_tab_separated_files_lose_their_marks(write: Write, content: str) -> None:
    assert rows(read_pairs(write("pairs.tsv", content))) == [("a cat", "a, b", 1.0), ("c", "d", 2.0)]


@pytest.mark.parametrize("closing", ['c" d', 'c"'])
def test_an_open_mark_in_one_line_is_not_closed_in_another(write: Write, closing: str) -> None:
    path = write("pairs.tsv", f'sentence1\tsentence2\tlabel\n"a\tb\t1\n{closing}\td\t2\n')
    assert rows(read_pairs(path)) == [('"a', "b", 1.0), (closing, "d", 2.0)]


def test_sick_as_distributed_keeps_quotation_marks(write: Write) -> None:
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    path = write("SICK_train.txt", f'{header}\n1\t"A cat."\tA dog.\t3.5\tNEUTRAL\n')
    assert rows(read_pairs(path)) == [('"A cat."', "A dog.", 3.5)]


@pytest.mark.parametrize("first_sentence", ['A "plane.', "One, two, three, four, five, six, seven, eight.", "a;" * 9])
def test_stsb_as_distributed_has_no_header_no_quoting_and_further_columns(write: Write, first_sentence: str) -> None:
    lines = (
        f"main-captions\tMSRvid\t2012test\t0001\t5.000\t{first_sentence}\tAn air plane.\n"
        "main-news\theadlines\t2013\t0002\t3.800\tOne.\tTwo.\tsource one\tsource two\n"
    )
    pairs = read_pairs(write("sts-train.csv", lines))
    assert rows(pairs) == [(first_sentence, "An air plane.", 5.0), ("One.", "Two.", 3.8)]
    assert pairs["line"] == [1, 2]


def test_quotes_hold_separators_and_line_breaks_in_comma_separated_files(write: Write) -> None:
    path = write("pairs.csv", 'sentence1,sentence2,label\n"A, ""b""","two\r\nlines",1\nc,d,2\n')
    pairs = read_pairs(path)
    assert rows(pairs) == [('A, "b"', "two\r\nlines", 1.0), ("c", "d", 2.0)]
    assert pairs["line"] == [2, 4]


@pytest.mark.parametrize("sentence_columns", SENTENCE_COLUMNS)
@pytest.mark.parametrize("label_column", LABEL_COLUMNS)
def test_column_names_in_use_are_found_in_any_case(
    write: Write, sentence_columns: tuple[str, str], label_column: str
) -> None:
    header = ",".join((label_column, *sentence_columns)).upper()
    assert rows(read_pairs(write("pairs.csv", f"{header}\n3,a,b\n"))) == [("a", "b", 3.0)]


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("text,text_pair,label\na,b,1\n", ("a", "b")),
        ("text,answer,label,question\na,b,1,c\n", ("c", "b")),
    ],
)
def test_keys_of_the_pipeline_and_answers_are_guessed_as_texts(
    write: Write, content: str, texts: tuple[str, str]
) -> None:
    assert rows(read_pairs(write("pairs.csv", content))) == [(*texts, 1.0)]


def test_named_columns_win_over_the_guess(write: Write) -> None:
    path = write("pairs.csv", "sentence1,sentence2,label,left,right,mark\na,b,1,c,d,2\n")
    assert rows(read_pairs(path, PairColumns("left", "right", "mark"))) == [("c", "d", 2.0)]


def test_names_of_grades_become_values_and_numbers_stay(write: Write) -> None:
    path = write("pairs.csv", "sentence1,sentence2,label\na,b,relevant\nc,d,irrelevant\ne,f,0.5\n")
    assert read_pairs(path, grades=GRADES)["label"] == [1.0, 0.0, 0.5]


def test_labels_are_not_read_where_none_is_needed(write: Write) -> None:
    without = read_pairs(write("without.csv", "sentence1,sentence2\na,b\n"), labelled=False)
    assert without.column_names == ["sentence1", "sentence2", "line"]
    with_labels = read_pairs(write("with.csv", "sentence1,sentence2,label\na,b,good\nc,d,\n"), labelled=False)
    assert with_labels.column_names == ["sentence1", "sentence2", "line"]


def test_of_several_names_the_one_that_the_file_has(write: Write) -> None:
    path = write("pairs.csv", "sentence1,sentence2,label,mark\na,b,1,2\n")
    assert rows(read_pairs(path, PairColumns(label=["absent", "mark"]))) == [("a", "b", 2.0)]
    with pytest.raises(ValueError, match="`--label_column` 'absent or missing' is not among its columns"):
        read_pairs(path, PairColumns(label=["absent", "missing"]))
    with pytest.raises(ValueError, match="`--label_column` '' is not among its columns"):
        read_pairs(path, PairColumns(label=""))


def test_a_named_label_column_is_optional_where_no_label_is_needed(write: Write) -> None:
    path = write("pairs.csv", "sentence1,sentence2\na,b\n")
    pairs = read_pairs(path, PairColumns(label="mark"), labelled=False)
    assert pairs.column_names == ["sentence1", "sentence2", "line"]


def test_a_text_longer_than_the_csv_modules_limit_is_read_whole(write: Write) -> None:
    text = "long " * 40_000  # 200,000 characters; the limit is 131,072
    assert read_pairs(write("pairs.csv", f"sentence1,sentence2,label\n{text},b,1\n"))["sentence1"] == [text]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        # labels
        ("a,b,1\nc,d,good\n", "1 bad value (line 3: `label` is 'good', not a number). .* Found: 'good'."),
        ("a,b,nan\n", "1 bad value (line 2: `label` is 'nan', not a finite number). Correct or remove these lines."),
        ("a,b,-inf\n", "1 bad value (line 2: `label` is '-inf', not a finite number). Correct or remove"),
        ("a,b,\n", "1 bad value (line 2: `label` is empty). Correct or remove these lines."),
        # sentences
        ("a,,1\n", "1 bad value (line 2: `sentence2` is empty). Correct or remove these lines."),
        ("  ,b,1\n", "1 bad value (line 2: `sentence1` is '  '). Correct or remove these lines."),
        ("a\0,b,1\n", "line 2 .*NUL"),
        # many problems: the first three are shown
        ("a,b,x\n" * 5, "5 bad values (line 2: .*; line 3: .*; line 4: `label` is 'x', not a number). Correct or"),
        # the table
        ("a,b\n", "line 2 has 2 fields, but 3 are expected (sentence1, sentence2, label). Quote fields"),
        ("a,b,c,1\n", "line 2 has 4 fields, but 3 are expected .* Quote fields that hold the separator ','."),
        ('"a"x,b,1\n', "line 2 is not valid CSV (.*). Check its quotes and line endings."),
        ('a,"b,1\n', "line 2 is not valid CSV (.*). Check its quotes and line endings."),
        ('a,b,1\nc,"d,1\n' + "e,f,2\n" * 50, "line 3 is not valid CSV (.*). Check its quotes and line endings."),
        ("", "holds no pairs. Give a file with a header and at least one pair."),
    ],
)
def test_what_is_wrong_below_the_header_is_said_with_file_line_and_remedy(
    write: Write, content: str, message: str
) -> None:
    path = write("pairs.csv", HEADER + content)
    with pytest.raises(ValueError, match=in_file(path, message)):
        read_pairs(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pairs.csv", "", "holds no pairs. Give a file with a header and at least one pair."),
        (
            "pairs.csv",
            "id,one,the other,remark,points\n7,a b,c,,1\n",
            "cannot tell which of the columns ['id', 'one', 'the other', 'remark', 'points'] to use. The first row "
            "holds id '7', one 'a b', the other 'c', remark '', points '1'. Name them, for example "
            "`--sentence1_column one --sentence2_column 'the other' --label_column points`.",
        ),
        (
            "pairs.csv",
            f"sentence1,b,label\n{'a' * 40},b,1\n",
            f".* The first row holds sentence1 '{'a' * 29}…', b 'b', label '1'. Name them, for example "
            "`--sentence1_column sentence1 --sentence2_column b --label_column label`",
        ),
        (
            "pairs.csv",
            "sentence1,sentence2,id,rater1,rater2,rater3\na,b,7,1,2,3\n",
            ".* for example `--sentence1_column sentence1 --sentence2_column sentence2 --label_column rater1 rater2 "
            "rater3`",
        ),
        (
            "pairs.csv",
            "sentence1,sentence2,rater1,rater2,rater3,note\na,b,,1,2,\n",
            ".* for example `--sentence1_column sentence1 --sentence2_column sentence2 --label_column rater1 rater2 "
            "rater3`",
        ),
        (
            "pairs.csv",
            "request,reply,points,ticket_id,Date\na b,c d,2,1234567,20260102\n",
            ".* for example `--sentence1_column request --sentence2_column reply --label_column points`",
        ),
        (
            "pairs.csv",
            "sentence1,sentence2,note\na,b,good\n",
            ".* for example `--sentence1_column sentence1 --sentence2_column sentence2 --label_column note`",
        ),
        (
            "pairs.csv",
            "a and b\nc\n",
            "cannot tell which of the columns ['a and b'] to use: two texts and a label are needed. The first line",
        ),
        (
            "pairs.csv",
            "sentence1,sentence2,note\na,b,good\n",
            "the texts are 'sentence1' and 'sentence2', but none of the columns ['sentence1', 'sentence2', 'note'] "
            "has a usual name of a label. The first row holds .* --label_column note`.",
        ),
        (
            "pairs.jsonl",
            '{"pair": {"a": "b", "c": "d"}, "label": 1}\n',
            "cannot tell which of the columns ['pair', 'label'] to use: two texts and a label are needed. Nested "
            "values are not read. Give each text a field of its own.",
        ),
        (
            "pairs.jsonl",
            '{"id": 1, "pair": ["a", "b"], "label": 1}\n',
            ".*. Nested values are not read. Give each text a field of its own.",
        ),
        (
            "pairs.jsonl",
            '{"text": "a", "label": 1}\n',
            ".*: two texts and a label are needed. Give each text a field of its own.",
        ),
        (
            "pairs.csv",
            f"{'a red cat ' * 9},{'a dog ' * 99},5\na,b,1\n",
            "cannot tell which of the columns ['a red cat a red cat a red cat…', 'a dog a dog a dog a dog a dog…', "
            "'5'] to use. Is the header missing?",
        ),
        (
            "pairs.csv",
            f"{','.join(map(str, range(99)))}\n{','.join('a' * 99)}\n",
            "cannot tell which of the columns ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', …] to use.",
        ),
        (
            "pairs.csv",
            "sentence2,sentence1\na,b\n",
            "there is no label column. The columns are 'sentence2', 'sentence1'. Add one, such as `label`.",
        ),
        (
            "pairs.csv",
            "a red cat,a cat,5\na dog,a house,0\n",
            "cannot tell which of the columns ['a red cat', 'a cat', '5'] to use. Is the header missing? Then add a "
            "first line such as `sentence1,sentence2,label`. The first row holds .*. If there is a header, name the "
            "columns, for example `--sentence1_column 'a red cat'",
        ),
        ("pairs.csv", "a red cat sleeps,a cat,high\na,b,c\n", ".* to use. Is the header missing?"),
        ("pairs.jsonl", '{"0": "a", "1": "b", "2": 3}\n', ".* to use. The first row holds 0 'a'"),
        ("pairs.csv", HEADER.encode() + b"a,b,1\n" * 5000 + b"caf\xe9,d,2\n", "line 5002 is not valid UTF-8. Save"),
        (
            "pairs.csv",
            (HEADER + "a,b,1\n").encode("utf-16"),
            "line 1 is not valid UTF-8. Save the file as UTF-8; in Excel",
        ),
        (
            "pairs.jsonl",
            b'{"sentence1": "a", "sentence2": "b", "label": 1}\n\xe9',
            "line 2 is not valid UTF-8. Save the file as UTF-8; in Excel",
        ),
        ("pairs.docx", "x", "unknown kind of file '.docx'. Known kinds: .jsonl, .json, .csv"),
        ("pairs.xls", "x", "unknown kind of file '.xls'. Known kinds: .* Save the sheet as .xlsx or CSV."),
        ("pairs.csv.gz", "x", "unknown kind of file '.gz'. Known kinds: .* Unpack it first."),
        ("pairs.parquet", "no parquet", "not a readable Parquet file (.*). .*"),
    ],
)
def test_a_file_that_is_no_file_of_pairs_is_refused(
    write: Write, name: str, content: str | bytes, message: str
) -> None:
    path = write(name, content)
    with pytest.raises(ValueError, match=in_file(path, message)):
        read_pairs(path)


@pytest.mark.parametrize(
    ("second_line", "message"),
    [
        ('{"sentence1": "a"', "line 2 is not valid JSON (.*). Write one JSON object per line."),
        ('{"sentence1": "a", "label": 1, "label": 2}', "line 2 is not valid JSON (a name occurs more than once)."),
        ('[{"sentence1": "a"}]', "line 2 is not a JSON object. Write one JSON object per line."),
        ('{"sentence1": "a", "label": 1}', "1 bad value (line 2: `sentence2` is empty). Correct or"),
        ('{"sentence1": "a", "sentence2": null, "label": 1}', "1 bad value (line 2: `sentence2` is empty). Correct"),
        ('{"sentence1": "a", "sentence2": 7, "label": 1}', "1 bad value (line 2: `sentence2` is 7). Correct or"),
        ('{"sentence1": "a\\ud800", "sentence2": "b", "label": 1}', "1 bad value (line 2: `sentence1` .*). Correct"),
        ('{"sentence1": "a", "sentence2": "b"}', "1 bad value (line 2: `label` is empty). Correct"),
        ('{"sentence1": "a", "sentence2": "b", "label": true}', "1 bad value (line 2: `label` is True, not one of"),
        ('{"sentence1": "a", "sentence2": "b", "label": NaN}', "1 bad value (line 2: `label` is nan, not a finite"),
        ('{"sentence1": "a", "sentence2": "b", "label": [1]}', "1 bad value (line 2: `label` is [1], not one of"),
        ('{"sentence1": "a", "sentence2": "b", "label": 1%s}' % ("0" * 400), "1 bad value (line 2: `label` is 10"),
    ],
)
def test_what_is_wrong_with_json_lines_is_said(write: Write, second_line: str, message: str) -> None:
    path = write("pairs.jsonl", f'{{"sentence1": "a", "sentence2": "b", "label": 1}}\n{second_line}\n')
    with pytest.raises(ValueError, match=in_file(path, message)):
        read_pairs(path, grades=GRADES)


def test_an_unknown_grade_names_the_known_ones(write: Write) -> None:
    path = write("pairs.csv", HEADER + "a,b,relevnt\nc,d,highly relevant\ne,f,\n")
    message = (
        "3 bad values (line 2: `label` is 'relevnt', not one of 'irrelevant', 'relevant'; line 3: .*; line 4: `label` "
        "is empty). Correct or remove these lines. Or correct `--grade_names`: the labels are 'relevnt', 'highly "
        "relevant'."
    )
    with pytest.raises(ValueError, match=in_file(path, message)):
        read_pairs(path, grades=GRADES)


def test_an_empty_label_is_no_reason_to_name_other_grades(write: Write) -> None:
    path = write("pairs.csv", HEADER + "a,b,relevant\nc,d, \n")
    with pytest.raises(ValueError, match=in_file(path, "1 bad value (line 3: `label` is empty)")) as refusal:
        read_pairs(path, grades=GRADES)
    assert str(refusal.value).endswith("Correct or remove these lines.")


@pytest.mark.parametrize(
    ("labels", "hint"),
    [
        (["low", "high", "very high", "low"], " If they are names of grades, .* Found: 'low', 'high', 'very high'.$"),
        (["Low", "high", "low", "HIGH"], " If they are names of grades, .* Found: 'Low', 'high'.$"),
        (["low", "1", "2", "low"], " If they are names of grades, .* Found: 'low'.$"),
        (["1", "2", "n/a", "3"], "$"),
        (
            [f"a text of {i}" for i in range(11)],
            " If the labels are in another column, name it with `--label_column`.$",
        ),
    ],
)
def test_labels_that_are_no_numbers_may_be_names_or_another_column(write: Write, labels: list[str], hint: str) -> None:
    path = write("pairs.csv", HEADER + "".join(f"a,b,{label}\n" for label in labels))
    with pytest.raises(ValueError, match=f"Correct or remove these lines\\.{hint}"):
        read_pairs(path)


def test_numbers_of_rows_are_not_suggested_as_labels(write: Write) -> None:
    path = write("pairs.csv", "Nr,Request,Reply,Verdict\n1,how are you,fine and you,related\n")
    options = "`--sentence1_column Request --sentence2_column Reply --label_column Verdict`"
    with pytest.raises(ValueError, match=in_file(path, f".* for example {options}")):
        read_pairs(path)


def test_columns_without_a_label_are_two(write: Write) -> None:
    path = write("pairs.csv", "request,reply\na,b\n")
    message = ".* for example `--sentence1_column request --sentence2_column reply`. The first line"
    with pytest.raises(ValueError, match=in_file(path, message)):
        list(stream_sentences(path))


@pytest.mark.parametrize("option", ["sentence1", "sentence2", "label"])
@pytest.mark.parametrize("header", [HEADER, "request,reply,mark\n"])  # the others are guessed, or cannot be
def test_a_named_column_must_exist(write: Write, header: str, option: str) -> None:
    path = write("pairs.csv", f"{header}a,b,1\n")
    with pytest.raises(ValueError, match=in_file(path, f"`--{option}_column` 'x' is not among its columns ['")):
        read_pairs(path, PairColumns(**{option: "x"}))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("absent.csv", "no such file"),
        ("x" * 300, "no such file (File name too long)"),
        ("a\0.csv", "no such file"),
        (".", "is a folder, a pipe or a device"),
    ],
    ids=["absent", "long", "NUL", "folder"],
)
def test_a_missing_file_or_a_folder_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    message = f"{problem}. Give a CSV, TSV, JSON-lines, Parquet or Excel file."
    with pytest.raises(ValueError, match=in_file(tmp_path / name, message)):
        read_pairs(tmp_path / name)


Hub = dict[tuple[str, str | None, str], Dataset]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    """The Hub: data sets by name, configuration and split. Others cannot be reached."""
    stored: Hub = {}

    def get_dataset_split_names(name: str, config_name: str | None) -> list[str]:
        if not any(key[:2] == (name, config_name) for key in stored):
            raise ConnectionError("no network")
        return [split for *key, split in stored if key == [name, config_name]]

    monkeypatch.setattr(sources, "check_there", lambda *args, **options: None)
    monkeypatch.setattr(sources, "get_dataset_split_names", get_dataset_split_names)
    monkeypatch.setattr(sources, "load_dataset", lambda name, config_name, split: stored[name, config_name, split])
    return stored


def hub_pairs(label: list[Any], features: datasets.Features | None = None) -> Dataset:
    columns = {"premise": [f"a{i}" for i in range(len(label))], "hypothesis": ["b"] * len(label), "label": label}
    return Dataset.from_dict(columns, features=features)


def test_a_hub_data_set_is_read_like_a_file(hub: Hub) -> None:
    hub["some/sts", "en", "test"] = Dataset.from_dict({"sentence1": ["a"], "sentence2": ["b"], "score": ["relevant"]})
    found = load_hub_pairs("some/sts", "test", "en", grades=GRADES)
    assert found is not None
    assert (found.name, rows(found.pairs), found.pairs["line"]) == ("some/sts (test)", [("a", "b", 1.0)], [1])
    with pytest.raises(ValueError, match=r"^some/sts \(test\): `--label_column` 'x' is not among its columns"):
        load_hub_pairs("some/sts", "test", "en", PairColumns(label="x"))


@pytest.mark.parametrize(
    ("split", "hub_split"),
    [("validation", "dev"), ("validation", "validation_matched"), ("test", "validation_mismatched")],
)
def test_other_names_of_splits_in_use_are_found(hub: Hub, split: str, hub_split: str) -> None:
    hub["some/nli", None, hub_split] = hub_pairs([0.5])
    found = load_hub_pairs("some/nli", split)
    assert found is not None
    assert found.name == f"some/nli ({hub_split})"
    assert load_hub_pairs("some/nli", "train") is None


@pytest.mark.parametrize(
    ("name", "scale"),
    [("sentence-transformers/stsb", UNIT_SCALE), ("mteb/sickr-sts", SICK_SCALE), ("mteb/sts12-sts", STS_SCALE)],
)
def test_the_scale_of_known_hub_data_sets(hub: Hub, name: str, scale: LabelScale) -> None:
    hub[name, None, "test"] = hub_pairs([0.5, 1.0])
    found = load_hub_pairs(name, "test")
    assert found is not None
    assert found.scale == scale


def test_nli_on_the_hub_counts_entailment_as_0_and_no_class_as_minus_1(hub: Hub) -> None:
    text, classes = datasets.Value("string"), datasets.ClassLabel(names=["entailment", "neutral", "contradiction"])
    features = datasets.Features({"premise": text, "hypothesis": text, "label": classes})
    hub["sentence-transformers/all-nli", "pair-class", "train"] = hub_pairs([0, -1, 1, 2], features)
    found = load_hub_pairs("sentence-transformers/all-nli", "train")
    assert found is not None
    assert rows(found.pairs) == [("a0", "b", 2.0), ("a2", "b", 1.0), ("a3", "b", 0.0)]
    assert (found.scale, found.num_unlabelled, found.pairs["line"]) == (NLI_SCALE, 1, [1, 3, 4])


def test_classes_in_a_parquet_file_keep_their_names(tmp_path: Path) -> None:
    text, classes = datasets.Value("string"), datasets.ClassLabel(names=["relevant", "irrelevant"])
    features = datasets.Features({"premise": text, "hypothesis": text, "label": classes})
    hub_pairs([0, 1], features).to_parquet(tmp_path / "pairs.parquet")
    assert read_pairs(tmp_path / "pairs.parquet", grades=GRADES)["label"] == [1.0, 0.0]


@pytest.mark.parametrize("value", [2, -2])
def test_a_class_without_a_name_in_a_parquet_file_is_refused(tmp_path: Path, value: int) -> None:
    features = datasets.Features({"label": datasets.ClassLabel(names=["relevant", "irrelevant"])})
    Dataset.from_dict({"label": [0]}, features=features).to_parquet(tmp_path / "classes.parquet")
    path, schema = tmp_path / "pairs.parquet", pq.read_schema(tmp_path / "classes.parquet")
    pq.write_table(pa.table({"label": pa.array([0, value])}, schema=schema), path)
    message = f"not a readable Parquet file (the column 'label' holds {value}, which is not one of its classes)."
    with pytest.raises(ValueError, match=in_file(path, message)):
        read_pairs(path)


@pytest.mark.usefixtures("hub")
def test_a_hub_data_set_that_cannot_be_had_gives_both_remedies() -> None:
    message = (
        r"'train' of 'some/sts' \(ConnectionError: no network\)\. Check the name and the network, .*`--train_file`"
    )
    with pytest.raises(ValueError, match=message):
        load_hub_pairs("some/sts", "train")


SNLI = '{{"gold_label": "{}", "sentence1": "a", "sentence2": "b"}}\n'


@pytest.mark.parametrize(
    ("name", "content", "labels", "num_unlabelled"),
    [
        ("snli.jsonl", "".join(map(SNLI.format, ("neutral", "-", "entailment", "contradiction"))), [1, 2, 0], 1),
        ("capitals.tsv", "sentence_A\tsentence_B\tlabel\na\tb\tNEUTRAL\na\tb\tENTAILMENT\n", [1, 2], 0),
        ("pair.csv", "premise,hypothesis,label\na,b,neutral\na,b,-\na,b,-1\n", [1], 2),
    ],
)
def test_nli_classes_are_grades_and_pairs_without_a_class_are_dropped_and_counted(
    write: Write, name: str, content: str, labels: list[float], num_unlabelled: int
) -> None:
    found = data.read_pairs(write(name, content))
    assert (found.pairs["label"], found.scale, found.num_unlabelled) == (labels, NLI_SCALE, num_unlabelled)


def test_a_file_of_pairs_without_a_class_holds_no_pairs(write: Write) -> None:
    with pytest.raises(ValueError, match="holds no pairs"):
        data.read_pairs(write("snli.jsonl", SNLI.format("-")))


def test_a_minus_is_no_missing_grade_outside_nli(write: Write) -> None:
    with pytest.raises(ValueError, match="line 3: `label` is '-', not a number"):
        read_pairs(write("pairs.csv", HEADER + "a,b,1\na,b,-\n"))


def test_nli_classes_as_numbers_must_be_explained(write: Write) -> None:
    path = write("nli.csv", "premise,hypothesis,label\na,b,0\nc,d,1\ne,f,2\ng,h,-1\n")
    with pytest.raises(ValueError, match=in_file(path, "labels 0, 1, 2 of premise .* give `--grade_names 2 1 0`")):
        read_pairs(path)
    found = data.read_pairs(path, grades={"2": 0.0, "1": 1.0, "0": 2.0})
    assert (found.pairs["label"], found.num_unlabelled) == ([2, 1, 0], 1)


def test_the_scale_of_known_files(write: Write) -> None:
    stsb = "main-captions\tMSRvid\t2012test\t0001\t5.000\tA plane.\tAn air plane.\n"
    sick = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\n1\ta\tb\t{}\n"
    scales = {stsb: STS_SCALE, sick.format(3.5): SICK_SCALE, sick.format(0.5): None, HEADER + "a,b,3\n": None}
    assert {content: data.read_pairs(write("x.csv", content)).scale for content in scales} == scales


def test_subsets_are_kept(write: Write) -> None:
    pairs = read_pairs(write("x.csv", "subset,sentence1,sentence2,score\nnews,a,b,1\n,c,d,2\n"))
    assert pairs["subset"] == ["news", ""]
    line = '{"sentence1": "a", "sentence2": "b", "score": 1, "subset": %s}\n'
    assert read_pairs(write("x.jsonl", line % 0 + line % "null"))["subset"] == ["0", ""]
    half = write("half.jsonl", line % '"\\ud800"')
    with pytest.raises(
        ValueError, match=in_file(half, "1 bad value (line 1: `subset` is '\\ud800', which holds half")
    ):
        read_pairs(half)


@pytest.mark.parametrize(
    ("header", "columns", "message"),
    [
        ("sentence1,sentence2,label,Label", None, "has the columns ['label', 'Label']. Name .* `--label_column`."),
        (
            "sentence1,sentence2,label",
            PairColumns("sentence2"),
            "must be different columns, but are 'sentence2', 'sent",
        ),
        (
            "sentence1,sentence2,label",
            PairColumns(label="sentence1"),
            "must be different columns, but are 'sentence1',",
        ),
    ],
)
def test_no_column_is_guessed_where_two_could_be_meant(
    write: Write, header: str, columns: PairColumns | None, message: str
) -> None:
    path = write("x.csv", f"{header}\n{','.join('1234'[: header.count(',') + 1])}\n")
    with pytest.raises(ValueError, match=in_file(path, f".*{message}")):
        read_pairs(path, columns)


def test_columns_of_one_name_in_a_parquet_file_are_refused(tmp_path: Path) -> None:
    path, names = tmp_path / "x.parquet", ["sentence1", "sentence2", "label", "label"]
    pq.write_table(pa.table([pa.array([column]) for column in ("a", "b", 1, 2)], names=names), path)
    with pytest.raises(ValueError, match=in_file(path, "not a readable Parquet file (the column 'label' occurs more")):
        read_pairs(path)


@pytest.fixture
def senteval_subset(write: Write) -> Path:
    write("STS.gs.news.txt", "4.2\n\n0\n")
    return write("STS.input.news.txt", 'a "b\tc\nno\tscore\nd\te\n')


def test_a_senteval_subset_skips_pairs_without_gold_score(senteval_subset: Path) -> None:
    found = read_senteval_subset(senteval_subset)
    assert rows(found.pairs) == [('a "b', "c", 4.2), ("d", "e", 0.0)]
    assert (found.pairs["line"], found.pairs["subset"], found.scale) == ([1, 3], ["news", "news"], STS_SCALE)


def test_a_damaged_senteval_subset_is_refused(senteval_subset: Path, write: Write) -> None:
    gold = write("STS.gs.news.txt", "4.2\n")
    with pytest.raises(ValueError, match=in_file(gold, "1 lines for 3 pairs. Fetch the tree again.")):
        read_senteval_subset(senteval_subset)
    gold.unlink()
    with pytest.raises(ValueError, match=in_file(gold, "no such file. It belongs beside STS.input.news.txt")):
        read_senteval_subset(senteval_subset)
    write("STS.gs.news.txt", "1\n2\n3\n")
    with pytest.raises(
        ValueError, match=in_file(senteval_subset, "line 1 is not a pair of sentences separated by a tab")
    ):
        read_senteval_subset(write("STS.input.news.txt", "no tab\nb\tc\nd\te\n"))
