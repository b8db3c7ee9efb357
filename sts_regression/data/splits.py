"""Reads training, development and test pairs on one label scale, and removes test pairs from the training pairs."""

import dataclasses
import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset, concatenate_datasets

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data.columns import MAPPED_FROM, PairColumns, numbers_of, take_rows
from sts_regression.data.labels import LabelScale
from sts_regression.data.leakage import LeakCounts, LeakFilter
from sts_regression.data.pairs import PairSet, check_texts_differ
from sts_regression.data.scales import check_labels_differ, given_scale, onto_one_scale, with_labels
from sts_regression.data.sources import read_sets
from sts_regression.data.sts_tasks import STSTask
from sts_regression.data.text_splits import divide_into_folds, hold_out, labels_differ, labels_of, names_of
from sts_regression.options.data_arguments import DataArguments

logger = logging.getLogger(__name__)

CURVE_SHARES = {"quarter": 1 / 4, "half": 1 / 2}  # shares of the training pairs for the points of a learning curve
FEWEST_PAIRS_TO_SHARE = 40  # a quarter of fewer pairs is too few to learn from
UNLABELLED_LOSSES = ("info_nce",)  # treat every training pair as a positive
POSITIVE_SHARE = 0.8  # of the scale: the paper's 4.0 on 0 to 5
LEAK_FILTER_OPTIONS = {"train": "leak_filter", "validation": "dev_leak_filter"}


