"""The STS-Regression model: an encoder, pooling and a head, as bi-encoder or cross-encoder.

The method comes from "Advancing Semantic Textual Similarity Modeling: A Regression Framework with Translated ReLU and
Smooth K2 Loss" (EMNLP 2024), cited below as "the paper". This file and the `*_sts_regression.py` files beside it are
copied into every checkpoint and loaded there with `trust_remote_code=True`; they import torch and transformers only.
"""

import copy
import inspect
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import ModelOutput, SequenceClassifierOutput
from transformers.utils import can_return_tuple

from .configuration_sts_regression import GRADE_LOSSES, STSRegressionConfig, pin_code
from .encoder_sts_regression import POOLING_FUNCTIONS, build_encoder, encode_tokens
from .head_sts_regression import (
    SCORE_LOSSES,
    build_head,
    grade_logits,
    pair_features,
    pair_loss,
    raw_scores,
    start_as_cosine,
)
from .packing_sts_regression import prepare_packing
from .pipeline_sts_regression import STSRegressionPipeline, grade_indices, map_scores


@dataclass
class STSRegressionOutput(ModelOutput):
    """
    Output of [`STSRegressionModel`].

    Args:
        loss (`Tensor` of shape `()`, *optional*): returned when `labels` are given.
        scores (`Tensor` of shape `(batch,)`): similarity on the label scale; for cross-entropy, HL-Gauss and CORN,
            the expected grade under the predicted distribution.
        embeddings (`Tensor` of shape `(batch, 2, hidden)`, *optional*): u and v of a bi-encoder.
        logits (`Tensor` of shape `(batch, outputs)`): the output of the head; for regression losses, the score
            before it is calibrated.
    """

    loss: Tensor | None = None
    scores: Tensor | None = None
    embeddings: Tensor | None = None
    logits: Tensor | None = None


