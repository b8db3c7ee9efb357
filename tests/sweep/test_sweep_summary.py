"""The summary of a sweep, from made-up runs: measurements, tests, tables and chart."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy import stats

from sts_regression.evaluation import plots
from sts_regression.evaluation.significance import difference_test, over_seeds
from sts_regression.evaluation.sts_evaluation import (
    measure_tasks,
    read_scores,
    resample_tasks,
    write_scores,
    write_test_scores,
)
from sts_regression.sweep.report import cells_of_table, describe_tests, read_summary, summary_rows, write_summary
from sts_regression.sweep.summary import short_names, summarize

NUM_PAIRS = 200
TASKS = ("STS12", "STS-B")
GENRES = ("MSRpar", "MSRvid", "headlines", "images")  # of equal numbers of pairs
WITHOUT = "without MSRpar and MSRvid"


def write_record(folder: Path, seed: int, trains: bool = True, **further: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    record = {"seed": seed, "seconds": 10.0 * seed, "training": {"steps": 5} if trains else None, **further}
    (folder / "run.json").write_text(json.dumps(record))


def write_run(
    folder: Path,
    noise: float,
    seed: int,
    head_noise: float | None = None,
    trains: bool = True,
    last_gold: float = 5.0,
    maps_cosine: bool = False,
) -> None:
    """A run on the STS tasks whose scores are the gold scores with so much noise."""
    generator = np.random.default_rng(seed)
    gold = np.tile(np.linspace(0, last_gold, NUM_PAIRS), len(TASKS))
    scores = {"cosine": gold + noise * generator.standard_normal(len(gold))}
    if head_noise is not None:
        scores["head"] = gold + head_noise * generator.standard_normal(len(gold))
    if maps_cosine:
        scores["head"] = 2 * scores["cosine"] + 1
    places = {
        "task": np.repeat(TASKS, NUM_PAIRS),
        "subset": [""] * len(gold),
        "genre": np.tile(GENRES, len(gold) // len(GENRES)),
        "pair": [f"pair {number}" for number in range(len(gold))],
        "group": range(len(gold)),
    }
    scored = Dataset.from_dict({**places, "gold_score": gold, **scores})
    write_scores(scored, folder)
    results = {"before training": {}, "after training": {"validation": {"spearman_cosine": 0.5 + seed / 10}}}
    write_record(folder, seed, trains, sts_tasks=measure_tasks(scored), results=results)


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    for seed in (1, 2, 3):
        write_run(tmp_path / "good" / f"seed-{seed}", 0.5, seed, 0.6)
        write_run(tmp_path / "bad" / f"seed-{seed}", 2.0, 10 + seed)
        write_run(tmp_path / "same" / f"seed-{seed}", 0.5, 20 + seed)
    write_run(tmp_path / "untouched" / "seed-1", 1.0, 31, trains=False)
    (tmp_path / "good" / "seed-4").mkdir()  # not finished
    return tmp_path


def folders(output_dir: Path, *cells: str) -> dict[str, list[Path]]:
    return {cell: [output_dir / cell / f"seed-{seed}" for seed in (1, 2, 3, 4)] for cell in cells}


def test_summary_of_finished_runs(finished: Path) -> None:
    summary = summarize(folders(finished, "good", "bad", "same", "absent"), ["good"])
    assert list(summary["cells"]) == ["good", "bad", "same"]
    assert summary["headline"] == "average"
    good, bad, same = summary["cells"].values()
    assert (good["seeds"], good["seconds"], good["trains"]) == ([1, 2, 3], 20, True)
    values = [
        json.loads((finished / "good" / f"seed-{seed}" / "run.json").read_text())["sts_tasks"]["average"]["cosine"]
        for seed in (1, 2, 3)
    ]
    expected = [value["all"]["spearman"] for value in values]
    assert good["cosine"]["average"]["values"] == pytest.approx(expected)
    assert good["cosine"]["average"]["mean"] == pytest.approx(np.mean(expected))
    assert good["cosine"]["average"]["sd"] == pytest.approx(np.std(expected, ddof=1))
    assert good["cosine"]["development"]["mean"] == pytest.approx(0.7)
    assert good["cosine"]["average"]["versus"] == {}
    versus = bad["cosine"]["average"]["versus"]["good"]
    assert versus["difference"] == pytest.approx(bad["cosine"]["average"]["mean"] - good["cosine"]["average"]["mean"])
    assert versus["low"] < versus["difference"] < versus["high"] < 0
    assert versus["p"] < 0.01
    assert versus["pairs"] == 2 * NUM_PAIRS
    assert same["cosine"]["average"]["versus"]["good"]["p"] > 0.05
    assert bad["cosine"]["STS12"]["versus"]["good"]["pairs"] == NUM_PAIRS
    assert "head" not in bad


def test_the_duration_of_a_run_includes_that_of_its_inner_runs(tmp_path: Path) -> None:
    write_record(tmp_path, 1, refit={"seconds": 9}, bundled_pairs={"seconds": 30}, stages=[{"seconds": 1}])
    assert summarize({"cell": [tmp_path]}, [])["cells"]["cell"]["seconds"] == 50


def test_nothing_is_tested_on_the_pairs_that_chose_checkpoints(finished: Path) -> None:
    bad = summarize(folders(finished, "good", "bad"), ["good"])["cells"]["bad"]["cosine"]
    assert bad["development"]["versus"] == {}
    assert all(bad[name]["versus"] for name in (*TASKS, "average"))


def p_over_seeds(first: list[float], second: list[float]) -> float | None:
    return difference_test(over_seeds(first, True), over_seeds(second, True))["p"]


def test_the_test_is_over_seeds_and_resampled_pairs(finished: Path) -> None:
    runs = folders(finished, "good", "untouched")
    summary = summarize(runs, ["untouched"])
    methods = []
    for name, trains in (("good", True), ("untouched", False)):
        tables = [read_scores(folder) for folder in runs[name] if (folder / "run.json").is_file()]
        resampled = [resample_tasks(table, ["cosine"])["cosine"]["average"] for table in tables]
        values = summary["cells"][name]["cosine"]["average"]["values"]
        methods.append(over_seeds(values, trains, np.stack(resampled), np.ones(2 * NUM_PAIRS)))
    expected = difference_test(*methods)
    test = summary["cells"]["good"]["cosine"]["average"]["versus"]["untouched"]
    assert {name: value for name, value in test.items() if name != "p_holm"} == pytest.approx(expected)


def test_a_head_is_tested_against_the_cosine_of_a_baseline_without_one(finished: Path) -> None:
    summary = summarize(folders(finished, "good", "untouched"), ["untouched", "good"])
    good, untouched = summary["cells"]["good"], summary["cells"]["untouched"]
    expected = good["head"]["average"]["mean"] - untouched["cosine"]["average"]["mean"]
    assert good["head"]["average"]["versus"]["untouched"]["difference"] == pytest.approx(expected)
    assert untouched["cosine"]["average"]["sd"] is None
    assert set(untouched["cosine"]["average"]["versus"]) == {"good"}


def test_two_methods_have_one_p_value_and_one_correction(finished: Path) -> None:
    names = ("good", "bad", "same", "untouched")
    summary = summarize(folders(finished, *names), ["good", "untouched"])
    tests = {
        (name, score, baseline): test
        for name, cell in summary["cells"].items()
        for score in ("cosine", "head")
        for baseline, test in cell.get(score, {}).get("average", {}).get("versus", {}).items()
    }
    there, back = tests["good", "cosine", "untouched"], tests["untouched", "cosine", "good"]
    assert (there["p"], there["p_holm"]) == (back["p"], back["p_holm"])
    assert (there["low"], there["high"]) == (-back["high"], -back["low"])
    assert len(tests) == 7
    family = sorted(tests[key]["p"] for key in tests if key != ("untouched", "cosine", "good"))
    assert summary["tests"] == len(family) == 6
    assert min(test["p_holm"] for test in tests.values()) == pytest.approx(6 * family[0])
    assert max(test["p_holm"] for test in tests.values()) == pytest.approx(family[-1])
    assert "p_holm" not in summary["cells"]["good"]["cosine"]["STS12"]["versus"]["untouched"]


def test_a_head_that_ranks_as_the_cosine_is_the_same_method(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        write_run(tmp_path / "own" / f"seed-{seed}", 0.5, seed, 0.6)
        write_run(tmp_path / "mapped" / f"seed-{seed}", 0.7, 10 + seed, maps_cosine=True)
    runs = folders(tmp_path, "own", "mapped")
    summary = summarize(runs, ["own"])
    cosine, head = (summary["cells"]["mapped"][score]["average"]["versus"]["own"] for score in ("cosine", "head"))
    assert summary["tests"] == 2  # cosine and head of `own` differ, those of `mapped` do not
    assert [row[0] for row in summary_rows(summary, "head", ["own"])] == ["method", "own"]
    assert "A head that maps the cosine has the same correlations as the cosine." in describe_tests(summary, "cosine")
    swapped = summarize(runs, ["mapped"])
    own = swapped["cells"]["own"]
    assert own["cosine"]["average"]["versus"]["mapped"]["p"] == pytest.approx(cosine["p"])
    assert own["head"]["average"]["versus"]["mapped"]["p"] == pytest.approx(head["p"])
    assert "head" not in {row[0] for row in summary_rows(swapped, "cosine", ["mapped"])}
    alone = summarize({"mapped": runs["mapped"]}, ["mapped"])
    assert (alone["tests"], cells_of_table(alone, "head")) == (0, {})


def test_one_seed_of_a_method_that_trains_gives_no_test(finished: Path) -> None:
    runs = {"good": folders(finished, "good")["good"][:1], **folders(finished, "bad", "untouched")}
    summary = summarize(runs, ["untouched", "bad"])
    test = summary["cells"]["good"]["cosine"]["average"]["versus"]["untouched"]
    assert (test["p"], test["low"], test["high"], test["p_holm"]) == (None, None, None, None)
    assert summary["tests"] == 1  # bad against untouched
    good = summary_rows(summary, "cosine", ["untouched", "bad"])[1]
    assert good[-4:] == [f"{100 * test['difference']:+.2f}", "–", good[-2], "–"]
    assert describe_tests(summary, "cosine").endswith(" A method that trains is tested with two seeds or more.")


def test_a_score_that_a_run_lacks_is_not_summarised(finished: Path) -> None:
    write_run(finished / "mixed" / "seed-1", 0.5, 1, head_noise=0.6)
    write_run(finished / "mixed" / "seed-2", 0.5, 2)
    mixed = summarize(folders(finished, "mixed"), [])["cells"]["mixed"]
    assert len(mixed["cosine"]["average"]["values"]) == 2
    assert "head" not in mixed


@pytest.mark.parametrize("cell", ["good", "other"])
def test_runs_on_different_pairs_are_not_compared(finished: Path, cell: str) -> None:
    write_run(finished / cell / "seed-4", 0.5, 4, last_gold=4.0)
    with pytest.raises(ValueError, match=r"seed-1 and .*seed-4 hold scores of different test pairs.*Leave one"):
        summarize(folders(finished, "good", "other"), ["good"])


def test_seeds_that_were_not_asked_for_do_not_count(finished: Path) -> None:
    runs = {"good": folders(finished, "good")["good"][:2]}
    assert summarize(runs, [])["cells"]["good"]["seeds"] == [1, 2]


def test_genres_of_tasks_and_tasks_without_the_genres_that_are_trained_on(finished: Path) -> None:
    genres = summarize(folders(finished, "good", "bad", "untouched"), ["untouched", "bad"])["cells"]["good"]["genres"]
    assert list(genres) == ["cosine", "head"]
    assert list(genres["cosine"]) == [*TASKS]
    assert list(genres["cosine"]["STS-B"]) == [*GENRES, WITHOUT]
    tables = [read_scores(finished / "good" / f"seed-{seed}").to_pandas() for seed in (1, 2, 3)]
    for genre, own in {"images": ["images"], WITHOUT: ["headlines", "images"]}.items():
        measured = genres["head"]["STS12"][genre]
        parts = [table[(table["task"] == "STS12") & table["genre"].isin(own)] for table in tables]
        expected = [stats.spearmanr(part["head"], part["gold_score"]).statistic for part in parts]
        assert (measured["mean"], measured["sd"]) == pytest.approx((np.mean(expected), np.std(expected, ddof=1)))
        assert list(measured["versus"]) == ["untouched"]
        test = measured["versus"]["untouched"]
        assert list(test) == ["difference", "low", "high", "p"]
        assert test["low"] < test["difference"] < test["high"]


def test_the_summary_is_written(finished: Path) -> None:
    screen = write_summary(finished, folders(finished, "good", "bad"), ["bad"])
    assert {"summary.json", "summary.md", "summary.png"} <= {path.name for path in finished.iterdir()}
    assert "against `bad`" in screen
    summary = read_summary(finished / "summary.json")
    rows = summary_rows(summary, "cosine", ["bad"])
    assert rows[0] == ["method", "seeds", "development", *TASKS, "average", "against `bad`", "p (Holm)"]
    assert rows[1][:3] == ["good", "3", "70.00 ± 10.00"]
    assert rows[2][-2:] == ["–", "–"]
    assert describe_tests(summary, "cosine") == (
        "Differences refer to the average of the STS tasks. 95 % intervals (Student's t) hold for other seeds and "
        "other test pairs. p is adjusted by Holm's method for 2 pairs of methods; intervals are not."
    )
    assert (finished / "summary.md").read_text().count(describe_tests(summary, "cosine")) == 2  # and for the head


def test_tables_say_how_many_tests_are_corrected_for(finished: Path) -> None:
    summary = summarize(folders(finished, "good", "bad", "same"), ["good"])
    assert describe_tests(summary, "cosine").endswith(
        " p is adjusted by Holm's method for 2 pairs of methods; intervals are not."
    )


def test_a_summary_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text('{"cells": {}}')
    with pytest.raises(ValueError, match=r"summary\.json: an earlier version wrote it.*--summary_only"):
        read_summary(tmp_path / "summary.json")


def test_without_the_scores_of_pairs_the_tasks_are_those_of_the_records(finished: Path) -> None:
    runs = folders(finished, "good", "bad")
    with_scores = summarize(runs, ["good"])["cells"]["bad"]
    for path in finished.glob("*/*/sts_scores.parquet"):
        path.unlink()
    summary = summarize(runs, ["good"])
    cell = summary["cells"]["bad"]
    assert list(cell["cosine"]) == list(with_scores["cosine"])
    for name, measured in cell["cosine"].items():
        assert measured["values"] == pytest.approx(with_scores["cosine"][name]["values"])
    expected = p_over_seeds(*(summary["cells"][name]["cosine"]["average"]["values"] for name in runs))
    assert cell["cosine"]["average"]["versus"]["good"]["p"] == pytest.approx(expected)
    assert cell["genres"] == {}
    assert "the tests hold for these test pairs only" in describe_tests(summary, "cosine")


def test_runs_without_the_scores_of_pairs_count_as_seeds(finished: Path) -> None:
    runs = folders(finished, "good", "untouched")
    whole = summarize(runs, ["untouched"])["cells"]["good"]
    (finished / "good" / "seed-2" / "sts_scores.parquet").unlink()
    (finished / "good" / "seed-3" / "sts_scores.parquet").unlink()
    summary = summarize(runs, ["untouched"])
    cell = summary["cells"]["good"]
    assert (whole["scored_seeds"], cell["scored_seeds"]) == ([1, 2, 3], [1])
    for name in ("average", *TASKS):
        assert cell["cosine"][name]["values"] == pytest.approx(whole["cosine"][name]["values"])
    average = cell["cosine"]["average"]
    test = average["versus"]["untouched"]
    assert test["pairs"] == 2 * NUM_PAIRS
    # Without other seeds, the interaction of seeds and pairs counts as a part of the pairs.
    over_seeds_alone = np.var(average["values"], ddof=1) / 3
    assert test["standard_error"] ** 2 > whole["cosine"]["average"]["versus"]["untouched"]["standard_error"] ** 2
    assert test["standard_error"] ** 2 > over_seeds_alone
    first_alone = summarize({**runs, "good": runs["good"][:1]}, ["untouched"])["cells"]["good"]
    assert cell["genres"]["cosine"]["STS12"]["MSRpar"]["mean"] == pytest.approx(
        first_alone["genres"]["cosine"]["STS12"]["MSRpar"]["mean"]
    )
    assert "no scores" not in describe_tests(summary, "cosine")


def test_small_p_values_are_bounds(finished: Path) -> None:
    summary = summarize(folders(finished, "good", "bad"), ["good"])
    test = summary["cells"]["bad"]["cosine"]["average"]["versus"]["good"]
    for p, shown in ((0.0004, "< 0.001"), (0.0012, "0.001"), (1.0, "1.000")):
        test["p_holm"] = p
        assert summary_rows(summary, "cosine", ["good"])[2][-1] == shown


SETS = ("pairs/news.csv", "pairs/mail.csv")


def write_own_run(
    folder: Path,
    seed: int,
    noise: float,
    sets: Sequence[str] = SETS,
    keeps_scores: bool = True,
    pairs_of_group: int = 1,
) -> None:
    """A run with test sets, in place of the STS tasks."""
    generator = np.random.default_rng(seed)
    gold = np.tile(np.arange(NUM_PAIRS) % 6.0, len(sets))
    scores = gold + noise * generator.standard_normal(len(gold))
    names = np.repeat(sets, NUM_PAIRS)
    by_set = {
        name: {"spearman_cosine": float(stats.spearmanr(scores[names == name], gold[names == name]).statistic)}
        for name in sets
    }
    test = {"spearman_cosine": float(np.mean([measures["spearman_cosine"] for measures in by_set.values()]))}
    results = {"after training": {"validation": {"spearman_cosine": 0.5}, "test": test}}
    write_record(
        folder, seed, results=results, results_by_set={"after training": {"test": by_set} if len(sets) > 1 else {}}
    )
    if keeps_scores:
        pairs = np.array([f"{number}" for number in range(len(gold))])
        write_test_scores(names, pairs, np.arange(len(gold)) // pairs_of_group, gold, {"cosine": scores}, folder)


def write_own_sweep(output_dir: Path, **options: Any) -> dict[str, list[Path]]:
    for seed in (1, 2, 3):
        write_own_run(output_dir / "good" / f"seed-{seed}", seed, 1.0, **options)
        write_own_run(output_dir / "bad" / f"seed-{seed}", 10 + seed, 3.0, **options)
    return folders(output_dir, "good", "bad")


def test_test_sets_stand_beside_development_and_are_tested(tmp_path: Path) -> None:
    summary = summarize(write_own_sweep(tmp_path), ["good"])
    assert summary["headline"] == "test"
    rows = summary_rows(summary, "cosine", ["good"])
    assert rows[0] == ["method", "seeds", "development", "news.csv", "mail.csv", "test", "against `good`", "p (Holm)"]
    good, bad = (summary["cells"][name]["cosine"] for name in ("good", "bad"))
    assert good["test"]["values"] == pytest.approx(
        np.mean([good["news.csv"]["values"], good["mail.csv"]["values"]], axis=0)
    )
    assert bad["test"]["versus"]["good"]["pairs"] == 2 * NUM_PAIRS
    assert bad["news.csv"]["versus"]["good"]["pairs"] == NUM_PAIRS
    assert bad["test"]["versus"]["good"]["p_holm"] == bad["test"]["versus"]["good"]["p"] < 0.01
    assert describe_tests(summary, "cosine").startswith("Differences refer to the mean of the test sets. 95 %")


def test_without_the_scores_of_pairs_the_test_is_over_seeds_alone(tmp_path: Path) -> None:
    runs = write_own_sweep(tmp_path, keeps_scores=False)
    summary = summarize(runs, ["good"])
    good, bad = (summary["cells"][name]["cosine"]["test"] for name in ("good", "bad"))
    test = bad["versus"]["good"]
    assert (test["pairs"], test["p"]) == (None, pytest.approx(p_over_seeds(bad["values"], good["values"])))
    assert describe_tests(summary, "cosine") == (
        "Differences refer to the mean of the test sets. 95 % intervals (Student's t) hold for other seeds on the "
        "same test pairs. Some runs kept no per-pair scores, so the tests hold for these test pairs only."
    )
    write_own_run(runs["good"][0], 1, 1.0)  # one of them does not help
    again = summarize(runs, ["good"])["cells"]["bad"]["cosine"]["test"]["versus"]["good"]
    assert again["p"] == pytest.approx(test["p"])


def test_methods_without_the_scores_of_pairs_are_named(finished: Path) -> None:
    for path in finished.glob("same/*/sts_scores.parquet"):
        path.unlink()
    summary = summarize(folders(finished, "good", "bad", "same"), ["good"])
    assert (
        "95 % intervals (Student's t) hold for other seeds and other test pairs. Runs of `same` kept no per-pair "
        "scores: their tests hold for these test pairs only."
    ) in describe_tests(summary, "cosine")


def test_own_pairs_that_share_texts_count_as_one(tmp_path: Path) -> None:
    summary = summarize(write_own_sweep(tmp_path, sets=SETS[:1], pairs_of_group=4), ["good"])
    assert summary["cells"]["bad"]["cosine"]["test"]["versus"]["good"]["pairs"] == NUM_PAIRS / 4


def test_one_test_set_has_one_column(tmp_path: Path) -> None:
    summary = summarize(write_own_sweep(tmp_path, sets=SETS[:1]), ["good"])
    assert summary_rows(summary, "cosine", [])[0] == ["method", "seeds", "development", "test"]
    assert summary["cells"]["bad"]["cosine"]["test"]["versus"]["good"]["pairs"] == NUM_PAIRS


def test_files_of_one_name_are_told_apart_by_their_folders() -> None:
    paths = ["a/x.csv", "b/x.csv", "b/y.csv"]
    assert short_names(paths) == {"a/x.csv": "a/x.csv", "b/x.csv": "b/x.csv", "b/y.csv": "y.csv"}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are drawn."""
    figures: list[Figure] = []

    class Kept(Figure):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            figures.append(self)

    monkeypatch.setattr("matplotlib.figure.Figure", Kept)
    return figures


