"""The options of training: ours and those of transformers' TrainingArguments, and their checks.

transformers checks some of its options late or not at all, and others do not suit graded pairs.
"""

import dataclasses
import json
import os
from dataclasses import dataclass
from typing import Any

import torch
from accelerate.utils import DynamoBackend
from transformers import TrainingArguments, get_scheduler
from transformers.integrations import get_reporting_integration_callbacks

from sts_regression.basics.distributed import weights_split_by
from sts_regression.basics.files import is_file
from sts_regression.basics.hub_names import Repository
from sts_regression.grading.intervals import LEVELS
from sts_regression.options.data_arguments import DataArguments
from sts_regression.options.fields import check_finite
from sts_regression.options.model_arguments import ModelArguments
from sts_regression.options.training_options import PRECISIONS, TrainingOptions

# Options of transformers that hold mappings, written as JSON. Those in the second tuple may also name a JSON file.
MAPPING_OPTIONS = ("lr_scheduler_kwargs", "gradient_checkpointing_kwargs", "activation_checkpointing_kwargs")
MAPPING_FILE_OPTIONS = ("accelerator_config",)
LOWEST = {
    **dict.fromkeys(("learning_rate", "weight_decay", "max_grad_norm", "seed", "data_seed", "eval_delay"), 0),
    **dict.fromkeys(("adam_beta1", "adam_beta2", "adam_epsilon", "dataloader_num_workers", "num_train_epochs"), 0),
    **dict.fromkeys(("neftune_noise_alpha", "eval_steps", "save_steps"), 0),
    **dict.fromkeys(("per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps"), 1),
    **dict.fromkeys(("eval_accumulation_steps", "save_total_limit", "dataloader_prefetch_factor", "ddp_timeout"), 1),
}
MAX_SEED = 2**32 - 1  # NumPy's
HIGHEST = {"seed": MAX_SEED, "data_seed": MAX_SEED}

# Options of transformers that must keep their default here, each with the reason; REMEDIES has the alternatives.
_ONE_PIECE = "the scores of all pairs are measured together"
_LAUNCHED = "the launcher decides how a model is split up"
REFUSED = {
    "average_tokens_across_devices": "a loss is the mean over the pairs of all processes in any case",
    "batch_eval_metrics": _ONE_PIECE,
    "dataloader_in_order": "scores would not be in the order of their pairs",
    "deepspeed": _LAUNCHED,
    "enable_jit_checkpoint": "a killed run would end as if it were finished",
    "eval_do_concat_batches": _ONE_PIECE,
    "eval_use_gather_object": _ONE_PIECE,
    "fsdp": _LAUNCHED,
    "fsdp_config": _LAUNCHED,
    "include_for_metrics": "measures need scores and labels alone",
    "label_names": "in transformers, it names the model's label inputs",
    "label_smoothing_factor": "it smooths classes, and labels are grades",
    "length_column_name": "lengths are counted when pairs are tokenised",
    "liger_kernel_config": "its kernels are for language models",
    "parallelism_config": _LAUNCHED,
    "prediction_loss_only": "measures need the scores",
    "use_cache": "nothing is generated",
    "use_liger_kernel": "its kernels are for language models",
}
REMEDIES = {
    **dict.fromkeys(("deepspeed", "fsdp", "fsdp_config"), ("Launch with a file of `accelerate_configs`.",)),
    "enable_jit_checkpoint": ("`--resume_from_checkpoint true` resumes from the last checkpoint.",),
    "label_names": ("To name grades, give `--grade_names`.",),
}
# Arguments of torch.utils.checkpoint and of transformers.
CHECKPOINTING_KEYS = (
    *("use_reentrant", "preserve_rng_state", "determinism_check", "debug", "early_stop", "every_n_layers", "offload"),
)
COMPILE_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
MEASURED_SCHEDULES = ("reduce_lr_on_plateau", "greedy")  # follow the development measure
GREEDY_MIN_LR = 1e-3  # the default of transformers' GreedyLR

CORRELATIONS = ("spearman", "pearson", "kendall")
GRADE_MEASURES = ("accuracy", "macro_f1", "mae", "quadratic_kappa")
ERRORS = ("loss", "mae_head")  # measures for which lower is better


def name_of(choice: Any) -> str:
    """The name of a choice, which may be an enumeration's."""
    return str(getattr(choice, "value", choice))


