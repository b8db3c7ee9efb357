"""Graded pairs of several corpora, divided once by text into training, development and test pairs.

The corpora are public. Each is a CSV file with the columns `sentence1`, `sentence2` and `label`, on the scale that
`GRADED_SETS` gives; labels are mapped linearly onto 0 to 5.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sts_regression.data.pairs import read_pairs
from sts_regression.data.text_splits import group_by_text, split_groups

SHARES = {"train": 0.6, "validation": 0.15, "test": 0.25}
SPLIT_SEED = 0
HIGHEST_GRADE = 5.0  # the lowest label becomes 0


@dataclass(frozen=True)
class GradedSet:
    """A file of graded pairs: its scale, and what it is."""

    low: float
    high: float
    title: str


GRADED_SETS = {
    "cxc": GradedSet(0, 5, "Crisscrossed Captions: captions, means of raters"),
    "parade": GradedSet(0, 3, "PARADE: definitions in computer science"),
    "parabank": GradedSet(0, 100, "ParaBank-Eval: paraphrases, means of raters"),
    "sag": GradedSet(0, 10, "Short-answer grading: a student's answer against a reference"),
    "ukp_aspect": GradedSet(0, 3, "UKP ASPECT: arguments on one topic"),
}


def split_graded_set(name: str, folder: Path) -> dict[str, list[tuple[str, str, float]]]:
    """
    The pairs of a corpus by split, in random order; no text stands in two splits, as far as the corpus allows.

    Args:
        name: one of [`GRADED_SETS`].
        folder: that holds `<name>.csv`.

    Returns:
        By split its pairs: two sentences, and a label from 0 to 5.
    """
    scale, pairs = GRADED_SETS[name], read_pairs(folder / f"{name}.csv").pairs[:]
    groups = group_by_text(pairs["sentence1"], pairs["sentence2"])
    labels = HIGHEST_GRADE * (np.array(pairs["label"]) - scale.low) / (scale.high - scale.low)
    rows = list(zip(pairs["sentence1"], pairs["sentence2"], labels.tolist(), strict=True))
    generator = np.random.default_rng(SPLIT_SEED)
    return {
        split: [rows[row] for row in generator.permutation(own)]
        for split, own in split_groups(groups.group_of_pair, SHARES, SPLIT_SEED).items()
    }


def write_pairs(rows: list[tuple[str, str, float]], path: Path) -> None:
    """Writes pairs as a CSV file that the training command reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["sentence1", "sentence2", "label"])
        writer.writerows((first, second, f"{label:g}") for first, second, label in rows)
