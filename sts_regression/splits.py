"""Gathering training, development and test pairs: on one label scale, and no test pairs among those to learn from."""

import dataclasses
import itertools
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, concatenate_datasets

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data import PairColumns, PairSet, load_hub_pairs, read_pairs
from sts_regression.file_rows import check_is_file, is_file
from sts_regression.labels import UNIT_SCALE, LabelScale, infer_scale
from sts_regression.leakage import LeakCounts, LeakFilter, leak_table
from sts_regression.options import DataArguments, STSTrainingArguments
from sts_regression.sts_tasks import STSTask

logger = logging.getLogger(__name__)

BUNDLED_PAIRS = Path(__file__).parent / "quickstart"
BUNDLED_FILES = {"train": "train.csv", "validation": "dev.csv", "test": "test.csv"}
MIN_HELD_OUT_PAIRS = 5  # a correlation of fewer pairs says nothing
POSITIVE_SHARE = 0.8  # of the scale: the paper's 4.0 on 0 to 5
PROBLEMS_SHOWN = 3
LEAK_FILTER_OPTIONS = {"train": ("leak_filter", "training"), "validation": ("dev_leak_filter", "development")}


@dataclass
class Splits:
    """
    Pairs by the names `train`, `validation`, `test`, as far as given.

    Attributes:
        pairs: of each split, with labels on the label scale.
        scale: the label scale; `None` where no pairs were read.
        sets: what each split was put together from.
        leaks: what the leak filters found in `train` and `validation`, by the name of the set; empty where there are
            no test pairs.
    """

    pairs: dict[str, Dataset]
    scale: LabelScale | None
    sets: dict[str, list[PairSet]]
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

    def keep_positives(self, threshold: float | None) -> None:
        """
        Drops training pairs below `threshold` (default: 80 % of the scale), for losses that know positives only.

        Raises:
            ValueError: where none is left.
        """
        assert self.scale is not None  # there are training pairs
        low, high = self.scale.values[0], self.scale.values[-1]
        threshold = low + POSITIVE_SHARE * (high - low) if threshold is None else threshold
        before = len(self.pairs["train"])
        self.pairs["train"] = self.pairs["train"].filter(lambda label: label >= threshold, input_columns="label")
        if not len(self.pairs["train"]):
            raise ValueError(f"`positive_threshold`: no training pair has a label of {threshold:g} or more. Lower it.")
        logger.info(f"{len(self.pairs['train']):,} of {before:,} training pairs have a label of {threshold:g} or more")


def load_splits(
    data_args: DataArguments,
    columns: PairColumns,
    checkpoint_config: STSRegressionConfig | None,
    training_args: STSTrainingArguments,
    sts_tasks: Sequence[STSTask] = (),
) -> Splits:
    """
    Reads every split that is needed, of the data that the options name or of the bundled pairs.

    Labels are mapped from the scale of their source, where that is known, onto one scale: that of the options, of the
    checkpoint, of the first source that has one, or the one that the labels suggest. Pairs that the leak filters find
    among the test pairs are left out.

    Args:
        data_args: which data.
        columns: column names, where the guess would be wrong.
        checkpoint_config: of the model to continue with or to evaluate, if it knows a label scale. Options overrule
            it.
        training_args: whether there is training or evaluation at all; the seed decides which training pairs become
            development pairs where no file holds any, and which are repeated for a fractional weight.
        sts_tasks: their pairs are test pairs, too.

    Raises:
        ValueError: for anything wrong with the pairs; see [`read_pairs`].
    """
    scale = _given_scale(data_args, checkpoint_config)
    sets = _read_sets(data_args, columns, scale, training_args.do_train, training_args.do_eval)
    for pair_set in _flat(sets):
        check_labels_differ(pair_set.pairs, pair_set.name)
        if pair_set.num_unlabelled:
            logger.info(f"{pair_set.name}: {pair_set.num_unlabelled:,} pairs without an agreed label are left out")
    if not sets:
        return Splits({}, None, {}, {})
    if scale is None:
        scale = _apparent_scale(sets)
    sets = {split: [_onto_scale(pair_set, scale) for pair_set in parts] for split, parts in sets.items()}

    test_sets = {task.name: task.pairs for task in sts_tasks} | {
        part.name: part.pairs for part in sets.get("test", [])
    }
    leaks = {}
    for split, mode in (("train", data_args.leak_filter), ("validation", data_args.dev_leak_filter)):
        if split in sets and test_sets:
            sets[split], leaks[split] = _without_leaks(sets[split], LeakFilter(test_sets, mode), split)
    if "train" in sets and "validation" not in sets:
        sets |= _hold_out(sets["train"], data_args.validation_split_percentage, training_args.seed)
    if data_args.truncate_labels and "train" in sets:
        sets["train"] = [_with_labels(part, np.trunc(part.pairs[:]["label"])) for part in sets["train"]]

    pairs = {}
    for split, parts in sets.items():
        weights = data_args.train_weights if split == "train" else None
        limit = data_args.max_train_samples if split == "train" else data_args.max_eval_samples
        pairs[split] = _joined(parts, weights, limit, training_args.seed)
        check_labels_differ(pairs[split], _names(parts))
    return Splits(pairs, scale, sets, leaks)


