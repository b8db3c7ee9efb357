"""Compares the default for own pairs with its strongest rival on ten further corpora.

    python benchmarks/new_corpora.py run --sts_data FOLDER --jobs 2
    python benchmarks/new_corpora.py table

The corpora are the subsets of the SemEval STS tasks of which STS-B holds no pair. The recipes for own pairs were
chosen on other corpora (`own_pairs_choice.py`), and so was the rival: of sentence-transformers' losses, the one that
ranks the test pairs of `graded_pairs.py` best with few pairs, with the settings of its training overview. Each draw
divides every corpus anew by text into training and test pairs, and trains on 100 of the training pairs, and on all of
them.

The corpus is the unit: of each, the mean over the draws counts. A paired t-test over the corpora asks whether the
default ranks better on another corpus of this kind; its p-values are adjusted by Holm's method for all tests. This
analysis was fixed before the first run. The runs of the first analysis are kept in `first_runs.jsonl`, since the
default was changed after it. Finished runs are not repeated.
"""

import os

if __name__ == "__main__":  # before the libraries are loaded, which read this; no thread may start before a fork
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}

import argparse
import io
import json
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.graded_data import LabelledPair, budget_of_pairs
from benchmarks.graded_methods import METHODS, Task, load_libraries, measure_predictions
from benchmarks.tables.graded_table import DEFAULT_METHOD, UNTOUCHED, read_runs
from sts_regression.basics.tables import markdown_table, percent, write_json
from sts_regression.data.sts_tasks import load_sts_tasks
from sts_regression.data.text_splits import group_by_text, split_groups
from sts_regression.evaluation.significance import CONFIDENCE, holm, shown_difference, shown_p
from sts_regression.training.run_record import describe_environment

NEW_RESULTS = Path(__file__).resolve().parent.parent / "results" / "new_corpora"
SHARED_CACHE = Path("outputs") / "new_corpora" / "cache"
NEW_CORPORA = {  # subsets of the tasks, by the name of the corpus
    "glosses": (("STS12", "OnWN"), ("STS13", "OnWN"), ("STS14", "OnWN")),
    "frames": (("STS13", "FNWN"),),
    "tweets": (("STS14", "tweet-news"),),
    "beliefs": (("STS15", "belief"),),
    "student_answers": (("STS15", "answers-students"),),
    "questions": (("STS16", "question-question"),),
    "plagiarism": (("STS16", "plagiarism"),),
    "postediting": (("STS16", "postediting"),),
    "translated_speeches": (("STS12", "SMTeuroparl"),),
    "translated_news": (("STS12", "SMTnews"),),
}
TITLES_OF_CORPORA = {
    "glosses": "definitions of words in several dictionaries",
    "frames": "definitions of frames against glosses",
    "tweets": "tweets on news and their headlines",
    "beliefs": "posts of a forum on beliefs",
    "student_answers": "answers of students against references",
    "questions": "questions of a forum",
    "plagiarism": "passages and plagiarised ones",
    "postediting": "machine translations and their corrections",
    "translated_speeches": "machine translations of speeches and references",
    "translated_news": "machine translations of news and references",
}
RIVAL = "st_cosine_similarity_1_epoch"
COMPARED = (UNTOUCHED, RIVAL, DEFAULT_METHOD)
NEW_BUDGETS: dict[str, int | None] = {"100": 100, "all": None}
NEW_DRAWS = (1, 2)
NEW_PARTS = {"train": 0.7, "test": 0.3}
TOP_GRADE = 5
FIRST_LINES, NEW_LINES = "first_runs.jsonl", "runs.jsonl"
KEY = ("draw", "budget", "corpus", "method")


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the missing runs, or writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--sts_data", type=Path, help="folder of the STS data, original text")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time; default: 1")
    parser.add_argument("--output_dir", type=Path, default=NEW_RESULTS)
    args = parser.parse_args(argv)
    if args.command == "table":
        first, now = (summarize_corpora(read_runs(args.output_dir / name)) for name in (FIRST_LINES, NEW_LINES))
        write_json({"first": first, "now": now}, args.output_dir / "new_corpora.json")
        (args.output_dir / "new_corpora.md").write_text(corpora_page(first, now), encoding="utf-8")
        return
    if args.sts_data is None:
        parser.error("run needs --sts_data")
    run_draws(read_corpora(args.sts_data), args.output_dir / NEW_LINES, args.jobs)