def check_ranges(options: Any) -> None:
    """Raises `ValueError` for the first training option that is too low or too high."""
    for name, lowest in LOWEST.items():
        if (value := getattr(options, name)) is not None and value < lowest:
            raise ValueError(f"`{name}` must be at least {lowest}, but is {value}.")
    for name, highest in HIGHEST.items():
        if (value := getattr(options, name)) is not None and value > highest:
            raise ValueError(f"`{name}` must be at most {highest}, but is {value}.")


def check_mappings(options: Any) -> None:
    """Raises `ValueError` for an option that is neither a mapping nor, if it may be one, a file of a mapping."""
    for name in (*MAPPING_OPTIONS, *MAPPING_FILE_OPTIONS):
        value, may_be_file = getattr(options, name, None), name in MAPPING_FILE_OPTIONS
        if isinstance(value, str) and not (may_be_file and is_file(value)) and _json_mapping(value) is None:
            or_file = " or the name of a JSON file" if may_be_file else ""
            raise ValueError(f"`{name}` must be a mapping as JSON{or_file}, but is {value!r:.200}.")


def _json_mapping(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def check_refused(options: Any) -> None:
    """Raises `ValueError` for an option of transformers that would have no effect here, or do harm."""
    for name, reason in REFUSED.items():
        if _is_given(options, name):
            remedy = " ".join(["Leave it out.", *REMEDIES.get(name, ())])
            raise ValueError(f"`{name}` is {getattr(options, name)!r:.200}, but {reason}. {remedy}")


def check_companions(options: Any) -> None:
    """
    Refuses options of transformers that would fail late, alone or in combination.

    Raises:
        ValueError: for such an option; the message names it and the remedy.
    """
    start_method = getattr(options, "dataloader_multiprocessing_context", None)
    if start_method not in (None, "fork"):
        raise ValueError(
            f"`dataloader_multiprocessing_context` must be fork, but is {start_method!r:.80}: the function that makes "
            "batches cannot be pickled. Leave it out."
        )
    if options.save_only_model and options.resume_from_checkpoint is not None:
        raise ValueError(
            "`save_only_model` saves no state of the optimizer, which `--resume_from_checkpoint` needs. "
            "Leave one of them out."
        )
    if options.ddp_backend is not None and "RANK" not in os.environ:
        raise ValueError("`ddp_backend` is for several processes. Launch them with accelerate, or leave it out.")
    for name in ("activation_checkpointing_kwargs", "gradient_checkpointing_kwargs"):
        if unknown := sorted(_mapping(getattr(options, name, None)).keys() - set(CHECKPOINTING_KEYS)):
            raise ValueError(
                f"`{name}` has an unknown key {unknown[0]!r:.80}. Known keys: {', '.join(CHECKPOINTING_KEYS)}."
            )


def _is_given(options: Any, name: str) -> bool:
    """Whether transformers knows an option, and its value is not the default."""
    option = TrainingArguments.__dataclass_fields__.get(name)
    if option is None:
        return False
    default = option.default if option.default_factory is dataclasses.MISSING else option.default_factory()
    return getattr(options, name) != default


def _trackers(options: Any) -> list[str]:
    return [options.report_to] if isinstance(options.report_to, str) else options.report_to or []


def check_trackers(options: Any) -> None:
    """Raises `ValueError` for experiment trackers that are unknown or not installed."""
    for name in _trackers(options):
        try:
            for tracker in get_reporting_integration_callbacks([name] if name not in ("none", "all") else name):
                tracker()
        except Exception as error:  # any kind: trackers belong to many libraries
            raise ValueError(
                f"`report_to`: {' '.join(str(error).split()):.300} Or give `--report_to none`."
            ) from error


def has_fast_bfloat16(device_type: str) -> bool:
    """
    Whether the hardware has instructions for matrix products in bfloat16. Without them, the products are emulated,
    which is slow.

    Args:
        device_type: for example `cuda` or `cpu`.
    """
    if device_type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device_type != "cpu":
        return False
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def check_compiler(options: Any) -> None:
    """Raises `ValueError` for backends and modes that torch.compile does not know."""
    backends = [backend.value.lower() for backend in DynamoBackend][1:]  # without "no"
    for name, known in (("torch_compile_backend", backends), ("torch_compile_mode", COMPILE_MODES)):
        value = getattr(options, name)
        if value is not None and value.lower() not in known:
            raise ValueError(f"`{name}` must be one of {', '.join(known)}, but is {value!r:.80}.")


def check_schedule(options: Any) -> None:
    """
    Refuses a learning-rate schedule that cannot be built, or would do the opposite of its purpose.

    For a schedule that follows the development measure, it sets in `lr_scheduler_kwargs` whether higher is better;
    the default of transformers is lower.

    Args:
        options: training options, after transformers has read their mappings.

    Raises:
        ValueError: for such a schedule; the message names the option and the remedy.
    """
    name, given = name_of(options.lr_scheduler_type), options.lr_scheduler_kwargs or {}
    if name in MEASURED_SCHEDULES:
        mode = "max" if options.greater_is_better else "min"
        if given.get("mode", mode) != mode:
            raise ValueError(
                f"`lr_scheduler_kwargs` has the mode {given['mode']!r}, but for {options.metric_for_best_model}, "
                f"{'higher' if options.greater_is_better else 'lower'} is better. Leave it out."
            )
        given = options.lr_scheduler_kwargs = {**given, "mode": mode}
    lowest = given.get("min_lr", GREEDY_MIN_LR)
    if name == "greedy" and isinstance(lowest, int | float) and lowest > options.learning_rate:
        raise ValueError(
            f"`lr_scheduler_type` greedy lifts every rate to `min_lr`, {GREEDY_MIN_LR:g} by default, and "
            f"`learning_rate` is {options.learning_rate:g}. Give a lower one in `--lr_scheduler_kwargs`, such as "
            """'{"min_lr": 0}'."""
        )
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=options.learning_rate)
    try:
        get_scheduler(name, optimizer, num_warmup_steps=1, num_training_steps=10, scheduler_specific_kwargs=given)
    except Exception as error:  # any kind: each schedule checks its own arguments
        raise ValueError(
            f"`lr_scheduler_type` {name} cannot be built with `lr_scheduler_kwargs` {given!s:.200}: {error!s:.300}"
        ) from error


