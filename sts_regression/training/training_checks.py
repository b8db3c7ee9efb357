"""Training options are adapted to the model and checked against it and its pairs, before anything is written."""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from torch import nn
from transformers import Trainer
from transformers.trainer_pt_utils import AcceleratorConfig
from transformers.trainer_utils import IntervalStrategy, SaveStrategy

from sts_regression.basics.files import reason_of
from sts_regression.grading.held_out import are_grades
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.embedding_store import EmbeddedPairs
from sts_regression.training.head_solver import check_convex
from sts_regression.training.learning_rates import learning_rates
from sts_regression.training.training_arguments import (
    STSTrainingArguments,
    greater_is_better,
    known_measures,
    name_of,
    with_score,
)

BATCH_LOSSES = ("pearson", "cosent", "angle", "info_nce")  # compare the pairs of a batch with each other
WITHOUT_BFLOAT16 = ("deberta",)  # encoders that fail in transformers' bfloat16 mixed precision
# Optimizers that update weights while gradients are computed, with one learning rate for all layers.
ONE_RATE_OPTIMIZERS = ("lomo", "layerwise")
LIBRARY_KEYS = {"params", "model"}  # arguments of optimizers that choose their parameters themselves


def adapt_options(
    args: STSTrainingArguments, model: STSRegressionModel, eval_dataset: Any, trains: bool, has_own_measures: bool
) -> None:
    """
    Changes options for transformers' Trainer, which would apply them in another way.

    Args:
        args: the options, changed in place.
        model: the model to train or apply.
        eval_dataset: development pairs, or several sets by name.
        trains: whether there are training pairs.
        has_own_measures: see [`check_training`].
    """
    if not trains:
        args.eval_strategy, args.save_strategy = IntervalStrategy.NO, SaveStrategy.NO
        args.load_best_model_at_end = False
    args._n_gpu = min(args.n_gpu, 1)  # with more, Trainer would multiply the batch, which is the launcher's task
    args.push_to_hub = False  # Trainer would push checkpoints, a pickle and another card; the command publishes
    args.remove_unused_columns = False  # all columns are used, and batches of embeddings have none
    if args.precision == "auto" and model.config.encoder_config.model_type in WITHOUT_BFLOAT16:
        args.precision = "float32"
    # Without an accelerator, pinning only causes a warning.
    args.dataloader_pin_memory = args.dataloader_pin_memory and torch.accelerator.is_available()
    if has_own_measures:
        return
    encoder_is_frozen = not any(parameter.requires_grad for parameter in model.encoder.parameters())
    if model.config.encoder_type == "cross-encoder" or encoder_is_frozen:
        args.metric_for_best_model = with_score(args.metric_for_best_model, "head")
    elif not model.config.trains_head:
        args.metric_for_best_model = with_score(args.metric_for_best_model, "cosine")
    if isinstance(eval_dataset, Mapping) and args.metric_for_best_model is not None:
        name, measure = _set_and_measure(args.metric_for_best_model, eval_dataset)
        args.metric_for_best_model = f"{name}_{measure}"
        args.greater_is_better = greater_is_better(measure, None)


def _set_and_measure(measure: str, sets: Mapping[str, Any]) -> tuple[str, str]:
    """The set in the name of a measure, such as `first_loss`, or else the first set; and the measure alone."""
    measure = measure.removeprefix("eval_")
    name = next((name for name in sets if measure.startswith(f"{name}_")), next(iter(sets)))
    return name, measure.removeprefix(f"{name}_")


