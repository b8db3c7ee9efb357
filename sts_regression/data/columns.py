"""Finds the columns of a table that hold the sentences and the label of a pair; reads single columns; copies rows."""

import atexit
import re
import shlex
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
from datasets import Dataset
from datasets.config import HF_DATASETS_CACHE
from datasets.fingerprint import generate_random_fingerprint
from datasets.table import MemoryMappedTable, Table

from sts_regression.basics.excel_files import EXCEL_SUFFIXES
from sts_regression.basics.tables import cut
from sts_regression.data.labels import parse_number
from sts_regression.data.rows import JSON_SUFFIXES, NLI_COLUMNS, SENTENCE_COLUMNS, SICK_LABEL_COLUMN, TABLE_SUFFIXES

# Further column names in use, in the order they are looked for; names are compared in lower case.
NLI_LABEL_COLUMN = "gold_label"  # in the original files of SNLI and MultiNLI
GRADE_COLUMN = "grade"
NO_LABEL = re.compile(r"(?:^|[\W_])(?:id|date)$", re.IGNORECASE)  # nor text
USUAL_HEADER = ("sentence1", "sentence2", "label")
WORDS_OF_A_NAME = 3  # a column whose name has more is perhaps a value below a missing header
ROWS_READ_AT_ONCE = 10_000
MAPPED_FROM = 100_000  # rows; larger tables stay in a file, and the system keeps as much of it in memory as fits
SHOWN_VALUE, MAX_LISTED_COLUMNS = 30, 10  # characters of a value or name, and columns, in a message
PREDICTION_COLUMNS = {"score", GRADE_COLUMN, "cosine"}  # in files of predictions that this program writes
LABEL_COLUMNS = (
    "label",
    "score",
    "similarity_score",
    SICK_LABEL_COLUMN,
    "similarity",
    GRADE_COLUMN,
    "rating",
    "relevance",
    "esci_label",
    NLI_LABEL_COLUMN,
)


@dataclass(frozen=True)
class PairColumns:
    """
    Names of the columns of a data file; `None` for a name to guess.

    If a file has several of the label columns, each of them holds the ratings of one rater.
    """

    sentence1: str | None = None
    sentence2: str | None = None
    label: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.sentence1 is not None and self.sentence1 == self.sentence2:
            raise ValueError(
                f"`--sentence1_column` and `--sentence2_column` are both {self.sentence1!r}. Name two columns."
            )


class FoundColumns(NamedTuple):
    """
    The columns to read.

    Attributes:
        sentence1, sentence2: columns of the sentences.
        label: column of the label, or of the first of several raters; `None` if labels are not read.
        notes: doubts about the choice, a sentence each.
        raters: columns of the ratings, if there are several raters.
    """

    sentence1: str
    sentence2: str
    label: str | None = None
    notes: tuple[str, ...] = ()
    raters: tuple[str, ...] = ()

    @property
    def is_nli(self) -> bool:
        """Whether labels that are numbers may be classes of natural language inference."""
        sentences = tuple(column.lower().strip() for column in (self.sentence1, self.sentence2))
        return sentences == NLI_COLUMNS or str(self.label).lower().strip() == NLI_LABEL_COLUMN


