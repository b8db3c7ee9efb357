"""One label scale for all pairs of a run: finds the scale of each source, and maps its labels onto the model's scale.

The scale of a source is known (STS-B, SICK, NLI, named grades), stated by an option, or guessed from its own labels.
Labels of development and test pairs never decide the scale of the model.
"""

import dataclasses
import itertools
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from datasets import Dataset

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data.columns import as_word, numbers_of
from sts_regression.data.labels import (
    REPEATED_SHARE,
    UNIT_SCALE,
    LabelScale,
    infer_scale,
    parse_number,
    usual_range,
    without_repeated_names,
)
from sts_regression.data.pairs import COUNTED_FROM_1, PROBLEMS_SHOWN, PairSet
from sts_regression.data.ratings import ratings_of
from sts_regression.data.text_splits import names_of
from sts_regression.options.data_arguments import DataArguments

logger = logging.getLogger(__name__)

# Labels that cover more than the first share of another source's range are on its scale. Labels that cover less than
# the second share are on another scale (0 to 5 beside 0 to 100). In between, the scale is unclear.
SAME_SCALE_SHARE, OTHER_SCALE_SHARE = 0.5, 0.1
END_SHARE, UNLIKELY = 0.1, 0.001  # of the scale; probability that labels miss an end that training labels reach
SINGLE_PRECISION = 1e-7  # relative error of a number in a column of this type
FEW_PAIRS = 30  # labels of fewer pairs need not reach the ends of their scale
SAME, OTHER, UNCLEAR = "same", "other", "unclear"

Sets = Mapping[str, Sequence[PairSet]]


def given_scale(data_args: DataArguments, checkpoint_config: STSRegressionConfig | None) -> LabelScale | None:
    """
    The label scale in the options, or else in the checkpoint; `None` if neither has one.

    Raises:
        ValueError: for nodes that do not increase, for a single name, for more or fewer names than nodes, and for
            equal names.
    """
    if data_args.grade_names is not None:
        _check_grade_names(data_args.grade_names, data_args.label_values)
    values, names = stated_grades(data_args)
    if values is None and names is None and checkpoint_config is not None:
        values, names = checkpoint_config.label_values, checkpoint_config.label_names
    if values is None and names is not None:
        values = [float(index) for index in range(len(names))]
    if values is None:
        return None
    STSRegressionConfig(label_values=values, label_names=names, loss_type="mse")  # checks them
    return LabelScale(tuple(values), None if names is None else tuple(names))


def stated_grades(data_args: DataArguments) -> tuple[list[float] | None, list[str] | None]:
    """`label_values` and `grade_names`. Names that are increasing numbers are the values."""
    values, names = data_args.label_values, data_args.grade_names
    if values is None and names is not None:
        numbers = [value for value, problem in map(parse_number, names) if problem is None]
        if len(numbers) == len(names) and all(lower < upper for lower, upper in itertools.pairwise(numbers)):
            return numbers, None
    return values, names


def _check_grade_names(names: Sequence[str], values: Sequence[float] | None) -> None:
    apart = [part.strip() for name in names for part in name.split(",") if part.strip()]
    if any(name.endswith(",") for name in names) or (len(names) == 1 and len(apart) > 1):
        raise ValueError(
            f"`grade_names` {list(names)}: commas do not separate names. Give two names or more, the lowest grade "
            f"first: `--grade_names {' '.join(map(as_word, apart))}`."
        )
    if len(names) < 2:
        raise ValueError(
            f"`grade_names` {list(names)} is one name. Give two names or more, the lowest grade first, such as "
            "`--grade_names irrelevant relevant 'highly relevant'`."
        )
    if len(without_repeated_names(names)) < len(names):
        raise ValueError(
            f"`grade_names` {list(names)} has names that are equal or differ only in case, which does not distinguish "
            "labels. Name each grade once, and put quotation marks around a name of several words, such as "
            '`"highly relevant"`.'
        )
    if values is not None and len(values) != len(names):
        raise ValueError(
            f"`grade_names` holds {len(names)} names for {len(values)} nodes in `label_values`. Give one for each, or "
            "leave `--label_values` out."
        )


