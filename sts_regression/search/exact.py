"""Finds the best texts of a corpus for each query.

    sts-regression search --model_name_or_path RUN --corpus corpus.txt --queries queries.txt --output_file hits.jsonl

scores every pair exactly, and writes one JSON object per query, or, to a .csv file, one row per hit. The file appears
when all queries are finished. Without `--output_file`, a table of the hits is printed.
"""

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from sts_regression.basics.files import check_is_file, check_output, replacing
from sts_regression.basics.hub_tokens import CommandParser
from sts_regression.basics.quiet import draws_bars
from sts_regression.basics.tables import cut
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data.rows import read_lines, read_rows
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import Embeddings, encode_sentences
from sts_regression.models.loading import find_model, load_model, model_files, prepare_for_scoring
from sts_regression.models.onnx_graphs import on_backend
from sts_regression.options.data_arguments import BACKENDS
from sts_regression.options.model_arguments import add_model_arguments
from sts_regression.pipeline_sts_regression import is_whole_text, unreliable_pairs
from sts_regression.search.score_matrix import (
    BLOCK_SIZE,
    SCORES,
    PairScorer,
    check_at_least_one,
    embeddings_of,
    pair_scorer,
    score_matrix,
)

__all__ = ["main", "read_texts", "score_matrix", "top_k"]

ENCODED_AT_ONCE = 4096  # sentences between two steps of the progress bar
QUERIES_AT_ONCE = 256
TEXT_COLUMN = "text"
HIT_COLUMNS = ("text", "index", "score", "unreliable")
OUTPUT_SUFFIXES = (".jsonl", ".csv")
SCORE_DIGITS = 6  # decimals; float32 has no more
SHOWN_DIGITS, SHOWN_TEXT = 3, 100  # decimals of a score and characters of a text on the screen


@torch.no_grad()
def top_k(
    model: STSRegressionModel,
    queries: Embeddings,
    corpus: Embeddings,
    k: int,
    score: str = "head",
    block_size: int = BLOCK_SIZE,
) -> tuple[Tensor, Tensor]:
    """
    The best-scoring sentences of a corpus for each query. All pairs are scored, block by block.

    Args:
        model: a bi-encoder; blocks are computed on its device.
        queries (`Tensor` or array of shape `(queries, hidden)`): embeddings of the first sentences of pairs.
        corpus (`Tensor` or array of shape `(sentences, hidden)`): embeddings of the second sentences of pairs.
        k: number of sentences to find. All sentences of a smaller corpus are returned.
        score: "head", on the label scale, or "cosine".
        block_size: number of queries and of sentences in a block. With fewer queries, a block has more sentences,
            but not more pairs.

    Returns:
        Two tensors of shape `(queries, min(k, sentences))`, on the device of `queries` (for an array, the CPU):
        scores, best first, and int64 indices in the corpus. If scores are equal, the lower index comes first. (Equal
        embeddings may get scores that differ in the last bit if the score needs a matrix product.)

    Raises:
        ValueError: for a cross-encoder, an unknown `score`, numbers below 1, embeddings of another size, and
            embeddings or scores that are NaN or infinite.
    """
    scorer = pair_scorer(model, score)
    check_at_least_one("k", k)
    check_at_least_one("block_size", block_size)
    queries, corpus = embeddings_of(model, "queries", queries), embeddings_of(model, "corpus", corpus)
    parts = [_top_k_of_rows(scorer, rows, corpus, k, block_size) for rows in queries.split(block_size)]
    scores, indices = (torch.cat(tensors).to(queries.device) for tensors in zip(*parts, strict=True))
    if not scores.isfinite().all():  # a sort puts NaN first, so checking the returned scores is enough
        raise ValueError("`model` gives scores that are NaN or infinite. Its weights are damaged, or too large.")
    return scores, indices


