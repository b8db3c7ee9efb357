"""The benchmark of the learning curve."""

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import learning_curves
from benchmarks.graded_methods import Task
from benchmarks.learning_curves import FIRST_PAIRS, curves_page, measure_doubling
from sts_regression.basics.tables import write_json


def test_the_page_compares_expected_with_measured_gains() -> None:
    lines = [
        {"set": "cxc", "draw": 1, "expected": 0.02, "low": 0.0, "high": 0.04, "spearman": [0.5, 0.53]},
        {"set": "stsb", "draw": 1, "expected": 0.0, "low": -0.01, "high": 0.005, "spearman": [0.7, 0.71]},
    ]
    page = " ".join(curves_page(lines).split())
    assert "| cxc | 1 | +2.00 (+0.00 to +4.00) | +3.00 |" in page
    assert "The interval contains the measured gain in 1 of 2 runs." in page
    assert "the expected gain is +1.00, and the measured one +2.00." in page
    assert "off by 1.00 points on average; a guess of 0 would be off by 2.00, and" in page
    assert "which one cannot know, by 1.00." in page


def test_the_second_run_has_twice_as_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[tuple[int, bool]] = []

    def train(task: Task, options: dict[str, Any]) -> Any:
        trained.append((len(task.pairs), options["learning_curve"]))
        curve = {"gain_of_doubling": 0.02, "low": 0.01, "high": 0.03}
        (task.folder / "run").mkdir()
        write_json({"learning_curve": curve}, task.folder / "run" / "run.json")
        return SimpleNamespace(spearman=-1.0 if options["learning_curve"] else 1.0)

    monkeypatch.setattr(learning_curves, "train_grader", train)
    monkeypatch.setattr(learning_curves, "cosine_spearman", lambda grader, pairs: grader.spearman)
    pairs = [(f"a {row}", f"b {row}", float(row % 5)) for row in range(2 * FIRST_PAIRS)]
    development = [(f"c {row}", f"d {row}", float(row)) for row in range(5)]
    found = measure_doubling("stsb", {"train": pairs, "validation": development}, draw=1)
    assert trained == [(FIRST_PAIRS, True), (2 * FIRST_PAIRS, False)]
    assert found["expected"] == 0.02
    assert found["spearman"] == pytest.approx([-1.0, 1.0])
