"""The tables and sentences of a model card, in Markdown. Names of files and grades are code spans."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sts_regression.basics.tables import REPORTED_SCORES, SPLIT_TITLES, markdown_table, percent
from sts_regression.data.labels import nodes_in_words
from sts_regression.data.sources import held_out_of
from sts_regression.evaluation.report_charts import GRADES_SHOWN
from sts_regression.grading.grading import WANTED_SHARES
from sts_regression.grading.thresholds import MEASURES

RANK_MEASURES = ("spearman", "kendall")
MEASURES_OF_FEW_GRADES = ("accuracy_head", "macro_f1_head")  # small on a fine scale, however good the scores are
Record = Mapping[str, Any]  # a parsed run.json, or its public part, see `public_record`


def code(text: object) -> str:
    """A code span, in which Markdown and HTML have no effect. White space and control characters become spaces."""
    printable = "".join(character if character.isprintable() else " " for character in str(text)).strip()
    if not printable:
        return "–"
    fence = "`" * (1 + max(map(len, re.findall("`+", printable)), default=0))
    padding = " " if "`" in printable else ""
    return f"{fence}{padding}{printable}{padding}{fence}"


def cell(text: object) -> str:
    """A code span within a table."""
    return code(text).replace("|", r"\|")


def label_scale(config: Record) -> str:
    """The nodes of the label scale, with their names if they have any."""
    values, names = config["label_values"], config.get("label_names")
    if not names:
        return nodes_in_words(values, separator=", ")
    return ", ".join(f"{value:g} ({code(name)})" for value, name in zip(values, names, strict=True))


def has_head(results: Record) -> bool:
    """Whether a head was trained and therefore measured."""
    return any("spearman_head" in measures for measures in results["after training"].values())


def correlations_table(results: Record) -> str:
    """
    Spearman's correlations in percent, before and after training; a missing correlation is a dash.

    A head that ranks all pairs like the cosine, such as an affine function of it, has no columns of its own.
    """
    after = results["after training"]
    scores = [score for score in REPORTED_SCORES if score == "cosine" or not _ranks_as_cosine(after)]
    columns = [(split, score) for split in after for score in scores]
    rows = [
        [state, *(percent(measures.get(split, {}).get(f"spearman_{score}")) for split, score in columns)]
        for state, measures in results.items()
    ]
    return markdown_table(["", *(f"{SPLIT_TITLES[split]}, {score}" for split, score in columns)], rows)


def _ranks_as_cosine(after: Record) -> bool:
    return all(
        f"{name}_cosine" in measures and measures[f"{name}_cosine"] == measures.get(f"{name}_head")
        for measures in after.values()
        for name in RANK_MEASURES
    )


def listed_measures(after: Record) -> dict[str, dict[str, float]]:
    """The measures of each split, without the head's rank correlations if they are the cosine's."""
    left_out = [f"{name}_head" for name in RANK_MEASURES] if _ranks_as_cosine(after) else []
    return _without(after, left_out)


def scores_of_tasks(measures: Record) -> list[str]:
    """The scores to show of the STS tasks: the head only if a number differs from the cosine's."""
    scores = [score for score in REPORTED_SCORES if score in measures["average"]]
    cells = [[_task_cells(task, score) for task in _tasks_and_average(measures)] for score in scores]
    return scores if len(scores) == 1 or cells[0] != cells[1] else scores[:1]


def _tasks_and_average(measures: Record) -> list[Record]:
    return [*measures["tasks"].values(), measures["average"]]


def _task_cells(task: Record, score: str) -> tuple[str, str]:
    """Spearman's correlation and its interval, in percent."""
    low, high = task[score]["all"]["interval"]
    return percent(task[score]["all"]["spearman"]), f"{percent(low)}–{percent(high)}"


def without_rare_hits(results: Record, config: Record) -> dict[str, Any]:
    """Results without the measures that count exact hits of grades, if there are many grades."""
    if len(config["label_values"]) <= GRADES_SHOWN:
        return dict(results)
    return {state: _without(splits, MEASURES_OF_FEW_GRADES) for state, splits in results.items()}


def _without(splits: Record, names: Sequence[str]) -> dict[str, dict[str, float]]:
    return {
        split: {name: value for name, value in measures.items() if name not in names}
        for split, measures in splits.items()
    }


