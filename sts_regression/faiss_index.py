"""The nearest sentences by the cosine from a graph, for corpora too large to compare every query with all of them.

Needs the extra `faiss` (faiss-cpu).
"""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sts_regression.score_matrix import COSINE_EPS

# Chosen on 20,000 embeddings of 384 numbers. Of random ones, the hardest to search, 500 candidates held 79 % of the
# ten nearest with M = 16 and 95 % with 32, both with FAISS's own efConstruction of 40; with M = 32 and 100 they held
# 98 %, and with 200 no more.
NUM_LINKS = 32  # M, of a sentence; twice as many at the lowest level
EF_CONSTRUCTION = 100  # sentences in view while the links of another are chosen
# A search keeps as many in view as it has candidates. Where these are few it needs more: of embeddings that vary
# mostly in 24 directions, 64 missed 0.3 % of the ten nearest, 128 none.
MIN_EF_SEARCH = 128


class FaissIndex:
    """
    An HNSW graph that links each sentence of a corpus to near ones, to be built once and searched often.

    It is built in one thread, as otherwise links, and with them hits, may differ from run to run; searches use all.
    Beside the embeddings in float32 it takes some 270 bytes per sentence.

    Args:
        corpus (`Tensor` of shape `(sentences, hidden)`): finite embeddings of at least one sentence.

    Attributes:
        shape: that of `corpus`.

    Raises:
        ValueError: where faiss-cpu is not installed, or for a corpus of another shape.
    """

    def __init__(self, corpus: Tensor) -> None:
        if corpus.dim() != 2 or not len(corpus):
            raise ValueError(
                f"`corpus` must have shape (sentences, hidden), but got {tuple(corpus.shape)}. Give embeddings of at "
                "least one sentence."
            )
        faiss = _import_faiss()
        self.shape = tuple(corpus.shape)
        self._index = faiss.IndexHNSWFlat(corpus.shape[1], NUM_LINKS, faiss.METRIC_INNER_PRODUCT)
        self._index.hnsw.efConstruction = EF_CONSTRUCTION
        num_threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            self._index.add(_normalize(corpus))
        finally:
            faiss.omp_set_num_threads(num_threads)

    def nearest(self, queries: Tensor, k: int) -> Tensor:
        """
        The nearest sentences by the cosine, as far as the graph leads to them.

        Args:
            queries (`Tensor` of shape `(queries, hidden)`): finite embeddings.
            k: how many to find. Of a smaller corpus all sentences are looked for.

        Returns:
            int64 `Tensor` of shape `(queries, min(k, sentences))`, on the device of `queries`: indices in the corpus,
            nearest first, then -1 for each that was not found.
        """
        k = min(k, self.shape[0])
        parameters = _import_faiss().SearchParametersHNSW(efSearch=max(k, MIN_EF_SEARCH))
        _, indices = self._index.search(_normalize(queries), k, params=parameters)
        return torch.from_numpy(indices).to(queries.device)


def _import_faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise ValueError(
            f"`index`: 'faiss' needs the package faiss-cpu, which cannot be imported ({error}). Install it with "
            '`pip install "sts-regression[faiss]"`, or search with `index="exact"`.'
        ) from error
    return faiss


def _normalize(embeddings: Tensor) -> np.ndarray:
    # The inner product of what has length 1 is the cosine.
    return F.normalize(embeddings.detach().to("cpu", torch.float32), dim=-1, eps=COSINE_EPS).contiguous().numpy()
