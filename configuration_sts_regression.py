"""Configuration of the STS-Regression model: every option, with its meaning and its limits.

The file is copied into every checkpoint and is read there by transformers (`trust_remote_code=True`). It
therefore imports transformers and the standard library only.
"""

import copy
import difflib
import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

from transformers import CONFIG_MAPPING, AutoConfig, PretrainedConfig, __version__
from transformers.dynamic_module_utils import get_class_from_dynamic_module

ENCODER_TYPES = ("bi-encoder", "cross-encoder")
POOLINGS = ("mean", "cls")
PAIR_FEATURES = ("u", "v", "abs_diff", "product", "sum")
SCORE_FUNCTIONS = ("linear", "cosine")
BUFFER_ZONE_LOSSES = ("smooth_k2", "translated_relu")
REGRESSION_LOSSES = (*BUFFER_ZONE_LOSSES, "mse", "l1")
GRADE_LOSSES = ("cross_entropy", "hl_gauss", "corn")  # their head returns a distribution over the grades
HEADLESS_LOSSES = ("info_nce", "cosent", "angle")  # act on the embeddings alone
LOSS_TYPES = (*REGRESSION_LOSSES, *GRADE_LOSSES, "binary_cross_entropy", "pearson", *HEADLESS_LOSSES)
DEFAULT_LOSS = "smooth_k2"
# The meaning of a trained head's output. A head is useless for a loss that gives its output another meaning.
HEAD_OUTPUTS = {
    **dict.fromkeys(REGRESSION_LOSSES, "a score on the label scale"),
    **dict.fromkeys(("cross_entropy", "hl_gauss"), "logits of the grades"),
    "corn": "logits of exceeding a grade",
    "binary_cross_entropy": "a logit",
    "pearson": "a score without a scale",
}
BOUNDARIES = ("none", "relax", "mask_negative")
ENCODINGS = ("auto", "padded")
# If any of these changes, a trained head is useless.
HEAD_OPTIONS = ("encoder_type", "pooling", "score_function", "pair_features", "sentence1_prefix", "sentence2_prefix")
PIPELINE_TASK = "semantic-textual-similarity"

# Relative tolerance when testing whether nodes are evenly spaced: 0.1, 0.2, 0.3 are not exact in binary.
SPACING_TOLERANCE = 1e-6
# Distances of nodes beyond which the squares of losses are 0 or infinite in single precision.
STEP_LIMITS = (1e-12, 1e12)
CODE_PACKAGE = "transformers_modules."  # transformers imports code from the Hub under this name, once it is trusted


