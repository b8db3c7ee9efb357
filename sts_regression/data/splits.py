"""Gathering training, development and test pairs: on one label scale, and no test pairs among those to learn from."""

import dataclasses
import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset, concatenate_datasets

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data.columns import PairColumns
from sts_regression.data.labels import LabelScale
from sts_regression.data.leakage import LeakCounts, LeakFilter, leak_table
from sts_regression.data.pairs import PairSet, check_texts_differ
from sts_regression.data.scales import check_labels_differ, given_scale, onto_one_scale, with_labels
from sts_regression.data.sources import read_sets
from sts_regression.data.sts_tasks import STSTask
from sts_regression.data.text_splits import TextGroups, group_by_text, split_groups
from sts_regression.options import DataArguments

logger = logging.getLogger(__name__)

MIN_HELD_OUT_PAIRS = 5  # a correlation of fewer pairs says nothing
HELD_OUT_PAIRS_FOR_GRADES = 200
FEWEST_TEXT_GROUPS = 5
UNLABELLED_LOSSES = ("info_nce",)  # which take every training pair for a positive
POSITIVE_SHARE = 0.8  # of the scale: the paper's 4.0 on 0 to 5
LEAK_FILTER_OPTIONS = {"train": ("leak_filter", "training"), "validation": ("dev_leak_filter", "development")}


@dataclass
class Splits:
    """
    Pairs by the names `train`, `validation`, `test`, as far as given.

    Attributes:
        pairs: of each split, with labels on the label scale.
        scale: the label scale; `None` where no pairs were read.
        sets: what each split was put together from.
        set_of_pair: by split, for each pair the number of its set in `sets`, shape (pairs,).
        leaks: what the leak filters found in `train` and `validation`, by the name of the set; empty where there are
            no test pairs.
    """

    pairs: dict[str, Dataset]
    scale: LabelScale | None
    sets: dict[str, list[PairSet]]
    set_of_pair: dict[str, np.ndarray]
    leaks: dict[str, dict[str, LeakCounts]]

    @property
    def scored(self) -> list[str]:
        """The names of the splits that are scored, the test split last."""
        return [name for name in ("validation", "test") if name in self.pairs]

    @property
    def sources(self) -> dict[str, str]:
        """Where the pairs of each split come from, in words."""
        return {split: _names(parts) for split, parts in self.sets.items()}

    def config_overrides(self) -> dict[str, Any]:
        """The label scale as options of the model's configuration; none where no pairs were read."""
        if self.scale is None:
            return {}
        names = None if self.scale.names is None else list(self.scale.names)
        return {"label_values": list(self.scale.values), "label_names": names}


