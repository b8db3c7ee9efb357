"""Commands that are killed or find the disk full: repeated, they end as if nothing had happened."""

import errno
import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from sts_regression.training.checkpoints import checkpoints, is_whole

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads /proc")

ROOT = Path(__file__).resolve().parent.parent
KILLS = 10
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}

Command = Callable[..., dict[str, Any]]
Options = Callable[..., list[str]]
Reliability = Callable[[str, int, int, int], None]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """`command(argv, root=…, write=…)`: how the command ended, with its `log`; see `killed_commands.py`."""
    log = tmp_path_factory.mktemp("log") / "log.txt"
    program = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("killed_commands.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert program.stdin is not None

    def run(argv: list[str], root: Path | str, **what: Any) -> dict[str, Any]:
        request = {"argv": argv, "root": str(root), "log": str(log), **what}
        print(json.dumps(request), file=program.stdin, flush=True)
        assert program.stdout is not None
        return {**json.loads(program.stdout.readline()), "log": log.read_text()}

    yield run
    program.stdin.close()
    program.wait()


def check_equal(folder: Path, expected: Path, what: object = "") -> None:
    """The same files, and the same weights bit for bit."""
    assert {path.name for path in folder.iterdir()} == {path.name for path in expected.iterdir()}, what
    for file in expected.rglob("model.safetensors"):
        weights, others = load_file(file), load_file(folder / file.relative_to(expected))
        assert weights.keys() == others.keys()
        assert all(torch.equal(others[name], value) for name, value in weights.items()), (file, what)


def test_a_training_killed_in_the_middle_of_saves_ends_with_the_same_weights(
    command: Command, resumable: Options, tmp_path: Path
) -> None:
    whole, folder, kept = tmp_path / "whole", tmp_path / "killed", "--save_total_limit=1"
    assert command(resumable(whole, kept), root=whole)["status"] == 0
    killed = command(resumable(folder, kept), root=folder / "checkpoint-6" / "optimizer.pt", write=2)
    assert killed["status"] == -signal.SIGKILL
    assert [is_whole(checkpoint) for checkpoint in checkpoints(folder)] == [True, False]
    killed = command(resumable(folder, kept), root=folder / "model.safetensors", write=2)
    assert killed["status"] == -signal.SIGKILL
    assert "checkpoint-6 is deleted: it is incomplete" in killed["log"]
    finished = command(resumable(folder, kept), root=folder)
    assert finished["status"] == 0, finished["log"]
    check_equal(folder, whole)
    assert json.loads((folder / "run.json").read_text())["training"]["best_step"] == best_step(whole)


def best_step(folder: Path) -> int:
    [best] = checkpoints(folder)
    return int(best.name.split("-")[1])


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"largest": 100_000}, "checkpoint-3 cannot be written: .*File too large"),  # by safetensors
        pytest.param({"largest": 200_000}, "checkpoint-3 cannot be written: ", marks=pytest.mark.slow),  # by torch
        *(
            pytest.param({"root": root, "error": error, "write": write}, message, marks=pytest.mark.slow)
            for error, write, root, message in (
                (errno.ENOSPC, 1, "checkpoint-6/scheduler.pt", "checkpoint-6 cannot be written: .*No space left"),
                (errno.ENOSPC, 1, "full/model.safetensors", "full cannot be written: .*No space left on device"),
                (
                    errno.EROFS,
                    2,
                    "full/run.json",
                    r"Read-only file system: '.*full/run\.json.*'\. Saved",
                ),
                (errno.EROFS, 1, "full/options.json", r"Read-only file system: '.*full/options\.json.*'\. Saved"),
            )
        ),
    ],
    ids=str,
)
def test_a_full_disk_is_one_line_and_costs_no_checkpoint(
    command: Command,
    resumable: Options,
    tmp_path: Path,
    what: dict[str, Any],
    message: str,
    reliability: Reliability,
) -> None:
    folder = tmp_path / "full"
    failed = command(resumable(folder), **{"root": folder, **what})
    assert failed["status"] == 1, failed["log"]
    [line] = [line for line in failed["log"].splitlines() if line.startswith("run_sts.py: error:")]
    assert re.search(message, line), line
    assert "`--resume_from_checkpoint true`" in line
    assert "Traceback" not in failed["log"]
    earlier = [path for path in checkpoints(folder) if f"{path.name} cannot" not in line]
    assert all(map(is_whole, earlier))
    assert len(earlier) == ("checkpoint-3" not in line and "options" not in line)
    finished = command(resumable(folder), root=folder)
    assert finished["status"] == 0, finished["log"]
    reliability("full or read-only disks: a one-line error, and the run resumes", 1, 1, 0)


