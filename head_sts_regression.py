"""From the embeddings of a pair to its score and its loss: pair features, logits, score on the label scale.

The functions know the configuration, but no encoder. The file is copied into every checkpoint beside the model.
"""

from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .configuration_sts_regression import BUFFER_ZONE_LOSSES, GRADE_LOSSES, REGRESSION_LOSSES, STSRegressionConfig
from .losses_sts_regression import (
    HL_GAUSS_WIDTH,
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
    pearson,
    smooth_k2,
    translated_relu,
)

SCORE_LOSSES = (*REGRESSION_LOSSES, "pearson")  # their head returns the score itself

PAIR_FEATURE_FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "u": lambda u, v: u,
    "v": lambda u, v: v,
    "abs_diff": lambda u, v: (u - v).abs(),
    "product": lambda u, v: u * v,
    "sum": lambda u, v: u + v,
}


def build_head(config: STSRegressionConfig) -> nn.Linear:
    """The linear layer from pair features, from the cosine, or from a cross-encoder's embedding, to the logits."""
    hidden_size = config.encoder_config.hidden_size
    if config.encoder_type == "cross-encoder":
        return nn.Linear(hidden_size, config.num_outputs)
    if config.score_function == "cosine":
        return nn.Linear(1, config.num_outputs)
    return nn.Linear(hidden_size * len(config.pair_features), config.num_outputs)


@torch.no_grad()
def start_as_cosine(head: nn.Linear, config: STSRegressionConfig) -> None:
    """
    Sets a head that maps the cosine: cosine 0 is the lowest grade, and cosine 1 the highest.

    A distribution over grades starts as a normal one around this score, with the width of HL-Gauss.
    """
    low, label_range = config.label_values[0], config.label_values[-1] - config.label_values[0]
    if config.loss_type not in GRADE_LOSSES:
        head.weight.fill_(label_range)
        head.bias.fill_(low)
        return
    variance = (HL_GAUSS_WIDTH * config.label_step) ** 2
    if config.loss_type == "corn":  # each output crosses zero between its nodes
        points = [(lower + upper) / 2 - low for lower, upper in pairwise(config.label_values)]
        weights = [label_range * config.label_step / variance for _ in points]
        biases = [-point * config.label_step / variance for point in points]
    else:  # -(score - node)² / (2 variance), without the term that all nodes share
        points = [node - low for node in config.label_values]
        weights = [label_range * point / variance for point in points]
        biases = [-(point**2) / (2 * variance) for point in points]
    head.weight.copy_(torch.tensor(weights)[:, None])
    head.bias.copy_(torch.tensor(biases))


@torch.no_grad()
def reverses_cosine(head: nn.Linear, config: STSRegressionConfig) -> bool:
    """Whether a head that maps the cosine scores pairs lower the higher their cosine is."""
    opposite, same = raw_scores(head(head.weight.new_tensor([[-1.0], [1.0]])), config)
    return bool(same < opposite)


def pair_features(u: Tensor, v: Tensor, config: STSRegressionConfig) -> Tensor:
    """Embeddings of a bi-encoder, (batch, hidden) twice, to the inputs of its head, (batch, features)."""
    if config.score_function == "cosine":
        return cosine(u, v)[:, None]
    return torch.cat([PAIR_FEATURE_FUNCTIONS[name](u, v) for name in config.pair_features], dim=-1)


def cosine(u: Tensor, v: Tensor) -> Tensor:
    """(batch, hidden) twice to (batch,), in float32 at least."""
    u, v = (side.float() if side.dtype.itemsize < 4 else side for side in (u, v))
    return F.cosine_similarity(u, v, dim=-1)


def raw_scores(logits: Tensor, config: STSRegressionConfig) -> Tensor:
    """Logits (batch, outputs) to scores (batch,) on the label scale, before they are calibrated."""
    low, high = config.label_values[0], config.label_values[-1]
    if config.loss_type in GRADE_LOSSES:
        nodes = torch.tensor(config.label_values, dtype=logits.dtype, device=logits.device)
        # a matrix product would be cast to bfloat16
        return (grade_logits(logits, config).softmax(dim=-1) * nodes).sum(dim=-1)
    if config.loss_type == "binary_cross_entropy":
        return low + (high - low) * logits[:, 0].sigmoid()
    return logits[:, 0]


def grade_logits(logits: Tensor, config: STSRegressionConfig) -> Tensor:
    """Logits (batch, outputs) of a distribution to one per grade, (batch, nodes), whose softmax it is."""
    return corn_log_probabilities(logits) if config.loss_type == "corn" else logits


def pair_loss(
    logits: Tensor, scores: Tensor, embeddings: Tensor | None, labels: Tensor, config: STSRegressionConfig
) -> Tensor:
    """
    The configured loss of a batch.

    Args:
        logits (`Tensor` of shape `(batch, outputs)`).
        scores (`Tensor` of shape `(batch,)`).
        embeddings (`Tensor` of shape `(batch, 2, hidden)`, *optional*): u and v of a bi-encoder.
        labels (`Tensor` of shape `(batch,)`): gold labels on the label scale.
        config ([`STSRegressionConfig`]): names the loss and its numbers.

    Returns:
        `Tensor` of shape `()`.
    """
    labels = labels.to(scores.dtype)
    if config.loss_type in REGRESSION_LOSSES:
        bounded = apply_boundary(scores, labels, config.label_values, config.boundary)
        if config.loss_type in BUFFER_ZONE_LOSSES:
            loss_function = smooth_k2 if config.loss_type == "smooth_k2" else translated_relu
            return loss_function(bounded, labels, config.loss_slope, config.loss_threshold)
        return mse(bounded, labels) if config.loss_type == "mse" else l1(bounded, labels)
    if config.loss_type in GRADE_LOSSES:
        loss_of_grades = {"cross_entropy": cross_entropy, "hl_gauss": hl_gauss, "corn": corn}[config.loss_type]
        return loss_of_grades(logits, labels, config.label_values)
    if config.loss_type == "binary_cross_entropy":
        low, high = config.label_values[0], config.label_values[-1]
        return binary_cross_entropy(logits[:, 0], (labels - low) / (high - low))
    if config.loss_type == "pearson":
        return pearson(scores, labels)
    assert embeddings is not None  # the configuration refuses the losses of the cosine for a cross-encoder
    u, v = embeddings.unbind(dim=1)
    if config.loss_type == "cosent":
        return cosent(cosine(u, v), labels, config.loss_temperature)
    if config.loss_type == "angle":
        return angle(u, v, labels, config.loss_temperature)
    return info_nce(u, v, config.loss_temperature)
