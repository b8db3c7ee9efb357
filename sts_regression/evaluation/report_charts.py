"""The charts of a run's report: their numbers and coordinates. `report_template.html` has shapes and colours."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from sts_regression.basics.tables import cut
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.evaluation.verdict import LearningCurve
from sts_regression.grading.held_out import are_grades
from sts_regression.losses_sts_regression import nearest_label_index

HISTOGRAM_BARS = 10  # of labels between grades
GRADES_SHOWN = 12  # with more grades, labels are shown as continuous
POINTS_DRAWN = 1000  # largest number of pairs in a chart, and of log entries in a line
JITTER_SHARE, BOX_SHARE, BAR_SHARE = 0.6, 0.7, 0.8  # of the distance of two grades
MARGIN = 0.06  # share of an axis beyond the data
# Coordinates in a chart, in its own units.
WIDTH, LEFT, RIGHT, TOP, BELOW = 400, 46, 392, 26, 44
HEIGHT, LOW_HEIGHT = 300, 190
CHARACTER_WIDTH, LINE_HEIGHT = 8.5, 15  # on a phone
LINES_OF_NAME = 3  # at most, of the name of a grade
Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """
    An axis of a chart.

    Attributes:
        low, high: the ends in the data.
        start, end: the ends in the chart.
        title: the name of the quantity.
        ticks: values in the data, and the lines of their texts.
    """

    low: float
    high: float
    start: float
    end: float
    title: str
    ticks: tuple[tuple[float, str], ...]

    def place(self, value: float) -> float:
        """The coordinate in the chart of a value in the data."""
        share = (value - self.low) / (self.high - self.low)
        return round(float(self.start + share * (self.end - self.start)), 1)

    @property
    def placed_ticks(self) -> list[tuple[float, list[str]]]:
        """The lines of the ticks, with their coordinates in the chart."""
        return [(self.place(value), text.split("\n")) for value, text in self.ticks]

    @property
    def further_height(self) -> int:
        """The height that lines of ticks below the first need."""
        return LINE_HEIGHT * max((text.count("\n") for _, text in self.ticks), default=0)


@dataclass(frozen=True)
class Chart:
    """
    A chart, with all coordinates in its own units.

    Attributes:
        title: the text above the chart.
        description: the alternative text for readers who cannot see the chart.
        series: "before" or "after", which determines the colour.
        x, y: the axes.
        height: the height of the chart without `further_height` of its x axis; all charts have the same width.
        dots: points of pairs.
        lines: name and points of each series.
        bars: left, top, width and height.
        boxes: left, top, width and height of the middle half of some pairs, and the height of their median.
        errors: horizontal position, low end and high end.
        guides: the two ends of a line.
    """

    title: str
    description: str
    series: str
    x: Axis
    y: Axis
    height: int = HEIGHT
    dots: list[Point] = field(default_factory=list)
    lines: list[tuple[str, list[Point]]] = field(default_factory=list)
    bars: list[tuple[float, float, float, float]] = field(default_factory=list)
    boxes: list[tuple[float, float, float, float, float]] = field(default_factory=list)
    errors: list[tuple[float, float, float]] = field(default_factory=list)
    guides: list[tuple[Point, Point]] = field(default_factory=list)


def _round_axis(values: np.ndarray, start: float, end: float, title: str, margin: float = 0.0) -> Axis:
    """An axis over the range of the values, with a margin, a share of that range, on either side and round ticks."""
    from matplotlib.ticker import MaxNLocator  # slow to load, and not needed before training

    low, high = float(values.min()), float(values.max())
    room = margin * (high - low) if high > low else 0.1 * abs(high) or 1.0
    low, high = low - room, high + room
    ticks = MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    inside = (tick for tick in ticks if low <= tick <= high)
    return Axis(low, high, start, end, title, tuple((float(tick), f"{tick:.6g}".replace("-", "−")) for tick in inside))


def _y_axis(values: np.ndarray, title: str, height: int = HEIGHT, margin: float = MARGIN) -> Axis:
    return _round_axis(values, height - BELOW, TOP, title, margin)


def interval_axis(verdict: Mapping[str, Any]) -> Axis:
    """The axis of the difference that training made, in points of Spearman's correlation; it includes 0."""
    ends = 100 * np.array([0, verdict["low"], verdict["high"], verdict["difference"]])
    return _round_axis(ends, 20, WIDTH - 20, "points of Spearman's correlation", MARGIN)


def grade_title(config: STSRegressionConfig, number: int) -> str:
    """The name of a grade, or its value."""
    return f"{config.label_values[number]:g}" if config.label_names is None else config.label_names[number]


