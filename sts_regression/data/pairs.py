"""Reads graded pairs from files or memory, and checks them.

Errors in the data are reported here, with file, line and remedy, before training starts.
"""

import itertools
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, concatenate_datasets
from pyarrow import compute

from sts_regression.basics.excel_files import EXCEL_SUFFIXES, naming_sheet, sheet_titles
from sts_regression.data.columns import (
    ROWS_READ_AT_ONCE,
    FoundColumns,
    PairColumns,
    collect_rows,
    find_columns,
    is_number,
    numbers_of,
    take_rows,
)
from sts_regression.data.labels import (
    NOT_A_NUMBER,
    NOT_ONE_OF,
    SICK_SCALE,
    STS_SCALE,
    LabelScale,
    is_blank,
    without_repeated_names,
)
from sts_regression.data.ratings import RATINGS_COLUMN, ParsedRatings, WrittenLabels, parse_ratings, scale_notes
from sts_regression.data.rows import (
    JSON_SUFFIXES,
    SEPARATORS,
    SICK_LABEL_COLUMN,
    STSB_COLUMNS,
    Row,
    dataset_rows,
    find_separator,
    read_rows,
)
from sts_regression.pipeline_sts_regression import is_whole_text

logger = logging.getLogger(__name__)

SUBSET_COLUMN = "subset"
ROWS_TO_KNOW_COLUMNS = 1_000
PERCENTAGE = re.compile(r"\d+([.,]\d+)?\s*%", re.ASCII)
PROBLEMS_SHOWN = 3
COUNTED_FROM_1 = "labels are numbers from 1 on, and grades are counted from 0 on"  # the beginning of a note
MAX_NAMES = 10  # more different texts are not names of grades


@dataclass(frozen=True)
class PairSet:
    """
    Pairs of one source.

    Attributes:
        name: the file, or the data set on the Hub with its split.
        pairs: `Dataset` with the columns `sentence1`, `sentence2`, `label` (a number; missing if labels were not
            read), `line` (the line of the pair in its file) and, if the source has them, `subset` and `ratings` (a
            list with an entry per rater, `None` for a missing rating; the label is their mean).
        scale: the scale of the labels, if the source states it.
        num_unlabelled: number of pairs left out because annotators did not agree on a label (NLI) or gave none.
        notes: doubts about the way it was read, a sentence each.
        raters: columns of the ratings, if there are several raters.
        weight: how often an epoch uses the pairs, if they are trained on.
    """

    name: str
    pairs: Dataset
    scale: LabelScale | None = None
    num_unlabelled: int = 0
    notes: tuple[str, ...] = ()
    raters: tuple[str, ...] = ()
    weight: float = 1.0


def read_pairs(
    path: str | Path,
    columns: PairColumns | None = None,
    grades: Mapping[str, float] | None = None,
    labelled: bool = True,
) -> PairSet:
    """
    Reads pairs from a local CSV, TSV, JSON-lines, Parquet or Excel file, or from an original file of STS-B.

    Args:
        path: the file; see [`read_rows`] for its format.
        columns: names of columns that would be guessed wrong.
        grades: names that labels may have instead of numbers, and their values on the label scale. The names of NLI
            (contradiction 0, neutral 1, entailment 2) are known.
        labelled: whether to read labels.

    Raises:
        ValueError: for an unreadable file, a missing column, an empty sentence, or a label that is neither a finite
            number nor a known name; the message names the file, the first bad lines and the remedy.
    """
    available, rows = _columns_and_rows(path)
    scale = STS_SCALE if available == list(STSB_COLUMNS) else None
    return pairs_of_rows(str(path), available, rows, columns, grades, labelled, scale, Path(path))


def given_pairs(
    name: str,
    dataset: Dataset,
    columns: PairColumns | None = None,
    grades: Mapping[str, float] | None = None,
    labelled: bool = True,
    scale: LabelScale | None = None,
) -> PairSet:
    """As [`read_pairs`], from a `Dataset`, called `name` in messages; `scale` is that of its labels, if known."""
    return pairs_of_rows(name, dataset.column_names, dataset_rows(dataset), columns, grades, labelled, scale)


def stream_sentences(path: str | Path, columns: PairColumns | None = None) -> Iterator[tuple[str, str]]:
    """As [`stream_pairs`], without the further columns."""
    return ((first, second) for first, second, _ in stream_pairs(path, columns))


