"""Runs the commands behind the tables in `results/` and keeps their run files there. Finished runs are skipped.

python benchmarks/reproduce.py quickstart
python benchmarks/reproduce.py stsb --sts_data FOLDER
python benchmarks/reproduce.py sts_tasks --sts_data FOLDER --senteval_data FOLDER
python benchmarks/reproduce.py leakage --sts_data FOLDER
python benchmarks/reproduce.py leak_matrix --sts_data FOLDER [--graded_data FOLDER]
python benchmarks/reproduce.py comparison --sts_data FOLDER       methods on all-MiniLM-L6-v2, with seeds; hours
python benchmarks/reproduce.py table5 --sts_data FOLDER           k and x0 of Smooth K2, with seeds
python benchmarks/reproduce.py table5_translated_relu --sts_data FOLDER
python benchmarks/reproduce.py table6 --sts_data FOLDER           the features of the head, with seeds
python benchmarks/reproduce.py ablation --sts_data FOLDER         the best recipe with other parts
python benchmarks/reproduce.py cross_encoder --sts_data FOLDER    a cross-encoder on STS-B, three seeds
python benchmarks/reproduce.py paper --sts_data FOLDER            the paper's tables as they are, on a GPU
python benchmarks/reproduce.py comparison --sts_data FOLDER --from_kept    summarises the files in `results/` anew
python -m benchmarks.tables.results_table          writes the tables from the run files

FOLDER holds stsbenchmark/, sts/ and sick/ (see CONTRIBUTING.md), or SentEval's STS/ and SICK/. The folder of
--graded_data holds cxc.csv, parade.csv, parabank.csv, sag.csv, ukp_aspect.csv and sts12_train.csv.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.kept_scores import has_scores, keep_ranks, restore_runs, without_folder
from benchmarks.tables.paper_tables import TABLES, recipes_of_table
from sts_regression.basics.tables import write_json
from sts_regression.data.leakage import LEAK_FILTERS
from sts_regression.sweep.report import write_summary

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
STSB_RUNS = {
    f"{loss}-{score_function}": (loss, score_function)
    for loss in ("smooth_k2", "translated_relu", "mse", "l1")
    for score_function in ("linear", "cosine")
}
AUDITED_FILES = {
    "train": ("stsbenchmark/sts-train.csv", "sick/SICK_train.txt"),
    "validation": ("stsbenchmark/sts-dev.csv", "sick/SICK_trial.txt"),
}
GRADED_FILES = ("cxc.csv", "parade.csv", "parabank.csv", "sag.csv", "ukp_aspect.csv", "sts12_train.csv")
CROSS_ENCODER_SEEDS = (1, 2, 3)
ABLATIONS = ("no_averaging", "distillation", "soup", "distillation_alone", "trained_embeddings")
# Recipes that take longest: the paper's two stages.
SLOW, SLOW_SEEDS = ("paper", "paper_code", "paper_clean", "paper_clean_code"), 3


class Sweep(NamedTuple):
    """
    A sweep over recipes of all-MiniLM-L6-v2.

    Attributes:
        recipes: recipes in `recipes/minilm`.
        num_seeds: number of seeds.
        baselines: the cells that all others are tested against.
        grid: the values of further options.
    """

    recipes: tuple[str, ...]
    num_seeds: int
    baselines: tuple[str, ...]
    grid: tuple[str, ...] = ()


SWEEPS = {
    "comparison": Sweep(
        (
            *("untouched", "best", "best_sentence", "ablation/distillation"),
            *("paper", "paper_code", "paper_clean", "paper_clean_code"),
            *("smooth_k2_linear", "translated_relu_linear", "mse_linear", "l1_linear"),
            *("smooth_k2_cosine", "translated_relu_cosine", "mse_cosine", "l1_cosine"),
            *("cross_entropy", "hl_gauss_cosine", "corn_cosine", "info_nce", "cosent", "angle", "pearson"),
        ),
        10,
        ("untouched", "best", "mse_linear", "mse_cosine", "l1_linear", "l1_cosine"),
    ),
    "table5": Sweep(
        ("smooth_k2_linear",),
        3,
        ("smooth_k2_linear-loss_slope=3-loss_threshold=0.25",),  # the paper's choice
        ("loss_slope=2,3,4", "loss_threshold=0.15,0.25"),
    ),
    "table5_translated_relu": Sweep(
        ("translated_relu_linear",), 3, ("translated_relu_linear-loss_slope=2.5",), ("loss_slope=1,1.5,2,2.5",)
    ),
    "table6": Sweep(
        ("table6/u-v-abs_diff", "table6/u-v", "table6/abs_diff", "table6/abs_diff-product"), 3, ("u-v-abs_diff",)
    ),
    "ablation": Sweep(("best", *(f"ablation/{name}" for name in ABLATIONS)), 10, ("best", "distillation")),
}


def main() -> None:
    """Runs the experiment that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=[*SINGLE_RUNS, *SWEEPS])
    parser.add_argument("--sts_data", type=Path, help="folder of the STS data, original text")
    parser.add_argument("--jobs", type=int, default=1, help="runs of a sweep at a time; default: 1")
    parser.add_argument("--only", nargs="+", help="for a sweep: recipes to run; default: all")
    parser.add_argument(
        "--from_kept", action="store_true", help="for a sweep: summarise the kept run files, run nothing"
    )
    parser.add_argument("--senteval_data", type=Path, help="folder of SentEval's STS data, tokenised")
    parser.add_argument("--graded_data", type=Path, help="folder of graded pairs of other corpora, for leak_matrix")
    args = parser.parse_args()
    if args.from_kept and args.experiment not in SWEEPS:
        parser.error(f"--from_kept: {args.experiment} is not a sweep")
    if args.experiment != "quickstart" and args.sts_data is None:
        parser.error(f"{args.experiment} needs --sts_data")
    if args.experiment == "sts_tasks" and args.senteval_data is None:
        parser.error("sts_tasks needs --senteval_data")
    args.sts_data = args.sts_data and args.sts_data.resolve()  # as `without_folder` expects
    if args.from_kept:
        summarize_kept(args.experiment, args.sts_data)
    elif args.experiment in SWEEPS:
        keep_sweep(args.experiment, args.sts_data, args.only, args.jobs)
    else:
        SINGLE_RUNS[args.experiment](args)


