"""Learning rates that differ from layer to layer."""

import re

from torch import Tensor, nn

from sts_regression.options import STSTrainingArguments

LAYER_PATTERN = re.compile(r"\.layers?\.(\d+)\.")


def learning_rates(model: nn.Module, args: STSTrainingArguments) -> dict[Tensor, float]:
    """
    Peak learning rate of each parameter.

    The head has `head_learning_rate`. The encoder's top layer has `learning_rate`, each layer
    below it `layerwise_lr_decay` times that of the one above. The embeddings count as the layer below the lowest, or
    keep the full rate (as in the paper's code) with `embeddings_lr_decay` false.
    """
    layers = {name: LAYER_PATTERN.search(name) for name, _ in model.named_parameters()}
    num_layers = 1 + max((int(match[1]) for match in layers.values() if match), default=-1)
    rates: dict[Tensor, float] = {}
    for name, parameter in model.named_parameters():
        match, depth = layers[name], 0
        if match:
            depth = num_layers - 1 - int(match[1])
        elif args.embeddings_lr_decay and "embed" in name:
            depth = num_layers
        is_head = name.removeprefix("module.").startswith("head.")
        rate = args.head_learning_rate if is_head else args.learning_rate
        rates[parameter] = rate * args.layerwise_lr_decay**depth
    return rates
