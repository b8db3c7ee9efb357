"""The paper's tables with the values measured here, and the effects of methods on all-MiniLM-L6-v2, in Markdown."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from sts_regression.basics.tables import REPORTED_SCORES, markdown_table, percent
from sts_regression.command.recipes import read_recipe
from sts_regression.data.sts_tasks import STSB, TASK_NAMES
from sts_regression.evaluation.significance import SIGNIFICANCE, shown_difference, shown_p
from sts_regression.sweep.report import cells_of_table, read_summary, summary_table
from sts_regression.sweep.summary import (
    AVERAGE,
    TASKS_OF_TRAINED_GENRES,
    TRAINED_GENRES,
    WITHOUT_TRAINED_GENRES,
    Summary,
)

TABLES = {
    1: "losses on natural language inference",
    3: "two stages, and contrastive continuation",
    4: "memory",
    5: "k and x₀",
    6: "features of the head",
}
CODE_ENDING = "_code"  # suffix of recipes that follow the paper's code, for the same row of the table
# Each question, the cell, and the cell that it is compared with.
QUESTIONS = (
    ("Smooth K2 instead of MSE, the paper's linear head", "smooth_k2_linear", "mse_linear"),
    ("Smooth K2 instead of MSE, affine function of the cosine", "smooth_k2_cosine", "mse_cosine"),
    ("Translated ReLU instead of L1, the paper's linear head", "translated_relu_linear", "l1_linear"),
    ("Translated ReLU instead of L1, affine function of the cosine", "translated_relu_cosine", "l1_cosine"),
)
ABLATION = "ablation"  # the sweep of `best` with other parts
# Measures on pairs unlike the training pairs, by task and genre.
UNLIKE_TRAINING = (("STS12", WITHOUT_TRAINED_GENRES), ("STS12", "SMTnews"), (STSB, "images"))
NO_RIVALS = ("untouched", "best", "best_sentence", "distillation")
# For each cell: its difference from another cell.
PARTS = {
    "no_averaging": ("No averaging with the untouched encoder", "best"),
    "distillation": ("Self-distillation, too", "best"),
    "soup": ("Self-distillation and the mean of four models, too", "best"),
    "distillation_alone": ("Self-distillation in place of averaging", "best"),
    "trained_embeddings": ("Word embeddings trained, too", "distillation"),
}


def recipes_of_table(folder: Path, number: int) -> list[Path]:
    """The recipes of a table of the paper, one for each row, in `table<number>` of the folder."""
    recipes = (folder / f"table{number}").glob("*.yaml")
    return sorted(recipe for recipe in recipes if not recipe.stem.endswith(CODE_ENDING))


def paper_tables(recipes: Path, results: Path) -> str:
    """
    A section for each table of the paper: its rows, the paper's values, and ours if they were measured.

    Args:
        recipes: folder of the recipes, `table1/` and so on.
        results: folder of the run files, `table1/<recipe>.json` and so on.
    """
    sections = []
    for number, title in TABLES.items():
        rows, names = [], list[str]()
        for path in recipes_of_table(recipes, number):
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
    """The measure in the table, from a run file; empty if the file does not exist."""
    if not path.is_file():
        return ""
    record = json.loads(path.read_text(encoding="utf-8"))
    if AVERAGE in names:
        return percent(record["sts_tasks"]["average"]["cosine"]["all"]["spearman"])
    peak = record["peak_memory_bytes"]
    return f"{peak.get('gpu', peak['process']) / 1e9:.2f}"


class SweepSection(NamedTuple):
    """What the section of a sweep says before its tables."""

    title: str
    command: str
    remark: str = ""


def sweep_sections(results: Path, sweeps: Mapping[str, SweepSection]) -> str:
    """
    A section, with the command, for each sweep.

    Args:
        results: folder of the results, `<sweep>/summary.json` and so on.
        sweeps: by the name of the sweep.
    """
    sections = []
    for name, (title, command, remark) in sweeps.items():
        summary = read_summary(results / name / "summary.json")
        shown = [
            f"{score.capitalize()}:\n\n{summary_table(summary, score, _baselines(summary, score))}"
            for score in REPORTED_SCORES
            if cells_of_table(summary, score)
        ]
        if name == ABLATION:
            shown.append(ablation_verdicts(summary))
        sections.append("\n\n".join([f"### {title}", f"Command: `{command}`. {remark}".rstrip(), *shown]))
    return "\n\n".join(sections)


def _baselines(summary: Summary, score: str) -> list[str]:
    measured = [cell.get(score, {}).get(summary["headline"], {}) for cell in summary["cells"].values()]
    return [name for name in summary["cells"] if any(name in of_cell.get("versus", {}) for of_cell in measured)]


def cross_encoder_sentence(runs: Sequence[Mapping[str, Any]]) -> str:
    """STS-B's test correlations of a cross-encoder, over its runs."""
    measured = [run["results"]["after training"]["test"] for run in runs]
    values = {name: [measures[f"{name}_head"] for measures in measured] for name in ("spearman", "pearson")}
    parts = [f"{name.capitalize()} {percent(mean(v), stdev(v) if len(v) > 1 else None)}" for name, v in values.items()]
    return f"STS-B test, {len(runs)} seeds: {', '.join(parts)}."


