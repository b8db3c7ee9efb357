"""The report of a run: one page of HTML that says what training gained. It needs no network and runs no script.

It quotes pairs of the user's data, so it is never published. Texts and names come from anybody's files: the template
escapes whatever it is given. Pictures are SVG; their numbers are computed here, their form and colours stand in
`report_template.html`.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import torch
from datasets import Dataset
from matplotlib.ticker import MaxNLocator
from scipy.stats import rankdata
from sklearn.metrics import confusion_matrix

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.evaluation.measures import PairScores, is_ordinal
from sts_regression.evaluation.verdict import VERDICTS
from sts_regression.files import replacing
from sts_regression.grading.grading import measure_grades, measure_intervals
from sts_regression.losses_sts_regression import nearest_label_index
from sts_regression.pipeline_sts_regression import grade_indices, score_intervals
from sts_regression.tables import REPORTED_SCORES, SPLIT_TITLES, percent

REPORT_PAGE = "report.html"
REPORT_TEMPLATE = Path(__file__).parent / "report_template.html"
POINTS_DRAWN = 1000  # pairs in a picture, and entries of the log in a line
PAIRS_QUOTED = 20
CHARACTERS_QUOTED = 200
GRADES_SHOWN = 12  # grades beyond which labels are shown as continuous ones
GROUPS, FEWEST_IN_GROUP = 10, 5  # of pairs by their score
JITTER_SHARE, BOX_SHARE, BAR_SHARE = 0.6, 0.7, 0.8  # of the distance of two grades
UNSCALED_LOSSES = ("pearson",)  # whose head puts pairs in order, but not on the label scale
MARGIN = 0.06  # of an axis, beyond the data
NORMAL_95 = 1.96  # standard errors on either side of a mean
# Places of a picture, in its own units.
WIDTH, LEFT, RIGHT, TOP, BELOW = 400, 46, 392, 26, 44
HEIGHT, LOW_HEIGHT = 300, 190
CHARACTER_WIDTH = 7
DATA_SPLITS = {"train": "training", **SPLIT_TITLES}
PACKAGES_SHOWN = ("python", "torch", "transformers", "accelerate", "datasets", "tokenizers", "numpy")
GRADING_ROWS = {
    "num_pairs": "pairs that it was fitted on",
    "level": "coverage asked for, percent",
    "coverage": "coverage reached, percent",
    "width": "mean width of the intervals, in units of the labels",
    "mae": "mean absolute error of the grade",
    "quadratic_kappa": "quadratic kappa of the grade",
}
IN_PERCENT = ("level", "coverage")

Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """
    An axis of a picture.

    Attributes:
        low, high: its ends, in the data.
        start, end: its ends, in the picture.
        title: what it shows.
        ticks: places in the data, and what stands there.
    """

    low: float
    high: float
    start: float
    end: float
    title: str
    ticks: tuple[tuple[float, str], ...]

    def place(self, value: float) -> float:
        """Where a value of the data lies in the picture."""
        share = (value - self.low) / (self.high - self.low)
        return round(float(self.start + share * (self.end - self.start)), 1)

    @property
    def placed_ticks(self) -> list[tuple[float, str]]:
        """The ticks, with their places in the picture."""
        return [(self.place(value), text) for value, text in self.ticks]


@dataclass(frozen=True)
class Chart:
    """
    A picture, all of whose places are in its own units.

    Attributes:
        title: stands above it.
        description: says what it shows to somebody who does not see it.
        series: "before" or "after", which has a colour.
        x, y: its axes.
        height: of the picture; all are of one width.
        dots: of pairs.
        lines: name of a series, and its points.
        bars: left, top, width and height.
        boxes: the same of the middle half of some pairs, and the height of their median.
        errors: where it stands, low and high end.
        guides: two ends of a line.
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


def write_report_page(
    folder: Path,
    record: Mapping[str, Any],
    pairs: Dataset,
    before: PairScores | None,
    after: PairScores,
    config: STSRegressionConfig,
    split: str,
    *,
    labels: Mapping[str, np.ndarray],
    log_history: Sequence[Mapping[str, Any]],
    usage: str,
) -> None:
    """
    Writes the report of a finished training into its folder.

    Args:
        folder: of the run.
        record: the content of its `run.json`.
        pairs: those that were scored, with `sentence1` and `sentence2`.
        before: scores of these pairs before training, if they were taken.
        after: after training.
        config: of the trained model.
        split: name of the split that `pairs` are.
        labels: of each split, shape (pairs,); those of `split` are the gold labels of `pairs`.
        log_history: entries of Trainer's state; none of an average of weights.
        usage: lines of Python that grade a pair.
    """
    page = report_page(folder.resolve().name, record, pairs, before, after, config, split, labels, log_history, usage)
    with replacing(folder / REPORT_PAGE) as file:
        file.write(page.encode(errors="replace"))  # a folder's name may hold bytes that are no text