def _mapping(value: Any) -> dict[str, Any]:
    """The mapping of an option that is a mapping, JSON, or left out."""
    return dict(_json_mapping(value) or {}) if isinstance(value, str) else dict(value or {})


def greater_is_better(measure: str | None, given: bool | None) -> bool | None:
    """
    Whether higher is better for the measure that selects the best checkpoint.

    Args:
        measure: the name of the measure, with or without `eval_`.
        given: the value of the option; `None` if it was left out.

    Raises:
        ValueError: if `given` is wrong for the measure.
    """
    if measure is None:
        return given
    name = measure.removeprefix("eval_")
    if name not in known_measures(has_cosine=True, has_head=True, has_grades=True):
        return given  # a measure of `compute_metrics`; other names are refused once the model is known
    is_better = name not in ERRORS
    if given not in (None, is_better):
        raise ValueError(
            f"`greater_is_better` is {given}, but for `metric_for_best_model` {measure}, "
            f"{'higher' if is_better else 'lower'} is better. Leave `--greater_is_better` out."
        )
    return is_better


def known_measures(has_cosine: bool, has_head: bool, has_grades: bool) -> list[str]:
    """
    The development measures, see [`measure_scores`].

    Args:
        has_cosine: whether the model has sentence embeddings.
        has_head: whether its head is trained.
        has_grades: whether every label is a node of the scale.
    """
    scores = [name for name, is_there in (("cosine", has_cosine), ("head", has_head)) if is_there]
    measures = [f"{correlation}_{score}" for score in scores for correlation in CORRELATIONS]
    return [*measures, *(f"{name}_head" for name in GRADE_MEASURES if has_head and has_grades), "loss"]


def with_score(measure: str | None, score: str) -> str | None:
    """The same correlation of another score, `head` or `cosine`. Other measures are returned as they are."""
    name, _, _ = (measure or "").rpartition("_")
    return f"{name}_{score}" if name.removeprefix("eval_") in CORRELATIONS else measure


