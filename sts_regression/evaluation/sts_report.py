"""The seven-task evaluation as a table on the screen, as JSON, CSV and Markdown, and as a chart."""

import csv
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sts_regression.basics.tables import aligned_table, percent, write_json
from sts_regression.data.sts_tasks import STSTask
from sts_regression.evaluation.plots import plot_tasks
from sts_regression.evaluation.sts_evaluation import (
    TASK_CORRELATIONS,
    measure_tasks,
    score_tasks,
    write_scores,
)
from sts_regression.models.encoding import Scorer

logger = logging.getLogger(__name__)

REPORT_STEM = "sts_tasks"  # with the suffixes .json, .csv, .md and .png
REPORT_COLUMNS = ("task", "subset", "pairs", "score", "aggregation", "correlation", "value", "low", "high")
SUBSET_INDENT = "  "

Measures = Mapping[str, Any]  # see `measure_tasks`


def evaluate_sts_tasks(tasks: Sequence[STSTask], scorer: Scorer, name: str, folder: Path) -> dict[str, Any]:
    """
    Scores and measures the tasks, logs the table, and writes the report and the scores of each pair.

    Args:
        tasks: see [`load_sts_tasks`].
        scorer: see [`score_tasks`].
        name: name of the model.
        folder: folder for the files.

    Returns:
        The measures, see [`measure_tasks`].
    """
    scored_pairs = score_tasks(tasks, scorer)
    measures = measure_tasks(scored_pairs)
    write_scores(scored_pairs, folder)
    write_report(measures, name, folder)
    files = f"As JSON, CSV, Markdown, chart: {folder / REPORT_STEM}.*"
    logger.info(f"\n{name}, correlations in percent (Spearman's unless said)\n{tasks_on_screen(measures)}\n\n{files}")
    return measures


def write_report(measures: Measures, name: str, folder: Path) -> None:
    """Writes `sts_tasks.json`, `.csv`, `.md` and `.png`; `name` is the model's."""
    path = folder / REPORT_STEM
    write_json(measures, path.with_suffix(".json"))
    path.with_suffix(".md").write_text(
        f"{name}, correlations in percent\n\n{tasks_in_markdown(measures)}\n", encoding="utf-8"
    )
    with path.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, REPORT_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_csv_rows(measures))
    plot_tasks(measures, name, path.with_suffix(".png"))


def tasks_on_screen(measures: Measures) -> str:
    """A table with a line for each task and subset and for the average, correlations in percent, columns aligned."""
    return aligned_table(list(_table(measures)))


def tasks_in_markdown(measures: Measures) -> str:
    """The same table in Markdown."""
    header, *rows = _table(measures)
    marks = ["---", *["---:"] * (len(header) - 1)]
    lines = [header, marks, *([row[0].replace(SUBSET_INDENT, "&emsp;"), *row[1:]] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _table(measures: Measures) -> Iterator[list[str]]:
    """Header and rows: all columns for the model's first score, Spearman's over all pairs for further scores."""
    first, *others = measures["average"]
    yield ["task", "pairs", f"{first} (all)", "95 % interval", "mean", "wmean", "Pearson", *others]
    for name, task in measures["tasks"].items():
        yield [name, f"{task['pairs']:,}", *_cells(task, first, others)]
        for subset, part in task["subsets"].items():
            correlations = [percent(part[score]["spearman"]) for score in (first, *others)]
            yield [
                SUBSET_INDENT + subset,
                f"{part['pairs']:,}",
                correlations[0],
                "",
                "",
                "",
                percent(part[first]["pearson"]),
                *correlations[1:],
            ]
    yield ["average", "", *_cells(measures["average"], first, others)]


def _cells(column: Measures, first: str, others: Sequence[str]) -> list[str]:
    by_aggregation = column[first]
    low, high = by_aggregation["all"]["interval"]
    return [
        percent(by_aggregation["all"]["spearman"]),
        f"{percent(low)}–{percent(high)}",
        percent(by_aggregation["mean"]["spearman"]),
        percent(by_aggregation["wmean"]["spearman"]),
        percent(by_aggregation["all"]["pearson"]),
        *(percent(column[score]["all"]["spearman"]) for score in others),
    ]


def _csv_rows(measures: Measures) -> Iterator[dict[str, Any]]:
    """A row for each correlation, with task (or "average"), subset, score and aggregation."""
    for name, task in [*measures["tasks"].items(), ("average", measures["average"])]:
        for score in measures["average"]:
            for aggregation, values in task[score].items():
                place = {"task": name, "pairs": task.get("pairs"), "score": score, "aggregation": aggregation}
                for kind in TASK_CORRELATIONS:
                    low, high = values.get("interval", (None, None)) if kind == "spearman" else (None, None)
                    yield {**place, "correlation": kind, "value": values[kind], "low": low, "high": high}
            for subset, part in task.get("subsets", {}).items():
                place = {"task": name, "subset": subset, "pairs": part["pairs"], "score": score}
                for kind in TASK_CORRELATIONS:
                    yield {**place, "correlation": kind, "value": part[score][kind]}
