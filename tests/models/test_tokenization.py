"""Tokenised pairs and batches: shapes, truncation, padding."""

import copy
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from tokenizers import Tokenizer
from transformers import BatchEncoding, BertweetTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast
from transformers.trainer_pt_utils import LengthGroupedSampler

from sts_regression.models import tokenization
from sts_regression.models.tokenization import (
    SeededLengthSampler,
    describe_tokenizer,
    pair_collator,
    save_tokenizer,
    tokenize_pairs,
    tokens_of,
)
from sts_regression.pipeline_sts_regression import tokenize_texts

PAIRS = {"sentence1": ["a cat", "the dog runs in the park"], "sentence2": ["a", "it is late"], "label": [1.0, 2.5]}


@pytest.fixture
def pairs() -> Dataset:
    return Dataset.from_dict({**PAIRS, "line": [2, 3]})


def test_a_bi_encoder_gets_both_sentences_apart(pairs: Dataset, tokenizer: PreTrainedTokenizerBase) -> None:
    tokenized = tokenize_pairs(pairs, tokenizer, "bi-encoder")
    expected = [[tokenizer(s)["input_ids"] for s in row] for row in zip(*list(PAIRS.values())[:2], strict=True)]
    assert tokenized["input_ids"] == expected
    assert tokenized["labels"] == [1.0, 2.5]
    assert set(tokenized.column_names) == {"input_ids", "token_type_ids", "labels", "length"}
    assert tokenized["length"] == [max(map(len, row)) for row in expected]


def test_a_cross_encoder_gets_one_sequence(pairs: Dataset, tokenizer: PreTrainedTokenizerBase) -> None:
    tokenized = tokenize_pairs(pairs, tokenizer, "cross-encoder")
    expected = [tokenizer(*row) for row in zip(*list(PAIRS.values())[:2], strict=True)]
    for name in ("input_ids", "token_type_ids"):
        assert tokenized[name] == [inputs[name] for inputs in expected]
    assert tokenized["labels"] == [1.0, 2.5]


def test_many_pairs_are_tokenised_once(
    pairs: Dataset, tokenizer: PreTrainedTokenizerBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenization, "HF_DATASETS_CACHE", tmp_path)
    tokenize_pairs(pairs, tokenizer, "bi-encoder")
    assert not list(tmp_path.rglob("*.arrow"))
    monkeypatch.setattr(tokenization, "CACHED_FROM", 2)
    expected = tokenize_pairs(pairs, tokenizer, "bi-encoder")[:]
    assert len(list(tmp_path.rglob("*.arrow"))) == 1

    def refuse(*args: object) -> None:
        raise AssertionError("tokenised again")

    with monkeypatch.context() as patch:
        patch.setattr(tokenization, "tokens_of", refuse)
        again = Dataset.from_dict(pairs[:])  # the same content in another object
        assert tokenize_pairs(again, tokenizer, "bi-encoder")[:] == expected
    monkeypatch.setattr(tokenizer, "model_max_length", 4)
    shorter = tokenize_pairs(pairs, tokenizer, "bi-encoder")
    assert max(len(ids) for row in shorter["input_ids"] for ids in row) == 4
    tokenize_pairs(pairs, tokenizer, "cross-encoder")
    tokenize_pairs(Dataset.from_dict({**pairs[:], "label": [0.0, 0.5]}), tokenizer, "bi-encoder")
    assert len(list(tmp_path.rglob("*.arrow"))) == 4


