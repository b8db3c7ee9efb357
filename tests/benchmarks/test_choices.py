"""The pages that say how the recipe for own pairs was chosen, and whether a choice of pairs saves labels."""

from typing import Any

import numpy as np
import pytest

from benchmarks import label_choice
from benchmarks.graded_data import ALL_SETS, divide_anew
from benchmarks.group_intercepts import intercepts_page
from benchmarks.label_choice import RULES, label_choice_page, pairs_to_label, summarise
from benchmarks.own_pairs_choice import ALPHAS, choice_page


def make_line(name: str, budget: int, rate: float, seed: int = 101, spearman: float = 0.5) -> dict[str, Any]:
    """A finished run, the better the nearer its alpha is to 0.65."""
    by_alpha = {f"{alpha:g}": spearman - abs(alpha - 0.65) for alpha in ALPHAS}
    run = {"set": name, "budget": budget, "seed": seed, "learning_rate": rate, "self_distillation": 1.0}
    return {**run, "spearman": by_alpha, "untouched": 0.25}


def test_settings_are_ranked_by_their_mean_on_common_draws() -> None:
    lines = [
        make_line(name, budget, rate, spearman=0.5 + 100 * rate + budget / 1e4)
        for name in ALL_SETS
        for budget in (100, 300)
        for rate in (1e-4, 2e-4)
    ]
    lines += [make_line(name, budget, 1e-4, seed=102, spearman=0.9) for name in ALL_SETS for budget in (100, 300)]
    lines.append(make_line("sick", 100, 4e-4, spearman=0.99))  # of one set alone
    page = choice_page(lines)
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert rows[0] == "| self_distillation | learning_rate | wise_ft_alpha | 100 pairs | 300 pairs | mean |"
    first, second = (table.splitlines() for table in page.split("\n## ")[1:])
    assert first[0] == "100 and 300 training pairs, 2 draws"
    assert second[0] == "100 and 300 training pairs, 1 draw"
    assert first[4] == "| 1 | 0.0001 | 0.65 | 71.00 | 72.00 | 71.50 |"
    rows = [line for line in second if line.startswith("|")]
    assert rows[2:4] == [
        "| 1 | 0.0002 | 0.65 | 53.00 | 55.00 | 54.00 |",
        "| 1 | 0.0001 | 0.65 | 52.00 | 54.00 | 53.00 |",
    ]
    assert len(rows) == 2 + 2 * len(ALPHAS) + 1
    assert rows[-1] == "| untouched |  |  | 25.00 | 25.00 | 25.00 |"
    assert f"pairs of {len(ALL_SETS)} corpora, percent, means over corpora and draws" in page


def test_alpha_may_be_chosen_by_each_run() -> None:
    held_out = [{"0": 0.9, "0.65": 0.5}, {"0": 0.1, "0.65": 0.4, "1": 0.8}]  # the untouched encoder, and 1
    lines = [{**make_line(name, 1000, 2e-4), "held_out": held_out[name == "sick"]} for name in ALL_SETS]
    mean = 100 * (0.25 * (len(ALL_SETS) - 1) + 0.15) / len(ALL_SETS)
    assert f"| 1 | 0.0002 | held-out | {mean:.2f} | {mean:.2f} |" in choice_page(lines)


def make_choice(name: str, seed: int, pairs: int, choice: str, spearman: float) -> dict[str, Any]:
    return {"set": name, "seed": seed, "pairs": pairs, "choice": choice, "spearman": spearman}


