"""The output of the command: words, one bar at a time, a line for each evaluation, and no library's noise."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import huggingface_hub.utils as hub
import pytest
from transformers import PreTrainedTokenizerBase, TrainerCallback
from transformers.trainer_callback import DefaultFlowCallback, PrinterCallback, ProgressCallback, TrainerState
from transformers.utils import is_in_notebook
from transformers.utils import logging as transformers_logging

from sts_regression import run_sts
from sts_regression.basics.quiet import draws_bars, quiet_libraries
from sts_regression.console import Console, evaluation_line
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.training.trainer import STSTrainer
from sts_regression.training.training_arguments import STSTrainingArguments

NOISE = (
    "Loading weights",
    "Writing model shards",
    "[transformers]",
    "eval_",
    "train_runtime",
    "examples/s",
    "Warning",
)


@pytest.fixture
def command(tiny_encoder_path: Path, tmp_path: Path) -> list[str]:
    options = ["--num_train_epochs=2", "--logging_steps=1", "--report_to=none", "--eval_strategy=epoch"]
    options += [f"--model_name_or_path={tiny_encoder_path}", f"--output_dir={tmp_path / 'run'}"]
    return [
        sys.executable,
        "run_sts.py",
        *options,
        "--max_train_samples=32",
        "--max_eval_samples=20",
        "--save_strategy=epoch",
    ]


def output_of(command: list[str]) -> str:
    finished = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    return finished.stdout


def test_a_run_speaks_in_words_and_draws_no_bars_into_a_file(command: list[str]) -> None:
    shown = output_of(command)
    assert [word for word in (*NOISE, "{", "it/s", "\r", "%|") if word in shown] == []
    steps = re.findall(r"(?m)^step (\d) of 4 · loss \d+\.\d{3} · development: Spearman -?\d{1,2}\.\d\d$", shown)
    assert steps == ["2", "4"]
    assert re.findall("(?m)^(?:Loading|Tokenising|Scoring|Training).*$", shown)[1:] == [
        "Tokenising 32 training, 20 development and 20 test pairs",
        "Scoring 20 development and 20 test pairs before training",
        "Training on 32 training pairs",
        "Scoring 20 development and 20 test pairs after training",
    ]
    assert shown.index("after training  ") < shown.index("Checkpoint: ")


def test_verbose_brings_the_rest_back(command: list[str]) -> None:
    shown = output_of([*command, "--verbose"])
    assert [word for word in ("Loading weights", "[transformers]", "eval_", "examples/s") if word not in shown] == []
    assert "development: Spearman" not in shown


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
@pytest.mark.parametrize("disable_tqdm", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_terminal_has_one_bar_at_a_time(command: list[str], disable_tqdm: bool) -> None:
    import fcntl
    import pty
    import struct
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen([*command, f"--disable_tqdm={disable_tqdm}"], stdout=follower, stderr=follower)
    os.close(follower)
    shown = b""
    while part := _read(leader):
        shown += part
    os.close(leader)
    assert process.wait() == 0
    text = shown.decode()
    assert set(re.findall(r"(\w+):\s+\d+%\|", text)) == (
        set() if disable_tqdm else {"training", "scoring", "Encoding"}
    )
    assert "\x1b[A" not in text  # how a bar is drawn below another
    assert [word for word in NOISE if word in text] == []
    assert len(re.findall(r"(?<=[\r\n])step \d of 4 · [^\r\n]*\r\n", text)) == 2  # on lines of their own


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # Linux says so when nobody writes any more
        return b""


def noise_settings() -> tuple[object, ...]:
    return (
        transformers_logging.get_verbosity(),
        transformers_logging.is_progress_bar_enabled(),
        hub.are_progress_bars_disabled(),
        datasets.are_progress_bars_disabled(),
    )


def test_a_notebook_has_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not draws_bars()
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr("sts_regression.basics.quiet.is_in_notebook", is_in_notebook.__wrapped__)  # without its cache
    monkeypatch.setattr("importlib.util.find_spec", lambda name: shell)
    assert draws_bars()
    assert not draws_bars(disable_tqdm=True)


def test_libraries_are_quiet_for_a_while_and_downloads_keep_their_bar() -> None:
    before = noise_settings()
    with quiet_libraries():
        assert noise_settings() == (transformers_logging.ERROR, False, False, True)
    assert noise_settings() == before == (transformers_logging.WARNING, True, False, False)


def test_training_in_python_leaves_libraries_as_they_are(
    tiny_encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    prepare_model = run_sts.prepare_model

    def look(*args: Any) -> Any:
        seen.append(noise_settings())
        return prepare_model(*args)

    monkeypatch.setattr(run_sts, "prepare_model", look)
    options = [f"--model_name_or_path={tiny_encoder_path}", f"--output_dir={tmp_path / 'run'}", "--max_steps=1"]
    run_sts.run_stages([*options, "--max_train_samples=32", "--max_eval_samples=20", "--report_to=none"])
    assert seen == [(transformers_logging.WARNING, True, False, False)]


class Own(TrainerCallback):
    """A user's."""


@pytest.mark.parametrize(("disable_tqdm", "printing"), [(False, ProgressCallback), (True, PrinterCallback)])
def test_only_the_command_replaces_how_transformers_prints(
    make_model: Callable[..., STSRegressionModel],
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    disable_tqdm: bool,
    printing: type[TrainerCallback],
) -> None:
    args = STSTrainingArguments(output_dir=str(tmp_path), report_to="none", use_cpu=True, disable_tqdm=disable_tqdm)
    trainer = STSTrainer(make_model(), args, processing_class=tokenizer, callbacks=[Own()])
    kinds = [type(callback) for callback in trainer.callback_handler.callbacks]
    assert {DefaultFlowCallback, Own, printing} < set(kinds)
    with quiet_libraries():
        Console().attach(trainer)
    left = [type(callback) for callback in trainer.callback_handler.callbacks]
    assert left == [kind for kind in kinds if kind is not printing] + [Console]


@pytest.mark.parametrize(
    ("losses", "metrics", "selecting", "line"),
    [
        (
            [0.2, 0.1],
            {"eval_spearman_cosine": 0.83214},
            "eval_spearman_cosine",
            "step 1,200 of 6,640 · loss 0.150 · development: Spearman 83.21",
        ),
        (
            [],
            {"eval_spearman_cosine": 0.5, "eval_pearson_head": 0.81},
            "pearson_head",
            "step 1,200 of 6,640 · development: Pearson of the head 81.00",
        ),
        (
            [],
            {"eval_spearman_head": -0.5, "eval_mae_head": 0.25},
            "mae_head",
            "step 1,200 of 6,640 · development: mae head 0.250",
        ),
        ([], {"eval_spearman_head": -0.05}, None, "step 1,200 of 6,640 · development: Spearman of the head -5.00"),
        ([0.25], {"eval_runtime": 1.0}, "own", "step 1,200 of 6,640 · loss 0.250"),
    ],
)
def test_an_evaluation_is_one_line_in_percent(
    losses: list[float], metrics: dict[str, float], selecting: str | None, line: str
) -> None:
    state = TrainerState(global_step=1200, max_steps=6640)
    assert evaluation_line(state, losses, metrics, selecting) == line
