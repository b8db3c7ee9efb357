"""The record of a run, `run.json`."""

import dataclasses
import functools
import hashlib
import inspect
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
import torch.distributed as dist
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from sts_regression import SHIPPED_MODULES
from sts_regression.basics.files import file_sha256
from sts_regression.basics.input_files import labelled_files
from sts_regression.basics.tables import read_record, write_json
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data.columns import ROWS_READ_AT_ONCE
from sts_regression.data.pairs import PairSet
from sts_regression.data.ratings import measure_agreement, ratings_of
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.fingerprint import fingerprint
from sts_regression.models.loading import ModelSource
from sts_regression.options.data_arguments import DataArguments
from sts_regression.training.run_folder import INPUT_TITLES, RUN_FILE, recorded_segments
from sts_regression.training.trainer import STSTrainer
from sts_regression.training.training_arguments import STSTrainingArguments

HIDDEN = "…"
STAGE_KEYS = ("arguments", "data", "leakage", "training", "results", "seconds", "peak_memory_bytes")
PACKAGES = (
    "torch",
    "transformers",
    "accelerate",
    "datasets",
    "evaluate",
    "tokenizers",
    "numpy",
    "scipy",
    "scikit-learn",
)


def describe_pairs(pairs: Dataset, parts: Sequence[PairSet], part_of_pair: np.ndarray | None = None) -> dict[str, Any]:
    """
    Describes the pairs of a split after all filters: their number and SHA-256 (sentences and labels in order).

    For each source of the split, it adds its name, its label scale, how many of its pairs are used, and how many were
    left out because they had no label. If several raters graded the pairs, it adds their agreement, see
    [`Agreement`].

    Args:
        pairs: the pairs of the split.
        parts: the sets that the pairs come from.
        part_of_pair: the number of each pair's set, shape (pairs,); by default all pairs of the sets are used.
    """
    counts = [len(part.pairs) for part in parts]
    if part_of_pair is not None:
        counts = np.bincount(part_of_pair, minlength=len(parts)).tolist()
    digest = hashlib.sha256()
    names = [name for name in ("sentence1", "sentence2", "label") if name in pairs.column_names]
    for batch in pairs.select_columns(names).iter(ROWS_READ_AT_ONCE):
        for row in zip(*(batch[name] for name in names), strict=True):
            digest.update(json.dumps(row, ensure_ascii=False).encode())
    return {
        "source": " + ".join(part.name for part in parts),
        "pairs": len(pairs),
        "sha256": digest.hexdigest(),
        "parts": [
            {
                "source": part.name,
                "label_scale": None if part.scale is None else list(part.scale.values),
                "pairs": count,
                "unlabelled": part.num_unlabelled,
                **_describe_raters(part.pairs),
            }
            for part, count in zip(parts, counts, strict=True)
        ],
    }


def identify_inputs(
    data_args: DataArguments,
    data: Mapping[str, Mapping[str, Any]],
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
) -> dict[str, Any]:
    """
    Digests that are equal if two runs began with the same pairs and the same model, even under other names.

    Args:
        data_args: options that name the files of pairs.
        data: the descriptions of the splits, see [`describe_pairs`].
        model: the model that training starts from, before it is changed.
        tokenizer: the model's tokenizer.

    Returns:
        A `dict` of SHA-256 digests: of the pairs of each split; of the `model`, without a fresh head, which depends on
        the seed only; and of the `files` by name.
    """
    splits = {split: described["sha256"] for split, described in data.items() if split in INPUT_TITLES}
    model_digest = fingerprint(model, tokenizer, with_head=model.config.head_is_trained)
    return {**splits, "model": model_digest, "files": file_digests(data_args)}


def file_digests(data_args: DataArguments) -> dict[str, str]:
    """SHA-256 of each file of training, development or test pairs, by its path in the options."""
    return {str(path): _file_digest(str(path), Path(path).stat().st_mtime_ns) for path in labelled_files(data_args)}


@functools.cache  # a sweep names the same files in all its runs
def _file_digest(path: str, changed_at: int) -> str:
    return file_sha256(Path(path))


def _describe_raters(pairs: Dataset) -> dict[str, Any]:
    ratings = ratings_of(pairs)
    agreement = None if ratings is None else measure_agreement(ratings)
    return {} if agreement is None else {"agreement": dataclasses.asdict(agreement)}


def describe_arguments(*groups: Any) -> dict[str, Any]:
    """The options that differ from their defaults, without tokens."""
    described = {}
    for group in groups:
        defaults = _defaults(type(group))  # type: ignore[arg-type]
        for option in dataclasses.fields(group):
            value = getattr(group, option.name)
            if value != getattr(defaults, option.name) and not option.name.endswith("_token"):
                described[option.name] = value if isinstance(value, (int, float, str, list, dict)) else str(value)
    return described


