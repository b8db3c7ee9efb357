"""A first training without held-out pairs gives verdict and grades; a second one on all pairs gives the model."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file

from sts_regression import conclusion
from sts_regression.command.arguments import parse_stages
from sts_regression.command.default_recipe import OWN_PAIRS_RECIPES
from sts_regression.data.columns import PairColumns
from sts_regression.data.splits import load_splits
from sts_regression.data.text_splits import groups_to_resample
from sts_regression.evaluation.verdict import Verdict
from sts_regression.grading.grading import fit_grading
from sts_regression.options.data_arguments import DataArguments
from sts_regression.training.run_folder import INNER_SCORES_FILE

WORDS = ["cat", "dog", "man", "park", "water", "house", "red", "big"]
ROWS = [(f"the {WORDS[i % 8]} {i}", f"a {WORDS[i * i % 8]} {i}", i % 3) for i in range(50)]
NUM_HELD_OUT = 10
LABELS = [0.0, 1.0, 2.0]
SEED = 42

Run = Callable[..., Path]


@pytest.fixture
def pairs_file(tmp_path: Path) -> str:
    return write_pairs(tmp_path / "pairs.csv", ROWS)


@pytest.fixture
def run(train_in: Callable[..., Run], pairs_file: str) -> Run:
    """`run(*options)` trains twice and returns the folder of the run."""
    return train_in(pairs_file, "--label_values", "0", "1", "2", "--keep_start_if_better=false", "--refit")


def write_pairs(path: Path, rows: list[tuple[str, str, int]]) -> str:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *rows])
    return str(path)


def record_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run.json").read_text())


def held_out(pairs_file: str) -> dict[str, list[Any]]:
    """The pairs that the first training does not have."""
    options = DataArguments(train_file=[pairs_file], label_values=LABELS, refit=True)
    whole = load_splits(options, PairColumns(), None, seed=SEED)
    first = load_splits(options, PairColumns(), None, seed=SEED, fold=1)
    assert whole.pairs["validation"][:] == first.pairs["validation"][:]
    texts = [set(splits["sentence1"]) for splits in (first.pairs["train"], first.pairs["validation"])]
    assert not set.intersection(*texts)
    assert set.union(*texts) == set(whole.pairs["train"]["sentence1"])
    return whole.pairs["validation"][:]


def test_the_model_is_the_mean_of_all_trainings(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[Path] = []
    monkeypatch.setattr(conclusion, "drop_weights", dropped.append)
    refit, folds = run(), run("--folds=2", output_dir=tmp_path / "folds")
    parts = {refit: [refit / "first"], folds: [folds / "fold-1", folds / "fold-2"]}
    assert dropped == [*parts[refit], *parts[folds]]
    alone = run("--folds=2", "--refit=false", output_dir=tmp_path / "alone")  # its last training has all pairs, too
    last = load_file(alone / "model.safetensors")
    for folder, others in parts.items():
        states = [last, *(load_file(other / "weights.safetensors") for other in others)]
        for name, value in load_file(folder / "model.safetensors").items():
            torch.testing.assert_close(value, sum(state[name] for state in states) / len(states))
        assert any((states[0][name] != states[1][name]).any() for name in last)


def test_a_run_that_ends_while_its_report_is_drawn_is_resumed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> str:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(conclusion, "present", fail)
        with pytest.raises(OSError, match="no space left"):
            run()
    folder = run("--resume_from_checkpoint=true")
    assert (folder / "README.md").is_file()
    assert not (folder / "first" / "weights.safetensors").exists()
    whole = load_file(run(output_dir=tmp_path / "whole") / "model.safetensors")
    for name, value in load_file(folder / "model.safetensors").items():
        assert value.equal(whole[name])


def test_verdict_and_grades_are_those_of_the_first_training(run: Run, pairs_file: str) -> None:
    folder = run()
    record, first = record_of(folder), record_of(folder / "first")
    assert [part["data"]["train"]["pairs"] for part in (first, record)] == [len(ROWS) - NUM_HELD_OUT, len(ROWS)]
    assert first["data"]["validation"]["sha256"] == record["data"]["validation"]["sha256"]
    ranks = ("spearman_cosine", "spearman_head")
    for state in ("before training", "after training"):
        of_first, of_run = (part["results"][state]["validation"] for part in (first, record))
        assert [of_run.get(name) for name in ranks] == [of_first.get(name) for name in ranks]
    assert record["verdict"]["after"] == record["results"]["after training"]["validation"]["spearman_head"]
    with np.load(folder / "first" / INNER_SCORES_FILE) as scores:
        pairs = held_out(pairs_file)
        groups = groups_to_resample(pairs["sentence1"], pairs["sentence2"])
        grading = fit_grading(scores["after_head"], pairs["label"], LABELS, groups=groups)
    assert record["grading"] == json.loads(json.dumps(grading.to_dict()))
    assert not any("eval_loss" in entry for entry in record["training"]["log_history"])
    assert record["stages"] == []


def test_what_is_left_and_said(run: Run, pairs_file: str, caplog: pytest.LogCaptureFixture) -> None:
    folder = run(f"--test_file={pairs_file}", "--leak_filter=none")
    left = {path.name for path in (folder / "first").iterdir()}
    assert left == {"options.json", "run.json", INNER_SCORES_FILE}
    assert set(record_of(folder / "first")["results"]["after training"]) == {"validation"}
    assert set(record_of(folder)["results"]["after training"]) == {"validation", "test"}
    card, page = ((folder / name).read_text() for name in ("README.md", "report.html"))
    said = "The development pairs were scored after a first round of training, which left them out."
    assert said in card.split("## Use")[0]
    assert said in page.split('id="scores"')[0]
    assert "first round, without the held-out pairs" in page
    said = caplog.text
    assert said.count("Spearman's correlation with the gold labels") == 1
    assert said.count("chosen with seed") == 1
    assert "Stage 1 of 2, without the held-out pairs" in said
    assert "Stage 2 of 2, on all pairs" in said


def test_an_encoder_that_loses_on_held_out_pairs_is_not_kept(
    run: Run, tiny_encoder_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Verdict, "is_lost", True)
    folder = run("--learning_rate=0.05", "--wise_ft_alpha=1", "--keep_start_if_better=true")
    assert "first round of training" not in (folder / "README.md").read_text()
    start, kept = load_file(tiny_encoder_path / "model.safetensors"), load_file(folder / "model.safetensors")
    assert all((kept[f"encoder.{name}"] == value).all() for name, value in start.items())
    before, after = (record_of(folder)["results"][f"{state} training"]["validation"] for state in ("before", "after"))
    assert after["spearman_cosine"] == pytest.approx(before["spearman_cosine"], abs=1e-6)


def test_a_killed_command_goes_on_after_the_first_training(
    run: Run, tmp_path: Path, killed_training: Callable[[Run, int], list[str]]
) -> None:
    whole = run(output_dir=tmp_path / "whole")
    trained = killed_training(run, 2)
    folder = run("--resume_from_checkpoint=true")
    assert trained == ["first", "run", "run"]
    expected, weights = (load_file(path / "model.safetensors") for path in (whole, folder))
    assert all((weights[name] == value).all() for name, value in expected.items())


@pytest.mark.parametrize(
    ("options", "folders"),
    [
        ([], ["first", "run"]),
        (["--refit=false"], ["run"]),
        (["--validation_file=b.csv"], ["run"]),
        (["--load_best_model_at_end=true"], ["run"]),
        (["--save_strategy=best", "--metric_for_best_model=spearman_cosine"], ["run"]),
        (["--lr_scheduler_type=reduce_lr_on_plateau", "--eval_strategy=epoch"], ["run"]),
        (["--model_soup=2"], ["member-1", "member-2", "run"]),
        (["--learning_curve"], ["quarter", "half", "run"]),
        (["--folds=2"], ["fold-1", "fold-2", "run"]),
        (["--dataset_name=owner/pairs"], ["run"]),
        (["--score_function=linear", "--load_best_model_at_end=false"], ["first", "run"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_when_pairs_are_trained_twice(options: list[str], folders: list[str]) -> None:
    stages = parse_stages(["--train_file=a.csv", "--output_dir=outputs/run", "--refit", *options])
    assert [stage.folder.name for stage in stages] == folders
    averaged = [name for name in folders if name.startswith(("first", "fold"))]
    assert [folder.name for folder in stages[-1].averaged] == averaged
    told_once = [False] + [True] * (len(folders) - 1)
    assert [stage.repeats_pairs for stage in stages] == [stage.repeats_training for stage in stages] == told_once


@pytest.mark.parametrize("number", OWN_PAIRS_RECIPES)
def test_own_pairs_are_trained_twice_unless_development_pairs_are_given(number: int) -> None:
    texts = [f"{number} {row}" for row in range(max(number, 1))]
    pairs = Dataset.from_dict({"sentence1": texts, "sentence2": texts, "label": [1.0] * len(texts)})
    assert len(parse_stages(["--do_train"], {"train": pairs})) == 2
    assert len(parse_stages(["--do_train"], {"train": pairs, "validation": pairs})) == 1


def test_a_checkpoint_to_resume_must_be_that_of_one_training() -> None:
    with pytest.raises(ValueError, match=r"`refit`: `resume_from_checkpoint` would give all runs one checkpoint"):
        parse_stages(["--train_file=a.csv", "--refit", "--resume_from_checkpoint=a"])
