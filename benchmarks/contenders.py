"""The contenders of `speed.py`, each in its own process: `python benchmarks/contenders.py NAME PAIRS_FILE AMOUNT`.

A contender prints one line of JSON: its count of pairs or sentences and the seconds they took, the rate of a float32
matrix product before and after (the speed of the machine at that moment), and the peak memory of its process. The
paper's loop repeats its published code: separate passes for both sides, padding to 256 tokens, and tokenisation of one
sentence at a time.
"""

import functools
import json
import logging
import os
import sys
import time
from collections.abc import Callable

import torch
from datasets import Dataset

from benchmarks.contenders_of_speed.scoring import (
    encoding_of_onnx,
    encoding_of_ours,
    encoding_of_the_library,
    evaluation_of_ours,
    evaluation_of_the_library,
    evaluation_of_the_paper,
)
from benchmarks.contenders_of_speed.search import (
    matrix_by_cdist,
    matrix_of_ours,
    search_of_ours,
    search_of_the_library,
)
from benchmarks.contenders_of_speed.shared import Result
from benchmarks.contenders_of_speed.training import (
    frozen_epoch_of_ours,
    memory_of_ours,
    profile_of_ours,
    start_of_ours,
    start_of_the_library,
    training_of_ours,
    training_of_the_library,
    training_of_the_paper,
)
from sts_regression.command.command_help import keep_freed_memory
from sts_regression.data.pairs import read_pairs
from sts_regression.training.run_record import peak_memory_bytes

SGEMM_SIZE = 2048
OURS = (  # commands of ours, which prepare their process
    "training",
    "training-padded",
    "training-bf16",
    "training-frozen-embeddings",
    "training-both",
    "training-lora",
    "encoding",
    "encoding-bf16",
    "encoding-int8",
    "evaluation",
    "frozen",
    "matrix",
    "search-cosine",
    "search-head",
    "memory",
    "memory-lora",
    "profile",
    "profile-bf16",
)


def main() -> None:
    """Runs the contender that the command line names."""
    name, path, amount = sys.argv[1], sys.argv[2], int(sys.argv[3])
    logging.getLogger("transformers").setLevel(logging.ERROR)
    if name in OURS:
        keep_freed_memory()  # as run_sts.py does
    pairs = read_pairs(path).pairs.shuffle(seed=0)
    rate_before = sgemm_rate()
    result = CONTENDERS[name](pairs, amount)
    record = {
        **result,
        "sgemm_flops_per_second": [rate_before, sgemm_rate()],
        "peak_memory_bytes": peak_memory_bytes()["process"],
        "threads": torch.get_num_threads(),
    }
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()
    os._exit(0)  # skips the seconds that libraries take to shut down


def sgemm_rate() -> float:
    """Floating-point operations per second of a square float32 matrix product: the best of ten."""
    a, b = torch.randn(2, SGEMM_SIZE, SGEMM_SIZE).unbind()
    seconds = []
    for _ in range(10):
        started = time.perf_counter()
        a @ b
        seconds.append(time.perf_counter() - started)
    return 2 * SGEMM_SIZE**3 / min(seconds)


CONTENDERS: dict[str, Callable[[Dataset, int], Result]] = {
    "training": training_of_ours,
    "training-padded": lambda pairs, steps: training_of_ours(pairs, steps, encoding="padded"),
    "training-bf16": lambda pairs, steps: training_of_ours(pairs, steps, bf16=True),
    "training-frozen-embeddings": lambda pairs, steps: training_of_ours(pairs, steps, freeze_embeddings=True),
    "training-both": lambda pairs, steps: training_of_ours(pairs, steps, bf16=True, freeze_embeddings=True),
    "training-lora": lambda pairs, steps: training_of_ours(pairs, steps, use_peft=True),
    "training-paper": training_of_the_paper,
    "training-paper-fair": lambda pairs, steps: training_of_the_paper(pairs, steps, padding=True),
    "training-st-cosine": lambda pairs, steps: training_of_the_library(pairs, steps, "CosineSimilarityLoss"),
    "training-st-cosent": lambda pairs, steps: training_of_the_library(pairs, steps, "CoSENTLoss"),
    "training-st-bf16": functools.partial(
        training_of_the_library, loss="CosineSimilarityLoss", bf16=True, use_cpu=True
    ),
    "start": start_of_ours,
    "start-st": start_of_the_library,
    "encoding": encoding_of_ours,
    "encoding-bf16": functools.partial(encoding_of_ours, bf16=True),
    "encoding-int8": functools.partial(encoding_of_ours, backend="onnx-int8"),
    "encoding-onnx": functools.partial(encoding_of_onnx, quantize=False),
    "encoding-onnx-int8": functools.partial(encoding_of_onnx, quantize=True),
    "encoding-st-bf16": functools.partial(encoding_of_the_library, batch_size=32, dtype=torch.bfloat16),
    **{f"encoding-st-{size}": functools.partial(encoding_of_the_library, batch_size=size) for size in (32, 64, 128)},
    "evaluation": evaluation_of_ours,
    "evaluation-st": evaluation_of_the_library,
    "evaluation-paper": evaluation_of_the_paper,
    "frozen": frozen_epoch_of_ours,
    "frozen-paper": lambda pairs, steps: training_of_the_paper(pairs, steps, is_frozen=True),
    "matrix": matrix_of_ours,
    "matrix-cdist": matrix_by_cdist,
    "search-cosine": lambda pairs, count: search_of_ours(pairs, count, "cosine"),
    "search-head": lambda pairs, count: search_of_ours(pairs, count, "head"),
    "search-st": search_of_the_library,
    "memory": memory_of_ours,
    "memory-lora": lambda pairs, steps: memory_of_ours(pairs, steps, use_peft=True),
    "profile": profile_of_ours,
    "profile-bf16": functools.partial(profile_of_ours, dtype=torch.bfloat16),
}

if __name__ == "__main__":
    main()
