"""Gathering splits: bundled and own pairs, the held-out part, the label scale."""

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data import sources
from sts_regression.data import splits as splits_module
from sts_regression.data.columns import PairColumns, numbers_of
from sts_regression.data.labels import NLI_SCALE, SICK_SCALE, STS_SCALE, UNIT_SCALE, LabelScale
from sts_regression.data.scales import check_label_scale, check_labels_differ, given_scale
from sts_regression.data.splits import Splits, load_splits
from sts_regression.data.sts_tasks import STSTask
from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.split_measures import measure_splits
from sts_regression.options.data_arguments import DataArguments


def load(
    do_train: bool = True,
    checkpoint: STSRegressionConfig | None = None,
    seed: int = 42,
    loss_type: str = "smooth_k2",
    **options: Any,
) -> Splits:
    return load_splits(
        DataArguments(**options),
        PairColumns(),
        checkpoint,
        do_train=do_train,
        do_eval=True,
        seed=seed,
        loss_type=loss_type,
    )


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
    assert splits.scale == STS_SCALE
    assert splits.sources == {
        "train": "bundled train.csv",
        "validation": "bundled dev.csv",
        "test": "bundled test.csv",
    }
    assert splits.scored == ["validation", "test"]


def test_evaluation_reads_no_training_pairs(train_file: str) -> None:
    assert "train" not in load(do_train=False).pairs
    assert set(load(do_train=False, train_file="absent.csv", test_file=train_file).pairs) == {"test"}


def test_training_pairs_alone_are_nothing_to_score(train_file: str) -> None:
    with pytest.raises(ValueError, match="`--validation_file`"):
        load(do_train=False, train_file=train_file)


def test_training_needs_training_pairs(train_file: str) -> None:
    with pytest.raises(ValueError, match="`train_file`: training needs training pairs"):
        load(test_file=train_file)


def test_nothing_is_read_where_nothing_is_trained_or_scored() -> None:
    splits = load_splits(DataArguments(train_file=["absent.csv"]), PairColumns(), None, do_train=False, do_eval=False)
    assert (splits.pairs, splits.config_overrides()) == ({}, {})


def test_a_part_of_the_training_pairs_is_held_out_by_seed(train_file: str) -> None:
    first, again, other = (load(train_file=train_file, seed=seed).pairs for seed in (1, 1, 2))
    assert (len(first["train"]), len(first["validation"])) == (48, 12)
    assert {*first["train"]["sentence1"], *first["validation"]["sentence1"]} == {f"a{i}" for i in range(60)}
    assert first["validation"]["sentence1"] == again["validation"]["sentence1"]
    assert first["validation"]["sentence1"] != other["validation"]["sentence1"]


def test_the_share_of_the_held_out_part_is_an_option(train_file: str) -> None:
    splits = load(train_file=train_file, validation_split_percentage=25)
    assert len(splits.pairs["validation"]) == 15
    assert splits.sources["validation"] == f"25 % of {train_file}"


@pytest.mark.parametrize(
    ("num_pairs", "num_held_out"), [(10, 5), (24, 5), (100, 20), (1000, 200), (1500, 200), (5000, 500), (51_000, 5000)]
)
def test_more_of_few_pairs_is_held_out(tmp_path: Path, num_pairs: int, num_held_out: int) -> None:
    path = write_pairs(tmp_path / "pairs.csv", [(f"a{i}", f"b{i}", i % 2) for i in range(num_pairs)])
    assert len(load(train_file=path).pairs["validation"]) == num_held_out


def test_no_text_is_in_training_and_held_out_pairs(tmp_path: Path) -> None:
    rows = [(f"question {i // 8}", f"answer {i}", i % 3) for i in range(200)]
    first, second = (
        write_pairs(tmp_path / f"{name}.csv", part) for name, part in (("a", rows[::2]), ("b", rows[1::2]))
    )
    splits = load(train_file=[first, second])
    train, held_out = (set(splits.pairs[split]["sentence1"]) for split in ("train", "validation"))
    assert not train & held_out
    assert len(splits.pairs["validation"]) == 40
    assert splits.sources["validation"] == f"20 % of {first} + 20 % of {second}"


@pytest.mark.parametrize("folds", [1, 2])
@pytest.mark.parametrize("is_trained", [True, False])
def test_a_trained_model_may_know_the_held_out_pairs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, folds: int, is_trained: bool
) -> None:
    path = write_pairs(tmp_path / "pairs.csv", [(f"a{i}", f"b{i}", i % 3) for i in range(60)])
    checkpoint = STSRegressionConfig(label_values=[0.0, 1.0, 2.0], head_is_trained=is_trained)
    with caplog.at_level(logging.INFO):
        load_splits(DataArguments(train_file=[path], folds=folds), PairColumns(), checkpoint, seed=42, fold=1)
    assert ("The model was trained on graded pairs before" in caplog.text) == is_trained


