"""Rows of data files, whatever their format: each with its place in the file and its fields by column name."""

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from datasets import ClassLabel, Dataset, Features

from sts_regression.labels import NO_CLASS

JSON_SUFFIXES = (".jsonl", ".json")
TABLE_SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET_SUFFIXES = (".parquet",)
DELIMITERS = ("\t", ";", ",")
# STS-B as its authors distribute it: tab-separated, no header, no quoting, sometimes with further columns.
STSB_COLUMNS = ("genre", "file", "year", "id", "score", "sentence1", "sentence2")
BATCH_SIZE = 1_000
PARQUET_BUFFER_BYTES = 2**20  # per column: without a buffer all that a row group holds of it is read at once

Row = tuple[int, dict[str, Any]]  # the line in the file (of a data set: the number of the row), and the fields


def read_rows(path: Path) -> Iterator[Row]:
    """
    The rows of a CSV, TSV, JSON-lines or Parquet file, or of STS-B as its authors distribute it, one after the other:
    a file may be larger than memory.

    The separator of a table (tab, semicolon or comma) is taken from its first line; quotes are honoured unless it is a
    tab. Text must be UTF-8.

    Raises:
        ValueError: for a missing or unreadable file; it names the file, the line and the remedy.
    """
    check_is_file(path)
    readers = {JSON_SUFFIXES: _json_rows, TABLE_SUFFIXES: _table_rows, PARQUET_SUFFIXES: _parquet_rows}
    reader = next((reader for suffixes, reader in readers.items() if path.suffix.lower() in suffixes), None)
    if reader is None:
        known = ", ".join(suffix for suffixes in readers for suffix in suffixes)
        raise ValueError(f"{path}: unknown kind of file {path.suffix!r}. Known are {known}.")
    return reader(path)


def check_is_file(path: str | Path) -> None:
    """Raises `ValueError` where there is no such file."""
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such file. Give a CSV, TSV, JSON-lines or Parquet file.")


def read_lines(path: Path) -> Iterator[str]:
    """
    The lines of a text file with their ends, a byte-order mark left out.

    Raises:
        ValueError: for text that is not UTF-8 or holds NUL bytes, as UTF-16 does; it names the line.
    """
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}: line {number} is not valid UTF-8. Save the file as UTF-8.") from error
            if "\0" in line:
                raise ValueError(f"{path}: line {number} holds a NUL byte. Save the file as UTF-8 text.")
            yield line


def dataset_rows(dataset: Dataset) -> Iterator[Row]:
    """The rows of a data set, classes under their names."""
    return _batch_rows(dataset.iter(BATCH_SIZE), dataset.features)  # ten times faster than by rows


def _batch_rows(batches: Iterable[dict[str, list[Any]]], features: Features) -> Iterator[Row]:
    class_names = {
        column: [*feature.names, NO_CLASS]  # -1, no class, finds the last
        for column, feature in features.items()
        if isinstance(feature, ClassLabel)
    }
    number = 0
    for batch in batches:
        for column, names in class_names.items():
            batch[column] = [NO_CLASS if value is None else names[value] for value in batch[column]]
        for values in zip(*batch.values(), strict=True):
            number += 1
            yield number, dict(zip(batch, values, strict=True))


def _json_rows(path: Path) -> Iterator[Row]:
    for line, text in enumerate(read_lines(path), start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{path}: line {line} is not valid JSON ({error}). Write one JSON object a line."
            ) from error
        if not isinstance(row, dict):
            raise ValueError(f"{path}: line {line} is not a JSON object. Write one JSON object a line.")
        yield line, row


def _parquet_rows(path: Path) -> Iterator[Row]:
    try:
        with pq.ParquetFile(path, buffer_size=PARQUET_BUFFER_BYTES, pre_buffer=False) as file:
            batches = (batch.to_pydict() for batch in file.iter_batches(BATCH_SIZE))
            yield from _batch_rows(batches, Features.from_arrow_schema(file.schema_arrow))
    except Exception as error:  # of many kinds, all of which mean the same to the user
        raise ValueError(f"{path}: not a readable Parquet file ({error}). Write the file again.") from error


def _table_rows(path: Path) -> Iterator[Row]:
    first_line = next((line for line in read_lines(path) if line.strip()), "")
    is_stsb = _is_stsb_line(first_line)
    delimiter = "\t" if is_stsb else max(DELIMITERS, key=first_line.count)
    csv.field_size_limit(2**31 - 1)
    # Tab-separated corpora (STS-B, SICK) use the quotation mark as a character, comma-separated files as a quote.
    reader = csv.reader(
        read_lines(path),
        delimiter=delimiter,
        quoting=csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL,
        strict=True,
    )
    records = _records(reader, path)
    header = list(STSB_COLUMNS) if is_stsb else next(records, (0, []))[1]
    repeated = sorted({column for column in header if header.count(column) > 1})
    if repeated:
        raise ValueError(f"{path}: the column {repeated[0]!r} occurs more than once. Rename or remove one.")
    for line, fields in records:
        if len(fields) < len(header) or (len(fields) > len(header) and not is_stsb):
            raise ValueError(
                f"{path}: line {line} has {len(fields)} fields where {len(header)} are expected "
                f"({', '.join(header)}). Quote fields that hold the separator {delimiter!r}."
            )
        yield line, dict(zip(header, fields, strict=False))


def _records(reader: Any, path: Path) -> Iterator[tuple[int, list[str]]]:
    """The line at which each record of a table begins, and its fields; empty lines are left out."""
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(f"{path}: line {line} is not valid CSV ({error}). Check its quotes.") from error
        if fields:
            yield line, fields


def _is_stsb_line(line: str) -> bool:
    fields = line.rstrip("\r\n").split("\t")
    if len(fields) < len(STSB_COLUMNS):
        return False
    try:
        float(fields[STSB_COLUMNS.index("score")])
    except ValueError:
        return False
    return True
