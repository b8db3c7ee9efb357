"""Reads the sets of pairs that the options name, from files or the Hub, with the labels of their sources."""

import dataclasses
import logging
import re
from collections.abc import Mapping

from datasets import Dataset, get_dataset_split_names, load_dataset

from sts_regression.basics.hub_access import check_there
from sts_regression.basics.input_files import find_pair_file
from sts_regression.data.columns import PairColumns
from sts_regression.data.labels import SICK_SCALE, STS_SCALE, UNIT_SCALE, LabelScale
from sts_regression.data.pairs import PairSet, given_pairs, read_pairs
from sts_regression.options.data_arguments import DataArguments
from sts_regression.quickstart import BUNDLED_FOLDER

logger = logging.getLogger(__name__)

DATASET_CARD = "README.md"  # the first file that is fetched from a data set on the Hub
# The label scales and configurations of data sets on the Hub that do not state them.
HUB_SCALES = {
    "sentence-transformers/stsb": UNIT_SCALE,
    "mteb/sickr-sts": SICK_SCALE,
    **dict.fromkeys(
        ("mteb/stsbenchmark-sts", "mteb/STSBenchmarkv2", *(f"mteb/sts{year}-sts" for year in range(12, 17))), STS_SCALE
    ),
}
HUB_CONFIGS = {"sentence-transformers/all-nli": "pair-class"}
HUB_SPLITS = {
    "train": ("train",),
    "validation": ("validation", "dev", "validation_matched"),
    "test": ("test", "validation_mismatched"),
}
BUNDLED_FILES = {"train": "train.csv", "validation": "dev.csv", "test": "test.csv"}
# The held-out share or number of folds, the name of a file or data set, and the split of a data set.
SOURCE_PATTERN = re.compile(
    r"(?P<part>(?:(?P<share>[\d.e-]+ %)|\d+ folds) of )?(?P<name>.*?)(?P<split> \(\w+\))?", re.DOTALL
)


def parse_source(source: str) -> re.Match[str]:
    """The groups of [`SOURCE_PATTERN`] in the name of a set of pairs; each but `name` may be `None`."""
    match = SOURCE_PATTERN.fullmatch(source)
    assert match is not None  # matches any text
    return match


def held_out_of(source: str) -> str | None:
    """The name of the set that pairs were held out of; `None` for other sources."""
    match = parse_source(source)
    return None if match["share"] is None else source[match.end("part") :]


def read_sets(
    data_args: DataArguments,
    columns: PairColumns,
    scale: LabelScale | None,
    do_train: bool,
    do_eval: bool,
    given: Mapping[str, Dataset] | None = None,
) -> dict[str, list[PairSet]]:
    """
    Reads the sets of pairs of each split: given pairs, named sets, or the bundled pairs. Labels are not mapped yet.

    Args:
        data_args: options that name files and data sets.
        columns: names of columns that would be guessed wrong.
        scale: the label scale, if it is known; labels may be names of its grades.
        do_train: whether training pairs are needed.
        do_eval: whether development and test pairs are needed.
        given: pairs in memory, by split; the options then name none.

    Raises:
        ValueError: if required pairs are not named or do not exist, see [`read_pairs`] and [`load_hub_pairs`].
    """
    if not (do_train or do_eval):
        return {}
    names = None if scale is None else scale.names or data_args.grade_names  # numbers that are given as names
    grades = None if scale is None or names is None else dict(zip(names, scale.values, strict=True))
    if given:
        return {
            split: [given_pairs(f"{split} pairs", dataset, columns, grades)]
            for split, dataset in given.items()
            if do_train or split != "train"
        }
    if not data_args.has_pairs:
        # Without training, a run may score the STS tasks only.
        if data_args.sts_data and not do_train:
            return {}
        if not do_train:
            logger.info("No pairs are named, so the bundled ones are scored. `--test_file` names yours.")
        return _bundled_sets(do_train)
    if do_train and not (data_args.train_file or data_args.dataset_name):
        raise ValueError("`train_file`: training needs training pairs. Give them, or leave out `--do_train`.")
    sets = _training_sets(data_args, columns, grades) if do_train else {}
    for split, paths in (("validation", data_args.validation_file), ("test", data_args.test_file)):
        found = _hub_set(data_args, split, columns, grades, has_files=bool(paths))
        found += [read_pairs(find_pair_file(path, data_args.sts_data), columns, grades) for path in paths or []]
        if found:
            sets[split] = found
    if not sets:
        raise ValueError("nothing to score. Give pairs with `--validation_file` or `--test_file`, or `--sts_data`.")
    return sets


