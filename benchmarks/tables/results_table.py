"""Writes `results/README.md`, the generated parts of the README and the cards in `model_cards/` from the run files.

    python -m benchmarks.tables.results_table
    python -m benchmarks.tables.results_table --section graded_pairs      one section of the documents only

No number is typed by hand: a missing run file or measure is an error, not a blank.
"""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.reproduce import STSB_RUNS
from benchmarks.tables.gpu_report import gpu_summary
from benchmarks.tables.graded_overview import headline, overview
from benchmarks.tables.growth_report import growth_section
from benchmarks.tables.paper_tables import (
    ABLATION,
    SweepSection,
    average_without_trained_genres,
    breadth_verdict,
    choice_table,
    choice_verdict,
    cross_encoder_sentence,
    equal_rates_table,
    genre_table,
    paper_tables,
    sweep_sections,
    verdicts,
)
from benchmarks.tables.run_tables import (
    ResultFile,
    leak_filter_speed,
    leak_matrix_tables,
    leakage_table,
    precision_table,
    quickstart_table,
    reliability_page,
    short_embeddings_table,
    sts_tasks_table,
    stsb_table,
)
from benchmarks.tables.speed_report import explanations, speed_rows
from sts_regression.basics.tables import markdown_table
from sts_regression.command.default_recipe import FEWEST_GROUPS, MOST_COUNTED, OWN_PAIRS_RECIPES
from sts_regression.command.recipes import read_recipe
from sts_regression.data.leakage import LEAK_FILTERS
from sts_regression.hub.model_card import model_card
from sts_regression.sweep.report import read_summary, summary_table
from sts_regression.sweep.summary import Summary

ROOT = Path(__file__).resolve().parents[2]
REPRODUCE = "python benchmarks/reproduce.py {} --sts_data …"
OLD_SETTINGS = "These runs predate the choice of settings, and use another learning rate."
SWEEP_SECTIONS = {
    ABLATION: SweepSection(
        "Ablation of `best`, and parts that were tried",
        REPRODUCE.format("ablation"),
        "Ten seeds of each row were planned; results were read before all of them were finished.",
    ),
    "table5": SweepSection(
        "Table 5 on this encoder: k and x₀ of Smooth K2, the paper's head", REPRODUCE.format("table5"), OLD_SETTINGS
    ),
    "table5_translated_relu": SweepSection(
        "Table 5 on this encoder: k of Translated ReLU, the paper's head",
        REPRODUCE.format("table5_translated_relu"),
        OLD_SETTINGS,
    ),
    "table6": SweepSection("Table 6 on this encoder: features of the head", REPRODUCE.format("table6"), OLD_SETTINGS),
}
# The documents of generated sections, which are listed by name.
DOCUMENTS = {
    "README.md": ("quickstart", "usage", "headline", "others"),
    "docs/methods.md": ("comparison", "verdicts"),
    "docs/evaluating.md": ("sts_tasks", "leakage"),
    "docs/speed.md": ("speed", "precision", "gpu"),
    "docs/own_pairs.md": ("recipes",),
    "docs/using.md": ("short_embeddings",),
}
# Runs whose model cards are kept, by the model's name.
CARDS = {"quickstart-smooth_k2": "quickstart/smooth_k2", "minilm-best": "comparison/best/seed-10"}
# A remark that follows a sentence of a card, since records do not tell it.
REMARKS = {
    "minilm-best": (
        "No test pair helped choose the checkpoint.",
        "Parts of the recipe come from early trials that were scored on the test tasks.",
    )
}
ABOUT_CELLS = {
    "best": (
        "The runs of `best` and `distillation` predate these recipes: recipes of other names had the same options. "
        "`distillation` is `best` with self-distillation."
    ),
    "paper": (
        "`paper` filters training pairs and chooses the checkpoint as the paper does: most of its development pairs "
        "are pairs of the tasks."
    ),
    "paper_clean": (
        "`paper_clean` and `paper_clean_code`, which follows the paper's code, filter pairs and choose the checkpoint "
        "like the other methods. Their runs predate the recipes of these names, and used `--bf16`. Two of five seeds "
        "of each were dropped, because they had run on uncommitted code; these four ranked better than the mean of "
        "the kept ones."
    ),
    "best_sentence": "`best_sentence` is `best` without training pairs that share a sentence with a test pair.",
}
UNCOMMITTED = '"uncommitted_changes": true'
CROSS_ENCODER_COMMAND = "Command: `python benchmarks/reproduce.py cross_encoder --sts_data …`: binary cross-entropy."


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the files, and prints their names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--section", choices=sorted([*SECTIONS, *PAGES]), help="write this section of the documents, or these pages"
    )
    section = parser.parse_args(argv).section
    if section is None:
        files = generated_files()
    else:
        files = PAGES[section]() if section in PAGES else documents_with({section: SECTIONS[section]()})
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


