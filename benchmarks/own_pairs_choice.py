r"""Compares settings of the recipe for own pairs, and chooses among them, on development pairs.

    python benchmarks/own_pairs_choice.py --graded_data FOLDER --sts_data FOLDER --budgets 5000 --draws 201 202 \
        --setting learning_rate=5e-5 num_train_epochs=1 --setting learning_rate=2e-5 loss=mse

A setting names the options that differ from `BASE`, or with `method=NAME` a method of `graded_methods.py`;
`bundled_trainings` is the number of trainings on the bundled pairs whose weights are averaged. The corpora are those
of `graded_pairs.py`, without their test pairs. Each draw divides training and development pairs anew by text, because
a corpus with few distinct texts on one side has few independent texts to develop on. WiSE-FT's alpha mixes weights
after training, so one run serves all its values. The recipe is the same for every corpus: the setting with the highest
mean of Spearman's correlation over corpora and draws. A part that needs another training, such as the bundled pairs,
must gain half a point. Finished runs are not repeated; they are kept in `own_pairs_choice.jsonl`, and means in
`own_pairs_choice.md`.
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
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import redirect_stdout
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from datasets import Dataset

from benchmarks.graded_data import (
    ALL_SETS,
    LabelledPair,
    add_folders,
    budget_of_pairs,
    divide_anew,
    folder_of,
    split_graded_set,
)
from benchmarks.graded_methods import METHODS, Task, read_score, train_grader
from benchmarks.tables.graded_table import read_runs
from sts_regression import bundled_start
from sts_regression.basics.tables import markdown_table, percent
from sts_regression.command.default_recipe import FEWEST_GROUPS, OWN_PAIRS_RECIPES
from sts_regression.data.columns import PairColumns
from sts_regression.data.splits import load_splits
from sts_regression.evaluation.significance import over_seeds, shown_difference, zero_test
from sts_regression.evaluation.sts_evaluation import correlate
from sts_regression.grader import PairGrader
from sts_regression.models.encoding import model_scorer
from sts_regression.options.data_arguments import DataArguments
from sts_regression.pairs_in_memory import LABELLED, as_dataset
from sts_regression.training.run_record import describe_environment
from sts_regression.training.weight_averaging import copy_weights, interpolate

OWN_PAIRS_RESULTS = Path(__file__).resolve().parent.parent / "results" / "graded_pairs"
ENCODER_CACHE = Path("outputs") / "own_pairs_choice" / "cache"
BASE: dict[str, Any] = {  # a setting changes some of these
    "learning_rate": 2e-4,
    "num_train_epochs": 2,
    "self_distillation": 1,
    "group_intercepts": False,
    "freeze_embeddings": True,
    "loss": "smooth_k2",
    "refit": False,
    "bundled_pairs_first": False,
}
METHOD = "method"  # the key of a setting that is a method of `graded_methods.py`
BUNDLED_TRAININGS = "bundled_trainings"  # the key of a setting that is not an option
ALPHAS = (0.35, 0.5, 0.65, 0.8, 1.0)
ONLY_ALPHA = "1"  # of a method without WiSE-FT, as of the recipes
HELD_OUT = "held-out"
FIRST_DRAW = 201
FEWEST_MANY = max(OWN_PAIRS_RECIPES)  # training pairs from which few_pairs.yaml applies to few texts alone
FEW_TEXTS = ("sag",)  # its pairs always count as few: they form fewer than `FEWEST_GROUPS` groups of shared texts
SAME_PAIRS = 0.002  # the untouched encoder's correlations on the same pairs differ by less between processors

Setting = Mapping[str, Any]
Score = Callable[[list[str], list[str]], np.ndarray]
OwnRuns = Mapping[tuple[int, str], Mapping[str, Any]]  # of a setting, by draw and corpus


def main() -> None:
    """Runs the missing runs, and writes the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    parser.add_argument("--setting", nargs="*", action="append", type=parse_option, default=[], dest="settings")
    parser.add_argument("--sets", nargs="+", choices=list(ALL_SETS), default=list(ALL_SETS))
    parser.add_argument("--budgets", type=int, nargs="+", default=[])
    parser.add_argument("--draws", type=int, nargs="+", default=[FIRST_DRAW], help=f"seeds; default: {FIRST_DRAW}")
    parser.add_argument("--output_dir", type=Path, default=OWN_PAIRS_RESULTS)
    args = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    path = args.output_dir / "own_pairs_choice.jsonl"
    done = {_key(line) for line in read_runs(path)}
    for draw, budget, setting, name in product(args.draws, args.budgets, map(dict, args.settings), args.sets):
        run = {"set": name, "budget": budget, "draw": draw, "setting": setting}
        if _key(run) in done:
            continue
        line = {**run, **measure_setting(run, divide_anew(name, split_graded_set(name, folder_of(name, args)), draw))}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    (args.output_dir / "own_pairs_choice.md").write_text(choice_page(read_runs(path)), encoding="utf-8")