def stream_pairs(path: str | Path, columns: PairColumns | None = None) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """
    Yields both sentences and the further columns of each pair of a file, for files larger than memory.

    Args:
        path: the file.
        columns: names of columns that would be guessed wrong.

    Raises:
        ValueError: as [`read_pairs`]. Pairs with bad sentences are left out, and reported after the last row.
    """
    _, pairs = open_pairs(path, columns)
    yield from pairs


def open_pairs(
    path: str | Path, columns: PairColumns | None = None
) -> tuple[tuple[str, str], Iterator[tuple[str, str, dict[str, Any]]]]:
    """The names of the columns that hold the sentences, and the pairs as [`stream_pairs`] yields them."""
    available, rows = _columns_and_rows(path)
    first = next(rows)
    with naming_sheet(Path(path)):
        found = find_columns(available, str(path), columns or PairColumns(), labelled=False, first_row=first[1])
    return (found.sentence1, found.sentence2), _checked_pairs(path, found, itertools.chain([first], rows))


def _checked_pairs(
    path: str | Path, found: FoundColumns, rows: Iterator[Row]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    problems = BadValues()
    for line, row in rows:
        bad = _sentence_problems(line, row, found)
        if bad:
            problems.add(bad)
        else:
            further = {name: value for name, value in row.items() if name not in (found.sentence1, found.sentence2)}
            yield row[found.sentence1], row[found.sentence2], further
    if problems.count:
        raise _bad_values(str(path), problems)


def _columns_and_rows(path: str | Path) -> tuple[list[str], Iterator[Row]]:
    """The columns of a file, and its rows. JSON lines may lack columns: those of the first thousand rows count."""
    rows = read_rows(Path(path))
    is_table = Path(path).suffix.lower() not in JSON_SUFFIXES
    first_rows = list(itertools.islice(rows, 1 if is_table else ROWS_TO_KNOW_COLUMNS))
    if not first_rows:
        with naming_sheet(Path(path)):
            raise ValueError(f"{path}: holds no pairs. Give a file with a header and at least one pair.")
    columns = dict.fromkeys(column for _, row in first_rows for column in row)
    every = itertools.chain(first_rows, rows)
    if len(columns) == len(first_rows[0][1]):
        return list(columns), every
    return list(columns), ((line, {**dict.fromkeys(columns), **row}) for line, row in every)


def pairs_of_rows(
    name: str,
    available: list[str],
    rows: Iterable[Row],
    columns: PairColumns | None = None,
    grades: Mapping[str, float] | None = None,
    labelled: bool = True,
    scale: LabelScale | None = None,
    path: Path | None = None,
) -> PairSet:
    """
    Turns rows into pairs, and checks them.

    Args:
        name: the name of the set, for messages.
        available: the columns.
        rows: the rows, each with its line.
        columns, grades, labelled: see [`read_pairs`].
        scale: the scale of the labels, if it is known.
        path: the file that the rows come from.

    Raises:
        ValueError: see [`read_pairs`].
    """
    separator = find_separator(path) if path is not None and scale is None else None
    rows = iter(rows)
    first = next(rows, (0, {}))
    with naming_sheet(path):
        found = find_columns(available, name, columns or PairColumns(), labelled, first[1])
    if not first[1]:
        raise ValueError(f"{name}: holds no pairs. Give at least one.")
    written = WrittenLabels(found.raters or ([] if found.label is None else [found.label]), grades)
    problems = BadValues()
    rows = itertools.chain([first], rows)
    pairs = collect_rows(_text_tables(rows, found, SUBSET_COLUMN in available, written, problems))
    labels, hint = None, ""
    if written.columns:
        try:
            labels = parse_ratings(written, grades, found.is_nli)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        hint = _add_label_problems(problems, labels.problems, written, numbers_of(pairs, "line"))
    if problems.count:
        raise _bad_values(name, problems, hint)
    _log_form(name, path, separator, labels is not None and labels.has_decimal_commas)
    if labels is None:
        return PairSet(name, pairs, scale, notes=found.notes)
    pairs = concatenate_datasets([pairs, collect_rows(_label_tables(labels, bool(found.raters)))], axis=1)
    notes = found.notes + (scale_notes(labels.ratings, found.raters) if found.raters else ())
    notes += _notes_on_counting(labels.means, written, grades or {})
    is_labelled = ~np.isnan(labels.means)
    num_unlabelled = int(np.sum(~is_labelled))
    if num_unlabelled:
        number = f"{num_unlabelled:,} pairs" if num_unlabelled > 1 else "1 pair"
        logger.info(f"{name}: {number} without a label {'are' if num_unlabelled > 1 else 'is'} left out")
        pairs = take_rows(pairs, np.flatnonzero(is_labelled))
    if not len(pairs):
        raise ValueError(f"{name}: holds no pairs with a label. Give at least one.")
    is_sick = str(found.label).lower() == SICK_LABEL_COLUMN and SICK_SCALE.spans(labels.means[is_labelled])
    scale = labels.scale or scale or (SICK_SCALE if is_sick else None)
    return PairSet(name, pairs, scale, num_unlabelled, notes, found.raters)


def _log_form(name: str, path: Path | None, separator: str | None, has_decimal_commas: bool) -> None:
    """Tells the user about a form that differs from country to country, and which of several sheets was read."""
    if path is not None and path.suffix.lower() in EXCEL_SUFFIXES and len(titles := sheet_titles(path)) > 1:
        logger.info(f"{name}: read the sheet {titles[0]!r:.40}, the first of {len(titles)}")
    if separator == ";" or has_decimal_commas:
        said = [] if separator is None else [f"as {SEPARATORS[separator]}-separated"]
        said += ["with decimal commas"] if has_decimal_commas else []
        logger.info(f"{name}: read {', '.join(said)}")


@dataclass
class BadValues:
    """The number of bad values, and the lines and descriptions of the first few."""

    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, found: Sequence[tuple[int, str]], count: int | None = None) -> None:
        """Adds bad values that were found together; `count` is their number if only the first few are described."""
        self.count += len(found) if count is None else count
        self.first = sorted([*self.first, *found], key=itemgetter(0))[:PROBLEMS_SHOWN]