def onto_one_scale(
    sets: Sets, data_args: DataArguments, checkpoint_config: STSRegressionConfig | None, do_train: bool
) -> tuple[LabelScale, dict[str, list[PairSet]]]:
    """
    Finds the scale of the model and of each source, and maps the labels onto the model's scale.

    Args:
        sets: the sets of each split, with the labels of their sources.
        data_args: the options: `label_values` or `grade_names` for the model and for every source of unknown scale,
            `label_ranges` for single files.
        checkpoint_config: configuration of the model to train further or to evaluate. A model that is evaluated keeps
            its scale.
        do_train: whether the run trains.

    Returns:
        The scale of the model, and the sets with labels on it. Each set's `scale` is the scale of its source.

    Raises:
        ValueError: for labels outside their scale, and for labels of unclear scale.
    """
    stated, of_checkpoint = given_scale(data_args, None), given_scale(DataArguments(), checkpoint_config)
    # By the name of the set; `stated` applies to all other sets of unknown scale.
    scales = _stated_ranges(sets, data_args)
    sets = {split: [_without_doubts_on_counting(part, scales) for part in parts] for split, parts in sets.items()}
    reference = of_checkpoint
    guesses: dict[str, LabelScale] = {}
    first_parts = next(iter(sets.values()))  # training pairs, if there are any; other splits decide nothing
    if stated is None and of_checkpoint is None:
        unknown = [part for part in first_parts if part.scale is None and part.name not in scales]
        guesses = _guess_together(unknown) if unknown else {}
        reference = scales.get(first_parts[0].name) or next(iter(guesses.values()), None)
        scales |= guesses
        noted = {part.name: _with_shared_scale_noted(part, unknown, guesses) for part in unknown}
        sets = {split: [noted.get(part.name, part) for part in parts] for split, parts in sets.items()}
        first_parts = next(iter(sets.values()))
    target = of_checkpoint if of_checkpoint is not None and not do_train else stated or of_checkpoint
    if target is None:
        first = first_parts[0]
        target = scales.get(first.name) or first.scale
        assert target is not None  # it is stated, known or guessed
        if len(first_parts) > 1 or first.name not in guesses:
            logger.info(f"label scale {target}, that of {first.name}; `--label_values` sets another")
    other = "the training pairs" if of_checkpoint is None else "the checkpoint"
    mapped: dict[str, list[PairSet]] = {split: [] for split in sets}
    for split, parts in sets.items():
        for part in parts:
            known = scales.get(part.name) or part.scale
            native = known or stated or _scale_beside(part, reference or target, other, may_ask=do_train)
            given = _grades_given(part)
            is_stated = known is None and stated is not None
            part = _onto_scale(part, native, target, is_stated)
            if known is None and split != "train":
                part = _with_narrow_range_noted(part, given, target, mapped.get("train", []))
            mapped[split].append(part)
    return target, mapped


def _stated_ranges(sets: Sets, data_args: DataArguments) -> dict[str, LabelScale]:
    """The scales of `--label_ranges`, by the name of the set."""
    parts = [part for of_split in sets.values() for part in of_split]
    ranges: dict[str, LabelScale] = {}
    for file, (low, high) in data_args.parsed_label_ranges().items():
        meant = [part for part in parts if part.name == file or Path(part.name).name == file]
        if not meant:
            names = ", ".join(part.name for part in parts)
            raise ValueError(f"`label_ranges` names {file!r}, which is not among the files: {names}.")
        ranges |= {part.name: _scale_between(part, low, high) for part in meant}
    return ranges


def _scale_between(part: PairSet, low: float, high: float) -> LabelScale:
    """The scale of a set whose ends are stated: the nodes that its labels suggest, if they reach from end to end."""
    guessed = infer_scale(np.r_[low, _grades_given(part), high])
    return guessed if (guessed.values[0], guessed.values[-1]) == (low, high) else LabelScale((low, high))


def _without_doubts_on_counting(part: PairSet, stated: Mapping[str, LabelScale]) -> PairSet:
    """The set; if its scale is stated, without the note that its labels may count grades from 1 on."""
    if part.name not in stated:
        return part
    return dataclasses.replace(part, notes=tuple(note for note in part.notes if not note.startswith(COUNTED_FROM_1)))


