"""Sweeps: cells and runs, what is skipped and refused, and the summary of made-up runs."""

import json
import re
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from sts_regression import sweep
from sts_regression.saving import alone_in
from sts_regression.sts_evaluation import measure_tasks, write_scores
from sts_regression.sweep import check_runs, make_cells, run_all, runs_of
from sts_regression.sweep_report import compare_seeds, summarize, summary_rows, write_summary

NUM_PAIRS = 200
TASKS = ("STS12", "STS-B")


def write_recipe(folder: Path, text: str = "train_file: a.csv\n", name: str = "one") -> str:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def write_run(folder: Path, noise: float, seed: int, head_noise: float | None = None) -> None:
    """A run whose scores are the gold scores with so much noise."""
    generator = np.random.default_rng(seed)
    gold = np.tile(np.linspace(0, 5, NUM_PAIRS), len(TASKS))
    scores = {"cosine": gold + noise * generator.standard_normal(len(gold))}
    if head_noise is not None:
        scores["head"] = gold + head_noise * generator.standard_normal(len(gold))
    numbers = [f"pair {number}" for number in range(len(gold))]
    places = {"task": np.repeat(TASKS, NUM_PAIRS), "subset": [""] * len(gold), "genre": [""] * len(gold)}
    scored = Dataset.from_dict({**places, "pair": numbers, "gold_score": gold, **scores})
    folder.mkdir(parents=True)
    write_scores(scored, folder)
    record: dict[str, Any] = {"seed": seed, "seconds": 10.0 * seed, "sts_tasks": measure_tasks(scored)}
    record["results"] = {"before training": {}, "after training": {"validation": {"spearman_cosine": 0.5 + seed / 10}}}
    (folder / "run.json").write_text(json.dumps(record))


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    for seed in (1, 2, 3):
        write_run(tmp_path / "good" / f"seed-{seed}", 0.5, seed, 0.6)
        write_run(tmp_path / "bad" / f"seed-{seed}", 2.0, 10 + seed)
        write_run(tmp_path / "same" / f"seed-{seed}", 0.5, 20 + seed)
    write_run(tmp_path / "untouched" / "seed-1", 1.0, 31)
    (tmp_path / "good" / "seed-4").mkdir()  # not finished
    return tmp_path


def folders(output_dir: Path, *cells: str) -> dict[str, list[Path]]:
    return {cell: [output_dir / cell / f"seed-{seed}" for seed in (1, 2, 3, 4)] for cell in cells}