def check_commits(folder: Path) -> None:
    """
    Refuses run files that were measured with uncommitted changes of the code.

    Raises:
        ValueError: for such files; the message names them.
    """
    changed = [path for path in sorted(folder.rglob("*.json")) if UNCOMMITTED in path.read_text(encoding="utf-8")]
    if changed:
        listed = ", ".join(str(path.relative_to(folder)) for path in changed)
        raise ValueError(f"{listed}: measured with uncommitted changes. Repeat these runs in a clean clone.")


def generated_files() -> dict[Path, str]:
    """
    The files with generated tables, and their current content.

    Raises:
        ValueError: for a run file that is missing, or measured with uncommitted changes.
    """
    check_commits(ROOT / "results")
    leak_matrix = _results("leakage", "matrix")
    comparison = _comparison()
    choice = _results("choice", "choice")
    sections = {name: write() for name, write in SECTIONS.items()}
    cross_encoders = [_results("cross_encoder", f"seed-{seed}") for seed in (1, 2, 3)]
    documents = documents_with(sections)
    results = f"""\
# Results

Generated by `python -m benchmarks.tables.results_table` from the run files beside this page; each holds its options,
versions, commit, data fingerprints, measures, time and memory. Correlations are Spearman's, in percent.

## Quick start

Command: `python benchmarks/reproduce.py quickstart`

{sections["quickstart"]}

## Own graded pairs

Command: `python benchmarks/graded_pairs.py choose|run|table --sts_data … --graded_data …`. More pages:

- [graded_pairs.md](graded_pairs/graded_pairs.md): every method on every corpus.
- [own_pairs_choice.md](graded_pairs/own_pairs_choice.md): how the settings of the recipes were chosen. Command:
  `python benchmarks/own_pairs_choice.py`.
- [bundled_choice.md](graded_pairs/bundled_choice.md): when a run starts from the bundled pairs. Command:
  `python benchmarks/bundled_choice.py`.
- [new_corpora.md](new_corpora/new_corpora.md): the default on ten further corpora; their first analysis prompted one
  rule. Command: `python benchmarks/new_corpora.py`.
- [learning_curves.md](graded_pairs/learning_curves.md): whether the learning curve tells the gain from more pairs.
  Command: `python benchmarks/learning_curves.py`.
- [label_choice.md](label_choice/label_choice.md): whether choosing the pairs to label saves labels. Command:
  `python benchmarks/label_choice.py`.

{sections["graded_pairs"]}

![Gain over the untouched encoder by budget and method](graded_pairs/graded_pairs.png)

## Methods on all-MiniLM-L6-v2

Command: `python benchmarks/reproduce.py comparison --sts_data …`, recipes in `recipes/minilm`. Training pairs: STS-B
and SICK without the pairs of the seven tasks (filter `normalized`). Development pairs are filtered the same way and
choose the checkpoint, except for `best`, `best_sentence` and `distillation`, which take the last. Mean ± standard
deviation over seeds. Seeds were added up to ten, a number set in advance, but results were read in between.
{about_cells(comparison)}

### Cosine

{sections["comparison"]}

### Head

{summary_table(comparison, "head", ["untouched", "best"])}

![Average of the seven tasks by method and seed](comparison/summary.png)

{genre_section(comparison)}
### What the losses change

{sections["verdicts"]}

### How the settings were chosen

Command: `python benchmarks/choose.py --sts_data … --graded_data …`. Each method was tried with six settings, one run
each. The chosen setting has the highest Spearman's correlation on development pairs, averaged over cosine and head
and over seven corpora: STS-B and SICK, which also choose the checkpoint of a run, and five that no run trains on.

{choice_table(choice)}

{choice_verdict(choice)}

For two of the questions above, development pairs chose different learning rates with and without a buffer zone; these
compare loss and rate together. At equal rates, the same development pairs show these differences of the
mean, in points, from one run each:

{equal_rates_table(choice)}

More trials on development pairs:

- [best.md](choice/best.md): settings of the recipe `best`. Command: `python benchmarks/best_choice.py`.
- [sources.md](sources/sources.md): `distillation` with further training pairs. Command:
  `python benchmarks/training_sources.py`.
- [teachers.md](teachers/teachers.md): one model that learns from three others, and a model soup. Command:
  `python benchmarks/teachers.py`.

{sweep_sections(ROOT / "results", SWEEP_SECTIONS)}

### Shorter embeddings, and 8-bit weights

Command: `python benchmarks/short_embeddings.py --sts_data …`. Average of the seven tasks by the cosine of the first
numbers of each embedding, mean ± standard deviation over seeds. `--matryoshka_dims 256 128 64` trains the shorter
embeddings, too. 8-bit weights run in ONNX Runtime.

{sections["short_embeddings"]}

### Cross-encoder

{CROSS_ENCODER_COMMAND}

{cross_encoder_sentence(cross_encoders)}

## The paper's tables

Recipes in `recipes/paper`; `NAME_code.yaml` beside each follows the paper's code. Cells without a
measurement are empty: they need the weights of BERT, RoBERTa, Nomic or Jina and the pairs of SNLI and MultiNLI
(`python benchmarks/reproduce.py paper --sts_data …`).

{paper_tables(ROOT / "recipes" / "paper", ROOT / "results" / "paper")}

## STS-B from all-MiniLM-L6-v2

Command: `python benchmarks/reproduce.py stsb --sts_data …`, recipe `recipes/stsb.yaml`, one seed. The checkpoint with
the best cosine on the development pairs is scored.

{sections["stsb"]}

## The seven STS tasks

Command: `python benchmarks/reproduce.py sts_tasks --sts_data … --senteval_data …`, untouched all-MiniLM-L6-v2, cosine.

{sections["sts_tasks"]}

## Test pairs among training and development pairs

Command: `python benchmarks/reproduce.py leakage --sts_data …`. Pairs of each set that are pairs of the seven STS tasks
(of SICK, the test split), by the mode of the leak filter. Time: `python benchmarks/leak_filter.py`.

{sections["leakage"]}

## Overlap of data sets with the seven STS tasks

Command: `python benchmarks/reproduce.py leak_matrix --sts_data … --graded_data …`.

{leak_matrix_tables(leak_matrix)}

## Speed and memory

Command: `python benchmarks/speed.py --pairs_file sts-train.csv`.

{sections["speed"]}

## Growth

Command: `python benchmarks/growth.py`: made-up text, each point in a process of its own.

{growth_section(_results("speed", "growth"))}
"""
    return {**documents, ROOT / "results" / "README.md": results, **reliability_pages(), **card_pages()}


