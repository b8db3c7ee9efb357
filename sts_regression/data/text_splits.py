"""Splits of graded pairs that share no text: a model must not be judged on texts that it was trained on.

A text often occurs in many pairs: a query with its candidates, or a reference answer with answers of students. Pairs
that share a text, directly or through other pairs, form a group, and a group is never divided.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sts_regression.data.columns import numbers_of, take_rows, texts_of
from sts_regression.data.leakage import text_keys
from sts_regression.data.pairs import PairSet

MIN_HELD_OUT_PAIRS = 5  # a correlation on fewer pairs means nothing
HELD_OUT_PAIRS_FOR_GRADES = 200
MOST_HELD_OUT_PAIRS = 5_000  # enough to choose and to grade by; more take long to score
FEWEST_TEXT_GROUPS = 5
MOST_DIVISIONS = 20  # of the same pairs, until the labels of each part differ
ONE_BY_ONE = "one by one, since too few texts differ to keep them apart: texts may occur on both sides"
LARGEST_GROUP_SHARE = 0.5  # of all pairs; with a larger group, only the texts of one side form groups
MIN_CANDIDATES = 5  # candidates of the median query
FEWEST_QUERIES = 25  # a fifth of them, held out, still are several


@dataclass(frozen=True)
class TextGroups:
    """
    Groups of pairs that share texts.

    Attributes:
        group_of_pair: number of the group of each pair, shape (pairs,).
        side: 1 or 2 if pairs are grouped by the texts of that side only, because most pairs are connected; a text of
            the other side may then occur in several groups. `None` if no text occurs in two groups.
    """

    group_of_pair: np.ndarray
    side: int | None = None

    @property
    def how(self) -> str:
        """How pairs are divided: the end of a sentence for users."""
        if self.side is None:
            return "by text"
        return (
            f"by text; most pairs are connected by shared texts, so only texts of sentence{self.side} are kept apart"
        )


def group_by_text(sentences1: Iterable[str], sentences2: Iterable[str]) -> TextGroups:
    """
    Groups pairs by their texts, compared by letters and digits (see [`fold_text`]).

    If most pairs are connected, the texts of one side form groups: of the side with queries that share candidates,
    since a model meets new queries; or else of the side that gives the finer splits.

    Args:
        sentences1: first text of each pair.
        sentences2: second text of each pair.
    """
    first, second, components = _connect(sentences1, sentences2)
    if _largest_share(components) <= LARGEST_GROUP_SHARE:
        return TextGroups(np.unique(components, return_inverse=True)[1])
    sides = {1: first, 2: second}
    sides = {number: texts for number, texts in sides.items() if _are_queries(texts)} or sides
    side = min(sides, key=lambda number: _largest_share(sides[number]))
    groups = sides[side]
    # Pairs of the same two texts in the other order are the same pairs.
    _, pair = np.unique(np.sort([first, second], axis=0), axis=1, return_inverse=True)
    merged = _components(groups, pair.ravel())
    if _largest_share(merged) <= LARGEST_GROUP_SHARE:
        groups = merged
    return TextGroups(np.unique(groups, return_inverse=True)[1], side)


def groups_to_resample(sentences1: Iterable[str], sentences2: Iterable[str]) -> np.ndarray:
    """
    The group of each pair, shape (pairs,), for statistics in which pairs that share a text count as one observation.

    As [`group_by_text`], except if most pairs are connected: the texts of the side with fewer different texts then
    form groups, such as queries that share candidates. With few queries, [`group_by_text`] takes the other side.

    Args:
        sentences1: first text of each pair.
        sentences2: second text of each pair.
    """
    first, second, components = _connect(sentences1, sentences2)
    groups = components
    if _largest_share(components) > LARGEST_GROUP_SHARE:
        fewer, more = sorted((first, second), key=lambda side: len(np.unique(side)))
        groups = fewer if np.ptp(fewer) > 0 else more
    return np.unique(groups, return_inverse=True)[1]


def _connect(sentences1: Iterable[str], sentences2: Iterable[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each pair, the numbers of its two texts, and that of its connected component."""
    keys = np.concatenate([text_keys(sentences1), text_keys(sentences2)])
    order = keys.argsort(kind="stable")
    keys = keys[order]
    is_first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    # A text has the number of its first place: keys differ between processes, places do not.
    numbers = np.empty(len(keys), dtype=np.int32)
    numbers[order] = order[is_first].astype(np.int32)[np.cumsum(is_first, dtype=np.int32) - 1]
    first, second = numbers.reshape(2, -1)
    return first, second, _components(first, second, are_same_kind=True)


def _components(first: np.ndarray, second: np.ndarray, are_same_kind: bool = False) -> np.ndarray:
    """The connected component of each edge between nodes of one kind, or of two kinds with numbers of their own."""
    offset = 0 if are_same_kind else int(first.max(initial=0)) + 1
    size = max(int(first.max(initial=0)), int(second.max(initial=0)) + offset) + 1
    links = coo_array((np.ones(len(first), dtype=bool), (first, second + offset)), shape=(size, size))
    return connected_components(links, directed=False)[1][first]


