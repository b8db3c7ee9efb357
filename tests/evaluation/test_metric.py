"""Measures: against scipy and scikit-learn, exact small cases, and cases without a value."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from sts_regression.evaluation import sts_metric
from sts_regression.evaluation.measures import (
    PairScores,
    find_queries,
    measure_scores,
    stack_scores,
    unstack_scores,
)
from sts_regression.evaluation.sts_metric import STSMetric
from sts_regression.grading.grading import measure_grades
from sts_regression.grading.held_out import are_grades, halfway, nearest_grade

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


@pytest.mark.parametrize(
    ("predictions", "expected"),
    [
        ([0.1, 0.2, 0.3, 0.4], {"spearman": 1.0, "pearson": 1.0, "kendall": 1.0}),
        ([8.0, 4.0, 0.0, -4.0], {"spearman": -1.0, "pearson": -1.0, "kendall": -1.0}),
        # Two neighbours swapped: 1 - 6·2 / (4·15), 4 / 5, and (5 - 1) / 6.
        ([0.0, 2.0, 1.0, 3.0], {"spearman": 0.8, "pearson": 0.8, "kendall": 2 / 3}),
        # Increasing, not linear: Σxy = 32, Σx² = 5 and Σy² = 230 of the centred values.
        ([0.0, 1.0, 8.0, 19.0], {"spearman": 1.0, "pearson": 32 / math.sqrt(5 * 230), "kendall": 1.0}),
    ],
)
def test_correlations_by_hand(metric: STSMetric, predictions: list[float], expected: dict[str, float]) -> None:
    assert metric.compute(predictions=predictions, references=[0, 1, 2, 3]) == pytest.approx(expected)


def test_grades_by_hand(metric: STSMetric) -> None:
    # Nearest nodes 1, 2, 3 (halfway goes up), 0 and 3 (beyond the scale) against 0, 1, 2, 0, 3: two of five right.
    result = metric.compute(predictions=[0.5, 1.5, 2.5, -9, 9], references=[0, 1, 2, 0, 3], label_values=NODES)
    # Squared differences sum to 3; by chance to a fifth of 5·23 + 5·14 - 2·9·6 = 77, the sum over all 5 × 5 pairs.
    assert result["accuracy"] == pytest.approx(2 / 5)
    assert result["mae"] == pytest.approx(3 / 5)
    assert result["quadratic_kappa"] == pytest.approx(1 - 3 / (77 / 5))


def test_grades_of_another_distance_are_measured_in_units_of_the_scale(metric: STSMetric) -> None:
    data = {"predictions": [-40.0, 20.0, 70.0], "references": [-50, 0, 50], "label_values": [-50, 0, 50]}
    result = metric.compute(**data)
    assert (result["accuracy"], result["mae"]) == (1.0, 0.0)
    result = metric.compute(**{**data, "predictions": [-40.0, 30.0, 0.0]})
    assert result["accuracy"] == pytest.approx(1 / 3)
    assert result["mae"] == pytest.approx(100 / 3)


def test_grades_of_uneven_nodes_by_hand(metric: STSMetric) -> None:
    # Nearest nodes 0, 1, 3 (halfway goes up) and 3 against 0, 1, 1, 3: three of four right.
    result = metric.compute(predictions=[0.4, 1.9, 2.0, 9], references=[0, 1, 1, 3], label_values=[0, 1, 3])
    # Kappa counts grades in their order: one of four pairs is one grade off; by chance Σ(p − g)² over all 4 × 4.
    by_chance = sum((p - g) ** 2 for p in (0, 1, 2, 2) for g in (0, 1, 1, 2)) / 16
    assert (result["accuracy"], result["mae"]) == (3 / 4, 2 / 4)
    assert result["quadratic_kappa"] == pytest.approx(1 - (1 / 4) / by_chance)


def test_kappa_is_that_of_scikit_learn(metric: STSMetric) -> None:
    generator = np.random.default_rng(0)
    gold, predicted = generator.integers(0, 4, (2, 200))
    result = metric.compute(predictions=predicted, references=gold, label_values=NODES)
    assert result["quadratic_kappa"] == cohen_kappa_score(gold, predicted, weights="quadratic")


@pytest.mark.parametrize("nodes", [NODES, [0.0, 1.0, 3.0], [1.0, 1.5, 2.0], [-50.0, 0.0, 50.0]])
def test_the_metric_and_the_grading_measure_grades_alike(metric: STSMetric, nodes: list[float]) -> None:
    generator, values = np.random.default_rng(0), np.array(nodes)
    gold = values[generator.integers(0, len(nodes), 200)]
    predicted = np.r_[gold[:-50] + generator.normal(0, np.ptp(values) / 4, 150), gold[-50:], values, halfway(values)]
    gold = np.r_[gold, values[generator.integers(0, len(nodes), 2 * len(nodes) - 1)]]
    expected = measure_grades(nearest_grade(predicted, values), nearest_grade(gold, values), values)
    result = metric.compute(predictions=predicted, references=gold, label_values=nodes)
    assert {name: result[name] for name in expected} == pytest.approx(expected)


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
        ([0.0, 1.0], [0, 4], NODES, "`references` must lie on `label_values`"),
        ([0.0, 1.0], [0, 5], [0, 5, 1], "`label_values`.*lowest first"),
        ([0.0, 1.0], [0, 1.5], [0, 1, 5], "`references` must lie on `label_values`"),
        ([0.0, 1.0], [0, 1], [0], "`label_values`.*two or more"),
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


def test_evaluate_loads_the_metric_offline_from_its_file_alone(
    metric: STSMetric, run_in_subprocess: Callable[..., str], tmp_path: Path
) -> None:
    data = {"predictions": [0.1, 0.9, 0.4], "references": [0.0, 3.0, 1.0], "label_values": NODES}
    code = "import evaluate, json; print(json.dumps(evaluate.load(sys.argv[1]).compute(**json.loads(sys.argv[2]))))"
    path = Path(sts_metric.__file__).resolve()
    printed = run_in_subprocess(code, path, json.dumps(data), env={"HF_HOME": str(tmp_path)})
    assert json.loads(printed) == metric.compute(**data)


def test_scores_survive_stacking() -> None:
    embeddings = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]]])
    stacked = stack_scores((torch.tensor([3.0, 1.0]), embeddings, torch.zeros(2, 1)))
    scores = unstack_scores(stacked.numpy(), True)
    assert scores.head is not None
    assert scores.cosine is not None
    assert scores.head.tolist() == [3, 1]
    assert scores.cosine.tolist() == [1, 0]


def test_cosine_is_computed_in_full_precision() -> None:
    generator = torch.Generator().manual_seed(0)
    embeddings = torch.randn(4, 2, 8, generator=generator).bfloat16()
    stacked = stack_scores((torch.zeros(4, dtype=torch.bfloat16), embeddings))
    first, second = embeddings.double().unbind(dim=1)
    expected = (first * second).sum(dim=-1) / (first.norm(dim=-1) * second.norm(dim=-1))
    assert stacked.dtype == torch.float32
    torch.testing.assert_close(stacked[:, 1], expected.float())


def test_head_and_cosine_are_measured_apart(metric: STSMetric) -> None:
    gold = np.array([0, 1, 1, 2, 3], dtype=np.float32)
    scores = PairScores(head=np.array([0.2, 0.1, 1.4, 2.6, 2.9]), cosine=np.array([0.9, 0.3, 0.3, 0.5, 0.1]))
    head = metric.compute(predictions=scores.head, references=gold, label_values=NODES)
    cosine = metric.compute(predictions=scores.cosine, references=gold)
    expected = {f"{name}_head": value for name, value in head.items()}
    expected |= {f"{name}_cosine": value for name, value in cosine.items()}
    assert measure_scores(scores, gold, NODES) == expected
    assert expected["accuracy_head"] == pytest.approx(3 / 5)


def test_a_cross_encoder_has_no_cosine() -> None:
    scores = unstack_scores(stack_scores((torch.tensor([3.0, 1.0]), torch.zeros(2, 1))).numpy(), True)
    assert scores.cosine is None
    assert set(measure_scores(scores, np.array([2.0, 1.0]), NODES)) == {
        f"{name}_head" for name in ("spearman", "pearson", "kendall", "accuracy", "macro_f1", "mae", "quadratic_kappa")
    }


def test_an_untrained_head_and_labels_between_grades_are_left_out() -> None:
    scores = PairScores(head=np.array([0.0, 1.0, 2.0]), cosine=np.array([0.0, 0.5, 0.4]))
    untrained = measure_scores(PairScores(None, scores.cosine), np.array([0.0, 1.0, 2.0]), NODES)
    assert set(untrained) == {"spearman_cosine", "pearson_cosine", "kendall_cosine"}
    assert "accuracy_head" not in measure_scores(scores, np.array([0.0, 0.5, 2.0]), NODES)


def test_grades_are_those_of_the_cut_points_that_were_learned() -> None:
    scores = PairScores(np.array([0.2, 0.6, 1.4, 2.2]), None)
    gold = np.array([0.0, 0.0, 2.0, 2.0])
    nearest, learned = (measure_scores(scores, gold, [0, 1, 2], cut_points=cuts) for cuts in (None, [0.7, 1.4]))
    assert (nearest["mae_head"], learned["mae_head"]) == (0.5, 0.0)
    assert nearest["spearman_head"] == learned["spearman_head"]


def test_corpora_are_measured_apart_and_averaged(metric: STSMetric) -> None:
    gold = np.array([0.0, 1.0, 2.0, 0.0, 3.0, 3.0, 3.0])
    sources = np.array([0, 0, 0, 1, 1, 2, 2])  # the labels of the third are all equal
    cosine = np.array([0.1, 0.3, 0.2, 0.9, 0.8, 0.0, 1.0])
    scores = PairScores(head=cosine, cosine=cosine)
    measures = measure_scores(scores, gold, NODES, sources=sources)
    apart = [
        metric.compute(predictions=cosine[rows], references=gold[rows])["spearman"] for rows in ([0, 1, 2], [3, 4])
    ]
    assert apart == pytest.approx([0.5, -1.0])
    assert measures["spearman_cosine"] == pytest.approx(-0.25)
    pooled = metric.compute(predictions=cosine, references=gold, label_values=NODES)
    assert measures["mae_head"] == pooled["mae"]
    assert measure_scores(scores, gold, NODES)["spearman_cosine"] == pytest.approx(pooled["spearman"])


# Queries with many candidates


def test_ndcg_by_hand_is_the_mean_over_queries_whose_labels_differ() -> None:
    gold = np.array([2.0, 0.0, 1.0, 1.0, 1.0, 3.0, 1.0])
    queries = np.array([0, 0, 0, 1, 1, 2, 2])  # the labels of the second are equal
    cosine = np.array([0.1, 0.5, 0.9, 0.3, 0.2, 0.8, 0.4])
    discounts = 1 / np.log2([2, 3, 4])
    first = (1 * discounts[0] + 2 * discounts[2]) / (2 * discounts[0] + 1 * discounts[1])  # ranked 1, 0, 2
    measures = measure_scores(PairScores(None, cosine), gold, NODES, queries=queries)
    assert measures["ndcg@10_cosine"] == pytest.approx((first + 1) / 2)
    assert "ndcg@10_head" not in measures
    rounded = measure_scores(PairScores(None, cosine), gold - 1e-12, NODES, queries=queries)
    assert rounded["ndcg@10_cosine"] == pytest.approx(measures["ndcg@10_cosine"])
    # Gains are counted from the lowest node: 1, 2, 3 on 1-3 are gains of 0, 1, 2.
    shifted = measure_scores(PairScores(None, cosine), gold + 1, [1.0, 2.0, 3.0, 4.0], queries=queries)
    assert shifted["ndcg@10_cosine"] == pytest.approx(measures["ndcg@10_cosine"])


def test_ndcg_counts_ten_candidates_and_averages_ties_as_scikit_learn() -> None:
    gold = np.array([0.0] * 10 + [3.0])
    cosine = np.arange(11)[::-1] / 11  # the only good candidate comes last
    scores = PairScores(np.zeros(11), cosine)
    measures = measure_scores(scores, gold, NODES, queries=np.zeros(11, dtype=int))
    assert measures["ndcg@10_cosine"] == 0
    assert measures["ndcg@10_head"] == pytest.approx((1 / np.log2(np.arange(2, 12))).sum() / 11)


def test_ndcg_of_several_corpora_is_averaged_over_those_that_have_queries() -> None:
    gold = np.array([0.0, 1.0, 0.0, 2.0, 0.0, 3.0])
    cosine = np.array([0.1, 0.2, 0.9, 0.1, 0.1, 0.2])
    queries, sources = np.array([0, 0, 1, 1, -1, -1]), np.array([0, 0, 1, 1, 2, 2])
    measures = measure_scores(PairScores(None, cosine), gold, NODES, sources, queries)
    assert measures["ndcg@10_cosine"] == pytest.approx((1 + 1 / np.log2(3)) / 2)
    none = measure_scores(PairScores(None, cosine), gold, NODES, sources, np.full(6, -1))
    assert set(none) == {"spearman_cosine", "pearson_cosine", "kendall_cosine"}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (list("aaaaabbbbb"), list("0123401234"), [0] * 5 + [1] * 5),
        (list("0123456789"), list("qqqqqrrrrr"), [0] * 5 + [1] * 5),
        (list("aaaaabbbbc"), list("0123456789"), [-1] * 10),  # of 5, 4 and 1 candidates
        (list("abcde"), list("fghij"), [-1] * 5),
    ],
)
def test_a_text_that_stands_on_one_side_of_many_pairs_is_a_query(
    first: list[str], second: list[str], expected: list[int]
) -> None:
    assert find_queries(first, second).tolist() == expected


@pytest.mark.parametrize(
    ("labels", "nodes", "expected"),
    [
        ([0, 3, 1], NODES, True),
        ([0, 2.5], NODES, False),
        (np.array([0.2, 0.6, 1.0], dtype=np.float32), [0, 0.2, 0.4, 0.6, 0.8, 1], True),
        ([4], NODES, False),
        ([-1], NODES, False),
        ([0.3], [0, 0.2, 0.4, 0.6, 0.8, 1], False),
        (np.array([0, 1, 1.2], dtype=np.float32), [0, 1, 1.2], True),
        ([0, 0.6, 1.2], [0, 1, 1.2], False),
        ([0, 2], [0, 1, 1.2], False),
    ],
)
def test_labels_are_ordinal_where_each_is_a_node(labels: list[float], nodes: list[float], expected: bool) -> None:
    assert are_grades(labels, nodes) is expected
