"""Embeddings of a frozen encoder on disk: each sentence is encoded once, in however many epochs and runs it is used.

A store is a folder of two files that grow together: `vectors.f32`, a row of float32 per sentence, memory-mapped, and
`index.bin`, a record per row: 16 bytes of a digest of the text and the CRC-32 of the row. A third, `rows`, says how
many of them count. The name of the folder is a digest of all that decides an embedding. What a process that dies had
begun to write does not count; the next one cuts it off, and encodes the same sentences together that the first would
have: in other batches, embeddings differ in their last bits.
"""

import hashlib
import logging
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset
from filelock import FileLock
from torch import Tensor
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from sts_regression.files import naming, replacing
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import encode_sentences
from sts_regression.models.fingerprint import fingerprint
from sts_regression.options import DEFAULT_CACHE_DIR
from sts_regression.pipeline_sts_regression import with_prefix

logger = logging.getLogger(__name__)

VECTORS_FILE, INDEX_FILE, COUNT_FILE, LOCK_FILE = "vectors.f32", "index.bin", "rows", "lock"
STORE_NAME_DIGITS = 32
DIGEST_BYTES = 16
INDEX_RECORD = np.dtype([("digest", f"S{DIGEST_BYTES}"), ("crc", "<u4")])
SENTENCES_AT_ONCE = 8192  # encoded and written together; what an interruption costs at most


class EmbeddingStore:
    """
    Embeddings of sentences in a folder.

    Args:
        folder: where they are, or will be.
        hidden_size: length of an embedding.
    """

    def __init__(self, folder: str | Path, hidden_size: int) -> None:
        self.folder = Path(folder)
        self.hidden_size = hidden_size
        self._row_of: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._row_of)

    def add(self, sentences: Iterable[str], encode: Callable[[list[str]], Tensor], show_progress: bool = False) -> int:
        """
        Encodes the sentences that the store does not hold yet; one process at a time.

        Args:
            sentences: any number, repeated or not.
            encode: from sentences to embeddings of shape (sentences, hidden).
            show_progress: whether to draw a progress bar.

        Returns:
            How many were encoded.

        Raises:
            ValueError: for embeddings that are not finite.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / LOCK_FILE):
            self._read_index()
            missing = [text for text in dict.fromkeys(sentences) if _digest(text) not in self._row_of]
            with tqdm(total=len(missing), desc="Encoding", disable=not (show_progress and missing)) as progress:
                for start in range(0, len(missing), SENTENCES_AT_ONCE):
                    part = missing[start : start + SENTENCES_AT_ONCE]
                    self._append(part, encode(part).float().cpu().numpy())
                    progress.update(len(part))
        return len(missing)

    def rows(self, sentences: Sequence[str]) -> np.ndarray:
        """The rows of sentences that were added: array of shape (sentences,), int64."""
        return np.array([self._row_of[_digest(text)] for text in sentences], dtype=np.int64)

    def vectors(self) -> np.ndarray:
        """All embeddings, memory-mapped: array of shape (sentences, hidden), float32, not to be written to."""
        if not len(self):
            return np.empty((0, self.hidden_size), dtype=np.float32)
        shape = (len(self), self.hidden_size)
        return np.memmap(self.folder / VECTORS_FILE, dtype="<f4", mode="r", shape=shape)

    def _append(self, sentences: Sequence[str], vectors: np.ndarray) -> None:
        if not np.isfinite(vectors).all():
            raise ValueError("the encoder gives embeddings that are NaN or infinite. Its weights are damaged.")
        vectors = np.ascontiguousarray(vectors, dtype="<f4")
        records = np.array(
            [(_digest(text), zlib.crc32(row)) for text, row in zip(sentences, vectors, strict=True)], INDEX_RECORD
        )
        for name, data in ((VECTORS_FILE, vectors), (INDEX_FILE, records)):
            with naming(self.folder / name), (self.folder / name).open("ab") as file:
                file.write(data.tobytes())
                file.flush()
                os.fsync(file.fileno())
        self._write_count(len(self) + len(sentences))  # last: these rows count from here on
        for text in sentences:
            self._row_of[_digest(text)] = len(self._row_of)

    def _write_count(self, count: int) -> None:
        with replacing(self.folder / COUNT_FILE) as file:
            file.write(str(count).encode())

    def _read_index(self) -> None:
        """Reads what is there, and cuts off what is not whole."""
        paths = self.folder / VECTORS_FILE, self.folder / INDEX_FILE
        if not paths[0].exists():
            self._write_count(0)
        for path in paths:
            path.touch()
        row_bytes = 4 * self.hidden_size
        count = min(paths[0].stat().st_size // row_bytes, paths[1].stat().st_size // INDEX_RECORD.itemsize)
        if (stated := self.folder / COUNT_FILE).is_file():  # a store of an earlier version has none
            count = min(count, int(stated.read_text()))
        records = np.fromfile(paths[1], INDEX_RECORD, count)
        if count:
            vectors = np.memmap(paths[0], dtype="<f4", mode="r", shape=(count, self.hidden_size))
            whole = next((row for row in range(count) if zlib.crc32(vectors[row]) != records["crc"][row]), count)
            del vectors
            if whole < count:
                logger.warning(
                    f"{self.folder}: row {whole:,} of {count:,} is damaged; the rows from there are renewed"
                )
            count = whole
        for path, size in zip(paths, (row_bytes, INDEX_RECORD.itemsize), strict=True):
            os.truncate(path, count * size)
        # numpy drops trailing zero bytes of a fixed-length string.
        self._row_of = {
            digest.ljust(DIGEST_BYTES, b"\0"): row for row, digest in enumerate(records["digest"][:count].tolist())
        }


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()


def open_store(
    model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, cache_dir: str | Path = DEFAULT_CACHE_DIR
) -> EmbeddingStore:
    """
    The store of a model's embeddings: another one for other encoder weights, pooling, tokenizer or length.

    Args:
        model: a bi-encoder.
        tokenizer: the model's; sentences are cut to its `model_max_length` tokens.
        cache_dir: folder of all stores.
    """
    name = fingerprint(model, tokenizer, with_head=False)[:STORE_NAME_DIGITS]
    return EmbeddingStore(Path(cache_dir) / name, model.config.encoder_config.hidden_size)


class EmbeddedPairs(torch.utils.data.Dataset):
    """
    Pairs as inputs of the model, their embeddings read from a store batch by batch.

    Args:
        store: that holds all sentences of the pairs.
        pairs: columns `sentence1`, `sentence2` and, if known, `label`.
        prefixes: of the first and of the second sentences.
    """

    def __init__(self, store: EmbeddingStore, pairs: Dataset, prefixes: tuple[str, str] = ("", "")) -> None:
        self._vectors = store.vectors()
        self._rows = np.stack([store.rows(side) for side in _sides(pairs, prefixes)], axis=1)  # (pairs, 2)
        self.labels = torch.tensor(pairs[:]["label"], dtype=torch.float32) if "label" in pairs.column_names else None

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
    Pairs of a frozen encoder, each sentence encoded once.

    Args:
        splits: pairs by name, see [`EmbeddedPairs`].
        model: a bi-encoder on the device that is to encode.
        tokenizer: the model's.
        cache_dir: folder of all stores.
        show_progress: whether to draw a progress bar.
    """
    store = _filled_store(splits.values(), model, tokenizer, cache_dir, show_progress)
    return {name: EmbeddedPairs(store, pairs, model.config.prefixes) for name, pairs in splits.items()}


