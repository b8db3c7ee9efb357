"""The sets of pairs that the options name, read as they stand in their sources."""

import dataclasses
from pathlib import Path

from sts_regression.data.columns import PairColumns
from sts_regression.data.labels import LabelScale
from sts_regression.data.pairs import PairSet, load_hub_pairs, read_pairs
from sts_regression.files import check_is_file, is_file
from sts_regression.options import DataArguments

BUNDLED_PAIRS = Path(__file__).parents[1] / "quickstart"
BUNDLED_FILES = {"train": "train.csv", "validation": "dev.csv", "test": "test.csv"}


def read_sets(
    data_args: DataArguments, columns: PairColumns, scale: LabelScale | None, do_train: bool, do_eval: bool
) -> dict[str, list[PairSet]]:
    """
    The sets of pairs of each split that the options name, or the bundled ones; as they stand in their sources.

    Args:
        data_args: which files and data sets.
        columns: column names, where the guess would be wrong.
        scale: the label scale, if it is known; labels may be its names.
        do_train, do_eval: whether training pairs are needed, and whether any are.

    Raises:
        ValueError: where pairs that are needed are not named or not there; see [`read_pairs`] and [`load_hub_pairs`].
    """
    if not (do_train or do_eval):
        return {}
    grades = None if scale is None or scale.names is None else dict(zip(scale.names, scale.values, strict=True))
    files = {
        "train": data_args.train_file if do_train else None,
        "validation": data_args.validation_file,
        "test": data_args.test_file,
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
    for path in named_files(data_args):
        check_is_file(path)


def named_files(data_args: DataArguments) -> list[str | Path]:
    """The files of pairs that the options name, as they are found."""
    lists = (data_args.train_file, data_args.validation_file, data_args.test_file)
    named = [path for paths in lists for path in paths or []] + [*filter(None, [data_args.predict_file])]
    return [_find_file(path, data_args.sts_data) for path in named]


def _find_file(path: str, sts_data: str | None) -> str | Path:
    """The file, looked for in the working directory and then in the folder of the STS data, for portable recipes."""
    if sts_data is not None and not is_file(path) and is_file(Path(sts_data) / path):
        return Path(sts_data) / path
    return path
