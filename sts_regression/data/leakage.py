"""Finds, removes and counts training and development pairs that are test pairs.

    sts-regression leakage --train_file sts-train.csv SICK_train.txt --sts_data DATA --leak_filter exact
    sts-regression leakage --matrix sts-train.csv SICK_train.txt --sts_data DATA --leak_filter normalized

The first command shows the pairs that the leak filter would remove before training. The second counts the pairs and
sentences that each file has in common with each test set. A million training pairs pass the filter in seconds; only
the test pairs are kept in memory.
"""

import argparse
import dataclasses
import itertools
import re
import sys
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

from sts_regression.basics.files import check_output
from sts_regression.basics.hub_tokens import CommandParser
from sts_regression.basics.tables import aligned_table, write_json
from sts_regression.data.columns import PairColumns, take_rows, texts_of
from sts_regression.data.pairs import read_pairs
from sts_regression.data.sts_tasks import load_sts_tasks, task_files
from sts_regression.options.data_arguments import LEAK_FILTERS

AUDIT_WITHOUT_FILTER = "normalized"  # how pairs are compared if none are removed
EXAMPLES_KEPT = 3
KEY_FACTOR = np.int64(0x9E3779B97F4A7C15 - 2**64)  # odd, with mixed bits
SYMBOL_MARKS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u20e3]")  # variation selectors, keycaps


class _LettersAndDigits(dict[int, int | None]):
    """A table for `str.translate` that keeps letters, their marks and digits; filled when a character first occurs."""

    def __missing__(self, codepoint: int) -> int | None:
        self[codepoint] = codepoint if unicodedata.category(chr(codepoint))[0] in "LMN" else None
        return self[codepoint]


_LETTERS_AND_DIGITS = _LettersAndDigits()


def fold_text(text: str) -> str:
    """
    The letters and digits of a text, Unicode-normalised (NFKC) and case-folded: tokenisers and typists keep these.

    White space, punctuation and symbols are dropped. A text without letters and digits ("!?") loses only white space,
    and marks that choose the look of a symbol.
    """
    folded = SYMBOL_MARKS.sub("", unicodedata.normalize("NFKC", text).casefold())
    return folded.translate(_LETTERS_AND_DIGITS) or "".join(folded.split())


def text_keys(texts: Iterable[str]) -> np.ndarray:
    """
    A number for each text, of 64 bits, in an array of shape (texts,). Texts that [`fold_text`] makes equal have equal
    numbers; others differ, but for a chance of three in a million among ten million.
    """
    return np.fromiter((hash(fold_text(text)) for text in texts), dtype=np.int64)


def pair_keys(sentences1: Iterable[str], sentences2: Iterable[str]) -> np.ndarray:
    """A number for each pair, equal for pairs whose texts are equal in either order; see [`text_keys`]."""
    first, second = text_keys(sentences1), text_keys(sentences2)
    return np.minimum(first, second) * KEY_FACTOR + np.maximum(first, second)  # overflows, as it should


def _sentences(sentence1: str, sentence2: str) -> tuple[str, str]:
    return sentence1, sentence2


def _folded_sentences(sentence1: str, sentence2: str) -> tuple[str, str]:
    return fold_text(sentence1), fold_text(sentence2)


def _exact_keys(sentence1: str, sentence2: str) -> tuple[Hashable, ...]:
    return ((sentence1, sentence2) if sentence1 <= sentence2 else (sentence2, sentence1),)


def _normalized_keys(sentence1: str, sentence2: str) -> tuple[Hashable, ...]:
    return _exact_keys(*_folded_sentences(sentence1, sentence2))


# Keys of a pair by mode. Two pairs count as the same if they have a key in common.
_KEYS: dict[str, Callable[[str, str], tuple[Hashable, ...]]] = {
    "exact": _exact_keys,
    "normalized": _normalized_keys,
    "sentence": _folded_sentences,
}
# Keys of the two sentences of a pair by mode.
_SENTENCES = {"exact": _sentences, "normalized": _folded_sentences, "sentence": _folded_sentences}