def write_stages(folder: Path) -> str:
    """A recipe that freezes, then tunes, keeping near its start, three models to be averaged."""
    recipe = folder / "stages.yaml"
    stages: list[dict[str, Any]] = [{"freeze_encoder": True, "head_learning_rate": 0.1}]
    stages += [{"self_distillation": 1.0, "model_soup": 2, "save_strategy": "steps", "eval_strategy": "steps"}]
    stages[-1] |= {"save_steps": 2, "eval_steps": 2, "train_sampling_strategy": "group_by_length"}
    recipe.write_text(yaml.safe_dump({"stages": stages}))
    return str(recipe)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("form", ["epochs", "within epochs", "LoRA", "stages", "solved head"])
def test_ten_kills_at_random_moments(
    command: Command, resumable: Options, tmp_path: Path, form: str, seed: int, reliability: Reliability
) -> None:
    if form == "LoRA" and importlib.util.find_spec("peft") is None:
        pytest.skip("needs the extra peft")
    more = {
        "epochs": [],
        "within epochs": ["--save_strategy=steps", "--eval_strategy=steps", "--save_steps=2", "--eval_steps=2"],
        "LoRA": ["--use_peft", "--wise_ft_alpha=0.5"],
        "stages": [],
        "solved head": ["--freeze_encoder", "--head_solver=lbfgs"],
    }[form]
    recipe = [write_stages(tmp_path)] if form == "stages" else []

    def argv(folder: Path) -> list[str]:
        return [*recipe, *resumable(folder, *more, f"--embedding_cache={folder.with_suffix('.embeddings')}")]

    whole = tmp_path / "whole"
    started = time.perf_counter()
    finished = command(argv(whole), root=tmp_path)
    assert finished["status"] == 0, finished["log"]
    seconds, generator, number = time.perf_counter() - started, random.Random(seed), 0
    kills: list[tuple[str, dict[str, Any]]] = []
    while len(kills) < KILLS:
        folder = tmp_path / f"killed-{number}"
        number += 1
        for _ in range(3):  # in a row, then to the end
            if generator.random() < 0.5:
                moment: dict[str, Any] = {"seconds": generator.uniform(0, seconds)}
            else:
                moment = {"write": generator.randint(1, finished["changes"])}
            ended = command(argv(folder), root=tmp_path, **moment)
            assert ended["status"] in (0, -signal.SIGKILL), (seed, kills, moment, ended["log"])
            kills += [(folder.name, moment)] * (ended["status"] != 0)
        ended = command(argv(folder), root=tmp_path)
        assert ended["status"] == 0, (seed, kills, ended["log"])
        check_equal(folder, whole, (seed, kills))
    reliability("killed runs: resumed to the same weights", len(kills), len(kills), 0)


@pytest.mark.slow
def test_a_killed_sweep_is_repeated_to_its_end(resumable: Options, tmp_path: Path, reliability: Reliability) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("loss: mse\n")
    given = [option for option in resumable("") if not option.startswith(("--output_dir", "--resume", "--disable"))]
    sweep = [sys.executable, "-m", "sts_regression", "sweep", str(recipe), "--seeds=2", "--keep_models", *given]

    def start(folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*sweep, f"--output_dir={folder}"], env=ENVIRONMENT)

    whole, folder = tmp_path / "whole", tmp_path / "killed"
    assert start(whole).wait() == 0
    killed = start(folder)
    while not list(folder.glob("*/seed-1/checkpoint-*")):  # its run lives on
        time.sleep(0.05)
    killed.kill()
    killed.wait()
    assert start(folder).wait() == 0
    for name in ("recipe/seed-1", "recipe/seed-2"):
        check_equal(folder / name, whole / name)
    reliability("killed sweeps: repeated with the same weights", 1, 1, 0)


@pytest.mark.slow
def test_a_killed_evaluation_is_repeated(
    command: Command, resumable: Options, tmp_path: Path, reliability: Reliability
) -> None:
    files = [option for option in resumable("") if option.startswith(("--model", "--validation", "--report"))]
    argv = ["--do_eval", *files, f"--output_dir={tmp_path / 'evaluated'}"]
    finished = command(argv, root=tmp_path)
    expected = json.loads((tmp_path / "evaluated" / "run.json").read_text())["results"]
    for write in range(1, finished["changes"] + 1):
        assert command(argv, root=tmp_path, write=write)["status"] == -signal.SIGKILL
        assert command(argv, root=tmp_path)["status"] == 0
        assert json.loads((tmp_path / "evaluated" / "run.json").read_text())["results"] == expected
    kills = finished["changes"]
    reliability("killed evaluations: repeated with the same measures", kills, kills, 0)