def coverage_table(grading: Record | None, names: Sequence[str] | None) -> str:
    """The share of labels of each grade within their intervals; empty without intervals or with many grades."""
    by_grade = ((grading or {}).get("report") or {}).get("coverage_by_grade")
    if grading is None or not by_grade or len(grading["label_values"]) > GRADES_SHOWN:
        return ""
    titles = _grade_titles(grading, names)
    rows = [[titles[part["grade"]], f"{part['pairs']:,}", f"{100 * part['coverage']:.0f}"] for part in by_grade]
    return markdown_table(["grade", "development pairs", "in their interval, percent"], rows)


def thresholds_table(grading: Record | None, names: Sequence[str] | None) -> str:
    """The thresholds of each grade; empty if there are none, or with many grades."""
    if grading is None or not grading["thresholds"] or len(grading["label_values"]) > GRADES_SHOWN:
        return ""
    titles = _grade_titles(grading, names)
    found = {(row["grade"], row["measure"], row["wanted"]): f"{row['score']:.3g}" for row in grading["thresholds"]}
    columns = list(itertools.product(MEASURES, WANTED_SHARES))
    header = ["at least", *(f"{measure} {100 * wanted:.0f} %" for measure, wanted in columns)]
    rows = [
        [titles[grade], *(found.get((grade, *column), "–") for column in columns)]
        for grade in grading["label_values"][1:]
    ]
    return markdown_table(header, rows)


def _grade_titles(grading: Record, names: Sequence[str] | None) -> dict[float, str]:
    """The name of each grade, or its value."""
    values = grading["label_values"]
    return dict(zip(values, map(cell, names) if names else (f"{value:g}" for value in values), strict=True))


def measures_table(measures: Record) -> str:
    """The measures of [`listed_measures`], with a column per split."""
    names = dict.fromkeys(itertools.chain.from_iterable(measures.values()))
    rows = [
        [cell(name), *(f"{of_split[name]:.4f}" if name in of_split else "–" for of_split in measures.values())]
        for name in names
    ]
    return markdown_table(["measure", *(SPLIT_TITLES[split] for split in measures)], rows)


def tasks_table(measures: Record) -> str:
    """Spearman's correlation of the cosine and the head by STS task, with intervals, in percent."""
    scores = scores_of_tasks(measures)
    rows = [
        [
            name,
            f"{task['pairs']:,}" if "pairs" in task else "",
            *itertools.chain.from_iterable(_task_cells(task, score) for score in scores),
        ]
        for name, task in zip([*measures["tasks"], "average"], _tasks_and_average(measures), strict=True)
    ]
    columns = itertools.chain.from_iterable((score, "95 % interval") for score in scores)
    return markdown_table(["task", "pairs", *columns], rows)


def average_of_tasks(measures: Record, untouched: Record | None) -> str:
    """
    The average of the STS tasks of the score that the model returns, with its interval, in a sentence.

    Args:
        measures: the model's entry `sts_tasks` of its record.
        untouched: that of the untouched encoder, if it was evaluated, too.
    """
    value, interval = _task_cells(measures["average"], scores_of_tasks(measures)[-1])
    sentence = (
        f"On the seven English STS tasks, the average of Spearman's correlations is {value} (95 % interval {interval})"
    )
    if untouched is None:
        return f"{sentence}."
    before, interval_before = _task_cells(untouched["average"], "cosine")
    return f"{sentence}; for the untouched encoder, it is {before} ({interval_before})."


def data_table(trainings: Sequence[Record]) -> str:
    """
    The sets of training pairs of each stage; stages with the same sets share their lines.

    Without test pairs, and therefore leaks, the columns of the leak filter are left out.
    """
    numbers: dict[tuple[tuple[str, ...], ...], list[int]] = {}
    for number, training in enumerate(trainings, start=1):
        numbers.setdefault(tuple(map(_data_row, training["data"]["train"]["parts"])), []).append(number)
    rows = [[", ".join(map(str, stages)), *row] for sets, stages in numbers.items() for row in sets]
    header = ["stage", "source", "pairs", "label scale", "leak filter", "test pairs found", "removed"]
    start = 1 if len(numbers) == 1 else 0
    end = None if any("leaks" in part for training in trainings for part in training["data"]["train"]["parts"]) else 4
    return markdown_table(header[start:end], [row[start:end] for row in rows])


