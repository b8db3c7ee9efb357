"""Options of the model."""

import importlib.util
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from huggingface_hub.constants import HF_HOME

from sts_regression.options.fields import check_finite, option

# Repeats the choices of the model's configuration, which loads torch; a test compares them.
LOSS_TYPES = (
    *("smooth_k2", "translated_relu", "mse", "l1", "cross_entropy", "hl_gauss", "corn", "binary_cross_entropy"),
    *("pearson", "info_nce", "cosent", "angle"),
)
BOUNDARIES = ("none", "relax", "mask_negative")
ENCODER_TYPES = ("bi-encoder", "cross-encoder")
ENCODINGS = ("auto", "padded")
PAIR_FEATURES = ("u", "v", "abs_diff", "product", "sum")
POOLINGS = ("mean", "cls")
SCORE_FUNCTIONS = ("linear", "cosine")

DEFAULT_PAIR_FEATURES = ("u", "v", "abs_diff")  # as in the paper and in STSRegressionConfig
DEFAULT_CACHE_DIR = Path(HF_HOME) / "sts-regression" / "embeddings"
EMBEDDING_CACHE_OFF = "off"
LORA_DEFAULTS = {"lora_r": 16, "lora_alpha": 32, "lora_dropout": 0.05, "lora_target_modules": None}  # TRL's


