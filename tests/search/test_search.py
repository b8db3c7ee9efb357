"""Search: the blocked scores are the model's own, the hits those of a full sort; the command writes all or nothing."""

import errno
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PreTrainedTokenizerBase

from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import encode_sentences
from sts_regression.search import exact as search
from sts_regression.search import l1_kernels
from sts_regression.search.exact import read_texts, top_k
from sts_regression.search.l1_kernels import weighted_l1
from sts_regression.search.score_matrix import score_matrix

HIDDEN = 32
TEXT: Any = "the cat"  # in the place of embeddings
TEXTS: Any = [TEXT]
MakeModel = Callable[..., STSRegressionModel]

MODELS: dict[str, dict[str, Any]] = {
    "default": {},
    "all": {"pair_features": ("u", "v", "abs_diff", "product", "sum")},
    "another order": {"pair_features": ("sum", "product", "v", "abs_diff", "u")},
    "abs_diff": {"pair_features": ("abs_diff",)},
    "product": {"pair_features": ("product",)},
    "sum": {"pair_features": ("sum",)},
    "v": {"pair_features": ("v",)},
    "symmetric": {"pair_features": ("abs_diff", "product", "sum")},
    "cosine": {"score_function": "cosine", "label_values": (1, 2, 3)},
    "info_nce": {"loss_type": "info_nce"},
    "cross_entropy": {"loss_type": "cross_entropy"},
    "cross_entropy, symmetric": {"loss_type": "cross_entropy", "pair_features": ("abs_diff", "product")},
    "binary_cross_entropy": {"loss_type": "binary_cross_entropy", "label_values": (-1, 0, 1)},
    "corn": {"loss_type": "corn"},
    "corn, two grades": {"loss_type": "corn", "score_function": "cosine", "label_values": (0, 10)},
    "hl_gauss, cosine": {"loss_type": "hl_gauss", "score_function": "cosine"},
}


def embeddings(rows: int, seed: int = 0) -> Tensor:
    return torch.randn(rows, HIDDEN, generator=torch.Generator().manual_seed(seed))


def whole_numbers(rows: int, seed: int = 0) -> Tensor:
    """Few different embeddings, which give equal scores in any order of adding."""
    return torch.randint(0, 2, (rows, HIDDEN), generator=torch.Generator().manual_seed(seed)).float()


def random_head(model: STSRegressionModel) -> STSRegressionModel:
    torch.manual_seed(1)
    with torch.no_grad():
        model.head.weight.normal_()
        model.head.bias.normal_()
    return model


def dyadic_head(model: STSRegressionModel) -> STSRegressionModel:
    with torch.no_grad():
        model.head.weight.copy_((torch.arange(model.head.weight.numel()) % 3 - 1).view_as(model.head.weight) / 4)
        model.head.bias.fill_(0.5)
    return model


def every_pair(model: STSRegressionModel, u: Tensor, v: Tensor) -> Tensor:
    with torch.no_grad():
        pairs = model.score_embeddings(u.repeat_interleave(len(v), dim=0), v.repeat(len(u), 1))
    return pairs.view(len(u), len(v))


