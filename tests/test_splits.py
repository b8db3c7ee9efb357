"""Gathering splits: bundled and own pairs, the held-out part, the label scale."""

from pathlib import Path
from typing import Any

import pytest

from sts_regression.arguments import DataArguments, STSTrainingArguments
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data import PairColumns
from sts_regression.splits import Splits, load_splits


def load(
    do_train: bool = True, checkpoint: STSRegressionConfig | None = None, seed: int = 42, **options: Any
) -> Splits:
    training_args = STSTrainingArguments(output_dir="unused", do_train=do_train, do_eval=True, seed=seed)
    return load_splits(DataArguments(**options), PairColumns(), checkpoint, training_args)


@pytest.fixture
def train_file(tmp_path: Path) -> str:
    path = tmp_path / "train.csv"
    path.write_text("sentence1,sentence2,label\n" + "".join(f"a{i},b{i},{i % 6}\n" for i in range(60)))
    return str(path)


def test_the_bundled_pairs_are_the_default() -> None:
    splits = load()
    assert {name: len(pairs) for name, pairs in splits.pairs.items()} == {
        "train": 1500,
        "validation": 300,
        "test": 300,
    }
    assert splits.label_values == [0, 1, 2, 3, 4, 5]
    assert splits.scored == ["validation", "test"]


def test_evaluation_reads_no_training_pairs(train_file: str) -> None:
    assert "train" not in load(do_train=False).pairs
    assert set(load(do_train=False, train_file="absent.csv", test_file=train_file).pairs) == {"test"}


def test_training_needs_training_pairs(train_file: str) -> None:
    with pytest.raises(ValueError, match="`train_file`: training needs training pairs"):
        load(test_file=train_file)


def test_nothing_is_read_where_nothing_is_trained_or_scored() -> None:
    training_args = STSTrainingArguments(output_dir="unused", do_predict=True)
    splits = load_splits(DataArguments(train_file="absent.csv"), PairColumns(), None, training_args)
    assert (splits.pairs, splits.config_overrides()) == ({}, {})


def test_a_part_of_the_training_pairs_is_held_out_by_seed(train_file: str) -> None:
    first, again, other = (load(train_file=train_file, seed=seed).pairs for seed in (1, 1, 2))
    assert len(first["validation"]) == 6
    assert not set(first["train"]["sentence1"]) & set(first["validation"]["sentence1"])
    assert first["validation"]["sentence1"] == again["validation"]["sentence1"]
    assert first["validation"]["sentence1"] != other["validation"]["sentence1"]


def test_the_scale_comes_from_options_then_checkpoint_then_labels(train_file: str) -> None:
    checkpoint = STSRegressionConfig(label_values=[0, 2.5, 5], label_names=["low", "mid", "high"])
    splits = load(train_file=train_file, checkpoint=checkpoint)
    assert splits.config_overrides() == {"label_values": [0, 2.5, 5], "label_names": ["low", "mid", "high"]}
    given = load(train_file=train_file, checkpoint=checkpoint, label_values=[0, 5, 10])
    assert given.config_overrides() == {"label_values": [0, 5, 10], "label_names": None}
    assert load(train_file=train_file).label_values == [0, 1, 2, 3, 4, 5]


def test_names_of_grades_are_numbered_in_their_order_or_as_given(tmp_path: Path) -> None:
    path = tmp_path / "named.csv"
    path.write_text("sentence1,sentence2,label\n" + "a,b,low\nc,d,high\n" * 30)
    splits = load(train_file=str(path), grade_names=["low", "high"])
    assert (splits.label_values, set(splits.pairs["train"]["label"])) == ([0, 1], {0, 1})
    spread = load(train_file=str(path), grade_names=["low", "high"], label_values=[0, 5])
    assert (spread.label_names, set(spread.pairs["train"]["label"])) == (["low", "high"], {0, 5})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"label_values": [0, 1], "grade_names": ["low", "mid", "high"]},
            "`label_names` must hold one different name",
        ),
        ({"label_values": [0, 1, 5]}, "`label_values` must be two or more numbers, increasing and evenly spaced"),
    ],
)
def test_an_impossible_scale_is_refused_before_files_are_read(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(train_file="absent.csv", **options)


def test_a_label_outside_the_scale_names_its_file(train_file: str, tmp_path: Path) -> None:
    test_file = tmp_path / "test.csv"
    test_file.write_text("sentence1,sentence2,label\na,b,1\nc,d,9\n")
    with pytest.raises(ValueError, match=r"test\.csv: 1 of 2 labels lie outside the scale 0 to 5 \(9 in line 3\)"):
        load(train_file=train_file, test_file=str(test_file), label_values=[0, 1, 2, 3, 4, 5])


def test_equal_labels_are_named_before_a_scale_is_guessed(tmp_path: Path) -> None:
    path = tmp_path / "constant.csv"
    path.write_text("sentence1,sentence2,label\na,b,1\nc,d,1\n")
    with pytest.raises(ValueError, match=r"constant\.csv: all 2 labels are 1"):
        load(train_file=str(path))


def test_trial_runs_take_the_first_pairs(train_file: str) -> None:
    splits = load(train_file=train_file, test_file=train_file, max_train_samples=20, max_eval_samples=5)
    assert {name: len(pairs) for name, pairs in splits.pairs.items()} == {"train": 20, "validation": 5, "test": 5}
    assert splits.pairs["test"]["sentence1"] == ["a0", "a1", "a2", "a3", "a4"]


@pytest.mark.parametrize(("threshold", "kept"), [(None, {4, 5}), (3.0, {3, 4, 5})])
def test_positives_are_the_pairs_of_the_highest_grades(
    train_file: str, threshold: float | None, kept: set[float]
) -> None:
    splits = load(train_file=train_file)
    splits.keep_positives(threshold)
    assert set(splits.pairs["train"]["label"]) == kept


def test_a_threshold_above_all_labels_is_refused(train_file: str) -> None:
    with pytest.raises(ValueError, match=r"no training pair has a label of 6 or more\. Lower it"):
        load(train_file=train_file).keep_positives(6.0)


def test_too_few_pairs_to_hold_out_a_part_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("sentence1,sentence2,label\na,b,0\nc,d,1\ne,f,2\n")
    with pytest.raises(ValueError, match=r"few\.csv: 3 pairs are too few to hold out 10 % .*`--validation_file`"):
        load(train_file=str(path))
