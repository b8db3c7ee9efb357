"""Chooses the recipe for own pairs: learning rate, self-distillation and WiSE-FT's alpha, on development pairs.

    python benchmarks/own_pairs_choice.py --graded_data FOLDER --sts_data FOLDER --seeds 3

It uses the corpora, splits and budgets of `graded_pairs.py`, but other seeds than its table; no test pair is read.
Alpha mixes weights after training, so one run serves all its values. The recipe is the same for every corpus and
budget: the setting with the highest mean of Spearman's correlation over both. Finished runs are not repeated; they are
kept in `own_pairs_choice.jsonl`, and means in `own_pairs_choice.md`.
"""

import os

if __name__ == "__main__":  # before the libraries are loaded, which read this
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "TQDM_DISABLE": "1"}

import argparse
import io
import json
import logging
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.graded_data import ALL_SETS, GRADED_SETS, STS_SETS, LabelledPair, budget_of_pairs, graded_shares
from benchmarks.graded_methods import Task, train_grader
from benchmarks.tables.graded_table import read_runs
from sts_regression.basics.tables import markdown_table, percent
from sts_regression.data.columns import PairColumns
from sts_regression.data.splits import load_splits
from sts_regression.evaluation.sts_evaluation import correlate
from sts_regression.grader import LABELLED, PairGrader, as_dataset
from sts_regression.models.encoding import model_scorer
from sts_regression.options import DataArguments
from sts_regression.training.run_record import describe_environment
from sts_regression.training.weight_averaging import copy_weights, interpolate

OWN_PAIRS_RESULTS = Path(__file__).resolve().parent.parent / "results" / "graded_pairs"
TRIED_BUDGETS = (100, 300, 1000, 5000)
BUDGET_GROUPS = ((100, 300), (1000,), (5000,))  # whose means decide together
TRIED_RATES = (2e-5, 5e-5, 1e-4, 2e-4, 4e-4)
TRIED_DISTILLATION = (1.0, 0.0)
ALPHAS = (0.35, 0.5, 0.65, 0.8, 1.0)
FIRST_SEED = 101  # the table has seeds from 1
NAMES = ("self_distillation", "learning_rate", "wise_ft_alpha")
RECIPE_OPTIONS = ("learning_rate", "self_distillation", "group_intercepts")


def main() -> None:
    """Runs the missing runs, and writes the means."""
    parser = choice_parser(__doc__, TRIED_BUDGETS)
    parser.add_argument("--rates", type=float, nargs="+", choices=TRIED_RATES, default=list(TRIED_RATES))
    parser.add_argument("--distillation", type=float, nargs="+", choices=TRIED_DISTILLATION, default=[1.0])
    parser.add_argument("--seeds", type=int, default=3, help="draws of the pairs; default: 3")
    args = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    path = args.output_dir / "own_pairs_choice.jsonl"
    lines = read_runs(path)
    done = {_key(line) for line in lines}
    shares = {name: graded_shares(name, args.sts_data if name in STS_SETS else args.graded_data) for name in ALL_SETS}
    seeds = range(FIRST_SEED, FIRST_SEED + args.seeds)
    for seed, budget, rate, weight in product(seeds, args.budgets, args.rates, args.distillation):
        for name in args.sets:
            run = {"set": name, "budget": budget, "seed": seed, "learning_rate": rate, "self_distillation": weight}
            if _key(run) not in done:
                lines.append({**run, **measure_alphas(run, shares[name])})
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    (args.output_dir / "own_pairs_choice.md").write_text(choice_page(lines), encoding="utf-8")


