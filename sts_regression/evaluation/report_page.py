"""The report of a run: one page of HTML on the gain from training. It needs no network and runs no script.

It quotes pairs of the user's data, so it is never published. Texts and names may come from untrusted files, so the
template escapes all of them. Charts are SVG, see `report_charts.py`.
"""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import torch
from datasets import Dataset
from scipy.stats import rankdata

from sts_regression.basics.files import replacing
from sts_regression.basics.hub_tokens import without_tokens
from sts_regression.basics.tables import REPORTED_SCORES, SPLIT_TITLES, cut, percent, seconds_of_all
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data.sources import held_out_of
from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.report_charts import (
    GRADES_SHOWN,
    LEFT,
    LINE_HEIGHT,
    POINTS_DRAWN,
    RIGHT,
    WIDTH,
    grade_title,
    histogram,
    interval_axis,
    learning_charts,
    learning_curve_chart,
    reliability_chart,
    score_charts,
)
from sts_regression.evaluation.verdict import VERDICTS, LearningCurve, Verdict, scored_by
from sts_regression.grading.grading import groups_by_score, measure_grades, measure_intervals
from sts_regression.grading.held_out import are_grades
from sts_regression.grading.in_checkpoints import OF_ONE_SOURCE
from sts_regression.losses_sts_regression import nearest_label_index
from sts_regression.pipeline_sts_regression import grade_indices, score_intervals

REPORT_TEMPLATE = Path(__file__).parent / "report_template.html"
PAIRS_QUOTED, SHARE_QUOTED = 20, 0.2  # largest number of pairs, and largest share of all pairs
SMALL_GAP = 0.1  # of the scale, or of the ranks: a pair with a smaller gap does not disagree
CHARACTERS_QUOTED = 200
UNSCALED_LOSSES = ("pearson",)  # their head ranks pairs, but its scores are not on the label scale
DATA_SPLITS = {"train": "training", **SPLIT_TITLES}
PACKAGES_SHOWN = ("python", "torch", "transformers", "accelerate", "datasets", "tokenizers", "numpy")
GRADING_ROWS = {
    "num_pairs": "development pairs",
    "mae": "mean absolute error of the grade, in units of the labels",
    "quadratic_kappa": "quadratic weighted kappa of the grade",
    "level": "labels that intervals should contain, percent",
    "coverage": "labels that intervals contain, percent",
    "width": "mean width of the intervals, in units of the labels",
}
IN_PERCENT = ("level", "coverage")


def write_report_page(page: str, path: Path) -> None:
    """Writes the page of [`report_page`]."""
    with replacing(path) as file:
        file.write(page.encode(errors="replace"))  # a folder's name may hold bytes that are not text


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
    """
    The report of a finished training run.

    Args:
        name: name of the run, for the title.
        record: the content of its `run.json`.
        pairs: the scored pairs, with `sentence1` and `sentence2`.
        before: scores of these pairs before training, if there are any.
        after: scores of these pairs after training.
        config: configuration of the trained model.
        split: name of the split of `pairs`.
        labels: labels of each split, shape (pairs,); those of `split` belong to `pairs`.
        log_history: entries of Trainer's state; empty for an average of weights.
        usage: lines of Python that grade a pair.

    Returns:
        A page of HTML that loads no other files.
    """
    gold = np.asarray(labels[split], dtype=float)
    has_head = after.head is not None
    assert after.returned is not None  # a model has a head or a cosine
    returned = after.returned.astype(float)
    is_graded = config.grading is not None
    on_scale = has_head and is_on_scale(config)
    untouched = None if before is None else before.cosine
    grading = record.get("grading") or {}
    shows_grades = are_grades(gold, config.label_values) and len(config.label_values) <= GRADES_SHOWN
    # Development pairs, to which the scores are fitted, are shown as cross-fitting scores them.
    fitted = grading.get("report", {}).get("reliability") if split == "validation" and is_graded else None
    groups = fitted or groups_by_score(returned, gold)
    confusion = confusion_of_grades(returned, gold, config) if shows_grades and on_scale else None
    score_title = "score" if has_head else "cosine"
    curve = LearningCurve(**record["learning_curve"]) if "learning_curve" in record else None
    return _report_template().render(
        name=name,
        config=config,
        split=split,
        split_titles=DATA_SPLITS,
        verdict=record.get("verdict"),
        pairs_judged=None if record.get("verdict") is None else Verdict.from_dict(record["verdict"]).pairs,
        verdicts=VERDICTS,
        scored_by=scored_by(record),
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
        is_cross_fitted=fitted is not None,
        reliability=reliability_chart(groups, config, score_title, on_scale),
        grading=list(grading_rows(grading)),
        coverage_by_grade=list(coverage_rows(grading, config)),
        no_intervals=grading.get("no_intervals"),
        source=None if grading.get("source") is None else OF_ONE_SOURCE.format(grading["source"]),
        coverage=coverage_of_scores(returned, gold, config) if has_head else None,
        disagreements=list(disagreements(pairs, returned, gold, untouched, config, on_scale)),
        is_one_file=len(record.get("data", {}).get(split, {}).get("parts", [])) == 1,
        learning=learning_charts(log_history),
        curve=None if curve is None else learning_curve_chart(curve),
        more_pairs="" if curve is None else str(curve).replace(" -", " −"),
        best_step=(record.get("training") or {}).get("best_step") if evaluates_often(log_history) else None,
        data=list(data_rows(record)),
        histograms=[
            histogram(np.asarray(of_split, dtype=float), DATA_SPLITS[name], config)
            for name, of_split in labels.items()
            if name in DATA_SPLITS and len(of_split)
        ],
        costs=list(cost_rows(record)),
        command=without_tokens(shlex.join(map(str, record.get("command", [])))),
        usage=usage,
        width=WIDTH,
        left=LEFT,
        line_height=LINE_HEIGHT,
        right=RIGHT,
    )


