"""The benchmark of own graded pairs: order of runs, kept files, choices, and tables."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks import graded_pairs
from benchmarks.graded_methods import METHODS, Predictions, Task, measure_predictions
from benchmarks.graded_pairs import GradedRun, choices_of, chosen_lines, chosen_settings, measure_run, runs_of_seeds
from benchmarks.new_corpora import RIVAL
from benchmarks.tables import graded_overview, graded_table
from benchmarks.tables.graded_table import (
    INTERVAL_MEASURES,
    NEAREST,
    blocked_test,
    resample_kept,
    summarize_graded,
    write_graded_tables,
)
from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.significance import SeedScores, holm, over_seeds

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("cat", "dog", "man", "park", "water", "house", "red", "big")
NEEDS = {"st_cosent_1_epoch": "sentence_transformers", "lora": "peft"}  # further packages that a method needs


def made_up_pairs(count: int) -> list[tuple[str, str, float]]:
    """Grades from 0 to 3, which say how many of three words a pair shares."""
    draw = np.random.default_rng(0)
    pairs = []
    for number in range(count):
        words = draw.choice(WORDS, 3, replace=False)
        others = [word if place < number % 4 else "other" for place, word in enumerate(words)]
        pairs.append((f"{' '.join(words)} {number}", " ".join(others), float(number % 4)))
    return pairs


def line_of(
    method: str,
    name: str,
    seed: int,
    spearman: float,
    budget: str = "100",
    settings: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    settings = dict(settings or {})
    run = GradedRun(name, budget, method, settings, seed)
    measures = {"spearman": spearman, "spearman_cosine": 0.5, "mae": seed / 2, "quadratic_kappa": 0.25}
    return {
        **{"key": run.key, "set": name, "budget": budget, "method": method, "settings": settings, "seed": seed},
        **{"validation": measures, "test": measures, "seconds": 10.0 * seed, "peak_memory_bytes": 10**9},
        **{"commit": "c0ffee", "uncommitted_changes": False},
    }


def lines_of(method: str, values: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """A line for each value of each set, with the seeds 1, 2, …"""
    return [line_of(method, name, seed, value) for name, own in values.items() for seed, value in enumerate(own, 1)]


@pytest.mark.parametrize(
    "method", ["untouched", "st_cosent_1_epoch", "frozen_ridge", "frozen_head", "default", "lora"]
)
def test_each_kind_of_method_learns_and_scores(method: str, tiny_encoder_path: Path) -> None:
    pytest.importorskip(NEEDS.get(method, "torch"))
    pairs = made_up_pairs(160)
    shares = {"train": pairs[:120], "validation": pairs[120:140], "test": pairs[140:]}
    run = GradedRun("parade", "100", method, METHODS[method].grid[-1], 1)
    record, scores = measure_run(run, shares, ("validation", "test"), str(tiny_encoder_path))
    assert record["train_pairs"] == 100
    assert record["seconds"] > 0
    assert record["peak_memory_bytes"] > 10**7
    for split in ("validation", "test"):
        found = scores[split]
        assert all(
            array is None or array.shape == (20,) for array in (found.scores.head, found.scores.cosine, found.grades)
        )
        labels = np.array([label for *_, label in shares[split]])
        assert record[split] == measure_predictions(found, labels, top_grade=3)
    assert (scores["test"].scores.head is None) == (method in ("untouched", "st_cosent_1_epoch"))


@pytest.mark.parametrize("start", ["mean", "cosine"])
def test_a_linear_head_starts_as_named(start: str, tiny_encoder_path: Path, tmp_path: Path) -> None:
    pairs = made_up_pairs(40)
    method = METHODS[f"linear_from_{start}"]
    settings = {"max_steps": 1, "learning_rate": 1e-9, "head_learning_rate": 1e-9, "interval_level": 0}
    scorer = method.learn(Task(pairs, 3, 1, tmp_path, str(tiny_encoder_path)), {**method.options, **settings})
    first, second, labels = map(list, zip(*pairs, strict=True))
    scores = scorer(first, second).scores
    assert scores.head is not None
    assert scores.cosine is not None
    if start == "cosine":
        assert np.allclose(scores.head, 3 * scores.cosine, atol=1e-4)
    else:
        assert abs(np.mean(scores.head) - np.mean(labels)) < 1


def test_a_method_sees_its_budget_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def learn(task: Any, options: Mapping[str, Any]) -> Callable[[list[str], list[str]], Predictions]:
        seen.append((task.pairs, task.top_grade, task.seed, dict(options), task.folder.is_dir()))
        return lambda first, second: Predictions(PairScores(np.arange(len(first), dtype=float), None))

    method = graded_pairs.METHODS["linear"]
    monkeypatch.setitem(graded_pairs.METHODS, "linear", type(method)(learn, {"a": 1}, ("b", (2.0,))))
    pairs = made_up_pairs(500)
    shares = {"train": pairs[:400], "validation": pairs[400:450], "test": pairs[450:]}
    run = GradedRun("parade", "300", "linear", {"b": 2.0}, 3)
    record, scores = measure_run(run, shares, ("validation",), None)
    (given, top_grade, seed, options, had_folder) = seen[0]
    assert len(set(given)) == 300
    assert set(given) <= set(pairs[:400])
    assert (top_grade, seed, options, had_folder) == (3, 3, {"a": 1, "b": 2.0}, True)
    assert set(scores) == {"validation"}
    assert record["validation"]["spearman_cosine"] is None


def test_measures_are_of_what_a_user_reads() -> None:
    labels = np.array([0.0, 0.4, 1.5, 3.0])  # grades 0, 0, 2, 3
    cosine = np.array([-0.1, 0.2, 0.4, 0.9])  # times 3: -0.3, 0.6, 1.2, 2.7; grades 0, 1, 1, 3
    measures = measure_predictions(Predictions(PairScores(None, cosine)), labels, top_grade=3)
    # Squared errors 0 1 1 0 against those of chance: of gold 0 0 2 3 and predicted 0 1 1 3 in all 16 combinations.
    chance = np.mean([(gold - read) ** 2 for gold in (0, 0, 2, 3) for read in (0, 1, 1, 3)])
    assert measures == {
        "spearman": pytest.approx(1),
        "spearman_cosine": pytest.approx(1),
        "mae": 0.5,
        "quadratic_kappa": pytest.approx(1 - 0.5 / chance),
        **dict.fromkeys(("coverage", "coverage_of_a_grade", "width")),
    }
    head = np.array([3.0, 1.9, 1.2, 0.1])
    read = Predictions(PairScores(head, cosine), np.array([0.0, 0.0, 2.0, 3.0]))
    assert measure_predictions(read, labels, top_grade=3)["mae"] == 0  # of the grades, not of the scores
    measures = measure_predictions(Predictions(PairScores(head, cosine)), labels, top_grade=3)
    assert measures["spearman"] == pytest.approx(-1)
    assert measures["spearman_cosine"] == pytest.approx(1)
    assert measures["mae"] == (3 + 2 + 1 + 3) / 4


def test_settings_are_chosen_by_the_mean_over_sets_that_all_settings_have() -> None:
    rates = METHODS["cosine"].grid
    lines = [
        line_of("cosine", name, 0, spearman, settings=settings)
        for name, best in (("stsb", 1), ("sick", 2), ("cxc", 0))
        for number, settings in enumerate(rates)
        for spearman in [0.8 - 0.1 * abs(number - best) * (1 if name == "stsb" else 3)]
        if (name, number) != ("cxc", 3)  # this set says nothing yet
    ]
    choice = choices_of(lines)["cosine"]["100"]
    assert choice["chosen"] == rates[2]
    assert [list(tried["by_set"]) for tried in choice["settings"]] == [["stsb", "sick"]] * 4
    assert choice["settings"][2]["mean"] == pytest.approx((0.7 + 0.8) / 2)
    assert choices_of([line for line in lines if line["settings"] != rates[0]]) == {}


def test_runs_are_ordered_so_that_what_is_done_first_is_balanced() -> None:
    words = ["run", "--graded_data", "g", "--sts_data", "s", "--seeds", "2", "--budgets", "300", "100"]
    args = graded_pairs.parse_command([*words, "--sets", "stsb", "cxc", "--methods", "default", "untouched"])
    keys = [run.key for run in runs_of_seeds(args, {})]
    assert keys[:4] == [f"{name}-100-{m}-seed-1" for name in ("cxc", "stsb") for m in ("untouched", "default")]
    assert keys[8:] == [f"{name}-{budget}-default-seed-2" for budget in ("100", "300") for name in ("cxc", "stsb")]
    args.methods = ["cosine"]
    with pytest.raises(ValueError, match="cosine has no chosen settings for a budget of 100 pairs"):
        runs_of_seeds(args, {"cosine": {"300": {"chosen": {}}}})
    assert chosen_settings({"cosine": {"100": {"chosen": {"learning_rate": 1e-5}}}}, "cosine", "100") == {
        "learning_rate": 1e-5
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--sets", "cxc", "--jobs", "0"], "--jobs must be at least 1, but is 0"),
        (["choose", "--sets", "cxc"], "ukp_aspect need --graded_data"),
        (["run", "--sets", "cxc", "stsb", "--graded_data", "g"], "stsb, sick need --sts_data"),
    ],
)
def test_commands_that_cannot_run_are_refused(words: list[str], message: str, capsys: Any) -> None:
    with pytest.raises(SystemExit, match="2"):
        graded_pairs.parse_command(words)
    assert message in capsys.readouterr().err


def test_runs_of_another_encoder_are_not_mixed_in(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_text(json.dumps({"key": "a", "model": "another"}) + "\n")
    args = graded_pairs.parse_command(["table", "--output_dir", str(tmp_path)])
    with pytest.raises(ValueError, match=r"`--model_name_or_path` is None, but .* holds runs of another"):
        graded_pairs.run_missing([], args, "runs.jsonl")


def test_lines_of_an_earlier_choice_are_left_out() -> None:
    lines = [line_of("cosine", "stsb", 1, 0.5, settings={"learning_rate": rate}) for rate in (1e-5, 2e-5)]
    choice = {"cosine": {"100": {"chosen": {"learning_rate": 2e-5}}}}
    assert chosen_lines([*lines, line_of("default", "stsb", 1, 0.6)], choice) == [
        lines[1],
        line_of("default", "stsb", 1, 0.6),
    ]


def test_what_is_run_is_kept_resumed_and_tabulated(tiny_encoder_path: Path, tmp_path: Path) -> None:
    for name in ("peft", "sentence_transformers"):  # loaded before the forks
        pytest.importorskip(name)
    data = tmp_path / "data"
    data.mkdir()
    with (data / "parade.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *made_up_pairs(240)])
    # In a fresh process, because it forks, and that of the tests has threads.
    script = """
