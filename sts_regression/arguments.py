"""From recipe and command line to the options of each stage.

Options on the command line override those of a recipe, see `recipes.py`. Recipes go through the same parser as the
command line, so types, choices and unknown names are treated alike.
"""

import copy
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset
from transformers import HfArgumentParser, PretrainedConfig
from transformers.trainer_utils import IntervalStrategy, SaveStrategy
from transformers.utils import CONFIG_NAME

from sts_regression.basics.distributed import weights_split_by
from sts_regression.basics.hub_access import check_there
from sts_regression.basics.hub_names import check_language, check_license
from sts_regression.basics.hub_tokens import without_tokens, without_values
from sts_regression.basics.input_files import training_files
from sts_regression.command_help import PROGRAM, RECIPE_SUFFIXES, OptionParser
from sts_regression.configuration_sts_regression import REGRESSION_LOSSES, STSRegressionConfig
from sts_regression.data.columns import PairColumns, texts_of
from sts_regression.data.pairs import given_pairs, stream_sentences
from sts_regression.data.splits import CURVE_SHARES
from sts_regression.data.text_splits import group_by_text
from sts_regression.models.loading import DEFAULT_ENCODER
from sts_regression.options.data_arguments import DataArguments
from sts_regression.options.model_arguments import EMBEDDING_CACHE_OFF, ModelArguments
from sts_regression.recipes import Recipe, read_recipe, suggestion
from sts_regression.training.run_folder import resumes_last
from sts_regression.training.training_arguments import (
    MEASURED_SCHEDULES,
    OPTION_GROUPS,
    STSTrainingArguments,
    name_of,
    repository_of,
)

QUICKSTART = Path(__file__).parent / "quickstart"
QUICKSTART_RECIPE = QUICKSTART / "quickstart.yaml"
# The recipes for own pairs, by the number of training pairs from which each applies.
OWN_PAIRS_RECIPES = {
    0: QUICKSTART / "few_pairs.yaml",
    500: QUICKSTART / "own_pairs.yaml",
}
FEWEST_GROUPS = 100  # of pairs that share texts; with fewer, pairs count as few unless they reach `MOST_COUNTED`
MOST_COUNTED = 10_000
# Turns off options that need the whole weights in each process.
WITHOUT_WHOLE_WEIGHTS = ("--keep_start_if_better=false", "--refit=false", "--bundled_pairs_first=false")
NAMED_SOURCES = 3  # in the name of a run's folder
SOUP_SEED_STEP = 1000  # between members of a model soup, so that soups of seeds 1, 2, … share no member


