"""Checkpoints that are cut, changed or incomplete are found before they decide anything, whichever file it is."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from sts_regression.basics.seals import SEAL_FILE, SWITCH, broken_file
from sts_regression.grader import PairGrader
from sts_regression.run_sts import main, run_stages
from sts_regression.training.checkpoints import checkpoints
from sts_regression.training.run_folder import checkpoint_to_resume
from sts_regression.training.training_arguments import STSTrainingArguments

RESUME = "--resume_from_checkpoint=true"
Damage = Callable[[Path], None]
Reliability = Callable[[str, int, int, int], None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trained")


@pytest.fixture(scope="module")
def options(options_of_three_steps: Callable[[Path], list[str]], folder: Path) -> list[str]:
    return [*options_of_three_steps(folder), "--num_train_epochs=2", "--save_total_limit=2"]


@pytest.fixture(scope="module")
def trained(options: list[str], folder: Path) -> Path:
    """A finished run with two checkpoints, which tests must leave as it is."""
    run_stages([*options, f"--output_dir={folder / 'run'}"])
    return folder / "run"


def cut(length: float) -> Damage:
    """Leaves a share of a file, or all but so many bytes."""

    def damage(path: Path) -> None:
        size = path.stat().st_size
        os.truncate(path, int(length * size) if length >= 0 else size + int(length))

    return damage


def flip(place: float, bit: int) -> Damage:
    """Flips a bit of the byte at a place, a share of the file."""

    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[round(place * (len(content) - 1))] ^= 1 << bit
        path.write_bytes(content)

    return damage


DAMAGES = {
    "empty": cut(0),
    "cut in the middle": cut(0.5),
    "without its last byte": cut(-1),
    **{f"bit {bit} at {place}": flip(place, bit) for place in (0, 0.5, 1) for bit in (0, 3, 7)},
    "deleted": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_whatever_is_damaged_the_checkpoint_before_it_is_taken(
    trained: Path, tmp_path: Path, damage: Damage, reliability: Reliability
) -> None:
    folder = shutil.copytree(trained, tmp_path / "run")
    before, last = checkpoints(folder)
    files = {path.relative_to(last).as_posix() for path in last.rglob("*") if path.is_file()}
    assert {"model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", SEAL_FILE} < files
    args = STSTrainingArguments(output_dir=str(folder), do_train=True, resume_from_checkpoint="true")
    assert checkpoint_to_resume(args) == str(last)
    for name in files - {SEAL_FILE}:
        whole = (last / name).read_bytes()
        damage(last / name)
        assert broken_file(last) == name
        assert checkpoint_to_resume(args) == str(before)
        (last / name).write_bytes(whole)
    assert checkpoint_to_resume(args) == str(last)
    kind, tried = "files of a checkpoint truncated, changed or deleted: the checkpoint before is used", len(files) - 1
    reliability(kind, tried, 0, tried)


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"files": {"config.json": 3}}', '{"files": {"none": {}}}'])
def test_a_damaged_seal_is_no_seal(trained: Path, tmp_path: Path, text: str) -> None:
    folder = shutil.copytree(trained / "checkpoint-3", tmp_path / "checkpoint-3")
    (folder / SEAL_FILE).write_text(text)
    assert broken_file(folder) == SEAL_FILE


def test_a_training_goes_on_from_the_whole_checkpoint_to_the_same_weights(
    trained: Path, options: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = shutil.copytree(trained, tmp_path / "run")
    for name in ("run.json", "README.md", "model.safetensors"):
        (folder / name).unlink()
    flip(0.5, 3)(folder / "checkpoint-6" / "optimizer.pt")
    with caplog.at_level("INFO"):
        run_stages([*options, f"--output_dir={folder}", RESUME])
    message = f"{folder / 'checkpoint-6' / 'optimizer.pt'} is damaged or missing: using the previous checkpoint"
    assert message in caplog.messages
    weights, expected = (load_file(run / "model.safetensors") for run in (folder, trained))
    assert all(torch.equal(weights[name], value) for name, value in expected.items())
    assert broken_file(folder / "checkpoint-6") is None
    named = [f"--resume_from_checkpoint={folder / 'checkpoint-3'}", f"--output_dir={tmp_path / 'other'}"]
    cut(0.5)(folder / "checkpoint-3" / "scheduler.pt")
    with pytest.raises(ValueError, match=r"checkpoint-3/scheduler\.pt is damaged or missing\. Name an earlier"):
        run_stages([*options, *named])


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_model_that_is_not_as_it_was_saved_is_refused(
    trained: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(trained, tmp_path / "run")
    pairs = ["--do_eval", f"--test_file={trained.parent / 'pairs.csv'}", f"--output_dir={tmp_path / 'scored'}"]
    monkeypatch.setenv("STS_REGRESSION_TRACEBACK", "")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content.replace(b"\x01", b"\x02") if name.startswith("model") else content + b"\n")
    with pytest.raises(SystemExit, match="differs from the saved file") as ended:
        main([f"--model_name_or_path={folder}", *pairs])
    [line] = str(ended.value.code).splitlines()
    assert re.fullmatch(
        rf"run_sts\.py: error: .*{name} differs from the saved file: .*delete seal\.json.*intended\.", line
    )
    (folder / SEAL_FILE).unlink()
    main([f"--model_name_or_path={folder}", *pairs])


def test_digests_can_be_switched_off(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(trained, tmp_path / "run")
    flip(1, 0)(folder / "model.safetensors")
    assert broken_file(folder) == "model.safetensors"
    monkeypatch.setenv(SWITCH, "0")
    assert broken_file(folder) is None
    cut(-1)(folder / "model.safetensors")
    assert broken_file(folder) == "model.safetensors"


def test_a_model_that_is_saved_again_is_sealed_again(trained: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(trained, tmp_path / "run")
    grader = PairGrader(folder)
    with torch.no_grad():
        next(grader.model.parameters()).add_(1)
    grader.save(folder)
    torch.testing.assert_close(next(PairGrader(folder).model.parameters()), next(grader.model.parameters()))
