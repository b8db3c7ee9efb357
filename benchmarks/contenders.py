"""The contenders of `speed.py`, each in its own process: `python benchmarks/contenders.py NAME PAIRS_FILE AMOUNT`.

A contender prints one line of JSON: its count of pairs or sentences and the seconds they took, the rate of a float32
matrix product before and after (the speed of the machine at that moment), and the peak memory of its process. The
paper's loop repeats its published code: separate passes for both sides, padding to 256 tokens, and tokenisation of one
sentence at a time.
"""

import functools
import itertools
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel, TrainerCallback

from sts_regression.command.command_help import keep_freed_memory
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data.pairs import read_pairs
from sts_regression.losses_sts_regression import smooth_k2
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.embedding_store import embed_pairs
from sts_regression.models.encoding import encode_sentences
from sts_regression.models.loading import find_model, load_model
from sts_regression.models.onnx_graphs import EncoderGraph, GraphSession, on_backend, quantize_graph, write_graph
from sts_regression.models.tokenization import pair_collator, tokenize_pairs
from sts_regression.options.model_arguments import ModelArguments
from sts_regression.quickstart import BUNDLED_FOLDER
from sts_regression.search.exact import top_k
from sts_regression.search.l1_kernels import weighted_l1_by_cdist
from sts_regression.search.score_matrix import score_matrix
from sts_regression.training.lora import add_lora
from sts_regression.training.run_record import peak_memory_bytes
from sts_regression.training.trainer import STSTrainer
from sts_regression.training.training_arguments import STSTrainingArguments

ROOT = Path(__file__).resolve().parent.parent
START_LINE = "Training on"  # of our command and of `library_start.py`
BATCH_SIZE = 16
MAX_LENGTH = 256
ONNX_BATCH_SIZE = 32
LEARNING_RATE = 5e-5
WARM_UP_STEPS = 2
SGEMM_SIZE = 2048

Result = dict[str, Any]  # `count` of `unit`s in `seconds`, the median of a step times their number


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


def load(**options: Any) -> tuple[STSRegressionModel, Any]:
    """Our model around MiniLM, and its tokenizer."""
    model, tokenizer = load_model(find_model(None), options)
    tokenizer.model_max_length = MAX_LENGTH
    return model, tokenizer


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


def num_multiplied_parameters(model: STSRegressionModel) -> int:
    """The number of encoder parameters that take part in matrix products: all but the embedding tables."""
    return sum(p.numel() for name, p in model.encoder.named_parameters() if "embeddings." not in name)


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


def tokenize_padded(texts: list[str], tokenizer: Any, padding: str | bool) -> dict[str, Tensor]:
    """A padded batch of one side."""
    return dict(tokenizer(texts, padding=padding, truncation=True, max_length=MAX_LENGTH, return_tensors="pt"))


class PaperModel(nn.Module):
    """Two passes, mean pooling, (u, v, |u - v|), one linear output."""

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def embed(self, side: dict[str, Tensor]) -> Tensor:
        """(sentences, hidden)."""
        hidden = self.encoder(**side)[0]
        mask = side["attention_mask"][:, :, None].float()
        return (hidden * mask).sum(dim=1) / mask.sum(dim=1)

    def forward(self, first: dict[str, Tensor], second: dict[str, Tensor]) -> Tensor:
        """(batch,)."""
        u, v = self.embed(first), self.embed(second)
        return self.head(torch.cat([u, v, (u - v).abs()], dim=-1))[:, 0]


def paper_model() -> tuple[PaperModel, Any]:
    """The paper's model around MiniLM, and its tokenizer."""
    path = find_model(None).path
    encoder = AutoModel.from_pretrained(path, add_pooling_layer=False)
    return PaperModel(encoder, nn.Linear(3 * encoder.config.hidden_size, 1)), AutoTokenizer.from_pretrained(path)


def batches_of_the_paper(pairs: Dataset, tokenizer: Any, padding: str | bool) -> Iterator[tuple[Any, Any, Tensor]]:
    """Yields batches padded to 256 tokens, sentence by sentence, or, in the fair form, to their longest sentence."""
    for start in range(0, len(pairs) - BATCH_SIZE, BATCH_SIZE):
        rows = pairs[start : start + BATCH_SIZE]
        sides = []
        for name in ("sentence1", "sentence2"):
            if padding == "max_length":
                alone = [tokenize_padded([text], tokenizer, padding) for text in rows[name]]
                sides.append({key: torch.cat([text[key] for text in alone]) for key in alone[0]})
            else:
                sides.append(tokenize_padded(rows[name], tokenizer, padding))
        yield sides[0], sides[1], torch.tensor(rows["label"])


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


