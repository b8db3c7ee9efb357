"""The measures of a sweep's runs over their seeds, and the tests of every cell against the baselines."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from datasets import Dataset

from sts_regression.basics.tables import REPORTED_SCORES, read_record, seconds_of_all
from sts_regression.data.sts_tasks import STSB
from sts_regression.evaluation.compare import PartName, measure_parts
from sts_regression.evaluation.significance import SeedScores, difference_test, holm, over_seeds
from sts_regression.evaluation.sts_evaluation import (
    PAIR_COLUMNS,
    SCORES_FILE,
    TEST_PAIR_COLUMNS,
    TEST_SCORES_FILE,
    numpy_columns,
    read_scores,
    read_test_scores,
    rows_by_value,
)
from sts_regression.training.run_folder import RUN_FILE

AVERAGE, TEST, DEVELOPMENT = "average", "test", "development"
STS_TASKS = "STS tasks"
# The genres of STS-B's training pairs that remain without test pairs, and the tasks that test these genres.
TRAINED_GENRES, TASKS_OF_TRAINED_GENRES = ("MSRpar", "MSRvid"), ("STS12", STSB)
WITHOUT_TRAINED_GENRES = "without " + " and ".join(TRAINED_GENRES)
SAME_CORRELATION = 1e-5  # smaller differences of correlations come from ties that rounding breaks
SHOWN_OF_TESTS = ("difference", "low", "high", "p")

Summary = Mapping[str, Any]  # see `summarize`
CellMeasures = dict[str, dict[PartName, SeedScores]]  # by score


@dataclass(frozen=True)
class _Cell:
    """The finished runs of a cell."""

    folders: list[Path]
    seeds: list[int]
    seconds: float  # mean duration of a run
    trains: bool
    measures: CellMeasures
    pairs: dict[str, pyarrow.Table]  # the scored pairs of the test sets and of the STS tasks
    scored_seeds: list[int]  # of the runs with scores of single pairs


def summarize(runs: Mapping[str, Sequence[Path]], baselines: Sequence[str]) -> Summary:
    """
    Summarises the finished runs of a sweep.

    Args:
        runs: folders by the name of the cell. Unfinished runs are left out.
        baselines: the cells that all others are tested against.

    Returns:
        A `dict` with

        - `headline`: the measure in the tests of tables: `average` (of the STS tasks) if any cell has it, else `test`
          (the test set, or the mean of several), else `development`;
        - `tests`: the number of pairs of methods that are tested on the headline. Cosine and head of a cell count as
          two methods if they rank differently;
        - `cells`: for each cell, its `seeds`, those of runs with scores of single pairs (`scored_seeds`), the mean
          `seconds` of a run, whether it `trains`, its measures and its `genres`.

        Measures are given by score and name: `development`, test sets, `test`, STS tasks and `average`, if every run
        has them. Each has the `values` of Spearman's correlation by seed, their `mean`, their standard deviation `sd`
        (`None` for one seed), and `versus`: by baseline, the result of [`difference_test`]. On the headline, it also
        has `p_holm`, after Holm's correction over these tests. A baseline without a trained head is compared by its
        cosine. There are no tests on development pairs, which choose checkpoints.

        `genres` holds, by score, STS task and genre, the `mean`, the `sd`, and `difference`, `low`, `high` and `p` of
        the tests against the first baseline, over `scored_seeds`.

    Raises:
        ValueError: if runs were scored on different test pairs.
    """
    cells = {}
    for name, asked_for in runs.items():
        folders = [folder for folder in asked_for if (folder / RUN_FILE).is_file()]
        if folders:
            cells[name] = _read_cell(folders)
    _check_same_pairs(list(cells.values()))
    measured = {name for cell in cells.values() for measures in cell.measures.values() for name in measures}
    headline = next((name for name in (AVERAGE, TEST) if name in measured), DEVELOPMENT)
    described = {name: _describe_cell(name, cells, baselines) for name in cells}
    return {"headline": headline, "tests": _correct(described, headline), "cells": described}


def _read_cell(folders: list[Path]) -> _Cell:
    records = [read_record(folder / RUN_FILE) for folder in folders]
    trains = any(record.get("training") is not None for record in records)
    measures = {score: _recorded(records, score, trains) for score in REPORTED_SCORES}
    seconds = float(np.mean(list(map(seconds_of_all, records))))
    seeds = [record["seed"] for record in records]
    kept = (SCORES_FILE, TEST_SCORES_FILE)
    scored = [
        seed for folder, seed in zip(folders, seeds, strict=True) if any((folder / name).is_file() for name in kept)
    ]
    cell = _Cell(folders, seeds, seconds, trains, measures, {}, scored)
    _measure_test_sets(cell)
    if all("sts_tasks" in record for record in records):
        _measure_sts_tasks(cell, [record["sts_tasks"] for record in records])
    return cell


def _recorded(records: Sequence[Mapping[str, Any]], score: str, trains: bool) -> dict[PartName, SeedScores]:
    """The measures of development pairs and test sets in the records of all runs."""
    found = [_recorded_values(record, score) for record in records]
    names = [name for name in found[0] if all(name in of_run for of_run in found)]
    return {name: over_seeds([of_run[name] for of_run in found], trains) for name in names}


def _recorded_values(record: Mapping[str, Any], score: str) -> dict[str, float]:
    splits, by_set = (_last_state(record.get(name)) for name in ("results", "results_by_set"))
    sets = by_set.get("test", {})
    short = short_names(list(sets))
    measures = {
        DEVELOPMENT: splits.get("validation", {}),
        **{short[name]: of_set for name, of_set in sets.items()},
        TEST: splits.get("test", {}),
    }
    key = f"spearman_{score}"
    return {name: of_name[key] for name, of_name in measures.items() if key in of_name}


def _last_state(states: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The measures of the model at the end of the run; empty if there are none."""
    return list(states.values())[-1] if states else {}


