"""Embeds sentences and scores pairs outside training: each distinct text once, long texts first."""

import reprlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.foreign_modules import check_foreign_modules
from sts_regression.models.remote_code import code_failures_explained
from sts_regression.models.sentence_transformers_files import read_module_list
from sts_regression.models.tokenization import pair_collator, tokens_of
from sts_regression.models.weight_limits import within_weights
from sts_regression.pipeline_sts_regression import is_whole_text, with_prefix

# Tokens of a batch. Small batches stay in the caches of a CPU; an accelerator needs large ones.
BATCH_TOKENS_ON_CPU = 2048
BATCH_TOKENS = 16_384
LIBRARY_BATCH_SIZE = 64  # sentences, for sentence-transformers
SCORED_AT_ONCE = 8192  # pairs; bounds the memory of their features

Texts = str | Sequence[str] | np.ndarray  # a single string is one text
Embeddings = Tensor | np.ndarray
T = TypeVar("T")
# Maps the first and the second sentences of pairs to arrays of shape (pairs,) by the name of the score.
Scorer = Callable[[list[str], list[str]], dict[str, np.ndarray]]


def encode_sentences(
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Texts,
    batch_tokens: int | None = None,
    show_progress: bool = False,
    prefix: str = "",
) -> Tensor:
    """
    Embeddings of sentences, computed on the model's device without dropout and gradients.

    Args:
        model: a bi-encoder.
        tokenizer: the model's tokenizer; sentences are truncated to its `model_max_length` tokens.
        sentences: a string, or a list, tuple or array of strings. Equal sentences are encoded once.
        batch_tokens: tokens per forward pass; a batch holds sentences of similar length. Default: 2,048 on a CPU,
            16,384 elsewhere.
        show_progress: whether to draw a progress bar.
        prefix: text to put in front of each sentence: the model's prefix for first or for second sentences.

    Returns:
        `Tensor` of shape (sentences, hidden), float32, on the CPU, not normalised; of shape (1, hidden) for a string.

    Raises:
        ValueError: for inputs other than strings.
    """
    texts = text_list("sentences", sentences)
    if not texts:
        return torch.empty(0, model.config.encoder_config.hidden_size)
    distinct, rows = distinct_rows(with_prefix(texts, prefix))
    encoded = tokens_of(distinct, tokenizer)
    return in_batches(model, model.get_text_features, tokenizer, encoded, batch_tokens, show_progress)[rows]


def score_with_embeddings(
    encode: Callable[[list[str]], Embeddings],
    sentences1: Texts,
    sentences2: Texts,
    score_embeddings: Callable[[Tensor, Tensor], Tensor] | None = None,
    normalize: bool = False,
    prefixes: tuple[str, str] = ("", ""),
) -> dict[str, np.ndarray]:
    """
    Scores pairs by their embeddings.

    Args:
        encode: maps sentences to embeddings of shape (sentences, hidden).
        sentences1: first sentence of each pair: a string, or a list, tuple or array of strings.
        sentences2: second sentence of each pair, in the same form.
        score_embeddings: the head, if it is trained: maps two tensors of shape (pairs, hidden) to scores of shape
            (pairs,).
        normalize: whether the model's embeddings should have length 1, so that dot product and cosine are the same.
        prefixes: texts to put in front of the first and the second sentences.

    Returns:
        A `dict` of arrays of shape (pairs,): `cosine`, `dot` and, with a head, `head` on the label scale.

    Raises:
        ValueError: for inputs other than strings, for different numbers of first and second sentences, and for scores
            that are NaN or infinite.
    """
    first, second = _as_pairs(sentences1, sentences2)
    encoded = encode([*with_prefix(first, prefixes[0]), *with_prefix(second, prefixes[1])])
    embeddings = as_tensor("encode", encoded).float().cpu()
    parts: dict[str, list[Tensor]] = {}
    halves = (embeddings[: len(first)], embeddings[len(first) :])
    with torch.inference_mode():
        for u, v in zip(*(half.split(SCORED_AT_ONCE) for half in halves), strict=True):
            parts.setdefault("cosine", []).append(F.cosine_similarity(u, v, dim=-1))
            cosine = parts["cosine"][-1]
            parts.setdefault("dot", []).append(cosine if normalize else (u * v).sum(dim=-1))
            if score_embeddings is not None:
                parts.setdefault("head", []).append(score_embeddings(u, v).float().cpu())
    return finite_scores({name: torch.cat(values).numpy() for name, values in parts.items()})


