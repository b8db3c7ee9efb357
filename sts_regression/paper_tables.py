"""The paper's tables beside what was measured here, and what the methods do to all-MiniLM-L6-v2, in Markdown."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from sts_regression.recipes import read_recipe
from sts_regression.reporting import markdown_table, percent
from sts_regression.sts_tasks import TASK_NAMES
from sts_regression.sweep_report import AVERAGE, SCORES, Summary, comparison_table

TABLES = {
    1: "losses on natural language inference",
    3: "two stages, and contrastive continuation",
    4: "memory",
    5: "k and x₀",
    6: "features of the head",
}
SIGNIFICANCE = 0.05  # p from which on a difference is said not to show
SAME = 1e-5  # correlations that differ by less, by ties that are rounded apart
# In words, the cell, and the one that it is compared with.
QUESTIONS = (
    ("Smooth K2 instead of MSE, the paper's linear head", "smooth_k2_linear", "mse_linear"),
    ("Smooth K2 instead of MSE, affine function of the cosine", "smooth_k2_cosine", "mse_cosine"),
    ("Translated ReLU instead of L1, the paper's linear head", "translated_relu_linear", "l1_linear"),
    ("Translated ReLU instead of L1, affine function of the cosine", "translated_relu_cosine", "l1_cosine"),
)
ABLATION = "ablation"  # the sweep of the recipe past the paper without its parts
# By its cell: what it does without, and the cell that has it.
PARTS = {
    "no_soup": ("One training instead of the average over four", "best"),
    "no_distillation": ("No self-distillation", "no_soup"),
    "no_averaging": ("No averaging with the untouched encoder", "no_soup"),
    "neither": ("Neither of these two", "no_soup"),
    "trained_embeddings": ("Word embeddings trained, too", "no_soup"),
    "mse": ("MSE instead of Smooth K2", "no_soup"),
    "translated_relu": ("Translated ReLU instead of Smooth K2", "no_soup"),
    "pearson": ("Pearson's correlation instead of Smooth K2", "no_soup"),
}


def paper_tables(recipes: Path, results: Path) -> str:
    """
    A section for each table of the paper: its rows, the paper's value, and ours where it was measured.

    Args:
        recipes: folder of `table1` and so on.
        results: folder of the run files, `table1/<recipe>.json` and so on.
    """
    sections = []
    for number, title in TABLES.items():
        paths = sorted((recipes / f"table{number}").glob("*.yaml"))
        rows, names = [], list[str]()
        for path in paths:
            about = read_recipe(path).about
            expected = {name: float(value) for name, value in about["expected"].items()}
            names = names or list(expected)
            measured = _measured(results / f"table{number}" / f"{path.stem}.json", names)
            rows.append([f"`{path.stem}`", *(f"{expected[name]:.2f}" for name in names), measured])
        columns = [name for name in TASK_NAMES if name in names] + [n for n in names if n not in TASK_NAMES]
        order = [0, *(1 + names.index(name) for name in columns), len(names) + 1]
        rows = [[row[i] for i in order] for row in rows]
        header = ["recipe", *(f"paper: {name}" for name in columns), f"measured here: {columns[-1]}"]
        sections.append(f"### Table {number}: {title}\n\n{markdown_table(header, rows)}")
    return "\n\n".join(sections)


def _measured(path: Path, names: Sequence[str]) -> str:
    """The measure that the table is about, of a run file; empty where there is none."""
    if not path.is_file():
        return ""
    record = json.loads(path.read_text(encoding="utf-8"))
    if AVERAGE in names:
        return percent(record["sts_tasks"]["average"]["cosine"]["all"]["spearman"])
    peak = record["peak_memory_bytes"]
    return f"{peak.get('gpu', peak['process']) / 1e9:.2f}"


def sweep_sections(results: Path, titles: Mapping[str, tuple[str, str]]) -> str:
    """
    A section, with the command, for each sweep that was run.

    Args:
        results: folder of the results, `<sweep>/summary.json` and so on.
        titles: title and command by the name of the sweep.
    """
    sections = []
    for name, (title, command) in titles.items():
        path = results / name / "summary.json"
        if path.is_file():
            summary = json.loads(path.read_text(encoding="utf-8"))
            has_own_ranks = _has_own_ranks(summary)
            shown = [
                f"{score.capitalize()}:\n\n{comparison_table(summary, score, _baselines(summary, score))}"
                for score in (SCORES if has_own_ranks else SCORES[:1])
            ]
            if not has_own_ranks:
                shown.append("Heads: affine functions of the cosine, with the same correlations.")
            if name == ABLATION:
                shown.append(ablation_verdicts(summary))
            sections.append("\n\n".join([f"### {title}", f"Command: `{command}`.", *shown]))
    return "\n\n".join(sections)


def _baselines(summary: Summary, score: str) -> list[str]:
    tested = [cell.get(score, {}).get("versus", {}) for cell in summary["cells"].values()]
    return [name for name in summary["cells"] if any(name in baselines for baselines in tested)]


def _has_own_ranks(summary: Summary) -> bool:
    """Whether the head of any cell ranks otherwise than its cosine."""
    for cell in summary["cells"].values():
        head, cosine = cell.get("head", {}), cell.get("cosine", {})
        for name in head.keys() - {"versus"}:
            if name not in cosine or abs(head[name]["mean"] - cosine[name]["mean"]) > SAME:
                return True
    return False


def cross_encoder_sentence(runs: Sequence[Mapping[str, Any]]) -> str:
    """STS-B's test correlations of a cross-encoder, over its runs."""
    measured = [run["results"]["after training"]["test"] for run in runs]
    values = {name: [measures[f"{name}_head"] for measures in measured] for name in ("spearman", "pearson")}
    parts = [f"{name.capitalize()} {percent(mean(v), stdev(v) if len(v) > 1 else None)}" for name, v in values.items()]
    return f"STS-B test, {len(runs)} seeds: {', '.join(parts)}."


