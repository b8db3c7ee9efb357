"""The results of a sweep side by side: mean and standard deviation over seeds, and the tests against the baselines."""

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sts_regression.basics.files import check_folder
from sts_regression.basics.tables import (
    REPORTED_SCORES,
    aligned_table,
    markdown_table,
    percent,
    read_record,
    write_json,
)
from sts_regression.evaluation.plots import plot_cells
from sts_regression.evaluation.significance import NO_TEST, shown_difference, shown_p
from sts_regression.sweep.summary import AVERAGE, DEVELOPMENT, TEST, Summary, ranks_as_cosine, summarize

SUMMARY_STEM, SUMMARY_SUFFIXES = "summary", (".json", ".md", ".png")
WITH_SD = (DEVELOPMENT, TEST, AVERAGE)


def write_summary(output_dir: Path, runs: Mapping[str, Sequence[Path]], baselines: Sequence[str]) -> str:
    """Writes `summary.json`, `.md` and `.png` beside the runs. Returns the tables, with the first baseline only."""
    summary = summarize(runs, baselines)
    if not summary["cells"]:
        raise ValueError(f"{output_dir}: holds no finished run of these cells.")
    path = output_dir / SUMMARY_STEM
    write_json(summary, path.with_suffix(".json"))
    pages, screens = [], []
    for score in REPORTED_SCORES:
        if cells_of_table(summary, score):
            title = f"Spearman's correlation of the {score}, in percent, mean ± standard deviation over seeds"
            pages.append(f"{title}\n\n{summary_table(summary, score, baselines)}\n")
            narrow = aligned_table(summary_rows(summary, score, baselines[:1]))
            screens.append("\n".join(filter(None, (title, narrow, describe_tests(summary, score)))))
    path.with_suffix(".md").write_text("\n".join(pages), encoding="utf-8")
    plot_cells(summary["cells"], summary["headline"], headline_title(summary), path.with_suffix(".png"))
    return "\n\n".join(screens)


def check_summary(output_dir: Path) -> None:
    """Raises `ValueError` for a folder with files that the summary would replace, unless they are a summary."""
    path = output_dir / SUMMARY_STEM
    with suppress(ValueError):
        if "cells" in read_record(path.with_suffix(".json")):
            return
    check_folder("output_dir", output_dir, filter(Path.exists, map(path.with_suffix, SUMMARY_SUFFIXES)))


def read_summary(path: Path) -> Summary:
    """
    Reads the JSON file of [`write_summary`].

    Raises:
        ValueError: if there is no summary, or if an earlier version wrote it.
    """
    if not path.is_file():
        raise ValueError(f"{path}: no such summary. `sts-regression sweep …` writes it.")
    summary = read_record(path)
    if not isinstance(summary.get("tests"), int):
        raise ValueError(
            f"{path}: an earlier version wrote it, with other tests. Summarise the runs again with "
            "`sts-regression sweep … --summary_only`."
        )
    return summary


def headline_title(summary: Summary) -> str:
    """The measure in the tests of the tables and in the chart, in words."""
    if summary["headline"] == AVERAGE:
        return "average of the STS tasks"
    if summary["headline"] == DEVELOPMENT:
        return "development pairs"
    names = {name for cell in summary["cells"].values() for score in REPORTED_SCORES for name in cell.get(score, {})}
    return "mean of the test sets" if names - {DEVELOPMENT, TEST} else "test pairs"


def cells_of_table(summary: Summary, score: str) -> dict[str, Any]:
    """The cells that have the score, except heads that rank as the cosine does."""
    of_head, headline = score != REPORTED_SCORES[0], summary["headline"]
    return {
        name: cell
        for name, cell in summary["cells"].items()
        if score in cell and not (of_head and ranks_as_cosine(cell, headline))
    }


def summary_rows(summary: Summary, score: str, baselines: Sequence[str]) -> list[list[str]]:
    """
    A header, and a row for each cell of [`cells_of_table`].

    A row has the mean of each measure and the test against each baseline. Development pairs, test pairs and the
    average of the tasks also have the standard deviation over seeds.
    """
    cells = cells_of_table(summary, score)
    columns = list(dict.fromkeys(name for cell in cells.values() for name in cell[score]))
    columns.sort(key=lambda name: name != DEVELOPMENT)
    tests = [title for name in baselines for title in (f"against `{name}`", "p (Holm)")]
    rows = [["method", "seeds", *columns, *tests]]
    for name, cell in cells.items():
        row = [name, str(len(cell["seeds"]))]
        for column in columns:
            measured = cell[score].get(column, {})
            row.append(percent(measured.get("mean"), measured.get("sd") if column in WITH_SD else None))
        versus = cell[score].get(summary["headline"], {}).get("versus", {})
        for baseline in baselines:
            row += _test_cells(versus.get(baseline))
        rows.append(row)
    return rows


def summary_table(summary: Summary, score: str, baselines: Sequence[str]) -> str:
    """The rows of [`summary_rows`] in Markdown, followed by an explanation of the tests."""
    header, *rows = summary_rows(summary, score, baselines)
    table = markdown_table(header, [[f"`{name}`", *cells] for name, *cells in rows])
    return "\n\n".join(filter(None, (table, describe_tests(summary, score))))


def _test_cells(test: Mapping[str, float | None] | None) -> list[str]:
    """A difference in percent with its interval, and its p-value after Holm's correction."""
    if test is None:
        return [NO_TEST, NO_TEST]
    return [shown_difference(test), shown_p(test["p_holm"])]


def describe_tests(summary: Summary, score: str) -> str:
    """An explanation of the differences, intervals and p-values of a table; empty if the table has none."""
    headline, number, cells = summary["headline"], summary["tests"], cells_of_table(summary, score)
    tests_of = {name: list(cell[score].get(headline, {}).get("versus", {}).values()) for name, cell in cells.items()}
    tests = list(itertools.chain.from_iterable(tests_of.values()))
    over_seeds_alone = [
        f"`{name}`"
        for name, own in tests_of.items()
        if {test["pairs"] for test in own if test["p"] is not None} == {None}
    ]
    knows_pairs = any(test["pairs"] is not None for test in tests if test["p"] is not None)
    sentences = []
    if any(ranks_as_cosine(cell, headline) for cell in summary["cells"].values()):
        sentences.append("A head that maps the cosine has the same correlations as the cosine.")
    if tests and number:
        others = "other seeds and other test pairs" if knows_pairs else "other seeds on the same test pairs"
        sentences += [
            f"Differences refer to the {headline_title(summary)}.",
            f"95 % intervals (Student's t) hold for {others}.",
        ]
    if over_seeds_alone and not knows_pairs:
        sentences.append("Some runs kept no per-pair scores, so the tests hold for these test pairs only.")
    elif over_seeds_alone:
        named = ", ".join(over_seeds_alone)
        sentences.append(f"Runs of {named} kept no per-pair scores: their tests hold for these test pairs only.")
    if tests and number > 1:
        sentences.append(f"p is adjusted by Holm's method for {number} pairs of methods; intervals are not.")
    if any(test["p"] is None for test in tests):
        sentences.append("A method that trains is tested with two seeds or more.")
    return " ".join(sentences)
