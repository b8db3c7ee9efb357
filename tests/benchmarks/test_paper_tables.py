"""The paper's tables and the comparison of methods, from made-up results."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.tables.paper_tables import (
    PARTS,
    QUESTIONS,
    SweepSection,
    average_without_trained_genres,
    breadth_verdict,
    cross_encoder_sentence,
    equal_rates_table,
    genre_table,
    paper_tables,
    sweep_sections,
    verdicts,
)
from sts_regression.data.sts_tasks import TASK_NAMES
from sts_regression.sweep.report import summary_table

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "recipes" / "paper"


def described(mean: float, sd: float | None = 0.001) -> dict[str, Any]:
    return {"mean": mean, "sd": sd, "values": [mean], "versus": {}}


def result_of(p: float | None) -> dict[str, Any]:
    """A test of two methods, whose p-value Holm's correction has doubled."""
    if p is None:
        return {"difference": 0.01, "pairs": 100, **dict.fromkeys(("low", "high", "p", "p_holm", "detectable"))}
    return {"difference": 0.01, "low": -0.02, "high": 0.03, "p": p / 2, "p_holm": p, "detectable": 0.017, "pairs": 100}


def cell(
    mean: float, tests: dict[str, float | None], head: float | None = None, trains: bool = True
) -> dict[str, Any]:
    """A method that is equally good on all tasks, with its p-value against each baseline."""
    versus = {name: result_of(p) for name, p in tests.items()}
    scores = {
        score: {
            **{name: described(value) for name in (*TASK_NAMES, "development")},
            "average": {**described(value), "versus": versus},
        }
        for score, value in (("cosine", mean), ("head", head))
        if value is not None
    }
    genres = {"cosine": {"STS12": {"MSRpar": {**described(mean - 0.1), "versus": versus}}}}
    return {"seeds": [1, 2] if trains else [1], "seconds": 1.0, "trains": trains, "genres": genres, **scores}


SUMMARY = {
    "headline": "average",
    "tests": 8,
    "cells": {
        "untouched": cell(0.7, {"best": 0.0002}, trains=False),
        "best": cell(0.8, {"untouched": 0.0002}, 0.79),
        "paper": cell(0.6, {"untouched": 0.004, "best": 0.002}, 0.5),
        "mse_linear": cell(0.65, {"untouched": 0.2}, 0.6),
        "smooth_k2_linear": cell(0.66, {"mse_linear": 0.4, "best": 0.03}, 0.6),
    },
}


def test_what_was_not_measured_stays_empty(tmp_path: Path) -> None:
    lines = paper_tables(RECIPES, tmp_path).splitlines()
    assert "| `bert-smooth_k2` | 72.39 | 78.33 | 75.28 | 80.26 | 74.52 | 78.78 | 72.65 | 76.03 |  |" in lines
    assert "| `bert` | 41.27 |  |" in lines
    rows = {path.stem for path in RECIPES.glob("table*/*.yaml") if not path.stem.endswith("_code")}
    assert {line.split("`")[1] for line in lines if line.startswith("| `")} == rows
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
    lines = summary_table(SUMMARY, "cosine", ["untouched"]).splitlines()
    assert lines[0].endswith("| average | against `untouched` | p (Holm) |")
    assert lines[2].endswith("| 70.00 ± 0.10 | – | – |")
    assert lines[3].endswith("| 80.00 ± 0.10 | +1.00 (-2.00 to +3.00) | < 0.001 |")
    assert lines[-1].endswith(" p is adjusted by Holm's method for 8 pairs of methods; intervals are not.")
    assert summary_table(SUMMARY, "head", ["untouched"]).count("\n| `") == 4


def test_genres_of_a_difference() -> None:
    assert genre_table(SUMMARY, ["best"], "untouched").splitlines() == [
        "| task | genre | `untouched` | `best` | difference (95 % interval) |",
        "| --- | --- | --- | --- | --- |",
        "| STS12 | MSRpar | 60.00 | 70.00 | +1.00 (-2.00 to +3.00) |",
    ]


