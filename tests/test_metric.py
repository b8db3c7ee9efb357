"""Measures: against scipy and scikit-learn, exact small cases, and what has no value."""

from pathlib import Path

import evaluate
import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from sts_regression import sts_metric
from sts_regression.evaluation import PairScores, is_ordinal, measure_scores, stack_scores, unstack_scores
from sts_regression.sts_metric import STSMetric

NODES = [0.0, 1.0, 2.0, 3.0]


@pytest.fixture
def metric() -> STSMetric:
    return STSMetric(keep_in_memory=True)


def test_correlations_are_those_of_scipy_with_ties(metric: STSMetric) -> None:
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 4, 200).astype(float)
    predicted = (gold + generator.normal(0, 1, 200)).round(1)
    assert metric.compute(predictions=predicted, references=gold) == {
        "spearman": stats.spearmanr(predicted, gold).statistic,
        "pearson": stats.pearsonr(predicted, gold).statistic,
        "kendall": stats.kendalltau(predicted, gold).statistic,
    }


def test_grades_by_hand(metric: STSMetric) -> None:
    # Nearest nodes 0, 2 (halfway goes up), 2, 3 (beyond the scale) against 0, 1, 2, 3: three of four right.
    result = metric.compute(predictions=[0.4, 1.5, 2.2, 9.0], references=[0, 1, 2, 3], label_values=NODES)
    assert (result["accuracy"], result["mae"]) == (0.75, 0.25)
    assert result["quadratic_kappa"] == cohen_kappa_score([0, 1, 2, 3], [0, 2, 2, 3], weights="quadratic")


def test_constant_predictions_rank_nothing(metric: STSMetric) -> None:
    result = metric.compute(predictions=[2, 2, 2], references=[0, 1, 2], label_values=NODES)
    assert (result["spearman"], result["pearson"], result["kendall"]) == (0, 0, 0)
    assert result["accuracy"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("predictions", "references", "label_values", "message"),
    [
        ([0.0, float("nan")], [0, 1], None, "must be finite numbers"),
        ([0.0, 1.0], [0, float("inf")], None, "must be finite numbers"),
        ([0.0, 1.0], [1, 1], None, "at least two different labels"),
        ([0.0], [1], None, "at least two different labels"),
        ([0.0, 1.0], [0, 1.5], NODES, "`references` must lie on `label_values`"),
    ],
)
def test_what_has_no_value_is_refused(
    metric: STSMetric,
    predictions: list[float],
    references: list[float],
    label_values: list[float] | None,
    message: str,
) -> None:
    with pytest.raises(ValueError, match=message):
        metric.compute(predictions=predictions, references=references, label_values=label_values)


def test_evaluate_loads_the_metric_from_its_file(tmp_path: Path, metric: STSMetric) -> None:
    loaded = evaluate.load(str(Path(sts_metric.__file__)), cache_dir=str(tmp_path))
    data = {"predictions": [0.1, 0.9, 0.4], "references": [0.0, 3.0, 1.0], "label_values": NODES}
    assert loaded.compute(**data) == metric.compute(**data)


def test_scores_survive_stacking() -> None:
    embeddings = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]]])
    stacked = stack_scores((torch.tensor([3.0, 1.0]), embeddings, torch.zeros(2, 1)))
    scores = unstack_scores(stacked.numpy())
    assert scores.head.tolist() == [3, 1]
    assert scores.cosine is not None
    assert scores.cosine.tolist() == [1, 0]


def test_a_cross_encoder_has_no_cosine() -> None:
    scores = unstack_scores(stack_scores((torch.tensor([3.0, 1.0]), torch.zeros(2, 1))).numpy())
    assert scores.cosine is None
    assert set(measure_scores(scores, np.array([2.0, 1.0]), NODES)) == {
        f"{name}_head" for name in ("spearman", "pearson", "kendall", "accuracy", "mae", "quadratic_kappa")
    }


def test_an_untrained_head_and_labels_between_grades_are_left_out() -> None:
    scores = PairScores(head=np.array([0.0, 1.0, 2.0]), cosine=np.array([0.0, 0.5, 0.4]))
    untrained = measure_scores(scores, np.array([0.0, 1.0, 2.0]), NODES, with_head=False)
    assert set(untrained) == {"spearman_cosine", "pearson_cosine", "kendall_cosine"}
    assert "accuracy_head" not in measure_scores(scores, np.array([0.0, 0.5, 2.0]), NODES)


@pytest.mark.parametrize(
    ("labels", "nodes", "expected"),
    [
        ([0, 3, 1], NODES, True),
        ([0, 2.5], NODES, False),
        ([-1, 0], NODES, False),
        (np.array([0.2, 0.6, 1.0], dtype=np.float32), [0, 0.2, 0.4, 0.6, 0.8, 1], True),
        ([0.3], [0, 0.2, 0.4, 0.6, 0.8, 1], False),
    ],
)
def test_labels_are_ordinal_where_each_is_a_node(labels: list[float], nodes: list[float], expected: bool) -> None:
    assert is_ordinal(labels, nodes) is expected