def keep_quickstart(args: argparse.Namespace) -> None:
    """Runs the bare command, and the lines of Python that it prints."""
    output = keep_training("quickstart", "smooth_k2", ["--loss", "smooth_k2"])
    if output is not None:
        keep_usage_example(output)


def keep_cross_encoders(args: argparse.Namespace) -> None:
    """Trains a cross-encoder on STS-B with three seeds."""
    for seed in CROSS_ENCODER_SEEDS:
        options = ["recipes/minilm/cross_encoder.yaml", *stsb_files(args.sts_data), f"--seed={seed}"]
        keep_training("cross_encoder", f"seed-{seed}", options)


def keep_untouched_scores(args: argparse.Namespace) -> None:
    """Scores the seven tasks with the untouched encoder, in both layouts, and with all of SICK."""
    evaluate("all-minilm-l6-v2-original", args.sts_data)
    evaluate("all-minilm-l6-v2-senteval", args.senteval_data)
    evaluate("all-minilm-l6-v2-all-of-sick", args.sts_data, "--sick_split=all")


def keep_paper_runs(args: argparse.Namespace) -> None:
    """Runs every recipe of the paper's tables."""
    for number in TABLES:
        for recipe in recipes_of_table(ROOT / "recipes" / "paper", number):
            options = [str(recipe.relative_to(ROOT)), f"--sts_data={args.sts_data}"]
            keep_run(f"paper/table{number}", recipe.stem, options)


def keep_audits(args: argparse.Namespace) -> None:
    """Audits the training and development files with each filter."""
    for leak_filter in LEAK_FILTERS:
        if leak_filter != "none":
            audit(leak_filter, args.sts_data)


def stsb_files(folder: Path) -> list[str]:
    """STS-B's three files as options."""
    splits = {"train": "train", "validation": "dev", "test": "test"}
    return [f"--{split}_file={folder / 'stsbenchmark' / f'sts-{name}.csv'}" for split, name in splits.items()]


