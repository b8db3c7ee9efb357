"""Files made to do harm: nothing in them runs or is written outside its folder; and installed packages are pinned."""

import pickle
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import run_sts
from sts_regression import __main__ as commands
from sts_regression.basics.hub_tokens import without_tokens, without_values
from sts_regression.basics.seals import SEAL_FILE
from sts_regression.models.loading import find_model, load_model
from sts_regression.sweep.runs import make_cells

TOKEN = f"hf_{'aB3' * 11}x"  # of the form that the Hub's have
SECRET = "swordfish"  # of no form: the value of an unknown option is not shown at all
COMMANDS_WITH_PARSERS = ("search", "export", "publish", "sweep", "compare", "leakage")
Reliability = Callable[[str, int, int, int], None]
ROOT = Path(run_sts.__file__).resolve().parent
NOT_PINNED = {"setuptools"}  # the build's own
OWN_NAME = "sts-regression"  # an extra of ours that asks for others


@pytest.fixture
def harm(tmp_path: Path, harm_in: Callable[[Path], object]) -> bytes:
    """A pickle that makes the folder `harm` in `tmp_path`."""
    (tmp_path / "proof").mkdir()
    written = pickle.dumps(harm_in(tmp_path / "proof" / "harm"))
    pickle.loads(written)
    (tmp_path / "proof" / "harm").rmdir()  # it does harm
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


def test_no_pickle_in_a_checkpoint_is_read(
    tiny_encoder_path: Path, tmp_path: Path, harm: bytes, reliability: Reliability
) -> None:
    options = [f"--model_name_or_path={tiny_encoder_path}", f"--train_file={write_pairs(tmp_path)}"]
    options += ["--leak_filter=none", "--max_steps=2", "--save_strategy=steps", "--save_steps=1", "--eval_steps=1"]
    options.append("--save_total_limit=2")
    options += ["--eval_strategy=steps", "--report_to=none", "--disable_tqdm=true", f"--output_dir={tmp_path / 'run'}"]
    run_sts.run_stages(options)
    (tmp_path / "run" / "run.json").unlink()
    checkpoint = tmp_path / "run" / "checkpoint-1"
    shutil.rmtree(tmp_path / "run" / "checkpoint-2", ignore_errors=True)
    (checkpoint / SEAL_FILE).unlink()  # which somebody who means harm would write anew
    names = ("optimizer.pt", "scheduler.pt", "rng_state.pth")
    for name in names:
        whole = (checkpoint / name).read_bytes()
        (checkpoint / name).write_bytes(harm)
        with pytest.raises(ValueError, match=rf"^{re.escape(str(checkpoint))}: the training state is damaged"):
            run_sts.run_stages([*options, "--resume_from_checkpoint=true"])
        (checkpoint / name).write_bytes(whole)
        assert not list((tmp_path / "proof").iterdir())
    reliability("harmful pickles in place of weights or states", len(names), 0, len(names))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"--x={TOKEN} y", "--x=… y"),
        (f"https://user:{TOKEN}@hub/x", "https://user:…@hub/x"),
        ("hf_oauth_eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.x-Y_z", "…"),
        (f"api_org_{TOKEN[3:]}", "…"),
        (f"{TOKEN}\n{TOKEN}", "…\n…"),
        ("hf_hub_download of hf_transfer", "hf_hub_download of hf_transfer"),
        ("user/hf_distilbert", "user/hf_distilbert"),
    ],
)
def test_what_looks_like_a_token_is_left_out(text: str, expected: str) -> None:
    assert without_tokens(text) == expected


def test_unknown_words_are_shown_without_the_values_of_options() -> None:
    words = ["a", "--hub_tokn", SECRET, f"--x={SECRET}", "b", "-t", SECRET, "--y", "--z"]
    assert without_values(words) == ["a", "--hub_tokn", "…", "--x", "b", "-t", "…", "--y", "--z"]


MISTYPED = [
    [f"--hub_tokn={SECRET}"],
    ["--hub_tokn", SECRET],
    [f"--hub-tokn={TOKEN}"],
    ["--hub_tokn", TOKEN],
    [f"--{TOKEN}"],
    [TOKEN],
]


@pytest.mark.parametrize("words", [*MISTYPED, ["--seed", TOKEN], [f"--loss={TOKEN}"], ["--license", TOKEN]])
def test_no_error_of_training_shows_a_token(words: list[str]) -> None:
    with pytest.raises(SystemExit, match=r"^run_sts\.py: error: ") as raised:
        run_sts.main([*words, "--hub-token", TOKEN])
    assert not re.search(f"{TOKEN}|{SECRET}", str(raised.value))


@pytest.mark.parametrize("command", COMMANDS_WITH_PARSERS)
@pytest.mark.parametrize("words", [*MISTYPED, ["--hub_token", SECRET], ["--model_name_or_path", TOKEN]])
def test_no_error_of_another_command_shows_a_token(
    command: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    required = {
        "search": ["--model_name_or_path=x", "--corpus=c.txt", "--queries=q.txt", "--output_file=o.jsonl"],
        "export": ["x", "--output_dir=absent"],
        "publish": ["x", "--hub_model_id=me/x"],
        "sweep": ["x.yaml"],
        "compare": ["a", "b"],
    }
    with pytest.raises(SystemExit, match=rf"^2$|^sts-regression {command}: error: ") as raised:
        commands.main([command, *required.get(command, []), *words])
    shown = f"{raised.value}{capsys.readouterr()}"
    assert f"{command}: error: " in shown
    assert not re.search(f"{TOKEN}|{SECRET}", shown)


def test_an_unknown_command_is_shown_without_a_token() -> None:
    with pytest.raises(SystemExit, match="unknown command '…'"):
        commands.main([TOKEN])


def test_no_file_of_a_run_holds_a_token(tiny_encoder_path: Path, tmp_path: Path) -> None:
    options = [f"--model_name_or_path={tiny_encoder_path}", f"--train_file={write_pairs(tmp_path)}", "--max_steps=1"]
    options += ["--leak_filter=none", "--report_to=none", "--disable_tqdm=true", f"--output_dir={tmp_path / 'run'}"]
    run_sts.run_stages([*options, f"--run_name={TOKEN}", "--hub-token", TOKEN, f"--hub_token={TOKEN}"])
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert {"run.json", "options.json", "README.md", "report.html"} <= {path.name for path in files}
    assert [path.name for path in files if TOKEN.encode() in path.read_bytes()] == []


def test_the_folder_of_a_cell_lies_in_that_of_the_sweep(tmp_path: Path, tiny_encoder_path: Path) -> None:
    recipe = tmp_path / "one.yaml"
    recipe.write_text(f"train_file: {write_pairs(tmp_path)}\n", encoding="utf-8")
    for value in (str(tiny_encoder_path), "../../up", "a b\n#", TOKEN):
        (cell,) = make_cells([str(recipe)], [f"model_name_or_path={value}"], [])
        assert re.fullmatch(r"one-model_name_or_path=[\w.-]+", cell.name)
        assert TOKEN not in cell.name


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
