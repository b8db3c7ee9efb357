"""Scores on the web page: places on the scale, words, and texts that stay text."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from transformers import PreTrainedTokenizerBase

from sts_regression.evaluation.report_page import REPORT_TEMPLATE
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.serving.demo_panels import (
    COSINES,
    PALETTE,
    build_scale,
    header_panel,
    list_panel,
    pair_panel,
)
from sts_regression.serving.demo_scoring import DemoModel

INJECTED = """<img src=x onerror="alert(1)">'&"""
ESCAPED = "&lt;img src=x onerror=&#34;alert(1)&#34;&gt;&#39;&amp;"
GRADES = ["irrelevant", "relevant", "highly relevant"]
NODES = [0.0, 1.0, 2.0]
GRADING = {
    "level": 0.9,
    "score_map": {"knots": [0.0, 1.0], "values": [0.0, 2.0]},
    "intervals": {"labels": NODES, "lowest": [None, 0.5, 1.5], "highest": [0.5, 1.5, None]},
}

MakeDemoModel = Callable[..., DemoModel]


@pytest.fixture
def make_demo_model(
    make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase
) -> MakeDemoModel:
    def make(**options: Any) -> DemoModel:
        def scorer(first: list[str], second: list[str]) -> dict[str, Any]:
            raise AssertionError("panels score nothing")

        return DemoModel("tiny", make_model(**options).config, scorer, tokenizer)

    return make


def text_of(panel: str) -> str:
    """The text that a visitor reads."""
    return " ".join(re.sub(r"<[^>]+>", " ", panel).split())


def styles_of(panel: str, name: str) -> list[str]:
    """The places of the parts of that class."""
    return re.findall(rf'class="{name}" style="([^"]*)"', panel)


def test_a_scale_has_room_for_half_a_step_on_either_side() -> None:
    scale = build_scale(NODES, GRADES)
    assert (scale.low, scale.high) == (-0.5, 2.5)
    assert scale.ticks == ((0.0, "irrelevant", 1.0), (1.0, "relevant", 1.0), (2.0, "highly relevant", 1.0))
    assert [scale.place(value) for value in (-9.0, -0.5, 1.0, 2.5, 9.0)] == [0.0, 0.0, 50.0, 100.0, 100.0]
    uneven = build_scale([0.0, 1.0, 4.0])
    assert [width for *_, width in uneven.ticks] == [1.0, 1.0, 3.0]
    assert (uneven.low, uneven.high) == (-0.5, 5.5)


@pytest.mark.parametrize(("nodes", "ticks"), [(2, 2), (11, 11), (13, 7), (101, 11), (14, 2)])
def test_many_nodes_have_evenly_spaced_ticks_with_both_ends(nodes: int, ticks: int) -> None:
    marked = [value for value, *_ in build_scale([float(node) for node in range(nodes)]).ticks]
    assert len(marked) == ticks
    assert (marked[0], marked[-1]) == (0.0, nodes - 1.0)


def test_a_pair_has_score_grade_interval_and_cosine(make_demo_model: MakeDemoModel) -> None:
    model = make_demo_model(label_values=NODES, label_names=GRADES, grading=GRADING)
    scores = {"score": 1.234567, "grade": "relevant", "low": 1.0, "high": 2.0, "cosine": -0.5, "unreliable": ""}
    panel = pair_panel(model, scores)
    assert text_of(panel) == (
        "1.23 relevant 0 irrelevant 1 relevant 2 highly relevant "
        "The label lies between “relevant” and “highly relevant” with 90 % probability. Cosine −0.50"
    )
    assert styles_of(panel, "marker") == ["left:57.8%"]
    assert styles_of(panel, "band") == ["left:50.0%;width:33.3%"]
    assert styles_of(panel, "notch") == ["left:16.7%", "left:50.0%", "left:83.3%"]
    one = text_of(pair_panel(model, {**scores, "high": 1.0}))
    assert "The label is “relevant” with 90 % probability." in one


def test_labels_between_grades_are_numbers(make_demo_model: MakeDemoModel) -> None:
    model = make_demo_model(grading={**GRADING, "score_map": {"knots": [0.0, 1.0], "values": [0.0, 5.0]}})
    scores = {"score": 3.6, "grade": 4.0, "low": 2.9, "high": 4.3, "cosine": 0.7, "unreliable": ""}
    panel = pair_panel(model, scores)
    assert text_of(panel) == (
        "3.60 0 1 2 3 4 5 The label lies between 2.90 and 4.30 with 90 % probability. Cosine 0.70"
    )
    assert styles_of(panel, "band") == ["left:56.7%;width:23.3%"]


