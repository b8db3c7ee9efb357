"""The default for own pairs in a few rows, against the untouched encoder and the best of sentence-transformers."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.graded_data import ALL_SETS
from benchmarks.graded_methods import METHODS
from benchmarks.new_corpora import NEW_CORPORA, RIVAL
from benchmarks.tables.graded_table import DEFAULT_METHOD, LIBRARY_METHODS, UNTOUCHED, budget_name, budget_title
from sts_regression.basics.tables import markdown_table, percent
from sts_regression.command.default_recipe import OWN_PAIRS_RECIPES
from sts_regression.evaluation.significance import CONFIDENCE, shown_difference, shown_p
from sts_regression.quickstart import BUNDLED_FOLDER

OVERVIEW_HEADER = ["training pairs", "untouched encoder", "sentence-transformers", "this project"]
GAINS = ["gain over untouched", "gain over sentence-transformers", "corpora ahead"]
HOW_CHOSEN = (
    "Our settings were chosen on development pairs of these corpora. Test pairs of short answers suggested the rule "
    "for few groups of pairs that share texts; development pairs supported it with a learning rate of 1e-4, in three "
    "draws with 1,000 pairs and one with 5,000. The present rate was not tried on them."
)


class Comparison(NamedTuple):
    """
    A budget of the overview.

    Attributes:
        budget: the number of pairs, or "all".
        scores: mean correlation of the untouched encoder, of sentence-transformers' best method and of the default.
        rival: that method.
        untouched, library: the tests of the default against these two.
        gaining: number of corpora on which the default ranks better than the rival, and of corpora.
    """

    budget: str
    scores: tuple[float, float, float]
    rival: str
    untouched: Mapping[str, Any]
    library: Mapping[str, Any]
    gaining: tuple[int, int]

    @property
    def tests(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Both tests."""
        return self.untouched, self.library


def compare_on_budgets(summary: Mapping[str, Any]) -> list[Comparison]:
    """The budgets on which the three were measured."""
    found = []
    for budget, measured in summary["budgets"].items():
        means = {name: method["mean"] for name, method in measured["methods"].items() if method["mean"] is not None}
        rivals = {name: means[name]["spearman"] for name in LIBRARY_METHODS if name in means}
        if rivals and {UNTOUCHED, DEFAULT_METHOD} <= means.keys():
            best = max(rivals, key=lambda name: rivals[name])
            scores = (means[UNTOUCHED]["spearman"], rivals[best], means[DEFAULT_METHOD]["spearman"])
            tests = (measured["versus"][UNTOUCHED], measured["versus"][best])
            found.append(Comparison(budget, scores, best, *tests, _gaining(measured["methods"], best)))
    return found


def _gaining(methods: Mapping[str, Any], rival: str) -> tuple[int, int]:
    """The number of corpora on which the default ranks better than another method, and of all corpora."""
    ours, theirs = (methods[name]["by_set"] for name in (DEFAULT_METHOD, rival))
    return sum(ours[name]["spearman"] > theirs[name]["spearman"] for name in ours), len(ours)


def headline(summary: Mapping[str, Any], elsewhere: Mapping[str, Any]) -> str:
    """
    The table and its notes for readers who see this project for the first time.

    Args:
        summary: see [`summarize_graded`].
        elsewhere: the `first` analysis of other corpora, and that of the default `now`, see [`summarize_corpora`].
    """
    rows = compare_on_budgets(summary)
    gains = [[_bold(shown_difference(test), _is_significant(test)) for test in row.tests] for row in rows]
    losses = _losses(summary)
    worse = f" On {losses}, the trained encoder ranked worse than the untouched one." if losses else ""
    is_any = any(_is_significant(test) for row in rows for test in row.tests)
    significant = "A bold gain is" if is_any else "No gain is"
    return (
        f"{_table(rows, gains)}\n\n"
        f"Means over {len(summary['sets'])} corpora; 95 % intervals. {significant} significant after "
        f"adjustment for {summary['tests']} tests. {_elsewhere(elsewhere)} "
        f"{_bundled_pairs()}{worse} sentence-transformers: best of {_numbers_of_settings(summary)} settings on these "
        "test pairs. [All methods](results/graded_pairs/graded_pairs.md)."
    )


def _elsewhere(summaries: Mapping[str, Any]) -> str:
    """A sentence on the corpora that helped choose a rule after their first analysis."""
    first, now = (
        {budget: found["tests"][RIVAL] for budget, found in summaries[name]["budgets"].items()}
        for name in ("first", "now")
    )
    gains = [
        f"{shown_difference(test)}{', significant,' if _is_significant(test) else ''} with {budget} pairs"
        for budget, test in now.items()
    ]
    verdict = "" if any(map(_is_significant, now.values())) else ", not significant"
    before = " and ".join(f"{100 * test['difference']:+.2f}" for test in first.values())
    return (
        f"On [{len(NEW_CORPORA)} further corpora](results/new_corpora/new_corpora.md), gains over "
        f"sentence-transformers are {' and '.join(gains)}{verdict}. Before two recipe changes, one "
        f"prompted by these corpora: {before}."
    )


