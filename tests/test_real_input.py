"""Real input: STS-B and SICK as distributed, where they are at hand, and the quick start as a user runs it."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import run_sts
from sts_regression.command.arguments import parse_stages
from sts_regression.data.columns import PairColumns
from sts_regression.data.labels import NLI_SCALE, SICK_SCALE, STS_SCALE, LabelScale
from sts_regression.data.leakage import LeakFilter, leak_matrix
from sts_regression.data.pairs import read_pairs
from sts_regression.data.splits import load_splits
from sts_regression.data.sts_tasks import STSTask, load_sts_tasks, without_repeats
from sts_regression.evaluation.sts_evaluation import pair_identities
from sts_regression.models.loading import bundled_encoder_path

ROOT = Path(run_sts.__file__).resolve().parent
needs_minilm = pytest.mark.skipif(bundled_encoder_path() is None, reason="the quickstart extra is not installed")
YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")


@pytest.fixture(scope="module")
def sts_data() -> Path:
    folder = os.environ.get("STS_DATA")
    if folder is None:
        pytest.skip("STS_DATA names no folder with sts/, stsbenchmark/, sick/, snli/ and senteval/")
    return Path(folder)


@pytest.fixture(scope="module")
def tasks(sts_data: Path) -> list[STSTask]:
    return load_sts_tasks(sts_data)


@pytest.mark.parametrize(
    ("name", "count", "scale"),
    [
        ("stsbenchmark/sts-train.csv", 5749, STS_SCALE),
        ("stsbenchmark/sts-dev.csv", 1500, STS_SCALE),
        ("stsbenchmark/sts-test.csv", 1379, STS_SCALE),
        ("senteval/STS/STSBenchmark/sts-train.csv", 5749, STS_SCALE),
        ("sick/SICK_train.txt", 4500, SICK_SCALE),
        ("sick/SICK_trial.txt", 500, SICK_SCALE),
        ("sick/SICK_test_annotated.txt", 4927, SICK_SCALE),
        ("senteval/SICK/SICK_test_annotated.txt", 4927, SICK_SCALE),
        ("snli/dev.jsonl", 9842, NLI_SCALE),
    ],
)
def test_public_corpora_are_read_as_distributed(sts_data: Path, name: str, count: int, scale: LabelScale) -> None:
    pair_set = read_pairs(sts_data / name)
    assert (len(pair_set.pairs), pair_set.scale) == (count, scale)
    assert scale.spans(pair_set.pairs["label"])


def test_the_classes_of_sick_are_nli(sts_data: Path) -> None:
    pair_set = read_pairs(sts_data / "sick" / "SICK_trial.txt", PairColumns(label="entailment_judgment"))
    assert (pair_set.scale, Counter(pair_set.pairs["label"])) == (NLI_SCALE, {0: 74, 1: 282, 2: 144})


def test_both_layouts_hold_the_same_pairs(sts_data: Path, tasks: list[STSTask]) -> None:
    tokenized = load_sts_tasks(sts_data / "senteval")
    for one, other in zip(tasks, tokenized, strict=True):
        assert (one.name, len(one.pairs)) == (other.name, len(other.pairs))
        assert sorted(one.pairs["label"]) == sorted(other.pairs["label"])
        assert len(set(one.pairs["subset"])) == len(set(other.pairs["subset"]))
        assert sorted(one.pairs["genre"]) == sorted(other.pairs["genre"])


def test_most_test_pairs_of_stsb_are_test_pairs_of_other_tasks(tasks: list[STSTask]) -> None:
    *semeval, stsb, _ = (pair_identities(task.pairs["sentence1"], task.pairs["sentence2"]) for task in tasks)
    others = {pair for of_task in semeval for pair in of_task}
    assert sum(pair in others for pair in stsb) == 1007


def test_sick_r_has_two_sizes(sts_data: Path) -> None:
    assert len(load_sts_tasks(sts_data, "all")[-1].pairs) == 9927


@pytest.mark.parametrize(("layout", "stsb"), [("", "stsbenchmark"), ("senteval", "senteval/STS/STSBenchmark")])
def test_version_2_of_stsb_has_the_pairs_that_mteb_left(sts_data: Path, layout: str, stsb: str) -> None:
    *_, task, _ = load_sts_tasks(sts_data / layout, stsb_version=2)
    assert len(task.pairs) == 1362
    train, dev, test = (read_pairs(sts_data / stsb / f"sts-{split}.csv") for split in ("train", "dev", "test"))
    assert len(without_repeats(dev, [train, test]).pairs) == 1485  # 1,482 if letters and digits were compared


@pytest.mark.parametrize(
    ("mode", "left", "positives", "dev_left"),
    [
        ("exact", (991, 4407), 1543, 369),
        ("normalized", (951, 4367), 1522, 363),
        ("sentence", (688, 61), None, 306),
        ("none", (5749, 4500), None, 1500),
    ],
)
def test_the_papers_leak_filter(
    sts_data: Path,
    tasks: list[STSTask],
    mode: str,
    left: tuple[int, int],
    positives: int | None,
    dev_left: int,
) -> None:
    leak_filter = LeakFilter({task.name: task.pairs for task in tasks}, mode)
    stsb, sick, dev = (
        leak_filter.apply(read_pairs(sts_data / name).pairs)[0]
        for name in ("stsbenchmark/sts-train.csv", "sick/SICK_train.txt", "stsbenchmark/sts-dev.csv")
    )
    assert (len(stsb), len(sick)) == left
    assert len(dev) == dev_left
    if positives is not None:
        labels = [*stsb["label"], *SICK_SCALE.map_to(STS_SCALE, sick["label"])]
        assert sum(label >= 4 for label in labels) == positives


def test_most_development_pairs_of_stsb_are_test_pairs_of_other_tasks(sts_data: Path, tasks: list[STSTask]) -> None:
    leak_filter = LeakFilter({task.name: task.pairs for task in tasks if task.name in YEARS}, "exact")
    _, counts = leak_filter.apply(read_pairs(sts_data / "stsbenchmark" / "sts-dev.csv").pairs)
    assert (counts.pairs, counts.found, counts.removed) == (1500, 1131, 1131)


def test_most_test_pairs_of_sick_share_a_sentence_with_its_training_pairs(
    sts_data: Path, tasks: list[STSTask]
) -> None:
    train = [("SICK", read_pairs(sts_data / "sick" / "SICK_train.txt").pairs)]
    matrix = leak_matrix(train, {"SICK-R": tasks[-1].pairs}, "exact")
    counts = matrix["sets"]["SICK"]["by_test_set"]["SICK-R"]
    assert counts["pairs"] == 93
    assert round(counts["test_pairs"] / matrix["test_sets"]["SICK-R"]["pairs"], 3) == 0.976


def test_the_clean_development_set_of_the_recipe(sts_data: Path, tasks: list[STSTask]) -> None:
    [stage] = parse_stages([str(ROOT / "recipes" / "clean_dev.yaml"), "--sts_data", str(sts_data)])
    splits = load_splits(stage.data_args, PairColumns(), None, sts_tasks=tasks)
    assert {name: len(pairs) for name, pairs in splits.pairs.items()} == {"train": 5398, "validation": 369 + 491}
    positives = load_splits(stage.data_args, PairColumns(), None, sts_tasks=tasks, loss_type="info_nce")
    assert len(positives.pairs["train"]) == 1543


# Published for all-MiniLM-L6-v2, mean pooling, cosine, "all" aggregation; of SICK the test split.
MINILM = {
    "STS12": 72.37,
    "STS13": 80.60,
    "STS14": 75.60,
    "STS15": 85.39,
    "STS16": 78.99,
    "STS-B": 82.03,
    "SICK-R": 77.15,
}


@needs_minilm
@pytest.mark.slow
@pytest.mark.parametrize(("layout", "shift"), [("", {}), ("senteval", {"STS14": -0.01})], ids=["original", "senteval"])
def test_the_untouched_encoder_has_its_known_scores(
    sts_data: Path, tmp_path: Path, layout: str, shift: dict[str, float]
) -> None:
    run_sts.run_stages(["--do_eval", "--sts_data", str(sts_data / layout), "--output_dir", str(tmp_path)])
    measures = json.loads((tmp_path / "run.json").read_text())["sts_tasks"]
    spearman = {name: round(100 * task["cosine"]["all"]["spearman"], 2) for name, task in measures["tasks"].items()}
    assert spearman == {name: round(value + shift.get(name, 0), 2) for name, value in MINILM.items()}
    assert round(100 * measures["average"]["cosine"]["all"]["spearman"], 2) == 78.87
    low, high = measures["average"]["cosine"]["all"]["interval"]
    assert low < measures["average"]["cosine"]["all"]["spearman"] < high


@needs_minilm
@pytest.mark.slow
def test_the_quick_start_improves_the_cosine(tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "accelerate.commands.launch", "run_sts.py", "--loss", "smooth_k2"]
    subprocess.run([*launch, "--output_dir", str(tmp_path / "run")], check=True)
    results = json.loads((tmp_path / "run" / "run.json").read_text())["results"]
    before, after = results["before training"]["test"], results["after training"]["test"]
    assert after["spearman_cosine"] > before["spearman_cosine"] + 0.005
