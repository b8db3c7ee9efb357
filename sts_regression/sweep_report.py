"""The results of a sweep side by side: mean and standard deviation over seeds, a paired test against a baseline."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sts_regression.bootstrap import NUM_RESAMPLES
from sts_regression.compare import describe_difference
from sts_regression.plots import plot_cells
from sts_regression.reporting import aligned_table, markdown_table, percent, write_json
from sts_regression.run_folder import RUN_FILE
from sts_regression.sts_evaluation import read_scores, resample_tasks

SUMMARY_STEM = "summary"  # with the suffixes .json, .md and .png
SCORES = ("cosine", "head")
AVERAGE, DEVELOPMENT = "average", "development"

Summary = Mapping[str, Any]  # see `summarize`


def write_summary(output_dir: Path, runs: Mapping[str, Sequence[Path]], baselines: Sequence[str]) -> str:
    """Writes `summary.json`, `.md` and `.png` beside the runs; returns the tables, with the first baseline alone."""
    summary = summarize(runs, baselines)
    if not summary["cells"]:
        raise ValueError(f"{output_dir}: holds no finished run of these cells.")
    path = output_dir / SUMMARY_STEM
    write_json(summary, path.with_suffix(".json"))
    titles = {
        score: f"Spearman's correlation of the {score}, in percent, mean ± standard deviation"
        for score in SCORES
        if any(score in cell for cell in summary["cells"].values())
    }
    markdown = [f"{title}\n\n{comparison_table(summary, score, baselines)}\n" for score, title in titles.items()]
    path.with_suffix(".md").write_text("\n".join(markdown), encoding="utf-8")
    plot_cells(summary["cells"], path.with_suffix(".png"))
    narrow = {score: aligned_table(summary_rows(summary, score, baselines[:1])) for score in titles}
    return "\n\n".join(f"{titles[score]}\n{table}" for score, table in narrow.items())


def summarize(runs: Mapping[str, Sequence[Path]], baselines: Sequence[str]) -> Summary:
    """
    What the finished runs of a sweep measured.

    Args:
        runs: folders by the name of the cell. What is not finished is left out.
        baselines: the cells that all others are tested against.

    Returns:
        `dict` with `cells`; of each cell its `seeds`, the mean `seconds` of a run, and for each score,
        `cosine` and `head`, by the names of the seven tasks, `average` and `development`, as far as every run
        measured them, the `values` of Spearman's correlation by seed, their `mean`, and `sd`, the standard deviation,
        `None` for one seed. The score's `versus` holds for each baseline, task and the average the `difference` of
        the means to the baseline's, its 95 % interval `low` to `high`, and `p`; see [`compare_seeds`]. Where a
        baseline has no trained head, its cosine takes the place.
    """
    summary: dict[str, Any] = {"cells": {}}
    samples: dict[str, dict[str, list[dict[str, np.ndarray]]]] = {}
    for cell, asked_for in runs.items():
        folders = [folder for folder in asked_for if (folder / RUN_FILE).is_file()]
        if not folders:
            continue
        records = [json.loads((folder / RUN_FILE).read_text(encoding="utf-8")) for folder in folders]
        summary["cells"][cell] = {
            "seeds": [record["seed"] for record in records],
            "seconds": float(np.mean([_seconds(record) for record in records])),
        }
        for score in SCORES:
            correlations = [_correlations(record, score) for record in records]
            names = [name for name in correlations[0] if all(name in run for run in correlations)]
            if names:
                summary["cells"][cell][score] = {
                    name: _describe([run[name] for run in correlations]) for name in names
                }
        scores = [score for score in SCORES if AVERAGE in summary["cells"][cell].get(score, {})]
        resampled = [resample_tasks(read_scores(folder), scores) for folder in folders if scores]
        samples[cell] = {score: [of_run[score] for of_run in resampled] for score in scores}
    for cell, by_score in samples.items():
        for score, of_runs in by_score.items():
            measured = summary["cells"][cell][score]
            measured["versus"] = {}
            for baseline in baselines:
                base_score = score if score in samples.get(baseline, {}) else "cosine"
                base_runs = samples.get(baseline, {}).get(base_score)
                if base_runs is None or (cell, score) == (baseline, base_score):
                    continue
                base = summary["cells"][baseline][base_score]
                measured["versus"][baseline] = {
                    name: {"difference": measured[name]["mean"] - base[name]["mean"], **test}
                    for name, test in compare_seeds(base_runs, of_runs).items()
                }
    return summary


def _seconds(record: Mapping[str, Any]) -> float:
    return sum(stage["seconds"] for stage in (*record.get("stages", []), record))


def _correlations(record: Mapping[str, Any], score: str) -> dict[str, float]:
    """Spearman's correlations of one run: of the tasks, their average and the development pairs, where measured."""
    found = {}
    tasks = record.get("sts_tasks") or {"tasks": {}, "average": {}}
    for name, measures in {**tasks["tasks"], AVERAGE: tasks["average"]}.items():
        if score in measures:
            found[name] = measures[score]["all"]["spearman"]
    states = list((record.get("results") or {}).values())
    measured = states[-1].get("validation", {}) if states else {}
    if f"spearman_{score}" in measured:
        found[DEVELOPMENT] = measured[f"spearman_{score}"]
    return found