class Stage(NamedTuple):
    """The options of a run, or of one of the stages that a recipe asks for."""

    model_args: ModelArguments
    data_args: DataArguments
    training_args: STSTrainingArguments
    members: tuple[Path, ...] = ()  # folders of earlier runs, whose weights are averaged instead of training
    fold: int | None = None  # from 1: the part of the training pairs that is scored and not trained on; 1 with `refit`
    share: float | None = None  # the share of the training pairs to train on; `None` for all
    inner: tuple[Path, ...] = ()  # folders of earlier runs that leave scores and, with `refit`, weights
    start: Path | None = None  # folder of the training on bundled pairs, whose weights this training starts from
    is_bundled: bool = False  # whether this is the training on bundled pairs
    drops_checkpoints: bool = False  # whether checkpoints serve to resume only, and go once the run is finished
    untouched: ModelArguments | None = None  # in a later stage, the options of the first, which name its model

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return Path(self.training_args.output_dir or "")

    @property
    def keeps_model(self) -> bool:
        """Whether the trained model is kept; inner runs are trained only for scores of the development pairs."""
        return self.fold is None and self.share is None and not self.is_bundled

    @property
    def averaged(self) -> tuple[Path, ...]:
        """With `refit`, the folders of trainings that leave pairs out, if this is the one on all pairs."""
        return self.inner if self.data_args.refit else ()

    @property
    def about(self) -> str:
        """What sets a stage apart, for the line that begins it; empty for stages of a recipe and members of a soup."""
        if self.is_bundled:
            return ", on bundled pairs"
        if self.inner:
            return ", on all pairs"
        if self.share is not None:
            return f", on {100 * self.share:.0f} % of the pairs"
        if self.fold is None:
            return ""
        return f", without fold {self.fold}" if self.data_args.folds > 1 else ", without the held-out pairs"

    @property
    def is_first_on_pairs(self) -> bool:
        """Whether no earlier run within this one has read the same pairs, so that they are yet to be reported."""
        if self.is_bundled or self.start is not None:
            return self.is_bundled
        return not self.inner and self.fold in (None, 1) and self.share in (None, min(CURVE_SHARES.values()))


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
    drops_checkpoints = False
    if recipe is None:
        stages = [_parse(parser, argv)]
        if stages[0].training_args.do_train:
            if not (stages[0].data_args.has_pairs or given is not None):
                recipe = str(QUICKSTART_RECIPE)
            elif _is_plain(stages[0]):
                recipe = str(_own_pairs_recipe(stages[0].data_args, given))
                fresh = not _is_trained(stages[0].model_args)
                argv = [
                    *(WITHOUT_WHOLE_WEIGHTS if weights_split_by() else []),
                    *([] if fresh else ["--bundled_pairs_first=false"]),
                    *argv,
                ]
        drops_checkpoints = recipe is not None and not any(word.startswith(("--save_", "--save-")) for word in argv)
    if recipe is not None:
        read = read_recipe(recipe)
        stages = [_parse(parser, options) for options in _with_command_line(read, argv)]
        stages = [stage._replace(drops_checkpoints=drops_checkpoints) for stage in stages]
    last = stages[-1]
    last.training_args.output_dir = last.training_args.output_dir or str(Path("outputs") / _run_name(last))
    for number, stage in enumerate(stages[:-1], start=1):
        if not stage.training_args.do_train:
            raise ValueError(
                "a recipe with `stages` trains in every one of them. To evaluate or apply a model, leave the recipe "
                "out and name the model with `--model_name_or_path`."
            )
        stage.training_args.output_dir = str(last.folder / f"stage-{number}")
        stage.data_args.predict_file, stage.training_args.do_predict = None, False
        stages[number].model_args.model_name_or_path = stage.training_args.output_dir
        stages[number] = stages[number]._replace(untouched=stages[0].model_args)
        if stages[number].training_args.keep_start_if_better:
            raise ValueError(
                "`keep_start_if_better`: a later stage starts from a trained encoder, not from the untouched one. "
                "Leave it out, or set it in the first stage alone."
            )
    for stage in stages:
        if stage.data_args.refit and stage.model_args.use_peft:
            raise ValueError(
                "`refit` averages two trainings, which no adapter can hold. Give `--refit false`, or leave "
                "`--use_peft` out."
            )
        stage.data_args.refit = stage.data_args.refit and _can_refit(stage, given)
    if any(stage.data_args.bundled_pairs_first for stage in stages):
        _check_bundled_start(stages)
        return _after_bundled_pairs(last, _with_inner(stages))
    return _with_inner(stages)


def _with_inner(stages: Sequence[Stage]) -> list[Stage]:
    """The stages, with the inner runs that they ask for before them."""
    if any(stage.data_args.folds > 1 for stage in stages):
        _check_inner("folds", stages)
        return _with_folds(stages[-1])
    if any(stage.data_args.learning_curve for stage in stages):
        _check_inner("learning_curve", stages)
        return _with_shares(stages[-1])
    if any(stage.data_args.trains_twice for stage in stages):
        _check_inner("refit", stages)
        return _with_first_training(stages[-1])
    return [part for stage in stages for part in _with_members(stage)]


