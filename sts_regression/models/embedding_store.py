"""Embeddings of a frozen encoder on disk: each sentence is encoded once for all epochs and runs.

A store is a folder for one encoder and one set of sentences; its name is a digest of both. `vectors.f32` holds a row
of float32 per sentence, in the order of the sorted sentences, and is memory-mapped. `blocks.crc` holds the CRC-32 of
each block of rows that were encoded together. It is written after the block, so a block that a killed process left
unfinished does not count. A damaged block and all blocks after it are encoded again. Pairs that are scored once are
embedded in memory instead, see [`embed_tokenized`].

Embeddings from other batches differ in their last bits. If stores grew with the sentences of other runs, those runs
would therefore change the weights of this one.
"""

import hashlib
import logging
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset
from filelock import FileLock
from torch import Tensor
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from sts_regression.basics.files import LOCK_FILE, naming
from sts_regression.data.columns import numbers_of, texts_of
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import distinct_rows, encode_sentences, in_batches
from sts_regression.models.fingerprint import fingerprint
from sts_regression.options.model_arguments import DEFAULT_CACHE_DIR
from sts_regression.pipeline_sts_regression import with_prefix

logger = logging.getLogger(__name__)

VECTORS_FILE, BLOCKS_FILE = "vectors.f32", "blocks.crc"
STORE_NAME_BYTES = 16
SENTENCES_AT_ONCE = 8192  # in a block; an interruption loses no more
INPUT_NAMES = ("input_ids", "token_type_ids")  # of tokenised pairs