def parse_option(word: str) -> tuple[str, Any]:
    """The name and value of an option in `NAME=VALUE`: a value in JSON, or else a word."""
    name, _, value = word.partition("=")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _key(run: Mapping[str, Any]) -> tuple[Any, ...]:
    return run["set"], run["budget"], run["draw"], setting_title(run["setting"])


def setting_title(setting: Setting) -> str:
    """A setting in words, with its options in the order of their names."""
    return ", ".join(f"{name}={value}" for name, value in sorted(setting.items())) or "base"


def measure_setting(run: Mapping[str, Any], pairs: Mapping[str, list[LabelledPair]]) -> dict[str, Any]:
    """
    Trains with a setting, and measures the development pairs.

    Args:
        run: `set`, `budget`, `draw` and `setting`.
        pairs: `train` and `validation` pairs.

    Returns:
        A `dict` with `spearman` by alpha, `untouched` for the untouched encoder, and the commit. `held_out` is
        Spearman's correlation, by alpha from 0, on the pairs that the training command held out of its training pairs.
        A method has alpha 1 alone and no `held_out`; with `refit`, no pairs are held out in the end.
    """
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        given = budget_of_pairs(pairs["train"], run["budget"], run["draw"])
        task = Task(given, ALL_SETS[run["set"]].top_grade, run["draw"], Path(folder))
        measure = measure_method if METHOD in run["setting"] else measure_alphas
        found = measure(task, run["setting"], pairs["validation"], PairGrader())
    environment = describe_environment()
    shown = (f"{alpha} {percent(value)}" for alpha, value in found["spearman"].items())
    sys.stdout.write(f"{_key(run)}: untouched {percent(found['untouched'])}, {', '.join(shown)}\n")
    sys.stdout.flush()
    return {**found, **{name: environment[name] for name in ("commit", "uncommitted_changes")}}


def measure_method(task: Task, setting: Setting, development: list[LabelledPair], start: PairGrader) -> dict[str, Any]:
    """Spearman's correlation of a method's score and of the untouched encoder's cosine, on development pairs."""
    method = METHODS[setting[METHOD]]
    learned = method.learn(task, method.options)
    return {
        "untouched": cosine_spearman(start, development),
        "spearman": {
            ONLY_ALPHA: spearman_of(lambda *texts: read_score(learned(*texts).scores, task.top_grade), development)
        },
    }


def measure_alphas(task: Task, setting: Setting, development: list[LabelledPair], start: PairGrader) -> dict[str, Any]:
    """Spearman's correlation of the cosine by alpha, on development pairs and on the pairs that training holds out."""
    options = {**BASE, **setting, "wise_ft_alpha": 1, "keep_start_if_better": False, "interval_level": 0}
    options["embedding_cache"] = str(ENCODER_CACHE)  # the encoder that the bundled pairs train is the same in all runs
    trainings = options.pop(BUNDLED_TRAININGS, bundled_start.TRAININGS)
    with patch.object(bundled_start, "TRAININGS", trainings):
        grader = train_grader(task, options)
    measured = {"spearman": development}
    if not options["refit"]:  # which trains on all pairs
        measured["held_out"] = _held_out(task)
    by_alpha = spearman_by_alpha(grader, start, measured)
    return {"untouched": by_alpha["spearman"].pop("0"), **by_alpha}


def spearman_by_alpha(
    trained: PairGrader, start: PairGrader, measured: Mapping[str, list[LabelledPair]]
) -> dict[str, dict[str, float]]:
    """
    Spearman's correlation of the cosine with the labels, by alpha of WiSE-FT.

    Args:
        trained: the trained model, whose weights are changed.
        start: the untouched encoder.
        measured: sets of pairs by name.

    Returns:
        A `dict` for each set, with the correlation by alpha; "0" is the untouched encoder.
    """
    encoder, score = trained.model.encoder, _cosines(trained)
    weights, untouched = copy_weights(encoder), copy_weights(start.model.encoder)
    by_alpha: dict[str, dict[str, float]] = {name: {} for name in measured}
    for alpha in (0.0, *ALPHAS):
        interpolate(encoder, weights, 0.0)
        interpolate(encoder, untouched, alpha)
        for name, pairs in measured.items():
            by_alpha[name][f"{alpha:g}"] = spearman_of(score, pairs)
    return by_alpha


