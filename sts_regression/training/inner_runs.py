"""Runs within a run: folds of a cross-validation, shares for a learning curve, the first training of `refit`.

An inner run leaves its scores of the development pairs and its record. Its model is deleted once they are written.
With `refit`, the first training and folds also leave their weights until the run around them is finished.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.torch import load_file, save
from torch import Tensor, nn
from transformers import TrainingArguments

from sts_regression.basics.files import replacing
from sts_regression.basics.tables import read_record
from sts_regression.data.splits import Splits
from sts_regression.evaluation.measures import PairScores
from sts_regression.training.checkpoints import delete_checkpoints
from sts_regression.training.lora import delete_adapter
from sts_regression.training.run_folder import INNER_SCORES_FILE, INNER_WEIGHTS_FILE, RUN_FILE, resumes_last

STATES = ("before", "after")  # before and after training
SCORE_NAMES = ("head", "cosine")  # fields of `PairScores`


class OutOfFold(NamedTuple):
    """
    Scores of all pairs, or with `refit` of the held-out pairs, each by a model that was not trained on the pair.

    Attributes:
        before, after: raw scores before and after training, in the order of the pairs.
        record: number of folds, Spearman's correlation of each fold before and after training, and seconds.
    """

    before: PairScores
    after: PairScores
    record: dict[str, Any]


class SmallerRuns(NamedTuple):
    """
    Runs on shares of the training pairs.

    Attributes:
        scores: raw scores of the development pairs, by the number of pairs that the model was trained on.
        seconds: duration of all these runs together.
    """

    scores: dict[int, PairScores]
    seconds: float


def leave_scores(folder: Path, before: PairScores, after: PairScores) -> None:
    """Writes the scores of the development pairs into the folder of an inner run, and deletes its checkpoints."""
    found = {
        f"{state}_{score}": getattr(scores, score)
        for state, scores in zip(STATES, (before, after), strict=True)
        for score in SCORE_NAMES
    }
    with replacing(folder / INNER_SCORES_FILE) as file:
        np.savez(file, **{name: values for name, values in found.items() if values is not None})
    delete_checkpoints(folder)
    delete_adapter(folder)


def leave_weights(folder: Path, model: nn.Module) -> None:
    """Writes the weights into the folder of an inner run; see [`take_weights`]."""
    weights = {name: value.detach().clone().contiguous() for name, value in model.state_dict().items()}
    with replacing(folder / INNER_WEIGHTS_FILE) as file:
        file.write(save(weights))


def take_weights(folder: Path) -> dict[str, Tensor]:
    """The weights that an inner run left, on the CPU."""
    return load_file(folder / INNER_WEIGHTS_FILE)


def has_weights(folder: Path) -> bool:
    """Whether an inner run left weights, which are still there."""
    return (folder / INNER_WEIGHTS_FILE).is_file()


def drop_weights(folder: Path) -> None:
    """Deletes the weights that an inner run left."""
    (folder / INNER_WEIGHTS_FILE).unlink(missing_ok=True)


def is_scored(training_args: TrainingArguments) -> bool:
    """Whether an inner run is resumed that is already finished."""
    folder = Path(training_args.output_dir or "")
    return resumes_last(training_args) and all((folder / name).is_file() for name in (INNER_SCORES_FILE, RUN_FILE))


def read_out_of_fold(folders: Sequence[Path], splits: Splits) -> OutOfFold:
    """
    Reads scores and records of the folds.

    Args:
        folders: the folders of the folds, in their order.
        splits: the splits of the run on all pairs, with `fold_rows`.
    """
    pairs = splits.pairs["validation"]
    gathered: dict[str, np.ndarray] = {}
    records = [read_record(folder / RUN_FILE) for folder in folders]
    for folder, rows in zip(folders, splits.fold_rows, strict=True):
        with np.load(folder / INNER_SCORES_FILE) as scores:
            for name, values in scores.items():
                gathered.setdefault(name, np.empty(len(pairs), values.dtype))[rows] = values
    before, after = (PairScores(*(gathered.get(f"{state}_{score}") for score in SCORE_NAMES)) for state in STATES)
    measured = [[record["results"][f"{state} training"]["validation"] for state in STATES] for record in records]
    after_by = "spearman_cosine" if after.head is None else "spearman_head"
    spearman = [{"before": old.get("spearman_cosine"), "after": new[after_by]} for old, new in measured]
    seconds = sum(record["seconds"] for record in records)
    return OutOfFold(before, after, {"count": len(folders), "spearman": spearman, "seconds": seconds})


def read_smaller_runs(folders: Sequence[Path]) -> SmallerRuns:
    """Reads scores and durations of the runs on shares of the training pairs."""
    found, seconds = {}, 0.0
    for folder in folders:
        record = read_record(folder / RUN_FILE)
        with np.load(folder / INNER_SCORES_FILE) as scores:
            found[record["data"]["train"]["pairs"]] = PairScores(
                *(scores.get(f"after_{score}") for score in SCORE_NAMES)
            )
        seconds += record["seconds"]
    return SmallerRuns(found, seconds)
