"""The pipeline of graded similarity: pairs of texts in, grades out.

    pipeline("semantic-textual-similarity", model=folder_or_hub_id, trust_remote_code=True)

The file is copied into every checkpoint beside the model, and `config.json` names it.
"""

import itertools
import math
import reprlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import GeneratorType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import Dataset
from transformers import Pipeline, PretrainedConfig, PreTrainedTokenizerBase

from .losses_sts_regression import nearest_label_index

PAIR_KEYS = (("sentence1", "sentence2"), ("text", "text_pair"))
TRUNCATED, UNKNOWN = "truncated", "unknown"  # reasons why a score may be unreliable
# Fast tokenizers keep the options of a call as their state, so threads that share one take turns.
TOKENIZER_LOCK = threading.Lock()


class STSRegressionPipeline(Pipeline):
    """
    Grades pairs of texts with a checkpoint.

    A pair is a tuple or list of two strings, or a dictionary with `sentence1` and `sentence2` or with `text` and
    `text_pair`; other keys are ignored. The checkpoint's prefixes are added; texts longer than the tokenizer's
    `model_max_length` in tokens are truncated.

    Example:
    ```python
    >>> from transformers import pipeline
    >>> grade = pipeline("semantic-textual-similarity", model="outputs/pairs-smooth_k2", trust_remote_code=True)
    >>> grade([("the cat", "a cat"), ("the cat", "a house")], batch_size=32)
    ```
    """

    model: Any  # an STSRegressionModel, whose module imports this one
    tokenizer: PreTrainedTokenizerBase  # type: ignore[assignment] # fast tokenizers, too

    # transformers itself sets these flags to None, and states no other type.
    _load_tokenizer = True  # type: ignore[assignment]
    _load_processor = False  # type: ignore[assignment]
    _load_image_processor = False  # type: ignore[assignment]
    _load_video_processor = False  # type: ignore[assignment]
    _load_feature_extractor = False  # type: ignore[assignment]

    def __call__(self, inputs: Any, **options: Any) -> Any:  # type: ignore[override] # no further positions
        """
        Grades one pair, or several.

        Args:
            inputs: a pair, or a list, dataset or other iterable of pairs.
            **options: `batch_size` (pairs, 1 by default) and `num_workers`, as for every pipeline.

        Returns:
            A `dict` for one pair: `score` (`float`) on the label scale; `grade`, the name of the grade, or its value
            if grades have no names (`int` if all are whole numbers); `low` and `high` (`float`), the interval of the
            label, if it was learned; `cosine` (`float`) of a bi-encoder; and `unreliable`, see [`unreliable_pairs`].
            Score and grade are missing if the loss trained no head. A list of dictionaries for a list of pairs; for
            other iterables, an iterator that scores pairs as it is read.

        Raises:
            ValueError: for an input that is not a pair of texts.
        """
        if isinstance(inputs, list | tuple):
            is_pair = any(isinstance(item, str) for item in inputs)  # or is meant to be one
            inputs = tuple(inputs) if is_pair else list(inputs)
            if not inputs:
                return []
        elif isinstance(inputs, Iterable) and not isinstance(inputs, str | Mapping | Dataset | GeneratorType):
            inputs = (pair for pair in inputs)
        return super().__call__(inputs, **options)

    # The four steps of a pipeline. In transformers, each takes options, too; these steps have none.

    def _sanitize_parameters(self) -> tuple[dict[str, Any], ...]:  # type: ignore[override]
        return {}, {}, {}

    def preprocess(self, pair: Any) -> dict[str, tuple[str, str]]:  # type: ignore[override]
        texts: Any = pair
        if isinstance(pair, Mapping):
            texts = next((tuple(pair[key] for key in keys) for keys in PAIR_KEYS if set(keys) <= set(pair)), None)
        if not isinstance(texts, list | tuple) or not _are_two_texts(texts):
            raise ValueError(
                "`inputs` must be pairs of two strings, each a tuple, a list or a dictionary with the keys "
                f"`sentence1` and `sentence2` or `text` and `text_pair`, but hold {reprlib.repr(pair)}."
            )
        if not all(map(is_whole_text, texts)):
            raise ValueError(
                f"`inputs` hold {reprlib.repr(pair)}, with half of a character (a lone surrogate). Correct it."
            )
        return {"pair": (texts[0], texts[1])}

    def _forward(self, model_inputs: dict[str, Any]) -> dict[str, Any]:  # type: ignore[override]
        config, pairs = self.model.config, model_inputs["pair"]  # in a batch, a list of pairs
        first: Sequence[str]
        second: Sequence[str]
        first, second = zip(*([pairs] if isinstance(pairs[0], str) else pairs), strict=True)
        unreliable = unreliable_pairs(first, second, self.tokenizer, config)
        if config.encoder_type == "cross-encoder":
            score = {"score": self.model(**self._tokenize(list(first), list(second))).scores}
            return {**score, "unreliable": unreliable}
        first, second = (with_prefix(side, p) for side, p in zip((first, second), config.prefixes, strict=True))
        row_of = {text: row for row, text in enumerate(dict.fromkeys([*first, *second]))}  # each text is encoded once
        embeddings = self.model.get_text_features(**self._tokenize(list(row_of)))
        u, v = (embeddings[[row_of[text] for text in texts]] for texts in (first, second))
        score = {"score": self.model.score_embeddings(u, v)} if config.head_is_trained else {}
        return {**score, "cosine": F.cosine_similarity(u.float(), v.float()), "unreliable": unreliable}

    def postprocess(self, model_outputs: dict[str, Any]) -> dict[str, Any]:  # type: ignore[override]
        unreliable = model_outputs.pop("unreliable")  # a list of one text, or the text that was taken from a batch
        result: dict[str, Any] = {name: value.item() for name, value in model_outputs.items()}
        if not all(map(math.isfinite, result.values())):
            raise ValueError(f"the model gives {result}, NaN or infinite scores. Its weights are damaged.")
        if "score" in result:
            config, scores = self.model.config, model_outputs["score"].reshape(1)
            result["grade"] = grades_of(config)[int(grade_indices(scores, config))]
            if ends := score_intervals(scores, config):
                result["low"], result["high"] = (end.item() for end in ends)
        return {**result, "unreliable": unreliable if isinstance(unreliable, str) else unreliable[0]}

    def _tokenize(self, texts: list[str], second_texts: list[str] | None = None) -> dict[str, Tensor]:
        options = {"padding": True, "padding_side": "right", "return_tensors": "pt"}
        return self.ensure_tensor_on_device(**tokenize_texts(texts, self.tokenizer, second_texts, **options))


