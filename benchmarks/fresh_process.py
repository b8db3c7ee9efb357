"""Runs measurements in separate processes, so that none warms up or fragments memory for another."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def measure_in_fresh_process(script: str, arguments: list[str], variables: dict[str, str]) -> dict[str, Any]:
    """Runs `script` of this folder and returns the JSON in the last line of its output.

    Raises:
        RuntimeError: if the script fails, with the end of its error output.
    """
    command = [sys.executable, str(ROOT / "benchmarks" / script), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", **variables}
    finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if finished.returncode:
        raise RuntimeError(f"{script} {' '.join(arguments)}: {finished.stderr[-2000:]}")
    return json.loads(finished.stdout.strip().splitlines()[-1])
