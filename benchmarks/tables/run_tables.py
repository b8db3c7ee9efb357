"""Tables of single run files: quick start, STS-B, the seven tasks, leaks; in Markdown."""

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from sts_regression.basics.tables import markdown_table, percent
from sts_regression.data.leakage import matrix_tables
from sts_regression.evaluation.sts_evaluation import AGGREGATIONS

LOSS_TITLES = {"smooth_k2": "Smooth K2", "translated_relu": "Translated ReLU", "mse": "MSE", "l1": "L1"}
SCORE_FUNCTION_TITLES = {"linear": "linear, the paper's", "cosine": "affine function of the cosine"}

ResultFile = Mapping[str, Any]  # a parsed file of results/, most often a run.json


def quickstart_table(run: ResultFile) -> str:
    """Development and test correlations before and after the quick start, with its time and memory."""
    rows = []
    for state, measures in run["results"].items():
        cells = [
            measures[split].get(f"spearman_{score}")
            for split in ("validation", "test")
            for score in ("cosine", "head")
        ]
        rows.append([state, *map(percent, cells)])
    header = ["", "development, cosine", "development, head", "test, cosine", "test, head"]
    environment, memory = run["environment"], run["peak_memory_bytes"]["process"] / 2**30
    return f"""\
{markdown_table(header, rows)}

{run["data"]["train"]["pairs"]:,} training pairs; {run["seconds"]:.0f} seconds in all and {memory:.1f} GiB of memory
on {environment["threads"]} threads of a {environment["device"]}."""


def stsb_table(runs: Sequence[ResultFile]) -> str:
    """STS-B test correlations by loss and score function, and a list of those below the untouched encoder."""
    untouched = {round(run["results"]["before training"]["test"]["spearman_cosine"], 6) for run in runs}
    if len(untouched) != 1:
        raise ValueError(f"the runs do not start from one encoder: their untouched test correlations are {untouched}")
    reference = untouched.pop()
    development = runs[0]["results"]["before training"]["validation"]["spearman_cosine"]
    rows = [["untouched all-MiniLM-L6-v2", "", percent(development), percent(reference), percent(None)]]
    below = []
    by_options = {_options(run): run for run in runs}
    for score_function, score_title in SCORE_FUNCTION_TITLES.items():
        for loss, loss_title in LOSS_TITLES.items():
            if (loss, score_function) not in by_options:  # not every pair was run
                continue
            after = by_options[loss, score_function]["results"]["after training"]
            measured = {"cosine": after["test"]["spearman_cosine"], "head": after["test"]["spearman_head"]}
            cells = (after["validation"]["spearman_cosine"], *measured.values())
            rows.append([loss_title, score_title, *map(percent, cells)])
            below += [f"{name} of {loss_title} ({score_function})" for name, v in measured.items() if v < reference]
    header = ["loss", "score function", "development, cosine", "test, cosine", "test, head"]
    verdict = "; ".join(below) if below else "none"
    leaks = [count for run in runs for count in run.get("leakage", {}).get("validation", {}).values()]
    helped = max((count["found"] - count["removed"] for count in leaks), default=None)
    counted = "" if helped is None else f"{helped:,} of the development pairs are test pairs.\n"
    return f"""\
{markdown_table(header, rows)}

{counted}Below the untouched encoder's {percent(reference)} on the test pairs: {verdict}."""


def sts_tasks_table(original: ResultFile, tokenized: ResultFile, all_of_sick: ResultFile) -> str:
    """One model's correlations by task: each aggregation, the interval, and two other common choices of data."""
    rows = []
    names = [*original["sts_tasks"]["tasks"], "average"]
    for name, task, other, whole in zip(
        names, *map(_tasks_and_average, (original, tokenized, all_of_sick)), strict=True
    ):
        by_aggregation = task["cosine"]
        low, high = by_aggregation["all"]["interval"]
        rows.append(
            [
                name,
                f"{task['pairs']:,}" if "pairs" in task else "",
                *(percent(by_aggregation[aggregation]["spearman"]) for aggregation in AGGREGATIONS),
                f"{percent(low)}–{percent(high)}",
                percent(other["cosine"]["all"]["spearman"]),
                percent(whole["cosine"]["all"]["spearman"]),
            ]
        )
    header = ["task", "pairs", *AGGREGATIONS, "95 % interval of `all`", "tokenised text", "whole of SICK"]
    header = [f"`{title}`" if title in AGGREGATIONS else title for title in header]
    shifts = [
        100 * (other["cosine"]["all"]["spearman"] - task["cosine"]["all"]["spearman"])
        for task, other in zip(_tasks_and_average(original), _tasks_and_average(tokenized), strict=True)
    ]
    name, shift = max(zip(names, shifts, strict=True), key=lambda named: abs(named[1]))
    return f"""\
{markdown_table(header, rows)}

The whole of SICK has {all_of_sick["sts_tasks"]["tasks"]["SICK-R"]["pairs"]:,} pairs. Tokenised text shifts {name}
most, by {shift:+.3f}, and the average by {shifts[-1]:+.4f}."""


