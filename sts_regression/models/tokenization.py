"""Turning pairs of sentences into batches of tensors: tokenised once before training, padded batch by batch."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain
from multiprocessing import get_start_method
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset
from datasets.config import HF_DATASETS_CACHE
from datasets.fingerprint import generate_random_fingerprint
from filelock import FileLock
from torch.utils.data import Sampler
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from sts_regression.basics.distributed import available_cores
from sts_regression.basics.files import file_sha256
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data.columns import ROWS_READ_AT_ONCE, numbers_of
from sts_regression.pipeline_sts_regression import TOKENIZER_LOCK, shortened_pairs, tokenize_texts, with_prefix

TEXT_COLUMNS = ("sentence1", "sentence2", "label")
CACHED_FROM = 20_000  # pairs; fewer are tokenised in a second or two
PARALLEL_FROM = 100_000  # pairs; the processes take a second to start
BATCHES_SORTED = 50  # by length at once, as in transformers
FORMAT = 2  # of cached pairs
TOKENS = {"input_ids": "ids", "token_type_ids": "type_ids"}  # inputs of models, by name in the tokenizers library


class SeededSampler(Sampler[int]):
    """
    Pairs in random order, without an object in Python for each pair, of which torch's sampler makes a list.

    The order depends on seed and epoch only. transformers draws it from the random state, which a checkpoint within an
    epoch does not restore.
    """

    def __init__(self, num_pairs: int, seed: int) -> None:
        self.num_pairs, self.seed = num_pairs, seed
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch whose order is drawn next."""
        self.generator = torch.Generator().manual_seed(self.seed + epoch)

    def __len__(self) -> int:
        return self.num_pairs

    def __iter__(self) -> Iterator[int]:
        return iter(self.order().data)

    def order(self) -> np.ndarray:
        """The rows in the order of the epoch, shape (pairs,)."""
        return torch.randperm(self.num_pairs, generator=self.generator, dtype=torch.int32).numpy()


