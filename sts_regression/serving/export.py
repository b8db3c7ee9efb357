"""Writes a checkpoint for programs that do not use this repository.

    sts-regression export outputs/pairs-smooth_k2 --output_dir exported --quantize int8 --test_file pairs.csv

The folder then holds

    encoder.onnx     sentences (batch, length) to `sentence_embedding` (batch, hidden), of length 1 if the untouched
                     encoder's embeddings had this length
    scorer.onnx      pairs (batch, 2, length) to `score` and `cosine` (batch,); for a cross-encoder, pairs in one
                     sequence (batch, length) to `score`
    *_int8.onnx      the same with weights as 8-bit integers
    tokenizer.json   and its settings
    encoder/         the encoder for transformers, sentence-transformers and embedding servers
    export.json      sizes, differences from torch, and Spearman's correlations on the test pairs

A cross-encoder has no sentence embeddings, an encoder without a trained head no scorer.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from datasets import Dataset
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from sts_regression.basics.files import alone_in, is_same_place
from sts_regression.basics.hub_tokens import CommandParser
from sts_regression.basics.tables import write_json
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data.columns import PairColumns
from sts_regression.data.pairs import read_pairs
from sts_regression.data.scales import check_labels_differ
from sts_regression.evaluation.measures import PairScores, measure_scores
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.loading import find_model, load_model, resolve_max_seq_length
from sts_regression.models.onnx_graphs import (
    ONNX_PACKAGES,
    EncoderGraph,
    GraphSession,
    ScorerGraph,
    check_onnx_is_installed,
    encoder_inputs,
    largest_difference,
    quantize_graph,
    write_graph,
)
from sts_regression.models.sentence_transformers_files import ENCODER_FOLDER, delete_encoder, describe_encoder
from sts_regression.models.tokenization import save_tokenizer
from sts_regression.pipeline_sts_regression import with_prefix

QUANTIZATIONS = ("int8",)
GRAPHS = ("encoder", "scorer")
REPORT_FILE = "export.json"
MEASURED_AT_ONCE = 32  # pairs
# Pairs of made-up sentences, short and long, on which the graphs are checked.
CHECKED_PAIRS = (
    ("Water.", "A dog."),
    ("A man is playing a guitar.", "Someone is making music in the street, and nobody seems to listen."),
    ("The train was late", "?"),
    ("It rains. " * 40, "The meeting has been moved to Thursday because the room is taken on Wednesday."),
)
CHECKED_BATCHES = ((0, 1), (1, 3), (0, 4))  # slices with one pair, two, and all


def export(
    checkpoint: str,
    output_dir: Path,
    quantize: bool = False,
    test_file: Path | None = None,
    max_seq_length: int | None = None,
    test_columns: PairColumns | None = None,
    **hub_options: Any,
) -> dict[str, Any]:
    """
    Exports a checkpoint.

    Args:
        checkpoint: folder or Hub id.
        output_dir: folder to write.
        quantize: whether to write graphs of 8-bit integers as well.
        test_file: labelled pairs to score with every graph.
        max_seq_length: longest text in tokens, see [`resolve_max_seq_length`].
        test_columns: columns of the test file that would be guessed wrong.
        **hub_options: options of [`find_model`].

    Returns:
        The report that is written to `export.json`.

    Raises:
        ValueError: if torch cannot convert the model, or a graph differs from torch by more than 1e-4; see also
            [`load_model`] and [`read_pairs`]. An earlier export in the folder is then left as it was.
    """
    check_onnx_is_installed()
    inputs = (checkpoint, Path(checkpoint) / ENCODER_FOLDER)
    if any(is_same_place(read, to) for read in inputs for to in (output_dir, output_dir / ENCODER_FOLDER)):
        raise ValueError(f"`output_dir` {str(output_dir)!r} is the checkpoint, or would replace it. Name another one.")
    # Packed encoding has different shapes for every batch, but a graph needs one shape for all.
    model, tokenizer = load_model(find_model(checkpoint, **hub_options), {"encoding": "padded"})
    model.eval()
    if model.config.encoder_type == "cross-encoder" and not model.config.head_is_trained:
        raise ValueError(f"{checkpoint!r} is a cross-encoder without a trained head and scores nothing. Train it.")
    pairs = None if test_file is None else _read_test_pairs(test_file, test_columns, model.config)
    tokenizer.model_max_length = resolve_max_seq_length(model, tokenizer, max_seq_length)

    output_dir.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=output_dir) as scratch:
        described = _write_export(Path(scratch), model, tokenizer, quantize, pairs)
        report = {
            "checkpoint": checkpoint,
            "max_seq_length": tokenizer.model_max_length,
            "prefixes": model.config.prefixes,
            "test_pairs": None if pairs is None else len(pairs),
            "versions": {name: metadata.version(name) for name in ("torch", "transformers", *ONNX_PACKAGES)},
            "graphs": described,
        }
        write_json(report, Path(scratch, REPORT_FILE))
        _replace_export(output_dir, Path(scratch))
    return report


def _replace_export(folder: Path, new: Path) -> None:
    """Moves the files of an export into its folder, in place of those of an earlier export."""
    if (folder / REPORT_FILE).is_file():
        for path in [path for name in GRAPHS for path in folder.glob(f"{name}*.onnx*")]:
            path.unlink()
        delete_encoder(folder)
    for path in [path for path in new.rglob("*") if path.is_file()]:
        target = folder / path.relative_to(new)
        target.parent.mkdir(exist_ok=True)
        path.replace(target)


def _write_export(
    folder: Path,
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    quantize: bool,
    pairs: Dataset | None,
) -> dict[str, dict[str, Any]]:
    """Writes tokenizer, encoder and graphs. Returns the entries of the graphs in the report."""
    save_tokenizer(tokenizer, folder)
    graphs: dict[str, EncoderGraph | ScorerGraph] = {}
    if model.config.encoder_type != "cross-encoder":
        graphs["encoder"] = EncoderGraph(model)
        model.encoder.save_pretrained(folder / ENCODER_FOLDER)
        describe_encoder(folder / ENCODER_FOLDER, model.config, tokenizer)
    if model.config.head_is_trained:
        graphs["scorer"] = ScorerGraph(model)
    described: dict[str, dict[str, Any]] = {}
    for name, graph in graphs.items():
        described |= _export_graph(name, graph, folder, tokenizer, quantize, pairs)
    return described


def _export_graph(
    name: str,
    graph: EncoderGraph | ScorerGraph,
    output_dir: Path,
    tokenizer: PreTrainedTokenizerBase,
    quantize: bool,
    pairs: Dataset | None,
) -> dict[str, dict[str, Any]]:
    """Writes, checks, quantises and measures one graph. Returns the entries of its files in the report."""
    batches = [_inputs(graph, CHECKED_PAIRS[first:last], tokenizer) for first, last in CHECKED_BATCHES]
    path = output_dir / f"{name}.onnx"
    write_graph(graph, batches[-1], path)
    difference = largest_difference(graph, path, batches)
    measures = {} if pairs is None else _spearman(path, graph, pairs, tokenizer)
    described = {path.name: {"bytes": _size(path), "largest_difference_from_torch": difference, **measures}}
    if quantize:
        small = output_dir / f"{name}_int8.onnx"
        quantize_graph(path, small)
        of_small = {} if pairs is None else _spearman(small, graph, pairs, tokenizer)
        losses = {f"{measure}_loss": measures[measure] - value for measure, value in of_small.items()}
        described[small.name] = {"bytes": _size(small), **of_small, **losses}
    return described


def _size(path: Path) -> int:
    """The size in bytes of a graph and of the weights beside it."""
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def _inputs(
    graph: EncoderGraph | ScorerGraph, pairs: Sequence[Sequence[str]], tokenizer: PreTrainedTokenizerBase
) -> dict[str, Tensor]:
    """A batch of pairs as inputs of the graph. An encoder takes all sentences, shape (2 · pairs, length)."""
    model = graph.model
    if model.config.encoder_type == "cross-encoder":
        return encoder_inputs(model, tokenizer, [first for first, _ in pairs], [second for _, second in pairs])
    sides = (with_prefix(side, p) for side, p in zip(zip(*pairs, strict=True), model.config.prefixes, strict=True))
    batch = encoder_inputs(model, tokenizer, [sentence for pair in zip(*sides, strict=True) for sentence in pair])
    if isinstance(graph, EncoderGraph):
        return batch
    return {key: tensor.unflatten(0, (-1, 2)) for key, tensor in batch.items()}


def _spearman(
    path: Path, graph: EncoderGraph | ScorerGraph, pairs: Dataset, tokenizer: PreTrainedTokenizerBase
) -> dict[str, float]:
    """Spearman's correlations of a graph's cosine and score with the labels."""
    session = GraphSession(path)
    sentences = list(zip(pairs["sentence1"], pairs["sentence2"], strict=True))
    parts: list[dict[str, np.ndarray]] = []
    for start in range(0, len(sentences), MEASURED_AT_ONCE):
        outputs = session(**_inputs(graph, sentences[start : start + MEASURED_AT_ONCE], tokenizer))
        if "sentence_embedding" in outputs:
            u, v = torch.from_numpy(outputs.pop("sentence_embedding")).unflatten(0, (-1, 2)).unbind(1)
            outputs["cosine"] = F.cosine_similarity(u, v, dim=-1).numpy()
        parts.append(outputs)
    scores = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    measured = measure_scores(
        PairScores(scores.get("score"), scores.get("cosine")),
        np.asarray(pairs["label"]),
        graph.model.config.label_values,
    )
    return {name: value for name, value in measured.items() if name.startswith("spearman")}


def _read_test_pairs(path: Path, columns: PairColumns | None, config: STSRegressionConfig) -> Dataset:
    grades = None if config.label_names is None else dict(zip(config.label_names, config.label_values, strict=True))
    pairs = read_pairs(path, columns, grades).pairs
    check_labels_differ(pairs, str(path))
    return pairs


def main(argv: list[str] | None = None) -> None:
    """Runs the command."""
    parser = CommandParser(
        prog="sts-regression export",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checkpoint", help="folder or Hub id of a checkpoint, or of a plain encoder")
    parser.add_argument("--output_dir", type=Path, required=True, help="folder to write")
    parser.add_argument("--quantize", choices=QUANTIZATIONS, help="write graphs of 8-bit integers as well")
    parser.add_argument("--test_file", type=Path, help="labelled pairs to measure each graph on")
    for name, content in (("sentence1", "first texts"), ("sentence2", "second texts"), ("label", "labels")):
        parser.add_argument(f"--{name}_column", help=f"column of the {content} in the test file; default: guessed")
    parser.add_argument("--max_seq_length", type=int, help="longest text in tokens; default: the model's own")
    parser.add_argument("--model_revision", default="main", help="branch, tag or commit on the Hub")
    parser.add_argument("--trust_remote_code", action="store_true", help="run the encoder's own code from the Hub")
    parser.add_argument("--overwrite", action="store_true", help="write into a folder that holds files")
    args = parser.parse_args(argv)
    try:
        if args.output_dir.exists() and not args.output_dir.is_dir():
            raise ValueError(f"`output_dir` {str(args.output_dir)!r} is a file. Name a folder.")
        if args.output_dir.is_dir() and any(args.output_dir.iterdir()) and not args.overwrite:
            raise ValueError(
                f"`output_dir` {str(args.output_dir)!r} holds files. Name another one, or give `--overwrite`."
            )
        with alone_in(args.output_dir):
            report = export(
                args.checkpoint,
                args.output_dir,
                args.quantize is not None,
                args.test_file,
                args.max_seq_length,
                PairColumns(args.sentence1_column, args.sentence2_column, args.label_column),
                revision=args.model_revision,
                trust_remote_code=args.trust_remote_code,
            )
    except (ValueError, OSError) as error:
        parser.end(error)
    for name, described in report["graphs"].items():
        numbers = ", ".join(f"{key} {value:.4g}" for key, value in described.items() if key != "bytes")
        sys.stdout.write(f"{args.output_dir / name}: {described['bytes'] / 1e6:,.1f} MB; {numbers}\n")


if __name__ == "__main__":
    main()
