"""Packed encoding: the real tokens of a batch go through the encoder as one row, and are padded inside attention only.

Training sentences are short and of uneven length: more than half of a padded batch of random sentences is padding,
which every layer computes and throws away. In a packed batch, only attention computes padding, since sentences must
not attend to each other, and on a GPU in half precision without dropout not even attention does. The result is the
same: tests check it to 1e-5, gradients included, for every kind of encoder listed below.
"""

import inspect
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from .configuration_sts_regression import is_remote

PACKED_ATTENTION = "sts_packed"
# Encoders whose layers mix tokens in attention only, take `position_ids`, and pass keyword arguments to attention. Any
# other encoder gets padded batches, since it would not fail here but return wrong embeddings.
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


# The largest ratio of lengths of sentences that are padded together in attention. On a GPU, more padding costs less
# than several small kernels.
LENGTH_RATIO_ON_CPU = 1.5
HALF_PRECISION = (torch.float16, torch.bfloat16)
# Packing starts more kernels. On a GPU, that costs more than padding unless the padding keeps it busy: the least
# multiply-adds of padding for each of its multiprocessors. Chosen from rates of one H200.
PADDING_WORTH_PACKING = {"float32": 5e8, "half": 4e9}


@dataclass(frozen=True)
class PackedGroup:
    """
    Sentences of similar length, adjacent in the packed row, which attention pads together.

    Attributes:
        sentences: the number of sentences.
        length: the length of the longest sentence in tokens.
        tokens: the number of tokens of all sentences.
        place (`Tensor` of shape `(tokens,)`): the place of each token in the padded, flattened group.
        key_mask (`Tensor` of shape `(sentences, 1, 1, length)`): true at real tokens.
    """

    sentences: int
    length: int
    tokens: int
    place: Tensor
    key_mask: Tensor

    @cached_property
    def bounds(self) -> Tensor:
        """Where each sentence begins in the row, and the end, (sentences + 1,), int32."""
        return F.pad(self.key_mask.sum(dim=(1, 2, 3)).cumsum(0, dtype=torch.int32), (1, 0))

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        sliding_window: int | None,
        dropout: float,
        scale: float | None,
    ) -> Tensor:
        """(heads, tokens, head size) three times to (tokens, heads, head size)."""
        if not dropout and _has_flash_attention(query):
            from torch.nn.attention.varlen import varlen_attn  # old versions of torch lack it

            query, key, value = (states.transpose(0, 1) for states in (query, key, value))
            states = varlen_attn(
                *(query, key, value, self.bounds, self.bounds, self.length, self.length),
                scale=scale,
                window_size=(-1, -1) if sliding_window is None else (sliding_window - 1, sliding_window - 1),
            )
            return cast(Tensor, states)
        mask: Tensor | None = self.key_mask if self.tokens < self.sentences * self.length else None
        if sliding_window is not None and self.length > sliding_window:
            position = torch.arange(self.length, device=query.device)
            mask = self.key_mask & ((position[:, None] - position).abs() < sliding_window)
        attended = F.scaled_dot_product_attention(
            self._pad(query), self._pad(key), self._pad(value), attn_mask=mask, dropout_p=dropout, scale=scale
        )  # (sentences, heads, length, head size)
        flat = attended.transpose(1, 2).flatten(0, 1)
        return flat if self.tokens == len(flat) else flat.index_select(0, self.place)

    def _pad(self, states: Tensor) -> Tensor:
        """(heads, tokens, head size) to (sentences, heads, length, head size)."""
        states = states.transpose(0, 1)
        if self.tokens < self.sentences * self.length:
            flat = states.new_zeros(self.sentences * self.length, *states.shape[1:])
            states = flat.index_copy_(0, self.place, states)
        return states.unflatten(0, (self.sentences, self.length)).transpose(1, 2)