def _held_out(task: Task) -> list[LabelledPair]:
    """The pairs that the training command holds out of those of a task."""
    scale = DataArguments(label_values=list(range(task.top_grade + 1)))
    splits = load_splits(
        scale, PairColumns(), None, seed=task.seed, given={"train": as_dataset("pairs", task.pairs, LABELLED)}
    )
    return labelled_pairs(splits.pairs["validation"])


def labelled_pairs(pairs: Dataset) -> list[LabelledPair]:
    """The rows of a `Dataset` with the columns `sentence1`, `sentence2` and `label`."""
    columns = pairs[:]
    return list(zip(columns["sentence1"], columns["sentence2"], columns["label"], strict=True))


def cosine_spearman(grader: PairGrader, pairs: list[LabelledPair]) -> float:
    """Spearman's correlation of a model's cosine with the labels of pairs."""
    return spearman_of(_cosines(grader), pairs)


def _cosines(grader: PairGrader) -> Score:
    scorer = model_scorer(grader.model, grader.tokenizer)
    return lambda first, second: scorer(first, second)["cosine"]


def spearman_of(score: Score, pairs: list[LabelledPair]) -> float:
    """Spearman's correlation of the scores with the labels of pairs."""
    first, second, labels = (list(column) for column in zip(*pairs, strict=True))
    return correlate(score(first, second), np.array(labels))["spearman"]


def choice_page(lines: Sequence[Mapping[str, Any]]) -> str:
    """
    The means of each setting over corpora and draws, by budget, as Markdown.

    There are tables for each set of draws that a setting has, with all settings that have these draws. Those with the
    most draws come first. A draw counts if it has all corpora.
    """
    sections = [
        section
        for budget in sorted({line["budget"] for line in lines})
        for section in budget_sections([line for line in lines if line["budget"] == budget])
    ]
    base = "\n- ".join(f"`{name}`: {value}" for name, value in BASE.items())
    return f"""\
# How the recipe for own pairs was chosen

Generated by `python benchmarks/own_pairs_choice.py`: Spearman's correlation of the cosine with the labels of
development pairs of up to {len(ALL_SETS)} corpora, percent, means over corpora and draws; the best setting first. A
table leaves out a corpus that earlier versions divided differently. From {FEWEST_MANY} pairs,
`{"`, `".join(FEW_TEXTS)}` has tables of its own: with fewer than {FEWEST_GROUPS} groups of shared texts, it
always uses `few_pairs.yaml`. Columns are values of WiSE-FT's alpha, the share of trained weights; for `{HELD_OUT}`,
each run chose alpha on the pairs that the run itself holds out. The second table has the best alpha of each setting by
corpus, and its difference from the best one with the 95 % interval of a paired t-test over draws. A setting names the
options that differ from these:

- {base}
- `{BUNDLED_TRAININGS}`: {bundled_start.TRAININGS} trainings on the bundled pairs, whose weights are averaged

{(chr(10) * 2).join([*sections, *held_out_section(lines)])}
"""


