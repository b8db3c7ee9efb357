"""The page on growth: tables, fitted powers, and the aim."""

from typing import Any

import pytest

from benchmarks.growth import SHAPES
from benchmarks.tables.growth_report import growth_section


@pytest.fixture
def growth() -> dict[str, Any]:
    pairs = {
        str(10**power): {
            "read": 10 ** (power - 6),
            "leak filter": 2 * 10 ** (power - 6),
            "tokenise": 7 * 10 ** (power - 6),
            "peak_memory_bytes": 2**30,
        }
        for power in range(3, 8)
    }
    lengths = {
        str(length): {"forward": length**2 / 1e4, "training step": length / 100, "peak_memory_bytes": 2**31}
        for length in (8, 128, 256, 512)
    }
    return {
        "pairs": {"points": pairs},
        "command": {"points": {"1000000": {"until training": 50.0, "peak_memory_bytes": 2**30}}},
        "predict": {"points": {"100000": {"predict": 200.0, "peak_memory_bytes": 2**30}}},
        "length": {"points": lengths},
        "model": {"points": dict.fromkeys(SHAPES, lengths["8"])},
    }


def test_the_aim_for_a_million_pairs_is_reached_or_missed(growth: dict[str, Any]) -> None:
    assert (
        "A million pairs take 10 s to read, filter and tokenise, 70% of it in the tokenizer. Aim: 40 s, reached."
        in (growth_section(growth))
    )
    growth["pairs"]["points"]["1000000"]["tokenise"] = 40
    assert "93% of it in the tokenizer. Aim: 40 s, **missed**." in growth_section(growth)


def test_powers_are_fitted_to_the_largest_points(growth: dict[str, Any]) -> None:
    section = growth_section(growth)
    assert "from 100,000 to 10,000,000: read 1.00, leak filter 1.00, tokenise 1.00." in section
    assert "from 128 to 512: forward 2.00, training step 1.00." in section


def test_every_kind_has_its_table(growth: dict[str, Any]) -> None:
    section = growth_section(growth)
    assert "| 1,000,000 | 1.00 | 2.00 | 7.00 | 1.00 | 50.00 | 1.00 | not measured | not measured |" in section
    assert "| 100,000 | 0.10 | 0.20 | 0.70 | 1.00 | not measured | not measured | 200.00 | 1.00 |" in section
    assert (
        "| 10,000 | 0.01 | 0.02 | 0.07 | 1.00 | not measured | not measured | not measured | not measured |" in section
    )
    assert "| 256 | 6.55 | 2.56 | 2.00 |" in section
    assert "| BERT-base | 0.01 | 0.08 | 2.00 |" in section


def test_scored_pairs_have_a_rate(growth: dict[str, Any]) -> None:
    scored = (
        "Scoring 100,000 pairs of made-up text with MiniLM in bfloat16 takes 3 minutes: 500 pairs/s, with 1.00 GiB."
    )
    assert scored in growth_section(growth)
    del growth["predict"]  # not measured yet
    assert "Scoring" not in growth_section(growth)


def test_a_kind_that_was_not_measured_is_an_error(growth: dict[str, Any]) -> None:
    del growth["model"]
    with pytest.raises(KeyError, match="model"):
        growth_section(growth)
