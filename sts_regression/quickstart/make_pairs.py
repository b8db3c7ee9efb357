"""Write the quick-start data set: English sentence pairs with a similarity grade from 0 to 5.

The pairs let a newcomer train and measure an encoder within minutes and without a download. They are made from
hand-written scenes, so the grade of a pair follows from how its two sentences were written and not from a model.
Train, dev and test have their own topics: a gain on the test pairs is a gain on unseen sentences. Within a grade,
pairs whose word overlap contradicts their grade are preferred, so that counting shared words is not enough.

Run `python -m sts_regression.quickstart.make_pairs` to write `train.csv`, `dev.csv` and `test.csv` again. The
output depends on nothing but this file and the scenes next to it.
"""

import argparse
import csv
import re
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import NamedTuple

from sts_regression.quickstart.scenes_dev import DEV_SCENES
from sts_regression.quickstart.scenes_test import TEST_SCENES
from sts_regression.quickstart.scenes_train import TRAIN_SCENES

GRADES: dict[int, tuple[str, str]] = {
    0: ("unrelated", "The sentences are about different topics."),
    1: ("same topic", "The sentences share a topic, but describe different things."),
    2: ("some shared details", "The sentences share an actor, object or place, but say different things about it."),
    3: ("an important detail differs", "Who, what, how many or the outcome differs; all else is the same."),
    4: ("a minor detail differs", "The main statement is the same; a side detail is changed, added or left out."),
    5: ("same meaning", "The sentences say the same thing, in the same or in other words."),
}
HEADER = ("sentence1", "sentence2", "score")
MAX_USES = 15  # how many pairs of a split may hold the same sentence
MAX_SWAPS = 1  # how many pairs of grade 5 a scene may offer whose sides only differ in one wording of the same line
CANDIDATES = 3  # a hard pair is the hardest of this many random ones
HARD_SHARE = 0.5  # the share of pairs which are picked as hard ones
ALTERNATIVES = re.compile(r"\{([^{}]*)\}")

Line = list[str]  # the sentences that one line of a scene stands for; they all mean the same
Pair = tuple[str, str]


class Scene(NamedTuple):
    """The lines of one scene, by the grade that they have against its lines of grade 5."""

    topic: str
    lines: dict[int, list[Line]]


class Split(NamedTuple):
    """The parts of one CSV file."""

    name: str
    scenes: str
    pairs_per_grade: int
    seed: int


SPLITS = (
    Split("train", TRAIN_SCENES, 250, 11),
    Split("dev", DEV_SCENES, 50, 12),
    Split("test", TEST_SCENES, 50, 13),
)


def expand(text: str) -> Line:
    """Return the sentences that a line with alternatives, such as `It {began|started}.`, stands for."""
    match = ALTERNATIVES.search(text)
    if match is None:
        return [text]
    return [
        sentence
        for choice in match.group(1).split("|")
        for sentence in expand(text[: match.start()] + choice + text[match.end() :])
    ]


def parse_scenes(text: str) -> list[Scene]:
    """Read scenes from their notation.

    `# name` starts a topic and a blank line starts a scene. Every other line is a grade, a blank and a sentence. The
    sentences of grade 5 all state the meaning of the scene; another sentence has its grade against each of these.
    `{a|b}` stands for either wording, without any change of meaning.
    """
    scenes: list[Scene] = []
    topic = ""
    for block in text.strip().split("\n\n"):
        if block.startswith("# "):
            topic = block.removeprefix("# ")
            continue
        lines: dict[int, list[Line]] = {grade: [] for grade in (1, 2, 3, 4, 5)}
        for row in block.splitlines():
            grade, sentence = row.split(" ", 1)
            lines[int(grade)].append(expand(sentence))
        scenes.append(Scene(topic, lines))
    return scenes


