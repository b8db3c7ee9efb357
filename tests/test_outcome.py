"""What development pairs say of scores and grades that were learned from them."""

import numpy as np
import pytest

from sts_regression.grading.grading import fit_grading
from sts_regression.outcome import replace_fitted_measures

RANKS = {"spearman_head": 0.5, "spearman_cosine": 0.25, "pearson_cosine": 0.125}
FITTED = {"pearson_head": 1.0, "accuracy_head": 1.0, "mae_head": 0.0, "quadratic_kappa_head": 1.0}


@pytest.mark.parametrize("num_sets", [1, 2])
def test_fitted_measures_are_cross_fitted(num_sets: int) -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 300).astype(float)
    grading = fit_grading(labels + generator.normal(size=300), labels, range(3))
    results, by_set = {"validation": RANKS | FITTED, "test": RANKS | FITTED}, {}
    if num_sets > 1:
        by_set = {"validation": dict.fromkeys(("a", "b"), RANKS | FITTED), "test": {"a": RANKS | FITTED}}
    replace_fitted_measures(results, by_set, grading)
    names = ("accuracy", "mae", "quadratic_kappa") + (("pearson",) if num_sets == 1 else ())
    assert results == {
        "validation": RANKS | {f"{name}_head": grading.report[name] for name in names},
        "test": RANKS | FITTED,
    }
    if num_sets > 1:
        assert by_set == {"validation": {"a": RANKS, "b": RANKS}, "test": {"a": RANKS | FITTED}}


def test_few_pairs_measure_ranks_alone() -> None:
    grading = fit_grading(np.arange(10.0), np.arange(10.0) % 3, range(3))
    results = {"validation": RANKS | FITTED}
    replace_fitted_measures(results, {}, grading)
    assert results == {"validation": RANKS}