def test_a_rule_saves_a_third_if_it_is_as_good_as_more_random_pairs_on_every_set() -> None:
    runs = []
    for name in label_choice.SETS:
        for seed, change in ((1, 0.01), (2, -0.01), (3, 0.0), (4, 0.0), (5, 0.0)):
            for pairs, spearman in ((100, 0.5), (200, 0.6), (300, 0.7)):
                runs.append(make_choice(name, seed, pairs, "random", spearman + change))
            for rule, spearman in zip(RULES, (0.7, 0.65, 0.72 if name == "cxc" else 0.69), strict=True):
                runs.append(make_choice(name, seed, 199, rule, spearman + change))
    summary = summarise(runs)
    first, second, third = RULES
    assert summary["seeds"] == {"cxc": 5, "parade": 5}
    assert summary["sets"]["cxc"][f"200 {third}"] == pytest.approx(0.72)
    assert summary["saves_a_third"] == {first: True, second: False, third: False}
    page = label_choice_page(summary)
    assert "| 300 random | 70.00 | 70.00 |" in page
    assert page.endswith(f"With 200 pairs as good as 300 random pairs, on every set: {first}.\n")
    few = summarise([run for run in runs if run["seed"] < 5 or run["set"] == "cxc"])
    assert few["saves_a_third"] is None
    page = label_choice_page(few)
    assert "mean over seeds (cxc 5, parade 4)." in page
    assert page.endswith("Fewer than 5 seeds of a set say nothing of whether a rule saves labels.\n")
    useless = [run | {"spearman": 0.5} if run["choice"] == "random" else run for run in runs]
    assert not any(summarise(useless)["saves_a_third"].values())  # more labels would not help, either


class Grader:
    """Knows two kinds of pairs, each twice, by their texts."""

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([[1.0, 0.01 * len(text)] if text[0] == "a" else [0.01 * len(text), 1.0] for text in texts])

    def grade(self, pairs: list[tuple[str, str]]) -> list[dict[str, float]]:
        return [{"score": float(number)} for number, _ in enumerate(pairs)]


def test_pairs_to_label_are_of_different_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_choice, "PairGrader", Grader)
    monkeypatch.setattr(label_choice, "FIRST", label_choice.CHOSEN - 2)  # two more
    pairs = [("a", "a", 1.0), ("aa", "aaa", 2.0), ("a", "b", 3.0), ("aa", "bb", 4.0)]
    rows = pairs_to_label(Grader(), pairs, RULES["diverse"])  # type: ignore[arg-type]
    assert len(rows) == 2
    assert {row // 2 for row in rows.tolist()} == {0, 1}


def test_intercepts_are_compared_by_draw() -> None:
    runs = [
        {
            **{"set": name, "budget": 300, "seed": seed, "group_intercepts": has_intercepts, "untouched": 0.5},
            "spearman": {"0.5": 0.6 + has_intercepts * gain, "0.65": 0.7},
        }
        for name, gains in (("sag", (0.01, 0.03)), ("sick", (0.0, 0.0)))
        for seed, gain in enumerate(gains, start=201)
        for has_intercepts in (False, True)
    ]
    rows = intercepts_page([*runs, {**runs[0], "seed": 203}]).splitlines()
    assert "| 300 | 0.5 | `sag` | 2 | +10.00 | +2.00 (-10.71 to +14.71) | 0.295 |" in rows
    assert "| 300 | 0.5 | mean | 2 | +10.00 | +1.00 (-5.35 to +7.35) | 0.295 |" in rows
    assert "| 300 | 0.65 | mean | 2 | +20.00 | +0.00 | – |" in rows


def test_pairs_are_divided_anew_by_text() -> None:
    rows = [(f"query {i // 4}", f"answer {i}", float(i % 6)) for i in range(80)]
    splits = {"train": rows[:60], "validation": rows[60:72], "test": rows[72:]}
    first, again, other = (divide_anew("parade", splits, seed) for seed in (1, 1, 2))
    assert first == again != other
    queries = {split: {pair[0] for pair in own} for split, own in first.items()}
    assert not queries["train"] & queries["validation"]
    assert queries["train"] | queries["validation"] == {pair[0] for pair in rows[:72]}
    assert {label for own in first.values() for *_, label in own} == {0.0, 0.6, 1.2, 1.8, 2.4, 3.0}