def verdicts(summary: Summary, choice: Mapping[str, Any]) -> str:
    """The effects of the paper's losses here, in sentences made from the numbers."""
    lines = [f"- {line}" for line in (*_of_the_buffer_zone(summary, choice), *_of_the_recipes(summary))]
    return "\n".join(lines)


def genre_table(summary: Summary, methods: Sequence[str], baseline: str, score: str = "cosine") -> str:
    """The differences between methods and a baseline by task and genre, in Markdown."""
    genres = {name: summary["cells"][name]["genres"][score] for name in (baseline, *methods)}
    rows = []
    for task, of_task in genres[methods[0]].items():
        for genre in of_task:
            measured = {name: of_cell[task][genre] for name, of_cell in genres.items()}
            row = [task, genre, percent(measured[baseline]["mean"])]
            for name in methods:
                row += [percent(measured[name]["mean"]), shown_difference(measured[name]["versus"][baseline])]
            rows.append(row)
    header = ["task", "genre", f"`{baseline}`"]
    for name in methods:
        header += [f"`{name}`", "difference (95 % interval)"]
    return markdown_table(header, rows)


def average_without_trained_genres(summary: Summary, method: str, baseline: str, score: str = "cosine") -> str:
    """The difference of two methods on the seven tasks with and without the genres of STS-B's training pairs."""
    cells = [summary["cells"][name] for name in (method, baseline)]
    ours, theirs = (
        mean(
            cell["genres"][score].get(task, {}).get(WITHOUT_TRAINED_GENRES, cell[score][task])["mean"]
            for task in TASK_NAMES
        )
        for cell in cells
    )
    our_whole, their_whole = (cell[score][AVERAGE]["mean"] for cell in cells)
    return (
        f"Without {' and '.join(TRAINED_GENRES)} in {' and '.join(TASKS_OF_TRAINED_GENRES)}, the average of the seven "
        f"tasks is {percent(ours)} for `{method}` and {percent(theirs)} for `{baseline}`: a difference of "
        f"{100 * (ours - theirs):+.2f} in place of {100 * (our_whole - their_whole):+.2f}."
    )


