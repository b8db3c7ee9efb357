"""Compares a student of several teachers with a model soup, at equal cost, on development pairs of seven corpora.

    python benchmarks/teachers.py --sts_data FOLDER --graded_data FOLDER --seeds 2 --jobs 2

The teachers are trained on the labelled pairs of `recipes/minilm/best.yaml`: with Smooth K2, with HL-Gauss and as a
cross-encoder, the first two with self-distillation. The means of their scores become labels of pairs without labels:
captions of CxC, and SNLI's sentences. The student is trained on both kinds of pairs, for half the epochs, so that it
takes as many steps as a teacher. Three teachers and a student cost four trainings, as the soup of four does. No test
pair is scored. Finished seeds are not repeated; they are kept in `results/teachers/teachers.jsonl`, and the table in
`results/teachers/teachers.md`.
"""

import argparse
import json
import logging
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.best_choice import BEST, VARIED_RECIPE, clean_development_pairs
from benchmarks.choose import ROOT
from benchmarks.graded_data import LabelledPair, split_graded_set, write_pairs
from benchmarks.own_pairs_choice import Score, labelled_pairs, spearman_of
from benchmarks.tables.graded_table import read_runs
from sts_regression.basics.tables import markdown_table, percent
from sts_regression.command.arguments import parse_stages
from sts_regression.data.pairs import read_pairs
from sts_regression.evaluation.significance import over_seeds, shown_difference, zero_test
from sts_regression.grader import PairGrader
from sts_regression.models.encoding import model_scorer
from sts_regression.training.run_record import describe_environment

TEACHER_RESULTS = ROOT / "results" / "teachers"
SOUP_OF_FOUR = VARIED_RECIPE.with_name("soup.yaml")
CROSS_ENCODER = ["--encoder_type=cross-encoder", "--loss=binary_cross_entropy", "--num_train_epochs=3"]
TEACHERS: dict[str, list[str]] = {  # recipe and options
    "smooth_k2": [str(VARIED_RECIPE)],
    "hl_gauss": [str(VARIED_RECIPE), "--loss=hl_gauss"],
    "cross_encoder": [str(BEST.with_name("base.yaml")), *CROSS_ENCODER],
}
PAIRS_OF_SOURCE = 5_000
STUDENT_EPOCHS = 1.5
SOUP, ENSEMBLE, STUDENT = "soup of four", "ensemble of the teachers", "student"


