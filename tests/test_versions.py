"""The versions in pyproject.toml are those that `make lowest` tests and the documents tell users to install."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import sts_regression

ROOT = Path(__file__).resolve().parents[1]
TOOLS = {"dev", "docs", "notebooks"}  # extras of which nothing is imported: any version will do


def lower_bounds() -> dict[str, Version | None]:
    """The lowest version of each package that the project and its extras may import; `None` if any is allowed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [wanted for name, wanted in project["optional-dependencies"].items() if name not in TOOLS]
    requirements = map(Requirement, sum(extras, start=project["dependencies"]))
    bounds: dict[str, Version | None] = {}
    for requirement in requirements:
        versions = [Version(part.version) for part in requirement.specifier if part.operator in (">=", "==")]
        bounds[canonicalize_name(requirement.name)] = max(versions, default=None)
    return bounds


def pins(file: str) -> dict[str, Version]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    requirements = [Requirement(line) for line in lines if not line.startswith("#")]
    names = [canonicalize_name(requirement.name) for requirement in requirements]
    assert len(names) == len(set(names))
    found: dict[str, Version] = {}
    for name, requirement in zip(names, requirements, strict=True):
        (exact,) = requirement.specifier
        assert exact.operator == "=="
        found[name] = Version(exact.version)
    return found


def test_each_lower_bound_is_the_lowest_version_tested() -> None:
    assert lower_bounds() == pins("constraints-lowest.txt")


def test_the_lock_has_hashes_of_all_that_is_pinned_and_no_address() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked: dict[str, Version] = {
        canonicalize_name(name): Version(version) for name, version in re.findall(r"(?m)^([\w.-]+)==(\S+) \\$", text)
    }
    packages = [line for line in text.splitlines() if not line.startswith(("#", " "))]
    assert len(packages) == len(locked)  # each goes on to its hashes
    assert "://" not in text
    tools = {"mypy", "ruff", "pre-commit", "types-pyyaml", "types-psutil", "mteb", "ray", "tensorboard", "torch"}
    tools |= {"mkdocs", "mkdocs-material", "mkdocstrings", "mkdocstrings-python", "ipykernel", "nbclient"}
    pinned = {name: version for name, version in pins("constraints.txt").items() if name not in tools}
    assert {name: locked.get(name) for name in pinned} == pinned


def test_the_documents_name_the_lower_bound_of_sentence_transformers() -> None:
    (template,) = (ROOT / "sts_regression").rglob("card_template.md")
    for document in (ROOT / "docs" / "sentence_transformers.md", template):
        (named,) = re.findall(r"version ([\d.]+) or newer", document.read_text(encoding="utf-8"))
        assert Version(named) == lower_bounds()["sentence-transformers"]


def test_the_citation_is_of_the_latest_version_and_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == sts_regression.__version__
    heading = f"## {citation['version']} ({citation['date-released']})\n"
    assert heading in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (title,) = re.findall(r"(?m)^  title = \{(.*)\},$", (ROOT / "docs" / "methods.md").read_text(encoding="utf-8"))
    assert citation["preferred-citation"]["title"] == re.sub("[{}]", "", title)