def load_splits(
    data_args: DataArguments,
    columns: PairColumns,
    checkpoint_config: STSRegressionConfig | None,
    *,
    do_train: bool = True,
    do_eval: bool = True,
    seed: int = 42,
    sts_tasks: Sequence[STSTask] = (),
    loss_type: str = "smooth_k2",
    given: Mapping[str, Dataset] | None = None,
) -> Splits:
    """
    Reads every split that is needed, of the data that the options name or of the bundled pairs.

    Labels are mapped from the scale of their source onto one scale, see [`onto_one_scale`]. Pairs that the leak
    filters find among the test pairs are left out.

    Args:
        data_args: which data.
        columns: column names, where the guess would be wrong.
        checkpoint_config: of the model to continue with or to evaluate, if it knows a label scale. Options overrule
            it.
        do_train: whether training pairs are needed.
        do_eval: whether development and test pairs are needed.
        seed: decides which training pairs become development pairs if no file holds any, and which are repeated for a
            fractional weight.
        sts_tasks: their pairs are test pairs, too.
        loss_type: of the model; "info_nce" trains on positives only.
        given: pairs at hand, by split, in place of those that the options name.

    Raises:
        ValueError: for anything wrong with the pairs; see [`read_pairs`].
    """
    sets = read_sets(data_args, columns, given_scale(data_args, checkpoint_config), do_train, do_eval, given)
    for pair_set in _flat(sets):
        check_labels_differ(pair_set.pairs, pair_set.name)
        if pair_set.num_unlabelled:
            logger.info(f"{pair_set.name}: {pair_set.num_unlabelled:,} pairs without a label are left out")
    if not sets:
        return Splits({}, None, {}, {}, {})
    scale, sets = onto_one_scale(sets, data_args, checkpoint_config, do_train)
    for pair_set in _flat(sets):
        check_texts_differ(pair_set.pairs, pair_set.name)

    test_sets = {task.name: task.pairs for task in sts_tasks} | {
        part.name: part.pairs for part in sets.get("test", [])
    }
    leaks = {}
    for split, mode in (("train", data_args.leak_filter), ("validation", data_args.dev_leak_filter)):
        if split == "validation" and "train" in sets and "validation" not in sets:
            sets |= _hold_out(sets["train"], data_args.validation_split_percentage, seed)
        if split in sets and test_sets:
            sets[split], leaks[split] = _without_leaks(sets[split], LeakFilter(test_sets, mode), split)
    if "train" in sets and loss_type == "info_nce":
        sets["train"] = _positives(sets["train"], scale, data_args.positive_threshold)
    if data_args.truncate_labels and "train" in sets:
        sets["train"] = [with_labels(part, np.trunc(part.pairs[:]["label"])) for part in sets["train"]]

    pairs, set_of_pair = {}, {}
    for split, parts in sets.items():
        weights = data_args.train_weights if split == "train" else None
        limit = data_args.max_train_samples if split == "train" else data_args.max_eval_samples
        drawn = _drawn(parts, weights, limit, seed)
        pairs[split] = concatenate_datasets(drawn)
        set_of_pair[split] = np.repeat(np.arange(len(drawn)), [len(part) for part in drawn])
        if split != "train" or loss_type not in UNLABELLED_LOSSES:
            check_labels_differ(pairs[split], _names(parts))
    return Splits(pairs, scale, sets, set_of_pair, leaks)


def _flat(sets: Mapping[str, Sequence[PairSet]]) -> Iterator[PairSet]:
    return itertools.chain.from_iterable(sets.values())


def _names(parts: Sequence[PairSet]) -> str:
    return " + ".join(part.name for part in parts)


def _without_leaks(
    parts: Sequence[PairSet], leak_filter: LeakFilter, split: str
) -> tuple[list[PairSet], dict[str, LeakCounts]]:
    clean, counts = [], {}
    for part in parts:
        pairs, count = leak_filter.apply(part.pairs)
        counts[part.name] = count
        clean.append(dataclasses.replace(part, pairs=pairs))
    if any(count.found for count in counts.values()):
        option, title = LEAK_FILTER_OPTIONS[split]
        remedy = f"kept; `--{option} normalized` leaves them out" if leak_filter.mode == "none" else "left out"
        logger.info(f"\n{title} pairs that are test pairs, {remedy}\n{leak_table(counts)}\n")
    if not any(len(part.pairs) for part in clean):
        option, _ = LEAK_FILTER_OPTIONS[split]
        raise ValueError(f"{_names(parts)}: every pair is a test pair. Give other pairs, or another `--{option}`.")
    return clean, counts


