"""Several processes: they train as one would with the same batch, score each pair once, and one of them writes."""

import csv
import importlib.util
import json
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import BertConfig, BertModel, PreTrainedTokenizerBase, TrainingArguments

import run_sts
from sts_regression.basics.distributed import weights_split_by
from sts_regression.command.arguments import parse_stages
from sts_regression.preparation import check_whole_weights
from sts_regression.training.run_folder import checkpoint_to_resume
from sts_regression.training.training_arguments import STSTrainingArguments

Reliability = Callable[[str, int, int, int], None]
Launch = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(run_sts.__file__).resolve().parent
WORDS = ["cat", "dog", "man", "park", "water", "house", "red", "big"]
# The last option may differ between the processes.
RUN_ALL = """
import json, os, sys
import run_sts
for command in json.loads(sys.argv[1]):
    run_sts.main([option.replace("RANK", os.environ["RANK"]) for option in command])
"""
FAIL_IN_STEP_2 = """
import os, runpy, signal, sys, time
from pathlib import Path
from sts_regression.training.trainer import STSTrainer
note, rank, way, *sys.argv[1:] = sys.argv[1:]
train_on = STSTrainer.training_step
def fail(self, *args):
    if self.state.global_step == 1 and os.environ["RANK"] == rank:
        Path(note).write_text(str(time.time()))
        if way == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise (ValueError if way == "input" else RuntimeError)("the disk is full")
    return train_on(self, *args)
STSTrainer.training_step = fail
runpy.run_path("run_sts.py", run_name="__main__")
"""
# accelerate turns FSDP on for GPUs; FSDP itself runs on CPUs as well.
FSDP_ON_CPU = """
from accelerate.state import PartialState
from accelerate.utils import DistributedType
start = PartialState.__init__
def start_as_gpus(self, *args, **options):
    start(self, *args, **options)
    if self.distributed_type == DistributedType.MULTI_CPU:
        self.distributed_type = DistributedType.MULTI_GPU
PartialState.__init__ = start_as_gpus
"""
SCORE = """
import sys
from transformers import AutoModel, AutoTokenizer
for folder in sys.argv[1:]:
    model = AutoModel.from_pretrained(folder, trust_remote_code=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    inputs = tokenizer(["the red cat", "a big house"], padding=True, return_tensors="pt")
    print(model(**{name: tensor[None] for name, tensor in inputs.items()}).scores.item())
"""
SECONDS_TO_END = 60.0
KILLED_RUNS = 4


