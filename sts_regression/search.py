"""Search with a trained head: the best-scoring sentences of a corpus, exactly and without the matrix of all scores.

    python -m sts_regression.search --model_name_or_path outputs/pairs-smooth_k2 \
        --corpus corpus.txt --queries queries.txt --top_k 10 --output_file hits.jsonl

writes one JSON object per query, and continues after those it finds in the output file of the same run.
"""

import argparse
import sys
from pathlib import Path

import torch
from torch import Tensor
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from sts_regression.encoding import encode_sentences
from sts_regression.files import check_output
from sts_regression.fingerprint import fingerprint
from sts_regression.hits_file import HitsFile, meta_file, open_hits, read_texts
from sts_regression.loading import find_model, load_model, prepare_for_scoring
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.score_matrix import (
    BLOCK_SIZE,
    SCORES,
    PairScorer,
    check_at_least_one,
    check_embeddings,
    pair_scorer,
    score_matrix,
)

__all__ = ["main", "score_matrix", "top_k"]

ENCODED_AT_ONCE = 4096  # sentences between two steps of the progress bar
QUERIES_AT_ONCE = 256  # queries between two writes


@torch.no_grad()
def top_k(
    model: STSRegressionModel,
    queries: Tensor,
    corpus: Tensor,
    k: int,
    score: str = "head",
    block_size: int = BLOCK_SIZE,
) -> tuple[Tensor, Tensor]:
    """
    The best-scoring sentences of a corpus for each query: all pairs are scored, a block of them is held.

    Args:
        model: a bi-encoder; blocks are computed on its device.
        queries (`Tensor` of shape `(queries, hidden)`): embeddings of the first sentences of pairs.
        corpus (`Tensor` of shape `(sentences, hidden)`): embeddings of the second.
        k: how many to find. Of a smaller corpus all sentences are returned.
        score: "head", on the label scale, or "cosine".
        block_size: queries and sentences scored at once.

    Returns:
        Two tensors of shape `(queries, min(k, sentences))` on the device of `queries`: scores, best first, and int64
        indices in the corpus. Of equal scores the one with the lower index comes first. (Equal embeddings may get
        scores that differ in the last bit where the score takes a matrix product.)

    Raises:
        ValueError: for a cross-encoder, an unknown `score`, numbers below 1, or embeddings of another size or not
            finite.
    """
    scorer = pair_scorer(model, score)
    check_at_least_one("k", k)
    check_embeddings(model, block_size, queries=queries, corpus=corpus)
    parts = [_top_k_of_rows(scorer, rows, corpus, k, block_size) for rows in queries.split(block_size)]
    scores, indices = (torch.cat(tensors).to(queries.device) for tensors in zip(*parts, strict=True))
    return scores, indices


def _top_k_of_rows(scorer: PairScorer, rows: Tensor, corpus: Tensor, k: int, block_size: int) -> tuple[Tensor, Tensor]:
    best: tuple[Tensor, Tensor] | None = None
    for start in range(0, max(1, len(corpus)), block_size):  # an empty corpus is one empty block
        scores, indices = _stable_top_k(scorer(rows, corpus[start : start + block_size]), k)
        indices = indices + start
        if best is not None:
            # Those kept so far have lower indices, and a stable sort leaves them before their equals.
            merged, merged_indices = torch.cat([best[0], scores], dim=1), torch.cat([best[1], indices], dim=1)
            scores, order = merged.sort(dim=1, descending=True, stable=True)
            scores, indices = scores[:, :k], merged_indices.gather(1, order[:, :k])
        best = scores, indices
    assert best is not None
    return best


