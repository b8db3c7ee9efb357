"""All of it together: kept as JSON, honest with few pairs, and measured on pairs that nothing was fitted on."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sts_regression.grading.grading import Grading, fit_grading, measure_grades, measure_intervals
from sts_regression.grading.held_out import are_grades
from sts_regression.grading.intervals import ScoreIntervals
from sts_regression.grading.score_map import ScoreMap

GRADES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def draw(size: int, ordinal: bool = True, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Cosines that saturate, and labels from 0 to 5."""
    generator = np.random.default_rng(seed)
    labels = 5 * generator.beta(1.5, 2, size=size)
    labels = np.floor(labels + 0.5) if ordinal else labels
    return np.tanh(0.4 * labels + generator.normal(scale=0.3, size=size)), labels


def test_scores_become_scores_grades_and_intervals() -> None:
    grading = Grading(
        label_values=(0.0, 1.0, 3.0),
        level=0.9,
        num_pairs=300,
        score_map=ScoreMap((0.0, 1.0), (0.0, 4.0)),
        cut_points=(0.5, 2.0),
        intervals=ScoreIntervals((0.0, 1.0, 3.0), (None, 1.0, 1.5), (0.2, 1.8, None)),
        no_intervals=None,
        thresholds=(),
        report={},
    )
    graded = grading.grade([-0.5, 0.05, 0.125, 0.4, 0.6])
    np.testing.assert_allclose(graded["score"], [-2, 0.2, 0.5, 1.6, 2.4])
    np.testing.assert_array_equal(graded["grade"], [0, 0, 1, 1, 2])
    np.testing.assert_array_equal(graded["low"], [0, 0, 0, 1, 3])
    np.testing.assert_array_equal(graded["high"], [0, 0, 1, 3, 3])
    assert set(graded) == {"score", "grade", "low", "high"}


@pytest.mark.parametrize("ordinal", [True, False])
def test_an_interval_holds_its_grade_or_score_and_stays_on_the_scale(ordinal: bool) -> None:
    grading = fit_grading(*draw(500, ordinal), GRADES)
    graded = grading.grade(np.linspace(-2, 2, 401))
    held = np.array(GRADES)[graded["grade"]] if ordinal else np.clip(graded["score"], 0, 5)
    assert (graded["low"] <= held).all()
    assert (held <= graded["high"]).all()
    assert graded["low"].min() >= 0
    assert graded["high"].max() <= 5
    assert (np.diff(graded["score"]) > 0).all()


@pytest.mark.parametrize(("size", "ordinal"), [(1, True), (30, False), (500, True), (500, False)])
def test_what_is_kept_as_json_is_read_back_equal(size: int, ordinal: bool) -> None:
    grading = fit_grading(*draw(size, ordinal), GRADES)
    kept = json.dumps(grading.to_dict(), allow_nan=False)
    assert Grading.from_dict(json.loads(kept)) == grading


def test_the_report_is_what_other_pairs_get() -> None:
    grading = fit_grading(*draw(1000), GRADES)
    scores, labels = draw(20_000, seed=1)
    graded = grading.grade(scores)
    report = grading.report
    for name, value in measure_grades(graded["grade"], labels.astype(int), np.array(GRADES)).items():
        assert report[name] == pytest.approx(value, abs=0.04)
    measured = measure_intervals(graded["low"], graded["high"], labels, np.array(GRADES))
    assert report["coverage"] == pytest.approx(measured["coverage"], abs=0.02)
    assert report["width"] == pytest.approx(measured["width"], abs=0.15)
    assert [row["grade"] for row in report["coverage_by_grade"]] == GRADES
    assert sum(row["pairs"] for row in report["coverage_by_grade"]) == 1000
    assert [row["pairs"] for row in report["reliability"]] == [100] * 10
    assert all(row["score"] == pytest.approx(row["label"], abs=0.35) for row in report["reliability"])
    assert report["mae"] < report["midpoints"]["mae"]
    assert report["quadratic_kappa"] > report["midpoints"]["quadratic_kappa"]


