"""One label scale for all pairs of a run: which one it is, and labels mapped onto it."""

import dataclasses
import logging
from collections.abc import Sequence

import numpy as np
from datasets import Dataset

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data import PairSet
from sts_regression.labels import UNIT_SCALE, LabelScale, infer_scale
from sts_regression.options import DataArguments

logger = logging.getLogger(__name__)

PROBLEMS_SHOWN = 3


def given_scale(data_args: DataArguments, checkpoint_config: STSRegressionConfig | None) -> LabelScale | None:
    """
    The label scale that the options state, or else the checkpoint; `None` where neither does.

    Raises:
        ValueError: for uneven nodes, or more or fewer names than nodes.
    """
    values, names = data_args.label_values, data_args.grade_names
    if values is None and names is None and checkpoint_config is not None:
        values, names = checkpoint_config.label_values, checkpoint_config.label_names
    if values is None and names is not None:
        values = [float(index) for index in range(len(names))]
    if values is None:
        return None
    STSRegressionConfig(label_values=values, label_names=names, loss_type="mse")  # which checks them
    return LabelScale(tuple(values), None if names is None else tuple(names))


def apparent_scale(sets: Sequence[PairSet]) -> LabelScale:
    """The scale of the first source that has one, or the one that all labels together suggest."""
    known = next((pair_set for pair_set in sets if pair_set.scale is not None), None)
    if known is not None and known.scale is not None:
        logger.info(f"label scale {known.scale}, that of {known.name}; `--label_values` sets another")
        return known.scale
    scale = infer_scale(label for pair_set in sets for label in pair_set.pairs["label"])
    logger.info(f"label scale {scale}, guessed from the labels; `--label_values` sets another")
    return scale


def onto_scale(pair_set: PairSet, scale: LabelScale) -> PairSet:
    """
    The set with its labels on `scale`, mapped there from its own where that is known and another one.

    Raises:
        ValueError: for labels outside their scale.
    """
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
    return with_labels(pair_set, labels)


def with_labels(pair_set: PairSet, labels: np.ndarray) -> PairSet:
    """The set with other labels, one per pair."""
    pairs = pair_set.pairs.remove_columns("label").add_column("label", labels.tolist())
    return dataclasses.replace(pair_set, pairs=pairs)


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
