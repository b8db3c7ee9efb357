"""The pieces of `gpu.py`, each in a process of its own: `python benchmarks/gpu_contenders.py PIECE SETTINGS`.

A piece prints one line of JSON, its result and the environment. Models have random weights and the shapes of common
encoders; sentences are words of the bundled pairs in random order, as long as those of STS-B.
"""

import gc
import importlib.util
import json
import logging
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import yaml
from datasets import Dataset, disable_progress_bars

from benchmarks.contenders_of_speed.shared import Result, timed
from benchmarks.contenders_of_speed.training import WARM_UP_STEPS, train_library_steps, train_steps
from benchmarks.fresh_process import ROOT, run_offline
from benchmarks.made_up import random_pairs, random_sentences, write_encoder
from benchmarks.speed import spread_of_rates
from sts_regression.basics.tables import read_record
from sts_regression.models.encoding import encode_sentences
from sts_regression.models.loading import find_model, load_model
from sts_regression.models.tokenization import tokenize_pairs
from sts_regression.training.run_record import describe_environment

# Options of our trainer and of sentence-transformers' for the same arithmetic.
TRAINED_IN: dict[str, tuple[Result, Result]] = {
    "float32": ({}, {}),
    "tf32": ({}, {}),
    "bf16": ({"precision": "bfloat16"}, {"bf16": True}),
    "compile": ({"precision": "bfloat16", "torch_compile": True}, {"bf16": True, "torch_compile": True}),
}
LIBRARY_BATCHES = (32, 128, 512)  # sentences; the best one counts
CAUSE = re.compile(r"^E  +\S|rror: \S")  # in pytest's account of a test, or in a traceback
FLASH = {"attn_implementation": "flash_attention_2"}
LOADING_WORKERS = 4
SECONDS_OF_A_LAUNCH = 85


@dataclass(frozen=True)
class GpuSettings:
    """How much is measured, and the `seconds` after which no contender takes another turn."""

    device: str
    batch_sizes: list[int]
    steps: int
    rounds: int
    sentences: int
    seconds: float


def main() -> None:
    """Measures the piece that the command line names."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    disable_progress_bars()
    environment = {**describe_environment(), **describe_gpu()}  # first: it fails where a package is missing
    result = measure_piece(sys.argv[1], GpuSettings(**json.loads(sys.argv[2])))
    sys.stdout.write(f"\n{json.dumps({'environment': environment, 'result': result})}\n")
    sys.stdout.flush()
    os._exit(0)


def describe_gpu() -> Result:
    """The driver and the packages that only some of the contenders need; `None` if missing."""
    versions: Result = {}
    for package in ("sentence-transformers", "deepspeed", "flash_attn"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    driver = None
    if shutil.which("nvidia-smi"):
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(query, capture_output=True, text=True).stdout.strip()
    return {"driver": driver, "cuda": torch.version.cuda, **versions}


def measure_piece(piece: str, settings: GpuSettings) -> Result:
    """The result of a piece: `tests`, `launches`, `encoding-SHAPE` or `training-SHAPE-PRECISION`."""
    kind, *rest = piece.split("-")
    if kind == "tests":
        return run_gpu_tests()
    with TemporaryDirectory() as name:
        folder = write_encoder(rest[0] if rest else "minilm", Path(name) / "encoder")
        if kind == "launches":
            with ThreadPoolExecutor() as pool:  # most of a launch is the start of its process
                configs = fitting_configs(settings.device)
                results = pool.map(lambda config: measured(partial(launch, config, folder)), configs)
                return dict(zip(configs, results, strict=True))
        if kind == "encoding":
            return interleaved(encoding_contenders(folder, settings), settings)
        return interleaved(training_contenders(folder, rest[1], settings), settings)


# Tests


class Outcomes:
    """A plugin of pytest that keeps the outcome of each test."""

    def __init__(self) -> None:
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.failures: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Called by pytest for the preparation, the call and the end of a test."""
        if report.when == "call" or not report.passed:
            self.counts[report.outcome] += 1
        if report.failed:
            self.failures[report.nodeid] = cause(report.longreprtext)

    def pytest_collectreport(self, report: Any) -> None:
        """Called by pytest for each file: one that cannot be imported, for want of a package, stops no other."""
        if report.failed:
            self.counts["failed"] += 1
            self.failures[report.nodeid] = cause(report.longreprtext)