def verdicts(summary: Summary) -> str:
    """What the paper's losses do and do not buy here, in sentences made from the numbers."""
    lines = [f"- {line}" for line in (*_of_the_buffer_zone(summary), *_of_the_recipes(summary))]
    return "\n".join(lines)


def ablation_verdicts(summary: Summary) -> str:
    """What each part of the recipe past the paper adds to it, in sentences made from the numbers."""
    tests = {
        cell: summary["cells"][cell]["cosine"]["versus"][baseline][AVERAGE] for cell, (_, baseline) in PARTS.items()
    }
    return "\n".join(
        f"- **{part}** (`{cell}`) against `{baseline}`: cosine {_says(tests[cell])}."
        for cell, (part, baseline) in PARTS.items()
    )


def _of_the_buffer_zone(summary: Summary) -> Iterator[str]:
    for question, cell, baseline in QUESTIONS:
        if cell not in summary["cells"] or baseline not in summary["cells"]:
            continue
        parts = [
            f"{score} {_says(summary['cells'][cell][score]['versus'][baseline][AVERAGE])}"
            for score in SCORES
            if baseline in summary["cells"][cell].get(score, {}).get("versus", {})
        ]
        yield f"**{question}**: {'; '.join(parts)}."


def _of_the_recipes(summary: Summary) -> Iterator[str]:
    for cell, title in (
        ("paper", "The paper's two stages, the first on SNLI's development set and SICK instead of SNLI and MultiNLI"),
        ("info_nce", "Contrastive continuation"),
        ("best", "Ours"),
    ):
        if cell not in summary["cells"]:
            continue
        measured = summary["cells"][cell]["cosine"]
        tests = measured["versus"]["untouched"]
        untouched = summary["cells"]["untouched"]["cosine"]
        below = [task for task in TASK_NAMES if measured[task]["mean"] < untouched[task]["mean"]]
        where = f"below it on {', '.join(below)}" if below else "on no task below it"
        yield f"**{title}** (`{cell}`) against the untouched encoder: cosine {_says(tests[AVERAGE])}; {where}."
        if "head" in summary["cells"][cell]:
            head = summary["cells"][cell]["head"]
            yield (
                f"The head of `{cell}`: STS-B {percent(head['STS-B']['mean'])} (cosine "
                f"{percent(measured['STS-B']['mean'])}), STS12–16 "
                f"{percent(_off_domain(head))} (cosine {percent(_off_domain(measured))})."
            )


def _off_domain(measured: Mapping[str, Any]) -> float:
    years = [task for task in TASK_NAMES if task.startswith("STS1")]
    return sum(measured[task]["mean"] for task in years) / len(years)


def _says(test: Mapping[str, float]) -> str:
    difference, low, high = (100 * test[key] for key in ("difference", "low", "high"))
    interval = f"{difference:+.2f} (95 % interval {low:+.2f} to {high:+.2f}, p = {test['p']:.3f})"
    return interval if test["p"] < SIGNIFICANCE else f"{interval}, which is no difference that these seeds show"