def check_training(
    args: STSTrainingArguments,
    model: STSRegressionModel,
    train_dataset: Dataset | EmbeddedPairs,
    eval_dataset: Dataset | EmbeddedPairs | Mapping[str, Dataset] | None,
    has_own_measures: bool = False,
    has_adapter: bool = False,
) -> None:
    """
    Refuses training options that would have no effect with the model or its pairs, or would fail late.

    Args:
        args: the options.
        model: the model to train.
        train_dataset: tokenised or embedded training pairs.
        eval_dataset: tokenised or embedded development pairs, or several sets by name.
        has_own_measures: whether a function of the caller measures the model.
        has_adapter: whether LoRA layers are trained in place of the encoder's weights.

    Raises:
        ValueError: for such an option; the message names it and the remedy.
    """
    for name in ("bf16_full_eval", "fp16_full_eval"):
        if getattr(args, name):
            raise ValueError(
                f"`{name}` would convert the weights before training. Give `--bf16` to score in mixed precision, or "
                "score the trained model in a separate command."
            )
    if not any(parameter.requires_grad for parameter in model.encoder.parameters()):
        for name, default in (("neftune_noise_alpha", None), ("wise_ft_alpha", 1.0)):
            if getattr(args, name) != default:
                raise ValueError(f"`{name}` acts on a trained encoder, and this one is frozen. Leave it out.")
    if args.keep_start_if_better and model.config.score_function != "cosine":
        raise ValueError(
            "`keep_start_if_better` compares the trained head with the cosine, and needs a head on the cosine. Leave "
            "it out, or give `--score_function cosine`."
        )
    if args.keep_start_if_better and has_adapter:
        raise ValueError(
            "`keep_start_if_better` needs the untouched weights, and `use_peft` merges its adapters into them. Leave "
            "one of the two out."
        )
    if args.matryoshka_dims is not None:
        _check_matryoshka(args.matryoshka_dims, model)
    lengths = [model.config.encoder_config.hidden_size, *(args.matryoshka_dims or ())]
    if model.config.loss_type == "angle" and (odd := [length for length in lengths if length % 2]):
        raise ValueError(
            f"`--loss angle` splits embeddings into halves, and cannot split one of {odd[0]} numbers. Choose another "
            "loss, or `matryoshka_dims` that are even."
        )
    if isinstance(train_dataset, EmbeddedPairs):
        _check_embedded(args, model, train_dataset)
    _check_batches(args, model.config.loss_type, len(train_dataset))
    is_measured = args.eval_strategy != IntervalStrategy.NO and not has_own_measures
    if is_measured and isinstance(eval_dataset, Dataset | EmbeddedPairs):
        _check_measure(args.metric_for_best_model, model, eval_dataset)
    elif is_measured and isinstance(eval_dataset, Mapping) and args.metric_for_best_model is not None:
        name, measure = _set_and_measure(args.metric_for_best_model, eval_dataset)
        _check_measure(measure, model, eval_dataset[name])
    check_optimizer(args, model)


def _check_matryoshka(lengths: list[int], model: STSRegressionModel) -> None:
    hidden_size = model.config.encoder_config.hidden_size
    if model.config.score_function != "cosine":
        raise ValueError(
            "`matryoshka_dims` shortens embeddings, and a linear head needs whole ones. Leave it out, or give "
            "`--score_function cosine`."
        )
    if not lengths or not all(0 < length < hidden_size for length in lengths):
        raise ValueError(
            f"`matryoshka_dims` must be whole numbers from 1 to {hidden_size - 1} for embeddings of {hidden_size} "
            f"numbers, but are {' '.join(map(str, lengths))}. The whole length is trained in any case."
        )
    if not any(parameter.requires_grad for parameter in model.encoder.parameters()):
        raise ValueError("`matryoshka_dims` acts on a trained encoder, and this one is frozen. Leave it out.")


def _check_embedded(args: STSTrainingArguments, model: STSRegressionModel, pairs: EmbeddedPairs) -> None:
    if args.head_solver == "lbfgs":
        check_convex(model.config, pairs.labels)
    if args.train_sampling_strategy == "group_by_length":
        raise ValueError("`train_sampling_strategy`: stored embeddings have no length. Leave group_by_length out.")
    if args.include_num_input_tokens_seen != "no":
        raise ValueError("`include_num_input_tokens_seen`: stored embeddings have no tokens. Leave it out.")