def chart_of(figures: list[Figure]) -> tuple[str, list[float]]:
    """The label of the axis, and the first cell's points."""
    [axes] = figures[-1].axes
    return figures[-1].get_supxlabel(), np.asarray(axes.lines[0].get_xdata()).tolist()


def test_the_chart_shows_what_was_tested_and_says_which(tmp_path: Path, drawn: list[Figure]) -> None:
    runs = write_own_sweep(tmp_path)
    write_summary(tmp_path, runs, ["good"])
    values = read_summary(tmp_path / "summary.json")["cells"]["good"]["cosine"]["test"]["values"]
    title, points = chart_of(drawn)
    assert title == "Spearman's correlation, mean of the test sets, percent; a point per seed"
    assert points == pytest.approx([100 * value for value in values])


def test_the_chart_holds_its_whole_text_beside_long_names(tmp_path: Path, drawn: list[Figure]) -> None:
    cell = {"cosine": {"test": {"values": [0.5, 0.6], "mean": 0.55}}, "head": {"test": {"values": [0.5], "mean": 0.5}}}
    plots.plot_cells({"few_pairs-loss=smooth_k2": cell}, "test", "mean of the test sets", tmp_path / "chart.png")
    drawn[0].draw_without_rendering()
    [axes] = drawn[0].axes
    [label] = [text for text in drawn[0].findobj(Text) if text.get_text().endswith("a point per seed")]
    assert all(map(drawn[0].bbox.containsx, label.get_window_extent().intervalx))
    heights = {height for line in axes.lines for height in np.asarray(line.get_ydata()).tolist()}
    assert len(heights) == 2  # equal values of both scores do not hide each other


def test_the_chart_of_development_pairs_alone_is_not_empty(tmp_path: Path, drawn: list[Figure]) -> None:
    for seed in (1, 2):
        results = {"after training": {"validation": {"spearman_cosine": seed / 4}}}
        write_record(tmp_path / "one" / f"seed-{seed}", seed, results=results)
    screen = write_summary(tmp_path, folders(tmp_path, "one"), ["one"])
    assert chart_of(drawn) == (
        "Spearman's correlation, development pairs, percent; a point per seed",
        [25.0, 50.0],
    )
    assert screen.splitlines()[1:] == [
        "method  seeds    development  against `one`  p (Holm)",
        "one         2  37.50 ± 17.68              –         –",
    ]
