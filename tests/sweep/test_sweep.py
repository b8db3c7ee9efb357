"""Sweeps: cells and runs, skipped and refused ones too."""

import copy
import hashlib
import re
import threading
import time
from pathlib import Path

import pytest

from sts_regression.basics.files import alone_in
from sts_regression.sweep import runs as sweep
from sts_regression.sweep.runs import Run, check_models, check_runs, make_cells, run_all, runs_of
from sts_regression.training.run_folder import begin_run
from sts_regression.training.run_record import describe_arguments


def write_recipe(folder: Path, text: str = "train_file: a.csv\n", name: str = "one") -> str:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


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
        (["los=mse"], [], "unknown option '--los'. Did you mean `--loss`?"),
        (["seed=1,2"], [], "the sweep sets `seed` for each run. Leave it out; `--seeds` gives the number of seeds."),
        ([], ["--overwrite-output-dir"], "the sweep sets `overwrite-output-dir` for each run"),
        (["loss=mse,mse"], [], "two cells are called 'one-loss=mse'"),
        ([], ["--push_to_hub", "--hub_model_id=me/x"], "`push_to_hub`: a sweep publishes nothing"),
        ([], ["--sead=1"], "unknown option '--sead'. Did you mean `--seed`?"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(
    tmp_path: Path, grid: list[str], options: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make_cells([write_recipe(tmp_path)], grid, options)


def began(run: Run, model: str = "", **files: str) -> None:
    """Notes the pairs and options of a run, as a training does."""
    run.folder.mkdir(parents=True)
    digests = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in files.items()}
    inputs = {"model": model, "files": digests}
    begin_run(run.stages[0].training_args, describe_arguments(*run.stages[0].options), inputs)


def test_seeds_of_other_pairs_are_refused(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("as it is")
    [cell] = make_cells([write_recipe(tmp_path, f"train_file: {pairs}")], [], [])
    first, second = runs_of(cell, 2, tmp_path / "out")
    began(first, **{str(pairs): "as it is"})
    check_runs([first, second])
    began(second, **{str(pairs): "as it was"})
    with pytest.raises(ValueError, match=r"seed-2 holds a run on earlier pairs: .*pairs\.csv has changed since"):
        check_runs([first, second])


def test_seeds_of_another_model_are_refused(tmp_path: Path) -> None:
    [cell] = make_cells([write_recipe(tmp_path)], [], [])
    first, second, third = runs_of(cell, 3, tmp_path / "out")
    began(first, "one")
    began(second, "one")
    check_runs([first, second, third])
    began(third, "another")
    with pytest.raises(
        ValueError, match=r"seed-1 and .*seed-3 began with different weights under the same model name"
    ):
        check_runs([first, second, third])


def test_the_model_of_a_seed_is_that_before_training_on_bundled_pairs(tmp_path: Path) -> None:
    path = write_recipe(tmp_path, "train_file: a.csv\nbundled_pairs_first: true\nrefit: false\nscore_function: cosine")
    [cell] = make_cells([path], [], [])
    runs = runs_of(cell, 2, tmp_path / "out")
    for run, model in zip(runs, ("one", "another"), strict=True):
        bundled = [stage._replace(is_bundled=True) for stage in run.stages]
        run.stages[:0] = [bundled[0]._replace(training_args=copy.copy(bundled[0].training_args))]
        run.stages[0].training_args.output_dir = str(run.folder / "bundled")
        stage = run.stages[-1]
        begin_run(stage.training_args, describe_arguments(*stage.options), {"model": model, "files": {}})
    with pytest.raises(ValueError, match="began with different weights"):
        check_models(runs)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit, match=r"^sts-regression sweep: error: .*Not a directory"):
        sweep.main([write_recipe(tmp_path), f"--output_dir={tmp_path / 'file' / 'out'}"])


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
    monkeypatch.setattr(sweep, "COMMAND", (str(script),))


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
    with pytest.raises(ValueError, match="holds a run with other options: `loss` the default, now 'mse'"):
        check_runs(runs_of(cell, 1, tmp_path / "out"))


def test_the_command_names_an_unknown_baseline(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"`baseline` 'two' is not among the cells: one\."):
        sweep.main([write_recipe(tmp_path), "--baseline", "two"])


@pytest.mark.parametrize("option", ["--seeds=0", "--jobs=0"])
def test_there_is_at_least_one_seed_and_one_job(tmp_path: Path, option: str) -> None:
    with pytest.raises(SystemExit, match="must be at least 1, but is 0"):
        sweep.main([write_recipe(tmp_path), option])


def test_recipes_come_first(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="'FOLDER' is not a recipe"):
        sweep.main(["--sts_data", "FOLDER", write_recipe(tmp_path)])


def test_options_of_the_training_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fake_command(tmp_path, monkeypatch)
    output_dir = tmp_path / "out"
    with pytest.raises(SystemExit, match="1 of 2 runs failed"):
        sweep.main([write_recipe(tmp_path), "--seeds=2", "--output_dir", str(output_dir), "--learning_rate", "1e-4"])
    assert "--learning_rate 1e-4 --seed=1" in (output_dir / "one" / "seed-1" / "words").read_text()


def test_a_summary_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="holds no finished run of these cells"):
        sweep.main([write_recipe(tmp_path), "--summary_only", f"--output_dir={tmp_path}"])


@pytest.mark.parametrize("name", ["summary.md", "summary.json", "summary.png", "one/seed-1/report.html"])
def test_files_of_others_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    write_fake_command(tmp_path, monkeypatch)
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.write_text('{"mine": 1}')
    with pytest.raises(SystemExit, match=rf"`output_dir` .* holds files that no .* wrote, such as '{path.name}'"):
        sweep.main([write_recipe(tmp_path), f"--output_dir={tmp_path / 'out'}"])
    assert path.read_text() == '{"mine": 1}'
    assert [other for other in (tmp_path / "out").rglob("*") if other.is_file()] == [path]