def overview(summary: Mapping[str, Any]) -> str:
    """The table with p-values, and everything that one must know to judge it."""
    rows = compare_on_budgets(summary)
    shown = [
        [
            f"{shown_difference(test)}, " + ("one draw" if test["p_holm"] is None else f"p {shown_p(test['p_holm'])}")
            for test in row.tests
        ]
        for row in rows
    ]
    seeds = {of_set["seeds"] for found in summary["budgets"].values() for of_set in _trained(found)}
    draws = " to ".join(map(str, sorted({min(seeds), max(seeds)})))
    losses = _losses(summary)
    return (
        f"{_table(rows, shown)}\n\nMeans over {len(summary['sets'])} corpora and {draws} draws of training pairs, "
        f"with 95 % intervals{_narrow(rows)} and p-values adjusted for {summary['tests']} tests. Significant "
        f"gains: {_count([row.untouched for row in rows])} over the untouched encoder, "
        f"{_count([row.library for row in rows])} over sentence-transformers."
        f"{_limit([row.library for row in rows if row.library['p_holm'] is not None])}"
        + (f" On {losses}, the trained encoder ranked worse than the untouched one." if losses else "")
        + " For sentence-transformers, the table shows the loss and "
        f"settings that rank these test pairs best, among {_tried(summary)}; by budget, "
        f"{_numbers_of_settings(summary)} were measured. {_bundled_pairs()} "
        f"{HOW_CHOSEN} Test pairs were scored again after each revision of the recipes."
    )


def _bundled_pairs() -> str:
    """A sentence on the pairs that runs with few pairs train on besides their own."""
    with (BUNDLED_FOLDER / "train.csv").open(encoding="utf-8", newline="") as file:
        count = sum(1 for _ in csv.DictReader(file))
    return (
        f"With fewer than {max(OWN_PAIRS_RECIPES)} pairs, or few groups of pairs that share texts, our runs first "
        f"train on {count:,} bundled pairs if that ranks yours better."
    )


def _numbers_of_settings(summary: Mapping[str, Any]) -> str:
    """The numbers of settings of sentence-transformers that were measured, by budget, as a part of a sentence."""
    *numbers, last = (
        sum(bool(found["methods"].get(name, {}).get("mean")) for name in LIBRARY_METHODS)
        for found in summary["budgets"].values()
    )
    return f"{', '.join(map(str, numbers))} and {last}" if numbers else str(last)


def _table(rows: Sequence[Comparison], gains: Sequence[list[str]]) -> str:
    return markdown_table(
        [*OVERVIEW_HEADER, *GAINS],
        [[*_scores(row), *shown, "{}/{}".format(*row.gaining)] for row, shown in zip(rows, gains, strict=True)],
    )


def _scores(row: Comparison) -> list[str]:
    untouched, library, default = (_bold(percent(score), score == max(row.scores)) for score in row.scores)
    return [budget_title(row.budget), untouched, f"{library} ({METHODS[row.rival].title})", default]


def _bold(text: str, is_bold: bool) -> str:
    return f"**{text}**" if is_bold else text


def _is_significant(test: Mapping[str, Any]) -> bool:
    return test["p_holm"] is not None and test["p_holm"] < 1 - CONFIDENCE


def _count(tests: Sequence[Mapping[str, Any]]) -> str:
    """How many gains are significant by their adjusted p-values, as a part of a sentence."""
    return f"{sum(map(_is_significant, tests))} of {sum(test['p_holm'] is not None for test in tests)}"


def _tried(summary: Mapping[str, Any]) -> str:
    """The settings of sentence-transformers that were measured, as a part of a sentence."""
    budgets = [
        budget_name(budget)
        for budget, found in summary["budgets"].items()
        if any(METHODS[name].tuned and found["methods"].get(name, {}).get("mean") for name in LIBRARY_METHODS)
    ]
    if not budgets:
        return "those of its training overview, not tuned"
    return (
        f"those of its training overview and, with {' and '.join(budgets)} pairs, those of its STS-B example with a "
        "learning rate chosen on development pairs"
    )


def _narrow(rows: Sequence[Comparison]) -> str:
    """Which intervals leave out that test pairs vary, as a part of a sentence; empty if none does."""
    found = [
        budget_title(row.budget).partition(", at")[0].lower()
        for row in rows
        # earlier summaries had them
        if not all(test.get("test_pairs", True) for test in row.tests if test["p_holm"] is not None)
    ]
    budgets = " and ".join(f'"{budget}"' for budget in found)
    return f" (against sentence-transformers with {budgets}, they hold for these test pairs only)" if found else ""


def _limit(tests: Sequence[Mapping[str, Any]]) -> str:
    """A sentence that names the corpus behind most of the variance in every test; empty if no corpus is."""
    largest = [test["largest"] for test in tests if test.get("largest") is not None]
    names = {name for name, _, _ in largest}
    shares = [share for _, _, share in largest]
    if len(largest) < len(tests) or len(names) != 1 or min(shares) <= 1 / 2:
        return ""
    title = ALL_SETS[names.pop()].title.partition(":")[0]
    range_of_shares = " to ".join(dict.fromkeys(f"{share:.0%}" for share in (min(shares), max(shares))))
    differences = ", ".join(shown_difference(test["without_it"]) for test in tests)
    return (
        f" {title} causes {range_of_shares} of the variance of the gains over sentence-transformers; without it, they "
        f"are {differences}."
    )


def _losses(summary: Mapping[str, Any]) -> str:
    """The corpora on which the default is below the untouched encoder, as a part of a sentence; else empty."""
    losses: dict[str, list[str]] = {}
    for budget, found in summary["budgets"].items():
        by_set = {name: found["methods"].get(name, {}).get("by_set", {}) for name in (UNTOUCHED, DEFAULT_METHOD)}
        for name, measured in by_set[DEFAULT_METHOD].items():
            untouched = by_set[UNTOUCHED].get(name)
            if untouched is not None and measured["spearman"] < untouched["spearman"]:
                losses.setdefault(name, []).append(budget_name(budget))
    described = [
        f"{ALL_SETS[name].title.partition(':')[0].lower()} ({' and '.join(budgets)} pairs)"
        for name, budgets in losses.items()
    ]
    return ", ".join(described)


def _trained(found: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields the entries of all sets of a budget, for each method that trains."""
    for name, described in found["methods"].items():
        if METHODS[name].trains:
            yield from described["by_set"].values()
