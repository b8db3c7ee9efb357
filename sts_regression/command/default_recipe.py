"""The recipe that applies to own pairs if the command names none."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PretrainedConfig
from transformers.utils import CONFIG_NAME

from sts_regression.basics.hub_access import check_there
from sts_regression.basics.input_files import training_files
from sts_regression.configuration_sts_regression import DEFAULT_LOSS, REGRESSION_LOSSES, STSRegressionConfig
from sts_regression.data.columns import PairColumns, texts_of
from sts_regression.data.pairs import given_pairs, stream_sentences
from sts_regression.data.text_splits import group_by_text
from sts_regression.options.data_arguments import DataArguments
from sts_regression.options.model_arguments import ModelArguments
from sts_regression.quickstart import BUNDLED_FOLDER

QUICKSTART_RECIPE = BUNDLED_FOLDER / "quickstart.yaml"
# The recipes for own pairs, by the number of training pairs from which each applies.
OWN_PAIRS_RECIPES = {0: BUNDLED_FOLDER / "few_pairs.yaml", 500: BUNDLED_FOLDER / "own_pairs.yaml"}
FEWEST_GROUPS = 100  # of pairs that share texts; with fewer, pairs count as few unless they reach `MOST_COUNTED`
MOST_COUNTED = 10_000


def leaves_model_open(model_args: ModelArguments) -> bool:
    """Whether the options leave the kind of model open."""
    return (
        model_args.score_function in (None, "cosine")
        and model_args.encoder_type in (None, "bi-encoder")
        and model_args.loss in (None, *REGRESSION_LOSSES)
        and not (model_args.pair_features or model_args.freeze_encoder or model_args.use_peft)
        and not _has_another_head(model_args)
    )


def recipe_for_pairs(data_args: DataArguments, given: Mapping[str, Dataset] | None) -> Path:
    """
    The recipe for the number of training pairs. Data sets on the Hub count as many.

    Pairs that share texts teach less than as many others: unless there are enough groups of them, they count as few.
    """
    number, groups = min(data_args.max_train_samples or MOST_COUNTED, MOST_COUNTED), FEWEST_GROUPS
    if given is not None or not data_args.dataset_name:
        columns = PairColumns(data_args.sentence1_column, data_args.sentence2_column)
        try:
            texts = list(itertools.islice(_training_texts(data_args, columns, given, number), number))
        except (ValueError, OSError):  # reported when the pairs are read
            texts = []
        number = len(texts)
        groups = len(set(group_by_text(*zip(*texts, strict=True)).group_of_pair)) if texts else 0
    if number < MOST_COUNTED and groups < FEWEST_GROUPS:
        number = 0
    return OWN_PAIRS_RECIPES[max(fewest for fewest in OWN_PAIRS_RECIPES if fewest <= number)]


def _training_texts(
    data_args: DataArguments, columns: PairColumns, given: Mapping[str, Dataset] | None, limit: int
) -> Iterator[tuple[str, str]]:
    """Yields both texts of each training pair in files, or of the first pairs in memory."""
    if given is None:
        for path in training_files(data_args):
            yield from stream_sentences(path, columns)
    elif "train" in given:
        first = given["train"].select(range(min(limit, len(given["train"]))))
        pairs = given_pairs("train", first, columns, labelled=False).pairs
        yield from zip(texts_of(pairs, "sentence1"), texts_of(pairs, "sentence2"), strict=True)


def _has_another_head(model_args: ModelArguments) -> bool:
    """Whether the model is one of our checkpoints with another head or kind of loss. Training then keeps them."""
    config = _checkpoint_options(model_args)
    if not config:
        return False
    keeps_loss = model_args.loss is None and config.get("loss_type", DEFAULT_LOSS) not in REGRESSION_LOSSES
    return keeps_loss or config.get("score_function") != "cosine"


def loss_of(model_args: ModelArguments) -> str:
    """The loss that the options name, or else that of the checkpoint."""
    return model_args.loss or _checkpoint_options(model_args).get("loss_type", DEFAULT_LOSS)


def has_trained_head(model_args: ModelArguments) -> bool:
    """Whether the model is one of our checkpoints with a trained head."""
    return bool(_checkpoint_options(model_args).get("head_is_trained"))


def _checkpoint_options(model_args: ModelArguments) -> dict[str, Any]:
    """The configuration of the model if it is one of our checkpoints; else empty."""
    name, revision = model_args.model_name_or_path, model_args.model_revision
    if name is None:
        return {}
    try:
        check_there(name, CONFIG_NAME, revision)
        config, _ = PretrainedConfig.get_config_dict(name, revision=revision)
    except Exception:  # reported when the model is loaded
        return {}
    return config if config.get("model_type") == STSRegressionConfig.model_type else {}
