"""Compares methods for few own graded pairs, on budgets of pairs of seven corpora.

    python benchmarks/graded_pairs.py choose --graded_data FOLDER --sts_data FOLDER --jobs 2
    python benchmarks/graded_pairs.py run --graded_data FOLDER --sts_data FOLDER --jobs 2 --seeds 5
    python benchmarks/graded_pairs.py table --graded_data FOLDER --sts_data FOLDER

Each corpus is divided once by text. A method learns only from its budget of training pairs: the first pairs in an
order that depends on the seed and is the same for all methods. `choose` tries every setting of a method's grid with
one seed. For each budget, it takes the setting with the highest mean over the corpora of Spearman's correlation on
development pairs. `run` measures test pairs with these settings and other seeds. `table` writes tables and a chart of
all finished runs; budgets that `--budgets` leaves out stay as they are. The scores of test pairs are kept with the
results, their labels are not: without the folders, intervals are for these test pairs only. Finished runs are not
repeated. Each run is a forked process with one thread, so that its memory can be measured.
"""

import os

if __name__ == "__main__":  # before the libraries are loaded, which read this; no thread may start before a fork
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}

import argparse
import io
import json
import logging
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from benchmarks.graded_data import (
    ALL_SETS,
    CAPS,
    GRADED_SETS,
    STS_SETS,
    LabelledPair,
    budget_of_pairs,
    folder_of,
    graded_shares,
)
from benchmarks.graded_methods import (
    METHODS,
    Predictions,
    Settings,
    Task,
    load_libraries,
    measure_predictions,
    read_score,
)
from benchmarks.tables.graded_table import GRADED_TABLE, GradedLine, read_runs, write_graded_tables
from sts_regression.basics.files import replacing
from sts_regression.basics.tables import write_json
from sts_regression.data.text_splits import groups_to_resample
from sts_regression.training.run_record import describe_environment, peak_memory_bytes

GRADED_RESULTS = Path(__file__).resolve().parent.parent / "results" / "graded_pairs"
BUDGETS = {"100": 100, "300": 300, "1000": 1000, "all": CAPS["train"]}
CHOICE_SEED = 0  # runs of the table have seeds from 1
RECORDED = ("commit", "uncommitted_changes", "torch", "transformers", "device")  # of the environment
CHOICE_LINES, RUN_LINES, CHOICE_FILE = "choice.jsonl", "runs.jsonl", "choice.json"
MEASURED_SPLITS = {CHOICE_LINES: ("validation",), RUN_LINES: ("validation", "test")}

Choice = Mapping[str, Mapping[str, Mapping[str, Any]]]  # see `choices_of`