@pytest.mark.parametrize("encoder_type", ["bi-encoder", "cross-encoder"])
def test_several_processes_tokenise_as_one(
    pairs: Dataset, tokenizer: PreTrainedTokenizerBase, encoder_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = pairs.select([0, 1, 1, 0, 1])
    expected = tokenize_pairs(several, tokenizer, encoder_type)[:]
    monkeypatch.setattr(tokenization, "PARALLEL_FROM", 5)
    monkeypatch.setattr(tokenization, "available_cores", lambda: 2)
    assert tokenize_pairs(several, tokenizer, encoder_type)[:] == expected


@pytest.mark.parametrize(("num_pairs", "batch_size"), [(1, 4), (30, 4), (1000, 2), (1003, 2)])
def test_the_order_by_length_is_that_of_transformers(num_pairs: int, batch_size: int) -> None:
    lengths = np.random.default_rng(0).integers(5, 20, num_pairs).tolist()
    sampler = SeededLengthSampler(batch_size, lengths, seed=3)
    sampler.set_epoch(1)
    expected = LengthGroupedSampler(batch_size, lengths=lengths, generator=torch.Generator().manual_seed(4))
    order = list(sampler)
    assert order == list(expected)
    assert all(type(row) is int for row in order)


def test_the_description_of_a_tokenizer_does_not_change_with_use(tokenizer: PreTrainedTokenizerBase) -> None:
    before = describe_tokenizer(tokenizer)
    tokenizer(["the cat", "a"], padding=True, truncation=True, max_length=3)
    assert describe_tokenizer(tokenizer) == before


@pytest.mark.parametrize(
    "change",
    [
        {"model_max_length": 4},
        {"truncation_side": "left"},
        {"split_special_tokens": True},
        {"model_input_names": ["input_ids", "attention_mask"]},
    ],
    ids=str,
)
def test_what_changes_the_ids_changes_the_description(
    tokenizer: PreTrainedTokenizerBase, change: dict[str, Any]
) -> None:
    one, other = copy.deepcopy(tokenizer), copy.deepcopy(tokenizer)
    one.model_max_length = other.model_max_length = 6
    for name, value in change.items():
        setattr(other, name, value)
    text = ["the cat [SEP] a big red dog"]
    assert tokenize_texts(text, one) != tokenize_texts(text, other)
    assert describe_tokenizer(one) != describe_tokenizer(other)


def test_a_tokenizer_in_python_is_described_with_its_merges_and_options(tmp_path: Path) -> None:
    words = ["t@@ 4", "h@@ 4", "e 4", "the 4", "th@@ 4", "T@@ 1", "he 1"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))

    def describe(merges: str, **options: Any) -> list[Any]:
        (tmp_path / "bpe.codes").write_text(merges)
        slow = BertweetTokenizer(str(tmp_path / "vocab.txt"), str(tmp_path / "bpe.codes"), **options)
        assert not slow.is_fast
        return describe_tokenizer(slow)

    one = describe("t h 5\nth e</w> 4\n", normalization=False)
    assert one == describe("t h 5\nth e</w> 4\n", normalization=False)
    assert one != describe("h e</w> 5\n", normalization=False)
    assert one != describe("t h 5\nth e</w> 4\n", normalization=True)


@pytest.mark.parametrize("call", [{"truncation": True, "max_length": 8, "padding": True}, {"padding": "max_length"}])
def test_a_saved_tokenizer_does_not_repeat_its_last_call(
    tokenizer: PreTrainedTokenizerBase, tmp_path: Path, call: dict[str, Any]
) -> None:
    tokenizer("a cat", **call)
    save_tokenizer(tokenizer, tmp_path)
    rows = Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode_batch(["a", "a " * 500])
    assert [len(row.ids) for row in rows] == [3, tokenizer.model_max_length]


def test_a_batch_is_padded_on_the_right_to_its_longest_sentence(tokenizer: PreTrainedTokenizerBase) -> None:
    examples = [
        {"input_ids": [[2, 7, 3], [2, 3]], "attention_mask": [[1, 1, 1], [1, 1]], "labels": 1},
        {"input_ids": [[2, 8, 9, 3], [2, 7, 3]], "attention_mask": [[1, 1, 1, 1], [1, 1, 1]], "labels": 2.5},
    ]
    batch = pair_collator(tokenizer)(examples)
    pad = tokenizer.pad_token_id
    assert batch["input_ids"].tolist() == [
        [[2, 7, 3, pad], [2, 3, pad, pad]],
        [[2, 8, 9, 3], [2, 7, 3, pad]],
    ]
    assert batch["attention_mask"].tolist() == [[[1, 1, 1, 0], [1, 1, 0, 0]], [[1, 1, 1, 1], [1, 1, 1, 0]]]
    assert batch["labels"].tolist() == [1.0, 2.5]
    dtypes = {name: tensor.dtype for name, tensor in batch.items()}
    assert dtypes == {"input_ids": torch.int64, "attention_mask": torch.int64, "labels": torch.float32}


def test_the_tokenizer_says_what_to_pad_with(tokenizer: PreTrainedTokenizerBase) -> None:
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.pad_token = "[MASK]"
    batch = pair_collator(tokenizer)([{"input_ids": [[2, 7, 3], [2, 3]]}])
    assert batch["input_ids"].tolist() == [[[2, 7, 3], [2, 3, tokenizer.mask_token_id]]]


def test_one_sequence_a_pair_is_collated_without_a_pair_axis(
    pairs: Dataset, tokenizer: PreTrainedTokenizerBase
) -> None:
    tokenized = tokenize_pairs(pairs, tokenizer, "cross-encoder")
    batch = pair_collator(tokenizer)(list(tokenized))
    longest = max(len(row) for row in tokenized["input_ids"])
    assert {tuple(batch[name].shape) for name in tokenizer.model_input_names} == {(2, longest)}
    assert batch["token_type_ids"].sum(dim=1).tolist() == [2, 4]  # the second sentence and its [SEP]