class STSRegressionConfig(PretrainedConfig):
    r"""
    Configuration of an [`STSRegressionModel`].

    The defaults are the paper's model ("Advancing Semantic Textual Similarity Modeling: A Regression Framework with
    Translated ReLU and Smooth K2 Loss", EMNLP 2024): a Siamese encoder, mean pooling, the features (u, v, |u - v|),
    one linear output and Smooth K2 Loss with k = 2 and x₀ = 0.25 on grades one apart.

    Args:
        encoder_config (`PretrainedConfig` or `dict`, *optional*):
            Configuration of the text encoder. A `dict` needs the key `model_type`. Defaults to BERT-base.
        encoder_type (`str`, defaults to `"bi-encoder"`):
            `"bi-encoder"` encodes the two sentences separately with shared weights (the paper), `"cross-encoder"`
            reads the pair as one sequence.
        pooling (`str`, defaults to `"mean"`):
            `"mean"` over the real tokens (the paper), or `"cls"`, the first token.
        pair_features (sequence of `str`, defaults to `("u", "v", "abs_diff")`):
            Features of the embeddings u and v that the linear head takes, in the given order: `"u"`, `"v"`,
            `"abs_diff"` |u - v|, `"product"` u∘v, `"sum"` u + v. Without `"u"` and `"v"` the score is symmetric.
        score_function (`str`, *optional*):
            `"linear"`: a linear layer on the pair features (the paper). `"cosine"`: a learned affine function of
            cos(u, v), or one per logit of a distribution over grades. Defaults to `"cosine"` for `"info_nce"`,
            `"cosent"` and `"angle"`, which train no head, and to `"linear"` for all other losses.
        loss_type (`str`, defaults to `"smooth_k2"`):
            `"smooth_k2"`, `"translated_relu"`, `"mse"`, `"l1"` (regression); `"cross_entropy"` (one output per node,
            the Sentence-BERT baseline); `"hl_gauss"` (the same with a normal distribution around the label as the
            target); `"corn"` (one output between neighbouring nodes, ordinal regression); `"binary_cross_entropy"`
            (the scale is mapped onto 0-1); `"info_nce"` (positive pairs only; every other second sentence of the batch
            is a negative); `"cosent"` (the order of the batch's cosines) and `"angle"` (AnglE, of angles in complex
            space); `"pearson"` (correlation of the batch's scores, which are not on the label scale).
        loss_slope (`float`, defaults to 2.0):
            k > 0 of Smooth K2 and Translated ReLU, without a unit.
        loss_threshold (`float`, *optional*):
            x₀ of Smooth K2 and Translated ReLU, in units of the label scale, 0 ≤ x₀ ≤ d/2. Defaults to d/4, which is
            the paper's 0.25 on grades one apart.
        loss_temperature (`float`, defaults to 0.05):
            τ > 0 of InfoNCE, CoSENT and AnglE.
        label_values (sequence of `float`, defaults to `(0, 1, 2, 3, 4, 5)`):
            The nodes of the label scale: at least two, increasing. The smallest distance between them is d.
        label_names (sequence of `str`, *optional*):
            One name per node, lowest grade first, for example `("irrelevant", "relevant", "highly relevant")`.
        boundary (`str`, defaults to `"none"`):
            How scores beyond the scale are changed before a regression loss is computed. `"none"`: not at all.
            `"relax"`: overshoot past the label's own end of the scale is free (the paper's text, section 3.3).
            `"mask_negative"`: negative scores are multiplied by zero for every label (the paper's code).
        encoding (`str`, defaults to `"auto"`):
            How a batch goes through the encoder. `"auto"`: packed, with its real tokens in one row, if the encoder
            supports it and that is faster; `"padded"`: as it is. The embeddings are the same.
        sentence1_prefix, sentence2_prefix (`str`, default to `""`):
            Text put in front of the first and of the second sentence of each pair, as encoders such as E5 or Nomic
            expect it, for example `"query: "`. Different prefixes make the score asymmetric. Bi-encoders only.
        normalize_embeddings (`bool`, defaults to `False`):
            Whether sentence-transformers scales embeddings to length 1, as it did for the untouched encoder. The
            model itself never scales them.
        grading (`dict`, *optional*):
            Maps learned from held-out pairs. `score_map` is an increasing, piecewise linear map of scores, with
            `knots` (raw scores) and `values` (on the label scale). `cut_points` lie between neighbouring grades.
            `intervals` holds the lowest and highest score of each label (`labels`, `lowest`, `highest`), at `level`.
            `thresholds` lists scores with a wanted precision or recall; `num_pairs` counts the held-out pairs.
            By default, the score is the output of the head, and the grade is the nearest node.
        head_is_trained (`bool`, defaults to `True`):
            Whether the head's scores are meaningful. `False` for the fresh head of an encoder until it is trained, and
            always for losses that train no head.

    Raises:
        ValueError: for an unknown name or an impossible combination. The message names the argument, the value, the
            values allowed and the remedy.

    Example:
    ```python
    >>> from transformers import BertConfig
    >>> config = STSRegressionConfig(encoder_config=BertConfig(), label_values=[0, 1, 2, 3])
    >>> config.label_step, config.loss_threshold
    (1.0, 0.25)
    ```
    """

    model_type = "sts_regression"
    sub_configs: ClassVar[dict[str, type]] = {"encoder_config": AutoConfig}

    def __init__(
        self,
        encoder_config: PretrainedConfig | dict[str, Any] | None = None,
        encoder_type: str = "bi-encoder",
        pooling: str = "mean",
        pair_features: Sequence[str] = ("u", "v", "abs_diff"),
        score_function: str | None = None,
        loss_type: str = DEFAULT_LOSS,
        loss_slope: float = 2.0,
        loss_threshold: float | None = None,
        loss_temperature: float = 0.05,
        label_values: Iterable[float] = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0),
        label_names: Sequence[str] | None = None,
        boundary: str = "none",
        encoding: str = "auto",
        sentence1_prefix: str = "",
        sentence2_prefix: str = "",
        normalize_embeddings: bool = False,
        grading: dict[str, Any] | None = None,
        head_is_trained: bool = True,
        **kwargs: Any,
    ) -> None:
        _check_keyword_arguments(kwargs)
        _check_choice("encoder_type", encoder_type, ENCODER_TYPES)
        _check_choice("pooling", pooling, POOLINGS)
        _check_choice("loss_type", loss_type, LOSS_TYPES)
        _check_choice("boundary", boundary, BOUNDARIES)
        _check_choice("encoding", encoding, ENCODINGS)
        _check_choice("normalize_embeddings", normalize_embeddings, (True, False))
        _check_choice("head_is_trained", head_is_trained, (True, False))
        self.encoder_config = _build_encoder_config(encoder_config)
        self.encoder_type = encoder_type
        self.pooling = pooling
        self.pair_features = _check_pair_features(pair_features)
        if score_function is None:
            score_function = "cosine" if loss_type in HEADLESS_LOSSES else "linear"
        _check_choice("score_function", score_function, SCORE_FUNCTIONS)
        self.score_function = score_function
        self.loss_type = loss_type
        self.label_values = _check_label_values(label_values)
        self.label_names = _check_label_names(label_names, self.label_values)
        self.loss_slope = _check_number("loss_slope", loss_slope, positive=True)
        self.loss_temperature = _check_number("loss_temperature", loss_temperature, positive=True)
        self.loss_threshold = self.label_step / 4 if loss_threshold is None else loss_threshold
        self.loss_threshold = _check_number("loss_threshold", self.loss_threshold, positive=False)
        self.boundary = boundary
        self.encoding = encoding
        self.sentence1_prefix = _check_prefix("sentence1_prefix", sentence1_prefix)
        self.sentence2_prefix = _check_prefix("sentence2_prefix", sentence2_prefix)
        self.normalize_embeddings = normalize_embeddings
        self.grading = _check_grading(grading, self.label_values)
        self.head_is_trained = head_is_trained and self.trains_head
        self._check_combinations()

        # transformers derives these three from each other; ours follow from the loss and the nodes.
        for derived in ("num_labels", "id2label", "label2id"):
            kwargs.pop(derived, None)
        # One linear layer has nothing to tie; some encoders' configurations would say otherwise.
        kwargs.setdefault("tie_word_embeddings", False)
        names = self.label_names or [f"{value:g}" for value in self.label_values]
        id2label = dict(enumerate(names)) if loss_type in GRADE_LOSSES else {0: "score"}
        super().__init__(id2label=id2label, label2id={name: i for i, name in id2label.items()}, **kwargs)
        # All Auto classes of the checkpoint: transformers itself would write only the one of the class being saved.
        self.auto_map = {
            "AutoConfig": "configuration_sts_regression.STSRegressionConfig",
            "AutoModel": "modeling_sts_regression.STSRegressionModel",
        }
        if self.encoder_type == "cross-encoder":
            self.auto_map["AutoModelForSequenceClassification"] = (
                "modeling_sts_regression.STSRegressionForSequenceClassification"
            )
        self.custom_pipelines = _custom_pipelines()

    if TYPE_CHECKING:
        # With the method of transformers, any name would be an attribute of type Any, even a misspelt one.
        def __getattribute__(self, name: str) -> object: ...

    @property
    def label_step(self) -> float:
        """The smallest distance d between neighbouring nodes, in units of the label scale."""
        if are_evenly_spaced(self.label_values):
            return (self.label_values[-1] - self.label_values[0]) / (len(self.label_values) - 1)
        return min(upper - lower for lower, upper in pairwise(self.label_values))

    @property
    def num_outputs(self) -> int:
        """The number of outputs of the head: one, or one per node for a distribution (CORN: per gap between nodes)."""
        if self.loss_type not in GRADE_LOSSES:
            return 1
        return len(self.label_values) - (self.loss_type == "corn")

    @property
    def trains_head(self) -> bool:
        """Whether the loss trains the head. Otherwise only the cosine is trained, and the scores mean nothing."""
        return self.loss_type not in HEADLESS_LOSSES

    @property
    def cut_points(self) -> list[float] | None:
        """The learned scores between neighbouring grades; `None` if the grade is the nearest node."""
        return (self.grading or {}).get("cut_points")

    @property
    def prefixes(self) -> tuple[str, str]:
        """The prefixes of the first and of the second sentence."""
        return self.sentence1_prefix, self.sentence2_prefix

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> "STSRegressionConfig":
        """
        Builds the configuration. Our options in `kwargs` are checked and replace those of the dictionary.

        Raises:
            ValueError: for invalid options, and for those that contradict a trained head.
        """
        given = {name: kwargs.pop(name) for name in _own_options() & set(kwargs)}
        if config_dict.get("head_is_trained") and given.get("head_is_trained", True):
            old, new = (str(options.get("loss_type")) for options in (config_dict, given))
            if reads_head_differently(old, new):
                raise ValueError(
                    f"`loss_type` is {new!r}, whose head returns {HEAD_OUTPUTS[new]}, but the checkpoint's head was "
                    f"trained with {old!r} and returns {HEAD_OUTPUTS[old]}. Leave it out, or pass "
                    "`head_is_trained=False` to use the encoder without this head."
                )
            for name in (name for name in (*HEAD_OPTIONS, "label_values") if name in given and name in config_dict):
                trained_with = config_dict[name]
                if given[name] != (tuple(trained_with) if isinstance(given[name], tuple) else trained_with):
                    raise ValueError(
                        f"`{name}` is {given[name]!r}, but the checkpoint's head was trained with {trained_with!r}. "
                        "Leave it out, or pass `head_is_trained=False` to use the encoder without this head."
                    )
        return super().from_dict({**config_dict, **given}, **kwargs)

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain values. The encoder's name is kept if it is a Hub id, not if it is a path."""
        output = super().to_dict()
        name = output["encoder_config"].get("_name_or_path")
        if name and (Path(name).is_absolute() or Path(name).exists()):
            output["encoder_config"]["_name_or_path"] = ""
        output["custom_pipelines"] = _custom_pipelines()  # transformers puts classes in place of their names
        return output

    def _check_combinations(self) -> None:
        largest_threshold = self.label_step / 2 * (1 + SPACING_TOLERANCE)
        if self.loss_type in BUFFER_ZONE_LOSSES and self.loss_threshold > largest_threshold:
            raise ValueError(
                f"`loss_threshold` must not exceed half the distance between grades, {self.label_step / 2:g} for "
                f"these `label_values`, but is {self.loss_threshold:g}: a score nearer to another grade would cost "
                "nothing. Lower it, or leave it out for a quarter of the distance."
            )
        if self.boundary == "mask_negative" and self.label_values[0] < 0:
            raise ValueError(
                '`boundary="mask_negative"` (the paper\'s code) needs a scale that starts at 0 or above, but the '
                f'lowest of `label_values` is {self.label_values[0]:g}. Use `boundary="relax"` or shift the scale.'
            )
        if self.boundary != "none" and self.loss_type not in REGRESSION_LOSSES:
            raise ValueError(
                f'`boundary="{self.boundary}"` acts on regression losses ({", ".join(REGRESSION_LOSSES)}), not on '
                f'`loss_type="{self.loss_type}"`. Use `boundary="none"`.'
            )
        if self.score_function == "linear" and self.loss_type in HEADLESS_LOSSES:
            raise ValueError(
                f'`score_function="linear"` has a head that `loss_type="{self.loss_type}"` never trains. Use '
                '`score_function="cosine"`.'
            )
        if self.score_function == "cosine" and self.loss_type == "binary_cross_entropy":
            raise ValueError(
                '`score_function="cosine"` gives a score on the label scale, but `loss_type="binary_cross_entropy"` '
                'needs a logit. Use `score_function="linear"`, or a regression loss.'
            )
        if self.encoder_type == "cross-encoder" and self.score_function == "cosine":
            raise ValueError(
                '`encoder_type="cross-encoder"` has no sentence embeddings, so it supports neither '
                f'`score_function="cosine"` nor `loss_type` {", ".join(HEADLESS_LOSSES)}. Use '
                '`encoder_type="bi-encoder"`.'
            )
        if self.encoder_type == "cross-encoder" and any(self.prefixes):
            raise ValueError(
                f"`sentence1_prefix` and `sentence2_prefix` are {self.prefixes!r:.200}, but a cross-encoder reads "
                "both sentences as one sequence. Leave them out."
            )


