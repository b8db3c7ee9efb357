"""Splits of graded pairs that share no text: a model must not be judged on texts that it was trained on.

A text often occurs in many pairs: a query with its candidates, or a reference answer with answers of students. Pairs
that share a text, directly or through other pairs, form a group, and a group is never divided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sts_regression.data.leakage import fold_text

LARGEST_GROUP_SHARE = 0.5  # of all pairs; with a larger group, only the texts of one side form groups


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
    def remark(self) -> str:
        """The end of a sentence that tells users about groups of one side; empty if both sides form groups."""
        if self.side is None:
            return ""
        return f"; most pairs are connected by shared texts, so only texts of sentence{self.side} are kept apart"


def group_by_text(sentences1: Sequence[str], sentences2: Sequence[str]) -> TextGroups:
    """
    Groups pairs by their texts, compared by letters and digits (see [`fold_text`]).

    Args:
        sentences1: first text of each pair.
        sentences2: second text of each pair.
    """
    number_of_text: dict[str, int] = {}
    first, second = (
        np.array([number_of_text.setdefault(fold_text(text), len(number_of_text)) for text in side], dtype=np.int64)
        for side in (sentences1, sentences2)
    )
    links = coo_array((np.ones(len(first), dtype=bool), (first, second)), shape=(len(number_of_text),) * 2)
    _, component_of_text = connected_components(links, directed=False)
    components = component_of_text[first]
    if _largest_share(components) <= LARGEST_GROUP_SHARE:
        return TextGroups(np.unique(components, return_inverse=True)[1])
    sides = {1: first, 2: second}
    side = min(sides, key=lambda number: _largest_share(sides[number]))
    return TextGroups(np.unique(sides[side], return_inverse=True)[1], side)


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
    names, targets = list(shares), np.array(list(shares.values())) * len(group_of_pair)
    part_of_group = np.empty(len(sizes), dtype=np.int64)
    missing = targets.copy()
    for group in generator.permutation(len(sizes)):
        fits = np.where(missing >= sizes[group], missing, 0)
        if fits.any():
            part = int(generator.choice(len(names), p=fits / fits.sum()))
        else:
            part = int((missing / targets).argmax())
        part_of_group[group] = part
        missing[part] -= sizes[group]
    part_of_pair = part_of_group[group_of_pair]
    return {name: np.flatnonzero(part_of_pair == number) for number, name in enumerate(names)}
