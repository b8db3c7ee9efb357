"""The panels of the web page: HTML without scripts, in the colours of `report.html`.

Texts come from visitors and from models; the template, `demo_template.html`, escapes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.evaluation.report_page import html_environment, is_on_scale
from sts_regression.pipeline_sts_regression import TRUNCATED, UNKNOWN
from sts_regression.serving.demo_scoring import DemoModel, describe_limits, describe_model, shown_score

PAGE_TEMPLATE = Path(__file__).parent / "demo_template.html"
MOST_TICKS = 11
COSINES = (-1.0, -0.5, 0.0, 0.5, 1.0)
WARNINGS = {
    TRUNCATED: "a text is longer than the model can read, so its end is ignored",
    UNKNOWN: "at least half of a text, or the only difference between the texts, is unknown to the model",
}
# The variables of `report.html`, on a light page and on a dark one.
PALETTE = {
    "paper": ("#f4f6f8", "#0f1419"),
    "card": ("#ffffff", "#182028"),
    "ink": ("#17212b", "#e7ecf1"),
    "soft": ("#566372", "#a0adba"),
    "rule": ("#dde3e9", "#303b46"),
    "after": ("#2a5bd0", "#85abff"),
    "unclear": ("#7b6210", "#dfc161"),
}


@dataclass(frozen=True)
class Scale:
    """
    The line on which a panel places values: first to last tick, with a margin of half a step on either side.

    Attributes:
        low, high: values at the ends of the line, margins included.
        ticks: value of each tick, its name or an empty text, and the width available to it, in units of the values.
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str, float], ...]

    def place(self, value: float) -> float:
        """The place of a value in percent of the width; an end if the value lies beyond it."""
        return _percent((value - self.low) / (self.high - self.low))

    def width(self, difference: float) -> float:
        """A difference of values in percent of the width."""
        return _percent(difference / (self.high - self.low))


def build_scale(nodes: Sequence[float], names: Sequence[str] | None = None) -> Scale:
    """The scale of these nodes; if there are many, only some have ticks."""
    last = len(nodes) - 1
    step = next(step for step in range(1, last + 1) if last % step == 0 and last // step < MOST_TICKS)
    marked, titles = nodes[::step], (names or [""] * len(nodes))[::step]
    gaps = [upper - lower for lower, upper in pairwise(marked)]
    widths = map(min, [gaps[0], *gaps], [*gaps, gaps[-1]])
    ticks = tuple(zip(marked, titles, widths, strict=True))
    return Scale(marked[0] - gaps[0] / 2, marked[-1] + gaps[-1] / 2, ticks)


def page_style() -> str:
    """The style sheet of the page."""
    return str(_macros().style(PALETTE))


def header_panel(model: DemoModel) -> str:
    """The title, and a description of the model."""
    return str(_macros().header(describe_model(model)))


def limits_panel() -> str:
    """The limits, at the bottom of the page."""
    return str(_macros().limits(describe_limits()))


def hint_panel(text: str) -> str:
    """The text in place of results, before there are any."""
    return str(_macros().hint(text))


def pair_panel(model: DemoModel, scores: Mapping[str, Any]) -> str:
    """The result of one pair: score and grade, their place on the scale, the interval of the label, the cosine."""
    config, value = model.config, scores[model.main_score]
    scale: Scale | None = build_scale(COSINES)
    if model.main_score == "score":
        scale = build_scale(config.label_values, config.label_names) if is_on_scale(config) else None
    result = _in_words(model, scores)
    return str(_macros().pair(model.main_score, result, scale, value, scores.get("low"), scores.get("high")))


def list_panel(model: DemoModel, query: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The sentences of a list, best first, each with a bar as long as its share of the scale, or of a cosine of 1."""
    ends: tuple[float, float] | None = (0.0, 1.0)
    if model.main_score == "score":
        ends = (model.config.label_values[0], model.config.label_values[-1]) if is_on_scale(model.config) else None
    shown = [
        {
            **_in_words(model, row),
            "sentence": row["sentence"],
            "bar": None if ends is None else _percent((row[model.main_score] - ends[0]) / (ends[1] - ends[0])),
        }
        for row in rows
    ]
    return str(_macros().ranked(model.main_score, query, shown))


def _percent(share: float) -> float:
    """A share of a width in percent, from 0 to 100."""
    return round(100 * min(1.0, max(0.0, share)), 1)


def _in_words(model: DemoModel, scores: Mapping[str, Any]) -> dict[str, str]:
    """The texts for a pair: score, grade name, interval, cosine and warning. Those that do not apply are empty."""
    problems = [WARNINGS[problem] for problem in scores["unreliable"].split(", ") if problem]
    is_scored = model.main_score == "score"
    return {
        "score": shown_score(scores[model.main_score]),
        "grade": scores["grade"] if is_scored and model.config.label_names else "",
        "interval": _interval_in_words(model.config, scores["low"], scores["high"]) if "low" in scores else "",
        "cosine": shown_score(scores["cosine"]) if is_scored and "cosine" in scores else "",
        "warning": f"Unreliable: {'; '.join(problems)}." if problems else "",
    }


def _interval_in_words(config: STSRegressionConfig, low: float, high: float) -> str:
    names = dict(zip(config.label_values, config.label_names or [], strict=False))
    ends = [f"“{names[end]}”" if end in names else shown_score(end) for end in (low, high)]
    level = (config.grading or {}).get("level")
    probability = "" if level is None else f" with {100 * level:g} % probability"
    where = f"is {ends[0]}" if low == high else f"lies between {ends[0]} and {ends[1]}"
    return f"The label {where}{probability}."


@cache
def _macros() -> Any:
    """The macros of the template, as functions."""
    return html_environment().from_string(PAGE_TEMPLATE.read_text(encoding="utf-8")).module
