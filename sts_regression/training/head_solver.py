"""Solves for the head of a frozen encoder, if the loss is convex in the head, so that every minimum is global."""

import logging
import math
from collections.abc import Callable

import torch
from torch import Tensor

from sts_regression.configuration_sts_regression import BUFFER_ZONE_LOSSES, STSRegressionConfig
from sts_regression.losses_sts_regression import nearest_label_index
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.embedding_store import EmbeddedPairs

logger = logging.getLogger(__name__)

SOLVER_TOLERANCE = 1e-6  # relative change of the objective; smaller changes are float32 noise
ITERATIONS_AT_ONCE = 20  # per call of torch's L-BFGS, which would be gradient descent with one iteration per call
PAIRS_AT_ONCE = 8192  # bounds the memory of their features


def check_convex(config: STSRegressionConfig, labels: Tensor | None = None) -> None:
    """
    Refuses a loss that is not convex in the head.

    With `boundary="relax"`, the loss is convex for a label at an end of the scale, or so close to it that a score at
    the end costs nothing. It is not convex for other labels in the outer half of the outermost step: the cost rises
    up to the end, and not beyond it.

    Args:
        config: the configuration of the model.
        labels (`Tensor` of shape `(pairs,)`, *optional*): the labels of the training pairs. Without them, `"relax"` is
            not checked.

    Raises:
        ValueError: for a loss that is not convex; the message names the option and the remedy.
    """
    problem, remedy = None, "Use `--head_solver adamw`"
    if config.encoder_type == "cross-encoder":
        problem = f'`encoder_type="{config.encoder_type}"` has no embeddings to solve on'
    elif not config.trains_head:
        problem = f'`loss_type="{config.loss_type}"` trains no head'
    elif config.loss_type == "pearson":
        problem = '`loss_type="pearson"` is not convex'
    elif config.boundary == "mask_negative":
        problem = '`boundary="mask_negative"` makes the loss non-convex'
    elif config.boundary == "relax" and labels is not None and (label := _bent_label(config, labels)) is not None:
        problem = f'`boundary="relax"` makes the loss of label {label:g}, near an end of the scale, non-convex'
        remedy += ", or `--boundary none`"
    if problem is not None:
        raise ValueError(f"`head_solver`: {problem}. {remedy}.")


def _bent_label(config: STSRegressionConfig, labels: Tensor) -> float | None:
    """The first label whose loss `boundary="relax"` makes non-convex, if any."""
    low, high = config.label_values[0], config.label_values[-1]
    nodes = nearest_label_index(labels, config.label_values)  # (pairs,)
    from_low = torch.where(nodes == 0, labels - low, 0)
    from_high = torch.where(nodes == len(config.label_values) - 1, high - labels, 0)
    free = config.loss_threshold if config.loss_type in BUFFER_ZONE_LOSSES else 0.0
    rounding = torch.finfo(labels.dtype).eps * max(abs(low), abs(high))
    is_bent = torch.maximum(from_low, from_high) > free + rounding
    return float(labels[is_bent][0]) if is_bent.any() else None


def solve_head(
    model: STSRegressionModel,
    pairs: EmbeddedPairs,
    l2_penalty: float,
    max_iterations: int = 500,
    on_iteration: Callable[[int, float], None] | None = None,
) -> int:
    """
    Minimises the mean loss over all pairs plus `l2_penalty / 2` times the sum of the squared weights (not the bias).

    It runs L-BFGS with a strong Wolfe line search, and starts from the present head.

    Args:
        model: the model, whose head is changed in place, on the device that computes.
        pairs: embedded pairs with labels.
        l2_penalty: see above.
        max_iterations: the largest number of iterations; fewer suffice if the objective stops falling.
        on_iteration: called after up to 20 iterations each with their number so far and the objective before them.

    Returns:
        The number of iterations.

    Raises:
        ValueError: for a loss that is not convex, see [`check_convex`], or becomes NaN or infinite.
    """
    check_convex(model.config, pairs.labels)
    optimizer = torch.optim.LBFGS(
        model.head.parameters(),
        max_iter=ITERATIONS_AT_ONCE,
        history_size=50,
        line_search_fn="strong_wolfe",
        tolerance_grad=0,
    )

    def evaluate() -> Tensor:
        optimizer.zero_grad()
        objective = l2_penalty / 2 * model.head.weight.square().sum()
        objective.backward()
        for start in range(0, len(pairs), PAIRS_AT_ONCE):
            batch = pairs.__getitems__(list(range(start, min(start + PAIRS_AT_ONCE, len(pairs)))))
            inputs = {name: tensor.to(model.device) for name, tensor in batch.items()}
            loss = model(**inputs).loss * (len(batch["labels"]) / len(pairs))
            loss.backward()
            objective = objective.detach() + loss.detach()
        return objective

    was_training = model.training
    model.eval()
    first_weight = optimizer.param_groups[0]["params"][0]  # with which torch keeps the state of all
    previous, iterations = float("inf"), 0
    while iterations < max_iterations:
        objective = float(optimizer.step(evaluate).detach())  # before these iterations
        if not math.isfinite(objective):
            raise ValueError(
                f"`head_solver`: the loss is {objective} after {iterations} iterations. Use `--head_solver adamw`, "
                "whose error message names the pairs."
            )
        iterations = optimizer.state[first_weight]["n_iter"]
        if on_iteration is not None:
            on_iteration(iterations, objective)
        if previous - objective <= SOLVER_TOLERANCE * max(1.0, abs(objective)):
            break
        previous = objective
    model.train(was_training)
    logger.info(f"head solved in {iterations} iterations; mean loss and penalty {objective:.6f}")
    return iterations
