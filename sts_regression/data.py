"""Reading graded pairs from files or the Hub, and checking them.

Everything a reader returns is a `datasets.Dataset` with the columns `sentence1`, `sentence2`, `label` (a number on the
label scale; absent where the data has none and none is needed) and `line` (where the pair stands in its file, for
messages). Whatever is wrong with the data is said here, with file, line and remedy, before any training starts.
"""

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset, load_dataset

# Column names in use, in the order they are looked for; names are compared in lower case.
SENTENCE_COLUMNS = (
    ("sentence1", "sentence2"),
    ("sentence_a", "sentence_b"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("query", "document"),
)
LABEL_COLUMNS = (
    "label",
    "score",
    "similarity_score",
    "relatedness_score",
    "similarity",
    "grade",
    "rating",
    "gold_label",
)
# STS-B as its authors distribute it: tab-separated, no header, no quoting, sometimes with further columns.
STSB_COLUMNS = ("genre", "file", "year", "id", "score", "sentence1", "sentence2")

DELIMITERS = ("\t", ";", ",")
JSON_SUFFIXES = (".jsonl", ".json")
TABLE_SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET_SUFFIXES = (".parquet",)

# More whole-number grades than this are a measurement, not a scale of grades; the user then names the nodes.
MAX_GUESSED_NODES = 101
PROBLEMS_SHOWN = 3

Row = tuple[int, dict[str, Any]]  # the line in the file, and its fields by column name


@dataclass(frozen=True)
class PairColumns:
    """Names of the columns of a data file; `None` where the name is to be guessed."""

    sentence1: str | None = None
    sentence2: str | None = None
    label: str | None = None


def read_pairs(
    path: str | Path,
    columns: PairColumns | None = None,
    grades: Mapping[str, float] | None = None,
    labelled: bool = True,
) -> Dataset:
    """
    Reads pairs from a local CSV, TSV, JSON-lines or Parquet file, or from STS-B as its authors distribute it.

    Args:
        path: the file. Text files must be UTF-8. The separator of a `.csv`, `.tsv` or `.txt` file (tab, semicolon or
            comma) is taken from its first line; quotes are honoured unless it is a tab.
        columns: column names, where the guess would be wrong.
        grades: names that labels may have instead of numbers, and their values on the label scale.
        labelled: whether a label is required. If not, a file without a label column is read without labels.

    Returns:
        `Dataset` with `sentence1`, `sentence2`, `label` (float) and `line`.

    Raises:
        ValueError: for a missing or unreadable file, a missing column, an empty sentence, a label that is no finite
            number or no known name; it names the file, the first bad lines and the remedy.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: no such file. Give a CSV, TSV, JSON-lines or Parquet file.")
    readers = {JSON_SUFFIXES: _json_rows, TABLE_SUFFIXES: _table_rows, PARQUET_SUFFIXES: _parquet_rows}
    reader = next((reader for suffixes, reader in readers.items() if path.suffix.lower() in suffixes), None)
    if reader is None:
        known = ", ".join(suffix for suffixes in readers for suffix in suffixes)
        raise ValueError(f"{path}: unknown kind of file {path.suffix!r}. Known are {known}.")
    try:
        return _pairs_from_rows(reader(path), str(path), columns or PairColumns(), grades, labelled)
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: _first_undecodable_byte(path)].count(b"\n") + 1
        raise ValueError(f"{path}: line {line} is not valid UTF-8. Save the file as UTF-8.") from error


def load_hub_pairs(
    name: str,
    split: str,
    config_name: str | None = None,
    columns: PairColumns | None = None,
    grades: Mapping[str, float] | None = None,
) -> Dataset:
    """Reads one split of a data set on the Hub, for example `sentence-transformers/stsb`; else as [`read_pairs`]."""
    try:
        dataset = load_dataset(name, config_name, split=split)
    except Exception as error:  # the loaders raise many kinds, all of which mean the same to the user
        raise ValueError(
            f"`dataset_name`: could not load the split {split!r} of {name!r} ({type(error).__name__}: {error}). Check "
            "the name and the network, or give local files with `--train_file`, `--validation_file` and "
            "`--test_file`."
        ) from error
    rows = ((index + 1, row) for index, row in enumerate(dataset))
    return _pairs_from_rows(rows, f"{name} ({split})", columns or PairColumns(), grades, labelled=True)


def infer_label_values(labels: Iterable[float]) -> list[float]:
    """
    The nodes of the label scale that the labels suggest.

    Whole numbers: every number from the lowest to the highest. Fractions within 0-1: 0, 0.2, … 1, six grades as in
    STS-B divided by five. Other fractions: the whole numbers around them.

    Raises:
        ValueError: where that would be more than 101 nodes, or one.
    """
    labels = list(labels)
    low, high = min(labels), max(labels)
    if low >= 0 and high <= 1 and not set(labels) <= {0.0, 1.0}:
        return [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    nodes = range(math.floor(low), math.ceil(high) + 1)
    if not 2 <= len(nodes) <= MAX_GUESSED_NODES:
        raise ValueError(
            f"`label_values`: no scale of grades is apparent from labels between {low:g} and {high:g}. Give the "
            "grades, for example `--label_values 0 25 50 75 100`."
        )
    return [float(node) for node in nodes]


def check_labels_differ(pairs: Dataset, name: str) -> None:
    """Refuses pairs whose labels are all equal: a `ValueError` that names `name` and the remedy."""
    if len(set(pairs["label"])) == 1:
        raise ValueError(
            f"{name}: all {len(pairs):,} labels are {pairs['label'][0]:g}, so that there is nothing to rank and "
            "Spearman's correlation is undefined. Give pairs with at least two different labels."
        )


def check_label_scale(pairs: Dataset, name: str, label_values: Sequence[float]) -> None:
    """Refuses labels outside the scale: a `ValueError` that names `name`, the first bad lines and the remedy."""
    low, high = min(label_values), max(label_values)
    labels = zip(pairs["line"], pairs["label"], strict=True)
    outside = [(line, label) for line, label in labels if not low <= label <= high]
    if outside:
        shown = ", ".join(f"{label:g} in line {line}" for line, label in outside[:PROBLEMS_SHOWN])
        raise ValueError(
            f"{name}: {len(outside):,} of {len(pairs):,} labels lie outside the scale {low:g} to {high:g} ({shown}). "
            "Correct them, or give the whole scale with `--label_values`."
        )


def _first_undecodable_byte(path: Path) -> int:
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _json_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig") as file:
        for line, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                row = json.loads(text)
            except json.JSONDecodeError as error:
                raise ValueError(
                    f"{path}: line {line} is not valid JSON ({error}). Write one JSON object a line."
                ) from error
            if not isinstance(row, dict):
                raise ValueError(f"{path}: line {line} is not a JSON object. Write one JSON object a line.")
            yield line, row


def _table_rows(path: Path) -> Iterator[Row]:
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8-sig", newline="") as file:
        first_line = file.readline()
        file.seek(0)
        delimiter = max(DELIMITERS, key=first_line.count)
        # Tab-separated corpora (STS-B, SICK) use the quotation mark as a character, comma-separated files as a quote.
        dialect: dict[str, Any] = {"delimiter": delimiter, "strict": True}
        reader = csv.reader(file, quoting=csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL, **dialect)
        is_stsb = _is_stsb_line(first_line.rstrip("\r\n").split("\t"))
        try:
            header = list(STSB_COLUMNS) if is_stsb else next(reader, [])
            for fields in reader:
                if not fields:
                    continue
                if len(fields) < len(header) or (len(fields) > len(header) and not is_stsb):
                    raise ValueError(
                        f"{path}: line {reader.line_num} has {len(fields)} fields where {len(header)} are expected "
                        f"({', '.join(header)}). Quote fields that hold the separator {delimiter!r}."
                    )
                yield reader.line_num, dict(zip(header, fields, strict=False))
        except csv.Error as error:
            raise ValueError(
                f"{path}: line {reader.line_num} is not valid CSV ({error}). Check its quotes."
            ) from error


def _parquet_rows(path: Path) -> Iterator[Row]:
    try:
        dataset = Dataset.from_parquet(str(path))
    except Exception as error:
        raise ValueError(f"{path}: not a readable Parquet file ({error}).") from error
    for index, row in enumerate(dataset):
        yield index + 1, row


def _is_stsb_line(fields: list[str]) -> bool:
    if len(fields) < len(STSB_COLUMNS):
        return False
    try:
        float(fields[STSB_COLUMNS.index("score")])
    except ValueError:
        return False
    return True


def _pairs_from_rows(
    rows: Iterable[Row], name: str, columns: PairColumns, grades: Mapping[str, float] | None, labelled: bool
) -> Dataset:
    pairs: dict[str, list[Any]] = {"sentence1": [], "sentence2": [], "label": [], "line": []}
    found: PairColumns | None = None
    problems: list[str] = []
    for line, row in rows:
        if found is None:
            found = _find_columns(list(row), name, columns, labelled)
        for key, column in (("sentence1", found.sentence1), ("sentence2", found.sentence2)):
            sentence = row.get(str(column))
            if not isinstance(sentence, str) or not sentence.strip():
                problems.append(
                    f"line {line}: `{column}` is {'empty' if sentence in (None, '') else repr(sentence)[:40]}"
                )
            pairs[key].append(sentence)
        if found.label is not None:
            label, problem = _parse_label(row.get(found.label), grades)
            if problem:
                problems.append(f"line {line}: `{found.label}` {problem}")
            pairs["label"].append(label)
        pairs["line"].append(line)
    if problems:
        shown = "; ".join(problems[:PROBLEMS_SHOWN])
        hint = (
            " If labels are names, list these with `--grade_names`, lowest first." if "not a number" in shown else ""
        )
        raise ValueError(f"{name}: {len(problems):,} bad values ({shown}). Correct or remove these lines.{hint}")
    if found is None:
        raise ValueError(f"{name}: holds no pairs. Give a file with a header and at least one pair.")
    if found.label is None:
        del pairs["label"]
    return Dataset.from_dict(pairs)


def _find_columns(available: list[str], name: str, columns: PairColumns, labelled: bool) -> PairColumns:
    by_lower = {column.lower().strip(): column for column in available}
    guess = next((pair for pair in SENTENCE_COLUMNS if set(pair) <= set(by_lower)), (None, None))
    label_guess = next((column for column in LABEL_COLUMNS if column in by_lower), None)
    found = []
    for option, given, guessed in (
        ("sentence1_column", columns.sentence1, guess[0]),
        ("sentence2_column", columns.sentence2, guess[1]),
        ("label_column", columns.label, label_guess),
    ):
        if given is not None and given not in available:
            raise ValueError(f"{name}: `--{option}` {given!r} is not among its columns {available}.")
        column = given if given is not None else by_lower.get(guessed or "")
        if column is None and (option != "label_column" or labelled):
            raise ValueError(
                f"{name}: cannot tell which of the columns {available} to use. Name it with `--{option}`; the first "
                "line of a table must hold the names."
            )
        found.append(column)
    return PairColumns(*found)


def _parse_label(value: Any, grades: Mapping[str, float] | None) -> tuple[float, str | None]:
    """The label as a number, and what is wrong with it, if anything is."""
    if grades is not None and value in grades:
        return grades[value], None
    try:
        label = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return (
            math.nan,
            f"is {value!r}, not {'a number' if grades is None else 'one of ' + ', '.join(map(repr, grades))}",
        )
    return label, None if math.isfinite(label) else f"is {value!r}, not a finite number"