def short_names(paths: Sequence[str]) -> dict[str, str]:
    """Names of files without their folders, if they are unique without them."""
    names = [Path(path).name for path in paths]
    return {path: name if names.count(name) == 1 else path for path, name in zip(paths, names, strict=True)}


def _measure_test_sets(cell: _Cell) -> None:
    """Adds resamples to the measures of the test sets, from the runs that have scores of single pairs."""
    tables = _read_tables(cell, TEST, read_test_scores, TEST_PAIR_COLUMNS)
    if not tables:
        return
    gold_scores = tables[0]["gold_score"]
    sets = {name: rows for name, rows in rows_by_value(tables[0]["set"]).items() if np.ptp(gold_scores[rows]) > 0}
    short = short_names(list(sets))
    means: dict[PartName, list[PartName]] = {TEST: list(sets)}
    if len(sets) > 1:
        means |= {short[name]: [name] for name in sets}
    measured = (score for score in REPORTED_SCORES if TEST in cell.measures[score])
    scores = [score for score in measured if all(score in table for table in tables)]
    _add(cell, measure_parts(tables, scores, sets, means, cell.trains))


def _measure_sts_tasks(cell: _Cell, recorded: Sequence[Mapping[str, Any]]) -> None:
    """
    Adds the measures of the STS tasks and their average, for the scores that all runs have.

    The values are those of the records. Resamples and genres come from the runs that have scores of single pairs.
    """
    averages = [of_run["average"] for of_run in recorded]
    scores = [score for score in REPORTED_SCORES if all(score in average for average in averages)]
    measured = [{**of_run["tasks"], AVERAGE: of_run["average"]} for of_run in recorded]
    for score, name in itertools.product(scores, measured[0]):
        values = [of_run[name][score]["all"]["spearman"] for of_run in measured]
        cell.measures[score][name] = over_seeds(values, cell.trains)
    tables = _read_tables(cell, STS_TASKS, _read_kept_scores, PAIR_COLUMNS)
    if not tables:
        return
    tasks = rows_by_value(tables[0]["task"])
    genres = _genre_rows(tables[0]["genre"], tasks)
    means: dict[PartName, list[PartName]] = {**{name: [name] for name in tasks}, AVERAGE: list(tasks)}
    means |= {name: [name] for name in genres}
    parts: dict[Any, np.ndarray] = {**tasks, **genres}
    _add(cell, measure_parts(tables, scores, parts, means, cell.trains))


def _add(cell: _Cell, from_scores: CellMeasures) -> None:
    """Adds measures of the runs with scores of single pairs. Values that all runs recorded stay."""
    for score, measures in from_scores.items():
        recorded = cell.measures[score]
        for name, over in measures.items():
            recorded[name] = replace(over, values=recorded[name].values) if name in recorded else over


def _read_kept_scores(folder: Path) -> Dataset | None:
    return read_scores(folder) if (folder / SCORES_FILE).is_file() else None


def _genre_rows(genres: np.ndarray, tasks: Mapping[str, np.ndarray]) -> dict[PartName, np.ndarray]:
    """The rows of each genre of each task, and of tasks without the genres in the training pairs."""
    found: dict[PartName, np.ndarray] = {}
    for task, rows in tasks.items():
        by_genre = rows_by_value(genres[rows])
        found |= {(task, genre): rows[own] for genre, own in by_genre.items() if genre}
        others = rows[~np.isin(genres[rows], TRAINED_GENRES)]
        if task in TASKS_OF_TRAINED_GENRES and 0 < len(others) < len(rows):
            found[task, WITHOUT_TRAINED_GENRES] = others
    return found


