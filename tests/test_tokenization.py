"""Tokenised pairs and batches: shapes, truncation, padding."""

import pytest
import torch
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from sts_regression.tokenization import pair_collator, tokenize_pairs

PAIRS = {"sentence1": ["a cat", "the dog runs in the park"], "sentence2": ["a", "it is late"], "label": [1.0, 2.5]}


@pytest.fixture
def pairs() -> Dataset:
    return Dataset.from_dict({**PAIRS, "line": [2, 3]})


def test_a_bi_encoder_gets_both_sentences_apart(pairs: Dataset, tokenizer: PreTrainedTokenizerBase) -> None:
    tokenized = tokenize_pairs(pairs, tokenizer, "bi-encoder")
    expected = [[tokenizer(s)["input_ids"] for s in row] for row in zip(*list(PAIRS.values())[:2], strict=True)]
    assert tokenized["input_ids"] == expected
    assert tokenized["labels"] == [1.0, 2.5]
    assert set(tokenized.column_names) == {*tokenizer.model_input_names, "labels"}


def test_a_cross_encoder_gets_one_sequence(pairs: Dataset, tokenizer: PreTrainedTokenizerBase) -> None:
    tokenized = tokenize_pairs(pairs, tokenizer, "cross-encoder")
    assert tokenized["input_ids"][0] == tokenizer("a cat", "a")["input_ids"]


def test_batches_are_padded_on_the_right_to_their_longest_sentence(
    pairs: Dataset, tokenizer: PreTrainedTokenizerBase
) -> None:
    tokenized = tokenize_pairs(pairs, tokenizer, "bi-encoder")
    batch = pair_collator(tokenizer)(list(tokenized))
    lengths = torch.tensor([[len(row) for row in pair] for pair in tokenized["input_ids"]])
    assert batch["input_ids"].shape == (2, 2, lengths.max())
    assert torch.equal(batch["attention_mask"].sum(dim=-1), lengths)
    assert (batch["input_ids"][batch["attention_mask"] == 0] == tokenizer.pad_token_id).all()
    assert batch["attention_mask"][..., 0].all()
    assert (batch["labels"].dtype, batch["labels"].tolist()) == (torch.float32, [1.0, 2.5])


def test_one_sequence_a_pair_is_collated_without_a_pair_axis(
    pairs: Dataset, tokenizer: PreTrainedTokenizerBase
) -> None:
    batch = pair_collator(tokenizer)(list(tokenize_pairs(pairs, tokenizer, "cross-encoder")))
    assert batch["input_ids"].dim() == 2
    assert batch["input_ids"].shape == batch["token_type_ids"].shape


@pytest.mark.parametrize("encoder_type", ["bi-encoder", "cross-encoder"])
def test_long_text_is_cut_and_labels_are_optional(
    tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch, encoder_type: str
) -> None:
    monkeypatch.setattr(tokenizer, "model_max_length", 16)
    text = "the cat " * 12_500  # 100,000 characters
    tokenized = tokenize_pairs(Dataset.from_dict({"sentence1": [text], "sentence2": [text]}), tokenizer, encoder_type)
    batch = pair_collator(tokenizer)(list(tokenized))
    assert batch["input_ids"].shape[-1] == 16
    assert "labels" not in batch