def _label_axis(config: STSRegressionConfig, shows_grades: bool) -> Axis:
    """The axis of labels; if grades are shown, it is half a grade longer than the scale on either side."""
    values, step = config.label_values, config.label_step
    if not shows_grades:
        return _round_axis(np.array(values), LEFT, RIGHT, "label")
    room = int((RIGHT - LEFT) * step / (values[-1] - values[0] + step) / CHARACTER_WIDTH)
    names = [_wrapped(grade_title(config, number), max(3, room)) for number in range(len(values))]
    ticks = tuple(zip(values, names, strict=True))
    return Axis(values[0] - step / 2, values[-1] + step / 2, LEFT, RIGHT, "label", ticks)


def _wrapped(text: str, length: int) -> str:
    """A text in lines of at most `length` characters, broken between words."""
    lines = textwrap.wrap(text, length, max_lines=LINES_OF_NAME, placeholder="…", break_long_words=False)
    return "\n".join(cut(line, length) for line in lines)


def score_charts(
    returned: np.ndarray,
    untouched: np.ndarray | None,
    gold: np.ndarray,
    config: STSRegressionConfig,
    shows_grades: bool,
    score_title: str,
    on_scale: bool,
) -> list[Chart]:
    """
    Charts of each pair's score and of the untouched encoder's cosine against the label.

    If there are many pairs, a sample is drawn. Boxes show the middle half of all pairs of a grade.

    Args:
        returned: the scores that the trained model returns, shape (pairs,).
        untouched: cosines before training, shape (pairs,); `None` for a cross-encoder.
        gold: labels, shape (pairs,).
        config: the configuration with the label scale.
        shows_grades: whether each label is a grade.
        score_title: the name of the returned score.
        on_scale: whether the returned scores are on the label scale.
    """
    generator = np.random.default_rng(0)
    rows = np.sort(generator.permutation(len(gold))[:POINTS_DRAWN])
    spread = generator.uniform(-0.5, 0.5, len(rows)) * JITTER_SHARE * config.label_step * shows_grades
    charts = []
    for series, scores in (("after", returned), ("before", untouched)):
        if scores is None:
            continue
        is_score = series == "after"
        scale = np.array(config.label_values if on_scale and is_score else [])
        x, y = _label_axis(config, shows_grades), _y_axis(np.r_[scores, scale], score_title if is_score else "cosine")
        title = "After training" if is_score else "Untouched encoder"
        boxes, medians = _boxes(scores, gold, config, x, y) if shows_grades else ([], [])
        diagonal = [(x.place(value), y.place(value)) for value in (config.label_values[0], config.label_values[-1])]
        charts.append(
            Chart(
                title,
                f"{title}: {y.title} against label" + (f"; medians: {', '.join(medians)}" if medians else ""),
                series,
                x,
                y,
                dots=[
                    (x.place(gold[row] + shift), y.place(scores[row])) for row, shift in zip(rows, spread, strict=True)
                ],
                boxes=boxes,
                guides=[(diagonal[0], diagonal[1])] if len(scale) else [],
            )
        )
    return charts


def _boxes(
    scores: np.ndarray, gold: np.ndarray, config: STSRegressionConfig, x: Axis, y: Axis
) -> tuple[list[tuple[float, float, float, float, float]], list[str]]:
    """The box of each grade, see [`Chart`], and its median in words."""
    boxes, medians = [], []
    half = BOX_SHARE * config.label_step / 2
    grades = nearest_label_index(torch.tensor(gold), config.label_values).numpy()
    for number in np.unique(grades).tolist():
        value = config.label_values[number]
        low, median, high = np.quantile(scores[grades == number], [0.25, 0.5, 0.75])
        left, right, top, bottom = x.place(value - half), x.place(value + half), y.place(high), y.place(low)
        boxes.append((left, top, round(right - left, 1), round(bottom - top, 1), y.place(median)))
        medians.append(f"{median:.2f} at {value:g}")
    return boxes, medians


def reliability_chart(
    groups: Sequence[Mapping[str, float]], config: STSRegressionConfig, score_title: str, on_scale: bool
) -> Chart:
    """The mean label of each part of `groups_by_score` by its mean score, with its interval within the scale."""
    means = np.array([[group["score"], group["label"]] for group in groups])
    scale = np.array([config.label_values[0], config.label_values[-1]])
    x = _round_axis(np.r_[means[:, 0], scale if on_scale else []], LEFT, RIGHT, f"mean {score_title}", MARGIN)
    y = _y_axis(np.r_[means[:, 1], scale], "mean label")
    points = [(x.place(score), y.place(label)) for score, label in means]
    errors = np.array([group["error"] for group in groups])
    ends_of_bars = [np.clip(means[:, 1] + side * errors, *scale) for side in (-1, 1)]
    ends = [(x.place(value), y.place(value)) for value in scale]
    return Chart(
        "Mean label by score",
        "Mean label of the pairs of each tenth of the scores; the table below gives the numbers",
        "after",
        x,
        y,
        lines=[("after", points)],
        errors=[
            (place, y.place(low), y.place(high)) for (place, _), low, high in zip(points, *ends_of_bars, strict=True)
        ],
        guides=[(ends[0], ends[1])] if on_scale else [],
    )


