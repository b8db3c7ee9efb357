"""Measures on development pairs, of scores and grades that were learned from them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sts_regression.data.columns import PairColumns, numbers_of
from sts_regression.data.splits import Splits, load_splits
from sts_regression.evaluation.measures import PairScores
from sts_regression.grading.grading import fit_grading
from sts_regression.grading.in_checkpoints import in_words
from sts_regression.options.data_arguments import DataArguments
from sts_regression.outcome import Outcome, grade_first_source, replace_fitted_measures, reversed_splits

RANKS = {"spearman_head": 0.5, "spearman_cosine": 0.25, "pearson_cosine": 0.125}
FITTED = {"pearson_head": 1.0, "accuracy_head": 1.0, "mae_head": 0.0, "quadratic_kappa_head": 1.0}
NODES = [0.0, 1.0, 2.0]


def two_sources(folder: Path, num_own: int = 300, **options: Any) -> Splits:
    """Pairs of `own.csv` and 1,200 others, on one scale."""
    for name, number in (("own", num_own), ("other", 1200)):
        rows = [f"{name} first {row},{name} second {row},{row % 3}" for row in range(number)]
        (folder / f"{name}.csv").write_text("\n".join(["sentence1,sentence2,label", *rows]))
    files = [str(folder / f"{name}.csv") for name in ("own", "other")]
    return load_splits(DataArguments(train_file=files, **options), PairColumns(), None)


def made_up_scores(splits: Splits) -> np.ndarray:
    """Scores of the development pairs, which lie higher in the second source."""
    labels = numbers_of(splits.pairs["validation"], "label")
    noise = np.random.default_rng(0).normal(size=len(labels))
    return labels + noise + 5 * splits.set_of_pair["validation"]


@pytest.mark.parametrize("options", [{}, {"folds": 3}, {"refit": True}], ids=str)
def test_grades_are_learned_from_pairs_of_the_first_source(tmp_path: Path, options: dict[str, Any]) -> None:
    splits = two_sources(tmp_path, **options)
    scores, own = made_up_scores(splits), splits.set_of_pair["validation"] == 0
    assert 0 < own.sum() < len(own)
    expected = fit_grading(scores[own], numbers_of(splits.pairs["validation"], "label")[own], NODES)
    grading = grade_first_source(splits, scores, NODES, level=0.9)
    assert grading == replace(expected, source=splits.sets["validation"][0].name)
    assert f"of {tmp_path / 'own.csv'} alone" in in_words(grading)


def test_files_of_development_pairs_are_sources_too(tmp_path: Path) -> None:
    two_sources(tmp_path)
    files = [str(tmp_path / f"{name}.csv") for name in ("own", "other")]
    splits = two_sources(tmp_path, validation_file=files)
    grading = grade_first_source(splits, made_up_scores(splits), NODES, level=0.9)
    assert grading is not None
    assert (grading.num_pairs, grading.source) == (300, files[0])


def test_ratings_of_a_pair_count_once_for_intervals(tmp_path: Path) -> None:
    rows = [f"first {row % 100},second {row % 100},{row % 3}" for row in range(300)]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["sentence1,sentence2,label", *rows]).replace("first", name))
    files = {split: [str(tmp_path / f"{name}.csv")] for split, name in (("train", "train"), ("validation", "dev"))}
    data_args = DataArguments(train_file=files["train"], validation_file=files["validation"])
    splits = load_splits(data_args, PairColumns(), None)
    grading = grade_first_source(splits, made_up_scores(splits), NODES, level=0.9)
    assert grading is not None
    assert str(grading.no_intervals).endswith("and there are 100 different ones.")


def test_one_source_needs_no_name(tmp_path: Path) -> None:
    two_sources(tmp_path)
    splits = two_sources(tmp_path, validation_file=[str(tmp_path / "other.csv")])
    grading = grade_first_source(splits, made_up_scores(splits), NODES, level=0.9)
    assert grading is not None
    assert (grading.num_pairs, grading.source) == (1200, None)


def test_splits_whose_labels_contradict_the_final_scores_are_named() -> None:
    scores = np.arange(100.0)
    measures = {"spearman_head": -0.9, "spearman_cosine": 0.9}
    outcome = Outcome(
        scored={"validation": PairScores(scores, scores), "test": PairScores(None, scores)},
        results={
            "before training": {split: {"spearman_cosine": -0.9} for split in ("validation", "test")},
            "after training": dict.fromkeys(("validation", "test"), measures),
        },
    )
    [finding] = reversed_splits(outcome)
    assert finding.startswith("The scores and the labels of the development pairs correlate at -0.90. Do high")
    assert reversed_splits(Outcome()) == []


@pytest.mark.parametrize("num_own", [2, 9])
def test_a_first_source_with_hardly_any_held_out_pair_gives_no_grades(
    tmp_path: Path, num_own: int, caplog: pytest.LogCaptureFixture
) -> None:
    splits = two_sources(tmp_path, num_own)
    with caplog.at_level("INFO"):
        assert grade_first_source(splits, made_up_scores(splits), NODES, level=0.9) is None
    assert "No grades are learned" in caplog.messages[-1]
    assert "own.csv" in caplog.messages[-1]


@pytest.mark.parametrize("num_sets", [1, 2])
def test_fitted_measures_are_cross_fitted(num_sets: int) -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 300).astype(float)
    grading = fit_grading(labels + generator.normal(size=300), labels, range(3))
    cross_fitted = {name: grading.report[name.removesuffix("_head")] for name in FITTED}
    results, by_set = {"validation": RANKS | FITTED, "test": RANKS | FITTED}, {}
    if num_sets > 1:
        grading = replace(grading, source="a")
        by_set = {"validation": {"a": RANKS | FITTED, "b": RANKS | FITTED}, "test": {"a": RANKS | FITTED}}
    replace_fitted_measures(results, by_set, grading)
    if num_sets == 1:
        assert results == {"validation": RANKS | cross_fitted, "test": RANKS | FITTED}
    else:  # those of both sets together are of pairs that were fitted and of others
        assert results == {"validation": RANKS, "test": RANKS | FITTED}
        assert by_set == {
            "validation": {"a": RANKS | cross_fitted, "b": RANKS | FITTED},
            "test": {"a": RANKS | FITTED},
        }


def test_few_pairs_measure_ranks_alone() -> None:
    grading = fit_grading(np.arange(10.0), np.arange(10.0) % 3, range(3))
    results = {"validation": RANKS | FITTED}
    replace_fitted_measures(results, {}, grading)
    assert results == {"validation": RANKS}
