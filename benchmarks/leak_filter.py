"""Times the leak filter on a million made-up training pairs, with as many test pairs as the seven STS tasks have.

    python benchmarks/leak_filter.py          writes results/leakage/speed.json

Modes take turns for several rounds; medians are kept. Memory is the peak of Python's allocations while a filter runs,
without the pairs themselves.
"""

import json
import random
import statistics
import sys
import time
import tracemalloc
from pathlib import Path

from datasets import Dataset

from sts_regression.basics.tables import write_json
from sts_regression.data.leakage import LeakFilter
from sts_regression.data.sts_tasks import EXPECTED_PAIRS
from sts_regression.training.run_record import describe_environment

FILTER_SPEED_FILE = Path(__file__).resolve().parent.parent / "results" / "leakage" / "speed.json"
TRAINING_PAIRS = 1_000_000
ROUNDS = 3
MODES = ("exact", "normalized", "sentence")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def main() -> None:
    """Runs the benchmark and writes its result."""
    generator = random.Random(0)
    test_sets = {name: made_up_pairs(count, generator) for name, count in EXPECTED_PAIRS.items()}
    training_pairs = made_up_pairs(TRAINING_PAIRS, generator)
    seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(ROUNDS):
        for mode in MODES:
            started = time.perf_counter()
            LeakFilter(test_sets, mode).apply(training_pairs)
            seconds[mode].append(time.perf_counter() - started)
    result = {
        "training_pairs": TRAINING_PAIRS,
        "test_pairs": sum(EXPECTED_PAIRS.values()),
        "rounds": ROUNDS,
        "median_seconds": {mode: statistics.median(values) for mode, values in seconds.items()},
        "peak_memory_bytes": {
            str(count): peak_memory(test_sets, training_pairs.select(range(count)))
            for count in (TRAINING_PAIRS // 4, TRAINING_PAIRS // 2, TRAINING_PAIRS)
        },
        "environment": describe_environment(),
    }
    write_json(result, FILTER_SPEED_FILE)
    sys.stdout.write(json.dumps({name: result[name] for name in ("median_seconds", "peak_memory_bytes")}) + "\n")


def made_up_pairs(count: int, generator: random.Random) -> Dataset:
    """Pairs of sentences with twelve words each, an initial capital and a full stop."""
    words = ["".join(generator.choices(LETTERS, k=5)) for _ in range(20_000)]
    columns = {
        name: [" ".join(generator.choices(words, k=12)).capitalize() + "." for _ in range(count)]
        for name in ("sentence1", "sentence2")
    }
    return Dataset.from_dict(columns)


def peak_memory(test_sets: dict[str, Dataset], pairs: Dataset) -> int:
    """The peak of Python's allocations in bytes in the mode `normalized`."""
    tracemalloc.start()
    LeakFilter(test_sets, "normalized").apply(pairs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


if __name__ == "__main__":
    main()