def _top_k_of_rows(scorer: PairScorer, rows: Tensor, corpus: Tensor, k: int, block_size: int) -> tuple[Tensor, Tensor]:
    best: tuple[Tensor, Tensor] | None = None
    width = block_size * max(1, block_size // max(1, len(rows)))  # with fewer queries, more sentences at once
    for start in range(0, max(1, len(corpus)), width):  # an empty corpus is one empty block
        scores, indices = _stable_top_k(scorer(rows, corpus[start : start + width]), k)
        indices = indices + start
        if best is not None:
            # Earlier hits have lower indices, and a stable sort keeps them before equal scores.
            merged, merged_indices = torch.cat([best[0], scores], dim=1), torch.cat([best[1], indices], dim=1)
            scores, order = merged.sort(dim=1, descending=True, stable=True)
            scores, indices = scores[:, :k], merged_indices.gather(1, order[:, :k])
        best = scores, indices
    assert best is not None
    return best


def _stable_top_k(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """`scores.topk(k, dim=1)`, but the lower index wins and comes first if scores are equal."""
    k = min(k, scores.shape[1])
    values, indices = scores.topk(k, dim=1)
    # `topk` chooses freely among scores equal to the last that it returns: such rows are sorted as a whole.
    is_tied = (scores >= values[:, -1:]).sum(dim=1) > k
    if is_tied.any():
        in_order = scores[is_tied].sort(dim=1, descending=True, stable=True)
        values[is_tied], indices[is_tied] = in_order.values[:, :k], in_order.indices[:, :k]
    indices, order = indices.sort(dim=1)
    scores, order = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    return scores, indices.gather(1, order)


def main(argv: list[str] | None = None) -> None:
    """Runs the command."""
    parser = CommandParser(
        prog="sts-regression search",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    texts = ".txt with one text per line, or .csv, .tsv, .jsonl or .parquet with a column text"
    add_model_arguments(parser, "a bi-encoder")
    parser.add_argument("--corpus", type=Path, required=True, help=f"texts to search: {texts}")
    parser.add_argument("--queries", type=Path, required=True, help="texts to search for, in the same formats")
    parser.add_argument("--top_k", type=int, default=10, help="hits per query; default: 10")
    parser.add_argument("--score", default="head", choices=SCORES, help="default: head")
    parser.add_argument(
        "--block_size", type=int, default=BLOCK_SIZE, help=f"queries and texts in a block; default: {BLOCK_SIZE}"
    )
    parser.add_argument("--bf16", action="store_true", help="encode in bfloat16 mixed precision")
    parser.add_argument(
        "--backend",
        default="torch",
        choices=BACKENDS,
        help="engine of the encoder; default: torch. onnx-int8 has 8-bit weights in ONNX Runtime, faster on CPUs, and "
        "changes scores slightly",
    )
    parser.add_argument(
        "--output_file",
        type=Path,
        help=".jsonl with a line per query, or .csv with a row per hit; default: a table on the screen",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the output file if there is one")
    args = parser.parse_args(argv)
    try:
        _run(args)
    except ValueError as error:
        parser.end(error)


def _run(args: argparse.Namespace) -> None:
    check_at_least_one("top_k", args.top_k)
    check_at_least_one("block_size", args.block_size)
    output: Path | None = args.output_file
    if output is not None:
        inputs = [args.corpus, args.queries, *model_files(args.model_name_or_path)]
        check_output("output_file", output, inputs, None if args.overwrite else "--overwrite")
        if output.suffix.lower() not in OUTPUT_SUFFIXES:
            raise ValueError(f"`output_file` must end in {' or '.join(OUTPUT_SUFFIXES)}, but is {str(output)!r}.")
    corpus, queries = read_texts(args.corpus), read_texts(args.queries)
    model, tokenizer = load_model(find_model(args.model_name_or_path, args.model_revision, args.trust_remote_code), {})
    pair_scorer(model, args.score)  # refuses a cross-encoder before anything is encoded
    if args.score == "head" and not model.config.head_is_trained:
        raise ValueError(
            f"`model_name_or_path`: {args.model_name_or_path!r} has no trained head. Search with `--score cosine`, or "
            "give a checkpoint with a trained head."
        )
    prepare_for_scoring(model, tokenizer, args.max_seq_length)
    found = _search(on_backend(model, tokenizer, args.backend), tokenizer, corpus, queries, args)
    if output is None:
        sys.stdout.write("\n\n".join(list(map(_shown, found))) + "\n")  # when the progress bars are gone
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with replacing(output) as file:  # opened before the search, so that a bad path costs no time
            (_write_rows if output.suffix.lower() == ".csv" else _write_lines)(found, file)
    except OSError as error:
        raise ValueError(f"`output_file`: cannot write {str(output)!r} ({error}). Give another path.") from error
    sys.stdout.write(f"{len(queries):,} queries, {len(corpus):,} texts: {output}\n")


def _write_lines(found: Iterable[dict[str, Any]], file: BinaryIO) -> None:
    for line in found:
        file.write(json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def _write_rows(found: Iterable[dict[str, Any]], file: BinaryIO) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["query", "rank", *HIT_COLUMNS])
    for line in found:
        for rank, hit in enumerate(line["hits"], start=1):
            writer.writerow([line["query"], rank, *(hit[column] for column in HIT_COLUMNS)])
    text.detach()  # leaves the file open for its owner


def _shown(line: dict[str, Any]) -> str:
    """A query and its hits on the screen, with the scores in a column."""
    scores = [f"{hit['score']:.{SHOWN_DIGITS}f}" for hit in line["hits"]]
    width = max(map(len, scores))
    texts = [" ".join(text.split()) for text in (line["query"], *(hit["text"] for hit in line["hits"]))]
    query, *hits = (cut(text, SHOWN_TEXT) for text in texts)
    marks = [f"  (unreliable: {hit['unreliable']})" if hit["unreliable"] else "" for hit in line["hits"]]
    rows = zip(scores, hits, marks, strict=True)
    return "\n".join([query, *(f"  {score:>{width}}  {hit}{mark}" for score, hit, mark in rows)])


def _search(
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    corpus: Sequence[str],
    queries: Sequence[str],
    args: argparse.Namespace,
) -> Iterator[dict[str, Any]]:
    """Yields the lines of the output, one per query."""
    # Each distinct text is searched once, so that equal texts have exactly the same score.
    places: dict[str, list[int]] = {}
    for index, text in enumerate(corpus):
        places.setdefault(text, []).append(index)
    distinct, (query_prefix, corpus_prefix) = list(places), model.config.prefixes

    def encode(texts: Sequence[str], prefix: str) -> torch.Tensor:
        with torch.autocast(model.device.type, torch.bfloat16, enabled=args.bf16):
            return encode_sentences(model, tokenizer, texts, prefix=prefix)

    encoded = torch.cat([encode(p, prefix=corpus_prefix) for p in _parts(distinct, ENCODED_AT_ONCE, "corpus")])
    for part in _parts(queries, QUERIES_AT_ONCE, "queries"):
        embeddings = encode(part, prefix=query_prefix)
        found = top_k(model, embeddings, encoded, args.top_k, args.score, args.block_size)
        hits = []
        for rows in zip(*(tensor.tolist() for tensor in found), strict=True):
            of_query = [(index, score) for score, row in zip(*rows, strict=True) for index in places[distinct[row]]]
            of_query = sorted(of_query, key=lambda hit: (-hit[1], hit[0]))[: args.top_k]
            hits.append([(index, round(score, SCORE_DIGITS)) for index, score in of_query])
        for query, described in zip(part, describe_hits(part, hits, corpus, tokenizer, model.config), strict=True):
            yield {"query": query, "hits": described}


def describe_hits(
    queries: Sequence[str],
    hits: Sequence[Sequence[tuple[int, float]]],
    corpus: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    config: STSRegressionConfig,
) -> list[list[dict[str, Any]]]:
    """
    The hits of each query as rows of an output.

    Args:
        queries: first texts of pairs.
        hits: index in the corpus and score of each hit of each query.
        corpus: second texts of pairs.
        tokenizer: the model's tokenizer.
        config: the configuration of the model.

    Returns:
        A `dict` for each hit of each query: `text`, `index`, `score`, and `unreliable`, see [`unreliable_pairs`].
    """
    first = [query for query, of_query in zip(queries, hits, strict=True) for _ in of_query]
    second = [corpus[index] for of_query in hits for index, _ in of_query]
    marks = iter(unreliable_pairs(first, second, tokenizer, config))
    return [
        [{"text": corpus[index], "index": index, "score": score, "unreliable": next(marks)} for index, score in found]
        for found in hits
    ]


def _parts(texts: Sequence[str], size: int, description: str) -> Iterator[Sequence[str]]:
    """Yields the texts in parts of the given size, with a progress bar."""
    with tqdm(total=len(texts), desc=description, disable=not draws_bars()) as progress:
        for start in range(0, len(texts), size):
            yield texts[start : start + size]
            progress.update(min(size, len(texts) - start))


def read_texts(path: Path) -> list[str]:
    """
    The texts of a file: the lines of a `.txt`, or the column `text` of a CSV, TSV, JSON-lines, Parquet or Excel file.

    Raises:
        ValueError: for a missing or unreadable file, a file without texts or without the column, and an empty text;
            the message names the file, the line and the remedy.
    """
    texts = []
    check_is_file(path, f".txt file with one text per line, or a table with a column `{TEXT_COLUMN}`")
    if path.suffix.lower() == ".txt":
        lines = [line.rstrip("\r\n") for line in read_lines(path)]
        while lines and not lines[-1].strip():  # blank lines at the end
            lines.pop()
        rows: Any = enumerate(({TEXT_COLUMN: line} for line in lines), start=1)
    else:
        rows = read_rows(path)
    for line, row in rows:
        if TEXT_COLUMN not in row:
            raise ValueError(
                f"{path}: line {line} has no column {TEXT_COLUMN!r} among {', '.join(map(str, row))}. Rename the "
                "column that holds the texts, or give a .txt file with one text per line."
            )
        text = row[TEXT_COLUMN]
        if not isinstance(text, str) or not text.strip():
            found = "is blank" if text is None or isinstance(text, str) else f"holds {text!r} instead of a text"
            raise ValueError(f"{path}: line {line} {found}. Remove the line or fill it in.")
        if not is_whole_text(text):  # JSON may escape half a character
            raise ValueError(
                f"{path}: line {line} holds half of a character (a lone surrogate). Correct its \\u escapes."
            )
        texts.append(text)
    if not texts:
        raise ValueError(f"{path}: holds no texts. Give a file with at least one.")
    return texts


if __name__ == "__main__":
    main()
