"""The paper's tables and the comparison of methods, from made-up results."""

import json
from pathlib import Path
from typing import Any

from sts_regression.paper_tables import PARTS, cross_encoder_sentence, paper_tables, sweep_sections, verdicts
from sts_regression.sts_tasks import TASK_NAMES
from sts_regression.sweep_report import comparison_table

ROOT = Path(__file__).resolve().parent.parent
RECIPES = ROOT / "recipes" / "paper"


def described(mean: float, sd: float | None = 0.001) -> dict[str, Any]:
    return {"mean": mean, "sd": sd, "values": [mean]}


def cell(mean: float, tests: dict[str, float], head: float | None = None) -> dict[str, Any]:
    """A method that is equally good on all tasks, with its p-value against each baseline."""
    measures = {name: described(mean) for name in (*TASK_NAMES, "average", "development")}
    versus = {name: {"average": {"difference": 0.01, "low": -0.02, "high": 0.03, "p": p}} for name, p in tests.items()}
    scores = {"cosine": {**measures, "versus": versus}}
    if head is not None:
        scores["head"] = {**{name: described(head) for name in measures}, "versus": versus}
    return {"seeds": [1, 2], "seconds": 1.0, **scores}


SUMMARY = {
    "cells": {
        "untouched": cell(0.7, {"best": 0.002}),
        "best": cell(0.8, {"untouched": 0.002}, 0.79),
        "paper": cell(0.6, {"untouched": 0.004, "best": 0.002}, 0.5),
        "mse_linear": cell(0.65, {"untouched": 0.2}, 0.6),
        "smooth_k2_linear": cell(0.66, {"mse_linear": 0.4}, 0.6),
    }
}


def test_what_was_not_measured_stays_empty(tmp_path: Path) -> None:
    lines = paper_tables(RECIPES, tmp_path).splitlines()
    assert "| `bert-smooth_k2` | 72.39 | 78.33 | 75.28 | 80.26 | 74.52 | 78.78 | 72.65 | 76.03 |  |" in lines
    assert "| `bert` | 41.27 |  |" in lines
    assert sum(line.startswith("| `") for line in lines) == len(list(RECIPES.glob("table*/*.yaml")))
    assert all(line.endswith("|  |") for line in lines if line.startswith("| `"))


def test_what_was_measured_stands_beside_it(tmp_path: Path) -> None:
    record = {
        "sts_tasks": {"average": {"cosine": {"all": {"spearman": 0.75}}}},
        "peak_memory_bytes": {"gpu": 4e9, "process": 9e9},
    }
    for name in ("table1/bert-smooth_k2.json", "table4/bert.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(json.dumps(record))
    lines = paper_tables(RECIPES, tmp_path).splitlines()
    assert any(line.startswith("| `bert-smooth_k2` |") and line.endswith("| 76.03 | 75.00 |") for line in lines)
    assert "| `bert` | 41.27 | 4.00 |" in lines


def test_methods_side_by_side() -> None:
    lines = comparison_table(SUMMARY, "cosine", ["untouched"]).splitlines()
    assert lines[0].endswith("| average | against `untouched` | p |")
    assert lines[2].endswith("| 70.00 ± 0.10 | – | – |")
    assert lines[3].endswith("| 80.00 ± 0.10 | +1.00 (-2.00 to +3.00) | 0.002 |")
    assert comparison_table(SUMMARY, "head", ["untouched"]).count("\n") == 5


def test_sweeps_that_were_not_run_have_no_section(tmp_path: Path) -> None:
    (tmp_path / "table6").mkdir()
    (tmp_path / "table6" / "summary.json").write_text(json.dumps(SUMMARY))
    text = sweep_sections(tmp_path, {"table5": ("k and x", "run 5"), "table6": ("features", "run 6")})
    assert text.startswith("### features\n\nCommand: `run 6`.\n\nCosine:")
    assert text.count("###") == 1
    assert text.count("| `best` |") == 2


def test_what_each_part_of_the_recipe_adds(tmp_path: Path) -> None:
    cells = {"best": cell(0.8, {"no_soup": 0.01})} | {
        name: cell(0.79, {"best": 0.002, "no_soup": p}, head=0.79) for p, name in enumerate(PARTS)
    }
    (tmp_path / "ablation").mkdir()
    (tmp_path / "ablation" / "summary.json").write_text(json.dumps({"cells": cells}))
    lines = sweep_sections(tmp_path, {"ablation": ("parts", "run")}).splitlines()
    soup, distillation = lines[-len(PARTS) : -len(PARTS) + 2]
    assert soup.endswith("(`no_soup`) against `best`: cosine +1.00 (95 % interval -2.00 to +3.00, p = 0.002).")
    assert distillation.startswith("- **No self-distillation** (`no_distillation`) against `no_soup`: cosine +1.00")
    assert distillation.endswith("p = 1.000), which is no difference that these seeds show.")
    [header] = (line for line in lines if line.startswith("| method"))
    assert header.endswith("| average | against `best` | p | against `no_soup` | p |")
    assert "Heads: affine functions of the cosine, with the same correlations." in lines


def test_a_sweep_may_score_development_pairs_alone(tmp_path: Path) -> None:
    measured = {score: {"development": described(0.8)} for score in ("cosine", "head")}
    cells = {name: {"seeds": [1], "seconds": 1.0, **measured} for name in ("best", *PARTS)}
    (tmp_path / "held_out").mkdir()
    (tmp_path / "held_out" / "summary.json").write_text(json.dumps({"cells": cells}))
    text = sweep_sections(tmp_path, {"held_out": ("genres", "run")})
    assert "| `best` | 1 | 80.00 ± 0.10 |" in text
    assert text.endswith("Heads: affine functions of the cosine, with the same correlations.")


def test_a_cross_encoder_over_its_seeds() -> None:
    runs = [
        {"results": {"after training": {"test": {"spearman_head": value, "pearson_head": 0.9}}}}
        for value in (0.8, 0.82)
    ]
    assert cross_encoder_sentence(runs) == "STS-B test, 2 seeds: Spearman 81.00 ± 1.41, Pearson 90.00 ± 0.00."


def test_verdicts_are_made_from_the_numbers() -> None:
    lines = verdicts(SUMMARY).splitlines()
    assert lines[0].startswith("- **Smooth K2 instead of MSE, the paper's linear head**: cosine +1.00")
    assert "p = 0.400), which is no difference that these seeds show; head" in lines[0]
    paper = next(line for line in lines if "The paper's two stages" in line)
    assert paper.endswith("p = 0.004); below it on STS12, STS13, STS14, STS15, STS16, STS-B, SICK-R.")
    assert any("on no task below it" in line for line in lines)
    assert "- The head of `best`: STS-B 79.00 (cosine 80.00), STS12–16 79.00 (cosine 80.00)." in lines