def choice_parser(description: str | None, budgets: Sequence[int]) -> argparse.ArgumentParser:
    """The options of a command that compares settings on development pairs: data, corpora, budgets, output folder."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graded_data", type=Path, required=True, help=f"folder of {', '.join(GRADED_SETS)}")
    parser.add_argument("--sts_data", type=Path, required=True, help="folder of the STS data")
    parser.add_argument("--sets", nargs="+", choices=list(ALL_SETS), default=list(ALL_SETS))
    parser.add_argument("--budgets", type=int, nargs="+", choices=budgets, default=list(budgets))
    parser.add_argument("--output_dir", type=Path, default=OWN_PAIRS_RESULTS)
    return parser


def _key(run: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(run[name] for name in ("set", "budget", "seed", "learning_rate", "self_distillation"))


def measure_alphas(
    run: Mapping[str, Any], shares: Mapping[str, list[LabelledPair]], alphas: Sequence[float] = ALPHAS
) -> dict[str, Any]:
    """
    Trains, and measures the development pairs with each alpha.

    Args:
        run: `set`, `budget`, `seed`, and options of the recipe.
        shares: `train` and `validation` pairs.
        alphas: to measure, beside 0.

    Returns:
        A `dict` with `spearman` by alpha, `untouched` and the commit; `held_out` is Spearman's correlation, by alpha
        from 0, on the pairs that the training command held out of its training pairs.
    """
    options = {name: run[name] for name in RECIPE_OPTIONS if name in run}
    options |= {"wise_ft_alpha": 1, "keep_start_if_better": False, "interval_level": 0}
    first, second, labels = (list(column) for column in zip(*shares["validation"], strict=True))
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        pairs = budget_of_pairs(shares["train"], run["budget"], run["seed"])
        task = Task(pairs, ALL_SETS[run["set"]].top_grade, run["seed"], Path(folder))
        grader = train_grader(task, options)
    trained, start = copy_weights(grader.model.encoder), copy_weights(PairGrader().model.encoder)
    scorer = model_scorer(grader.model, grader.tokenizer)
    given = {"train": as_dataset("pairs", pairs, LABELLED)}
    scale = DataArguments(label_values=list(range(task.top_grade + 1)))
    own = load_splits(scale, PairColumns(), None, seed=run["seed"], given=given).pairs["validation"][:]
    found, held_out = {}, {}
    for alpha in (0.0, *alphas):
        interpolate(grader.model.encoder, trained, 0.0)
        interpolate(grader.model.encoder, start, alpha)
        found[f"{alpha:g}"] = correlate(scorer(first, second)["cosine"], np.array(labels))["spearman"]
        cosine = scorer(own["sentence1"], own["sentence2"])["cosine"]
        held_out[f"{alpha:g}"] = correlate(cosine, np.array(own["label"]))["spearman"]
    environment = describe_environment()
    sys.stdout.write(f"{run}: {' '.join(map(percent, found.values()))}\n")
    sys.stdout.flush()
    code = {name: environment[name] for name in ("commit", "uncommitted_changes")}
    return {"untouched": found.pop("0"), "spearman": found, "held_out": held_out, **code}


def choice_page(lines: Sequence[Mapping[str, Any]]) -> str:
    """
    The means of each setting over sets, by budget, as Markdown.

    There is a table for each number of draws, with the settings that have at least so many, on their common draws. The
    table with the most draws comes first. A draw counts if it has all sets on all budgets of its group.
    """
    tables = []
    for group in BUDGET_GROUPS:
        tables += group_tables([line for line in lines if line["budget"] in group])
    return (
        "# How the recipe for own pairs was chosen\n\nGenerated by `python benchmarks/own_pairs_choice.py`: "
        f"Spearman's correlation on the development\npairs of {len(ALL_SETS)} corpora, percent, means over corpora "
        "and draws; the best setting first. `held-out` chooses alpha\nfor each run, on the pairs that the run itself "
        f"holds out.\n\n{(chr(10) * 2).join(tables)}\n"
    )


def group_tables(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tables of a group of budgets, with their titles; see [`choice_page`]."""
    by_setting: dict[tuple[float, float], list[Mapping[str, Any]]] = defaultdict(list)
    for line in lines:
        by_setting[line["self_distillation"], line["learning_rate"]].append(line)
    budgets = sorted({line["budget"] for line in lines})
    needed = {(name, budget) for name in ALL_SETS for budget in budgets}
    draws = {
        setting: {seed for seed in {line["seed"] for line in own} if needed <= _measured(own, seed)}
        for setting, own in by_setting.items()
    }
    tables = []
    for number in sorted({len(seeds) for seeds in draws.values() if seeds}, reverse=True):
        settings = [setting for setting, seeds in draws.items() if len(seeds) >= number]
        common = set.intersection(*(draws[setting] for setting in settings))
        of_draws = {setting: [run for run in by_setting[setting] if run["seed"] in common] for setting in settings}
        pairs = " and ".join(f"{budget:,}" for budget in budgets)
        title = f"{pairs} training pairs, {len(common)} {'draw' if len(common) == 1 else 'draws'}"
        tables.append(f"## {title}\n\n{_table(of_draws, budgets)}")
    return tables


def _table(runs: Mapping[tuple[float, float], Sequence[Mapping[str, Any]]], budgets: Sequence[int]) -> str:
    """Settings with their means, the best first, and the untouched encoder."""
    rows: list[tuple[list[str], list[float]]] = []
    for setting, own in runs.items():
        for alpha in ALPHAS:
            means = _means(own, budgets, lambda line, key=f"{alpha:g}": line["spearman"][key])  # type: ignore[misc]
            rows.append(([f"{value:g}" for value in (*setting, alpha)], means))
        if all("held_out" in line for line in own):
            rows.append(([*(f"{value:g}" for value in setting), "held-out"], _means(own, budgets, _of_held_out)))
    rows.sort(key=lambda row: -row[1][-1])
    rows.append((["untouched", "", ""], _means(next(iter(runs.values())), budgets, lambda line: line["untouched"])))
    header = [*NAMES, *(f"{budget} pairs" for budget in budgets), "mean"]
    return markdown_table(header, [[*titles, *map(percent, means)] for titles, means in rows])


def _of_held_out(line: Mapping[str, Any]) -> float:
    """The correlation with the alpha that is best on the held-out pairs of the run; 0 is the untouched encoder."""
    best = max(line["held_out"], key=lambda alpha: line["held_out"][alpha])
    return line["untouched"] if best == "0" else line["spearman"][best]


def _measured(lines: Sequence[Mapping[str, Any]], seed: int) -> set[tuple[str, int]]:
    return {(line["set"], line["budget"]) for line in lines if line["seed"] == seed}


def _means(
    lines: Sequence[Mapping[str, Any]], budgets: Sequence[int], value: Callable[[Mapping[str, Any]], float]
) -> list[float]:
    """The mean of each budget, and the mean over budgets."""
    means = [float(np.mean([value(line) for line in lines if line["budget"] == budget])) for budget in budgets]
    return [*means, float(np.mean(means))]


if __name__ == "__main__":
    main()
