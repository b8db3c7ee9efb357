"""An `evaluate` metric for graded similarity that needs no network: `evaluate.load` takes the path of this file.

Correlations are scipy's, classification measures scikit-learn's.
"""

from collections.abc import Sequence

import datasets
import evaluate
import numpy as np
from scipy import stats

METRIC_DESCRIPTION = """\
Spearman's, Pearson's and Kendall's (tau-b) correlation between predicted and gold similarity. With `label_values`, the
nodes of an ordinal scale that holds every gold label, also the accuracy, macro-averaged F1, mean absolute error and
quadratic weighted kappa of the node nearest to each prediction.
"""
INPUTS_DESCRIPTION = """\
Args:
    predictions (sequence of `float`): predicted similarities; with `label_values`, on the label scale.
    references (sequence of `float`): gold labels, not all equal.
    label_values (sequence of `float`, *optional*): the nodes of the label scale, lowest first.
Returns:
    `dict` of `float`: `spearman`, `pearson`, `kendall` between -1 and 1; with `label_values`, also `accuracy`,
    `macro_f1` (over the grades that occur), `mae` (in units of the label scale) and `quadratic_kappa` (Cohen, 1968;
    computed on the indices of grades, as in scikit-learn). Correlations of constant predictions are 0.
"""
CITATION = """\
@inproceedings{reimers-etal-2016-task,
  title = {Task-Oriented Intrinsic Evaluation of Semantic Textual Similarity},
  author = {Reimers, Nils and Beyer, Philip and Gurevych, Iryna},
  booktitle = {Proceedings of COLING 2016},
  year = {2016},
}
"""


class STSMetric(evaluate.Metric):
    """Correlations, and measures of the nearest grade, between predicted and gold similarity."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=METRIC_DESCRIPTION,
            citation=CITATION,
            inputs_description=INPUTS_DESCRIPTION,
            features=datasets.Features(
                {"predictions": datasets.Value("float64"), "references": datasets.Value("float64")}
            ),
        )

    def _compute(
        self, predictions: Sequence[float], references: Sequence[float], label_values: Sequence[float] | None = None
    ) -> dict[str, float]:
        predicted, gold = np.asarray(predictions, dtype=float), np.asarray(references, dtype=float)
        if not (np.isfinite(predicted).all() and np.isfinite(gold).all()):
            raise ValueError("`predictions` and `references` must be finite numbers, but hold NaN or infinity.")
        if len(gold) < 2 or np.ptp(gold) == 0:
            raise ValueError(
                "`references` must hold at least two different labels: correlations are undefined otherwise."
            )
        if np.ptp(predicted) == 0:
            result = {"spearman": 0.0, "pearson": 0.0, "kendall": 0.0}
        else:
            result = {
                "spearman": float(stats.spearmanr(predicted, gold).statistic),
                "pearson": float(stats.pearsonr(predicted, gold).statistic),
                "kendall": float(stats.kendalltau(predicted, gold).statistic),
            }
        return result if label_values is None else {**result, **_grade_measures(predicted, gold, label_values)}


def _grade_measures(predicted: np.ndarray, gold: np.ndarray, label_values: Sequence[float]) -> dict[str, float]:
    # Repeats `measure_grades` of the package: `evaluate` loads this file where the package may not be installed.
    from sklearn.metrics import cohen_kappa_score, f1_score  # slow to load, and not needed before training

    nodes = np.asarray(label_values, dtype=float)
    steps = np.diff(nodes)
    if len(nodes) < 2 or not (steps > 0).all():
        raise ValueError(f"`label_values` must be two or more nodes, lowest first, but is {label_values}.")
    is_even = np.allclose(steps, steps.mean(), rtol=1e-4)
    step = steps.mean() if is_even else steps.min()
    # Halfway between two nodes counts as the upper one, as in the model's `nearest_label_index`.
    predicted_index, gold_index = (
        np.clip(np.floor((values - nodes[0]) / step + 0.5), 0, len(nodes) - 1).astype(int)
        if is_even
        else np.searchsorted((nodes[:-1] + nodes[1:]) / 2, values, side="right")
        for values in (predicted, gold)
    )
    if not np.allclose(nodes[gold_index], gold, atol=step * 1e-3):
        raise ValueError("`references` must lie on `label_values`. Leave `label_values` out for labels between nodes.")
    return {
        "accuracy": float((predicted_index == gold_index).mean()),
        "macro_f1": float(f1_score(gold_index, predicted_index, average="macro")),
        "mae": float(np.abs(nodes[predicted_index] - gold).mean()),
        "quadratic_kappa": float(
            cohen_kappa_score(gold_index, predicted_index, labels=np.arange(len(nodes)), weights="quadratic")
        ),
    }