def _has_flash_attention(states: Tensor) -> bool:
    """Whether torch's FlashAttention for rows of several sentences takes these states, (…, head size)."""
    return (
        states.is_cuda
        and states.dtype in HALF_PRECISION
        and states.shape[-1] % 8 == 0
        and states.shape[-1] <= 256
        and torch.cuda.get_device_capability(states.device) >= (8, 0)
    )


@dataclass(frozen=True)
class Packing:
    """
    The layout of a packed row, longest sentences first.

    Attributes:
        shape: sentences and length of the padded batch.
        token_index (`Tensor` of shape `(tokens,)`): the place of each token in the padded, flattened batch.
        groups: the groups of sentences that attention pads together.
    """

    shape: torch.Size
    token_index: Tensor
    groups: list[PackedGroup]

    @classmethod
    def from_mask(cls, attention_mask: Tensor) -> "Packing":
        """The layout for a mask of shape (sentences, length), 1 at real tokens, on the mask's device."""
        device = attention_mask.device
        is_token = attention_mask.bool().cpu()  # waits for a GPU once, not at every count
        lengths, order = is_token.sum(dim=1).sort(descending=True)
        by_length = is_token[order]
        row, column = by_length.nonzero(as_tuple=True)
        rank = by_length.cumsum(dim=1)[row, column] - 1  # of each token in its sentence
        counts = lengths.tolist()
        ratio = LENGTH_RATIO_ON_CPU if device.type == "cpu" else math.inf
        groups = []
        start, first_token = 0, 0
        while start < len(counts) and counts[start] > 0:  # sentences without tokens come last
            longest = counts[start]
            end = next((i for i in range(start, len(counts)) if counts[i] * ratio < longest), len(counts))
            tokens = sum(counts[start:end])
            in_group = slice(first_token, first_token + tokens)
            place = (row[in_group] - start) * longest + rank[in_group]
            key_mask = torch.arange(longest) < lengths[start:end, None]
            key_mask = key_mask[:, None, None, :]
            groups.append(PackedGroup(end - start, longest, tokens, place.to(device), key_mask.to(device)))
            start, first_token = end, first_token + tokens
        token_index = order[row] * attention_mask.shape[1] + column
        return cls(attention_mask.shape, token_index.to(device), groups)

    def pack(self, values: Tensor) -> Tensor:
        """(sentences, length) to (1, tokens)."""
        return values.flatten().index_select(0, self.token_index)[None]

    def unpack(self, values: Tensor) -> Tensor:
        """(tokens, hidden) to (sentences, length, hidden), zeros at padding."""
        flat = values.new_zeros(self.shape.numel(), *values.shape[1:])
        return flat.index_copy(0, self.token_index, values).unflatten(0, self.shape)


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
    Attention within each sentence of a packed row; without `packing`, the attention of transformers.

    Args:
        module: the attention layer.
        query (`Tensor` of shape `(1, heads, tokens, head size)`).
        key, value (`Tensor` of the same shape, or with fewer heads): with fewer heads, each of them serves several
            neighbouring heads of `query` (grouped-query attention).
        attention_mask: the mask of transformers, for batches that are not packed.
        packing: the layout of the row.
        dropout: the dropout probability of attention weights.
        scaling: factor on the scores; by default one over the root of the head size.
        sliding_window: tokens at this distance or more do not attend to each other (ModernBERT's local layers).
        **kwargs: passed on to the attention of transformers.

    Returns:
        `Tensor` of shape `(1, tokens, heads, head size)`, and `None` in place of attention weights.
    """
    if packing is None:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
    # torch's own `enable_gqa` takes no mask in its fast kernels.
    shared_by = query.shape[1] // key.shape[1]
    if shared_by > 1:
        key, value = key.repeat_interleave(shared_by, dim=1), value.repeat_interleave(shared_by, dim=1)
    sizes = [group.tokens for group in packing.groups]
    parts = zip(packing.groups, *(states[0].split(sizes, dim=1) for states in (query, key, value)), strict=True)
    attended = [group.attend(*states, sliding_window, dropout, scaling) for group, *states in parts]
    return torch.cat(attended)[None], None


AttentionInterface.register(PACKED_ATTENTION, packed_attention)
AttentionMaskInterface.register(PACKED_ATTENTION, sdpa_mask)  # for batches that are not packed


def prepare_packing(encoder: PreTrainedModel) -> None:
    """Makes an encoder take packed rows, too, if it can and no other attention implementation was chosen."""
    config = encoder.config
    is_known = config.model_type in PACKABLE_MODEL_TYPES and not is_remote(config)
    can_pack = is_known and not getattr(config, "is_decoder", False)
    has_positions = "position_ids" in inspect.signature(encoder.forward).parameters
    if can_pack and has_positions and config._attn_implementation == "sdpa":
        encoder.set_attn_implementation(PACKED_ATTENTION)


def is_prepared(encoder: PreTrainedModel) -> bool:
    """Whether the encoder takes packed rows."""
    return encoder.config._attn_implementation == PACKED_ATTENTION


def is_worth_packing(encoder: PreTrainedModel, attention_mask: Tensor) -> bool:
    """
    Whether a batch is encoded faster packed than padded: on a CUDA device if there is much padding, elsewhere always.

    Args:
        encoder: an encoder that takes packed rows.
        attention_mask (`Tensor` of shape `(sentences, length)`): 1 at real tokens.
    """
    if not attention_mask.is_cuda:
        return True
    is_half = encoder.dtype in HALF_PRECISION or torch.is_autocast_enabled("cuda")
    if is_half and not encoder.training:  # without dropout, attention computes no padding, and needs no mask
        return True
    processors = torch.cuda.get_device_properties(attention_mask.device).multi_processor_count
    products = 12 * encoder.config.num_hidden_layers * encoder.config.hidden_size**2  # about, for a token
    least = PADDING_WORTH_PACKING["half" if is_half else "float32"] * processors / products  # tokens
    num_places = attention_mask.numel()
    return num_places > least and num_places - int(attention_mask.sum()) > least  # only the sum waits for the GPU


def encode_packed(
    encoder: PreTrainedModel, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
) -> Tensor:
    """
    Hidden states of sentences, equal to those of the padded batch.

    Args:
        encoder: an encoder that takes packed rows, see [`is_prepared`].
        input_ids (`Tensor` of shape `(sentences, length)`).
        attention_mask (`Tensor` of the same shape): 1 at real tokens.
        token_type_ids (`Tensor` of the same shape, *optional*).

    Returns:
        `Tensor` of shape `(sentences, length, hidden)`, zeros at padding.
    """
    packing = Packing.from_mask(attention_mask)
    if not packing.groups:  # not a single token: encoders refuse an empty row
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        return encoder(input_ids, attention_mask=attention_mask, **types)[0] * attention_mask[..., None]
    inputs = {"input_ids": packing.pack(input_ids), "position_ids": packing.pack(_positions(encoder, input_ids))}
    # Packed attention reads no mask. transformers passes one of four dimensions on; without one, ModernBERT would
    # build another of shape (tokens, tokens).
    inputs["attention_mask"] = attention_mask.new_zeros(1, 1, 1, 1)
    if token_type_ids is not None:
        inputs["token_type_ids"] = packing.pack(token_type_ids)
    return packing.unpack(encoder(**inputs, packing=packing)[0][0])


def _positions(encoder: PreTrainedModel, input_ids: Tensor) -> Tensor:
    """Position of each token, (sentences, length), numbered as by the encoder itself."""
    table = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    padding_index = getattr(table, "padding_idx", None)
    if padding_index is None:
        return torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids)
    # RoBERTa and its relatives count the tokens that are not padding, beginning one above the padding index. They look
    # at the token, not at the mask: a text may contain the padding token.
    is_counted = (input_ids != padding_index).long()
    return is_counted.cumsum(dim=1) * is_counted + padding_index