def _guess_together(parts: Sequence[PairSet]) -> dict[str, LabelScale]:
    """
    Guesses the scales of several sets from their labels; returns them by the name of the set.

    Raises:
        ValueError: if it is unclear whether two sets share a scale.
    """
    widest = max(parts, key=lambda part: np.ptp(_grades_given(part)))
    same, guesses = [widest], {}
    for part in parts:
        if part is widest:
            continue
        relation = _relation(part, _guess([widest]))
        if relation == UNCLEAR:
            raise _unclear(part, widest.name, _guess([widest]))
        if relation == SAME:
            same.append(part)
        else:
            guesses[part.name] = _guess([part])
    shared = _guess(same)
    guesses |= dict.fromkeys((part.name for part in same), shared)
    for part in parts:
        logger.info(f"{part.name}: label scale {guesses[part.name]}, guessed; `--label_values` sets another")
    return {part.name: guesses[part.name] for part in parts}


def _guess(parts: Sequence[PairSet]) -> LabelScale:
    """
    The scale that the labels of some sets suggest.

    Raises:
        ValueError: if they suggest none; the message names the sets and the labels far from all others.
    """
    labels = np.concatenate([_grades_given(part) for part in parts])
    try:
        return infer_scale(labels)
    except ValueError as error:
        outliers = "".join(f" {found}." for part in parts if (found := _outliers(part, labels)))
        raise ValueError(f"{names_of(parts)}: {error}{outliers}") from error


def _outliers(part: PairSet, labels: np.ndarray) -> str:
    """The outliers of a set, among the labels of several sets, in words; empty if there are none."""
    low, high = usual_range(labels)
    outside = _labels_outside(part.pairs, low, high)
    if not outside:
        return ""
    lies = "lies" if len(outside) == 1 else "lie"
    return (
        f"{len(outside):,} of {len(labels):,} labels ({_shown(outside)}) {lies} far from all others, which lie "
        f"between {low:g} and {high:g}"
    )


def _minus_ones(part: PairSet, labels: np.ndarray) -> str:
    """
    The labels of -1 in a set that may mean "not rated", in words; empty if there are none.

    Such labels are rare among the labels of several sets, of which all others are 0 or more, and not all equal.
    """
    others = labels[labels != -1]
    if len(np.unique(others)) < 2 or others.min() < 0 or len(labels) - len(others) > REPEATED_SHARE * len(labels):
        return ""
    found = _labels_outside(part.pairs, 0, np.inf)
    return f'{len(found):,} of {len(labels):,} labels ({_shown(found)}) may mean "not rated"' if found else ""


def _with_shared_scale_noted(part: PairSet, parts: Sequence[PairSet], guesses: Mapping[str, LabelScale]) -> PairSet:
    """The set, with notes if odd labels widen the scale that it shares with some of `parts`, or if it lacks an end."""
    scale, notes = guesses[part.name], []
    sharing = [other for other in parts if guesses[other.name] == scale]
    own = [_grades_given(other) for other in sharing]
    together = np.concatenate(own)
    low, high = scale.values[0], scale.values[-1]
    if doubtful := _outliers(part, together) or _minus_ones(part, together):
        notes.append(
            f"the label scale {low:g} to {high:g} is guessed, and {doubtful}. Correct or remove such pairs, or give "
            "the scale with `--label_values`."
        )
    if _misses_an_end(_grades_given(part), together, scale, len(part.pairs)):
        ranges = [_range(other.name, given.min(), given.max()) for other, given in zip(sharing, own, strict=True)]
        notes.append(
            f"its labels do not reach both ends of the label scale {low:g} to {high:g}, which is guessed from "
            f"all files. If they have scales of their own, give `--label_ranges {' '.join(ranges)}`, and the model's "
            "scale with `--label_values`; if not, `--label_values` alone."
        )
    return dataclasses.replace(part, notes=(*part.notes, *notes))


def _with_narrow_range_noted(
    part: PairSet, given: np.ndarray, target: LabelScale, training: Sequence[PairSet]
) -> PairSet:
    """
    The set, with a note if its labels miss an end of the scale too clearly for chance, by the training labels.

    Args:
        part: the set, with labels on the target scale.
        given: its labels on the scale of its source.
        target: the scale of the model.
        training: the training sets, with labels on the target scale.
    """
    assert part.scale is not None  # its labels are on the target scale
    if part.scale.names is not None or not training:
        return part
    labels, of_training = part.scale.map_to(target, given), np.concatenate([_labels(other) for other in training])
    if not _misses_an_end(labels, of_training, target, len(part.pairs)):
        return part
    note = (
        f"labels {given.min():g} to {given.max():g} are read on the label scale {part.scale}, but the training "
        f"labels extend further. `{_range_option(part.name, given.min(), given.max())}` names another scale, "
        f"`{_range_option(part.name, part.scale.values[0], part.scale.values[-1])}` this one."
    )
    return dataclasses.replace(part, notes=(*part.notes, note))


