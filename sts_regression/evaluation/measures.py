"""Scores of pairs, and their measures against gold labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sts_regression.data.text_splits import MIN_CANDIDATES
from sts_regression.evaluation.sts_metric import STSMetric
from sts_regression.grading.cut_points import grade_index
from sts_regression.grading.held_out import are_grades
from sts_regression.pipeline_sts_regression import map_scores


@dataclass(frozen=True)
class PairScores:
    """
    A model's scores of pairs.

    Attributes:
        head: scores of the head, shape (pairs,); `None` if the head is not trained.
        cosine: cosines, shape (pairs,); `None` for a cross-encoder.
    """

    head: np.ndarray | None
    cosine: np.ndarray | None

    @property
    def returned(self) -> np.ndarray | None:
        """The scores that a trained model returns: those of the head or, without a trained head, the cosines."""
        return self.cosine if self.head is None else self.head

    def rows(self, rows: np.ndarray) -> "PairScores":
        """The scores of some of the pairs."""
        return PairScores(*(None if scores is None else scores[rows] for scores in (self.head, self.cosine)))

    def mapped(self, grading: Mapping[str, Any] | None) -> "PairScores":
        """The scores after the map in `grading` of a model's configuration."""
        if self.head is None:
            return self
        return PairScores(map_scores(torch.from_numpy(self.head), grading).numpy(), self.cosine)


def stack_scores(outputs: tuple[Tensor, ...], labels: Tensor | None = None) -> Tensor:
    """
    Reduces the model's outputs to head score and cosine, so that an evaluation does not gather embeddings.

    It is Trainer's `preprocess_logits_for_metrics`.

    Args:
        outputs: scores (batch,), for a bi-encoder embeddings (batch, 2, hidden), and logits.
        labels: not used.

    Returns:
        `Tensor` of shape (batch, 2), head and cosine, or (batch, 1), head.
    """
    scores, *rest = outputs
    columns = [scores.float()]
    if rest and rest[0].dim() == 3:
        embeddings = rest[0].float()  # (batch, 2, hidden)
        columns.append(F.cosine_similarity(embeddings[:, 0], embeddings[:, 1], dim=-1))
    return torch.stack(columns, dim=1)


def unstack_scores(predictions: np.ndarray, head_is_trained: bool) -> PairScores:
    """The inverse of [`stack_scores`] on gathered predictions of shape (pairs, 1 or 2)."""
    cosine = predictions[:, 1] if predictions.shape[1] > 1 else None
    return PairScores(predictions[:, 0] if head_is_trained else None, cosine)


def measure_scores(
    scores: PairScores,
    gold_scores: np.ndarray,
    label_values: Sequence[float],
    sources: np.ndarray | None = None,
    queries: np.ndarray | None = None,
    cut_points: Sequence[float] | None = None,
    has_grades: bool = True,
) -> dict[str, float]:
    """
    Correlations of head and cosine with the gold scores; for ordinal labels, also the measures of grades.

    Pairs of several corpora are not pooled: the same cosine means different grades in different corpora, and the
    largest corpus would dominate. Their correlations are means over the corpora.

    Args:
        scores: the scores of the pairs.
        gold_scores: labels of shape (pairs,), on the label scale.
        label_values: nodes of the scale. Labels are ordinal if each is a node.
        sources: the corpus of each pair, shape (pairs,); by default all pairs belong to one. A corpus whose labels are
            all equal has no correlation and is left out of the means.
        queries: the query of each pair, shape (pairs,), see [`find_queries`]; -1 if it has none.
        cut_points: head scores between neighbouring grades; by default, a pair's grade is the nearest node.
        has_grades: whether the nodes are the grades of the pairs' own scale.

    Returns:
        A `dict` with `spearman_cosine`, `pearson_cosine`, `kendall_cosine`; the same with `_head`; for ordinal labels,
        `accuracy_head`, `macro_f1_head`, `mae_head`, `quadratic_kappa_head`; and for queries, `ndcg@10_cosine` and
        `ndcg@10_head`. Correlations lie between -1 and 1.
    """
    metric = STSMetric(keep_in_memory=True)
    gains = np.maximum(gold_scores - label_values[0], 0)  # rounding could make them negative
    by_score = {"cosine": scores.cosine, "head": scores.head}
    measures: dict[str, float] = {}
    for score, predictions in by_score.items():
        if predictions is None:
            continue
        correlations = [
            metric.compute(predictions=predictions[rows], references=gold_scores[rows])
            for rows in rows_by_source(gold_scores, sources)
        ]
        for name in correlations[0]:
            measures[f"{name}_{score}"] = float(np.mean([correlation[name] for correlation in correlations]))
        ndcg = None if queries is None else _ndcg_at_10(predictions, gains, sources, queries)
        if ndcg is not None:
            measures[f"ndcg@10_{score}"] = ndcg
    if has_grades and scores.head is not None and are_grades(gold_scores, label_values):
        read = scores.head
        if cut_points is not None:
            read = np.asarray(label_values)[grade_index(scores.head, cut_points)]
        grades = metric.compute(predictions=read, references=gold_scores, label_values=label_values)
        measures.update({f"{name}_head": value for name, value in grades.items() if f"{name}_head" not in measures})
    return measures


def find_queries(first: Sequence[str] | np.ndarray, second: Sequence[str] | np.ndarray) -> np.ndarray:
    """
    Finds queries: texts of one side, if at least half of the texts of that side occur in five pairs or more.

    Args:
        first, second: the texts of each pair.

    Returns:
        The number of each pair's query, shape (pairs,); -1 if neither side holds queries.
    """
    for texts in (first, second):
        _, numbers, counts = np.unique(np.asarray(texts, dtype=object), return_inverse=True, return_counts=True)
        if np.median(counts) >= MIN_CANDIDATES:
            return numbers
    return np.full(len(first), -1)


def _ndcg_at_10(
    predictions: np.ndarray, gains: np.ndarray, sources: np.ndarray | None, queries: np.ndarray
) -> float | None:
    """The mean over queries whose gains differ, then over corpora with such queries; `None` if there are none."""
    if not (queries >= 0).any():
        return None
    from sklearn.metrics import ndcg_score  # slow to load, and not needed before training

    means = []
    sources = np.zeros(len(gains)) if sources is None else sources
    for source in np.unique(sources):
        rows = np.flatnonzero((sources == source) & (queries >= 0))
        rows = rows[np.argsort(queries[rows], kind="stable")]
        by_query = np.split(rows, np.flatnonzero(np.diff(queries[rows])) + 1)
        ndcgs = [
            ndcg_score(gains[None, own], predictions[None, own], k=10)
            for own in by_query
            if len(own) and np.ptp(gains[own]) > 0
        ]
        if ndcgs:
            means.append(np.mean(ndcgs))
    return float(np.mean(means)) if means else None


def rows_by_source(gold_scores: np.ndarray, sources: np.ndarray | None) -> list[np.ndarray]:
    """
    The rows of each corpus whose labels differ; if there is no such corpus, all rows together.

    Args:
        gold_scores: labels of shape (pairs,).
        sources: the corpus of each pair, shape (pairs,).
    """
    if sources is None:
        return [np.arange(len(gold_scores))]
    rows = [np.flatnonzero(sources == source) for source in np.unique(sources)]
    return [own for own in rows if np.ptp(gold_scores[own]) > 0] or [np.arange(len(gold_scores))]
