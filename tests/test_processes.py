"""Several processes: they train as one would with the same batch, score each pair once, and one of them writes."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertModel, PreTrainedTokenizerBase

import run_sts

Launch = Callable[..., subprocess.CompletedProcess[str]]

WORDS = ["cat", "dog", "man", "park", "water", "house", "red", "big"]
# Each process writes to a folder of its own, so that what a process writes is seen.
PROGRAM = """
import json, os, sys
import run_sts
for command in json.loads(sys.argv[1]):
    *options, output_dir = command
    run_sts.main([*options, f"--output_dir={output_dir}-{os.environ['RANK']}"])
"""


def write_pairs(path: Path, num_pairs: int) -> Path:
    rows = [
        (f"the {WORDS[i % 8]} {WORDS[i % 5]} {i}", f"a {WORDS[i * i % 8]}", i * (i + 7) % 6) for i in range(num_pairs)
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *rows])
    return path


@pytest.fixture
def encoder(tiny_encoder_config: BertConfig, tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> Path:
    """Without dropout, which differs between the processes."""
    folder = tmp_path / "encoder"
    tiny_encoder_config.hidden_dropout_prob = tiny_encoder_config.attention_probs_dropout_prob = 0.0
    torch.manual_seed(0)
    BertModel(tiny_encoder_config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def options(encoder: Path, tmp_path: Path) -> list[str]:
    """Of a training with development and test pairs that two processes cannot share out evenly."""
    sizes = {"train": 24, "validation": 23, "test": 25}
    files = [f"--{split}_file={write_pairs(tmp_path / f'{split}.csv', size)}" for split, size in sizes.items()]
    return [
        *files,
        f"--model_name_or_path={encoder}",
        *("--leak_filter=none", "--label_values", "0", "1", "2", "3", "4", "5", "--positive_threshold=1"),
        *("--num_train_epochs=2", "--optim=sgd", "--learning_rate=1e-2", "--logging_steps=1", "--cpu_threads=1"),
        *("--per_device_eval_batch_size=4", "--load_best_model_at_end=false", "--report_to=none"),
        "--disable_tqdm=true",
    ]


def run_record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run.json").read_text())


def check_same_run(one: Path, several: Path) -> None:
    weights, others = (load_file(folder / "model.safetensors") for folder in (one, several))
    for name, weight in weights.items():
        torch.testing.assert_close(others[name], weight, atol=1e-6, rtol=1e-5)
    record, other = run_record(one), run_record(several)
    losses, other_losses = (
        [entry["loss"] for entry in r["training"]["log_history"] if "loss" in entry] for r in (record, other)
    )
    assert other_losses == pytest.approx(losses, rel=1e-5)
    for state, splits in record["results"].items():
        for split, measures in splits.items():
            assert other["results"][state][split] == pytest.approx(measures, abs=1e-5)


def test_two_processes_train_as_one_and_one_of_them_writes(launch: Launch, options: list[str], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    options.append("--loss=pearson")
    commands = [[*options, "--per_device_train_batch_size=4", str(tmp_path / "process")]]
    finished = launch(program, json.dumps(commands))
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("Checkpoint:") == 1
    run_sts.main([*options, "--per_device_train_batch_size=8", f"--output_dir={tmp_path / 'alone'}"])
    check_same_run(tmp_path / "alone", tmp_path / "process-0")
    written = {path.name for path in (tmp_path / "process-1").rglob("*") if path.is_file()}
    assert written == {"rng_state_1.pth"}