def _text_tables(
    rows: Iterator[Row], found: FoundColumns, has_subsets: bool, written: WrittenLabels, problems: BadValues
) -> Iterator[pa.Table]:
    """Yields lines and texts of rows, none after a bad text. Adds raw labels to `written`, bad texts to `problems`."""
    while batch := list(islice(rows, ROWS_READ_AT_ONCE)):  # Python's objects for all texts would fill the memory
        written.add([row.get(column) for _, row in batch for column in written.columns])
        problems.add([problem for line, row in batch for problem in _text_problems(line, row, found)])
        columns = _text_columns([] if problems.count else [row for _, row in batch], found, has_subsets)
        if problems.count:
            columns = {name: pa.nulls(len(batch), pa.string()) for name in columns}
        yield pa.table({**columns, "line": pa.array([line for line, _ in batch], pa.int64())})


def _label_tables(labels: ParsedRatings, has_ratings: bool) -> Iterator[pa.Table]:
    for start in range(0, len(labels.means), ROWS_READ_AT_ONCE):
        rows = slice(start, start + ROWS_READ_AT_ONCE)
        columns: dict[str, pa.Array] = {"label": pa.array(labels.means[rows], from_pandas=True)}  # null for NaN
        if has_ratings:
            given = labels.ratings[rows]
            ends = np.arange(0, given.size + 1, given.shape[1], dtype=np.int32)
            columns[RATINGS_COLUMN] = pa.ListArray.from_arrays(ends, pa.array(given.ravel(), from_pandas=True))
        yield pa.table(columns)


def _notes_on_counting(means: np.ndarray, written: WrittenLabels, grades: Mapping[str, float]) -> tuple[str, ...]:
    """A doubt about labels that are numbers from 1 on, beside names of grades that are counted from 0 on."""
    names = sorted(grades, key=grades.__getitem__)
    if len(names) < 2 or sorted(grades.values()) != list(range(len(names))):
        return ()
    if np.fmin.reduce(means) != 1:
        return ()
    if not all(is_number(str(label)) for label in written.different if not is_blank(label)):
        return ()
    values = " ".join(map(str, range(1, 1 + len(names))))
    return (f"{COUNTED_FROM_1}: 1 is {names[1]!r}. If 1 is {names[0]!r}, give `--label_values {values}`.",)


def _text_columns(rows: Sequence[Mapping[str, Any]], found: FoundColumns, has_subsets: bool) -> dict[str, pa.Array]:
    columns = {
        "sentence1": [row[found.sentence1] for row in rows],
        "sentence2": [row[found.sentence2] for row in rows],
        **({SUBSET_COLUMN: list(map(_subset, rows))} if has_subsets else {}),
    }
    return {name: pa.array(values, pa.string()) for name, values in columns.items()}


def _subset(row: Mapping[str, Any]) -> str:
    subset = row.get(SUBSET_COLUMN)
    return "" if subset is None else str(subset)


def _bad_values(name: str, problems: BadValues, hint: str = "") -> ValueError:
    shown = "; ".join(f"line {line}: {problem}" for line, problem in problems.first)
    number = f"{problems.count:,} bad value{'s' * (problems.count > 1)}"
    return ValueError(f"{name}: {number} ({shown}). Correct or remove these lines.{hint}")


