"""The preparation of a run: reads and checks its data, begins its record, loads the model, builds the Trainer."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from datasets import Dataset
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from sts_regression.basics.distributed import weights_split_by
from sts_regression.basics.input_files import named_files, training_files
from sts_regression.basics.quiet import PACKAGE, draws_bars, level_of
from sts_regression.command.stages import Stage
from sts_regression.configuration_sts_regression import (
    DEFAULT_LOSS,
    HEADLESS_LOSSES,
    REGRESSION_LOSSES,
    STSRegressionConfig,
)
from sts_regression.data.columns import PairColumns, numbers_of, texts_of
from sts_regression.data.data_report import (
    TITLES,
    data_findings,
    development_findings,
    rating_lines,
    report_findings,
    report_leaks,
)
from sts_regression.data.leakage import describe_leaks, pair_keys
from sts_regression.data.scales import stated_grades
from sts_regression.data.splits import UNLABELLED_LOSSES, Splits, load_splits
from sts_regression.data.sts_tasks import STSTask, load_sts_tasks, task_files
from sts_regression.data.text_splits import group_by_text
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.embedding_store import add_anchors, embed_pairs
from sts_regression.models.loading import ModelSource, find_model, load_model, model_files, resolve_max_seq_length
from sts_regression.models.onnx_graphs import check_backend
from sts_regression.models.score_maps import fit_group_intercepts, fit_score_maps
from sts_regression.models.tokenization import tokenize_pairs
from sts_regression.serving.pair_file import PairFile, check_pair_file
from sts_regression.serving.prediction import check_predictions
from sts_regression.training.head_solver import check_convex
from sts_regression.training.inner_runs import has_weights, take_weights
from sts_regression.training.lora import add_lora
from sts_regression.training.run_folder import files_trained_on, resumes_last
from sts_regression.training.run_record import (
    describe_arguments,
    describe_command,
    describe_determinism,
    describe_environment,
    describe_pairs,
    file_digests,
)
from sts_regression.training.trainer import STSTrainer
from sts_regression.training.training_arguments import STSTrainingArguments
from sts_regression.training.weight_averaging import copy_weights

logger = logging.getLogger(__name__)


class Inputs(NamedTuple):
    """The inputs of a run, read before a model is loaded."""

    source: ModelSource
    untouched: ModelSource  # differs from `source` in a later stage, which starts from the model of the one before
    splits: Splits
    sts_tasks: list[STSTask]
    new_pairs: PairFile | None  # the pairs to predict

    @property
    def foreign_modules(self) -> tuple[str, ...]:
        """
        Modules that a sentence-transformers model has and ours lacks, in words, if that library scores the model.

        The library scores such a model if the run only evaluates STS tasks; otherwise the tuple is empty.
        """
        modules = self.source.modules
        return () if modules is None or self.splits.pairs or self.new_pairs else modules.unsupported


def check_whole_weights(stage: Stage) -> None:
    """
    Refuses options that need the whole model in each process if FSDP or DeepSpeed splits it.

    Raises:
        ValueError: for such an option; the message names it.
    """
    split_by = weights_split_by()
    model_args, data_args, training_args = stage.options
    needs_whole = {
        "use_peft": model_args.use_peft,
        "predict_file": training_args.do_predict,
        "sts_data": training_args.do_eval and data_args.sts_data is not None,
        "do_eval": not training_args.do_train,
        "head_solver": training_args.head_solver == "lbfgs",
        "wise_ft_alpha": training_args.wise_ft_alpha < 1,
        "model_soup": bool(stage.members),
        "folds": data_args.folds > 1,
        "refit": data_args.refit,
        "bundled_pairs_first": data_args.bundled_pairs_first,
        "learning_curve": data_args.learning_curve,
    }
    refused = next((option for option, is_used in needs_whole.items() if is_used and split_by), None)
    if refused is not None:
        raise ValueError(
            f"`{refused}` needs the whole model in each process, which {split_by} splits up. Leave it out, or launch "
            "with another file of `accelerate_configs`; a finished checkpoint can be scored in a command of its own."
        )


def read_inputs(stage: Stage, given: Mapping[str, Dataset] | None = None) -> Inputs:
    """
    Finds the model and reads and checks all data, before anything is loaded or written.

    Args:
        stage: the options.
        given: pairs in memory, by split, in place of those that the options name.
    """
    model_args, data_args, training_args = stage.options
    source = find_model(model_args.model_name_or_path, model_args.model_revision, model_args.trust_remote_code)
    untouched = source
    if (first := stage.untouched) is not None:
        untouched = find_model(first.model_name_or_path, first.model_revision, first.trust_remote_code)
    columns = PairColumns(data_args.sentence1_column, data_args.sentence2_column, data_args.label_column)
    new_pairs = None
    if training_args.do_predict and data_args.predict_file is not None:
        may_replace = training_args.overwrite_output_dir or resumes_last(training_args)
        files = [*named_files(data_args), *model_files(source.path), *task_files(data_args.sts_data)]
        check_predictions(predictions_file(stage), files, may_replace)
        new_pairs = check_pair_file(data_args.predict_file, columns)
        check_backend(data_args.backend, training_args.device)
    sts_tasks = []
    if data_args.sts_data:
        sts_tasks = load_sts_tasks(data_args.sts_data, data_args.sick_split, data_args.stsb_version)
    checkpoint = source.checkpoint_config
    loss_type = model_args.loss or (DEFAULT_LOSS if checkpoint is None else checkpoint.loss_type)
    level = logging.WARNING if stage.repeats_pairs else logging.NOTSET  # the first run tells forms and scales
    with level_of(f"{PACKAGE}.data.pairs", level), level_of(f"{PACKAGE}.data.scales", level):
        splits = load_splits(
            data_args,
            columns,
            checkpoint,
            do_train=training_args.do_train,
            do_eval=training_args.do_eval,
            seed=training_args.seed,
            sts_tasks=sts_tasks,
            loss_type=loss_type,
            given=given,
            fold=stage.fold,
            share=stage.share,
            num_used=training_args.num_pairs_of_steps,
        )
    return Inputs(source, untouched, splits, sts_tasks, new_pairs)


def describe_inputs(stage: Stage, command: list[str], inputs: Inputs) -> dict[str, Any]:
    """The first part of the run's record: command, options, environment and data."""
    splits = inputs.splits
    return {
        "command": describe_command(command),
        "arguments": describe_arguments(*stage.options),
        "seed": stage.training_args.seed,
        "environment": {**describe_environment(), **describe_determinism(stage.training_args)},
        "data": {
            **{
                split: describe_pairs(pairs, splits.sets[split], splits.set_of_pair[split])
                for split, pairs in splits.pairs.items()
            },
            **{task.name: describe_pairs(task.pairs, task.parts) for task in inputs.sts_tasks},
        },
        "leakage": describe_leaks(splits.leaks),
    }