def _hold_out(parts: Sequence[PairSet], percentage: int | None, seed: int) -> dict[str, list[PairSet]]:
    """
    Training pairs, and the part of them that is held out for development; no text stands in both if that can be.

    Raises:
        ValueError: if the pairs are too few.
    """
    num_pairs = sum(len(part.pairs) for part in parts)
    num_held_out = _num_held_out(num_pairs) if percentage is None else percentage / 100 * num_pairs
    if num_held_out < MIN_HELD_OUT_PAIRS:
        raise ValueError(
            f"{_names(parts)}: {num_pairs:,} pairs are too few to hold out {MIN_HELD_OUT_PAIRS} of them for "
            "development. Give development pairs with `--validation_file`, or raise `--validation_split_percentage`."
        )
    sides = ([text for part in parts for text in part.pairs[:][name]] for name in ("sentence1", "sentence2"))
    groups = group_by_text(*sides)
    share, labels = num_held_out / num_pairs, np.concatenate([part.pairs[:]["label"] for part in parts])
    shares = {"train": 1 - share, "validation": share}
    rows = split_groups(groups.group_of_pair, shares, seed)
    is_usable = all(len(own) and np.ptp(labels[own]) > 0 for own in rows.values())
    if len(np.unique(groups.group_of_pair)) < FEWEST_TEXT_GROUPS or (not is_usable and np.ptp(labels) > 0):
        groups = TextGroups(np.arange(num_pairs))  # the same few texts all over: nothing to keep apart
        rows = split_groups(groups.group_of_pair, shares, seed)
    sets: dict[str, list[PairSet]] = {"train": [], "validation": []}
    first = 0
    for part in parts:
        for split, own in rows.items():
            of_part = own[(own >= first) & (own < first + len(part.pairs))] - first
            changes: dict[str, Any] = {"pairs": part.pairs.select(of_part)}
            if split == "validation":  # what was noted of the part is said once
                share = len(of_part) / len(part.pairs)
                changes |= {"name": f"{100 * share:.0f} % of {part.name}", "notes": ()}
            if len(of_part):
                sets[split].append(dataclasses.replace(part, **changes))
        first += len(part.pairs)
    logger.info(f"development pairs: {_names(sets['validation'])}, chosen by text with seed {seed}{groups.remark}")
    return sets


def _num_held_out(num_pairs: int) -> int:
    """A tenth of the pairs; of few pairs up to a fifth, since a grade is learned from the pairs held out."""
    if num_pairs < 2 * MIN_HELD_OUT_PAIRS:
        return 0
    few = min(HELD_OUT_PAIRS_FOR_GRADES, num_pairs // 5)
    return max(MIN_HELD_OUT_PAIRS, few, num_pairs // 10)


def _positives(parts: Sequence[PairSet], scale: LabelScale, threshold: float | None) -> list[PairSet]:
    """
    The pairs of a label of at least `threshold` (default: 80 % of the scale), for losses that know positives only.

    Raises:
        ValueError: if there are none.
    """
    low, high = scale.values[0], scale.values[-1]
    threshold = low + POSITIVE_SHARE * (high - low) if threshold is None else threshold
    kept = [
        dataclasses.replace(
            part, pairs=part.pairs.select(np.flatnonzero(np.asarray(part.pairs[:]["label"]) >= threshold))
        )
        for part in parts
    ]
    before, after = (sum(len(part.pairs) for part in some) for some in (parts, kept))
    if not after:
        raise ValueError(f"`positive_threshold`: no training pair has a label of {threshold:g} or more. Lower it.")
    logger.info(f"{after:,} of {before:,} training pairs have a label of {threshold:g} or more")
    return kept


def _drawn(parts: Sequence[PairSet], weights: Sequence[float] | None, limit: int | None, seed: int) -> list[Dataset]:
    """
    The pairs of each part.

    A weight says how many times the pairs of a part are there: 2 twice, 0.5 a random half. A limit keeps the first
    pairs of each part.
    """
    drawn = []
    for part, weight in zip(parts, weights or [1.0] * len(parts), strict=True):
        pairs = part.pairs.select_columns(["sentence1", "sentence2", "label", "line"])
        if limit is not None:
            pairs = pairs.select(range(min(limit, len(pairs))))
        copies = [np.arange(len(pairs))] * int(weight)
        fraction = round((weight - int(weight)) * len(pairs))
        copies.append(np.sort(np.random.default_rng(seed).permutation(len(pairs))[:fraction]))
        drawn.append(pairs.select(np.concatenate(copies)) if weight != 1 else pairs)
    return drawn