def finite_scores(scores: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """
    The scores, if all are finite.

    Raises:
        ValueError: for scores that are NaN or infinite; the message names the first kind.
    """
    for name, values in scores.items():
        if not np.isfinite(values).all():
            raise ValueError(
                f"{np.count_nonzero(~np.isfinite(values)):,} of {len(values):,} scores ({name}) are NaN or infinite. "
                "The model's weights are damaged, or its numbers overflow: try it in float32."
            )
    return scores


def score_with_cross_encoder(
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    sentences1: Texts,
    sentences2: Texts,
    batch_tokens: int | None = None,
    show_progress: bool = False,
) -> dict[str, np.ndarray]:
    """As [`score_with_embeddings`], for a cross-encoder, which gives `head` scores only."""

    def score(**inputs: Tensor) -> Tensor:
        return model(**inputs).scores

    first, second = _as_pairs(sentences1, sentences2)
    if not first:
        return {"head": np.empty(0, np.float32)}
    encoded = tokens_of(first, tokenizer, second)
    return finite_scores({"head": in_batches(model, score, tokenizer, encoded, batch_tokens, show_progress).numpy()})


def model_scorer(
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    show_progress: bool = False,
) -> Scorer:
    """
    A function that scores pairs of sentences with one of our models.

    Args:
        model: bi-encoder or cross-encoder.
        tokenizer: the model's tokenizer.
        show_progress: whether to draw a progress bar.

    Raises:
        ValueError: for a cross-encoder without a trained head, which has no scores.
    """
    if model.config.encoder_type == "cross-encoder":
        if not model.config.head_is_trained:
            raise ValueError("a cross-encoder without a trained head has no scores. Train it first.")
        return partial(score_with_cross_encoder, model, tokenizer, show_progress=show_progress)
    return partial(
        score_with_embeddings,
        partial(encode_sentences, model, tokenizer, show_progress=show_progress),
        score_embeddings=_scores_on_device(model) if model.config.head_is_trained else None,
        normalize=model.config.normalize_embeddings,
        prefixes=model.config.prefixes,
    )


def sentence_transformers_scorer(
    path: str,
    device: torch.device,
    revision: str = "main",
    trust_remote_code: bool = False,
    show_progress: bool = False,
) -> Scorer:
    """
    A function that scores pairs with the sentence-transformers library, for models with modules that ours lacks.

    Raises:
        ValueError: if the library is not installed, and, without `trust_remote_code`, if the model's files ask for
            other code than the library's own; see [`check_foreign_modules`].
    """
    if not trust_remote_code:
        check_foreign_modules(path, revision)
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ValueError(
            f"`model_name_or_path`: {path!r} needs the sentence-transformers library. Install it with `pip install "
            '".[sentence-transformers]"`.'
        ) from error
    folders = dict.fromkeys(["", *(module["path"] for module in read_module_list(path, revision) or [])])
    with code_failures_explained(path, trust_remote_code), within_weights(path, revision, [*folders]):
        transformer = SentenceTransformer(
            path, device=str(device), revision=revision, trust_remote_code=trust_remote_code
        )

    def encode(sentences: list[str]) -> Tensor:
        distinct, rows = distinct_rows(sentences)
        embeddings = transformer.encode(
            distinct, batch_size=LIBRARY_BATCH_SIZE, convert_to_tensor=True, show_progress_bar=show_progress
        )
        return embeddings.float().cpu()[rows]

    return partial(score_with_embeddings, encode)


def as_tensor(name: str, embeddings: Embeddings) -> Tensor:
    """
    Returns a tensor as it is, and an array as a tensor, with shared memory if possible.

    Raises:
        ValueError: for other types, and for an array that does not hold numbers.
    """
    if isinstance(embeddings, Tensor):
        return embeddings
    if not isinstance(embeddings, np.ndarray):
        raise ValueError(
            f"`{name}` must be a tensor or an array of embeddings, but is of type {type(embeddings).__name__}. Give "
            "the output of `encode_sentences`."
        )
    if embeddings.dtype.kind not in "fiu":
        raise ValueError(f"`{name}` must hold numbers, but its type is {embeddings.dtype}. Convert it to float32.")
    # torch supports neither negative strides nor a foreign byte order, and warns about read-only memory.
    native = np.ascontiguousarray(embeddings, embeddings.dtype.newbyteorder("="))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
        return torch.from_numpy(native)


def text_list(name: str, texts: Texts | Iterable[str]) -> list[str]:
    """
    The texts as a list; a single string is one text, not a sequence of characters.

    Args:
        name: the name of the argument, for messages.
        texts: a string, or strings in an array or another iterable.

    Raises:
        ValueError: for other inputs, and for half of a character; the message names the item.
    """
    values: Any = texts.tolist() if isinstance(texts, np.ndarray) else texts
    if isinstance(values, str):
        values = [values]
    if hasattr(values, "columns"):
        raise ValueError(f"`{name}` must be strings, but is a table. Give one of its columns.")
    if not isinstance(values, Iterable) or isinstance(values, Mapping | bytes):
        raise ValueError(f"`{name}` must be a string or strings, but is {reprlib.repr(values)}. Give a list.")
    values = list(values)
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise ValueError(f"`{name}` must hold strings, but item {i} is {reprlib.repr(value)}. Correct it.")
        if not is_whole_text(value):
            raise ValueError(
                f"`{name}`: item {i} is {value!r:.40}, half of a character (a lone surrogate). Correct it."
            )
    return values


def _as_pairs(sentences1: Texts, sentences2: Texts) -> tuple[list[str], list[str]]:
    first, second = text_list("sentences1", sentences1), text_list("sentences2", sentences2)
    if len(first) != len(second):
        raise ValueError(
            "`sentences1` and `sentences2` must hold the same number of sentences, but hold "
            f"{len(first):,} and {len(second):,}. Give two for each pair."
        )
    return first, second


def distinct_rows(texts: Sequence[T]) -> tuple[list[T], Tensor]:
    """The distinct texts, as strings or in another form, and for each text its row among them."""
    row_of = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    return list(row_of), torch.tensor([row_of[text] for text in texts])


def _scores_on_device(model: STSRegressionModel) -> Callable[[Tensor, Tensor], Tensor]:
    def score(u: Tensor, v: Tensor) -> Tensor:
        return model.score_embeddings(u.to(model.device), v.to(model.device))

    return score


def in_batches(
    model: STSRegressionModel,
    function: Callable[..., Tensor],
    tokenizer: PreTrainedTokenizerBase,
    encoded: Mapping[str, list[Any]],
    batch_tokens: int | None = None,
    show_progress: bool = False,
) -> Tensor:
    """
    The results of a function of the model for tokenised texts, long texts first.

    Args:
        model: the model, whose dropout is turned off meanwhile.
        function: maps inputs of the model, as keyword arguments, to results of shape (texts, …).
        tokenizer: the model's tokenizer.
        encoded: lists of token ids, and other lists that the tokenizer returns, by name.
        batch_tokens: see [`encode_sentences`].
        show_progress: whether to draw a progress bar.

    Returns:
        `Tensor` of shape (texts, …), in the order of the texts, float32, on the CPU.
    """
    if batch_tokens is None:
        batch_tokens = BATCH_TOKENS_ON_CPU if model.device.type == "cpu" else BATCH_TOKENS
    collate = pair_collator(tokenizer)
    lengths = [len(ids) for ids in encoded["input_ids"]]
    # Long texts come first: the batch that needs most memory then fails at once or never.
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    parts = []
    was_training = model.training
    model.eval()
    bar = tqdm(total=len(order), desc="Encoding", leave=False, disable=not show_progress)
    with torch.inference_mode(), bar as progress:
        start = 0
        while start < len(order):
            rows = order[start : start + max(1, batch_tokens // max(1, lengths[order[start]]))]
            start += len(rows)
            batch = collate([{key: values[row] for key, values in encoded.items()} for row in rows])
            inputs = {key: tensor.to(model.device) for key, tensor in batch.items()}
            parts.append(function(**inputs).float().cpu())
            progress.update(len(rows))
    model.train(was_training)
    return torch.cat(parts)[torch.tensor(order).argsort()]