def breadth_verdict(summary: Summary, methods: Sequence[str], baseline: str) -> str:
    """In how many genres methods rank better than the baseline, and whether they do on the genres aimed at."""
    counts, aims = [], []
    for name in methods:
        changes = {
            (task, genre): 100 * measured["versus"][baseline]["difference"]
            for task, of_task in summary["cells"][name]["genres"]["cosine"].items()
            for genre, measured in of_task.items()
        }
        single = [change for (_, genre), change in changes.items() if genre != WITHOUT_TRAINED_GENRES]
        counts.append(f"`{name}` in {sum(change > 0 for change in single)} of {len(single)}")
        aimed = [changes[row] for row in UNLIKE_TRAINING]
        verdict = "reached" if min(aimed) > 0 else "**missed**"
        aims.append(f"`{name}` {', '.join(f'{change:+.2f}' for change in aimed)}, {verdict}")
    measures = ", ".join(f"{task} {genre}" for task, genre in UNLIKE_TRAINING)
    return (
        f"Genres of a task above `{baseline}`: {', '.join(counts)}. "
        f"Aim: above it on each of {measures}: {'; '.join(aims)}."
    )


def choice_table(choice: Mapping[str, Any]) -> str:
    """The chosen setting of each method with its development measures, and those of the others, in Markdown."""
    rows, corpora = [], list(next(iter(next(iter(choice.values()))["settings"].values())))
    for method, tried in choice.items():
        chosen = tried["settings"][tried["chosen"]]
        others = [f"{percent(found['mean'])} ({name})" for name, found in tried["settings"].items() if found != chosen]
        rows.append(
            [f"`{method}`", tried["chosen"], *(percent(chosen[corpus]) for corpus in corpora), ", ".join(others)]
        )
    return markdown_table(["method", "chosen", *corpora, "others, mean"], rows)


def equal_rates_table(choice: Mapping[str, Any]) -> str:
    """The paper's losses less those without a buffer zone, on development pairs at each learning rate, in Markdown."""
    rates = list(choice[QUESTIONS[0][1]]["settings"])
    rows = [
        [question, *(f"{_difference_on_development(choice, cell, baseline, rate):+.2f}" for rate in rates)]
        for question, cell, baseline in QUESTIONS
    ]
    return markdown_table(["", *(rate.removeprefix("learning_rate=") for rate in rates)], rows)


def _difference_on_development(choice: Mapping[str, Any], cell: str, baseline: str, setting: str) -> float:
    ours, theirs = (choice[name]["settings"][setting]["mean"] for name in (cell, baseline))
    return 100 * (ours - theirs)


def choice_verdict(choice: Mapping[str, Any]) -> str:
    """The best methods by different development pairs, in sentences made from the numbers."""
    chosen = {method: tried["settings"][tried["chosen"]] for method, tried in choice.items()}
    by_mean = sorted(chosen, key=lambda method: chosen[method]["mean"], reverse=True)
    at_home = {method: (found["sts-dev"] + found["SICK_trial"]) / 2 for method, found in chosen.items()}
    first, first_at_home = by_mean[0], max(at_home, key=at_home.__getitem__)
    place = by_mean.index("distillation") + 1
    others = "" if first_at_home == "distillation" else f"; `distillation` has {percent(at_home['distillation'])}"
    return (
        f"By the mean over the seven corpora, `{first}` leads with {percent(chosen[first]['mean'])}; "
        f"`distillation`, which is `best` with self-distillation, is number {place} of {len(chosen)} with "
        f"{percent(chosen['distillation']['mean'])}. On "
        f"the development pairs of STS-B and SICK alone, the corpora of the tasks, `{first_at_home}` leads with "
        f"{percent(at_home[first_at_home])}{others}. Each setting has one run, so small differences mean nothing."
    )


def ablation_verdicts(summary: Summary) -> str:
    """The effects of other parts of `best`, in sentences made from the numbers."""
    return "\n".join(
        f"- **{part}** (`{cell}`) against `{baseline}`, {_seeds(summary, cell, baseline)}: "
        f"cosine {_says(_headline_test(summary, cell, 'cosine', baseline))}."
        for cell, (part, baseline) in PARTS.items()
    )


