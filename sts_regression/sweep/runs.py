"""Runs recipes with several settings and seeds, and compares the results.

    sts-regression sweep recipes/minilm/*.yaml --seeds 5 --baseline untouched --sts_data FOLDER
    sts-regression sweep recipes/minilm/mse_cosine.yaml --grid learning_rate=2e-5,5e-5 --sts_data FOLDER

Every recipe with every point of the grid is a cell. Options that the sweep does not know go to each run. Finished runs
are not repeated, so the same command resumes an interrupted sweep, and adds cells and seeds to a finished one. Each
run has the folder <output_dir>/<cell>/seed-<n>; its weights are deleted unless --keep_models is given. The summary
(JSON, Markdown, chart) has mean and standard deviation over seeds, and a test of every cell against each baseline. For
the test, a cell that trains needs two seeds or more.
"""

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sts_regression.basics.distributed import available_cores
from sts_regression.basics.files import alone_in, wait_until_free
from sts_regression.basics.hub_tokens import CommandParser, without_tokens
from sts_regression.basics.input_files import check_files
from sts_regression.command.arguments import parse_stages
from sts_regression.command.command_help import RECIPE_SUFFIXES
from sts_regression.command.stages import Stage
from sts_regression.sweep.report import check_summary, write_summary
from sts_regression.training.run_folder import (
    RUN_FILE,
    WEIGHT_PATTERNS,
    check_is_run,
    check_same_options,
    recorded_inputs,
)
from sts_regression.training.run_record import describe_arguments, file_digests

COMMAND = ("-m", "sts_regression", "train")  # arguments of the Python interpreter
LOG_FILE = "log.txt"
OWN_OPTIONS = ("seed", "output_dir", "resume_from_checkpoint", "overwrite_output_dir")  # of each run