def about_cells(comparison: Summary) -> str:
    """Remarks on methods in the table whose names do not explain them."""
    known = (name for name in ABOUT_CELLS if name in comparison["cells"])
    return " ".join(ABOUT_CELLS[name] for name in known)


def genre_section(comparison: Summary) -> str:
    """Where the gain comes from; empty if the runs kept no scores of single pairs."""
    best = comparison["cells"]["best"]
    if not best["genres"]:
        return ""
    methods = [name for name in ("best", "distillation") if name in comparison["cells"]]
    known, of_all = len(best["scored_seeds"]), len(best["seeds"])
    of_seeds = ""
    if known < of_all:
        of_seeds = f" Means over the {known} of {of_all} seeds\nwhose per-pair scores are kept."
    return f"""\
### Where the gain comes from

Cosine by task and genre: difference of {" and ".join(f"`{method}`" for method in methods)} from the untouched
encoder, with unadjusted intervals. All of STS-B's training pairs that are no test pairs come from MSRpar and MSRvid. A
row `without` these genres is one correlation over all other pairs of the task.{of_seeds}

{genre_table(comparison, methods, "untouched")}

{" ".join(average_without_trained_genres(comparison, method, "untouched") for method in methods)}

{breadth_verdict(comparison, methods, "untouched")}

"""


