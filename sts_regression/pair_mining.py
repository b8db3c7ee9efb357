"""The best-scoring pairs within one corpus, found exactly and without the matrix of all scores."""

import torch
from torch import Tensor

from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.score_matrix import BLOCK_SIZE, check_at_least_one, check_embeddings, pair_scorer


@torch.no_grad()
def mine_pairs(
    model: STSRegressionModel,
    embeddings: Tensor,
    k: int | None = None,
    threshold: float | None = None,
    score: str = "head",
    block_size: int = BLOCK_SIZE,
) -> tuple[Tensor, Tensor]:
    """
    The best-scoring pairs of different sentences of one corpus: all are scored, a block of them is held.

    Args:
        model: a bi-encoder.
        embeddings (`Tensor` of shape `(sentences, hidden)`).
        k: how many pairs to find, at most.
        threshold: the least score of a pair, in units of `score`. Without `k`, all such pairs are held in memory.
        score: "head", on the label scale, or "cosine".
        block_size: sentences on either side scored at once.

    Returns:
        Scores of shape `(pairs,)`, best first, and int64 indices of shape `(pairs, 2)`, on the CPU. Where the score
        is symmetric (see [`~STSRegressionConfig.is_symmetric`]) the first index is the lower, else (i, j) and (j, i)
        are two pairs. Equal scores come in the order of their indices.

    Raises:
        ValueError: where neither `k` nor `threshold` is given; for a cross-encoder, an unknown `score`, numbers
            below 1, or embeddings of another size or not finite.
    """
    if k is None and threshold is None:
        raise ValueError("`k` and `threshold` are both missing: every pair would be returned. Give one of them.")
    if k is not None:
        check_at_least_one("k", k)
    scorer = pair_scorer(model, score)
    check_embeddings(model, block_size, embeddings=embeddings)
    is_symmetric = score == "cosine" or model.config.is_symmetric
    least = float("-inf") if threshold is None else threshold
    best_scores, best_pairs = torch.empty(0), torch.empty(0, 2, dtype=torch.long)
    for row in range(0, len(embeddings), block_size):
        for column in range(row if is_symmetric else 0, len(embeddings), block_size):
            scores = scorer(embeddings[row : row + block_size], embeddings[column : column + block_size])
            firsts = torch.arange(row, row + scores.shape[0], device=scores.device)[:, None]
            seconds = torch.arange(column, column + scores.shape[1], device=scores.device)[None]
            is_pair = firsts < seconds if is_symmetric else firsts != seconds
            scores = scores.masked_fill(~is_pair, float("-inf"))
            block_least = least
            if k is not None and scores.numel() > k:
                block_least = max(least, scores.flatten().topk(k).values[-1].item())
            chosen = ((scores >= block_least) & is_pair).nonzero()
            if not len(chosen):
                continue
            found = scores[chosen[:, 0], chosen[:, 1]].cpu()
            pairs = chosen.cpu() + torch.tensor([row, column])
            best_scores, best_pairs = torch.cat([best_scores.to(found.dtype), found]), torch.cat([best_pairs, pairs])
            if k is not None and len(best_scores) > k:
                best_scores, best_pairs = _sort_pairs(best_scores, best_pairs, k)
                least = max(least, best_scores[-1].item())
    return _sort_pairs(best_scores, best_pairs, k)


def _sort_pairs(scores: Tensor, pairs: Tensor, k: int | None) -> tuple[Tensor, Tensor]:
    """Best first, then by the first index, then by the second: sorted by the last of them first."""
    order = pairs[:, 1].argsort(stable=True)
    order = order[pairs[order, 0].argsort(stable=True)]
    order = order[scores[order].argsort(descending=True, stable=True)][:k]
    return scores[order], pairs[order]