def reads_head_differently(old_loss: str, new_loss: str) -> bool:
    """Whether both losses train a head, and give its output another meaning."""
    return {old_loss, new_loss} <= HEAD_OUTPUTS.keys() and HEAD_OUTPUTS[old_loss] != HEAD_OUTPUTS[new_loss]


def _custom_pipelines() -> dict[str, dict[str, Any]]:
    return {PIPELINE_TASK: {"impl": "pipeline_sts_regression.STSRegressionPipeline", "pt": ["AutoModel"]}}


def _own_options() -> set[str]:
    return set(inspect.signature(STSRegressionConfig.__init__).parameters) - {"self", "kwargs"}


def _check_keyword_arguments(keyword_arguments: dict[str, Any]) -> None:
    """Refuses misspelt options: transformers would keep them as attributes that nothing reads."""
    for name in keyword_arguments:
        close = difflib.get_close_matches(name, _own_options(), n=1, cutoff=0.85)
        if close:
            raise ValueError(f"`{name}` is not an option of STSRegressionConfig. Did you mean `{close[0]}`?")


def _check_choice(name: str, value: object, allowed: Sequence[object]) -> None:
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, allowed))}, but is {value!r:.200}.")


def _check_prefix(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"`{name}` must be a text, but is {value!r:.200}.")
    return value