def test_the_report_is_what_other_groups_get() -> None:
    generator = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 20)
    labels = generator.integers(0, 6, 400).astype(float)
    scores = labels + generator.normal(size=20)[groups] + 0.5 * generator.normal(size=400)
    alone, together = fit_grading(scores, labels, GRADES), fit_grading(scores, labels, GRADES, groups=groups)
    assert together.report["mae"] > alone.report["mae"]
    assert together.report["coverage"] < alone.report["coverage"]
    assert together.intervals == alone.intervals
    assert fit_grading(scores, labels, GRADES, groups=np.arange(400)) == alone
    assert fit_grading(scores, labels, GRADES, groups=groups // 10) == alone  # too few groups for folds


@pytest.mark.parametrize("number", [7, 8, 10])
def test_grades_that_were_rounded_to_four_digits_are_still_grades(number: int) -> None:
    values = np.linspace(0, 1, number)
    index = np.random.default_rng(0).integers(0, number, 400)
    scores = values[index] + 0.1 * np.random.default_rng(1).normal(size=400)
    assert fit_grading(scores, np.round(values[index], 4), values) == fit_grading(scores, values[index], values)
    assert are_grades(np.round(values[index], 4), values.tolist())


def test_equal_texts_have_one_interval() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 6, 400).astype(float)
    scores = labels + generator.normal(size=400)
    scores[labels == 5] = scores.max()  # pairs of equal texts
    grading = fit_grading(scores, labels, GRADES)
    ends = [grading.grade(scores.max() + rounding) for rounding in np.array([[-2e-7], [0.0], [2e-7]])]
    assert all((end["low"], end["high"]) == (ends[0]["low"], ends[0]["high"]) for end in ends)


def test_a_scale_with_as_many_nodes_as_the_grid_is_not_taken_for_grades() -> None:
    generator = np.random.default_rng(0)
    labels = 50 * generator.random(400)
    scores = labels + 0.2 * generator.normal(size=400)
    graded = fit_grading(scores, labels, range(51)).grade(scores)
    centre = np.clip(graded["score"], 0, 50)
    assert (graded["low"] <= centre).all()
    assert (centre <= graded["high"]).all()


def test_measures_are_those_of_the_counted_pairs() -> None:
    values = np.array([0.0, 1.0, 3.0])
    measures = measure_grades(np.array([0, 1, 2, 2]), np.array([0, 1, 1, 2]), values)
    # Kappa: squared distances of indices sum to 1 over the pairs, and to 20 over all 16 combinations of their grades.
    assert measures == {
        "accuracy": 0.75,
        "macro_f1": pytest.approx((1 + 2 / 3 + 2 / 3) / 3),
        "mae": 0.5,
        "quadratic_kappa": pytest.approx(1 - (1 / 4) / (20 / 16)),
    }
    equal = measure_grades(np.ones(3, int), np.ones(3, int), values)
    assert equal == {"accuracy": 1.0, "macro_f1": 1.0, "mae": 0.0, "quadratic_kappa": 0.0}
    measured = measure_intervals(np.array([0.0, 1, 1]), np.array([1.0, 3, 3]), np.array([0.0, 0, 3]), values)
    assert measured == {
        "coverage": pytest.approx(2 / 3),
        "width": pytest.approx(5 / 3),
        "coverage_by_grade": [
            {"grade": 0.0, "pairs": 2, "coverage": 0.5},
            {"grade": 3.0, "pairs": 1, "coverage": 1.0},
        ],
    }
    single = measure_intervals(np.array([0.0, 1, 1]), np.array([1.0, 1, 1]), np.array([0.0, 0, 1]), values)
    assert single["single_grades"] == {"pairs": 2, "coverage": 0.5}


def test_pairs_that_occur_several_times_count_once_for_intervals() -> None:
    grading = fit_grading(*draw(600), GRADES, num_different=150)
    assert (grading.intervals, grading.num_pairs) == (None, 600)
    assert grading.no_intervals is not None
    assert grading.no_intervals.endswith("they need 200 held-out pairs or more, and there are 150 different ones.")
    assert fit_grading(*draw(600), GRADES, num_different=200).intervals is not None


