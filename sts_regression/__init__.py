"""Helpers of the STS-Regression training program: data, leak filter, evaluation, training, model cards.

The model itself is the files at the repository root that are copied beside every checkpoint. They import each
other relatively, as the Hub requires; adding the root to this package's path makes that work here too, so that
`from sts_regression.modeling_sts_regression import STSRegressionModel` is the one import for script, tests and users.
"""

from pathlib import Path

__version__ = "0.1.0"
__path__.append(str(Path(__file__).resolve().parent.parent))