class EmbeddingStore:
    """
    Embeddings of a set of sentences in a folder.

    Args:
        folder: the folder of the embeddings.
        hidden_size: size of an embedding.
        sentences: any number of sentences, repeated or not. They must be the same whenever the folder is opened.
    """

    def __init__(self, folder: str | Path, hidden_size: int, sentences: Iterable[str]) -> None:
        self.folder = Path(folder)
        self.hidden_size = hidden_size
        self.sentences = sorted(set(sentences))
        self._row_of = {text: row for row, text in enumerate(self.sentences)}

    def __len__(self) -> int:
        return len(self.sentences)

    def fill(self, encode: Callable[[list[str]], Tensor], show_progress: bool = False) -> int:
        """
        Encodes the sentences that have no embedding yet. A lock admits one process at a time.

        Args:
            encode: maps sentences to embeddings of shape (sentences, hidden).
            show_progress: whether to draw a progress bar.

        Returns:
            The number of sentences that were encoded.

        Raises:
            ValueError: for embeddings that are NaN or infinite.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / LOCK_FILE):
            known = self._keep_whole_blocks()
            with tqdm(
                total=len(self) - known, desc="Encoding", disable=not show_progress or known == len(self)
            ) as bar:
                for start in range(known, len(self), SENTENCES_AT_ONCE):
                    part = self.sentences[start : start + SENTENCES_AT_ONCE]
                    self._append(encode(part).float().cpu().numpy())
                    bar.update(len(part))
        return len(self) - known

    def rows(self, sentences: Sequence[str]) -> np.ndarray:
        """The row of each sentence in the store: array of shape (sentences,), int64."""
        return np.array([self._row_of[text] for text in sentences], dtype=np.int64)

    def vectors(self) -> np.ndarray:
        """All embeddings, memory-mapped: array of shape (sentences, hidden), float32, read-only."""
        if not len(self):
            return np.empty((0, self.hidden_size), dtype=np.float32)
        return np.memmap(self.folder / VECTORS_FILE, dtype="<f4", mode="r", shape=(len(self), self.hidden_size))

    def _append(self, vectors: np.ndarray) -> None:
        if not np.isfinite(vectors).all():
            raise ValueError("the encoder gives embeddings that are NaN or infinite. Its weights are damaged.")
        data = np.ascontiguousarray(vectors, dtype="<f4").tobytes()
        for name, content in ((VECTORS_FILE, data), (BLOCKS_FILE, zlib.crc32(data).to_bytes(4, "little"))):
            with naming(self.folder / name), (self.folder / name).open("ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())

    def _keep_whole_blocks(self) -> int:
        """Cuts the files off before the first damaged block, and returns the number of rows that are left."""
        vectors, blocks = self.folder / VECTORS_FILE, self.folder / BLOCKS_FILE
        for path in (vectors, blocks):
            path.touch()
        recorded = np.fromfile(blocks, "<u4")
        known = 0
        with vectors.open("rb") as file:
            for crc in recorded.tolist():
                count = min(SENTENCES_AT_ONCE, len(self) - known)
                data = file.read(4 * self.hidden_size * count)
                if not count or zlib.crc32(data) != crc or len(data) < 4 * self.hidden_size * count:
                    logger.warning(f"{self.folder}: rows from {known:,} on are damaged and encoded again")
                    break
                known += count
        os.truncate(vectors, 4 * self.hidden_size * known)
        os.truncate(blocks, 4 * -(-known // SENTENCES_AT_ONCE))
        return known


def open_store(
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Iterable[str],
    cache_dir: str | Path = DEFAULT_CACHE_DIR,
) -> EmbeddingStore:
    """
    The store of a model's embeddings, one for each set of encoder weights, pooling, tokenizer, length and sentences.

    Args:
        model: a bi-encoder.
        tokenizer: the model's tokenizer; sentences are truncated to its `model_max_length` tokens.
        sentences: the sentences of the store.
        cache_dir: folder of all stores.
    """
    store = EmbeddingStore(cache_dir, model.config.encoder_config.hidden_size, sentences)
    digest = hashlib.blake2b(fingerprint(model, tokenizer, with_head=False).encode(), digest_size=STORE_NAME_BYTES)
    for text in store.sentences:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    store.folder = Path(cache_dir) / digest.hexdigest()
    return store


class EmbeddedPairs(torch.utils.data.Dataset):
    """
    Pairs as inputs of the model, with embeddings that are looked up batch by batch.

    Args:
        vectors: embeddings of distinct texts, shape (texts, hidden), in memory or mapped.
        rows: the row of each text of each pair in `vectors`, shape (pairs, 2).
        labels: gold labels of shape (pairs,), if known.
    """

    def __init__(self, vectors: np.ndarray, rows: np.ndarray, labels: np.ndarray | None) -> None:
        self._vectors, self._rows = vectors, rows
        self.labels = None if labels is None else torch.tensor(labels, dtype=torch.float32)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {name: values[0] for name, values in self.__getitems__([index]).items()}

    def __getitems__(self, indices: list[int]) -> dict[str, Tensor]:
        """A whole batch: `embeddings` of shape (batch, 2, hidden), and `labels` of shape (batch,)."""
        batch = {"embeddings": torch.from_numpy(self._vectors[self._rows[indices]])}
        return batch if self.labels is None else {**batch, "labels": self.labels[indices]}


def embed_pairs(
    splits: dict[str, Dataset],
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    cache_dir: str | Path = DEFAULT_CACHE_DIR,
    show_progress: bool = False,
) -> dict[str, EmbeddedPairs]:
    """
    Embeds pairs with a frozen encoder; each sentence is encoded once.

    Args:
        splits: pairs by split, with the columns `sentence1`, `sentence2` and, if known, `label`.
        model: a bi-encoder, on the device that computes.
        tokenizer: the model's tokenizer.
        cache_dir: folder of all stores.
        show_progress: whether to draw a progress bar.
    """
    store = _filled_store(splits.values(), model, tokenizer, cache_dir, show_progress)
    vectors, embedded = store.vectors(), {}
    for name, pairs in splits.items():
        rows = np.stack([store.rows(side) for side in _sides(pairs, model.config.prefixes)], axis=1)  # (pairs, 2)
        embedded[name] = EmbeddedPairs(vectors, rows, _labels(pairs, "label"))
    return embedded


def embed_tokenized(
    pairs: Dataset, model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, show_progress: bool = False
) -> EmbeddedPairs:
    """
    Embeds tokenised pairs in memory; texts with the same tokens are encoded once.

    Args:
        pairs: pairs for a bi-encoder from [`tokenize_pairs`].
        model: a bi-encoder, on the device that computes.
        tokenizer: the model's tokenizer.
        show_progress: whether to draw a progress bar.
    """
    names = [name for name in INPUT_NAMES if name in pairs.column_names]
    columns = pairs.select_columns(names)[:]
    texts = list(zip(*(map(tuple, chain.from_iterable(columns[name])) for name in names), strict=True))
    distinct, rows = distinct_rows(texts)
    encoded = {name: [text[i] for text in distinct] for i, name in enumerate(names)}
    vectors = in_batches(model, model.get_text_features, tokenizer, encoded, show_progress=show_progress)
    return EmbeddedPairs(vectors.numpy(), rows.view(-1, 2).numpy(), _labels(pairs, "labels"))


def add_anchors(
    inputs: Dataset,
    pairs: Dataset,
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    cache_dir: str | Path = DEFAULT_CACHE_DIR,
    show_progress: bool = False,
) -> tuple[Dataset, np.ndarray]:
    """
    Embeddings of training pairs before training, for self-distillation and score maps.

    Args:
        inputs: the tokenised pairs, see [`tokenize_pairs`].
        pairs: the same pairs as text.
        model: a bi-encoder, on the device that computes.
        tokenizer: the model's tokenizer.
        cache_dir: folder of all stores.
        show_progress: whether to draw a progress bar.

    Returns:
        The inputs with a column `anchor_rows`, two row numbers per pair, and the memory-mapped array of shape
        (sentences, hidden) that holds these rows.

    Raises:
        ValueError: for a cross-encoder.
    """
    if model.config.encoder_type == "cross-encoder":
        raise ValueError("`self_distillation`: a cross-encoder has no sentence embeddings to keep. Leave it out.")
    store = _filled_store([pairs], model, tokenizer, cache_dir, show_progress)
    rows = [store.rows(side).tolist() for side in _sides(pairs, model.config.prefixes)]
    return inputs.add_column("anchor_rows", list(map(list, zip(*rows, strict=True)))), store.vectors()


def _labels(pairs: Dataset, column: str) -> np.ndarray | None:
    return numbers_of(pairs, column) if column in pairs.column_names else None


def _sides(pairs: Dataset, prefixes: tuple[str, str]) -> list[list[str]]:
    """The first and the second sentences, with their prefixes."""
    return [with_prefix(list(texts_of(pairs, f"sentence{i}")), prefix) for i, prefix in enumerate(prefixes, start=1)]


def _filled_store(
    parts: Iterable[Dataset],
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    cache_dir: str | Path,
    show_progress: bool,
) -> EmbeddingStore:
    sentences = (text for pairs in parts for side in _sides(pairs, model.config.prefixes) for text in side)
    store = open_store(model, tokenizer, sentences, cache_dir)
    count = store.fill(lambda part: encode_sentences(model, tokenizer, part), show_progress)
    known = len(store) - count
    logger.debug(f"{count:,} sentences encoded, {known:,} already stored; embeddings are in {store.folder}")
    return store
