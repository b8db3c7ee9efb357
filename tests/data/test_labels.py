"""Label scales, their maps, and reading labels."""

import re
from typing import Any

import numpy as np
import pytest

from sts_regression.data.labels import (
    NLI_SCALE,
    SICK_SCALE,
    STS_SCALE,
    UNIT_SCALE,
    LabelScale,
    infer_scale,
    nodes_in_words,
    parse_labels,
)


def test_sick_on_the_scale_of_sts_is_the_papers_map() -> None:
    relatedness = np.array([1.0, 1.8, 3.5, 5.0])
    np.testing.assert_allclose(SICK_SCALE.map_to(STS_SCALE, relatedness), 5 * (relatedness - 1) / 4)


@pytest.mark.parametrize("scale", [SICK_SCALE, NLI_SCALE, UNIT_SCALE, LabelScale((-3.0, -1.0, 1.0))])
def test_maps_take_ends_to_ends_and_have_an_inverse(scale: LabelScale) -> None:
    labels = np.linspace(scale.values[0], scale.values[-1], 7)
    mapped = scale.map_to(STS_SCALE, labels)
    assert (mapped[0], mapped[-1]) == (0, 5)
    np.testing.assert_allclose(STS_SCALE.map_to(scale, mapped), labels, atol=1e-12)


def test_uneven_nodes_are_mapped_onto_the_nodes_of_a_scale_that_has_as_many() -> None:
    uneven = LabelScale((0.0, 1.0, 1.2))
    np.testing.assert_allclose(NLI_SCALE.map_to(uneven, [0, 1, 1.5, 2]), [0, 1, 1.1, 1.2])
    np.testing.assert_allclose(uneven.map_to(NLI_SCALE, [0, 0.5, 1, 1.2]), [0, 0.5, 1, 2])
    # Of another number of nodes the ends alone correspond.
    np.testing.assert_allclose(SICK_SCALE.map_to(uneven, [1, 3, 5]), [0, 0.6, 1.2])


def test_nli_runs_from_contradiction_to_entailment() -> None:
    assert dict(zip(NLI_SCALE.names or (), NLI_SCALE.values, strict=True)) == {
        "contradiction": 0,
        "neutral": 1,
        "entailment": 2,
    }


def test_nli_classes_take_the_values_of_a_checkpoint_that_knows_them() -> None:
    grades = {"contradiction": 0.0, "neutral": 2.5, "entailment": 5.0}
    assert parse_labels(["NEUTRAL", "-", "entailment"], grades, is_nli=True).values == [2.5, None, 5.0]
    assert parse_labels(["NEUTRAL", "entailment"], grades, is_nli=False).values == [2.5, 5.0]


def test_a_grade_that_is_called_by_a_number_is_known_in_any_writing_of_it() -> None:
    reversed_grades = {"2": 0.0, "1": 1.0, "0": 2.0}
    parsed = parse_labels(["2", "2.0", 2, 2.0, " 02 ", "-0", "1.5"], reversed_grades, is_nli=False)
    assert parsed.values[:6] == [0, 0, 0, 0, 0, 2]
    assert parsed.problems == {6: "is '1.5', not one of '2', '1', '0'"}
    assert parse_labels(["0.5", "1"], {"0": 0.0, "1": 1.0}, is_nli=False).values == [0.5, 1.0]


def test_names_of_grades_are_known_in_any_case_unless_case_tells_them_apart() -> None:
    grades = {"irrelevant": 0.0, "Highly relevant": 1.0}
    assert parse_labels(["Irrelevant", "highly RELEVANT ", "irrelevant"], grades, is_nli=False).values == [0, 1, 0]
    parsed = parse_labels(["a", "A", "b"], {"a": 0.0, "A": 1.0, "B": 2.0}, is_nli=False)
    assert parsed.values[:2] == [0, 1]
    assert parsed.problems == {2: "is 'b', not one of 'a', 'A', 'B'"}


@pytest.mark.parametrize("label", [None, "", " \t"])
def test_a_label_that_is_missing_is_empty_and_none_of_the_grades(label: str | None) -> None:
    assert parse_labels([1, label], None, is_nli=False).problems == {1: "is empty"}
    assert parse_labels(["none", label], {"None": 0.0, "some": 1.0}, is_nli=False).problems == {1: "is empty"}
    parsed = parse_labels(["neutral", label], None, is_nli=False)
    assert (parsed.scale, parsed.problems) == (NLI_SCALE, {1: "is empty"})