def report_page(
    name: str,
    record: Mapping[str, Any],
    pairs: Dataset,
    before: PairScores | None,
    after: PairScores,
    config: STSRegressionConfig,
    split: str,
    labels: Mapping[str, np.ndarray],
    log_history: Sequence[Mapping[str, Any]],
    usage: str,
) -> str:
    """The page that [`write_report_page`] writes, with the name of the run for its title."""
    gold = np.asarray(labels[split], dtype=float)
    has_head = after.head is not None
    returned = after.cosine if after.head is None else after.head.astype(float)
    assert returned is not None  # a model has one or the other
    is_graded = config.grading is not None
    on_scale = has_head and (is_graded or config.loss_type not in UNSCALED_LOSSES)
    untouched = None if before is None else before.cosine
    grading = record.get("grading") or {}
    shows_grades = is_ordinal(gold, config.label_values) and len(config.label_values) <= GRADES_SHOWN
    groups = list(groups_by_score(returned, gold))
    confusion = confusion_of_grades(returned, gold, config) if shows_grades and on_scale else None
    score_title = "score" if has_head else "cosine"
    return _report_template().render(
        name=name,
        config=config,
        split=split,
        split_titles=DATA_SPLITS,
        verdict=record.get("verdict"),
        verdicts=VERDICTS,
        folds=record.get("folds"),
        interval=None if record.get("verdict") is None else interval_axis(record["verdict"]),
        correlations=list(correlations(record.get("results", {}))),
        num_pairs=len(gold),
        points_drawn=POINTS_DRAWN,
        scores=score_charts(returned, untouched, gold, config, shows_grades, score_title, on_scale),
        grades=[grade_title(config, number) for number in range(len(config.label_values))],
        confusion=confusion,
        measures=None if confusion is None else measures_of_grades(confusion, config),
        is_graded=is_graded,
        on_scale=on_scale,
        score_title=score_title,
        groups=groups,
        reliability=reliability_chart(groups, config, score_title, on_scale),
        grading=list(grading_rows(grading)),
        coverage_by_grade=list(coverage_rows(grading, config)),
        no_intervals=grading.get("no_intervals"),
        coverage=coverage_of_scores(returned, gold, config) if has_head else None,
        disagreements=list(disagreements(pairs, returned, gold, untouched, config, on_scale)),
        is_one_file=len(record.get("data", {}).get(split, {}).get("parts", [])) == 1,
        learning=learning_charts(log_history),
        best_step=(record.get("training") or {}).get("best_step"),
        data=list(data_rows(record)),
        histograms=[
            histogram(np.asarray(of_split, dtype=float), DATA_SPLITS[name], config)
            for name, of_split in labels.items()
            if name in DATA_SPLITS and len(of_split)
        ],
        costs=list(cost_rows(record)),
        command=shlex.join(map(str, record.get("command", []))),
        usage=usage,
        width=WIDTH,
        left=LEFT,
        right=RIGHT,
    )


def _report_template() -> jinja2.Template:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"percent": percent, "points": _points}
    return environment.from_string(REPORT_TEMPLATE.read_text(encoding="utf-8"))


def _points(difference: float) -> str:
    """A difference of correlations in points, with its sign."""
    return f"{100 * difference:+.2f}".replace("-", "−")


def _round_axis(values: np.ndarray, start: float, end: float, title: str, margin: float = 0.0) -> Axis:
    """An axis as long as the values reach, and a margin, a share of that, on either side; its ticks are round."""
    low, high = float(values.min()), float(values.max())
    room = margin * (high - low) if high > low else 0.1 * abs(high) or 1.0
    low, high = low - room, high + room
    ticks = MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    inside = (tick for tick in ticks if low <= tick <= high)
    return Axis(low, high, start, end, title, tuple((float(tick), f"{tick:.6g}".replace("-", "−")) for tick in inside))


def _y_axis(values: np.ndarray, title: str, height: int = HEIGHT, margin: float = MARGIN) -> Axis:
    return _round_axis(values, height - BELOW, TOP, title, margin)