def run_gpu_tests(tests: Path = ROOT / "tests") -> Result:
    """Counts of the tests with the mark `gpu`, and the failures."""
    import pytest

    outcomes = Outcomes()
    options = ["-q", "-m", "gpu", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    code = pytest.main([*options, str(tests)], plugins=[outcomes])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with code {int(code)}")
    return {**outcomes.counts, "failures": outcomes.failures}


def cause(text: str) -> str:
    """The line of an error message that names the cause."""
    lines = text.strip().splitlines() or ["?"]
    return next(filter(CAUSE.search, lines), lines[0]).removeprefix("E ").strip()[:300]


# Rounds


def interleaved(contenders: Mapping[str, Callable[[], Result]], settings: GpuSettings) -> Result:
    """The rates of contenders that take turns, and their peak memory; one that fails takes no further turn."""
    records: dict[str, list[Result]] = {name: [] for name in contenders}
    started = time.perf_counter()
    for _ in range(settings.rounds):
        for name, measure in contenders.items():
            has_failed = bool(records[name]) and "rate" not in records[name][-1]
            if not has_failed and time.perf_counter() - started < settings.seconds:
                records[name].append(measured(measure))
    return {name: summary_of_rounds(rounds) for name, rounds in records.items()}


def measured(measure: Callable[[], Result]) -> Result:
    """The result of a contender, with the largest allocation on the GPU, or the cause if it fails."""
    before = None
    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()  # memory that an earlier contender may have left
    try:
        result = measure()
        peak = None if before is None else torch.cuda.max_memory_allocated() - before
        return {"peak_gpu_bytes": peak, **result}
    except ModuleNotFoundError as error:
        return {"missing": error.name}
    except Exception as error:  # of many kinds; the other contenders are measured all the same
        return {"error": f"{type(error).__name__}: {cause(str(error))}"}


def summary_of_rounds(rounds: list[Result]) -> Result:
    """Median, smallest and largest rate; the last record of a contender that failed."""
    if not rounds:
        return {"error": "no time was left"}
    if "rate" not in rounds[-1]:
        return rounds[-1]
    rates = [record["rate"] for record in rounds]
    return {**rounds[-1], "rate": spread_of_rates(rates), "rounds": len(rounds)}


# Training and encoding


def training_contenders(folder: Path, precision: str, settings: GpuSettings) -> dict[str, Callable[[], Result]]:
    """By names such as `16 ours`: steps of each trainer, for each batch size."""
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    ours, theirs = TRAINED_IN[precision]
    on_cpu = settings.device == "cpu"
    common = {"use_cpu": on_cpu, "dataloader_num_workers": 0 if on_cpu else LOADING_WORKERS}
    steps = settings.steps + WARM_UP_STEPS + 1
    pairs = random_pairs(max(settings.batch_sizes) * steps)
    contenders: dict[str, Callable[[], Result]] = {}
    for size in settings.batch_sizes:
        our_options, their_options = ({**common, "per_device_train_batch_size": size, **own} for own in (ours, theirs))
        train_library = partial(train_theirs, folder, pairs, steps, settings.device, their_options)
        contenders[f"{size} ours"] = partial(train_ours, folder, pairs, steps, our_options, "auto")
        if precision != "compile":  # which never packs
            contenders[f"{size} padded"] = partial(train_ours, folder, pairs, steps, our_options, "padded")
        contenders[f"{size} library"] = partial(train_library, {})
        if precision == "bf16":
            contenders[f"{size} library-flash"] = partial(train_library, FLASH)
    return contenders


def train_ours(folder: Path, pairs: Dataset, steps: int, options: Result, encoding: str) -> Result:
    """Pairs a second of our trainer."""
    model, tokenizer = load_model(find_model(str(folder)), {"encoding": encoding})
    times = train_steps(model, tokenizer, tokenize_pairs(pairs, tokenizer, "bi-encoder"), steps, **options)
    return {"rate": options["per_device_train_batch_size"] / times.median, "unit": "pairs/s"}


def train_theirs(
    folder: Path, pairs: Dataset, steps: int, device: str, options: Result, model_options: Result
) -> Result:
    """Pairs a second of sentence-transformers' trainer."""
    model = load_library_model(folder, device, model_options)
    times = train_library_steps(model, pairs, steps, "CosineSimilarityLoss", **options)
    return {"rate": options["per_device_train_batch_size"] / times.median, "unit": "pairs/s"}


def load_library_model(folder: Path, device: str, model_options: Result) -> Any:
    """The encoder in sentence-transformers."""
    if model_options.get("attn_implementation") and importlib.util.find_spec("flash_attn") is None:
        raise ModuleNotFoundError(name="flash_attn")  # else transformers would look for it on the Hub
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device=device, model_kwargs=model_options)