def distinct_sentences(pairs: Dataset, count: int) -> list[str]:
    """The first `count` different sentences."""
    return list(dict.fromkeys(pairs[:]["sentence1"] + pairs[:]["sentence2"]))[:count]


def timed(work: Callable[[], Any]) -> float:
    """Seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def encoding_of_ours(pairs: Dataset, count: int, bf16: bool = False, backend: str = "torch") -> Result:
    """Our encoder, tokenising included but not the conversion for a backend, in float32 or in mixed precision."""
    model, tokenizer = load()
    sentences = distinct_sentences(pairs, count)
    tokens = sum(map(len, tokenizer(sentences)["input_ids"]))
    flops = 2 * num_multiplied_parameters(model) * tokens
    model = on_backend(model.eval(), tokenizer, backend)
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        encode_sentences(model, tokenizer, sentences[:64])
        seconds = timed(lambda: encode_sentences(model, tokenizer, sentences))
    return {"unit": "sentences", "count": len(sentences), "seconds": seconds, "flops": flops}


def encoding_of_onnx(pairs: Dataset, count: int, quantize: bool) -> Result:
    """Our exported graph in ONNX Runtime, tokenising included: batches of sentences of similar length."""
    model, tokenizer = load()
    sentences = sorted(distinct_sentences(pairs, count), key=len)

    def inputs(texts: list[str]) -> dict[str, Tensor]:
        return dict(tokenizer(texts, padding=True, truncation=True, return_tensors="pt"))

    with TemporaryDirectory() as folder:
        path = Path(folder) / "encoder.onnx"
        write_graph(EncoderGraph(model.eval()), inputs(["It rains.", "A dog.", "Water.", "A man sings."]), path)
        if quantize:
            quantize_graph(path, path.with_stem("int8"))
        session = GraphSession(path.with_stem("int8") if quantize else path)

    def encode(texts: list[str]) -> None:
        for start in range(0, len(texts), ONNX_BATCH_SIZE):
            session(**inputs(texts[start : start + ONNX_BATCH_SIZE]))

    encode(sentences[:64])
    return {"unit": "sentences", "count": len(sentences), "seconds": timed(lambda: encode(sentences))}


def encoding_of_the_library(pairs: Dataset, count: int, batch_size: int, **options: Any) -> Result:
    """sentence-transformers' `encode`."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(find_model(None).path, device="cpu", model_kwargs=options)
    model.max_seq_length = MAX_LENGTH
    sentences = distinct_sentences(pairs, count)
    model.encode(sentences[:64], batch_size=batch_size, show_progress_bar=False)
    seconds = timed(lambda: model.encode(sentences, batch_size=batch_size, show_progress_bar=False))
    return {"unit": "sentences", "count": len(sentences), "seconds": seconds}


def evaluation_of_ours(pairs: Dataset, count: int) -> Result:
    """Our evaluation of development pairs during training."""
    model, tokenizer = load()
    dev = pairs.select(range(min(count, len(pairs))))
    inputs = tokenize_pairs(dev, tokenizer, "bi-encoder")
    trainer = STSTrainer(model, our_arguments(1), None, inputs, tokenizer)
    trainer.evaluate(inputs.select(range(64)))
    seconds = timed(lambda: trainer.evaluate(inputs))
    return {"unit": "pairs", "count": len(dev), "seconds": seconds}


def evaluation_of_the_library(pairs: Dataset, count: int) -> Result:
    """sentence-transformers' EmbeddingSimilarityEvaluator."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.evaluation import EmbeddingSimilarityEvaluator

    model = SentenceTransformer(find_model(None).path, device="cpu")
    dev = pairs[: min(count, len(pairs))]
    evaluator = EmbeddingSimilarityEvaluator(dev["sentence1"], dev["sentence2"], dev["label"], batch_size=64)
    model.encode(dev["sentence1"][:64], show_progress_bar=False)
    return {"unit": "pairs", "count": len(dev["label"]), "seconds": timed(lambda: evaluator(model))}


def evaluation_of_the_paper(pairs: Dataset, count: int) -> Result:
    """The paper's scoring loop: batches of 16 sentences padded to 256 tokens, a side at a time."""
    model, tokenizer = paper_model()
    model.eval()
    rows = pairs[:count]
    with torch.inference_mode():
        started = time.perf_counter()
        for start in range(0, count, BATCH_SIZE):
            for name in ("sentence1", "sentence2"):
                model.embed(tokenize_padded(rows[name][start : start + BATCH_SIZE], tokenizer, "max_length"))
    return {"unit": "pairs", "count": count, "seconds": time.perf_counter() - started}


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


