"""Gathering the training, development and test pairs that the options name, on one label scale."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset

from sts_regression.arguments import DataArguments, STSTrainingArguments
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data import (
    PairColumns,
    check_label_scale,
    check_labels_differ,
    infer_label_values,
    load_hub_pairs,
    read_pairs,
)

logger = logging.getLogger(__name__)

BUNDLED_PAIRS = Path(__file__).parent / "quickstart"
BUNDLED_FILES = {"train": "train.csv", "validation": "dev.csv", "test": "test.csv"}
MIN_HELD_OUT_PAIRS = 5  # a correlation of fewer pairs says nothing
POSITIVE_SHARE = 0.8  # of the scale: the paper's 4.0 on 0 to 5


@dataclass
class Splits:
    """Pairs by the names `train`, `validation`, `test`, as far as given; where they come from; their label scale."""

    pairs: dict[str, Dataset]
    sources: dict[str, str]
    label_values: list[float]
    label_names: list[str] | None

    @property
    def scored(self) -> list[str]:
        """The names of the splits that are scored, the test split last."""
        return [name for name in ("validation", "test") if name in self.pairs]

    def config_overrides(self) -> dict[str, Any]:
        """The label scale as options of the model's configuration; none where no pairs were read."""
        return {"label_values": self.label_values, "label_names": self.label_names} if self.pairs else {}

    def keep_positives(self, threshold: float | None) -> None:
        """
        Drops training pairs below `threshold` (default: 80 % of the scale), for losses that know positives only.

        Raises:
            ValueError: where none is left.
        """
        low, high = self.label_values[0], self.label_values[-1]
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
) -> Splits:
    """
    Reads every split that is needed, of the data that the options name or of the bundled pairs, on one label scale.

    Args:
        data_args: which data.
        columns: column names, where the guess would be wrong.
        checkpoint_config: of the model to continue with or to evaluate, if it knows a label scale. Options overrule
            it.
        training_args: whether there is training or evaluation at all; the seed decides which training pairs become
            development pairs where no file holds any.

    Raises:
        ValueError: for anything wrong with the pairs; see [`read_pairs`].
    """
    if not (training_args.do_train or training_args.do_eval):
        return Splits({}, {}, [], None)
    label_values, grade_names = data_args.label_values, data_args.grade_names
    if label_values is None and grade_names is None and checkpoint_config is not None:
        label_values, grade_names = checkpoint_config.label_values, checkpoint_config.label_names
    if label_values is None and grade_names is not None:
        label_values = [float(index) for index in range(len(grade_names))]
    grades = None
    if label_values is not None:
        # Refuses uneven nodes, or more or fewer names than nodes, before any file is read.
        STSRegressionConfig(label_values=label_values, label_names=grade_names, loss_type="mse")
        grades = None if grade_names is None else dict(zip(grade_names, label_values, strict=True))

    files = {"train": data_args.train_file, "validation": data_args.validation_file, "test": data_args.test_file}
    bundled = dict(BUNDLED_FILES)
    if not training_args.do_train:
        del files["train"], bundled["train"]
    elif data_args.has_pairs and not (data_args.train_file or data_args.dataset_name):
        raise ValueError("`train_file`: training needs training pairs. Give them, or leave out `--do_train`.")
    if data_args.dataset_name:
        name, config_name = data_args.dataset_name, data_args.dataset_config_name
        sources = {split: f"{name} ({split})" for split in files}
        pairs = {split: load_hub_pairs(name, split, config_name, columns, grades) for split in files}
    elif data_args.has_pairs:
        sources = {split: file for split, file in files.items() if file is not None}
        pairs = {split: read_pairs(file, columns, grades) for split, file in sources.items()}
    else:
        sources = {split: f"bundled {file}" for split, file in bundled.items()}
        pairs = {split: read_pairs(BUNDLED_PAIRS / file) for split, file in bundled.items()}

    for split, dataset in pairs.items():
        check_labels_differ(dataset, sources[split])
    if label_values is None:
        label_values = infer_label_values([label for dataset in pairs.values() for label in dataset["label"]])
        nodes = " ".join(f"{value:g}" for value in label_values)
        logger.info(f"label scale {nodes}, guessed from the labels; `--label_values` sets another")
    for split, dataset in pairs.items():
        check_label_scale(dataset, sources[split], label_values)

    if "train" in pairs and "validation" not in pairs:
        held_out = data_args.validation_split_percentage / 100
        if len(pairs["train"]) * held_out < MIN_HELD_OUT_PAIRS:
            raise ValueError(
                f"{sources['train']}: {len(pairs['train']):,} pairs are too few to hold out "
                f"{data_args.validation_split_percentage} % of them for development. Give development pairs with "
                "`--validation_file`, or raise `--validation_split_percentage`."
            )
        parts = pairs["train"].train_test_split(held_out, seed=training_args.seed)
        pairs["train"], pairs["validation"] = parts["train"], parts["test"]
        sources["validation"] = f"{data_args.validation_split_percentage} % of {sources['train']}"
        logger.info(f"development pairs: {sources['validation']}, chosen with seed {training_args.seed}")
    limits = {"train": data_args.max_train_samples}
    for split, dataset in pairs.items():
        limit = limits.get(split, data_args.max_eval_samples)
        if limit is not None:
            pairs[split] = dataset.select(range(min(limit, len(dataset))))
        check_labels_differ(pairs[split], sources[split])
    return Splits(pairs, sources, list(label_values), grade_names)
