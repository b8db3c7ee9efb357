"""From recipe and command line to the options of each run.

Options on the command line override those of a recipe, see `recipes.py`. Recipes go through the same parser as the
command line, so types, choices and unknown names are treated alike.
"""

import itertools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import HfArgumentParser

from sts_regression.basics.distributed import weights_split_by
from sts_regression.basics.hub_names import check_language, check_license
from sts_regression.basics.hub_tokens import without_tokens, without_values
from sts_regression.command.command_help import PROGRAM, RECIPE_SUFFIXES, OptionParser
from sts_regression.command.default_recipe import (
    QUICKSTART_RECIPE,
    has_trained_head,
    leaves_model_open,
    loss_of,
    recipe_for_pairs,
)
from sts_regression.command.recipes import Recipe, read_recipe, suggestion
from sts_regression.command.stages import Stage, all_runs, can_refit
from sts_regression.models.loading import DEFAULT_ENCODER
from sts_regression.options.data_arguments import DataArguments
from sts_regression.options.model_arguments import EMBEDDING_CACHE_OFF
from sts_regression.training.training_arguments import OPTION_GROUPS, STSTrainingArguments, repository_of

# Turns off options that compare with stored embeddings.
WITHOUT_STORED_EMBEDDINGS = ("--self_distillation=0", "--group_intercepts=false")
# Turns off options that need the whole weights in each process.
WITHOUT_WHOLE_WEIGHTS = ("--keep_start_if_better=false", "--refit=false", "--bundled_pairs_first=false")
NAMED_SOURCES = 3  # in the name of a run's folder


