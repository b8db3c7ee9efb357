"""Fine-tuning text encoders on graded similarity.

The files of the model itself are copied into every checkpoint. In the repository they lie at its root, where the Hub
expects them, and import each other relatively; an installed package holds them as modules of its own. Either way, the
import is `from sts_regression.modeling_sts_regression import STSRegressionModel`.

The names of the Python interface are imported on first use, since most of them load torch.
"""

import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

SHIPPED_MODULES = (
    *("configuration_sts_regression", "encoder_sts_regression", "head_sts_regression", "losses_sts_regression"),
    *("modeling_sts_regression", "packing_sts_regression", "pipeline_sts_regression"),
)
_ROOT = Path(__file__).resolve().parents[1]
_ROOT_FILES = {f"{__name__}.{name}": _ROOT / f"{name}.py" for name in (*SHIPPED_MODULES, "run_sts")}


class _RootFinder(MetaPathFinder):
    """Finds the modules of this package that lie at the root of a clone of the repository."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Locates a module, see [`importlib.abc.MetaPathFinder`]."""
        file = _ROOT_FILES.get(fullname)
        return spec_from_file_location(fullname, file) if file is not None and file.is_file() else None


sys.meta_path.append(_RootFinder())

if TYPE_CHECKING:
    from sts_regression.configuration_sts_regression import STSRegressionConfig
    from sts_regression.evaluation.measures import measure_scores
    from sts_regression.grader import PairGrader
    from sts_regression.modeling_sts_regression import STSRegressionModel
    from sts_regression.models.encoding import encode_sentences
    from sts_regression.models.loading import find_model, load_model
    from sts_regression.search.exact import top_k
    from sts_regression.training.trainer import STSTrainer
    from sts_regression.training.training_arguments import STSTrainingArguments

_INTERFACE = {
    "PairGrader": "grader",
    "STSRegressionConfig": "configuration_sts_regression",
    "STSRegressionModel": "modeling_sts_regression",
    "STSTrainer": "training.trainer",
    "STSTrainingArguments": "training.training_arguments",
    "encode_sentences": "models.encoding",
    "find_model": "models.loading",
    "load_model": "models.loading",
    "measure_scores": "evaluation.measures",
    "top_k": "search.exact",
}
__all__ = [
    "PairGrader",
    "STSRegressionConfig",
    "STSRegressionModel",
    "STSTrainer",
    "STSTrainingArguments",
    "encode_sentences",
    "find_model",
    "load_model",
    "measure_scores",
    "top_k",
]


def __getattr__(name: str) -> Any:
    if name not in _INTERFACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_INTERFACE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_INTERFACE})
