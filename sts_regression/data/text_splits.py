"""Splits of graded pairs that share no text: a model must not be judged on texts that it was trained on.

A text often occurs in many pairs: a query with its candidates, or a reference answer with answers of students. Pairs
that share a text, directly or through other pairs, form a group, and a group is never divided.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sts_regression.data.leakage import text_keys

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


def split_groups(group_of_pair: np.ndarray, shares: Mapping[str, float], seed: int) -> dict[str, np.ndarray]:
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
    generator = np.random.default_rng(seed)
    sizes = np.bincount(group_of_pair)
    targets = [share * len(group_of_pair) for share in shares.values()]
    missing = targets.copy()
    part_of_group = np.empty(len(sizes), dtype=np.int64)
    order = generator.permutation(len(sizes))
    # With millions of groups, arithmetic on arrays is too slow, and lists would fill the memory.
    for group, size in zip(order.data, sizes[order].data, strict=True):
        fits = list(accumulate(room if room >= size else 0.0 for room in missing))
        if fits[-1]:
            part = bisect_right(fits, generator.random() * fits[-1])
        else:
            part = max(range(len(missing)), key=lambda number: missing[number] / targets[number])
        part_of_group[group] = part
        missing[part] -= size
    part_of_pair = part_of_group[group_of_pair]
    return {name: np.flatnonzero(part_of_pair == number) for number, name in enumerate(shares)}
