"""Measures what each source of training pairs adds to the best recipe, on development pairs of eight corpora.

    python benchmarks/training_sources.py --sts_data FOLDER --graded_data FOLDER --jobs 2

A cell is the best recipe without the model soup, with other training pairs. Each source has a weight: the share of its
pairs that an epoch uses, or how often it uses them. With `scales`, each source has its own affine map of the the
labels (`source_scales`). The measure is Spearman's correlation of the cosine, averaged over corpora that count the
same: the clean development pairs of STS-B and SICK, development pairs of CxC and of STS12's training pairs, and those
of four corpora that no cell trains on. No test pair of the STS tasks is scored. Run files are kept in
`results/sources/`, the table in `results/sources/sources.md`. Finished runs are not repeated.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import yaml
from choose import PAIRS_PER_CORPUS, measure
from datasets import Dataset
from graded_data import GRADED_SETS, STS12_TRAIN, LabelledPair, split_graded_set, write_pairs
from reproduce import slim

from sts_regression.basics.tables import markdown_table, percent, write_json
from sts_regression.data.leakage import LeakFilter
from sts_regression.data.pairs import read_pairs

ROOT = Path(__file__).resolve().parent.parent
SOURCES_RUNS, SOURCES_RESULTS = Path("outputs") / "sources", Path("results") / "sources"
VARIED_RECIPE = ROOT / "recipes" / "minilm" / "ablation" / "no_soup.yaml"
STS_FILES = {"stsb": "stsbenchmark/sts-train.csv", "sick": "sick/SICK_train.txt"}
CORPORA = (*GRADED_SETS, STS12_TRAIN)
TRAINED_ON = ("cxc", STS12_TRAIN)
CXC_PAIRS = 5000
SCALES = "scales"
STSB_SICK = {"stsb": 1.0, "sick": 1.0}
CELLS = {
    "stsb_sick": STSB_SICK,
    "scales": STSB_SICK | {SCALES: 1},
    "stsb_x3": {"stsb": 3.0, "sick": 1.0},
    "stsb_x3_scales": {"stsb": 3.0, "sick": 1.0, SCALES: 1},
    "sts12_scales": STSB_SICK | {STS12_TRAIN: 1.0, SCALES: 1},
    "cxc_2500": STSB_SICK | {"cxc": 0.5},
    "cxc_2500_scales": STSB_SICK | {"cxc": 0.5, SCALES: 1},
    "cxc_5000_scales": STSB_SICK | {"cxc": 1.0, SCALES: 1},
    "stsb_x3_cxc_2500_scales": {"stsb": 3.0, "sick": 1.0, "cxc": 0.5, SCALES: 1},
    "stsb_x3_cxc_2500_sts12_scales": {"stsb": 3.0, "sick": 1.0, "cxc": 0.5, STS12_TRAIN: 1.0, SCALES: 1},
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
    development = write_corpora(args.graded_data, args.sts_data)
    recipes = [write_recipe(name) for name in args.cells]
    command = [sys.executable, "-m", "sts_regression", "sweep", *recipes, f"--seeds={args.seeds}"]
    command += [f"--output_dir={SOURCES_RUNS / 'runs'}", f"--jobs={args.jobs}", f"--sts_data={args.sts_data}"]
    command += ["--do_train=true", "--do_eval=false", "--test_file", *development]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    for path in sorted((ROOT / SOURCES_RUNS / "runs").glob("*/seed-*/run.json")):
        record = slim(json.loads(path.read_text(encoding="utf-8")))
        write_json(record, ROOT / SOURCES_RESULTS / path.parent.parent.name / f"{path.parent.name}.json")
    (ROOT / SOURCES_RESULTS / "sources.md").write_text(table(), encoding="utf-8")


def write_corpora(folder: Path, sts_folder: Path) -> list[str]:
    """Writes training and development pairs of the corpora; returns the names of the development files."""
    paths = []
    for name in CORPORA:
        splits = split_graded_set(name, folder)
        paths.append(str(SOURCES_RUNS / "pairs" / f"{name}.csv"))
        write_pairs(splits["validation"][:PAIRS_PER_CORPUS], ROOT / paths[-1])
        if name in TRAINED_ON:
            write_pairs(without_development_pairs(splits["train"], sts_folder)[:CXC_PAIRS], ROOT / training_file(name))
    return paths


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
    weights = {source: weight for source, weight in CELLS[name].items() if source != SCALES}
    path = SOURCES_RUNS / "recipes" / f"{name}.yaml"
    first_stage = {"source_scales": True} if SCALES in CELLS[name] else {}
    recipe = {
        "extends": os.path.relpath(VARIED_RECIPE, (ROOT / path).parent),
        "train_file": [training_file(source) for source in weights],
        "train_weights": list(weights.values()),
        "stages": [first_stage, {}],
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
