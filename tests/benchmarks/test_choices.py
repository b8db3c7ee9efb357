"""The pages that say how the recipe for own pairs was chosen, and whether a choice of pairs saves labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import label_choice
from benchmarks.best_choice import best_page
from benchmarks.choose import GRIDS, choose, measure
from benchmarks.graded_data import ALL_SETS, divide_anew
from benchmarks.label_choice import RULES, label_choice_page, pairs_to_label, summarise
from benchmarks.own_pairs_choice import ALPHAS, choice_page, parse_option
from sts_regression.command.recipes import read_recipe


def make_line(
    name: str, setting: dict[str, Any], draw: int = 201, spearman: float = 0.5, budget: int = 100
) -> dict[str, Any]:
    """A finished run, the better the nearer its alpha is to 0.65."""
    by_alpha = {f"{alpha:g}": spearman - abs(alpha - 0.65) for alpha in ALPHAS}
    run = {"set": name, "budget": budget, "draw": draw, "setting": setting}
    return {**run, "spearman": by_alpha, "untouched": 0.25}


def test_options_are_read_as_json_or_words() -> None:
    words = ["learning_rate=2e-5", "group_intercepts=false", "loss=mse"]
    assert [parse_option(word) for word in words] == [
        ("learning_rate", 2e-5),
        ("group_intercepts", False),
        ("loss", "mse"),
    ]


def test_settings_are_ranked_by_their_mean_on_common_draws() -> None:
    low, library = {"learning_rate": 1e-4}, {"method": "st_cosent"}
    lines = [make_line(name, low, draw, 0.5 + draw / 1e4) for name in ALL_SETS for draw in (201, 202)]
    lines += [make_line(name, {}, draw, 0.6 + draw / 5e3) for name in ALL_SETS for draw in (201, 202)]
    lines += [make_line(name, library) | {"spearman": {"1": 0.4}} for name in ALL_SETS]
    lines.append(make_line("sick", {"loss": "mse"}, spearman=0.99))  # of one corpus alone
    first, second = (section.splitlines() for section in choice_page(lines).split("\n## ")[1:])
    assert first[0] == "100 training pairs, draws 201, 202"
    assert second[0] == "100 training pairs, draw 201"
    assert first[2] == "| setting | 0.35 | 0.5 | 0.65 | 0.8 | 1 | held-out |"
    assert first[4].startswith("| `base` | 34.03 | 49.03 | 64.03 |")
    assert first[5].startswith("| `learning_rate=0.0001` |")
    of_corpora = [line for line in first if line.startswith("| ")][4:]
    header = ["setting", "alpha", *ALL_SETS, "from the best (95 % interval)"]
    assert of_corpora[0] == f"| {' | '.join(header)} |"
    assert of_corpora[2].endswith("| 64.03 | – |")
    assert of_corpora[3].endswith("| 52.02 | -12.01 (-12.08 to -11.95) |")
    assert of_corpora[4].endswith("| 25.00 | -39.03 |")
    assert "| `method=st_cosent` |  |  |  |  | 40.00 |  |" in second
    assert not any("mse" in line for line in [*first, *second])


def test_pairs_that_always_count_as_few_have_tables_of_their_own() -> None:
    runs = [make_line(name, setting, budget=1000) for name in ALL_SETS for setting in ({}, {"loss": "mse"})]
    others, few_texts = choice_page(runs).split("\n## ")[1:]
    assert few_texts.startswith("1,000 training pairs, few texts, draw 201\n")
    assert "| alpha | sag | from" in few_texts
    assert "| alpha | cxc | parade | parabank | ukp_aspect | stsb | sick | from" in others


def test_settings_of_best_are_ranked_by_their_mean_over_corpora() -> None:
    untouched, equal = {"a": 0.5, "b": 0.6}, {"a": 0.6, "b": 0.6}
    lines: list[dict[str, Any]] = [
        {"setting": setting, "spearman": {"0": untouched, "0.5": {"a": 0.7, "b": last}, "1": equal}}
        for setting, last in (({}, 0.7), ({"loss": "mse"}, 0.9), ({"seed": "2"}, 0.6))
    ]
    rows = [line for line in best_page(lines).splitlines() if line.startswith("| `")]
    assert rows[0] == "| `loss=mse` | 0.5 | 1 | 70.00 | 90.00 | 80.00 |"
    assert rows[1] == "| `base` | 0.5 | 2 | 70.00 | 65.00 | 67.50 |"
    assert rows[-1] == "| `untouched` |  | 1 | 50.00 | 60.00 | 55.00 |"


def test_settings_without_a_draw_in_common_have_tables_of_their_own() -> None:
    lines = [
        make_line(name, {"learning_rate": rate}, draw)
        for name in ALL_SETS
        for draw, rates in ((101, (1e-4, 2e-4)), (201, (5e-5, 2e-4)))
        for rate in rates
    ]
    titles = [section.splitlines()[0] for section in choice_page(lines).split("\n## ")[1:]]
    assert titles == ["100 training pairs, draw 101", "100 training pairs, draw 201"]


def test_alpha_may_be_chosen_by_each_run() -> None:
    held_out = [{"0": 0.9, "1": 0.5}, {"0": 0.1, "0.65": 0.4, "1": 0.8}]  # the untouched encoder, and 1
    lines = [{**make_line(name, {}), "held_out": held_out[name == "sick"]} for name in ALL_SETS]
    lines += [make_line(name, {"loss": "mse"}, spearman=0.4) for name in ALL_SETS]
    mean = 100 * (0.25 * (len(ALL_SETS) - 1) + 0.15) / len(ALL_SETS)
    page = choice_page(lines)
    assert f"| 15.00 | {mean:.2f} |" in page
    assert page.endswith(f"\n| 100 | {len(ALL_SETS)} | {len(ALL_SETS) - 1} | {len(ALL_SETS) - 1} | -10.00 |\n")


def test_a_corpus_that_an_earlier_version_divided_differently_is_left_out() -> None:
    lines = [make_line(name, setting) for name in ALL_SETS for setting in ({}, {"loss": "mse"})]
    lines[0] |= {"untouched": 0.27, "spearman": dict.fromkeys(lines[0]["spearman"], 0.9)}  # of the first corpus
    lines[2]["untouched"] += 0.0005  # rounded differently
    page = choice_page(lines)
    first, *others = ALL_SETS
    assert f"| setting | alpha | {' | '.join(others)} | from the best" in page
    assert f"| {first} |" not in page
    assert "90.00" not in page


def test_the_rate_of_a_method_is_chosen_by_both_scores_that_the_comparison_reports() -> None:
    of_cosine, with_head = {"spearman_cosine": 0.8}, {"spearman_cosine": 0.8, "spearman_head": 0.6}
    record = {"results_by_set": {"after training": {"validation": {"a.csv": of_cosine}, "test": {"b.csv": with_head}}}}
    assert measure(record) == pytest.approx({"a": 0.8, "b": 0.7, "mean": 0.75})


@pytest.mark.parametrize("recipe", [recipe for recipe in GRIDS if recipe != "ablation/distillation"])
def test_a_recipe_has_its_chosen_rate(recipe: str) -> None:
    options = read_recipe(Path("recipes", "minilm", f"{recipe}.yaml")).stages[0]
    [rate] = (option.partition("=")[2] for option in options if option.startswith("--learning_rate="))
    assert float(rate) == float(choose(recipe)["chosen"].removeprefix("learning_rate="))


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
    assert page.endswith("Fewer than 5 seeds of a corpus do not show whether a rule saves labels.\n")
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


def test_pairs_are_divided_anew_by_text() -> None:
    rows = [(f"query {i // 4}", f"answer {i}", float(i % 6)) for i in range(80)]
    splits = {"train": rows[:60], "validation": rows[60:72], "test": rows[72:]}
    first, again, other = (divide_anew("parade", splits, seed) for seed in (1, 1, 2))
    assert first == again != other
    queries = {split: {pair[0] for pair in own} for split, own in first.items()}
    assert not queries["train"] & queries["validation"]
    assert queries["train"] | queries["validation"] == {pair[0] for pair in rows[:72]}
    assert {label for own in first.values() for *_, label in own} == {0.0, 0.6, 1.2, 1.8, 2.4, 3.0}
