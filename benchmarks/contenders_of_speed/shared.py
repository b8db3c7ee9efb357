"""The common parts of the contenders: model, options, sentences, and the measurement of time."""

import statistics
import time
from collections.abc import Callable
from typing import Any

from datasets import Dataset
from torch import Tensor

from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.loading import find_model, load_model
from sts_regression.training.training_arguments import STSTrainingArguments

BATCH_SIZE = 16
MAX_LENGTH = 256
LEARNING_RATE = 5e-5

Result = dict[str, Any]  # `count` of `unit`s in `seconds`, the median of a step times their number


def load(**options: Any) -> tuple[STSRegressionModel, Any]:
    """Our model around MiniLM, and its tokenizer."""
    model, tokenizer = load_model(find_model(None), options)
    tokenizer.model_max_length = MAX_LENGTH
    return model, tokenizer


def timed(work: Callable[[], Any]) -> float:
    """Seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median_of(work: Callable[[], Any], times: int = 7) -> float:
    """Median seconds of several calls."""
    return statistics.median(timed(work) for _ in range(times))


def distinct_sentences(pairs: Dataset, count: int) -> list[str]:
    """The first `count` different sentences."""
    return list(dict.fromkeys(pairs[:]["sentence1"] + pairs[:]["sentence2"]))[:count]


def tokenize_padded(texts: list[str], tokenizer: Any, padding: str | bool) -> dict[str, Tensor]:
    """A padded batch of one side."""
    return dict(tokenizer(texts, padding=padding, truncation=True, max_length=MAX_LENGTH, return_tensors="pt"))


def few_steps(steps: int, **options: Any) -> dict[str, Any]:
    """Options for both trainers: the given number of steps, without evaluations or checkpoints."""
    return {
        "output_dir": "outputs/benchmark",
        "max_steps": steps,
        "per_device_train_batch_size": BATCH_SIZE,
        "learning_rate": LEARNING_RATE,
        "eval_strategy": "no",
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "logging_steps": 10**6,
        **options,
    }


def our_arguments(steps: int, **options: Any) -> STSTrainingArguments:
    """Those of our trainer: in float32, unless the options ask for something else."""
    return STSTrainingArguments(
        **few_steps(steps, **{"precision": "float32", "load_best_model_at_end": False, **options})
    )


def num_multiplied_parameters(model: STSRegressionModel) -> int:
    """The number of encoder parameters that take part in matrix products: all but the embedding tables."""
    return sum(p.numel() for name, p in model.encoder.named_parameters() if "embeddings." not in name)
