"""The tables and the chart of `graded_pairs.py`: each method on each budget, by set and as the mean over the sets.

Seeds are the unit: another seed of a method on a set is another draw of its pairs and of its training. If the scores
of test pairs are kept, these are resampled, too. Sets are blocks: each has its own mean and variance, and their mean
does not generalise to other sets.
"""

import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from benchmarks.graded_data import ALL_SETS
from benchmarks.graded_methods import FEWEST_OF_A_GRADE, LIBRARY_METHODS, METHODS
from sts_regression.basics.tables import markdown_table, percent, read_record, write_json
from sts_regression.evaluation.bootstrap import CONFIDENCE, bootstrap_spearman
from sts_regression.evaluation.significance import (
    NO_TEST,
    SeedScores,
    Test,
    banerjee_test,
    holm,
    over_seeds,
    shown_difference,
    shown_p,
    variance_parts,
    zero_like,
    zero_test,
)
from sts_regression.grading.grading import measure_grades
from sts_regression.grading.held_out import nearest_grade

GRADED_TABLE = "graded_pairs"  # with the suffixes .json, .md and .png
DEFAULT_METHOD = "default"  # the command without options
MEANS = ("spearman_cosine", "mae", "quadratic_kappa")  # besides `spearman`, which has an interval
NEAREST = ("mae_nearest", "quadratic_kappa_nearest")  # of the grade nearest to the score that a user reads
INTERVAL_MEASURES = ("coverage", "coverage_of_a_grade", "width")
COSTS = ("seconds", "peak_memory_bytes")
COVERAGE, COVERAGE_OF_GRADE = (0.88, 0.92), 0.85  # the aims for 90 % intervals
UNTOUCHED = "untouched"
EMPHASIS, QUIET = "tab:red", "tab:blue"
ENDS = ("low", "high")
SPAN = 20.0  # the chart reaches this many points below the best method
SEEDS_OF_SATTERTHWAITE = 5  # of each block, for Satterthwaite's degrees of freedom

NO_SUMMARY: Mapping[str, Any] = {"commits": [], "uncommitted_changes": False, "sets": [], "budgets": {}}

GradedLine = dict[str, Any]  # a run, from a line of runs.jsonl
CellLines = Sequence[GradedLine]  # the runs of a method on a budget of a set, by seed
Resamples = tuple[np.ndarray, np.ndarray]  # see `resample_kept`
Known = Mapping[str, Resamples | None]  # by the key of the run


def read_runs(path: Path) -> list[GradedLine]:
    """The runs in the lines of a file; empty if there is no such file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def write_graded_tables(lines: Sequence[GradedLine], path: Path, scores: Path) -> None:
    """
    Writes the tables as JSON and Markdown, and the chart. A budget without runs stays as it is in the JSON file.

    Args:
        lines: runs with the settings that are chosen for their method and budget.
        path: path of the files, without a suffix.
        scores: folder of the scores of test pairs.

    Raises:
        ValueError: if there are no runs.
    """
    if not lines:
        raise ValueError(f"{path.parent}: holds no finished run of the chosen settings. Run `graded_pairs.py run …`.")
    kept = path.with_suffix(".json")
    before = read_record(kept) if kept.is_file() else NO_SUMMARY
    lines = [{**line, "test": {**line["test"], **measure_nearest(scores, line)}} for line in lines]
    summary = summarize_graded(lines, functools.partial(resample_kept, scores), before)
    write_json(summary, kept)
    path.with_suffix(".md").write_text(graded_page(summary, path.name), encoding="utf-8")
    draw_graded(summary, path.with_suffix(".png"))


def resample_kept(folder: Path, record: GradedLine) -> Resamples | None:
    """
    Spearman's correlation of a run on resampled test pairs.

    Args:
        folder: folder of the scores of test pairs.
        record: the run.

    Returns:
        Array of shape (resamples,), and the number of pairs in each group of pairs that share texts, shape (groups,);
        `None` if no scores are kept.
    """
    kept = _read_kept(folder, record)
    if kept is None:
        return None
    score, gold, groups = kept
    samples = bootstrap_spearman({"score": score}, gold, groups, {"all": np.arange(len(gold))})
    return samples["all"]["score"], np.unique(groups, return_counts=True)[1]


def measure_nearest(folder: Path, record: GradedLine) -> dict[str, float]:
    """MAE and quadratic weighted kappa of the grade nearest to the score of a run; empty if no scores are kept."""
    kept = _read_kept(folder, record)
    if kept is None:
        return {}
    score, gold, _ = kept
    values = np.arange(ALL_SETS[record["set"]].top_grade + 1.0)
    measured = measure_grades(nearest_grade(score, values), nearest_grade(gold, values), values)
    return dict(zip(NEAREST, (measured["mae"], measured["quadratic_kappa"]), strict=True))


def _read_kept(folder: Path, record: GradedLine) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Scores, labels and groups of the test pairs of a run, shape (pairs,) each; `None` if no scores are kept."""
    of_set, of_run = folder / f"{record['set']}.npz", folder / f"{record['key']}.npz"
    if not (of_set.is_file() and of_run.is_file()):
        return None
    with np.load(of_set) as pairs, np.load(of_run) as kept:
        return kept["score"].astype(float), pairs["gold"], pairs["group"]