def _check_number(name: str, value: object, positive: bool) -> float:
    bound = "greater than 0" if positive else "at least 0"
    if not _is_finite_number(value) or value < 0 or (positive and value == 0):
        raise ValueError(f"`{name}` must be a finite number {bound}, but is {value!r:.200}.")
    return float(value)


def _is_finite_number(value: Any) -> TypeGuard[Real]:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and abs(value) <= sys.float_info.max


def _check_pair_features(pair_features: Sequence[str]) -> list[str]:
    if isinstance(pair_features, str) or not isinstance(pair_features, Sequence):
        raise ValueError(f"`pair_features` must be a sequence of names, but is {pair_features!r:.200}.")
    names = list(pair_features)
    for feature in names:
        _check_choice("pair_features", feature, PAIR_FEATURES)
    if not names or len(set(names)) != len(names):
        raise ValueError(f"`pair_features` must hold one or more different names, but is {names!r:.200}.")
    return names


def are_evenly_spaced(label_values: Sequence[float]) -> bool:
    """Whether all distances between neighbouring nodes are equal but for rounding."""
    steps = [upper - lower for lower, upper in pairwise(label_values)]
    return max(steps) - min(steps) <= SPACING_TOLERANCE * max(steps)


def _check_label_values(label_values: Iterable[float]) -> list[float]:
    if isinstance(label_values, str) or not isinstance(label_values, Iterable):
        raise ValueError(f"`label_values` must be a sequence of numbers, but is {label_values!r:.200}.")
    values = []
    for value in label_values:
        if not _is_finite_number(value):
            raise ValueError(
                f"`label_values` must hold finite numbers, but holds {value!r:.200}. For names use `label_names`."
            )
        values.append(float(value))
    steps = [upper - lower for lower, upper in pairwise(values)]
    if not steps or min(steps) <= 0:
        raise ValueError(
            f"`label_values` must be two or more numbers, increasing, but is {values!r:.200}. Give each grade once, "
            "the lowest grade first. Names of grades are given in the same order."
        )
    low, high = STEP_LIMITS
    if not low <= min(steps) <= max(steps) <= high or min(steps) < SPACING_TOLERANCE * max(map(abs, values)):
        raise ValueError(
            f"`label_values` are {values!r:.200}, which single precision cannot tell apart. Map them to 0, 1, 2, … "
            "in their order."
        )
    return values