def test_nli_classes_written_as_fractions_must_be_explained() -> None:
    with pytest.raises(ValueError, match="labels 0, 1, 2 of premise and hypothesis are ambiguous"):
        parse_labels(["0.0", "1.0", "2.0"], None, is_nli=True)


@pytest.mark.parametrize("labels", [[-2, -1, 0, 1, 2], [-1, -0.5, 0, 0.5, 1], ["-1.0", "0.5"], [-1, 3]])
def test_minus_one_is_a_number_beside_numbers_that_are_no_classes(labels: list[float | str]) -> None:
    assert parse_labels(labels, None, is_nli=True).values == list(map(float, labels))
    assert parse_labels([*labels, "-"], None, is_nli=True).values[-1] is None


def test_minus_one_is_missing_beside_classes() -> None:
    assert parse_labels(["neutral", -1], None, is_nli=False).values == [1, None]
    assert parse_labels([2, 0, "-1"], {"2": 0.0, "1": 1.0, "0": 2.0}, is_nli=True).values == [0, 2, None]
    assert parse_labels(["low", "-1"], {"low": 0.0, "high": 1.0}, is_nli=True).values == [0, None]
    assert parse_labels([-1], {"-1": 0.0, "0": 1.0}, is_nli=True).values == [0]


@pytest.mark.parametrize("labels", [[True, False], ["True", " FALSE"]])
def test_truth_values_are_one_and_zero(labels: list[Any]) -> None:
    assert parse_labels(labels, None, is_nli=False).values == [1, 0]
    assert len(parse_labels([*labels, 2], None, is_nli=False).problems) == 2
    assert parse_labels(labels, {"true": 0.0, "false": 3.0}, is_nli=False).values == [0, 3]


def test_bytes_are_no_number() -> None:
    assert parse_labels([b"1"], None, is_nli=False).problems == {0: "is b'1', not a number"}