@dataclass(frozen=True)
class LeakCounts:
    """
    The findings of a leak filter in a set of pairs.

    Attributes:
        leak_filter: the mode of the filter.
        pairs: number of pairs before the filter.
        found: number of pairs that occur in any test set.
        removed: number of pairs that were therefore removed.
        by_test_set: number of pairs that occur in each test set; a pair may occur in several.
        examples: the first few findings: each `pair` with the `test_set` and the `test_pair` that it equals.
    """

    leak_filter: str
    pairs: int
    found: int
    removed: int
    by_test_set: dict[str, int]
    examples: list[dict[str, str | list[str]]]


class LeakFilter:
    """
    Finds pairs that occur in test sets.

    Args:
        test_sets: pairs by the name of their set; each a `Dataset` with `sentence1` and `sentence2`.
        mode: "exact" compares unordered pairs of strings (the paper's filter); "normalized" compares their letters and
            digits, see [`fold_text`]; "sentence" finds pairs with one folded sentence in common; "none" compares like
            "normalized" but removes nothing.

    Raises:
        ValueError: for an unknown mode.
    """

    def __init__(self, test_sets: Mapping[str, Dataset], mode: str) -> None:
        if mode not in LEAK_FILTERS:
            raise ValueError(f"`leak_filter` must be one of {', '.join(LEAK_FILTERS)}, but is {mode!r}.")
        self.mode = mode
        self._keys = _KEYS[AUDIT_WITHOUT_FILTER if mode == "none" else mode]
        self._test_names = list(test_sets)
        # For each key, the first pair with it in each test set.
        self._places: dict[Hashable, dict[str, tuple[str, str]]] = {}
        for name, pairs in test_sets.items():
            for sentence1, sentence2 in _sentence_pairs(pairs):
                for key in self._keys(sentence1, sentence2):
                    self._places.setdefault(key, {}).setdefault(name, (sentence1, sentence2))

    def apply(self, pairs: Dataset) -> tuple[Dataset, LeakCounts]:
        """The pairs without those found in a test set (with mode "none", all pairs), and the findings."""
        found: list[int] = []
        by_test_set = dict.fromkeys(self._test_names, 0)
        examples: list[dict[str, str | list[str]]] = []
        for row, (sentence1, sentence2) in enumerate(_sentence_pairs(pairs)):
            places: dict[str, tuple[str, str]] = {}
            for key in self._keys(sentence1, sentence2):
                places.update(self._places.get(key, {}))
            if not places:
                continue
            found.append(row)
            for name in places:
                by_test_set[name] += 1
            if len(examples) < EXAMPLES_KEPT:
                name, test_pair = next(iter(places.items()))
                examples.append({"pair": [sentence1, sentence2], "test_set": name, "test_pair": list(test_pair)})
        removed = 0 if self.mode == "none" else len(found)
        counts = LeakCounts(self.mode, len(pairs), len(found), removed, by_test_set, examples)
        return (take_rows(pairs, np.delete(np.arange(len(pairs)), found)) if removed else pairs), counts


def _sentence_pairs(pairs: Dataset) -> Iterator[tuple[str, str]]:
    return zip(texts_of(pairs, "sentence1"), texts_of(pairs, "sentence2"), strict=True)


def leak_table(counts: Mapping[str, LeakCounts]) -> str:
    """
    A table of the findings, with a line per set of pairs and their sum.

    The columns are the number of pairs, of those found in test sets, of those left, and of those found in each test
    set.

    Args:
        counts: findings of one filter, by the name of the set.
    """
    any_count = next(iter(counts.values()))
    rows = [[f"leak filter: {any_count.leak_filter}", "pairs", "found", "left", *any_count.by_test_set]]
    numbers = [
        [count.pairs, count.found, count.pairs - count.removed, *count.by_test_set.values()]
        for count in counts.values()
    ]
    names = list(counts)
    if len(names) > 1:
        names.append("sum")
        numbers.append([sum(column) for column in zip(*numbers, strict=True)])
    for name, cells in zip(names, numbers, strict=True):
        rows.append([name, *(f"{number:,}" for number in cells)])
    return aligned_table(rows)


