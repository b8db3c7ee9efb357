"""The store of a frozen encoder's embeddings: each sentence once, whole rows only, and the training that it serves."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedTokenizerBase

import run_sts
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models import embedding_store
from sts_regression.models.embedding_store import EmbeddedPairs, EmbeddingStore, embed_pairs, open_store
from sts_regression.models.encoding import encode_sentences

HIDDEN = 4
SENTENCES = [f"sentence {i}" for i in range(10)]


class CountingEncoder:
    """Encodes a text as numbers made from its letters, and remembers the texts."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: list[str]) -> Tensor:
        self.texts += texts
        return torch.tensor([[float(len(text)), *map(float, text.encode()[-3:])] for text in texts])


@pytest.fixture
def encode() -> CountingEncoder:
    return CountingEncoder()


Open = Callable[..., EmbeddingStore]


@pytest.fixture
def open_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """The store of ten sentences in blocks of three, as each process opens it."""
    monkeypatch.setattr(embedding_store, "SENTENCES_AT_ONCE", 3)
    return lambda: EmbeddingStore(tmp_path / "store", HIDDEN, [*SENTENCES, *SENTENCES[:4]])


def check(store: EmbeddingStore, texts: list[str]) -> None:
    np.testing.assert_array_equal(store.vectors()[store.rows(texts)], CountingEncoder()(texts).numpy())


def test_each_sentence_is_encoded_once(open_again: Open, encode: CountingEncoder) -> None:
    store = open_again()
    assert (len(store), store.fill(encode)) == (10, 10)
    assert encode.texts == sorted(SENTENCES)
    check(store, SENTENCES[7::-1])
    again = open_again()
    assert again.fill(encode) == 0
    check(again, SENTENCES)


def test_an_empty_store(tmp_path: Path, encode: CountingEncoder) -> None:
    store = EmbeddingStore(tmp_path, HIDDEN, [])
    assert store.fill(encode) == 0
    assert store.vectors().shape == (0, HIDDEN)


def test_what_an_interruption_left_is_kept_and_the_rest_encoded(open_again: Open) -> None:
    encode = CountingEncoder()

    def dies_at_the_third(texts: list[str]) -> Tensor:
        if len(encode.texts) >= 6:
            raise KeyboardInterrupt("by hand")
        return encode(texts)

    with pytest.raises(KeyboardInterrupt, match="by hand"):
        open_again().fill(dies_at_the_third)
    again = open_again()
    assert again.fill(encode) == 4
    check(again, SENTENCES)


@pytest.mark.parametrize(
    ("file", "size", "kept"),
    [
        ("vectors.f32", 16 * 7 + 5, 6),  # half a row of the third block
        ("vectors.f32", 16 * 9, 9),
        ("blocks.crc", 4 * 2 + 3, 6),  # half a checksum
        ("vectors.f32", 0, 0),
        ("blocks.crc", 0, 0),
    ],
)
def test_half_written_blocks_are_written_again(
    open_again: Open, encode: CountingEncoder, file: str, size: int, kept: int
) -> None:
    store = open_again()
    store.fill(encode)
    os.truncate(store.folder / file, size)
    encode.texts.clear()
    again = open_again()
    assert again.fill(encode) == 10 - kept
    assert encode.texts == sorted(SENTENCES)[kept:]  # in the blocks that they were in before
    check(again, SENTENCES)


