"""The commands of the READMEs and of the recipes' headers are accepted by the programs; the ways of loading work."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerBase

from sts_regression.__main__ import main
from sts_regression.command.arguments import parse_stages
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.sweep import runs as sweep

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "recipes/README.md")),
    *(ROOT / "docs").glob("*.md"),
]


def commands() -> list[str]:
    """Lines of code blocks, code within sentences, and comments at the head of recipes, that run a program of ours."""
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    start = "(?:accelerate|python|sts-regression) "
    candidates = [line for text in texts for line in re.findall(rf"(?m)^{start}.*$", text)]
    candidates += [code for text in texts for code in re.findall(rf"`({start}[^`\n]+)`", text)]
    for recipe in (ROOT / "recipes").rglob("*.yaml"):
        header = recipe.read_text(encoding="utf-8").replace("\\\n#", "")
        candidates += re.findall(rf"(?m)^#\s+({start}.*)$", header)
    programs = ("run_sts.py", "sts-regression ", "-m benchmarks.")
    return sorted({line for line in candidates if any(program in line for program in programs)})


def test_runs_in_the_clone_are_out_of_sight() -> None:
    assert Path("recipes").is_dir()
    assert not Path("outputs").exists()


def test_only_one_command_lets_the_launcher_guess() -> None:
    launched = {line for line in commands() if line.startswith("accelerate launch ") and "…" not in line}
    assert {line for line in launched if "--config_file" not in line} == {
        "accelerate launch run_sts.py --loss smooth_k2"
    }


def test_there_are_commands_to_check() -> None:
    assert len(commands()) > 15


@pytest.mark.parametrize("command", [line for line in commands() if "run_sts.py" in line])
def test_the_training_command_accepts_it(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "--use_peft" in command:
        pytest.importorskip("peft")
    words = shlex.split(command.replace("[", "").replace("]", ""))
    parse_stages([word for word in words[words.index("run_sts.py") + 1 :] if word != "…"])


@pytest.mark.parametrize("command", [line for line in commands() if line.startswith("sts-regression ")])
def test_the_installed_command_has_the_options(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = shlex.split(command)
    name = words[1]
    if name == "sweep" and "RECIPES" not in words:
        monkeypatch.setattr(sweep, "run_all", lambda runs, num_jobs, keep_models: [])
        monkeypatch.setattr(sweep, "write_summary", lambda output_dir, runs, baselines: " ".join(runs))
        main(words[1:])
        return
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    help_text = capsys.readouterr().out
    for word in words:
        if word.startswith("--"):
            assert word.partition("=")[0] in help_text


@pytest.mark.parametrize(
    ("library", "printed"),
    [("transformers import pipeline", "'grade'"), ("sentence_transformers", "[["), ("AutoModel", "tensor([")],
)
def test_a_way_of_loading_works_in_a_fresh_process(
    library: str,
    printed: str,
    make_model: Callable[..., STSRegressionModel],
    tokenizer: PreTrainedTokenizerBase,
    save_checkpoint: Callable[..., Path],
    run_in_subprocess: Callable[..., str],
    tmp_path: Path,
) -> None:
    if library == "sentence_transformers":
        pytest.importorskip(library, reason="the sentence-transformers extra is not installed")
    text = (ROOT / "docs" / "using.md").read_text(encoding="utf-8")
    code = [block for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if library in block]
    assert len(code) == 1
    save_checkpoint(make_model(), tokenizer, tmp_path / "outputs" / "quickstart-smooth_k2")
    *lines, last = code[0].strip().splitlines()
    shown = "\n".join([*lines, f"print({last.partition('  #')[0]})"])
    assert printed in run_in_subprocess(shown, cwd=tmp_path)