@dataclass(frozen=True)
class GradedRun:
    """A method on a budget of a set."""

    set: str
    budget: str
    method: str
    settings: Settings
    seed: int

    @property
    def key(self) -> str:
        """A unique name of the run, also of the file of its scores."""
        settings = [f"{name}={value:g}" for name, value in self.settings.items()]
        return "-".join([self.set, self.budget, self.method, *settings, f"seed-{self.seed}"])


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command."""
    args = parse_command(argv)
    if args.command == "choose":
        failed = run_missing(runs_of_grids(args), args, CHOICE_LINES)
        write_json(choices_of(read_runs(args.output_dir / CHOICE_LINES)), args.output_dir / CHOICE_FILE)
    elif args.command == "run":
        failed = run_missing(runs_of_seeds(args, read_choice(args.output_dir)), args, RUN_LINES)
    else:
        failed = []
        lines = chosen_lines(read_runs(args.output_dir / RUN_LINES), read_choice(args.output_dir))
        lines = [line for line in lines if line["budget"] in args.budgets]
        for name in args.sets:
            if folder_of(name, args) is not None:
                read_shares(name, args)
        write_graded_tables(lines, args.output_dir / GRADED_TABLE, args.scores_dir)
    if failed:
        sys.exit("\n".join([f"{len(failed)} runs failed; the same command tries them again:", *failed]))


def parse_command(argv: Sequence[str] | None) -> argparse.Namespace:
    """The words of the command line as options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("choose", "run", "table"))
    parser.add_argument("--graded_data", type=Path, help=f"folder of {', '.join(GRADED_SETS)}")
    parser.add_argument("--sts_data", type=Path, help="folder of the STS data, original text")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time; default: 1")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--sets", nargs="+", choices=ALL_SETS, default=list(ALL_SETS), help="default: all")
    parser.add_argument("--budgets", nargs="+", choices=BUDGETS, default=list(BUDGETS), help="default: all")
    parser.add_argument("--seeds", type=int, default=5, help="runs of a method on a budget of a set; default: 5")
    parser.add_argument("--model_name_or_path", help="encoder; default: all-MiniLM-L6-v2")
    parser.add_argument("--output_dir", type=Path, default=GRADED_RESULTS, help="of the measures")
    parser.add_argument("--scores_dir", type=Path, default=GRADED_RESULTS / "scores", help="of test scores")
    args = parser.parse_args(argv)
    for name in ("jobs", "seeds"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1, but is {getattr(args, name)}")
    for name, sets in (("graded_data", GRADED_SETS), ("sts_data", STS_SETS)):
        if args.command != "table" and getattr(args, name) is None and set(args.sets) & set(sets):
            parser.error(f"{', '.join(sets)} need --{name}")
    return args


def runs_of_grids(args: argparse.Namespace) -> list[GradedRun]:
    """Every setting of every method with a setting to choose, small budgets first."""
    return [
        GradedRun(name, budget, method, settings, CHOICE_SEED)
        for budget in BUDGETS
        for method in METHODS
        for settings in METHODS[method].grid
        for name in ALL_SETS
        if METHODS[method].tuned and budget in args.budgets and method in args.methods and name in args.sets
    ]


def runs_of_seeds(args: argparse.Namespace, choice: Choice) -> list[GradedRun]:
    """
    Every method with its chosen settings, seed by seed, small budgets first. Methods that train nothing have one seed.

    Raises:
        ValueError: if no settings have been chosen.
    """
    return [
        GradedRun(name, budget, method, chosen_settings(choice, method, budget), seed)
        for seed in range(1, args.seeds + 1)
        for budget in BUDGETS
        for name in ALL_SETS
        for method in METHODS
        if budget in args.budgets and name in args.sets and method in args.methods
        if METHODS[method].trains or seed == 1
    ]


def chosen_settings(choice: Choice, method: str, budget: str) -> Settings:
    """
    The settings that [`choices_of`] has chosen.

    Raises:
        ValueError: if none have been chosen.
    """
    if METHODS[method].tuned is None:
        return {}
    if budget not in choice.get(method, {}):
        raise ValueError(
            f"{method} has no chosen settings for a budget of {budget} pairs. Choose them first: `graded_pairs.py "
            f"choose --methods {method} --budgets {budget} …`."
        )
    return choice[method][budget]["chosen"]


def choices_of(lines: Sequence[GradedLine]) -> dict[str, dict[str, dict[str, Any]]]:
    """
    The best settings by the mean over the sets of Spearman's correlation on development pairs.

    Args:
        lines: finished runs of the grids.

    Returns:
        By method and budget, the best settings (`chosen`), and all `settings` with their `mean` and the development
        measures of each set. If a setting has not been run on a set, the set is left out for all settings of that
        method and budget. If no set is left, nothing is chosen.
    """
    choice: dict[str, dict[str, dict[str, Any]]] = {}
    for method in METHODS:
        for budget in BUDGETS:
            own = [line for line in lines if (line["method"], line["budget"]) == (method, budget)]
            by_setting = [
                {line["set"]: line["validation"] for line in own if line["settings"] == settings}
                for settings in METHODS[method].grid
            ]
            sets = [name for name in ALL_SETS if all(name in measured for measured in by_setting)]
            if not sets:
                continue
            tried: list[dict[str, Any]] = [
                {
                    "settings": dict(settings),
                    "mean": float(np.mean([measured[name]["spearman"] for name in sets])),
                    "by_set": {name: measured[name] for name in sets},
                }
                for settings, measured in zip(METHODS[method].grid, by_setting, strict=True)
            ]
            best = max(tried, key=lambda setting: setting["mean"])
            choice.setdefault(method, {})[budget] = {"chosen": best["settings"], "settings": tried}
    return choice


def read_choice(folder: Path) -> Choice:
    """The settings that `choose` has chosen so far."""
    path = folder / CHOICE_FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def chosen_lines(lines: Sequence[GradedLine], choice: Choice) -> list[GradedLine]:
    """The runs with the current choice of settings, which may have changed since."""
    return [line for line in lines if line["settings"] == chosen_settings(choice, line["method"], line["budget"])]


def run_missing(runs: Sequence[GradedRun], args: argparse.Namespace, lines_name: str) -> list[str]:
    """
    Runs the runs that are not finished, each in its own process.

    Args:
        runs: the runs in order.
        args: options of the command line.
        lines_name: name of the file to which each run adds a line.

    Returns:
        The keys of the runs that failed; each has printed the reason.

    Raises:
        ValueError: if the file holds runs of another encoder.
    """
    path = args.output_dir / lines_name
    lines = read_runs(path)
    if other := {line["model"] for line in lines} - {args.model_name_or_path}:
        raise ValueError(
            f"`--model_name_or_path` is {args.model_name_or_path}, but {path} holds runs of {other.pop()}. Name other "
            "folders with `--output_dir` and `--scores_dir`."
        )
    done = {line["key"] for line in lines}
    missing = [run for run in runs if run.key not in done]
    shares = {name: read_shares(name, args) for name in dict.fromkeys(run.set for run in missing)}
    environment = describe_environment()
    code = {"model": args.model_name_or_path, **{name: environment[name] for name in RECORDED}}
    load_libraries()
    context, active = multiprocessing.get_context("fork"), dict[int, tuple[Any, GradedRun]]()
    failed: list[str] = []
    for number, run in enumerate(missing, start=1):
        if len(active) >= args.jobs:
            failed += finish_any(active)
        title = f"{number}/{len(missing)} {run.key}"
        process = context.Process(target=measure_and_keep, args=(run, shares[run.set], args, path, code, title))
        process.start()
        active[process.sentinel] = (process, run)
    while active:
        failed += finish_any(active)
    return failed


def finish_any(active: dict[int, tuple[Any, GradedRun]]) -> list[str]:
    """Waits until a process ends; returns the keys of runs that ended with an error."""
    ready = wait(list(active))
    ended = [active.pop(sentinel) for sentinel in list(active) if sentinel in ready]
    for process, _ in ended:
        process.join()
    return [run.key for process, run in ended if process.exitcode != 0]


def read_shares(name: str, args: argparse.Namespace) -> dict[str, list[LabelledPair]]:
    """The pairs of a set by split; keeps the labels of its test pairs, and their groups, for the table."""
    shares = graded_shares(name, folder_of(name, args))
    first, second, labels = zip(*shares["test"], strict=True)
    args.scores_dir.mkdir(parents=True, exist_ok=True)
    with replacing(args.scores_dir / f"{name}.npz") as file:
        np.savez(file, gold=np.array(labels), group=groups_to_resample(first, second))
    return shares


def measure_and_keep(
    run: GradedRun,
    shares: Mapping[str, list[LabelledPair]],
    args: argparse.Namespace,
    path: Path,
    code: Mapping[str, Any],
    title: str,
) -> None:
    """Measures a run, and adds a line to the file. If that fails, the file does not change."""
    logging.disable(logging.ERROR)  # hides messages of training; errors are raised
    warnings.simplefilter("ignore")
    with redirect_stdout(io.StringIO()):
        measured, scores = measure_run(run, shares, MEASURED_SPLITS[path.name], args.model_name_or_path)
    if "test" in scores:
        read = read_score(scores["test"].scores, ALL_SETS[run.set].top_grade)
        with replacing(args.scores_dir / f"{run.key}.npz") as file:
            np.savez(file, score=read.astype(np.float16))
    line = json.dumps({"key": run.key, **asdict(run), **measured, **code}, allow_nan=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(args.scores_dir / f"{path.name}.lock"):
        before = path.read_bytes() if path.is_file() else b""
        with replacing(path) as file:
            file.write(before + f"{line}\n".encode())
    sys.stdout.write(f"{title}: {measured['validation']['spearman']:.4f}, {measured['seconds']:.0f} s\n")
    sys.stdout.flush()


def measure_run(
    run: GradedRun, shares: Mapping[str, list[LabelledPair]], splits: Sequence[str], model: str | None
) -> tuple[GradedLine, dict[str, Predictions]]:
    """
    Trains, and measures pairs of the splits.

    Args:
        run: set, budget, method, settings and seed.
        shares: pairs by split.
        splits: the splits to measure.
        model: encoder to start from; `None` for the default.

    Returns:
        A `dict` with the number of `train_pairs`, `seconds` from loading the encoder to the trained scorer,
        `peak_memory_bytes` of this process until then, and the measures of each split, see [`measure_predictions`];
        and the predictions of each split.
    """
    method, top_grade = METHODS[run.method], ALL_SETS[run.set].top_grade
    pairs = budget_of_pairs(shares["train"], BUDGETS[run.budget], run.seed)
    scores, measures = {}, {}
    with tempfile.TemporaryDirectory(prefix="graded-pairs-") as folder:
        started = time.perf_counter()
        task = Task(pairs, top_grade, run.seed, Path(folder), model)
        scorer = method.learn(task, {**method.options, **run.settings})
        seconds, peak = time.perf_counter() - started, peak_memory_bytes()["process"]
        for split in splits:
            first, second, labels = (list(column) for column in zip(*shares[split], strict=True))
            scores[split] = scorer(first, second)
            measures[split] = measure_predictions(scores[split], np.array(labels), top_grade)
    return {"train_pairs": len(pairs), "seconds": seconds, "peak_memory_bytes": peak, **measures}, scores


if __name__ == "__main__":
    main()
