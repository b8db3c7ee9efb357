"""The documentation site beside `docs/`, for MkDocs: pages that lie elsewhere, the options, the reference.

Pages are made when the site is built, so that they cannot go stale. Nothing here loads torch.
"""

import html
import json
import posixpath
import re
import shutil
import tempfile
import tomllib
import types
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from huggingface_hub.constants import HF_HOME

import sts_regression
from sts_regression.options.data_arguments import DataArguments
from sts_regression.options.model_arguments import ModelArguments
from sts_regression.options.training_options import TrainingOptions

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = "docs/"
# Documents that lie elsewhere, and the pages that they become.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "recipes/README.md": "recipes.md",
    "results/README.md": "results.md",
    "results/reliability.md": "reliability.md",
    "results/graded_pairs/graded_pairs.md": "graded_pairs.md",
    "sts_regression/quickstart/README.md": "bundled_pairs.md",
}
# Modules beside the interface whose page has all their public members, and the title of the page.
REFERENCE_MODULES = {
    "losses": ("Losses", "losses_sts_regression"),
    "metric": ("The metric of `evaluate`", "evaluation.sts_metric"),
    "pipeline": ("The pipeline of transformers", "pipeline_sts_regression"),
}
# Shown on the page of the class that they belong to.
_MODELING = "sts_regression.modeling_sts_regression"
SHOWN_WITH = {
    "STSRegressionModel": (f"{_MODELING}.STSRegressionOutput", f"{_MODELING}.STSRegressionForSequenceClassification"),
}
OPTIONS_LINK = "Its fields are the [options of training](../options.md#training)."
IMAGES = (".png", ".svg", ".jpg", ".gif")
FENCED = re.compile(r"(?ms)^(```.*?^```[^\n]*$)")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
BADGE = re.compile(r"(?m)^\[?!\[[^\]]*\]\(https://img\.shields\.io/[^)]*\)(?:\]\([^)]*\))?\n")  # from another server
HTML_LINK = re.compile(r'\b(src|href)="([^"]+)"')
OPTION_TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
OPTIONS_INTRODUCTION = """\
# Options

This page lists the options of `run_sts.py`, of recipes (without the dashes) and of `PairGrader.fit`, with the groups
and help texts of `python run_sts.py --help`. The options of transformers' `TrainingArguments` work, too:
`python run_sts.py --help_all` lists them.
"""

_view: tempfile.TemporaryDirectory[str] | None = None  # of the package; goes with the process


def on_config(config: "MkDocsConfig") -> "MkDocsConfig":
    """Shows mkdocstrings the package as it is installed, with the modules at the root of the repository in it."""
    global _view
    _view = tempfile.TemporaryDirectory()
    package = Path(_view.name) / "sts_regression"
    shutil.copytree(ROOT / "sts_regression", package, ignore=shutil.ignore_patterns("__pycache__"))
    for module in (*sts_regression.SHIPPED_MODULES, "run_sts"):
        shutil.copy(ROOT / f"{module}.py", package)
    config.plugins["mkdocstrings"].config["handlers"]["python"]["paths"] = [_view.name]
    return config


on_config.mkdocs_priority = 100  # type: ignore[attr-defined] # before mkdocstrings reads it


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Adds the pages that do not lie in `docs/`."""
    from mkdocs.structure.files import File

    for document, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / document)))
    for notebook in sorted((ROOT / DOCS / "notebooks").glob("*.ipynb")):
        page = f"notebooks/{notebook.stem}.md"
        files.append(File.generated(config, page, content=notebook_page(notebook)))
    files.append(File.generated(config, "options.md", content=options_page()))
    for page, content in reference_pages().items():
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """Makes links into the repository links within the site, and brings the pictures along."""
    from mkdocs.structure.files import File

    documents = {uri: document for document, uri in PAGES.items()}
    document = documents.get(page.file.src_uri, DOCS + page.file.src_uri)
    if not (ROOT / document).is_file():  # made here, with its links right
        return markdown
    text = BADGE.sub("", with_site_links(markdown, document, repository_url()))
    for target in linked_files(markdown, document):
        uri = page_of(target)
        if target.endswith(IMAGES) and files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / target)))
    return text


def reference_pages() -> dict[str, str]:
    """For each name of the Python interface, and each of `REFERENCE_MODULES`, a page that mkdocstrings fills."""
    pages = {f"reference/{name}.md": f"::: sts_regression.{name}\n" for name in sts_regression.__all__}
    for name, paths in SHOWN_WITH.items():
        parts = [f"\n::: {path}\n{_reference_options(heading_level=2)}" for path in paths]
        pages[f"reference/{name}.md"] += "".join(parts)
    # A signature of so many options tells nobody anything.
    pages["reference/STSTrainingArguments.md"] += f"{_reference_options(show_signature=False)}\n{OPTIONS_LINK}\n"
    for name, (title, module) in REFERENCE_MODULES.items():
        options = _reference_options(heading_level=1, show_root_heading=False)
        pages[f"reference/{name}.md"] = f"# {title}\n\n::: sts_regression.{module}\n{options}"
    return pages


def _reference_options(**options: bool | int) -> str:
    return "    options:\n" + "".join(f"      {name}: {str(value).lower()}\n" for name, value in options.items())


def notebook_page(notebook: Path) -> str:
    """The cells of a notebook and their output."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            if (table := output["data"].get("text/html")) is not None:
                parts.append(re.sub(r"(?s)<style.*?</style>\n?", "", "".join(table)))
            else:
                parts.append("```text\n" + "".join(output["data"]["text/plain"]) + "\n```")
    return "\n\n".join([*parts, f"The notebook: [{notebook.name}]({notebook.name})."]) + "\n"


