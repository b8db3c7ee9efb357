"""Losses on graded similarity, two with a zero-gradient buffer zone: functions that return one number for a batch.

"The paper" is "Advancing Semantic Textual Similarity Modeling: A Regression Framework with Translated ReLU and Smooth
K2 Loss" (EMNLP 2024). The file is copied into every checkpoint beside the model; it imports torch only.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

HL_GAUSS_WIDTH = 0.75  # standard deviation in units of the distance between nodes (Farebrother et al., 2024)
SPACING_ROUNDING = 1e-6  # relative tolerance for evenly spaced nodes, as in the configuration


def translated_relu(scores: Tensor, labels: Tensor, slope: float = 2.0, threshold: float = 0.25) -> Tensor:
    r"""
    Translated ReLU, equation (1) of the paper: f(x) = max(0, k(x − x₀)) with x = |score − label|.

    An error below the threshold x₀ costs nothing and has no gradient; above it, the cost is linear. In support vector
    regression, this is the ε-insensitive loss. At x = x₀ exactly the gradient is 0, one of its subgradients.

    Args:
        scores (`Tensor` of shape `(batch,)`): predictions on the label scale.
        labels (`Tensor` of shape `(batch,)`): gold labels, any real numbers on the label scale.
        slope (`float`): k > 0.
        threshold (`float`): x₀, between 0 and half the distance between grades, in units of the label scale.

    Returns:
        `Tensor` of shape `()`: the mean over the batch.
    """
    return (slope * F.relu((scores - labels).abs() - threshold)).mean()


def smooth_k2(scores: Tensor, labels: Tensor, slope: float = 2.0, threshold: float = 0.25) -> Tensor:
    r"""
    Smooth K2 Loss, equation (2) of the paper: f(x) = 0 for x < x₀, else k(x² − 2x₀x + x₀²), with x = |score − label|.

    That is k·max(0, x − x₀)², the squared ε-insensitive loss. Its derivative 2k·max(0, x − x₀) is continuous at x₀.

    Args:
        scores (`Tensor` of shape `(batch,)`): predictions on the label scale.
        labels (`Tensor` of shape `(batch,)`): gold labels, any real numbers on the label scale.
        slope (`float`): k > 0.
        threshold (`float`): x₀, between 0 and half the distance between grades, in units of the label scale.

    Returns:
        `Tensor` of shape `()`: the mean over the batch.
    """
    return (slope * F.relu((scores - labels).abs() - threshold).square()).mean()


def mse(scores: Tensor, labels: Tensor) -> Tensor:
    """Mean squared error, (score − label)², a baseline of the paper (Table 1). Shapes as in [`smooth_k2`]."""
    return F.mse_loss(scores, labels)


def l1(scores: Tensor, labels: Tensor) -> Tensor:
    """Mean absolute error, |score − label|, a baseline of the paper (Table 1). Shapes as in [`smooth_k2`]."""
    return F.l1_loss(scores, labels)


def cross_entropy(logits: Tensor, labels: Tensor, label_values: Sequence[float]) -> Tensor:
    """
    Softmax cross-entropy over the nodes of the scale, the Sentence-BERT baseline of the paper (Table 1).

    Args:
        logits (`Tensor` of shape `(batch, nodes)`): one output per node.
        labels (`Tensor` of shape `(batch,)`): gold labels on the label scale. A label between two nodes counts as the
            nearest one (the paper's code would cut its fraction off).
        label_values (sequence of `float`): the nodes, lowest first.

    Returns:
        `Tensor` of shape `()`: the mean over the batch, in nats.
    """
    return F.cross_entropy(logits, nearest_label_index(labels, label_values))


def hl_gauss(logits: Tensor, labels: Tensor, label_values: Sequence[float]) -> Tensor:
    """
    HL-Gauss (Imani and White, 2018; Farebrother et al., 2024): cross-entropy with a normal distribution as the target.

    The target has its mean at the label and a standard deviation of 0.75 times the smallest distance between nodes.
    The probability of a node is that of the interval up to the middle between neighbouring nodes; the outer intervals
    are open. Unlike in [`cross_entropy`], a near miss costs less than a far one, and a label may lie between nodes.

    Args:
        logits (`Tensor` of shape `(batch, nodes)`): one output per node.
        labels (`Tensor` of shape `(batch,)`): gold labels, any real numbers on the label scale.
        label_values (sequence of `float`): the nodes, lowest first.

    Returns:
        `Tensor` of shape `()`: the mean over the batch, in nats.
    """
    width = HL_GAUSS_WIDTH * min(upper - lower for lower, upper in pairwise(label_values))
    middles = _middles(label_values, labels)
    below = torch.special.ndtr((middles - labels[:, None]) / width)  # (batch, nodes - 1)
    targets = F.pad(F.pad(below, (1, 0), value=0.0), (0, 1), value=1.0).diff(dim=-1)  # (batch, nodes)
    return F.cross_entropy(logits, targets.to(logits.dtype))


def corn(logits: Tensor, labels: Tensor, label_values: Sequence[float]) -> Tensor:
    """
    CORN (Shi, Cao and Raschka, 2023): the negative log-probability of the grade from conditional probabilities.

    Output k says whether a pair that has at least grade k has a higher one. Each output learns from these pairs only,
    and the probability of exceeding a grade cannot rise with the grade.

    Args:
        logits (`Tensor` of shape `(batch, nodes - 1)`): one output between neighbouring nodes.
        labels (`Tensor` of shape `(batch,)`): gold labels; one between two nodes counts as the nearest.
        label_values (sequence of `float`): the nodes, lowest first.

    Returns:
        `Tensor` of shape `()`: the mean over the batch, in nats.
    """
    return F.nll_loss(corn_log_probabilities(logits), nearest_label_index(labels, label_values))


def corn_log_probabilities(logits: Tensor) -> Tensor:
    """Outputs of [`corn`], (batch, nodes - 1), to the logarithm of each grade's probability, (batch, nodes)."""
    reached = F.pad(F.logsigmoid(logits).cumsum(dim=-1), (1, 0))  # at least grade k
    return reached + F.pad(F.logsigmoid(-logits), (0, 1))


def binary_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """
    Cross-entropy between the targets and the sigmoid of the logits, the usual loss of cross-encoders on graded pairs.

    Args:
        logits (`Tensor` of shape `(batch,)`): outputs before the sigmoid.
        targets (`Tensor` of shape `(batch,)`): gold labels mapped linearly onto 0-1.

    Returns:
        `Tensor` of shape `()`: the mean over the batch, in nats.
    """
    return F.binary_cross_entropy_with_logits(logits, targets)


def info_nce(u: Tensor, v: Tensor, temperature: float = 0.05) -> Tensor:
    """
    InfoNCE, equation (3) of the paper: −log softmax over j of cos(u_i, v_j)/τ, taken at j = i. Labels play no part.

    Args:
        u (`Tensor` of shape `(batch, hidden)`): embeddings of the first sentences.
        v (`Tensor` of shape `(batch, hidden)`): embeddings of their positives; all other rows serve as negatives.
        temperature (`float`): τ > 0.

    Returns:
        `Tensor` of shape `()`: the mean over the batch, in nats; 0 for a batch of one.
    """
    with torch.autocast(u.device.type, enabled=False):  # a product in bfloat16 would blur similarities of near pairs
        similarities = F.normalize(u, dim=-1) @ F.normalize(v, dim=-1).T  # (batch, batch)
    return F.cross_entropy(similarities / temperature, torch.arange(len(u), device=u.device))


def cosent(cosines: Tensor, labels: Tensor, temperature: float = 0.05) -> Tensor:
    """
    CoSENT (Su, 2022): log(1 + Σ exp((cos_j − cos_i)/τ)) over all i, j of the batch with label_i > label_j.

    It uses only the order of the labels: the pair with the higher grade should have the higher cosine.

    Args:
        cosines (`Tensor` of shape `(batch,)`): cosine of each pair's embeddings.
        labels (`Tensor` of shape `(batch,)`): gold labels, on any scale.
        temperature (`float`): τ > 0; the factor 20 of other implementations is τ = 0.05.

    Returns:
        `Tensor` of shape `()`; 0 for a batch of equal labels.
    """
    differences = (cosines[None, :] - cosines[:, None]) / temperature  # (i, j): cos_j − cos_i
    ordered = differences.masked_fill(labels[:, None] <= labels[None, :], -torch.inf)
    return torch.cat([ordered.flatten(), ordered.new_zeros(1)]).logsumexp(dim=0)


def angle(u: Tensor, v: Tensor, labels: Tensor, temperature: float = 0.05) -> Tensor:
    """
    The angle objective of AnglE (Li and Li, ACL 2024): [`cosent`] with angles of complex vectors in place of cosines.

    The first half of an embedding is its real part, the second half its imaginary part. The similarity of u and v is
    |Σ Re(u·v̄) + Im(u·v̄)| / (|u| |v|), so that pairs whose cosine is saturated still have a gradient. As in
    sentence-transformers' `AnglELoss`, the two other terms of the paper are left out.

    Args:
        u, v (`Tensor` of shape `(batch, hidden)`): embeddings; `hidden` must be even.
        labels (`Tensor` of shape `(batch,)`): gold labels, on any scale.
        temperature (`float`): τ > 0; the factor 20 of other implementations is τ = 0.05.

    Returns:
        `Tensor` of shape `()`; 0 for a batch of equal labels.
    """
    u, v = F.normalize(u, dim=-1), F.normalize(v, dim=-1)
    (u_real, u_imaginary), (v_real, v_imaginary) = u.chunk(2, dim=-1), v.chunk(2, dim=-1)
    real, imaginary = (u * v).sum(dim=-1), (u_imaginary * v_real - u_real * v_imaginary).sum(dim=-1)
    return cosent((real + imaginary).abs(), labels, temperature)


def pearson(scores: Tensor, labels: Tensor) -> Tensor:
    """
    One minus Pearson's correlation of the batch, the loss of Pcc-tuning (Zhang and Li, EMNLP 2024).

    An increasing affine function of the scores has the same loss, so the scores are not on the label scale.

    Args:
        scores (`Tensor` of shape `(batch,)`): predictions, on any scale.
        labels (`Tensor` of shape `(batch,)`): gold labels, on any scale.

    Returns:
        `Tensor` of shape `()`, between 0 and 2; 1 without a gradient for a batch of equal labels.
    """
    return 1 - F.cosine_similarity(scores - scores.mean(), labels - labels.mean(), dim=0)


def similarity_distillation(embeddings: Tensor, anchors: Tensor) -> Tensor:
    """
    Similarity-preserving distillation (Tung and Mori, ICCV 2019) on cosines: the mean squared difference between the
    cosines of two encoders, over all pairs of sentences in the batch except the labelled ones.

    Args:
        embeddings (`Tensor` of shape `(batch, 2, hidden)`): embeddings by the encoder that is trained.
        anchors (`Tensor` of shape `(batch, 2, hidden)`): embeddings of the same sentences by the reference encoder.

    Returns:
        `Tensor` of shape `()`; 0 for a batch of one pair.
    """
    first, second = (F.normalize(tensor.float().flatten(0, 1), dim=-1) for tensor in (embeddings, anchors))
    with torch.autocast(first.device.type, enabled=False):
        difference = first @ first.T - second @ second.T  # (2·batch, 2·batch)
    pair = torch.arange(len(first), device=first.device) // 2
    is_other = pair[:, None] != pair[None, :]
    return (difference.square() * is_other).sum() / is_other.sum().clamp(min=1)


def apply_boundary(scores: Tensor, labels: Tensor, label_values: Sequence[float], boundary: str) -> Tensor:
    """
    Changes scores beyond the label scale before a regression loss is computed (paper, end of section 3.3).

    Args:
        scores (`Tensor` of shape `(batch,)`): predictions on the label scale.
        labels (`Tensor` of shape `(batch,)`): gold labels.
        label_values (sequence of `float`): the nodes of the scale.
        boundary (`str`): `"none"` leaves the scores as they are. `"relax"` sets a score beyond an end of the scale to
            that end if the end is the node nearest to the label: on 0-3, a score of 3.57 for label 3 then costs
            nothing, while overshoot at the other end keeps its cost and gradient. `"mask_negative"` multiplies
            negative scores by zero for every label, as the paper's code does.

    Returns:
        `Tensor` of shape `(batch,)`.
    """
    if boundary == "relax":
        low, high = label_values[0], label_values[-1]
        nodes = nearest_label_index(labels, label_values)  # (batch,)
        scores = torch.where(nodes == 0, scores.clamp(min=low), scores)
        return torch.where(nodes == len(label_values) - 1, scores.clamp(max=high), scores)
    if boundary == "mask_negative":
        return scores * (scores >= 0)
    return scores


def nearest_label_index(scores: Tensor, label_values: Sequence[float]) -> Tensor:
    """
    Index of the node nearest to each score (paper, section 3.1: 2.875 on 0, 1, 2, 3 is grade 3, 1.333 is grade 1).

    Args:
        scores (`Tensor` of any shape): scores on the label scale. A score halfway between two nodes belongs to the
            upper one, up to rounding.
        label_values (sequence of `float`): the nodes, lowest first.

    Returns:
        `Tensor` of the same shape, dtype int64, from 0 to the number of nodes − 1.
    """
    steps = [upper - lower for lower, upper in pairwise(label_values)]
    if max(steps) - min(steps) > SPACING_ROUNDING * max(steps):  # uneven
        return (scores.unsqueeze(-1) >= _middles(label_values, scores)).sum(dim=-1)
    step = (label_values[-1] - label_values[0]) / (len(label_values) - 1)
    return ((scores - label_values[0]) / step + 0.5).floor().clamp(0, len(label_values) - 1).long()


def _middles(label_values: Sequence[float], like: Tensor) -> Tensor:
    """The middles between neighbouring nodes, (nodes - 1,), with the device and, if it is floating, type of `like`."""
    dtype = like.dtype if like.is_floating_point() else torch.get_default_dtype()
    middles = [(lower + upper) / 2 for lower, upper in pairwise(label_values)]
    return torch.tensor(middles, dtype=dtype, device=like.device)