def html_environment() -> jinja2.Environment:
    """The environment of our templates of HTML pages."""
    return jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True)


def is_on_scale(config: STSRegressionConfig) -> bool:
    """Whether the scores of a trained head are on the label scale."""
    return config.grading is not None or config.loss_type not in UNSCALED_LOSSES


def _report_template() -> jinja2.Template:
    environment = html_environment()
    environment.filters |= {"percent": percent, "points": _points}
    return environment.from_string(REPORT_TEMPLATE.read_text(encoding="utf-8"))


def _points(difference: float) -> str:
    """A difference of correlations in points, with its sign."""
    return f"{100 * difference:+.2f}".replace("-", "−")


def evaluates_often(log_history: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a run was measured on development pairs at two steps or more, so that one of them is the best."""
    return len({entry["step"] for entry in log_history if any(key.startswith("eval_") for key in entry)}) > 1


def correlations(results: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yields each split with Spearman's correlations in percent: cosine before training, cosine and score after it."""
    before, after = (results.get(f"{state} training", {}) for state in ("before", "after"))
    for split, measures in after.items():
        untouched = percent(before.get(split, {}).get("spearman_cosine"))
        cosine, score = (percent(measures.get(f"spearman_{name}")) for name in REPORTED_SCORES)
        yield DATA_SPLITS.get(split, split), untouched, cosine, score


def confusion_of_grades(scores: np.ndarray, gold: np.ndarray, config: STSRegressionConfig) -> np.ndarray:
    """
    Counts of grades.

    Args:
        scores: scores as in predictions, shape (pairs,).
        gold: labels, shape (pairs,).
        config: the configuration with the label scale and, if they were learned, cut points between grades.

    Returns:
        Counts of shape (grades, grades): a row for each grade of the labels, a column for each grade of the scores.
    """
    from sklearn.metrics import confusion_matrix  # slow to load, and not needed before training

    found = grade_indices(torch.from_numpy(scores), config).numpy()
    true = nearest_label_index(torch.tensor(gold), config.label_values).numpy()
    return confusion_matrix(true, found, labels=np.arange(len(config.label_values)))


def measures_of_grades(confusion: np.ndarray, config: STSRegressionConfig) -> dict[str, float]:
    """The measures of [`measure_grades`] for counts of shape (grades, grades)."""
    true, found = (np.repeat(index.ravel(), confusion.ravel()) for index in np.indices(confusion.shape))
    return measure_grades(found, true, np.array(config.label_values))


def grading_rows(grading: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields title and value of each known property of the grading, if it was measured; else nothing."""
    report = grading.get("report")
    known = {**grading, **report} if report else {}
    for key, title in GRADING_ROWS.items():
        if key == "level" and known.get("coverage") is None:  # there are no intervals
            continue
        if (value := known.get(key)) is not None:
            number = 100 * value if key in IN_PERCENT else value
            yield title, f"{number:,}" if key == "num_pairs" else f"{number:.2f}"


def coverage_rows(grading: Mapping[str, Any], config: STSRegressionConfig) -> Iterator[tuple[str, str, str]]:
    """Yields name, number of pairs and coverage of intervals in percent of each grade, if known and grades are few."""
    if len(config.label_values) > GRADES_SHOWN:
        return
    titles = {f"{value:g}": grade_title(config, number) for number, value in enumerate(config.label_values)}
    for row in (grading.get("report") or {}).get("coverage_by_grade") or []:
        grade = f"{row['grade']:g}"
        yield titles.get(grade, grade), f"{row['pairs']:,}", percent(row["coverage"])


def coverage_of_scores(scores: np.ndarray, gold: np.ndarray, config: STSRegressionConfig) -> float | None:
    """The share of labels within the intervals of their scores; `None` if no intervals were learned."""
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
    The pairs whose scores are farthest from their labels, the worst first: at most 20 and a fifth of all pairs.

    A pair within a tenth of the scale, or half a grade, of its label is not among them. Scores that are not on the
    label scale are compared by their ranks.

    Args:
        pairs: the pairs, with `sentence1` and `sentence2`.
        scores: scores of shape (pairs,).
        gold: labels of shape (pairs,).
        untouched: cosines before training, shape (pairs,).
        config: the configuration with the label scale.
        on_scale: whether the scores are on it.

    Returns:
        For each pair, its `texts`, its `line` in the file, if known, its `label`, its `score`, its cosine `before`
        training, and the `places` of label and score in percent of the scale, or of the ranks.
    """
    low, high = config.label_values[0], config.label_values[-1]
    if on_scale:
        places = [np.clip((values - low) / (high - low), 0, 1) for values in (gold, scores)]
        gaps, small = np.abs(scores - gold), max(SMALL_GAP * (high - low), config.label_step / 2)
    else:
        places = [(rankdata(values) - 1) / max(1, len(values) - 1) for values in (gold, scores)]
        gaps, small = np.abs(places[0] - places[1]), SMALL_GAP
    most = min(PAIRS_QUOTED, math.ceil(SHARE_QUOTED * len(gold)))
    for row in np.argsort(-gaps, kind="stable")[:most].tolist():
        if gaps[row] <= small:
            return
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
    """The name and value of a label that is a grade; the value of a label between grades."""
    if not are_grades([label], config.label_values):
        return f"{label:.4g}"
    number = int(nearest_label_index(torch.tensor(label), config.label_values))
    title = grade_title(config, number)
    return title if config.label_names is None else f"{title} ({config.label_values[number]:g})"


def data_rows(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the sets of each split: source, number of pairs, scale, and the test pairs found among them."""
    for split, title in DATA_SPLITS.items():
        leaks = record.get("leakage", {}).get(split, {})
        for part in record.get("data", {}).get(split, {}).get("parts", []):
            scale, leak = part.get("label_scale"), leaks.get(part["source"])
            whole = held_out_of(part["source"])
            yield {
                "split": title,
                "source": part["source"] if whole is None else f"held out of {whole}",
                "pairs": f"{part['pairs']:,}",
                "unlabelled": f"{part.get('unlabelled', 0):,}",
                "scale": "–" if scale is None else f"{scale[0]:g} to {scale[-1]:g}",
                "found": "–" if leak is None else f"{leak['found']:,}",
                "removed": "–" if leak is None else f"{leak['removed']:,}",
            }


def cost_rows(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields title and value of time, memory, machine and versions, if known."""
    environment, training = record.get("environment", {}), record.get("training") or {}
    memory = record.get("peak_memory_bytes", {})
    stages = record.get("stages", [])
    known = {
        "in all, evaluation included": _time(seconds_of_all(record) if "seconds" in record else None),
        "training": _time(training.get("train_runtime")),
        "earlier stages": _time(sum(stage.get("seconds", 0) for stage in stages)) if stages else None,
        "training the folds": _time(record["folds"]["seconds"]) if "folds" in record else None,
        "first round, without the held-out pairs": _time(record["refit"]["seconds"]) if "refit" in record else None,
        "training on bundled pairs": _time_of_bundled(record.get("bundled_pairs", {})),
        "training the quarter and the half": _time(record.get("learning_curve", {}).get("seconds")),
        "optimizer steps": None if training.get("steps") is None else f"{training['steps']:,}",
        "peak memory": _gibibytes(memory.get("process")),
        "peak memory of the GPU": _gibibytes(memory.get("gpu")),
        **{name: environment.get(name) for name in ("device", "processes", "threads", "precision")},
        "seed": record.get("seed"),
        **{package: environment.get(package) for package in PACKAGES_SHOWN},
        "commit": environment.get("commit"),
    }
    yield from ((title, str(value)) for title, value in known.items() if value is not None)


def _time_of_bundled(bundled: Mapping[str, Any]) -> str | None:
    time = _time(bundled.get("seconds"))
    return f"{time} (stored by an earlier run)" if bundled.get("is_stored") else time


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or f"{seconds:.1f} s"


def _gibibytes(size: int | None) -> str | None:
    return None if size is None else f"{size / 2**30:.1f} GiB"
