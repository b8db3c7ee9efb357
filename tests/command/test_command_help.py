"""The command's help, at once, our options first, each with its default; and the memory of its process."""

import ctypes
import mmap
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sts_regression.__main__ import main
from sts_regression.command import command_help
from sts_regression.command.command_help import EVALUATING, PREDICTING, keep_freed_memory
from sts_regression.training.training_arguments import OPTION_NAMES

ROOT = Path(__file__).resolve().parents[2]


def help_of(option: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit, match=r"^0$"):
        command_help.answer_help([option])
    return capsys.readouterr().out


def test_help_needs_no_torch() -> None:
    code = "import sys, sts_regression.command.command_help; print('torch' in sys.modules)"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout == "False\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--train_file", "there.csv", "gone.csv", "--seed", "1"], "gone.csv: no such file. Give a CSV,"),
        (["--predict_file=gone.csv"], "gone.csv: no such file."),
        (["--loss", "gone"], "argument --loss: invalid choice: 'gone' (choose from 'smooth_k2', "),
        (["--learning_rate=gone"], "argument --learning_rate/--learning-rate: invalid float value: 'gone'"),
        (["--model_name_or_path", "./gone"], "`model_name_or_path`: cannot load './gone' (there is no such folder). "),
        (["--model_name_or_path", "there.csv"], "cannot load 'there.csv' (it is a file, but should be a folder)."),
        (
            ["--model_name_or_path", "me/gone"],
            "cannot load 'me/gone' (there is no such folder, and the Hub at http://",
        ),
    ],
)
def test_missing_inputs_and_wrong_values_are_told_before_torch_is_loaded(
    words: list[str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "there.csv").touch()
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['run_sts.py', *{words}]\n"
        "try:\n"
        f"    runpy.run_path({str(ROOT / 'run_sts.py')!r}, run_name='__main__')\n"
        "except SystemExit as stopped:\n"
        "    print(stopped, 'torch' in sys.modules)\n"
    )
    nowhere = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0"}
    finished = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=nowhere, capture_output=True, text=True, check=True
    )
    assert finished.stdout.startswith("run_sts.py: error: ")
    assert message in finished.stdout
    assert finished.stdout.endswith(" False\n")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--train_file", "pairs.csv", "--sts_data", "folder"],
        ["recipe.yaml", "--train_file", "in_the_folder_that_the_recipe_names.csv"],
        ["--no_such_option"],
    ],
)
def test_inputs_that_may_be_there_are_left_to_the_command(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "pairs.csv").touch()
    monkeypatch.chdir(tmp_path)
    command_help.check_inputs(words)


def test_the_first_process_alone_tells_of_missing_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    command_help.check_inputs(["--train_file", "gone.csv"])


def test_help_shows_our_options_and_help_all_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    ours, everything = help_of("--help", capsys), help_of("--help_all", capsys)
    for group in ("model:", "pairs:", "training:"):
        assert f"\n{group}\n" in ours
    assert "--wise_ft_alpha" in ours
    assert "--adam_beta1" not in ours
    assert all(f"--{name}" in everything for name in OPTION_NAMES)


def test_help_shows_an_option_that_is_on_but_not_its_opposite_with_the_same_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for shown in map(help_of, ("--help", "--help_all"), (capsys, capsys)):
        assert "--load_best_model_at_end [VALUE]" in shown
        assert "--no_" not in shown


def test_help_tells_defaults_that_say_something(capsys: pytest.CaptureFixture[str]) -> None:
    ours = " ".join(help_of("--help", capsys).split())
    assert "Peak learning rate. Default: 2e-05." in ours
    assert "None" not in ours
    assert "Default: False" not in ours


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["search", "--corpus", "a.txt"],
            "the following arguments are required: --model_name_or_path, --queries. `sts-r",
        ),
        (
            ["compare", "a", "b", "--top_k", "3"],
            "unrecognized arguments: --top_k …. `sts-regression compare --help` list",
        ),
    ],
)
def test_a_wrong_option_of_another_command_is_told_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        main(words)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"sts-regression {words[0]}: error: {message}")


@pytest.mark.parametrize(
    ("command", "shown", "names"),
    [("predict", "--predict_file", PREDICTING), ("evaluate", "--test_file", EVALUATING)],
)
def test_a_command_that_does_not_train_shows_no_options_of_training(
    command: str, shown: str, names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main([command, "--help"])
    text = capsys.readouterr().out
    assert text.startswith(f"usage: sts-regression {command} [")
    assert re.findall(r"(?m)^(\w+):$", text) == ["model", "pairs", "run"]
    assert shown in text
    assert set(re.findall(r"(?m)^  --(\w+)", text)) == set(names) < set(OPTION_NAMES)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["train", "--train_file", "gone.csv"], "sts-regression train: error: gone.csv: no such file."),
        (["predict", "--los", "mse"], "sts-regression predict: error: unknown option '--los'."),
        (["--los", "mse"], "sts-regression: error: unknown option '--los'."),
    ],
)
def test_an_error_begins_with_the_command_as_it_was_typed(words: list[str], line: str) -> None:
    with pytest.raises(SystemExit, match=f"^{re.escape(line)}"):
        main(words)


def test_the_installed_command_answers_likewise(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["train", "--help"])
    assert "usage: sts-regression train [RECIPE.yaml]" in capsys.readouterr().out


def faults_of_a_second_allocation() -> int:
    code = """
import resource
from sts_regression.command.command_help import keep_freed_memory
keep_freed_memory()
b"x" * 2**26
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
b"x" * 2**26
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the option is one of glibc")
def test_freed_memory_is_used_again() -> None:
    pages = 2**26 // mmap.PAGESIZE
    assert faults_of_a_second_allocation() < pages / 100


def test_without_glibc_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    keep_freed_memory()


@pytest.mark.skipif(sys.platform != "linux", reason="torch brings GNU OpenMP on Linux only")
@pytest.mark.parametrize(
    ("given", "turns"),
    [({}, "3000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "passive"}, "0")],
    ids=["default", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"],
)
def test_waiting_threads_soon_leave_their_core_to_others(given: dict[str, str], turns: str) -> None:
    code = "from sts_regression.command.command_help import prepare_process\nprepare_process()\nimport torch"
    cleared = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    env = {**cleared, "OMP_DISPLAY_ENV": "verbose", **given}
    shown = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stderr
    assert f"GOMP_SPINCOUNT = '{turns}'" in shown