def add_anchors(
    inputs: Dataset,
    pairs: Dataset,
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    cache_dir: str | Path = DEFAULT_CACHE_DIR,
    show_progress: bool = False,
) -> tuple[Dataset, np.ndarray]:
    """
    Embeddings of training pairs by the encoder as it is before training, for self-distillation.

    Args:
        inputs: the tokenised pairs, see [`tokenize_pairs`].
        pairs: the same pairs as text.
        model: a bi-encoder on the device that is to encode.
        tokenizer: the model's.
        cache_dir: folder of all stores.
        show_progress: whether to draw a progress bar.

    Returns:
        The inputs with a column `anchor_rows`, two numbers a pair, and the array of shape (sentences, hidden),
        memory-mapped, whose rows they are.

    Raises:
        ValueError: for a cross-encoder.
    """
    if model.config.encoder_type == "cross-encoder":
        raise ValueError("`self_distillation`: a cross-encoder has no sentence embeddings to keep. Leave it out.")
    store = _filled_store([pairs], model, tokenizer, cache_dir, show_progress)
    rows = [store.rows(side).tolist() for side in _sides(pairs, model.config.prefixes)]
    return inputs.add_column("anchor_rows", list(map(list, zip(*rows, strict=True)))), store.vectors()


def _sides(pairs: Dataset, prefixes: tuple[str, str]) -> list[list[str]]:
    """The first and the second sentences as they are encoded."""
    return [with_prefix(pairs[:][f"sentence{i}"], prefix) for i, prefix in enumerate(prefixes, start=1)]


def _filled_store(
    parts: Iterable[Dataset],
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    cache_dir: str | Path,
    show_progress: bool,
) -> EmbeddingStore:
    store = open_store(model, tokenizer, cache_dir)
    sentences = (text for pairs in parts for side in _sides(pairs, model.config.prefixes) for text in side)
    count = store.add(sentences, lambda part: encode_sentences(model, tokenizer, part), show_progress)
    logger.info(f"{count:,} sentences encoded, {len(store) - count:,} more known; embeddings are in {store.folder}")
    return store