class STSRegressionModel(PreTrainedModel):
    """
    A text encoder with a head that grades the similarity of two sentences.

    Args:
        config ([`STSRegressionConfig`]): every option of the model.
        encoder (`PreTrainedModel`, *optional*): a pretrained encoder to wrap; its configuration replaces
            `config.encoder_config`. Without it, an encoder with random weights is built.
    """

    config: STSRegressionConfig
    encoder: PreTrainedModel
    head: nn.Linear

    config_class = STSRegressionConfig
    base_model_prefix = ""
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    # The attention implementation is the encoder's choice; the wrapper only passes it on.
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    # With a head in half precision, scores would have three significant digits.
    _keep_in_fp32_modules_strict = {"head"}  # noqa: RUF012 - transformers copies it
    # `forward` has **kwargs for PEFT; without this line, Trainer would treat the loss as a sum and rescale it.
    accepts_loss_kwargs = False
    _auto_class = "AutoModel"

    def __init__(self, config: STSRegressionConfig, encoder: PreTrainedModel | None = None) -> None:
        if encoder is not None:
            config = copy.copy(config)
            config.encoder_config = pin_code(encoder.config)
        super().__init__(config)
        self.encoder = build_encoder(config.encoder_config) if encoder is None else encoder
        if config.encoding == "auto":
            prepare_packing(self.encoder)
        self.head = build_head(config)
        self._encoder_accepts_token_types = "token_type_ids" in inspect.signature(self.encoder.forward).parameters
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if self.config.score_function == "cosine" and module is getattr(self, "head", None):
            start_as_cosine(self.head, self.config)

    if TYPE_CHECKING:
        # transformers decorates this method, and type checkers then count `self` as an argument.
        def to(self, *args: Any, **kwargs: Any) -> Self: ...  # type: ignore[override]

    @classmethod
    def from_pretrained(
        cls,
        *args: Any,
        dtype: torch.dtype | str | None = None,
        torch_dtype: torch.dtype | str | None = None,
        **kwargs: Any,
    ) -> Self:
        """
        Loads a checkpoint as transformers does, but in float32 unless `dtype` (or its old name `torch_dtype`) names
        another type, and completely.

        With `"auto"`, transformers would load a checkpoint in half precision if it was saved in it; scores would then
        have three significant digits. It would also fill in missing weights at random, and leave out others.

        Raises:
            ValueError: if weights and configuration do not fit. With `ignore_mismatched_sizes`, the head need not.
        """
        named = dtype or torch_dtype or "auto"
        dtype = torch.float32 if named == "auto" else named
        options = {**kwargs, "dtype": dtype, "output_loading_info": True, "ignore_mismatched_sizes": True}
        loaded: Any = super().from_pretrained(*args, **options)
        model, report = loaded
        unfit = {*report["missing_keys"], *report["unexpected_keys"], *(key for key, *_ in report["mismatched_keys"])}
        unfit -= {"head.weight", "head.bias"} if kwargs.get("ignore_mismatched_sizes") else set()
        if unfit:
            raise ValueError(
                f"the checkpoint's weights do not fit its config.json: {len(unfit)} are missing, superfluous or of "
                f"another shape, for example {min(unfit)!r}. One of the two files is damaged or was changed."
            )
        return loaded if kwargs.get("output_loading_info") else model

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], is_main_process: bool = True, *args: Any, **kwargs: Any
    ) -> None:
        """
        Saves a checkpoint as transformers does.

        A copy of the encoder for sentence-transformers in the folder would be that of earlier weights, and is deleted.
        The library then loads the checkpoint with `trust_remote_code`.
        """
        if is_main_process:
            _delete_encoder_copy(Path(save_directory))
        super().save_pretrained(save_directory, is_main_process, *args, **kwargs)

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.set_input_embeddings(value)

    def resize_token_embeddings(self, *args: Any, **kwargs: Any) -> nn.Embedding:
        """Resizes the encoder's vocabulary as transformers does; `encoder_config` follows."""
        return self.encoder.resize_token_embeddings(*args, **kwargs)

    def freeze_encoder(self) -> None:
        """Excludes the encoder from training: no gradients, and no dropout while the head trains."""
        self.encoder.requires_grad_(False)
        self.encoder.eval()

    def train(self, mode: bool = True) -> Self:
        if any(parameter.requires_grad for parameter in self.encoder.parameters()):
            return super().train(mode)
        # Trainer calls train() before every step. Dropout must stay off in a frozen encoder, so skip its modules.
        self.training = mode
        self.head.train(mode)
        if self.encoder.training:
            self.encoder.eval()
        return self

    def get_text_features(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """
        Embeddings of single sentences.

        Args:
            input_ids (`Tensor` of shape `(sentences, length)`).
            attention_mask (`Tensor` of the same shape, *optional*): defaults to no padding.
            token_type_ids (`Tensor` of the same shape, *optional*): ignored if the encoder knows no segments.

        Returns:
            `Tensor` of shape `(sentences, hidden)`, not normalised; zeros if no sentence has a token.
        """
        if input_ids.shape[1] == 0:
            return self.head.weight.new_zeros(len(input_ids), self.config.encoder_config.hidden_size)
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        inputs = {"attention_mask": attention_mask, **kwargs}
        if token_type_ids is not None and self._encoder_accepts_token_types:
            inputs["token_type_ids"] = token_type_ids
        hidden_states = encode_tokens(self.encoder, input_ids, self.config.encoding, **inputs)
        return POOLING_FUNCTIONS[self.config.pooling](hidden_states, attention_mask)

    def score_embeddings(self, u: Tensor, v: Tensor) -> Tensor:
        """
        Scores of embedded pairs, without running the encoder again.

        Args:
            u, v (`Tensor` of shape `(batch, hidden)`): embeddings from [`~STSRegressionModel.get_text_features`].

        Returns:
            `Tensor` of shape `(batch,)`, on the label scale.

        Raises:
            ValueError: for a cross-encoder, which has no sentence embeddings.
        """
        if self.config.encoder_type == "cross-encoder":
            raise ValueError(
                '`score_embeddings` needs sentence embeddings, which `encoder_type="cross-encoder"` does not have. '
                "Call the model on tokenised pairs."
            )
        return self.scores_from_logits(self._head(pair_features(u, v, self.config)))

    def score(self, pairs: Any, tokenizer: PreTrainedTokenizerBase, batch_size: int = 32) -> list[dict[str, Any]]:
        """
        Grades pairs of texts, see [`STSRegressionPipeline`].

        Args:
            pairs: pairs of two texts.
            tokenizer: the model's tokenizer.
            batch_size: the number of pairs that are scored together.

        Returns:
            A `dict` for each pair: `score` and `grade` if the head is trained, `low` and `high` if intervals were
            learned, `cosine` if the model is a bi-encoder, and `unreliable`.

        Raises:
            ValueError: for inputs that are not pairs of texts, such as a table.
        """
        was_training = self.training
        any_tokenizer: Any = tokenizer  # transformers' annotation names slow tokenizers only
        grade = STSRegressionPipeline(model=self.eval(), tokenizer=any_tokenizer, device=self.device)
        try:
            scored = grade(pairs, batch_size=batch_size)
            return [scored] if isinstance(scored, dict) else list(scored)
        finally:
            self.train(was_training)

    def predict_labels(self, scores: Tensor) -> Tensor:
        """
        The grade of each score, as a value of the label scale. Any shape.

        The learned cut points decide; without them, the grade is the nearest node: 3 for 2.875 on 0, 1, 2, 3.
        """
        index = grade_indices(scores, self.config)
        return torch.tensor(self.config.label_values, dtype=scores.dtype, device=scores.device)[index]

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        embeddings: Tensor | None = None,
        **kwargs: Any,
    ) -> STSRegressionOutput:
        """
        Scores pairs of sentences, and computes the loss if labels are given.

        Args:
            input_ids (`Tensor` of shape `(batch, 2, length)`; `(batch, length)` for a cross-encoder).
            attention_mask (`Tensor` of the same shape, *optional*): defaults to no padding.
            token_type_ids (`Tensor` of the same shape, *optional*): ignored if the encoder knows no segments.
            labels (`Tensor` of shape `(batch,)`, *optional*): gold labels on the label scale.
            embeddings (`Tensor` of shape `(batch, 2, hidden)`, *optional*): precomputed u and v of a bi-encoder, in
                place of `input_ids`.

        Returns:
            [`STSRegressionOutput`].

        Raises:
            ValueError: if `input_ids` have another shape.
        """
        if self.config.encoder_type == "cross-encoder":
            is_batch = input_ids is not None and input_ids.dim() == 2
            input_ids = _check_shape(input_ids, "(batch, length)", is_batch)
            logits = self._head(self.get_text_features(input_ids, attention_mask, token_type_ids, **kwargs))
        else:
            if embeddings is None:
                is_pairs = input_ids is not None and input_ids.dim() == 3 and input_ids.shape[1] == 2
                input_ids = _check_shape(input_ids, "(batch, 2, length)", is_pairs).flatten(0, 1)
                mask, types = (None if t is None else t.flatten(0, 1) for t in (attention_mask, token_type_ids))
                embeddings = self.get_text_features(input_ids, mask, types, **kwargs)
                embeddings = embeddings.unflatten(0, (-1, 2))  # (batch, 2, hidden)
            logits = self._head(pair_features(embeddings[:, 0], embeddings[:, 1], self.config))
        scores = self.scores_from_logits(logits)
        loss = None if labels is None else self.compute_loss(logits, scores, embeddings, labels)
        return STSRegressionOutput(loss=loss, scores=scores, embeddings=embeddings, logits=logits)

    def _head(self, features: Tensor) -> Tensor:
        # A score in bfloat16 has three significant digits and ties most pairs: keep the head out of mixed precision.
        with torch.autocast(features.device.type, enabled=False):
            return self.head(features.to(self.head.weight.dtype))

    def scores_from_logits(self, logits: Tensor) -> Tensor:
        """(batch, outputs) to (batch,), on the label scale."""
        return map_scores(raw_scores(logits, self.config), self.config.grading)

    def compute_loss(self, logits: Tensor, scores: Tensor, embeddings: Tensor | None, labels: Tensor) -> Tensor:
        """
        The loss of a batch from the outputs of [`STSRegressionModel.forward`].

        Args:
            logits (`Tensor` of shape `(batch, outputs)`).
            scores (`Tensor` of shape `(batch,)`).
            embeddings (`Tensor` of shape `(batch, 2, hidden)`, *optional*): u and v of a bi-encoder.
            labels (`Tensor` of shape `(batch,)`): gold labels on the label scale.
        """
        if labels.shape != scores.shape:
            raise ValueError(f"`labels` must have shape {tuple(scores.shape)}, but got {tuple(labels.shape)}.")
        return pair_loss(logits, scores, embeddings, labels, self.config)