def parse_stages(argv: Sequence[str] | None = None, given: Mapping[str, Dataset] | None = None) -> list[Stage]:
    """
    Reads the options of `run_sts.py [RECIPE.yaml] [--option value …]`.

    Without a recipe and without data, the quick start's recipe for the bundled pairs applies. With data, one of
    `OWN_PAIRS_RECIPES` applies, unless the options name another kind of model. Checkpoints are then deleted at the end
    of the run, unless an option asks for them. If stages of the recipe set an option themselves, the command line
    overrides it in these stages; any other option applies to all stages.

    Args:
        argv: the words; `None` for those of this process.
        given: pairs in memory, by split, which no option names.

    Returns:
        A [`Stage`] for each stage of the recipe, most often one. A later stage starts from the checkpoint of the stage
        before, in the folder `stage-1`, …; the last stage makes the predictions. The members of a model soup
        (`member-1`, …), folds (`fold-1`, …), the runs of a learning curve (`quarter`, `half`), the first training of
        `refit` (`first`) and the training on bundled pairs (`bundled`) come before their stage, in folders within its
        own.

    Raises:
        ValueError: for an unknown option or key, a value of the wrong type or out of range, a missing recipe.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    groups: list[Any] = list(OPTION_GROUPS)
    parser = OptionParser(groups, allow_abbrev=False, prog=PROGRAM)
    _check_lists_are_given_once(parser, argv)
    recipe = argv.pop(0) if argv and argv[0].endswith(RECIPE_SUFFIXES) else None
    if recipe is not None:
        stages = _parse_recipe(parser, recipe, argv)
    else:
        # Recipes and folds turn `load_best_model_at_end` off, with which fewer options are allowed.
        keeps_best = parser.get_default("load_best_model_at_end")
        parser.set_defaults(load_best_model_at_end=False)
        first = _parse(parser, argv)
        parser.set_defaults(load_best_model_at_end=keeps_best)
        recipe, extra = _default_recipe(first, given)
        if recipe is None:
            stages = [first if first.data_args.folds > 1 else _parse(parser, argv)]
        else:
            keeps = any(word.startswith(("--save_", "--save-")) for word in argv)
            stages = _parse_recipe(parser, recipe, [*extra, *argv])
            stages = [stage._replace(drops_checkpoints=not keeps) for stage in stages]
    last = stages[-1]
    last.training_args.output_dir = last.training_args.output_dir or str(Path("outputs") / _run_name(last))
    stages = _linked(stages)
    for stage in stages:
        if stage.data_args.refit and stage.model_args.use_peft:
            raise ValueError(
                "`refit` averages the weights of two rounds, which an adapter cannot hold. Give `--refit false`, or "
                "leave `--use_peft` out."
            )
        stage.data_args.refit = stage.data_args.refit and can_refit(stage, given)
    return all_runs(stages)


def _default_recipe(stage: Stage, given: Mapping[str, Dataset] | None) -> tuple[str | None, list[str]]:
    """The recipe of a command that names none, if any applies, and options that override it."""
    if not stage.training_args.do_train:
        return None, []
    if not (stage.data_args.has_pairs or given is not None):
        return str(QUICKSTART_RECIPE), []
    if not leaves_model_open(stage.model_args):
        return None, []
    overriding = list(WITHOUT_WHOLE_WEIGHTS) if weights_split_by() else []
    if has_trained_head(stage.model_args):
        overriding.append("--bundled_pairs_first=false")
    if stage.model_args.embedding_cache == EMBEDDING_CACHE_OFF:
        overriding += WITHOUT_STORED_EMBEDDINGS
    return str(recipe_for_pairs(stage.data_args, given)), overriding


def _parse_recipe(parser: HfArgumentParser, recipe: str, argv: Sequence[str]) -> list[Stage]:
    """The options of each stage of a recipe and of the command line."""
    return [_parse(parser, options) for options in _with_command_line(read_recipe(recipe), argv)]


def _linked(stages: Sequence[Stage]) -> list[Stage]:
    """The stages in folders within that of the last, each with the one before as its model."""
    last, linked = stages[-1], list(stages)
    for number, stage in enumerate(stages[:-1], start=1):
        if not stage.training_args.do_train:
            raise ValueError(
                "a recipe with `stages` trains in each stage. To evaluate or apply a model, leave the recipe "
                "out and name the model with `--model_name_or_path`."
            )
        stage.training_args.output_dir = str(last.folder / f"stage-{number}")
        stage.data_args.predict_file, stage.training_args.do_predict = None, False
        linked[number].model_args.model_name_or_path = stage.training_args.output_dir
        linked[number] = linked[number]._replace(untouched=stages[0].model_args)
        if linked[number].training_args.keep_start_if_better:
            raise ValueError(
                "`keep_start_if_better`: a later stage starts from a trained encoder, not from the untouched one. "
                "Leave it out, or set it in the first stage alone."
            )
    return linked


def _with_command_line(recipe: Recipe, argv: Sequence[str]) -> list[list[str]]:
    """The options of each stage, followed by its options from the command line."""
    options: list[list[str]] = []
    for word in argv:
        if word.startswith("--") or not options:
            options.append([])
        options[-1].append(word)
    names = [words[0].lstrip("-").partition("=")[0].replace("-", "_").removeprefix("no_") for words in options]
    owned = frozenset().union(*recipe.own)
    staged = []
    for stage, own in zip(recipe.stages, recipe.own, strict=True):
        chosen = (words for name, words in zip(names, options, strict=True) if name in own or name not in owned)
        staged.append([*stage, *itertools.chain(*chosen)])
    return staged


def _decide_what_runs(data_args: DataArguments, training_args: STSTrainingArguments, eval_is_refused: bool) -> None:
    """Predicts if there is a file to predict. Without `--do_…`, the given files decide about the rest."""
    if training_args.do_predict and data_args.predict_file is None:
        raise ValueError("`--do_predict` needs pairs to score. Name their file with `--predict_file`.")
    was_told = training_args.do_train or training_args.do_eval or training_args.do_predict
    training_args.do_predict = data_args.predict_file is not None
    if was_told:
        return
    has_training_pairs = bool(data_args.train_file or data_args.dataset_name)
    has_scored_pairs = bool(data_args.validation_file or data_args.test_file or data_args.sts_data)
    training_args.do_train = has_training_pairs or not (has_scored_pairs or training_args.do_predict)
    if not eval_is_refused:
        training_args.do_eval = training_args.do_train or has_scored_pairs


def _check_lists_are_given_once(parser: HfArgumentParser, argv: Sequence[str]) -> None:
    """Refuses `--train_file a.csv --train_file b.csv`, of which the parser would silently keep the last."""
    given = [word.partition("=")[0] for word in argv]
    for action in parser._actions:
        if action.nargs in ("+", "*") and sum(given.count(name) for name in action.option_strings) > 1:
            name = action.option_strings[0]
            raise ValueError(f"`{name}` is given more than once. List all of its values after one: `{name} A B`.")


def _run_name(stage: Stage) -> str:
    """`<data>-<loss>` if the run trains, else `<model>-<data>`, with the file of pairs to predict as last choice."""
    model_args, data_args = stage.model_args, stage.data_args
    if stage.training_args.do_train:
        names = [Path(source).stem for source in [*(data_args.dataset_name or []), *(data_args.train_file or [])]]
        further = [f"and-{len(names) - NAMED_SOURCES}-more"] if len(names) > NAMED_SOURCES else []
        return "-".join([*(names or ["quickstart"])[:NAMED_SOURCES], *further, loss_of(model_args)])
    model = Path(model_args.model_name_or_path or DEFAULT_ENCODER).name
    scored = [*(data_args.validation_file or []), *(data_args.test_file or []), "sts" if data_args.sts_data else None]
    data = next((Path(source).stem for source in [*scored, data_args.predict_file] if source), "quickstart")
    return f"{model}-{data}"


def _parse(parser: HfArgumentParser, argv: list[str]) -> Stage:
    """The options of one stage."""
    try:
        *parsed, unknown = parser.parse_args_into_dataclasses(
            argv, return_remaining_strings=True, look_for_args_file=False
        )
    except ValueError:
        raise
    except Exception as error:  # any kind: transformers does not check all of its options
        given = " ".join(word.partition("=")[0] for word in argv if word.startswith("--"))
        raise ValueError(f"transformers does not accept these values of {given} ({error!s:.300}).") from error
    if unknown:
        if unknown[0].endswith(RECIPE_SUFFIXES):
            raise ValueError(f"{unknown[0]!r}: a recipe must come first, before the options.")
        word = without_tokens(without_values(unknown)[0])  # without the option's value, which may be a token
        if not word.startswith("-"):
            raise ValueError(
                f"{word!r:.80} belongs to no option. Put the option's name in front, such as `--train_file pairs.csv`."
            )
        raise ValueError(f"unknown option {word!r:.80}.{suggestion(word.lstrip('-'), '--')}")
    stage = Stage(*parsed)
    model_args, data_args, training_args = stage.options
    for option in ("self_distillation", "source_scales", "group_intercepts"):
        if getattr(training_args, option) and (
            model_args.freeze_encoder or model_args.embedding_cache == EMBEDDING_CACHE_OFF
        ):
            raise ValueError(
                f"`{option}` compares a trained encoder with stored embeddings. Leave `--freeze_encoder` out, and "
                "`--embedding_cache` on."
            )
    if training_args.head_solver == "lbfgs" and not model_args.uses_store:
        raise ValueError(
            "`head_solver`: lbfgs solves on the embeddings of a frozen encoder. Give `--freeze_encoder`, and leave "
            "`--embedding_cache` on."
        )
    eval_is_refused = any(argument.startswith("--do_eval") for argument in argv) and not training_args.do_eval
    _decide_what_runs(data_args, training_args, eval_is_refused)
    check_license(model_args.license)
    check_language(model_args.language)
    repository_of(training_args)  # refuses a run that cannot be published
    return stage
