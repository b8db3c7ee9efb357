"""Reads rows of data files of all formats: each with its place in the file and its fields by column name."""

import csv
import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from datasets import ClassLabel, Dataset, Features

from sts_regression.basics.excel_files import EXCEL_SUFFIXES, sheet_rows
from sts_regression.basics.files import check_is_file, reading
from sts_regression.basics.parquet_files import parquet_batches, parquet_schema
from sts_regression.data.labels import NO_CLASS

JSON_SUFFIXES = (".jsonl", ".json")
TABLE_SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET_SUFFIXES = (".parquet",)
# What to do with a file of another kind.
REMEDY_OF_KIND = {
    **dict.fromkeys((".xls", ".xlsm", ".xlsb", ".ods", ".numbers"), " Save the sheet as .xlsx or CSV."),
    **dict.fromkeys((".gz", ".zip", ".bz2", ".xz"), " Unpack it first."),
}
SEPARATORS = {"\t": "tab", ";": "semicolon", ",": "comma"}
SEPARATOR_NOTE = "sep="  # a line above the header that spreadsheets read and write
# The original files of STS-B: tab-separated, no header, no quoting, sometimes with further columns.
STSB_COLUMNS = ("genre", "file", "year", "id", "score", "sentence1", "sentence2")
SICK_LABEL_COLUMN = "relatedness_score"  # of SICK's original files, which are written like those of STS-B
# Names of the columns of sentences, in the order they are looked for; names are compared in lower case.
NLI_COLUMNS = ("premise", "hypothesis")
SENTENCE_COLUMNS = (
    ("sentence1", "sentence2"),
    ("sentence_a", "sentence_b"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    NLI_COLUMNS,
    ("question1", "question2"),
    ("query", "document"),
    ("query", "passage"),
    ("query", "product_title"),  # ESCI
    ("query", "title"),
    ("text", "text_pair"),  # as the pipeline calls them
    ("question", "answer"),
)
ROWS_AT_ONCE = 1_000
MAX_LINE_BYTES = 2**26  # limit of a line or field: an open quote or missing line ends must not fill the memory
NEEDLESSLY_QUOTED = re.compile(r'"[^",]*"')  # as a sentence of direct speech may be
LINES_LOOKED_AT = 10_000  # lines searched for quotes
SHOWN_CHARACTERS = 200  # of a header in a message

Row = tuple[int, dict[str, Any]]  # the line in the file, or the number of the row in a data set, and the fields


def read_rows(path: Path) -> Iterator[Row]:
    """
    Yields the rows of a CSV, TSV, JSON-lines, Parquet or Excel file, or of an original file of STS-B.

    Files other than Excel's may be larger than memory. The separator of a table (tab, semicolon or comma) is found in
    its first line, see [`find_separator`]. Quoted fields are read as such; in a tab-separated file, only if all fields
    that begin with a quotation mark are quoted, and need it unless the header is quoted, too; never in files of STS-B
    and SICK. Text must be UTF-8.

    Raises:
        ValueError: for a missing or unreadable file; the message names the file, the line and the remedy.
    """
    check_is_file(path)
    readers = {
        JSON_SUFFIXES: _json_rows,
        TABLE_SUFFIXES: _table_rows,
        PARQUET_SUFFIXES: _parquet_rows,
        EXCEL_SUFFIXES: _excel_rows,
    }
    reader = next((reader for suffixes, reader in readers.items() if path.suffix.lower() in suffixes), None)
    if reader is None:
        known = ", ".join(suffix for suffixes in readers for suffix in suffixes)
        remedy = REMEDY_OF_KIND.get(path.suffix.lower(), "")
        raise ValueError(f"{path}: unknown kind of file {path.suffix!r}. Known kinds: {known}.{remedy}")
    return reader(path)


def read_lines(path: Path) -> Iterator[str]:
    """
    Yields the lines of a text file with their line ends, without a byte-order mark.

    Raises:
        ValueError: for a path that is not a regular file or cannot be read; for a line that is not UTF-8, holds NUL
            bytes (as UTF-16 does), or is longer than 64 MiB, which the message names.
    """
    check_is_file(path)
    with reading(path), path.open("rb") as file:
        lines = iter(lambda: file.readline(MAX_LINE_BYTES + 1), b"")
        for number, raw in enumerate(lines, start=1):
            if len(raw) > MAX_LINE_BYTES:
                raise ValueError(
                    f"{path}: line {number} is longer than {MAX_LINE_BYTES:,} bytes. Check its line endings."
                )
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}: line {number} is not valid UTF-8. Save the file as UTF-8; in Excel, as 'CSV UTF-8'."
                ) from error
            if "\0" in line:
                raise ValueError(f"{path}: line {number} holds a NUL byte. Save the file as UTF-8 text.")
            yield line