def train_on_stsb(files: list[str]) -> None:
    """Trains with four losses and both score functions on all training pairs of STS-B, leaked test pairs included."""
    for name, (loss, score_function) in STSB_RUNS.items():
        options = [f"--loss={loss}", f"--score_function={score_function}", "--leak_filter=none"]
        keep_training("stsb", name, ["recipes/stsb.yaml", *files, *options])


def evaluate(name: str, folder: Path, *options: str) -> None:
    """Scores the STS tasks with the default encoder; keeps the run file as `results/sts_tasks/<name>.json`."""
    keep_run("sts_tasks", name, ["--do_eval", f"--sts_data={folder}", *options])


def audit(leak_filter: str, folder: Path) -> None:
    """Counts pairs of STS-B and SICK that are test pairs, and keeps the counts as `results/leakage/<filter>.json`."""
    kept = RESULTS / "leakage" / f"{leak_filter}.json"
    options = ["--leak_filter", leak_filter]
    for split, names in AUDITED_FILES.items():
        options += [f"--{split}_file", *(str(folder / name) for name in names)]
    counts = find_leaks(folder, options, kept)
    named = {split: {Path(file).name: count for file, count in sets.items()} for split, sets in counts.items()}
    write_json(without_examples(named), kept)


def keep_leak_matrix(folder: Path, graded: Path | None) -> None:
    """Counts common pairs of all sets and the seven STS tasks, and keeps them as `results/leakage/matrix.json`."""
    kept = RESULTS / "leakage" / "matrix.json"
    files = [folder / name for names in AUDITED_FILES.values() for name in names]
    if graded is not None:
        files += [graded / name for name in GRADED_FILES]
    matrix = find_leaks(folder, ["--leak_filter", "normalized", "--matrix", *map(str, files)], kept)
    matrix["sets"] = {Path(file).name: counts for file, counts in matrix["sets"].items()}
    write_json(matrix, kept)


def find_leaks(folder: Path, options: list[str], kept: Path) -> dict[str, Any]:
    """Runs the command of the leak filter, and returns its output, which still has paths and sentences in it."""
    command = [sys.executable, "-m", "sts_regression", "leakage", "--sts_data", str(folder), *options]
    subprocess.run([*command, "--output_file", str(kept), "--overwrite"], cwd=ROOT, check=True)
    return json.loads(kept.read_text(encoding="utf-8"))


def keep_sweep(name: str, folder: Path, only: Sequence[str] | None, jobs: int) -> None:
    """
    Runs recipes with several seeds, and keeps the run files with their scores in `results/<name>`.

    Runs that are kept there count as finished.

    Args:
        name: name of the sweep.
        folder: folder of the STS data.
        only: names of the recipes to run; `None` for all.
        jobs: number of runs at a time.
    """
    sweep, output_dir = SWEEPS[name], Path("outputs", name)
    chosen = [recipe for recipe in sweep.recipes if only is None or Path(recipe).name in only]
    slow = [recipe for recipe in chosen if recipe in SLOW]
    shared = [f"--jobs={jobs}", f"--output_dir={output_dir}", f"--sts_data={folder}"]
    shared += ["--grid", *sweep.grid] if sweep.grid else []
    restore_runs(RESULTS / name, ROOT / output_dir, folder)
    codes = []
    for recipes, num_seeds in (
        ([recipe for recipe in chosen if recipe not in slow], sweep.num_seeds),
        (slow, min(SLOW_SEEDS, sweep.num_seeds)),
    ):
        if recipes:
            codes.append(run_sweep(recipes, [f"--seeds={num_seeds}", *shared]))
    keep_runs(ROOT / output_dir, RESULTS / name)
    summarize_kept(name, folder)
    if code := next(filter(None, codes), 0):
        sys.exit(code)


def summarize_kept(name: str, folder: Path) -> None:
    """
    Summarises the run files in `results/<name>`, and the scores that were kept with them.

    Args:
        name: name of the sweep.
        folder: folder of the STS data.
    """
    sweep, kept = SWEEPS[name], RESULTS / name
    order = [Path(recipe).name for recipe in sweep.recipes]
    with TemporaryDirectory() as restored:
        runs = restore_runs(kept, Path(restored), folder)
        runs = {cell: runs[cell] for cell in sorted(runs, key=lambda cell: order.index(cell.partition("-loss_")[0]))}
        sys.stdout.write(write_summary(Path(restored), runs, sweep.baselines) + "\n")
        for path in Path(restored).glob("summary.*"):
            shutil.copy(path, kept)