def _check_label_names(label_names: Sequence[str] | None, label_values: Sequence[float]) -> list[str] | None:
    if label_names is None:
        return None
    is_list = isinstance(label_names, Sequence) and not isinstance(label_names, str)
    names: list[Any] = list(label_names) if is_list else [label_names]
    if len(names) != len(label_values) or not all(isinstance(n, str) for n in names) or len(set(names)) != len(names):
        raise ValueError(
            f"`label_names` must hold one different name per node, lowest grade first, but is {names!r:.200} for "
            f"{len(label_values)} `label_values`."
        )
    return names


def _check_grading(grading: dict[str, Any] | None, label_values: Sequence[float]) -> dict[str, Any] | None:
    if grading is None:
        return None
    try:
        knots, values = (list(grading["score_map"][name]) for name in ("knots", "values"))
        cut_points, intervals = grading.get("cut_points"), grading.get("intervals")
        ends = [] if intervals is None else [list(intervals[name]) for name in ("labels", "lowest", "highest")]
        is_right = (
            len(knots) == len(values) > 1
            and all(map(_is_finite_number, [*knots, *values, *(cut_points or [])]))
            and all(lower < upper for numbers in (knots, values) for lower, upper in pairwise(numbers))
            and (cut_points is None or len(cut_points) == len(label_values) - 1)
            and len({len(numbers) for numbers in ends}) <= 1
            and all(number is None or _is_finite_number(number) for numbers in ends for number in numbers)
        )
    except (KeyError, TypeError, AttributeError):
        is_right = False
    if not is_right:
        raise ValueError(f"`grading` is {grading!r:.200}, which is not a map of scores. Train again, or leave it out.")
    return dict(grading)