@dataclass
class ModelArguments:
    """The encoder, its head and its loss. Options that are not given keep the checkpoint's value, or the default."""

    _argument_group_name: ClassVar[str] = "model"

    model_name_or_path: str | None = option(
        help="Encoder or STS-Regression checkpoint: a Hub id or a folder. Default: all-MiniLM-L6-v2 from the "
        "`quickstart` extra."
    )
    model_revision: str = option("main", "Branch, tag or commit of the model on the Hub.")
    trust_remote_code: bool = option(False, "Run model code from the Hub repository.")
    loss: str | None = option(help="Loss function. Default: smooth_k2.", choices=LOSS_TYPES)
    loss_slope: float | None = option(help="k of smooth_k2 and translated_relu. Default: 2.")
    loss_threshold: float | None = option(
        help="x0 of smooth_k2 and translated_relu, in units of the labels. Default: a quarter of the "
        "smallest distance between two grades."
    )
    loss_temperature: float | None = option(help="Temperature of info_nce, cosent and angle. Default: 0.05.")
    boundary: str | None = option(
        help="Treatment of scores beyond the scale: none (default), relax (the paper's text) or mask_negative "
        "(its code).",
        choices=BOUNDARIES,
    )
    encoder_type: str | None = option(help="bi-encoder (default) or cross-encoder.", choices=ENCODER_TYPES)
    pooling: str | None = option(
        help="mean or cls. Default: that of a checkpoint or sentence-transformers model, mean for other encoders.",
        choices=POOLINGS,
    )
    pair_features: list[str] | None = option(
        help="Features of the linear head. Default: u v abs_diff.", choices=PAIR_FEATURES
    )
    score_function: str | None = option(
        help="linear, a layer on the pair features (the paper), or cosine, a learned affine function of the cosine. "
        "Default: cosine for info_nce, cosent and angle, linear for other losses; the recipes for bundled pairs and "
        "for your own pairs use cosine.",
        choices=SCORE_FUNCTIONS,
    )
    max_seq_length: int | None = option(
        help="Longest sentence in tokens; longer ones are truncated. Default: that of a checkpoint or "
        "sentence-transformers model, 256 for other encoders."
    )
    sentence1_prefix: str | None = option(
        help="Text in front of each first sentence, such as 'query: '. Default: the checkpoint's, or the default "
        "prompt of a sentence-transformers model."
    )
    sentence2_prefix: str | None = option(
        help="Text in front of each second sentence. Default: as for the first sentence."
    )
    encoding: str | None = option(
        help="auto (default): only real tokens go through the encoder, where it can take them and that is faster; "
        "padded: padded batches.",
        choices=ENCODINGS,
    )
    freeze_encoder: bool = option(False, "Train the head only, on embeddings that are computed once.")
    freeze_embeddings: bool = option(
        False,
        "Do not train the word embeddings, so that words outside the training pairs stay consistent with the others.",
    )
    embedding_cache: str = option(
        str(DEFAULT_CACHE_DIR),
        "Folder that stores embeddings of the encoder before training, for freeze_encoder, self_distillation, "
        "source_scales and group_intercepts, and its weights after bundled_pairs_first. off stores nothing: "
        "freeze_encoder then computes embeddings in every step, and the other three options are refused.",
    )

    license: str | None = option(
        help="Licence of the trained model, for its card: an identifier of the Hub such as apache-2.0, or other. "
        "Default: not stated."
    )
    language: list[str] | None = option(
        help="Languages of the pairs, for the card: codes such as en. Default: not stated, except for the bundled "
        "pairs."
    )
    use_peft: bool = option(False, "Train LoRA adapters in the encoder, and the whole head. Needs the extra `peft`.")
    lora_r: int = option(LORA_DEFAULTS["lora_r"], "Rank of the adapters.")
    lora_alpha: int = option(LORA_DEFAULTS["lora_alpha"], "Adapters are scaled by lora_alpha / lora_r.")
    lora_dropout: float = option(LORA_DEFAULTS["lora_dropout"], "Dropout on the inputs of the adapters.")
    lora_target_modules: list[str] | None = option(
        help="Encoder modules that get adapters, given by the ends of their names. Default: every linear layer."
    )

    def __post_init__(self) -> None:
        check_finite(self)
        if self.use_peft:
            if importlib.util.find_spec("peft") is None:
                raise ValueError('`use_peft` needs the PEFT library. Install it with `pip install ".[peft]"`.')
        elif given := [name for name, default in LORA_DEFAULTS.items() if getattr(self, name) != default]:
            raise ValueError(f"`{given[0]}` is an option of LoRA. Give `--use_peft`, too, or leave it out.")
        for name in ("lora_r", "lora_alpha"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {getattr(self, name)}.")
        if not 0 <= self.lora_dropout < 1:
            raise ValueError(f"`lora_dropout` must be at least 0 and less than 1, but is {self.lora_dropout}.")
        changed = self.pair_features not in (None, list(DEFAULT_PAIR_FEATURES))
        if changed and (self.score_function == "cosine" or self.encoder_type == "cross-encoder"):
            raise ValueError(
                f"`pair_features` {' '.join(self.pair_features or ())} are those of a bi-encoder with a linear head. "
                "Leave them out, or give `--score_function linear --encoder_type bi-encoder`."
            )
        if self.use_peft and self.freeze_encoder:
            raise ValueError(
                "`use_peft` changes the encoder that `--freeze_encoder` leaves as it is. Leave one of them out."
            )

    @property
    def uses_store(self) -> bool:
        """Whether the encoder is frozen and its embeddings are computed once, before training."""
        return self.freeze_encoder and self.embedding_cache != EMBEDDING_CACHE_OFF

    def lora_options(self) -> dict[str, Any]:
        """The options of [`add_lora`]."""
        return {name.removeprefix("lora_"): getattr(self, name) for name in LORA_DEFAULTS}

    def config_overrides(self) -> dict[str, Any]:
        """The given options that belong to the model's configuration, under their names there."""
        names = {"loss": "loss_type"} | {
            name: name
            for name in (
                *("loss_slope", "loss_threshold", "loss_temperature", "boundary", "encoder_type"),
                *("pooling", "pair_features", "score_function", "encoding", "sentence1_prefix", "sentence2_prefix"),
            )
        }
        return {target: value for name, target in names.items() if (value := getattr(self, name)) is not None}


def add_model_arguments(parser: ArgumentParser, model: str) -> None:
    """
    Adds the options of commands that load a model and apply it.

    Args:
        parser: the parser of the command.
        model: the kind of model, for the help.
    """
    parser.add_argument("--model_name_or_path", required=True, help=f"folder or Hub id of {model}")
    parser.add_argument("--model_revision", default="main", help="branch, tag or commit of the model on the Hub")
    parser.add_argument("--trust_remote_code", action="store_true", help="run the encoder's own code from the Hub")
    parser.add_argument("--max_seq_length", type=int, help="longest text in tokens; default: the model's own")