def test_a_cell_for_each_recipe_and_point_of_the_grid(tmp_path: Path) -> None:
    recipes = [write_recipe(tmp_path), write_recipe(tmp_path, name="two")]
    cells = make_cells(recipes, ["loss_slope=2,3", "loss=mse,smooth_k2"], ["--num_train_epochs=1"])
    assert [cell.name for cell in cells][:4] == [
        "one-loss_slope=2-loss=mse",
        "one-loss_slope=2-loss=smooth_k2",
        "one-loss_slope=3-loss=mse",
        "one-loss_slope=3-loss=smooth_k2",
    ]
    assert len(cells) == 8
    assert cells[0].options == (recipes[0], "--num_train_epochs=1", "--loss_slope=2", "--loss=mse")


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        (["loss"], [], "`grid`: 'loss' is not of the form option=value,value."),
        (["=1"], [], "`grid`: '=1' is not of the form"),
        (["los=mse"], [], "unknown option '--los=mse'. Did you mean 'loss'?"),
        (["loss=mse,mse"], [], "two cells are called 'one-loss=mse'"),
        ([], ["--push_to_hub", "--hub_model_id=me/x"], "`push_to_hub`: a sweep publishes nothing"),
        ([], ["--sead=1"], "unknown option '--sead=1'. Did you mean 'seed'?"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(
    tmp_path: Path, grid: list[str], options: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make_cells([write_recipe(tmp_path)], grid, options)


def test_what_trains_nothing_runs_once(tmp_path: Path) -> None:
    recipes = [write_recipe(tmp_path), write_recipe(tmp_path, "test_file: a.csv\n", "scored")]
    runs = [runs_of(cell, 3, tmp_path / "out") for cell in make_cells(recipes, [], [])]
    assert [[run.seed for run in of_cell] for of_cell in runs] == [[1, 2, 3], [1]]
    assert runs[0][2].folder == tmp_path / "out" / "one" / "seed-3"


def write_fake_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of run_sts.py: notes that it was called, leaves a run and a weight, fails for seed 2."""
    script = folder / "command.py"
    script.write_text(
        "import json, pathlib, sys\n"
        "folder = pathlib.Path(next(a for a in sys.argv if a.startswith('--output_dir=')).partition('=')[2])\n"
        "with (folder / 'calls').open('a') as calls: calls.write('x')\n"
        "if '--seed=2' in sys.argv: sys.exit('no luck')\n"
        "(folder / 'model.safetensors').write_text('weights')\n"
        "(folder / 'stage-1' / 'checkpoint-7').mkdir(parents=True)\n"
        "(folder / 'run.json').write_text(json.dumps({'seed': 1, 'seconds': 1.0}))\n"
        "options = {'train_file': ['a.csv'], 'do_train': True, 'do_eval': True, 'seed': 1}\n"
        "(folder / 'options.json').write_text(json.dumps(options))\n"
        "(folder / 'words').write_text(' '.join(sys.argv))\n"
    )
    monkeypatch.setattr(sweep, "COMMAND", script)


def test_finished_runs_are_skipped_and_failed_ones_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fake_command(tmp_path, monkeypatch)
    [cell] = make_cells([write_recipe(tmp_path)], [], [])
    runs = runs_of(cell, 3, tmp_path / "out")
    for _ in range(2):
        assert run_all(runs, num_jobs=2, keep_models=False) == [runs[1].folder]
    assert [(run.folder / "calls").read_text() for run in runs] == ["x", "xx", "x"]
    assert "no luck" in (runs[1].folder / "log.txt").read_text()
    assert {path.name for path in runs[0].folder.rglob("*")} == {
        *("calls", "run.json", "log.txt", "options.json", "stage-1", "words")
    }


def test_a_run_that_a_killed_sweep_has_left_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fake_command(tmp_path, monkeypatch)
    [cell] = make_cells([write_recipe(tmp_path)], [], [])
    [run] = runs_of(cell, 1, tmp_path / "out")
    locked = threading.Event()

    def finish_late() -> None:
        with alone_in(run.folder):
            locked.set()
            time.sleep(0.3)
            run.folder.mkdir(parents=True, exist_ok=True)
            (run.folder / "run.json").write_text("{}")

    thread = threading.Thread(target=finish_late)
    thread.start()
    assert locked.wait(timeout=10)
    assert run_all([run], num_jobs=1, keep_models=False) == []
    thread.join()
    assert not (run.folder / "calls").exists()


def test_models_are_kept_where_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fake_command(tmp_path, monkeypatch)
    [cell] = make_cells([write_recipe(tmp_path)], [], [])
    [run] = runs_of(cell, 1, tmp_path / "out")
    run_all([run], num_jobs=1, keep_models=True)
    assert (run.folder / "model.safetensors").is_file()


def test_a_run_of_another_recipe_is_not_taken_for_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fake_command(tmp_path, monkeypatch)
    [cell] = make_cells([write_recipe(tmp_path)], [], [])
    run_all(runs_of(cell, 1, tmp_path / "out"), 1, False)
    check_runs(runs_of(cell, 1, tmp_path / "out"))
    write_recipe(tmp_path, "train_file: a.csv\nloss: mse\n")
    with pytest.raises(ValueError, match="holds a run with other options: `loss` as by default, now 'mse'"):
        check_runs(runs_of(cell, 1, tmp_path / "out"))


def test_summary_of_finished_runs(finished: Path) -> None:
    summary = summarize(folders(finished, "good", "bad", "same", "absent"), ["good"])
    assert list(summary["cells"]) == ["good", "bad", "same"]
    good, bad, same = summary["cells"].values()
    assert (good["seeds"], good["seconds"]) == ([1, 2, 3], 20)
    values = [
        json.loads((finished / "good" / f"seed-{seed}" / "run.json").read_text())["sts_tasks"]["average"]["cosine"]
        for seed in (1, 2, 3)
    ]
    expected = [value["all"]["spearman"] for value in values]
    assert good["cosine"]["average"]["values"] == expected
    assert good["cosine"]["average"]["mean"] == pytest.approx(np.mean(expected))
    assert good["cosine"]["average"]["sd"] == pytest.approx(np.std(expected, ddof=1))
    assert good["cosine"]["development"]["mean"] == pytest.approx(0.7)
    assert good["cosine"]["versus"] == {}
    versus = bad["cosine"]["versus"]["good"]["average"]
    assert versus["difference"] == pytest.approx(bad["cosine"]["average"]["mean"] - good["cosine"]["average"]["mean"])
    assert versus["low"] < versus["difference"] < versus["high"] < 0
    assert versus["p"] < 0.01
    assert same["cosine"]["versus"]["good"]["average"]["p"] > 0.05
    assert "head" not in bad


def test_a_head_is_tested_against_the_cosine_of_a_baseline_without_one(finished: Path) -> None:
    summary = summarize(folders(finished, "good", "untouched"), ["untouched", "good"])
    good, untouched = summary["cells"]["good"], summary["cells"]["untouched"]
    expected = good["head"]["average"]["mean"] - untouched["cosine"]["average"]["mean"]
    assert good["head"]["versus"]["untouched"]["average"]["difference"] == pytest.approx(expected)
    assert untouched["cosine"]["average"]["sd"] is None
    assert set(untouched["cosine"]["versus"]) == {"good"}


def test_a_score_that_a_run_lacks_is_not_summarised(finished: Path) -> None:
    write_run(finished / "mixed" / "seed-1", 0.5, 1, head_noise=0.6)
    write_run(finished / "mixed" / "seed-2", 0.5, 2)
    mixed = summarize(folders(finished, "mixed"), [])["cells"]["mixed"]
    assert len(mixed["cosine"]["average"]["values"]) == 2
    assert "head" not in mixed


def test_seeds_and_pairs_both_widen_the_interval() -> None:
    generator = np.random.default_rng(0)
    pairs = 0.01 * generator.standard_normal(1000)
    base = [{"average": 0.7 + pairs}]
    alike = [{"average": 0.8 + pairs} for _ in range(3)]
    apart = [{"average": 0.8 + shift + pairs} for shift in (-0.05, 0, 0.05)]
    paired, spread = (compare_seeds(base, runs)["average"] for runs in (alike, apart))
    assert (paired["low"], paired["high"]) == pytest.approx((0.1, 0.1))
    assert spread["high"] - spread["low"] > 0.05


def test_the_summary_is_written(finished: Path) -> None:
    screen = write_summary(finished, folders(finished, "good", "bad"), ["bad"])
    assert {"summary.json", "summary.md", "summary.png"} <= {path.name for path in finished.iterdir()}
    assert "against `bad`" in screen
    rows = summary_rows(json.loads((finished / "summary.json").read_text()), "cosine", ["bad"])
    assert rows[0] == ["method", "seeds", "development", *TASKS, "average", "against `bad`", "p"]
    assert rows[1][:3] == ["good", "3", "70.00 ± 10.00"]
    assert rows[2][-2:] == ["–", "–"]


def test_the_command_names_an_unknown_baseline(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"`baseline` 'two' is not among the cells: one\."):
        sweep.main([write_recipe(tmp_path), "--baseline", "two"])


@pytest.mark.parametrize("option", ["--seeds=0", "--jobs=0"])
def test_there_is_at_least_one_seed_and_one_job(tmp_path: Path, option: str) -> None:
    with pytest.raises(SystemExit, match="must be at least 1, but is 0"):
        sweep.main([write_recipe(tmp_path), option])


def test_recipes_come_first(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="'FOLDER' is no recipe"):
        sweep.main(["--sts_data", "FOLDER", write_recipe(tmp_path)])


def test_options_of_the_training_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fake_command(tmp_path, monkeypatch)
    output_dir = tmp_path / "out"
    with pytest.raises(SystemExit, match="1 of 2 runs failed"):
        sweep.main([write_recipe(tmp_path), "--seeds=2", "--output_dir", str(output_dir), "--learning_rate", "1e-4"])
    assert "--learning_rate 1e-4 --seed=1" in (output_dir / "one" / "seed-1" / "words").read_text()


def test_seeds_that_were_not_asked_for_do_not_count(finished: Path) -> None:
    runs = {"good": folders(finished, "good")["good"][:2]}
    assert summarize(runs, [])["cells"]["good"]["seeds"] == [1, 2]


def test_a_summary_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="holds no finished run of these cells"):
        sweep.main([write_recipe(tmp_path), "--summary_only", f"--output_dir={tmp_path}"])
