"""The seven tasks: the same pairs from either layout, and no task with other pairs than it is known to hold."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from datasets import Dataset

from sts_regression.data import sts_tasks
from sts_regression.data.pairs import PairSet
from sts_regression.data.sts_tasks import HUB_SETS, STSB_VERSION_2_ON_HUB, TASK_NAMES, find_layout, load_sts_tasks


def rows(pairs: Dataset) -> set[tuple[str, str, float]]:
    columns = pairs[:]
    return set(zip(columns["sentence1"], columns["sentence2"], columns["label"], strict=True))


def test_both_layouts_hold_the_same_tasks(small_sts_data: Path) -> None:
    original, senteval = load_sts_tasks(small_sts_data), load_sts_tasks(small_sts_data / "senteval")
    assert [task.name for task in original] == [task.name for task in senteval] == list(TASK_NAMES)
    for one, other in zip(original, senteval, strict=True):
        assert len(one.pairs) == 12
        assert rows(one.pairs) == rows(other.pairs)
        assert set(one.pairs["subset"]) == set(other.pairs["subset"])
    assert [len(task.parts) for task in original] == [1] * 7
    assert [len(task.parts) for task in senteval] == [2] * 5 + [1] * 2


def test_subsets_are_told_apart_and_tasks_without_any_have_one(small_sts_data: Path) -> None:
    *semeval, stsb, sick = load_sts_tasks(small_sts_data)
    for task in semeval:
        assert task.pairs[:]["subset"] == ["first"] * 4 + ["second"] * 8
    assert set(stsb.pairs["subset"]) == set(sick.pairs["subset"]) == {""}


def test_genres_are_the_subsets_and_in_stsb_the_files_that_its_pairs_come_from(small_sts_data: Path) -> None:
    path = small_sts_data / "stsbenchmark" / "sts-test.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0].replace("\tfile\t", "\tMSRpar\t"), *lines[1:]]))
    *semeval, stsb, sick = load_sts_tasks(small_sts_data)
    assert all(task.pairs[:]["genre"] == task.pairs[:]["subset"] for task in semeval)
    assert stsb.pairs[:]["genre"] == ["MSRpar"] + ["file"] * 11
    assert set(stsb.pairs["subset"]) == set(sick.pairs["genre"]) == {""}


def test_stsb_with_a_header_of_its_own_has_no_genres(small_sts_data: Path) -> None:
    lines = [f'{score},"The {word}, there.",A {word}.' for score, word in enumerate("abcdefghijkl")]
    path = small_sts_data / "stsbenchmark" / "sts-test.csv"
    path.write_text("\n".join(["score,sentence1,sentence2", *lines]))
    assert set(load_sts_tasks(small_sts_data)[5].pairs["genre"]) == {""}


def test_a_genre_has_one_name_in_both_layouts(small_sts_data: Path) -> None:
    folder = small_sts_data / "senteval" / "STS" / "STS12-en-test"
    for kind in ("input", "gs"):
        (folder / f"STS.{kind}.first.txt").rename(folder / f"STS.{kind}.surprise.first.txt")
    pairs = load_sts_tasks(small_sts_data / "senteval")[0].pairs
    assert set(pairs["subset"]) == {"surprise.first", "second"}
    assert set(pairs["genre"]) == {"first", "second"}


def test_all_of_sick_has_three_files(small_sts_data: Path) -> None:
    assert [len(task.pairs) for task in load_sts_tasks(small_sts_data, "all")] == [12] * 6 + [36]


@pytest.mark.parametrize("place", ["", "senteval", "downstream"])
def test_the_senteval_tree_is_found_where_the_toolkit_puts_it(
    small_sts_data: Path, tmp_path: Path, place: str
) -> None:
    shutil.copytree(small_sts_data / "senteval", tmp_path / "data" / place, dirs_exist_ok=True)
    assert find_layout(tmp_path / "data") == ("senteval", tmp_path / "data" / place)


def test_a_file_of_all_subsets_is_not_read_twice(small_sts_data: Path) -> None:
    folder = small_sts_data / "senteval"
    for kind in ("input", "gs"):
        shutil.copy(
            folder / "STS" / "STS12-en-test" / f"STS.{kind}.first.txt",
            folder / "STS" / "STS12-en-test" / f"STS.{kind}.ALL.txt",
        )
    assert len(load_sts_tasks(folder)[0].pairs) == 12


@pytest.mark.parametrize("source", ["no-such-folder", "."])
def test_a_folder_in_neither_layout_is_refused(source: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds neither sts/sts12\.jsonl nor SentEval's.*`hub`"):
        load_sts_tasks(tmp_path / source)


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("sts/sts14.jsonl", lambda text: text.split("\n", 1)[1], "STS14 holds 11 scored pairs, but 12"),
        ("stsbenchmark/sts-test.csv", lambda text: text + text, "STS-B holds 24 scored pairs, but 12"),
        ("sick/SICK_test_annotated.txt", lambda _: None, r"SICK_test_annotated\.txt: no such file"),
        ("sts/sts16.jsonl", lambda text: text.replace('"score"', '"other"', 1), r"sts16\.jsonl"),
    ],
)
def test_a_damaged_task_is_refused(
    small_sts_data: Path, name: str, damage: Callable[[str], str | None], message: str
) -> None:
    path = small_sts_data / name
    text = damage(path.read_text())
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_sts_tasks(small_sts_data)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "STS.gs.first.txt").unlink(), r"STS\.gs\.first\.txt: no such file"),
        (lambda folder: (folder / "STS.gs.first.txt").write_text("1\n"), r"1 lines for 5 pairs"),
        (lambda folder: (folder / "STS.input.first.txt").write_text("a\n" * 5), "line 1 is not a pair of sentences"),
    ],
)
def test_a_damaged_subset_is_refused(small_sts_data: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(small_sts_data / "senteval" / "STS" / "STS15-en-test")
    with pytest.raises(ValueError, match=message):
        load_sts_tasks(small_sts_data / "senteval")


def test_the_split_of_sick_is_one_of_two(small_sts_data: Path) -> None:
    with pytest.raises(ValueError, match="`sick_split` must be one of test, all, but is 'train'"):
        load_sts_tasks(small_sts_data, "train")


def test_the_hub_has_all_of_sick_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"holds all 9,927 pairs of SICK.*`--sick_split all`"):
        load_sts_tasks("hub")
    expected = sts_tasks.EXPECTED_PAIRS | {"SICK-R": 9927}
    sizes = {HUB_SETS[name]: count for name, count in expected.items()}

    def load_hub_pairs(name: str, split: str) -> PairSet:
        count = sizes[name]
        columns = {"sentence1": ["a"] * count, "sentence2": ["b"] * count, "label": [1.0] * count}
        return PairSet(f"{name} ({split})", Dataset.from_dict(columns))

    monkeypatch.setattr(sts_tasks, "load_hub_pairs", load_hub_pairs)
    tasks = load_sts_tasks("hub", "all")
    assert {task.name: len(task.pairs) for task in tasks} == expected
    assert tasks[0].parts[0].name == "mteb/sts12-sts (test)"


@pytest.mark.parametrize("root", ["stsbenchmark", "senteval/STS/STSBenchmark"])
def test_version_2_of_stsb_lacks_pairs_of_other_splits_and_those_that_occur_twice(
    small_sts_data: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    folder = small_sts_data / root.removesuffix("stsbenchmark").removesuffix("STS/STSBenchmark")
    first, second, third, fourth, *_ = load_sts_tasks(folder)[5].pairs

    def add(name: str, sentence1: str, sentence2: str, score: float) -> None:
        with (small_sts_data / root / f"sts-{name}.csv").open("a") as file:
            file.write(f"main\tfile\t2012\t99\t{score}\t{sentence1}\t{sentence2}\n")

    add("train", first["sentence2"], first["sentence1"], 0)
    add("dev", second["sentence1"], second["sentence2"], 0)
    add("test", third["sentence2"], third["sentence1"], 0)
    add("train", fourth["sentence1"].upper(), fourth["sentence2"], 0)  # another pair: strings are compared as they are
    monkeypatch.setitem(sts_tasks.EXPECTED_PAIRS, "STS-B", 13)
    monkeypatch.setattr(sts_tasks, "STSB_VERSION_2_PAIRS", 9)
    *others, whole, sick = load_sts_tasks(folder)
    *same_others, clean, same_sick = load_sts_tasks(folder, stsb_version=2)
    assert clean.name == "STS-B"
    assert clean.pairs[:] == whole.pairs.select(range(3, 12))[:]
    assert [part.name for part in clean.parts] == [f"{small_sts_data / root / 'sts-test.csv'} (version 2)"]
    for one, other in zip([*others, sick], [*same_others, same_sick], strict=True):
        assert one.pairs[:] == other.pairs[:]


@pytest.mark.parametrize("name", ["sts-train.csv", "sts-dev.csv"])
def test_version_2_of_stsb_needs_the_other_splits(small_sts_data: Path, name: str) -> None:
    (small_sts_data / "stsbenchmark" / name).unlink()
    assert len(load_sts_tasks(small_sts_data)) == 7
    with pytest.raises(ValueError, match=rf"`stsb_version` 2 .*{name}: no such file.*`--stsb_version 1`"):
        load_sts_tasks(small_sts_data, stsb_version=2)


def test_version_2_of_stsb_with_another_number_of_pairs_is_refused(small_sts_data: Path) -> None:
    with pytest.raises(ValueError, match="STS-B holds 12 scored pairs, but 1,362 are known"):
        load_sts_tasks(small_sts_data, stsb_version=2)


def test_the_version_of_stsb_is_one_of_two(small_sts_data: Path) -> None:
    with pytest.raises(ValueError, match="`stsb_version` must be 1 or 2, but is 3"):
        load_sts_tasks(small_sts_data, stsb_version=3)


def test_the_hub_has_version_2_of_stsb_as_a_set_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load_hub_pairs(name: str, split: str) -> PairSet:
        loaded.append(name)
        columns = {"sentence1": ["a"], "sentence2": ["b"], "label": [1.0]}
        return PairSet(f"{name} ({split})", Dataset.from_dict(columns))

    monkeypatch.setattr(sts_tasks, "load_hub_pairs", load_hub_pairs)
    for name, value in (("EXPECTED_PAIRS", dict.fromkeys(TASK_NAMES, 1)), ("ALL_OF_SICK", 1)):
        monkeypatch.setattr(sts_tasks, name, value)
    monkeypatch.setattr(sts_tasks, "STSB_VERSION_2_PAIRS", 1)
    load_sts_tasks("hub", "all", stsb_version=2)
    assert loaded == list((HUB_SETS | {"STS-B": STSB_VERSION_2_ON_HUB}).values())


@pytest.mark.network
def test_the_hub_holds_the_known_numbers_of_pairs() -> None:
    assert [len(task.pairs) for task in load_sts_tasks("hub", "all")] == [3108, 1500, 3750, 3000, 1186, 1379, 9927]
    *_, stsb, _ = load_sts_tasks("hub", "all", stsb_version=2)
    assert len(stsb.pairs) == 1362
