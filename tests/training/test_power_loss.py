"""Power that is lost between any two writes: the last whole checkpoint is found, and the run ends the same.

The disk is simulated. Nothing is on it for certain before it is synchronised: the content of a file with `os.fsync`
on the file, its name (made, replaced or deleted) with `os.fsync` on its folder. After a loss of power, any
unsynchronised change may be there, as a whole or in part: POSIX promises no more than this, common file systems do.
"""

import builtins
import io
import itertools
import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from transformers.trainer import TRAINER_STATE_NAME

from sts_regression.basics.seals import SEAL_FILE, broken_file
from sts_regression.run_sts import run_stages
from sts_regression.training.run_folder import checkpoint_to_resume, is_finished
from sts_regression.training.training_arguments import STSTrainingArguments

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="names open files as Linux does")
Reliability = Callable[[str, int, int, int], None]
WEIGHTS = "model.safetensors"
Contents = dict[str, bytes | None]  # by relative path; None for a folder
State = frozenset[tuple[str, bytes | None]]
FOLDER = -1  # in place of an inode: a folder has no content, and its inode may be used again
OPERATIONS = ("replace", "rename", "unlink", "remove", "mkdir", "rmdir")


class UnreliableDisk:
    """Watches a folder, and draws states in which a loss of power would leave it."""

    def __init__(self, folder: Path, keep: Path, num_draws: int = 4) -> None:
        """
        Args:
            folder: that is watched.
            keep: an empty folder on the same disk, for second names of its files: no inode is used twice then.
            num_draws: states at each operation, beside those with all and with none of the unsynced operations.
        """
        self.folder, self.keep = folder, keep
        self.num_draws = num_draws
        self.random = random.Random(1)
        self.written: dict[int, bytes] = {}  # by inode: its content, as a program would read it
        self.synced: dict[int, bytes] = {}  # files on the disk for certain
        self.names: dict[str, int] = {}  # by path: the inode, on the disk for certain
        self.certain: list[State] = []  # by operation: the least that is left
        self.states: dict[State, int] = {}  # all that may be left, with the operation at which each first came up

    def look(self) -> None:
        """Takes note of the program's writes, and of the state that a loss of power would leave."""
        visible = self._visible()
        self.certain.append(self._state(visible, lambda: False))
        drawn = (self._state(visible, lambda: self.random.random() < 0.5) for _ in range(self.num_draws))
        for state in (self.certain[-1], self._state(visible, lambda: True), *drawn):
            self.states.setdefault(state, len(self.certain) - 1)

    def sync(self, path: Path) -> None:
        """The program has synchronised a file, or the names in a folder."""
        visible = self._visible()
        inode = path.stat().st_ino
        if inode in self.written:
            self.synced[inode] = self.written[inode]
            return
        inside = path.relative_to(self.folder).as_posix()
        for name in {*visible, *self.names}:
            if Path(name).parent.as_posix() == inside:
                self.names.pop(name, None)
                if name in visible:
                    self.names[name] = visible[name]

    def _visible(self) -> dict[str, int]:
        """The inode of each path, as a program sees the folder now; `FOLDER` for those of folders."""
        found = {}
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder).as_posix()
            found[name] = inode = FOLDER if path.is_dir() else path.lstat().st_ino
            if inode == FOLDER:
                continue
            if inode not in self.written:
                os.link(path, self.keep / str(inode))
            self.written[inode] = path.read_bytes()
        return found

    def _state(self, visible: dict[str, int], is_there: Callable[[], bool]) -> State:
        contents: Contents = {}
        for name in sorted({*visible, *self.names}):  # a folder before its files
            parent = Path(name).parent.as_posix()
            if parent != "." and parent not in contents:
                continue
            inode = self.names.get(name)
            if inode != visible.get(name) and is_there():
                inode = visible.get(name)
            if inode is not None:
                contents[name] = None if inode == FOLDER else self._content(inode, is_there)
        return frozenset(contents.items())

    def _content(self, inode: int, is_there: Callable[[], bool]) -> bytes:
        written, synced = self.written[inode], self.synced.get(inode)
        if written == synced or is_there():
            return written
        return synced if synced is not None else written[: len(written) // 2 if is_there() else 0]


@contextmanager
def losing_power(disk: UnreliableDisk) -> Iterator[None]:
    """Looks at the disk before and after each operation on a file that Python sees."""
    is_looking = False

    def watching(operation: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            nonlocal is_looking
            if is_looking:
                return operation(*args, **kwargs)
            is_looking = True
            disk.look()
            is_looking = False
            return operation(*args, **kwargs)

        return watched

    def opening(operation: Callable[..., Any]) -> Callable[..., Any]:
        watched = watching(operation)
        return lambda file, mode="r", *args, **kwargs: (operation if mode in ("r", "rb") else watched)(
            file, mode, *args, **kwargs
        )

    def sync(descriptor: int, fsync: Callable[[int], None] = os.fsync) -> None:
        nonlocal is_looking
        fsync(descriptor)
        is_looking = True
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path == disk.folder or disk.folder in path.parents:
            disk.sync(path)
            disk.look()
        is_looking = False

    with pytest.MonkeyPatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(os, name, watching(getattr(os, name)))
        for module in (builtins, io):
            patch.setattr(module, "open", opening(io.open))
        patch.setattr(os, "fsync", sync)
        yield
    disk.look()


def left_in(folder: Path, states: Iterable[State]) -> Iterator[State]:
    """Makes a folder hold one state after the other, which must be left as they are."""
    folder.mkdir()
    before: State = frozenset()
    for state in states:
        for name, content in sorted(before - state, key=_name, reverse=True):  # files before their folder
            (folder / name).rmdir() if content is None else (folder / name).unlink()
        for name, content in sorted(state - before, key=_name):
            (folder / name).mkdir() if content is None else (folder / name).write_bytes(content)
        before = state
        yield state


def _name(entry: tuple[str, bytes | None]) -> str:
    return entry[0]


@dataclass
class Run:
    """A run with its options, another with all its checkpoints, and the disk of the first."""

    options: list[str]
    reference: Path
    disk: UnreliableDisk


@pytest.fixture(scope="module")
def run(options_of_three_steps: Callable[[Path], list[str]], tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("power")
    options = [*options_of_three_steps(folder), "--num_train_epochs=3"]
    run_stages([*options, "--save_total_limit=3", f"--output_dir={folder / 'reference'}"])
    for name in ("run", "names"):
        (folder / name).mkdir()
    disk = UnreliableDisk(folder / "run", folder / "names")
    with losing_power(disk):
        run_stages([*options, "--save_total_limit=2", f"--output_dir={folder / 'run'}"])
    return Run([*options, "--save_total_limit=2"], folder / "reference", disk)


def files_of(checkpoint: Path) -> dict[str, bytes]:
    """The files of a checkpoint that hold no times."""
    paths = (path for path in checkpoint.iterdir() if path.is_file())
    return {path.name: path.read_bytes() for path in paths if path.name not in (TRAINER_STATE_NAME, SEAL_FILE)}


def step_to_resume(folder: Path) -> int:
    """The step of the checkpoint from which a run goes on; 0 without one."""
    args = STSTrainingArguments(output_dir=str(folder), do_train=True, resume_from_checkpoint="true")
    found = checkpoint_to_resume(args)
    return 0 if found is None else int(found.rpartition("-")[2])


def test_whenever_power_is_lost_the_last_whole_checkpoint_is_there_and_is_the_right_one(
    run: Run, tmp_path: Path, reliability: Reliability
) -> None:
    folder = tmp_path / "run"
    expected = {step: files_of(run.reference / f"checkpoint-{step}") for step in (3, 6, 9)}
    steps = {state: step_to_resume(tmp_path / "certain") for state in left_in(tmp_path / "certain", run.disk.certain)}
    certain = list(itertools.accumulate((steps[state] for state in run.disk.certain), max))
    assert certain[-1] == 9
    for state in left_in(folder, run.disk.states):
        step = step_to_resume(folder)
        assert step >= certain[run.disk.states[state]]
        assert step == 0 or files_of(folder / f"checkpoint-{step}").items() >= expected[step].items()
    tried = len(run.disk.states)
    reliability("power failures while a run writes: the last complete checkpoint is found", tried, tried, 0)


def test_a_run_is_finished_only_if_its_model_is_on_the_disk(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    args = STSTrainingArguments(output_dir=str(folder), do_train=True, resume_from_checkpoint="true")
    num_finished = 0
    for _ in left_in(folder, run.disk.states):
        if is_finished(args):
            num_finished += 1
            assert broken_file(folder) is None
            assert (folder / WEIGHTS).read_bytes() == (run.reference / WEIGHTS).read_bytes()
    assert num_finished > 0


@pytest.mark.parametrize("num_states", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_a_run_goes_on_after_a_loss_of_power_to_the_same_weights(
    run: Run, tmp_path: Path, reliability: Reliability, num_states: int
) -> None:
    folder, expected = tmp_path / "run", (run.reference / WEIGHTS).read_bytes()
    states = random.Random(1).sample(list(run.disk.states), num_states)
    for state in states:
        shutil.rmtree(folder, ignore_errors=True)
        next(left_in(folder, [state]))
        run_stages([*run.options, f"--output_dir={folder}", "--resume_from_checkpoint=true"])
        assert (folder / WEIGHTS).read_bytes() == expected
    reliability("power failures: the run resumes to the same weights", len(states), len(states), 0)