def _build_encoder_config(encoder_config: PretrainedConfig | dict[str, Any] | None) -> PretrainedConfig:
    if isinstance(encoder_config, PretrainedConfig):
        # A copy, since an encoder sets attributes of its configuration. Classes from the Hub may not allow copies.
        return pin_code(encoder_config) if is_remote(encoder_config) else copy.deepcopy(encoder_config)
    if not isinstance(encoder_config, dict | None):
        raise ValueError(
            f"`encoder_config` must be a configuration or a dictionary, but is {encoder_config!r:.200}. For a name or "
            "folder use `AutoConfig.from_pretrained`."
        )
    options = dict(encoder_config or {"model_type": "bert"})
    if "code_revision" in options:
        # If this file itself came from the Hub, the checkpoint is trusted, and so is the code that it names.
        return load_config(options, is_trusted=__name__.startswith(CODE_PACKAGE))
    model_type = options.pop("model_type", None)
    if not isinstance(model_type, str) or model_type not in CONFIG_MAPPING:
        raise ValueError(
            "`encoder_config` must name a `model_type` that the installed transformers knows, but names "
            f"{model_type!r:.200}. Upgrade transformers, or pass a configuration object."
        )
    for name, value in options.items():
        if isinstance(value, float) and not _is_finite_number(value):
            raise ValueError(f"`encoder_config` must hold finite numbers, but `{name}` is {value}.")
    try:
        return CONFIG_MAPPING[model_type](**options)
    except Exception as error:  # any kind: every configuration of transformers checks its own options
        reason = " ".join(str(error).split())
        raise ValueError(f"`encoder_config` is not a configuration of a {model_type!r} ({reason:.300}).") from error