def map_scores(scores: Tensor, grading: Mapping[str, Any] | None) -> Tensor:
    """
    Maps raw scores of the head to the label scale. The map is increasing, so ranks do not change.

    Args:
        scores (`Tensor` of any shape).
        grading: `grading` of the configuration; `None` for no map.

    Returns:
        `Tensor` of the same shape, in float32 at least if there is a map.
    """
    if grading is None:
        return scores
    knots, values = grading["score_map"]["knots"], grading["score_map"]["values"]
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    mapped, last = torch.full_like(scores, values[0]), len(knots) - 2
    for segment, ((start, end), (lower, upper)) in enumerate(
        zip(itertools.pairwise(knots), itertools.pairwise(values), strict=True)
    ):
        beyond = scores - start
        if segment > 0:
            beyond = beyond.clamp(min=0)
        if segment < last:
            beyond = beyond.clamp(max=end - start)
        mapped = mapped + (upper - lower) / (end - start) * beyond  # only increasing terms, so that none cancel
    return mapped


def grade_indices(scores: Tensor, config: PretrainedConfig) -> Tensor:
    """
    Index of the grade of each score: by the learned cut points, or else the nearest node.

    Args:
        scores (`Tensor` of any shape): scores on the label scale.
        config: the configuration of the model, an [`STSRegressionConfig`].

    Returns:
        `Tensor` of the same shape, dtype int64.
    """
    if config.cut_points is None:
        return nearest_label_index(scores.float(), config.label_values)
    return torch.bucketize(scores.double(), scores.new_tensor(config.cut_points, dtype=torch.float64), right=True)


