"""From recipe and command line to the options of each training.

What stands on the command line wins over a recipe, see `recipes.py`. Recipes go through the same parser as the command
line, so that types, choices and unknown names are treated alike.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from transformers import HfArgumentParser

from sts_regression.loading import DEFAULT_ENCODER
from sts_regression.options import (
    EMBEDDING_CACHE_OFF,
    OPTION_GROUPS,
    DataArguments,
    ModelArguments,
    STSTrainingArguments,
)
from sts_regression.recipes import RECIPE_SUFFIXES, read_recipe, suggestion

QUICKSTART_RECIPE = Path(__file__).parent / "quickstart" / "quickstart.yaml"


class STSArgumentParser(HfArgumentParser):
    """HfArgumentParser that raises its errors, in one line, instead of printing two hundred lines of usage."""

    def error(self, message: str) -> NoReturn:
        """Raises `ValueError` with the message."""
        raise ValueError(message)


class Stage(NamedTuple):
    """Options of one run of the command, or of one of the trainings in a row that a recipe asks for."""

    model_args: ModelArguments
    data_args: DataArguments
    training_args: STSTrainingArguments


def parse_stages(argv: Sequence[str] | None = None) -> list[Stage]:
    """
    Reads the options of `run_sts.py [RECIPE.yaml] [--option value …]`.

    Without a recipe and without data, the quick start's recipe for the bundled pairs applies.

    Returns:
        A [`Stage`] for each training of the recipe, most often one. A later one starts from the checkpoint of the one
        before, which lies in a folder `stage-1`, … of its own; predictions are those of the last.

    Raises:
        ValueError: for an unknown option or key, a value of the wrong type or out of range, a missing recipe.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    groups: list[Any] = list(OPTION_GROUPS)
    parser = STSArgumentParser(groups, allow_abbrev=False, prog="run_sts.py")
    recipe = argv.pop(0) if argv and argv[0].endswith(RECIPE_SUFFIXES) else None
    follow_parser = STSArgumentParser(add_help=False, allow_abbrev=False)
    follow_parser.add_argument("--follow")
    follow = follow_parser.parse_known_args(argv)[0].follow
    if recipe is None:
        if follow is not None:
            raise ValueError("`follow` chooses between the forms of a recipe. Name one, or leave it out.")
        stages = [_parse(parser, argv)]
        if stages[0].training_args.do_train and not stages[0].data_args.has_pairs:
            recipe = str(QUICKSTART_RECIPE)
    if recipe is not None:
        stages = [_parse(parser, [*options, *argv]) for options in read_recipe(recipe, follow).stages]
    last = stages[-1].training_args
    last.output_dir = last.output_dir or str(Path("outputs") / _run_name(*stages[-1]))
    for number, stage in enumerate(stages[:-1], start=1):
        stage.training_args.output_dir = str(Path(last.output_dir) / f"stage-{number}")
        stage.data_args.predict_file, stage.training_args.do_predict = None, False
        stages[number].model_args.model_name_or_path = stage.training_args.output_dir
    return stages


def _decide_what_runs(data_args: DataArguments, training_args: STSTrainingArguments, eval_is_refused: bool) -> None:
    """Without `--do_train`, `--do_eval` and `--do_predict`: what the given files allow; without files, everything."""
    if training_args.do_predict and data_args.predict_file is None:
        raise ValueError("`--do_predict` needs pairs to score. Name their file with `--predict_file`.")
    if training_args.do_train or training_args.do_eval or training_args.do_predict:
        return
    has_training_pairs = bool(data_args.train_file or data_args.dataset_name)
    has_scored_pairs = bool(data_args.validation_file or data_args.test_file or data_args.sts_data)
    training_args.do_predict = data_args.predict_file is not None
    training_args.do_train = has_training_pairs or not (has_scored_pairs or training_args.do_predict)
    if not eval_is_refused:
        training_args.do_eval = training_args.do_train or has_scored_pairs


def _run_name(model_args: ModelArguments, data_args: DataArguments, training_args: STSTrainingArguments) -> str:
    """`<data>-<loss>` for a training, `<model>-<data>` for an evaluation; predictions lie with their pairs' name."""
    loss = model_args.loss or "smooth_k2"
    if training_args.do_train:
        sources = [*(data_args.dataset_name or []), *(data_args.train_file or [])]
        return "-".join([*(Path(source).stem for source in sources or ["quickstart"]), loss])
    model = Path(model_args.model_name_or_path or DEFAULT_ENCODER).name
    scored = [*(data_args.validation_file or []), data_args.test_file, "sts" if data_args.sts_data else None]
    data = next((Path(source).stem for source in [*scored, data_args.predict_file] if source), "quickstart")
    return f"{model}-{data}"


def _parse(parser: HfArgumentParser, argv: list[str]) -> Stage:
    """Options of one stage, the quick start's where there is nothing else to train on."""
    *parsed, unknown = parser.parse_args_into_dataclasses(
        argv, return_remaining_strings=True, look_for_args_file=False
    )
    if unknown:
        if unknown[0].endswith(RECIPE_SUFFIXES):
            raise ValueError(f"{unknown[0]!r}: a recipe must come first, before the options.")
        name = unknown[0].lstrip("-").split("=")[0]
        raise ValueError(f"unknown option {unknown[0]!r}.{suggestion(name)}")
    stage = Stage(*parsed)
    model_args, data_args, training_args = stage
    if training_args.self_distillation > 0 and (
        model_args.freeze_encoder or model_args.embedding_cache == EMBEDDING_CACHE_OFF
    ):
        raise ValueError(
            "`self_distillation` compares a trained encoder with stored embeddings. Leave `--freeze_encoder` out, and "
            "`--embedding_cache` on."
        )
    if training_args.head_solver == "lbfgs" and not (
        model_args.freeze_encoder and model_args.embedding_cache != EMBEDDING_CACHE_OFF
    ):
        raise ValueError(
            "`head_solver`: lbfgs solves on the embeddings of a frozen encoder. Give `--freeze_encoder`, and leave "
            "`--embedding_cache` on."
        )
    eval_is_refused = any(argument.startswith("--do_eval") for argument in argv) and not training_args.do_eval
    _decide_what_runs(data_args, training_args, eval_is_refused)
    return stage
