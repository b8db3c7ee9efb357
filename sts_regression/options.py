"""Options of the training command, with their defaults and the checks of single options.

Nothing here loads torch, so that help and misspelt options are answered at once. Options of transformers'
`TrainingArguments` keep their names; `training_arguments.py` joins the two. Choices that other modules share are
defined here.
"""

import dataclasses
import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from huggingface_hub.constants import HF_HOME

DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
# Repeats the choices of the model's configuration; a test compares them.
DEFAULT_LOSS = "smooth_k2"
LOSS_TYPES = (
    *("smooth_k2", "translated_relu", "mse", "l1", "cross_entropy", "binary_cross_entropy", "pearson", "info_nce"),
    "cosent",
)
BOUNDARIES = ("none", "relax", "mask_negative")
ENCODER_TYPES = ("bi-encoder", "cross-encoder")
ENCODINGS = ("auto", "padded")
PAIR_FEATURES = ("u", "v", "abs_diff", "product", "sum")
PRECISIONS = ("auto", "float32", "bfloat16")  # of training
BACKENDS = ("torch", "onnx-int8")  # of scoring
POOLINGS = ("mean", "cls")
SCORE_FUNCTIONS = ("linear", "cosine")

RECIPE_SUFFIXES = (".yaml", ".yml")
LEAK_FILTERS = ("exact", "normalized", "sentence", "none")
SICK_SPLITS = ("test", "all")
STSB_VERSIONS = (1, 2)
DEFAULT_CACHE_DIR = Path(HF_HOME) / "sts-regression" / "embeddings"
EMBEDDING_CACHE_OFF = "off"
HEAD_SOLVERS = ("adamw", "lbfgs")
DEFAULT_PAIR_FEATURES = ("u", "v", "abs_diff")  # as in the paper and in STSRegressionConfig
LORA_DEFAULTS = {"lora_r": 16, "lora_alpha": 32, "lora_dropout": 0.05, "lora_target_modules": None}  # TRL's
MAX_TRAIN_WEIGHT = 1000.0
MAX_FOLDS = 20

# Options that act on a finished model: those that the help of `sts-regression predict` and `evaluate` shows.
_SCORING = (
    *("model_name_or_path", "model_revision", "trust_remote_code", "max_seq_length", "encoding", "sentence1_column"),
    *("sentence2_column", "output_dir", "cpu_threads", "verbose", "overwrite_output_dir"),
)
PREDICTING = (*_SCORING, "predict_file", "predict_output", "predict_chunk_size", "backend")
EVALUATING = (
    *(*_SCORING, "pooling", "sentence1_prefix", "sentence2_prefix", "dataset_name", "dataset_config_name"),
    *("validation_file", "validation_dataset_name", "test_file", "sts_data", "sick_split", "stsb_version"),
    *("dev_leak_filter", "label_column", "label_values", "label_ranges", "grade_names", "strict", "max_eval_samples"),
    *("per_device_eval_batch_size",),
)


def _option(default: object = None, help: str = "", choices: Sequence[str | int] | None = None) -> Any:
    metadata: dict[str, object] = {"help": help}
    if choices is not None:
        metadata["choices"] = list(choices)
    return field(default=default, metadata=metadata)


def check_finite(options: Any) -> None:
    """Raises `ValueError` for the first option that is NaN or infinite."""
    for option in dataclasses.fields(options):
        value = getattr(options, option.name)
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, float) and not math.isfinite(number):
                raise ValueError(f"`{option.name}` must be a finite number, but is {number}.")