def test_texts_of_one_side_are_kept_apart_if_all_pairs_hang_together(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [(f"question {i % 20}", f"answer {i // 20}", i % 3) for i in range(200)]
    with caplog.at_level(logging.INFO):
        splits = load(train_file=write_pairs(tmp_path / "pairs.csv", rows))
    assert not set(splits.pairs["train"]["sentence1"]) & set(splits.pairs["validation"]["sentence1"])
    assert "most pairs are connected by shared texts, so only texts of sentence1 are kept apart" in caplog.text


@pytest.mark.parametrize("num_texts", [2, 6])  # with six, each side would have one label
def test_pairs_of_a_few_texts_are_held_out_one_by_one(
    tmp_path: Path, num_texts: int, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [(f"a{i % num_texts}", f"b{i % num_texts}", int(i % num_texts == 0)) for i in range(60)]
    with caplog.at_level(logging.INFO):
        splits = load(train_file=write_pairs(tmp_path / "pairs.csv", rows))
    assert "one by one, since too few texts differ to keep them apart: texts may occur on both sides" in caplog.text
    assert "by text" not in caplog.text
    assert len(splits.pairs["validation"]) == 12
    assert {*splits.pairs["validation"]["label"]} == {*splits.pairs["train"]["label"]} == {0, 1}


@pytest.mark.parametrize("folds", [1, 5])
def test_both_parts_have_rare_labels(tmp_path: Path, folds: int) -> None:
    rows = [(f"a{i}", f"b{i}", int(i < 2 * folds)) for i in range(100)]
    path = write_pairs(tmp_path / "pairs.csv", rows)
    for seed in range(12):
        splits = load(train_file=path, folds=folds, seed=seed)
        labels = np.array(splits.pairs["validation"]["label"])
        parts = [labels[rows] for rows in splits.fold_rows] or [labels, splits.pairs["train"]["label"]]
        assert all({0, 1} == {*part} for part in parts)


def test_texts_stay_apart_if_a_label_is_rare(tmp_path: Path) -> None:
    rows = [(f"a{i // 2}", f"b{i}", int(i % 50 == 0)) for i in range(100)]
    path = write_pairs(tmp_path / "pairs.csv", rows)
    for seed in range(12):
        pairs = load(train_file=path, seed=seed).pairs
        assert not set(pairs["train"]["sentence1"]) & set(pairs["validation"]["sentence1"])


def test_a_label_of_one_pair_cannot_be_in_both_parts(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "pairs.csv", [(f"a{i}", f"b{i}", int(i == 0)) for i in range(100)])
    message = (
        r"^.*pairs\.csv: other labels than 0 are so rare that the (20 held-out|80 training) pairs have none\. Give "
        "another `--validation_split_percentage` or `--seed`, or development pairs with `--validation_file`"
    )
    found = set()
    for seed in range(12):
        with pytest.raises(ValueError, match=message) as refused:
            load(train_file=path, seed=seed)
        found.add("held-out" if "20 held-out" in str(refused.value) else "training")
    assert found == {"held-out", "training"}


def test_training_files_that_may_have_scales_of_their_own_are_noted(tmp_path: Path) -> None:
    labels = {"five": range(1, 6), "seven": range(1, 8)}
    files = [
        write_pairs(tmp_path / f"{name}.csv", [(f"{name}{i}", f"b{name}{i}", of[i % len(of)]) for i in range(200)])
        for name, of in labels.items()
    ]
    five, seven = load(train_file=files).sets["train"]
    assert (len(five.notes), seven.notes) == (1, ())
    assert "`--label_ranges five.csv=1:5 seven.csv=1:7`, and the model's scale with `--label_values`" in five.notes[0]
    for ranges in (None, ["five.csv=1:5", "seven.csv=1:7"]):
        parts = load(train_file=files, label_values=list(range(1, 8)), label_ranges=ranges).sets["train"]
        assert [part.notes for part in parts] == [(), ()]


def test_fractions_of_a_scale_below_zero_are_not_stretched(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    train = [(f"a{i}", f"b{i}", label) for i, label in enumerate(generator.uniform(-1, 1, 60).round(2))]
    dev = [(f"c{i}", f"d{i}", label) for i, label in enumerate(generator.uniform(0, 1, 60).round(2))]
    files = [write_pairs(tmp_path / f"{name}.csv", rows) for name, rows in (("train", train), ("dev", dev))]
    with pytest.raises(ValueError, match="If all are on one scale, give it with `--label_values`"):
        load(train_file=files[0], validation_file=files[1])
    splits = load(train_file=files[0], validation_file=files[1], label_values=[-1.0, 0.0, 1.0])
    assert splits.pairs["validation"]["label"] == pytest.approx([row[2] for row in dev])


def test_folds_keep_few_texts_apart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [(f"question {i % 4}", f"answer {i}", i // 4 % 3) for i in range(60)]
    with caplog.at_level(logging.INFO):
        options = DataArguments(train_file=[write_pairs(tmp_path / "pairs.csv", rows)], folds=2)
        splits = load_splits(options, PairColumns(), None, seed=42, fold=1)
    train, held_out = (set(splits.pairs[split]["sentence1"]) for split in ("train", "validation"))
    assert (len(train), len(held_out), train & held_out) == (2, 2, set())
    assert "chosen with seed 42 by text" in caplog.text


def test_nothing_is_held_out_where_there_are_development_pairs(train_file: str) -> None:
    splits = load(train_file=train_file, validation_file=train_file)
    assert len(splits.pairs["train"]) == len(splits.pairs["validation"]) == 60
    assert splits.sources == {"train": train_file, "validation": train_file}


def test_all_splits_of_a_hub_data_set_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = {"train": [0.0, 0.3], "validation": [0.0, 1.0], "test": [0.5, 1.0]}

    def load_dataset(name: str, config_name: str, split: str) -> Dataset:
        assert (name, config_name) == ("some/sts", "en")
        return Dataset.from_dict({"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": labels[split]})

    monkeypatch.setattr(sources, "check_there", lambda *args, **options: None)
    monkeypatch.setattr(sources, "get_dataset_split_names", lambda name, config_name: list(labels))
    monkeypatch.setattr(sources, "load_dataset", load_dataset)
    splits = load(dataset_name="some/sts", dataset_config_name="en", leak_filter="none")
    assert {name: pairs["label"] for name, pairs in splits.pairs.items()} == labels
    assert splits.sources == {name: f"some/sts ({name})" for name in labels}
    assert splits.scale == UNIT_SCALE
    evaluated = load(do_train=False, dataset_name="some/sts", dataset_config_name="en")
    assert set(evaluated.pairs) == {"validation", "test"}


def test_the_scale_comes_from_options_then_checkpoint_then_labels(train_file: str) -> None:
    checkpoint = STSRegressionConfig(label_values=[0, 2.5, 5], label_names=["low", "mid", "high"])
    splits = load(train_file=train_file, checkpoint=checkpoint)
    assert splits.config_overrides() == {"label_values": [0, 2.5, 5], "label_names": ["low", "mid", "high"]}
    given = load(train_file=train_file, checkpoint=checkpoint, label_values=[0, 5, 10])
    assert given.config_overrides() == {"label_values": [0, 5, 10], "label_names": None}
    assert load(train_file=train_file).scale == STS_SCALE


def test_names_of_grades_are_numbered_in_their_order_or_as_given(tmp_path: Path) -> None:
    path = tmp_path / "named.csv"
    path.write_text("sentence1,sentence2,label\n" + "a,b,low\nc,d,high\n" * 30)
    splits = load(train_file=str(path), grade_names=["low", "high"])
    assert (splits.scale, set(splits.pairs["train"]["label"])) == (LabelScale((0, 1), ("low", "high")), {0, 1})
    spread = load(train_file=str(path), grade_names=["low", "high"], label_values=[0, 5])
    assert (spread.scale, set(spread.pairs["train"]["label"])) == (LabelScale((0, 5), ("low", "high")), {0, 5})


def test_names_that_a_checkpoint_knows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "named.csv"
    path.write_text("sentence1,sentence2,label\na,b,low\nc,d,high\n")
    checkpoint = STSRegressionConfig(label_values=[0, 5], label_names=["low", "high"])
    assert load(do_train=False, checkpoint=checkpoint, test_file=str(path)).pairs["test"]["label"] == [0, 5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"label_values": [0, 1], "grade_names": ["low", "mid", "high"]},
            "`grade_names` holds 3 names for 2 nodes in `label_values`",
        ),
        ({"grade_names": ["low"]}, r"`grade_names` \['low'\] is one name\. Give two names or more, the lowest"),
        ({"grade_names": ["low,very high"]}, r"commas do not separate names\. .*: `--grade_names low 'very high'`\.$"),
        ({"grade_names": ["low,", "high"]}, r"commas do not separate names\. .*: `--grade_names low high`\.$"),
        (
            {"grade_names": ["low", "very", "high", "high"]},
            'put quotation marks around a name of several words, such as `"highly relevant"`.$',
        ),
        ({"label_values": [0, 5, 1]}, "`label_values` must be two or more numbers, increasing"),
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
    splits = load(
        train_file=train_file, test_file=train_file, leak_filter="none", max_train_samples=20, max_eval_samples=5
    )
    assert {name: len(pairs) for name, pairs in splits.pairs.items()} == {"train": 20, "validation": 5, "test": 5}
    assert splits.pairs["test"]["sentence1"] == ["a0", "a1", "a2", "a3", "a4"]


@pytest.mark.parametrize(("threshold", "kept"), [(None, {4, 5}), (3.0, {3, 4, 5})])
def test_positives_are_the_pairs_of_the_highest_grades(
    train_file: str, threshold: float | None, kept: set[float]
) -> None:
    splits = load(train_file=train_file, loss_type="info_nce", positive_threshold=threshold)
    assert set(splits.pairs["train"]["label"]) == kept
    assert len(splits.sets["train"][0].pairs) == len(splits.pairs["train"]) == len(splits.set_of_pair["train"])
    assert set(splits.pairs["validation"]["label"]) != kept


@pytest.mark.parametrize(("top", "threshold", "shown"), [(5, 6.0, "6"), (10, None, "8")])
def test_a_threshold_above_all_labels_is_refused(
    train_file: str, top: float, threshold: float | None, shown: str
) -> None:
    options: dict[str, Any] = {"label_values": [0, top], "positive_threshold": threshold}
    with pytest.raises(ValueError, match=rf"no training pair has a label of {shown} or more\. Lower it"):
        load(train_file=train_file, loss_type="info_nce", **options)


def test_too_few_pairs_to_hold_out_a_part_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("sentence1,sentence2,label\na,b,0\nc,d,1\ne,f,2\n")
    message = r"few\.csv: 3 pairs are too few to hold out 5 of them for development\. Give at least 10 pairs, or dev"
    with pytest.raises(ValueError, match=message):
        load(train_file=str(path))
    with pytest.raises(ValueError, match=r"Give at least 17 pairs, or development pairs with `--validation_file`\."):
        load(train_file=str(path), validation_split_percentage=30)
    path.write_text("sentence1,sentence2,label\n" + "".join(f"a{i},b{i},{i % 3}\n" for i in range(10)))
    assert len(load(train_file=str(path)).pairs["validation"]) == 5
    with pytest.raises(ValueError, match=r"Give at least 17 pairs, a higher `--validation_split_percentage`, or"):
        load(train_file=str(path), validation_split_percentage=30)


def test_pairs_that_the_leak_filter_left_out_are_said_if_too_few_remain(train_file: str, tmp_path: Path) -> None:
    lines = Path(train_file).read_text().splitlines()
    (tmp_path / "test.csv").write_text("\n".join(lines[:56]))
    message = r"5 pairs are too few to hold out 5 .* The leak filter left out 55 test pairs \(`--leak_filter`\)\."
    with pytest.raises(ValueError, match=message):
        load(train_file=train_file, test_file=[str(tmp_path / "test.csv")])
    (tmp_path / "few.csv").write_text("\n".join(lines[:8]))
    with pytest.raises(ValueError, match=r"7 pairs are too few to hold out 5 .*`--validation_file`\.$"):
        load(train_file=[str(tmp_path / "few.csv")], test_file=[str(tmp_path / "test.csv")], leak_filter="none")


@pytest.mark.parametrize("scale", [{"label_ranges": ["single.parquet=0:0.3"]}, {"label_values": [0, 0.1, 0.2, 0.3]}])
def test_labels_in_single_precision_reach_the_end_of_their_scale(tmp_path: Path, scale: dict[str, Any]) -> None:
    labels = np.array([0, 0.1, 0.2, 0.3] * 10, dtype=np.float32)
    texts = [[f"{side}{i}" for i in range(40)] for side in "ab"]
    pq.write_table(pa.table([*texts, labels], ["sentence1", "sentence2", "label"]), tmp_path / "single.parquet")
    splits = load(train_file=[str(tmp_path / "single.parquet")], **scale)
    assert splits.scale is not None
    assert max(splits.pairs["train"]["label"]) == splits.scale.values[-1] == 0.3


def test_labels_outside_the_scale_are_named() -> None:
    pairs = Dataset.from_dict({"label": [0.0, 5.0, 5.5, -1.0], "line": [2, 3, 4, 5]})
    message = r"test.csv: 2 of 4 labels lie outside the scale 0 to 5 \(5.5 in line 4, -1 in line 5\).*`--label_values`"
    with pytest.raises(ValueError, match=message):
        check_label_scale(pairs, "test.csv", STS_SCALE)


def test_test_labels_outside_the_scale_of_training_may_have_a_scale_of_their_own(tmp_path: Path) -> None:
    train = whole_numbers(tmp_path, "train", 3)
    test = write_pairs(tmp_path / "test.csv", [(f"c{i}", f"d{i}", 1 + i % 4) for i in range(60)])
    message = (
        r"15 of 60 labels lie outside the scale 0 to 3 \(.*\)\. If the file has another scale, give it, such as "
        r"`--label_ranges test\.csv=1:4`\. If not, correct the labels\.$"
    )
    with pytest.raises(ValueError, match=message):
        load(train_file=train, test_file=test)
    mapped = load(train_file=train, test_file=test, label_ranges=["test.csv=1:4"])
    assert set(mapped.pairs["test"]["label"]) == {0, 1, 2, 3}
    with pytest.raises(ValueError, match=r"Correct them, or give the whole scale with `--label_values`\.$"):
        load(train_file=train, test_file=test, label_values=range(4))


def test_equal_labels_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"test.csv: all 2 labels are 3, .*Give pairs with at least two different labels"
    ):
        check_labels_differ(Dataset.from_dict({"label": [3.0, 3.0]}), "test.csv")


def test_a_set_is_never_held_out_as_a_whole(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "few.csv", [(f"a{i}", f"b{i}", i % 2) for i in range(8)])
    options: dict[str, Any] = {"validation_split_percentage": 88, "label_values": [0, 1]}
    with pytest.raises(ValueError, match=r"few\.csv: holds one pair, so there is nothing to rank"):
        load(train_file=path, **options)


def test_a_weight_that_leaves_no_pair_is_refused(train_file: str) -> None:
    with pytest.raises(ValueError, match=r"train\.csv: no pairs are left. Give more, or raise `--train_weights`"):
        load(train_file=train_file, train_weights=[1e-9])


def write_pairs(path: Path, rows: Sequence[tuple[str, str, object]], header: str = "sentence1,sentence2,label") -> str:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return str(path)


@pytest.fixture
def sick_file(tmp_path: Path) -> str:
    rows = [(f"c{i}", f"d{i}", 1 + i % 5) for i in range(50)]
    return write_pairs(tmp_path / "sick.csv", rows, "sentence_A,sentence_B,relatedness_score")


def test_labels_are_mapped_from_their_own_scale_onto_one(train_file: str, sick_file: str) -> None:
    onto_sts = load(train_file=[train_file, sick_file], test_file=sick_file, leak_filter="none", label_values=range(6))
    assert sorted(set(onto_sts.pairs["test"]["label"])) == [0, 1.25, 2.5, 3.75, 5]
    assert len(onto_sts.pairs["train"]) + len(onto_sts.pairs["validation"]) == 110
    alone = load(train_file=sick_file)
    assert alone.config_overrides()["label_values"] == [1, 2, 3, 4, 5]


def test_nli_brings_its_scale_and_names(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    names = ["entailment", "neutral", "contradiction", "-"]
    path = write_pairs(
        tmp_path / "nli.csv", [(f"a{i}", "b", names[i % 4]) for i in range(80)], "premise,hypothesis,label"
    )
    splits = load(train_file=path)
    assert splits.scale == NLI_SCALE
    assert splits.config_overrides()["label_names"] == ["contradiction", "neutral", "entailment"]
    assert splits.sets["train"][0].num_unlabelled == 20
    assert f"{path}: 20 pairs without a label are left out" in caplog.messages
    assert len(splits.pairs["train"]) == 48


def test_a_label_outside_its_own_scale_is_named_with_that_scale(tmp_path: Path) -> None:
    line = "main-captions\tMSRvid\t2012test\t0001\t{}\tA plane.\tAn air plane.\n"
    path = tmp_path / "sts.csv"
    path.write_text(line.format("5.5") + line.format("1"))
    with pytest.raises(ValueError, match=r"sts\.csv: 1 of 2 labels lie outside the scale 0 to 5 \(5.5 in line 1\)"):
        load(train_file=str(path), label_values=[0, 5, 10])


def test_labels_within_0_and_1_of_a_wider_scale_raise_suspicion(
    tmp_path: Path, sick_file: str, caplog: pytest.LogCaptureFixture
) -> None:
    halves = write_pairs(tmp_path / "halves.csv", [("a", "b", 0.5), ("c", "d", 1)])
    load(train_file=sick_file, test_file=halves, label_values=[0, 1, 2, 3, 4, 5])
    assert "halves.csv: all labels lie between 0 and 1" in caplog.text


def whole_numbers(folder: Path, name: str, high: int, num_pairs: int = 60) -> str:
    """A file of pairs whose labels are the whole numbers from 0 on."""
    rows = [(f"{name} {i}", f"other {i}", i % (high + 1)) for i in range(num_pairs)]
    return write_pairs(folder / f"{name}.csv", rows)


@pytest.mark.parametrize(("high", "has_grades"), [(5, True), (1, False), (10, False)])
def test_grades_are_measured_on_the_scale_of_the_model(tmp_path: Path, high: int, has_grades: bool) -> None:
    """0 and 1 are no grades of a model that grades from 0 to 5."""
    config = STSRegressionConfig(label_values=range(6))
    test = whole_numbers(tmp_path, "test", high)
    splits = load(do_train=False, checkpoint=config, test_file=test, label_ranges=[f"test.csv=0:{high}"])
    scores = PairScores(numbers_of(splits.pairs["test"], "label"), None)
    measures, _ = measure_splits(splits, {"test": scores})
    assert measures["test"]["spearman_head"] == pytest.approx(1)
    assert ("accuracy_head" in measures["test"]) == has_grades


def test_bundled_pairs_that_nobody_named_are_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    load(do_train=False)
    assert "No pairs are named, so the bundled ones are scored. `--test_file` names yours." in caplog.messages


def test_labels_of_other_pairs_do_not_influence_the_scale_of_training(tmp_path: Path) -> None:
    train, validation = whole_numbers(tmp_path, "train", 5), whole_numbers(tmp_path, "validation", 100, 404)
    splits = load(train_file=train, validation_file=validation)
    assert splits.scale == STS_SCALE
    assert max(splits.pairs["validation"]["label"]) == 5
    assert splits.sets["validation"][0].scale == LabelScale(tuple(map(float, range(101))))
    outside = whole_numbers(tmp_path, "outside", 6)
    with pytest.raises(ValueError, match=r"outside\.csv: 8 of 60 labels lie outside the scale 0 to 5"):
        load(train_file=train, test_file=outside)


def test_training_files_whose_scales_cannot_be_told_apart_are_asked_for(tmp_path: Path) -> None:
    files = [whole_numbers(tmp_path, "five", 5), whole_numbers(tmp_path, "ten", 10, 66)]
    message = r"five\.csv: its labels lie between 0 and 5, those of .*ten\.csv between 0 and 10\..*five\.csv=0:5`"
    with pytest.raises(ValueError, match=message):
        load(train_file=files)
    one_scale = load(train_file=files, label_values=range(11))
    assert one_scale.scale == LabelScale(tuple(map(float, range(11))))
    assert max(label for label in one_scale.pairs["train"]["label"] if label <= 5) == 5
    two_scales = load(train_file=files, label_ranges=["five.csv=0:5"])
    assert two_scales.scale == STS_SCALE
    assert {part.name: part.scale.values[-1] for part in two_scales.sets["train"] if part.scale} == {
        files[0]: 5,
        files[1]: 10,
    }
    assert max(two_scales.pairs["train"]["label"]) == 5


def test_a_stated_range_goes_before_the_scale_that_a_column_suggests(tmp_path: Path) -> None:
    path = tmp_path / "relatedness.csv"
    rows = [f"the cat {i},a dog {i},{1 + i % 5}" for i in range(60)]
    path.write_text("\n".join(["sentence_A,sentence_B,relatedness_score", *rows]))
    assert load(train_file=str(path)).scale == SICK_SCALE
    stated = load(train_file=str(path), label_ranges=["relatedness.csv=0:5"], label_values=range(6))
    assert (stated.scale, min(stated.pairs["train"]["label"])) == (STS_SCALE, 1.0)
    alone = load(train_file=str(path), label_ranges=["relatedness.csv=0:5"])
    assert (alone.scale, min(alone.pairs["train"]["label"])) == (STS_SCALE, 1.0)


def test_the_remedy_for_unclear_scales_leads_to_the_grades_of_the_first_file(tmp_path: Path) -> None:
    files = [whole_numbers(tmp_path, "five", 5), whole_numbers(tmp_path, "ten", 10, 66)]
    dev = whole_numbers(tmp_path, "dev", 5)
    with pytest.raises(ValueError, match=r"such as `--label_ranges (.*five\.csv=0:5)`") as refused:
        load(train_file=files, validation_file=dev)
    told = str(refused.value).partition("--label_ranges ")[2].partition("`")[0]
    splits = load(train_file=files, validation_file=dev, label_ranges=[told])
    assert splits.scale == STS_SCALE
    assert (max(splits.pairs["train"]["label"]), max(splits.pairs["validation"]["label"])) == (5, 5)


def test_a_stated_range_that_labels_do_not_fit_has_its_ends_as_nodes(tmp_path: Path) -> None:
    path = whole_numbers(tmp_path, "five", 5)
    assert load(train_file=path, label_ranges=["five.csv=-0.5:5.5"]).scale == LabelScale((-0.5, 5.5))


@pytest.mark.parametrize(
    ("names", "values", "label_names"),
    [
        (["1", "2", "3"], (1.0, 2.0, 3.0), None),
        (["0", "0.5", "1.0"], (0.0, 0.5, 1.0), None),
        (["2", "1", "0"], (0.0, 1.0, 2.0), ("2", "1", "0")),
        (["1", "2", "more"], (0.0, 1.0, 2.0), ("1", "2", "more")),
    ],
)
def test_names_that_are_increasing_numbers_are_the_grades(
    names: list[str], values: tuple[float, ...], label_names: tuple[str, ...] | None
) -> None:
    scale = given_scale(DataArguments(grade_names=names), None)
    assert scale == LabelScale(values, label_names)


def test_labels_between_grades_that_are_numbers_are_read(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "pairs.csv", [(f"a{i}", f"b{i}", (1, 1.5, 3)[i % 3]) for i in range(60)])
    splits = load(train_file=path, grade_names=["1", "2", "3"])
    assert sorted(set(splits.pairs["train"]["label"])) == [1, 1.5, 3]


def test_labels_that_count_named_grades_from_one_are_told_the_scale(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "pairs.csv", [(f"a{i}", f"b{i}", 1 + i % 3) for i in range(60)])
    names = ["bad", "ok", "good"]
    with pytest.raises(ValueError, match=r"Correct them, or, if 1 is 'bad', give `--label_values 1 2 3`\.$"):
        load(train_file=path, grade_names=names)
    assert load(train_file=path, grade_names=names, label_values=[1, 2, 3]).scale == LabelScale(
        (1, 2, 3), tuple(names)
    )


@pytest.mark.parametrize("loss_type", ["mse", "info_nce"])
def test_a_training_file_of_several_may_have_one_label(tmp_path: Path, loss_type: str) -> None:
    files = [
        write_pairs(tmp_path / f"{label}.csv", [(f"the {label} {i}", f"a dog {label} {i}", label) for i in range(30)])
        for label in (0, 1)
    ]
    splits = load(train_file=files, label_values=[0, 1], loss_type=loss_type)
    assert set(splits.pairs["train"]["label"]) == ({0.0, 1.0} if loss_type == "mse" else {1.0})


def test_positives_alone_are_enough_for_a_loss_without_labels(tmp_path: Path, train_file: str) -> None:
    positives = write_pairs(tmp_path / "ones.csv", [(f"the cat {i}", f"a dog {i}", 5) for i in range(30)])
    options: dict[str, Any] = {"train_file": positives, "validation_file": train_file, "label_values": range(6)}
    assert len(load(**options, loss_type="info_nce").pairs["train"]) == 30
    with pytest.raises(ValueError, match=r"ones\.csv: all 30 labels are 5, so there is nothing to rank"):
        load(**options)


def test_training_files_of_far_apart_scales_are_mapped_onto_one(tmp_path: Path) -> None:
    files = [whole_numbers(tmp_path, "five", 5), whole_numbers(tmp_path, "hundred", 100, 404)]
    splits = load(train_file=files, validation_file=files[0])
    assert splits.scale == STS_SCALE
    labels = splits.pairs["train"][:]["label"]
    assert labels[:60] == [float(i % 6) for i in range(60)]
    assert labels[60:] == pytest.approx([(i % 101) / 20 for i in range(404)])


def test_a_training_file_that_lacks_the_top_grade_shares_the_scale_of_the_other(tmp_path: Path) -> None:
    files = [whole_numbers(tmp_path, "four", 4), whole_numbers(tmp_path, "five", 5)]
    splits = load(train_file=files, validation_file=files[1])
    assert splits.scale == STS_SCALE
    assert max(splits.pairs["train"][:60]["label"]) == 4


@pytest.mark.parametrize(("divisor", "highest"), [(1, 5), (5, 1), (0.05, 100)])
def test_a_checkpoint_is_evaluated_on_labels_of_another_scale(tmp_path: Path, divisor: float, highest: float) -> None:
    rows = [(f"a{i}", f"b{i}", (i % 26) / 5 / divisor) for i in range(60)]
    test_file = write_pairs(tmp_path / "test.csv", rows)
    splits = load(do_train=False, checkpoint=STSRegressionConfig(), test_file=test_file)
    assert splits.config_overrides()["label_values"] == [0, 1, 2, 3, 4, 5]
    labels = splits.pairs["test"][:]["label"]
    assert max(row[2] for row in rows) == pytest.approx(highest)
    assert (min(labels), max(labels)) == pytest.approx((0, 5))


def test_test_pairs_that_stay_far_from_an_end_of_the_scale_are_noted(train_file: str, tmp_path: Path) -> None:
    files = [whole_numbers(tmp_path, "narrow", 3), whole_numbers(tmp_path, "whole", 5)]
    narrow, whole = load(train_file=train_file, test_file=files).sets["test"]
    assert narrow.notes[0].startswith("labels 0 to 3 are read on the label scale 0 1 2 3 4 5")
    assert whole.notes == ()


def test_few_pairs_need_not_reach_the_ends_of_the_scale(train_file: str, tmp_path: Path) -> None:
    few = write_pairs(tmp_path / "few.csv", [("x", "y", 0), ("v", "w", 1)])
    assert load(train_file=train_file, test_file=few).pairs["test"]["label"] == [0, 1]


@pytest.mark.parametrize("text", ["five.csv", "five.csv=0", "five.csv=5:0", "=0:5", "five.csv=0:inf", "five.csv=a:b"])
def test_an_impossible_label_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"`label_ranges` must hold texts such as pairs\.csv=0:10"):
        DataArguments(label_ranges=[text])


def test_a_label_range_of_an_unknown_file_is_refused(train_file: str) -> None:
    with pytest.raises(ValueError, match=r"`label_ranges` names 'other\.csv', which is not among the files: .*train"):
        load(train_file=train_file, label_ranges=["other.csv=0:5"])


def test_weights_say_how_often_the_pairs_of_each_set_are_there(train_file: str, sick_file: str) -> None:
    options: dict[str, Any] = {
        "train_file": [train_file, sick_file],
        "validation_file": sick_file,
        "label_values": range(6),
    }
    pairs = load(train_weights=[2.5, 0.5], **options).pairs["train"]
    counts = Counter(pairs["sentence1"])
    assert len(pairs) == 150 + 25
    assert Counter(counts[f"a{i}"] for i in range(60)) == {2: 30, 3: 30}
    assert Counter(counts[f"c{i}"] for i in range(50)) == {0: 25, 1: 25}
    assert load(train_weights=[2.5, 0.5], **options).pairs["train"]["sentence1"] == pairs["sentence1"]
    assert load(train_weights=[2.5, 0.5], seed=1, **options).pairs["train"]["sentence1"] != pairs["sentence1"]


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, float("nan")]])
def test_impossible_weights_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="`train_weights` must be one number greater than 0 for each of the 2 train"):
        DataArguments(train_file=["a.csv", "b.csv"], train_weights=weights)


