"""Fine-tuning text encoders on graded similarity.

The model itself is the files that are copied beside every checkpoint. In the repository they stand at its root, where
the Hub expects them, and import each other relatively; an installed package holds them as modules of its own. Either
way `from sts_regression.modeling_sts_regression import STSRegressionModel` is the one import.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

SHIPPED_MODULES = (
    *("configuration_sts_regression", "losses_sts_regression", "modeling_sts_regression"),
    *("packing_sts_regression", "pipeline_sts_regression"),
)
_ROOT = Path(__file__).resolve().parents[1]
_ROOT_FILES = {f"{__name__}.{name}": _ROOT / f"{name}.py" for name in (*SHIPPED_MODULES, "run_sts")}


class _RootFinder(MetaPathFinder):
    """Finds, in a clone of the repository, those modules of this package that stand at its root."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Where a module is, see [`importlib.abc.MetaPathFinder`]."""
        file = _ROOT_FILES.get(fullname)
        return spec_from_file_location(fullname, file) if file is not None and file.is_file() else None


sys.meta_path.append(_RootFinder())
