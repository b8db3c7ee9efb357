"""Candidates from a FAISS graph: the exact ones where it leads to the whole corpus, and nearly those elsewhere."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sts_regression import search
from sts_regression.faiss_index import FaissIndex
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.search import candidates, top_k

faiss = pytest.importorskip("faiss", reason="the faiss extra is not installed")

HIDDEN = 32
MakeModel = Callable[..., STSRegressionModel]


def embeddings(rows: int, seed: int = 0) -> Tensor:
    return torch.randn(rows, HIDDEN, generator=torch.Generator().manual_seed(seed))


def clustered(rows: int, seed: int) -> Tensor:
    """Around twenty centres, which are the same for every seed."""
    return embeddings(20, seed=99).repeat(rows // 20, 1) + embeddings(rows, seed) / 2


@pytest.fixture
def model(make_model: MakeModel) -> STSRegressionModel:
    """One whose score falls with the distance of the embeddings, each direction with its own weight."""
    model = make_model(pair_features=("abs_diff",))
    with torch.no_grad():
        model.head.weight.copy_(-torch.linspace(0.1, 1, HIDDEN))
    return model


def test_the_graph_leads_to_the_nearest_by_the_cosine(model: STSRegressionModel) -> None:
    queries, corpus = embeddings(12), embeddings(40, seed=1) * torch.arange(40)[:, None]  # lengths do not count
    for k in (1, 5, 40):
        assert FaissIndex(corpus).nearest(queries, k).equal(top_k(model, queries, corpus, k, "cosine")[1])


@pytest.mark.parametrize("num_candidates", [40, 100])
def test_candidates_that_are_the_corpus_miss_nothing(model: STSRegressionModel, num_candidates: int) -> None:
    queries, corpus = embeddings(12), embeddings(40, seed=1)
    scores, indices = top_k(model, queries, corpus, 5)
    found = candidates(model, queries, corpus, 5, num_candidates, index="faiss")
    assert (found.recall, found.num_sampled) == (1.0, 12)
    assert found.indices.equal(indices)
    torch.testing.assert_close(found.scores, scores, atol=1e-4, rtol=0)
    assert candidates(model, queries, corpus, 50, 100, index="faiss").indices.shape == (12, 40)


def test_nearly_all_is_found_among_clusters_by_the_graph_alone(
    model: STSRegressionModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries, corpus = clustered(40, seed=1), clustered(3000, seed=2)
    _, exact = top_k(model, queries, corpus, 10)

    def by_head_only(*arguments: Any) -> tuple[Tensor, Tensor]:
        assert arguments[4] == "head", "the nearest were not taken from the graph"
        return top_k(*arguments)

    monkeypatch.setattr(search, "top_k", by_head_only)
    found = candidates(model, queries, corpus, 10, 150, index="faiss")
    shares = torch.stack([torch.isin(found.indices[row], exact[row]).double().mean() for row in range(40)])
    assert found.recall == pytest.approx(shares.mean().item())
    assert found.recall >= 0.9


def test_recall_counts_what_the_graph_missed(model: STSRegressionModel, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, corpus = embeddings(6), embeddings(40, seed=1)
    _, best = top_k(model, queries, corpus, 3)
    monkeypatch.setattr(FaissIndex, "nearest", lambda self, queries, k: best[:, 1:])  # not the very best
    assert candidates(model, queries, corpus, 2, 2, index="faiss").recall == 0.5


def test_queries_for_which_the_graph_finds_too_few_are_searched_exactly(model: STSRegressionModel) -> None:
    queries, corpus = embeddings(6), embeddings(20, seed=1).repeat(100, 1)
    assert (FaissIndex(corpus).nearest(queries, 1000) < 0).any()  # among equal embeddings some are linked from nowhere
    found = candidates(model, queries, corpus, 500, 1000, index="faiss")
    assert all(len(set(row)) == 500 and min(row) >= 0 for row in found.indices.tolist())
    expected = candidates(model, queries, corpus, 500, 1000)
    torch.testing.assert_close(found.scores, expected.scores)


def test_other_queries_keep_what_the_graph_found(model: STSRegressionModel, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, corpus = embeddings(2), embeddings(40, seed=1)
    given = torch.tensor([[7, 3, 11], [7, 3, -1]])
    monkeypatch.setattr(FaissIndex, "nearest", lambda self, queries, k: given.clone())
    found = candidates(model, queries, corpus, 3, 3, index="faiss").indices
    assert sorted(found[0].tolist()) == [3, 7, 11]
    assert found[1].equal(candidates(model, queries, corpus, 3, 3).indices[1])


def test_of_equal_scores_the_lower_index_comes_first(model: STSRegressionModel) -> None:
    queries, corpus = embeddings(5), embeddings(6, seed=1).repeat(4, 1)
    found = candidates(model, queries, corpus, 24, 24, index="faiss")
    distinct = found.indices[:, ::4]
    assert (distinct < 6).all()
    assert found.indices.equal(torch.stack([distinct + 6 * copy for copy in range(4)], dim=2).flatten(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_graph_built_before_gives_the_same(model: STSRegressionModel, dtype: torch.dtype) -> None:
    queries, corpus = clustered(20, seed=1).to(dtype), clustered(400, seed=2).to(dtype)
    expected = candidates(model, queries, corpus, 5, 20, index="faiss")
    index = FaissIndex(corpus.requires_grad_())
    for _ in range(2):
        found = candidates(model, queries, corpus, 5, 20, index=index)
        assert found.indices.equal(expected.indices)
        assert found.scores.equal(expected.scores)


def test_it_is_built_in_one_thread_and_the_number_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    add = faiss.IndexHNSWFlat.add

    def watched_add(index: Any, rows: np.ndarray) -> None:
        seen.append(faiss.omp_get_max_threads())
        add(index, rows)

    monkeypatch.setattr(faiss.IndexHNSWFlat, "add", watched_add)
    before = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(2)
        FaissIndex(embeddings(5))
        assert (seen, faiss.omp_get_max_threads()) == ([1], 2)
    finally:
        faiss.omp_set_num_threads(before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, e: FaissIndex(e[0]), r"`corpus` must have shape \(sentences, hidden\), but got \(32,\)"),
        (lambda m, e: FaissIndex(e[:0]), r"`corpus` must have shape \(sentences, hidden\), but got \(0, 32\)"),
        (
            lambda m, e: candidates(m, e, e, 1, 2, index=FaissIndex(e[:3])),
            r"`index` holds embeddings of shape \(3, 32\), but `corpus` has \(4, 32\)",
        ),
        (lambda m, e: candidates(m, e, e / 0, 1, 2, index="faiss"), "`corpus` holds values that are not finite"),
        (lambda m, e: candidates(m, e[:, :5], e, 1, 2, index="faiss"), "`queries` must have shape"),
    ],
)
def test_bad_arguments_are_refused(
    model: STSRegressionModel, call: Callable[[STSRegressionModel, Tensor], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(model, embeddings(4))


def test_a_cross_encoder_is_refused_before_a_graph_is_built(
    make_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "FaissIndex", type("Unbuilt", (), {}))
    rows = embeddings(4)
    with pytest.raises(ValueError, match='`model` has `encoder_type="cross-encoder"`'):
        candidates(make_model(encoder_type="cross-encoder"), rows, rows, 1, 2, index="faiss")