def test_a_held_out_pair_is_in_no_copy_of_the_training_pairs(train_file: str, sick_file: str) -> None:
    pairs = load(train_file=[train_file, sick_file], train_weights=[3, 1], label_values=range(6)).pairs
    assert len(pairs["validation"]) == 22
    assert {*Counter(pairs["train"]["sentence1"]).values()} == {1, 3}
    assert not set(pairs["train"]["sentence1"]) & set(pairs["validation"]["sentence1"])


def test_development_files_are_put_together(train_file: str, sick_file: str) -> None:
    splits = load(train_file=train_file, validation_file=[train_file, sick_file], label_values=range(6))
    assert len(splits.pairs["validation"]) == 110
    assert splits.sources["validation"] == f"{train_file} + {sick_file}"


def test_test_pairs_are_left_out_of_training_and_on_request_of_development(train_file: str, tmp_path: Path) -> None:
    test_file = write_pairs(tmp_path / "test.csv", [("B3", "a3!", 1), ("x", "y", 2), ("a4", "b4", 3)])
    options: dict[str, Any] = {"train_file": train_file, "validation_file": train_file, "test_file": test_file}
    splits = load(**options)
    assert {name: len(pairs) for name, pairs in splits.pairs.items()} == {"train": 58, "validation": 60, "test": 3}
    assert (splits.leaks["train"][train_file].removed, splits.leaks["validation"][train_file].removed) == (2, 0)
    assert splits.leaks["validation"][train_file].by_test_set == {test_file: 2}
    assert len(load(leak_filter="exact", dev_leak_filter="normalized", **options).pairs["train"]) == 59
    assert len(load(leak_filter="none", dev_leak_filter="normalized", **options).pairs["validation"]) == 58