def grades_of(config: PretrainedConfig) -> list[Any]:
    """The grades, lowest first: their names, or else their values, as `int` if all of them are whole numbers."""
    if config.label_names is not None:
        return list(config.label_names)
    is_whole = all(float(value).is_integer() for value in config.label_values)
    return [int(value) if is_whole else value for value in config.label_values]


def score_intervals(scores: Tensor, config: PretrainedConfig) -> tuple[Tensor, Tensor] | None:
    """
    Intervals that contain the true labels of pairs, with the probability in the configuration.

    Args:
        scores (`Tensor` of shape `(pairs,)`): scores on the label scale.
        config: the configuration of the model, an [`STSRegressionConfig`].

    Returns:
        Lower and upper ends, each a `Tensor` of shape `(pairs,)`. An interval always contains the grade, or, if labels
        lie between grades, the score clamped to the scale. `None` if there were too few held-out pairs to learn from.
    """
    intervals = (config.grading or {}).get("intervals")
    if intervals is None:
        return None
    raw = scores.double()
    labels = raw.new_tensor(intervals["labels"])
    lowest = raw.new_tensor([-math.inf if bound is None else bound for bound in intervals["lowest"]])
    highest = raw.new_tensor([math.inf if bound is None else bound for bound in intervals["highest"]])
    first = torch.bucketize(raw, highest)
    last = torch.bucketize(raw, lowest, right=True) - 1
    low, high = (
        labels[end.clamp(0, len(labels) - 1)] for end in (torch.minimum(first, last), torch.maximum(first, last))
    )
    if list(intervals["labels"]) == list(config.label_values):
        centre = labels[grade_indices(scores, config)]
    else:
        centre = raw.clamp(config.label_values[0], config.label_values[-1])
    return torch.minimum(low, centre), torch.maximum(high, centre)


def unreliable_pairs(
    sentences1: Sequence[str],
    sentences2: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    config: PretrainedConfig,
) -> list[str]:
    """
    Marks pairs that the model cannot read in full: it may not tell two different texts apart.

    Args:
        sentences1: first text of each pair.
        sentences2: second text of each pair.
        tokenizer: the model's tokenizer.
        config: the configuration of the model, an [`STSRegressionConfig`].

    Returns:
        For each pair an empty string, or its problems: "truncated" if a text is longer than the tokenizer's
        `model_max_length`; "unknown" if at least half of a text's tokens are not in the vocabulary, or it has none, or
        if the texts differ only in such tokens.
    """
    sides = (sentences1, sentences2)
    distinct = list(dict.fromkeys([*sentences1, *sentences2]))
    if not distinct:
        return []
    tokens = _call(tokenizer, distinct, truncation=True, add_special_tokens=False)["input_ids"]
    ids_of = dict(zip(distinct, tokens, strict=True))
    if config.encoder_type == "cross-encoder":
        lengths = [
            [len(ids) for ids in _call(tokenizer, list(side), add_special_tokens=False, verbose=False)["input_ids"]]
            for side in sides
        ]
        limit = tokenizer.model_max_length - tokenizer.num_special_tokens_to_add(pair=True)
        truncated = [[sum(pair) > limit for pair in zip(*lengths, strict=True)]]
    else:
        truncated = [
            _are_truncated(with_prefix(side, prefix), tokenizer)
            for side, prefix in zip(sides, config.prefixes, strict=True)
        ]
    return [
        ", ".join([TRUNCATED] * any(flags) + [UNKNOWN] * _is_unknown(pair, ids_of, tokenizer.unk_token_id))
        for flags, *pair in zip(zip(*truncated, strict=True), *sides, strict=True)
    ]


