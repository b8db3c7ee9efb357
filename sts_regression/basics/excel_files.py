"""Sheets of Excel files, row by row, as the text that a CSV file of them would hold."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sts_regression.basics.files import reason_of

MAX_COLUMNS = 1_000
MAX_UNPACKED_BYTES = 2**30  # more than a full sheet of sentences; the texts of a file are held in memory


def sheet_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """
    The rows of the first sheet that have a value, with their numbers, from 1.

    Cells are text: numbers as Python writes them, formulas as the values that were last saved, empty cells as "".

    Raises:
        ValueError: if openpyxl is not installed, or for a file that cannot be read; it names the file and the remedy.
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
            sheet.reset_dimensions()  # which some programs write wrongly
            yield from _rows(sheet)
        finally:
            workbook.close()
    except Exception as error:  # of many kinds, all of which mean the same to the user
        raise ValueError(
            f"{path}: not a readable Excel file ({reason_of(error):.200}). Save the sheet as CSV."
        ) from error


def _rows(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    width = MAX_COLUMNS
    first = next((row for row in sheet.iter_rows(max_col=width, values_only=True) if any(map(_text, row))), ())
    width = max((number for number, cell in enumerate(first, start=1) if _text(cell)), default=0)
    if width:  # cells beside the table are not read: a row may claim thousands of them
        for number, row in enumerate(sheet.iter_rows(max_col=width, values_only=True), start=1):
            if any(cells := list(map(_text, row))):
                yield number, cells


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell)