def test_pairs_of_the_sts_tasks_are_test_pairs(train_file: str) -> None:
    task = STSTask("STS12", Dataset.from_dict({"sentence1": ["a1"], "sentence2": ["b1"]}), [])
    splits = load_splits(DataArguments(train_file=[train_file]), PairColumns(), None, sts_tasks=[task])
    assert splits.leaks["train"][train_file].by_test_set == {"STS12": 1}
    assert "a1" not in {*splits.pairs["train"]["sentence1"], *splits.pairs["validation"]["sentence1"]}


def test_training_on_test_pairs_alone_is_refused(train_file: str) -> None:
    with pytest.raises(ValueError, match=r"every pair is a test pair\. Give other pairs, or another `--leak_filter`"):
        load(train_file=train_file, test_file=train_file)


def test_files_are_looked_for_in_the_folder_of_the_sts_data(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    write_pairs(tmp_path / "own" / "dev.csv", [("a", "b", 0), ("c", "d", 1)])
    splits = load(do_train=False, validation_file="own/dev.csv", sts_data=str(tmp_path))
    assert len(splits.pairs["validation"]) == 2


def test_nothing_is_read_where_only_the_sts_tasks_are_scored(tmp_path: Path) -> None:
    assert load(do_train=False, sts_data=str(tmp_path)).pairs == {}
    assert set(load(do_train=True, sts_data=str(tmp_path)).pairs) == {"train", "validation", "test"}


def test_hub_sets_and_files_are_mixed(train_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "check_there", lambda *args, **options: None)
    monkeypatch.setattr(sources, "get_dataset_split_names", lambda name, config_name: ["train", "test"])
    rows = {"sentence1": ["x", "y"], "sentence2": ["z", "w"], "score": [0.0, 0.6]}
    monkeypatch.setattr(sources, "load_dataset", lambda name, config_name, split: Dataset.from_dict(rows))
    splits = load(
        dataset_name="sentence-transformers/stsb",
        train_file=train_file,
        train_weights=[2, 1],
        validation_file=train_file,
        leak_filter="none",
        label_values=[0, 1, 2, 3, 4, 5],
    )
    assert splits.pairs["train"]["label"][:4] == [0, 3, 0, 3]
    assert splits.sources["train"] == f"sentence-transformers/stsb (train) + {train_file}"
    assert splits.pairs["test"]["label"] == [0, 3]


@pytest.mark.parametrize("splits_there", [["train", "validation"], ["train"]])
def test_development_pairs_of_another_hub_set(
    splits_there: list[str], train_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "check_there", lambda *args, **options: None)
    monkeypatch.setattr(sources, "get_dataset_split_names", lambda name, config_name: splits_there)
    rows = {"sentence1": ["x", "y"], "sentence2": ["z", "w"], "score": [0.0, 0.6]}
    monkeypatch.setattr(sources, "load_dataset", lambda name, config_name, split: Dataset.from_dict(rows))
    options: dict[str, Any] = {"train_file": train_file, "validation_dataset_name": "sentence-transformers/stsb"}
    if "validation" in splits_there:
        splits = load(**options, label_values=[0, 1, 2, 3, 4, 5])
        assert (splits.pairs["validation"]["label"][:], len(splits.pairs["train"])) == ([0, 3], 60)
    else:
        with pytest.raises(ValueError, match=r"`validation_dataset_name`: .*has no development split"):
            load(**options)


def test_folds_take_the_place_of_the_development_pairs_of_a_hub_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "check_there", lambda *args, **options: None)
    monkeypatch.setattr(sources, "get_dataset_split_names", lambda name, config_name: ["train", "validation"])
    rows = {
        "sentence1": [f"the cat {i}" for i in range(60)],
        "sentence2": [f"a dog {i}" for i in range(60)],
        "score": [i % 6 / 5 for i in range(60)],
    }
    monkeypatch.setattr(sources, "load_dataset", lambda name, config_name, split: Dataset.from_dict(rows))
    data_args = DataArguments(dataset_name=["sentence-transformers/stsb"], folds=3)
    splits = load_splits(data_args, PairColumns(), None, fold=1)
    assert {split: len(pairs) for split, pairs in splits.pairs.items()} == {"train": 40, "validation": 20}


