"""Reads sheets of Excel files row by row, with cells as text as in a CSV file."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


class NumberText(str):
    """A cell that holds a number, as text: its decimal point is Python's, not the user's."""


def sheet_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """
    Yields the rows of the first visible worksheet that have a value, with their numbers, from 1.

    Cells are text: numbers as Python writes them, formulas as their last saved values, empty cells and
    failed formulas as "".

    Raises:
        ValueError: if openpyxl is not installed, or if the file cannot be read; the message names file and remedy.
    """
    try:
        import openpyxl  # noqa: F401 # optional
    except ImportError as error:
        raise ValueError(
            f'{path}: Excel files need openpyxl. Install it with `pip install ".[excel]"`, or save the sheet as CSV.'
        ) from error
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(part.file_size for part in packed.infolist()) > MAX_UNPACKED_BYTES:
                raise ValueError(f"unpacks to more than {MAX_UNPACKED_BYTES:,} bytes")
        with _open_sheets(path) as (sheet, *_):
            sheet.reset_dimensions()  # some programs write wrong dimensions
            yield from _rows(sheet)
    except Exception as error:  # any kind: they all mean the same to the user
        raise ValueError(
            f"{path}: not a readable Excel file ({reason_of(error):.200}). Save the sheet as CSV."
        ) from error


def sheet_titles(path: Path) -> list[str]:
    """The titles of the visible worksheets of a readable file, of which [`sheet_rows`] reads the first."""
    with _open_sheets(path) as sheets:
        return [sheet.title for sheet in sheets]


@contextmanager
def naming_sheet(path: Path | None) -> Iterator[None]:
    """Adds the sheet that was read to an error, if this is an Excel file. It must have been read without errors."""
    try:
        yield
    except ValueError as error:
        if path is None or path.suffix.lower() not in EXCEL_SUFFIXES:
            raise
        raise ValueError(f"{error} Only the first sheet is read, {sheet_titles(path)[0]!r:.40}.") from error


@contextmanager
def _open_sheets(path: Path) -> Iterator[list[Any]]:
    """The visible worksheets of a file, or all if none is visible."""
    from openpyxl.reader.excel import ExcelReader

    class Reader(ExcelReader):
        def read_chartsheet(self, sheet: Any, rel: Any) -> None:
            with suppress(AttributeError):  # openpyxl's, if there is no chart in it
                super().read_chartsheet(sheet, rel)

    reader = Reader(path, read_only=True, data_only=True)
    reader.read()
    try:
        sheets = reader.wb.worksheets
        yield [sheet for sheet in sheets if sheet.sheet_state == "visible"] or sheets
    finally:
        reader.wb.close()


def _rows(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    width = MAX_COLUMNS
    first = next((row for row in sheet.iter_rows(max_col=width, values_only=True) if any(map(_text, row))), ())
    width = max((number for number, cell in enumerate(first, start=1) if _text(cell)), default=0)
    if width:  # does not read cells beside the table: a row may claim thousands of them
        for number, row in enumerate(sheet.iter_rows(max_col=width, values_only=True), start=1):
            if any(cells := list(map(_text, row))):
                yield number, cells


def _text(cell: Any) -> str:
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return NumberText(cell)
    return "" if cell is None or cell in ERROR_CODES else str(cell)
