"""Runs measurements in separate processes, so that none warms up or fragments memory for another."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def measure_in_fresh_process(
    script: str, arguments: list[str], variables: dict[str, str], seconds: float | None = None
) -> dict[str, Any]:
    """Runs `script` of this folder and returns the JSON of the last line that it writes.

    Raises:
        RuntimeError: if the script fails, with the end of its error output, or takes longer than `seconds`.
    """
    command = [sys.executable, str(ROOT / "benchmarks" / script), *arguments]
    return json.loads(run_offline(command, variables, seconds).strip().splitlines()[-1])


def run_offline(command: list[str], variables: dict[str, str], seconds: float | None = None) -> str:
    """Runs a command at the root of the repository, without the Hub, and returns its output.

    Raises:
        RuntimeError: if it fails, with the end of its error output, or takes longer than `seconds`.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1", **variables}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    name = " ".join([Path(command[1]).name, *command[2:]])
    with subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True, **pipes) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the processes that it has started
            if isinstance(error, subprocess.TimeoutExpired):
                raise RuntimeError(f"{name}: took longer than {seconds:g} s") from error
            raise
    if process.returncode:
        raise RuntimeError(f"{name}: {errors[-4000:]}")
    return output
