"""Reads sheets of Excel files row by row, with cells as text as in a CSV file."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sts_regression.basics.files import reason_of

EXCEL_SUFFIXES = (".xlsx",)
MAX_COLUMNS = 1_000
ERROR_CODES = (
    "#DIV/0!",
    "#GETTING_DATA",
    "#N/A",
    "#NAME?",
    "#NULL!",
    "#NUM!",
    "#REF!",
    "#VALUE!",
)  # of failed formulas
MAX_UNPACKED_BYTES = 2**30  # a full sheet of sentences is smaller; all texts of a file are held in memory


def sheet_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """
    Yields the rows of the first sheet that have a value, with their numbers, from 1.

    Cells are text: numbers as Python writes them, formulas as their last saved values, empty cells and
    failed formulas as "".

    Raises:
        ValueError: if openpyxl is not installed, or if the file cannot be read; the message names file and remedy.
    """
    try:
        import openpyxl  # optional
    except ImportError as error:
        raise ValueError(
            f'{path}: Excel files need openpyxl. Install it with `pip install ".[excel]"`, or save the sheet as CSV.'
        ) from error
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(part.file_size for part in packed.infolist()) > MAX_UNPACKED_BYTES:
                raise ValueError(f"unpacks to more than {MAX_UNPACKED_BYTES:,} bytes")
        workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            sheet = workbook.worksheets[0]
            sheet.reset_dimensions()  # some programs write wrong dimensions
            yield from _rows(sheet)
        finally:
            workbook.close()
    except Exception as error:  # any kind: they all mean the same to the user
        raise ValueError(
            f"{path}: not a readable Excel file ({reason_of(error):.200}). Save the sheet as CSV."
        ) from error


@contextmanager
def naming_sheet(path: Path | None) -> Iterator[None]:
    """Adds the sheet that was read to an error, if this is an Excel file. It must have been read without errors."""
    try:
        yield
    except ValueError as error:
        if path is None or path.suffix.lower() not in EXCEL_SUFFIXES:
            raise
        import openpyxl

        workbook = openpyxl.load_workbook(path, read_only=True)
        title = workbook.sheetnames[0]
        workbook.close()
        raise ValueError(f"{error} Only the first sheet is read, {title!r:.40}.") from error


def _rows(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    width = MAX_COLUMNS
    first = next((row for row in sheet.iter_rows(max_col=width, values_only=True) if any(map(_text, row))), ())
    width = max((number for number, cell in enumerate(first, start=1) if _text(cell)), default=0)
    if width:  # does not read cells beside the table: a row may claim thousands of them
        for number, row in enumerate(sheet.iter_rows(max_col=width, values_only=True), start=1):
            if any(cells := list(map(_text, row))):
                yield number, cells


def _text(cell: Any) -> str:
    return "" if cell is None or cell in ERROR_CODES else str(cell)
