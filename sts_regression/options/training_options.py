"""Options of training."""

import importlib.util
from dataclasses import dataclass, field
from typing import ClassVar

from sts_regression.options.fields import option

PRECISIONS = ("auto", "float32", "bfloat16")  # of training
HEAD_SOLVERS = ("adamw", "lbfgs")


@dataclass
class TrainingOptions:
    """Training options that transformers lacks, and options of transformers with other defaults."""

    _argument_group_name: ClassVar[str] = "training"

    output_dir: str | None = option(
        "", "Folder of the run. Default: outputs/<data>-<loss>, or outputs/<model>-<data> without training."
    )
    per_device_train_batch_size: int = option(16, "Pairs per device and step.")
    per_device_eval_batch_size: int = option(64, "Pairs per device and evaluation step.")
    learning_rate: float = option(2e-5, "Peak learning rate.")
    num_train_epochs: float = option(4.0, "Passes over the training pairs.")
    warmup_steps: float = option(0.1, "Steps of linear warm-up; below 1 a share of all steps.")
    weight_decay: float = option(0.01, "Weight decay of AdamW, not on biases and normalisation.")
    logging_steps: float = option(10, "Steps between two entries of the loss curve.")
    eval_strategy: str = option(
        "epoch", "When to score the development pairs: no, steps or epoch.", choices=("no", "steps", "epoch")
    )
    save_strategy: str = option(
        "epoch", "When to save a checkpoint: no, steps, epoch or best.", choices=("no", "steps", "epoch", "best")
    )
    save_total_limit: int | None = option(
        1,
        "Number of checkpoints to keep. Training always keeps the best and the latest; at its end, 1 leaves the best. "
        "A finished run keeps none unless you name a recipe or give an option --save_….",
    )
    logging_nan_inf_filter: bool = option(
        False, "Hide NaN in the logged loss. Costs one device synchronisation per step."
    )
    load_best_model_at_end: bool = option(True, "End with the checkpoint that has the best development score.")
    metric_for_best_model: str | None = option(
        "spearman_cosine",
        "Development measure that selects the best checkpoint; spearman_head if there is no cosine.",
    )
    report_to: None | str | list[str] = field(
        default_factory=lambda: ["tensorboard"] if importlib.util.find_spec("tensorboard") else ["none"],
        metadata={"help": "Experiment trackers. Default: TensorBoard if it is installed."},
    )
    head_learning_rate: float = option(1e-3, "Peak learning rate of the head.")
    layerwise_lr_decay: float = option(
        1.0, "Factor on the learning rate from each encoder layer to the next lower one."
    )
    embeddings_lr_decay: bool = option(
        True, "Decay the learning rate of the embeddings, too, as the layer below the lowest."
    )
    precision: str = option(
        "auto",
        "Arithmetic of training: bfloat16 mixed precision, float32, or auto for bfloat16 if the hardware has "
        "instructions for it. Scores are computed in float32; --bf16 uses mixed precision for them, too.",
        choices=PRECISIONS,
    )
    self_distillation: float = option(
        0.0,
        "Weight of a loss term that keeps cosines between texts of different pairs of a batch close to their values "
        "before training: the mean squared change, in the units of the loss (similarity-preserving distillation, Tung "
        "and Mori 2019).",
    )
    matryoshka_dims: list[int] | None = option(
        help="Also train the first numbers of each embedding, for each of these lengths, such as 256 128 64, so that "
        "embeddings can be shortened (Matryoshka, Kusupati et al. 2022). Needs a head on the cosine."
    )
    source_scales: bool = option(
        False,
        "Give each training set an affine map of the score onto its labels, fitted before training: the same cosine "
        "means different grades in different corpora. The model has the scale of the first set. For regression "
        "losses.",
    )
    group_intercepts: bool = option(
        False,
        "Before training, fit an intercept for each group of training pairs that share a text, such as a hard "
        "question, and subtract it before the loss is computed. For regression losses.",
    )
    wise_ft_alpha: float = option(
        1.0,
        "Share of the trained weights in the final encoder; the rest are the original weights "
        "(WiSE-FT, Wortsman et al. 2022). Below 1 the encoder forgets less about other texts.",
    )
    keep_start_if_better: bool = option(
        False,
        "Return the untouched encoder if the trained model's score ranks the development pairs significantly worse "
        "than its cosine. Needs a head on the cosine. The recipes for your own pairs turn it on.",
    )
    model_soup: int = option(
        1,
        "Train this many times from the same weights, with the pairs in another order each time, and average the "
        "trained weights (model soup, Wortsman et al. 2022).",
    )
    schedule_stretch: float = option(
        1.0,
        "Plan the learning-rate schedule for this many times the actual steps, so that training ends before the "
        "schedule does. The paper's code: 4, or 2.",
    )
    head_solver: str = option(
        "adamw",
        "adamw trains the head step by step; lbfgs solves for the head of a frozen encoder at once, with half the "
        "weight_decay as penalty on its squared weights.",
        choices=HEAD_SOLVERS,
    )
    interval_level: float = option(
        0.9,
        "After training, learn grades and intervals from the development pairs; an interval contains the label with "
        "this probability, from 0.5 to 0.99. 0 learns neither; scores are then the raw output of the head.",
    )
    cpu_threads: int | None = option(help="CPU threads per process. Default: an equal share of the cores.")
    verbose: bool = option(
        False,
        "Show technical lines, messages and progress bars of the libraries, and all development measures.",
    )
    overwrite_output_dir: bool = option(
        False, "Replace the run that output_dir holds, files of the same names, and an existing file of predictions."
    )
    push_to_hub: bool = option(
        False,
        "Publish the finished run on the Hub as hub_model_id, in one commit.",
    )
    hub_model_id: str | None = option(help="Repository to publish to: USER/NAME.")
    hub_private_repo: bool | None = option(
        help="Whether a new repository is private; an existing one keeps its visibility. Default: true."
    )
    overwrite_repository: bool = option(
        False, "Replace the content of hub_model_id, even if it is another kind of repository."
    )
