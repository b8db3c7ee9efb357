"""Digests of models, equal only if two models compute the same numbers."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.tokenization import describe_tokenizer

# Entries of a configuration that say where it came from and do not change results.
ORIGIN_KEYS = ("_name_or_path", "transformers_version", "architectures", "auto_map", "custom_pipelines", "dtype")


def fingerprint(model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, with_head: bool) -> str:
    """
    SHA-256 of everything that determines the outputs of a model.

    Args:
        model: the model, of which the encoder's weights and configuration and the pooling count.
        tokenizer: the model's tokenizer, with its `model_max_length`.
        with_head: whether the head and its options count, too.
    """
    config = model.config.to_dict() if with_head else model.config.encoder_config.to_dict()
    described = [_without_origin(config), model.config.pooling, describe_tokenizer(tokenizer)]
    digest = hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode())
    for name, tensor in sorted((model if with_head else model.encoder).state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _without_origin(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_origin(value) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if key not in ORIGIN_KEYS
    }