def _stable_top_k(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """`scores.topk(k, dim=1)`, of equal scores those with lower indices, in their order."""
    k = min(k, scores.shape[1])
    values, indices = scores.topk(k, dim=1)
    # `topk` chooses freely among scores equal to the last it returns: rows with such are sorted as a whole.
    is_tied = (scores >= values[:, -1:]).sum(dim=1) > k
    if is_tied.any():
        in_order = scores[is_tied].sort(dim=1, descending=True, stable=True)
        values[is_tied], indices[is_tied] = in_order.values[:, :k], in_order.indices[:, :k]
    return _sort_hits(values, indices)


def _sort_hits(scores: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    indices, order = indices.sort(dim=1)
    scores, order = scores.gather(1, order).sort(dim=1, descending=True, stable=True)
    return scores, indices.gather(1, order)


def main(argv: list[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(
        prog="python -m sts_regression.search",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    texts = ".txt with one text a line, or .csv, .tsv, .jsonl or .parquet with a column text"
    parser.add_argument("--model_name_or_path", required=True, help="folder or Hub id of a bi-encoder")
    parser.add_argument("--model_revision", default="main", help="branch, tag or commit of the model on the Hub")
    parser.add_argument("--trust_remote_code", action="store_true", help="run code that an encoder brings along")
    parser.add_argument("--corpus", type=Path, required=True, help=f"texts to search: {texts}")
    parser.add_argument("--queries", type=Path, required=True, help="texts to search for, likewise")
    parser.add_argument("--top_k", type=int, default=10, help="hits per query; default: 10")
    parser.add_argument("--score", default="head", choices=SCORES, help="default: head")
    parser.add_argument("--max_seq_length", type=int, help="longest text in tokens; default: the model's own")
    parser.add_argument("--block_size", type=int, default=BLOCK_SIZE, help=f"scored at once; default: {BLOCK_SIZE}")
    parser.add_argument("--output_file", type=Path, required=True, help="JSON lines, one per query")
    parser.add_argument("--overwrite", action="store_true", help="begin anew where the output file exists")
    args = parser.parse_args(argv)
    try:
        _run(args)
    except ValueError as error:
        sys.exit(f"{parser.prog}: error: {error}")


def _run(args: argparse.Namespace) -> None:
    check_at_least_one("top_k", args.top_k)
    check_at_least_one("block_size", args.block_size)
    for path in (args.output_file, meta_file(args.output_file)):  # a file of hits is continued, or refused later
        check_output("output_file", path, [args.corpus, args.queries], remedy=None)
    corpus, queries = read_texts(args.corpus), read_texts(args.queries)
    model, tokenizer, has_head = load_model(
        find_model(args.model_name_or_path, args.model_revision, args.trust_remote_code), {}
    )
    pair_scorer(model, args.score)  # refuses a cross-encoder before anything is encoded
    if args.score == "head" and not has_head:
        raise ValueError(
            f"`model_name_or_path`: {args.model_name_or_path!r} has no trained head. Search with `--score cosine`, or "
            "give a checkpoint whose head `run_sts.py` trained."
        )
    prepare_for_scoring(model, tokenizer, args.max_seq_length)
    # For a search by cosine the head does not count: around a plain encoder it is random in each run.
    options = (args.top_k, args.score, corpus, model.config.prefixes)
    digest = fingerprint(model, tokenizer, args.score == "head", *options)
    hits_file = open_hits(args.output_file, digest, queries, args.overwrite)
    with hits_file, tqdm(total=len(queries), initial=hits_file.num_done, desc="queries") as progress:
        if hits_file.num_done < len(queries):
            _search(model, tokenizer, corpus, queries, args, hits_file, progress)
    sys.stdout.write(f"{len(queries):,} queries, {len(corpus):,} texts: {args.output_file}\n")


def _search(
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    corpus: list[str],
    queries: list[str],
    args: argparse.Namespace,
    hits_file: HitsFile,
    progress: tqdm,
) -> None:
    # Each text is searched once, and equal ones share its score to the last bit.
    places: dict[str, list[int]] = {}
    for index, text in enumerate(corpus):
        places.setdefault(text, []).append(index)
    embeddings, all_places = _encode_corpus(model, tokenizer, list(places)), list(places.values())
    done = hits_file.num_done
    # What a query is encoded with changes its last bits: a continued run takes the same queries together.
    for start in range(done - done % QUERIES_AT_ONCE, len(queries), QUERIES_AT_ONCE):
        part = queries[start : start + QUERIES_AT_ONCE]
        encoded = encode_sentences(model, tokenizer, part, prefix=model.config.sentence1_prefix)
        encoded = encoded[max(0, done - start) :]
        start = max(start, done)
        scores, indices = top_k(model, encoded, embeddings, args.top_k, args.score, args.block_size)
        hits = [
            sorted(
                ((index, score) for score, row in zip(*rows, strict=True) for index in all_places[row]),
                key=lambda hit: (-hit[1], hit[0]),
            )[: args.top_k]
            for rows in zip(scores.tolist(), indices.tolist(), strict=True)
        ]
        hits_file.write(queries[start : start + len(hits)], hits, corpus)
        progress.update(len(hits))


def _encode_corpus(model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, corpus: list[str]) -> Tensor:
    parts = []
    with tqdm(total=len(corpus), desc="corpus") as progress:
        for start in range(0, len(corpus), ENCODED_AT_ONCE):
            texts = corpus[start : start + ENCODED_AT_ONCE]
            parts.append(encode_sentences(model, tokenizer, texts, prefix=model.config.sentence2_prefix))
            progress.update(len(texts))
    return torch.cat(parts)


if __name__ == "__main__":
    main()