def dataset_rows(dataset: Dataset) -> Iterator[Row]:
    """Yields the rows of a data set, with the names of classes in place of their numbers."""
    return _batch_rows(dataset.iter(ROWS_AT_ONCE), dataset.features)  # ten times faster than by rows


def _batch_rows(batches: Iterable[dict[str, list[Any]]], features: Features) -> Iterator[Row]:
    class_names = {
        column: {**dict(enumerate(feature.names)), -1: NO_CLASS, None: NO_CLASS}
        for column, feature in features.items()
        if isinstance(feature, ClassLabel)
    }
    number = 0
    for batch in batches:
        for column, names in class_names.items():
            unknown = set(batch[column]) - set(names)
            if unknown:
                raise ValueError(f"the column {column!r} holds {min(unknown)}, which is not one of its classes")
            batch[column] = [names[value] for value in batch[column]]
        for values in zip(*batch.values(), strict=True):
            number += 1
            yield number, dict(zip(batch, values, strict=True))


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name occurs more than once")
    return fields


JSON_DECODER = json.JSONDecoder(object_pairs_hook=_json_object)


def _json_rows(path: Path) -> Iterator[Row]:
    for line, text in enumerate(read_lines(path), start=1):
        if not text.strip():
            continue
        try:
            row = JSON_DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{path}: line {line} is not valid JSON ({error}). Write one JSON object per line."
            ) from error
        if not isinstance(row, dict):
            raise ValueError(f"{path}: line {line} is not a JSON object. Write one JSON object per line.")
        yield line, row


def _parquet_rows(path: Path) -> Iterator[Row]:
    try:
        schema = parquet_schema(path)
        repeated = _repeated(schema.names)
        if repeated is not None:
            raise ValueError(f"the column {repeated!r} occurs more than once")
        batches = (batch.to_pydict() for batch in parquet_batches(path))
        yield from _batch_rows(batches, Features.from_arrow_schema(schema))
    except Exception as error:  # any kind: they all mean the same to the user
        reason = textwrap.shorten(str(error), SHOWN_CHARACTERS)
        raise ValueError(f"{path}: not a readable Parquet file ({reason}). Write the file again.") from error


def _excel_rows(path: Path) -> Iterator[Row]:
    rows = sheet_rows(path)
    header = [name.strip() for name in next(rows, (0, []))[1]]
    repeated = _repeated([name for name in header if name])
    if repeated is not None:
        raise ValueError(f"{path}: the column {repeated!r:.40} occurs more than once. Rename or remove one.")
    for line, fields in rows:
        row = {name: field for name, field in zip(header, fields, strict=True) if name}
        if any(map(str.strip, row.values())):  # skips rows with values in columns without a header only
            yield line, row


def find_separator(path: Path) -> str | None:
    """
    The separator of a table: as stated in its first line by spreadsheets (`sep=;`), or else the character that divides
    this line into the most fields. `None` for other kinds of files.
    """
    return _find_form(path)[0] if path.suffix.lower() in TABLE_SUFFIXES else None


def _find_form(path: Path) -> tuple[str, str, int]:
    """The separator of a table, the first line that does not state it, and the number of lines above that line."""
    lines = ((above, line) for above, line in enumerate(read_lines(path)) if line.strip())
    above, line = next(lines, (0, ""))
    noted = line.rstrip("\r\n").lower()
    if noted in (f"{SEPARATOR_NOTE}{separator}" for separator in SEPARATORS):
        above, line = next(lines, (above, line))
        return noted.removeprefix(SEPARATOR_NOTE), line, above
    if _is_stsb_line(line):
        return "\t", line, above
    return max(SEPARATORS, key=lambda separator: _count_fields(line, separator)), line, above


def _count_fields(line: str, separator: str) -> int:
    return len(next(csv.reader([line.replace("\r", " ").rstrip("\n")], delimiter=separator), []))