@pytest.mark.parametrize("encoder_type", ["bi-encoder", "cross-encoder"])
def test_labels_are_optional(pairs: Dataset, tokenizer: PreTrainedTokenizerBase, encoder_type: str) -> None:
    tokenized = tokenize_pairs(pairs.remove_columns("label"), tokenizer, encoder_type)
    assert set(pair_collator(tokenizer)(list(tokenized))) == set(tokenizer.model_input_names)


@pytest.fixture
def short_tokenizer(tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch) -> PreTrainedTokenizerBase:
    """The tokenizer with a limit of 16 tokens."""
    monkeypatch.setattr(tokenizer, "model_max_length", 16)
    return tokenizer


@pytest.mark.parametrize("words", [20, 25_000])  # 25,000 words are 100,000 characters
def test_a_bi_encoder_cuts_each_sentence(short_tokenizer: PreTrainedTokenizerBase, words: int) -> None:
    pairs = Dataset.from_dict({"sentence1": ["cat " * words], "sentence2": ["the dog"]})
    first, second = tokenize_pairs(pairs, short_tokenizer, "bi-encoder")["input_ids"][0]
    assert short_tokenizer.convert_ids_to_tokens(first) == ["[CLS]", *["cat"] * 14, "[SEP]"]
    assert short_tokenizer.convert_ids_to_tokens(second) == ["[CLS]", "the", "dog", "[SEP]"]


def test_tokens_are_those_of_a_call_of_the_tokenizer(
    short_tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["", "the cat", "the dog " * 20, "a" * 300, "the [SEP] cat"]
    first, second = map(list, zip(*product(texts, texts), strict=True))
    for side, split in product(("left", "right"), (True, False)):
        monkeypatch.setattr(short_tokenizer, "truncation_side", side)
        monkeypatch.setattr(short_tokenizer, "split_special_tokens", split)
        short_tokenizer(texts[1], padding="max_length", max_length=4, truncation=True)  # leaves other options behind
        for columns in ((texts,), (first, second)):
            expected = short_tokenizer(*columns, truncation=True, return_attention_mask=False)
            short_tokenizer(texts[1], padding="max_length", max_length=4, truncation=True)
            assert tokens_of(columns[0], short_tokenizer, *columns[1:]) == dict(expected)


class _Backwards(PreTrainedTokenizerFast):
    """A tokenizer with code of its own."""

    def _encode_plus(self, *args: Any, **options: Any) -> BatchEncoding:
        encoded = super()._encode_plus(*args, **options)
        encoded["input_ids"] = [ids[::-1] for ids in encoded["input_ids"]]
        return encoded


def test_tokenizers_with_code_of_their_own_are_called(tokenizer: PreTrainedTokenizerBase) -> None:
    backwards = _Backwards(tokenizer_object=tokenizer.backend_tokenizer)
    forwards = tokens_of(["a cat", "the dog"], tokenizer)["input_ids"]
    assert tokens_of(["a cat", "the dog"], backwards)["input_ids"] == [ids[::-1] for ids in forwards]


def test_texts_beyond_the_limit_are_shortened_before_they_are_paired(
    short_tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [" ".join(("the cat " * 20).split()[:words]) for words in (1, 6, 13, 15, 16, 17, 18, 40)]
    first, second = map(list, zip(*product(texts, texts), strict=True))
    expected = short_tokenizer(first, second, truncation=True)
    call, paired = PreTrainedTokenizerBase.__call__, []

    def count(tokenizer: PreTrainedTokenizerBase, *columns: Any, **options: Any) -> Any:
        paired.extend([text for column in columns for text in column] if columns[1:] else [])
        return call(tokenizer, *columns, **options)

    monkeypatch.setattr(PreTrainedTokenizerBase, "__call__", count)
    assert tokenize_texts(first, short_tokenizer, second) == dict(expected)
    assert max(len(text.split()) for text in paired) == 17  # tokens; memory grows with the square of the rest
    monkeypatch.setattr(short_tokenizer, "truncation_side", "left")
    assert tokenize_texts(first, short_tokenizer, second) == dict(
        call(short_tokenizer, first, second, truncation=True)
    )


@pytest.mark.parametrize("words", [20, 25_000])
@pytest.mark.parametrize("long_first", [True, False])
def test_a_cross_encoder_cuts_the_longer_sentence(
    short_tokenizer: PreTrainedTokenizerBase, words: int, long_first: bool
) -> None:
    sentences = ["cat " * words, "the dog"] if long_first else ["the dog", "cat " * words]
    pairs = Dataset.from_dict({"sentence1": sentences[:1], "sentence2": sentences[1:]})
    input_ids = tokenize_pairs(pairs, short_tokenizer, "cross-encoder")["input_ids"][0]
    cut = [["cat"] * 11, ["the", "dog"]] if long_first else [["the", "dog"], ["cat"] * 11]
    assert short_tokenizer.convert_ids_to_tokens(input_ids) == ["[CLS]", *cut[0], "[SEP]", *cut[1], "[SEP]"]