def summarize_graded(
    lines: Sequence[GradedLine],
    resample: Callable[[GradedLine], Resamples | None],
    before: Mapping[str, Any] = NO_SUMMARY,
) -> dict[str, Any]:
    """
    Summarises the runs.

    Args:
        lines: the runs.
        resample: see [`resample_kept`].
        before: an earlier summary, of which the budgets without runs are kept.

    Returns:
        A `dict` with the `commits` of the runs, whether any had `uncommitted_changes`, the names of the `sets`, the
        number of `tests`, and by budget

        - `methods`: for each method, `by_set` and `mean`. `by_set` has the number of `seeds` of each set and their
          mean measures. `mean` is the mean over the sets, with the ends `low` and `high` of the 95 % interval of
          Spearman's correlation; `None` if the method has not been run on all sets of the budget;
        - `gains`: for each method, the [`paired_test`] of its differences from the untouched encoder;
        - `versus`: the same tests of `default` against the untouched encoder and each method of sentence-transformers,
          with `p_holm`, adjusted for all these tests on all budgets.
    """
    cells: dict[str, dict[str, dict[str, list[GradedLine]]]] = {}
    for line in sorted(lines, key=lambda line: line["seed"]):
        of_budget = cells.setdefault(line["budget"], {})
        of_budget.setdefault(line["method"], {}).setdefault(line["set"], []).append(line)
    budgets = {}
    known = {line["key"]: resample(line) for line in lines}
    untouched = _untouched_by_set(lines, known)
    for budget, of_methods in cells.items():
        sets = [name for name in ALL_SETS if any(name in by_set for by_set in of_methods.values())]
        methods = {name: of_methods[name] for name in METHODS if name in of_methods}
        if UNTOUCHED in methods:
            methods[UNTOUCHED] = {name: untouched[name] for name in methods[UNTOUCHED]}
        budgets[budget] = {
            "methods": {name: describe_method(by_set, sets, known, name) for name, by_set in methods.items()},
            "gains": {
                name: paired_test(by_set, methods[UNTOUCHED], sets, known)
                for name, by_set in methods.items()
                if UNTOUCHED in methods and name != UNTOUCHED
            },
            "versus": {
                name: paired_test(of_methods[DEFAULT_METHOD], methods[name], sets, known)
                for name in (UNTOUCHED, *LIBRARY_METHODS)
                if name in methods and DEFAULT_METHOD in methods
            },
        }
    budgets = {**before["budgets"], **budgets}
    tests = {(budget, name): test for budget in budgets for name, test in budgets[budget]["versus"].items()}
    adjusted = holm({key: test["p"] for key, test in tests.items() if test["p"] is not None})
    for key, test in tests.items():
        test["p_holm"] = adjusted.get(key)
    names = {line["set"] for line in lines} | {*before["sets"]}
    return {
        "commits": sorted({str(line["commit"]) for line in lines} | {*before["commits"]}),
        "uncommitted_changes": before["uncommitted_changes"] or any(line["uncommitted_changes"] for line in lines),
        "sets": [name for name in ALL_SETS if name in names],
        "tests": len(adjusted),
        "budgets": dict(sorted(budgets.items(), key=lambda item: int(item[0]) if item[0].isdigit() else math.inf)),
    }


