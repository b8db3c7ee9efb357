"""The benchmark of shortened embeddings."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from benchmarks.short_embeddings import average_spearman, remember, shortened
from sts_regression.data.sts_tasks import load_sts_tasks


def test_the_average_is_that_of_the_cosine_of_the_first_numbers(small_sts_data: Path) -> None:
    tasks = load_sts_tasks(small_sts_data)
    calls = []

    def encode(sentences: list[str]) -> torch.Tensor:
        calls.append(len(sentences))
        return torch.stack([torch.randn(8, generator=torch.Generator().manual_seed(len(text))) for text in sentences])

    once = remember(encode)
    found = [average_spearman(tasks, partial(shortened, once, length)) for length in (8, 3)]
    assert len(calls) == 1
    for length, average in zip((8, 3), found, strict=True):
        correlations = []
        for task in tasks:
            first, second = (encode(list(task.pairs[side]))[:, :length].numpy() for side in ("sentence1", "sentence2"))
            norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
            correlations.append(stats.spearmanr((first * second).sum(axis=1) / norms, task.pairs["label"])[0])
        assert average == pytest.approx(np.mean(correlations), abs=1e-4)
