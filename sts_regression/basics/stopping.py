"""Ends a command at a signal: training with a checkpoint, anything else at once, with a line instead of a traceback.

Cluster schedulers send SIGTERM or SIGUSR1 before they take a machine away; Ctrl-C sends SIGINT. Only commands handle
these signals; Python programs that import the package are not affected.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import psutil

SIGNALS = ("SIGINT", "SIGTERM", "SIGUSR1")
LAUNCHED = ("ACCELERATE_", "TORCHELASTIC_", "LOCAL_RANK")  # how the variables begin that launchers set
LAUNCHERS = ("accelerate", "torchrun", "torch.distributed", "deepspeed")  # in the command of a parent process
SECONDS_OF_ONE_SIGNAL = 1.0
SECONDS_BETWEEN_LOOKS = 2.0
SECONDS_TO_STOP = 120.0  # for a process whose launcher died: it may wait for a process that no longer answers
AGAIN = " Repeat the command with `--resume_from_checkpoint true` to resume."


class _Requests:
    """Signals that this process received. The first stops it, training after a step; a second SIGINT stops at once."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self.time = 0.0  # when the first signal came
        self.waits = False  # whether training is running, which stops by itself
        self.can_resume = False  # whether the command trains, so that it resumes when it is repeated

    def __call__(self, number: int, frame: FrameType | None) -> None:
        is_second = self.received is not None
        if is_second and (number != signal.SIGINT or time.monotonic() - self.time < SECONDS_OF_ONE_SIGNAL):
            return  # a launcher passes on a signal that the process already got
        if self.received is None:
            self.received, self.time = signal.Signals(number), time.monotonic()
        if is_second or not self.waits:
            end_by_signal()
        _say(f"{self.received.name}: writing a checkpoint after this step. Press Ctrl-C again to stop at once.")


_requests = _Requests()


def listen() -> None:
    """Ends this process at a signal from now on, or when the launcher that started it dies."""
    for name in SIGNALS:
        number = getattr(signal, name, None)  # Windows lacks one
        if (
            number is not None and signal.getsignal(number) is not signal.SIG_IGN
        ):  # Ctrl-C in the background is ignored
            signal.signal(number, _requests)
    parent = os.getppid()
    is_launched = any(name.startswith(LAUNCHED) for name in os.environ)
    if is_launched and _is_launcher(parent):
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


@contextmanager
def resumable() -> Iterator[None]:
    """Makes the line of a process that is stopped say how to resume its run."""
    _requests.can_resume = True
    try:
        yield
    finally:
        _requests.can_resume = False


@contextmanager
def deferring() -> Iterator[None]:
    """Defers signals, see [`is_requested`]. The process ends afterwards if it has not ended before."""
    _requests.waits = True
    try:
        yield
    finally:
        _requests.waits = False
    if is_requested():
        end_by_signal()


def is_requested() -> bool:
    """Whether a signal has asked this process to stop."""
    return _requests.received is not None


def end_by_signal(place: str = "") -> NoReturn:
    """
    Ends this process with the exit status that shells use for a signal.

    Args:
        place: the step that training has reached.

    Raises:
        SystemExit: with 128 plus the number of the signal.
    """
    received = _requests.received or signal.SIGTERM  # another process may have got the signal
    _say(f"stopped by {received.name}{place}.{AGAIN if _requests.can_resume else ''}")
    raise SystemExit(128 + received)


def _say(line: str) -> None:
    if os.environ.get("RANK", "0") == "0":
        sys.stderr.write(f"\n{line}\n")


def _is_launcher(process: int) -> bool:
    try:
        words = " ".join(psutil.Process(process).cmdline())
    except psutil.Error:
        return False
    return any(name in words for name in LAUNCHERS)


def _watch(parent: int) -> None:
    """Ends this process when its parent is gone without having sent a signal."""
    while os.getppid() == parent:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(SECONDS_TO_STOP)
    os._exit(128 + signal.SIGTERM)
