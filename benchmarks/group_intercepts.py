"""What `--group_intercepts` is worth to the recipe for own pairs, on development pairs of new texts.

    python benchmarks/group_intercepts.py --graded_data FOLDER --sts_data FOLDER --draws 3

A corpus with few distinct texts on one side has few independent texts to develop on: one division of them says little.
Each draw therefore divides the training and development pairs of `graded_pairs.py` anew, by text; its test pairs are
left out. The recipe trains with and without intercepts on the same pairs. Finished runs are not repeated; they stand
in `group_intercepts.jsonl`, the paired differences in `group_intercepts.md`.
"""

import os

if __name__ == "__main__":  # before the libraries are loaded, which read this
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "TQDM_DISABLE": "1"}

import argparse
import json
import logging
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.graded_data import ALL_SETS, GRADED_SETS, STS_SETS, LabelledPair, divide_anew, split_graded_set
from benchmarks.own_pairs_choice import OWN_PAIRS_RESULTS, measure_alphas
from sts_regression.basics.tables import markdown_table
from sts_regression.evaluation.significance import over_seeds, shown_difference, shown_p, welch_test

RECIPE = {"learning_rate": 2e-4, "self_distillation": 1.0}
COMPARED_ALPHAS = (0.5, 0.65)  # the recipe's, and a larger share of the trained weights
COMPARED_BUDGETS = (300, 1000)
FIRST_DRAW = 201


def main() -> None:
    """Runs what is missing, and writes the differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graded_data", type=Path, required=True, help=f"folder of {', '.join(GRADED_SETS)}")
    parser.add_argument("--sts_data", type=Path, required=True, help="folder of the STS data")
    parser.add_argument("--sets", nargs="+", choices=list(ALL_SETS), default=list(ALL_SETS))
    parser.add_argument("--budgets", type=int, nargs="+", choices=COMPARED_BUDGETS, default=list(COMPARED_BUDGETS))
    parser.add_argument("--draws", type=int, default=3, help="divisions of the pairs; default: 3")
    parser.add_argument("--output_dir", type=Path, default=OWN_PAIRS_RESULTS)
    args = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    path = args.output_dir / "group_intercepts.jsonl"
    done = {_key(line) for line in _read(path)}
    for draw, budget, name in product(range(args.draws), args.budgets, args.sets):
        pairs: dict[str, list[LabelledPair]] = {}
        for has_intercepts in (False, True):
            run = {"set": name, "budget": budget, "seed": FIRST_DRAW + draw, "group_intercepts": has_intercepts}
            if _key(run) in done:
                continue
            folder = args.sts_data if name in STS_SETS else args.graded_data
            pairs = pairs or divide_anew(name, split_graded_set(name, folder), run["seed"])
            line = {**run, **RECIPE, **measure_alphas({**run, **RECIPE}, pairs, COMPARED_ALPHAS)}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
    (args.output_dir / "group_intercepts.md").write_text(intercepts_page(_read(path)), encoding="utf-8")


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def _key(run: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(run[name] for name in ("set", "budget", "seed", "group_intercepts"))


def intercepts_page(lines: Sequence[Mapping[str, Any]]) -> str:
    """The differences that intercepts make, as Markdown: by corpus, and over all corpora that have been run."""
    rows = []
    for budget, alpha in product(sorted({line["budget"] for line in lines}), COMPARED_ALPHAS):
        by_set: dict[str, list[float]] = defaultdict(list)
        untouched: dict[str, list[float]] = defaultdict(list)
        runs = {_key(line): line for line in lines if line["budget"] == budget}
        for (name, _, seed, has_intercepts), line in runs.items():
            without = runs.get((name, budget, seed, False))
            if has_intercepts and without is not None:
                key = f"{alpha:g}"
                by_set[name].append(line["spearman"][key] - without["spearman"][key])
                untouched[name].append(without["spearman"][key] - line["untouched"])
        gains = [100 * float(np.mean(untouched[name])) for name in by_set]
        for name, gain in zip(by_set, gains, strict=True):
            rows.append(_row(budget, alpha, f"`{name}`", gain, by_set[name]))
        per_draw = [float(np.mean(own)) for own in zip(*by_set.values(), strict=False)]
        rows.append(_row(budget, alpha, "mean", float(np.mean(gains)), per_draw))
    header = ["pairs", "alpha", "corpus", "draws", "gain without", "difference of intercepts (95 % interval)", "p"]
    return f"""\
# What an intercept for each group of pairs that share a text is worth

Generated by `python benchmarks/group_intercepts.py`. The recipe for own pairs with and without `--group_intercepts`:
Spearman's correlation on development pairs of texts that no training pair has, percent. Each draw divides training and
development pairs anew. `gain without` is that of the recipe over the untouched encoder; intervals and p are those of a
paired t-test over the draws, not adjusted for the number of tests.

{markdown_table(header, rows)}
"""


def _row(budget: int, alpha: float, name: str, gain: float, differences: Sequence[float]) -> list[str]:
    test = welch_test(over_seeds(differences, True), over_seeds([0.0], False))
    shown = [shown_difference(test), shown_p(test["p"])]
    return [f"{budget:,}", f"{alpha:g}", name, str(len(differences)), f"{gain:+.2f}", *shown]


if __name__ == "__main__":
    main()