def read_corpora(folder: Path) -> dict[str, list[LabelledPair]]:
    """The pairs of each corpus, with labels from 0 to 5."""
    tasks = {task.name: task.pairs[:] for task in load_sts_tasks(folder)}
    return {
        corpus: [
            (first, second, label)
            for task, subset in subsets
            for first, second, label, own in zip(
                *(tasks[task][column] for column in ("sentence1", "sentence2", "label", "subset")), strict=True
            )
            if own == subset
        ]
        for corpus, subsets in NEW_CORPORA.items()
    }


def divide_corpus(pairs: Sequence[LabelledPair], draw: int) -> dict[str, list[LabelledPair]]:
    """The training and test pairs of a draw, in random order."""
    groups = group_by_text([first for first, _, _ in pairs], [second for _, second, _ in pairs])
    generator = np.random.default_rng(draw)
    return {
        part: [pairs[row] for row in generator.permutation(rows)]
        for part, rows in split_groups(groups.group_of_pair, NEW_PARTS, draw).items()
    }


def run_draws(corpora: Mapping[str, Sequence[LabelledPair]], path: Path, jobs: int) -> None:
    """Runs all unfinished runs, and adds a line to the file for each."""
    done = {tuple(line[name] for name in KEY) for line in read_runs(path)}
    environment = describe_environment()
    code = {name: environment[name] for name in ("commit", "uncommitted_changes", "device")}
    load_libraries()
    path.parent.mkdir(parents=True, exist_ok=True)
    missing = [run for run in product(NEW_DRAWS, NEW_BUDGETS, NEW_CORPORA, COMPARED) if run not in done]
    with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
        futures = [pool.submit(measure_draw, run, divide_corpus(corpora[run[2]], run[0])) for run in missing]
        for run, future in zip(missing, futures, strict=True):
            line = {**dict(zip(KEY, run, strict=True)), **future.result(), **code}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, allow_nan=False) + "\n")
            sys.stdout.write(f"{run}: {percent(line['spearman'])}, {line['seconds']:.0f} s\n")
            sys.stdout.flush()


def measure_draw(run: tuple[int, str, str, str], parts: Mapping[str, list[LabelledPair]]) -> dict[str, Any]:
    """The number of pairs, the seconds, and the measures of test pairs of a run, see [`measure_predictions`]."""
    draw, budget, _, name = run
    logging.disable(logging.ERROR)  # hides messages of training; errors are raised
    warnings.simplefilter("ignore")
    method = METHODS[name]
    # The encoder that the bundled pairs train is the same in all runs.
    options = {**method.options, **({"embedding_cache": str(SHARED_CACHE)} if name == DEFAULT_METHOD else {})}
    pairs = budget_of_pairs(parts["train"], NEW_BUDGETS[budget] or len(parts["train"]), draw)
    with tempfile.TemporaryDirectory(prefix="new-corpora-") as folder, redirect_stdout(io.StringIO()):
        started = time.perf_counter()
        scorer = method.learn(Task(pairs, TOP_GRADE, draw, Path(folder)), options)
        seconds = time.perf_counter() - started
        first, second, labels = (list(column) for column in zip(*parts["test"], strict=True))
        measures = measure_predictions(scorer(first, second), np.array(labels), TOP_GRADE)
    return {"train_pairs": len(pairs), "test_pairs": len(labels), "seconds": seconds, **measures}


