"""Rules of the house that a program can check."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from sts_regression import configuration_sts_regression, options

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = [*ROOT.glob("*.py"), *(ROOT / "sts_regression").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
# The entry of each command, the log of each module, the repository that each script lies in.
IN_MANY_MODULES = {"main", "logger", "ROOT"}
# Choices of the model, which the options repeat because the configuration loads torch.
REPEATED = {"configuration_sts_regression.py", "sts_regression/options.py"}


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
    assert all(getattr(options, name) == getattr(configuration_sts_regression, name) for name in repeated)
    assert {name: modules for name, modules in places.items() if len(modules) > 1 and name not in repeated} == {}