@dataclass(frozen=True)
class Cell:
    """One recipe at one point of the grid."""

    name: str
    options: tuple[str, ...]  # words of the training command, the recipe first
    trains: bool


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command."""
    parser = CommandParser(
        prog="sts-regression sweep",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("recipes", nargs="+", help="recipe files")
    parser.add_argument("--grid", nargs="+", default=[], metavar="OPTION=VALUE,VALUE", help="options to vary")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds: 1, 2, and so on; default: 1")
    parser.add_argument("--output_dir", type=Path, default=Path("outputs/sweep"), help="default: outputs/sweep")
    parser.add_argument("--baseline", nargs="+", help="cells that all others are tested against; default: the first")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, which share the cores; default: 1")
    parser.add_argument("--summary_only", action="store_true", help="run nothing; summarise finished runs")
    parser.add_argument("--keep_models", action="store_true", help="keep the weights of every run")
    args, options = parser.parse_known_args(argv)
    try:
        for name in ("seeds", "jobs"):
            if (value := getattr(args, name)) < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {value}.")
        cells = make_cells(args.recipes, args.grid, options)
        names = [cell.name for cell in cells]
        baselines = args.baseline or names[:1]
        for baseline in baselines:
            if baseline not in names:
                raise ValueError(f"`baseline` {baseline!r} is not among the cells: {', '.join(names)}.")
        runs = [run for cell in cells for run in runs_of(cell, args.seeds, args.output_dir)]
        runs.sort(key=lambda run: run.seed)  # every cell runs once before any runs with the next seed
        check_summary(args.output_dir)
        check_runs(runs)
        with alone_in(args.output_dir):
            failed = [] if args.summary_only else run_all(runs, args.jobs, args.keep_models)
            check_models(runs)  # new seeds may have begun with another model than earlier ones
            folders = {name: [run.folder for run in runs if run.folder.parent.name == name] for name in names}
            if len(failed) == len(runs):
                raise ValueError(f"all runs failed. See {failed[0] / LOG_FILE}.")
            sys.stdout.write("\n" + write_summary(args.output_dir, folders, baselines) + "\n")
    except (ValueError, OSError) as error:
        parser.end(error)
    if failed:
        sys.exit(f"{parser.prog}: {len(failed)} of {len(runs)} runs failed: {', '.join(map(str, failed))}")


def make_cells(recipes: Sequence[str], grid: Sequence[str], options: Sequence[str]) -> list[Cell]:
    """
    Makes a cell for every recipe at every point of the grid.

    Args:
        recipes: recipe files.
        grid: `option=value,value` for each option to vary.
        options: options of the training command for all cells.

    Raises:
        ValueError: for a malformed grid, two cells with the same name, or options that the training command refuses.
    """
    given = [word.lstrip("-").partition("=")[0] for word in options if word.startswith("--")]
    axes = []
    for axis in grid:
        name, separator, values = axis.partition("=")
        if not (name and separator and values):
            raise ValueError(f"`grid`: {axis!r} is not of the form option=value,value.")
        given.append(name)
        axes.append([(name, value) for value in values.split(",")])
    if own := [name for name in given if name.replace("-", "_") in OWN_OPTIONS]:
        raise ValueError(f"the sweep sets `{own[0]}` for each run. Leave it out; `--seeds` gives the number of seeds.")
    cells: dict[str, Cell] = {}
    for recipe in recipes:
        if not recipe.endswith(RECIPE_SUFFIXES):
            raise ValueError(f"{recipe!r} is not a recipe. Recipes (.yaml) come first, options of the runs last.")
        for point in itertools.product(*axes):
            name = "-".join([Path(recipe).stem, *(f"{option}={value}" for option, value in point)])
            name = re.sub(r"[^\w.=+-]", "_", without_tokens(name))  # the name of a folder
            settings = [f"--{option}={value}" for option, value in point]
            if name in cells:
                raise ValueError(f"two cells are called {name!r}. Give recipes different names, and each value once.")
            of_cell = (recipe, *options, *settings)
            stages = parse_stages(of_cell)
            if any(stage.training_args.push_to_hub for stage in stages):
                raise ValueError(
                    "`push_to_hub`: a sweep publishes nothing, since all its runs would go to one repository. Publish "
                    "the run that you choose with `sts-regression publish`."
                )
            trains = any(stage.training_args.do_train for stage in stages)
            cells[name] = Cell(name, of_cell, trains)
    return list(cells.values())


@dataclass(frozen=True, eq=False)
class Run:
    """One run of the training command."""

    seed: int
    folder: Path
    command: tuple[str, ...]
    stages: list[Stage]


def runs_of(cell: Cell, num_seeds: int, output_dir: Path) -> list[Run]:
    """The runs of a cell, one per seed. A cell that trains nothing has one run."""
    runs = []
    for seed in range(1, 1 + (num_seeds if cell.trains else 1)):
        folder = output_dir / cell.name / f"seed-{seed}"
        own = [f"--seed={seed}", f"--output_dir={folder}", "--resume_from_checkpoint=true", "--disable_tqdm=true"]
        command = (*cell.options, *own)
        runs.append(Run(seed, folder, command, parse_stages(command)))
    return runs


def check_runs(runs: Sequence[Run]) -> None:
    """
    Checks that existing runs had the same options and pairs, and that all seeds of a cell began with the same model.

    Raises:
        ValueError: if a recipe, a file of pairs or a model has changed in the meantime, or a folder holds other files.
    """
    for run in runs:
        for stage in run.stages:
            check_same_options(stage.folder, describe_arguments(*stage.options))
            check_is_run(stage.folder)
            if not (began_with := recorded_inputs(stage.folder).get("files")):
                continue
            check_files(stage.data_args)
            now = file_digests(stage.data_args)
            if changed := [path for path, digest in now.items() if began_with.get(path, digest) != digest]:
                raise ValueError(
                    f"{stage.folder} holds a run on earlier pairs: {changed[0]} has changed since. Choose another "
                    "`--output_dir`, or delete the run."
                )
    check_models(runs)


def check_models(runs: Sequence[Run]) -> None:
    """
    Checks that all seeds of a cell began with the same model.

    Raises:
        ValueError: if the weights have changed in the meantime.
    """
    models: dict[Path, dict[str, Path]] = defaultdict(dict)  # for each cell: a run for each digest of a first model
    for run in runs:
        first = next(stage.folder for stage in run.stages if not stage.is_bundled)
        if (model := recorded_inputs(first).get("model")) is not None:
            models[run.folder.parent].setdefault(model, run.folder)
    for folders in models.values():
        if len(folders) > 1:
            one, other = list(folders.values())[:2]
            raise ValueError(
                f"{one} and {other} began with different weights under the same model name. Delete the runs of one "
                "of them."
            )


def run_all(runs: Sequence[Run], num_jobs: int, keep_models: bool) -> list[Path]:
    """
    Runs all unfinished runs, `num_jobs` at a time.

    Returns:
        The folders of runs that failed.
    """
    waiting = [run for run in runs if not (run.folder / RUN_FILE).is_file()]
    sys.stdout.write(f"{len(runs)} runs, {len(runs) - len(waiting)} of them already finished\n")
    num_threads = max(1, available_cores() // num_jobs)
    children: list[subprocess.Popen[bytes]] = []

    def call(run: Run) -> int:
        environment = {**os.environ, "OMP_NUM_THREADS": str(num_threads), "TOKENIZERS_PARALLELISM": "false"}
        with (run.folder / LOG_FILE).open("w", encoding="utf-8") as log:
            command = [sys.executable, *COMMAND, *run.command, f"--cpu_threads={num_threads}"]
            with subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT) as child:
                children.append(child)
                return child.wait()

    def execute(run: Run) -> bool:
        run.folder.mkdir(parents=True, exist_ok=True)
        wait_until_free(run.folder)
        code = 0 if (run.folder / RUN_FILE).is_file() else call(run)
        is_whole = code == 0 and (run.folder / RUN_FILE).is_file()
        if is_whole and not keep_models:
            _delete_weights(run.folder)
        name = f"{run.folder.parent.name} {run.folder.name}"
        sys.stdout.write(f"{name}: {'finished' if is_whole else 'failed, see ' + str(run.folder / LOG_FILE)}\n")
        sys.stdout.flush()
        return is_whole

    with ThreadPoolExecutor(num_jobs) as pool:
        try:
            succeeded = list(pool.map(execute, waiting))
        except BaseException:  # a signal: each run ends with a checkpoint
            pool.shutdown(wait=False, cancel_futures=True)
            for child in children:
                child.terminate()
            raise
    return [run.folder for run, is_whole in zip(waiting, succeeded, strict=True) if not is_whole]


def _delete_weights(folder: Path) -> None:
    for path in (match for pattern in WEIGHT_PATTERNS for match in folder.rglob(pattern)):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