import os, sys
os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
from benchmarks import graded_pairs
graded_pairs.METHODS["linear"] = graded_pairs.METHODS["untouched"].__class__(None)  # which is an error
folder, model = sys.argv[1:]
words = [f"--graded_data={folder}/data", f"--output_dir={folder}/results", f"--scores_dir={folder}/scores"]
words += [f"--model_name_or_path={model}", "--jobs=2", "--seeds=2", "--sets", "parade", "--budgets", "100"]
words += ["--methods"]
graded_pairs.main(["choose", *words, "frozen_ridge", "untouched"])
print("run")
graded_pairs.main(["run", *words, "frozen_ridge", "untouched"])
with open(f"{folder}/results/runs.jsonl") as file:
    lines = file.readlines()
with open(f"{folder}/results/runs.jsonl", "w") as file:
    file.writelines(line for line in lines if "untouched" not in line)
print("again")
try:
    graded_pairs.main(["run", *words, "frozen_ridge", "untouched", "linear"])
except SystemExit as error:
    print(error)
graded_pairs.main(["table", *words, "untouched"])
"""
    command = [sys.executable, "-c", script, str(tmp_path), str(tiny_encoder_path)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    chosen, _, rest = finished.stdout.partition("run\n")
    first, _, again = rest.partition("again\n")
    assert len(chosen.splitlines()) == 5  # the grid of the one method that has a grid
    assert len(first.splitlines()) == 3  # two seeds of it, one of the encoder as it is
    repeated, *failed = again.splitlines()
    assert repeated.startswith("1/3 parade-100-untouched-seed-1: ")
    expected = ["2 runs failed; the same command tries them again:", *(f"parade-100-linear-seed-{s}" for s in (1, 2))]
    assert [failed[0], *sorted(failed[1:])] == expected
    assert "'NoneType' object is not callable" in finished.stderr

    results = tmp_path / "results"
    lines = [json.loads(line) for line in (results / "runs.jsonl").read_text().splitlines()]
    assert sorted(line["key"] for line in lines)[-1] == "parade-100-untouched-seed-1"
    assert len(lines) == 3
    kept = [path.name for path in (tmp_path / "scores").glob("*.npz")]
    assert sorted(kept) == sorted(["parade.npz", *(f"{line['key']}.npz" for line in lines)])
    choice = json.loads((results / "choice.json").read_text())["frozen_ridge"]["100"]
    assert "test" not in json.loads((results / "choice.jsonl").read_text().splitlines()[0])
    assert len(choice["settings"]) == 5
    assert choice["chosen"] == max(choice["settings"], key=lambda tried: tried["mean"])["settings"]
    summary = json.loads((results / "graded_pairs.json").read_text())
    ridge = summary["budgets"]["100"]["methods"]["frozen_ridge"]
    own = [line["test"]["spearman"] for line in lines if line["method"] == "frozen_ridge"]
    assert ridge["by_set"]["parade"]["spearman"] == pytest.approx(np.mean(own))
    assert ridge["by_set"]["parade"]["seeds"] == 2
    assert ridge["mean"]["low"] < np.mean(own) < ridge["mean"]["high"]
    assert (results / "graded_pairs.png").stat().st_size > 1000


def test_the_table_of_made_up_runs() -> None:
    lines = [
        *lines_of("untouched", {"stsb": [0.5], "sick": [0.6]}),
        *lines_of("st_cosent", {"stsb": [0.78, 0.79], "sick": [0.70, 0.70]}),
        *lines_of("st_angle", {"stsb": [0.70, 0.71], "sick": [0.60, 0.62]}),
        *lines_of("default", {"stsb": [0.80, 0.82], "sick": [0.70, 0.74]}),
    ]
    summary = summarize_graded(lines[::-1], lambda line: None)
    assert summary["sets"] == ["stsb", "sick"]
    assert summary["commits"] == ["c0ffee"]
    assert summary["tests"] == 3
    found = summary["budgets"]["100"]
    default = found["methods"]["default"]
    assert default["by_set"]["sick"] == {
        **{"seeds": 2, "spearman": pytest.approx(0.72), "spearman_cosine": 0.5},
        **{"mae": 0.75, "quadratic_kappa": 0.25, "seconds": 15.0, "peak_memory_bytes": 1e9},
        **dict.fromkeys([*NEAREST, *INTERVAL_MEASURES]),
    }
    # Variances of the means: 1e-4 and 4e-4, of one degree of freedom each; of the mean of both a quarter of the sum.
    half = stats.t.ppf(0.975, 1) * ((1e-4 + 4e-4) / 4) ** 0.5
    assert default["mean"]["spearman"] == pytest.approx(0.765)
    assert default["mean"]["low"] == pytest.approx(0.765 - half)
    assert default["mean"]["high"] == pytest.approx(0.765 + half)
    assert found["methods"]["untouched"]["mean"]["low"] is None  # nothing varies
    # Differences by seed: 0.02 and 0.03, 0 and 0.04.
    p = 2 * stats.t.sf(0.0225 / ((2.5e-5 + 4e-4) / 4) ** 0.5, 1)
    versus = found["versus"]
    assert list(versus) == ["untouched", "st_cosent", "st_angle"]
    assert versus["st_cosent"]["difference"] == pytest.approx(0.0225)
    assert versus["st_cosent"]["p"] == pytest.approx(p)
    assert {name: test["p_holm"] for name, test in versus.items()} == pytest.approx(
        holm({name: test["p"] for name, test in versus.items()})
    )
    assert versus["st_angle"]["p"] < p / 2


@pytest.mark.parametrize(
    ("rival", "said"),
    [
        ("st_cosent_1_epoch", "those of its training overview, not tuned"),
        ("st_cosent", "with 100 pairs, those of its STS-B example with a learning rate chosen on development pairs"),
    ],
)
def test_the_overview_says_which_settings_of_the_library_were_measured(rival: str, said: str) -> None:
    lines = [
        *lines_of("untouched", {"stsb": [0.5]}),
        *lines_of(rival, {"stsb": [0.78, 0.79]}),
        *lines_of("default", {"stsb": [0.80, 0.82]}),
    ]
    assert said in graded_overview.overview(summarize_graded(lines, lambda line: None))


@pytest.mark.parametrize(
    ("default", "is_significant", "is_worse"),
    [
        ({"stsb": [0.80, 0.81, 0.80], "sag": [0.95, 0.96, 0.95]}, True, False),
        ({"stsb": [0.30, 0.99, 0.50], "sag": [0.75, 0.70, 0.72]}, False, True),
    ],
)
def test_the_headline_marks_significant_gains_counts_corpora_and_names_losses(
    default: dict[str, list[float]], is_significant: bool, is_worse: bool
) -> None:
    lines = [
        *lines_of("untouched", {"stsb": [0.5], "sag": [0.9]}),
        *lines_of("st_cosent", {"stsb": [0.49, 0.51, 0.5], "sag": [0.79, 0.81, 0.8]}),
        *lines_of("default", default),
    ]
    summary = summarize_graded(lines, lambda line: None)
    gain = summary["budgets"]["100"]["versus"]["untouched"]["difference"]
    test = {"p_holm": 0.01 if is_significant else 0.06, "low": -0.01, "high": 0.03}
    elsewhere = {
        name: {"budgets": {budget: {"tests": {RIVAL: {**test, "difference": found}}} for budget in ("100", "all")}}
        for name, found in (("first", -0.0321), ("now", 0.0123))
    }
    shown = graded_overview.headline(summary, elsewhere)
    gain_elsewhere = "+1.23 (-1.00 to +3.00)" + (", significant," if is_significant else "")
    gains = "gains over sentence-transformers are "
    gains += f"{gain_elsewhere} with 100 pairs and {gain_elsewhere} with all pairs"
    gains += "" if is_significant else ", not significant"
    assert f"{gains}. Before two recipe changes, one prompted by these corpora: -3.21 and -3.21." in shown
    assert (f"**{100 * gain:+.2f} (" in shown) is is_significant
    assert ("| 1/2 |" if is_worse else "| 2/2 |") in shown
    assert ("On short-answer grading (100 pairs), the trained encoder ranked worse" in shown) is is_worse


def test_a_partial_table_says_how_many_seeds_its_cells_have(tmp_path: Path) -> None:
    lines = [
        *lines_of("untouched", {"stsb": [0.5], "sick": [0.6], "cxc": [0.4]}),
        *lines_of("st_cosent", {"stsb": [0.78, 0.79, 0.8], "sick": [0.7]}),
        *lines_of("default", {"stsb": [0.80, 0.82], "sick": [0.70, 0.74], "cxc": [0.5]}),
        line_of("default", "stsb", 1, 0.9, budget="all"),
        line_of("default", "stsb", 1, 0.8, budget="1000"),
    ]
    write_graded_tables(lines, tmp_path / "graded_pairs", tmp_path / "no-scores")
    summary = json.loads((tmp_path / "graded_pairs.json").read_text())
    assert list(summary["budgets"]) == ["100", "1000", "all"]
    assert summary["budgets"]["100"]["methods"]["st_cosent"]["mean"] is None  # without cxc it is another mean
    page = (tmp_path / "graded_pairs.md").read_text()
    assert "| method | setting | mean of sets | cxc | stsb | sick | cosine | MAE | kappa | seconds | GB |" in page
    assert "| `st_cosent` |  | – | – | 79.00 (3) | 70.00 (1) | – | – | – | – | – |" in page
    assert (
        "| **`default`** |  | 67.67 | 50.00 (1) | 81.00 (2) | 72.00 (2) | 50.00 | 0.667 | 0.250 | 13 | 1.00 |" in page
    )
    assert "| 100 | `st_cosent` | 2 | 1 | these | +1.25 | – |" in page
    assert page.index("## 1,000 pairs") < page.index("## All pairs, at most 5,000")
    assert (tmp_path / "graded_pairs.png").is_file()
    with pytest.raises(ValueError, match="holds no finished run of the chosen settings"):
        write_graded_tables([], tmp_path / "graded_pairs", tmp_path)


def test_budgets_without_runs_stay_as_they_are(tmp_path: Path) -> None:
    def write(*lines: dict[str, Any]) -> dict[str, Any]:
        write_graded_tables(lines, tmp_path / "graded_pairs", tmp_path / "no-scores")
        return json.loads((tmp_path / "graded_pairs.json").read_text())

    few = [*lines_of("untouched", {"stsb": [0.5]}), *lines_of("default", {"stsb": [0.80, 0.82]})]
    before = write(*few)
    after = write(*[{**line, "set": "sick", "budget": "all", "commit": "bee"} for line in few])
    assert list(after["budgets"]) == ["100", "all"]
    assert after["sets"] == ["stsb", "sick"]
    assert after["commits"] == ["bee", "c0ffee"]
    assert after["tests"] == 2
    old, new = (summary["budgets"]["100"]["versus"]["untouched"] for summary in (before, after))
    assert (old.pop("p_holm"), new.pop("p_holm")) == (old["p"], pytest.approx(2 * old["p"]))
    assert new == old


def test_test_pairs_are_resampled_if_their_scores_are_kept(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    gold = generator.uniform(0, 3, 60)
    np.savez(tmp_path / "parade.npz", gold=gold, group=np.repeat(np.arange(30), 2))
    lines = lines_of("default", {"parade": [0.8, 0.8001]})
    common = gold + generator.normal(size=60)  # errors of all seeds
    for line in lines:
        score = common + 0.1 * generator.normal(size=60)
        np.savez(tmp_path / f"{line['key']}.npz", score=score.astype(np.float16))
    found = resample_kept(tmp_path, lines[0])
    assert found is not None
    samples, sizes = found
    assert (samples.shape, sizes.tolist()) == ((1000,), [2] * 30)

    def width(lines: list[dict[str, Any]], folder: Path) -> float:
        summary = summarize_graded(lines, lambda line: resample_kept(folder, line))
        mean = summary["budgets"]["100"]["methods"]["default"]["mean"]
        return mean["high"] - mean["low"]

    assert width(lines, tmp_path / "elsewhere") < 0.01 < width(lines, tmp_path)
    # A method that equals another one but for the pairs that score it differs from it by nothing.
    same = [{**line, "method": "st_cosent"} for line in lines]
    versus = summarize_graded([*lines, *same], lambda line: resample_kept(tmp_path, line))["budgets"]["100"]["versus"]
    assert versus["st_cosent"]["difference"] == 0


def test_grades_and_intervals_are_compared_with_the_nearest_grade_and_the_aims(tmp_path: Path) -> None:
    lines = lines_of("default", {"parade": [0.8, 0.9], "stsb": [0.8]})
    for line in lines:
        line["test"] = {**line["test"], "coverage": 0.915, "coverage_of_a_grade": 0.84, "width": 1.5}
    lines[1]["test"]["coverage"] = 0.935
    # Nearest grades 0, 1, 3 and 3 for the grades 0, 1, 2 and 3: MAE 1 / 4. Errors squared sum to 1, those of all
    # combinations of grades to 48 / 4: kappa 1 - 1 / 12.
    np.savez(tmp_path / "parade.npz", gold=np.array([0.0, 1.4, 2.0, 3.0]), group=np.arange(4))
    for line in lines[:2]:
        np.savez(tmp_path / f"{line['key']}.npz", score=np.array([-0.6, 1.2, 2.5, 3.7]))
    write_graded_tables(lines, tmp_path / "graded_pairs", tmp_path)
    page = (tmp_path / "graded_pairs.md").read_text()
    assert "| 100 | parade | 0.750 | 0.250 | 0.250 | 0.917 | 92.50 | 84.00 | 1.50 of 3 |" in page
    assert "| 100 | stsb | 0.500 | – | 0.250 | – | 91.50 | 84.00 | 1.50 of 5 |" in page
    assert "a lower MAE than that of the nearest grade: 0 of 1 rows;" in page
    assert "90 % intervals that cover 88 to 92 % of the pairs: 1 of 2;" in page
    assert "and at least 85 % of each grade with 20 pairs or more: 0 of 2." in page


def test_the_corpus_that_causes_most_of_the_variance_is_named_and_left_out() -> None:
    scores = {"sag": [0.2, 0.5], "stsb": [0.8, 0.81], "sick": [0.7, 0.72]}
    lines = [*lines_of("default", scores), *lines_of("untouched", {name: [0.4] for name in scores})]
    lines += lines_of("st_cosent", {name: [0.4, 0.4] for name in scores})
    summary = summarize_graded(lines, lambda line: None)
    test = summary["budgets"]["100"]["versus"]["st_cosent"]
    variances = [np.var(values, ddof=1) / 2 for values in scores.values()]
    assert test["largest"] == ("sag", "seeds", pytest.approx(variances[0] / sum(variances)))
    others = [over_seeds([value - 0.4 for value in scores[name]], True) for name in ("stsb", "sick")]
    assert test["without_it"]["difference"] == pytest.approx(0.3575)
    assert test["without_it"]["p"] == pytest.approx(blocked_test(others)["p"])
    low, high = (100 * test["without_it"][end] for end in ("low", "high"))
    assert (
        "Short-answer grading causes 99% of the variance of the gains over sentence-transformers; without it, "
        f"they are +35.75 ({low:+.2f} to {high:+.2f})."
    ) in graded_overview.overview(summary)


def test_shares_of_the_variance_rise_from_the_smallest() -> None:
    difference = {"difference": 0.01, "low": 0.0, "high": 0.02}
    tests = [{"largest": ("sag", "seeds", share), "without_it": difference} for share in (0.999, 0.61)]
    assert "causes 61% to 100% of the variance" in graded_overview._limit(tests)


@pytest.mark.parametrize(("num_seeds", "knows_pairs"), [(2, False), (2, True), (3, True), (4, False), (5, True)])
@pytest.mark.parametrize("of_seeds", [1.0, 2.5])
def test_without_a_gain_blocks_find_one_as_rarely_as_they_say(
    num_seeds: int, knows_pairs: bool, of_seeds: float
) -> None:
    level, num_rounds, generator = 0.05, 400, np.random.default_rng(0)
    found = 0
    for _ in range(num_rounds):
        blocks = []
        for seeds_sd, pairs_sd in [(0.5, 0.6)] * 6 + [(of_seeds, 2.0)]:  # as in our tables, one block varies most
            shift = generator.normal(0, pairs_sd) if knows_pairs else 0.0
            resampled = pairs_sd * np.array([1.0, -1.0]) / np.sqrt(2) if knows_pairs else None  # has this deviation
            values = generator.normal(shift, seeds_sd, num_seeds)
            blocks.append(SeedScores(tuple(values), True, resampled, 0.0, np.ones(300)))
        p = blocked_test(blocks)["p"]
        found += p is not None and p < level
    assert found <= stats.binom.ppf(0.99, num_rounds, level)


def test_one_block_is_tested_as_by_student() -> None:
    values = [0.1, 0.2, 0.4]
    test = blocked_test([over_seeds(values, trains=True)])
    expected = stats.ttest_1samp(values, 0)
    interval = expected.confidence_interval(0.95)
    assert test["difference"] == pytest.approx(np.mean(values))
    assert test["p"] == pytest.approx(expected.pvalue)
    assert (test["low"], test["high"]) == pytest.approx((interval.low, interval.high))
    assert blocked_test([over_seeds(values, True), over_seeds([0.3], True)])["p"] is None


def test_far_below_the_others_a_method_is_an_arrow_with_its_number() -> None:
    axes = graded_table.Figure().add_subplot()
    gain = {"difference": 0.02, "low": 0.01, "high": 0.03}
    graded_table.draw_gains(
        axes, {"cosine": gain, "linear": {**gain, "difference": -0.4}, "lora": None, "default": gain}
    )
    assert [text.get_text() for text in axes.texts] == ["-40.0"]
    drawn = np.concatenate([np.ravel(np.asarray(line.get_xdata(), dtype=float)) for line in axes.get_lines()])
    assert drawn.min() == pytest.approx(-18)


def test_the_coverage_of_a_grade_counts_grades_with_twenty_pairs() -> None:
    labels = np.repeat([0.0, 1.0, 2.0], [20, 40, 19])
    low, high = labels.copy(), labels.copy()
    low[:2] = high[:2] = 3  # two of the first grade, all of the last
    low[60:] = high[60:] = 0
    found = Predictions(PairScores(labels + np.linspace(0, 0.1, 79), None), labels, low, high)
    measures = measure_predictions(found, labels, top_grade=3)
    assert measures["coverage_of_a_grade"] == pytest.approx(0.9)
    assert measures["coverage"] == pytest.approx(58 / 79)