def _are_queries(numbers: np.ndarray) -> bool:
    """Whether the texts with these numbers are queries with many candidates, and enough of them to hold some out."""
    counts = np.unique(numbers, return_counts=True)[1]
    return len(counts) >= FEWEST_QUERIES and bool(np.median(counts) >= MIN_CANDIDATES)


def _largest_share(groups: np.ndarray) -> float:
    return float(np.bincount(groups).max() / len(groups)) if len(groups) else 0.0


def split_groups(
    group_of_pair: np.ndarray, shares: Mapping[str, float], seed: int | Sequence[int]
) -> dict[str, np.ndarray]:
    """
    Divides pairs into parts of given shares; the pairs of a group stay together.

    Args:
        group_of_pair: see [`TextGroups`].
        shares: the share of each part, by its name; they add up to 1. A part's size differs from it by at most one
            group.
        seed: decides which groups go to which part.

    Returns:
        The rows of each part, ascending, by its name.
    """
    sizes = np.bincount(group_of_pair)
    targets = [share * len(group_of_pair) for share in shares.values()]
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(sizes))
    is_large = sizes[order] > min(targets)
    part_of_group, had_room = _fill(order, sizes, targets, generator)
    if not had_room[is_large].all():  # as long as the parts are empty, the larger ones have
        large_first = np.concatenate([order[is_large], order[~is_large]])
        part_of_group, _ = _fill(large_first, sizes, targets, generator)
    part_of_pair = part_of_group[group_of_pair]
    return {name: np.flatnonzero(part_of_pair == number) for number, name in enumerate(shares)}


