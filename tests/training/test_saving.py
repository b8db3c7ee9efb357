"""Files and checkpoints that are whole or not there, errors of a full disk, and one process per folder."""

import errno
import os
import re
import shutil
from pathlib import Path

import pytest
from transformers import TrainerControl, TrainerState, TrainingArguments

from sts_regression.basics.files import naming, replacing
from sts_regression.training.checkpoints import (
    FindBestCheckpoint,
    checkpoints,
    delete_checkpoint,
    delete_old_checkpoints,
    explaining,
    is_whole,
    writing_checkpoint,
)


def write_checkpoint(output_dir: Path, step: int, seconds: float | None = None) -> Path:
    folder = output_dir / f"checkpoint-{step}"
    with writing_checkpoint(folder):
        for name in ("model.safetensors", "trainer_state.json"):
            (folder / name).write_text(name)
    if seconds is not None:
        os.utime(folder, (seconds, seconds))
    return folder


def die_after(done: object) -> None:
    raise KeyboardInterrupt("by hand")


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt, match="by hand"), replacing(path) as file:
        die_after(file.write(b"half"))
    assert path.read_text() == "old"
    with replacing(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_a_checkpoint_is_whole_when_it_was_written_to_its_end(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, 5)
    assert is_whole(folder)
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "trainer_state.json", "seal.json"}
    with pytest.raises(KeyboardInterrupt, match="by hand"), writing_checkpoint(folder):  # again, as after a resumption
        die_after((folder / "model.safetensors").write_text("other"))
    assert not is_whole(folder)


def test_half_a_deleted_checkpoint_is_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_checkpoint(tmp_path, 5)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", die_after)
        with pytest.raises(KeyboardInterrupt, match="by hand"):
            delete_checkpoint(folder)
    assert (folder / "model.safetensors").exists()
    assert not is_whole(folder)


@pytest.mark.parametrize(
    ("kept", "limit", "left"),
    [([40], 1, [40]), ([10, 40], 1, [10, 40]), ([40], 3, [20, 30, 40]), ([10, 40], 3, [10, 30, 40])],
)
def test_the_oldest_checkpoints_go_but_for_those_that_are_kept(
    tmp_path: Path, kept: list[int], limit: int, left: list[int]
) -> None:
    folders = {step: write_checkpoint(tmp_path, step, seconds=step) for step in (10, 20, 30, 40)}
    (tmp_path / "checkpoint-notes").mkdir()
    delete_old_checkpoints(tmp_path, [folders[step] for step in kept], None)
    assert checkpoints(tmp_path) == list(folders.values())
    delete_old_checkpoints(tmp_path, [folders[step] for step in kept], limit)
    assert checkpoints(tmp_path) == [folders[step] for step in left]
    assert (tmp_path / "checkpoint-notes").is_dir()


def test_the_best_checkpoint_is_found_where_the_run_lies_now(tmp_path: Path) -> None:
    best = write_checkpoint(tmp_path, 10)
    state = TrainerState(best_global_step=10, best_model_checkpoint="elsewhere/checkpoint-10")
    FindBestCheckpoint().on_train_begin(TrainingArguments(output_dir=str(tmp_path)), state, TrainerControl())
    assert state.best_model_checkpoint == str(best)
    state = TrainerState(best_global_step=20, best_model_checkpoint="elsewhere/checkpoint-20")
    FindBestCheckpoint().on_train_begin(TrainingArguments(output_dir=str(tmp_path)), state, TrainerControl())
    assert state.best_model_checkpoint == "elsewhere/checkpoint-20"


def test_errors_name_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=re.escape("No space left on device: 'run.json'")), naming(Path("run.json")):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(ValueError, match=r"model cannot be written: file write failed\. Earlier.*`--resume_from"):
        with explaining(Path("model")):
            raise RuntimeError("file write failed\nat some line of C++")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file/run"), replacing(tmp_path / "file" / "run.json"):
        pass
