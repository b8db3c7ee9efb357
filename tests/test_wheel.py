"""The package as it is installed: not editable, from a wheel, used from another folder."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sts_regression import SHIPPED_MODULES, run_sts
from sts_regression.__main__ import COMMANDS, main

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package, as in site-packages."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(ROOT)]
    finished = subprocess.run(pip, capture_output=True, text=True)
    if "Could not find a version that satisfies the requirement hatchling" in finished.stderr:
        pytest.skip("no package index to fetch hatchling from")
    assert finished.returncode == 0, finished.stderr
    return folder


def call(installed: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python with the installed package, and without the clone."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    return subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_nothing_is_left_at_the_top_level(installed: Path) -> None:
    names = {path.name for path in installed.iterdir() if path.suffix != ".dist-info"}
    assert names == {"sts_regression", "bin"}
    modules = {path.stem for path in (installed / "sts_regression").glob("*.py")}
    assert {*SHIPPED_MODULES, "run_sts"} <= modules
    assert (installed / "sts_regression" / "py.typed").is_file()


@pytest.mark.slow
def test_no_module_can_be_imported_twice(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("")
    code = "import sts_regression, sts_regression.modeling_sts_regression as m; print(m.__file__)"
    assert str(installed) in call(installed, tmp_path, "-c", code).stdout
    for module in ("sts_regression.other", "sts_regression.tests"):
        assert "ModuleNotFoundError" in call(installed, tmp_path, "-c", f"import {module}").stderr


@pytest.mark.slow
def test_an_installed_package_trains(installed: Path, tmp_path: Path, tiny_encoder_path: Path) -> None:
    pairs_file = tmp_path / "pairs.csv"
    pairs_file.write_text(
        "sentence1,sentence2,label\n" + "".join(f"the cat {i},a dog {i},{i % 6}\n" for i in range(12))
    )
    files = [f"--{split}_file={pairs_file}" for split in ("train", "validation", "test")]
    options = [f"--model_name_or_path={tiny_encoder_path}", "--num_train_epochs=1", "--leak_filter=none"]
    command = ["-m", "sts_regression", "train", *files, *options, f"--output_dir={tmp_path / 'run'}"]
    finished = call(installed, tmp_path, *command)
    assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "run" / "modeling_sts_regression.py").is_file()
    predict = ["-m", "sts_regression", "predict", f"--model_name_or_path={tmp_path / 'run'}"]
    finished = call(installed, tmp_path, *predict, f"--predict_file={pairs_file}", f"--output_dir={tmp_path / 'out'}")
    assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "out" / "predictions.csv").is_file()


def test_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in COMMANDS)


@pytest.mark.parametrize(("name", "given"), [("evaluate", "--do_eval=true"), ("predict", "--do_predict=true")])
def test_a_recipe_comes_before_the_options_of_a_command(
    name: str, given: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recipe, called = tmp_path / "recipe.yaml", []
    recipe.write_text("test_file: a.csv\n")
    monkeypatch.setattr(run_sts, "main", lambda words, prog: called.append(words))
    main([name, str(recipe), "--seed=1"])
    assert called[0][0] == str(recipe)
    assert given in called[0][1:]
    assert called[0][-1] == "--seed=1"


def test_an_unknown_command_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"sts-regression: error: unknown command 'trian'. Known commands: train"):
        main(["trian"])


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main([name, "--help"])
    assert "usage: " in capsys.readouterr().out


def test_the_finder_of_a_clone_is_one_as_python_knows_them() -> None:
    importlib.invalidate_caches()  # calls every finder
