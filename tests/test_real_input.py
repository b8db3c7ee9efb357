"""Real input: STS-B and SICK as distributed, where they are at hand, and the quick start as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import run_sts
from sts_regression.data import infer_label_values, read_pairs
from sts_regression.loading import bundled_encoder_path

ROOT = Path(run_sts.__file__).resolve().parent
STS_DATA = os.environ.get("STS_DATA")
needs_data = pytest.mark.skipif(
    STS_DATA is None, reason="STS_DATA does not name a folder with stsbenchmark/ and sick/"
)


@needs_data
@pytest.mark.parametrize(
    ("name", "count", "nodes"),
    [
        ("stsbenchmark/sts-train.csv", 5749, [0, 1, 2, 3, 4, 5]),
        ("stsbenchmark/sts-dev.csv", 1500, [0, 1, 2, 3, 4, 5]),
        ("stsbenchmark/sts-test.csv", 1379, [0, 1, 2, 3, 4, 5]),
        ("sick/SICK_train.txt", 4500, [1, 2, 3, 4, 5]),
        ("sick/SICK_trial.txt", 500, [1, 2, 3, 4, 5]),
        ("sick/SICK_test_annotated.txt", 4927, [1, 2, 3, 4, 5]),
    ],
)
def test_public_corpora_are_read_as_distributed(name: str, count: int, nodes: list[float]) -> None:
    pairs = read_pairs(Path(str(STS_DATA)) / name)
    assert len(pairs) == count
    assert infer_label_values(pairs["label"]) == nodes


@needs_data
@pytest.mark.slow
@pytest.mark.skipif(bundled_encoder_path() is None, reason="the quickstart extra is not installed")
def test_the_untouched_encoder_has_its_known_stsb_score(tmp_path: Path) -> None:
    test_file = Path(str(STS_DATA)) / "stsbenchmark" / "sts-test.csv"
    run_sts.main(["--do_eval", "--test_file", str(test_file), "--output_dir", str(tmp_path)])
    measures = json.loads((tmp_path / "run.json").read_text())["results"]["as loaded"]["test"]
    assert round(100 * measures["spearman_cosine"], 2) == 82.03


@pytest.mark.slow
@pytest.mark.skipif(bundled_encoder_path() is None, reason="the quickstart extra is not installed")
def test_the_quick_start_improves_the_cosine(tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "accelerate.commands.launch", "run_sts.py", "--loss", "smooth_k2"]
    subprocess.run([*launch, "--output_dir", str(tmp_path / "run")], cwd=ROOT, check=True)
    results = json.loads((tmp_path / "run" / "run.json").read_text())["results"]
    before, after = results["before training"]["test"], results["after training"]["test"]
    assert after["spearman_cosine"] > before["spearman_cosine"] + 0.005