def learning_charts(log_history: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Loss, and Spearman's correlation on the development pairs, by optimizer step, if logged at two steps or more."""
    drawn = (
        ("Loss", "loss", {"training": "loss", "development": "eval_loss"}, 1),
        (
            "Development pairs",
            "Spearman's correlation, percent",
            {"cosine": "eval_spearman_cosine", "score": "eval_spearman_head"},
            100,
        ),
    )
    charts = []
    for title, y_title, keys, factor in drawn:
        series = {name: _logged(log_history, key) for name, key in keys.items()}
        series = {name: points for name, points in series.items() if len(points) > 1}
        if not series:
            continue
        first, *others = series
        if others and series[first].shape == series[others[0]].shape and np.allclose(series[first], series[others[0]]):
            series = {f"{first} and {others[0]}": series[first]}  # as for a score that rises with the cosine
        steps, values = np.concatenate(list(series.values())).T
        x = _round_axis(np.r_[0, steps], LEFT, RIGHT, "optimizer step")
        y = _y_axis(factor * values, y_title)
        lines = [
            (name, [(x.place(step), y.place(factor * value)) for step, value in points])
            for name, points in series.items()
        ]
        last = ", ".join(f"{name} ends at {factor * points[-1, 1]:.4g}" for name, points in series.items())
        charts.append(Chart(title, f"{title} by optimizer step: {last}", "after", x, y, lines=lines))
    return charts


def learning_curve_chart(curve: LearningCurve) -> Chart:
    """Spearman's correlation by the number of training pairs, on a logarithmic axis, up to twice as many."""
    untouched = [100 * point["spearman"] for point in curve.points if not point["pairs"]]
    trained = [(point["pairs"], 100 * point["spearman"]) for point in curve.points if point["pairs"]]
    sizes, values = np.array(trained).T
    most, best = trained[-1]
    gain, low, high = (best + 100 * change for change in (curve.gain_of_doubling, curve.low, curve.high))
    ticks = tuple((float(np.log2(size)), f"{size:,.0f}") for size in (*sizes, 2 * most))
    room = MARGIN * (ticks[-1][0] - ticks[0][0])
    x = Axis(ticks[0][0] - room, ticks[-1][0] + room, LEFT, RIGHT, "training pairs", ticks)
    y = _y_axis(np.r_[untouched, values, gain, low, high], "Spearman's correlation, percent")
    points = [(x.place(np.log2(size)), y.place(value)) for size, value in trained]
    twice = (x.place(ticks[-1][0]), y.place(gain))
    shown = ", ".join(f"{value:.2f} at {size:,}" for size, value in trained)
    return Chart(
        "Spearman's correlation by number of training pairs",
        f"Spearman's correlation by number of training pairs: {shown}; {gain:.2f} expected at {2 * most:,}",
        "after",
        x,
        y,
        lines=[("trained", points), ("expected", [twice])],
        errors=[(twice[0], y.place(low), y.place(high))],
        guides=[(points[-1], twice), *(((LEFT, y.place(value)), (RIGHT, y.place(value))) for value in untouched)],
    )


def _logged(log_history: Sequence[Mapping[str, Any]], key: str) -> np.ndarray:
    """Steps and values of shape (entries, 2), thinned out if the log is long."""
    points = np.array([(entry["step"], entry[key]) for entry in log_history if key in entry], dtype=float)
    if len(points) <= POINTS_DRAWN:
        return points
    return points[np.linspace(0, len(points) - 1, POINTS_DRAWN).round().astype(int)]


def histogram(labels: np.ndarray, title: str, config: STSRegressionConfig) -> Chart:
    """The numbers of pairs of a split by label: by grade, or by tenth of the scale."""
    values = np.array(config.label_values)
    by_grade = are_grades(labels, config.label_values) and len(values) <= GRADES_SHOWN
    if by_grade:
        counts = np.bincount(nearest_label_index(torch.tensor(labels), config.label_values), minlength=len(values))
        centers, step = values, config.label_step
    else:
        counts, edges = np.histogram(labels, HISTOGRAM_BARS, (values[0], values[-1]))
        centers, step = (edges[:-1] + edges[1:]) / 2, edges[1] - edges[0]
    x = _label_axis(config, by_grade)
    y = _y_axis(np.r_[0, counts], "pairs", LOW_HEIGHT, margin=0.0)
    bars = []
    for center, count in zip(centers, counts, strict=True):
        start, end = (x.place(center + side * BAR_SHARE * step / 2) for side in (-1, 1))
        top = y.place(count)
        bars.append((start, top, round(end - start, 1), round(y.start - top, 1)))
    description = "Pairs by label: " + ", ".join(map(str, counts.tolist()))
    return Chart(f"{title.capitalize()}: {len(labels):,} pairs", description, "after", x, y, LOW_HEIGHT, bars=bars)