def describe_leaks(counts: Mapping[str, Mapping[str, LeakCounts]]) -> dict[str, Any]:
    """The findings as data: the fields of [`LeakCounts`] by split and name of the set."""
    return {split: {name: dataclasses.asdict(count) for name, count in sets.items()} for split, sets in counts.items()}


def leak_matrix(sets: Iterable[tuple[str, Dataset]], test_sets: Mapping[str, Dataset], mode: str) -> dict[str, Any]:
    """
    Counts the pairs and sentences that sets and test sets have in common, in both directions.

    Args:
        sets: names of sets and their pairs; each a `Dataset` with `sentence1` and `sentence2`.
        test_sets: pairs by the name of the test set, in the same form.
        mode: how pairs and sentences are compared, see [`LeakFilter`].

    Returns:
        A `dict` with three entries. `leak_filter` is the mode. `test_sets` holds the number of `pairs` of each test
        set. `sets` holds, for each set, its numbers of `pairs` and of different `sentences`, and `by_test_set`: how
        many of these `pairs` and `sentences` occur in the test set, and how many `test_pairs` have a sentence in
        common with the set.

    Raises:
        ValueError: for an unknown mode.
    """
    leak_filter = LeakFilter(test_sets, mode)
    compared = _SENTENCES[AUDIT_WITHOUT_FILTER if mode == "none" else mode]
    test_pairs = {name: list(itertools.starmap(compared, _sentence_pairs(pairs))) for name, pairs in test_sets.items()}
    test_sentences = {name: set(itertools.chain.from_iterable(pairs)) for name, pairs in test_pairs.items()}
    described = {}
    for name, pairs in sets:
        found = leak_filter.apply(pairs)[1].by_test_set
        sentences = set(itertools.chain.from_iterable(itertools.starmap(compared, _sentence_pairs(pairs))))
        described[name] = {
            "pairs": len(pairs),
            "sentences": len(sentences),
            "by_test_set": {
                test: {
                    "pairs": found[test],
                    "sentences": len(sentences & test_sentences[test]),
                    "test_pairs": sum(not sentences.isdisjoint(pair) for pair in test_pairs[test]),
                }
                for test in test_sets
            },
        }
    sizes = {name: {"pairs": len(pairs)} for name, pairs in test_sets.items()}
    return {"leak_filter": mode, "test_sets": sizes, "sets": described}


def matrix_tables(matrix: Mapping[str, Any]) -> tuple[list[list[str]], list[list[str]]]:
    """
    The cells of two tables of a [`leak_matrix`], with a row per set and a column per test set.

    Returns:
        The first table has the numbers of pairs and distinct sentences of the set that occur in the test set. The
        second has the share of the test set's pairs with a sentence in common with the set, in percent; "0" if there
        are none.
    """
    tests = matrix["test_sets"]
    found, shares = [["set", "pairs / sentences", *tests]], [["set", *tests]]
    for name, described in matrix["sets"].items():
        counts = described["by_test_set"]
        cells = [described, *counts.values()]
        found.append([name, *(f"{count['pairs']:,} / {count['sentences']:,}" for count in cells)])
        shared = {test: counts[test]["test_pairs"] / tests[test]["pairs"] for test in tests}
        shares.append([name, *(f"{100 * share:.1f}" if share else "0" for share in shared.values())])
    return found, shares