def _flat(sets: Mapping[str, Sequence[PairSet]]) -> Iterator[PairSet]:
    return itertools.chain.from_iterable(sets.values())


def _names(parts: Sequence[PairSet]) -> str:
    return " + ".join(part.name for part in parts)


def _given_scale(data_args: DataArguments, checkpoint_config: STSRegressionConfig | None) -> LabelScale | None:
    """The label scale that the options state, or else the checkpoint."""
    values, names = data_args.label_values, data_args.grade_names
    if values is None and names is None and checkpoint_config is not None:
        values, names = checkpoint_config.label_values, checkpoint_config.label_names
    if values is None and names is not None:
        values = [float(index) for index in range(len(names))]
    if values is None:
        return None
    # Refuses uneven nodes, or more or fewer names than nodes, before any file is read.
    STSRegressionConfig(label_values=values, label_names=names, loss_type="mse")
    return LabelScale(tuple(values), None if names is None else tuple(names))


def _read_sets(
    data_args: DataArguments, columns: PairColumns, scale: LabelScale | None, do_train: bool, do_eval: bool
) -> dict[str, list[PairSet]]:
    """The sets of pairs of each split that the options name, or the bundled ones; as they stand in their sources."""
    if not (do_train or do_eval):
        return {}
    grades = None if scale is None or scale.names is None else dict(zip(scale.names, scale.values, strict=True))
    files = {
        "train": data_args.train_file if do_train else None,
        "validation": data_args.validation_file,
        "test": [data_args.test_file] if data_args.test_file else None,
    }
    if not data_args.has_pairs:
        if not do_train and data_args.sts_data:
            return {}  # nothing but the STS tasks is scored
        bundled = {split: file for split, file in BUNDLED_FILES.items() if do_train or split != "train"}
        return {
            split: [dataclasses.replace(read_pairs(BUNDLED_PAIRS / file), name=f"bundled {file}")]
            for split, file in bundled.items()
        }
    if do_train and not (data_args.train_file or data_args.dataset_name):
        raise ValueError("`train_file`: training needs training pairs. Give them, or leave out `--do_train`.")
    sets: dict[str, list[PairSet]] = {}
    for split, paths in files.items():
        parts = []
        names = data_args.dataset_name or []
        if split != "train":  # development and test pairs are those of the first data set, unless files hold them
            names = [] if paths else names[:1]
        if split == "validation" and data_args.validation_dataset_name is not None:
            parts.append(load_hub_pairs(data_args.validation_dataset_name, split, None, columns, grades))
        elif split != "train" or do_train:
            for name in names:
                parts.append(load_hub_pairs(name, split, data_args.dataset_config_name, columns, grades))
        found = [part for part in parts if part is not None]
        if len(found) < len(parts) and split == "train":
            raise ValueError(f"`dataset_name`: {data_args.dataset_name} have no training split. Name other sets.")
        if len(found) < len(parts) and split == "validation" and data_args.validation_dataset_name is not None:
            raise ValueError(
                f"`validation_dataset_name`: {data_args.validation_dataset_name!r} has no development split. Name "
                "another set."
            )
        found += [read_pairs(_find_file(path, data_args.sts_data), columns, grades) for path in paths or []]
        if found:
            sets[split] = found
    if not do_train and not sets:
        raise ValueError("nothing to score. Give pairs with `--validation_file` or `--test_file`, or `--sts_data`.")
    return sets


def check_files(data_args: DataArguments) -> None:
    """
    Looks for every file that the options name, before anything is read.

    Raises:
        ValueError: naming the file that is missing.
    """
    named = [*(data_args.train_file or []), *(data_args.validation_file or [])]
    for path in (*named, *filter(None, (data_args.test_file, data_args.predict_file))):
        check_is_file(_find_file(path, data_args.sts_data))


def _find_file(path: str, sts_data: str | None) -> str | Path:
    """The file, looked for in the working directory and then in the folder of the STS data, for portable recipes."""
    if sts_data is not None and not is_file(path) and is_file(Path(sts_data) / path):
        return Path(sts_data) / path
    return path


def _apparent_scale(sets: Mapping[str, Sequence[PairSet]]) -> LabelScale:
    """The scale of the first source that has one, or the one that all labels together suggest."""
    known = next((pair_set for pair_set in _flat(sets) if pair_set.scale is not None), None)
    if known is not None and known.scale is not None:
        logger.info(f"label scale {known.scale}, that of {known.name}; `--label_values` sets another")
        return known.scale
    scale = infer_scale(label for pair_set in _flat(sets) for label in pair_set.pairs["label"])
    logger.info(f"label scale {scale}, guessed from the labels; `--label_values` sets another")
    return scale