def reliability_pages() -> dict[Path, str]:
    """The page on reliability."""
    return {ROOT / "results" / "reliability.md": reliability_page(_results("reliability", "reliability"))}


def card_pages() -> dict[Path, str]:
    """The model cards that are kept, and their list."""
    untouched = _results("sts_tasks", "all-minilm-l6-v2-original")
    cards = {}
    for name, run in CARDS.items():
        record = _read(ROOT / "results" / f"{run}.json")
        card = model_card(record, name, untouched=untouched if "sts_tasks" in record else None)
        if name in REMARKS:
            sentence, remark = REMARKS[name]
            if sentence not in card:
                raise ValueError(f"the card {name} lacks the sentence {sentence!r}, which a remark follows.")
            card = card.replace(sentence, f"{sentence} {remark}")
        cards[ROOT / "model_cards" / f"{name}.md"] = card
    return {**cards, ROOT / "model_cards" / "README.md": cards_page()}


def documents_with(sections: Mapping[str, str]) -> dict[Path, str]:
    """The documents with generated sections, with the given sections renewed."""
    documents = {}
    for document, names in DOCUMENTS.items():
        text = (ROOT / document).read_text(encoding="utf-8")
        for name in set(names) & set(sections):
            text = _replace_section(text, name, sections[name], document)
        documents[ROOT / document] = text
    return documents


def leakage_section() -> str:
    """The findings of the leak filters, and their speed."""
    audits = [_results("leakage", mode) for mode in LEAK_FILTERS if mode != "none"]
    return f"{leakage_table(audits)}\n\n{leak_filter_speed(_results('leakage', 'speed'))}"


def recipes_table() -> str:
    """The recipes for own pairs with their settings, and the rule for few texts. Indented, as part of a list."""
    rows = []
    ends = [*list(OWN_PAIRS_RECIPES)[1:], None]
    for (fewest, recipe), end in zip(OWN_PAIRS_RECIPES.items(), ends, strict=True):
        number = f"{fewest:,} or more" if end is None else f"{max(fewest, 1):,} to {end - 1:,}"
        options = dict(option.removeprefix("--").split("=") for option in read_recipe(recipe).stages[0])
        parts = {
            "bundled pairs first": options.get("bundled_pairs_first") == "true",
            "self-distillation": float(options["self_distillation"]) > 0,
            "group intercepts": options["group_intercepts"] == "true",
            "a second round on all pairs": options.get("refit") == "true",
        }
        link = f"[`{recipe.name}`](../sts_regression/quickstart/{recipe.name})"
        shown = ", ".join(part for part, is_used in parts.items() if is_used)
        rows.append(
            [
                number,
                link,
                options["learning_rate"],
                options["num_train_epochs"],
                shown,
            ]
        )
    table = markdown_table(["pairs in your files", "recipe", "learning rate", "epochs", "further parts"], rows)
    few_texts = (
        f"Fewer than {MOST_COUNTED:,} pairs that share texts, such as candidates of the same queries, also use "
        f"`{OWN_PAIRS_RECIPES[0].name}` unless they form at least {FEWEST_GROUPS} groups."
    )
    section = f"{table}\n\n{few_texts}"
    return "\n" + textwrap.indent(section, "    ") + "\n"  # a comment beside it would keep it from being a table


def usage_section() -> str:
    """The lines of Python that the quick start prints, and their output."""
    usage = _results("quickstart", "usage_example")
    return f"```python\n{usage['code']}\n```\n```text\n{usage['printed']}\n```"


def _comparison() -> Summary:
    return read_summary(ROOT / "results" / "comparison" / "summary.json")


def _results(folder: str, name: str) -> ResultFile:
    return _read(ROOT / "results" / folder / f"{name}.json")


