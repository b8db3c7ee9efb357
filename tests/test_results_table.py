"""The tables in README.md and results/: written from run files, and up to date."""

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest

from sts_regression import results_table
from sts_regression.results_table import generated_files
from sts_regression.run_tables import (
    leak_filter_speed,
    leak_matrix_tables,
    leakage_table,
    quickstart_table,
    sts_tasks_table,
    stsb_table,
)


def measures(cosine: float, head: float | None = None) -> dict[str, dict[str, float]]:
    values = {"spearman_cosine": cosine} | ({} if head is None else {"spearman_head": head})
    return {"validation": values, "test": values}


@pytest.fixture
def run() -> dict[str, Any]:
    return {
        "model": {"config": {"loss_type": "mse", "score_function": "linear"}},
        "results": {"before training": measures(0.8), "after training": measures(0.81234, 0.7)},
        "data": {"train": {"pairs": 1500}},
        "seconds": 75.4,
        "peak_memory_bytes": {"process": 2**30},
        "environment": {"device": "CPU", "threads": 2},
    }


def test_generated_files_are_up_to_date() -> None:
    for path, text in generated_files().items():
        assert path.read_text(encoding="utf-8") == text, (
            f"run `python -m sts_regression.results_table` to renew {path.name}"
        )


def test_correlations_are_shown_in_percent_and_missing_ones_as_a_dash(run: dict[str, Any]) -> None:
    lines = quickstart_table(run).splitlines()
    assert lines[2] == "| before training | 80.00 | – | 80.00 | – |"
    assert lines[3] == "| after training | 81.23 | 70.00 | 81.23 | 70.00 |"


def test_what_ends_below_the_untouched_encoder_is_named(run: dict[str, Any]) -> None:
    table = stsb_table([run])
    assert "| MSE | linear, the paper's | 81.23 | 81.23 | 70.00 |" in table
    assert table.endswith("Below the untouched encoder's 80.00 on the test pairs: head of MSE (linear).")


def test_runs_from_different_encoders_are_not_put_into_one_table(run: dict[str, Any]) -> None:
    other = copy.deepcopy(run)
    other["results"]["before training"] = measures(0.7)
    with pytest.raises(ValueError, match="do not start from one encoder"):
        stsb_table([run, other])


def tasks_run(stsb: float, sick: float, sick_pairs: int = 4927) -> dict[str, Any]:
    def cosine(value: float) -> dict[str, Any]:
        correlations = {name: {"spearman": value + shift} for name, shift in (("mean", 0.01), ("wmean", 0.02))}
        return {"cosine": {"all": {"spearman": value, "interval": [value - 0.1, value + 0.1]}, **correlations}}

    tasks = {"STS-B": {"pairs": 1379, **cosine(stsb)}, "SICK-R": {"pairs": sick_pairs, **cosine(sick)}}
    return {"sts_tasks": {"tasks": tasks, "average": cosine((stsb + sick) / 2)}}


def test_the_seven_tasks_show_every_aggregation_and_the_largest_shift() -> None:
    table = sts_tasks_table(tasks_run(0.8, 0.7), tasks_run(0.8, 0.69), tasks_run(0.8, 0.75, 9927)).splitlines()
    assert table[3] == "| SICK-R | 4,927 | 70.00 | 71.00 | 72.00 | 60.00–80.00 | 69.00 | 75.00 |"
    assert table[4] == "| average |  | 75.00 | 76.00 | 77.00 | 65.00–85.00 | 74.50 | 77.50 |"
    text = " ".join(table[6:])
    assert text == (
        "The whole of SICK has 9,927 pairs. Tokenised text shifts SICK-R most, by -1.000, and the average by -0.5000."
    )


def test_the_audit_shows_what_each_filter_finds_and_leaves() -> None:
    audits = [
        {"train": {"a.csv": {"leak_filter": mode, "pairs": 2000, "found": found, "removed": found}}}
        for mode, found in (("exact", 5), ("sentence", 1200))
    ]
    assert leakage_table(audits).splitlines() == [
        "| set | pairs | exact: found (left) | sentence: found (left) |",
        "| --- | --- | --- | --- |",
        "| `a.csv` | 2,000 | 5 (1,995) | 1,200 (800) |",
    ]


def test_the_matrix_has_a_table_for_each_direction() -> None:
    counts = {
        "STS12": {"pairs": 1011, "sentences": 1907, "test_pairs": 777},
        "STS13": {"pairs": 0, "sentences": 0, "test_pairs": 0},
    }
    matrix = {
        "leak_filter": "normalized",
        "test_sets": {"STS12": {"pairs": 3108}, "STS13": {"pairs": 1500}},
        "sets": {"a.csv": {"pairs": 5749, "sentences": 10504, "by_test_set": counts}},
    }
    text = leak_matrix_tables(matrix)
    assert "leak filter `normalized`" in text
    lines = text.splitlines()
    assert lines[3:6] == [
        "| set | pairs / sentences | STS12 | STS13 |",
        "| --- | --- | --- | --- |",
        "| `a.csv` | 5,749 / 10,504 | 1,011 / 1,907 | 0 / 0 |",
    ]
    assert lines[-3:] == ["| set | STS12 | STS13 |", "| --- | --- | --- |", "| `a.csv` | 25.0 | 0 |"]


def test_a_missing_matrix_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = shutil.ignore_patterns("matrix.json", "*.png")
    shutil.copytree(results_table.ROOT / "results", tmp_path / "results", ignore=left_out)
    monkeypatch.setattr(results_table, "ROOT", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"matrix\.json"):
        generated_files()


def test_the_time_of_the_filter_names_its_modes_and_device() -> None:
    speed = {
        "training_pairs": 1_000_000,
        "median_seconds": {"exact": 0.46, "sentence": 3.0},
        "environment": {"device": "CPU"},
    }
    text = leak_filter_speed(speed)
    assert text == "1,000,000 made-up pairs pass the filter in 0.5 s (exact), 3.0 s (sentence), on a CPU."
