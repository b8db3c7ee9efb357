"""Contenders that train, and that start to train."""

import itertools
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoTokenizer, BertConfig, BertModel, TrainerCallback

from benchmarks.contenders_of_speed.paper_code import PaperModel, batches_of_the_paper, paper_model
from benchmarks.contenders_of_speed.shared import (
    BATCH_SIZE,
    LEARNING_RATE,
    MAX_LENGTH,
    Result,
    few_steps,
    load,
    num_multiplied_parameters,
    our_arguments,
    timed,
    tokenize_padded,
)
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.losses_sts_regression import smooth_k2
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.embedding_store import embed_pairs
from sts_regression.models.loading import find_model
from sts_regression.models.tokenization import pair_collator, tokenize_pairs
from sts_regression.options.model_arguments import ModelArguments
from sts_regression.quickstart import BUNDLED_FOLDER
from sts_regression.training.lora import add_lora
from sts_regression.training.run_record import peak_memory_bytes
from sts_regression.training.trainer import STSTrainer

ROOT = Path(__file__).resolve().parents[2]
START_LINE = "Training on"  # of our command and of `library_start.py`
WARM_UP_STEPS = 2


class StepTimes(TrainerCallback):
    """The times between the ends of optimiser steps, without the warm-up."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        """Called by Trainer."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.ends.append(time.perf_counter())

    @property
    def median(self) -> float:
        """Seconds of a step."""
        return median_of_steps(self.ends)


def median_of_steps(ends: list[float]) -> float:
    """Median time between consecutive ends, without the warm-up."""
    times = [end - start for start, end in itertools.pairwise(ends)]
    return statistics.median(times[WARM_UP_STEPS:])


def train_steps(
    model: STSRegressionModel, tokenizer: Any, inputs: Any, steps: int, use_peft: bool = False, **options: Any
) -> StepTimes:
    """Runs the given number of steps of our trainer."""
    times = StepTimes()
    adapter = add_lora(model, **ModelArguments().lora_options()) if use_peft else None
    trainer = STSTrainer(model, our_arguments(steps, **options), inputs, None, tokenizer, adapter=adapter)
    trainer.add_callback(times)
    trainer.train()
    return times


def train_library_steps(model: Any, pairs: Dataset, steps: int, loss: str, **options: Any) -> StepTimes:
    """So many steps of sentence-transformers' trainer."""
    from sentence_transformers import SentenceTransformerTrainer
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.training_args import SentenceTransformerTrainingArguments

    given = pairs.select_columns(["sentence1", "sentence2", "label"]).map(lambda row: {"label": row["label"] / 5})
    args = SentenceTransformerTrainingArguments(**few_steps(steps, **options))
    times = StepTimes()
    trainer = SentenceTransformerTrainer(model, args, given, loss=getattr(losses, loss)(model), callbacks=[times])
    trainer.train()
    return times


def training_of_ours(
    pairs: Dataset,
    steps: int,
    encoding: str = "auto",
    bf16: bool = False,
    freeze_embeddings: bool = False,
    use_peft: bool = False,
) -> Result:
    """Our trainer, with the options of the command."""
    model, tokenizer = load(encoding=encoding)
    check_equality(model, tokenizer, pairs)
    model.get_input_embeddings().requires_grad_(not freeze_embeddings)
    inputs = tokenize_pairs(pairs, tokenizer, "bi-encoder")
    times = train_steps(model, tokenizer, inputs, steps + WARM_UP_STEPS + 1, use_peft, bf16=bf16)
    tokens = sum(len(ids) for row in inputs.select(range(512))["input_ids"] for ids in row) / 512
    return {
        "unit": "pairs",
        "count": steps * BATCH_SIZE,
        "seconds": steps * times.median,
        "flops": 6 * num_multiplied_parameters(model) * tokens * steps * BATCH_SIZE,
    }


def check_equality(model: STSRegressionModel, tokenizer: Any, pairs: Dataset) -> None:
    """Checks, before anything is timed, that our loss on a batch equals that of the paper's loop."""
    batch = pairs.select(range(BATCH_SIZE))
    inputs = pair_collator(tokenizer)(list(tokenize_pairs(batch, tokenizer, "bi-encoder")))
    model.eval()
    with torch.no_grad():
        loss = model(**inputs).loss
        reference = PaperModel(model.encoder, model.head)
        sides = [tokenize_padded(batch[:][name], tokenizer, "max_length") for name in ("sentence1", "sentence2")]
        expected = smooth_k2(reference(*sides), inputs["labels"], 2.0, 0.25)
    torch.testing.assert_close(loss, expected, atol=1e-4, rtol=1e-4)


def training_of_the_paper(
    pairs: Dataset, steps: int, padding: str | bool = "max_length", is_frozen: bool = False
) -> Result:
    """The paper's training loop; its first stage runs the frozen encoder in every step."""
    model, tokenizer = paper_model()
    model.train()
    model.encoder.requires_grad_(not is_frozen)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], LEARNING_RATE)
    ends = []
    for number, (first, second, labels) in enumerate(batches_of_the_paper(pairs, tokenizer, padding)):
        optimizer.zero_grad()
        smooth_k2(model(first, second), labels.float(), 2.0, 0.25).backward()
        optimizer.step()
        ends.append(time.perf_counter())
        if number == steps + WARM_UP_STEPS:
            break
    return {"unit": "pairs", "count": steps * BATCH_SIZE, "seconds": steps * median_of_steps(ends)}


