"""Runs the command in processes that die: a program for `test_interruption.py`, not a test.

It imports everything once, and forks for every command that it reads from its standard input as a line of JSON: its
`argv`, a file for its `log`, and an event. `seconds`: after so many the process is killed. `write`: it is
killed at the change of this number below `root`, or, with an `error`, that change and all after it fail. Changes are
files opened for writing, renamed or deleted, and, two each, those that Python does not open itself: before, and half
written. `largest`: no file grows beyond so many bytes. A line of JSON says how it ended, and after how many changes.
"""

import functools
import json
import os
import resource
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers.modeling_utils
from transformers import TrainerState

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from sts_regression.training import lora  # noqa: E402 # found only now

runpy.run_path(str(ROOT / "run_sts.py"))  # for its imports

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Changes:
    """Counts the changes below a folder, or of files whose paths hold that text, and ends the process at one."""

    def __init__(self, root: str, last: int | None, error: int | None) -> None:
        self.root, self.last, self.error = root, last, error
        self.count = 0
        sys.addaudithook(self._hear)
        for owner, name in (
            (torch, "save"),
            (transformers.modeling_utils, "safe_save_file"),
            (lora, "save_file"),
            (TrainerState, "save_to_json"),
        ):
            setattr(owner, name, self._in_two_steps(getattr(owner, name)))

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING:
            self._step(str(arguments[0]))
        elif event in CHANGES:
            # Folders are deleted by names relative to a descriptor.
            descriptor = arguments[-1] if event in ("os.remove", "os.rmdir") else -1
            folder = Path(f"/proc/self/fd/{descriptor}").readlink() if descriptor >= 0 else Path()
            self._step(str(folder / str(arguments[0])))

    def _in_two_steps(self, save: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(save)
        def saves(*arguments: Any, **options: Any) -> None:
            path = next(str(some) for some in arguments if isinstance(some, (str, Path)))
            self._step(path)
            save(*arguments, **options)
            if self.root in path and self.count + 1 == self.last:
                os.truncate(path, Path(path).stat().st_size // 2)
            self._step(path)

        return saves

    def _step(self, path: str) -> None:
        if self.root not in path:
            return
        self.count += 1
        if self.last is not None and self.count >= self.last:
            if self.error is None:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(self.error or 0, os.strerror(self.error or 0), path)


def run(request: dict[str, Any], report: int) -> None:
    if request.get("largest") is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest"], resource.RLIM_INFINITY))
    if request.get("seconds") is not None:
        threading.Timer(request["seconds"], os.kill, (os.getpid(), signal.SIGKILL)).start()
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    changes = Changes(request["root"], request.get("write"), request.get("error"))
    sys.argv = ["run_sts.py", *request["argv"]]
    code = 0
    try:
        runpy.run_path(str(ROOT / "run_sts.py"), run_name="__main__")
    except SystemExit as ended:
        code = 1 if ended.code else 0
        sys.stdout.write(f"\n{ended.code or ''}\n")
    except BaseException:
        code = 70
        traceback.print_exc()
    os.write(report, json.dumps({"changes": changes.count}).encode())
    changes.last = None
    sys.stdout.flush()
    os._exit(code)


def main() -> None:
    for line in sys.stdin:
        read, report = os.pipe()
        if (child := os.fork()) == 0:
            run(json.loads(line), report)
        os.close(report)
        with os.fdopen(read) as said:
            counted = json.loads(said.read() or "{}")
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(json.dumps({"status": status, **counted}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
