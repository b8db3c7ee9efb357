"""Rules of the house that a program can check."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from sts_regression import SHIPPED_MODULES, configuration_sts_regression
from sts_regression.options import model_arguments

ROOM_FILES = 13  # a dozen and `__init__`
ROOT = Path(__file__).resolve().parent.parent
PRODUCT = [*ROOT.glob("*.py"), *(ROOT / "sts_regression").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
# The entry of each command, the log of each module, the repository that each script lies in.
IN_MANY_MODULES = {"main", "logger", "ROOT"}
# Choices of the model, which the options repeat because the configuration loads torch.
REPEATED = {"configuration_sts_regression.py", "sts_regression/options/model_arguments.py"}


def defined_names(statements: Iterable[ast.AST]) -> Iterator[str]:
    """Functions, classes and constants that statements of a module define, within conditions as well."""
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            nodes = (node for target in targets for node in ast.walk(target))
            yield from (node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        else:
            for block in ("body", "handlers", "orelse", "finalbody"):
                yield from defined_names(getattr(statement, block, ()))


def test_names_are_found_wherever_a_module_defines_them() -> None:
    code = "A, B = 1, 2\nC: int = 3\nx.D = 4\ntry:\n    def e(f=5):\n        G = 6\nexcept OSError:\n    H = 7"
    assert list(defined_names(ast.parse(code).body)) == ["A", "B", "C", "e", "H"]


def test_a_public_name_stands_for_one_thing() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path in PRODUCT:
        names = {path.stem, *defined_names(ast.parse(path.read_text(encoding="utf-8")).body)}
        for name in names:
            if not name.startswith("_") and name not in IN_MANY_MODULES:
                places[name].add(str(path.relative_to(ROOT)))
    repeated = {name for name, modules in places.items() if modules == REPEATED}
    assert all(getattr(model_arguments, name) == getattr(configuration_sts_regression, name) for name in repeated)
    assert {name: modules for name, modules in places.items() if len(modules) > 1 and name not in repeated} == {}


# Rooms and files of the package, the lowest first: each imports those before it, and a room its own files.
STOREYS = (
    ("basics", "quickstart"),
    ("options",),
    ("data", "grading"),
    ("models",),
    ("evaluation", "search"),
    ("training",),
    ("command", "console", "keywords", "pairs_in_memory"),
    ("hub", "serving"),
    ("sweep",),
    ("preparation",),
    ("outcome",),
    ("bundled_start",),
    ("conclusion",),
    ("run_sts", "__main__"),
    ("grader",),
    ("__init__",),
)


def imported_rooms(path: Path) -> Iterator[str]:
    """The first part below the package of every module of ours that a file imports, for type checks as well."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for module in modules:
            if module.startswith("sts_regression."):
                yield module.split(".")[1]


def test_no_room_imports_one_above_it() -> None:
    storey = {room: number for number, rooms in enumerate(STOREYS) for room in rooms}
    found = []
    for path in [*(ROOT / "sts_regression").rglob("*.py"), ROOT / "run_sts.py"]:
        room = (
            path.relative_to(ROOT / "sts_regression").parts[0].removesuffix(".py")
            if path.stem != "run_sts"
            else path.stem
        )
        for other in imported_rooms(path):
            if other not in (room, *SHIPPED_MODULES) and storey[other] >= storey[room]:
                found.append(f"{path.relative_to(ROOT)} imports {other}")
    assert found == []


def test_shipped_files_import_nothing_of_the_package() -> None:
    assert [room for name in SHIPPED_MODULES for room in imported_rooms(ROOT / f"{name}.py")] == []


def test_every_room_says_what_is_in_it_and_holds_at_most_a_dozen_modules() -> None:
    for room in (path for path in (ROOT / "sts_regression").iterdir() if path.is_dir() and path.name != "__pycache__"):
        docstring = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
        assert len(docstring.splitlines()) > 1 or room.name == "quickstart"
        assert len(list(room.glob("*.py"))) <= ROOM_FILES, room
