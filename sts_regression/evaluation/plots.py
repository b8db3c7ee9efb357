"""Plots of the loss curve, of scores against labels, of the STS tasks, and of sweeps."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sts_regression.basics.tables import SPLIT_TITLES
from sts_regression.evaluation.measures import PairScores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JITTER = 0.08  # of the distance of two grades: separates points on the same grade
CELL_SHIFT = 0.15  # of the scores of a cell from the middle of its row
TASK_ROW_SHARE = 0.6  # share of the height of a row over which the scores of a task are spread


def plot_loss_curve(log_history: list[dict[str, Any]], path: Path) -> None:
    """
    Draws training loss, development loss and Spearman's correlation by optimizer step, each if logged twice or more.

    Without any of them, it writes no file.

    Args:
        log_history: entries of Trainer's state.
        path: PNG file to write.
    """
    figure = _figure(8, 4.5)
    losses = figure.add_subplot()
    for key, label in (("loss", "training loss"), ("eval_loss", "development loss")):
        points = [(entry["step"], entry[key]) for entry in log_history if key in entry]
        if len(points) > 1:
            losses.plot(*zip(*points, strict=True), label=label, marker="o" if key == "eval_loss" else None)
    losses.set(xlabel="optimizer step", ylabel="loss", title="Course of training")
    if sum("eval_spearman_cosine" in entry or "eval_spearman_head" in entry for entry in log_history) > 1:
        correlations = losses.twinx()
        correlations.set_ylabel("Spearman's correlation, development pairs")
        for key, label, style in (("eval_spearman_cosine", "cosine", "--"), ("eval_spearman_head", "head", ":")):
            points = [(entry["step"], entry[key]) for entry in log_history if key in entry]
            if points:
                correlations.plot(
                    *zip(*points, strict=True), linestyle=style, color="tab:green", marker=".", label=label
                )
    if any(axes.lines for axes in figure.axes):
        figure.legend(loc="outside lower center", ncols=4)
        figure.savefig(path, dpi=120)


def plot_scores(scores: PairScores, gold_scores: list[float], path: Path, split: str, label_step: float) -> None:
    """
    Draws the head's score and the cosine of each pair against its label.

    Args:
        scores: scores of the pairs.
        gold_scores: label of each pair.
        path: PNG file to write.
        split: name of the split, for the title.
        label_step: distance of two grades; points are spread sideways by a small part of it.
    """
    drawn = (("score", scores.head), ("cosine", scores.cosine))
    panels = [(title, values) for title, values in drawn if values is not None]
    figure = _figure(5 * len(panels), 4.5)
    spread = np.random.default_rng(0).uniform(-JITTER, JITTER, len(gold_scores)) * label_step
    for position, (title, values) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), position)
        axes.scatter(np.array(gold_scores) + spread, values, s=6, alpha=0.4)
        axes.set(xlabel="label", ylabel=title, title=f"{SPLIT_TITLES[split].capitalize()} pairs")
        if title == "score":
            low, high = min(gold_scores), max(gold_scores)
            axes.plot([low, high], [low, high], color="grey", linewidth=1)
    figure.savefig(path, dpi=120)


def plot_tasks(measures: Mapping[str, Any], title: str, path: Path) -> None:
    """
    Draws Spearman's correlation of each task and the average, with its 95 % interval, for each score of the model.

    Args:
        measures: see [`measure_tasks`].
        title: title with model and data.
        path: PNG file to write.
    """
    scores = list(measures["average"])
    rows = [*measures["tasks"].items(), ("average", measures["average"])]
    figure = _figure(7, 0.55 * len(rows) + 1.2)
    axes = figure.add_subplot()
    for number, score in enumerate(scores):
        values = np.array([task[score]["all"]["spearman"] for _, task in rows])
        bounds = np.array([task[score]["all"]["interval"] for _, task in rows])  # (rows, 2)
        heights = np.arange(len(rows)) + (number - (len(scores) - 1) / 2) * TASK_ROW_SHARE / len(scores)
        errors = np.abs(bounds.T - values)
        axes.errorbar(100 * values, heights, xerr=100 * errors, fmt="o", markersize=4, capsize=2, label=score)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set(xlabel="Spearman's correlation over all pairs, percent, with 95 % bootstrap interval", title=title)
    if len(scores) > 1:
        axes.legend()
    figure.savefig(path, dpi=120)


def plot_cells(cells: Mapping[str, Any], measure: str, title: str, path: Path) -> None:
    """
    Draws one measure of each cell of a sweep: a point per seed, a bar at the mean, those of the cosine above.

    Args:
        cells: see [`summarize`].
        measure: name of the measure in the cells.
        title: name of the measure for the plot.
        path: PNG file to write.
    """
    figure = _figure(7, 0.35 * len(cells) + 1.5)
    axes = figure.add_subplot()
    for color, score, shift in (("tab:blue", "cosine", -CELL_SHIFT), ("tab:orange", "head", CELL_SHIFT)):
        for row, cell in enumerate(cells.values()):
            if measure not in cell.get(score, {}):
                continue
            measured = cell[score][measure]
            values = 100 * np.array(measured["values"])
            axes.plot(values, [row + shift] * len(values), "o", color=color, markersize=4, alpha=0.5)
            axes.plot(100 * measured["mean"], row + shift, "|", color=color, markersize=8)
        axes.plot([], [], "o", color=color, label=score)
    axes.set_yticks(range(len(cells)), list(cells))
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    # Below the whole figure: beside long names of cells, the axes are too narrow for the label.
    figure.supxlabel(f"Spearman's correlation, {title}, percent; a point per seed", fontsize="medium")
    axes.legend()
    figure.savefig(path, dpi=120)


def _figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches."""
    from matplotlib.figure import Figure  # slow to load, and not needed before training

    return Figure(figsize=(width, height), layout="constrained")