@functools.cache
def _defaults(group: type) -> Any:
    return group()  # once: each new TrainingArguments resets the state that accelerate keeps in the process


def describe_command(words: Sequence[str]) -> list[str]:
    """The words of the command line, with the token hidden."""
    described, hides_next = [], False
    for word in words:
        option, equals, _ = word.partition("=")
        is_token = option.replace("-", "_") == "__hub_token"
        described.append(HIDDEN if hides_next else f"{option}={HIDDEN}" if is_token and equals else word)
        hides_next = is_token and not equals
    return described


def describe_loaded_model(model: STSRegressionModel, source: ModelSource) -> dict[str, Any]:
    """
    Base model, size and options of the model.

    `hub_base_model` is the Hub id of the model that the run began with, or else of its encoder; `None` if neither has
    one.
    """
    options = model.config.to_dict()
    names = inspect.signature(STSRegressionConfig.__init__).parameters
    return {
        "base_model": source.base_model or source.path,
        "hub_base_model": source.base_model or model.config.encoder_config.name_or_path or None,
        "parameters": model.num_parameters(),
        "config": {name: options[name] for name in names if name in options and name != "encoder_config"},
    }


def describe_training(metrics: dict[str, float], trainer: STSTrainer) -> dict[str, Any]:
    """
    Steps, duration, best step and the log of the loss.

    `metrics` cover the steps after `continued_from_step`, which is 0 for a run that was not interrupted; `segments`
    has an entry for each command that trained.
    """
    return {
        **metrics,
        "steps": trainer.state.global_step,
        "continued_from_step": trainer.continued_from_step,
        "best_step": trainer.state.best_global_step,
        "segments": recorded_segments(Path(trainer.args.output_dir or "")),
        "log_history": [
            {name: value for name, value in entry.items() if not isinstance(value, float) or math.isfinite(value)}
            for entry in trainer.state.log_history  # the gradient's norm is infinite in a step that fp16 skips
        ],
    }


def describe_stages(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Options, data, training, results and seconds of the stages before this one, from their `run.json`."""
    records = [read_record(folder / RUN_FILE) for folder in folders]
    return [{name: record[name] for name in STAGE_KEYS} for record in records]


def describe_environment() -> dict[str, Any]:
    """Versions, commit and machine, as far as they affect results."""
    commit = _git("rev-parse", "HEAD")
    return {
        "python": platform.python_version(),
        **{package: metadata.version(package) for package in PACKAGES},
        "code": _code_digest(),
        "commit": commit,
        # Changed results do not count: only changes of code can change a run.
        "uncommitted_changes": None if commit is None else bool(_git("status", "--porcelain", "-uno", ":!results")),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU ({platform.machine()})",
        "processes": dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1,
        "threads": torch.get_num_threads(),
    }


@functools.cache
def _code_digest() -> str:
    """SHA-256 of the modules of this package, since an installed package has no commit."""
    package = Path(__file__).parents[1]
    beside = (package.parent / f"{module}.py" for module in SHIPPED_MODULES)  # in a clone
    digest = hashlib.sha256()
    for path in [*sorted(package.rglob("*.py")), *filter(Path.is_file, beside)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def describe_determinism(training_args: STSTrainingArguments) -> dict[str, Any]:
    """The settings, besides the environment, that a repetition must share to give the same weights to the last bit."""
    precision = "bf16" if training_args.bf16 else "fp16" if training_args.fp16 else None
    if training_args.do_train and training_args.trains_in_bfloat16:
        precision = "bf16 in training"
    return {
        "seed": training_args.seed,
        "data_seed": training_args.seed if training_args.data_seed is None else training_args.data_seed,
        "precision": precision or os.environ.get("ACCELERATE_MIXED_PRECISION", "no"),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


def _git(*arguments: str) -> str | None:
    """The output of git for this repository; `None` if the package does not run from a clone."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():  # an installed package may lie inside a repository that is not ours
        return None
    try:
        finished = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return finished.stdout.strip()


def peak_memory_bytes() -> dict[str, int]:
    """Largest resident memory of this process so far, and largest allocation on its GPU, if there is one."""
    if sys.platform == "win32":
        peak = {"process": psutil.Process().memory_info().peak_wset}
    else:
        import resource  # missing on Windows

        unit = 1 if sys.platform == "darwin" else 1024
        peak = {"process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    if torch.cuda.is_available():
        peak["gpu"] = torch.cuda.max_memory_allocated()
    return peak


def write_run_record(record: dict[str, Any], output_dir: Path) -> None:
    """Writes `run.json`. Raises `ValueError` for NaN and infinite numbers, which JSON does not know."""
    write_json(record, output_dir / RUN_FILE)