def count_pairs(pairs: Mapping[str, Dataset]) -> str:
    """The pairs of some splits in words, such as "1,500 training, 300 development and 300 test pairs"."""
    *first, last = (f"{len(some):,} {TITLES[split]}" for split, some in pairs.items())
    return " and ".join(filter(None, [", ".join(first), last])) + " pairs"


def predictions_file(stage: Stage) -> Path:
    """The file of the predictions."""
    return Path(stage.data_args.predict_output or stage.folder / "predictions.csv")


def prepare_model(stage: Stage, inputs: Inputs) -> tuple[STSRegressionModel, PreTrainedTokenizerBase]:
    """
    Loads the model, and freezes the parts of it that the options name.

    Returns:
        The model and its tokenizer.

    Raises:
        ValueError: for options that the model does not support.
    """
    model_args, training_args = stage.model_args, stage.training_args
    overrides = {**model_args.config_overrides(), **inputs.splits.config_overrides()}
    if not training_args.do_train:  # without pairs, the scale that is stated could only be the model's
        stated = zip(("label_values", "label_names"), stated_grades(stage.data_args), strict=True)
        given = {name: value for name, value in stated if value is not None}
        _check_as_trained(inputs.source, {**given, **overrides})
    logger.info(f"Loading {inputs.source.name}")
    model, tokenizer = load_model(inputs.source, overrides)
    config = model.config
    if training_args.do_predict and not (config.trains_head if training_args.do_train else config.head_is_trained):
        raise ValueError(
            "`--do_predict` needs a trained head. Name an STS-Regression checkpoint with "
            "`--model_name_or_path`, or train in the same run, with "
            f"a `--loss` other than {', '.join(HEADLESS_LOSSES)}."
        )
    if training_args.do_train and model_args.freeze_encoder and not config.trains_head:
        raise ValueError(
            f"`freeze_encoder` leaves nothing to train with `--loss {config.loss_type}`, which trains no head. "
            "Leave it out, or choose another loss."
        )
    if training_args.do_train and training_args.head_solver == "lbfgs":
        check_convex(config)
    if training_args.do_train:
        _warn_of_loss_options(config.loss_type, stage)
        _check_score_maps(config, training_args, inputs.splits)
    if model_args.freeze_encoder:
        model.freeze_encoder()
    if model_args.freeze_embeddings:
        model.get_input_embeddings().requires_grad_(False)
    tokenizer.model_max_length = resolve_max_seq_length(model, tokenizer, model_args.max_seq_length)
    prompts = {} if inputs.source.modules is None else inputs.source.modules.prompts
    if prompts and not any(config.prefixes) and config.encoder_type == "bi-encoder":
        listed = ", ".join(f"{prompt!r} ({name})" for name, prompt in prompts.items())
        logger.info(f"the encoder comes with prompts ({listed:.500}). To use one, give it as `--sentence1_prefix`.")
    return model, tokenizer


