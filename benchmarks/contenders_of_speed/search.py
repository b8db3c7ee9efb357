"""Contenders that score all pairs of two sets of embeddings, and that search."""

import torch
from datasets import Dataset
from torch import Tensor

from benchmarks.contenders_of_speed.shared import Result, load, median_of
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.search.exact import top_k
from sts_regression.search.l1_kernels import weighted_l1_by_cdist
from sts_regression.search.score_matrix import score_matrix


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