@pytest.mark.parametrize(
    ("labels", "nodes"),
    [
        ([0, 3, 1], [0, 1, 2, 3]),
        ([1.0, 4.2], [1, 2, 3, 4, 5]),
        ([0, 1, 1], [0, 1]),
        ([0, 0.35, 1], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([-1, 1], [-1, 1]),
        ([-1, 0.5, 1], [-1, 0, 1]),
        ([0.5], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([1e-6], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([0.5, 1, 0, 0.5], [0, 0.5, 1]),
        ([0, 0.25, 1], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([0, 0.25, 0.5, 0.75, 1], [0, 0.25, 0.5, 0.75, 1]),
        ([0, 0.33, 0.67, 1], [0, 0.33, 0.67, 1]),
        ([0, 0.3333, 0.6667, 1], [0, 1 / 3, 2 / 3, 1]),
        ([0, 0.3, 0.7, 1], [0, 0.3, 0.7, 1]),
        ([0, 0.17, 0.33, 0.5, 0.67, 0.83, 1], [0, 0.17, 0.33, 0.5, 0.67, 0.83, 1]),
        ([0, 0.4, 0.6, 1], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([0, 0.32, 0.67, 1], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([0, 1e-6, 1], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([0, 100], [0, 100]),
        ([0, 1, 100], list(range(101))),
        ([0, 40, 100], [0, 20, 40, 60, 80, 100]),
        ([10, 30, 20, 60], [10, 20, 30, 40, 50, 60]),
        ([0, 40.5, 100], list(range(101))),
        ([0, 5, 10], list(range(11))),
        ([0, 250, 1000], [0, 250, 500, 750, 1000]),
    ],
)
def test_the_scale_is_guessed_from_the_labels(labels: list[float], nodes: list[float]) -> None:
    assert list(infer_scale(labels).values) == nodes


@pytest.mark.parametrize(
    ("labels", "nodes"),
    [
        ([0, 0.25, 0.5, 1], [0, 0.25, 0.5, 0.75, 1]),
        ([0.25, 0.5, 0.75, 1], [0, 0.25, 0.5, 0.75, 1]),
        ([0, 0.25, 0.5, 0.75], [0, 0.25, 0.5, 0.75, 1]),
        ([0, 0.5], [0, 0.5, 1]),
        ([0.33, 0.67, 1], [0, 0.33, 0.67, 1]),
        ([0, 0.33, 0.67], [0, 0.33, 0.67, 1]),
        ([0, 0.2, 0.4, 0.8], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([0, 0.1, 0.5, 0.9], [i / 10 for i in range(11)]),
        ([0, 0.24, 0.5, 1], [0, 0.2, 0.4, 0.6, 0.8, 1]),
    ],
)
def test_an_unused_grade_does_not_change_the_guess_for_fractions(labels: list[float], nodes: list[float]) -> None:
    assert list(infer_scale(labels).values) == nodes


def test_long_even_scales_are_described_by_their_ends() -> None:
    assert str(infer_scale([0, 1, 100])) == "0 to 100 in steps of 1"
    assert str(LabelScale((0.0, 1.0, 1.2))) == "0 1 1.2"
    assert nodes_in_words(range(11), separator=", ") == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"


@pytest.mark.parametrize(
    ("labels", "first", "last"), [([16.5, 83.38, 97.5], 0, 100), ([18, 65, 99], 0, 100), ([16.5, 40], 16, 40)]
)
def test_labels_that_look_like_percentages_are_on_a_scale_of_100(
    labels: list[float], first: float, last: float
) -> None:
    scale = infer_scale(labels)
    assert (scale.values[0], scale.values[-1]) == (first, last)


@pytest.mark.parametrize(
    ("labels", "step"),
    [([10, 30, 60, 90], 10), ([5, 25, 50, 75, 95], 5), ([0, 25, 50, 80], 5), ([25, 50, 75], 25), ([20, 40, 80], 20)],
)
def test_percentages_in_steps_are_on_a_scale_of_100(labels: list[float], step: int) -> None:
    assert list(infer_scale(labels).values) == list(range(0, 101, step))


@pytest.mark.parametrize(
    "labels",
    [
        [*range(0, 11, 5), 1],
        [*range(0, 51, 10)],
        [*range(10, 51, 10)],
        [*range(10, 71, 10)],
        [15, 35, 95],
        [-20, 20, 80],
    ],
)
def test_grades_in_steps_that_are_no_percentages_keep_their_ends(labels: list[float]) -> None:
    values = infer_scale(labels).values
    assert (values[0], values[-1]) == (min(labels), max(labels))


def test_one_label_shows_no_scale() -> None:
    with pytest.raises(ValueError, match=r"all labels are 3, so their scale cannot be guessed\. Give it"):
        infer_scale([3, 3])


@pytest.mark.parametrize(
    ("labels", "span"),
    [
        ([0, 1, 101], "0 and 101"),
        ([0, 1e300], r"0 and 1e\+300"),
        ([1e16, 1e16 + 2], r"1e\+16 and 1e\+16"),
    ],
)
def test_a_measurement_is_no_scale_of_grades(labels: list[float], span: str) -> None:
    with pytest.raises(ValueError, match=f"no scale of grades is apparent from labels between {span}. Give the"):
        infer_scale(labels)


@pytest.mark.parametrize(
    ("labels", "nodes"),
    [
        ([0, 1, 150], "0 25 50 75 100 125 150"),
        ([6, 7, 996], "0 200 400 600 800 1000"),
        ([-12.5, 203], "-50 0 50 100 150 200 250"),
        ([-999, 0, 2], "-1000 -800 -600 -400 -200 0 200"),
        ([0, 1e300], "0 2e+299 4e+299 6e+299 8e+299 1e+300"),
        ([-1e308, 1e308], "-1.2e+308 -8e+307 -4e+307 0 4e+307 8e+307 1.2e+308"),
        ([123456789, 123456999.5], "1.23456e+08 1.23457e+08"),
    ],
)
def test_the_example_of_a_scale_holds_all_labels_of_a_measurement(labels: list[float], nodes: str) -> None:
    with pytest.raises(ValueError, match=rf"for example `--label_values {re.escape(nodes)}`\.$"):
        infer_scale(labels)