@dataclass
class Splits:
    """
    Pairs by split, `train`, `validation` and `test`; a split may be missing.

    Attributes:
        pairs: the pairs of each split, with labels on the label scale.
        scale: the label scale; `None` if no pairs were read.
        sets: the sets that make up each split.
        set_of_pair: by split, the number of each pair's set in `sets`, shape (pairs,).
        leaks: the findings of the leak filters in `train` and `validation`, by the name of the set; empty if there are
            no test pairs.
        fold_rows: the rows of `validation` that each run before this one scored: with `folds`, one part each, counted
            through all training sets in order; with `refit`, all.
        fold: with `folds`, the part that is `validation`, from 1; with `refit`, 1 if `train` lacks the pairs of
            `validation`; `None` if `train` has all pairs.
        whole: the splits with all training pairs, if these splits have only a share of them.
    """

    pairs: dict[str, Dataset]
    scale: LabelScale | None
    sets: dict[str, list[PairSet]]
    set_of_pair: dict[str, np.ndarray]
    leaks: dict[str, dict[str, LeakCounts]]
    fold_rows: tuple[np.ndarray, ...] = ()
    fold: int | None = None
    whole: "Splits | None" = None

    @property
    def scored(self) -> list[str]:
        """The names of the splits that are scored, the test split last; in an inner run, `validation` only."""
        is_inner = self.fold is not None or self.whole is not None
        return [name for name in ("validation", "test") if name in self.pairs and not (is_inner and name == "test")]

    @property
    def sources(self) -> dict[str, str]:
        """The names of the sources of each split."""
        return {split: names_of(parts) for split, parts in self.sets.items()}

    def put_together(self) -> "Splits":
        """
        These splits with all training pairs: those held out in a fold, or left out of a share, included.

        Development pairs that are training pairs, too, are left out.
        """
        if self.fold is None and not self.fold_rows:
            return self.whole or self
        pairs, sets, set_of_pair = dict(self.pairs), dict(self.sets), dict(self.set_of_pair)
        if self.fold is None:
            for by_split in (pairs, sets, set_of_pair):
                by_split.pop("validation")
            return dataclasses.replace(self, pairs=pairs, sets=sets, set_of_pair=set_of_pair, fold_rows=())
        pairs["train"] = concatenate_datasets([pairs["train"], pairs.pop("validation")])
        of_part = set_of_pair.pop("validation") + len(sets["train"])
        set_of_pair["train"] = np.concatenate([set_of_pair["train"], of_part])
        sets["train"] = [*sets["train"], *sets.pop("validation")]
        return dataclasses.replace(self, pairs=pairs, sets=sets, set_of_pair=set_of_pair, fold_rows=(), fold=None)

    def with_share(self, share: float, seed: int) -> "Splits":
        """
        These splits with a random share of the training pairs. With the same seed, larger shares contain smaller ones.

        Args:
            share: from 0 to 1.
            seed: decides which pairs.

        Raises:
            ValueError: for too few pairs, and if all labels of the share are equal.
        """
        pairs, set_of_pair = self.pairs["train"], self.set_of_pair["train"]
        # Copies of a pair, which weights make, are chosen together.
        _, numbers = np.unique(np.stack([set_of_pair, numbers_of(pairs, "line")]), axis=1, return_inverse=True)
        numbers = numbers.ravel()
        count = int(numbers.max()) + 1
        if count < FEWEST_PAIRS_TO_SHARE:
            raise ValueError(
                f"`learning_curve` needs at least {FEWEST_PAIRS_TO_SHARE} training pairs, but there are {count}. "
                "Leave it out, or give more pairs."
            )
        chosen = np.random.default_rng(seed).permutation(count)[: round(share * count)]
        rows = np.flatnonzero(np.isin(numbers, chosen))
        labels = numbers_of(pairs, "label")
        if np.ptp(labels) > 0 and not labels_differ([rows], labels):
            raise ValueError(
                f"`learning_curve`: all labels are equal in {len(chosen)} of the {count} training pairs, chosen with "
                f"seed {seed}. Leave it out, or give another `--seed`."
            )
        return dataclasses.replace(
            self,
            pairs={**self.pairs, "train": take_rows(pairs, rows)},
            set_of_pair={**self.set_of_pair, "train": set_of_pair[rows]},
            whole=self,
        )

    def with_used_pairs(self, num_used: int, seed: int) -> "Splits":
        """These splits with as many random training pairs as are used, if there are very many others to tokenise."""
        pairs = self.pairs["train"]
        if len(pairs) <= max(num_used, MAPPED_FROM):
            return self
        rows = np.sort(np.random.default_rng(seed).choice(len(pairs), num_used, replace=False, shuffle=False))
        logger.info(f"{num_used:,} of {len(pairs):,} training pairs are used, as many as `--max_steps` needs")
        return dataclasses.replace(
            self,
            pairs={**self.pairs, "train": take_rows(pairs, rows)},
            set_of_pair={**self.set_of_pair, "train": self.set_of_pair["train"][rows]},
        )

    def config_overrides(self) -> dict[str, Any]:
        """The label scale as options of the model's configuration; empty if no pairs were read."""
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
    fold: int | None = None,
    share: float | None = None,
    num_used: int | None = None,
) -> Splits:
    """
    Reads every split that is needed, from the named data or the bundled pairs.

    Labels are mapped from the scale of their source onto one scale, see [`onto_one_scale`]. Pairs that the leak
    filters find among the test pairs are left out.

    Args:
        data_args: options that name the data.
        columns: names of columns that would be guessed wrong.
        checkpoint_config: configuration of the model to train further or to evaluate, if it has a label scale.
            Options override it.
        do_train: whether training pairs are needed.
        do_eval: whether development and test pairs are needed.
        seed: decides which training pairs become development pairs if there are none, and which pairs are repeated for
            a fractional weight.
        sts_tasks: tasks whose pairs are test pairs, too.
        loss_type: the loss of the model; "info_nce" trains on positives only.
        given: pairs in memory, by split, in place of those that the options name.
        fold: with the option `folds`, the number of the fold to leave out of training, from 1; with `refit`, 1 for
            the training without held-out pairs; `None` to train on all pairs.
        share: share of the training pairs, for a learning curve; `None` for all of them.
        num_used: the number of pairs that the steps of the training use, if it has a fixed number of steps. Of very
            many pairs, this many are drawn at random, as the first ones of a shuffled epoch are.

    Raises:
        ValueError: for unusable pairs; see [`read_pairs`].
    """
    sets = read_sets(data_args, columns, given_scale(data_args, checkpoint_config), do_train, do_eval, given)
    if not sets:
        return Splits({}, None, {}, {}, {})
    for split, parts in sets.items():
        # One of several training sets may have one label, and every one if labels are not used.
        if split != "train" or (loss_type not in UNLABELLED_LOSSES and np.ptp(labels_of(parts)) == 0):
            for part in parts:
                check_labels_differ(part.pairs, part.name)
    scale, sets = onto_one_scale(sets, data_args, checkpoint_config, do_train)
    if "train" in sets and data_args.train_weights is not None:
        weighted = zip(sets["train"], data_args.train_weights, strict=True)
        sets["train"] = [dataclasses.replace(part, weight=weight) for part, weight in weighted]
    for pair_set in itertools.chain.from_iterable(sets.values()):
        check_texts_differ(pair_set.pairs, pair_set.name)

    known = {task.name: task.pairs for task in sts_tasks} | {part.name: part.pairs for part in sets.get("test", [])}
    divides = "train" in sets and (data_args.folds > 1 or "validation" not in sets)
    if divides and (fold == 1 or (fold is None and data_args.folds == 1 and not data_args.trains_twice)):
        _warn_of_known_pairs(checkpoint_config)  # once for all trainings
    sets, leaks, fold_rows = _divided(sets, data_args, known, fold, seed)
    if "train" in sets:
        sets = {**sets, "train": _to_train_on(sets["train"], scale, data_args, loss_type)}

    limits = {split: data_args.max_train_samples if split == "train" else data_args.max_eval_samples for split in sets}
    if fold_rows:
        limits["validation"] = None  # the folds have the limit of the training pairs
    drawn = {split: _drawn(parts, limits[split], seed) for split, parts in sets.items()}
    pairs = {split: concatenate_datasets(of_split) for split, of_split in drawn.items()}
    for split, parts in sets.items():
        if split != "train" or loss_type not in UNLABELLED_LOSSES:
            check_labels_differ(pairs[split], names_of(parts))
    set_of_pair = {split: np.repeat(np.arange(len(own)), list(map(len, own))) for split, own in drawn.items()}
    if divides and data_args.trains_twice and fold is None:  # a first training scored all development pairs
        fold_rows = (np.arange(len(pairs["validation"])),)
    splits = Splits(pairs, scale, sets, set_of_pair, leaks, fold_rows, fold)
    splits = splits if share is None else splits.with_share(share, seed)
    return splits if num_used is None or "train" not in pairs else splits.with_used_pairs(num_used, seed)