def _are_truncated(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[bool]:
    """Whether each text is longer than the tokenizer's limit."""
    distinct = list(dict.fromkeys(texts))
    if tokenizer.is_fast:
        flags = [bool(encoding.overflowing) for encoding in _call(tokenizer, distinct, truncation=True).encodings]
    else:
        flags = [
            len(ids) > tokenizer.model_max_length for ids in _call(tokenizer, distinct, verbose=False)["input_ids"]
        ]
    is_truncated = dict(zip(distinct, flags, strict=True))
    return [is_truncated[text] for text in texts]


def _is_unknown(pair: Sequence[str], ids_of: Mapping[str, Sequence[int]], unknown_id: int | None) -> bool:
    """Whether half of a text's tokens are unknown, or it has none, or unknown tokens alone set the texts apart."""
    first, second = (ids_of[text] for text in pair)
    return any(2 * ids.count(unknown_id) >= len(ids) for ids in (first, second)) or (
        first == second and unknown_id in first and len({tuple(text.casefold().split()) for text in pair}) > 1
    )


def is_whole_text(text: str) -> bool:
    """Whether a text has no lone surrogate: half of a character, which no tokenizer takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def with_prefix(texts: Sequence[str], prefix: str) -> list[str]:
    """The texts, each with the prefix that the encoder expects in front."""
    return [prefix + text for text in texts] if prefix else list(texts)


def tokenize_texts(
    texts: list[str],
    tokenizer: PreTrainedTokenizerBase,
    second_texts: list[str] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """
    Tokenises texts, or, with `second_texts`, pairs as one sequence each; returns lists by name of the model input.

    Sequences longer than the tokenizer's `model_max_length` are truncated; in a pair, the longer text first.
    `options` go to the tokenizer, for example `return_tensors`.
    """
    if second_texts is None:
        return dict(_call(tokenizer, texts, truncation=True, **options))
    return dict(_call(tokenizer, *shortened_pairs(texts, second_texts, tokenizer), truncation=True, **options))


def _call(tokenizer: PreTrainedTokenizerBase, *texts: Any, **options: Any) -> Any:
    with TOKENIZER_LOCK:
        return tokenizer(*texts, **options)


def shortened_pairs(
    texts: Sequence[str], second_texts: Sequence[str], tokenizer: PreTrainedTokenizerBase
) -> tuple[list[str], list[str]]:
    """
    Cuts the two texts of each pair after their first `model_max_length` tokens.

    When the tokenizers library truncates a pair, its memory grows with the square of the part that is cut off: a text
    of 100,000 characters exhausted a machine with 24 GB.
    """
    first, second, limit = list(texts), list(second_texts), tokenizer.model_max_length
    long = [row for row, pair in enumerate(zip(first, second, strict=True)) if max(map(len, pair)) > limit]
    if not long or not tokenizer.is_fast or tokenizer.truncation_side == "left":
        return first, second
    of_first, of_second = (
        _call(tokenizer, [side[row] for row in long], add_special_tokens=False, verbose=False).encodings
        for side in (first, second)
    )
    for row, one, other in zip(long, of_first, of_second, strict=True):
        # The longer text must stay the longer one: truncation gives it the odd token.
        for side, encoding, kept in ((first, one, limit + (len(one) > len(other))), (second, other, limit)):
            if len(encoding) > kept:
                side[row] = side[row][: encoding.token_to_chars(kept - 1)[1]]
    return first, second


def _are_two_texts(values: list[Any] | tuple[Any, ...]) -> bool:
    return len(values) == 2 and all(isinstance(value, str) for value in values)
