"""Splits by text: no text on two sides, sizes as asked for, and pairs that all share texts."""

import numpy as np
import pytest

from sts_regression.data.text_splits import group_by_text, groups_to_resample, split_groups
from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.verdict import judge

SHARES = {"train": 0.6, "validation": 0.15, "test": 0.25}


def pairs_of_queries(num_queries: int, candidates: int) -> tuple[list[str], list[str]]:
    """Queries with candidates of their own."""
    first = [f"query {query}" for query in range(num_queries) for _ in range(candidates)]
    second = [f"text {query} {number}" for query in range(num_queries) for number in range(candidates)]
    return first, second


def test_pairs_that_share_a_text_through_others_form_a_group() -> None:
    groups = group_by_text(["a", "b", "x", "y"], ["B!", "c", "y", "z"])
    assert groups.group_of_pair.tolist() == [0, 0, 1, 1]
    assert groups.side is None


def test_no_text_stands_in_two_parts() -> None:
    first, second = pairs_of_queries(100, 7)
    groups = group_by_text(first, second)
    parts = split_groups(groups.group_of_pair, SHARES, seed=3)
    texts = [{first[row] for row in rows} | {second[row] for row in rows} for rows in parts.values()]
    assert all(not a & b for number, a in enumerate(texts) for b in texts[:number])
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(700))


@pytest.mark.parametrize("seed", range(5))
def test_parts_have_their_shares_to_within_a_group(seed: int) -> None:
    first, second = pairs_of_queries(100, 7)
    groups = group_by_text(first, second).group_of_pair
    sizes = {name: len(rows) for name, rows in split_groups(groups, SHARES, seed).items()}
    assert all(abs(sizes[name] - 700 * share) <= 7 for name, share in SHARES.items())


@pytest.mark.parametrize(
    ("shares", "largest", "most"),
    [
        ([0.8, 0.2], [450], 0),
        ([0.8, 0.2], [300, 260], 0),
        ([0.8, 0.2], [240, 240, 240], 60),
        ([0.6, 0.15, 0.25], [450], 0),
        ([0.25, 0.25, 0.25, 0.25], [450], 200),
    ],
)
def test_large_groups_go_to_large_parts(shares: list[float], largest: list[int], most: float) -> None:
    sizes = [*largest, *[1] * (1000 - sum(largest))]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    for seed in range(20):
        parts = split_groups(groups, dict(zip("abcd", shares, strict=False)), seed).values()
        assert max(len(rows) - 1000 * share for rows, share in zip(parts, shares, strict=True)) <= most


def test_a_division_with_room_for_all_groups_stays_as_it_was() -> None:
    groups = np.repeat(np.arange(12), np.arange(1, 13))
    assert split_groups(groups, SHARES, 1)["validation"].tolist() == [*range(3, 10), *range(15, 21)]


def test_another_seed_gives_another_split() -> None:
    groups = np.arange(50)
    first, second = (split_groups(groups, SHARES, seed)["test"].tolist() for seed in (1, 2))
    assert first != second
    assert first == split_groups(groups, SHARES, 1)["test"].tolist()


def test_one_giant_component_is_divided_by_the_side_whose_texts_repeat_less() -> None:
    # A ring of 20 texts, and second texts that chain all of them together.
    first = [f"query {number}" for number in range(20)]
    second = [f"query {(number + 1) % 20}" for number in range(20)]
    groups = group_by_text(first, second)
    assert groups.side in (1, 2)
    assert len(set(groups.group_of_pair.tolist())) == 20


def test_one_query_for_all_pairs_is_divided_by_the_texts_of_the_other_side() -> None:
    groups = group_by_text(["query"] * 10, [f"text {number // 2}" for number in range(10)])
    assert groups.side == 2
    assert len(set(groups.group_of_pair.tolist())) == 5


def test_a_pair_in_the_other_order_is_in_the_same_group() -> None:
    first = [f"query {number // 5}" for number in range(100)]
    second = [f"text {number % 5}" for number in range(100)]  # connects everything
    groups = group_by_text([*first, "text 3"], [*second, "query 7"])
    assert groups.side is not None
    assert groups.group_of_pair[-1] == groups.group_of_pair[38]  # query 7 with text 3


def test_queries_that_share_candidates_are_the_observations() -> None:
    queries = [f"query {number % 4}" for number in range(40)]
    candidates = [f"text {number % 9}" for number in range(40)]
    assert group_by_text(queries, candidates).side == 2
    groups = groups_to_resample(queries, candidates)
    assert groups.tolist() == [number % 4 for number in range(40)]
    assert groups_to_resample(candidates, queries).tolist() == groups.tolist()


@pytest.mark.parametrize("side", [1, 2])
def test_queries_that_share_candidates_are_kept_apart(side: int) -> None:
    queries = [f"query {number // 10}" for number in range(400)]
    candidates = [f"text {number * 7 % 151}" for number in range(400)]  # fewer pairs of each, for finer splits
    groups = group_by_text(*((queries, candidates) if side == 1 else (candidates, queries)))
    assert groups.side == side
    assert groups.group_of_pair.tolist() == [number // 10 for number in range(400)]


def test_observations_are_components_if_few_pairs_are_connected() -> None:
    assert groups_to_resample(["a", "b", "x", "y"], ["B!", "c", "z", "v"]).tolist() == [0, 0, 1, 2]


def test_the_pairs_of_a_single_query_are_observed_by_their_candidates() -> None:
    assert groups_to_resample(["query"] * 4, ["a", "b", "a", "c"]).tolist() == [0, 1, 0, 2]


def test_queries_that_err_together_widen_the_interval() -> None:
    generator = np.random.default_rng(0)
    queries = np.repeat(np.arange(12), 20)
    candidates = np.concatenate([generator.choice(60, 20, replace=False) for _ in range(12)])
    groups = groups_to_resample(*(list(map(str, side)) for side in (queries + 1000, candidates)))
    false = 0
    for _ in range(40):
        gold = generator.integers(0, 3, len(queries)).astype(float)
        before, after = (
            PairScores(
                None, gold + 0.7 * generator.normal(size=12)[queries] + 0.7 * generator.normal(size=len(queries))
            )
            for _ in range(2)
        )
        verdict = judge(before, after, gold, None, groups)
        assert verdict is not None
        false += not verdict.low <= 0 <= verdict.high
    assert false <= 6
