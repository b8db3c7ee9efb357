"""The part of a grading that goes into a checkpoint, where the model's own code applies it, and into words."""

import json

import numpy as np
import pytest
import torch
from transformers import BertConfig

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.grading.grading import Grading, fit_grading
from sts_regression.grading.in_checkpoints import for_model, in_words
from sts_regression.pipeline_sts_regression import grade_indices, map_scores, score_intervals

NODES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def made_up(num_pairs: int, is_ordinal: bool) -> Grading:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 6, num_pairs).astype(float) if is_ordinal else generator.uniform(0, 5, num_pairs)
    return fit_grading(0.7 * (labels + generator.normal(size=num_pairs)) - 1, labels, NODES)


@pytest.mark.parametrize("is_ordinal", [True, False])
@pytest.mark.parametrize("num_pairs", [30, 600])
def test_the_shipped_code_grades_as_the_one_that_learned_it(num_pairs: int, is_ordinal: bool) -> None:
    grading = made_up(num_pairs, is_ordinal)
    config = STSRegressionConfig(BertConfig(), label_values=NODES, grading=json.loads(json.dumps(for_model(grading))))
    raw = 3 * np.random.default_rng(1).normal(size=500)
    expected = grading.grade(raw)
    scores = map_scores(torch.from_numpy(raw), config.grading)
    np.testing.assert_allclose(scores, expected["score"], atol=1e-12)
    np.testing.assert_array_equal(grade_indices(scores, config), expected["grade"])
    ends = score_intervals(torch.from_numpy(expected["score"]), config)
    if num_pairs == 30:
        assert (ends, grading.intervals) == (None, None)
    else:
        assert ends is not None
        np.testing.assert_array_equal(ends[0], expected["low"])
        np.testing.assert_array_equal(ends[1], expected["high"])


def test_ranks_stay_as_they_are() -> None:
    raw = torch.randn(2000, generator=torch.Generator().manual_seed(0)).mul(4).unique()
    mapped = map_scores(raw, for_model(made_up(600, is_ordinal=True)))
    assert (mapped.diff() >= 0).all()
    assert (mapped.diff() > 0).float().mean() > 0.99  # the rest are ties of single precision


def test_without_a_grading_a_score_is_left_as_it_is() -> None:
    config = STSRegressionConfig(BertConfig(), label_values=[0, 1, 2, 3])
    scores = torch.tensor([-1.0, 0.4, 2.875, 9.0])
    assert map_scores(scores, config.grading) is scores
    assert grade_indices(scores, config).tolist() == [0, 0, 3, 3]
    assert score_intervals(scores, config) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"score_map": {"knots": [0.0, 0.0], "values": [0.0, 1.0]}},
        {"score_map": {"knots": [0.0, 1.0], "values": [0.0]}},
        {"score_map": {"knots": [0.0, 1.0], "values": [0.0, float("nan")]}},
        {"score_map": None},
        {"cut_points": [1.0]},
        {"intervals": {"labels": NODES, "lowest": [None], "highest": [None]}},
        {"intervals": {"labels": NODES}},
    ],
)
def test_a_damaged_grading_is_refused(changed: dict[str, object]) -> None:
    grading = {**for_model(made_up(600, is_ordinal=True)), **changed}
    with pytest.raises(ValueError, match=r"`grading` is .* which is not a map of scores"):
        STSRegressionConfig(BertConfig(), label_values=NODES, grading=grading)


def test_the_words_give_the_measures_of_pairs_that_were_not_fitted() -> None:
    grading = made_up(600, is_ordinal=True)
    words, report = in_words(grading), grading.report
    assert words.startswith("Grades by learned cut points, cross-validated on 600 development pairs: mean absolute ")
    assert "nearest" not in words  # a comparison for the record, which advises nothing
    assert f"90 % intervals contain {100 * report['coverage']:.0f} % of the labels" in words
    for pairs, is_told in ((19, False), (20, True)):
        grading.report["single_grades"] = {"pairs": pairs, "coverage": 0.8}
        assert in_words(grading).endswith(" Those of a single grade contain 80 %.") == is_told


def test_the_words_say_why_there_are_no_intervals() -> None:
    grading = made_up(30, is_ordinal=True)
    assert grading.no_intervals is not None
    assert in_words(grading).endswith(grading.no_intervals)
