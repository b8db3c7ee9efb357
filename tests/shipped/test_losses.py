"""The losses: values and gradients worked out by hand, independent formulas, and the treatment of the scale's ends."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from sts_regression.losses_sts_regression import (
    angle,
    apply_boundary,
    binary_cross_entropy,
    corn,
    corn_log_probabilities,
    cosent,
    cross_entropy,
    hl_gauss,
    info_nce,
    l1,
    mse,
    nearest_label_index,
    pearson,
    similarity_distillation,
    smooth_k2,
    translated_relu,
)

pytestmark = pytest.mark.smoke

FOUR_GRADES = (0.0, 1.0, 2.0, 3.0)

BufferZoneLoss = Callable[..., Tensor]


def float64(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def random_scores_and_labels() -> tuple[Tensor, Tensor]:
    generator = np.random.default_rng(0)
    return float64(*generator.uniform(-1, 6, 64)), torch.from_numpy(generator.uniform(0, 5, 64))


def random_array(*shape: int) -> NDArray[np.float64]:
    return np.random.default_rng(0).normal(size=shape)


def gradient(loss: Tensor, scores: Tensor) -> Tensor:
    return torch.autograd.grad(loss, scores)[0]


# Losses with a buffer zone

# k, x0, |score - label|, value and slope of the loss there. All are exact in binary.
SMOOTH_K2_TABLE = [
    (2.0, 0.25, 0.0, 0.0, 0.0),
    (2.0, 0.25, 0.125, 0.0, 0.0),
    (2.0, 0.25, 0.25, 0.0, 0.0),
    (2.0, 0.25, 0.5, 0.125, 1.0),
    (2.0, 0.25, 1.25, 2.0, 4.0),
    (3.0, 0.5, 0.5, 0.0, 0.0),
    (3.0, 0.5, 1.0, 0.75, 3.0),
    (0.5, 0.0, 0.0, 0.0, 0.0),
    (0.5, 0.0, 2.0, 2.0, 2.0),
]
TRANSLATED_RELU_TABLE = [
    (2.0, 0.25, 0.0, 0.0, 0.0),
    (2.0, 0.25, 0.125, 0.0, 0.0),
    (2.0, 0.25, 0.25, 0.0, 0.0),
    (2.0, 0.25, 0.5, 0.5, 2.0),
    (2.0, 0.25, 1.25, 2.0, 2.0),
    (3.0, 0.5, 0.5, 0.0, 0.0),
    (3.0, 0.5, 1.0, 1.5, 3.0),
    (0.5, 0.0, 0.0, 0.0, 0.0),
    (0.5, 0.0, 2.0, 1.0, 0.5),
]


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["above_label", "below_label"])
@pytest.mark.parametrize(
    ("loss_function", "slope", "threshold", "error", "expected_loss", "expected_slope"),
    [(smooth_k2, *row) for row in SMOOTH_K2_TABLE] + [(translated_relu, *row) for row in TRANSLATED_RELU_TABLE],
)
def test_buffer_zone_loss_has_the_value_and_gradient_worked_out_by_hand(
    loss_function: BufferZoneLoss,
    slope: float,
    threshold: float,
    error: float,
    expected_loss: float,
    expected_slope: float,
    sign: float,
) -> None:
    scores = float64(3.0 + sign * error)
    loss = loss_function(scores, float64(3.0), slope, threshold)
    assert loss.item() == expected_loss
    assert gradient(loss, scores).item() == sign * expected_slope


def paper_smooth_k2(errors: NDArray[np.float64], k: float, x0: float) -> NDArray[np.float64]:
    return np.where(errors < x0, 0, k * (errors**2 - 2 * x0 * errors + x0**2))


def paper_translated_relu(errors: NDArray[np.float64], k: float, x0: float) -> NDArray[np.float64]:
    return np.where(errors < x0, 0, k * (errors - x0))


@pytest.mark.parametrize(
    ("loss_function", "formula"), [(smooth_k2, paper_smooth_k2), (translated_relu, paper_translated_relu)]
)
@pytest.mark.parametrize(("slope", "threshold"), [(2.0, 0.25), (1.0, 0.0), (3.5, 0.5), (0.3, 0.1)])
def test_buffer_zone_loss_is_the_mean_of_the_formula_in_the_paper(
    loss_function: BufferZoneLoss,
    formula: Callable[[NDArray[np.float64], float, float], NDArray[np.float64]],
    slope: float,
    threshold: float,
) -> None:
    scores, labels = random_scores_and_labels()
    errors = np.abs(scores.detach().numpy() - labels.numpy())
    loss = loss_function(scores, labels, slope, threshold)
    assert loss.item() == pytest.approx(formula(errors, slope, threshold).mean(), rel=1e-12)


@pytest.mark.parametrize("loss_function", [smooth_k2, translated_relu])
@pytest.mark.parametrize(("slope", "threshold"), [(2.0, 0.25), (3.5, 0.5)])
def test_buffer_zone_loss_has_the_gradient_of_finite_differences(
    loss_function: BufferZoneLoss, slope: float, threshold: float
) -> None:
    errors = torch.tensor([0.1, -0.1, 0.2, 0.6, -0.6, 1.7, -1.7, 4.0], dtype=torch.float64)  # None at a kink.
    labels = torch.linspace(0, 5, len(errors), dtype=torch.float64)
    scores = (labels + errors).requires_grad_()
    assert torch.autograd.gradcheck(partial(loss_function, labels=labels, slope=slope, threshold=threshold), (scores,))


@pytest.mark.parametrize(("loss_function", "baseline"), [(smooth_k2, mse), (translated_relu, l1)])
def test_slope_one_without_threshold_is_the_usual_regression_loss(
    loss_function: BufferZoneLoss, baseline: Callable[[Tensor, Tensor], Tensor]
) -> None:
    scores, labels = random_scores_and_labels()
    loss, expected = loss_function(scores, labels, 1.0, 0.0), baseline(scores, labels)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    torch.testing.assert_close(gradient(loss, scores), gradient(expected, scores))


@pytest.mark.parametrize("loss_function", [smooth_k2, translated_relu])
def test_default_slope_and_threshold_are_those_of_the_paper(loss_function: BufferZoneLoss) -> None:
    scores, labels = random_scores_and_labels()
    assert loss_function(scores, labels) == loss_function(scores, labels, 2.0, 0.25)


# The other losses


def test_mse_is_the_mean_of_the_squared_errors() -> None:
    scores, labels = random_scores_and_labels()
    expected = np.mean((scores.detach().numpy() - labels.numpy()) ** 2)
    assert mse(scores, labels).item() == pytest.approx(expected, rel=1e-12)


def test_l1_is_the_mean_of_the_absolute_errors() -> None:
    scores, labels = random_scores_and_labels()
    expected = np.mean(np.abs(scores.detach().numpy() - labels.numpy()))
    assert l1(scores, labels).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("label_values", [(0.0, 1.0, 2.0, 3.0), (1.0, 1.5, 2.0, 2.5), (-3.0, -1.0, 1.0, 3.0)])
def test_cross_entropy_is_the_negative_log_probability_of_the_label(label_values: Sequence[float]) -> None:
    logits = random_array(4, 4)
    nodes = [2, 0, 3, 1]
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = -np.mean([np.log(row[node]) for row, node in zip(probabilities, nodes, strict=True)])
    labels = torch.tensor([label_values[node] for node in nodes])
    loss = cross_entropy(torch.from_numpy(logits), labels, label_values)
    assert loss.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("label", "nearest"), [(2.8, 3.0), (2.2, 2.0), (0.4, 0.0), (1.5, 2.0)])
def test_cross_entropy_takes_a_label_between_nodes_for_the_nearest(label: float, nearest: float) -> None:
    logits = torch.from_numpy(random_array(1, 4))
    between, at_node = (cross_entropy(logits, torch.tensor([x]), FOUR_GRADES) for x in (label, nearest))
    assert between == at_node


def normal_distribution(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


@pytest.mark.parametrize("label_values", [(0.0, 1.0, 2.0, 3.0), (0.0, 2.0, 3.0, 7.0)], ids=["even", "uneven"])
@pytest.mark.parametrize("label", [0.0, 2.3, 9.0])
def test_hl_gauss_is_the_cross_entropy_with_a_normal_distribution(label_values: Sequence[float], label: float) -> None:
    logits = random_array(1, 4)
    width = 0.75 * min(np.diff(label_values))
    middles = [(lower + upper) / 2 for lower, upper in pairwise(label_values)]
    below = [0.0, *(normal_distribution((middle - label) / width) for middle in middles), 1.0]
    log_probabilities = logits[0] - np.log(np.exp(logits[0]).sum())
    expected = -sum(target * log for target, log in zip(np.diff(below), log_probabilities, strict=True))
    loss = hl_gauss(torch.from_numpy(logits), float64(label), label_values)
    assert loss.item() == pytest.approx(expected, rel=1e-12)


def test_corn_multiplies_the_probabilities_of_reaching_and_of_staying() -> None:
    logits = random_array(4, 3)
    goes_on = 1 / (1 + np.exp(-logits))  # from grade k to a higher one
    expected = np.array(
        [
            [1 - p[0], p[0] * (1 - p[1]), p[0] * p[1] * (1 - p[2]), p[0] * p[1] * p[2]]  # of grades 0 to 3
            for p in goes_on
        ]
    )
    probabilities = corn_log_probabilities(torch.from_numpy(logits)).exp()
    np.testing.assert_allclose(probabilities.numpy(), expected, rtol=1e-12)
    loss = corn(torch.from_numpy(logits), float64(0.2, 3.0, 1.9, 2.5), FOUR_GRADES)  # nearest: 0, 3, 2, 3
    assert loss.item() == pytest.approx(-np.log(expected[[0, 1, 2, 3], [0, 3, 2, 3]]).mean(), rel=1e-12)


def test_corn_trains_only_the_outputs_that_a_grade_has_reached() -> None:
    logits = torch.from_numpy(random_array(1, 3)).requires_grad_()
    corn(logits, float64(1.0), FOUR_GRADES).backward()
    assert logits.grad is not None
    assert (logits.grad != 0).tolist() == [[True, True, False]]


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_angle_ranks_by_the_sum_of_real_and_imaginary_part(temperature: float) -> None:
    u, v = np.random.default_rng(0).normal(size=(2, 6, 8))
    first, second = u[:, :4] + 1j * u[:, 4:], v[:, :4] + 1j * v[:, 4:]
    products = (first * second.conj()).sum(axis=1)
    similarities = np.abs(products.real + products.imag) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    labels = torch.tensor([0.0, 3.0, 3.0, 1.0, 5.0, 2.0])
    loss = angle(torch.from_numpy(u), torch.from_numpy(v), labels, temperature)
    assert loss.item() == pytest.approx(cosent(torch.from_numpy(similarities), labels, temperature).item(), rel=1e-12)


def test_angle_ranks_like_sentence_transformers() -> None:
    util = pytest.importorskip("sentence_transformers.util")
    u, v = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 6, 8)))
    labels = torch.tensor([0.0, 3.0, 3.0, 1.0, 5.0, 2.0])
    expected = cosent(util.pairwise_angle_sim(u, v), labels)
    assert angle(u, v, labels).item() == pytest.approx(expected.item(), rel=1e-6)


def test_binary_cross_entropy_is_that_of_the_sigmoid() -> None:
    logits = random_array(16)
    targets = np.random.default_rng(1).uniform(0, 1, 16)
    probabilities = 1 / (1 + np.exp(-logits))
    expected = -np.mean(targets * np.log(probabilities) + (1 - targets) * np.log(1 - probabilities))
    loss = binary_cross_entropy(torch.from_numpy(logits), torch.from_numpy(targets))
    assert loss.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_cosent_sums_over_the_pairs_in_the_wrong_order_and_the_right(temperature: float) -> None:
    cosines, labels = random_array(6), np.array([0.0, 3.0, 3.0, 1.0, 5.0, 2.0])
    total = sum(
        np.exp((cosines[j] - cosines[i]) / temperature) for i in range(6) for j in range(6) if labels[i] > labels[j]
    )
    loss = cosent(torch.from_numpy(cosines), torch.from_numpy(labels), temperature)
    assert loss.item() == pytest.approx(np.log1p(total), rel=1e-12)


def test_cosent_of_equal_labels_is_zero_and_has_no_gradient() -> None:
    cosines = torch.from_numpy(random_array(4)).requires_grad_()
    loss = cosent(cosines, torch.ones(4))
    loss.backward()
    assert loss.item() == 0
    assert cosines.grad is not None
    assert (cosines.grad == 0).all()


def test_pearson_is_one_minus_the_correlation() -> None:
    scores, labels = random_array(2, 9)
    expected = 1 - np.corrcoef(scores, labels)[0, 1]
    tensors = torch.from_numpy(scores), torch.from_numpy(labels)
    assert pearson(*tensors).item() == pytest.approx(expected, rel=1e-12)
    assert pearson(3 * tensors[0] + 2, tensors[1]).item() == pytest.approx(expected, rel=1e-12)
    assert pearson(-tensors[1], tensors[1]).item() == pytest.approx(2, rel=1e-12)


@pytest.mark.parametrize("batch", [1, 4])
def test_pearson_of_equal_labels_has_no_gradient(batch: int) -> None:
    scores = torch.from_numpy(random_array(batch)).requires_grad_()
    loss = pearson(scores, torch.ones(batch))
    loss.backward()
    assert loss.item() == 1
    assert scores.grad is not None
    assert (scores.grad == 0).all()


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_info_nce_is_the_negative_log_share_of_the_positive(temperature: float) -> None:
    u, v = random_array(2, 6, 8)
    lengths = np.linalg.norm(u, axis=1)[:, None] * np.linalg.norm(v, axis=1)[None, :]
    weights = np.exp((u @ v.T) / lengths / temperature)
    expected = -np.mean(np.log(np.diag(weights) / weights.sum(axis=1)))
    loss = info_nce(torch.from_numpy(u), torch.from_numpy(v), temperature)
    assert loss.item() == pytest.approx(expected, rel=1e-12)


def test_info_nce_of_a_single_pair_is_zero() -> None:
    u, v = torch.from_numpy(random_array(2, 1, 8))
    assert info_nce(u, v).item() == 0


# Nearest node


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("label_values", "score", "expected_index"),
    [
        pytest.param(FOUR_GRADES, 2.875, 3, id="paper_2.875_is_grade_3"),
        pytest.param(FOUR_GRADES, 1.333, 1, id="paper_1.333_is_grade_1"),
        pytest.param(FOUR_GRADES, 0.5, 1, id="half_goes_up"),
        pytest.param(FOUR_GRADES, 1.5, 2, id="next_half_goes_up_too"),
        pytest.param(FOUR_GRADES, -0.6, 0, id="below_the_scale"),
        pytest.param(FOUR_GRADES, -100.0, 0, id="far_below_the_scale"),
        pytest.param(FOUR_GRADES, 3.57, 3, id="above_the_scale"),
        pytest.param(FOUR_GRADES, 100.0, 3, id="far_above_the_scale"),
        pytest.param((1.0, 1.5, 2.0), 1.25, 1, id="step_0.5_half_goes_up"),
        pytest.param((1.0, 1.5, 2.0), 1.2, 0, id="step_0.5_below_half"),
        pytest.param((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), 0.29, 1, id="step_0.2_below_half"),
        pytest.param((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), 0.31, 2, id="step_0.2_above_half"),
        pytest.param((-2.0, -1.0, 0.0, 1.0), -1.5, 1, id="negative_start_half_goes_up"),
        pytest.param((-2.0, -1.0, 0.0, 1.0), -1.6, 0, id="negative_start_below_half"),
        pytest.param((-2.0, -1.0, 0.0, 1.0), 0.7, 3, id="negative_start_top"),
        pytest.param((0.0, 1.0, 3.0), 0.49, 0, id="uneven_below_the_first_middle"),
        pytest.param((0.0, 1.0, 3.0), 0.5, 1, id="uneven_half_goes_up"),
        pytest.param((0.0, 1.0, 3.0), 1.9, 1, id="uneven_below_the_second_middle"),
        pytest.param((0.0, 1.0, 3.0), 2.0, 2, id="uneven_second_half_goes_up"),
        pytest.param((0.0, 1.0, 3.0), 9.0, 2, id="uneven_above"),
        pytest.param((0.0, 1.0, 3.0), -9.0, 0, id="uneven_beneath"),
        pytest.param((0.0, 1.0, 1.2), 1.11, 2, id="uneven_near_the_top"),
    ],
)
def test_nearest_label_index(
    label_values: Sequence[float], score: float, expected_index: int, dtype: torch.dtype
) -> None:
    assert nearest_label_index(torch.tensor([score], dtype=dtype), label_values).tolist() == [expected_index]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("start", "step", "nodes"), [(0, 1, 6), (0, 0.2, 26), (0, 0.1, 51), (-1, 0.5, 5), (1, 1 / 3, 13)]
)
def test_every_node_is_nearest_to_itself(start: float, step: float, nodes: int, dtype: torch.dtype) -> None:
    label_values = [start + step * index for index in range(nodes)]
    indices = nearest_label_index(torch.tensor(label_values, dtype=dtype), label_values)
    assert indices.tolist() == list(range(nodes))


def test_nearest_label_index_keeps_the_shape() -> None:
    scores = torch.tensor([[0.2, 0.9, 3.1], [2.4, 1.1, -0.3]])
    assert nearest_label_index(scores, FOUR_GRADES).tolist() == [[0, 1, 3], [2, 1, 0]]
    assert nearest_label_index(scores, (0.0, 1.0, 4.0)).tolist() == [[0, 1, 2], [1, 1, 0]]


def test_cross_entropy_of_uneven_nodes_takes_the_nearest_one() -> None:
    logits, labels = torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([1.15])
    expected = F.cross_entropy(logits, torch.tensor([2]))
    assert cross_entropy(logits, labels, (0.0, 1.0, 1.2)).item() == expected.item()


def test_relax_of_uneven_nodes_frees_overshoot_of_the_nearest_end() -> None:
    scores, labels = torch.tensor([2.0, 2.0, -1.0]), torch.tensor([1.15, 1.05, 0.6])
    assert apply_boundary(scores, labels, (0.0, 1.0, 1.2), "relax").tolist() == pytest.approx([1.2, 2.0, -1.0])


# The ends of the scale


def bounded_smooth_k2(
    scores: Tensor, label: float, boundary: str, label_values: Sequence[float] = FOUR_GRADES
) -> Tensor:
    labels = torch.full_like(scores, label)
    return smooth_k2(apply_boundary(scores, labels, label_values, boundary), labels)


@pytest.mark.parametrize(
    ("label_values", "label", "score"),
    [
        pytest.param(FOUR_GRADES, 3.0, 3.57, id="high_end_as_in_the_paper"),
        pytest.param(FOUR_GRADES, 0.0, -0.57, id="low_end"),
        pytest.param((-1.0, 0.0, 1.0), 1.0, 9.0, id="high_end_of_a_scale_around_0"),
        pytest.param((-1.0, 0.0, 1.0), -1.0, -9.0, id="low_end_of_a_scale_around_0"),
    ],
)
def test_relax_makes_overshoot_past_the_labels_own_end_free(
    label_values: Sequence[float], label: float, score: float
) -> None:
    scores = float64(score)
    loss = bounded_smooth_k2(scores, label, "relax", label_values)
    assert loss.item() == 0
    assert gradient(loss, scores).item() == 0


# By hand: k = 2 and x0 = 0.25 at an error of 4 give 2 * 3.75^2 = 28.125 and a slope of 2 * 2 * 3.75 = 15.
@pytest.mark.parametrize(("label", "score", "expected_gradient"), [(3.0, -1.0, -15.0), (0.0, 4.0, 15.0)])
def test_relax_keeps_cost_and_gradient_of_overshoot_past_the_other_end(
    label: float, score: float, expected_gradient: float
) -> None:
    scores = float64(score)
    loss = bounded_smooth_k2(scores, label, "relax")
    assert loss.item() == 28.125
    assert gradient(loss, scores).item() == expected_gradient


@pytest.mark.parametrize("label", [0.6, 1.0, 1.5, 2.0, 2.4])
def test_relax_leaves_scores_of_inner_labels_alone(label: float) -> None:
    scores = float64(-2.0, -0.5, 0.3, 1.0, 2.9, 3.5, 7.0)
    bounded = apply_boundary(scores, torch.full_like(scores, label), FOUR_GRADES, "relax")
    assert bounded.tolist() == scores.tolist()
    assert gradient(bounded.sum(), scores).tolist() == [1.0] * len(scores)


@pytest.mark.parametrize("label", FOUR_GRADES)
def test_relax_leaves_scores_on_the_scale_alone(label: float) -> None:
    scores = float64(0.25, 1.0, 1.7, 2.75)
    bounded = apply_boundary(scores, torch.full_like(scores, label), FOUR_GRADES, "relax")
    assert bounded.tolist() == scores.tolist()
    assert gradient(bounded.sum(), scores).tolist() == [1.0] * len(scores)


@pytest.mark.parametrize(("label", "score", "expected"), [(2.6, 3.5, 3.0), (0.4, -0.5, 0.0), (2.4, 3.5, 3.5)])
def test_relax_counts_a_label_between_nodes_as_the_nearest(label: float, score: float, expected: float) -> None:
    assert apply_boundary(float64(score), float64(label), FOUR_GRADES, "relax").item() == expected


@pytest.mark.parametrize("label", FOUR_GRADES)
def test_mask_negative_sets_negative_scores_to_zero_without_gradient_whatever_their_label(label: float) -> None:
    scores = float64(-2.0, -0.25, 0.0, 0.5, 3.5)
    bounded = apply_boundary(scores, torch.full_like(scores, label), FOUR_GRADES, "mask_negative")
    assert bounded.tolist() == [0.0, 0.0, 0.0, 0.5, 3.5]
    assert gradient(bounded.sum(), scores).tolist() == [0.0, 0.0, 1.0, 1.0, 1.0]


def test_mask_negative_keeps_the_cost_but_not_the_gradient_of_a_negative_score() -> None:
    scores = float64(-1.0)
    loss = bounded_smooth_k2(scores, 3.0, "mask_negative")
    assert loss.item() == 2 * 2.75**2
    assert gradient(loss, scores).item() == 0


def test_boundary_none_leaves_all_scores_alone() -> None:
    scores = float64(-2.0, 1.0, 3.57)
    assert apply_boundary(scores, float64(0.0, 1.0, 3.0), FOUR_GRADES, "none").tolist() == scores.tolist()


def test_similarity_distillation_by_hand() -> None:
    # Sentences a, b | c, d: the encoder turned c by a right angle, from a's direction to b's.
    anchors = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [-1.0, 0.0]]])
    embeddings = torch.tensor([[[3.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [-1.0, 0.0]]])
    # cos(a, c): 1 to 0; cos(b, c): 0 to 1; those with d, and those within a pair, do not count or do not change.
    expected = (1 + 1 + 0 + 0) / 4
    torch.testing.assert_close(similarity_distillation(embeddings, anchors), torch.tensor(expected))
    assert similarity_distillation(3 * anchors, anchors) == 0
    assert similarity_distillation(embeddings[1:], anchors[1:]) == 0


def test_similarity_distillation_pulls_towards_the_anchors() -> None:
    generator = torch.Generator().manual_seed(0)
    anchors, embeddings = (torch.randn(4, 2, 3, generator=generator) for _ in range(2))
    embeddings.requires_grad_(True)
    loss = similarity_distillation(embeddings, anchors)
    (gradient,) = torch.autograd.grad(loss, embeddings)
    assert similarity_distillation(embeddings - 0.1 * gradient, anchors) < loss
