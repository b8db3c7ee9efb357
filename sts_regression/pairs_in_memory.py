"""Pairs in memory: lists, mappings and tables of several libraries, as one kind of table."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa
from datasets import Dataset

from sts_regression.data.columns import PairColumns, dataset_of, find_columns
from sts_regression.pipeline_sts_regression import is_whole_text

Pairs: TypeAlias = Dataset | pd.DataFrame | Mapping[str, Sequence[Any]] | Iterable[Sequence[Any]]

COLUMNS = ("sentence1", "sentence2", "label")
LABELLED, UNLABELLED = 3, 2  # number of values of a pair


def is_one_pair(pairs: Any) -> bool:
    """Whether this is a pair instead of pairs: two texts, or a `dict` of texts by column."""
    if isinstance(pairs, Mapping):
        return any(isinstance(value, str) for value in pairs.values())
    return isinstance(pairs, tuple | list) and len(pairs) == 2 and all(isinstance(text, str) for text in pairs)


def as_dataset(name: str, pairs: Pairs, width: int) -> Dataset:
    """
    Pairs in memory as a `Dataset`.

    Args:
        name: the name of the argument, for messages.
        pairs: a table, or rows: two texts and an optional label, or a `dict` of them by column.
        width: the least number of values of a row.

    Raises:
        ValueError: for other inputs, and for rows with too few or too many values.
    """
    if isinstance(pairs, Dataset):
        return pairs.with_format(None)
    if is_one_pair(pairs) or (isinstance(pairs, tuple) and any(isinstance(item, str) for item in pairs)):
        raise ValueError(f"`{name}` is one pair. Give a list of pairs, or a table with a list for each column.")
    if isinstance(pairs, Mapping):
        if tables := [key for key, values in pairs.items() if isinstance(values, Dataset | pd.DataFrame)]:
            raise ValueError(f"`{name}` holds tables: {', '.join(map(repr, tables))}. Pass one of them at a time.")
        return _table({column: list(values) for column, values in pairs.items()})
    if isinstance(pairs, pd.DataFrame):
        if not pairs.columns.is_unique:
            repeated = pairs.columns[pairs.columns.duplicated()][0]
            raise ValueError(f"`{name}`: the column {repeated!r} occurs more than once. Rename or remove one.")
        whole = pairs.astype(object).where(pairs.notna(), None)
        return _table({str(column): whole[column].tolist() for column in whole.columns})
    if hasattr(pairs, "__arrow_c_stream__"):  # a table of Arrow, Polars, DuckDB and others, or a single column
        with suppress(pa.ArrowException):
            table = pa.table(pairs)
            return _table({column: table[column].to_pylist() for column in table.column_names})
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        hint = " Read a file first, for example with `pandas.read_csv`." if isinstance(pairs, str) else ""
        raise ValueError(f"`{name}` must be pairs or a table of them, but is of type {type(pairs).__name__}.{hint}")
    items: list[Any] = list(pairs)
    if items and all(isinstance(item, Mapping) for item in items):
        names = dict.fromkeys(column for item in items for column in item)
        return _table({column: [item.get(column) for item in items] for column in names})
    rows = [tuple(item) if isinstance(item, Iterable) and not isinstance(item, str) else (item,) for item in items]
    for number, (item, row) in enumerate(zip(items, rows, strict=True), start=1):
        if isinstance(item, Mapping):
            raise ValueError(f"`{name}` mixes mappings with other rows: pair {number} is a mapping. Use one form.")
        if not width <= len(row) <= LABELLED:
            wanted = "two texts and a label" if width == LABELLED else "two texts"
            found = "is one text" if isinstance(item, str) else f"has {len(row)} value{'s' * (len(row) != 1)}"
            raise ValueError(f"`{name}` must hold {wanted} each, but pair {number} {found}.")
    return _table({column: [row[i] for row in rows] for i, column in enumerate(COLUMNS[:width])})


def column_names(given: Any) -> Any:
    """One or several names of columns as [`as_dataset`] has them; a table of pandas may number its columns."""
    if given is None:
        return None
    return list(map(str, given)) if isinstance(given, list | tuple) else str(given)


def ordered_grades(pairs: Pairs, columns: PairColumns) -> list[str] | None:
    """
    The names of the grades, lowest first, if the labels are an ordered `Categorical` of a `pandas.DataFrame`.

    Args:
        pairs: labelled pairs.
        columns: the given names of columns.
    """
    if not isinstance(pairs, pd.DataFrame):
        return None
    named = pairs.rename(columns=str)
    with suppress(ValueError):  # columns that cannot be guessed are reported when the pairs are read
        label = named[find_columns([*named.columns], "pairs", columns, labelled=True).label]
        if isinstance(label.dtype, pd.CategoricalDtype) and label.dtype.ordered:
            names = label.dtype.categories.tolist()
            return names if all(isinstance(name, str) for name in names) else None
    return None


def _table(columns: Mapping[str, list[Any]]) -> Dataset:
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns must be equally long, but have these lengths: {lengths}.")
    return dataset_of(pa.table({column: _as_array(column, values) for column, values in columns.items()}))


def _as_array(column: str, values: list[Any]) -> pa.Array:
    """
    Values as Arrow holds them, with null for missing ones.

    Values of several types, and of types that Arrow does not know, become texts, as in a CSV file.
    """
    for number, value in enumerate(values, start=1):
        if isinstance(value, str) and not is_whole_text(value):
            raise ValueError(
                f"`{column}` of pair {number} is {value!r:.40}, half of a character (a lone surrogate). Correct it."
            )
    present = [None if pd.api.types.is_scalar(value) and pd.isna(value) else value for value in values]
    if len({type(value) for value in present if value is not None}) < 2:
        try:
            return pa.array(present)
        except (pa.ArrowException, OverflowError):
            pass  # an unused column may hold anything
    return pa.array([None if value is None else str(value) for value in present], pa.string())