def _check_bundled_start(stages: Sequence[Stage]) -> None:
    """Raises `ValueError` if the other options do not allow to train on bundled pairs first."""
    model_args, args = stages[-1].model_args, stages[-1].training_args
    reasons = {
        "a recipe with `stages` trains several times in a row. Name one without them": len(stages) > 1,
        "nothing is trained here. Leave it out": not args.do_train,
        "a cross-encoder has no cosine to train. Choose the bi-encoder": model_args.encoder_type == "cross-encoder",
        "`freeze_encoder` keeps the encoder as it is. Leave one of them out": model_args.freeze_encoder,
        "`use_peft` trains an adapter of the untouched encoder. Leave one of them out": model_args.use_peft,
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    if reason is not None:
        raise ValueError(f"`bundled_pairs_first`: {reason}.")


def _after_bundled_pairs(last: Stage, stages: Sequence[Stage]) -> list[Stage]:
    """The training on bundled pairs, and the stages that start from its weights."""
    bundled = _inner(last, "bundled")._replace(is_bundled=True)
    bundled.data_args.refit = True  # reads all training pairs
    if not resumes_last(bundled.training_args):
        bundled.training_args.resume_from_checkpoint = None  # a checkpoint of another training
    return [bundled, *(stage._replace(start=bundled.folder) for stage in stages)]


def _is_plain(stage: Stage) -> bool:
    """Whether the options leave the kind of model open."""
    model_args = stage.model_args
    return (
        model_args.score_function in (None, "cosine")
        and model_args.encoder_type in (None, "bi-encoder")
        and model_args.loss in (None, *REGRESSION_LOSSES)
        and not (model_args.pair_features or model_args.freeze_encoder or model_args.use_peft)
        and not _has_another_head(model_args)
    )


def _own_pairs_recipe(data_args: DataArguments, given: Mapping[str, Dataset] | None) -> Path:
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
    """Whether the model is one of our checkpoints without a cosine head. Training then keeps its head."""
    config = _checkpoint_options(model_args)
    return bool(config) and config.get("score_function") != "cosine"


def _is_trained(model_args: ModelArguments) -> bool:
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


def _with_members(stage: Stage) -> list[Stage]:
    """The members of a model soup, followed by the stage that averages them; any other stage alone."""
    if stage.training_args.model_soup == 1 or not stage.training_args.do_train:
        return [stage]
    members = []
    for number in range(stage.training_args.model_soup):
        member = _inner(stage, f"member-{number + 1}")
        first_seed = stage.training_args.data_seed
        first_seed = stage.training_args.seed if first_seed is None else first_seed
        member.training_args.data_seed = first_seed + SOUP_SEED_STEP * number
        member.training_args.model_soup, member.training_args.keep_start_if_better = 1, False
        members.append(member)
    return [*members, stage._replace(members=tuple(member.folder for member in members))]


def _with_folds(stage: Stage) -> list[Stage]:
    """The runs that leave out a part of the pairs each, and the run on all pairs. None chooses a checkpoint."""
    stage.training_args.eval_strategy = IntervalStrategy.NO
    stage.training_args.load_best_model_at_end = False
    numbers = range(1, stage.data_args.folds + 1)
    folds = [_inner(stage, f"fold-{number}")._replace(fold=number) for number in numbers]
    return [*folds, stage._replace(inner=tuple(fold.folder for fold in folds))]


def could_fold(stage: Stage, given: Mapping[str, Dataset] | None) -> bool:
    """Whether a part of the training pairs is held out, and `folds` could score all of them instead."""
    _, data_args, args = stage[:3]
    named = (data_args.validation_file, data_args.validation_dataset_name, data_args.dataset_name)
    has_development = any(named) or (given is not None and "validation" in given)
    trains_often = data_args.folds > 1 or data_args.learning_curve or args.model_soup > 1
    chooses = args.save_strategy == SaveStrategy.BEST or name_of(args.lr_scheduler_type) in MEASURED_SCHEDULES
    return args.do_train and not (has_development or trains_often or chooses)


def _can_refit(stage: Stage, given: Mapping[str, Dataset] | None) -> bool:
    """Whether trainings leave out a part of the training pairs, and the last one does not need it."""
    held_out = could_fold(stage, given) and not stage.training_args.load_best_model_at_end
    return held_out or stage.data_args.folds > 1


def _with_first_training(stage: Stage) -> list[Stage]:
    """The run without the held-out pairs, and the run on all pairs, whose development scores would mean nothing."""
    first = _inner(stage, "first")._replace(fold=1)
    stage.training_args.eval_strategy = IntervalStrategy.NO
    return [first, stage._replace(inner=(first.folder,))]


def _with_shares(stage: Stage) -> list[Stage]:
    """The runs on a share of the pairs each, the smallest first, and the run on all pairs."""
    parts = [_inner(stage, name)._replace(share=share) for name, share in CURVE_SHARES.items()]
    return [*parts, stage._replace(inner=tuple(part.folder for part in parts))]


def _inner(stage: Stage, name: str) -> Stage:
    """A run with the options of another, in a folder within its folder. It predicts nothing."""
    options = (copy.copy(stage.model_args), copy.copy(stage.data_args), copy.copy(stage.training_args))
    inner = Stage(*options, drops_checkpoints=stage.drops_checkpoints, untouched=stage.untouched)
    inner.training_args.output_dir = str(stage.folder / name)
    inner.data_args.predict_file, inner.training_args.do_predict = None, False
    return inner


def _check_inner(option: str, stages: Sequence[Stage]) -> None:
    """Raises `ValueError` if an option asks for inner runs that the other options do not allow."""
    args = stages[-1].training_args
    schedule = name_of(args.lr_scheduler_type)
    has_no_development = option == "folds"
    reasons = {
        "a recipe with `stages` trains several times in a row. Name one without them": len(stages) > 1,
        "nothing is trained here. Leave it out": not args.do_train,
        "`model_soup` trains several times, too. Leave one of them out": args.model_soup > 1,
        f"`lr_scheduler_type` {schedule} follows development pairs. Name another one": (
            has_no_development and schedule in MEASURED_SCHEDULES
        ),
        "`save_strategy` best needs development pairs. Name another one": (
            has_no_development and args.save_strategy == SaveStrategy.BEST
        ),
        "`resume_from_checkpoint` would give all runs one checkpoint. Give `true`": (
            args.resume_from_checkpoint is not None and not resumes_last(args)
        ),
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    if reason is not None:
        raise ValueError(f"`{option}`: {reason}.")


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
    loss = model_args.loss or "smooth_k2"
    if stage.training_args.do_train:
        names = [Path(source).stem for source in [*(data_args.dataset_name or []), *(data_args.train_file or [])]]
        further = [f"and-{len(names) - NAMED_SOURCES}-more"] if len(names) > NAMED_SOURCES else []
        return "-".join([*(names or ["quickstart"])[:NAMED_SOURCES], *further, loss])
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
        raise ValueError(f"transformers does not take these values of {given} ({error!s:.300}).") from error
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
    model_args, data_args, training_args = stage[:3]
    for option in ("self_distillation", "source_scales", "group_intercepts"):
        if getattr(training_args, option) and (
            model_args.freeze_encoder or model_args.embedding_cache == EMBEDDING_CACHE_OFF
        ):
            raise ValueError(
                f"`{option}` compares a trained encoder with stored embeddings. Leave `--freeze_encoder` out, and "
                "`--embedding_cache` on."
            )
    if training_args.keep_start_if_better and model_args.use_peft:
        raise ValueError(
            "`keep_start_if_better` needs the untouched weights, and `use_peft` merges its adapters into them. Leave "
            "one of the two out."
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
    repository_of(training_args)  # refuses what cannot be published
    return stage