def interval_axis(verdict: Mapping[str, Any]) -> Axis:
    """Of the difference that training made, in points of Spearman's correlation; it holds 0."""
    ends = 100 * np.array([0, verdict["low"], verdict["high"], verdict["difference"]])
    return _round_axis(ends, 20, WIDTH - 20, "points of Spearman's correlation", MARGIN)


def correlations(results: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Spearman's correlations in percent: the split, the cosine before training, the cosine after it, the score."""
    before, after = (results.get(f"{state} training", {}) for state in ("before", "after"))
    for split, measures in after.items():
        untouched = percent(before.get(split, {}).get("spearman_cosine"))
        cosine, score = (percent(measures.get(f"spearman_{name}")) for name in REPORTED_SCORES)
        yield DATA_SPLITS.get(split, split), untouched, cosine, score


def grade_title(config: STSRegressionConfig, number: int) -> str:
    """The name of a grade, or its value."""
    return f"{config.label_values[number]:g}" if config.label_names is None else config.label_names[number]


def _label_axis(config: STSRegressionConfig, shows_grades: bool, title: str = "gold label") -> Axis:
    """Of labels: half a grade more than the scale on either side if grades are shown."""
    values, step = config.label_values, config.label_step
    if not shows_grades:
        return _round_axis(np.array(values), LEFT, RIGHT, title)
    room = int((RIGHT - LEFT) * step / (values[-1] - values[0] + step) / CHARACTER_WIDTH)
    names = [cut(grade_title(config, number), max(3, room)) for number in range(len(values))]
    ticks = tuple(zip(values, names, strict=True))
    return Axis(values[0] - step / 2, values[-1] + step / 2, LEFT, RIGHT, title, ticks)


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
    The score of each pair against its gold label, and beside it the cosine of the untouched encoder.

    Of many pairs a sample is drawn; boxes hold the middle half of all pairs of a grade.

    Args:
        returned: what the trained model returns, shape (pairs,).
        untouched: cosines before training, likewise; `None` for a cross-encoder.
        gold: labels, likewise.
        config: with the label scale.
        shows_grades: whether each label is a grade.
        score_title: what the model returns, in a word.
        on_scale: whether that lies on the label scale.
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
                f"{title}: {y.title} against gold label" + (f"; medians: {', '.join(medians)}" if medians else ""),
                series,
                *(x, y),
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
    grades = nearest_label_index(torch.from_numpy(gold), config.label_values).numpy()
    for number in np.unique(grades).tolist():
        value = config.label_values[number]
        low, median, high = np.quantile(scores[grades == number], [0.25, 0.5, 0.75])
        left, right, top, bottom = x.place(value - half), x.place(value + half), y.place(high), y.place(low)
        boxes.append((left, top, round(right - left, 1), round(bottom - top, 1), y.place(median)))
        medians.append(f"{median:.2f} at {value:g}")
    return boxes, medians


def confusion_of_grades(scores: np.ndarray, gold: np.ndarray, config: STSRegressionConfig) -> np.ndarray:
    """
    Counts of grades.

    Args:
        scores: as predictions have them, shape (pairs,).
        gold: labels, likewise.
        config: with the label scale and, if they were learned, cut points between grades.

    Returns:
        Counts of shape (grades, grades): a row for each gold grade, a column for each grade of a score.
    """
    found = grade_indices(torch.from_numpy(scores), config).numpy()
    true = nearest_label_index(torch.from_numpy(gold), config.label_values).numpy()
    return confusion_matrix(true, found, labels=np.arange(len(config.label_values)))


def measures_of_grades(confusion: np.ndarray, config: STSRegressionConfig) -> dict[str, float]:
    """`accuracy`, and `mae` and `quadratic_kappa` as of [`measure_grades`], of counts of shape (grades, grades)."""
    true, found = (np.repeat(index.ravel(), confusion.ravel()) for index in np.indices(confusion.shape))
    return {"accuracy": float(np.mean(true == found)), **measure_grades(found, true, np.array(config.label_values))}


def groups_by_score(scores: np.ndarray, gold: np.ndarray) -> Iterator[dict[str, float]]:
    """
    Tenths of the pairs by their score, or fewer parts of few pairs.

    Args:
        scores: of shape (pairs,).
        gold: labels, likewise.

    Returns:
        Of each part the number of its `pairs`, the mean `score`, the mean `label`, and the `error` of the latter, half
        of a 95 % interval.
    """
    number = min(GROUPS, max(1, len(scores) // FEWEST_IN_GROUP))
    for rows in np.array_split(np.argsort(scores, kind="stable"), number):
        error = NORMAL_95 * gold[rows].std() / np.sqrt(len(rows))
        means = {"score": float(scores[rows].mean()), "label": float(gold[rows].mean())}
        yield {"pairs": len(rows), **means, "error": float(error)}


def reliability_chart(
    groups: Sequence[Mapping[str, float]], config: STSRegressionConfig, score_title: str, on_scale: bool
) -> Chart:
    """The mean gold label of each part of [`groups_by_score`] against its mean score."""
    means = np.array([[group["score"], group["label"]] for group in groups])
    errors = [group["error"] for group in groups]
    scale = np.array([config.label_values[0], config.label_values[-1]])
    x = _round_axis(np.r_[means[:, 0], scale if on_scale else []], LEFT, RIGHT, f"mean {score_title}", MARGIN)
    y = _y_axis(np.r_[means[:, 1], scale], "mean gold label")
    points = [(x.place(score), y.place(label)) for score, label in means]
    ends = [(x.place(value), y.place(value)) for value in scale]
    return Chart(
        "Mean gold label by score",
        "Mean gold label of the pairs of each tenth of the scores; the numbers stand in the table below",
        "after",
        *(x, y),
        lines=[("after", points)],
        errors=[
            (place, y.place(label - error), y.place(label + error))
            for (place, _), (_, label), error in zip(points, means, errors, strict=True)
        ],
        guides=[(ends[0], ends[1])] if on_scale else [],
    )


def grading_rows(grading: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is known of the grading, a line each: what it is, and its value; measures are of its `report`."""
    known = {**grading, **(grading.get("report") or {})}
    for key, title in GRADING_ROWS.items():
        if (value := known.get(key)) is not None:
            number = 100 * value if key in IN_PERCENT else value
            yield title, f"{number:,}" if key == "num_pairs" else f"{number:.2f}"


def coverage_rows(grading: Mapping[str, Any], config: STSRegressionConfig) -> Iterator[tuple[str, str, str]]:
    """Of each grade its name, its number of pairs and the coverage of its intervals in percent, where known."""
    titles = {f"{value:g}": grade_title(config, number) for number, value in enumerate(config.label_values)}
    for row in (grading.get("report") or {}).get("coverage_by_grade") or []:
        grade = f"{row['grade']:g}"
        yield titles.get(grade, grade), f"{row['pairs']:,}", percent(row["coverage"])


def coverage_of_scores(scores: np.ndarray, gold: np.ndarray, config: STSRegressionConfig) -> float | None:
    """The share of labels within the intervals of their scores, shape (pairs,); `None` if none were learned."""
    ends = score_intervals(torch.from_numpy(scores), config)
    if ends is None:
        return None
    low, high = (end.numpy() for end in ends)
    return float(measure_intervals(low, high, gold, np.array(config.label_values))["coverage"])


def disagreements(
    pairs: Dataset,
    scores: np.ndarray,
    gold: np.ndarray,
    untouched: np.ndarray | None,
    config: STSRegressionConfig,
    on_scale: bool,
) -> Iterator[dict[str, Any]]:
    """
    The pairs whose score is farthest from their label, the worst first.

    Scores that do not lie on the label scale are compared by their ranks.

    Args:
        pairs: with `sentence1` and `sentence2`.
        scores: of shape (pairs,).
        gold: labels, likewise.
        untouched: cosines before training, likewise.
        config: with the label scale.
        on_scale: whether the scores lie on it.

    Returns:
        Of each pair its texts, its `line` in the file, if known, its `label`, `score` and cosine `before`, and the
        `places` of label and score in percent of the scale, or of the ranks.
    """
    low, high = config.label_values[0], config.label_values[-1]
    if on_scale:
        places = [np.clip((values - low) / (high - low), 0, 1) for values in (gold, scores)]
        gaps = np.abs(scores - gold)
    else:
        places = [(rankdata(values) - 1) / max(1, len(values) - 1) for values in (gold, scores)]
        gaps = np.abs(places[0] - places[1])
    for row in np.argsort(-gaps, kind="stable")[:PAIRS_QUOTED].tolist():
        pair = pairs[row]
        yield {
            "texts": [cut(pair[side], CHARACTERS_QUOTED) for side in ("sentence1", "sentence2")],
            "line": pair.get("line"),
            "label": _label_in_words(gold[row], config),
            "score": f"{scores[row]:.3g}",
            "before": None if untouched is None else f"{untouched[row]:.2f}",
            "places": [round(100 * float(values[row]), 1) for values in places],
        }


def _label_in_words(label: float, config: STSRegressionConfig) -> str:
    """The name of the grade that a label is; of a label between grades its value."""
    if not is_ordinal([label], config.label_values):
        return f"{label:.4g}"
    return grade_title(config, int(nearest_label_index(torch.tensor(label), config.label_values)))


def cut(text: str, length: int) -> str:
    """A text, of which at most so many characters are left."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def learning_charts(log_history: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Loss, and Spearman's correlation on the development pairs, by optimizer step; empty if nothing was logged."""
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
        series = {name: points for name, points in series.items() if len(points)}
        if not series:
            continue
        first, *others = series
        if others and series[first].shape == series[others[0]].shape and np.allclose(series[first], series[others[0]]):
            series = {f"{first} and {others[0]}": series[first]}  # as of a score that rises with the cosine
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


def _logged(log_history: Sequence[Mapping[str, Any]], key: str) -> np.ndarray:
    """Steps and values of shape (entries, 2); of a long log every so many."""
    points = np.array([(entry["step"], entry[key]) for entry in log_history if key in entry], dtype=float)
    if len(points) <= POINTS_DRAWN:
        return points
    return points[np.linspace(0, len(points) - 1, POINTS_DRAWN).round().astype(int)]


def data_rows(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The sets of each split: where they come from, their pairs and scale, and the test pairs found among them."""
    for split, title in DATA_SPLITS.items():
        leaks = record.get("leakage", {}).get(split, {})
        for part in record.get("data", {}).get(split, {}).get("parts", []):
            scale, leak = part.get("label_scale"), leaks.get(part["source"])
            yield {
                "split": title,
                "source": part["source"],
                "pairs": f"{part['pairs']:,}",
                "unlabelled": f"{part.get('unlabelled', 0):,}",
                "scale": "–" if scale is None else f"{scale[0]:g} to {scale[-1]:g}",
                "found": "–" if leak is None else f"{leak['found']:,}",
                "removed": "–" if leak is None else f"{leak['removed']:,}",
            }


def histogram(labels: np.ndarray, title: str, config: STSRegressionConfig) -> Chart:
    """How many pairs of a split have which label: by grade, or by tenth of the scale."""
    values = np.array(config.label_values)
    by_grade = is_ordinal(labels, config.label_values) and len(values) <= GRADES_SHOWN
    if by_grade:
        counts = np.bincount(nearest_label_index(torch.from_numpy(labels), config.label_values), minlength=len(values))
        centers, step = values, config.label_step
    else:
        counts, edges = np.histogram(labels, GROUPS, (values[0], values[-1]))
        centers, step = (edges[:-1] + edges[1:]) / 2, edges[1] - edges[0]
    x = _label_axis(config, by_grade, title="label")
    y = _y_axis(np.r_[0, counts], "pairs", LOW_HEIGHT, margin=0.0)
    bars = []
    for center, count in zip(centers, counts, strict=True):
        start, end = (x.place(center + side * BAR_SHARE * step / 2) for side in (-1, 1))
        top = y.place(count)
        bars.append((start, top, round(end - start, 1), round(y.start - top, 1)))
    description = "Pairs by label: " + ", ".join(map(str, counts.tolist()))
    return Chart(f"{title.capitalize()}: {len(labels):,} pairs", description, "after", x, y, LOW_HEIGHT, bars=bars)


def cost_rows(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Time, memory, machine and versions, a line each, as far as they are known."""
    environment, training = record.get("environment", {}), record.get("training") or {}
    memory = record.get("peak_memory_bytes", {})
    stages = record.get("stages", [])
    known = {
        "in all, evaluation included": _time(record.get("seconds")),
        "training": _time(training.get("train_runtime")),
        "earlier stages": _time(sum(stage.get("seconds", 0) for stage in stages)) if stages else None,
        "training the folds": _time(record["folds"]["seconds"]) if "folds" in record else None,
        "optimizer steps": None if training.get("steps") is None else f"{training['steps']:,}",
        "peak memory": _gibibytes(memory.get("process")),
        "peak memory of the GPU": _gibibytes(memory.get("gpu")),
        **{name: environment.get(name) for name in ("device", "processes", "threads", "precision")},
        "seed": record.get("seed"),
        **{package: environment.get(package) for package in PACKAGES_SHOWN},
        "commit": environment.get("commit"),
    }
    yield from ((title, str(value)) for title, value in known.items() if value is not None)


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or f"{seconds:.1f} s"


def _gibibytes(size: int | None) -> str | None:
    return None if size is None else f"{size / 2**30:.1f} GiB"