def options_page() -> str:
    """Every option of ours, in the groups of `--help`: values, default, help."""
    parts = [OPTIONS_INTRODUCTION]
    for group in (ModelArguments, DataArguments, TrainingOptions):
        hints = get_type_hints(group)
        parts.append(f"## {group._argument_group_name.capitalize()}\n\n{group.__doc__}\n")
        for option in fields(group):
            help_text = html.escape(option.metadata["help"].replace("%%", "%"), quote=False)
            values = _values_of(option, hints[option.name])
            parts.append(f"### `--{option.name}` {{ #{option.name} }}\n\n{values}\n\n{help_text}\n")
    return "\n".join(parts)


def _values_of(option: "Field[Any]", hint: Any) -> str:
    """The values of an option and, unless the help names it, the default."""
    kinds = list(get_args(hint)) if get_origin(hint) is types.UnionType else [hint]
    several = next((kind for kind in kinds if get_origin(kind) is list), None)
    kind = get_args(several)[0] if several else next(kind for kind in kinds if kind is not type(None))
    if choices := option.metadata.get("choices"):
        values = ", ".join(f"`{choice}`" for choice in choices)
    else:
        values = OPTION_TYPES[kind]
    if several:
        values += "; one or more"
    default = option.default
    if default in (None, "", MISSING) or "default" in option.metadata["help"].lower():
        return f"Values: {values}."
    shown = str(default).lower() if isinstance(default, bool) else str(default).replace(HF_HOME, "$HF_HOME")
    return f"Values: {values}. Default: `{shown}`."


def repository_url() -> str | None:
    """Where the repository is, if pyproject.toml says so."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    urls = {name.lower(): url for name, url in project.get("urls", {}).items()}
    url = urls.get("repository") or urls.get("source")
    return None if url is None else str(url).rstrip("/")


def page_of(path: str) -> str:
    """Where a file of the repository is among the sources of the site."""
    return PAGES.get(path, path.removeprefix(DOCS))


def linked_files(markdown: str, document: str) -> Iterator[str]:
    """Files of the repository that a document links to, outside its blocks of code."""
    for part in FENCED.split(markdown)[::2]:
        links = re.findall(r"\]\(([^)\s]+)\)", part) + [link for _, link in HTML_LINK.findall(part)]
        for link in links:
            if (found := _in_repository(link, document)) is not None:
                yield found[0]


def with_site_links(markdown: str, document: str, url: str | None) -> str:
    """
    A document with its links as the site needs them.

    Args:
        markdown: its text.
        document: its path in the repository.
        url: of the repository; without one, a file that has no page is named instead.

    Raises:
        ValueError: for a link to a file that is not there.
    """

    def changed(match: "re.Match[str]") -> str:
        mark, text, link = match.groups()
        text = LINK.sub(changed, text)
        target = _site_target(link, document, url)
        if target is not None:
            return f"{mark}[{text}]({target})"
        path = _in_repository(link, document)[0]  # type: ignore[index] # a file elsewhere keeps its address
        return text if path in text else f"{text} (`{path}`)"

    def changed_html(match: "re.Match[str]") -> str:
        attribute, link = match.groups()
        return f'{attribute}="{_site_target(link, document, url, as_html=True) or link}"'

    parts = FENCED.split(markdown)
    parts[::2] = [HTML_LINK.sub(changed_html, LINK.sub(changed, part)) for part in parts[::2]]
    return "".join(parts)


def _in_repository(link: str, document: str) -> tuple[str, str] | None:
    """Path and fragment of the target of a link; `None` for another place of itself, and for other sites."""
    path, mark, fragment = link.partition("#")
    if not path or path.startswith("/") or re.match(r"[a-z]+:", path):
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(document), path))
    if not (ROOT / target).exists():
        raise ValueError(f"{document} links to {link}, which does not exist. Set the link right.")
    return target, mark + fragment


def _site_target(link: str, document: str, url: str | None, as_html: bool = False) -> str | None:
    """Where a link leads to from the page of a document; `None` if there is nothing to lead to."""
    found = _in_repository(link, document)
    if found is None:
        return link
    path, fragment = found
    if path in PAGES or path.endswith(IMAGES) or (path.startswith(DOCS) and path.endswith(".md")):
        page = page_of(path)
        target = posixpath.relpath(page, posixpath.dirname(page_of(document)) or ".")
        return (target.removesuffix(".md") + ".html" if as_html and target.endswith(".md") else target) + fragment
    if url is None:
        return None
    return f"{url}/{'tree' if (ROOT / path).is_dir() else 'blob'}/main/{path}{fragment}"
