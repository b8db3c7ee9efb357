"""Long runs: memory and open files stay where they were."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

import run_sts

ROOT = Path(run_sts.__file__).resolve().parent
INTERVAL = 0.25  # seconds between two samples
GROWTH = 1.05  # of memory, at most, between the second quarter of a run and its last
STEPS = 10_000
PAIRS = 1_000_000
WORDS = ("cat", "dog", "man", "park", "water", "house", "red", "big")

Reliability = Callable[[str, int, int, int], None]


class Sample(NamedTuple):
    """Memory and files of a process at a moment."""

    memory: int  # bytes, of its own
    files: int


def watch(command: list[str], log: Path) -> list[Sample]:
    """Runs `run_sts.py` with these options, and returns its memory and files every quarter of a second."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, "run_sts.py", *command], env=environment, stdout=output, stderr=output
        )
        watched, samples = psutil.Process(process.pid), []
        while process.poll() is None:
            try:
                # Mapped files leave memory when it is short; the process's own memory does not.
                samples.append(Sample(watched.memory_full_info().uss, watched.num_fds()))
            except psutil.NoSuchProcess:
                break
            time.sleep(INTERVAL)
    assert process.wait() == 0, log.read_text(encoding="utf-8")[-2000:]
    return samples


def check_flat(samples: list[Sample], start: float) -> None:
    """Compares the quarter of a run that begins at the share `start` with its last quarter, whose end is left out."""
    quarter = len(samples) // 4
    assert quarter >= 10, "too short to tell"
    early = samples[int(start * len(samples)) :][:quarter]
    late = samples[-quarter - quarter // 5 : -quarter // 5]
    memory = [statistics.median(sample.memory for sample in part) for part in (early, late)]
    files = [statistics.median(sample.files for sample in part) for part in (early, late)]
    assert memory[1] <= GROWTH * memory[0], f"memory grew from {memory[0]:,.0f} to {memory[1]:,.0f} bytes"
    assert files[1] <= files[0], f"open files grew from {files[0]} to {files[1]}"


def write_pairs(path: Path, count: int, labelled: bool) -> None:
    """Pairs of which no two have the same first sentence, so that each is encoded."""
    with path.open("w", encoding="utf-8") as file:
        file.write("sentence1,sentence2,label\n" if labelled else "sentence1,sentence2\n")
        for number in range(count):
            first, second, third = (WORDS[number // 8**place % 8] for place in range(3))
            label = f",{number % 6}" if labelled else ""
            file.write(f"the {first} {second} {number},a {third} {first}{label}\n")


@pytest.mark.slow
def test_memory_is_flat_over_ten_thousand_steps(
    tiny_encoder_path: Path, tmp_path: Path, reliability: Reliability
) -> None:
    write_pairs(tmp_path / "pairs.csv", 400, labelled=True)
    options = [f"--model_name_or_path={tiny_encoder_path}", f"--train_file={tmp_path / 'pairs.csv'}"]
    options += ["--leak_filter=none", f"--max_steps={STEPS}", "--report_to=none", "--disable_tqdm=true"]
    options += [f"--output_dir={tmp_path / 'run'}", "--eval_strategy=steps", "--save_strategy=steps"]
    options += ["--eval_steps=500", "--save_steps=500", "--logging_steps=100", "--per_device_train_batch_size=8"]
    check_flat(watch(options, tmp_path / "log.txt"), start=0.25)
    assert (tmp_path / "run" / "run.json").is_file()
    assert len(list((tmp_path / "run").glob("checkpoint-*"))) <= 2
    reliability(f"runs of {STEPS:,} steps: constant memory, within 5 %", 1, 1, 0)


@pytest.mark.slow
def test_memory_is_flat_over_a_million_scored_pairs(
    tiny_encoder_path: Path, tmp_path: Path, reliability: Reliability
) -> None:
    write_pairs(tmp_path / "train.csv", 200, labelled=True)
    model = [f"--model_name_or_path={tiny_encoder_path}", f"--train_file={tmp_path / 'train.csv'}", "--max_steps=2"]
    run_sts.run_stages(
        [*model, "--leak_filter=none", "--report_to=none", "--disable_tqdm=true", f"--output_dir={tmp_path / 'run'}"]
    )
    write_pairs(tmp_path / "new.csv", PAIRS, labelled=False)
    scored = tmp_path / "scored.csv"
    options = [f"--predict_file={tmp_path / 'new.csv'}", f"--predict_output={scored}", "--disable_tqdm=true"]
    samples = watch([f"--model_name_or_path={tmp_path / 'run'}", *options], tmp_path / "log.txt")
    check_flat(samples, start=0.25)
    with scored.open(encoding="utf-8") as file:
        assert sum(1 for _ in file) == PAIRS + 1
    reliability(f"runs that score {PAIRS:,} pairs: constant memory, within 5 %", 1, 1, 0)
