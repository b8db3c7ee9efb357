"""The store of a frozen encoder's embeddings: each sentence once, whole rows only, and the training that it serves."""

import json
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
    """Encodes a text as numbers made from its letters, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: list[str]) -> Tensor:
        self.texts += texts
        return torch.tensor([[float(len(text)), *map(float, text.encode()[-3:])] for text in texts])


@pytest.fixture
def encode() -> CountingEncoder:
    return CountingEncoder()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddingStore:
    monkeypatch.setattr(embedding_store, "SENTENCES_AT_ONCE", 3)
    return EmbeddingStore(tmp_path / "store", HIDDEN)


def check(store: EmbeddingStore, texts: list[str]) -> None:
    np.testing.assert_array_equal(store.vectors()[store.rows(texts)], CountingEncoder()(texts).numpy())


def test_each_sentence_is_encoded_once(store: EmbeddingStore, encode: CountingEncoder) -> None:
    assert store.add([*SENTENCES[:6], *SENTENCES[:6]], encode) == 6
    assert store.add(SENTENCES[4:8], encode) == 2
    assert encode.texts == SENTENCES[:8]
    check(store, SENTENCES[7::-1])
    assert store.vectors().shape == (8, HIDDEN)


def test_another_process_finds_them(store: EmbeddingStore, encode: CountingEncoder) -> None:
    store.add(SENTENCES, encode)
    again = EmbeddingStore(store.folder, HIDDEN)
    assert again.add(SENTENCES, encode) == 0
    check(again, SENTENCES)


def test_an_empty_store(store: EmbeddingStore, encode: CountingEncoder) -> None:
    assert store.add([], encode) == 0
    assert store.vectors().shape == (0, HIDDEN)


def test_what_an_interruption_left_is_kept_and_the_rest_encoded(store: EmbeddingStore) -> None:
    encode = CountingEncoder()

    def dies_at_the_third(texts: list[str]) -> Tensor:
        if len(encode.texts) >= 6:
            raise KeyboardInterrupt("by hand")
        return encode(texts)

    with pytest.raises(KeyboardInterrupt, match="by hand"):
        store.add(SENTENCES, dies_at_the_third)
    again = EmbeddingStore(store.folder, HIDDEN)
    assert again.add(SENTENCES, encode) == 4
    check(again, SENTENCES)


def test_what_is_encoded_together_counts_together(
    store: EmbeddingStore, encode: CountingEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_store, "SENTENCES_AT_ONCE", 4)
    write_count = store._write_count

    def killed_in_the_second_part(count: int) -> None:
        if count > 4:
            raise KeyboardInterrupt("by hand")  # its rows are there already
        write_count(count)

    monkeypatch.setattr(store, "_write_count", killed_in_the_second_part)
    with pytest.raises(KeyboardInterrupt, match="by hand"):
        store.add(SENTENCES, encode)
    again = EmbeddingStore(store.folder, HIDDEN)
    encode.texts.clear()
    assert again.add(SENTENCES, encode) == 6
    assert encode.texts == SENTENCES[4:]
    check(again, SENTENCES)


@pytest.mark.parametrize(
    ("file", "size", "kept"),
    [
        ("vectors.f32", 16 * 7 + 5, 7),  # half a row
        ("index.bin", 20 * 7 + 3, 7),  # half a record
        ("vectors.f32", 0, 0),
        ("index.bin", 0, 0),
    ],
)
def test_half_written_rows_are_cut_off(
    store: EmbeddingStore, encode: CountingEncoder, file: str, size: int, kept: int
) -> None:
    store.add(SENTENCES, encode)
    with (store.folder / file).open("r+b") as opened:
        opened.truncate(size)
    again = EmbeddingStore(store.folder, HIDDEN)
    assert again.add(SENTENCES, encode) == 10 - kept
    check(again, SENTENCES)


@pytest.mark.parametrize("file", ["vectors.f32", "index.bin"])
def test_damaged_rows_are_renewed(
    store: EmbeddingStore, encode: CountingEncoder, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    store.add(SENTENCES, encode)
    content = bytearray((store.folder / file).read_bytes())
    content[len(content) * 6 // 10 + (16 if file == "index.bin" else 1)] ^= 0xFF  # the seventh row, or its checksum
    (store.folder / file).write_bytes(content)
    again = EmbeddingStore(store.folder, HIDDEN)
    assert again.add(SENTENCES, encode) == 4
    check(again, SENTENCES)
    assert "row 6 of 10 is damaged" in "\n".join(caplog.messages)


def test_rubbish_in_the_folder_is_replaced(store: EmbeddingStore, encode: CountingEncoder) -> None:
    store.folder.mkdir()
    for name in ("vectors.f32", "index.bin"):
        (store.folder / name).write_bytes(b"not a store of embeddings, but long enough to be one" * 5)
    assert store.add(SENTENCES, encode) == 10
    check(store, SENTENCES)


def test_embeddings_that_are_no_numbers_are_refused(store: EmbeddingStore) -> None:
    with pytest.raises(ValueError, match="embeddings that are NaN or infinite"):
        store.add(SENTENCES, lambda texts: torch.full((len(texts), HIDDEN), torch.nan))


def test_digests_that_end_in_zero_bytes_are_found(
    store: EmbeddingStore, encode: CountingEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_store, "_digest", lambda text: text[-1].encode().ljust(16, b"\0"))
    store.add(SENTENCES, encode)
    assert EmbeddingStore(store.folder, HIDDEN).add(SENTENCES, encode) == 0


def test_the_name_of_a_store_depends_on_all_that_decides_an_embedding(
    make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def name(**options: Any) -> str:
        return open_store(make_model(**options), tokenizer, "cache").folder.name

    first = name()
    assert name() == name(loss_type="mse", label_values=[0, 1]) == first  # the head does not matter
    other_weights = make_model()
    with torch.no_grad():
        next(other_weights.encoder.parameters())[0, 0] += 1e-3
    names = {first, name(pooling="cls"), open_store(other_weights, tokenizer, "cache").folder.name}
    monkeypatch.setattr(tokenizer, "model_max_length", 7)
    names.add(name())
    assert len(names) == 4


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
    measured = [record["results"]["after training"]["validation"]["pearson_head"] for record in records]
    assert measured[0] == measured[1] == pytest.approx(measured[2], abs=1e-4)