def test_fractions_of_training_labels_can_be_cut_off(tmp_path: Path) -> None:
    file = write_pairs(
        tmp_path / "a.csv", [(f"a{i}", f"b{i}", label) for i, label in enumerate((0.2, 3.8, 4, 2.5, 5))]
    )
    splits = load(train_file=file, validation_file=file, truncate_labels=True, leak_filter="none")
    assert splits.pairs["train"]["label"][:] == [0, 3, 4, 2, 5]
    assert splits.pairs["validation"]["label"][:] == [0.2, 3.8, 4, 2.5, 5]


def test_grades_of_uneven_nodes_keep_their_values_and_others_are_mapped_onto_them(tmp_path: Path) -> None:
    own = write_pairs(tmp_path / "own.csv", [(f"a{i}", f"b{i}", (0, 1, 1.2)[i % 3]) for i in range(60)])
    names = ["contradiction", "neutral", "entailment"]
    nli = write_pairs(tmp_path / "nli.csv", [(f"c{i}", f"d{i}", names[i % 3]) for i in range(60)])
    splits = load(train_file=[own, nli], label_values=[0, 1, 1.2])
    assert [set(part.pairs["label"]) for part in splits.sets["train"]] == [{0, 1, 1.2}] * 2
    same_ends = load(train_file=nli, label_values=[0, 1.9, 2])
    assert set(same_ends.pairs["train"]["label"]) == {0, 1.9, 2}


