"""Chooses the settings of every method of the comparison on development pairs of seven corpora, without test pairs.

    python benchmarks/choose.py --sts_data FOLDER --graded_data FOLDER --jobs 2
    python benchmarks/choose.py --from_kept                 writes the table from the kept run files

Every method gets the same budget: six settings, one run each. The measure is Spearman's correlation, of the cosine and
of the head's score, averaged over seven corpora: the clean development pairs of STS-B and SICK, which also choose a
run's best checkpoint, and development pairs of five corpora that no run trains on (`graded_data.py`). Run files are
kept in `results/choice/`, the table in `results/choice/choice.json`. Finished runs are not repeated.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.graded_data import GRADED_SETS, split_graded_set, write_pairs
from benchmarks.reproduce import slim
from sts_regression.basics.tables import write_json

ROOT = Path(__file__).resolve().parent.parent
RUNS, CHOICE_FOLDER = Path("outputs") / "choice", Path("results") / "choice"
PAIRS_PER_CORPUS = 500
SPEARMAN_OF_SCORES = ("spearman_cosine", "spearman_head")
LEARNING_RATES = "5e-6,1e-5,2e-5,5e-5,1e-4,2e-4"
RIVALS = (
    *("smooth_k2_linear", "translated_relu_linear", "mse_linear", "l1_linear"),
    *("smooth_k2_cosine", "translated_relu_cosine", "mse_cosine", "l1_cosine"),
    *("cross_entropy", "hl_gauss_cosine", "corn_cosine", "info_nce", "cosent", "angle", "pearson"),
)
# The settings that are tried, by recipe: six for each.
GRIDS = {
    **dict.fromkeys(RIVALS, (f"learning_rate={LEARNING_RATES}",)),
    "ablation/distillation": ("learning_rate=1e-4,2e-4", "wise_ft_alpha=0.5,0.65,0.8"),
}


def main() -> None:
    """Runs the missing runs, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sts_data", type=Path, help="folder of the STS data, original text")
    parser.add_argument("--graded_data", type=Path, help="folder of the other graded sets")
    parser.add_argument("--from_kept", action="store_true", help="write the table from the kept run files")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time; default: 1")
    parser.add_argument("--recipes", nargs="+", choices=GRIDS, default=list(GRIDS), help="default: all")
    args = parser.parse_args()
    if not args.from_kept:
        if args.sts_data is None or args.graded_data is None:
            parser.error("give `--sts_data` and `--graded_data`, or `--from_kept`")
        run_settings(args)
    chosen = {Path(recipe).stem: choose(recipe) for recipe in GRIDS}
    write_json(dict(sorted(chosen.items())), ROOT / CHOICE_FOLDER / "choice.json")


def run_settings(args: argparse.Namespace) -> None:
    """Runs the settings of the named recipes that have not been run."""
    unseen = write_development_pairs(list(GRADED_SETS), args.graded_data, RUNS)
    for recipe in args.recipes:
        options = ["--grid", *GRIDS[recipe], f"--output_dir={RUNS / Path(recipe).stem}", f"--jobs={args.jobs}"]
        sweep_without_tests([f"recipes/minilm/{recipe}.yaml", *options], args.sts_data, unseen)
        keep(recipe)


def write_development_pairs(names: list[str], folder: Path, runs: Path) -> list[str]:
    """Writes development pairs of corpora below the folder of the runs; returns the names of the files."""
    paths = []
    for name in names:
        path = runs / "pairs" / f"{name}.csv"
        write_pairs(split_graded_set(name, folder)["validation"][:PAIRS_PER_CORPUS], ROOT / path)
        paths.append(str(path))
    return paths


def sweep_without_tests(words: list[str], sts_data: Path, development: list[str]) -> None:
    """Runs a sweep that scores files of development pairs in place of the STS tasks."""
    command = [sys.executable, "-m", "sts_regression", "sweep", *words, f"--sts_data={sts_data}"]
    command += ["--do_train=true", "--do_eval=false", "--test_file", *development]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)


def keep(recipe: str) -> None:
    """Copies the run files of a recipe to `results/choice`."""
    name = Path(recipe).stem
    for path in sorted((ROOT / RUNS / name).glob("*/seed-1/run.json")):
        setting = path.parent.parent.name.removeprefix(f"{name}-")
        record = slim(json.loads(path.read_text(encoding="utf-8")))
        write_json(record, ROOT / CHOICE_FOLDER / name / f"{setting}.json")


def choose(recipe: str, folder: Path = ROOT / CHOICE_FOLDER) -> dict[str, Any]:
    """
    The best setting of a recipe, and the measures of all settings, from the kept run files.

    Raises:
        ValueError: if settings are missing.
    """
    name = Path(recipe).stem
    expected = points(GRIDS[recipe])
    files = {setting: folder / name / f"{setting}.json" for setting in expected}
    found = {
        setting: measure(json.loads(path.read_text(encoding="utf-8")))
        for setting, path in files.items()
        if path.is_file()
    }
    if len(found) < len(expected):
        raise ValueError(f"{name}: {len(found)} of {len(expected)} settings have been run.")
    return {"chosen": max(expected, key=lambda setting: found[setting]["mean"]), "settings": found}


def points(grid: tuple[str, ...]) -> list[str]:
    """The settings of a grid, with the sweep's names."""
    names = [""]
    for axis in grid:
        option, _, values = axis.partition("=")
        names = [f"{name}-{option}={value}" for name in names for value in values.split(",")]
    return [re.sub(r"[^\w.=+-]", "_", name.removeprefix("-")) for name in names]


def measure(record: dict[str, Any]) -> dict[str, float]:
    """
    Spearman's correlation on each corpus after training, and their mean.

    The comparison reports two scores, so it is the mean of the cosine's correlation and the head's. A head that maps
    the cosine has the cosine's ranks.
    """
    by_set = record["results_by_set"]["after training"]
    measured = {
        Path(name).stem: float(np.mean([measures[score] for score in SPEARMAN_OF_SCORES if score in measures]))
        for split in ("validation", "test")
        for name, measures in by_set[split].items()
    }
    return {**measured, "mean": float(np.mean(list(measured.values())))}


if __name__ == "__main__":
    main()
