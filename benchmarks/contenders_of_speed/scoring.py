"""Contenders that encode sentences, and that evaluate pairs."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor

from benchmarks.contenders_of_speed.paper_code import paper_model
from benchmarks.contenders_of_speed.shared import (
    BATCH_SIZE,
    MAX_LENGTH,
    Result,
    distinct_sentences,
    load,
    num_multiplied_parameters,
    our_arguments,
    timed,
    tokenize_padded,
)
from sts_regression.models.encoding import encode_sentences
from sts_regression.models.loading import find_model
from sts_regression.models.onnx_graphs import EncoderGraph, GraphSession, on_backend, quantize_graph, write_graph
from sts_regression.models.tokenization import tokenize_pairs
from sts_regression.training.trainer import STSTrainer

ONNX_BATCH_SIZE = 32


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
