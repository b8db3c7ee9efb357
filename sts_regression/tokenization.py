"""Turning pairs of sentences into batches of tensors: tokenised once before training, padded batch by batch."""

from collections.abc import Callable
from typing import Any

import torch
from datasets import Dataset
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerBase

LONG_TEXT = 20  # characters per token of the limit, from which a text is cut before it is paired


def tokenize_pairs(pairs: Dataset, tokenizer: PreTrainedTokenizerBase, encoder_type: str) -> Dataset:
    """
    Tokenises pairs once, before training.

    Args:
        pairs: columns `sentence1`, `sentence2` and, where known, `label`.
        tokenizer: the encoder's. What is longer than its `model_max_length` in tokens, special tokens included, is
            cut.
        encoder_type: `"bi-encoder"`, or `"cross-encoder"` for both sentences in one sequence, the longer one cut
            first.

    Returns:
        `Dataset` with the tokenizer's model inputs, each a pair of lists (bi-encoder) or a list (cross-encoder), and
        `labels` where there were labels.
    """

    def tokenize(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        first, second = batch["sentence1"], batch["sentence2"]
        if encoder_type == "cross-encoder":
            encoded = tokenize_texts(first, tokenizer, second)
        else:
            flat = tokenize_texts([*first, *second], tokenizer)
            encoded = {
                key: list(zip(rows[: len(first)], rows[len(first) :], strict=True)) for key, rows in flat.items()
            }
        return encoded if "label" not in batch else {**encoded, "labels": batch["label"]}

    return pairs.map(tokenize, batched=True, remove_columns=pairs.column_names, desc="Tokenising")


def tokenize_texts(
    texts: list[str], tokenizer: PreTrainedTokenizerBase, second_texts: list[str] | None = None
) -> dict[str, list[Any]]:
    """
    The tokenizer's model inputs of texts, or of pairs in one sequence with `second_texts`; a list per text.

    What is longer than the tokenizer's `model_max_length` is cut; of a pair, the longer text first.
    """
    if second_texts is None:
        return dict(tokenizer(texts, truncation=True))
    first, second = ([_shorten(text, tokenizer) for text in column] for column in (texts, second_texts))
    return dict(tokenizer(first, second, truncation=True))


def _shorten(text: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """
    Cuts a very long text behind its first `model_max_length` tokens.

    Truncating a pair takes the tokenizers library memory that grows with the square of what is cut off: a text of
    100,000 characters exhausted a machine of 24 GB.
    """
    if len(text) <= LONG_TEXT * tokenizer.model_max_length or not tokenizer.is_fast:
        return text
    offsets = tokenizer(text, truncation=True, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return text[: offsets[-1][1]] if offsets else text


def pair_collator(tokenizer: PreTrainedTokenizerBase) -> Callable[[Any], dict[str, torch.Tensor]]:
    """
    A function that pads tokenised pairs to the longest sentence of their batch.

    It returns tensors of shape (batch, 2, length), or (batch, length) for pairs in one sequence, and `labels` of shape
    (batch,), float32. What is a batch already ([`EmbeddedPairs`]) is returned as it is.
    """
    padding = {"input_ids": tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id, "attention_mask": 0}

    def collate(examples: list[dict[str, Any]] | dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        if isinstance(examples, dict):
            return examples
        batch = {}
        for key, value in examples[0].items():
            if key == "labels":
                batch[key] = torch.tensor([example[key] for example in examples], dtype=torch.float32)  # (batch,)
                continue
            is_pair = isinstance(value[0], list)
            rows = [row for example in examples for row in (example[key] if is_pair else [example[key]])]
            padded = pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=padding[key])
            batch[key] = padded.unflatten(0, (-1, 2)) if is_pair else padded  # (batch, 2, length) or (batch, length)
        return batch

    return collate
