"""Measures how time and memory grow with the number of pairs, the length of sentences and the size of the model.

    python benchmarks/growth.py          writes results/speed/growth.json and a chart for each

Each point is measured in its own process, on made-up text and random weights.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import torch
from matplotlib.figure import Figure
from transformers import BertConfig, BertModel

from benchmarks.contenders_of_speed.training import START_LINE
from benchmarks.fresh_process import measure_in_fresh_process
from sts_regression.basics.tables import write_json
from sts_regression.command.command_help import keep_freed_memory
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data.leakage import LeakFilter
from sts_regression.data.pairs import read_pairs
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.loading import find_model, load_model
from sts_regression.models.tokenization import tokenize_pairs
from sts_regression.training.run_record import describe_environment, peak_memory_bytes

FOLDER = Path(__file__).resolve().parent.parent / "results" / "speed"
SHAPES: dict[str, dict[str, Any]] = {
    "MiniLM-L6": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
    "BERT-base": {},
    "BERT-large": {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    },
}
NUMBERS_OF_PAIRS = [1_000, 10_000, 100_000, 1_000_000, 10_000_000]
POINTS: dict[str, list[Any]] = {
    "pairs": NUMBERS_OF_PAIRS,
    "command": NUMBERS_OF_PAIRS,
    "predict": NUMBERS_OF_PAIRS[:-1],  # more would take hours
    "length": [8, 16, 32, 64, 128, 256, 512],
    "model": list(SHAPES),
}
MOST_TEST_PAIRS = 1_000
PAIRS_PER_STEP = 16
MEAN_LENGTH = 14  # tokens, as in STS-B
STEPS = 5
SECONDS_OF_TRAINING = 60
SECONDS_BETWEEN_SAMPLES = 0.2
WORDS = ["".join(random.Random(i).choices("abcdefghijklmnopqrstuvwxyz", k=5)) for i in range(5_000)]


def main() -> None:
    """Measures every point in a fresh process, or, with `--point`, a single point in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=list(POINTS), help=", ".join(POINTS))
    parser.add_argument("--point", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.point:
        kind, point = args.point
        keep_freed_memory()  # as run_sts.py does
        record = MEASUREMENTS[kind](point)
        sys.stdout.write(json.dumps({"peak_memory_bytes": peak_memory_bytes()["process"], **record}) + "\n")
        sys.stdout.flush()
        os._exit(0)
    environment = describe_environment()  # before a tracked file is written, which counts as a change
    kept = FOLDER / "growth.json"
    for kind in args.kinds:
        points = {str(point): measure_point(kind, point) for point in POINTS[kind]}
        result = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
        result[kind] = {"environment": environment, "points": points}
        write_json(result, kept)
        plot(kind, points)


def measure_point(kind: str, point: Any) -> dict[str, Any]:
    """Measures one point in a fresh process."""
    with tempfile.TemporaryDirectory() as cache:  # hides the cache of earlier runs
        record = measure_in_fresh_process("growth.py", ["--point", kind, str(point)], {"HF_DATASETS_CACHE": cache})
    sys.stdout.write(f"{kind} {point}: {record}\n")
    sys.stdout.flush()
    return record


def measure_pairs(point: str) -> dict[str, float]:
    """Seconds to read, filter and tokenise the given number of pairs."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_made_up_pairs(Path(folder) / "pairs.csv", int(point))
        _, tokenizer = load_model(find_model(None), {})
        os.environ["TOKENIZERS_PARALLELISM"] = "true"
        started = time.perf_counter()
        pairs = read_pairs(path).pairs
        read = time.perf_counter()
        num_known = min(MOST_TEST_PAIRS, len(pairs) // 10)
        pairs, _ = LeakFilter({"test": pairs.select(range(num_known))}, "normalized").apply(pairs)
        filtered = time.perf_counter()
        tokenize_pairs(pairs, tokenizer, "bi-encoder")
        tokenized = time.perf_counter()
    return {"read": read - started, "leak filter": filtered - read, "tokenise": tokenized - filtered}


def write_made_up_pairs(path: Path, count: int, seed: int = 0, num_words: int = 6) -> Path:
    """Writes pairs of made-up text to a CSV file. A word has about three tokens."""
    generator = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        file.write("sentence1,sentence2,label\n")
        for _ in range(count):
            first, second = (" ".join(generator.choices(WORDS, k=num_words)) for _ in range(2))
            file.write(f"{first},{second},{generator.randrange(6)}\n")
    return path


def measure_command(point: str) -> dict[str, float]:
    """
    Seconds until a command begins to train on the given number of pairs, and its memory until a while afterwards.

    Memory is that of all its processes together, without the pages of mapped files, which the system drops at need.
    """
    with tempfile.TemporaryDirectory() as folder:
        train, dev = (
            write_made_up_pairs(Path(folder) / f"{name}.csv", count, seed)
            for seed, (name, count) in enumerate({"train": int(point), "dev": MOST_TEST_PAIRS}.items())
        )
        options = [f"--train_file={train}", f"--validation_file={dev}", f"--output_dir={folder}/run"]
        options += ["--bundled_pairs_first=false", "--report_to=none", "--per_device_train_batch_size=16"]
        seconds, peak = watch_command(options, Path(folder) / "log", trains=True)
    return {"until training": seconds, "peak_memory_bytes": peak}


def measure_predict(point: str) -> dict[str, float]:
    """
    Seconds of a command that scores the given number of pairs in bfloat16, and its memory, see [`measure_command`].

    Sentences are about as long as those of STS-B.
    """
    with tempfile.TemporaryDirectory() as folder:
        model, tokenizer = load_model(find_model(None), {"score_function": "cosine"})
        model.config.head_is_trained = True
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        pairs = write_made_up_pairs(Path(folder) / "pairs.csv", int(point), num_words=4)
        options = [
            *(f"--model_name_or_path={folder}", "--bf16"),
            f"--predict_file={pairs}",
            f"--predict_output={folder}/graded.csv",
        ]
        seconds, peak = watch_command(options, Path(folder) / "log", trains=False)
    return {"predict": seconds, "peak_memory_bytes": peak}


def watch_command(options: list[str], log: Path, trains: bool) -> tuple[float, int]:
    """
    Runs the training command with these options. If it trains, it is stopped after a while.

    Returns:
        Seconds until it began to train, or, if it does not train, until it ended; and the largest memory of its
        processes together, in bytes.

    Raises:
        RuntimeError: if it fails, or ends before it trains, with its output.
    """
    command = [sys.executable, "run_sts.py", *options]
    started, peak, begun = time.perf_counter(), 0, 0.0
    with (
        log.open("w") as file,
        subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        ) as process,
    ):
        while process.poll() is None:
            peak = max(peak, private_memory(process.pid))
            if trains and not begun and START_LINE in log.read_text():
                begun = time.perf_counter()
            if begun and time.perf_counter() > begun + SECONDS_OF_TRAINING:
                process.terminate()  # saves a checkpoint, and ends
            time.sleep(SECONDS_BETWEEN_SAMPLES)
    ended = time.perf_counter()
    failed = not begun if trains else process.returncode != 0
    if failed:
        raise RuntimeError(f"run_sts.py ended with code {process.returncode}: {log.read_text()}")
    return (begun if trains else ended) - started, peak


def private_memory(pid: int) -> int:
    """Bytes of anonymous memory of a process and its children; pages that they share count once."""
    total = 0
    with suppress(psutil.Error, OSError):  # ended since it was listed
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
            total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:"))
    return total


def measure_length(point: str) -> dict[str, float]:
    """Seconds of a forward and a training step of 16 pairs, for sentences of this many tokens and MiniLM's shape."""
    return measure_steps(build_model("MiniLM-L6"), torch.full((2 * PAIRS_PER_STEP,), int(point)))


def measure_model(point: str) -> dict[str, float]:
    """Seconds of a forward and a training step of 16 pairs, for sentences as long as those of STS-B."""
    generator = torch.Generator().manual_seed(0)
    lengths = 5 + torch.poisson(torch.full((2 * PAIRS_PER_STEP,), float(MEAN_LENGTH - 5)), generator).long()
    return measure_steps(build_model(point), lengths)


MEASUREMENTS: dict[str, Callable[[str], dict[str, float]]] = {
    "pairs": measure_pairs,
    "command": measure_command,
    "predict": measure_predict,
    "length": measure_length,
    "model": measure_model,
}


def build_model(shape: str) -> STSRegressionModel:
    """A bi-encoder with random weights."""
    torch.manual_seed(0)
    config = BertConfig(**SHAPES[shape])
    return STSRegressionModel(STSRegressionConfig(encoder_config=config), BertModel(config, add_pooling_layer=False))


def measure_steps(model: STSRegressionModel, lengths: torch.Tensor) -> dict[str, float]:
    """Median seconds of a few steps."""
    length = int(lengths.max())
    mask = (torch.arange(length) < lengths[:, None]).long().unflatten(0, (PAIRS_PER_STEP, 2))
    inputs = {"input_ids": torch.randint(1000, 30_000, mask.shape) * mask, "attention_mask": mask}
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    forward, training = [], []
    for _ in range(STEPS):
        started = time.perf_counter()
        with torch.inference_mode():
            model.eval()(**inputs)
        forward.append(time.perf_counter() - started)
        started = time.perf_counter()
        optimizer.zero_grad()
        model.train()(**inputs, labels=torch.ones(PAIRS_PER_STEP)).loss.backward()
        optimizer.step()
        training.append(time.perf_counter() - started)
    return {"forward": statistics.median(forward), "training step": statistics.median(training)}


def plot(kind: str, points: dict[str, dict[str, float]]) -> None:
    """Draws seconds on the left and peak memory on the right."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    times, memory = figure.subplots(1, 2)
    x: list[Any] = list(points) if kind == "model" else [int(point) for point in points]
    for name in next(iter(points.values())):
        axes, scale = (memory, 2**30) if name == "peak_memory_bytes" else (times, 1)
        axes.plot(x, [record[name] / scale for record in points.values()], marker="o", label=name)
    for axes, title in ((times, "seconds"), (memory, "peak memory of the process, GiB")):
        axes.set_title(title)
        axes.set_xlabel({"length": "tokens in a sentence", "model": ""}.get(kind, "pairs"))
        axes.set_yscale("log")
        axes.grid(alpha=0.3)
        if kind != "model":
            axes.set_xscale("log")
    times.legend()
    figure.savefig(FOLDER / f"growth_{kind}.png", dpi=100)


if __name__ == "__main__":
    main()