def profile_of_ours(pairs: Dataset, steps: int) -> Result:
    """The share of each operation in the time of a training step."""
    model, tokenizer = load()
    model.train()
    collate, inputs = pair_collator(tokenizer), tokenize_pairs(pairs, tokenizer, "bi-encoder")
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    batches = [collate([inputs[start + i] for i in range(BATCH_SIZE)]) for start in range(0, 16 * steps, BATCH_SIZE)]

    def train_on_batches() -> None:
        for batch in batches:
            optimizer.zero_grad()
            model(**batch).loss.backward()
            optimizer.step()

    train_on_batches()
    with torch.profiler.profile() as profiler:
        seconds = timed(train_on_batches)
    times = {event.key: event.self_cpu_time_total for event in profiler.key_averages()}
    total = sum(times.values())
    largest = sorted(times, key=times.__getitem__, reverse=True)[:12]
    shares = {name.removeprefix("aten::"): times[name] / total for name in largest}
    return {"unit": "pairs", "count": steps * BATCH_SIZE, "seconds": seconds, "details": shares}


def embeddings_to_score(size: int) -> tuple[STSRegressionModel, Tensor, Tensor]:
    """Our model, and random embeddings for both sides."""
    model, _ = load()
    hidden = model.config.encoder_config.hidden_size
    u, v = torch.randn(2, size, hidden, generator=torch.Generator().manual_seed(0)).unbind()
    return model.eval(), u, v


def matrix_of_ours(pairs: Dataset, size: int) -> Result:
    """The learned head's score of all pairs."""
    model, u, v = embeddings_to_score(size)
    scores = score_matrix(model, u, v)  # compiles the kernel, too
    with torch.no_grad():
        torch.testing.assert_close(scores[0], model.score_embeddings(u[:1].expand_as(v), v), atol=1e-4, rtol=1e-4)
    return {"unit": "pairs", "count": size**2, "seconds": median_of(lambda: score_matrix(model, u, v))}


def matrix_by_cdist(pairs: Dataset, size: int) -> Result:
    """The same scores by torch.cdist, split by the sign of the weights."""
    model, u, v = embeddings_to_score(size)
    parts = dict(zip(model.config.pair_features, model.head.weight.detach()[0].split(u.shape[1]), strict=True))

    def score() -> Tensor:
        distances = weighted_l1_by_cdist(u, v, parts["abs_diff"])
        return distances + (u @ parts["u"])[:, None] + (v @ parts["v"]) + model.head.bias.detach()

    torch.testing.assert_close(score(), score_matrix(model, u, v), atol=1e-3, rtol=1e-3)
    return {"unit": "pairs", "count": size**2, "seconds": median_of(score)}


def queries_and_corpus(count: int) -> tuple[STSRegressionModel, Tensor, Tensor]:
    """Our model, and random embeddings around centres: a query per 200 sentences, and a centre per 100."""
    model, _ = load()
    hidden = model.config.encoder_config.hidden_size
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(max(1, count // 100), hidden, generator=generator)

    def draw(size: int) -> Tensor:
        chosen = torch.randint(len(centres), (size,), generator=generator)
        return centres[chosen] + torch.randn(size, hidden, generator=generator)

    return model.eval(), draw(count // 200), draw(count)


def search_of_ours(pairs: Dataset, count: int, score: str) -> Result:
    """The ten best of a corpus for each query, exactly."""
    model, queries, corpus = queries_and_corpus(count)
    top_k(model, queries[:2], corpus[:100], 10, score)  # compiles the kernel
    seconds = median_of(lambda: top_k(model, queries, corpus, 10, score), times=3)
    return {"unit": "pairs", "count": len(queries) * len(corpus), "seconds": seconds}


def search_of_the_library(pairs: Dataset, count: int) -> Result:
    """sentence-transformers' `semantic_search`, by the cosine."""
    from sentence_transformers.util import semantic_search

    model, queries, corpus = queries_and_corpus(count)
    found = [[hit["corpus_id"] for hit in hits] for hits in semantic_search(queries, corpus, top_k=10)]
    assert found == top_k(model, queries, corpus, 10, "cosine")[1].tolist()
    seconds = median_of(lambda: semantic_search(queries, corpus, top_k=10), times=3)
    return {"unit": "pairs", "count": len(queries) * len(corpus), "seconds": seconds}


def median_of(work: Callable[[], Any], times: int = 7) -> float:
    """Median seconds of several calls."""
    return statistics.median(timed(work) for _ in range(times))


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
}

if __name__ == "__main__":
    main()