def _misses_an_end(labels: np.ndarray, others: np.ndarray, scale: LabelScale, num_pairs: int) -> bool:
    """Whether the labels of some pairs miss an end of the scale that other labels reach, too clearly for chance."""
    margin = END_SHARE * (scale.values[-1] - scale.values[0])
    beyond = np.mean((others < labels.min() - margin) | (others > labels.max() + margin))
    return bool((1 - beyond) ** num_pairs <= UNLIKELY)


def _scale_beside(part: PairSet, reference: LabelScale, other: str, may_ask: bool) -> LabelScale:
    """
    The scale of a set: the reference scale, unless its labels suggest another one. If that is unclear, labels that are
    all nodes of the reference scale are on it.

    Args:
        part: the set, with the labels of its source.
        reference: the scale of the training pairs, or of the checkpoint.
        other: which of the two, for messages.
        may_ask: whether to ask for the scale if it is unclear.

    Raises:
        ValueError: if the scale is unclear and `may_ask` is true.
    """
    relation = _relation(part, reference)
    if relation == UNCLEAR and may_ask:
        raise _unclear(part, other, reference)
    if relation == UNCLEAR and np.isin(_grades_given(part), reference.values).all():
        logger.info(f"{part.name}: label scale {reference}, since its labels are nodes; `--label_ranges` sets another")
        return reference
    if relation == SAME:
        return reference
    own = _guess([part])
    logger.info(f"{part.name}: label scale {own}, guessed from its labels; `--label_ranges` sets another")
    return own


def _relation(part: PairSet, reference: LabelScale) -> str:
    """Whether the labels of a set seem to be on a scale: `SAME`, `OTHER` or `UNCLEAR`."""
    labels = _grades_given(part)
    low, high = reference.values[0], reference.values[-1]
    if low >= 0 and high > low + 1 and UNIT_SCALE.spans(labels) and (labels % 1 != 0).any():
        return OTHER
    if low <= labels.min() and labels.max() <= high:
        share = np.ptp(labels) / (high - low)
        if len(labels) < FEW_PAIRS and share > OTHER_SCALE_SHARE:
            return SAME
    else:
        union = max(high, labels.max()) - min(low, labels.min())
        share = min(high - low, np.ptp(labels)) / union
    return SAME if share > SAME_SCALE_SHARE else OTHER if share <= OTHER_SCALE_SHARE else UNCLEAR


def _unclear(part: PairSet, other: str, scale: LabelScale) -> ValueError:
    low, high = _grades_given(part).min(), _grades_given(part).max()
    own = _guess([part]).values
    return ValueError(
        f"{part.name}: its labels lie between {low:g} and {high:g}, those of {other} between {scale.values[0]:g} and "
        f"{scale.values[-1]:g}. If all are on one scale, give it with `--label_values`; if not, give that of this "
        f"file, such as `{_range_option(part.name, own[0], own[-1])}`."
    )


def _range_option(name: str, low: float, high: float) -> str:
    """The option that states the scale of a set."""
    return f"--label_ranges {_range(name, low, high)}"


def _range(name: str, low: float, high: float) -> str:
    return as_word(f"{Path(name).name}={low:g}:{high:g}")


def _labels(part: PairSet) -> np.ndarray:
    return numbers_of(part.pairs, "label")


def _grades_given(part: PairSet) -> np.ndarray:
    return _grades_in(part.pairs)


def _grades_in(pairs: Dataset) -> np.ndarray:
    """The labels, or all ratings if there are several raters: their means do not show the scale."""
    ratings = ratings_of(pairs)
    return numbers_of(pairs, "label") if ratings is None else ratings[~np.isnan(ratings)]


