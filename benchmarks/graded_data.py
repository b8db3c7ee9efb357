"""Graded pairs of several corpora, divided once by text into training, development and test pairs.

The corpora are public. `GRADED_SETS` are CSV files with the columns `sentence1`, `sentence2` and `label`; `STS_SETS`
are the original files of training pairs of STS-B and SICK. Labels are mapped linearly onto 0 to 5.
"""

import csv
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sts_regression.data.pairs import read_pairs
from sts_regression.data.text_splits import group_by_text, split_groups

SHARES = {"train": 0.6, "validation": 0.15, "test": 0.25}
NEW_SHARES = {"train": 0.7, "validation": 0.3}  # of the training and development pairs
SPLIT_SEED = 0
HIGHEST_GRADE = 5.0  # the lowest label becomes 0
CAPS = {"train": 5000, "validation": 500, "test": 1000}  # largest number of pairs in a split
LABEL_DIGITS = 6  # rounds off errors of mapping a grade to 0 to 5 and back

LabelledPair = tuple[str, str, float]


@dataclass(frozen=True)
class GradedSet:
    """
    A file of graded pairs.

    Attributes:
        low: lowest possible label.
        high: highest possible label.
        title: a short description.
        file: name of the file in the folder of the data; `None` for the name of the set and `.csv`.
        top_grade: the highest grade; the lowest is 0. Labels that are means of raters lie between grades.
    """

    low: float
    high: float
    title: str
    file: str | None = None
    top_grade: int = 5


GRADED_SETS = {
    "cxc": GradedSet(0, 5, "Crisscrossed Captions: captions, means of raters"),
    "parade": GradedSet(0, 3, "PARADE: definitions in computer science", top_grade=3),
    "parabank": GradedSet(0, 100, "ParaBank-Eval: paraphrases, means of raters"),
    "sag": GradedSet(0, 10, "Short-answer grading: a student's answer against a reference"),
    "ukp_aspect": GradedSet(0, 3, "UKP ASPECT: arguments on one topic", top_grade=3),
}
STS_SETS = {
    "stsb": GradedSet(0, 5, "STS-B: news, captions and forums, means of raters", "stsbenchmark/sts-train.csv"),
    "sick": GradedSet(1, 5, "SICK: captions made alike and unlike, means of raters", "sick/SICK_train.txt"),
}
ALL_SETS = {**GRADED_SETS, **STS_SETS}
STS12_TRAIN = "sts12_train"
FURTHER_SOURCES = {STS12_TRAIN: GradedSet(0, 5, "SemEval 2012: training pairs that STS-B lacks, means of raters")}


def add_folders(parser: ArgumentParser) -> None:
    """Adds the options for the folders of all sets."""
    parser.add_argument("--graded_data", type=Path, required=True, help=f"folder of {', '.join(GRADED_SETS)}")
    parser.add_argument("--sts_data", type=Path, required=True, help="folder of the STS data")


def folder_of(name: str, args: Namespace) -> Any:
    """The folder of a set, by the options `graded_data` and `sts_data`; `None` if it was not given."""
    return args.sts_data if name in STS_SETS else args.graded_data


def split_graded_set(name: str, folder: Path) -> dict[str, list[LabelledPair]]:
    """
    The pairs of a corpus by split, in random order. As far as the corpus allows, splits share no text.

    Args:
        name: one of [`ALL_SETS`] or [`FURTHER_SOURCES`].
        folder: the folder of its file.

    Returns:
        The pairs of each split: two sentences, and a label from 0 to 5.
    """
    scale = {**ALL_SETS, **FURTHER_SOURCES}[name]
    pairs = read_pairs(folder / (scale.file or f"{name}.csv")).pairs[:]
    groups = group_by_text(pairs["sentence1"], pairs["sentence2"])
    labels = HIGHEST_GRADE * (np.array(pairs["label"]) - scale.low) / (scale.high - scale.low)
    rows = list(zip(pairs["sentence1"], pairs["sentence2"], labels.tolist(), strict=True))
    generator = np.random.default_rng(SPLIT_SEED)
    return {
        split: [rows[row] for row in generator.permutation(own)]
        for split, own in split_groups(groups.group_of_pair, SHARES, SPLIT_SEED).items()
    }


def graded_shares(name: str, folder: Path) -> dict[str, list[LabelledPair]]:
    """
    The first pairs of each split, at most as many as in [`CAPS`], with labels on the set's own grades.

    Args:
        name: one of [`ALL_SETS`].
        folder: the folder of its file.

    Returns:
        The pairs of each split, with labels from 0 to the set's `top_grade`.
    """
    splits = split_graded_set(name, folder)
    return {split: _with_grades(name, rows[: CAPS[split]]) for split, rows in splits.items()}


def _with_grades(name: str, rows: list[LabelledPair]) -> list[LabelledPair]:
    """Pairs with labels from 0 to the set's `top_grade`, in place of 5."""
    unit = ALL_SETS[name].top_grade / HIGHEST_GRADE
    return [(first, second, round(unit * label, LABEL_DIGITS)) for first, second, label in rows]


def divide_anew(name: str, splits: dict[str, list[LabelledPair]], seed: int) -> dict[str, list[LabelledPair]]:
    """
    Divides training and development pairs of a corpus anew by text. Its test pairs are left out.

    Args:
        name: one of [`ALL_SETS`].
        splits: see [`split_graded_set`].
        seed: seed of the division.

    Returns:
        The pairs of `train` and `validation`, as in [`graded_shares`].
    """
    rows = _with_grades(name, splits["train"] + splits["validation"])
    groups = group_by_text([first for first, _, _ in rows], [second for _, second, _ in rows])
    generator = np.random.default_rng(seed)
    return {
        split: [rows[row] for row in generator.permutation(own)[: CAPS[split]]]
        for split, own in split_groups(groups.group_of_pair, NEW_SHARES, seed).items()
    }


def budget_of_pairs(pairs: list[LabelledPair], budget: int, seed: int) -> list[LabelledPair]:
    """
    The pairs of a budget: the first ones in a random order.

    Args:
        pairs: the pairs to draw from.
        budget: the largest number of pairs.
        seed: seed of the order. With the same seed, a larger budget begins with the pairs of a smaller one.
    """
    order = np.random.default_rng(seed).permutation(len(pairs))
    return [pairs[row] for row in order[:budget]]


def write_pairs(rows: list[LabelledPair], path: Path) -> None:
    """Writes pairs as a CSV file that the training command reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["sentence1", "sentence2", "label"])
        writer.writerows((first, second, f"{label:g}") for first, second, label in rows)