# Parts of the documents that are generated, each from its run files.
SECTIONS: dict[str, Callable[[], str]] = {
    "comparison": lambda: summary_table(_comparison(), "cosine", ["untouched", "best"]),
    "verdicts": lambda: verdicts(_comparison(), _results("choice", "choice")),
    "sts_tasks": lambda: sts_tasks_table(
        *(_results("sts_tasks", f"all-minilm-l6-v2-{name}") for name in ("original", "senteval", "all-of-sick"))
    ),
    "leakage": leakage_section,
    "speed": lambda: speed_table(_results("speed", "speed")),
    "precision": lambda: precision_table(_results("speed", "precision")),
    "gpu": lambda: gpu_summary(ROOT / "results" / "gpu"),
    "others": lambda: others_table(_results("speed", "speed")),
    "quickstart": lambda: quickstart_table(_results("quickstart", "smooth_k2")),
    "graded_pairs": lambda: overview(_results("graded_pairs", "graded_pairs")),
    "headline": lambda: headline(_results("graded_pairs", "graded_pairs"), _results("new_corpora", "new_corpora")),
    "usage": usage_section,
    "recipes": recipes_table,
    "short_embeddings": lambda: short_embeddings_table(_results("short_embeddings", "short_embeddings")),
    "stsb": lambda: stsb_table([_results("stsb", name) for name in STSB_RUNS]),
}


PAGES: dict[str, Callable[[], dict[Path, str]]] = {"reliability": reliability_pages, "cards": card_pages}


def cards_page() -> str:
    """The README of `model_cards/`."""
    listed = "\n".join(f"- [{name}]({name}.md): from `results/{run}.json`" for name, run in CARDS.items())
    return f"""\
# Model cards

`run_sts.py` writes a card beside every model that it trains, from the run's `run.json` and the
[template](../sts_regression/hub/card_template.md). The cards below are those of runs whose records are kept in
[`results/`](../results/README.md); `python -m benchmarks.tables.results_table` writes them.

{listed}

None of these models has been published yet. Test pairs helped choose no checkpoint. Parts of the recipe `best`,
however, come from early trials that were scored on the test tasks.
"""


def others_table(speed: ResultFile) -> str:
    """A comparison with other projects: purposes, features and rates of training."""
    training = speed["training"]
    rates = {name: f"{contender['rate']['median']:.0f}" for name, contender in training["contenders"].items()}
    header = ["", "this project", "sentence-transformers", "SetFit", "the paper's code"]
    rows = [
        ["purpose", "graded pairs", "embeddings, many losses", "classifying single texts", "the paper's tables"],
        ["output per pair", "grade, score, interval, cosine", "cosine", "–", "cosine"],
        ["few pairs", "split by text, verdict, fallback, cross-validation", "–", "designed for it", "–"],
        ["seven STS tasks", "leak filter, tests over seeds", "evaluators", "–", "one seed"],
        [
            f"training step in float32, pairs/s on {training['environment']['threads']} CPU threads",
            *(rates["training"], rates["training-st-cosine"], "not measured"),
            f"{rates['training-paper']} (re-implemented)",
        ],
    ]
    return markdown_table(header, rows)


def speed_table(speed: ResultFile) -> str:
    """The table of the speed benchmark, and the machine it was measured on."""
    header = ["what", "ours", "against", "theirs", "ratio", "aim"]
    environment = speed["training"]["environment"]
    sgemm = [
        [contender["sgemm_flops_per_second"] for contender in comparison["contenders"].values()]
        for comparison in speed.values()
    ]
    rounds = [len(rates) for comparison in sgemm for rates in comparison]
    peaks = [max(map(max, comparison)) / 1e9 for comparison in sgemm]
    machine = (
        f"{environment['threads']} threads of a {environment['device']}; torch {environment['torch']}, transformers "
        f"{environment['transformers']}. Medians are of {min(rounds)} to {max(rounds)} rounds. Machines differ "
        f"between comparisons (their float32 matrix product peaked at {min(peaks):.0f} to {max(peaks):.0f} GFLOP/s), "
        "so compare within a row."
    )
    return "\n\n".join([markdown_table(header, speed_rows(speed)), "\n".join([machine, *explanations(speed)])])


def _read(path: Path) -> ResultFile:
    if not path.is_file():
        raise ValueError(f"{path}: no such run file. results/README.md names the command that writes it.")
    return json.loads(path.read_text(encoding="utf-8"))


def _replace_section(text: str, name: str, section: str, document: str) -> str:
    pattern = re.compile(rf"(<!-- generated: {name} -->\n).*?( *<!-- end -->)", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"{document} must hold one section between `<!-- generated: {name} -->` and `<!-- end -->`")
    return pattern.sub(lambda match: f"{match[1]}{section}\n{match[2]}", text)


if __name__ == "__main__":
    main()