def _read_tables(
    cell: _Cell, kind: str, read: Callable[[Path], Dataset | None], columns: Sequence[str]
) -> list[dict[str, np.ndarray]]:
    """The scored pairs of each run that has them. Records in the cell which pairs were scored."""
    tables = {folder: table for folder in cell.folders if (table := read(folder)) is not None}
    for folder, table in tables.items():
        pairs = table.data.table.select(list(columns))
        if cell.pairs.setdefault(kind, pairs) != pairs:
            raise _different_pairs(next(iter(tables)), folder)
    return list(map(numpy_columns, tables.values()))


def _check_same_pairs(cells: Sequence[_Cell]) -> None:
    first: dict[str, _Cell] = {}
    for cell in cells:
        for kind, pairs in cell.pairs.items():
            if first.setdefault(kind, cell).pairs[kind] != pairs:
                raise _different_pairs(first[kind].folders[0], cell.folders[0])


def _different_pairs(first: Path, second: Path) -> ValueError:
    return ValueError(
        f"{first} and {second} hold scores of different test pairs, so they cannot be tested against each other. "
        "Leave one of the cells out, or score both on the same pairs."
    )


def _describe_cell(name: str, cells: Mapping[str, _Cell], baselines: Sequence[str]) -> dict[str, Any]:
    cell = cells[name]
    described: dict[str, Any] = {
        "seeds": cell.seeds,
        "scored_seeds": cell.scored_seeds,
        "seconds": cell.seconds,
        "trains": cell.trains,
    }
    genres: dict[str, Any] = {}
    known = [baseline for baseline in baselines if baseline in cells]
    for score, measures in cell.measures.items():
        for measured, over in measures.items():
            rivals = known[:1] if isinstance(measured, tuple) else [] if measured == DEVELOPMENT else known
            data = {**_describe(over), "versus": _tests(name, score, measured, cells, rivals)}
            if isinstance(measured, tuple):
                task, genre = measured
                genres.setdefault(score, {}).setdefault(task, {})[genre] = _in_short(data)
            else:
                described.setdefault(score, {})[measured] = data
    return {**described, "genres": genres}


def _describe(over: SeedScores) -> dict[str, Any]:
    sd = float(np.std(over.values, ddof=1)) if len(over.values) > 1 else None
    return {"mean": over.mean, "sd": sd, "values": list(over.values)}


def _in_short(data: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a measure that tables show: there are many genres, and the summary is kept with the results."""
    tests = {baseline: {key: test[key] for key in SHOWN_OF_TESTS} for baseline, test in data["versus"].items()}
    return {"mean": data["mean"], "sd": data["sd"], "versus": tests}


def _tests(
    name: str, score: str, measured: PartName, cells: Mapping[str, _Cell], baselines: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """The results of [`difference_test`] for a cell's measure, by baseline."""
    tests = {}
    for baseline in baselines:
        measures = cells[baseline].measures
        base_score = _score_of_baseline(measures, score, measured)
        if base_score is not None and (baseline, base_score) != (name, score):
            tests[baseline] = difference_test(cells[name].measures[score][measured], measures[base_score][measured])
    return tests


def _score_of_baseline(measures: Mapping[str, Any], score: str, measured: PartName) -> str | None:
    """The score of a baseline that is compared: the same score, or the cosine if it has no trained head."""
    return next((known for known in (score, REPORTED_SCORES[0]) if measured in measures.get(known, {})), None)


def ranks_as_cosine(cell: Mapping[str, Any], headline: str) -> bool:
    """Whether the head of a cell ranks test pairs as its cosine does, such as a head that maps the cosine."""
    cosine, head = (cell.get(score, {}).get(headline) for score in REPORTED_SCORES)
    return None not in (cosine, head) and np.allclose(cosine["values"], head["values"], rtol=0, atol=SAME_CORRELATION)


def _correct(cells: Mapping[str, Any], headline: str) -> int:
    """Adds `p_holm` to the tests on the headline, with each pair of methods counted once. Returns their number."""

    def method(name: str, score: str | None) -> tuple[str, str | None]:
        return name, REPORTED_SCORES[0] if ranks_as_cosine(cells[name], headline) else score

    tests: dict[frozenset[Any], list[dict[str, Any]]] = {}
    for score, (name, cell) in itertools.product(REPORTED_SCORES, cells.items()):
        for baseline, test in cell.get(score, {}).get(headline, {}).get("versus", {}).items():
            of_baseline = _score_of_baseline(cells[baseline], score, headline)
            tests.setdefault(frozenset((method(name, score), method(baseline, of_baseline))), []).append(test)
    adjusted = holm({pair: same[0]["p"] for pair, same in tests.items() if same[0]["p"] is not None})
    for pair, same in tests.items():
        for test in same:
            test["p_holm"] = adjusted.get(pair)
    return len(adjusted)