def _describe(values: Sequence[float]) -> dict[str, Any]:
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "sd": sd, "values": list(values)}


def compare_seeds(
    first: Sequence[Mapping[str, np.ndarray]], second: Sequence[Mapping[str, np.ndarray]]
) -> dict[str, dict[str, float]]:
    """
    Paired bootstrap test of the difference between the mean correlations of two cells over their seeds.

    A resample draws pairs of sentences, the same ones for both cells, and seeds of each cell, all with replacement:
    the interval holds for other pairs and other seeds.

    Args:
        first: for each seed what [`resample_tasks`] returns.
        second: likewise, of the other cell.

    Returns:
        `dict` by name of the task, and `average`: the 95 % interval `low` to `high` of second less first, and `p`.
    """
    generator = np.random.default_rng(0)
    drawn = [generator.integers(len(runs), size=(NUM_RESAMPLES, len(runs))) for runs in (first, second)]
    rows = np.arange(NUM_RESAMPLES)[:, None]
    compared = {}
    for name in first[0]:
        means = [
            np.stack([run[name] for run in runs], axis=1)[rows, seeds].mean(axis=1)  # (resamples,)
            for runs, seeds in zip((first, second), drawn, strict=True)
        ]
        compared[name] = describe_difference(means[1] - means[0])
    return compared


def summary_rows(summary: Summary, score: str, baselines: Sequence[str]) -> list[list[str]]:
    """
    A header, and a row for each cell that has the score: mean ± standard deviation over seeds for the development
    pairs and the average of the tasks, means for each task, and the test against each baseline.
    """
    cells = {name: cell for name, cell in summary["cells"].items() if score in cell}
    columns = list(dict.fromkeys(name for cell in cells.values() for name in cell[score] if name != "versus"))
    columns.sort(key=[DEVELOPMENT, *(name for name in columns if name != DEVELOPMENT)].index)
    rows = [["method", "seeds", *columns, *(title for name in baselines for title in (f"against `{name}`", "p"))]]
    for name, cell in cells.items():
        row = [name, str(len(cell["seeds"]))]
        for column in columns:
            measured = cell[score].get(column, {})
            row.append(percent(measured.get("mean"), measured.get("sd") if column in (DEVELOPMENT, AVERAGE) else None))
        for baseline in baselines:
            row += _difference_cells(cell[score].get("versus", {}).get(baseline, {}).get(AVERAGE))
        rows.append(row)
    return rows


def comparison_table(summary: Summary, score: str, baselines: Sequence[str]) -> str:
    """The rows of [`summary_rows`] in Markdown."""
    header, *rows = summary_rows(summary, score, baselines)
    return markdown_table(header, [[f"`{name}`", *cells] for name, *cells in rows])


def _difference_cells(test: Mapping[str, float] | None) -> list[str]:
    """A difference in percent with its interval, and its p-value."""
    if test is None:
        return ["–", "–"]
    difference, low, high = (100 * test[key] for key in ("difference", "low", "high"))
    return [f"{difference:+.2f} ({low:+.2f} to {high:+.2f})", f"{test['p']:.3f}"]