def _warn_of_loss_options(loss_type: str, stage: Stage) -> None:
    for option, value, losses in (
        ("loss_temperature", stage.model_args.loss_temperature, HEADLESS_LOSSES),
        ("positive_threshold", stage.data_args.positive_threshold, UNLABELLED_LOSSES),
    ):
        if value is not None and loss_type not in losses:
            logger.warning(f"`{option}` has no effect on the loss {loss_type}, only on {', '.join(losses)}.")


def _check_score_maps(config: STSRegressionConfig, args: STSTrainingArguments, splits: Splits) -> None:
    for option in ("source_scales", "group_intercepts"):
        if getattr(args, option) and (
            config.encoder_type == "cross-encoder" or config.loss_type not in REGRESSION_LOSSES
        ):
            raise ValueError(
                f"`{option}` maps the scores of a bi-encoder for a loss on individual scores. Leave it out, or choose "
                f"the bi-encoder and a `--loss` of {', '.join(REGRESSION_LOSSES)}."
            )
    if args.source_scales and len(splits.sets["train"]) == 1:
        raise ValueError("`source_scales` needs several training sets. Leave it out, or name more of them.")


def _check_as_trained(source: ModelSource, overrides: dict[str, Any]) -> None:
    """
    Refuses to score with a checkpoint under options that differ from those it was trained with.

    Raises:
        ValueError: for such an option; the message names it and both values.
    """
    if source.checkpoint_config is None:
        return
    for name, value in overrides.items():
        trained_with = getattr(source.checkpoint_config, name)
        if name != "encoding" and value != trained_with:
            option = {"loss_type": "loss", "label_names": "grade_names"}.get(name, name)
            raise ValueError(
                f"`{option}` is {value!r:.200}, but the checkpoint was trained with "
                f"{trained_with!r:.200}. Leave the option out, or train again."
            )