@pytest.mark.parametrize("file", ["vectors.f32", "blocks.crc"])
def test_damaged_blocks_are_renewed(
    open_again: Open, encode: CountingEncoder, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_again()
    store.fill(encode)
    content = bytearray((store.folder / file).read_bytes())
    content[len(content) * 7 // 10] ^= 1  # of the third block
    (store.folder / file).write_bytes(content)
    again = open_again()
    assert again.fill(encode) == 4
    check(again, SENTENCES)
    assert "rows from 6 on are damaged" in "\n".join(caplog.messages)


def test_rubbish_in_the_folder_is_replaced(open_again: Open, encode: CountingEncoder) -> None:
    store = open_again()
    store.folder.mkdir()
    for name in ("vectors.f32", "blocks.crc"):
        (store.folder / name).write_bytes(b"not a store of embeddings, but long enough to be one" * 5)
    assert store.fill(encode) == 10
    check(store, SENTENCES)


def test_embeddings_that_are_no_numbers_are_refused(open_again: Open) -> None:
    with pytest.raises(ValueError, match="embeddings that are NaN or infinite"):
        open_again().fill(lambda texts: torch.full((len(texts), HIDDEN), torch.nan))


def test_other_runs_do_not_change_the_embeddings_of_this_one(
    make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    model = make_model()
    texts = [f"the {'cat ' * (i % 5)}{i}" for i in range(40)]
    own, others = (
        Dataset.from_dict({"sentence1": some, "sentence2": some[::-1]}) for some in (texts[:25], texts[10:])
    )
    batches = []
    for folder, first in ((tmp_path / "alone", []), (tmp_path / "shared", [others])):
        for pairs in [*first, own]:
            batch = embed_pairs({"train": pairs}, model, tokenizer, folder)["train"].__getitems__([*range(25)])
        batches.append(batch["embeddings"])
    assert torch.equal(*batches)


def test_the_name_of_a_store_depends_on_all_that_decides_an_embedding(
    make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def name(sentences: tuple[str, ...] = ("one", "two"), **options: Any) -> str:
        return open_store(make_model(**options), tokenizer, sentences, "cache").folder.name

    first = name()
    assert name() == name(loss_type="mse", label_values=[0, 1]) == first  # the head does not matter
    assert name(("two", "one", "two")) == first
    other_weights = make_model()
    with torch.no_grad():
        next(other_weights.encoder.parameters())[0, 0] += 1e-3
    names = {first, name(pooling="cls"), open_store(other_weights, tokenizer, ["one", "two"], "cache").folder.name}
    monkeypatch.setattr(tokenizer, "model_max_length", 7)
    names |= {name(), name(("one",)), name(("onetwo",)), name(("on", "etwo"))}
    assert len(names) == 7


def test_pairs_come_in_batches_of_embeddings(
    make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    model = make_model()
    pairs = Dataset.from_dict(
        {"sentence1": ["the cat", "a dog", "water"], "sentence2": ["a dog", "the cat", "a house"], "label": [1, 2, 3]}
    )
    embedded = embed_pairs({"train": pairs, "new": pairs.remove_columns("label")}, model, tokenizer, tmp_path)
    batch = embedded["train"].__getitems__([2, 0])
    u, v = (encode_sentences(model, tokenizer, pairs[:][name]) for name in ("sentence1", "sentence2"))
    torch.testing.assert_close(batch["embeddings"], torch.stack([u, v], dim=1)[[2, 0]], atol=1e-6, rtol=1e-5)
    assert batch["labels"].tolist() == [3, 1]
    assert len(embedded["new"]) == 3
    assert set(embedded["new"][1]) == {"embeddings"}
    assert isinstance(embedded["new"], EmbeddedPairs)


def test_a_training_on_stored_embeddings_is_the_training_that_encodes_every_time(
    tiny_encoder_path: Path, small_sts_data: Path, tmp_path: Path
) -> None:
    weights, records = [], []
    for name, cache in (("stored", tmp_path / "cache"), ("again", tmp_path / "cache"), ("encoded", "off")):
        output_dir = tmp_path / name
        run_sts.run_stages(
            [
                *("--model_name_or_path", str(tiny_encoder_path), "--freeze_encoder", "--embedding_cache", str(cache)),
                *("--train_file", str(small_sts_data / "stsbenchmark" / "sts-train.csv")),
                *("--validation_file", str(small_sts_data / "stsbenchmark" / "sts-dev.csv")),
                *("--num_train_epochs=3", "--logging_steps=1", "--per_device_train_batch_size=4", "--report_to=none"),
                *("--output_dir", str(output_dir), "--disable_tqdm=true"),
            ]
        )
        weights.append(load_file(output_dir / "model.safetensors"))
        records.append(json.loads((output_dir / "run.json").read_text()))
    assert len(list((tmp_path / "cache").iterdir())) == 1
    for other in weights[1:]:
        for parameter, value in weights[0].items():
            torch.testing.assert_close(other[parameter], value, atol=1e-5, rtol=1e-4)
    losses = [[entry["loss"] for entry in record["training"]["log_history"] if "loss" in entry] for record in records]
    assert losses[0] == losses[1] == pytest.approx(losses[2], abs=1e-4)
    measured = [record["results"]["after training"]["validation"]["spearman_head"] for record in records]
    assert measured[0] == measured[1] == pytest.approx(measured[2], abs=1e-4)
