"""Embedding many sentences and scoring many pairs outside training: each distinct text once, long ones first."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.pipeline_sts_regression import tokenize_texts, with_prefix
from sts_regression.tokenization import pair_collator

# Tokens of a batch. On a CPU small ones stay in its caches; an accelerator wants to be filled.
BATCH_TOKENS_ON_CPU = 2048
BATCH_TOKENS = 16_384
LIBRARY_BATCH_SIZE = 64  # sentences, for sentence-transformers
SCORED_AT_ONCE = 8192  # pairs; bounds the memory of their features


def encode_sentences(
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[str],
    batch_tokens: int | None = None,
    show_progress: bool = False,
    prefix: str = "",
) -> Tensor:
    """
    Embeddings of sentences, computed on the model's device without dropout and gradients.

    Args:
        model: a bi-encoder.
        tokenizer: the model's; sentences are cut to its `model_max_length` tokens.
        sentences: any number, in any order. Equal ones are encoded once.
        batch_tokens: tokens per forward pass; a batch holds sentences of similar length. Default: 2,048 on a CPU,
            16,384 elsewhere.
        show_progress: whether to draw a progress bar.
        prefix: put in front of each sentence: the model's for the side of pairs that the sentences are on.

    Returns:
        `Tensor` of shape (sentences, hidden), float32, on the CPU, not normalised.
    """
    if not len(sentences):
        return torch.empty(0, model.config.encoder_config.hidden_size)
    distinct, rows = _distinct(with_prefix(sentences, prefix))
    encoded = tokenize_texts(distinct, tokenizer)
    return _in_batches(model, model.get_text_features, tokenizer, encoded, batch_tokens, show_progress)[rows]


def score_with_embeddings(
    encode: Callable[[Sequence[str]], Tensor],
    sentences1: Sequence[str],
    sentences2: Sequence[str],
    score_embeddings: Callable[[Tensor, Tensor], Tensor] | None = None,
    normalize: bool = False,
    prefixes: tuple[str, str] = ("", ""),
) -> dict[str, np.ndarray]:
    """
    What an encoder says of pairs.

    Args:
        encode: from sentences to embeddings of shape (sentences, hidden).
        sentences1: first sentence of each pair.
        sentences2: second sentence of each pair.
        score_embeddings: the head, where there is a trained one: from two tensors of shape (pairs, hidden) to scores
            of shape (pairs,).
        normalize: whether the model's embeddings are meant to have length 1, which makes dot and cosine the same.
        prefixes: put in front of the first and of the second sentences.

    Returns:
        `dict` of arrays of shape (pairs,): `cosine`, `dot` and, with a head, `head` on the label scale.

    Raises:
        ValueError: for scores that are NaN or infinite.
    """
    embeddings = encode([*with_prefix(sentences1, prefixes[0]), *with_prefix(sentences2, prefixes[1])])
    parts: dict[str, list[Tensor]] = {}
    halves = (embeddings[: len(sentences1)], embeddings[len(sentences1) :])
    with torch.inference_mode():
        for u, v in zip(*(half.split(SCORED_AT_ONCE) for half in halves), strict=True):
            parts.setdefault("cosine", []).append(F.cosine_similarity(u, v, dim=-1))
            cosine = parts["cosine"][-1]
            parts.setdefault("dot", []).append(cosine if normalize else (u * v).sum(dim=-1))
            if score_embeddings is not None:
                parts.setdefault("head", []).append(score_embeddings(u, v).float().cpu())
    return _checked({name: torch.cat(values).numpy() for name, values in parts.items()})


def _checked(scores: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """
    The scores, if all are finite.

    Raises:
        ValueError: naming the first score that is not.
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
    sentences1: Sequence[str],
    sentences2: Sequence[str],
    batch_tokens: int | None = None,
    show_progress: bool = False,
) -> dict[str, np.ndarray]:
    """As [`score_with_embeddings`], for a cross-encoder, which has a `head` only."""

    def score(**inputs: Tensor) -> Tensor:
        return model(**inputs).scores

    encoded = tokenize_texts(list(sentences1), tokenizer, list(sentences2))
    return _checked({"head": _in_batches(model, score, tokenizer, encoded, batch_tokens, show_progress).numpy()})


def model_scorer(
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    with_head: bool,
    show_progress: bool = False,
) -> Callable[[list[str], list[str]], dict[str, np.ndarray]]:
    """
    A function from the sentences of pairs to their scores by a model of this repository.

    Args:
        model: bi-encoder or cross-encoder.
        tokenizer: the model's.
        with_head: whether the head is trained.
        show_progress: whether to draw a progress bar.

    Raises:
        ValueError: for a cross-encoder without a trained head, which has no score at all.
    """
    if model.config.encoder_type == "cross-encoder":
        if not with_head:
            raise ValueError("a cross-encoder without a trained head has no scores. Train it first.")
        return partial(score_with_cross_encoder, model, tokenizer, show_progress=show_progress)
    return partial(
        score_with_embeddings,
        partial(encode_sentences, model, tokenizer, show_progress=show_progress),
        score_embeddings=_scores_on_device(model) if with_head else None,
        normalize=model.config.normalize_embeddings,
        prefixes=model.config.prefixes,
    )


def sentence_transformers_scorer(
    path: str,
    device: torch.device,
    revision: str = "main",
    trust_remote_code: bool = False,
    show_progress: bool = False,
) -> Callable[[list[str], list[str]], dict[str, np.ndarray]]:
    """
    The same by the sentence-transformers library, for what its models have and ours do not.

    Raises:
        ValueError: where the library is not installed.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ValueError(
            f"`model_name_or_path`: {path!r} needs the sentence-transformers library. Install it with `pip install "
            '".[sentence-transformers]"`.'
        ) from error
    transformer = SentenceTransformer(path, device=str(device), revision=revision, trust_remote_code=trust_remote_code)

    def encode(sentences: Sequence[str]) -> Tensor:
        distinct, rows = _distinct(sentences)
        embeddings = transformer.encode(
            distinct, batch_size=LIBRARY_BATCH_SIZE, convert_to_tensor=True, show_progress_bar=show_progress
        )
        return embeddings.float().cpu()[rows]

    return partial(score_with_embeddings, encode)


def _distinct(sentences: Sequence[str]) -> tuple[list[str], Tensor]:
    """The distinct sentences, and for each sentence its row among them."""
    row_of = {sentence: row for row, sentence in enumerate(dict.fromkeys(sentences))}
    return list(row_of), torch.tensor([row_of[sentence] for sentence in sentences])


def _scores_on_device(model: STSRegressionModel) -> Callable[[Tensor, Tensor], Tensor]:
    def score(u: Tensor, v: Tensor) -> Tensor:
        return model.score_embeddings(u.to(model.device), v.to(model.device))

    return score


def _in_batches(
    model: STSRegressionModel,
    function: Callable[..., Tensor],
    tokenizer: PreTrainedTokenizerBase,
    encoded: Mapping[str, list[Any]],
    batch_tokens: int | None,
    show_progress: bool,
) -> Tensor:
    """`function` on each tokenised text: (texts, …) in their order, float32, on the CPU."""
    if batch_tokens is None:
        batch_tokens = BATCH_TOKENS_ON_CPU if model.device.type == "cpu" else BATCH_TOKENS
    collate = pair_collator(tokenizer)
    lengths = [len(ids) for ids in encoded["input_ids"]]
    # Long texts first: the batch that needs most memory fails at once or never.
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    parts = []
    was_training = model.training
    model.eval()
    with torch.inference_mode(), tqdm(total=len(order), desc="Encoding", disable=not show_progress) as progress:
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