def report_pairs(stage: Stage, inputs: Inputs, model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """
    Logs leaks and the data report, unless an earlier run has reported the same pairs.

    Raises:
        ValueError: for findings, with the option `strict`.
    """
    if stage.repeats_pairs:
        return
    report_leaks(inputs.splits.leaks, stage.data_args)
    whole = inputs.splits.put_together()
    findings = data_findings(whole, tokenizer, model.config) + _familiar_findings(stage, inputs.untouched)
    if stage.training_args.do_train:
        development = inputs.splits.pairs["validation"] if stage.data_args.folds == 1 else whole.pairs["train"]
        findings += development_findings(len(development))
    report_findings(findings, stage.data_args.strict, rating_lines(whole))


def _familiar_findings(stage: Stage, source: ModelSource) -> list[str]:
    """The files of pairs to score by which the model was trained."""
    trained_on = files_trained_on(Path(source.path))
    if not trained_on:  # most models; the files, which may be large, are then not read again
        return []
    digests = file_digests(stage.data_args)
    scored = set(digests)
    if not stage.training_args.do_train or stage.data_args.validation_file is not None:
        scored -= set(map(str, training_files(stage.data_args)))
    return [
        f"{path}: {source.name} was trained on this file, so its scores are too high."
        for path in sorted(scored)
        if digests[path] in trained_on
    ]


def tell_stage(stage: Stage, number: int, count: int) -> None:
    """Logs the line that begins a stage, its number counted from 1, if there are several."""
    if count > 1:
        logger.info(f"\nStage {number} of {count}{stage.about}")


def start_from_bundled(stage: Stage, model: STSRegressionModel) -> dict[str, Tensor] | None:
    """
    Gives the encoder the weights that the training on bundled pairs left.

    Returns:
        The weights of the untouched encoder by name; `None` if there was no such training, or its weights were not
        kept.
    """
    if stage.start is None or not has_weights(stage.start):
        return None
    untouched = copy_weights(model.encoder)
    model.encoder.load_state_dict(take_weights(stage.start))
    return untouched


def prepare_trainer(
    stage: Stage,
    inputs: Inputs,
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    untouched: Mapping[str, Tensor] | None = None,
) -> tuple[STSTrainer, dict[str, Dataset]]:
    """
    Tokenises the pairs, or looks up their embeddings.

    Args:
        stage: the options.
        inputs: the pairs.
        model: the model to train or apply.
        tokenizer: the model's tokenizer.
        untouched: see [`start_from_bundled`].

    Returns:
        The Trainer, and the encoded pairs by split.
    """
    model_args, training_args = stage.model_args, stage.training_args
    pairs = inputs.splits.pairs
    shows_progress = draws_bars(training_args.disable_tqdm)
    if model_args.uses_store and model.config.encoder_type == "bi-encoder":
        model.to(training_args.device)
        if pairs:
            logger.info(f"Encoding {count_pairs(pairs)}")
        encoded = embed_pairs(pairs, model, tokenizer, model_args.embedding_cache, shows_progress)
    else:
        options = (tokenizer, model.config.encoder_type, model.config.prefixes)
        if pairs:
            logger.info(f"Tokenising {count_pairs(pairs)}")
        encoded = {split: tokenize_pairs(some, *options) for split, some in pairs.items()}
    anchors = None
    maps_scores = training_args.source_scales or training_args.group_intercepts
    if training_args.do_train and (training_args.self_distillation > 0 or maps_scores):
        model.to(training_args.device)
        encoded["train"], anchors = add_anchors(
            encoded["train"], pairs["train"], model, tokenizer, model_args.embedding_cache, shows_progress
        )
        if maps_scores:
            encoded["train"] = _with_score_maps(encoded["train"], anchors, inputs.splits, training_args)
        if training_args.self_distillation == 0:
            anchors = None
    adapter = None
    if training_args.do_train and model_args.use_peft and not stage.members:
        adapter = add_lora(model, **model_args.lora_options())
        if model_args.freeze_embeddings:  # also freezes the embeddings' LoRA layers
            model.get_input_embeddings().requires_grad_(False)
    trainer = STSTrainer(
        model,
        training_args,
        train_dataset=encoded.get("train"),
        eval_dataset=encoded.get("validation"),
        processing_class=tokenizer,
        anchors=anchors,
        adapter=adapter,
        eval_sources=inputs.splits.set_of_pair.get("validation"),
        untouched=untouched,
    )
    return trainer, encoded


def _with_score_maps(encoded: Dataset, vectors: np.ndarray, splits: Splits, args: STSTrainingArguments) -> Dataset:
    """Training pairs with a column `score_map`, intercept and slope of each pair. Logs the maps."""
    names, set_of_pair = [part.name for part in splits.sets["train"]], splits.set_of_pair["train"]
    first, second = torch.from_numpy(vectors[numbers_of(encoded, "anchor_rows")]).unbind(1)
    cosines = F.cosine_similarity(first, second, dim=-1).numpy()
    labels = numbers_of(encoded, "labels")
    maps = np.tile([0.0, 1.0], (len(labels), 1))
    if args.source_scales:
        of_sources = fit_score_maps(cosines, labels, set_of_pair, names)
        maps = of_sources[set_of_pair]
        for name, (intercept, slope) in zip(names, of_sources.tolist(), strict=True):
            logger.info(f"{name}: label = {intercept:+.2f} {slope:+.2f} * score")
    if args.group_intercepts:
        pairs = splits.pairs["train"]
        texts = [list(texts_of(pairs, column)) for column in ("sentence1", "sentence2")]
        groups = group_by_text(*texts).group_of_pair
        intercepts = fit_group_intercepts(cosines, labels, set_of_pair, groups, pair_keys(*texts))
        maps[:, 0] += intercepts
        if np.any(intercepts != 0):
            logger.debug(
                f"Group intercepts: the loss subtracts an offset for each group of pairs that share a text (standard "
                f"deviation {np.std(intercepts):.2f})"
            )
    return encoded.add_column("score_map", maps.tolist())
