"""Measures whether choosing pairs to label by uncertainty and diversity is better than choosing them at random.

    python benchmarks/label_choice.py --graded_data LABEL_CHOICE_FOLDER

100 pairs of a corpus have labels, and 100 more are labelled. They are chosen at random, or by a rule that knows the
encoder, the model trained on the first 100 pairs and all texts, but no further label. The default recipe is then
trained on the 200 pairs. A rule saves a third of the labels if its 200 pairs are as good as 300 random pairs, by
Spearman's correlation of the score on test pairs, mean over seeds. Finished runs are not repeated. The table is
`results/label_choice/label_choice.md`.
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
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin

from benchmarks.graded_data import GRADED_SETS, LabelledPair, budget_of_pairs, graded_shares
from benchmarks.graded_methods import Task, train_grader
from sts_regression.basics.tables import markdown_table, percent, write_json
from sts_regression.evaluation.sts_evaluation import correlate
from sts_regression.grader import PairGrader
from sts_regression.training.run_record import describe_environment

LABEL_CHOICE_FOLDER = Path(__file__).resolve().parent.parent / "results" / "label_choice"
SETS = ("cxc", "parade")
FEWEST_SEEDS = 5  # for a verdict
FIRST, CHOSEN, RANDOM = 100, 200, 300  # numbers of pairs: at first, with the pairs of a rule, with random pairs
RULES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "diverse": lambda changes, _: np.ones_like(changes),
    "diverse and changed": lambda changes, _: changes,
    "diverse and between grades": lambda _, doubts: doubts,
}


def main() -> None:
    """Runs the missing runs, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graded_data", type=Path, required=True, help=f"folder of {' and '.join(SETS)}")
    parser.add_argument("--seeds", type=int, default=FEWEST_SEEDS, help="draws of the first pairs; default: 5")
    args = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    path = LABEL_CHOICE_FOLDER / "runs.json"
    runs: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    for seed in range(1, args.seeds + 1):
        for name in SETS:
            if not any((run["set"], run["seed"]) == (name, seed) for run in runs):
                runs += simulate(name, graded_shares(name, args.graded_data), seed)
                write_json(runs, path)
    write_json(summary := summarise(runs), LABEL_CHOICE_FOLDER / "label_choice.json")
    (LABEL_CHOICE_FOLDER / "label_choice.md").write_text(label_choice_page(summary), encoding="utf-8")


def simulate(name: str, shares: dict[str, list[LabelledPair]], seed: int) -> list[dict[str, Any]]:
    """
    Labels pairs by each rule and at random, and trains on them.

    Args:
        name: name of the set.
        shares: the pairs of the set by split.
        seed: seed of the draw of the first pairs, and of training.

    Returns:
        A `dict` for each choice, with `set`, `seed`, the number of `pairs`, `choice` and `spearman` on test pairs.
    """
    pool = budget_of_pairs(shares["train"], len(shares["train"]), seed)
    first, rest = pool[:FIRST], pool[FIRST:]
    environment = describe_environment()
    code = {key: environment[key] for key in ("commit", "uncommitted_changes")}
    found = []

    def measure(pairs: list[LabelledPair], choice: str, chooses: bool = False) -> list[np.ndarray]:
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
            grader = train_grader(Task(pairs, GRADED_SETS[name].top_grade, seed, Path(folder)), {})
            scores = [row["score"] for row in grader.grade([pair[:2] for pair in shares["test"]])]
            ways = [pairs_to_label(grader, rest, rule) for rule in RULES.values()] if chooses else []
        spearman = correlate(np.array(scores), np.array([pair[2] for pair in shares["test"]]))["spearman"]
        found.append({"set": name, "seed": seed, "pairs": len(pairs), "choice": choice, "spearman": spearman, **code})
        sys.stdout.write(f"{name}, seed {seed}, {len(pairs)} pairs, {choice}: {percent(spearman)}\n")
        return ways

    for choice, rows in zip(RULES, measure(first, "random", chooses=True), strict=True):
        measure([*first, *(rest[row] for row in rows)], choice)
    for size in (CHOSEN, RANDOM):
        measure(pool[:size], "random")
    return found


