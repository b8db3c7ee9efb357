"""Chooses between variants of the best recipe without a test pair: on genres of STS-B that the training does not see.

    python benchmarks/held_out_genres.py --sts_data FOLDER --jobs 2          writes results/held_out/<genre>/

The pairs of STS-B that no STS task holds are of three genres: MSRpar, MSRvid, and captions of 2017 (development pairs
only). MSRpar and MSRvid in turn are taken out of the training pairs and become the development pairs. SICK describes
some of the videos of MSRvid, too: its training pairs with a sentence of the genre are left out.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from datasets import Dataset, concatenate_datasets
from reproduce import ABLATIONS

from sts_regression.data import read_pairs
from sts_regression.file_rows import read_rows
from sts_regression.labels import SICK_SCALE, STS_SCALE
from sts_regression.leakage import LeakFilter
from sts_regression.sts_tasks import load_sts_tasks

ROOT = Path(__file__).resolve().parent.parent
GENRES = ("MSRpar", "MSRvid")
GENRE_COLUMN = "file"
RECIPES = ("best", *(f"ablation/{name}" for name in ABLATIONS))
SICK_TRAIN = "sick/SICK_train.txt"


def main() -> None:
    """Runs the variants for each genre, and keeps the summaries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sts_data", type=Path, required=True, help="folder of the STS data, original text")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time; default: 1")
    args = parser.parse_args()
    leak_filter = LeakFilter({task.name: task.pairs for task in load_sts_tasks(args.sts_data)}, "normalized")
    train, development = (
        clean_pairs(args.sts_data / "stsbenchmark" / f"sts-{split}.csv", leak_filter) for split in ("train", "dev")
    )
    sick = read_sick(args.sts_data / SICK_TRAIN)
    for genre in GENRES:
        folder = Path("outputs") / "held_out" / genre
        (ROOT / folder).mkdir(parents=True, exist_ok=True)
        held_out = concatenate_datasets([train, development]).filter(lambda pair, genre=genre: pair["genre"] == genre)
        other_sick, _ = LeakFilter({genre: held_out}, "sentence").apply(sick)
        pairs = {
            "stsb.csv": train.filter(lambda pair, genre=genre: pair["genre"] != genre),
            "sick.csv": other_sick,
            "validation.csv": held_out,
        }
        for name, of_file in pairs.items():
            of_file.to_csv(ROOT / folder / name)
            sys.stdout.write(f"{folder / name}: {len(of_file):,} pairs\n")
        command = [sys.executable, "-m", "sts_regression.sweep"]
        command += [f"recipes/minilm/{recipe}.yaml" for recipe in RECIPES]
        command += [f"--seeds={args.seeds}", f"--jobs={args.jobs}", f"--output_dir={folder / 'runs'}"]
        command += ["--train_file", str(folder / "stsb.csv"), str(folder / "sick.csv")]
        command += ["--validation_file", str(folder / "validation.csv"), f"--sts_data={args.sts_data}"]
        command += ["--do_train=true", "--do_eval=false"]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
        kept = ROOT / "results" / "held_out" / genre
        kept.mkdir(parents=True, exist_ok=True)
        for path in (ROOT / folder / "runs").glob("summary.*"):
            shutil.copy(path, kept)


def clean_pairs(path: Path, leak_filter: LeakFilter) -> Dataset:
    """Pairs of a file of STS-B that are no test pairs, with their `genre`."""
    pairs, _ = leak_filter.apply(read_pairs(path).pairs)
    genre_of_line = {line: row[GENRE_COLUMN] for line, row in read_rows(path)}
    return pairs.add_column("genre", [genre_of_line[line] for line in pairs["line"]]).remove_columns("line")


def read_sick(path: Path) -> Dataset:
    """Training pairs of SICK, their labels on the scale of STS-B."""
    pairs = read_pairs(path).pairs
    labels = SICK_SCALE.map_to(STS_SCALE, pairs[:]["label"])
    return pairs.remove_columns(["label", "line"]).add_column("label", labels.tolist())


if __name__ == "__main__":
    main()
