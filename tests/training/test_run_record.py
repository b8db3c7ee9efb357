"""The files of a run: the record, the printed table, the pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset, concatenate_datasets
from PIL import Image

from sts_regression.basics.tables import percent, results_on_screen
from sts_regression.data.labels import SICK_SCALE
from sts_regression.data.pairs import PairSet
from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.plots import plot_loss_curve, plot_scores
from sts_regression.options.data_arguments import DataArguments
from sts_regression.options.model_arguments import ModelArguments
from sts_regression.training import run_record
from sts_regression.training.run_record import (
    describe_arguments,
    describe_command,
    describe_environment,
    describe_pairs,
    peak_memory_bytes,
    write_run_record,
)
from sts_regression.training.training_arguments import STSTrainingArguments

SCORES = PairScores(head=np.array([0.26, 1.9], dtype=np.float32), cosine=np.array([0.25, 0.75], dtype=np.float32))


def test_fingerprints_tell_order_and_labels_apart() -> None:
    columns: dict[str, list[Any]] = {"sentence1": ["a", "b"], "sentence2": ["c", "d"], "label": [1.0, 2.0]}
    swapped = {name: values[::-1] for name, values in columns.items()}
    relabelled = {**columns, "label": [1.0, 3.0]}
    part = PairSet("x.csv", Dataset.from_dict(columns), SICK_SCALE, num_unlabelled=3)
    described = [describe_pairs(Dataset.from_dict(c), [part]) for c in (columns, dict(columns), swapped, relabelled)]
    assert described[0] == described[1]
    assert len({description["sha256"] for description in described}) == 3
    assert (described[0]["source"], described[0]["pairs"]) == ("x.csv", 2)
    assert described[0]["parts"] == [{"source": "x.csv", "label_scale": [1, 2, 3, 4, 5], "pairs": 2, "unlabelled": 3}]


def test_pairs_of_a_set_that_are_not_used_are_not_counted() -> None:
    pairs = Dataset.from_dict({"sentence1": ["a", "b", "c"], "sentence2": ["x", "y", "z"], "label": [0.0, 1.0, 2.0]})
    parts = [PairSet("x.csv", pairs), PairSet("y.csv", pairs)]
    used = concatenate_datasets([pairs.select([0]), pairs, pairs])  # the second set is used twice
    described = describe_pairs(used, parts, np.array([0, 1, 1, 1, 1, 1, 1]))
    assert [part["pairs"] for part in described["parts"]] == [1, 6]


def test_only_options_that_differ_from_their_defaults_are_recorded() -> None:
    described = describe_arguments(
        ModelArguments(loss="mse"), DataArguments(train_file=["a.csv"], label_values=[0, 1])
    )
    assert described == {"loss": "mse", "train_file": ["a.csv"], "label_values": [0, 1]}


def test_the_token_is_not_recorded_and_the_count_of_tokens_is(tmp_path: Path) -> None:
    training_args = STSTrainingArguments(str(tmp_path), hub_token="hf_secret", include_num_input_tokens_seen="all")
    described = describe_arguments(training_args)
    assert (described["include_num_input_tokens_seen"], "hub_token" in described) == ("all", False)


@pytest.mark.parametrize("option", ["--hub_token", "--hub-token"])
def test_the_token_is_left_out_of_the_command(option: str) -> None:
    words = ["--loss", "mse", option, "hf_secret", f"{option}=hf_secret", "--seed=1"]
    assert describe_command(words) == ["--loss", "mse", option, "…", f"{option}=…", "--seed=1"]


def test_the_environment_names_versions_and_commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert set(run_record.PACKAGES) < set(describe_environment())
    monkeypatch.setattr(run_record, "__file__", str(tmp_path / "package" / "run_record.py"))
    assert describe_environment()["commit"] is None
    assert peak_memory_bytes()["process"] > 2**20


def test_a_record_holds_no_nan(tmp_path: Path) -> None:
    write_run_record({"naïve": 1.0}, tmp_path / "new")
    with pytest.raises(ValueError, match="Out of range float values"):
        write_run_record({"naïve": float("nan")}, tmp_path / "new")
    assert (tmp_path / "new" / "run.json").read_text(encoding="utf-8") == '{\n  "naïve": 1.0\n}\n'


def test_correlations_are_shown_in_percent() -> None:
    assert [percent(0.8138), percent(0.8138, 0.0017), percent(None)] == ["81.38", "81.38 ± 0.17", "–"]


def test_the_table_shows_percent_and_dashes() -> None:
    before = {name: {"spearman_cosine": 0.5} for name in ("validation", "test")}
    after = {name: {"spearman_cosine": 0.8765, "spearman_head": 0.9} for name in ("validation", "test")}
    assert results_on_screen({"before training": before, "after training": after}).splitlines()[1:] == [
        "                      development              test",
        "                  cosine     head   cosine     head",
        "before training    50.00        –    50.00        –",
        "after training     87.65    90.00    87.65    90.00",
    ]


def test_pictures_show_their_data(tmp_path: Path) -> None:
    history = [
        *({"step": n, "loss": 2.0} for n in (1, 2)),
        *({"step": n, "eval_loss": 1.0, "eval_spearman_cosine": 0.5} for n in (3, 4)),
    ]
    plot_loss_curve(history, tmp_path / "loss.png")
    plot_loss_curve(history[:2], tmp_path / "other_loss.png")
    plot_loss_curve(history[:3], tmp_path / "evaluated_once.png")
    for few in ([], history[:1], history[1:3]):
        plot_loss_curve(few, tmp_path / "empty.png")
    assert not (tmp_path / "empty.png").exists()
    plot_scores(SCORES, [0.0, 2.0], tmp_path / "scores.png", "test", label_step=1.0)
    plot_scores(PairScores(SCORES.head, None), [0.0, 2.0], tmp_path / "head.png", "test", label_step=1.0)
    plot_scores(PairScores(None, SCORES.cosine), [0.0, 2.0], tmp_path / "cosine.png", "test", label_step=1.0)
    pictures = {path.stem: Image.open(path) for path in tmp_path.glob("*.png")}
    assert pictures["loss"].tobytes() != pictures["other_loss"].tobytes() == pictures["evaluated_once"].tobytes()
    assert pictures["scores"].width == 2 * pictures["head"].width == 2 * pictures["cosine"].width
    assert pictures["head"].tobytes() != pictures["cosine"].tobytes()