def full_sort(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    values, indices = scores.sort(dim=1, descending=True, stable=True)
    return values[:, :k], indices[:, :k]


@pytest.fixture(params=["as installed", "cdist"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With numba where it is installed, and without."""
    if request.param == "cdist":
        monkeypatch.setattr(l1_kernels, "numba", None)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("name", MODELS)
def test_the_matrix_holds_the_models_own_scores(make_model: MakeModel, name: str) -> None:
    model = random_head(make_model(**MODELS[name]))
    u, v = embeddings(13), embeddings(9, seed=1)
    expected = every_pair(model, u, v)
    assert expected.std() > 0.05
    for block_size in (1, 4, 9, 1024):
        scores = score_matrix(model, u, v, block_size=block_size)
        assert (scores.dtype, scores.requires_grad) == (torch.float32, False)
        torch.testing.assert_close(scores, expected, atol=1e-4, rtol=0)


def test_the_plain_cosine_is_that_of_torch_even_of_zeros(make_model: MakeModel) -> None:
    u, v = embeddings(5), embeddings(4, seed=1)
    u[2] = 0
    expected = torch.cosine_similarity(u[:, None], v[None], dim=-1)
    torch.testing.assert_close(score_matrix(make_model(), u, v, "cosine", block_size=3), expected)


def test_numbers_of_other_types_are_computed_in_the_heads_and_in_float32_at_least(make_model: MakeModel) -> None:
    model, u, v = random_head(make_model()), embeddings(3), embeddings(4, seed=1)
    expected = every_pair(model, u, v)
    double = score_matrix(model.double(), u, v)
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), expected)
    half = score_matrix(model.bfloat16(), u, v)
    assert half.dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert score_matrix(model, u, v).equal(half)


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (0, 0)])
def test_no_sentences_have_no_scores(make_model: MakeModel, rows: int, columns: int) -> None:
    model = make_model(pair_features=("abs_diff", "product"))
    u, v = embeddings(rows), embeddings(columns)
    assert score_matrix(model, u, v).shape == (rows, columns)
    assert [tensor.shape for tensor in top_k(model, u, v, 2)] == [(rows, min(2, columns))] * 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "columns", "hidden"), [(1, 1, 1), (2, 4, 16), (33, 7, 384), (64, 65, 31)])
def test_the_kernel_gives_weighted_l1_distances(rows: int, columns: int, hidden: int, dtype: torch.dtype) -> None:
    pytest.importorskip("numba", reason="the search extra is not installed")
    generator = torch.Generator().manual_seed(0)
    u, v, weights = (torch.randn(n, hidden, generator=generator, dtype=dtype) for n in (rows, columns, 1))
    expected = (weights[0].double() * (u[:, None].double() - v[None].double()).abs()).sum(-1)
    for left, right in ((u, v), (u.T.contiguous().T, v.repeat_interleave(2, dim=0)[::2])):  # laid out differently
        distances = weighted_l1(left, right, weights[0])
        assert distances.dtype == dtype
        torch.testing.assert_close(
            distances.double(), expected, atol=1e-4 if dtype == torch.float32 else 1e-11, rtol=0
        )


def test_the_kernel_leaves_torch_its_number_of_threads() -> None:
    pytest.importorskip("numba", reason="the search extra is not installed")
    before = torch.get_num_threads()
    try:
        for num_threads in (2, 1):
            torch.set_num_threads(num_threads)
            weighted_l1(embeddings(3), embeddings(3), embeddings(1)[0])
            assert torch.get_num_threads() == num_threads
    finally:
        torch.set_num_threads(before)


def test_the_kernel_may_run_in_several_threads() -> None:
    pytest.importorskip("numba", reason="the search extra is not installed")
    u, weights = embeddings(50), embeddings(1)[0]
    expected, results = weighted_l1(u, u, weights), []
    threads = [threading.Thread(target=lambda: results.append(weighted_l1(u, u, weights))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(result.equal(expected) for result in results)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("score", ["head", "cosine"])
@pytest.mark.parametrize(("k", "block_size"), [(1, 5), (3, 7), (10, 4), (30, 1024), (40, 8)])
def test_hits_are_those_of_a_full_sort(make_model: MakeModel, k: int, block_size: int, score: str) -> None:
    model = random_head(make_model())
    queries, corpus = embeddings(11), embeddings(30, seed=1)
    scores, indices = top_k(model, queries, corpus, k, score, block_size)
    expected = full_sort(score_matrix(model, queries, corpus, score), k)
    assert scores.shape == (11, min(k, 30))  # of a smaller corpus, all of it
    torch.testing.assert_close(scores, expected[0], atol=1e-5, rtol=1e-5)
    assert indices.equal(expected[1])


def as_memory_map(tensor: Tensor, folder: Path) -> np.ndarray:
    path = folder / f"{len(tensor)}.npy"
    np.save(path, tensor.numpy())
    return np.load(path, mmap_mode="r")  # which may not be written to


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "convert",
    [
        lambda tensor, folder: tensor.numpy(),
        lambda tensor, folder: tensor.numpy().astype(np.float64),
        lambda tensor, folder: tensor.numpy().astype(">f4"),
        lambda tensor, folder: tensor.numpy()[:, ::-1].copy()[:, ::-1],
        lambda tensor, folder: tensor.requires_grad_(),
        as_memory_map,
    ],
    ids=["array", "float64", "another byte order", "reversed", "with gradients", "memory map"],
)
def test_embeddings_may_be_arrays_or_tensors(
    make_model: MakeModel, tmp_path: Path, convert: Callable[[Tensor, Path], Any]
) -> None:
    model = random_head(make_model())
    queries, corpus = embeddings(3), embeddings(5, seed=1)
    scores, indices = top_k(model, convert(queries.clone(), tmp_path), convert(corpus.clone(), tmp_path), 2)
    expected = top_k(model, queries, corpus, 2)
    assert isinstance(scores, Tensor)
    assert scores.equal(expected[0])
    assert indices.equal(expected[1])
    matrix = score_matrix(model, queries, convert(corpus.clone(), tmp_path))
    assert matrix.equal(score_matrix(model, queries, corpus))


@pytest.mark.parametrize("block_size", [1, 3, 8, 1024])
@pytest.mark.parametrize("k", [1, 2, 5, 25])
def test_of_equal_scores_the_lower_index_comes_first(make_model: MakeModel, k: int, block_size: int) -> None:
    model = dyadic_head(make_model(pair_features=("abs_diff", "product")))
    queries, corpus = whole_numbers(6), whole_numbers(4, seed=1).repeat(6, 1)
    scores, indices = top_k(model, queries, corpus, k, block_size=block_size)
    expected = full_sort(every_pair(model, queries, corpus), k)
    assert scores.equal(expected[0])
    assert indices.equal(expected[1])


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("block_size", [5, 1024])
def test_equal_sentences_come_in_their_order(make_model: MakeModel, block_size: int) -> None:
    model, corpus = random_head(make_model()), embeddings(7).repeat(3, 1)
    _, indices = top_k(model, embeddings(6, seed=1), corpus, 21, block_size=block_size)
    distinct = indices[:, ::3]
    assert indices.equal(torch.stack([distinct, distinct + 7, distinct + 14], dim=2).flatten(1))


def test_the_whole_matrix_is_never_held(make_model: MakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = []

    def scorer(u: Tensor, v: Tensor) -> Tensor:
        shapes.append((len(u), len(v)))
        return u @ v.T

    monkeypatch.setattr(search, "pair_scorer", lambda *arguments: scorer)
    top_k(make_model(), embeddings(10), embeddings(20), 2, block_size=6)
    assert shapes == [(rows, columns) for rows in (6, 4) for columns in (6, 6, 6, 2)]


class LargestTensor(TorchDispatchMode):
    """Notes the elements of the largest tensor that torch makes."""

    elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor) and all(made.data_ptr() != old.data_ptr() for old in args if torch.is_tensor(old)):
            self.elements = max(self.elements, made.numel())
        return made


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("name", ["default", "cross_entropy"])
def test_one_query_needs_no_copy_of_the_corpus(make_model: MakeModel, name: str) -> None:
    model, corpus = random_head(make_model(**MODELS[name])), embeddings(1).repeat(20_001, 1)
    with LargestTensor() as largest:
        scores, indices = top_k(model, embeddings(1), corpus, 20_001)
    assert largest.elements < corpus.numel() / 3
    assert scores.unique().numel() == 1  # to the last bit
    assert indices[0].equal(torch.arange(20_001))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, e: score_matrix(m, e, e, "dot"), "`score` must be one of head, cosine, but is 'dot'"),
        (lambda m, e: score_matrix(m, e[0], e), r"`u` must have shape \(sentences, 32\), but got \(32,\)"),
        (lambda m, e: top_k(m, e, e[:, :5], 1), r"`corpus` must have shape \(sentences, 32\), but got \(4, 5\)"),
        (lambda m, e: top_k(m, e.numpy()[0], e, 1), r"`queries` must have shape \(sentences, 32\), but got \(32,\)"),
        (lambda m, e: top_k(m, TEXT, e, 1), "`queries` must be a tensor or an array .* but is of type str"),
        (lambda m, e: top_k(m, e, TEXTS, 1), "`corpus` must be a tensor or an array .* but is of type list"),
        (lambda m, e: score_matrix(m, np.array(["the cat"]), e), "`u` must hold numbers, but its type is <U7"),
        (lambda m, e: score_matrix(m, e, e.numpy().astype(object)), "`v` must hold numbers, but its type is object"),
        (lambda m, e: top_k(m, e / 0, e, 1), "`queries` holds values that are NaN or infinite"),
        (lambda m, e: top_k(m, e, e, 0), "`k` must be a whole number of at least 1, but is 0"),
        (lambda m, e: top_k(m, e, e, 1, block_size=0), "`block_size` must be a whole number of at least 1"),
        (lambda m, e: top_k(m, e, e, True), "`k` must be a whole number of at least 1, but is True"),
    ],
)
def test_bad_arguments_are_refused(
    make_model: MakeModel, call: Callable[[STSRegressionModel, Tensor], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(make_model(), embeddings(4))


@pytest.mark.parametrize("score", ["head", "cosine"])
def test_a_cross_encoder_is_refused(make_model: MakeModel, score: str) -> None:
    model, rows = make_model(encoder_type="cross-encoder"), embeddings(2)
    for call in (lambda: score_matrix(model, rows, rows, score), lambda: top_k(model, rows, rows, 1, score)):
        with pytest.raises(ValueError, match='`model` has `encoder_type="cross-encoder"`'):
            call()


CORPUS = ["the cat", "a red house", "the dog in the park", "water", "a big man", "the cat", "caf\u00e9 \u2028 x"]
QUERIES = ["a cat", "the water in the house", "a dog", "the cat"]


@pytest.fixture
def inputs(tmp_path: Path, make_model: MakeModel, tokenizer: PreTrainedTokenizerBase) -> Path:
    """A folder with a checkpoint, a corpus and queries."""
    random_head(make_model()).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "corpus.txt").write_text("\n".join(CORPUS) + "\n", encoding="utf-8")
    (tmp_path / "queries.txt").write_text("\r\n".join(QUERIES), encoding="utf-8", newline="")
    return tmp_path


def test_a_csv_file_has_a_row_per_hit(inputs: Path) -> None:
    lines, path = run(inputs, "--top_k", "2"), inputs / "hits.csv"
    run(inputs, "--top_k", "2", "--overwrite", "--output_file", str(path))
    rows = pd.read_csv(path, keep_default_na=False).to_dict("records")
    hits = [(line["query"], rank, hit) for line in lines for rank, hit in enumerate(line["hits"], start=1)]
    assert rows == [{"query": query, "rank": rank, **hit} for query, rank, hit in hits]


def run(folder: Path, *options: str, model: str = "model", corpus: str = "corpus.txt") -> list[dict[str, Any]]:
    files = ["--corpus", str(folder / corpus), "--queries", str(folder / "queries.txt")]
    output = folder / "out" / "hits.jsonl"
    search.main(["--model_name_or_path", str(folder / model), *files, "--output_file", str(output), *options])
    return [json.loads(line) for line in output.read_bytes().splitlines()]


@pytest.mark.parametrize("score", ["head", "cosine"])
def test_the_command_writes_the_hits_of_every_query(
    inputs: Path, tokenizer: PreTrainedTokenizerBase, capsys: pytest.CaptureFixture[str], score: str
) -> None:
    lines = run(inputs, "--top_k", "3", "--score", score)
    model = STSRegressionModel.from_pretrained(inputs / "model").eval()
    u, v = (encode_sentences(model, tokenizer, texts) for texts in (QUERIES, CORPUS))
    # The corpus holds a text twice, whose cosines here may differ in the last bit.
    scores, indices = full_sort(score_matrix(model, u, v, score).round(decimals=5), 3)
    assert [line["query"] for line in lines] == QUERIES
    assert [[hit["index"] for hit in line["hits"]] for line in lines] == indices.tolist()
    assert all(hit["text"] == CORPUS[hit["index"]] for line in lines for hit in line["hits"])
    torch.testing.assert_close(
        torch.tensor([[hit["score"] for hit in line["hits"]] for line in lines]), scores, atol=1e-4, rtol=0
    )
    captured = capsys.readouterr()
    assert captured.out == f"4 queries, 7 texts: {inputs / 'out' / 'hits.jsonl'}\n"
    assert "queries: " not in captured.err  # which is no terminal


def test_without_a_file_the_command_prints_the_hits(inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = [[(hit["score"], hit["text"]) for hit in line["hits"]] for line in run(inputs, "--top_k", "2")]
    capsys.readouterr()
    files = ["--corpus", str(inputs / "corpus.txt"), "--queries", str(inputs / "queries.txt")]
    search.main(["--model_name_or_path", str(inputs / "model"), *files, "--top_k", "2"])
    blocks = [block.splitlines() for block in capsys.readouterr().out.split("\n\n")]
    assert [query for query, *_ in blocks] == QUERIES
    printed = [[line.split(maxsplit=1) for line in lines] for _, *lines in blocks]
    assert [[(float(score), text) for score, text in lines] for lines in printed] == [
        [(pytest.approx(score, abs=1e-3), " ".join(text.split())) for score, text in hits] for hits in expected
    ]


def test_a_hit_that_the_model_cannot_read_is_marked(inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (inputs / "corpus.txt").write_text("the cat ☄\na dog\n", encoding="utf-8")
    (inputs / "queries.txt").write_text("the cat ☃\n", encoding="utf-8")
    [line] = run(inputs, "--score", "cosine")
    assert [(hit["text"], hit["unreliable"]) for hit in line["hits"]] == [("the cat ☄", "unknown"), ("a dog", "")]
    capsys.readouterr()
    files = ["--corpus", str(inputs / "corpus.txt"), "--queries", str(inputs / "queries.txt")]
    search.main(["--model_name_or_path", str(inputs / "model"), *files, "--score", "cosine"])
    assert capsys.readouterr().out.splitlines()[1] == "  1.000  the cat ☄  (unreliable: unknown)"


def test_a_long_text_is_shortened_on_the_screen() -> None:
    hits: list[dict[str, Any]] = [{"score": 10.0, "text": "x " * 90}, {"score": -1.0, "text": "a dog"}]
    line = {"query": "a\ncat", "hits": [{**hit, "unreliable": ""} for hit in hits]}
    first, second, third = search._shown(line).splitlines()
    assert (first, third) == ("a cat", "  -1.000  a dog")
    assert (second[:11], second[-1], len(second)) == ("  10.000  x", "…", 110)


def test_texts_may_be_encoded_in_bfloat16(inputs: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    found = [hit["score"] for line in run(inputs, "--score", "cosine", "--bf16") for hit in line["hits"]]
    model = STSRegressionModel.from_pretrained(inputs / "model").eval()
    with torch.autocast("cpu", torch.bfloat16):
        u, v = (encode_sentences(model, tokenizer, texts) for texts in (QUERIES, CORPUS))
    expected, _ = full_sort(score_matrix(model, u, v, "cosine"), len(CORPUS))
    torch.testing.assert_close(torch.tensor(found), expected.flatten(), atol=1e-4, rtol=0)
    in_float32 = [hit["score"] for line in run(inputs, "--score=cosine", "--overwrite") for hit in line["hits"]]
    assert found != in_float32


def test_queries_are_searched_part_by_part(
    inputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = run(inputs)
    monkeypatch.setattr(search, "QUERIES_AT_ONCE", 3)
    monkeypatch.setattr(search, "ENCODED_AT_ONCE", 2)
    monkeypatch.setattr(search, "draws_bars", lambda: True)
    capsys.readouterr()
    for line, expected in zip(run(inputs, "--overwrite"), whole, strict=True):
        assert [hit["text"] for hit in line["hits"]] == [hit["text"] for hit in expected["hits"]]
        assert line["query"] == expected["query"]
    assert "queries: 100%" in capsys.readouterr().err


def test_the_prefixes_of_both_sides_count(
    inputs: Path, make_model: MakeModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    model = random_head(make_model(sentence1_prefix="a ", sentence2_prefix="the dog "))
    model.save_pretrained(inputs / "model")
    found = [{hit["index"]: hit["score"] for hit in line["hits"]} for line in run(inputs)]
    u, v = (
        encode_sentences(model, tokenizer, [prefix + text for text in texts])
        for prefix, texts in (("a ", QUERIES), ("the dog ", CORPUS))
    )
    scores = torch.tensor([[row[index] for index in range(len(CORPUS))] for row in found])
    torch.testing.assert_close(scores, every_pair(model, u, v), atol=1e-4, rtol=0)


def test_an_existing_file_is_replaced_only_if_told_to(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = inputs / "out" / "hits.jsonl"
    output.parent.mkdir()
    output.write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr(search, "load_model", None)  # refused before a model is loaded
        with pytest.raises(SystemExit, match=r"exists\. .* replace it with `--overwrite`"):
            run(inputs)
    assert output.read_text() == "mine"
    assert [line["query"] for line in run(inputs, "--overwrite")] == QUERIES


@pytest.mark.parametrize("before", [None, "mine"])
def test_hits_are_whole_or_not_there(inputs: Path, monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    output, parts = inputs / "out" / "hits.jsonl", []
    output.parent.mkdir()
    if before is not None:
        output.write_text(before)

    def stop(*arguments: Any) -> tuple[Tensor, Tensor]:
        parts.append(arguments)
        if len(parts) == 2:
            raise KeyboardInterrupt("stopped")
        return top_k(*arguments)

    monkeypatch.setattr(search, "QUERIES_AT_ONCE", 2)
    monkeypatch.setattr(search, "top_k", stop)
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        run(inputs, "--overwrite")
    assert (output.read_text() if output.exists() else None) == before


def test_a_full_disk_is_one_line(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SystemExit, match=r"error: `output_file`: cannot write .*No space left on device.*hits\.jsonl"):
        run(inputs)
    assert not (inputs / "out" / "hits.jsonl").exists()


def test_scores_that_are_not_finite_are_refused(inputs: Path, make_model: MakeModel) -> None:
    model = make_model()
    with torch.no_grad():
        model.head.weight.fill_(3e38)
    with pytest.raises(ValueError, match="`model` gives scores that are NaN or infinite"):
        top_k(model, embeddings(2), embeddings(3, seed=1), 1)
    model.save_pretrained(inputs / "model")
    with pytest.raises(SystemExit, match="error: `model` gives scores that are NaN or infinite"):
        run(inputs)
    assert not (inputs / "out" / "hits.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--top_k", "0"], "`top_k` must be a whole number of at least 1, but is 0"),
        (["--block_size", "-1"], "`block_size` must be a whole number of at least 1, but is -1"),
        (["--max_seq_length", "1000"], "`max_seq_length` must lie between 3 and 128"),
        (["--corpus", "absent.txt"], r"absent\.txt: no such file\. Give a \.txt file with one text per line, or a"),
        (["--corpus", "."], r"\.: is a folder, a pipe or a device"),
        (["--model_name_or_path", "./absent"], r"`model_name_or_path`: cannot load '\./absent'"),
        (["--output_file", "hits.txt"], r"`output_file` must end in \.jsonl or \.csv, but is 'hits\.txt'"),
        (["--output_file", "/dev/null/hits.jsonl"], "`output_file`: cannot write '/dev/null/hits.jsonl'"),
    ],
)
def test_errors_of_the_command_are_one_line(inputs: Path, options: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=rf"^sts-regression search: error: .*{message}.*$"):
        run(inputs, *options)


def test_a_model_without_a_head_is_searched_by_its_cosine_only(inputs: Path, tiny_encoder_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"has no trained head\. Search with `--score cosine`"):
        run(inputs, model=str(tiny_encoder_path))
    lines = run(inputs, "--score", "cosine", model=str(tiny_encoder_path))
    assert [line["query"] for line in lines] == QUERIES
    # The head around it is another one in each run, and is not asked.
    assert run(inputs, "--score", "cosine", "--overwrite", model=str(tiny_encoder_path)) == lines


def test_a_cross_encoder_is_refused_by_the_command(
    inputs: Path, make_model: MakeModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    make_model(encoder_type="cross-encoder").save_pretrained(inputs / "model")
    with pytest.raises(SystemExit, match='error: `model` has `encoder_type="cross-encoder"`'):
        run(inputs)
    assert not (inputs / "out").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "the cat\na, b\n"),
        ("a.txt", "\ufeffthe cat\r\na, b"),
        ("a.txt", "the cat\na, b\n\n \n"),
        ("a.csv", 'id,text\n1,the cat\n2,"a, b"\n'),
        ("a.tsv", "text\tid\nthe cat\t1\na, b\t2\n"),
        ("a.jsonl", '{"text": "the cat"}\n{"text": "a, b"}\n'),
    ],
)
def test_texts_are_read_from_every_kind_of_file(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    assert read_texts(tmp_path / name) == ["the cat", "a, b"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", r"a\.txt: holds no texts"),
        ("a.txt", b"x\n \ny\n", r"a\.txt: line 2 is blank\. Remove the line or fill it in"),
        ("a.txt", b"x\n\xff\n", r"a\.txt: line 2 is not valid UTF-8"),
        ("a.csv", b"id,sentence\n1,x\n", r"a\.csv: line 2 has no column 'text' among id, sentence"),
        ("a.jsonl", b'{"text": 5}\n', r"a\.jsonl: line 1 holds 5 instead of a text"),
        ("a.jsonl", b'{"text": "\\ud800"}\n', r"a\.jsonl: line 1 holds half of a character"),
        ("a.xml", b"x", r"a\.xml: unknown kind of file"),
    ],
)
def test_files_without_texts_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_texts(tmp_path / name)
