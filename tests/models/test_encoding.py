"""Embedding and scoring outside training: the model's own numbers, in the order asked for, each text once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models import encoding
from sts_regression.models.encoding import encode_sentences, model_scorer, score_with_embeddings

SENTENCES = ["the cat", "a red house in the big park", "water", "the cat", "", "a man and a dog in the park"]
MakeModel = Callable[..., STSRegressionModel]


def one_at_a_time(model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, sentences: list[str]) -> Tensor:
    with torch.no_grad():
        return torch.cat([model.get_text_features(**tokenizer(text, return_tensors="pt")) for text in sentences])


@pytest.mark.parametrize("batch_tokens", [1, 20, None])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_embeddings_are_those_of_each_sentence_alone(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, batch_tokens: int | None, pooling: str
) -> None:
    model = make_model(pooling=pooling)
    embeddings = encode_sentences(model, tokenizer, SENTENCES, batch_tokens)
    assert (embeddings.shape, embeddings.dtype, embeddings.requires_grad) == ((6, 32), torch.float32, False)
    torch.testing.assert_close(embeddings, one_at_a_time(model, tokenizer, SENTENCES), atol=1e-5, rtol=1e-5)


def test_equal_sentences_are_encoded_once_and_long_ones_first(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model()
    shapes = []
    features = model.get_text_features

    def count(**inputs: Tensor) -> Tensor:
        shapes.append(tuple(inputs["input_ids"].shape))
        return features(**inputs)

    monkeypatch.setattr(model, "get_text_features", count)
    encode_sentences(model, tokenizer, SENTENCES, batch_tokens=20)
    assert sum(rows for rows, _ in shapes) == 5
    lengths = [length for _, length in shapes]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]
    assert len(shapes) > 1
    assert all(rows * length <= 20 for rows, length in shapes)


def test_no_sentences_have_no_embeddings(make_model: MakeModel, tokenizer: PreTrainedTokenizerBase) -> None:
    assert encode_sentences(make_model(), tokenizer, []).shape == (0, 32)


def test_progress_counts_sentences(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, capsys: pytest.CaptureFixture[str]
) -> None:
    encode_sentences(make_model(), tokenizer, SENTENCES)
    assert capsys.readouterr().err == ""
    encode_sentences(make_model(), tokenizer, SENTENCES, show_progress=True)
    assert "| 0/5" in capsys.readouterr().err


def test_dropout_is_off_and_the_models_mode_comes_back(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    model = make_model().train()
    first, again = (encode_sentences(model, tokenizer, SENTENCES) for _ in range(2))
    torch.testing.assert_close(first, again, atol=0, rtol=0)
    assert model.training


def test_long_sentences_are_cut(make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, monkeypatch: Any) -> None:
    monkeypatch.setattr(tokenizer, "model_max_length", 5)
    embeddings = encode_sentences(make_model(), tokenizer, ["the cat the dog the man", "the cat the"])
    torch.testing.assert_close(embeddings[0], embeddings[1], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("score_function", ["linear", "cosine"])
def test_scores_of_a_bi_encoder(
    make_model: MakeModel,
    tokenizer: PreTrainedTokenizerBase,
    monkeypatch: pytest.MonkeyPatch,
    score_function: str,
) -> None:
    monkeypatch.setattr(encoding, "SCORED_AT_ONCE", 4)  # two rounds
    model = make_model(score_function=score_function)
    second = SENTENCES[::-1]
    scores = model_scorer(model, tokenizer)(SENTENCES, second)
    u, v = one_at_a_time(model, tokenizer, SENTENCES), one_at_a_time(model, tokenizer, second)
    with torch.no_grad():
        expected = {
            "cosine": torch.cosine_similarity(u, v),
            "dot": (u * v).sum(dim=1),
            "head": model.score_embeddings(u, v),
        }
    assert list(scores) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(scores[name], values, atol=1e-4, rtol=1e-4)
    model.config.head_is_trained = False
    assert "head" not in model_scorer(model, tokenizer)(SENTENCES, second)


def test_scores_of_a_cross_encoder(make_model: MakeModel, tokenizer: PreTrainedTokenizerBase) -> None:
    model = make_model(encoder_type="cross-encoder")
    second = SENTENCES[::-1]
    scores = model_scorer(model, tokenizer)(SENTENCES, second)
    with torch.no_grad():
        expected = [
            model(**tokenizer([pair[0]], [pair[1]], return_tensors="pt")).scores.item()
            for pair in zip(SENTENCES, second, strict=True)
        ]
    assert list(scores) == ["head"]
    np.testing.assert_allclose(scores["head"], expected, atol=1e-5)
    model.config.head_is_trained = False
    with pytest.raises(ValueError, match="a cross-encoder without a trained head has no scores"):
        model_scorer(model, tokenizer)


def test_normalized_embeddings_make_dot_and_cosine_the_same() -> None:
    vectors = {"a": [3.0, 4.0], "b": [0.0, 2.0], "c": [1.0, 0.0]}

    def encode(sentences: Any) -> Tensor:
        return torch.tensor([vectors[sentence] for sentence in sentences])

    raw = score_with_embeddings(encode, ["a", "a"], ["b", "c"])
    np.testing.assert_allclose(raw["cosine"], [0.8, 0.6], rtol=1e-6)
    np.testing.assert_allclose(raw["dot"], [8, 3], rtol=1e-6)
    normalized = score_with_embeddings(encode, ["a", "a"], ["b", "c"], normalize=True)
    np.testing.assert_allclose(normalized["dot"], [0.8, 0.6], rtol=1e-6)


@pytest.mark.parametrize("prefix", ["", "a "])
@pytest.mark.parametrize(
    "texts",
    [
        *("the cat", ["the cat"], ("the cat",), [np.str_("the cat")]),
        *(np.array("the cat"), np.array(["the cat"]), np.array(["the cat"], object)),
    ],
    ids=repr,
)
def test_texts_may_be_one_string_a_sequence_or_an_array(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, texts: Any, prefix: str
) -> None:
    model = make_model()
    embeddings = encode_sentences(model, tokenizer, texts, prefix=prefix)
    expected = one_at_a_time(model, tokenizer, [f"{prefix}the cat"])
    torch.testing.assert_close(embeddings, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("encoder_type", ["bi-encoder", "cross-encoder"])
def test_pairs_may_be_two_strings_sequences_or_arrays(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, encoder_type: str
) -> None:
    scorer: Any = model_scorer(make_model(encoder_type=encoder_type), tokenizer)
    pairs = SENTENCES[:3], SENTENCES[3:]
    for expected, sides in ((scorer(*pairs), map(np.array, pairs)), (scorer(*pairs), map(tuple, pairs))):
        for name, values in scorer(*sides).items():
            np.testing.assert_array_equal(values, expected[name])
    one = scorer(["the cat"], ["water"])
    assert {name: values.shape for name, values in one.items()} == dict.fromkeys(one, (1,))
    for name, values in scorer("the cat", "water").items():
        np.testing.assert_array_equal(values, one[name])
    assert {name: values.shape for name, values in scorer([], []).items()} == dict.fromkeys(one, (0,))


@pytest.mark.parametrize("encoder_type", ["bi-encoder", "cross-encoder"])
@pytest.mark.parametrize(
    ("sides", "message"),
    [
        (("the cat", SENTENCES), "`sentences1` and `sentences2` must hold the same number .* but hold 1 and 6"),
        ((SENTENCES, []), "`sentences1` and `sentences2` must hold the same number .* but hold 6 and 0"),
        ((["the cat"], [None]), "`sentences2` must hold strings, but item 0 is None"),
        (([["the cat", "water"]], ["a dog"]), r"`sentences1` must hold strings, but item 0 is \['the cat', 'water'\]"),
    ],
)
def test_what_are_no_pairs_is_refused(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, encoder_type: str, sides: Any, message: str
) -> None:
    scorer = model_scorer(make_model(encoder_type=encoder_type), tokenizer)
    with pytest.raises(ValueError, match=message):
        scorer(*sides)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (None, "must be a string or strings, but is None"),
        (5, "must be a string or strings, but is 5"),
        ({"sentence1": ["the cat"]}, r"must be a string or strings, but is \{'sentence1'"),
        (pd.DataFrame({"text": ["the cat"]}), r"must be strings, but is a table\. Give one of its columns"),
        (b"the cat", "must be a string or strings, but is b'the cat'"),
        (["the cat", 5], "must hold strings, but item 1 is 5"),
        (np.array([["the cat"]]), r"must hold strings, but item 0 is \['the cat'\]"),
        (np.array([1.0]), r"must hold strings, but item 0 is 1\.0"),
        (torch.ones(1), r"must hold strings, but item 0 is tensor\(1\.\)"),
    ],
    ids=repr,
)
def test_what_are_no_texts_is_refused(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, texts: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^`sentences` {message}"):
        encode_sentences(make_model(), tokenizer, texts)


def test_a_function_that_encodes_may_return_an_array() -> None:
    vectors = {"a": [3.0, 4.0], "b": [0.0, 2.0]}

    def encode(sentences: Any) -> np.ndarray:
        return np.array([vectors[sentence] for sentence in sentences])

    np.testing.assert_allclose(score_with_embeddings(encode, "a", "b")["cosine"], [0.8], rtol=1e-6)