def test_the_average_without_the_genres_that_were_trained_on() -> None:
    cells = {
        name: {
            "cosine": {**{task: {"mean": value} for task in TASK_NAMES}, "average": {"mean": value}},
            "genres": {"cosine": {"STS12": {"without MSRpar and MSRvid": {"mean": value - lost}}}},
        }
        for name, value, lost in (("best", 0.8, 0.14), ("untouched", 0.7, 0.07))
    }
    assert average_without_trained_genres({"cells": cells}, "best", "untouched") == (
        "Without MSRpar and MSRvid in STS12 and STS-B, the average of the seven tasks is 78.00 for `best` and 69.00 "
        "for `untouched`: a difference of +9.00 in place of +10.00."
    )


def test_the_aim_on_pairs_unlike_the_training_pairs() -> None:
    def changed(*differences: float) -> dict[str, Any]:
        first, second, third = ({"versus": {"untouched": {"difference": change}}} for change in differences)
        of_sts12 = {"without MSRpar and MSRvid": first, "SMTnews": second, "MSRpar": first}
        return {"genres": {"cosine": {"STS12": of_sts12, "STS-B": {"images": third}}}}

    summary = {"cells": {"best": changed(0.002, -0.01, 0.003), "broad": changed(0.001, 0.002, 0.003)}}
    assert breadth_verdict(summary, ["best", "broad"], "untouched") == (
        "Genres of a task above `untouched`: `best` in 2 of 3, `broad` in 3 of 3. "
        "Aim: above it on each of STS12 without MSRpar and MSRvid, STS12 SMTnews, STS-B images: "
        "`best` +0.20, -1.00, +0.30, **missed**; `broad` +0.10, +0.20, +0.30, reached."
    )


def test_a_sweep_that_was_not_run_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "table6").mkdir()
    (tmp_path / "table6" / "summary.json").write_text(json.dumps(SUMMARY))
    with pytest.raises(ValueError, match=r"table5.summary\.json: no such"):
        sweep_sections(
            tmp_path, {"table5": SweepSection("k and x", "run 5"), "table6": SweepSection("features", "run 6")}
        )
    text = sweep_sections(tmp_path, {"table6": SweepSection("features", "run 6")})
    assert text.startswith("### features\n\nCommand: `run 6`.\n\nCosine:")
    assert text.count("p is adjusted by Holm's method") == 2
    assert text.count("###") == 1
    assert text.count("| `best` |") == 2


def test_what_each_part_of_the_recipe_adds(tmp_path: Path) -> None:
    cells = {"best": cell(0.8, {"distillation": 0.01})} | {
        name: cell(0.79, {"best": 0.002, "distillation": p}, head=0.79) for p, name in enumerate(PARTS)
    }
    (tmp_path / "ablation").mkdir()
    summary = {"headline": "average", "tests": 15, "cells": cells}
    (tmp_path / "ablation" / "summary.json").write_text(json.dumps(summary))
    lines = sweep_sections(tmp_path, {"ablation": SweepSection("parts", "run")}).splitlines()
    averaging, *_, embeddings = lines[-len(PARTS) :]
    assert "** (`no_averaging`) against `best`, 2 seeds each: cosine +1.00 (95 % interval " in averaging
    assert averaging.endswith("-2.00 to +3.00, adjusted p = 0.002).")
    assert "trained, too** (`trained_embeddings`) against `distillation`, 2 seeds each: cosine" in embeddings
    assert embeddings.endswith("adjusted p = 4.000), not significant.")
    [header] = (line for line in lines if line.startswith("| method"))
    assert header.endswith("| average | against `best` | p (Holm) | against `distillation` | p (Holm) |")
    assert any("A head that maps the cosine has the same correlations as the cosine." in line for line in lines)
    assert "Head:" not in lines