def _table_rows(path: Path) -> Iterator[Row]:
    csv.field_size_limit(MAX_LINE_BYTES)
    delimiter, first_line, above = _find_form(path)
    is_stsb = _is_stsb_line(first_line)
    # In STS-B and SICK, quotation marks are plain characters, also at both ends of a sentence.
    is_plain = is_stsb or SICK_LABEL_COLUMN in first_line.lower().split("\t")
    is_quoted = delimiter != "\t" or (not is_plain and _is_quoted(path, above))
    reader = csv.reader(
        islice(read_lines(path), above, None),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
        strict=True,
    )
    records = _records(reader, path, above)
    header = list(STSB_COLUMNS) if is_stsb else [name.strip() for name in next(records, (0, []))[1]]
    # Spreadsheets write empty columns beside the table. A single column without a name may number the rows.
    unnamed = {place for place, name in enumerate(header) if not name}
    unnamed = unnamed if 1 < len(unnamed) < len(header) else set()
    repeated = _repeated([name for place, name in enumerate(header) if place not in unnamed])
    if repeated is not None:
        raise ValueError(f"{path}: the column {repeated!r:.40} occurs more than once. Rename or remove one.")
    header = ["" if place in unnamed else name for place, name in enumerate(header)]
    for line, fields in records:
        problem = _misfit(fields, header, unnamed, is_stsb, delimiter)
        if problem is not None:
            raise ValueError(f"{path}: line {line} {problem}")
        if any(map(str.strip, fields)):  # spreadsheets also write rows without a value
            row = dict(zip(header, fields, strict=False))
            if unnamed:
                del row[""]
            yield line, row


def _misfit(
    fields: Sequence[str], header: Sequence[str], unnamed: Iterable[int], may_be_more: bool, delimiter: str
) -> str | None:
    """The reason why a record does not fit the header, as the end of an error message; `None` if it fits."""
    if len(fields) == len(header) or (len(fields) > len(header) and may_be_more):
        if not any(fields[place].strip() for place in unnamed):
            return None
        problem = "has a value in a column without a name. Name it in the first line."
    else:
        shown = textwrap.shorten(", ".join(header), SHOWN_CHARACTERS, placeholder=" …")
        problem = (
            f"has {len(fields)} fields, but {len(header)} are expected ({shown}). Quote fields that hold the "
            f"separator {delimiter!r}."
        )
    return "looks like the header. Remove the lines above it." if _is_usual_header(fields) else problem


def _is_usual_header(fields: Sequence[str]) -> bool:
    """Whether the fields of a record hold usual names of two columns of sentences."""
    names = {field.lower().strip() for field in fields}
    return any(names.issuperset(pair) for pair in SENTENCE_COLUMNS)


def _repeated(names: Sequence[str]) -> str | None:
    """The first name that occurs more than once; `None` if all differ."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _records(reader: Any, path: Path, above: int) -> Iterator[tuple[int, list[str]]]:
    """Yields the first line of each record of a table, and its fields; empty lines are left out."""
    while True:
        line = above + reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(
                f"{path}: line {line} is not valid CSV ({error}). Check its quotes and line endings."
            ) from error
        if fields:
            yield line, fields


def _is_quoted(path: Path, above: int) -> bool:
    """
    Whether fields of a tab-separated file are quoted, as spreadsheets, pandas and R do.

    The header or some field among the first records must begin with a quotation mark; if the header does not, all such
    fields must need quotes, for a comma, for instance. With quotation marks read strictly, these records must have
    equally many fields. If the lines have equally many fields anyway, each is a record.
    """

    def first_lines() -> Iterator[str]:  # not a list: they may be long
        return islice(read_lines(path), above, above + LINES_LOOKED_AT)

    fields = (field.rstrip("\r\n") for line in first_lines() for field in line.split("\t"))
    has_quoted_header = next(fields, "").startswith('"')
    if not has_quoted_header and not _need_quotes(field for field in fields if field.startswith('"')):
        return False
    are_records = len({line.count("\t") for line in first_lines() if line.strip()}) == 1
    tables = ([line] for line in first_lines()) if are_records else [islice(read_lines(path), above, None)]
    readers = (csv.reader(table, delimiter="\t", strict=True) for table in tables)
    try:
        return len({len(fields) for reader in readers for fields in islice(reader, LINES_LOOKED_AT) if fields}) == 1
    except csv.Error:
        return False


def _need_quotes(quoted: Iterator[str]) -> bool:
    """Whether there are fields that begin with a quotation mark, and none is quoted needlessly."""
    needed = [NEEDLESSLY_QUOTED.fullmatch(field) is None for field in quoted]
    return bool(needed) and all(needed)


def _is_stsb_line(line: str) -> bool:
    fields = line.rstrip("\r\n").split("\t")
    if len(fields) < len(STSB_COLUMNS):
        return False
    try:
        float(fields[STSB_COLUMNS.index("score")])
    except ValueError:
        return False
    return True
