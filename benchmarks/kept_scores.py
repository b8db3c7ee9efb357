"""Scores of single pairs beside the run files in `results/`, so that a sweep can be continued with further seeds.

Of each score, its rank within the task is kept, which gives the same Spearman's correlation. Sentences and gold
scores are not kept: they are read from the STS data again.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from datasets import Dataset
from scipy import stats

from sts_regression.basics.tables import read_record
from sts_regression.data.sts_tasks import load_sts_tasks
from sts_regression.evaluation.sts_evaluation import (
    SCORES_FILE,
    columns_by_task,
    correlate,
    numpy_columns,
    read_scores,
    rows_by_value,
    score_names,
    score_tasks,
    write_scores,
)
from sts_regression.training.run_folder import RUN_FILE

SUFFIX = ".npz"
PLACEHOLDER = "FOLDER"  # in place of the path of the STS data


def keep_ranks(run: Path, record: Path) -> None:
    """
    Writes the ranks of a run's scores beside its kept record.

    Args:
        run: folder of the run, with the scores of single pairs.
        record: the run's file in `results/`.
    """
    scored_pairs = read_scores(run)
    columns = numpy_columns(scored_pairs)
    ranks = {name: np.empty(len(scored_pairs), np.uint16) for name in score_names(scored_pairs)}
    for (name, of_score), rows in (
        (item, rows) for item in ranks.items() for rows in rows_by_value(columns["task"]).values()
    ):
        of_score[rows] = stats.rankdata(columns[name][rows], method="dense")
    np.savez_compressed(record.with_suffix(SUFFIX), allow_pickle=False, **ranks)


def without_folder(record: dict[str, Any]) -> dict[str, Any]:
    """A run file with FOLDER in place of the path of the STS data."""
    folder = record.get("arguments", {}).get("sts_data")
    if folder is None or not Path(folder).is_absolute():
        return record
    return json.loads(json.dumps(record).replace(_in_json(folder), PLACEHOLDER))


def restore_runs(kept: Path, folder: Path, sts_data: Path) -> dict[str, list[Path]]:
    """
    Writes kept records and their scores to the folders in which a sweep looks for finished runs.

    Args:
        kept: folder with `<cell>/<run>.json` and `.npz`.
        folder: output folder of the sweep. Runs that it has stay as they are.
        sts_data: folder of the STS data.

    Returns:
        The folders of the kept runs by their cell.

    Raises:
        ValueError: if the scores do not belong to these STS data.
    """
    pairs = score_tasks(load_sts_tasks(sts_data), lambda *_: {})
    runs: dict[str, list[Path]] = {}
    for record in sorted(kept.glob("*/*.json")):
        ranks, run = record.with_suffix(SUFFIX), folder / record.parent.name / record.stem
        runs.setdefault(record.parent.name, []).append(run)
        if (run / RUN_FILE).is_file():
            continue
        run.mkdir(parents=True, exist_ok=True)
        if ranks.is_file():
            write_scores(_with_ranks(pairs, ranks, record), run)
        restored = record.read_text(encoding="utf-8").replace(PLACEHOLDER, _in_json(str(sts_data)))
        (run / RUN_FILE).write_text(restored, encoding="utf-8")
    return runs


def _in_json(path: str) -> str:
    return json.dumps(path)[1:-1]


def _with_ranks(pairs: Dataset, ranks: Path, record: Path) -> Dataset:
    """The pairs with a column of ranks for each score."""
    with np.load(ranks) as kept:
        scores = {name: pyarrow.array(kept[name].astype(float)) for name in kept.files}
    tasks = read_record(record)["sts_tasks"]["tasks"]
    if any(len(values) != len(pairs) for values in scores.values()):
        raise ValueError(f"{ranks}: ranks of other pairs than those of the STS data.")
    table = pairs.data.table
    for name, values in scores.items():
        table = table.append_column(name, values)
    scored_pairs = Dataset(table)
    for task, columns in columns_by_task(scored_pairs).items():
        for name in scores:
            spearman = correlate(columns[name], columns["gold_score"])["spearman"]
            if not np.isclose(spearman, tasks[task][name]["all"]["spearman"], rtol=0, atol=1e-6):
                raise ValueError(f"{ranks}: its Spearman's correlation on {task} is not that of {record.name}.")
    return scored_pairs


def has_scores(run: Path) -> bool:
    """Whether the folder of a run has the scores of single pairs."""
    return (run / SCORES_FILE).is_file()
