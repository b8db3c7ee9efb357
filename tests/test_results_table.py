"""The tables in README.md and results/: written from run files, and up to date."""

import copy
from typing import Any

import pytest

from sts_regression.results_table import generated_files, quickstart_table, stsb_table


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