@dataclass
class STSTrainingArguments(TrainingOptions, TrainingArguments):
    """transformers' TrainingArguments with defaults for graded pairs, and with further options."""

    def __post_init__(self) -> None:
        check_mappings(self)
        if not 0 < self.layerwise_lr_decay <= 1:
            raise ValueError(
                f"`layerwise_lr_decay` must be greater than 0 and at most 1, but is {self.layerwise_lr_decay}. The "
                "paper uses 0.95."
            )
        saving, scoring = name_of(self.save_strategy), name_of(self.eval_strategy)
        if self.load_best_model_at_end and saving not in (scoring, "best"):
            raise ValueError(
                f"`save_strategy` is {saving} and `eval_strategy` is {scoring}, but to keep the best checkpoint, both "
                "must be the same. Change one of them, or give `--load_best_model_at_end false`."
            )
        if self.cpu_threads is not None and self.cpu_threads < 1:
            raise ValueError(f"`cpu_threads` must be at least 1, but is {self.cpu_threads}.")
        if not self.self_distillation >= 0:
            raise ValueError(f"`self_distillation` must be at least 0, but is {self.self_distillation}.")
        if self.model_soup > 1 and self.head_solver == "lbfgs":
            raise ValueError(
                "`model_soup` averages runs that differ, and `--head_solver lbfgs` finds the same head in each. "
                "Leave one of them out."
            )
        if not 0 < self.wise_ft_alpha <= 1:
            raise ValueError(f"`wise_ft_alpha` must be greater than 0 and at most 1, but is {self.wise_ft_alpha}.")
        if self.interval_level and not LEVELS[0] <= self.interval_level <= LEVELS[1]:
            raise ValueError(
                f"`interval_level` must be 0 or lie between {LEVELS[0]} and {LEVELS[1]}, but is {self.interval_level}."
            )
        if self.model_soup < 1:
            raise ValueError(f"`model_soup` must be at least 1, but is {self.model_soup}.")
        if not self.schedule_stretch >= 1:
            raise ValueError(f"`schedule_stretch` must be at least 1, but is {self.schedule_stretch}.")
        if not self.head_learning_rate > 0:
            raise ValueError(f"`head_learning_rate` must be greater than 0, but is {self.head_learning_rate}.")
        check_finite(self)
        check_ranges(self)
        check_refused(self)
        check_companions(self)
        check_trackers(self)
        check_compiler(self)
        self.greater_is_better = greater_is_better(self.metric_for_best_model, self.greater_is_better)
        if not torch.accelerator.is_available():
            # Otherwise each of several CPU processes would silently train alone, and `--bf16` would be refused.
            self.use_cpu = True
        if self.fp16 and self.use_cpu:
            raise ValueError("`fp16` needs an accelerator. Give `--bf16` on a CPU.")  # it would train in float32
        if self.precision not in PRECISIONS:
            raise ValueError(f"`precision` must be one of {', '.join(PRECISIONS)}, but is {self.precision!r:.80}.")
        if weights_split_by() == "DeepSpeed" and os.environ.get("ACCELERATE_MIXED_PRECISION") == "bf16":
            self.bf16 = not self.fp16  # transformers refuses options that differ from DeepSpeed's
        do_eval = self.do_eval
        TrainingArguments.__post_init__(self)
        check_schedule(self)
        # transformers sets it with `eval_strategy`; `parse_stages` decides with a view to the data.
        self.do_eval = do_eval

    @property
    def trains_in_bfloat16(self) -> bool:
        """Whether training, but not scoring, uses bfloat16. Any other mixed precision takes its place."""
        if self.mixed_precision != "no" or self.precision == "float32":
            return False
        return self.precision == "bfloat16" or has_fast_bfloat16(self.device.type)

    @property
    def num_pairs_of_steps(self) -> int | None:
        """The number of pairs in `max_steps` steps of all processes; `None` without a fixed number of steps."""
        if self.max_steps <= 0 or self.head_solver == "lbfgs":
            return None
        return self.max_steps * self.train_batch_size * self.gradient_accumulation_steps * self.world_size


OPTION_GROUPS = (ModelArguments, DataArguments, STSTrainingArguments)
OPTION_NAMES = tuple(option.name for group in OPTION_GROUPS for option in dataclasses.fields(group))


def repository_of(training_args: STSTrainingArguments) -> Repository | None:
    """
    The Hub repository to which the options ask to publish a run; `None` if they do not.

    Raises:
        ValueError: for options that contradict each other, or that would publish anything but the finished run.
    """
    if not training_args.push_to_hub:
        return None
    if not training_args.do_train:
        raise ValueError(
            "`push_to_hub` publishes the model of a training. Train in the same run, or publish the folder of an "
            "earlier one with `sts-regression publish`."
        )
    if "checkpoint" in training_args.hub_strategy or training_args.hub_always_push:
        raise ValueError(
            "`hub_strategy` and `hub_always_push` have no checkpoints to publish: the finished run is published once, "
            "when it is whole. Leave them out."
        )
    return Repository(
        training_args.hub_model_id or "",
        private=training_args.hub_private_repo is not False,
        token=training_args.hub_token,
        revision=training_args.hub_revision,
        overwrite=training_args.overwrite_repository,
    )
