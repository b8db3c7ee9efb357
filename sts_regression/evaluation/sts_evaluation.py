"""Measures of a model on the seven STS tasks, with all common aggregations over subsets.

- `all`: one correlation over all pairs of a task, its subsets mixed, as reported by papers since SimCSE and by MTEB.
- `mean`: the mean of the correlations of a task's subsets.
- `wmean`: their mean weighted by the numbers of pairs, as in SentEval.

The average is the mean of the seven tasks.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from datasets import Dataset, concatenate_datasets
from scipy import stats

from sts_regression.basics.parquet_files import read_parquet
from sts_regression.data.leakage import fold_text
from sts_regression.data.sts_tasks import STSTask
from sts_regression.data.text_splits import groups_to_resample
from sts_regression.evaluation.bootstrap import NUM_RESAMPLES, bootstrap_spearman, confidence_interval
from sts_regression.models.encoding import Scorer, finite_scores

AGGREGATIONS = ("all", "mean", "wmean")
TASK_CORRELATIONS = ("spearman", "pearson")
SCORES_FILE = "sts_scores.parquet"
TEST_SCORES_FILE = "test_scores.parquet"
PAIR_COLUMNS = ("task", "subset", "genre", "pair", "group", "gold_score")  # in scored pairs; other columns are scores
TEST_PAIR_COLUMNS = ("set", "pair", "group", "gold_score")  # in scored test pairs; other columns are scores
PAIR_DIGEST_BYTES = 8  # any two of a million pairs share a digest with a probability of 1 in 40 million


def score_tasks(tasks: Sequence[STSTask], scorer: Scorer) -> Dataset:
    """
    Scores the pairs of all tasks in one go, so that a sentence of several tasks is encoded once.

    Args:
        tasks: see [`load_sts_tasks`].
        scorer: maps the first and the second sentences of pairs to arrays of shape (pairs,) by the name of the score:
            those of `cosine`, `dot` and `head` that the model has.

    Returns:
        A `Dataset` with a row per pair: `task`, `subset`, `genre`, `pair` (see [`pair_identities`]), `group` (see
        [`groups_to_resample`]), `gold_score` and a column per score.

    Raises:
        ValueError: for scores that are NaN or infinite.
    """
    pairs = concatenate_datasets([task.pairs for task in tasks])[:]
    sentences = pairs["sentence1"], pairs["sentence2"]
    scores = finite_scores(scorer(*sentences))
    return Dataset.from_dict(
        {
            "task": [task.name for task in tasks for _ in range(len(task.pairs))],
            "subset": pairs["subset"],
            "genre": pairs["genre"],
            "pair": pair_identities(*sentences),
            "group": groups_to_resample(*sentences),
            "gold_score": pairs["label"],
            **scores,
        }
    )


def pair_identities(sentences1: Sequence[str], sentences2: Sequence[str]) -> list[str]:
    """
    Digests that identify pairs in any data set: of the two folded sentences, in either order.

    Args:
        sentences1: first sentence of each pair.
        sentences2: second sentence of each pair.
    """
    folded = (sorted(map(fold_text, pair)) for pair in zip(sentences1, sentences2, strict=True))
    return [hashlib.blake2b("\n".join(pair).encode(), digest_size=PAIR_DIGEST_BYTES).hexdigest() for pair in folded]


def measure_tasks(scored_pairs: Dataset) -> dict[str, Any]:
    """
    Correlations of scored pairs with their gold scores, and 95 % bootstrap intervals of Spearman's over all pairs.

    Args:
        scored_pairs: see [`score_tasks`].

    Returns:
        A `dict` with `tasks` and `average`, the mean of the tasks. Both hold, by score and aggregation, `spearman`,
        `pearson` and, for the aggregation `all`, the `interval` of Spearman's correlation. Each task also has its
        number of `pairs`, and its `subsets` with their own `pairs` and correlations. Correlations lie between -1 and
        1.
    """
    names = score_names(scored_pairs)
    samples = resample_tasks(scored_pairs, names)
    tasks: dict[str, Any] = {}
    for task, columns in columns_by_task(scored_pairs).items():
        gold, subset = columns["gold_score"], columns["subset"]
        subsets = {
            str(part): {
                "pairs": int((subset == part).sum()),
                **{name: correlate(columns[name][subset == part], gold[subset == part]) for name in names},
            }
            for part in np.unique(subset)
        }
        tasks[task] = {"pairs": len(gold)}
        for name in names:
            tasks[task][name] = {
                "all": {**correlate(columns[name], gold), "interval": confidence_interval(samples[name][task])},
                "mean": _mean_of_subsets(subsets, name, weighted=False),
                "wmean": _mean_of_subsets(subsets, name, weighted=True),
            }
        tasks[task]["subsets"] = {part: measures for part, measures in subsets.items() if part}
    average: dict[str, Any] = {}
    for name in names:
        average[name] = {
            aggregation: {
                kind: float(np.mean([measures[name][aggregation][kind] for measures in tasks.values()]))
                for kind in TASK_CORRELATIONS
            }
            for aggregation in AGGREGATIONS
        }
        average[name]["all"]["interval"] = confidence_interval(samples[name]["average"])
    return {"tasks": tasks, "average": average}


def resample_tasks(
    scored_pairs: Dataset, names: Sequence[str], num_resamples: int = NUM_RESAMPLES
) -> dict[str, dict[str, np.ndarray]]:
    """
    Spearman's correlation over all pairs of each task on resampled pairs, see [`bootstrap_spearman`].

    Pairs that share a sentence, in one task or in several, are drawn together. Models that were scored on the same
    pairs get the same resamples, so differences between them are paired.

    Args:
        scored_pairs: see [`score_tasks`].
        names: names of the scores, `cosine`, `dot` or `head`.
        num_resamples: number of resamples of the bootstrap.

    Returns:
        For each score, a `dict` of arrays of shape (num_resamples,) by name of the task, and their `average`.
    """
    columns = numpy_columns(scored_pairs)
    scores = {name: columns[name] for name in names}
    parts = rows_by_value(columns["task"])
    by_task = bootstrap_spearman(scores, columns["gold_score"], columns["group"], parts, num_resamples)
    samples = {name: {task: resampled[name] for task, resampled in by_task.items()} for name in names}
    return {name: {**tasks, "average": np.mean(list(tasks.values()), axis=0)} for name, tasks in samples.items()}


def score_names(scored_pairs: Dataset) -> list[str]:
    """The columns of scored pairs that are scores."""
    return [name for name in scored_pairs.column_names if name not in (*PAIR_COLUMNS, *TEST_PAIR_COLUMNS)]


def columns_by_task(scored_pairs: Dataset) -> dict[str, dict[str, np.ndarray]]:
    """The columns of the scored pairs of each task, shape (pairs,) each."""
    columns = numpy_columns(scored_pairs)
    parts = rows_by_value(columns["task"])
    return {task: {name: values[rows] for name, values in columns.items()} for task, rows in parts.items()}


def numpy_columns(scored_pairs: Dataset) -> dict[str, np.ndarray]:
    """The columns of scored pairs as arrays of shape (pairs,)."""
    return scored_pairs.with_format("numpy")[:]


def rows_by_value(column: np.ndarray) -> dict[str, np.ndarray]:
    """The rows of each value of a column, in the order of the first occurrence."""
    return {str(value): np.flatnonzero(column == value) for value in dict.fromkeys(column.tolist())}


def correlate(scores: np.ndarray, gold_scores: np.ndarray) -> dict[str, float]:
    """Spearman's and Pearson's correlation; 0 if all scores are equal."""
    if np.ptp(scores) == 0:
        return dict.fromkeys(TASK_CORRELATIONS, 0.0)
    return {
        "spearman": float(stats.spearmanr(scores, gold_scores).statistic),
        "pearson": float(stats.pearsonr(scores, gold_scores).statistic),
    }


def _mean_of_subsets(subsets: dict[str, Any], name: str, weighted: bool) -> dict[str, float]:
    weights = [measures["pairs"] for measures in subsets.values()] if weighted else None
    return {
        kind: float(np.average([measures[name][kind] for measures in subsets.values()], weights=weights))
        for kind in TASK_CORRELATIONS
    }


def write_scores(scored_pairs: Dataset, folder: Path) -> None:
    """Writes `sts_scores.parquet`, the scores of each pair, with which models can be compared."""
    folder.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(scored_pairs.data.table, folder / SCORES_FILE)


def read_scores(folder: str | Path) -> Dataset:
    """
    Reads the scores of [`write_scores`].

    Raises:
        ValueError: if the folder has no scores, or scores of an earlier version.
    """
    path = Path(folder) / SCORES_FILE
    if not path.is_file():
        raise ValueError(
            f"{path}: no such file. `run_sts.py --do_eval --sts_data …` writes it, and {TEST_SCORES_FILE} with "
            "`--test_file …`."
        )
    return _read_table(path, PAIR_COLUMNS)


def write_test_scores(
    sets: np.ndarray,
    pairs: np.ndarray,
    groups: np.ndarray,
    gold_scores: np.ndarray,
    scores: Mapping[str, np.ndarray],
    folder: Path,
) -> None:
    """
    Writes `test_scores.parquet`, the scores of each test pair, with which models can be compared.

    Args:
        sets: the name of each pair's test set, shape (pairs,), as in `results_by_set` of the run's record.
        pairs: identities of shape (pairs,), see [`pair_identities`].
        groups: the number of each pair's group, shape (pairs,), see [`groups_to_resample`].
        gold_scores: labels of shape (pairs,).
        scores: those of `cosine` and `head` that the model has, shape (pairs,) each.
        folder: folder of the run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    columns = dict(zip(TEST_PAIR_COLUMNS, (sets, pairs, groups, gold_scores), strict=True))
    pyarrow.parquet.write_table(pyarrow.table({**columns, **scores}), folder / TEST_SCORES_FILE)


def read_test_scores(folder: Path) -> Dataset | None:
    """
    Reads the scores of [`write_test_scores`]; `None` if there are none.

    Raises:
        ValueError: if the file lacks a column.
    """
    path = folder / TEST_SCORES_FILE
    return _read_table(path, TEST_PAIR_COLUMNS) if path.is_file() else None


def _read_table(path: Path, columns: Sequence[str]) -> Dataset:
    try:
        table = read_parquet(path)
    except (ValueError, OSError, pyarrow.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: not a readable Parquet file ({reason:.200}). Evaluate again.") from error
    missing = [f"`{name}`" for name in columns if name not in table.column_names]
    if missing:
        raise ValueError(f"{path}: an earlier version wrote it, without {', '.join(missing)}. Evaluate again.")
    return Dataset(table)