class SeededLengthSampler(SeededSampler):
    """Batches of pairs of similar length, as transformers' `LengthGroupedSampler` forms them."""

    def __init__(self, batch_size: int, lengths: list[int], seed: int) -> None:
        super().__init__(len(lengths), seed)
        self.batch_size, self.lengths = batch_size, np.asarray(lengths)

    def order(self) -> np.ndarray:
        """The rows in the order of the epoch, shape (pairs,)."""
        order = super().order()
        size = self.batch_size * max(1, min(len(order) // (4 * self.batch_size), BATCHES_SORTED))
        for start in range(0, len(order), size):
            part = order[start : start + size]
            order[start : start + size] = part[np.argsort(-self.lengths[part], kind="stable")]
        longest = size * self.lengths[order[::size]].argmax()
        order[[0, longest]] = order[[longest, 0]]
        return order


def tokenize_pairs(
    pairs: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    encoder_type: str,
    prefixes: tuple[str, str] = ("", ""),
) -> Dataset:
    """
    Tokenises pairs once, before training.

    Args:
        pairs: columns `sentence1`, `sentence2` and, if known, `label`.
        tokenizer: the encoder's tokenizer. Sentences longer than its `model_max_length` in tokens, special tokens
            included, are truncated.
        encoder_type: `"bi-encoder"`, or `"cross-encoder"` for both sentences in one sequence, the longer one cut
            first.
        prefixes: prefixes of the first and the second sentence, see [`STSRegressionConfig`].

    Returns:
        A `Dataset` with the tokenizer's model inputs but for `attention_mask`, each a pair of lists (bi-encoder) or a
        list (cross-encoder); `labels`, if the pairs have labels; and `length`, the number of tokens of a pair's longer
        sentence, or of the sequence. From 20,000 pairs, the result is cached by its content in the cache of
        `datasets`; from 100,000, each core tokenises a part, on systems that fork processes.
    """

    def tokenize(batch: pa.Table) -> pa.Table:
        first, second = (
            with_prefix(batch[f"sentence{i}"].to_pylist(), prefix) for i, prefix in enumerate(prefixes, start=1)
        )
        if encoder_type == "cross-encoder":
            encoded = tokens_of(first, tokenizer, second)
            columns = {name: _list_array(rows) for name, rows in encoded.items()}
            lengths = _lengths(encoded["input_ids"])
        else:
            sides = chain.from_iterable(zip(first, second, strict=True))
            encoded = tokens_of(list(sides), tokenizer)
            both = np.arange(0, 2 * len(first) + 1, 2, dtype=np.int32)
            columns = {name: pa.ListArray.from_arrays(both, _list_array(rows)) for name, rows in encoded.items()}
            lengths = _lengths(encoded["input_ids"]).reshape(-1, 2).max(axis=1)
        if "label" in batch.column_names:
            columns["labels"] = batch["label"]
        return pa.table({**columns, "length": lengths})

    cache_file = _cache_file(pairs, tokenizer, encoder_type, prefixes) if len(pairs) >= CACHED_FROM else None
    forks = get_start_method() == "fork"  # other processes would import the user's script again
    with FileLock(f"{cache_file}.lock") if cache_file else nullcontext():  # only one of several processes tokenises
        tokenized = pairs.with_format("arrow").map(
            tokenize,
            batched=True,
            remove_columns=pairs.column_names,
            cache_file_name=cache_file,
            num_proc=available_cores() if forks and len(pairs) >= PARALLEL_FROM else None,
            desc="Tokenising",
            new_fingerprint=generate_random_fingerprint(),  # the default hashes the tokenizer for a second
        )
    return tokenized.with_format(None)


def tokens_of(
    texts: list[str], tokenizer: PreTrainedTokenizerBase, second_texts: list[str] | None = None
) -> dict[str, list[list[int]]]:
    """
    As [`tokenize_texts`], without `attention_mask`, and faster with tokenizers of the tokenizers library.

    transformers asks that library for the place of each token in the text, and describes each text in Python.
    """
    if not _leaves_tokens_to_library(tokenizer):
        return tokenize_texts(texts, tokenizer, second_texts, return_attention_mask=False)
    rows: list[Any] = texts
    if second_texts is not None:
        rows = list(zip(*shortened_pairs(texts, second_texts, tokenizer), strict=True))
    with TOKENIZER_LOCK:
        columns: dict[str, Any] = {name: [] for name in tokenizer("", truncation=True, return_attention_mask=False)}
        for start in range(0, len(rows), ROWS_READ_AT_ONCE):  # the library's objects are large
            encodings = tokenizer.backend_tokenizer.encode_batch_fast(rows[start : start + ROWS_READ_AT_ONCE])
            for name, column in columns.items():
                column.extend(getattr(encoding, TOKENS[name]) for encoding in encodings)
    return columns


def _leaves_tokens_to_library(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the tokenizers library alone determines the inputs of the model, without code for its family."""
    own, plain = type(tokenizer), PreTrainedTokenizerFast
    return tokenizer.is_fast and own.__call__ is plain.__call__ and own._encode_plus is plain._encode_plus


def _lengths(rows: Sequence[Sequence[int]]) -> np.ndarray:
    return np.fromiter(map(len, rows), dtype=np.int32, count=len(rows))


def _list_array(rows: Sequence[Sequence[int]]) -> pa.ListArray:
    """Lists of integers as an Arrow array, several times faster than `datasets` converts them."""
    offsets = np.append(0, _lengths(rows).cumsum()).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, np.fromiter(chain.from_iterable(rows), np.int32, count=offsets[-1]))


def as_model_inputs(name: str, pairs: Any, config: STSRegressionConfig, tokenizer: PreTrainedTokenizerBase) -> Any:
    """
    Tokenises pairs of texts, see [`tokenize_pairs`]. Anything else, such as tokenised pairs, is returned as it is.

    Args:
        name: the name of the argument that holds the pairs, for messages.
        pairs: a `Dataset` with the columns `sentence1`, `sentence2` and `label`, or several by name.
        config: the configuration of the model.
        tokenizer: the model's tokenizer.

    Raises:
        ValueError: for missing columns, and for labels beyond the scale.
    """
    if isinstance(pairs, Mapping):
        return {key: as_model_inputs(f"{name}[{key!r}]", some, config, tokenizer) for key, some in pairs.items()}
    if not isinstance(pairs, Dataset) or "input_ids" in pairs.column_names:
        return pairs
    columns, label_values = pairs.column_names, config.label_values
    if missing := [column for column in TEXT_COLUMNS if column not in columns]:
        raise ValueError(
            f"`{name}` must have the columns {', '.join(TEXT_COLUMNS)}, but lacks {missing[0]!r}. It has "
            f"{', '.join(columns)}. Rename them with `rename_column`."
        )
    labels = numbers_of(pairs, "label").astype(float)
    beyond = np.flatnonzero(~((labels >= label_values[0]) & (labels <= label_values[-1])))
    if len(beyond):
        raise ValueError(
            f"`{name}`: row {beyond[0]} has the label {labels[beyond[0]]:g}, which is not on the model's scale, "
            f"{label_values[0]:g} to {label_values[-1]:g}. Map the labels, or set the model's `label_values`."
        )
    texts = pairs.select_columns(list(TEXT_COLUMNS))
    return tokenize_pairs(texts, tokenizer, config.encoder_type, config.prefixes)


def _cache_file(
    pairs: Dataset, tokenizer: PreTrainedTokenizerBase, encoder_type: str, prefixes: tuple[str, str]
) -> str:
    """A file whose name is a digest of everything that determines its content."""
    described = [FORMAT, _digest(pairs), describe_tokenizer(tokenizer), encoder_type, prefixes]
    folder = Path(HF_DATASETS_CACHE) / "sts-regression"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder / f"{hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:32]}.arrow")


def _digest(pairs: Dataset) -> str:
    """SHA-256 of the columns that are tokenised, without all of them in memory."""
    digest = hashlib.sha256()
    columns = [name for name in TEXT_COLUMNS if name in pairs.column_names]
    for table in pairs.select_columns(columns).with_format("arrow").iter(ROWS_READ_AT_ONCE):
        for batch in table.replace_schema_metadata().combine_chunks().to_batches():
            digest.update(batch.serialize())
    return digest.hexdigest()


def describe_tokenizer(tokenizer: PreTrainedTokenizerBase) -> list[Any]:
    """Everything that determines the tokens of a text, as values for JSON."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:  # a slow tokenizer: only its class knows its merges, SentencePiece model and options
        with TemporaryDirectory() as folder:
            tokenizer.save_pretrained(folder)
            state = {path.name: file_sha256(path) for path in Path(folder).iterdir()}
    else:
        state = json.loads(backend.to_str())
    for changed_by_use in ("truncation", "padding"):
        state.pop(changed_by_use, None)
    options = ("model_max_length", "model_input_names", "truncation_side", "split_special_tokens")
    return [type(tokenizer).__name__, state, *(getattr(tokenizer, option) for option in options)]


def save_tokenizer(tokenizer: PreTrainedTokenizerBase, folder: str | Path) -> None:
    """
    Writes a tokenizer's files. Other programs then truncate texts to `model_max_length` tokens and do not pad them.

    Args:
        tokenizer: a fast tokenizer would write the truncation and padding of its last call.
        folder: created if it does not exist.
    """
    with TOKENIZER_LOCK:
        tokenizer("", truncation=True)
        tokenizer.save_pretrained(folder)


def pair_collator(
    tokenizer: PreTrainedTokenizerBase, anchors: np.ndarray | None = None
) -> Callable[[Any], dict[str, torch.Tensor]]:
    """
    A function that pads tokenised pairs to the longest sentence of their batch.

    It returns tensors of shape (batch, 2, length), or (batch, length) for pairs in one sequence, and `labels` of shape
    (batch,), float32. The argument `anchors` has shape (sentences, hidden); the column `anchor_rows` holds rows of it,
    which become `anchors` of shape (batch, 2, hidden). The column `score_map` becomes `score_maps`, (batch, 2). A
    finished batch (from [`EmbeddedPairs`]) is returned as it is.
    """
    padding = {"input_ids": tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id, "attention_mask": 0}

    def collate(examples: list[dict[str, Any]] | dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        if isinstance(examples, dict):
            return examples
        columns = {key: [example[key] for example in examples] for key in examples[0]}
        batch = {}
        if "labels" in columns:
            batch["labels"] = torch.tensor(columns["labels"], dtype=torch.float32)  # (batch,)
        if "score_map" in columns:
            batch["score_maps"] = torch.tensor(columns["score_map"], dtype=torch.float32)
        if anchors is not None and "anchor_rows" in columns:
            batch["anchors"] = torch.from_numpy(anchors[columns["anchor_rows"]])
        are_pairs = isinstance(next(iter(columns["input_ids"][0]), None), list)
        inputs = {
            key: list(chain.from_iterable(rows)) if are_pairs else rows
            for key, rows in columns.items()
            if key in padding
        }
        lengths = _lengths(inputs["input_ids"])
        is_token = np.arange(lengths.max()) < lengths[:, None]  # (sentences, length)
        arrays = {"attention_mask": is_token.astype(np.int64)}
        for key, rows in inputs.items():
            arrays[key] = np.full(is_token.shape, padding[key], dtype=np.int64)
            arrays[key][is_token] = np.fromiter(chain.from_iterable(rows), np.int64, count=lengths.sum())
        for key, array in arrays.items():
            tensor = torch.from_numpy(array)
            batch[key] = tensor.unflatten(0, (-1, 2)) if are_pairs else tensor  # (batch, 2, length) or (batch, length)
        return batch

    return collate