# The code of some encoders lies in a repository on the Hub. transformers looks for it if the encoder is loaded by its
# own name, but not if it is part of another model: a fresh process would use one of its own classes, or find none. The
# encoder's configuration therefore records repository and commit, from which the checkpoint builds the encoder.


def is_remote(config: PretrainedConfig) -> bool:
    """Whether the configuration's class is code from the Hub, which was then trusted in this process."""
    return type(config).__module__.startswith(CODE_PACKAGE)


def code_repository(options: Mapping[str, Any]) -> str | None:
    """The repository of a configuration's code, recorded by [`pin_code`]; `None` if transformers has the class."""
    return options["auto_map"]["AutoModel"].partition("--")[0] if "code_revision" in options else None


def pin_code(config: PretrainedConfig) -> PretrainedConfig:
    """
    Records the repository and commit of an encoder's code in its configuration.

    Args:
        config: changed in place, unless its class belongs to transformers.

    Raises:
        ValueError: if the code could not be found again because it lies in a local folder or in two repositories.
    """
    if not is_remote(config):
        return config
    assert config.name_or_path is not None  # transformers makes a text of it
    references = getattr(config, "auto_map", None) or {}
    names = {name: references[name] for name in ("AutoConfig", "AutoModel") if name in references}
    if Path(config.name_or_path).exists() and not all("--" in reference for reference in names.values()):
        raise ValueError(
            f"`encoder_config`: the encoder's code is in the local folder {config.name_or_path!r}, where a checkpoint "
            "could not find it again. Publish the encoder on the Hub, and give its Hub id."
        )
    names = {name: r if "--" in r else f"{config.name_or_path}--{r}" for name, r in names.items()}
    if len(names) < 2 or len({reference.partition("--")[0] for reference in names.values()}) > 1:
        raise ValueError(
            f"`encoder_config`: {config.name_or_path!r} must name the code of its configuration and of its model "
            f"(`auto_map`), in one repository, but names {names}. Choose another encoder."
        )
    config.auto_map = names
    config.code_revision = type(config).__module__.split(".")[-2]  # transformers_modules.<repository>.<commit>.<file>
    return config


def load_config(options: Mapping[str, Any], is_trusted: bool) -> PretrainedConfig:
    """
    Builds the configuration of an encoder with code of its own.

    Args:
        options: the configuration as a dictionary, with the entries of [`pin_code`].
        is_trusted: whether its code may be run.

    Raises:
        ValueError: if the code is not trusted, or does not run.
    """
    if not is_trusted:
        raise ValueError(
            f"the encoder runs code of {code_repository(options)}, which must be trusted. Read it, and load with "
            "`trust_remote_code=True`: by AutoModel in a process without this package, or by its `find_model`."
        )
    options = dict(options)
    auto_map, revision = options.pop("auto_map"), options.pop("code_revision")
    options.pop("model_type", None)
    config = _load_class(auto_map["AutoConfig"], revision)(**options)
    config.auto_map, config.code_revision = auto_map, revision
    return config


def model_class(config: PretrainedConfig) -> type:
    """The encoder's class for a configuration changed by [`pin_code`]."""
    return _load_class(config.auto_map["AutoModel"], config.code_revision)


def _load_class(reference: str, revision: str) -> type:
    try:
        return get_class_from_dynamic_module(reference, reference.partition("--")[0], code_revision=revision)
    except Exception as error:  # third-party code may raise anything
        raise ValueError(f"{reference} (revision {revision}): {code_failure(error)}") from error


def code_failure(error: Exception) -> str:
    """The message for code from the Hub that failed."""
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return (
        f"the code from the Hub does not run with transformers {__version__} ({first_line}). Install the version that "
        "it was written for, or choose another encoder."
    )