def _divided(
    sets: Mapping[str, list[PairSet]],
    data_args: DataArguments,
    known: Mapping[str, Dataset],
    fold: int | None,
    seed: int,
) -> tuple[dict[str, list[PairSet]], dict[str, dict[str, LeakCounts]], tuple[np.ndarray, ...]]:
    """
    The sets without known test pairs, and with held-out pairs or a fold as `validation` if there are no others.

    Also returns the findings of the leak filters, by split, and the rows of each fold.
    """
    sets, leaks = _without_leaks(sets, "train", data_args.leak_filter, known)
    if "train" in sets and data_args.folds == 1 and "validation" not in sets:
        try:
            held_out, how = hold_out(sets["train"], data_args.validation_split_percentage, seed)
        except ValueError as error:
            removed = sum(counts.removed for counts in leaks.get("train", {}).values())
            if not removed:
                raise
            raise ValueError(f"{error} The leak filter left out {removed:,} test pairs (`--leak_filter`).") from error
        if data_args.trains_twice and fold is None:  # the last training uses the pairs that the first left out
            sets = {**held_out, **sets}
        else:
            logger.info(f"development pairs: {names_of(held_out['validation'])}, chosen with seed {seed} {how}")
            sets = {**sets, **held_out}
    sets, found = _without_leaks(sets, "validation", data_args.dev_leak_filter, known)
    leaks |= found
    if "train" not in sets or data_args.folds == 1:
        return sets, leaks, ()
    if "validation" in sets:
        raise ValueError(
            "`folds` scores the training pairs in place of development pairs, and there are "
            f"{names_of(sets['validation'])}. Leave one of them out."
        )
    limit = data_args.max_train_samples
    parts = [
        part if limit is None else dataclasses.replace(part, pairs=part.pairs.take(min(limit, len(part.pairs))))
        for part in sets["train"]
    ]
    in_folds, rows, how = divide_into_folds(parts, data_args.folds, fold, seed)
    if fold is not None:
        logger.info(f"fold {fold} of {data_args.folds}: {len(rows[fold - 1]):,} pairs, chosen with seed {seed} {how}")
    return {**sets, **in_folds}, leaks, rows