def _of_the_buffer_zone(summary: Summary, choice: Mapping[str, Any]) -> Iterator[str]:
    cells = summary["cells"]
    for question, cell, baseline in QUESTIONS:
        if cell not in cells or baseline not in cells:
            continue
        parts = []
        for score in REPORTED_SCORES:
            is_tested = baseline in cells[cell].get(score, {}).get(AVERAGE, {}).get("versus", {})
            if is_tested and cell in cells_of_table(summary, score):
                parts.append(f"{score} {_says(_headline_test(summary, cell, score, baseline), with_power=True)}")
        rates = " and ".join(choice[name]["chosen"].removeprefix("learning_rate=") for name in (cell, baseline))
        yield f"**{question}**, {_seeds(summary, cell, baseline)}, learning rates {rates}: {'; '.join(parts)}."


def _of_the_recipes(summary: Summary) -> Iterator[str]:
    for cell, title in (
        ("paper", "The paper's two stages, the first on SNLI's development set and SICK instead of SNLI and MultiNLI"),
        ("paper_clean", "The paper's two stages, with the checkpoint chosen on clean development pairs"),
        ("info_nce", "Contrastive continuation"),
        ("best", "Ours"),
        ("best_sentence", "Ours without the training pairs that share a sentence with a test pair"),
    ):
        if cell not in summary["cells"]:
            continue
        measured = summary["cells"][cell]["cosine"]
        test = _headline_test(summary, cell, "cosine", "untouched")
        untouched = summary["cells"]["untouched"]["cosine"]
        below = [task for task in TASK_NAMES if measured[task]["mean"] < untouched[task]["mean"]]
        where = f"below it on {', '.join(below)}" if below else "below it on no task"
        seeds = _seeds(summary, cell, "untouched")
        yield f"**{title}** (`{cell}`) against the untouched encoder, {seeds}: cosine {_says(test)}; {where}."
        if cell in cells_of_table(summary, "head"):
            head = summary["cells"][cell]["head"]
            yield (
                f"The head of `{cell}`: STS-B {percent(head['STS-B']['mean'])} (cosine "
                f"{percent(measured['STS-B']['mean'])}), STS12–16 "
                f"{percent(_off_domain(head))} (cosine {percent(_off_domain(measured))})."
            )
    rivals = [name for name in cells_of_table(summary, "cosine") if name not in NO_RIVALS]
    if "best" in summary["cells"] and rivals:
        rival = max(rivals, key=lambda name: summary["cells"][name]["cosine"][AVERAGE]["mean"])
        test = _headline_test(summary, rival, "cosine", "best")
        yield (
            f"**The best rival** (`{rival}`) against ours (`best`), {_seeds(summary, rival, 'best')}: cosine "
            f"{_says(test)}."
        )


def _off_domain(measured: Mapping[str, Any]) -> float:
    years = [task for task in TASK_NAMES if task.startswith("STS1")]
    return sum(measured[task]["mean"] for task in years) / len(years)


def _headline_test(summary: Summary, cell: str, score: str, baseline: str) -> Mapping[str, Any]:
    return summary["cells"][cell][score][AVERAGE]["versus"][baseline]


def _seeds(summary: Summary, cell: str, baseline: str) -> str:
    """The numbers of seeds of the two cells that train."""
    counts = [len(summary["cells"][name]["seeds"]) for name in (cell, baseline) if summary["cells"][name]["trains"]]
    if len(counts) == 2 and len(set(counts)) == 1:
        return f"{counts[0]} seed{'s' * (counts[0] > 1)} each"
    return f"{' and '.join(map(str, counts))} seed{'s' * (counts != [1])}"


def _says(test: Mapping[str, Any], with_power: bool = False) -> str:
    if test["p"] is None:
        return f"{shown_difference(test)}, which one seed does not test"
    low, high = (f"{100 * test[key]:+.2f}" for key in ("low", "high"))
    p = shown_p(test["p_holm"])
    said = f"95 % interval {low} to {high}, adjusted p {p if p.startswith('<') else f'= {p}'}"
    if with_power:
        said += f"; before adjustment, 80 % power for a difference of {100 * test['detectable']:.2f}"
    verdict = "" if test["p_holm"] < SIGNIFICANCE else ", not significant"
    return f"{100 * test['difference']:+.2f} ({said}){verdict}"