def _onto_scale(pair_set: PairSet, scale: LabelScale) -> PairSet:
    """The set with its labels on `scale`, mapped there from its own where that is known and another one."""
    native = pair_set.scale or scale
    check_label_scale(pair_set.pairs, pair_set.name, native)
    if pair_set.scale is None and scale.values[-1] > 1 and UNIT_SCALE.spans(pair_set.pairs[:]["label"]):
        logger.warning(
            f"{pair_set.name}: all labels lie between 0 and 1, the lower end of the scale {scale}. If they are on "
            "another scale, multiply them."
        )
    if native.values == scale.values:
        return pair_set
    labels = native.map_to(scale, pair_set.pairs[:]["label"])
    logger.info(f"{pair_set.name}: labels on the scale {native} are mapped onto {scale}")
    return _with_labels(pair_set, labels)


def _with_labels(pair_set: PairSet, labels: np.ndarray) -> PairSet:
    pairs = pair_set.pairs.remove_columns("label").add_column("label", labels.tolist())
    return dataclasses.replace(pair_set, pairs=pairs)


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


def _hold_out(parts: Sequence[PairSet], percentage: int, seed: int) -> dict[str, list[PairSet]]:
    """Training pairs and the part of them, drawn from each set, that is held out for development."""
    num_pairs = sum(len(part.pairs) for part in parts)
    if num_pairs * percentage / 100 < MIN_HELD_OUT_PAIRS:
        raise ValueError(
            f"{_names(parts)}: {num_pairs:,} pairs are too few to hold out {percentage} % of them for development. "
            "Give development pairs with `--validation_file`, or raise `--validation_split_percentage`."
        )
    sets: dict[str, list[PairSet]] = {"train": [], "validation": []}
    for part in parts:
        if len(part.pairs) * percentage < 100:  # not one pair
            sets["train"].append(part)
            continue
        num_held_out = min(math.ceil(percentage / 100 * len(part.pairs)), len(part.pairs) - 1)
        halves = part.pairs.train_test_split(num_held_out, seed=seed)
        sets["train"].append(dataclasses.replace(part, pairs=halves["train"]))
        sets["validation"].append(
            dataclasses.replace(part, pairs=halves["test"], name=f"{percentage} % of {part.name}")
        )
    logger.info(f"development pairs: {_names(sets['validation'])}, chosen with seed {seed}")
    return sets


def _joined(parts: Sequence[PairSet], weights: Sequence[float] | None, limit: int | None, seed: int) -> Dataset:
    """
    The pairs of all parts, one part after the other.

    A weight says how many times the pairs of a part are there: 2 twice, 0.5 a random half. A limit keeps the first
    pairs of each part.
    """
    joined = []
    for part, weight in zip(parts, weights or [1.0] * len(parts), strict=True):
        pairs = part.pairs.select_columns(["sentence1", "sentence2", "label", "line"])
        if limit is not None:
            pairs = pairs.select(range(min(limit, len(pairs))))
        copies = [np.arange(len(pairs))] * int(weight)
        fraction = round((weight - int(weight)) * len(pairs))
        copies.append(np.sort(np.random.default_rng(seed).permutation(len(pairs))[:fraction]))
        joined.append(pairs.select(np.concatenate(copies)) if weight != 1 else pairs)
    return concatenate_datasets(joined)


def check_labels_differ(pairs: Dataset, name: str) -> None:
    """Refuses pairs whose labels are all equal: a `ValueError` that names `name` and the remedy."""
    if not len(pairs):
        raise ValueError(f"{name}: no pairs are left. Give more, or raise `--train_weights`.")
    if len(set(pairs[:]["label"])) == 1:
        raise ValueError(
            f"{name}: all {len(pairs):,} labels are {pairs['label'][0]:g}, so that there is nothing to rank and "
            "Spearman's correlation is undefined. Give pairs with at least two different labels."
        )


def check_label_scale(pairs: Dataset, name: str, scale: LabelScale) -> None:
    """Refuses labels outside the scale: a `ValueError` that names `name`, the first bad lines and the remedy."""
    low, high = scale.values[0], scale.values[-1]
    columns = pairs[:]
    labels = zip(columns["line"], columns["label"], strict=True)
    outside = [(line, label) for line, label in labels if not low <= label <= high]
    if outside:
        shown = ", ".join(f"{label:g} in line {line}" for line, label in outside[:PROBLEMS_SHOWN])
        raise ValueError(
            f"{name}: {len(outside):,} of {len(pairs):,} labels lie outside the scale {low:g} to {high:g} ({shown}). "
            "Correct them, or give the whole scale with `--label_values`."
        )