def held_out_section(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """How often the pairs that a run holds out speak against training, and how often they are right, if known."""
    rows = []
    for budget in sorted({line["budget"] for line in lines}):
        gains = [
            (
                line["held_out"][ONLY_ALPHA] - line["held_out"]["0"],
                line["spearman"][ONLY_ALPHA] - line["untouched"],
            )
            for line in lines
            if line["budget"] == budget and {"0", ONLY_ALPHA} <= line.get("held_out", {}).keys()
        ]
        lost = [gain for on_held_out, gain in gains if on_held_out < 0]
        if gains:
            shown = f"{100 * np.mean(lost):+.2f}" if lost else ""
            rows.append([f"{budget:,}", len(gains), len(lost), sum(gain < 0 for gain in lost), shown])
    if not rows:
        return []
    header = ["training pairs", "runs", "worse on held-out pairs", "and on development pairs", "mean gain on these"]
    page = f"""\
## What held-out pairs say about training

A run compares its encoder with the untouched one on the pairs that it holds out. Of the runs above, without WiSE-FT:
how many are worse on these few pairs, how many of them are also worse on the development pairs, and their mean gain
there, in points. A run therefore returns the untouched encoder only if the trained one is significantly worse.

{markdown_table(header, [list(map(str, row)) for row in rows])}"""
    return [page]


def budget_sections(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tables of a budget, with their titles; see [`choice_page`]."""
    budget = lines[0]["budget"]
    few_texts = FEW_TEXTS if budget >= FEWEST_MANY else ()
    tables = tables_by_draws(lines, [name for name in ALL_SETS if name not in few_texts])
    if few_texts:
        tables |= {f"few texts, {title}": text for title, text in tables_by_draws(lines, few_texts).items()}
    return [f"## {budget:,} training pairs, {title}\n\n{text}" for title, text in tables.items()]


def tables_by_draws(lines: Sequence[Mapping[str, Any]], corpora: Sequence[str]) -> dict[str, str]:
    """The tables of a budget for each set of draws that several settings have of all `corpora`, most draws first."""
    by_setting: dict[str, dict[tuple[int, str], Mapping[str, Any]]] = {}
    for line in lines:
        by_setting.setdefault(setting_title(line["setting"]), {})[line["draw"], line["set"]] = line
    draws = {
        setting: {draw for draw, _ in own if all((draw, name) in own for name in corpora)}
        for setting, own in by_setting.items()
    }
    shared = {frozenset(found) for found in draws.values() if found}
    tables = {}
    for common in sorted(shared, key=lambda found: (-len(found), sorted(found))):
        having = [setting for setting, found in draws.items() if common <= found]
        if len(having) > 1:
            names = [name for name in corpora if _divided_alike([by_setting[each] for each in having], common, name)]
            values = {setting: _values_of_draws(by_setting[setting], sorted(common), names) for setting in having}
            title = f"{'draw' if len(common) == 1 else 'draws'} {', '.join(map(str, sorted(common)))}"
            tables[title] = _tables(values, names)
    return tables


def _divided_alike(runs_of_settings: Sequence[OwnRuns], draws: Collection[int], name: str) -> bool:
    """Whether the settings have the same development pairs of a corpus: the untouched encoder's correlations agree."""
    untouched = [[runs[draw, name]["untouched"] for draw in sorted(draws)] for runs in runs_of_settings]
    return bool(np.all(np.ptp(untouched, axis=0) < SAME_PAIRS))


Values = Mapping[str, np.ndarray]  # by alpha: shape (draws, corpora)


def _values_of_draws(runs: OwnRuns, draws: Sequence[int], names: Sequence[str]) -> Values:
    """Spearman's correlation by alpha, and that of the untouched encoder at 0, in percent."""
    columns: dict[str, list[list[float]]] = {}
    for draw in draws:
        found = [_with_held_out(runs[draw, name]) for name in names]
        for alpha in set.intersection(*map(set, found)):
            columns.setdefault(alpha, []).append([100 * values[alpha] for values in found])
    return {alpha: np.array(rows) for alpha, rows in columns.items() if len(rows) == len(draws)}


def _with_held_out(line: Mapping[str, Any]) -> dict[str, float]:
    """The correlations of a run, with the untouched encoder at 0 and the alpha that is best on the held-out pairs."""
    found = {"0": line["untouched"], **line["spearman"]}
    if "held_out" not in line:
        return found
    return {**found, HELD_OUT: found[max(line["held_out"], key=lambda alpha: line["held_out"][alpha])]}


def _tables(values: Mapping[str, Values], names: Sequence[str]) -> str:
    """Means by alpha, and the best alphas by corpus."""
    alphas = [f"{alpha:g}" for alpha in ALPHAS]
    best = {
        setting: max((a for a in alphas if a in own), key=lambda alpha: float(own[alpha].mean()))
        for setting, own in values.items()
    }
    ranked = sorted(values, key=lambda setting: -values[setting][best[setting]].mean())
    by_alpha = [
        [
            f"`{setting}`",
            *(f"{values[setting][a].mean():.2f}" if a in values[setting] else "" for a in (*alphas, HELD_OUT)),
        ]
        for setting in ranked
    ]
    winner = values[ranked[0]][best[ranked[0]]]
    by_corpus = []
    for setting in ranked:
        own = values[setting][best[setting]]
        differences = ((own - winner).mean(axis=1) / 100).tolist()
        shown = shown_difference(zero_test(over_seeds(differences, True))) if setting != ranked[0] else "–"
        by_corpus.append([f"`{setting}`", best[setting], *(f"{value:.2f}" for value in own.mean(axis=0)), shown])
    start = values[ranked[0]]["0"]
    by_corpus.append(
        ["untouched", "", *(f"{value:.2f}" for value in start.mean(axis=0)), f"{(start - winner).mean():+.2f}"]
    )
    return "\n\n".join(
        [
            markdown_table(["setting", *alphas, HELD_OUT], by_alpha),
            markdown_table(["setting", "alpha", *names, "from the best (95 % interval)"], by_corpus),
        ]
    )


if __name__ == "__main__":
    main()