def _data_row(part: Record) -> tuple[str, ...]:
    values = part.get("label_scale")
    leaks = part.get("leaks")
    counts = ("–",) * 3 if leaks is None else (leaks["leak_filter"], f"{leaks['found']:,}", f"{leaks['removed']:,}")
    scale = "–" if values is None else f"{values[0]:g} to {values[-1]:g}"
    return cell(part["source"]), f"{part['pairs']:,}", scale, *counts


def scored_pairs(data: Record) -> str:
    """The numbers of development and test pairs, and their sources, in sentences."""
    return " ".join(
        f"{SPLIT_TITLES[split].capitalize()} pairs: {', '.join(map(_scored_part, data[split]['parts']))}."
        for split in SPLIT_TITLES
        if split in data
    )


def _scored_part(part: Record) -> str:
    whole = held_out_of(part["source"])
    return f"{part['pairs']:,} " + (f"from {code(part['source'])}" if whole is None else f"held out of {code(whole)}")


def selection(public: Record) -> str:
    """Whether test pairs helped choose the checkpoint, in a sentence; empty if there are no test pairs."""
    if not any("leaks" in part for part in _parts(public, "train")):
        return ""
    helped = sum(kept_leaks(part) for part in _parts(public, "validation"))
    if not helped:
        return "No test pair helped choose the checkpoint."
    pairs = public["data"]["validation"]["pairs"]
    return f"{helped:,} of the {pairs:,} development pairs are test pairs, so test pairs helped choose the checkpoint."


def kept_leaks(part: Record) -> int:
    """The number of test pairs that were found in a set of pairs and not removed."""
    return part["leaks"]["found"] - part["leaks"]["removed"] if "leaks" in part else 0


def options_table(trainings: Sequence[Record]) -> str:
    """The options that differ from their defaults, with a column for each stage."""
    names = dict.fromkeys(itertools.chain.from_iterable(training["arguments"] for training in trainings))
    rows = [[cell(name), *(cell(_shown(training["arguments"].get(name))) for training in trainings)] for name in names]
    numbers = [f"stage {number}" for number in range(1, len(trainings) + 1)] if len(trainings) > 1 else ["value"]
    return markdown_table(["option", *numbers], rows)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def limits(record: Record, trainings: Sequence[Record]) -> Iterator[str]:
    """Yields limitations of the model that follow from its record, such as kept leaks and lowered scores."""
    loss = record["model"]["config"]["loss_type"]
    if not has_head(record["results"]):
        yield f"The loss {code(loss)} trains no head: the cosine is the score, and `.scores` mean nothing."
    elif loss == "pearson" and record["model"]["config"].get("grading") is None:
        yield f"The loss {code(loss)} orders pairs; the scores are not on the label scale."
    if record.get("bundled_pairs", {}).get("verdict", {}).get("kept") == "trained":
        yield (
            f"Before its own training pairs, the encoder was trained on {record['bundled_pairs']['pairs']:,} English "
            "pairs that come with sts-regression. Their grades follow from the way they were written; no raters "
            "confirmed them."
        )
    for split, consequence in (
        ("train", "were trained on: test scores are higher than they would be on new pairs"),
        ("validation", "helped choose it: test scores may be higher than on new pairs"),
    ):
        kept = max(sum(kept_leaks(part) for part in _parts(training, split)) for training in trainings)
        if kept:
            yield f"{kept:,} test pairs {consequence}."
    before, after = record["results"]["before training"], record["results"]["after training"]
    for split, measures in after.items():
        for score in REPORTED_SCORES:
            old, new = before.get(split, {}).get(f"spearman_{score}"), measures.get(f"spearman_{score}")
            if old is not None and new is not None and percent(new) != percent(old) and new < old:
                yield (
                    f"On the {SPLIT_TITLES[split]} pairs, the {score} has a lower Spearman's correlation after "
                    f"training than before: {percent(new)} against {percent(old)}."
                )


def _parts(training: Record, split: str) -> Sequence[Record]:
    return training["data"].get(split, {}).get("parts", [])