def _without_leaks(
    sets: Mapping[str, list[PairSet]], split: str, mode: str, known: Mapping[str, Dataset]
) -> tuple[dict[str, list[PairSet]], dict[str, dict[str, LeakCounts]]]:
    """The sets without the pairs of a split that are known test pairs, and the findings, by split."""
    if split not in sets or not known:
        return {**sets}, {}
    leak_filter, clean, counts = LeakFilter(known, mode), [], {}
    for part in sets[split]:
        pairs, counts[part.name] = leak_filter.apply(part.pairs)
        clean.append(dataclasses.replace(part, pairs=pairs))
    if not any(len(part.pairs) for part in clean):
        raise ValueError(
            f"{names_of(sets[split])}: every pair is a test pair. Give other pairs, or another "
            f"`--{LEAK_FILTER_OPTIONS[split]}`."
        )
    return {**sets, split: clean}, {split: counts}


def _warn_of_known_pairs(checkpoint_config: STSRegressionConfig | None) -> None:
    """Says that pairs held out of this training may be training pairs of the checkpoint that it continues."""
    if checkpoint_config is not None and checkpoint_config.head_is_trained:
        logger.info(
            "The model was trained on graded pairs before. If held-out pairs are among them, verdict, grades and "
            "intervals look better than they are: leave these pairs out, or give new ones with `--validation_file`."
        )


def _to_train_on(
    parts: Sequence[PairSet], scale: LabelScale, data_args: DataArguments, loss_type: str
) -> list[PairSet]:
    """The training pairs that the loss uses, with their labels truncated if an option asks for it."""
    if loss_type in UNLABELLED_LOSSES:
        parts = _positives(parts, scale, data_args.positive_threshold)
    if data_args.truncate_labels:
        return [with_labels(part, np.trunc(numbers_of(part.pairs, "label"))) for part in parts]
    return list(parts)


def _positives(parts: Sequence[PairSet], scale: LabelScale, threshold: float | None) -> list[PairSet]:
    """
    The pairs with a label of at least `threshold` (default: 80 % of the scale), for losses that use positives only.

    Raises:
        ValueError: if there are none.
    """
    low, high = scale.values[0], scale.values[-1]
    threshold = low + POSITIVE_SHARE * (high - low) if threshold is None else threshold
    rows = [np.flatnonzero(numbers_of(part.pairs, "label") >= threshold) for part in parts]
    kept = [dataclasses.replace(part, pairs=take_rows(part.pairs, own)) for part, own in zip(parts, rows, strict=True)]
    before, after = (sum(len(part.pairs) for part in some) for some in (parts, kept))
    if not after:
        raise ValueError(f"`positive_threshold`: no training pair has a label of {threshold:g} or more. Lower it.")
    logger.info(f"{after:,} of {before:,} training pairs have a label of {threshold:g} or more")
    return kept


def _drawn(parts: Sequence[PairSet], limit: int | None, seed: int) -> list[Dataset]:
    """
    The pairs of each part.

    A weight says how often the pairs of a part are repeated: 2 means twice, 0.5 a random half. A limit keeps the first
    pairs of each part.
    """
    drawn = []
    for part in parts:
        pairs = part.pairs.select_columns(["sentence1", "sentence2", "label", "line"])
        if limit is not None:
            pairs = pairs.select(range(min(limit, len(pairs))))
        copies = [np.arange(len(pairs))] * int(part.weight)
        fraction = round((part.weight - int(part.weight)) * len(pairs))
        copies.append(np.sort(np.random.default_rng(seed).permutation(len(pairs))[:fraction]))
        drawn.append(pairs.select(np.concatenate(copies)) if part.weight != 1 else pairs)
    return drawn
