"""Measures the gain of each source of training pairs with the best recipe, on development pairs of eight corpora.

    python benchmarks/training_sources.py --sts_data FOLDER --graded_data FOLDER --jobs 2

A cell is the best recipe with self-distillation, and with other training pairs. Each source has a weight: the share of
its pairs that an epoch uses, or how often it uses them. With `scales`, each source has its own affine map of the score
onto its labels (`source_scales`). The measure is Spearman's correlation of the cosine, averaged over corpora that
count the same: the clean development pairs of STS-B and SICK, development pairs of CxC and of STS12's training pairs,
and those of four corpora that no cell trains on. No test pair of the STS tasks is scored. Run files are kept in
`results/sources/`, the table in `results/sources/sources.md`. Finished runs are not repeated.
"""

import argparse
import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from datasets import Dataset

from benchmarks.best_choice import VARIED_RECIPE
from benchmarks.choose import measure, sweep_without_tests, write_development_pairs
from benchmarks.graded_data import CAPS, GRADED_SETS, STS12_TRAIN, LabelledPair, split_graded_set, write_pairs
from benchmarks.reproduce import keep_runs
from sts_regression.basics.tables import markdown_table, percent
from sts_regression.data.leakage import LeakFilter
from sts_regression.data.pairs import read_pairs

ROOT = Path(__file__).resolve().parent.parent
SOURCES_RUNS, SOURCES_RESULTS = Path("outputs") / "sources", Path("results") / "sources"
STS_FILES = {"stsb": "stsbenchmark/sts-train.csv", "sick": "sick/SICK_train.txt"}
CORPORA = (*GRADED_SETS, STS12_TRAIN)
TRAINED_ON = ("cxc", STS12_TRAIN)


class SourcesCell(NamedTuple):
    """The weight of each source, and whether each has its own map of the score onto its labels."""

    weights: dict[str, float]
    scales: bool = False


STSB_SICK = {"stsb": 1.0, "sick": 1.0}
STSB_X3 = {"stsb": 3.0, "sick": 1.0}
CELLS = {
    "stsb_sick": SourcesCell(STSB_SICK),
    "scales": SourcesCell(STSB_SICK, scales=True),
    "stsb_x3": SourcesCell(STSB_X3),
    "stsb_x3_scales": SourcesCell(STSB_X3, scales=True),
    "sts12_scales": SourcesCell(STSB_SICK | {STS12_TRAIN: 1.0}, scales=True),
    "stsb_x3_sts12_scales": SourcesCell(STSB_X3 | {STS12_TRAIN: 1.0}, scales=True),
    "cxc_2500": SourcesCell(STSB_SICK | {"cxc": 0.5}),
    "cxc_2500_scales": SourcesCell(STSB_SICK | {"cxc": 0.5}, scales=True),
    "cxc_5000_scales": SourcesCell(STSB_SICK | {"cxc": 1.0}, scales=True),
    "stsb_x3_cxc_2500_scales": SourcesCell(STSB_X3 | {"cxc": 0.5}, scales=True),
    "stsb_x3_cxc_2500_sts12_scales": SourcesCell(STSB_X3 | {"cxc": 0.5, STS12_TRAIN: 1.0}, scales=True),
}


def main() -> None:
    """Runs the missing runs, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sts_data", type=Path, required=True, help="folder of the STS data, original text")
    parser.add_argument("--graded_data", type=Path, required=True, help="folder of the other graded sets")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS), help="default: all")
    parser.add_argument("--seeds", type=int, default=2, help="number of seeds; default: 2")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time; default: 1")
    args = parser.parse_args()
    development = write_development_pairs(list(CORPORA), args.graded_data, SOURCES_RUNS)
    write_training_pairs(args.graded_data, args.sts_data)
    recipes = [write_recipe(name) for name in args.cells]
    runs = SOURCES_RUNS / "runs"
    options = [f"--seeds={args.seeds}", f"--output_dir={runs}", f"--jobs={args.jobs}"]
    sweep_without_tests([*recipes, *options], args.sts_data, development)
    keep_runs(ROOT / runs, ROOT / SOURCES_RESULTS)
    (ROOT / SOURCES_RESULTS / "sources.md").write_text(table(), encoding="utf-8")


def write_training_pairs(folder: Path, sts_folder: Path) -> None:
    """Writes the training pairs of the sources beside STS-B and SICK."""
    for name in TRAINED_ON:
        pairs = without_development_pairs(split_graded_set(name, folder)["train"], sts_folder)
        write_pairs(pairs[: CAPS["train"]], ROOT / training_file(name))


def without_development_pairs(pairs: list[LabelledPair], folder: Path) -> list[LabelledPair]:
    """Pairs that are no development pairs of STS-B, as 129 of STS12's training pairs are."""
    known = LeakFilter({"dev": read_pairs(folder / "stsbenchmark" / "sts-dev.csv").pairs}, "normalized")
    first, second, _ = zip(*pairs, strict=True)
    rows = Dataset.from_dict({"sentence1": first, "sentence2": second, "row": list(range(len(pairs)))})
    return [pairs[row] for row in known.apply(rows)[0]["row"]]


def training_file(source: str) -> str:
    """The file of training pairs of a source, in the folder of the STS data or below this one."""
    return STS_FILES.get(source) or str(SOURCES_RUNS / "pairs" / f"{source}-train.csv")


def write_recipe(name: str) -> str:
    """Writes the recipe of a cell, and returns its path."""
    weights, scales = CELLS[name]
    path = SOURCES_RUNS / "recipes" / f"{name}.yaml"
    recipe = {
        "extends": os.path.relpath(VARIED_RECIPE, (ROOT / path).parent),
        "train_file": [training_file(source) for source in weights],
        "train_weights": list(weights.values()),
        "stages": [{"source_scales": True} if scales else {}, {}],
    }
    (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
    (ROOT / path).write_text(yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")
    return str(path)


def table() -> str:
    """Means of the development measures over seeds, from the kept run files."""
    rows, header = [], []
    for name in CELLS:
        runs = [
            measure(json.loads(path.read_text(encoding="utf-8")))
            for path in sorted((ROOT / SOURCES_RESULTS / name).glob("seed-*.json"))
        ]
        if runs:
            header = list(runs[0])
            means = [float(np.mean([run[key] for run in runs])) for key in header]
            rows.append([f"`{name}`", str(len(runs)), *map(percent, means)])
    title = "Spearman's correlation of the cosine on development pairs, in percent, mean over seeds\n\n"
    return title + markdown_table(["training pairs", "seeds", *header], rows) + "\n"


if __name__ == "__main__":
    main()
