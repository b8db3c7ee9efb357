"""Runs the tests that try to break the project, and counts their attempts: `python benchmarks/reliability.py`.

They kill runs, fill disks, give thousands of damaged and unusual inputs, start several processes, and run for long. It
writes `results/reliability/reliability.json`, from which `python -m benchmarks.tables.results_table` writes
`results/reliability.md`. Tests of extras that are not installed are left out. If tests are named, such as
`tests/serving` after an extra was installed, their counts are added to those of the other tests.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sts_regression.basics.tables import write_json
from sts_regression.training.run_record import describe_environment

ROOT = Path(__file__).resolve().parent.parent
RELIABILITY_FILE = ROOT / "results" / "reliability" / "reliability.json"
MARKS = "not gpu and not network"  # includes slow tests


def main() -> None:
    """Runs the tests, and keeps their counts if all of them passed."""
    environment, started = describe_environment(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.jsonl"
        command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=--strict-markers", "-m", MARKS, *sys.argv[1:]]
        finished = subprocess.run(command, cwd=ROOT, env={**os.environ, "STS_RELIABILITY_REPORT": str(report)})
        if finished.returncode != 0:
            sys.exit(finished.returncode)
        lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    seconds, kinds = time.perf_counter() - started, counts_by_kind(lines)
    if sys.argv[1:]:
        before = json.loads(RELIABILITY_FILE.read_text(encoding="utf-8"))
        seconds, kinds = before["seconds"] + seconds, {**before["kinds"], **kinds}
    write_json({"environment": environment, "seconds": seconds, "kinds": kinds}, RELIABILITY_FILE)


def counts_by_kind(lines: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The reported counts, added up by kind of attempt, with the files of the tests."""
    kinds: dict[str, dict[str, Any]] = {}
    for line in lines:
        kind = kinds.setdefault(line["kind"], {"tried": 0, "accepted": 0, "refused": 0, "tests": []})
        for name in ("tried", "accepted", "refused"):
            kind[name] += line[name]
        if (file := line["test"].partition("::")[0]) not in kind["tests"]:
            kind["tests"].append(file)
    return kinds


if __name__ == "__main__":
    main()