def _untouched_by_set(lines: Sequence[GradedLine], known: Known) -> dict[str, list[GradedLine]]:
    """For each set, a run of the untouched encoder for all budgets: one with kept scores, if any has them."""
    found: dict[str, list[GradedLine]] = {}
    for line in sorted(lines, key=lambda line: (known[line["key"]] is None, line["seed"])):
        if line["method"] == UNTOUCHED:
            found.setdefault(line["set"], [line])
    return found


def describe_method(by_set: Mapping[str, CellLines], sets: Sequence[str], known: Known, name: str) -> dict[str, Any]:
    """The measures of a method on a budget, see [`summarize_graded`]."""
    described = {
        of_set: {
            "seeds": len(cell),
            **{key: _mean(cell, key) for key in ("spearman", *MEANS, *NEAREST, *INTERVAL_MEASURES, *COSTS)},
        }
        for of_set, cell in ((of_set, by_set[of_set]) for of_set in sets if of_set in by_set)
    }
    if len(described) < len(sets):
        return {"settings": by_set[next(iter(by_set))][0]["settings"], "by_set": described, "mean": None}
    blocks = [_seed_scores([by_set[of_set]], known, METHODS[name].trains) for of_set in sets]
    test = blocked_test(blocks)
    means = {key: _mean_over_sets([described[of_set][key] for of_set in sets]) for key in (*MEANS, *COSTS)}
    return {
        "settings": by_set[sets[0]][0]["settings"],
        "by_set": described,
        "mean": {"spearman": test["difference"], "low": test["low"], "high": test["high"], **means},
    }


def _mean(cell: CellLines, key: str) -> float | None:
    values = [record[key] if key in COSTS else record["test"].get(key) for record in cell]
    return None if None in values else float(np.mean(values))


