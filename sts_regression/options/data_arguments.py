"""Options of the pairs."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sts_regression.options.fields import check_finite, option

LEAK_FILTERS = ("exact", "normalized", "sentence", "none")
SICK_SPLITS = ("test", "all")
STSB_VERSIONS = (1, 2)
BACKENDS = ("torch", "onnx-int8")  # of scoring
MAX_TRAIN_WEIGHT = 1000.0
MAX_FOLDS = 20


@dataclass
class DataArguments:
    """The sources of the pairs and the scale of their labels."""

    _argument_group_name: ClassVar[str] = "pairs"

    dataset_name: list[str] | None = option(
        help="Data sets on the Hub; development and test pairs come from the first."
    )
    dataset_config_name: str | None = option(help="Configuration of the data sets of dataset_name.")
    train_file: list[str] | None = option(
        help="Files of training pairs: CSV, TSV, JSON lines, Parquet or Excel (.xlsx, which needs the extra `excel`)."
    )
    train_weights: list[float] | None = option(
        help="How often an epoch uses each training set: 2 for twice, 0.5 for a random half. Data sets on the Hub "
        "come first, then files. Default: 1."
    )
    validation_file: list[str] | None = option(
        help="Files of development pairs. Default, if the run trains: a part of the training pairs."
    )
    validation_dataset_name: str | None = option(help="Data set on the Hub with the development pairs.")
    test_file: list[str] | None = option(
        help="Files of test pairs, scored before and after training, never used to choose anything. Correlations of "
        "several files are averaged."
    )
    sts_data: str | None = option(
        help="Folder of the seven STS tasks (the original files or SentEval's), or hub to download them. The tasks "
        "are scored at the end. Files that other options name are looked for in this folder, too."
    )
    sick_split: str = option(
        "test", "Pairs of SICK-R: test (4,927, as in papers) or all (9,927, as in MTEB).", choices=SICK_SPLITS
    )
    stsb_version: int = option(
        1,
        "Test pairs of STS-B: 1 (all 1,379) or 2 (MTEB's STSBenchmark.v2, without the 17 that occur again in STS-B).",
        choices=STSB_VERSIONS,
    )
    leak_filter: str = option(
        "normalized",
        "Remove training pairs that are test pairs: exact (equal strings, as in the paper), normalized (equal letters "
        "and digits), sentence (one sentence of a test pair is enough) or none.",
        choices=LEAK_FILTERS,
    )
    dev_leak_filter: str = option("none", "The same as leak_filter, for development pairs.", choices=LEAK_FILTERS)
    predict_file: str | None = option(help="File of pairs to score; labels are not needed.")
    predict_output: str | None = option(
        help="File for the scores, .csv or .jsonl. Default: predictions.csv in output_dir."
    )
    predict_chunk_size: int = option(
        4096,
        "Pairs scored and written together. A smaller number takes less memory, and a killed process loses less work.",
    )
    backend: str = option(
        "torch",
        "Engine that scores the pairs of predict_file: torch, or onnx-int8 for 8-bit weights in ONNX Runtime, faster "
        "on CPUs; scores change slightly. Needs the extra onnx.",
        choices=BACKENDS,
    )
    sentence1_column: str | None = option(help="Column of the first sentence. Default: guessed.")
    sentence2_column: str | None = option(help="Column of the second sentence. Default: guessed.")
    label_column: list[str] | None = option(
        help="Column of the label. Default: guessed. If you name several columns, each holds the ratings of one "
        "rater; the label is the mean of the ratings."
    )
    label_values: list[float] | None = option(
        help="Nodes of the label scale, lowest first. Default: guessed from the labels."
    )
    label_ranges: list[str] | None = option(
        help="Lowest and highest possible label of individual files, as FILE=LOW:HIGH; their labels are mapped onto "
        "the scale of the model. Default: known for public data sets, otherwise guessed from the labels."
    )
    grade_names: list[str] | None = option(help="Names of the grades, lowest first; labels are then names.")
    truncate_labels: bool = option(
        False, "Cut off the fractions of training labels, as the paper's code does: 4.8 becomes 4."
    )
    positive_threshold: float | None = option(
        help="Lowest label of a positive pair for info_nce, which trains on positives only. Default: 80 %% of the "
        "scale."
    )
    validation_split_percentage: int | None = option(
        help="Percentage of the training pairs to hold out, by text, if there is no validation file. Default: 10 "
        "(at most 5,000 pairs), or 20 (at most 200 pairs) if there are fewer than 2,000 pairs."
    )
    folds: int = option(
        1,
        "Cross-validation, for few pairs: divide the training pairs by text into this many folds, train once without "
        "each fold and once on all pairs. Each pair is scored by the model that was not trained on it; verdict and "
        "grades use these scores instead of those of development pairs. No checkpoint is chosen (eval_strategy "
        "no, load_best_model_at_end false). Default: 1, which holds out a part.",
    )
    refit: bool = option(
        False,
        "Train twice: first without the held-out pairs, for verdict and grades, then on all pairs. The final weights "
        "are the mean of both models (a model soup); with folds, of the models of all folds and the one trained on "
        "all pairs. No effect with development pairs of your own, data sets on the Hub, load_best_model_at_end, "
        "learning_curve or model_soup.",
    )
    bundled_pairs_first: bool = option(
        False,
        "Train on the bundled English pairs before your own (intermediate-task training, Phang et al. 2018): several "
        "short rounds, whose weights are averaged and stored in the embedding cache for the next run. Ignored "
        "unless the result ranks your training pairs better. For bi-encoders.",
    )
    learning_curve: bool = option(
        False,
        "Estimate the gain from twice as many pairs: train on a quarter and on half of the training pairs before all "
        "of them, and extrapolate Spearman's correlation on the development pairs. Not with folds or model_soup.",
    )
    strict: bool = option(False, "Stop with an error if the data report has findings.")
    max_train_samples: int | None = option(help="Use only the first N training pairs, for a trial run.")
    max_eval_samples: int | None = option(help="Use only the first N development and test pairs, for a trial run.")

    def __post_init__(self) -> None:
        for name in ("dataset_name", "train_file", "validation_file", "test_file"):
            if isinstance(value := getattr(self, name), str):
                setattr(self, name, [value])
        num_sets = len(self.dataset_name or []) + len(self.train_file or [])
        if self.train_weights is not None and (
            len(self.train_weights) != num_sets
            or not all(0 < weight <= MAX_TRAIN_WEIGHT for weight in self.train_weights)
        ):
            raise ValueError(
                f"`train_weights` must be one number greater than 0 for each of the {num_sets} training sets, and at "
                f"most {MAX_TRAIN_WEIGHT:g}, but is {self.train_weights}."
            )
        check_finite(self)
        self.parsed_label_ranges()
        needs = (  # an option, the option that it needs, whether the latter is given
            ("dataset_config_name", "dataset_name", self.dataset_name is not None),
            ("validation_dataset_name", "dataset_name", self.has_pairs),
            ("predict_output", "predict_file", self.predict_file is not None),
            ("backend", "predict_file", self.predict_file is not None),
        )
        for name, companion, is_given in needs:
            if getattr(self, name) != getattr(type(self), name) and not is_given:
                raise ValueError(
                    f"`{name}` has no effect without `--{companion}`. Give `--{companion}`, too, or leave `{name}` "
                    "out."
                )
        of_file = next((name for name in ("validation_file", "validation_dataset_name") if getattr(self, name)), None)
        if self.validation_split_percentage is not None and of_file is not None:
            raise ValueError(
                f"`validation_split_percentage` holds out training pairs, but `{of_file}` gives development pairs. "
                "Leave one of them out."
            )
        if self.validation_split_percentage is not None and not 0 < self.validation_split_percentage < 100:
            raise ValueError(
                f"`validation_split_percentage` must lie between 0 and 100, but is {self.validation_split_percentage}."
            )
        self._check_folds()
        for name in ("max_train_samples", "max_eval_samples", "predict_chunk_size"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {value}.")
        if self.predict_output and Path(self.predict_output).suffix not in (".csv", ".jsonl"):
            raise ValueError(f"`predict_output` must end in .csv or .jsonl, but is {self.predict_output!r}.")

    def _check_folds(self) -> None:
        if not 1 <= self.folds <= MAX_FOLDS:
            raise ValueError(f"`folds` must lie between 1 and {MAX_FOLDS}, but is {self.folds}.")
        of_development = ("validation_file", "validation_dataset_name", "validation_split_percentage")
        given = [name for name in of_development if getattr(self, name) is not None]
        given += ["dev_leak_filter"] if self.dev_leak_filter != "none" else []
        if self.folds > 1 and given:
            raise ValueError(
                f"`folds` scores the training pairs in place of development pairs, but `{given[0]}` is an option of "
                "development pairs. Leave one of them out."
            )
        if self.folds > 1 and self.learning_curve:
            raise ValueError(
                "`learning_curve` compares models on the same development pairs, and `folds` holds none out. Leave "
                "one of them out."
            )

    def parsed_label_ranges(self) -> dict[str, tuple[float, float]]:
        """
        `label_ranges` by file.

        Raises:
            ValueError: for a text that is not of the form FILE=LOW:HIGH, with two finite numbers, the lower one first.
        """
        parsed = {}
        for text in self.label_ranges or []:
            file, _, limits = text.rpartition("=")
            try:
                low, high = map(float, limits.split(":"))
            except ValueError:
                low = high = math.nan
            if not (file and math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError(f"`label_ranges` must hold texts such as pairs.csv=0:10, but holds {text!r:.200}.")
            parsed[file] = (low, high)
        return parsed

    @property
    def trains_twice(self) -> bool:
        """Whether `refit` asks for a first training without the held-out pairs; with `folds` it only averages."""
        return self.refit and self.folds == 1

    @property
    def has_pairs(self) -> bool:
        """Whether any source of labelled pairs was named, the STS tasks apart."""
        return any((self.dataset_name, self.train_file, self.validation_file, self.test_file))