def test_names_of_grades_differ_in_more_than_case(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "pairs.csv", [(f"a{i}", f"b{i}", ["low", "Low", "high"][i % 3]) for i in range(30)])
    with pytest.raises(ValueError, match="differ only in case, which does not distinguish labels"):
        load(train_file=path, grade_names=["low", "Low", "high"])
    assert load(train_file=path, grade_names=["low", "high"]).scale is not None


def test_of_very_many_pairs_a_training_reads_those_that_its_steps_use(
    train_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("sentence1,sentence2,label\n" + "".join(f"c{i},d{i},{i % 6}\n" for i in range(60)))
    options = DataArguments(train_file=[train_file, str(other)], validation_file=[train_file], leak_filter="none")

    def read(num_used: int | None, seed: int = 42) -> Splits:
        return load_splits(options, PairColumns(), None, seed=seed, num_used=num_used)

    whole = read(None)
    assert len(read(30).pairs["train"]) == 120  # few enough to tokenise them all
    monkeypatch.setattr(splits_module, "MAPPED_FROM", 100)
    used = read(30)
    texts = used.pairs["train"]["sentence1"]
    assert len(set(texts)) == 30
    assert texts == [text for text in whole.pairs["train"]["sentence1"] if text in set(texts)]
    assert used.set_of_pair["train"].tolist() == [int(text.startswith("c")) for text in texts]
    assert used.pairs["validation"][:] == whole.pairs["validation"][:]
    assert read(30).pairs["train"]["sentence1"] == texts
    assert read(30, seed=43).pairs["train"]["sentence1"] != texts
    assert len(read(120).pairs["train"]) == 120