def precision_table(measured: ResultFile) -> str:
    """Spearman's correlations by task and precision, with differences from the first precision, and their means."""
    columns = {name: {**tasks, "mean": fmean(tasks.values())} for name, tasks in measured["spearman"].items()}
    (reference, whole), *others = columns.items()
    rows = [
        [task, percent(value), *(f"{percent(own[task])} ({100 * (own[task] - value):+.2f})" for _, own in others)]
        for task, value in whole.items()
    ]
    shifts = [f"{measured['cosine_difference'][name]:.4f}" for name, _ in others]
    rows.append(["cosine of a pair, mean difference", "–", *shifts])
    return markdown_table(["task", reference, *(name for name, _ in others)], rows)


def short_embeddings_table(kept: ResultFile) -> str:
    """Spearman's correlation by encoder, type of weights and length of the embeddings, averaged over tasks."""
    titles = {
        "untouched": "untouched",
        "best": "`best`",
        "matryoshka": "the same with `--matryoshka_dims`",
    }
    first = next(iter(kept["averages"]["untouched"].values()))
    rows = [
        [titles[encoder], weights, str(len(next(iter(by_length.values())))), *map(_mean_and_sd, by_length.values())]
        for encoder, by_weights in kept["averages"].items()
        for weights, by_length in by_weights.items()
    ]
    return markdown_table(["encoder", "weights", "seeds", *(f"{length} numbers" for length in first)], rows)


def _mean_and_sd(values: Sequence[float]) -> str:
    return percent(fmean(values), stdev(values) if len(values) > 1 else None)


def _tasks_and_average(run: ResultFile) -> list[ResultFile]:
    measures = run["sts_tasks"]
    return [*measures["tasks"].values(), measures["average"]]


def leakage_table(audits: Sequence[ResultFile]) -> str:
    """The numbers of pairs of each set that each filter finds and leaves."""
    sets = [(split, name) for split in audits[0] for name in audits[0][split]]
    rows = []
    for split, name in sets:
        counts = [audit[split][name] for audit in audits]
        rows.append(
            [
                f"`{name}`",
                f"{counts[0]['pairs']:,}",
                *(f"{count['found']:,} ({count['pairs'] - count['removed']:,})" for count in counts),
            ]
        )
    header = [
        "set",
        "pairs",
        *(f"{next(iter(audit['train'].values()))['leak_filter']}: found (left)" for audit in audits),
    ]
    return markdown_table(header, rows)


def leak_matrix_tables(matrix: ResultFile) -> str:
    """Common pairs and sentences of each set and the test sets, in both directions."""
    found, shares = (
        markdown_table(header, [[f"`{name}`", *cells] for name, *cells in rows])
        for header, *rows in matrix_tables(matrix)
    )
    return f"""\
Pairs / distinct sentences of each set, and how many of them are pairs / sentences of each task (compared as by the
leak filter `{matrix["leak_filter"]}`):

{found}

Pairs of each task that have a sentence in common with the set, in percent:

{shares}"""


def leak_filter_speed(speed: ResultFile) -> str:
    """A sentence on the time that the filter takes."""
    seconds = ", ".join(f"{value:.1f} s ({mode})" for mode, value in speed["median_seconds"].items())
    device = speed["environment"]["device"]
    return f"The filter takes {seconds} for {speed['training_pairs']:,} made-up pairs, on a {device}."


def _options(run: ResultFile) -> tuple[str, str]:
    config = run["model"]["config"]
    return config["loss_type"], config["score_function"]


def reliability_page(record: ResultFile) -> str:
    """The page on attempts to break the project, from the record of `benchmarks/reliability.py`."""
    kinds, environment = record["kinds"], record["environment"]
    rows = [
        [name, *(f"{kind[count]:,}" for count in ("tried", "accepted", "refused")), ", ".join(kind["tests"])]
        for name, kind in sorted(kinds.items(), key=lambda item: item[1]["tests"])
    ]
    table = markdown_table(["what", "tried", "accepted", "refused", "tests"], rows)
    tried, accepted, refused = (
        f"{sum(kind[count] for kind in kinds.values()):,}" for count in ("tried", "accepted", "refused")
    )
    threads = environment["threads"]
    machine = f"{threads} thread{'s' * (threads != 1)} of a {environment['device']}"
    return f"""\
# Reliability

Command: `python benchmarks/reliability.py`. It runs the tests that try to break the project, and keeps their counts if
all of them pass. Accepted cases were checked: input is read as it was written, a killed run ends with the same weights
to the last bit, and memory does not grow. Refused cases ended with the expected one-line error. No data was lost, and
no traceback of a library appeared.

{tried} tried, {accepted} accepted, {refused} refused; {record["seconds"] / 60:.0f} minutes on {machine}, torch
{environment["torch"]}, transformers {environment["transformers"]}.

{table}
"""