def training_of_the_library(pairs: Dataset, steps: int, loss: str, **options: Any) -> Result:
    """sentence-transformers' trainer."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(find_model(None).path, device="cpu")
    model.max_seq_length = MAX_LENGTH
    times = train_library_steps(model, pairs, steps + WARM_UP_STEPS + 1, loss, **options)
    return {"unit": "pairs", "count": steps * BATCH_SIZE, "seconds": steps * times.median}


def frozen_epoch_of_ours(pairs: Dataset, count: int) -> Result:
    """An epoch of the head on stored embeddings; `first_seconds` is the time to encode them."""
    model, tokenizer = load()
    model.freeze_encoder()
    pairs = pairs.select(range(min(count, len(pairs))))
    started = time.perf_counter()
    folder = f"outputs/benchmark-store-{os.getpid()}"
    inputs = embed_pairs({"train": pairs}, model, tokenizer, folder)["train"]
    first = time.perf_counter() - started
    steps = len(pairs) // BATCH_SIZE
    times = train_steps(model, tokenizer, inputs, steps)
    seconds = (times.ends[-1] - times.ends[WARM_UP_STEPS]) / (steps - 1 - WARM_UP_STEPS) * steps
    # The same steps without Trainer measure the head itself.
    optimizer = torch.optim.AdamW(model.head.parameters(), fused=True)

    def bare_epoch() -> None:
        for start in range(0, steps * BATCH_SIZE, BATCH_SIZE):
            optimizer.zero_grad()
            model(**inputs.__getitems__(list(range(start, start + BATCH_SIZE)))).loss.backward()
            optimizer.step()

    details = {"first_seconds": first, "seconds_without_trainer": timed(bare_epoch)}
    return {"unit": "pairs", "count": len(pairs), "seconds": seconds, "details": details}


def start_of_ours(pairs: Dataset, count: int) -> Result:
    """From the command of the quick start to its first step: imports, model, pairs, and the development score."""
    with TemporaryDirectory() as folder:
        return starts([str(ROOT / "run_sts.py"), "--output_dir", folder], count)


def start_of_the_library(pairs: Dataset, count: int) -> Result:
    """The same for a script of sentence-transformers."""
    with TemporaryDirectory() as folder:
        model, script = find_model(None).path, ROOT / "benchmarks" / "library_start.py"
        return starts([str(script), model, str(BUNDLED_FOLDER), folder], count)


def starts(command: list[str], count: int) -> Result:
    """Starts a Python command so many times, each until it writes that it trains."""
    seconds = 0.0
    for _ in range(count):
        started = time.perf_counter()
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        with subprocess.Popen([sys.executable, *command], **pipes) as process:
            assert process.stdout is not None
            if not any(line.startswith(START_LINE) for line in process.stdout):
                raise RuntimeError(f"{command[0]} did not train")
            seconds += time.perf_counter() - started
            process.kill()
    return {"unit": "starts", "count": count, "seconds": seconds}


def memory_of_ours(pairs: Dataset, steps: int, use_peft: bool = False) -> Result:
    """Training steps of a model of BERT-base's shape on real text, to measure peak memory."""
    libraries = peak_memory_bytes()["process"]
    tokenizer = AutoTokenizer.from_pretrained(find_model(None).path)
    tokenizer.model_max_length = MAX_LENGTH
    torch.manual_seed(0)
    model = STSRegressionModel(STSRegressionConfig(encoder_config=BertConfig()), BertModel(BertConfig(), False))
    inputs = tokenize_pairs(pairs, tokenizer, "bi-encoder")
    times = train_steps(model, tokenizer, inputs, steps + WARM_UP_STEPS + 1, use_peft)
    # Weights, gradients and the two moments of Adam.
    details = {"libraries": libraries, "parameters": 4 * sum(p.numel() * p.element_size() for p in model.parameters())}
    return {"unit": "pairs", "count": steps * BATCH_SIZE, "seconds": steps * times.median, "details": details}


def profile_of_ours(pairs: Dataset, steps: int, dtype: torch.dtype = torch.float32) -> Result:
    """The share of each operation in the time of a training step, with mixed precision for a `dtype` of 16 bits."""
    model, tokenizer = load()
    model.train()
    collate, inputs = pair_collator(tokenizer), tokenize_pairs(pairs, tokenizer, "bi-encoder")
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    batches = [collate([inputs[start + i] for i in range(BATCH_SIZE)]) for start in range(0, 16 * steps, BATCH_SIZE)]

    def train_on_batches() -> None:
        for batch in batches:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
                loss = model(**batch).loss
            loss.backward()
            optimizer.step()

    train_on_batches()
    with torch.profiler.profile() as profiler:
        seconds = timed(train_on_batches)
    times = {event.key: event.self_cpu_time_total for event in profiler.key_averages()}
    total = sum(times.values())
    largest = sorted(times, key=times.__getitem__, reverse=True)[:12]
    shares = {name.removeprefix("aten::"): times[name] / total for name in largest}
    return {"unit": "pairs", "count": steps * BATCH_SIZE, "seconds": seconds, "details": shares}
