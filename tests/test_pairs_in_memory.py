"""Pairs in memory, in all accepted forms, become a table; other values are refused."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset, DatasetDict

from sts_regression.data.columns import PairColumns
from sts_regression.pairs_in_memory import LABELLED, UNLABELLED, as_dataset, ordered_grades

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT, np.float64("nan")])
def test_missing_values_are_no_texts(missing: Any) -> None:
    for rows in (
        [("a", missing, 1)],
        [{"sentence1": "a", "sentence2": missing, "label": 1}],
        {"sentence2": [missing]},
    ):
        assert as_dataset("pairs", rows, LABELLED)["sentence2"][0] is None


def test_columns_of_any_values_may_stand_beside_the_pairs() -> None:
    given = {"sentence1": ["a"], "hash": [2**70], "path": [Path("b")], "time": [pd.Period("2026-01")], "list": [[1]]}
    assert as_dataset("pairs", given, UNLABELLED)[0] == {
        **{"sentence1": "a", "hash": str(2**70), "path": "b", "time": "2026-01", "list": [1]},
    }


def test_a_formatted_dataset_is_read_as_it_is_stored() -> None:
    pairs = Dataset.from_dict({"sentence1": ["a cat"], "sentence2": ["a dog"], "label": [1]})
    for name in ("pandas", "arrow", "numpy"):
        assert as_dataset("pairs", pairs.with_format(name), LABELLED)[0] == pairs[0]


def test_a_table_of_an_arrow_library_is_read() -> None:
    class Frame:  # as Polars and DuckDB pass theirs on
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table({"sentence1": ["a cat", None], "label": [1, 2]}).__arrow_c_stream__(requested_schema)

    assert as_dataset("pairs", Frame(), LABELLED).to_dict() == {"sentence1": ["a cat", None], "label": [1, 2]}


def test_a_column_of_pairs_is_read_as_rows() -> None:
    rows = [("a cat", "a dog", 1), ("a man", "a park", 2)]
    expected = {"sentence1": ["a cat", "a man"], "sentence2": ["a dog", "a park"], "label": [1, 2]}
    assert as_dataset("pairs", pd.Series(rows), LABELLED).to_dict() == expected
    with pytest.raises(ValueError, match="`pairs` must hold two texts each, but pair 1 is one text"):
        as_dataset("pairs", pd.Series(["a cat"]), UNLABELLED)


def test_an_ordered_category_names_the_grades() -> None:
    names = ["low", "middle", "high"]
    frame = pd.DataFrame({"sentence1": ["a"], "sentence2": ["b"], "label": ["high"], 7: [0]})
    assert ordered_grades(frame, PairColumns()) is None
    frame["label"] = pd.Categorical(frame["label"], names, ordered=True)
    assert ordered_grades(frame, PairColumns()) == names
    assert ordered_grades(frame.rename(columns={"label": "x"}), PairColumns(label=["x"])) == names
    assert ordered_grades(frame.rename(columns={"label": "x"}), PairColumns()) is None
    frame["label"] = pd.Categorical([2], [1, 2], ordered=True)
    assert ordered_grades(frame, PairColumns()) is None


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "b")], "`pairs` must hold two texts and a label each, but pair 1 has 2 values."),
        (["ab"], "but pair 1 is one text."),
        ([("a", "b", 1), "ab"], "but pair 2 is one text."),
        ([None], "but pair 1 has 1 value."),
        ([("a", "b", 1), {"a": 1, "b": 2, "c": 3}], "mixes mappings with other rows: pair 2 is a mapping"),
        (
            "ab.csv",
            "`pairs` must be pairs or a table of them, but is of type str. Read a file first, for example with",
        ),
        (("a", "b"), "`pairs` is one pair. Give a list of pairs, or a table"),
        (["a", "b"], "`pairs` is one pair. Give a list of pairs, or a table"),
        (("a", "b", "high"), "`pairs` is one pair. Give a list of pairs, or a table"),
        (7, "`pairs` must be pairs or a table of them, but is of type int."),
        ({"sentence1": "a", "sentence2": "b", "label": 1}, "`pairs` is one pair. Give a list of pairs, or a table"),
        (DatasetDict(train=Dataset.from_dict({"label": [1]})), "`pairs` holds tables: 'train'. Pass one of them"),
        ({"sentence1": ["a"], "sentence2": ["b", "c"]}, "must be equally long"),
        (pd.DataFrame([("a", "b", 1, 1)], columns=["x", "y", "z", "z"]), "the column 'z' occurs more than once"),
    ],
)
def test_what_is_no_pair_is_refused(pairs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        as_dataset("pairs", pairs, LABELLED)
