"""Learning rates that differ from layer to layer."""

import re
from collections import defaultdict
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from sts_regression.models.loading import LAYER
from sts_regression.training.training_arguments import STSTrainingArguments

# Prefixes that torch.compile, DDP, FSDP and activation checkpointing add to the names of wrapped parameters.
WRAPPERS = {"_orig_mod", "module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}


def learning_rates(model: nn.Module, args: STSTrainingArguments) -> dict[Tensor, float]:
    """
    The peak learning rate of each parameter.

    The head has `head_learning_rate`. The encoder's top layer has `learning_rate`, and each layer below it has
    `layerwise_lr_decay` times the rate of the layer above. The embeddings count as the layer below the lowest; if
    `embeddings_lr_decay` is false, they keep the full rate, as in the paper's code.

    Args:
        model: the model, bare or wrapped by torch.compile, DDP or both.
        args: the options with the rates.

    Raises:
        ValueError: if the rates of layers differ, but the names of parameters do not number the layers.
    """
    layers = {name: re.search(rf"{LAYER}\.", name) for name, _ in model.named_parameters()}
    num_layers = 1 + max((int(match[1]) for match in layers.values() if match), default=-1)
    if args.layerwise_lr_decay < 1 and num_layers == 0:
        raise ValueError(
            f"`layerwise_lr_decay` is {args.layerwise_lr_decay:g}, but this encoder's parameters do not belong to "
            "numbered layers. Leave it out."
        )
    rates: dict[Tensor, float] = {}
    for name, parameter in model.named_parameters():
        match, depth = layers[name], 0
        if match:
            depth = num_layers - 1 - int(match[1])
        elif args.embeddings_lr_decay and "embed" in name:
            depth = num_layers
        own_parts = [part for part in name.split(".") if part not in WRAPPERS]
        is_head = own_parts[0] == "head"
        rate = args.head_learning_rate if is_head else args.learning_rate
        rates[parameter] = rate * args.layerwise_lr_decay**depth
    return rates


def split_by_rate(optimizer: torch.optim.Optimizer, rates: Mapping[Tensor, float]) -> None:
    """
    Splits the parameter groups of an optimizer into groups with one learning rate each.

    Args:
        optimizer: changed in place.
        rates: the rate of each parameter, see [`learning_rates`].
    """
    groups = []
    for group in optimizer.param_groups:
        by_rate = defaultdict(list)
        for parameter in group["params"]:
            by_rate[rates[parameter]].append(parameter)
        groups += [{**group, "params": parameters, "lr": rate} for rate, parameters in by_rate.items()]
    optimizer.param_groups = groups