def test_without_intervals_there_is_no_band_and_a_cross_encoder_has_no_cosine(make_demo_model: MakeDemoModel) -> None:
    model = make_demo_model(encoder_type="cross-encoder")
    panel = pair_panel(model, {"score": 5.9, "grade": 5.0, "unreliable": ""})
    assert text_of(panel) == "5.90 0 1 2 3 4 5"
    assert styles_of(panel, "band") == []
    assert styles_of(panel, "marker") == ["left:100.0%"]


def test_without_a_trained_head_the_bar_is_of_the_cosine(make_demo_model: MakeDemoModel) -> None:
    model = make_demo_model(head_is_trained=False, label_values=NODES, label_names=GRADES)
    scores = {"cosine": 0.5, "unreliable": ""}
    panel = pair_panel(model, scores)
    assert text_of(panel) == "0.50 cosine −1 −0.5 0 0.5 1"
    assert styles_of(panel, "marker") == [f"left:{build_scale(COSINES).place(0.5)}%"] == ["left:70.0%"]
    ranking = list_panel(
        model, "a", [{"sentence": "b", **scores}, {"sentence": "c", "cosine": -0.25, "unreliable": ""}]
    )
    assert text_of(ranking) == "Ranked by cosine against “ a ” 1 b 0.50 2 c −0.25"
    assert re.findall(r'<i style="([^"]*)"', ranking) == ["width:50.0%", "width:0.0%"]


def test_scores_that_do_not_lie_on_the_scale_have_no_bar(make_demo_model: MakeDemoModel) -> None:
    model = make_demo_model(loss_type="pearson")
    scores = {"score": 31.4, "grade": 5.0, "cosine": 0.5, "unreliable": ""}
    assert text_of(pair_panel(model, scores)) == "31.40 Cosine 0.50"
    assert 'class="bar"' not in list_panel(model, "a", [{"sentence": "b", **scores}])


def test_a_list_has_a_bar_per_sentence(make_demo_model: MakeDemoModel) -> None:
    model = make_demo_model(label_values=NODES, label_names=GRADES)
    rows = [
        {"sentence": "b", "score": 2.1, "grade": "highly relevant", "cosine": 0.9, "unreliable": ""},
        {"sentence": "c", "score": 0.5, "grade": "irrelevant", "cosine": 0.123, "unreliable": ""},
    ]
    panel = list_panel(model, "a", rows)
    assert text_of(panel) == (
        "Ranked by score against “ a ” 1 b 2.10 highly relevant , cosine 0.90 2 c 0.50 irrelevant , cosine 0.12"
    )
    assert re.findall(r'<i style="([^"]*)"', panel) == ["width:100.0%", "width:25.0%"]


def test_an_unreliable_pair_says_so_in_words(make_demo_model: MakeDemoModel) -> None:
    scores = {"score": 1.0, "grade": 1.0, "cosine": 0.5, "unreliable": "truncated, unknown"}
    warning = (
        "Unreliable: a text is longer than the model can read, so its end is ignored; "
        "at least half of a text, or the only difference between the texts, is unknown to the model."
    )
    assert text_of(pair_panel(make_demo_model(), scores)).endswith(warning)
    assert text_of(list_panel(make_demo_model(), "a", [{"sentence": "b", **scores}])).endswith(warning)


def test_texts_of_visitors_and_models_stay_text(make_demo_model: MakeDemoModel) -> None:
    named = make_demo_model(label_values=NODES, label_names=["a", INJECTED, "c"], grading=GRADING)
    model = DemoModel(INJECTED, named.config, named.scorer, named.tokenizer)
    scores = {"score": 1.0, "grade": INJECTED, "low": 1.0, "high": 1.0, "cosine": 0.5, "unreliable": ""}
    for panel, count in (
        (header_panel(model), 2),
        (pair_panel(model, scores), 3),
        (list_panel(model, INJECTED, [{"sentence": INJECTED, **scores}]), 3),
    ):
        assert panel.count(ESCAPED) == count
        assert "<img" not in panel


def test_the_palette_is_that_of_the_report() -> None:
    light, dark = re.findall(r":root \{(.*?)\}", REPORT_TEMPLATE.read_text(encoding="utf-8"), flags=re.DOTALL)
    colours = [dict(re.findall(r"--(\w+): (#\w{6});", part)) for part in (light, dark)]
    assert PALETTE == {name: (colours[0][name], colours[1][name]) for name in PALETTE}
