"""The documentation site: its generated parts, and a build without a warning."""

import html
import importlib.util
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

import sts_regression
from sts_regression.options.data_arguments import DataArguments
from sts_regression.options.model_arguments import ModelArguments
from sts_regression.options.training_options import TrainingOptions

ROOT = Path(__file__).resolve().parent.parent
URL = "https://example.org/repository"


def load(name: str) -> ModuleType:
    """A module of the site; they are no package, as MkDocs loads them by their files."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / "docs" / "_site" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hooks = load("hooks")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("mkdocs", "material", "mkdocstrings_handlers"):
        pytest.importorskip(package, reason="the docs extra is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return folder


@pytest.mark.parametrize("group", [ModelArguments, DataArguments, TrainingOptions])
def test_the_page_of_options_has_each_of_ours_with_its_help(group: type) -> None:
    page = hooks.options_page()
    sections = dict(re.findall(r"(?ms)^### `--(\w+)` \{ #\1 \}\n\n(.*?)(?=^#|\Z)", page))
    for option in fields(group):
        assert option.metadata["help"].replace("%%", "%") in html.unescape(sections[option.name])


def test_the_page_of_options_tells_values_and_defaults() -> None:
    page = hooks.options_page()
    for line in (
        "### `--learning_rate` { #learning_rate }\n\nValues: a number. Default: `2e-05`.\n",
        "### `--use_peft` { #use_peft }\n\nValues: true or false. Default: `false`.\n",
        "### `--train_weights` { #train_weights }\n\nValues: a number; one or more.\n",
        "### `--pooling` { #pooling }\n\nValues: `mean`, `cls`.\n",
        "Values: text. Default: `$HF_HOME/sts-regression/embeddings`.\n",
    ):
        assert line in page
    assert "outputs/&lt;data&gt;-&lt;loss&gt;" in page
    assert str(Path.home()) not in page


@pytest.mark.parametrize(
    ("link", "document", "url", "expected"),
    [
        ("[own pairs](docs/own_pairs.md)", "README.md", None, "[own pairs](own_pairs.md)"),
        ("[page](../README.md#use-it)", "docs/demo.md", None, "[page](index.md#use-it)"),
        ("[page](../README.md#use-it)", "results/README.md", None, "[page](index.md#use-it)"),
        ("[own](#here)", "README.md", None, "[own](#here)"),
        ("[out](https://optuna.org)", "README.md", None, "[out](https://optuna.org)"),
        ("![chart](comparison/summary.png)", "results/README.md", None, "![chart](results/comparison/summary.png)"),
        ("[code](../run_sts.py)", "docs/lora.md", None, "code (`run_sts.py`)"),
        ("[`run_sts.py`](../run_sts.py)", "docs/lora.md", None, "`run_sts.py`"),
        ("[code](../run_sts.py)", "docs/lora.md", URL, f"[code]({URL}/blob/main/run_sts.py)"),
        ("[them](../results)", "recipes/README.md", URL, f"[them]({URL}/tree/main/results)"),
        ("```text\n[x](docs/own_pairs.md)\n```", "README.md", None, "```text\n[x](docs/own_pairs.md)\n```"),
        ('<a href="docs/own_pairs.md#a">', "README.md", None, '<a href="own_pairs.html#a">'),
    ],
)
def test_links_lead_to_pages_of_the_site(link: str, document: str, url: str | None, expected: str) -> None:
    assert hooks.with_site_links(link, document, url) == expected


def test_a_link_to_a_missing_file_is_refused() -> None:
    with pytest.raises(ValueError, match=r"README\.md links to docs/none\.md, which does not exist"):
        hooks.with_site_links("[x](docs/none.md)", "README.md", None)


def test_docstrings_of_the_dialect_become_those_of_google() -> None:
    pytest.importorskip("griffe", reason="the docs extra is not installed")
    text = "Args:\n    u, v (`Tensor` of shape `(n,)`, *optional*): of [`f`]\n        here.\n    k (`int`): two."
    assert load("docstrings").google_style(text, {"f": "package.f"}) == (
        "Args:\n"
        "    u: (`Tensor` of shape `(n,)`) of"
        ' <autoref optional identifier="package.f"><code>f</code></autoref>\n        here.\n'
        "    v: (`Tensor` of shape `(n,)`) of"
        ' <autoref optional identifier="package.f"><code>f</code></autoref>\n        here.\n'
        "    k: two."
    )


def test_the_site_has_a_page_for_each_name_of_the_interface(site: Path) -> None:
    for name in sts_regression.__all__:
        assert f'id="sts_regression.{name}"' in (site / "reference" / f"{name}.html").read_text(encoding="utf-8")


def test_no_docstring_is_left_in_its_dialect(site: Path) -> None:
    for page in (site / "reference").glob("*.html"):
        text = page.read_text(encoding="utf-8")
        for garbage in ("[<code>", "`Tensor`", "*optional*", "Args:", ":::", "_option("):
            assert garbage not in text, (page.name, garbage)


def test_the_site_fetches_nothing(site: Path) -> None:
    elsewhere = r'="(?:https?:)?//[^"]*'
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert re.findall(rf"<(?:script|img|iframe)[^>]*\bsrc{elsewhere}", text) == [], page
        assert re.findall(rf'<link[^>]*rel="(?:stylesheet|preconnect|preload)"[^>]*href{elsewhere}', text) == [], page