def _fill(
    order: np.ndarray, sizes: np.ndarray, targets: Sequence[float], generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """
    Puts groups into parts, at random among those with room for the group, or else where most is missing.

    Returns:
        The number of each group's part, and, in the order of filling, whether a part had room; shape (groups,) each.
    """
    missing = list(targets)
    part_of_group, had_room = np.empty(len(sizes), dtype=np.int64), np.ones(len(sizes), dtype=bool)
    # With millions of groups, arithmetic on arrays is too slow, and lists would fill the memory.
    for place, (group, size) in enumerate(zip(order.data, sizes[order].data, strict=True)):
        fits = list(accumulate(room if room >= size else 0.0 for room in missing))
        if fits[-1]:
            part = bisect_right(fits, generator.random() * fits[-1])
        else:
            had_room[place] = False
            wanted = missing if size > min(targets) else [a / b for a, b in zip(missing, targets, strict=True)]
            part = wanted.index(max(wanted))
        part_of_group[group] = part
        missing[part] -= size
    return part_of_group, had_room


def names_of(parts: Sequence[PairSet]) -> str:
    """The names of several sets."""
    return " + ".join(part.name for part in parts)


def labels_of(parts: Sequence[PairSet]) -> np.ndarray:
    """The labels of all pairs of several sets, shape (pairs,)."""
    return np.concatenate([numbers_of(part.pairs, "label") for part in parts])


def labels_differ(rows: Iterable[np.ndarray], labels: np.ndarray) -> bool:
    """Whether each group of rows has two different labels at least."""
    return all(len(own) and np.ptp(labels[own]) > 0 for own in rows)


def hold_out(parts: Sequence[PairSet], percentage: int | None, seed: int) -> tuple[dict[str, list[PairSet]], str]:
    """
    Holds out some of the training pairs for development. The two parts share no text, if possible.

    Args:
        parts: the training pairs.
        percentage: the percentage to hold out; `None` for a tenth, or more of few pairs.
        seed: decides which pairs are held out.

    Returns:
        The sets of `train` and `validation`, and how the pairs were chosen.

    Raises:
        ValueError: if there are too few pairs, and if all labels of the held-out pairs would be equal.
    """
    num_pairs = sum(len(part.pairs) for part in parts)
    num_held_out = _num_held_out(num_pairs) if percentage is None else percentage / 100 * num_pairs
    if num_held_out < MIN_HELD_OUT_PAIRS:
        fewest = 2 * MIN_HELD_OUT_PAIRS if percentage is None else math.ceil(100 * MIN_HELD_OUT_PAIRS / percentage)
        could_raise = percentage is not None and num_pairs > MIN_HELD_OUT_PAIRS
        larger = ", a higher `--validation_split_percentage`" if could_raise else ""
        raise ValueError(
            f"{names_of(parts)}: {num_pairs:,} pairs are too few to hold out {MIN_HELD_OUT_PAIRS} of them for "
            f"development. Give at least {fewest:,} pairs{larger}, or development pairs with `--validation_file`."
        )
    share = num_held_out / num_pairs
    rows, how = _rows_by_text(parts, {"train": 1 - share, "validation": share}, seed)
    labels = labels_of(parts)
    for split, title in (("validation", "held-out"), ("train", "training")):
        own = rows[split]
        if np.ptp(labels) > 0 and len(own) > 1 and not labels_differ([own], labels):
            raise ValueError(
                f"{names_of(parts)}: other labels than {labels[own[0]]:g} are so rare that the {len(own):,} {title} "
                "pairs have none. Give another `--validation_split_percentage` or `--seed`, or development pairs with "
                "`--validation_file`."
            )
    return {"train": _chosen(parts, rows["train"]), "validation": _held_out(parts, rows["validation"])}, how


def _rows_by_text(
    parts: Sequence[PairSet], shares: Mapping[str, float], seed: int, keeps_texts_apart: bool = False
) -> tuple[dict[str, np.ndarray], str]:
    """
    The rows of each share of the pairs of all parts, and how they were chosen. Two shares have no text in common.

    If all labels of a share would be equal, pairs are divided again, up to twenty times. They are divided one by one
    if there are fewer than five groups of texts, or if some share always has one label; with `keeps_texts_apart`, only
    if there are fewer groups than shares.
    """
    first, second = (_texts(parts, column) for column in ("sentence1", "sentence2"))
    groups, labels = group_by_text(first, second), labels_of(parts)
    fewest = len(shares) if keeps_texts_apart else FEWEST_TEXT_GROUPS
    has_groups = len(np.unique(groups.group_of_pair)) >= fewest
    ways = [(groups.group_of_pair, groups.how)] if has_groups else []
    if not (has_groups and keeps_texts_apart):
        ways.append((np.arange(len(labels)), ONE_BY_ONE))
    for units, how in ways:
        for draw in range(MOST_DIVISIONS):
            rows = split_groups(units, shares, [seed, draw] if draw else seed)
            if labels_differ(rows.values(), labels) or np.ptp(labels) == 0:
                return rows, how
    return rows, how


def _texts(parts: Sequence[PairSet], column: str) -> Iterator[str]:
    return chain.from_iterable(texts_of(part.pairs, column) for part in parts)


def _chosen(parts: Sequence[PairSet], rows: np.ndarray) -> list[PairSet]:
    """The parts with the chosen rows, counted through all parts; parts without chosen rows are left out."""
    ends = np.cumsum([len(part.pairs) for part in parts])
    chosen = []
    for part, end in zip(parts, ends, strict=True):
        first = end - len(part.pairs)
        own = rows[(rows >= first) & (rows < end)] - first
        if len(own):
            chosen.append(replace(part, pairs=take_rows(part.pairs, own)))
    return chosen


def _held_out(parts: Sequence[PairSet], rows: np.ndarray) -> list[PairSet]:
    """As [`_chosen`], with the shares in the names. Notes are reported once, with the training pairs."""
    sizes = {part.name: len(part.pairs) for part in parts}
    return [
        replace(part, name=f"{_share(len(part.pairs) / sizes[part.name])} of {part.name}", notes=(), weight=1.0)
        for part in _chosen(parts, rows)
    ]


def _share(share: float) -> str:
    return f"{100 * share:.0f} %" if share > 0.01 else f"{100 * share:.1g} %"


def divide_into_folds(
    parts: Sequence[PairSet], num_folds: int, fold: int | None, seed: int
) -> tuple[dict[str, list[PairSet]], tuple[np.ndarray, ...], str]:
    """
    The training pairs without a fold, which becomes `validation`; or all of them, which are both.

    Args:
        parts: the training pairs.
        num_folds: number of folds.
        fold: the fold to leave out, from 1; `None` for all pairs.
        seed: decides which pairs belong to which fold.

    Returns:
        The sets of `train` and `validation`, the rows of each fold, and how they were chosen.

    Raises:
        ValueError: if all labels of a fold are equal.
    """
    shares = {f"{number}": 1 / num_folds for number in range(num_folds)}
    by_number, how = _rows_by_text(parts, shares, seed, keeps_texts_apart=True)
    rows, labels = tuple(by_number.values()), labels_of(parts)
    if not labels_differ(rows, labels):
        raise ValueError(
            f"`folds` is {num_folds}, but then all labels in a fold of the {len(labels):,} pairs of {names_of(parts)} "
            "are equal. Lower it, or give another `--seed`."
        )
    if fold is None:
        named = [replace(part, name=f"{num_folds} folds of {part.name}", notes=(), weight=1.0) for part in parts]
        return {"train": list(parts), "validation": named}, rows, how
    others = np.sort(np.concatenate([own for number, own in enumerate(rows, start=1) if number != fold]))
    return {"train": _chosen(parts, others), "validation": _held_out(parts, rows[fold - 1])}, rows, how


def _num_held_out(num_pairs: int) -> int:
    """A tenth of the pairs, at most 5,000; up to a fifth of few pairs, which are also needed to learn grades."""
    if num_pairs < 2 * MIN_HELD_OUT_PAIRS:
        return 0
    few = min(HELD_OUT_PAIRS_FOR_GRADES, num_pairs // 5)
    return max(MIN_HELD_OUT_PAIRS, few, min(MOST_HELD_OUT_PAIRS, num_pairs // 10))
