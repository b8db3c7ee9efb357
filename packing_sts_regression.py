"""Packed encoding: the real tokens of a batch go through the encoder as one row, and are padded inside attention only.

Training sentences are short and uneven; of a padded batch of random sentences more than half is padding, which every
layer computes and throws away. Packed, only attention sees it, where sentences must not see each other. The result is
the same: tests hold it to 1e-5, gradients included, for every kind of encoder named below.
"""

import inspect
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

PACKED_ATTENTION = "sts_packed"
# Encoders whose layers mix tokens in attention only, take `position_ids`, and pass keyword arguments to attention.
# Others would not fail here, but return something else: they are padded.
PACKABLE_MODEL_TYPES = (
    "albert",
    "bert",
    "camembert",
    "distilbert",
    "electra",
    "ernie",
    "eurobert",
    "modernbert",
    "nomic_bert",
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
    "xlm-roberta-xl",
)


@dataclass(frozen=True)
class Packing:
    """
    Where the tokens of a packed row belong.

    Attributes:
        sentences: their number.
        length: of the longest one in tokens.
        token_index (`Tensor` of shape `(tokens,)`): the place of each token in the padded, flattened batch.
        key_mask (`Tensor` of shape `(sentences, 1, 1, length)`): true at real tokens.
    """

    sentences: int
    length: int
    token_index: Tensor
    key_mask: Tensor

    @classmethod
    def from_mask(cls, attention_mask: Tensor) -> "Packing":
        """From a mask of shape (sentences, length), 1 at real tokens."""
        token_index = attention_mask.flatten().nonzero()[:, 0]
        return cls(*attention_mask.shape, token_index, attention_mask.bool()[:, None, None, :])

    def pack(self, values: Tensor) -> Tensor:
        """(sentences, length) to (1, tokens)."""
        return values.flatten().index_select(0, self.token_index)[None]

    def unpack(self, values: Tensor) -> Tensor:
        """(tokens, …) to (sentences, length, …), zeros at padding."""
        flat = values.new_zeros(self.sentences * self.length, *values.shape[1:])
        return flat.index_copy(0, self.token_index, values).unflatten(0, (self.sentences, self.length))


def packed_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    packing: Packing | None = None,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """
    Attention within each sentence of a packed row; without `packing` transformers' own.

    Args:
        module: the attention layer.
        query, key, value (`Tensor` of shape `(1, heads, tokens, head size)`).
        attention_mask: that of transformers, for what is not packed.
        packing: which tokens are a sentence.
        dropout: probability on attention weights.
        scaling: factor on the scores; by default one over the root of the head size.
        sliding_window: tokens this far apart do not see each other (ModernBERT's local layers).
        **kwargs: passed on to transformers' own.

    Returns:
        `Tensor` of shape `(1, tokens, heads, head size)`, and no weights.
    """
    if packing is None:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
    padded = [packing.unpack(states[0].transpose(0, 1)).transpose(1, 2) for states in (query, key, value)]
    mask = packing.key_mask
    if sliding_window is not None and packing.length > sliding_window:
        position = torch.arange(packing.length, device=query.device)
        mask = mask & ((position[:, None] - position).abs() < sliding_window)
    # (sentences, heads, length, head size)
    attended = F.scaled_dot_product_attention(*padded, attn_mask=mask, dropout_p=dropout, scale=scaling)
    return attended.transpose(1, 2).flatten(0, 1).index_select(0, packing.token_index)[None], None


AttentionInterface.register(PACKED_ATTENTION, packed_attention)
AttentionMaskInterface.register(PACKED_ATTENTION, sdpa_mask)  # for what is not packed


def prepare_packing(encoder: PreTrainedModel) -> None:
    """Makes an encoder take packed rows as well, where it can and nobody asked for another attention."""
    config = encoder.config
    can_pack = config.model_type in PACKABLE_MODEL_TYPES and not getattr(config, "is_decoder", False)
    has_positions = "position_ids" in inspect.signature(encoder.forward).parameters
    if can_pack and has_positions and config._attn_implementation == "sdpa":
        encoder.set_attn_implementation(PACKED_ATTENTION)


def is_prepared(encoder: PreTrainedModel) -> bool:
    """Whether the encoder takes packed rows."""
    return encoder.config._attn_implementation == PACKED_ATTENTION


def encode_packed(
    encoder: PreTrainedModel, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
) -> Tensor:
    """
    Hidden states of sentences, as the encoder returns them for the padded batch.

    Args:
        encoder: one that takes packed rows.
        input_ids (`Tensor` of shape `(sentences, length)`).
        attention_mask (`Tensor` of the same shape): 1 at real tokens.
        token_type_ids (`Tensor` of the same shape, *optional*).

    Returns:
        `Tensor` of shape `(sentences, length, hidden)`, zeros at padding.
    """
    packing = Packing.from_mask(attention_mask)
    inputs = {"input_ids": packing.pack(input_ids), "position_ids": packing.pack(_positions(encoder, attention_mask))}
    if token_type_ids is not None:
        inputs["token_type_ids"] = packing.pack(token_type_ids)
    return packing.unpack(encoder(**inputs, packing=packing)[0][0])


def _positions(encoder: PreTrainedModel, attention_mask: Tensor) -> Tensor:
    """Position of each token, (sentences, length), as the encoder itself would number them."""
    table = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    padding_index = getattr(table, "padding_idx", None)
    if padding_index is None:
        return torch.arange(attention_mask.shape[1], device=attention_mask.device).expand_as(attention_mask)
    # RoBERTa and its kin count real tokens, from the number behind that of padding.
    return attention_mask.long().cumsum(dim=1) + padding_index