def main() -> None:
    """Runs the missing seeds, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sts_data", type=Path, required=True, help="folder of the STS data and SNLI")
    parser.add_argument("--graded_data", type=Path, required=True, help="folder of the other graded sets")
    parser.add_argument("--seeds", type=int, default=2, help="number of seeds; default: 2")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time; default: 1")
    args = parser.parse_args()
    path = TEACHER_RESULTS / "teachers.jsonl"
    done = {line["seed"] for line in read_runs(path)} if path.exists() else set()
    missing = [seed for seed in range(1, args.seeds + 1) if seed not in done]
    environment = describe_environment()  # before a tracked file is written, which counts as a change
    commit = {name: environment[name] for name in ("commit", "uncommitted_changes")}
    sts_data = args.sts_data.resolve()
    development = clean_development_pairs(sts_data, args.graded_data)
    unlabelled = pairs_without_labels(sts_data, args.graded_data)
    path.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(args.jobs) as pool:
        of_seed = partial(measure_seed, sts_data, unlabelled, development)
        for line in pool.map(of_seed, missing):
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**line, **commit}) + "\n")
    (TEACHER_RESULTS / "teachers.md").write_text(teachers_page(read_runs(path)), encoding="utf-8")


def pairs_without_labels(sts_data: Path, graded_data: Path) -> list[tuple[str, str]]:
    """Pairs of captions, and of sentences of SNLI, as many of each."""
    captions = split_graded_set("cxc", graded_data)["train"][:PAIRS_OF_SOURCE]
    sentences = labelled_pairs(read_pairs(sts_data / "snli" / "dev.jsonl").pairs)[:PAIRS_OF_SOURCE]
    return [(first, second) for first, second, _ in [*captions, *sentences]]


def measure_seed(
    sts_data: Path, unlabelled: Sequence[tuple[str, str]], development: Mapping[str, list[LabelledPair]], seed: int
) -> dict[str, Any]:
    """
    Trains the soup, the teachers and the student with a seed.

    Args:
        sts_data: folder of the STS data.
        unlabelled: pairs that the teachers label.
        development: the development pairs of each corpus.
        seed: the seed of every training.

    Returns:
        A `dict` with the `seed`; `spearman`, the correlation of the scores by model and corpus; and `seconds`, the
        time of training and scoring by model.
    """
    spearman: dict[str, dict[str, float]] = {}
    seconds: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        train = partial(train_model, sts_data, seed, Path(folder))

        def measured(name: str, score: Score) -> Score:
            spearman[name] = {corpus: spearman_of(score, pairs) for corpus, pairs in development.items()}
            sys.stdout.write(f"seed {seed}, {name}: {np.mean(list(spearman[name].values())):.4f}\n")
            sys.stdout.flush()
            return score

        def learned(name: str, words: Sequence[str]) -> Score:
            started = time.perf_counter()
            score = measured(name, train(name, words))
            seconds[name] = time.perf_counter() - started
            return score

        teachers = [learned(name, words) for name, words in TEACHERS.items()]
        ensemble = measured(ENSEMBLE, lambda first, second: np.mean([t(first, second) for t in teachers], axis=0))
        first, second = map(list, zip(*unlabelled, strict=True))
        labels = np.clip(ensemble(first, second), 0, 5)
        taught = Path(folder) / "taught.csv"
        write_pairs(list(zip(first, second, labels.tolist(), strict=True)), taught)
        words = [f"--num_train_epochs={STUDENT_EPOCHS}", "--loss=mse", "--train_file"]
        learned(STUDENT, [str(VARIED_RECIPE), *words, *files_of_best(sts_data), str(taught)])
        learned(SOUP, [str(SOUP_OF_FOUR)])
    return {"seed": seed, "spearman": spearman, "seconds": seconds}


def files_of_best(sts_data: Path) -> list[str]:
    """The files of training pairs of the recipe `best`."""
    files = parse_stages([str(BEST), f"--sts_data={sts_data}"])[0].data_args.train_file
    assert files is not None  # the recipe names them
    return files


def train_model(sts_data: Path, seed: int, folder: Path, name: str, words: Sequence[str]) -> Score:
    """Trains with a recipe and options, on one thread, and returns the function that gives the head's scores."""
    output = folder / name.replace(" ", "_")
    command = [sys.executable, "-m", "sts_regression", "train", *words, f"--sts_data={sts_data}", f"--seed={seed}"]
    command += [f"--output_dir={output}", "--cpu_threads=1", "--do_eval=false", "--report_to=none"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    grader = PairGrader(str(output))
    scorer = model_scorer(grader.model, grader.tokenizer)
    return lambda first, second: scorer(first, second)["head"]


def teachers_page(lines: Sequence[Mapping[str, Any]]) -> str:
    """The correlations of each model by corpus, and the difference of the student and the soup, as Markdown."""
    models, corpora = list(lines[0]["spearman"]), list(lines[0]["spearman"][STUDENT])
    means = {model: [np.mean(list(line["spearman"][model].values())) for line in lines] for model in models}
    rows = [
        [
            f"`{model}`" if model in TEACHERS else model,
            *(percent(float(np.mean([line["spearman"][model][corpus] for line in lines]))) for corpus in corpora),
            percent(float(np.mean(means[model]))),
            f"{np.mean([line['seconds'][model] for line in lines]):.0f}" if model in lines[0]["seconds"] else "–",
        ]
        for model in models
    ]
    gains = [float(student - soup) for student, soup in zip(means[STUDENT], means[SOUP], strict=True)]
    difference = shown_difference(zero_test(over_seeds(gains, True)))
    of_soup = np.mean([line["seconds"][SOUP] for line in lines])
    of_student = np.mean([sum(line["seconds"].values()) for line in lines]) - of_soup  # and its teachers
    return f"""\
# A student of several teachers

Generated by `python benchmarks/teachers.py`: Spearman's correlation of the scores on development pairs, in percent,
means over {len(lines)} seeds; seconds of training on one thread. The student learns labelled pairs, and the mean of
the three teachers' scores for {2 * PAIRS_OF_SOURCE:,} pairs without labels. It costs four trainings ({of_student:.0f}
seconds), as the soup does ({of_soup:.0f} seconds). The difference of student and soup is {difference}, with a 95 %
interval over seeds.

{markdown_table(["model", *corpora, "mean", "seconds"], rows)}
"""


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    main()