def write_pairs(path: Path, num_pairs: int) -> Path:
    rows = [
        (f"the {WORDS[i % 8]} {WORDS[i % 5]} {i}", f"a {WORDS[i * i % 8]}", i * (i + 7) // 2 % 6)
        for i in range(num_pairs)
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
    """Of a training of six steps of 8 pairs; two processes cannot share development and test pairs evenly."""
    sizes = {"train": 24, "validation": 23, "test": 25}
    files = [f"--{split}_file={write_pairs(tmp_path / f'{split}.csv', size)}" for split, size in sizes.items()]
    return [
        *files,
        f"--model_name_or_path={encoder}",
        *("--leak_filter=none", "--label_values", "0", "1", "2", "3", "4", "5", "--positive_threshold=1"),
        *("--num_train_epochs=2", "--optim=sgd", "--learning_rate=1e-2", "--logging_steps=1", "--cpu_threads=1"),
        *("--per_device_eval_batch_size=4", "--load_best_model_at_end=false", "--report_to=none"),
        *("--per_device_train_batch_size=8", "--disable_tqdm=true", "--precision=float32"),
    ]


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Path]:
    """`program(code)`: a file of the code."""

    def write(code: str) -> Path:
        path = tmp_path / "program.py"
        path.write_text(code)
        return path

    return write


def run_record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run.json").read_text())


def check_same_weights(one: Path, other: Path) -> None:
    weights, others = (load_file(folder / "model.safetensors") for folder in (one, other))
    assert weights.keys() == others.keys()
    for name, weight in weights.items():
        torch.testing.assert_close(others[name], weight, atol=1e-6, rtol=1e-5, msg=lambda text: f"{other}: {text}")


def check_same_run(one: Path, several: Path) -> None:
    """Same weights, and same losses and scores on the way."""
    check_same_weights(one, several)
    record, other = run_record(one), run_record(several)
    losses, other_losses = (
        [entry["loss"] for entry in r["training"]["log_history"] if "loss" in entry] for r in (record, other)
    )
    assert other_losses == pytest.approx(losses, rel=1e-5)
    for state, splits in other["results"].items():
        for split, measures in splits.items():
            assert measures == pytest.approx(record["results"][state][split], abs=1e-5)


def test_two_processes_train_as_one_and_one_of_them_writes(
    launch: Launch, program: Callable[[str], Path], options: list[str], tmp_path: Path
) -> None:
    options += ["--loss=pearson"]
    shared = [*options, "--per_device_train_batch_size=4", f"--output_dir={tmp_path / 'process-RANK'}"]
    finished = launch(program(RUN_ALL), json.dumps([shared]))
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("Checkpoint:") == 1
    run_sts.run_stages([*options, f"--output_dir={tmp_path / 'alone'}"])
    check_same_run(tmp_path / "alone", tmp_path / "process-0")
    processes = [run_record(tmp_path / name)["environment"]["processes"] for name in ("alone", "process-0")]
    assert processes == [1, 2]
    written = {path.name for path in (tmp_path / "process-1").rglob("*") if path.is_file()}
    assert written == {"rng_state_1.pth"}  # each its own random state


@pytest.mark.slow
def test_every_loss_is_that_of_one_process_with_the_whole_batch(
    launch: Launch, program: Callable[[str], Path], options: list[str], tmp_path: Path, reliability: Reliability
) -> None:
    variants = {
        "smooth_k2": ["--loss=smooth_k2"],
        "cross_entropy": ["--loss=cross_entropy"],
        "cosent": ["--loss=cosent"],
        "info_nce": ["--loss=info_nce"],
        "cross-encoder": ["--encoder_type=cross-encoder", "--loss=pearson"],
        "distilled": ["--loss=mse", "--self_distillation=1", f"--embedding_cache={tmp_path / 'cache'}"],
        "frozen": ["--loss=mse", "--freeze_encoder", f"--embedding_cache={tmp_path / 'cache'}"],
        "solved": ["--loss=mse", "--freeze_encoder", "--head_solver=lbfgs", f"--embedding_cache={tmp_path / 'other'}"],
        "soup": ["--loss=mse", "--model_soup=2"],
        "accumulated": ["--loss=mse", "--per_device_train_batch_size=4", "--gradient_accumulation_steps=2"],
        "unevenly accumulated": ["--loss=pearson", "--gradient_accumulation_steps=2"],  # 16 pairs, then 8
    }
    if importlib.util.find_spec("peft") is not None:
        variants["lora"] = ["--loss=mse", "--use_peft", "--lora_dropout=0"]
    commands = []
    for name, variant in variants.items():
        command = [*options, "--load_best_model_at_end=true", *variant]
        run_sts.run_stages([*command, f"--output_dir={tmp_path / name}"])
        batch = 2 if name == "accumulated" else 4
        commands.append([*command, f"--per_device_train_batch_size={batch}", f"--output_dir={tmp_path / name}-2"])
    finished = launch(program(RUN_ALL), json.dumps(commands))
    assert finished.returncode == 0, finished.stderr
    for name in variants:
        check_same_run(tmp_path / name, tmp_path / f"{name}-2")
    reliability("runs in two processes: the same weights as in one", len(variants), len(variants), 0)


@pytest.mark.slow
def test_sets_that_cannot_be_shared_out_are_trained_on_and_scored_once(
    launch: Launch, program: Callable[[str], Path], options: list[str], tmp_path: Path
) -> None:
    # Three processes: of 25 pairs in batches of 2 some see one twice; of two pairs one process has none of its own.
    large, small = (write_pairs(tmp_path / f"{size}.csv", size) for size in (25, 2))
    commands = []
    for pairs in (large, small):
        files = [f"--{split}_file={pairs}" for split in ("train", "validation", "test")]
        commands.append([*options, *files, "--per_device_train_batch_size=2", f"--output_dir={tmp_path / pairs.stem}"])
    finished = launch(program(RUN_ALL), json.dumps(commands), num_processes=3)
    assert finished.returncode == 0, finished.stderr
    for pairs, steps in ((large, 2 * 5), (small, 2)):
        folder = tmp_path / pairs.stem
        record = run_record(folder)
        assert record["training"]["steps"] == steps
        scored = ["--do_eval", f"--model_name_or_path={folder}", f"--test_file={pairs}", "--report_to=none"]
        run_sts.run_stages([*scored, f"--output_dir={tmp_path / f'scored-{pairs.stem}'}"])
        alone = run_record(tmp_path / f"scored-{pairs.stem}")["results"]["as loaded"]["test"]
        assert record["results"]["after training"]["test"] == pytest.approx(alone, abs=1e-5)


@pytest.mark.slow
def test_a_training_is_resumed_by_as_many_processes(
    launch: Launch, options: list[str], tiny_encoder_path: Path, tmp_path: Path, reliability: Reliability
) -> None:
    folder, whole = tmp_path / "run", tmp_path / "whole"
    command = [*options, f"--model_name_or_path={tiny_encoder_path}", "--per_device_train_batch_size=4"]
    command += ["--optim=adamw_torch", "--save_strategy=steps", "--save_steps=2", "--save_total_limit=9"]
    command += [f"--output_dir={folder}", "--resume_from_checkpoint=true"]
    for number in range(2):
        finished = launch(ROOT / "run_sts.py", *command)
        assert finished.returncode == 0, finished.stderr
        if number == 0:  # then in the middle of an epoch, with dropout
            shutil.copytree(folder, whole)
            for name in ("checkpoint-4", "checkpoint-6"):
                shutil.rmtree(folder / name)
            for name in ("run.json", "model.safetensors"):
                (folder / name).unlink()
    check_same_run(whole, folder)
    reliability("runs in two processes: resumed", 1, 1, 0)


@pytest.mark.slow
def test_all_processes_start_from_the_bundled_pairs(launch: Launch, tiny_encoder_path: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    rows = [(f"the {WORDS[i % 8]} {i}", f"a {WORDS[i * i % 8]} {i}", i % 3) for i in range(40)]
    with pairs.open("w", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *rows])
    options = [f"--train_file={pairs}", f"--model_name_or_path={tiny_encoder_path}", "--report_to=none"]
    options += [f"--embedding_cache={tmp_path / 'cache'}", "--bundled_pairs_first=true"]
    for is_stored in (False, True):  # the second command finds the weights of the first
        folder = tmp_path / f"stored-{is_stored}"
        finished = launch(ROOT / "run_sts.py", *options, f"--output_dir={folder}")
        assert finished.returncode == 0, finished.stdout
        record = json.loads((folder / "run.json").read_text())
        assert record["bundled_pairs"]["is_stored"] is is_stored
    one, other = (load_file(tmp_path / f"stored-{value}" / "model.safetensors") for value in (False, True))
    assert all(torch.equal(weights, other[name]) for name, weights in one.items())


@pytest.mark.slow
def test_all_processes_are_killed_at_once(
    launch: Launch, options: list[str], tmp_path: Path, reliability: Reliability
) -> None:
    command = [*options, "--per_device_train_batch_size=4", "--save_strategy=steps", "--save_steps=1"]
    command += ["--optim=adamw_torch", "--save_total_limit=2", "--resume_from_checkpoint=true"]
    whole, killed, generator = tmp_path / "whole", 0, random.Random(1)
    started = time.perf_counter()
    finished = launch(ROOT / "run_sts.py", *command, f"--output_dir={whole}")
    assert finished.returncode == 0, finished.stderr
    seconds = time.perf_counter() - started
    for number in range(KILLED_RUNS):
        folder = tmp_path / f"killed-{number}"
        for _ in range(3):  # in a row, then to the end
            moment = seconds * generator.random()
            ended = launch(ROOT / "run_sts.py", *command, f"--output_dir={folder}", kill_after=moment)
            assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
            killed += ended.returncode != 0
        finished = launch(ROOT / "run_sts.py", *command, f"--output_dir={folder}")
        assert finished.returncode == 0, finished.stderr
        check_same_run(whole, folder)
        assert (folder / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    reliability("all processes of a run killed at once: resumed to the same weights", killed, killed, 0)


def test_an_error_of_the_input_is_told_once(launch: Launch, options: list[str], tmp_path: Path) -> None:
    finished = launch(ROOT / "run_sts.py", *options, f"--test_file={tmp_path / 'absent.csv'}")
    assert finished.returncode == 1
    assert finished.stderr.count("absent.csv: no such file") == 1
    assert "Traceback" not in finished.stderr.partition("torch/distributed/elastic")[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rank", "way", "told"),
    [
        (1, "killed", r"rank +: 1 \(local_rank: 1\)\n +exitcode +: -9 "),
        (0, "bug", "RuntimeError: the disk is full"),
        (1, "input", "\nrun_sts.py: error: the disk is full\n"),
    ],
)
def test_one_process_that_fails_ends_all(
    launch: Launch,
    program: Callable[[str], Path],
    options: list[str],
    tmp_path: Path,
    rank: int,
    way: str,
    told: str,
    reliability: Reliability,
) -> None:
    note = tmp_path / "time"
    finished = launch(program(FAIL_IN_STEP_2), note, rank, way, *options, f"--output_dir={tmp_path / 'run'}")
    assert time.time() - float(note.read_text()) < SECONDS_TO_END
    assert finished.returncode == 1
    assert re.search(told, finished.stderr)
    assert not (tmp_path / "run" / "run.json").exists()
    reliability("failing processes: the others end within a minute", 1, 0, 1)


def train_and_resume(launch: Launch, script: Path, command: list[str], config: Path) -> Iterator[None]:
    """Trains in two processes, then resumes without the last checkpoint; stops after each of the two."""
    (split,) = [Path(word.partition("=")[2]) for word in command if word.startswith("--output_dir=")]
    for number in range(2):
        if number == 1:
            shutil.rmtree(split / "checkpoint-6")
            (split / "run.json").unlink()
        finished = launch(script, json.dumps([command]), config=config)
        assert finished.returncode == 0, finished.stderr
        record = run_record(split)
        assert record["results"]["before training"] == {}  # until it is trained the model is not split up
        yield


@pytest.mark.slow
def test_fsdp2_trains_and_resumes_as_one_process(
    launch: Launch,
    program: Callable[[str], Path],
    options: list[str],
    run_in_subprocess: Callable[..., str],
    tmp_path: Path,
    reliability: Reliability,
) -> None:
    config = yaml.safe_load((ROOT / "accelerate_configs" / "fsdp2.yaml").read_text())
    config |= {"use_cpu": True, "mixed_precision": "no"}
    (tmp_path / "fsdp2.yaml").write_text(yaml.safe_dump(config))
    options += ["--loss=pearson", "--optim=adamw_torch", "--adam_epsilon=1e-3", "--save_total_limit=2"]
    alone, split = tmp_path / "alone", tmp_path / "split"
    run_sts.run_stages([*options, f"--output_dir={alone}"])
    command = [*options, "--per_device_train_batch_size=4", f"--output_dir={split}", "--resume_from_checkpoint=true"]
    for _ in train_and_resume(launch, program(FSDP_ON_CPU + RUN_ALL), command, tmp_path / "fsdp2.yaml"):
        check_same_run(alone, split)
    assert (split / "checkpoint-6" / "pytorch_model_fsdp.bin").is_file()
    folders = [folder / name for name in ("", "checkpoint-6") for folder in (alone, split)]  # calibrated, and not
    of_one, of_two, before_one, before_two = map(float, run_in_subprocess(SCORE, *folders).split())
    assert (of_two, before_two) == pytest.approx((of_one, before_one), abs=1e-5)
    reliability("runs under FSDP2: resumed, with the same weights as in one process", 1, 1, 0)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="needs the package deepspeed")
@pytest.mark.parametrize("mixed_precision", ["no", "bf16"])
@pytest.mark.parametrize("stage", [2, 3])
def test_deepspeed_trains_and_resumes_as_one_process(
    launch: Launch,
    program: Callable[[str], Path],
    options: list[str],
    run_in_subprocess: Callable[..., str],
    tmp_path: Path,
    stage: int,
    mixed_precision: str,
) -> None:
    config = yaml.safe_load((ROOT / "accelerate_configs" / f"deepspeed_zero{stage}.yaml").read_text())
    config |= {"mixed_precision": mixed_precision}
    (tmp_path / "zero.yaml").write_text(yaml.safe_dump(config))
    options += ["--loss=pearson", "--optim=adamw_torch", "--adam_epsilon=1e-3", "--save_total_limit=2"]
    alone, split = tmp_path / "alone", tmp_path / "split"
    run_sts.run_stages([*options, f"--output_dir={alone}", *(["--bf16"] if mixed_precision == "bf16" else [])])
    command = [*options, "--per_device_train_batch_size=4", f"--output_dir={split}", "--resume_from_checkpoint=true"]
    for _ in train_and_resume(launch, program(RUN_ALL), command, tmp_path / "zero.yaml"):
        pass
    of_one, of_two = map(float, run_in_subprocess(SCORE, alone, split).split())
    # DeepSpeed keeps the weights in bfloat16, too.
    assert of_two == pytest.approx(of_one, abs=1e-5 if mixed_precision == "no" else 0.3)


@pytest.mark.parametrize("split_by", ["FSDP", "DeepSpeed"])
def test_the_launcher_says_what_splits_the_weights(monkeypatch: pytest.MonkeyPatch, split_by: str) -> None:
    assert weights_split_by() == ""
    monkeypatch.setenv(f"ACCELERATE_USE_{split_by.upper()}", "true")
    assert weights_split_by() == split_by


@pytest.mark.parametrize(
    ("precision", "given", "bf16"), [("bf16", False, True), ("no", False, False), ("no", True, True)]
)
def test_options_have_the_precision_that_deepspeed_has(
    monkeypatch: pytest.MonkeyPatch, precision: str, given: bool, bf16: bool
) -> None:
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", precision)
    found = []
    monkeypatch.setattr(TrainingArguments, "__post_init__", lambda args: found.append(args.bf16))  # needs deepspeed
    STSTrainingArguments(output_dir="run", bf16=given)
    assert found == [bf16]


@pytest.mark.parametrize("split_by", ["FSDP", "DeepSpeed"])
@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--train_file=a.csv", "--wise_ft_alpha=0.5"], "wise_ft_alpha"),
        (["--train_file=a.csv", "--model_soup=2"], "model_soup"),
        (["--train_file=a.csv", "--folds=2"], "folds"),
        (["--train_file=a.csv", "--refit"], "refit"),
        (["--train_file=a.csv", "--learning_curve"], "learning_curve"),
        (["--train_file=a.csv", "--freeze_encoder", "--head_solver=lbfgs"], "head_solver"),
        (["--train_file=a.csv", "--sts_data=folder"], "sts_data"),
        (["--train_file=a.csv", "--predict_file=b.csv"], "predict_file"),
        (["--test_file=a.csv"], "do_eval"),
        (["--train_file=a.csv"], None),
    ],
)
def test_what_needs_whole_weights_is_refused(
    monkeypatch: pytest.MonkeyPatch, options: list[str], named: str | None, split_by: str
) -> None:
    check_whole_weights(parse_stages([*options, "--model_name_or_path=encoder"])[-1])
    for module in ("command.arguments", "preparation"):
        monkeypatch.setattr(f"sts_regression.{module}.weights_split_by", lambda: split_by)
    last = parse_stages([*options, "--model_name_or_path=encoder"])[-1]
    if named is None:
        check_whole_weights(last)
        return
    with pytest.raises(ValueError, match=f"`{named}` needs the whole model in each process, which {split_by} splits"):
        check_whole_weights(last)


def test_a_checkpoint_of_more_processes_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint-4"
    checkpoint.mkdir()
    args = STSTrainingArguments(output_dir=str(tmp_path), resume_from_checkpoint="true")
    for name in ("trainer_state.json", "rng_state.pth"):
        (checkpoint / name).touch()
    assert checkpoint_to_resume(args) == str(checkpoint)
    for rank in range(2):
        (checkpoint / f"rng_state_{rank}.pth").touch()
    with pytest.raises(ValueError, match=r"checkpoint-4' was written by 2 processes, but there are 1 now\. Launch 2"):
        checkpoint_to_resume(args)
