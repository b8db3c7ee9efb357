r"""Compares settings of the recipe `best` on development pairs of seven corpora, without test pairs.

    python benchmarks/best_choice.py --sts_data FOLDER --graded_data FOLDER --setting loss=hl_gauss --setting seed=2

A setting names options in place of those of the first stage of `ablation/distillation.yaml`, which is `best` with
self-distillation. It is trained with seed 1 unless it names another. The alpha of WiSE-FT mixes weights after
training, so one run serves all its values. The measure is that of `choose.py`: Spearman's correlation of the cosine,
averaged over corpora that count the same, and over the seeds of a setting. Finished runs are not repeated; they are
kept in `results/choice/best.jsonl`, and the table in `results/choice/best.md`.
"""

import argparse
import json
import logging
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.choose import CHOICE_FOLDER, PAIRS_PER_CORPUS, ROOT
from benchmarks.graded_data import GRADED_SETS, LabelledPair, split_graded_set
from benchmarks.own_pairs_choice import labelled_pairs, parse_option, setting_title, spearman_by_alpha
from benchmarks.tables.graded_table import read_runs
from sts_regression.basics.tables import markdown_table, percent
from sts_regression.command.arguments import parse_stages
from sts_regression.command.recipes import read_recipe
from sts_regression.data.columns import PairColumns
from sts_regression.data.splits import load_splits
from sts_regression.data.sts_tasks import load_sts_tasks
from sts_regression.grader import PairGrader
from sts_regression.training.run_record import describe_environment

BEST = ROOT / "recipes" / "minilm" / "best.yaml"
VARIED_RECIPE = BEST.parent / "ablation" / "distillation.yaml"
WITHOUT_AVERAGING = ["--wise_ft_alpha=1", "--seed=1", "--cpu_threads=1", "--do_eval=false"]


def main() -> None:
    """Runs the missing settings, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sts_data", type=Path, help="folder of the STS data, original text")
    parser.add_argument("--graded_data", type=Path, help="folder of the other graded sets")
    parser.add_argument("--setting", nargs="*", action="append", type=parse_option, default=[], dest="settings")
    parser.add_argument("--output_dir", type=Path, default=ROOT / CHOICE_FOLDER)
    args = parser.parse_args()
    path = args.output_dir / "best.jsonl"
    done = {setting_title(line["setting"]) for line in read_runs(path)} if path.exists() else set()
    missing = [setting for setting in map(dict, args.settings) if setting_title(setting) not in done]
    if missing:
        environment = describe_environment()  # before a tracked file is written, which counts as a change
        development = clean_development_pairs(args.sts_data.resolve(), args.graded_data)
        for setting in missing:
            found = measure_options(setting, args.sts_data.resolve(), development)
            commit = {name: environment[name] for name in ("commit", "uncommitted_changes")}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"setting": setting, **found, **commit}) + "\n")
    (args.output_dir / "best.md").write_text(best_page(read_runs(path)), encoding="utf-8")


def clean_development_pairs(sts_data: Path, graded_data: Path) -> dict[str, list[LabelledPair]]:
    """The development pairs of each corpus: clean ones of STS-B and SICK, and those of corpora not trained on."""
    data_args = parse_stages([str(BEST), f"--sts_data={sts_data}"])[0].data_args
    splits = load_splits(data_args, PairColumns(), None, sts_tasks=load_sts_tasks(sts_data))
    sets = {Path(part.name).stem: labelled_pairs(part.pairs) for part in splits.sets["validation"]}
    for name in GRADED_SETS:
        sets[name] = split_graded_set(name, graded_data)["validation"][:PAIRS_PER_CORPUS]
    return sets


def measure_options(
    setting: Mapping[str, Any], sts_data: Path, development: Mapping[str, list[LabelledPair]]
) -> dict[str, dict[str, dict[str, float]]]:
    """
    Trains with a setting.

    Args:
        setting: options in place of those of the recipe.
        sts_data: folder of the STS data.
        development: the development pairs of each corpus.

    Returns:
        A `dict` with `spearman`, the correlation of the cosine by alpha and corpus; alpha 0 is the untouched encoder.
    """
    options = [f"--{name}={value}" for name, value in setting.items()]
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "sts_regression", "train", *read_recipe(VARIED_RECIPE).stages[0]]
        command += [*WITHOUT_AVERAGING, f"--sts_data={sts_data}", f"--output_dir={folder}/run", *options]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        by_corpus = spearman_by_alpha(PairGrader(f"{folder}/run"), PairGrader(), development)
    alphas = next(iter(by_corpus.values()))
    by_alpha = {alpha: {corpus: of_corpus[alpha] for corpus, of_corpus in by_corpus.items()} for alpha in alphas}
    sys.stdout.write(f"{setting_title(setting)}: {by_alpha}\n")
    sys.stdout.flush()
    return {"spearman": by_alpha}


def best_page(lines: Sequence[Mapping[str, Any]]) -> str:
    """The correlations of each setting and alpha by corpus, as Markdown, the best mean first."""
    by_seed: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for line in lines:
        title = setting_title({name: value for name, value in line["setting"].items() if name != "seed"})
        for alpha, values in line["spearman"].items():
            if alpha != "0":
                by_seed[title, alpha].append(list(values.values()))
    by_seed["untouched", ""] = [list(lines[0]["spearman"]["0"].values())]
    means = {row: np.mean(values, axis=0) for row, values in by_seed.items()}  # (corpora,)
    table = markdown_table(
        ["setting", "alpha", "seeds", *lines[0]["spearman"]["0"], "mean"],
        [
            [
                f"`{row[0]}`",
                row[1],
                str(len(by_seed[row])),
                *map(percent, means[row]),
                percent(float(means[row].mean())),
            ]
            for row in sorted(means, key=lambda row: -means[row].mean())
        ],
    )
    return f"""\
# How the recipe `best` was chosen

Generated by `python benchmarks/best_choice.py`: Spearman's correlation of the cosine on development pairs, in percent.
A setting names options in place of those of `recipes/minilm/ablation/distillation.yaml`, which is `best` with
self-distillation; `best` is the setting `self_distillation=0` with alpha 0.5. Values are means over seeds. Alpha is
WiSE-FT's share of trained weights.

{table}
"""


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    main()
