"""Scores of every pair of two sets of embeddings, without building the features of each pair.

A linear head on u, v, |u - v|, u∘v and u + v is the sum of a number per sentence, a matrix product and a weighted L1
distance; a cosine is a matrix product. Both equal `STSRegressionModel.score_embeddings`, but are many times as fast.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from sts_regression.configuration_sts_regression import GRADE_LOSSES
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import Embeddings, as_tensor
from sts_regression.pipeline_sts_regression import map_scores
from sts_regression.search.l1_kernels import weighted_l1

SCORES = ("head", "cosine")
BLOCK_SIZE = 1024  # rows and columns scored at once: 4 MiB for each output of the head
COSINE_EPS = 1e-8  # as in torch.nn.functional.cosine_similarity

PairScorer = Callable[[Tensor, Tensor], Tensor]


@torch.no_grad()
def score_matrix(
    model: STSRegressionModel, u: Embeddings, v: Embeddings, score: str = "head", block_size: int = BLOCK_SIZE
) -> Tensor:
    """
    The score of every pair of two sets of embeddings, equal to [`~STSRegressionModel.score_embeddings`].

    Args:
        model: a bi-encoder; blocks are computed on its device, in float32 (float64 if its head is).
        u (`Tensor` or array of shape `(rows, hidden)`): embeddings of first sentences, from [`encode_sentences`].
        v (`Tensor` or array of shape `(columns, hidden)`): embeddings of second sentences.
        score: "head", on the label scale, or "cosine", the plain cosine of the embeddings.
        block_size: number of rows and of columns in a block. Besides the result, memory is the size of a block times
            the number of outputs of the head.

    Returns:
        `Tensor` of shape `(rows, columns)`, on the device of `u` (for an array, the CPU).

    Raises:
        ValueError: for a cross-encoder, an unknown `score`, embeddings of another size, and embeddings that are NaN or
            infinite.
    """
    scorer = pair_scorer(model, score)
    check_at_least_one("block_size", block_size)
    u, v = embeddings_of(model, "u", u), embeddings_of(model, "v", v)
    scores = torch.empty(len(u), len(v), dtype=_computing_dtype(model), device=u.device)
    for row in range(0, len(u), block_size):
        for column in range(0, len(v), block_size):
            rows, columns = slice(row, row + block_size), slice(column, column + block_size)
            scores[rows, columns] = scorer(u[rows], v[columns])
    return scores


def pair_scorer(model: STSRegressionModel, score: str = "head") -> PairScorer:
    """
    A function from embeddings of shape (rows, hidden) and (columns, hidden) to scores of shape (rows, columns).

    It moves its inputs to the model's device, where the scores stay. Otherwise, see [`score_matrix`].

    Raises:
        ValueError: for a cross-encoder, or an unknown `score`.
    """
    if score not in SCORES:
        raise ValueError(f"`score` must be one of {', '.join(SCORES)}, but is {score!r}.")
    if model.config.encoder_type == "cross-encoder":
        raise ValueError(
            '`model` has `encoder_type="cross-encoder"`, which has no sentence embeddings to search. Use a '
            "bi-encoder, and score the pairs it finds with the cross-encoder."
        )
    if score == "cosine":
        return partial(_score_on_device, model, _cosines)
    if model.config.score_function == "cosine":
        return partial(_score_on_device, model, partial(_scores_by_cosine_head, model))
    return partial(_score_on_device, model, partial(_scores_by_linear_head, model))


def embeddings_of(model: STSRegressionModel, name: str, embeddings: Embeddings) -> Tensor:
    """
    Embeddings of a model as a tensor of shape (sentences, hidden).

    Raises:
        ValueError: for another shape or type, and for numbers that are NaN or infinite.
    """
    tensor, hidden = as_tensor(name, embeddings), model.config.encoder_config.hidden_size
    if tensor.dim() != 2 or tensor.shape[1] != hidden:
        raise ValueError(
            f"`{name}` must have shape (sentences, {hidden}), but got {tuple(tensor.shape)}. Give embeddings of this "
            "model."
        )
    # NaN passes through `aminmax`, which is much faster than `isfinite` on every number.
    if tensor.numel() and not torch.stack(tensor.aminmax()).isfinite().all():
        raise ValueError(f"`{name}` holds values that are NaN or infinite. Leave these embeddings out.")
    return tensor


def check_at_least_one(name: str, value: int) -> None:
    """Raises `ValueError` for a value that is not a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"`{name}` must be a whole number of at least 1, but is {value!r}.")


def _computing_dtype(model: STSRegressionModel) -> torch.dtype:
    # Scores in bfloat16 tie most pairs, and the kernels do not support it.
    return torch.promote_types(model.head.weight.dtype, torch.float32)


def _score_on_device(model: STSRegressionModel, scorer: PairScorer, u: Tensor, v: Tensor) -> Tensor:
    dtype = _computing_dtype(model)
    with torch.no_grad(), torch.autocast(model.device.type, enabled=False):
        return scorer(u.to(model.device, dtype), v.to(model.device, dtype))


def _cosines(u: Tensor, v: Tensor) -> Tensor:
    # The scores of a block fit in the processor's cache, a normalised copy of the corpus does not.
    inverse_norms = v.norm(dim=-1).clamp(min=COSINE_EPS).reciprocal()
    return (F.normalize(u, dim=-1, eps=COSINE_EPS) @ v.T).mul_(inverse_norms)


def _scores_by_cosine_head(model: STSRegressionModel, u: Tensor, v: Tensor) -> Tensor:
    weights, biases = (parameter.to(u.dtype).flatten() for parameter in (model.head.weight, model.head.bias))
    cosines = _cosines(u, v)
    if model.config.loss_type not in GRADE_LOSSES:
        return map_scores(cosines.mul_(weights[0]).add_(biases[0]), model.config.grading)
    logits = cosines.flatten()[:, None] * weights + biases  # (rows · columns, outputs)
    return model.scores_from_logits(logits).view(len(u), len(v))


def _scores_by_linear_head(model: STSRegressionModel, u: Tensor, v: Tensor) -> Tensor:
    # One part of the weights per feature, shape (outputs, hidden).
    parts = model.head.weight.to(u.dtype).split(u.shape[1], dim=1)
    weights = dict(zip(model.config.pair_features, parts, strict=True))
    of_rows = model.head.bias.to(u.dtype).expand(len(u), -1)  # (rows, outputs)
    of_columns = u.new_zeros(len(v), len(model.head.bias))
    for name, part in weights.items():
        if name in ("u", "sum"):
            of_rows = of_rows + _weighted_sums(u, part)
        if name in ("v", "sum"):
            of_columns = of_columns + _weighted_sums(v, part)
    logits = []
    for output in range(of_rows.shape[1]):
        if "abs_diff" in weights:
            logit = weighted_l1(u, v, weights["abs_diff"][output])
        else:
            logit = u.new_zeros(len(u), len(v))
        if "product" in weights:
            logit.addmm_(u * weights["product"][output], v.T)
        logits.append(logit.add_(of_rows[:, output, None]).add_(of_columns[None, :, output]))
    # The model's own map from logits to the label scale takes one row per pair.
    return model.scores_from_logits(torch.stack(logits, dim=-1).flatten(0, 1)).view(len(u), len(v))


def _weighted_sums(rows: Tensor, weights: Tensor) -> Tensor:
    """(rows, hidden) and (outputs, hidden) to (rows, outputs), without a copy of all rows for each output."""
    # A matrix product might give equal rows results that differ in the last bit.
    return torch.cat([(part[:, None] * weights).sum(dim=-1) for part in rows.split(BLOCK_SIZE)])
