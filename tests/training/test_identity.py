"""A run is continued, or taken for finished, with the same pairs and model, even under other names."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from sts_regression.run_sts import run_stages
from sts_regression.training.run_folder import begin_run, note_segment, recorded_segments
from sts_regression.training.run_record import describe_environment
from sts_regression.training.trainer import STSTrainer
from sts_regression.training.training_arguments import STSTrainingArguments

Run = Callable[..., dict[str, Any]]
Reliability = Callable[[str, int, int, int], None]
RESUME = "--resume_from_checkpoint=true"


def write_labels(path: Path, labels: list[int]) -> None:
    rows = [(f"the cat number {i % 7}", f"a dog number {(i * i) % 5}", label) for i, label in enumerate(labels)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *rows])


@pytest.fixture
def run(tiny_encoder_path: Path, tmp_path: Path) -> Run:
    """`run(*options)` trains two epochs of three steps on `pairs.csv` with `encoder`, and returns the record."""
    shutil.copytree(tiny_encoder_path, tmp_path / "encoder")
    for split in ("pairs", "dev"):
        write_labels(tmp_path / f"{split}.csv", [i % 6 for i in range(24)])
    options = [f"--train_file={tmp_path / 'pairs.csv'}", f"--validation_file={tmp_path / 'dev.csv'}"]
    options += [f"--model_name_or_path={tmp_path / 'encoder'}", f"--output_dir={tmp_path / 'run'}"]
    options += ["--report_to=none", "--disable_tqdm=true", "--num_train_epochs=2", "--per_device_train_batch_size=8"]
    options += ["--label_values", *"012345", "--save_strategy=epoch", "--leak_filter=none"]

    def start(*more: str) -> dict[str, Any]:
        run_stages([*options, *more])
        return json.loads((tmp_path / "run" / "run.json").read_text())

    return start


def stop_in_second_epoch(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    training_step = STSTrainer.training_step

    def dying(trainer: STSTrainer, *args: Any, **kwargs: Any) -> torch.Tensor:
        if trainer.state.global_step == 4:
            raise KeyboardInterrupt("by hand")
        return training_step(trainer, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(STSTrainer, "training_step", dying)
        with pytest.raises(KeyboardInterrupt, match="by hand"):
            run()


def reverse_labels(folder: Path) -> None:
    write_labels(folder / "pairs.csv", [5 - i % 6 for i in range(24)])


def replace_development_pairs(folder: Path) -> None:
    write_labels(folder / "dev.csv", [i % 5 for i in range(24)])


def replace_encoder(folder: Path) -> None:
    path = folder / "encoder" / "model.safetensors"
    weights = load_file(path)
    name = min(weights)
    save_file({**weights, name: weights[name] + 1e-3}, path, metadata={"format": "pt"})


CHANGES = [
    (reverse_labels, "training pairs"),
    (replace_development_pairs, "development pairs"),
    (replace_encoder, "weights of the model that it starts from"),
]


@pytest.mark.parametrize(("change", "title"), CHANGES)
@pytest.mark.parametrize("is_finished", [False, True])
def test_other_inputs_of_the_same_name_are_refused(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], None],
    title: str,
    is_finished: bool,
    reliability: Reliability,
) -> None:
    if is_finished:
        run()
    else:
        stop_in_second_epoch(run, monkeypatch)
    before = (tmp_path / "run" / "options.json").read_bytes()
    change(tmp_path)
    with pytest.raises(ValueError, match=rf"holds a run that began with other {title}\. Give the same ones, choose"):
        run(RESUME)
    assert (tmp_path / "run" / "options.json").read_bytes() == before
    named = [f"--resume_from_checkpoint={tmp_path / 'run' / 'checkpoint-3'}", f"--output_dir={tmp_path / 'other'}"]
    with pytest.raises(ValueError, match=f"began with other {title}"):
        run(*named)
    reliability("pairs or models changed before a killed run resumes", 2, 0, 2)


def test_every_command_that_trained_is_recorded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_in_second_epoch(run, monkeypatch)
    record = run(RESUME)
    segments = record["training"]["segments"]
    assert [segment["from_step"] for segment in segments] == [0, 3]
    assert segments[1] == {"from_step": 3, **record["environment"]}
    assert run(RESUME) == record  # finished already
    assert [segment["from_step"] for segment in run("--overwrite_output_dir")["training"]["segments"]] == [0]


def test_a_checkpoint_may_have_any_name(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stop_in_second_epoch(run, monkeypatch)
    (tmp_path / "run" / "checkpoint-3").rename(tmp_path / "run" / "best")
    record = run(f"--resume_from_checkpoint={tmp_path / 'run' / 'best'}")
    assert [segment["from_step"] for segment in record["training"]["segments"]] == [0, 3]


def test_what_may_change_the_last_bits_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = STSTrainingArguments(output_dir=str(tmp_path), do_train=True, resume_from_checkpoint="true")
    begin_run(args, {}, {})
    note_segment(tmp_path, None, {"torch": "2.12.0", "threads": 2, "commit": "a"})
    begin_run(args, {}, {})
    with caplog.at_level("INFO"):
        note_segment(tmp_path, None, {"torch": "2.13.0", "threads": 2, "commit": "b"})
    assert caplog.messages == ["resumed in another environment: torch 2.12.0, now 2.13.0"]
    assert [segment["torch"] for segment in recorded_segments(tmp_path)] == ["2.12.0", "2.13.0"]


def test_a_run_of_an_earlier_version_is_continued(run: Run, tmp_path: Path) -> None:
    record = run()
    noted = json.loads((tmp_path / "run" / "options.json").read_text())
    (tmp_path / "run" / "options.json").write_text(json.dumps(noted["options"]))
    reverse_labels(tmp_path)
    assert run(RESUME) == record


def test_the_code_is_part_of_the_environment() -> None:
    assert len(describe_environment()["code"]) == 64