def find_columns(
    available: list[str],
    name: str,
    columns: PairColumns,
    labelled: bool,
    first_row: Mapping[str, Any] | None = None,
) -> FoundColumns:
    """
    The columns to read: as named, or else guessed.

    Args:
        available: columns of the table.
        name: name of the table, for messages.
        columns: the given names of columns.
        labelled: whether to look for a label.
        first_row: values of the first row, for messages.

    Raises:
        ValueError: for a column that is missing, cannot be guessed, or would be read twice.
    """
    by_lower = {column.lower().strip(): column for column in available}
    columns = _as_in_the_table(columns, available)
    guesses = next((pair for pair in SENTENCE_COLUMNS if set(pair) <= set(by_lower)), (None, None))
    wanted = {"sentence1_column": (columns.sentence1, guesses[0]), "sentence2_column": (columns.sentence2, guesses[1])}
    raters: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    if labelled:
        named = [columns.label] if isinstance(columns.label, str) else list(dict.fromkeys(columns.label or []))
        raters = tuple(column for column in named if column in available)
        label_guesses = _guess_labels(by_lower)
        notes = _notes_on_labels(named, raters, [by_lower[guess] for guess in label_guesses])
        given = next(iter(raters), " or ".join(named)) if named else None
        wanted["label_column"] = (given, next(iter(label_guesses), None))
    known = {option: _find_column(available, name, option, *column) for option, column in wanted.items()}
    sentence1, sentence2, label = (
        known.get(option) for option in ("sentence1_column", "sentence2_column", "label_column")
    )
    if sentence1 is None or sentence2 is None or (labelled and label is None):
        raise _untold(available, name, known, first_row or {})
    chosen = [*known.values(), *raters[1:]]
    if len(set(chosen)) < len(chosen):
        options = ", ".join(f"`--{option}`" for option in known)
        raise ValueError(f"{name}: {options} must be different columns, but are {', '.join(map(repr, chosen))}.")
    return FoundColumns(sentence1, sentence2, label, notes, raters if len(raters) > 1 else ())


def _as_in_the_table(columns: PairColumns, available: Sequence[str]) -> PairColumns:
    """The given names, without the blanks around them that tables lose."""

    def found(name: str) -> str:
        return name if name in available else name.strip()

    first, second, labels = columns.sentence1, columns.sentence2, columns.label
    return PairColumns(
        first if first is None else found(first),
        second if second is None else found(second),
        labels if labels is None else [found(name) for name in ([labels] if isinstance(labels, str) else labels)],
    )


def _guess_labels(by_lower: Mapping[str, str]) -> list[str]:
    """The usual names of a label that occur among the columns, the likeliest first."""
    guesses = [column for column in LABEL_COLUMNS if column in by_lower]
    of_predictions = ({"score", GRADE_COLUMN, more} for more in ("cosine", "unreliable"))
    if any(by_lower.keys() >= columns for columns in of_predictions):  # of this program, perhaps beside labels
        given = [f"input_{column}" for column in guesses if f"input_{column}" in by_lower]
        others = [column for column in guesses if column not in PREDICTION_COLUMNS]
        predicted = [column for column in (GRADE_COLUMN, "score") if column in guesses]  # people correct the grade
        guesses = [*others, *given, *predicted]
    return guesses


def _notes_on_labels(named: Sequence[str], raters: Sequence[str], guesses: Sequence[str]) -> tuple[str, ...]:
    """Doubts about the choice of the label columns."""
    absent = [column for column in named if column not in raters]
    if raters and absent:
        columns = (", ".join(map(repr, some)) for some in (absent, raters))
        return ("has no column {} of `--label_column`; labels are read from {}.".format(*columns),)
    if not named and len(guesses) > 1:
        others = ", ".join(f"`{column}`" for column in guesses[1:])
        return (f"labels are read from `{guesses[0]}`, not from {others}; `--label_column` names another.",)
    return ()


def _find_column(available: Sequence[str], name: str, option: str, given: str | None, guess: str | None) -> str | None:
    """The column that an option gives, or else the one with the guessed name in any case; `None` without one."""
    if given is not None and given not in available:
        columns = _first_few([repr(cut(column, SHOWN_VALUE)) for column in available])
        raise ValueError(f"{name}: `--{option}` {given!r} is not among its columns [{columns}].")
    alike = [column for column in available if column.lower().strip() == guess] if given is None else [given]
    if len(alike) > 1:
        raise ValueError(f"{name}: has the columns {alike}. Name the one to use with `--{option}`.")
    return alike[0] if alike else None


def numbers_of(pairs: Dataset, column: str) -> np.ndarray:
    """A column of numbers, or of lists of equally many numbers, as an array; reads no other column."""
    values = pairs.select_columns([column]).with_format("arrow")[:][column].combine_chunks()
    if not pa.types.is_list(values.type):
        return values.to_numpy(zero_copy_only=False)
    return values.flatten().to_numpy(zero_copy_only=False).reshape(len(values), -1)