def test_few_pairs_get_no_intervals_and_a_sentence_why() -> None:
    grading = fit_grading(*draw(199), GRADES)
    assert grading.intervals is None
    assert grading.no_intervals == (
        "There are no intervals: at a level of 0.9 they need 200 held-out pairs or more, and there are 199."
    )
    assert set(grading.grade([0.5])) == {"score", "grade"}
    assert set(grading.report) == {
        *("pearson", "midpoints", "reliability"),
        *("accuracy", "macro_f1", "mae", "quadratic_kappa"),
    }
    assert fit_grading(*draw(200), GRADES).no_intervals is None
    assert fit_grading(*draw(19), GRADES).report == {}


def test_thresholds_are_kept_for_grades_with_enough_pairs() -> None:
    scores, labels = draw(500)
    labels = np.minimum(labels, 4)  # the highest grade does not occur
    grading = fit_grading(scores, labels, GRADES)
    kept = {(row["grade"], row["measure"], row["wanted"]): row for row in grading.thresholds}
    assert {grade for grade, *_ in kept} == {1.0, 2.0, 3.0, 4.0}
    row = kept[2.0, "recall", 0.9]
    taken = grading.grade(scores)["score"] >= row["score"]
    assert row["recall"] == np.mean(taken[labels >= 2]) >= 0.9
    assert row["precision"] == np.mean(labels[taken] >= 2)
    assert row["taken"] == taken.sum()


def test_labels_that_passed_through_single_precision_are_still_grades() -> None:
    scores, labels = draw(300)
    values = np.linspace(0, 1, 6)
    single = values[labels.astype(int)].astype(np.float32)
    grading = fit_grading(scores, single, values)
    assert grading == fit_grading(scores, values[labels.astype(int)], values)
    assert grading.intervals is not None
    assert grading.intervals.labels == tuple(values)


@pytest.mark.parametrize("labels", [np.ones(300), np.r_[5, np.zeros(299)], np.arange(300) % 2])
@pytest.mark.parametrize("scores", [np.ones(300), np.arange(300) / 300, -np.arange(300) / 300])
def test_degenerate_pairs_are_graded(scores: np.ndarray, labels: np.ndarray) -> None:
    graded = fit_grading(scores, labels, GRADES).grade(scores)
    assert all(np.isfinite(values).all() for values in graded.values())
    assert (graded["low"] <= graded["high"]).all()


def test_what_cannot_be_graded_is_refused() -> None:
    scores, labels = draw(30)
    with pytest.raises(ValueError, match="`scores` must be finite, but 1 of 30 are NaN"):
        fit_grading(np.r_[scores[:-1], np.nan], labels, GRADES)
    with pytest.raises(ValueError, match="`labels` must lie between 0 and 4, the ends of `label_values`, but range"):
        fit_grading(scores, np.r_[labels[:-1], 5], GRADES[:-1])
    with pytest.raises(ValueError, match="`level` must lie between"):
        fit_grading(scores, labels, GRADES, level=1.0)
    with pytest.raises(ValueError, match="`scores` must be finite"):
        fit_grading(scores, labels, GRADES).grade([np.inf])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cut_points": [1.0]}, "`cut_points` must be 5 numbers that do not decrease"),
        ({"cut_points": [1.0, 0.0, 2.0, 3.0, 4.0]}, "`cut_points` must be 5 numbers that do not decrease"),
        ({"level": 2.0}, "`level` must lie between"),
        ({"label_values": [0.0]}, "`label_values` must be two or more"),
        ({"score_map": {"knots": [0.0, 1.0], "values": [1.0, 0.0]}}, "increasing numbers each"),
        ({"score_map": {"knots": [0.0, 1.0]}}, "`values` is not a grading"),
        ({"score_map": None}, "`values` is not a grading"),
        ({"colour": "red"}, "`values` is not a grading"),
    ],
)
def test_a_damaged_grading_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Grading.from_dict({**fit_grading(*draw(30), GRADES).to_dict(), **change})


def test_the_room_needs_neither_torch_nor_transformers() -> None:
    files = sorted((Path(__file__).resolve().parents[2] / "sts_regression" / "grading").glob("*.py"))
    imports = [line for file in files for line in file.read_text(encoding="utf-8").splitlines() if "import " in line]
    assert files
    assert not [line for line in imports if re.search(r"^\s*(from|import) (torch|transformers)", line)]