def pairs_to_label(
    grader: PairGrader, pairs: Sequence[LabelledPair], rule: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """
    The rows of the pairs to label: the pair nearest to each centre of k-means, with weights of pairs by the rule.

    Args:
        grader: a model trained on the labelled pairs.
        pairs: the pairs to choose from; their labels are not read.
        rule: maps the change of each pair's rank by training, and the closeness of its score to the middle between
            two grades, both of shape (pairs,), to weights of that shape.
    """
    texts = [pair[:2] for pair in pairs]
    scores = np.array([row["score"] for row in grader.grade(texts)])
    untouched = PairGrader()
    u, v = (untouched.encode([pair[side] for pair in texts]) for side in (0, 1))
    u, v = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (u, v))
    cosines = (u * v).sum(axis=1)
    changes = np.abs(rankdata(scores) - rankdata(cosines)) / len(scores)
    doubts = 1 - 2 * np.abs(scores % 1 - 0.5)
    features = np.concatenate([np.abs(u - v), u * v], axis=1)
    clusters = KMeans(CHOSEN - FIRST, n_init=1, random_state=0).fit(features, sample_weight=rule(changes, doubts))
    return np.unique(pairwise_distances_argmin(clusters.cluster_centers_, features))


def summarise(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """
    Means over seeds.

    Returns:
        A `dict` with `sets`, the mean of Spearman's correlation by set and choice; `seeds`, the number of seeds of
        each set; and `saves_a_third`: for each rule, whether its mean on every set is at least that of 300 random
        pairs, which must be above that of 200; `None` if there are too few seeds.
    """
    sets: dict[str, dict[str, float]] = {}
    for name in SETS:
        own = [run for run in runs if run["set"] == name]
        ways = dict.fromkeys(_title(run) for run in own)
        sets[name] = {way: float(np.mean([run["spearman"] for run in own if _title(run) == way])) for way in ways}
    seeds = {name: len({run["seed"] for run in runs if run["set"] == name}) for name in SETS}
    saves = {
        rule: all(
            means[f"{CHOSEN} {rule}"] >= means[f"{RANDOM} random"] > means[f"{CHOSEN} random"]
            for means in sets.values()
        )
        for rule in RULES
    }
    return {"seeds": seeds, "sets": sets, "saves_a_third": saves if min(seeds.values()) >= FEWEST_SEEDS else None}


def _title(run: dict[str, Any]) -> str:
    size = min(run["pairs"], RANDOM) if run["choice"] == "random" else CHOSEN  # k-means may name a pair twice
    return f"{size} {run['choice']}"


def label_choice_page(summary: dict[str, Any]) -> str:
    """The table in Markdown."""
    ways = list(next(iter(summary["sets"].values())))
    rows = [[way, *(percent(means[way]) for means in summary["sets"].values())] for way in ways]
    saves, seeds = summary["saves_a_third"], ", ".join(f"{name} {count}" for name, count in summary["seeds"].items())
    if saves is None:
        verdict = f"Fewer than {FEWEST_SEEDS} seeds of a corpus do not show whether a rule saves labels."
    else:
        saving = ", ".join(rule for rule in RULES if saves[rule]) or "no rule"
        verdict = f"With {CHOSEN} pairs as good as {RANDOM} random pairs, on every set: {saving}."
    return (
        f"# Which pairs to label next\n\nGenerated by `python benchmarks/label_choice.py --graded_data …`: {FIRST} "
        f"random pairs are labelled, then {CHOSEN - FIRST} more,\nat random or by a rule. Spearman's correlation of "
        f"the score on test pairs, percent, mean over seeds ({seeds}).\n\n"
        f"{markdown_table(['labelled pairs', *summary['sets']], rows)}\n\n{verdict}\n"
    )


if __name__ == "__main__":
    main()
