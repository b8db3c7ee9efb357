"""The data of the benchmark commands before and after the runs."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import choose, graded_data, reproduce
from benchmarks.graded_data import budget_of_pairs, split_graded_set
from benchmarks.kept_scores import restore_runs, without_folder
from benchmarks.reliability import counts_by_kind
from benchmarks.reproduce import slim
from sts_regression.data.sts_tasks import load_sts_tasks
from sts_regression.evaluation.sts_evaluation import measure_tasks, read_scores, score_tasks, write_scores
from sts_regression.sweep.report import read_summary


def test_a_kept_run_file_has_no_sentences_and_no_single_steps() -> None:
    leaks = {"train": {"a.csv": {"found": 2, "examples": [["a sentence", "another"]]}}}
    history = [{"loss": 1.0, "step": 1}, {"eval_loss": 2.0, "step": 1}]
    record = {
        "leakage": leaks,
        "training": {"log_history": history, "steps": 1},
        "stages": [{"leakage": leaks, "training": {"log_history": history}}],
        "sts_tasks": {"tasks": {"STS12": {"pairs": 3, "subsets": {"MSRpar": {}}}}},
    }
    kept = {"leakage": {"train": {"a.csv": {"found": 2}}}}
    assert slim(record) == {
        **kept,
        "training": {"log_history": history[1:], "steps": 1},
        "stages": [{**kept, "training": {"log_history": history[1:]}}],
        "sts_tasks": {"tasks": {"STS12": {"pairs": 3}}},
    }


def test_a_kept_run_file_does_not_say_where_the_data_lay() -> None:
    for folder, shown in (("/home/me/data", "FOLDER"), ("../data", "../data")):
        record = {
            "command": [f"--sts_data={folder}", "--seed=1"],
            "arguments": {"sts_data": folder},
            "data": {"train": {"source": f"{folder}/a.csv + {folder}/b.txt"}},
            "results_by_set": {f"{folder}/dev.csv": 0.5},
        }
        assert without_folder(record) == {
            "command": [f"--sts_data={shown}", "--seed=1"],
            "arguments": {"sts_data": shown},
            "data": {"train": {"source": f"{shown}/a.csv + {shown}/b.txt"}},
            "results_by_set": {f"{shown}/dev.csv": 0.5},
        }


def test_settings_are_chosen_by_the_mean_over_corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "ROOT", tmp_path)
    monkeypatch.setattr(choose, "GRIDS", {"ablation/no_averaging": ("learning_rate=1e-5,2e-5",)})
    assert choose.points(choose.GRIDS["ablation/no_averaging"]) == ["learning_rate=1e-5", "learning_rate=2e-5"]
    # The better setting on the development pairs of the training corpora is worse on those that no run has seen.
    for setting, seen, unseen in (("1e-5", 0.8, 0.6), ("2e-5", 0.85, 0.5)):
        by_set = {
            "validation": {"/data/sts-dev.csv": {"spearman_cosine": seen}, "trial.txt": {"spearman_cosine": seen}},
            "test": {"pairs/cxc.csv": {"spearman_cosine": unseen}},
        }
        folder = tmp_path / choose.RUNS / "no_averaging" / f"no_averaging-learning_rate={setting}" / "seed-1"
        folder.mkdir(parents=True)
        record = {"results_by_set": {"before training": {}, "after training": by_set}, "leakage": {}}
        (folder / "run.json").write_text(json.dumps(record))
        choose.keep("ablation/no_averaging")
        if setting == "1e-5":
            with pytest.raises(ValueError, match="no_averaging: 1 of 2 settings have been run"):
                choose.choose("ablation/no_averaging", tmp_path / choose.CHOICE_FOLDER)
    found = choose.choose("ablation/no_averaging", tmp_path / choose.CHOICE_FOLDER)
    assert found["chosen"] == "learning_rate=1e-5"
    expected = {"sts-dev": 0.85, "trial": 0.85, "cxc": 0.5, "mean": pytest.approx(2.2 / 3)}
    assert found["settings"]["learning_rate=2e-5"] == expected


def test_graded_pairs_are_split_by_text_and_scaled(tmp_path: Path) -> None:
    rows = [f"question {i // 4},answer {i},{i % 4}" for i in range(400)]
    (tmp_path / "parade.csv").write_text("sentence1,sentence2,label\n" + "\n".join(rows) + "\n")
    splits = split_graded_set("parade", tmp_path)
    texts = {split: {first for first, _, _ in pairs} for split, pairs in splits.items()}
    assert {split: len(pairs) for split, pairs in splits.items()} == {"train": 240, "validation": 60, "test": 100}
    assert not texts["train"] & texts["test"]
    assert not texts["train"] & texts["validation"]
    labels = {label for pairs in splits.values() for _, _, label in pairs}
    assert sorted(labels) == pytest.approx([0, 5 / 3, 10 / 3, 5])


def test_shares_are_capped_and_keep_the_grades_of_their_set(
    small_sts_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"question {i // 4},answer {i},{i % 4}" for i in range(400)]
    (tmp_path / "parade.csv").write_text("sentence1,sentence2,label\n" + "\n".join(rows) + "\n")
    monkeypatch.setattr(graded_data, "CAPS", {"train": 100, "validation": 20, "test": 1000})
    shares = graded_data.graded_shares("parade", tmp_path)
    assert {split: len(pairs) for split, pairs in shares.items()} == {"train": 100, "validation": 20, "test": 100}
    assert {label for pairs in shares.values() for _, _, label in pairs} == {0.0, 1.0, 2.0, 3.0}  # not 0.999…
    # SICK's 1 to 5 becomes 0 to 5; STS-B stays.
    for name, labels in (("sick", {0.0, 1.0, 2.0, 3.0, 4.0}), ("stsb", {0.0, 1.0, 2.0, 3.0, 4.0})):
        shares = graded_data.graded_shares(name, small_sts_data)
        assert {label for pairs in shares.values() for _, _, label in pairs} <= labels
        assert sum(len(pairs) for pairs in shares.values()) == 12


def test_a_smaller_budget_is_the_beginning_of_a_larger_one() -> None:
    pairs = [(f"a {i}", f"b {i}", float(i % 6)) for i in range(50)]
    ten = budget_of_pairs(pairs, 10, seed=1)
    assert ten == budget_of_pairs(pairs, 20, seed=1)[:10]
    assert len(set(ten)) == 10
    assert ten != budget_of_pairs(pairs, 10, seed=2)
    assert sorted(budget_of_pairs(pairs, 5000, seed=1)) == sorted(pairs)


def test_a_kept_leak_matrix_names_files_without_their_folders(
    small_sts_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sts_regression.data import leakage

    graded = tmp_path / "graded"
    graded.mkdir()
    for name in reproduce.GRADED_FILES:
        (graded / name).write_text("sentence1,sentence2,label\nA secret.,Another one.,1\n")
    monkeypatch.setattr(reproduce, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(reproduce.subprocess, "run", lambda command, **_: leakage.main(command[4:]))
    reproduce.keep_leak_matrix(small_sts_data, graded)
    text = (tmp_path / "results" / "leakage" / "matrix.json").read_text()
    assert "secret" not in text
    assert str(tmp_path) not in text
    matrix = json.loads(text)
    stsb = ["sts-train.csv", "SICK_train.txt", "sts-dev.csv", "SICK_trial.txt"]
    assert list(matrix["sets"]) == [*stsb, *reproduce.GRADED_FILES]
    assert matrix["leak_filter"] == "normalized"
    assert matrix["sets"]["cxc.csv"]["by_test_set"]["STS-B"] == {"pairs": 0, "sentences": 0, "test_pairs": 0}
    # The training pairs of the small STS-B have the first sentences of its test pairs, and other second ones.
    assert matrix["sets"]["sts-train.csv"]["by_test_set"]["STS-B"] == {"pairs": 0, "sentences": 12, "test_pairs": 12}


def test_counts_of_reliability_are_added_up_by_kind() -> None:
    from benchmarks.tables.run_tables import reliability_page

    lines = [
        {"test": f"tests/test_{file}.py::test_x[{number}]", "kind": kind, "tried": 3, "accepted": 1, "refused": 2}
        for number, (file, kind) in enumerate([("a", "kills"), ("a", "kills"), ("b", "kills"), ("a", "files")])
    ]
    kinds = counts_by_kind(lines)
    assert kinds == {
        "kills": {"tried": 9, "accepted": 3, "refused": 6, "tests": ["tests/test_a.py", "tests/test_b.py"]},
        "files": {"tried": 3, "accepted": 1, "refused": 2, "tests": ["tests/test_a.py"]},
    }
    environment = {"threads": 2, "device": "CPU", "torch": "2", "transformers": "5"}
    page = reliability_page({"environment": environment, "seconds": 90.0, "kinds": kinds})
    assert "\n12 tried, 4 accepted, 8 refused; 2 minutes on 2 threads of a CPU, torch\n2, transformers 5.\n" in page
    assert "| kills | 9 | 3 | 6 | tests/test_a.py, tests/test_b.py |" in page


@pytest.fixture
def sweeps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[list[str], list[str]]]:
    """The recipes and options of each sweep, which all fail; nothing runs."""
    calls: list[tuple[list[str], list[str]]] = []

    def run_sweep(names: list[str], options: list[str]) -> int:
        calls.append((names, options))
        return 3

    monkeypatch.setattr(reproduce, "run_sweep", run_sweep)
    monkeypatch.setattr(reproduce, "ROOT", tmp_path)
    monkeypatch.setattr(reproduce, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(reproduce, "write_summary", lambda *_: "")
    return calls


def test_slow_recipes_have_fewer_seeds(sweeps: list[tuple[list[str], list[str]]], small_sts_data: Path) -> None:
    with pytest.raises(SystemExit, match="3"):
        reproduce.keep_sweep("comparison", small_sts_data, None, 1)
    fast, slow = sweeps
    assert slow[0] == list(reproduce.SLOW)
    assert f"--seeds={reproduce.SLOW_SEEDS}" in slow[1]
    assert "--seeds=10" in fast[1]
    assert {*fast[0], *slow[0]} == set(reproduce.SWEEPS["comparison"].recipes)
    sweeps.clear()
    with pytest.raises(SystemExit, match="3"):
        reproduce.keep_sweep("ablation", small_sts_data, ["best", "no_averaging"], 2)
    [(recipes, options)] = sweeps
    assert recipes == ["best", "ablation/no_averaging"]
    assert {"--seeds=10", "--jobs=2"} < set(options)


def test_kept_run_files_are_summarised_in_the_order_of_their_recipes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small_sts_data: Path
) -> None:
    kept = {"smooth_k2_linear-loss_slope=2-loss_threshold=0.15": (0.7, 0.72)}
    kept["smooth_k2_linear-loss_slope=3-loss_threshold=0.25"] = (0.8, 0.83)  # the baseline
    for cell, values in kept.items():
        for seed, value in enumerate(values, start=1):
            measured = {"cosine": {"all": {"spearman": value}}}
            tasks = {"tasks": {"STS12": measured}, "average": measured}
            record = {"seed": seed, "seconds": 1, "training": {}, "sts_tasks": tasks}
            path = tmp_path / "table5" / cell / f"seed-{seed}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(record))
    monkeypatch.setattr(reproduce, "RESULTS", tmp_path)
    reproduce.summarize_kept("table5", small_sts_data)
    summary = read_summary(tmp_path / "table5" / "summary.json")
    assert list(summary["cells"]) == list(kept)
    low, high = (cell["cosine"]["average"] for cell in summary["cells"].values())
    assert low["versus"][list(kept)[1]]["difference"] == pytest.approx(-0.105)
    assert high["versus"] == {}


def test_a_sweep_goes_on_from_kept_runs_with_their_scores(tmp_path: Path, small_sts_data: Path) -> None:
    scored_pairs = score_tasks(
        load_sts_tasks(small_sts_data), lambda first, _: {"cosine": np.cos(np.arange(len(first)) // 2)}
    )
    runs, kept = tmp_path / "outputs", tmp_path / "results"
    arguments = {"sts_data": str(small_sts_data), "seed": 1}
    record = {"seed": 1, "arguments": arguments, "leakage": {}, "sts_tasks": measure_tasks(scored_pairs)}
    for seed in (1, 2):
        run = runs / "mse_cosine" / f"seed-{seed}"
        run.mkdir(parents=True)
        (run / "run.json").write_text(json.dumps(record))
    write_scores(scored_pairs, runs / "mse_cosine" / "seed-1")
    reproduce.keep_runs(runs, kept)
    assert {path.name for path in (kept / "mse_cosine").iterdir()} == {"seed-1.json", "seed-1.npz", "seed-2.json"}

    assert str(small_sts_data) not in (kept / "mse_cosine" / "seed-1.json").read_text()

    restored = restore_runs(kept, tmp_path / "again", small_sts_data)
    run, without_scores = restored["mse_cosine"]
    assert json.loads((run / "run.json").read_text())["arguments"] == arguments
    assert {path.name for path in without_scores.iterdir()} == {"run.json"}
    before, after = (measure_tasks(pairs)["tasks"] for pairs in (scored_pairs, read_scores(run)))
    spearman = [[tasks[name]["cosine"]["all"]["spearman"] for name in before] for tasks in (before, after)]
    assert spearman[0] == pytest.approx(spearman[1])
    reproduce.keep_runs(tmp_path / "again", tmp_path / "kept again")
    for path in (kept / "mse_cosine").iterdir():
        assert (tmp_path / "kept again" / "mse_cosine" / path.name).read_bytes() == path.read_bytes()

    (run / "run.json").write_text("{}")
    assert restore_runs(kept, tmp_path / "again", small_sts_data) == restored
    assert (run / "run.json").read_text() == "{}"  # a run of the sweep's own stays


def test_kept_scores_of_other_sts_data_are_refused(tmp_path: Path, small_sts_data: Path) -> None:
    scored_pairs = score_tasks(load_sts_tasks(small_sts_data), lambda first, _: {"cosine": np.arange(len(first)) / 99})
    run, kept = tmp_path / "outputs" / "mse_cosine" / "seed-1", tmp_path / "results"
    write_scores(scored_pairs, run)
    (run / "run.json").write_text(json.dumps({"leakage": {}, "sts_tasks": measure_tasks(scored_pairs)}))
    reproduce.keep_runs(tmp_path / "outputs", kept)
    ranks = kept / "mse_cosine" / "seed-1.npz"
    with np.load(ranks) as of_scores:
        cosine = of_scores["cosine"]
    np.savez(ranks, cosine=cosine[::-1])
    with pytest.raises(ValueError, match=r"seed-1\.npz: its Spearman's correlation on STS12 is not that of"):
        restore_runs(kept, tmp_path / "again", small_sts_data)
    np.savez(ranks, cosine=cosine[1:])
    with pytest.raises(ValueError, match=r"seed-1\.npz: ranks of other pairs"):
        restore_runs(kept, tmp_path / "again", small_sts_data)