def summarize_corpora(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """
    Means over the draws, and tests over the corpora.

    Args:
        lines: finished runs.

    Returns:
        By budget: `corpora`, with the mean of `train_pairs` and `test_pairs`, and Spearman's correlation of each
        method; and `tests` of the default against each other method, with `difference`, `low`, `high`, `p`, `p_holm`,
        and the number of corpora on which it ranks better (`ahead`).

    Raises:
        ValueError: if runs are missing.
    """
    found = {tuple(line[name] for name in KEY): line for line in lines}
    missing = [run for run in product(NEW_DRAWS, NEW_BUDGETS, NEW_CORPORA, COMPARED) if run not in found]
    if missing:
        raise ValueError(f"{len(missing)} runs are missing, such as {missing[0]}. Run them with `new_corpora.py run`.")

    def mean(budget: str, corpus: str, method: str, measure: str) -> float:
        return float(np.mean([found[draw, budget, corpus, method][measure] for draw in NEW_DRAWS]))

    budgets: dict[str, Any] = {}
    for budget in NEW_BUDGETS:
        corpora = {
            corpus: {
                **{name: mean(budget, corpus, DEFAULT_METHOD, name) for name in ("train_pairs", "test_pairs")},
                "spearman": {method: mean(budget, corpus, method, "spearman") for method in COMPARED},
            }
            for corpus in NEW_CORPORA
        }
        budgets[budget] = {"corpora": corpora, "tests": _tests(corpora)}
    tests = {(budget, other): test for budget, of in budgets.items() for other, test in of["tests"].items()}
    for name, p in holm({name: test["p"] for name, test in tests.items()}).items():
        tests[name]["p_holm"] = p
    return {"draws": len(NEW_DRAWS), "num_tests": len(tests), "budgets": budgets}


def _tests(corpora: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Paired t-tests of the default against the other methods, with the corpora as units."""
    tests = {}
    for other in COMPARED[:-1]:
        gains = [own["spearman"][DEFAULT_METHOD] - own["spearman"][other] for own in corpora.values()]
        test = stats.ttest_1samp(gains, 0.0)
        low, high = test.confidence_interval(CONFIDENCE)
        tests[other] = {
            "difference": float(np.mean(gains)),
            "low": float(low),
            "high": float(high),
            "p": float(test.pvalue),
            "ahead": int(np.sum(np.array(gains) > 0)),
        }
    return tests


def corpora_page(first: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The page of the results: of the first analysis, and of the default as it is now."""
    return f"""\
# Ten further corpora

Generated by `python benchmarks/new_corpora.py table`: Spearman's correlation, in percent, between the labels of test
pairs and the score that a user reads, means over {now["draws"]} draws. `default` is the command without options.

## First analysis

The corpora, the rival and the tests were fixed before the first run.

{corpora_sections(first)}

## The default now

After this analysis, the default changed twice. A run now starts from the bundled pairs only if they rank the user's
pairs better; they had ranked those of `translated_news` worse. And the learning rate for few pairs was halved: the
[development pairs of seven other corpora](../graded_pairs/own_pairs_choice.md) chose it. The corpora of this page have
thus helped choose a rule, and the tests below no longer hold for other corpora.

{corpora_sections(now)}
"""


def corpora_sections(summary: Mapping[str, Any]) -> str:
    """The tables of an analysis."""
    sections = []
    for budget, of_budget in summary["budgets"].items():
        rows = [
            [
                f"`{corpus}`: {TITLES_OF_CORPORA[corpus]}",
                *(f"{own[name]:.0f}" for name in ("train_pairs", "test_pairs")),
                *(percent(value) for value in own["spearman"].values()),
            ]
            for corpus, own in of_budget["corpora"].items()
        ]
        means = [np.mean([own["spearman"][name] for own in of_budget["corpora"].values()]).item() for name in COMPARED]
        rows.append(["mean", "", "", *map(percent, means)])
        header = ["corpus", "training pairs", "test pairs", *(f"`{name}`" for name in COMPARED)]
        title = "All training pairs" if NEW_BUDGETS[budget] is None else f"{NEW_BUDGETS[budget]:,} training pairs"
        sections.append(f"{title}:\n\n{markdown_table(header, rows)}")
    return "\n\n".join([*sections, corpora_tests(summary)])


def corpora_tests(summary: Mapping[str, Any]) -> str:
    """The table of the tests, and their verdict in words."""
    rows = [
        [
            "all" if NEW_BUDGETS[budget] is None else budget,
            f"`{other}`",
            shown_difference(test),
            shown_p(test["p_holm"]),
            f"{test['ahead']}/{len(of_budget['corpora'])}",
        ]
        for budget, of_budget in summary["budgets"].items()
        for other, test in of_budget["tests"].items()
    ]
    table = markdown_table(["training pairs", "against", "gain (95 % interval)", "p (Holm)", "corpora ahead"], rows)
    return f"{table}\n\nPaired t-tests over {len(NEW_CORPORA)} corpora, adjusted for {summary['num_tests']} tests."


if __name__ == "__main__":
    main()