def _onto_scale(part: PairSet, native: LabelScale, target: LabelScale, is_stated: bool) -> PairSet:
    """
    The set with its labels on the target scale; `is_stated` tells that `label_values` states its own scale.

    Raises:
        ValueError: for labels outside their own scale.
    """
    part = _without_rounding(part, native)
    check_label_scale(part.pairs, part.name, native, is_stated)
    part = dataclasses.replace(part, scale=native)
    if native.values[-1] > 1 and UNIT_SCALE.spans(_grades_given(part)) and (_grades_given(part) % 1 != 0).any():
        logger.warning(
            f"{part.name}: all labels lie between 0 and 1, the lower end of the scale {native}. If they are on "
            f"another scale, give it with `{_range_option(part.name, 0, 1)}`."
        )
    if native.is_alike(target):
        return part
    logger.info(f"{part.name}: labels on the scale {native} are mapped onto {target}")
    return with_labels(part, native.map_to(target, _labels(part)))


def _without_rounding(part: PairSet, scale: LabelScale) -> PairSet:
    """The set; labels beyond an end of the scale by no more than single precision errs are set to this end."""
    labels, low, high = _labels(part), scale.values[0], scale.values[-1]
    inside = np.clip(labels, low, high)
    errors = np.abs(labels - inside)
    near = (errors > 0) & (errors <= SINGLE_PRECISION * max(abs(low), abs(high)))
    return with_labels(part, np.where(near, inside, labels)) if near.any() else part


def with_labels(pair_set: PairSet, labels: np.ndarray) -> PairSet:
    """The set with other labels, one per pair."""
    pairs = pair_set.pairs.remove_columns("label").add_column("label", labels)
    return dataclasses.replace(pair_set, pairs=pairs)


def check_labels_differ(pairs: Dataset, name: str) -> None:
    """Raises `ValueError` for pairs whose labels are all equal; the message names the set and the remedy."""
    if not len(pairs):
        raise ValueError(f"{name}: no pairs are left. Give more, or raise `--train_weights`.")
    if len(pairs) == 1:
        raise ValueError(
            f"{name}: holds one pair, so there is nothing to rank and Spearman's correlation is undefined. Give "
            "pairs with at least two different labels."
        )
    if np.ptp(numbers_of(pairs, "label")) == 0:
        raise ValueError(
            f"{name}: all {len(pairs):,} labels are {pairs['label'][0]:g}, so there is nothing to rank and "
            "Spearman's correlation is undefined. Give pairs with at least two different labels."
        )


def _labels_outside(pairs: Dataset, low: float, high: float) -> list[tuple[int, float]]:
    """Line and value of each label or rating outside a range."""
    labels, ratings = numbers_of(pairs, "label"), ratings_of(pairs)
    given = labels[:, None] if ratings is None else ratings  # (pairs, raters)
    rows, raters = np.nonzero((given < low) | (given > high))
    lines = numbers_of(pairs, "line")
    return [(int(lines[row]), float(given[row, rater])) for row, rater in zip(rows, raters, strict=True)]


def _shown(labels: Sequence[tuple[int, float]]) -> str:
    return ", ".join(f"{label:g} in line {line}" for line, label in labels[:PROBLEMS_SHOWN])


def check_label_scale(pairs: Dataset, name: str, scale: LabelScale, is_stated: bool = True) -> None:
    """
    Raises `ValueError` for labels outside the scale, with the set, the first bad lines and the remedy.

    Args:
        pairs: columns `label` and `line`, and perhaps `ratings`.
        name: the name of the set, for messages.
        scale: the scale of its labels.
        is_stated: whether `label_values` states the scale. If not, the set may have a scale of its own.
    """
    low, high = scale.values[0], scale.values[-1]
    outside = _labels_outside(pairs, low, high)
    if not outside:
        return
    given = _grades_in(pairs)
    counted = np.arange(1, len(scale.values) + 1)
    if not is_stated:
        remedy = (
            "If the file has another scale, give it, such as "
            f"`{_range_option(name, given.min(), given.max())}`. If not, correct the labels."
        )
    elif scale.names is not None and np.isin(given, counted).all():
        values = " ".join(map(str, counted))
        remedy = f"Correct them, or, if 1 is {scale.names[0]!r}, give `--label_values {values}`."
    else:
        remedy = "Correct them, or give the whole scale with `--label_values`."
    raise ValueError(
        f"{name}: {len(outside):,} of {len(given):,} labels lie outside the scale {low:g} to {high:g} "
        f"({_shown(outside)}). {remedy}"
    )