def texts_of(pairs: Dataset, column: str) -> Iterator[str]:
    """The texts of a column, without all of them in memory."""
    for batch in pairs.select_columns([column]).iter(ROWS_READ_AT_ONCE):  # ten times faster than by rows
        yield from batch[column]


def take_rows(pairs: Dataset, rows: Sequence[int] | np.ndarray) -> Dataset:
    """
    As `Dataset.select` for ascending rows, but with a copy of them. A list of row numbers makes each read thirty times
    slower.
    """
    is_taken = np.zeros(len(pairs), dtype=bool)
    is_taken[rows] = True
    pairs = pairs.with_format("arrow")
    parts = np.split(is_taken, range(ROWS_READ_AT_ONCE, len(pairs), ROWS_READ_AT_ONCE))
    taken = (table.filter(part) for table, part in zip(pairs.iter(ROWS_READ_AT_ONCE), parts, strict=False))
    return collect_rows(chain([pairs[:0]], taken))


def dataset_of(table: pa.Table | Table) -> Dataset:
    """A table as a data set, without the hash of its content: to compute it takes four times the table's memory."""
    return Dataset(table, fingerprint=generate_random_fingerprint())


def collect_rows(tables: Iterable[pa.Table]) -> Dataset:
    """The rows of tables of one kind: in memory, or from 100,000 on in a file that is mapped into memory."""
    tables = iter(tables)
    first: list[pa.Table] = []
    while sum(map(len, first)) < MAPPED_FROM:
        table = next(tables, None)
        if table is None:
            return dataset_of(pa.concat_tables(first))
        first.append(table)
    path = _folder_of_tables() / f"{uuid4().hex}.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, first[0].schema) as writer:
        for table in chain(first, tables):
            writer.write_table(table)
    return dataset_of(MemoryMappedTable.from_file(str(path)))


