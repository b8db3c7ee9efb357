"""A signal ends a command in one line; a training with a checkpoint, from which it goes on to the same weights."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from sts_regression import run_sts
from sts_regression.basics import stopping
from sts_regression.training.checkpoints import checkpoints, is_whole
from sts_regression.training.trainer import STSTrainer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")

ROOT = Path(__file__).resolve().parent.parent.parent
NUM_STEPS = 9
Options = Callable[..., list[str]]
Reliability = Callable[[str, int, int, int], None]


def signal_in_step(monkeypatch: pytest.MonkeyPatch, number: int, step: int) -> None:
    """Sends this process a signal while it computes a step."""
    training_step = STSTrainer.training_step

    def interrupted(trainer: STSTrainer, *args: Any, **kwargs: Any) -> torch.Tensor:
        if trainer.state.global_step + 1 == step:
            os.kill(os.getpid(), number)
        return training_step(trainer, *args, **kwargs)

    monkeypatch.setattr(STSTrainer, "training_step", interrupted)


@pytest.mark.parametrize(
    ("number", "step", "more", "last"),
    [
        (signal.SIGTERM, 4, [], 4),
        pytest.param(signal.SIGINT, 4, [], 4, marks=pytest.mark.slow),
        pytest.param(signal.SIGUSR1, 4, [], 4, marks=pytest.mark.slow),
        # The end of an epoch, whose evaluation and checkpoint come first.
        (signal.SIGTERM, 6, ["--save_strategy=epoch", "--eval_strategy=epoch"], 6),
        # The end of an epoch at which nothing is due.
        (signal.SIGTERM, 6, ["--save_strategy=no", "--eval_strategy=no", "--load_best_model_at_end=false"], 6),
        # An evaluation is due, and no checkpoint: the training stops a step later.
        (signal.SIGTERM, 4, ["--eval_strategy=steps", "--eval_steps=2", "--load_best_model_at_end=false"], 5),
    ],
)
def test_a_training_stops_with_a_checkpoint_and_goes_on_to_the_same_weights(
    listening: None,
    resumable: Options,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
    step: int,
    more: list[str],
    last: int,
    reliability: Reliability,
) -> None:
    run_sts.main(resumable(tmp_path / "whole", *more))
    with monkeypatch.context() as patch:
        signal_in_step(patch, number, step)
        with pytest.raises(SystemExit, match=str(128 + number)) as ended:
            run_sts.main(resumable(folder := tmp_path / "stopped", *more))
    assert ended.value.code == 128 + number
    said = capsys.readouterr().err
    assert f"stopped by {number.name} after step {last} of {NUM_STEPS}.{stopping.AGAIN}" in said.splitlines()
    assert checkpoints(folder)[-1] == folder / f"checkpoint-{last}"
    assert all(map(is_whole, checkpoints(folder)))
    assert not (folder / "run.json").exists()
    monkeypatch.setattr(stopping, "_requests", stopping._Requests())
    run_sts.main(resumable(folder, *more))
    record = json.loads((folder / "run.json").read_text())
    assert (record["training"]["steps"], record["training"]["continued_from_step"]) == (NUM_STEPS, last)
    weights, expected = (load_file(run / "model.safetensors") for run in (folder, tmp_path / "whole"))
    assert all(torch.equal(weights[name], value) for name, value in expected.items())
    reliability("signals: the run stops with a checkpoint and resumes to the same weights", 1, 1, 0)


def test_a_second_ctrl_c_ends_at_once_and_a_second_signal_of_a_launcher_does_not(
    listening: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train() -> None:
        with stopping.deferring():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)  # of the same Ctrl-C, which a launcher hands on
            assert stopping.is_requested()
            monkeypatch.setattr(stopping, "SECONDS_OF_ONE_SIGNAL", 0)
            os.kill(os.getpid(), signal.SIGINT)
            pytest.fail("it goes on")

    with pytest.raises(SystemExit, match=str(128 + signal.SIGINT)) as ended:
        train()
    assert ended.value.code == 128 + signal.SIGINT
    first, last = filter(None, capsys.readouterr().err.splitlines())
    assert first == "SIGINT: writing a checkpoint after this step. Press Ctrl-C again to stop at once."
    assert last == "stopped by SIGINT."


def test_a_signal_after_the_last_step_ends_the_process_when_training_is_over(listening: None) -> None:
    steps = []

    def train() -> None:
        with stopping.deferring():
            os.kill(os.getpid(), signal.SIGTERM)
            steps.append("the last")

    with pytest.raises(SystemExit, match=str(128 + signal.SIGTERM)):
        train()
    assert steps == ["the last"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_loading_ends_in_one_line(number: signal.Signals) -> None:
    code = "import os, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from sts_regression.command.command_help import prepare_process\nprepare_process()\n"
    code += f"os.kill(os.getpid(), {int(number)})\nprint('goes on')"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (128 + number, "")
    assert ended.stderr.split("\n") == ["", f"stopped by {number.name}.", ""]


def test_an_ignored_signal_stays_ignored() -> None:
    code = "import os, signal\nfrom sts_regression.basics.stopping import listen\n"
    code += (
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\nlisten()\nos.kill(os.getpid(), signal.SIGINT)\nprint('goes on')"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True).stdout == b"goes on\n"


def test_a_process_ends_when_its_launcher_is_killed(tmp_path: Path) -> None:
    child = "import os, time\nfrom sts_regression.basics.stopping import listen\n"
    child += "os.environ['ACCELERATE_USE_CPU'] = 'true'\nlisten()\n"  # as the launcher sets it
    child += "print('listens', flush=True)\ntime.sleep(60)"
    launcher = tmp_path / "accelerate"  # by this name it is known
    launcher.write_text(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])")
    with subprocess.Popen(
        [sys.executable, launcher], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "listens\n"
        process.kill()
        assert process.stderr.read().strip() == "stopped by SIGTERM."  # read until the child is gone