def encoding_contenders(folder: Path, settings: GpuSettings) -> dict[str, Callable[[], Result]]:
    """By names such as `bf16 ours`: each encoder; the others' embeddings are compared with the first one's."""
    torch.set_float32_matmul_precision("highest")
    sentences = random_sentences(settings.sentences)
    reference: list[torch.Tensor] = []

    def rate(encode: Callable[[list[str]], torch.Tensor]) -> Result:
        encode(sentences[: len(sentences) // 5])  # warms up
        seconds = timed(lambda: encode(sentences))  # embeddings are on the CPU at its end
        first = encode(sentences[:64]).float()
        reference.append(first)
        difference = float((first - reference[0]).abs().max())
        return {"rate": len(sentences) / seconds, "unit": "sentences/s", "largest_difference": difference}

    def encode_ours(dtype: torch.dtype, encoding: str) -> Result:
        model, tokenizer = load_model(find_model(str(folder)), {"encoding": encoding})
        return rate(partial(encode_sentences, model.to(settings.device, dtype), tokenizer))

    def encode_theirs(dtype: torch.dtype, batch_size: int, options: Result) -> Result:
        model = load_library_model(folder, settings.device, {"dtype": dtype, **options})
        encode = partial(model.encode, batch_size=batch_size, show_progress_bar=False, convert_to_tensor=True)
        return rate(lambda texts: encode(texts).cpu())

    contenders: dict[str, Callable[[], Result]] = {}
    for name, dtype in (("float32", torch.float32), ("bf16", torch.bfloat16)):
        contenders[f"{name} padded"] = partial(encode_ours, dtype, "padded")
        contenders[f"{name} ours"] = partial(encode_ours, dtype, "auto")
        for size in LIBRARY_BATCHES:
            contenders[f"{name} library-{size}"] = partial(encode_theirs, dtype, size, {})
    for size in LIBRARY_BATCHES:
        contenders[f"bf16 library-flash-{size}"] = partial(encode_theirs, torch.bfloat16, size, FLASH)
    return contenders


# Launches


def fitting_configs(device: str, folder: Path = ROOT / "accelerate_configs") -> list[str]:
    """The files that one process on one machine can be launched with."""
    configs = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yaml"))}
    return [
        name
        for name, config in configs.items()
        if config["num_machines"] == 1
        and (config["distributed_type"] == "NO" or config["use_cpu"] is (device == "cpu"))
    ]


def launch(config: str, encoder: Path) -> Result:
    """Trains bundled pairs for a few steps in one process; raises unless the loss is finite."""
    if config.startswith("deepspeed") and importlib.util.find_spec("deepspeed") is None:
        raise ModuleNotFoundError(name="deepspeed")
    with TemporaryDirectory() as name:
        launcher = [sys.executable, "-m", "accelerate.commands.launch", "--num_processes=1", "--main_process_port=0"]
        launcher += [f"--config_file=accelerate_configs/{config}.yaml", "run_sts.py", "--do_train", "--max_steps=50"]
        options = [f"--model_name_or_path={encoder}", f"--output_dir={name}/run", "--report_to=none"]
        run_offline([*launcher, *options, "--disable_tqdm=true"], {}, SECONDS_OF_A_LAUNCH)
        record = read_record(Path(name) / "run" / "run.json")
    loss, peak = record["training"]["train_loss"], record["peak_memory_bytes"].get("gpu")
    if not math.isfinite(loss):
        raise RuntimeError(f"the loss is {loss}")
    return {"loss": loss, "peak_gpu_bytes": peak}


if __name__ == "__main__":
    main()
