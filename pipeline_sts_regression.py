"""The pipeline of graded similarity: pairs of texts in, grades out.

    pipeline("semantic-textual-similarity", model=folder_or_hub_id, trust_remote_code=True)

The file is copied into every checkpoint beside the model, and `config.json` names it.
"""

import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from types import GeneratorType
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import Dataset
from transformers import Pipeline, PreTrainedTokenizerBase

from .losses_sts_regression import nearest_label_index

PAIR_KEYS = (("sentence1", "sentence2"), ("text", "text_pair"))
LONG_TEXT = 20  # characters per token of the limit, from which a text is cut before it is paired


class STSRegressionPipeline(Pipeline):
    """
    Grades pairs of texts with a checkpoint.

    A pair is a tuple or list of two strings, or a dictionary with `sentence1` and `sentence2` or with `text` and
    `text_pair`; other keys are ignored. The checkpoint's prefixes are added; texts longer than the tokenizer's
    `model_max_length` in tokens are cut.

    Example:
    ```python
    >>> from transformers import pipeline
    >>> grade = pipeline("semantic-textual-similarity", model="outputs/pairs-smooth_k2", trust_remote_code=True)
    >>> grade([("the cat", "a cat"), ("the cat", "a house")], batch_size=32)
    ```
    """

    _load_tokenizer = True
    _load_processor = False
    _load_image_processor = False
    _load_video_processor = False
    _load_feature_extractor = False

    def __call__(self, inputs: Any, **options: Any) -> Any:
        """
        Grades one pair, or several.

        Args:
            inputs: a pair, or pairs: a list, a dataset or anything else that can be iterated.
            **options: `batch_size` (pairs, 1 by default) and `num_workers`, as for every pipeline.

        Returns:
            `dict` for one pair: `score` (`float`) on the label scale, `grade`, name of the nearest grade, or its value
            where grades have no names, and from a bi-encoder `cosine` (`float`); that alone where the loss trained no
            head. A list of these for a list, and an iterator over them, filled as it is read, for what else holds
            pairs.

        Raises:
            ValueError: where something is no pair.
        """
        if isinstance(inputs, list | tuple):
            inputs = tuple(inputs) if _are_two_texts(inputs) else list(inputs)
            if not inputs:
                return []
        elif isinstance(inputs, Iterable) and not isinstance(inputs, str | Mapping | Dataset | GeneratorType):
            inputs = (pair for pair in inputs)
        return super().__call__(inputs, **options)

    def _sanitize_parameters(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        return {}, {}, {}

    def preprocess(self, pair: Any) -> dict[str, tuple[str, str]]:
        texts: Any = pair
        if isinstance(pair, Mapping):
            texts = next((tuple(pair[key] for key in keys) for keys in PAIR_KEYS if set(keys) <= set(pair)), None)
        if not isinstance(texts, list | tuple) or not _are_two_texts(texts):
            raise ValueError(
                "`inputs` must be pairs of two strings, each a tuple, a list or a dictionary with the keys "
                f"`sentence1` and `sentence2` or `text` and `text_pair`, but hold {reprlib.repr(pair)}."
            )
        return {"pair": (texts[0], texts[1])}

    def _forward(self, model_inputs: dict[str, Any]) -> dict[str, Tensor]:
        config, pairs = self.model.config, model_inputs["pair"]  # a list of them in a batch
        first, second = zip(*([pairs] if isinstance(pairs[0], str) else pairs), strict=True)
        if config.encoder_type == "cross-encoder":
            return {"score": self.model(**self._tokenize(list(first), list(second))).scores}
        first, second = (with_prefix(side, p) for side, p in zip((first, second), config.prefixes, strict=True))
        row_of = {text: row for row, text in enumerate(dict.fromkeys([*first, *second]))}  # each text is encoded once
        embeddings = self.model.get_text_features(**self._tokenize(list(row_of)))
        u, v = (embeddings[[row_of[text] for text in texts]] for texts in (first, second))
        score = {"score": self.model.score_embeddings(u, v)} if config.trains_head else {}
        return {**score, "cosine": F.cosine_similarity(u.float(), v.float())}

    def postprocess(self, model_outputs: dict[str, Tensor]) -> dict[str, Any]:
        result: dict[str, Any] = {name: value.item() for name, value in model_outputs.items()}
        if not all(map(math.isfinite, result.values())):
            raise ValueError(f"the model gives {result}, NaN or infinite scores. Its weights are damaged.")
        if "score" in result:
            config = self.model.config
            nearest = nearest_label_index(model_outputs["score"].float(), config.label_values).item()
            result["grade"] = (config.label_names or config.label_values)[nearest]
        return result

    def _tokenize(self, texts: list[str], second_texts: list[str] | None = None) -> dict[str, Tensor]:
        options = {"padding": True, "padding_side": "right", "return_tensors": "pt"}
        return self.ensure_tensor_on_device(**tokenize_texts(texts, self.tokenizer, second_texts, **options))


def with_prefix(texts: Sequence[str], prefix: str) -> list[str]:
    """The texts behind the prefix that the encoder expects."""
    return [prefix + text for text in texts] if prefix else list(texts)


def tokenize_texts(
    texts: list[str],
    tokenizer: PreTrainedTokenizerBase,
    second_texts: list[str] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """
    The tokenizer's model inputs of texts, or of pairs in one sequence with `second_texts`; a list per text.

    What is longer than the tokenizer's `model_max_length` is cut; of a pair, the longer text first. `options` are
    those of the tokenizer, such as `return_tensors`.
    """
    if second_texts is None:
        return dict(tokenizer(texts, truncation=True, **options))
    first, second = ([_shorten(text, tokenizer) for text in column] for column in (texts, second_texts))
    return dict(tokenizer(first, second, truncation=True, **options))


def _shorten(text: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """
    Cuts a very long text behind its first `model_max_length` tokens.

    Truncating a pair takes the tokenizers library memory that grows with the square of what is cut off: a text of
    100,000 characters exhausted a machine of 24 GB.
    """
    if len(text) <= LONG_TEXT * tokenizer.model_max_length or not tokenizer.is_fast:
        return text
    offsets = tokenizer(text, truncation=True, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return text[: offsets[-1][1]] if offsets else text


def _are_two_texts(values: list[Any] | tuple[Any, ...]) -> bool:
    return len(values) == 2 and all(isinstance(value, str) for value in values)