def pairs_within(scene: Scene, grade: int) -> list[list[Pair]]:
    """Return the pairs of a grade from 1 to 5 that a scene offers, one list for each two lines."""
    same = scene.lines[5]
    if grade == 5:
        swaps = [[(line[0], line[1])] for lines in scene.lines.values() for line in lines if len(line) > 1]
        return [list(product(a, b)) for a, b in combinations(same, 2)] + swaps[:MAX_SWAPS]
    if grade <= 2:
        same = same + scene.lines[4]
    return [list(product(a, b)) for a, b in product(same, scene.lines[grade])]


def pairs_across(first: Scene, second: Scene) -> list[list[Pair]]:
    """Return all pairs of a sentence of the first and one of the second scene, one list for each two lines."""
    lines = [[line for lines in scene.lines.values() for line in lines] for scene in (first, second)]
    return [list(product(a, b)) for a, b in product(*lines)]


def pairs_of_grade(scenes: Sequence[Scene], grade: int) -> list[list[list[Pair]]]:
    """Return the pairs of a grade: one list for each scene or two scenes, which holds one list for each two lines."""
    within = [pairs_within(scene, grade) for scene in scenes] if grade >= 1 else []
    if grade >= 2:
        return within
    return within + [pairs_across(a, b) for a, b in combinations(scenes, 2) if (a.topic == b.topic) == (grade == 1)]


def overlap(pair: Pair) -> float:
    """Return the share of words that both sentences of a pair hold."""
    first, second = (set(re.findall(r"\w+", sentence.lower())) for sentence in pair)
    return len(first & second) / len(first | second)


def pick_pairs(sources: list[list[list[Pair]]], grade: int, count: int, uses: Counter[str], rng: Random) -> list[Pair]:
    """Pick pairs of one grade from all sources in turn, and count the uses of their sentences.

    A hard pair has little overlap at the grades 4 and 5 and much overlap below.
    """
    sign = 1 if grade <= 3 else -1
    sources = [rng.sample(source, len(source)) for source in rng.sample(sources, len(sources))]
    picked: list[Pair] = []
    while len(picked) < count:
        before = len(picked)
        for source in sources[: count - before]:  # at most one pair from each
            free = [[p for p in pairs if max(uses[p[0]], uses[p[1]]) < MAX_USES] for pairs in source]
            candidates = [rng.choice(pairs) for pairs in free[:CANDIDATES] if pairs]
            if not candidates:
                continue
            hard = rng.random() < HARD_SHARE
            pair = max(candidates, key=lambda p: sign * overlap(p)) if hard else candidates[0]
            source[:] = [pairs for pairs in source if pair not in pairs]  # two lines meet once
            uses.update(pair)
            picked.append(pair)
        if len(picked) == before:
            raise ValueError(f"The scenes offer {before} instead of {count} pairs of grade {grade}.")
    return picked


def make_rows(split: Split) -> list[tuple[str, str, int]]:
    """Make the rows of one split in random order, with as many pairs of each grade."""
    rng = Random(split.seed)
    scenes = parse_scenes(split.scenes)
    uses: Counter[str] = Counter()
    rows: list[tuple[str, str, int]] = []
    for grade in sorted(GRADES, reverse=True):
        pairs = pick_pairs(pairs_of_grade(scenes, grade), grade, split.pairs_per_grade, uses, rng)
        rows += [(*((a, b) if rng.random() < 0.5 else (b, a)), grade) for a, b in pairs]
    rng.shuffle(rows)
    return rows


def write_split(split: Split, output_dir: Path) -> Path:
    """Write the CSV file of one split and return its path."""
    path = output_dir / f"{split.name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(make_rows(split))
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the three CSV files."""
    parser = argparse.ArgumentParser(description="Write train.csv, dev.csv and test.csv of the quick-start data set.")
    parser.add_argument("--output_dir", type=Path, default=Path(__file__).parent, help="folder for the CSV files")
    output_dir: Path = parser.parse_args(arguments).output_dir
    output_dir.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        path = write_split(split, output_dir)
        sys.stdout.write(f"{path}: {split.pairs_per_grade * len(GRADES)} pairs\n")


if __name__ == "__main__":
    main()
