"""The committed quick-start pairs are the output of their program, and their README is right."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from sts_regression.quickstart import make_pairs

FOLDER = Path(make_pairs.__file__).parent
COUNTS = {"train": 250, "dev": 50, "test": 50}  # pairs of each grade
NAMES = tuple(COUNTS)
SENTENCE = re.compile(r"[A-Z0-9\"'].*[.!?\"']")


def read_rows(name: str) -> list[tuple[str, str, int]]:
    """Read the pairs of one split."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert tuple(rows[0]) == make_pairs.HEADER
    return [(first, second, int(score)) for first, second, score in rows[1:]]


def sentences(name: str) -> set[str]:
    """Return the sentences of one split."""
    return {sentence for *pair, _ in read_rows(name) for sentence in pair}


def test_files_are_what_the_program_writes(tmp_path: Path) -> None:
    """The committed files and a fresh run agree byte by byte."""
    make_pairs.main(["--output_dir", str(tmp_path / "new")])
    for name in NAMES:
        assert (tmp_path / "new" / f"{name}.csv").read_bytes() == (FOLDER / f"{name}.csv").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_every_grade_is_equally_frequent(name: str) -> None:
    """Each split has the promised number of pairs for each grade."""
    grades = Counter(grade for _, _, grade in read_rows(name))
    assert grades == dict.fromkeys(range(6), COUNTS[name])


@pytest.mark.parametrize(("first", "second"), [("train", "dev"), ("train", "test"), ("dev", "test")])
def test_splits_share_no_sentence_and_no_topic(first: str, second: str) -> None:
    """A gain on one split cannot come from sentences or topics of another."""
    assert not sentences(first) & sentences(second)
    scenes = {split.name: split.scenes for split in make_pairs.SPLITS}
    topics = [{scene.topic for scene in make_pairs.parse_scenes(scenes[name])} for name in (first, second)]
    assert not topics[0] & topics[1]


@pytest.mark.parametrize("name", NAMES)
def test_no_pair_is_trivial_or_repeated(name: str) -> None:
    """Sides differ, an unordered pair comes once, and no sentence is overused."""
    rows = read_rows(name)
    assert all(first.casefold() != second.casefold() for first, second, _ in rows)
    assert max(Counter(frozenset(pair) for *pair, _ in rows).values()) == 1
    assert max(Counter(sentence for *pair, _ in rows for sentence in pair).values()) <= make_pairs.MAX_USES


@pytest.mark.parametrize("name", NAMES)
def test_sentences_are_well_formed(name: str) -> None:
    """Sentences have a proper start, end and length, and no notation is left in them."""
    for sentence in sentences(name):
        assert SENTENCE.fullmatch(sentence), sentence
        assert not re.search(r"  |[{}|]", sentence), sentence
        assert 5 <= len(sentence.split()) <= 25, sentence


@pytest.mark.parametrize("name", NAMES)
def test_no_scene_repeats_a_sentence(name: str) -> None:
    """Otherwise the same two sentences could come with two grades."""
    text = next(split.scenes for split in make_pairs.SPLITS if split.name == name)
    lines = [line for scene in make_pairs.parse_scenes(text) for group in scene.lines.values() for line in group]
    assert max(Counter(sentence for line in lines for sentence in line).values()) == 1


def test_every_scene_offers_every_grade() -> None:
    """Each scene has several wordings and at least one sentence for each other grade."""
    for split in make_pairs.SPLITS:
        for scene in make_pairs.parse_scenes(split.scenes):
            assert len(scene.lines[5]) >= 3
            assert all(scene.lines[grade] for grade in (1, 2, 3, 4))


def test_expand_writes_out_every_alternative() -> None:
    """Two places with alternatives give every combination, in order."""
    assert make_pairs.expand("{A|The} dog {barks|howls}.") == [
        "A dog barks.",
        "A dog howls.",
        "The dog barks.",
        "The dog howls.",
    ]


def test_too_few_scenes_are_reported() -> None:
    """A split never comes out smaller than asked for without an error."""
    scenes = "# sea\n\n5 A ship sinks.\n5 A boat sinks.\n4 A big ship sinks.\n3 A ship floats.\n2 A ship is sold."
    with pytest.raises(ValueError, match="instead of 9 pairs of grade 5"):
        make_pairs.make_rows(make_pairs.Split("sea", scenes, 9, 0))


def test_readme_states_the_grades() -> None:
    """The table in the README and the program name the same grades."""
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for grade, (name, meaning) in make_pairs.GRADES.items():
        assert f"| {grade} | {name} | {meaning} |" in readme
