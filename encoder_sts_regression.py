"""The encoder: building it without its pooler, the hidden states of its tokens, and their pooling to embeddings."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import MODEL_MAPPING, AutoModel, PretrainedConfig, PreTrainedModel

from .configuration_sts_regression import is_remote, model_class
from .packing_sts_regression import encode_packed, is_prepared, is_worth_packing


def encoder_options(encoder_config: PretrainedConfig) -> dict[str, bool]:
    """
    Keyword arguments that build an encoder without its pooler, if it has one and can be built without it.

    The pooler of BERT-like encoders is never used, and DDP fails on its missing gradients.
    """
    encoder_class: Any
    if is_remote(encoder_config):
        encoder_class = model_class(encoder_config)
    else:
        encoder_class = MODEL_MAPPING.get(type(encoder_config), None)
    has_pooler = inspect.isclass(encoder_class) and "add_pooling_layer" in inspect.signature(encoder_class).parameters
    return {"add_pooling_layer": False} if has_pooler else {}


def build_encoder(encoder_config: PretrainedConfig) -> PreTrainedModel:
    """An encoder with random weights. Its dtype is torch's default, which from_pretrained sets for the whole model."""
    if is_remote(encoder_config):
        return model_class(encoder_config)(encoder_config, **encoder_options(encoder_config))
    return AutoModel.from_config(encoder_config, dtype=torch.get_default_dtype(), **encoder_options(encoder_config))


def encode_tokens(
    encoder: PreTrainedModel, input_ids: Tensor, encoding: str, attention_mask: Tensor, **encoder_kwargs: Any
) -> Tensor:
    """
    Hidden states of the last layer, packed if `encoding` is "auto" and that is faster.

    Args:
        encoder: the encoder.
        input_ids (`Tensor` of shape `(sentences, length)`).
        encoding: see [`STSRegressionConfig`].
        attention_mask (`Tensor` of the same shape): 1 at real tokens.
        **encoder_kwargs: further inputs of the encoder.

    Returns:
        `Tensor` of shape `(sentences, length, hidden)`, of any value at padding.
    """
    inputs = {"attention_mask": attention_mask, **encoder_kwargs}
    if encoding == "auto" and _can_pack(encoder, inputs) and is_worth_packing(encoder, attention_mask):
        return encode_packed(encoder, input_ids, **inputs)
    hidden_states: Tensor = encoder(input_ids, **inputs)[0]
    return hidden_states


def _can_pack(encoder: PreTrainedModel, inputs: dict[str, Any]) -> bool:
    # Other inputs and outputs of the encoder are laid out for the padded batch; a compiler needs fixed shapes.
    return (
        is_prepared(encoder)
        and inputs.keys() <= {"attention_mask", "token_type_ids"}
        and not _adds_noise(encoder)
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
    )


def _adds_noise(encoder: PreTrainedModel) -> bool:
    # NEFTune scales its noise by the length of the rows that the encoder takes.
    embeddings = encoder.get_input_embeddings()
    return embeddings.training and hasattr(embeddings, "neftune_noise_alpha")


def mean_pooling(hidden_states: Tensor, attention_mask: Tensor) -> Tensor:
    """
    Mean of the hidden states over the real tokens.

    Args:
        hidden_states (`Tensor` of shape `(sentences, length, hidden)`).
        attention_mask (`Tensor` of shape `(sentences, length)`): 1 at real tokens, 0 at padding. The mean of a
            sentence without real tokens is zero.

    Returns:
        `Tensor` of shape `(sentences, hidden)`.
    """
    mask = attention_mask.to(hidden_states.dtype)  # (sentences, length)
    precision = torch.promote_types(hidden_states.dtype, torch.float32)  # in float16, the sum may overflow
    # Multiply and sum: a matrix product would drop to bfloat16 under mixed precision.
    summed = (hidden_states * mask[:, :, None]).sum(dim=1, dtype=precision)  # (sentences, hidden)
    lengths = attention_mask.sum(dim=1, keepdim=True).clamp(min=1)
    return (summed / lengths).to(hidden_states.dtype)


def cls_pooling(hidden_states: Tensor, attention_mask: Tensor) -> Tensor:
    """Hidden state of the first token. Shapes as in [`mean_pooling`]; sentences must be padded on the right."""
    return hidden_states[:, 0]


POOLING_FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"mean": mean_pooling, "cls": cls_pooling}