def test_a_sweep_may_score_development_pairs_alone(tmp_path: Path) -> None:
    measured = {score: {"development": described(0.8)} for score in ("cosine", "head")}
    cells = {name: {"seeds": [1], "seconds": 1.0, **measured} for name in ("best", *PARTS)}
    (tmp_path / "held_out").mkdir()
    summary = {"headline": "development", "tests": 0, "cells": cells}
    (tmp_path / "held_out" / "summary.json").write_text(json.dumps(summary))
    text = sweep_sections(tmp_path, {"held_out": SweepSection("genres", "run")})
    assert "| `best` | 1 | 80.00 ± 0.10 |" in text
    assert text.endswith("A head that maps the cosine has the same correlations as the cosine.")


def test_a_cross_encoder_over_its_seeds() -> None:
    runs = [
        {"results": {"after training": {"test": {"spearman_head": value, "pearson_head": 0.9}}}}
        for value in (0.8, 0.82)
    ]
    assert cross_encoder_sentence(runs) == "STS-B test, 2 seeds: Spearman 81.00 ± 1.41, Pearson 90.00 ± 0.00."


def chosen_rates(**rates: str) -> dict[str, Any]:
    """A choice of learning rates, with means that follow from name and rate."""
    return {
        name: {"chosen": f"learning_rate={rate}", "settings": {f"learning_rate={r}": {"mean": 0.5} for r in "12"}}
        for name, rate in rates.items()
    }


def test_losses_are_compared_at_equal_rates() -> None:
    names = {name for _, *cells in QUESTIONS for name in cells}
    choice = chosen_rates(**dict.fromkeys(names, "1"))
    choice["smooth_k2_cosine"]["settings"]["learning_rate=2"] = {"mean": 0.5025}
    header, _, *rows = equal_rates_table(choice).splitlines()
    assert header == "|  | 1 | 2 |"
    assert rows[1] == "| Smooth K2 instead of MSE, affine function of the cosine | +0.00 | +0.25 |"


def test_verdicts_are_made_from_the_numbers() -> None:
    lines = verdicts(SUMMARY, chosen_rates(smooth_k2_linear="1e-4", mse_linear="5e-5")).splitlines()
    verdict = (
        "+1.00 (95 % interval -2.00 to +3.00, adjusted p = 0.400; before adjustment, 80 % power for a difference of "
        "1.70), not significant"
    )
    question = "- **Smooth K2 instead of MSE, the paper's linear head**, 2 seeds each, learning rates 1e-4 and 5e-5"
    assert lines[0] == f"{question}: cosine {verdict}; head {verdict}."
    paper = next(line for line in lines if "The paper's two stages" in line)
    assert "against the untouched encoder, 2 seeds: cosine +1.00" in paper
    assert paper.endswith("adjusted p = 0.004); below it on STS12, STS13, STS14, STS15, STS16, STS-B, SICK-R.")
    assert any("adjusted p < 0.001); below it on no task" in line for line in lines)
    assert "- The head of `best`: STS-B 79.00 (cosine 80.00), STS12–16 79.00 (cosine 80.00)." in lines
    assert "(`smooth_k2_linear`) against ours (`best`), 2 seeds each: cosine" in lines[-1]


def test_verdicts_of_one_seed_say_that_there_is_no_test() -> None:
    cells = {"mse_linear": cell(0.65, {}), "smooth_k2_linear": {**cell(0.66, {"mse_linear": None}), "seeds": [1]}}
    choice = chosen_rates(smooth_k2_linear="1e-4", mse_linear="1e-4")
    [line] = verdicts({"headline": "average", "tests": 0, "cells": cells}, choice).splitlines()
    assert line.endswith(
        "linear head**, 1 and 2 seeds, learning rates 1e-4 and 1e-4: cosine +1.00, which one seed does not test."
    )


def test_the_generator_refuses_a_summary_of_an_earlier_version(tmp_path: Path) -> None:
    (tmp_path / "table6").mkdir()
    (tmp_path / "table6" / "summary.json").write_text(json.dumps({"cells": SUMMARY["cells"]}))
    with pytest.raises(ValueError, match=r"table6/summary\.json: an earlier version wrote it"):
        sweep_sections(tmp_path, {"table6": SweepSection("features", "run 6")})
