"""Measures of the seven tasks: the three aggregations, intervals, and the files and tables they are shown in."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from scipy import stats

from sts_regression.data.sts_tasks import STSTask, load_sts_tasks
from sts_regression.evaluation import compare
from sts_regression.evaluation.bootstrap import bootstrap_spearman
from sts_regression.evaluation.sts_evaluation import (
    PAIR_COLUMNS,
    correlate,
    measure_tasks,
    numpy_columns,
    pair_identities,
    read_scores,
    read_test_scores,
    resample_tasks,
    rows_by_value,
    score_tasks,
    write_scores,
    write_test_scores,
)
from sts_regression.evaluation.sts_report import REPORT_COLUMNS, tasks_in_markdown, tasks_on_screen, write_report

SIZES = {("STS12", "a"): 20, ("STS12", "b"): 60, ("STS-B", ""): 40}


def make_scored_pairs(seed: int = 0, noise: float = 1.0) -> Dataset:
    """Scored pairs of two tasks, one with two subsets whose scores lie on different levels."""
    gold_of, noise_of = np.random.default_rng(0), np.random.default_rng(seed)
    rows: dict[str, list[Any]] = {name: [] for name in (*PAIR_COLUMNS, "cosine", "head")}
    for (task, subset), size in SIZES.items():
        gold = gold_of.integers(6, size=size).astype(float)
        rows["task"] += [task] * size
        rows["subset"] += [subset] * size
        rows["genre"] += [subset] * size
        rows["pair"] += [f"{task} {subset} {number}" for number in range(size)]
        rows["group"] += [len(rows["group"]) + number for number in range(size)]
        rows["gold_score"] += gold.tolist()
        for name in ("cosine", "head"):
            level = 10.0 if subset == "b" else 0.0
            rows[name] += (gold + level + noise * noise_of.normal(size=size)).tolist()
    return Dataset.from_dict(rows)


@pytest.fixture(scope="module")
def scored_pairs() -> Dataset:
    return make_scored_pairs()


@pytest.fixture(scope="module")
def measures(scored_pairs: Dataset) -> dict[str, Any]:
    return measure_tasks(scored_pairs)


@pytest.mark.parametrize("score", ["cosine", "head"])
@pytest.mark.parametrize("kind", ["spearman", "pearson"])
def test_three_aggregations(scored_pairs: Dataset, measures: dict[str, Any], score: str, kind: str) -> None:
    measure = {"spearman": stats.spearmanr, "pearson": stats.pearsonr}[kind]
    table = scored_pairs.to_pandas()
    sts12 = table[table["task"] == "STS12"]
    a, b = (
        measure(part[score], part["gold_score"]).statistic
        for part in (sts12[sts12["subset"] == "a"], sts12[sts12["subset"] == "b"])
    )
    measured = measures["tasks"]["STS12"]
    assert measured[score]["all"][kind] == pytest.approx(measure(sts12[score], sts12["gold_score"]).statistic)
    assert measured[score]["mean"][kind] == pytest.approx((a + b) / 2)
    assert measured[score]["wmean"][kind] == pytest.approx((20 * a + 60 * b) / 80)
    assert measured["subsets"]["b"][score][kind] == pytest.approx(b)
    assert measured[score]["all"][kind] < measured[score]["mean"][kind]  # the subsets' levels differ


def test_a_task_without_subsets_has_one_number(measures: dict[str, Any]) -> None:
    task = measures["tasks"]["STS-B"]
    assert (task["pairs"], task["subsets"]) == (40, {})
    assert len({round(task["cosine"][name]["spearman"], 12) for name in ("all", "mean", "wmean")}) == 1


def test_the_average_is_the_mean_of_the_tasks(measures: dict[str, Any]) -> None:
    for aggregation in ("all", "mean", "wmean"):
        of_tasks = [task["head"][aggregation]["spearman"] for task in measures["tasks"].values()]
        assert measures["average"]["head"][aggregation]["spearman"] == pytest.approx(np.mean(of_tasks))


def test_intervals_hold_their_correlation_and_shrink_in_the_average(measures: dict[str, Any]) -> None:
    places = [*measures["tasks"].values(), measures["average"]]
    widths = []
    for place in places:
        low, high = place["cosine"]["all"]["interval"]
        assert -1 <= low < place["cosine"]["all"]["spearman"] < high <= 1
        widths.append(high - low)
    assert widths[-1] < max(widths[:-1])


def test_scores_that_are_all_equal_correlate_with_nothing() -> None:
    assert correlate(np.ones(5), np.arange(5.0)) == {"spearman": 0, "pearson": 0}


def test_each_pair_is_scored_in_one_go(small_sts_data: Path) -> None:
    tasks = load_sts_tasks(small_sts_data)
    calls = []

    def scorer(first: list[str], second: list[str]) -> dict[str, np.ndarray]:
        calls.append(len(first))
        return {"cosine": np.array([float(len(a) - len(b)) for a, b in zip(first, second, strict=True)])}

    scored = score_tasks(tasks, scorer)
    assert calls == [84]
    assert scored.column_names == ["task", "subset", "genre", "pair", "group", "gold_score", "cosine"]
    last = tasks[-1].pairs[-1]
    assert scored.remove_columns("group")[-1] == {
        "task": "SICK-R",
        "subset": "",
        "genre": "",
        "pair": pair_identities([last["sentence2"]], [last["sentence1"]])[0],
        "gold_score": last["label"],
        "cosine": len(last["sentence1"]) - len(last["sentence2"]),
    }


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_numbers_are_refused(small_sts_data: Path, bad: float) -> None:
    def scorer(first: list[str], second: list[str]) -> dict[str, np.ndarray]:
        return {"cosine": np.array([bad, *np.zeros(len(first) - 1)])}

    with pytest.raises(ValueError, match=r"1 of 84 scores \(cosine\) are NaN or infinite"):
        score_tasks(load_sts_tasks(small_sts_data), scorer)


def test_scores_come_back_from_their_file(scored_pairs: Dataset, tmp_path: Path) -> None:
    write_scores(scored_pairs, tmp_path / "run")
    assert read_scores(tmp_path / "run")[:] == scored_pairs[:]
    with pytest.raises(ValueError, match=r"sts_scores\.parquet: no such file\. `run_sts\.py --do_eval"):
        read_scores(tmp_path)


def test_scores_of_an_earlier_version_are_refused(scored_pairs: Dataset, tmp_path: Path) -> None:
    write_scores(scored_pairs.remove_columns(["genre", "pair"]), tmp_path)
    with pytest.raises(ValueError, match=r"parquet: an earlier version wrote it, without `genre`, `pair`\. Evaluate"):
        read_scores(tmp_path)


def test_scores_of_test_sets_come_back_from_their_file(tmp_path: Path) -> None:
    assert read_test_scores(tmp_path) is None
    sets, pairs, gold = np.array(["a.csv", "b.csv"]), np.array(["1f", "2e"]), np.array([1.0, 0.5])
    head = np.array([0.75, 0.25], dtype=np.float32)
    write_test_scores(sets, pairs, np.array([0, 1]), gold, {"head": head}, tmp_path / "run")
    written = read_test_scores(tmp_path / "run")
    assert written is not None
    assert written[:] == {"set": [*sets], "pair": [*pairs], "group": [0, 1], "gold_score": [*gold], "head": [*head]}


def test_a_pair_is_known_by_its_letters_and_digits_in_either_order() -> None:
    ids = pair_identities(["A  man runs.", "the DOG", "A man runs", "!?"], ["The dog", "a man runs !", "A dog", "!"])
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    assert all(len(name) == 16 for name in ids)


def test_resampled_tasks_are_paired_and_averaged(scored_pairs: Dataset) -> None:
    first, again = (resample_tasks(scored_pairs, ["cosine", "head"], 50) for _ in range(2))
    assert list(first) == ["cosine", "head"]
    for score, samples in first.items():
        assert list(samples) == ["STS12", "STS-B", "average"]
        assert all(np.array_equal(samples[name], again[score][name]) for name in samples)
        np.testing.assert_allclose(samples["average"], (samples["STS12"] + samples["STS-B"]) / 2)
    alone = resample_tasks(scored_pairs, ["head"], 50)["head"]
    assert all(np.array_equal(alone[name], first["head"][name]) for name in alone)


def test_a_pair_of_two_tasks_is_drawn_for_both(scored_pairs: Dataset) -> None:
    columns = scored_pairs.to_dict()
    twice = Dataset.from_dict({name: values[-40:] * 2 for name, values in columns.items() if name != "task"})
    samples = resample_tasks(twice.add_column("task", ["STS12"] * 40 + ["STS-B"] * 40), ["cosine"], 50)["cosine"]
    np.testing.assert_array_equal(samples["STS12"], samples["STS-B"])


def test_pairs_that_share_a_sentence_are_one_group_in_all_tasks() -> None:
    def task(name: str, *texts: tuple[str, str]) -> STSTask:
        rows = [{"sentence1": a, "sentence2": b, "label": 1.0, "subset": "", "genre": ""} for a, b in texts]
        return STSTask(name, Dataset.from_list(rows), ())

    tasks = [task("STS12", ("a", "b"), ("c", "A"), ("x", "y")), task("STS-B", ("d", "c"), ("e", "f"), ("y", "x"))]
    groups = score_tasks(tasks, lambda *_: {})["group"][:]
    assert [groups.index(group) for group in groups] == [0, 0, 2, 0, 4, 2]


def test_copies_within_a_group_do_not_narrow_the_interval(scored_pairs: Dataset) -> None:
    columns = scored_pairs.to_dict()
    twice = {name: np.tile(values, 2) for name, values in columns.items()}
    errors = [
        np.std(resample_tasks(Dataset.from_dict(table), ["cosine"], 200)["cosine"]["STS12"])
        for table in (columns, twice, {**twice, "group": np.arange(240)})
    ]
    assert errors[1] == pytest.approx(errors[0], rel=1e-6)
    assert errors[2] == pytest.approx(errors[0] / np.sqrt(2), rel=0.15)


def test_tables_show_the_same_numbers(measures: dict[str, Any]) -> None:
    screen = [line.split() for line in tasks_on_screen(measures).splitlines()]
    header, ruler, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in tasks_in_markdown(measures).splitlines()
    ]
    assert header == ["task", "pairs", "cosine (all)", "95 % interval", "mean", "wmean", "Pearson", "head"]
    assert ruler == ["---", *["---:"] * 7]
    assert [row[0] for row in rows] == ["STS12", "&emsp;a", "&emsp;b", "STS-B", "average"]
    assert [[cell.removeprefix("&emsp;") for cell in row if cell] for row in rows] == screen[1:]
    sts12 = measures["tasks"]["STS12"]
    low, high = sts12["cosine"]["all"]["interval"]
    assert rows[0][2:4] == [f"{100 * sts12['cosine']['all']['spearman']:.2f}", f"{100 * low:.2f}–{100 * high:.2f}"]
    assert rows[2][7] == f"{100 * sts12['subsets']['b']['head']['spearman']:.2f}"


def test_the_report_holds_every_number(measures: dict[str, Any], tmp_path: Path) -> None:
    write_report(measures, "a model", tmp_path)
    assert json.loads((tmp_path / "sts_tasks.json").read_text()) == json.loads(json.dumps(measures))
    assert (tmp_path / "sts_tasks.md").read_text().startswith("a model, correlations in percent\n\n| task |")
    assert (tmp_path / "sts_tasks.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "sts_tasks.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert tuple(table[0]) == REPORT_COLUMNS
    # Two scores, two correlations: three aggregations of two tasks and the average, and two subsets.
    assert len(table) == 2 * 2 * (3 * 3 + 2)
    place = {"task": "STS12", "subset": "", "score": "head", "aggregation": "all", "correlation": "spearman"}
    (row,) = [row for row in table if place.items() <= row.items()]
    measured = measures["tasks"]["STS12"]["head"]["all"]
    assert (float(row["value"]), row["pairs"]) == (pytest.approx(measured["spearman"]), "80")
    assert [float(row["low"]), float(row["high"])] == pytest.approx(measured["interval"])


def test_two_models_are_compared_on_the_same_pairs(scored_pairs: Dataset) -> None:
    better = make_scored_pairs(seed=1, noise=0.3)
    comparison = compare.compare_scores(scored_pairs, better)
    assert list(comparison) == ["STS12", "STS-B", "average"]
    stsb = comparison["STS-B"]
    assert stsb["first"] == pytest.approx(measure_tasks(scored_pairs)["tasks"]["STS-B"]["cosine"]["all"]["spearman"])
    assert stsb["difference"] == pytest.approx(stsb["second"] - stsb["first"])
    assert 0 < stsb["low"] < stsb["difference"] < stsb["high"]
    assert stsb["p"] < 0.05


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_the_first_model_may_as_well_be_the_second(scored_pairs: Dataset, noise: float) -> None:
    other = make_scored_pairs(seed=1, noise=noise)
    there, back = compare.compare_scores(scored_pairs, other), compare.compare_scores(other, scored_pairs)
    for task, row in there.items():
        assert back[task]["p"] == row["p"]
        assert (back[task]["low"], back[task]["high"]) == pytest.approx((-row["high"], -row["low"]))


@pytest.mark.parametrize("pairs_of_group", [1, 10])
def test_own_pairs_that_share_texts_are_drawn_as_one(tmp_path: Path, pairs_of_group: int) -> None:
    generator, gold = np.random.default_rng(5), np.arange(200) % 6.0
    groups = np.arange(200) // pairs_of_group
    sets = np.repeat(["a.csv", "b.csv"], 100)
    for model in ("one", "other"):
        noise = generator.standard_normal(200)[groups] + 0.1 * generator.standard_normal(200)
        write_test_scores(sets, np.arange(200).astype(str), groups, gold, {"head": gold + noise}, tmp_path / model)
    ((one, other),) = compare.scored_by_both(tmp_path / "one", tmp_path / "other")
    comparison = compare.compare_scores(one, other, "head")
    assert list(comparison) == ["a.csv", "b.csv", "average"]
    average, num_groups = comparison["average"], 200 // pairs_of_group
    assert average["pairs"] == num_groups
    scores = {name: numpy_columns(table)["head"] for name, table in (("one", one), ("other", other))}
    resampled = bootstrap_spearman(scores, gold, groups, rows_by_value(sets)).values()
    differences = np.mean([of_set["other"] - of_set["one"] for of_set in resampled], axis=0)
    estimated_mean = num_groups / (num_groups - 1)
    assert average["standard_error"] == pytest.approx(np.sqrt(np.var(differences, ddof=1) * estimated_mean))


def test_a_model_does_not_differ_from_itself(scored_pairs: Dataset) -> None:
    comparison = compare.compare_scores(scored_pairs, scored_pairs)
    assert all(row["difference"] == 0 and row["p"] is None for row in comparison.values())
    assert all(line.split()[-2:] == ["+0.00", "–"] for line in compare.comparison_table(comparison).splitlines()[1:])


def test_different_pairs_or_scores_are_not_compared(scored_pairs: Dataset) -> None:
    with pytest.raises(ValueError, match=r"scored on different pairs\. Evaluate both with the same `--test_file`"):
        compare.compare_scores(scored_pairs, scored_pairs.select(range(100)))
    moved = scored_pairs.map(lambda row: {"task": f"./{row['task']}"})
    assert (
        compare.compare_scores(scored_pairs, moved).keys() == compare.compare_scores(scored_pairs, scored_pairs).keys()
    )
    doubled = scored_pairs.map(lambda row: {"gold_score": 2 * row["gold_score"]})
    with pytest.raises(ValueError, match="scored on the same pairs with other labels"):
        compare.compare_scores(scored_pairs, doubled)
    with pytest.raises(ValueError, match=r"`score` 'dot' is not among those of the first model: cosine, head"):
        compare.compare_scores(scored_pairs, scored_pairs, "dot")


def test_the_command_compares_two_runs(
    scored_pairs: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_scores(scored_pairs, tmp_path / "a")
    write_scores(make_scored_pairs(seed=1, noise=0.3), tmp_path / "b")
    compare.main([str(tmp_path / "a"), str(tmp_path / "b"), "--score", "head"])
    printed = capsys.readouterr().out
    expected = compare.compare_scores(read_scores(tmp_path / "a"), read_scores(tmp_path / "b"), "head")
    assert f"{100 * expected['average']['difference']:+.2f}" in printed
    pairs = np.array([0, 1])
    write_test_scores(pairs, pairs, pairs, pairs, {"head": pairs / 3}, tmp_path / "a")
    assert len(compare.scored_by_both(tmp_path / "a", tmp_path / "b")) == 1
    with pytest.raises(SystemExit, match=r"error: .*sts_scores\.parquet: no such file"):
        compare.main([str(tmp_path), str(tmp_path / "b")])
    with pytest.raises(SystemExit, match=r"error: .*absent: no such folder"):
        compare.main([str(tmp_path / "b"), str(tmp_path / "absent")])