@dataclass
class ModelArguments:
    """The encoder, its head and its loss. Options that are not given keep the checkpoint's value, or the default."""

    _argument_group_name: ClassVar[str] = "model"

    model_name_or_path: str | None = _option(
        help="Encoder or STS-Regression checkpoint: a Hub id or a folder. Default: all-MiniLM-L6-v2 from the "
        "`quickstart` extra."
    )
    model_revision: str = _option("main", "Branch, tag or commit of the model on the Hub.")
    trust_remote_code: bool = _option(False, "Run model code from the Hub repository.")
    loss: str | None = _option(help="Loss function. Default: smooth_k2.", choices=LOSS_TYPES)
    loss_slope: float | None = _option(help="k of smooth_k2 and translated_relu. Default: 2.")
    loss_threshold: float | None = _option(
        help="x0 of smooth_k2 and translated_relu, in units of the labels. Default: a quarter of the "
        "smallest distance between two grades."
    )
    loss_temperature: float | None = _option(help="Temperature of info_nce and cosent. Default: 0.05.")
    boundary: str | None = _option(
        help="Treatment of predictions beyond the scale: none (default), relax (the paper's text) or mask_negative "
        "(its code).",
        choices=BOUNDARIES,
    )
    encoder_type: str | None = _option(help="bi-encoder (default) or cross-encoder.", choices=ENCODER_TYPES)
    pooling: str | None = _option(
        help="mean or cls. Default: that of a checkpoint or sentence-transformers model, mean for other encoders.",
        choices=POOLINGS,
    )
    pair_features: list[str] | None = _option(
        help="Features of the linear head. Default: u v abs_diff.", choices=PAIR_FEATURES
    )
    score_function: str | None = _option(
        help="linear, a layer on the pair features (the paper), or cosine, a learned affine function of the cosine. "
        "Default: cosine for info_nce and cosent, linear for other losses; the recipes for bundled pairs and for your "
        "own pairs use cosine.",
        choices=SCORE_FUNCTIONS,
    )
    max_seq_length: int | None = _option(
        help="Longest sentence in tokens; longer ones are truncated. Default: the length that a checkpoint or a "
        "sentence-transformers model has, 256 for other encoders."
    )
    sentence1_prefix: str | None = _option(
        help="Text in front of each first sentence, such as 'query: '. Default: the checkpoint's, or the default "
        "prompt of a sentence-transformers model."
    )
    sentence2_prefix: str | None = _option(help="Text in front of each second sentence. Default: as for the first.")
    encoding: str | None = _option(
        help="auto (default): only real tokens go through the encoder, if it is supported; padded: whole batches.",
        choices=ENCODINGS,
    )
    freeze_encoder: bool = _option(False, "Train the head only, on embeddings that are computed once.")
    freeze_embeddings: bool = _option(
        False, "Do not train the word embeddings: those of words outside the training pairs then still fit the others."
    )
    embedding_cache: str = _option(
        str(DEFAULT_CACHE_DIR),
        "Folder for embeddings of the untouched encoder: those of a frozen encoder, and those that self_distillation, "
        "source_scales and group_intercepts need. off computes those of a frozen encoder in every step, and refuses "
        "the other three.",
    )

    license: str | None = _option(
        help="Licence of the trained model, for its card: an identifier of the Hub such as apache-2.0, or other. "
        "Default: not stated."
    )
    language: list[str] | None = _option(
        help="Languages of the pairs, for the card: codes such as en. Default: not stated, except for the bundled "
        "pairs."
    )
    use_peft: bool = _option(False, "Train LoRA adapters in the encoder, and the whole head. Needs the extra `peft`.")
    lora_r: int = _option(LORA_DEFAULTS["lora_r"], "Rank of the adapters.")
    lora_alpha: int = _option(LORA_DEFAULTS["lora_alpha"], "Adapters are scaled by lora_alpha / lora_r.")
    lora_dropout: float = _option(LORA_DEFAULTS["lora_dropout"], "Dropout on the inputs of the adapters.")
    lora_target_modules: list[str] | None = _option(
        help="Modules of the encoder with adapters, by the ends of their names. Default: every linear layer."
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


@dataclass
class DataArguments:
    """Where the pairs come from and what their labels mean."""

    _argument_group_name: ClassVar[str] = "pairs"

    dataset_name: list[str] | None = _option(
        help="Data sets on the Hub to train on; development and test pairs are those of the first."
    )
    dataset_config_name: str | None = _option(help="Configuration of the data sets of dataset_name.")
    train_file: list[str] | None = _option(
        help="Files of training pairs: CSV, TSV, JSON lines, Parquet or Excel (.xlsx, which needs the extra `excel`)."
    )
    train_weights: list[float] | None = _option(
        help="How often an epoch uses each training set: 2 for twice, 0.5 for a random half. Data sets on the Hub "
        "come first, then files. Default: 1."
    )
    validation_file: list[str] | None = _option(
        help="Files of development pairs. Default: a part of the training pairs."
    )
    validation_dataset_name: str | None = _option(help="Data set on the Hub to take development pairs from.")
    test_file: list[str] | None = _option(
        help="Files of test pairs, scored before and after training, never used to choose anything. Correlations of "
        "several are averaged."
    )
    sts_data: str | None = _option(
        help="Folder of the seven STS tasks, which are scored at the end: the original files or SentEval's; or hub. "
        "Other files are also looked for there."
    )
    sick_split: str = _option(
        "test", "Pairs of SICK-R: test, the 4,927 of papers, or all, the 9,927 of MTEB.", choices=SICK_SPLITS
    )
    stsb_version: int = _option(
        1,
        "Test pairs of STS-B: 1, all 1,379, or 2, MTEB's STSBenchmark.v2, without the 17 that occur again in STS-B.",
        choices=STSB_VERSIONS,
    )
    leak_filter: str = _option(
        "normalized",
        "Remove training pairs that are test pairs: exact (equal strings, as in the paper), normalized (equal letters "
        "and digits), sentence (one sentence of a test pair is enough) or none.",
        choices=LEAK_FILTERS,
    )
    dev_leak_filter: str = _option("none", "As leak_filter, for development pairs.", choices=LEAK_FILTERS)
    predict_file: str | None = _option(help="Pairs to score with --do_predict; labels are not needed.")
    predict_output: str | None = _option(
        help="File for the scores, .csv or .jsonl. Default: predictions.csv in output_dir."
    )
    predict_chunk_size: int = _option(
        4096,
        "Pairs scored and written together. A smaller number takes less memory, and a killed process loses less work.",
    )
    backend: str = _option(
        "torch",
        "Engine that scores the pairs of predict_file: torch, or onnx-int8 for 8-bit weights in ONNX Runtime, faster "
        "on CPUs; scores change slightly. Needs the extra onnx.",
        choices=BACKENDS,
    )
    sentence1_column: str | None = _option(help="Column of the first sentence. Default: guessed.")
    sentence2_column: str | None = _option(help="Column of the second sentence. Default: guessed.")
    label_column: list[str] | None = _option(
        help="Column of the label. Default: guessed. Several columns are the ratings of as many raters: the label "
        "is their mean."
    )
    label_values: list[float] | None = _option(
        help="Nodes of the label scale, lowest first. Default: guessed from the labels."
    )
    label_ranges: list[str] | None = _option(
        help="Lowest and highest possible label of individual files, as FILE=LOW:HIGH; their labels are mapped onto "
        "the scale of the model. Default: known for public data sets, otherwise guessed from the labels."
    )
    grade_names: list[str] | None = _option(help="Names of the grades, lowest first; labels are then names.")
    truncate_labels: bool = _option(
        False, "Cut off the fractions of training labels, as the paper's code does: 4.8 becomes 4."
    )
    positive_threshold: float | None = _option(
        help="Lowest label of a positive pair for info_nce, which trains on positives only. Default: 80 %% of the "
        "scale."
    )
    validation_split_percentage: int | None = _option(
        help="Percentage of the training pairs to hold out, by text, if there is no validation file. Default: 10, at "
        "most 5,000 pairs; of fewer than 2,000 pairs 20, at most 200 pairs."
    )
    folds: int = _option(
        1,
        "Cross-validation, for few pairs: divide the training pairs by text into this many parts, train once without "
        "each part and once on all pairs. Each pair is scored by the model that was not trained on it; verdict and "
        "grades rest on these scores instead of development pairs. No checkpoint is chosen (eval_strategy no, "
        "load_best_model_at_end false). Default: 1, hold out a part.",
    )
    refit: bool = _option(
        False,
        "Train twice: without the held-out pairs, for verdict and grades, and then on all pairs. The final "
        "weights are the mean of both (a model soup); with folds, the mean of those of all folds and of the last "
        "training. No effect with development pairs of your own, data sets on the Hub, load_best_model_at_end, "
        "learning_curve or model_soup.",
    )
    learning_curve: bool = _option(
        False,
        "Estimate the gain from twice as many pairs: train on a quarter and on half of the training pairs before all "
        "of them, and extrapolate Spearman's correlation on the development pairs. Not with folds or model_soup.",
    )
    strict: bool = _option(False, "Stop if the data report finds anything.")
    max_train_samples: int | None = _option(help="Use only the first pairs, for a trial run.")
    max_eval_samples: int | None = _option(help="Use only the first development and test pairs, for a trial run.")

    def __post_init__(self) -> None:
        for name in ("dataset_name", "train_file", "validation_file", "test_file"):
            if isinstance(value := getattr(self, name), str):
                setattr(self, name, [value])
        num_sets = len(self.dataset_name or []) + len(self.train_file or [])
        if self.train_weights is not None and (
            len(self.train_weights) != num_sets
            or not all(0 < weight <= MAX_TRAIN_WEIGHT for weight in self.train_weights)
        ):
            raise ValueError(
                f"`train_weights` must be one number greater than 0 for each of the {num_sets} training sets, and at "
                f"most {MAX_TRAIN_WEIGHT:g}, but is {self.train_weights}."
            )
        check_finite(self)
        self.parsed_label_ranges()
        needs = (  # an option, the option that it needs, whether the latter is given
            ("dataset_config_name", "dataset_name", self.dataset_name is not None),
            ("validation_dataset_name", "dataset_name", self.has_pairs),
            ("predict_output", "predict_file", self.predict_file is not None),
            ("backend", "predict_file", self.predict_file is not None),
        )
        for name, companion, is_given in needs:
            if getattr(self, name) != getattr(type(self), name) and not is_given:
                raise ValueError(f"`{name}` has no effect without `--{companion}`. Give that, too, or leave it out.")
        if self.validation_split_percentage is not None and not 0 < self.validation_split_percentage < 100:
            raise ValueError(
                f"`validation_split_percentage` must lie between 0 and 100, but is {self.validation_split_percentage}."
            )
        self._check_folds()
        for name in ("max_train_samples", "max_eval_samples", "predict_chunk_size"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {value}.")
        if self.predict_output and Path(self.predict_output).suffix not in (".csv", ".jsonl"):
            raise ValueError(f"`predict_output` must end in .csv or .jsonl, but is {self.predict_output!r}.")

    def _check_folds(self) -> None:
        if not 1 <= self.folds <= MAX_FOLDS:
            raise ValueError(f"`folds` must lie between 1 and {MAX_FOLDS}, but is {self.folds}.")
        of_development = ("validation_file", "validation_dataset_name", "validation_split_percentage")
        given = [name for name in of_development if getattr(self, name) is not None]
        given += ["dev_leak_filter"] if self.dev_leak_filter != "none" else []
        if self.folds > 1 and given:
            raise ValueError(
                f"`folds` scores the training pairs in place of development pairs, and `{given[0]}` is about these. "
                "Leave one of them out."
            )
        if self.folds > 1 and self.learning_curve:
            raise ValueError(
                "`learning_curve` compares models on the same development pairs, and `folds` holds none out. Leave "
                "one of them out."
            )

    def parsed_label_ranges(self) -> dict[str, tuple[float, float]]:
        """
        `label_ranges` by file.

        Raises:
            ValueError: for a text that is not of the form FILE=LOW:HIGH, with two finite numbers, the lower one first.
        """
        parsed = {}
        for text in self.label_ranges or []:
            file, _, limits = text.rpartition("=")
            try:
                low, high = map(float, limits.split(":"))
            except ValueError:
                low = high = math.nan
            if not (file and math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError(f"`label_ranges` must hold texts such as pairs.csv=0:10, but holds {text!r:.200}.")
            parsed[file] = (low, high)
        return parsed

    @property
    def trains_twice(self) -> bool:
        """Whether `refit` asks for a first training without the held-out pairs; with `folds` it only averages."""
        return self.refit and self.folds == 1

    @property
    def has_pairs(self) -> bool:
        """Whether any source of labelled pairs was named, the STS tasks apart."""
        return any((self.dataset_name, self.train_file, self.validation_file, self.test_file))


@dataclass
class TrainingOptions:
    """Training options that transformers lacks, and options of transformers with other defaults."""

    _argument_group_name: ClassVar[str] = "training"

    output_dir: str | None = _option(
        "", "Folder of the run. Default: outputs/<data>-<loss>, or outputs/<model>-<data> without training."
    )
    per_device_train_batch_size: int = _option(16, "Pairs per device and step; the paper's 16.")
    per_device_eval_batch_size: int = _option(64, "Pairs per device and evaluation step.")
    learning_rate: float = _option(2e-5, "Peak learning rate.")
    num_train_epochs: float = _option(4.0, "Passes over the training pairs.")
    warmup_steps: float = _option(0.1, "Steps of linear warm-up; below 1 a share of all steps.")
    weight_decay: float = _option(0.01, "Weight decay of AdamW, not on biases and normalisation.")
    logging_steps: float = _option(10, "Steps between two entries of the loss curve.")
    eval_strategy: str = _option(
        "epoch", "When to score the development pairs: no, steps or epoch.", choices=("no", "steps", "epoch")
    )
    save_strategy: str = _option(
        "epoch", "When to save a checkpoint: no, steps, epoch or best.", choices=("no", "steps", "epoch", "best")
    )
    save_total_limit: int | None = _option(
        1,
        "Checkpoints kept. The best and the latest always stay during training; 1 leaves the best. Without a recipe "
        "of yours and without an option --save_…, a finished run keeps none.",
    )
    logging_nan_inf_filter: bool = _option(
        False, "Hide NaN in the logged loss. Costs one device synchronisation per step."
    )
    load_best_model_at_end: bool = _option(True, "End with the checkpoint of the best development score.")
    metric_for_best_model: str | None = _option(
        "spearman_cosine",
        "Development measure that selects the best checkpoint; spearman_head if there is no cosine.",
    )
    report_to: None | str | list[str] = field(
        default_factory=lambda: ["tensorboard"] if importlib.util.find_spec("tensorboard") else ["none"],
        metadata={"help": "Experiment trackers. Default: TensorBoard if it is installed."},
    )
    head_learning_rate: float = _option(1e-3, "Peak learning rate of the head.")
    layerwise_lr_decay: float = _option(
        1.0, "Factor on the learning rate from each encoder layer to the next lower one."
    )
    embeddings_lr_decay: bool = _option(
        True, "Decay the learning rate of the embeddings, too, as the layer below the lowest."
    )
    precision: str = _option(
        "auto",
        "Arithmetic of training: bfloat16 mixed precision, float32, or auto for bfloat16 if the hardware has "
        "instructions for it. Scores are computed in float32; --bf16 uses mixed precision for them, too.",
        choices=PRECISIONS,
    )
    self_distillation: float = _option(
        0.0,
        "Weight of a loss term that keeps cosines between texts of different pairs of a batch close to their values "
        "before training: the mean squared change, in the units of the loss (similarity-preserving distillation, Tung "
        "and Mori 2019).",
    )
    source_scales: bool = _option(
        False,
        "Give each training set an affine map of the score onto its labels, fitted before training: the same cosine "
        "means different grades in different corpora. The model has the scale of the first set. For regression "
        "losses.",
    )
    group_intercepts: bool = _option(
        False,
        "Fit an intercept for each group of training pairs that share a text, such as a hard question, before "
        "training, and leave it out of the loss. For regression losses.",
    )
    wise_ft_alpha: float = _option(
        1.0,
        "Share of the trained weights in the final encoder; the rest are the original weights "
        "(WiSE-FT, Wortsman et al. 2022). Below 1 the encoder forgets less about other texts.",
    )
    keep_start_if_better: bool = _option(
        False,
        "Return the untouched encoder if the trained model's score ranks the development pairs worse than its cosine, "
        "by more than one standard error. Needs a head on the cosine. The recipes for your own pairs turn it on.",
    )
    model_soup: int = _option(
        1,
        "Train this many times from the same weights, with the pairs in another order each time, and average the "
        "trained weights (model soup, Wortsman et al. 2022).",
    )
    schedule_stretch: float = _option(
        1.0,
        "Plan the learning-rate schedule for this many times the actual steps, so that training ends before the "
        "schedule does. The paper's code: 4, or 2.",
    )
    head_solver: str = _option(
        "adamw",
        "adamw trains the head step by step; lbfgs solves for the head of a frozen encoder at once, with half the "
        "weight_decay as penalty on its squared weights.",
        choices=HEAD_SOLVERS,
    )
    interval_level: float = _option(
        0.9,
        "After training, learn grades and intervals from the development pairs; an interval contains the label with "
        "this probability, from 0.5 to 0.99. 0 learns neither; scores are then the raw output of the head.",
    )
    cpu_threads: int | None = _option(
        help="CPU threads per process. Default: an equal share of the cores; accelerate's launcher would set one."
    )
    verbose: bool = _option(
        False,
        "Show technical lines, messages and bars of the libraries, and all development measures unformatted.",
    )
    overwrite_output_dir: bool = _option(
        False, "Replace the run that output_dir holds, and an existing file of predictions."
    )
    push_to_hub: bool = _option(
        False,
        "Publish the finished run on the Hub as hub_model_id, in one commit. A new repository is private unless "
        "hub_private_repo is false; an existing one keeps its visibility.",
    )
    overwrite_repository: bool = _option(
        False, "Replace the content of hub_model_id, even if it is another kind of repository."
    )
