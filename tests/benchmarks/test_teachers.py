"""The comparison of a student with a model soup: what the student learns from, and the page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import teachers
from benchmarks.graded_data import LabelledPair
from benchmarks.teachers import ENSEMBLE, SOUP, STUDENT, TEACHERS, Score, measure_seed, teachers_page
from sts_regression.data.pairs import read_pairs

SCORES = {"smooth_k2": 1.0, "hl_gauss": 2.0, "cross_encoder": 6.0, SOUP: 0.0, STUDENT: 0.0}  # for the longest text
PAIRS: list[LabelledPair] = [("a", "b", 0.0), ("a cat", "b", 3.0), ("a black cat", "b", 5.0)]


@pytest.fixture
def taught(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """Replaces trainings by scores that rise with the length of the first text; holds what the student learns."""
    found: dict[str, list[Any]] = {}

    def train(sts_data: Path, seed: int, folder: Path, name: str, words: Sequence[str]) -> Score:
        if name == STUDENT:
            pairs = read_pairs(words[-1]).pairs
            found.update({column: pairs[column][:] for column in ("sentence1", "label")})
            found["labelled"] = [Path(word).name for word in words if word.endswith((".csv", ".txt"))][:-1]
        return lambda first, second: np.array([SCORES[name] * len(text) / 11 for text in first])

    monkeypatch.setattr(teachers, "train_model", train)
    return found


def test_the_student_learns_labelled_pairs_and_the_means_of_scores(
    taught: dict[str, list[Any]], tmp_path: Path
) -> None:
    unlabelled = [("a black cat", "b"), ("a", "b")]
    line = measure_seed(tmp_path, unlabelled, {"corpus": PAIRS}, 1)
    assert taught["labelled"] == ["sts-train.csv", "SICK_train.txt"]
    assert taught["sentence1"] == ["a black cat", "a"]
    assert np.allclose(taught["label"], [3.0, 3.0 / 11])
    assert set(line["spearman"]) == {*TEACHERS, ENSEMBLE, STUDENT, SOUP}
    assert line["spearman"][ENSEMBLE] == {"corpus": pytest.approx(1.0)}
    assert set(line["seconds"]) == {*TEACHERS, STUDENT, SOUP}


def test_the_page_tells_the_gain_over_the_soup() -> None:
    models = (*TEACHERS, ENSEMBLE, STUDENT, SOUP)
    lines = [
        {
            "seed": seed,
            "spearman": {model: {"corpus": 0.8 + gain * (model == STUDENT)} for model in models},
            "seconds": {model: 100.0 * seed for model in models if model != ENSEMBLE},
        }
        for seed, gain in ((1, 0.01), (2, 0.02))
    ]
    page = teachers_page(lines)
    assert "four trainings (600\nseconds), as the soup does (150 seconds)." in page
    assert "The difference of student and soup is +1.50 (" in page
    assert "| student | 81.50 | 81.50 | 150 |" in page
    assert f"| {ENSEMBLE} | 80.00 | 80.00 | – |" in page
