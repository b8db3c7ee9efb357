"""Files made to do harm: nothing in them runs or is written outside its folder; and what is installed is pinned."""

import os
import pickle
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import run_sts
from sts_regression.models.loading import find_model, load_model
from sts_regression.sweep.runs import make_cells

Reliability = Callable[[str, int, int, int], None]
ROOT = Path(run_sts.__file__).resolve().parent
NOT_PINNED = {"setuptools"}  # the build's own
OWN_NAME = "sts-regression"  # an extra of ours that asks for others


class Harm:
    """Pickled, it makes a folder when it is read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.fixture
def harm(tmp_path: Path) -> bytes:
    """A pickle that makes the folder `harm` in `tmp_path`."""
    (tmp_path / "proof").mkdir()
    written = pickle.dumps(Harm(tmp_path / "proof" / "harm"))
    pickle.loads(written)
    (tmp_path / "proof" / "harm").rmdir()  # it does what it says
    return written


def write_pairs(folder: Path) -> str:
    rows = [f"a {word},the {word},{number % 4}" for number, word in enumerate(("cat", "dog", "man", "park", "water"))]
    path = folder / "pairs.csv"
    path.write_text("\n".join(["sentence1,sentence2,label", *rows * 20]) + "\n", encoding="utf-8")
    return str(path)


def test_weights_that_are_a_pickle_are_not_read(
    tiny_encoder_path: Path, tmp_path: Path, harm: bytes, reliability: Reliability
) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder_path, folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(harm)
    with pytest.raises(ValueError, match=r"^`model_name_or_path`: .*: its weights are a pickle .* never read"):
        load_model(find_model(str(folder)), {})
    assert not list((tmp_path / "proof").iterdir())
    reliability("harmful pickles in place of weights or states", 1, 0, 1)


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth"])
def test_a_pickle_in_a_checkpoint_is_not_read(
    name: str, tiny_encoder_path: Path, tmp_path: Path, harm: bytes, reliability: Reliability
) -> None:
    options = [f"--model_name_or_path={tiny_encoder_path}", f"--train_file={write_pairs(tmp_path)}"]
    options += ["--leak_filter=none", "--max_steps=2", "--save_strategy=steps", "--save_steps=1", "--eval_steps=1"]
    options += ["--eval_strategy=steps", "--report_to=none", "--disable_tqdm=true", f"--output_dir={tmp_path / 'run'}"]
    run_sts.run_stages(options)
    (tmp_path / "run" / "run.json").unlink()
    checkpoint = tmp_path / "run" / "checkpoint-1"
    shutil.rmtree(tmp_path / "run" / "checkpoint-2", ignore_errors=True)
    (checkpoint / name).write_bytes(harm)
    with pytest.raises(ValueError, match=rf"^{re.escape(str(checkpoint))}: the state of the training is damaged"):
        run_sts.run_stages([*options, "--resume_from_checkpoint=true"])
    assert not list((tmp_path / "proof").iterdir())
    reliability("harmful pickles in place of weights or states", 1, 0, 1)


def test_the_folder_of_a_cell_lies_in_that_of_the_sweep(tmp_path: Path, tiny_encoder_path: Path) -> None:
    recipe = tmp_path / "one.yaml"
    recipe.write_text(f"train_file: {write_pairs(tmp_path)}\n", encoding="utf-8")
    for value in (str(tiny_encoder_path), "../../up", "a b\n#"):
        (cell,) = make_cells([str(recipe)], [f"model_name_or_path={value}"], [])
        assert re.fullmatch(r"one-model_name_or_path=[\w.-]+", cell.name)


def test_all_that_is_installed_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = sum(project["optional-dependencies"].values(), start=project["dependencies"])
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert [str(pin) for pin in pins if not re.fullmatch(r"==[^*]+", str(pin.specifier))] == []
    missing = {Requirement(name).name.lower() for name in wanted} - {pin.name.lower() for pin in pins}
    assert missing - NOT_PINNED == {OWN_NAME}
    for requirement in map(Requirement, wanted):
        for pin in pins:
            if pin.name.lower() == requirement.name.lower():
                (exact,) = pin.specifier
                assert requirement.specifier.contains(exact.version), f"{pin} is not {requirement}"