def _bundled_sets(do_train: bool) -> dict[str, list[PairSet]]:
    return {
        split: [dataclasses.replace(read_pairs(BUNDLED_FOLDER / file), name=f"bundled {file}")]
        for split, file in BUNDLED_FILES.items()
        if do_train or split != "train"
    }


def _training_sets(
    data_args: DataArguments, columns: PairColumns, grades: Mapping[str, float] | None
) -> dict[str, list[PairSet]]:
    """Training pairs: first the data sets on the Hub, then the files."""
    names, paths = data_args.dataset_name or [], data_args.train_file or []
    parts = [load_hub_pairs(name, "train", data_args.dataset_config_name, columns, grades) for name in names]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        raise ValueError(f"`dataset_name`: {data_args.dataset_name} have no training split. Name other sets.")
    return {
        "train": [*found, *(read_pairs(find_pair_file(path, data_args.sts_data), columns, grades) for path in paths)]
    }


def _hub_set(
    data_args: DataArguments,
    split: str,
    columns: PairColumns,
    grades: Mapping[str, float] | None,
    has_files: bool,
) -> list[PairSet]:
    """Development or test pairs on the Hub: of the set named for them, or, without files, of the first set."""
    named = data_args.validation_dataset_name if split == "validation" else None
    if named is not None:
        part = load_hub_pairs(named, split, None, columns, grades)
        if part is None:
            raise ValueError(f"`validation_dataset_name`: {named!r} has no development split. Name another set.")
        return [part]
    is_in_folds = split == "validation" and data_args.folds > 1  # training pairs take the place of development pairs
    if has_files or is_in_folds or not data_args.dataset_name:
        return []
    part = load_hub_pairs(data_args.dataset_name[0], split, data_args.dataset_config_name, columns, grades)
    return [] if part is None else [part]


def load_hub_pairs(
    name: str,
    split: str,
    config_name: str | None = None,
    columns: PairColumns | None = None,
    grades: Mapping[str, float] | None = None,
) -> PairSet | None:
    """
    Reads one split of a data set on the Hub, for example `sentence-transformers/stsb`; otherwise as [`read_pairs`].

    Args:
        name: Hub id of the data set.
        split: "train", "validation" or "test"; other common names, such as "dev", are found.
        config_name: configuration of the data set, if it has several.
        columns: names of columns that would be guessed wrong.
        grades: names that labels may have instead of numbers.

    Returns:
        The pairs, or `None` if the data set has no such split.
    """
    config_name = config_name or HUB_CONFIGS.get(name)
    try:
        check_there(name, DATASET_CARD, repo_type="dataset")
        available_splits = get_dataset_split_names(name, config_name)
        hub_split = next((known for known in HUB_SPLITS[split] if known in available_splits), None)
        if hub_split is None:
            return None
        dataset = load_dataset(name, config_name, split=hub_split)
    except Exception as error:  # any kind: loaders raise many, which all mean the same to the user
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(
            f"`dataset_name`: could not load the split {split!r} of {name!r} ({kind}{error!s:.300}). Check the "
            "name and the network, or give local files with `--train_file`, `--validation_file` and `--test_file`."
        ) from error
    source = f"{name} ({hub_split})"
    return given_pairs(source, dataset, columns, grades, scale=HUB_SCALES.get(name))