def _mean_over_sets(values: Sequence[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return float(np.mean(found)) if len(found) == len(values) else None


def paired_test(
    ours: Mapping[str, CellLines], theirs: Mapping[str, CellLines], sets: Sequence[str], known: Known
) -> dict[str, Any]:
    """
    The paired test of two methods on a budget: their differences on the seeds of each set that both have.

    A method that does not train has one run, which counts for all seeds.

    Returns:
        The result of [`blocked_test`], with the number of `sets` and the smallest number of `seeds` of a set. If there
        is a p-value, `largest` is the largest part of the variance: its set, whether seeds or test pairs vary, and its
        share; and `without_it` is the test of the other sets.
    """
    blocks: dict[str, SeedScores] = {}
    for name in sets:
        first, second = ({record["seed"]: record for record in cells.get(name, [])} for cells in (ours, theirs))
        if second and not METHODS[next(iter(second.values()))["method"]].trains:
            second = dict.fromkeys(first, next(iter(second.values())))
        if seeds := sorted(first.keys() & second.keys()):
            blocks[name] = _seed_scores([[cell[seed] for seed in seeds] for cell in (first, second)], known, True)
    if not blocks:
        return {"difference": None, "low": None, "high": None, "p": None, "test_pairs": False, "sets": 0, "seeds": 0}
    test = blocked_test(list(blocks.values()))
    fewest = min(len(block.values) for block in blocks.values())
    test |= {"sets": len(blocks), "seeds": fewest}
    if test["p"] is None or len(blocks) == 1:
        return {**test, "largest": None, "without_it": None}
    largest = _largest(blocks)
    others = blocked_test([block for name, block in blocks.items() if name != largest[0]])
    return {**test, "largest": largest, "without_it": others}


def _largest(blocks: Mapping[str, SeedScores]) -> tuple[str, str, float]:
    """The largest part of the variance of a mean over blocks: the block, seeds or test pairs, and the share."""
    parts = {
        (name, varies): part
        for name, block in blocks.items()
        for varies, (part, _) in zip(("seeds", "test pairs"), variance_parts(block, zero_like(block)), strict=False)
    }
    name, varies = max(parts, key=parts.__getitem__)
    return name, varies, parts[name, varies] / math.fsum(parts.values())


def _seed_scores(cells: Sequence[CellLines], known: Known, trains: bool) -> SeedScores:
    """Test correlations of a method by seed; for two methods, the first less the second."""
    signs = (1, -1)
    values = [
        sum(sign * record["test"]["spearman"] for sign, record in zip(signs, records, strict=False))
        for records in zip(*cells, strict=True)
    ]
    kept = [[known[record["key"]] for record in cell] for cell in cells]
    if any(found is None for of_cell in kept for found in of_cell):
        return over_seeds(values, trains)
    samples = [np.stack([found[0] for found in of_cell if found is not None]) for of_cell in kept]
    resampled = sum(sign * of_cell for sign, of_cell in zip(signs, samples, strict=False))
    _, sizes = kept[0][0] or (None, ())
    return over_seeds(values, trains, np.asarray(resampled), sizes)


def blocked_test(blocks: Sequence[SeedScores]) -> Test:
    """
    The mean over blocks, and whether it is zero.

    The variance of a block is that of [`zero_test`]. Variances of independent blocks add up. If test pairs are
    resampled and each block has five seeds, Satterthwaite's degrees of freedom hold the level. With fewer seeds, or if
    only seeds vary, a part with few degrees of freedom may cause most of the variance, and they do not. Each part then
    has its own quantile, see [`difference_test`].

    Args:
        blocks: values of each block by seed.

    Returns:
        A `dict` with `difference`, the mean; `low` and `high`, the ends of its 95 % interval; `p`, two-sided; and
        whether all blocks resample `test_pairs`. The interval and p are `None` if a block that trains has one seed, or
        if nothing varies in a block.
    """
    test_pairs = all(block.resampled is not None for block in blocks)
    mean = float(np.mean([block.mean for block in blocks]))
    if any(zero_test(block)["p"] is None for block in blocks):
        return {"difference": mean, "low": None, "high": None, "p": None, "test_pairs": test_pairs}
    parts = [
        (part / len(blocks) ** 2, degrees)
        for block in blocks
        for part, degrees in variance_parts(block, zero_like(block))
    ]
    if not test_pairs or any(len(block.values) < SEEDS_OF_SATTERTHWAITE for block in blocks if block.trains):
        return {"difference": mean, **banerjee_test(mean, parts), "test_pairs": test_pairs}
    variance = math.fsum(part for part, _ in parts)
    degrees = variance**2 / math.fsum(part**2 / own for part, own in parts)
    error, quantile = math.sqrt(variance), float(stats.t.ppf((1 + CONFIDENCE) / 2, degrees))
    return {
        "difference": mean,
        "low": mean - quantile * error,
        "high": mean + quantile * error,
        "p": float(2 * stats.t.sf(abs(mean) / error, degrees)),
        "test_pairs": True,
    }


def graded_page(summary: Mapping[str, Any], chart: str) -> str:
    """The tables in Markdown."""
    sets = {name: ALL_SETS[name] for name in summary["sets"]}
    sections = [budget_section(budget, found, summary["sets"]) for budget, found in summary["budgets"].items()]
    return f"""\
# Gain on your own graded pairs

Generated by `python benchmarks/graded_pairs.py table` from the runs in `runs.jsonl`. `{DEFAULT_METHOD}` is the command
without options; `1_epoch` stands for the settings of sentence-transformers' training overview. If a method has a
setting, development pairs chose it (`choice.json`). Spearman's correlation, in percent, between the labels of test
pairs and the score that a user reads: the head's, or the cosine if there is no head. Means over seeds, with their
number in parentheses. The mean of the sets has a 95 % interval for other seeds and, if the scores of test pairs are
kept, other test pairs; pairs that share a text are resampled together. MAE (in grades of the set) and quadratic
weighted kappa are those of the grade that a method gives, or of the one nearest to its score. Seconds and memory are
those of training, on one thread beside other runs, on several machines: compare them only roughly. With few pairs, the
seconds of `{DEFAULT_METHOD}` include the training on bundled pairs, which later runs with the same encoder skip.
`{DEFAULT_METHOD}_without_` rows lack one part of the default, and their seconds do not include training on bundled
pairs; `cosine` lacks all parts. `linear` is the paper's head; `linear_from_mean` starts at the mean label, and
`linear_from_cosine` as the cosine, see `graded_methods.py`.

{chr(10).join(f"- `{name}`: {of_set.title}; grades 0 to {of_set.top_grade}" for name, of_set in sets.items())}

![Gain over the untouched encoder by budget and method]({chart}.png)

{(chr(10) * 2).join(sections)}

## `{DEFAULT_METHOD}` against the untouched encoder and sentence-transformers

{tests_table(summary)}

Differences are paired by seed and set; sets are blocks. p is adjusted by Holm's method for {summary["tests"]} tests;
intervals are not. A test needs two seeds of each set; with fewer than five, it is conservative. Intervals and p hold
for `others` drawn like these test pairs, or for `these` alone if some of the compared runs kept no per-pair scores.
The last two columns show what limits a test: the largest part of its variance, and the difference without the corpus
behind this part, which was left out after the fact.

## Grades and intervals of `{DEFAULT_METHOD}`

{grades_table(summary)}
"""


def budget_section(budget: str, found: Mapping[str, Any], sets: Sequence[str]) -> str:
    """The table of a budget, with a row for each method."""
    header = ["method", "setting", "mean of sets", *sets, "cosine", "MAE", "kappa", "seconds", "GB"]
    rows = []
    for name, described in found["methods"].items():
        title = f"**`{name}`**" if name == DEFAULT_METHOD else f"`{name}`"
        setting = ", ".join(f"{key} {value:g}" for key, value in described["settings"].items())
        by_set = [_cell_text(described["by_set"].get(of_set)) for of_set in sets]
        rows.append([title, setting, *_mean_texts(described["mean"], by_set)])
    return f"## {budget_title(budget)}\n\n{markdown_table(header, rows)}"


def _cell_text(measured: Mapping[str, Any] | None) -> str:
    return "–" if measured is None else f"{percent(measured['spearman'])} ({measured['seeds']})"


def _mean_texts(mean: Mapping[str, Any] | None, by_set: Sequence[str]) -> list[str]:
    if mean is None:
        return ["–", *by_set, *["–"] * 5]
    shown = percent(mean["spearman"])
    if mean["low"] is not None:
        shown += f" ({percent(mean['low'])} to {percent(mean['high'])})"
    others = [f"{mean['mae']:.3f}", f"{mean['quadratic_kappa']:.3f}", f"{mean['seconds']:.0f}"]
    return [shown, *by_set, percent(mean["spearman_cosine"]), *others, f"{mean['peak_memory_bytes'] / 1e9:.2f}"]


def tests_table(summary: Mapping[str, Any]) -> str:
    """The paired tests in Markdown."""
    rows = [
        [
            *(budget, f"`{name}`", str(test["sets"]), str(test["seeds"])),
            "others" if test["test_pairs"] else "these",
            *(shown_difference(test), shown_p(test["p_holm"]), *_largest_cells(test)),
        ]
        for budget, found in summary["budgets"].items()
        for name, test in found["versus"].items()
        if test["sets"]
    ]
    header = ["pairs", "against", "sets", "seeds", "test pairs", "difference (95 % interval)", "p (Holm)"]
    return markdown_table([*header, "largest part of the variance", "without its corpus"], rows)


def _largest_cells(test: Mapping[str, Any]) -> tuple[str, str]:
    """The largest part of the variance of a test, and the difference over the other sets."""
    if test["largest"] is None:
        return NO_TEST, NO_TEST
    name, varies, share = test["largest"]
    return f"{varies} of `{name}`, {share:.0%}", shown_difference(test["without_it"])


def grades_table(summary: Mapping[str, Any]) -> str:
    """The grades and intervals of the default on each corpus in Markdown, and how many rows reach the aims."""
    rows = []
    reached: dict[str, list[bool]] = {aim: [] for aim in ("mae", "kappa", "coverage", "coverage of a grade")}
    for budget, found in summary["budgets"].items():
        for name, measured in found["methods"].get(DEFAULT_METHOD, {"by_set": {}})["by_set"].items():
            mae, kappa, mae_nearest, kappa_nearest = (measured[key] for key in (*MEANS[1:], *NEAREST))
            coverage, of_grade, width = (measured[key] for key in INTERVAL_MEASURES)
            if mae_nearest is not None:
                reached["mae"].append(mae < mae_nearest)
                reached["kappa"].append(kappa > kappa_nearest)
            if coverage is not None:
                reached["coverage"].append(COVERAGE[0] <= coverage <= COVERAGE[1])
                reached["coverage of a grade"].append(of_grade >= COVERAGE_OF_GRADE)
            grades = ("–" if value is None else f"{value:.3f}" for value in (mae, mae_nearest, kappa, kappa_nearest))
            shares = ("–" if value is None else percent(value) for value in (coverage, of_grade))
            shown_width = "–" if width is None else f"{width:.2f} of {ALL_SETS[name].top_grade}"
            rows.append([budget, name, *grades, *shares, shown_width])
    header = ["pairs", "corpus", "MAE", "nearest grade", "kappa", "nearest grade"]
    header += ["coverage", "lowest of a grade", "width"]
    rates = {aim: f"{sum(found)} of {len(found)}" for aim, found in reached.items()}
    return f"""\
{markdown_table(header, rows)}

Means over draws, on test pairs. "Nearest grade" is the grade nearest to the score before calibration. The aims are

- a lower MAE than that of the nearest grade: {rates["mae"]} rows;
- a higher kappa: {rates["kappa"]};
- 90 % intervals that cover 88 to 92 % of the pairs: {rates["coverage"]};
- and at least 85 % of each grade with {FEWEST_OF_A_GRADE} pairs or more: {rates["coverage of a grade"]}.

Intervals need 200 held-out pairs. If these are divided among many grades, intervals are wider than needed. The test
texts of `sag` and `ukp_aspect` differ from those held out. Rows with "–" have no intervals, or no kept scores, in some
draws."""


def draw_graded(summary: Mapping[str, Any], path: Path) -> None:
    """
    Draws gains over the untouched encoder with intervals, a panel for each budget and a row for each method.

    Methods that were measured on a single budget of several are left to the tables.
    """
    budgets = summary["budgets"]
    counts = {name: sum(name in found["gains"] for found in budgets.values()) for name in METHODS}
    names = [name for name, count in counts.items() if count >= min(2, len(budgets))]
    figure = Figure(figsize=(3.2 + 3.2 * len(budgets), 0.32 * len(names) + 1.6), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(budgets), sharey=True))
    for axes, (budget, found) in zip(panels, budgets.items(), strict=True):
        draw_gains(axes, {name: found["gains"].get(name) for name in names})
        axes.set(title=budget_title(budget))
    panels[0].set_yticks(range(len(names)), [METHODS[name].title or name for name in names])
    if DEFAULT_METHOD in names:
        panels[0].get_yticklabels()[names.index(DEFAULT_METHOD)].set(color=EMPHASIS, fontweight="bold")
    panels[0].invert_yaxis()
    figure.supxlabel(
        f"Gain in Spearman's correlation over the untouched encoder, points, mean of {len(summary['sets'])} corpora, "
        "95 % interval",
        fontsize="medium",
    )
    figure.savefig(path, dpi=120)


def draw_gains(axes: Axes, gains: Mapping[str, Mapping[str, Any] | None]) -> None:
    """
    Draws the gains of a budget with their intervals.

    Methods far below the best are drawn as an arrow at the edge, with their value: they would hide the differences
    between all others.

    Args:
        axes: the axes to draw on.
        gains: the gain of each method, as in [`summarize_graded`], in the order of the rows; `None` if not measured.
    """
    measured = {name: gain for name, gain in gains.items() if gain is not None and gain["difference"] is not None}
    values = {name: 100 * gain["difference"] for name, gain in measured.items()}
    edge = max(values.values(), default=0.0) - SPAN
    for row, name in enumerate(gains):
        color, size = (EMPHASIS, 7) if name == DEFAULT_METHOD else (QUIET, 4)
        if name not in values:
            continue
        if values[name] <= edge:
            axes.plot(edge, row, "<", color=color, markersize=size)
            axes.annotate(f"{values[name]:.1f}", (edge, row), (6, 0), textcoords="offset points", va="center")
            continue
        low, high = (100 * measured[name][end] if measured[name][end] is not None else values[name] for end in ENDS)
        error = [[values[name] - low], [high - values[name]]]
        axes.errorbar(values[name], row, xerr=error, fmt="o", color=color, markersize=size, capsize=2)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.grid(axis="x", alpha=0.3)


def budget_name(budget: str) -> str:
    """The number of pairs of a budget within a sentence, before the word "pairs"."""
    return budget_title(budget).partition(" pairs")[0].lower()


def budget_title(budget: str) -> str:
    """A budget as the title of a section."""
    return "All pairs, at most 5,000" if budget == "all" else f"{int(budget):,} pairs"