def _add_label_problems(
    problems: BadValues, of_different: Mapping[int, str], written: WrittenLabels, lines: np.ndarray
) -> str:
    """Adds bad labels. Returns hints at the remedy, see [`_hint_at_names`]."""
    if not of_different:
        return ""
    numbers = written.numbers
    rows, columns = np.nonzero(np.isin(numbers, list(of_different)))
    first = zip(rows[:PROBLEMS_SHOWN].tolist(), columns[:PROBLEMS_SHOWN].tolist(), strict=True)
    described = [
        (int(lines[row]), f"`{written.columns[column]}` {of_different[int(numbers[row, column])]}")
        for row, column in first
    ]
    problems.add(described, len(rows))
    counts = np.bincount(numbers[numbers >= 0], minlength=len(written.different)).tolist()
    num_fractions = int((numbers < 0).sum())
    hint = _hint_at_names(written.different, counts, num_fractions, of_different)
    return f"{hint} Leave missing ratings blank." if len(written.columns) > 1 else hint


def _hint_at_names(
    different: Sequence[Any], counts: Sequence[int], num_fractions: int, problems: Mapping[int, str]
) -> str:
    """A hint if at least half of the labels are not numbers: list the names of grades, or name another column."""
    if any(NOT_ONE_OF in problem for problem in problems.values()):
        names = without_repeated_names(str(label).strip() for label in different if not is_blank(label))
        if len(names) <= MAX_NAMES:
            return f" Or correct `--grade_names`: the labels are {_listed(names)}."
    given = num_fractions + sum(count for label, count in zip(different, counts, strict=True) if not is_blank(label))
    places = [place for place, problem in problems.items() if problem.endswith(NOT_A_NUMBER)]
    found = [str(different[place]).strip() for place in places]
    if not found or 2 * sum(counts[place] for place in places) < given:
        return ""
    if all(map(PERCENTAGE.fullmatch, found)):
        return " Remove the percent signs."
    names = without_repeated_names(found)
    if len(names) <= MAX_NAMES:
        return (
            " If they are names of grades, list them in your order: `--grade_names LOWEST … HIGHEST`. Found: "
            f"{_listed(names)}."
        )
    return " If the labels are in another column, name it with `--label_column`."


def _listed(names: Iterable[str]) -> str:
    return f"{', '.join(map(repr, names)):.300}"


def _text_problems(line: int, row: Mapping[str, Any], found: FoundColumns) -> list[tuple[int, str]]:
    problems = _sentence_problems(line, row, found)
    if not is_whole_text(_subset(row)):
        problems.append((line, f"`{SUBSET_COLUMN}` is {row[SUBSET_COLUMN]!r:.40}, which holds half of a character"))
    return problems


def _sentence_problems(line: int, row: Mapping[str, Any], found: FoundColumns) -> list[tuple[int, str]]:
    problems = ((column, sentence_problem(row.get(column))) for column in (found.sentence1, found.sentence2))
    return [(line, f"`{column}` {problem}") for column, problem in problems if problem is not None]


def sentence_problem(sentence: Any) -> str | None:
    """The reason why a value is not a sentence, as the end of an error message; `None` if it is one."""
    if sentence is None or sentence == "":
        return "is empty"
    if not isinstance(sentence, str) or not sentence.strip():
        return f"is {sentence!r:.40}"
    return None if is_whole_text(sentence) else f"is {sentence!r:.40}, half of a character (a lone surrogate)"


def check_texts_differ(pairs: Dataset, name: str) -> None:
    """
    Refuses pairs that all have the same texts, or equal texts on both sides.

    Args:
        pairs: columns `sentence1` and `sentence2`.
        name: the name of the set, for messages.

    Raises:
        ValueError: for such pairs; the message names the set and the remedy.
    """
    texts = pairs.select_columns(["sentence1", "sentence2"]).with_format("arrow")[:]
    if len(pairs) > 1 and compute.all(compute.equal(texts[0], texts[1])).as_py():
        raise ValueError(
            f"{name}: in every pair, both texts are equal, so every cosine is 1. Name the columns with "
            "`--sentence1_column` and `--sentence2_column`."
        )
    if len(pairs) > 1 and all(compute.all(compute.equal(side, side[0])).as_py() for side in texts.columns):
        raise ValueError(
            f"{name}: all {len(pairs):,} pairs have the same two texts, so there is nothing to learn or to rank. "
            "Give different pairs."
        )