def keep_runs(runs: Path, kept: Path) -> None:
    """Copies the run files of a sweep, without their long parts, and the ranks of their scores."""
    for path in runs.glob("*/seed-*/run.json"):
        record = slim(json.loads(path.read_text(encoding="utf-8")))
        target = kept / path.parent.parent.name / f"{path.parent.name}.json"
        write_json(record, target)
        if has_scores(path.parent):
            keep_ranks(path.parent, target)


def run_sweep(names: list[str], options: list[str]) -> int:
    """The exit code of a sweep over recipes of all-MiniLM-L6-v2."""
    recipes = [f"recipes/minilm/{recipe}.yaml" for recipe in names]
    command = [sys.executable, "-m", "sts_regression", "sweep", *recipes, *options]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}).returncode


def slim(record: dict[str, Any]) -> dict[str, Any]:
    """A run file without its long parts: losses of single steps, subsets of the tasks, leaked sentences."""
    for part in (record, *record.get("stages", [])):
        part["leakage"] = without_examples(part["leakage"])
        if part.get("training"):
            history = part["training"]["log_history"]
            part["training"]["log_history"] = [entry for entry in history if "loss" not in entry]
    for measures in record.get("sts_tasks", {}).get("tasks", {}).values():
        measures.pop("subsets", None)
    return without_folder(record)


def keep_training(group: str, name: str, options: list[str]) -> str | None:
    """As [`keep_run`], for a run that trains; prints the measures of its test pairs."""
    printed = keep_run(group, name, options)
    if printed is not None:
        record = json.loads((RESULTS / group / f"{name}.json").read_text(encoding="utf-8"))
        sys.stdout.write(json.dumps(record["results"]["after training"]["test"]) + "\n")
    return printed


def keep_run(group: str, name: str, options: list[str]) -> str | None:
    """Runs the command, keeps its run file as `results/<group>/<name>.json`, and returns its output."""
    kept = RESULTS / group / f"{name}.json"
    if kept.exists():
        sys.stdout.write(f"{kept.relative_to(ROOT)} is there already\n")
        return None
    output_dir = Path("outputs") / f"{group}-{name}"
    command = ["accelerate", "launch", "run_sts.py", *options, f"--output_dir={output_dir}", "--overwrite_output_dir"]
    sys.stdout.write(" ".join(command) + "\n")
    sys.stdout.flush()
    finished = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True)
    record = json.loads((ROOT / output_dir / "run.json").read_text(encoding="utf-8"))
    for part in (record, *record["stages"]):
        part["leakage"] = without_examples(part["leakage"])
    write_json(without_folder(record), kept)
    for checkpoint in (ROOT / output_dir).glob("checkpoint-*"):
        shutil.rmtree(checkpoint)
    return finished.stdout


def without_examples(leakage: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Counts of a leak filter without the sentences of other people's data."""
    return {
        split: {
            name: {key: value for key, value in count.items() if key != "examples"} for name, count in sets.items()
        }
        for split, sets in leakage.items()
    }


def keep_usage_example(output: str) -> None:
    """Runs the lines of Python that the quick start printed, and keeps them with their output."""
    match = re.search(r"(?m)(^    from transformers import .*(?:\n    .*|\n)+)", output)
    if match is None:
        raise ValueError("the command printed no usage example")
    code = textwrap.dedent(match[1]).strip()
    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True
    ).stdout
    write_json({"code": code, "printed": printed.strip()}, RESULTS / "quickstart" / "usage_example.json")


SINGLE_RUNS: dict[str, Callable[[argparse.Namespace], None]] = {
    "quickstart": keep_quickstart,
    "stsb": lambda args: train_on_stsb(stsb_files(args.sts_data)),
    "cross_encoder": keep_cross_encoders,
    "sts_tasks": keep_untouched_scores,
    "leakage": keep_audits,
    "leak_matrix": lambda args: keep_leak_matrix(args.sts_data, args.graded_data),
    "paper": keep_paper_runs,
}


if __name__ == "__main__":
    main()