@cache
def _folder_of_tables() -> Path:
    """
    A folder for this process, deleted at its end. It is in the cache of `datasets`, since the folder for temporary
    files is in memory on many systems.
    """
    cache_folder = Path(HF_DATASETS_CACHE) / "sts-regression"
    cache_folder.mkdir(parents=True, exist_ok=True)
    # Windows does not delete files that are still mapped.
    folder = TemporaryDirectory(prefix="pairs-", dir=cache_folder, ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _untold(
    available: Sequence[str], name: str, known: Mapping[str, str | None], first_row: Mapping[str, Any]
) -> ValueError:
    """The error for columns that cannot be guessed, with options that name the likely columns of the first row."""
    found = _first_few([repr(cut(column, SHOWN_VALUE)) for column in available])
    are_few = len(available) < len(known)
    lacks_label = [option for option, column in known.items() if not column] == ["label_column"]
    if lacks_label and are_few:
        return ValueError(f"{name}: there is no label column. The columns are {found}. Add one, such as `label`.")
    if lacks_label:
        texts = " and ".join(repr(column) for column in known.values() if column is not None)
        shown = f"{name}: the texts are {texts}, but none of the columns [{found}] has a usual name of a label"
    else:
        shown = f"{name}: cannot tell which of the columns [{found}] to use"
    if are_few:
        needed = "two texts and a label" if "label_column" in known else "two texts"
        return ValueError(f"{shown}: {needed} are needed.{_layout(name, first_row, are_few)}")
    values = {column: " ".join(str(first_row.get(column, "")).split()) for column in available}
    row = _first_few([f"{_shown_name(column)} {cut(value, SHOWN_VALUE)!r}" for column, value in values.items()])
    options = f"for example `{_likely_options(available, known, values)}`."
    if not lacks_label and _lacks_header(available, name):
        header = ",".join(USUAL_HEADER[: len(known)])
        shown += f". Is the header missing? Then add a first line such as `{header}`"
        return ValueError(f"{shown}. The first row holds {row}. If there is a header, name the columns, {options}")
    layout = "" if lacks_label else _layout(name, first_row, are_few)
    return ValueError(f"{shown}. The first row holds {row}. Name them, {options}{layout}")


def _lacks_header(available: Sequence[str], name: str) -> bool:
    """Whether the names of a table's columns look like values."""
    is_table = Path(name).suffix.lower() in (*TABLE_SUFFIXES, *EXCEL_SUFFIXES)
    return is_table and any(is_number(column) or len(column.split()) > WORDS_OF_A_NAME for column in available)


def _layout(name: str, first_row: Mapping[str, Any], are_few: bool) -> str:
    """How a file of this kind must hold its columns, with a blank before it; `are_few` tells that some are missing."""
    suffix = Path(name).suffix.lower()
    if suffix in TABLE_SUFFIXES:
        separators = ", with commas, semicolons or tabs in between" if are_few else ""
        return f" The first line of a table must hold the names of its columns{separators}."
    if suffix in EXCEL_SUFFIXES:
        return " The first row of the sheet must hold the names of its columns. Remove rows above it."
    is_nested = any(isinstance(value, dict | list) for value in first_row.values())
    own = f" Give each text a {'field' if suffix in JSON_SUFFIXES else 'column'} of its own."
    return " Nested values are not read." * is_nested + own * (is_nested or are_few)


def _first_few(shown: Sequence[str]) -> str:
    """The first of some words, with commas in between; a long list ends in a sign of omission."""
    return ", ".join([*shown[:MAX_LISTED_COLUMNS], *["…"] * (len(shown) > MAX_LISTED_COLUMNS)])


def _shown_name(column: str) -> str:
    return cut(column, SHOWN_VALUE) if column.isprintable() else repr(cut(column, SHOWN_VALUE))


def _likely_options(available: Sequence[str], known: Mapping[str, str | None], values: Mapping[str, str]) -> str:
    """
    Options that name the likely columns.

    Args:
        available: the columns.
        known: by option, the columns that are known.
        values: by column, the value in the first row.
    """
    unknown = [column for column in available if column not in known.values()]
    free = [column for column in unknown if not NO_LABEL.search(column)]
    free = free if len(free) >= sum(column is None for column in known.values()) else unknown
    texts = sorted(free, key=lambda column: (is_number(values[column]), -len(values[column])))
    num_texts = sum(column is None for option, column in known.items() if option != "label_column")
    texts = sorted(texts[:num_texts], key=free.index)
    left = [column for column in free if column not in texts]
    last = max((available.index(column) for column in [*texts, *known.values()] if column is not None), default=0)
    behind = [column for column in left if available.index(column) > last] or left  # numbers before count the rows
    numbers = [column for column in behind if is_number(values[column])]
    suggested = [[text] for text in texts]
    if numbers or behind:
        rated = [column for column in behind if not values[column] or column in numbers]
        suggested.append(_raters(numbers, rated) or (numbers or behind)[-1:])
    return " ".join(
        " ".join([f"--{option}", *map(as_word, [column] if column is not None else suggested.pop(0))])
        for option, column in known.items()
    )


def _raters(numbers: Sequence[str], rated: Sequence[str]) -> list[str]:
    """
    Columns whose names differ from that of the last number in a number at the end, such as rater1 and rater2.

    Args:
        numbers: columns whose first value is a number.
        rated: these and columns whose first value is missing.
    """
    stem = numbers[-1].rstrip(string.digits) if numbers else None
    alike = [column for column in rated if column.rstrip(string.digits) == stem]
    return alike if len(alike) > 1 else []


def as_word(text: str) -> str:
    """A value quoted for a shell, or written as in Python if it has line breaks or control characters."""
    return shlex.quote(text) if text.isprintable() else repr(text)


def is_number(value: str) -> bool:
    """Whether a text is a number, with a decimal point or comma."""
    return parse_number(value.replace(",", "."))[1] is None