def main(argv: list[str] | None = None) -> None:
    """Runs the audit from the command line."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        _check_arguments(args)
        if args.output_file is not None:
            inputs = [*args.train_file, *args.validation_file, *args.matrix, *args.test_file]
            inputs += task_files(args.sts_data)
            check_output("output_file", args.output_file, inputs, None if args.overwrite else "--overwrite")
        tasks = load_sts_tasks(args.sts_data, args.sick_split, args.stsb_version) if args.sts_data else []
        test_sets = {task.name: task.pairs for task in tasks} | dict(_read_sets(args.test_file, args))
        record, text = (_matrix if args.matrix else _audit)(args, test_sets)
        sys.stdout.write(f"{text}\n")
        if args.output_file is not None:
            write_json(record, args.output_file)
    except (ValueError, OSError) as error:
        parser.end(error)


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="sts-regression leakage",
        description="Finds training and development pairs that are test pairs.",
    )
    parser.add_argument("--train_file", nargs="+", default=[], help="files of training pairs")
    parser.add_argument("--validation_file", nargs="+", default=[], help="files of development pairs")
    parser.add_argument(
        "--matrix",
        nargs="+",
        default=[],
        metavar="FILE",
        help="files of pairs of any kind, in place of the two options above: counts their pairs and sentences in each "
        "test set, and the test pairs that have a sentence in common with them",
    )
    parser.add_argument("--test_file", nargs="+", default=[], help="files of test pairs")
    parser.add_argument("--sentence1_column", help="column of the first text in every file; default: guessed")
    parser.add_argument("--sentence2_column", help="column of the second text in every file; default: guessed")
    parser.add_argument("--sts_data", help="folder of the seven STS tasks, or hub: their test pairs")
    parser.add_argument("--sick_split", default="test", help="test (default), or all for MTEB's 9,927 pairs")
    parser.add_argument("--stsb_version", type=int, default=1, help="1 (default), or 2 for MTEB's 1,362 pairs")
    parser.add_argument("--leak_filter", default="normalized", choices=LEAK_FILTERS, help="default: normalized")
    parser.add_argument("--output_file", type=Path, help="where to write the counts and examples as JSON")
    parser.add_argument("--overwrite", action="store_true", help="replace the output file if there is one")
    return parser


def _check_arguments(args: argparse.Namespace) -> None:
    """Refuses options that contradict each other, before anything is read."""
    audited = [*args.train_file, *args.validation_file]
    if args.matrix and audited:
        raise ValueError(
            f"`matrix` takes files of training and development pairs, too. Name {audited[0]!r} with `--matrix`, or "
            "leave one of the two out."
        )
    if not (args.matrix or audited) or not (args.sts_data or args.test_file):
        raise ValueError(
            "nothing to compare. Give `--train_file`, `--validation_file` or `--matrix`, and `--sts_data` or "
            "`--test_file`."
        )


def _read_sets(files: Sequence[str], args: argparse.Namespace) -> Iterator[tuple[str, Dataset]]:
    columns = PairColumns(args.sentence1_column, args.sentence2_column)
    return ((file, read_pairs(file, columns, labelled=False).pairs) for file in files)


def _audit(args: argparse.Namespace, test_sets: Mapping[str, Dataset]) -> tuple[dict[str, Any], str]:
    leak_filter = LeakFilter(test_sets, args.leak_filter)
    counts = {
        split: {name: leak_filter.apply(pairs)[1] for name, pairs in _read_sets(files, args)}
        for split, files in (("train", args.train_file), ("validation", args.validation_file))
        if files
    }
    texts = [leak_table(sets) for sets in counts.values()]
    for sets in counts.values():
        for name, count in sets.items():
            texts += [
                f"{name}: {example['pair']}\n  is in {example['test_set']}: {example['test_pair']}"
                for example in count.examples
            ]
    return describe_leaks(counts), "\n\n".join(texts)


def _matrix(args: argparse.Namespace, test_sets: Mapping[str, Dataset]) -> tuple[dict[str, Any], str]:
    matrix = leak_matrix(_read_sets(args.matrix, args), test_sets, args.leak_filter)
    found, shares = map(aligned_table, matrix_tables(matrix))
    return matrix, (
        f"Pairs / distinct sentences of each set, and how many of them each test set holds ({args.leak_filter})\n"
        f"{found}\n\nTest pairs that have a sentence in common with the set, in percent ({args.leak_filter})\n{shares}"
    )


if __name__ == "__main__":
    main()