def _check_batches(args: STSTrainingArguments, loss_type: str, num_pairs: int) -> None:
    batch_size = args.train_batch_size * args.world_size
    if batch_size == 1 and (loss_type in BATCH_LOSSES or args.self_distillation > 0):
        what = f"`--loss {loss_type}`" if loss_type in BATCH_LOSSES else "`self_distillation`"
        raise ValueError(
            f"{what} compares the pairs of a batch with each other, but each batch has one pair. Accumulated "
            "batches are not joined. Raise `--per_device_train_batch_size`, or leave it out."
        )
    if args.dataloader_drop_last and num_pairs < batch_size:
        raise ValueError(
            f"`dataloader_drop_last` leaves nothing to train on: the {num_pairs} training pairs fill no batch of "
            f"{batch_size}. Leave it out, or lower `--per_device_train_batch_size`."
        )
    assert isinstance(args.accelerator_config, AcceleratorConfig)
    if args.world_size > 1 and not args.accelerator_config.even_batches:
        raise ValueError(
            "`accelerator_config`: without `even_batches`, a process with one more batch than another waits for the "
            "other forever. Leave it out."
        )


def _check_measure(measure: str | None, model: STSRegressionModel, pairs: Dataset | EmbeddedPairs) -> None:
    labels = pairs.labels if isinstance(pairs, EmbeddedPairs) else pairs["labels"]
    measures = known_measures(
        has_cosine=model.config.encoder_type == "bi-encoder",
        has_head=model.config.trains_head,
        has_grades=are_grades(np.asarray(labels), model.config.label_values),
    )
    if measure is not None and measure.removeprefix("eval_") not in measures:
        raise ValueError(
            f"`metric_for_best_model`: {measure} is not measured with this model on these development pairs. Choose "
            f"one of {', '.join(measures)}."
        )


def check_optimizer(args: STSTrainingArguments, model: STSRegressionModel) -> None:
    """
    Refuses an optimizer that is not installed or has no learning rates by layer, and unknown arguments of it.

    Raises:
        ValueError: for such an optimizer or argument; the message names the option and the remedy.
    """
    name = name_of(args.optim)
    if name.endswith(ONE_RATE_OPTIMIZERS):
        raise ValueError(
            f"`optim` {name} has one learning rate for all layers, and would ignore `--head_learning_rate`. Choose "
            "another one."
        )
    learning_rates(model, args)
    make_optimizer, chosen = _choose_optimizer(args, args.optim_args, model)
    arguments = args.optim_args.split(",") if args.optim_args else []
    for number, argument in enumerate(arguments):
        others = ",".join([*arguments[:number], *arguments[number + 1 :]])
        if _choose_optimizer(args, others, model)[1] == chosen:
            raise ValueError(f"`optim_args`: {argument!r:.80} has no effect with `--optim {name}`. Leave it out.")
    if not LIBRARY_KEYS & chosen.keys():
        try:
            make_optimizer([nn.Parameter(torch.zeros(1))], **chosen)
        except Exception as error:  # any kind: each optimizer checks its own arguments
            raise ValueError(f"`optim` {name} cannot be built: {reason_of(error):.300}") from error


def _choose_optimizer(
    args: STSTrainingArguments, optim_args: str | None, model: STSRegressionModel
) -> tuple[Any, dict[str, Any]]:
    """The optimizer that transformers would choose, and its arguments."""
    changed = copy.copy(args)
    changed.optim_args = optim_args
    try:
        return Trainer.get_optimizer_cls_and_kwargs(changed, model)
    except Exception as error:  # any kind: most optimizers belong to other libraries
        given = f" with `optim_args` {optim_args!r:.80}" if optim_args else ""
        raise ValueError(f"`optim` {name_of(args.optim)}{given} cannot be built: {reason_of(error):.300}") from error