class STSRegressionForSequenceClassification(STSRegressionModel):
    """
    The cross-encoder behind the interface of transformers' sequence classifiers: same weights, `logits` as output.

    For regression losses, the logit is the score on the label scale, as the pipeline "text-classification" returns it.
    For binary cross-entropy, it is the input of the sigmoid; for a distribution over grades, there is one per node.
    """

    _auto_class = "AutoModelForSequenceClassification"

    def __init__(self, config: STSRegressionConfig, encoder: PreTrainedModel | None = None) -> None:
        if config.encoder_type != "cross-encoder":
            raise ValueError(
                f'AutoModelForSequenceClassification needs `encoder_type="cross-encoder"`, but this checkpoint has '
                f'"{config.encoder_type}". Load it with AutoModel.'
            )
        super().__init__(config, encoder)
        if config.loss_type in SCORE_LOSSES:
            self.config.problem_type = "regression"  # without it, the pipeline applies a sigmoid

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        """As [`STSRegressionModel.forward`], with `logits` of shape `(batch, outputs)`."""
        output: STSRegressionOutput = super().forward(
            input_ids, attention_mask, token_type_ids, labels, return_dict=True, **kwargs
        )
        logits = output.logits
        if self.config.loss_type in SCORE_LOSSES and output.scores is not None:
            logits = output.scores[:, None]  # calibrated, if that was learned
        if self.config.loss_type in GRADE_LOSSES and logits is not None:
            logits = grade_logits(logits, self.config)
        return SequenceClassifierOutput(loss=output.loss, logits=logits)


def _delete_encoder_copy(folder: Path) -> None:
    """Deletes the files that make a checkpoint's `encoder` folder a model, if sentence-transformers would load it."""
    try:
        config, modules = (json.loads((folder / name).read_bytes()) for name in ("config.json", "modules.json"))
        is_ours = config["model_type"] == STSRegressionConfig.model_type and modules[0]["path"] == "encoder"
    except (OSError, ValueError, LookupError, TypeError):
        return
    if is_ours:
        for pattern in ("modules.json", "encoder/modules.json", "encoder/config.json", "encoder/*.safetensors"):
            for path in list(folder.glob(pattern)):
                path.unlink()


def _check_shape(input_ids: Tensor | None, expected: str, is_as_expected: bool) -> Tensor:
    if input_ids is None or not is_as_expected:
        received = None if input_ids is None else tuple(input_ids.shape)
        raise ValueError(
            f"`input_ids` must have shape {expected}, but got {received}. A bi-encoder takes the "
            "two sentences of a pair side by side, and single sentences in `get_text_features`; a cross-encoder takes "
            "the pair as one sequence."
        )
    return input_ids
