"""The options of training: ours and those of transformers' TrainingArguments, checked together."""

import dataclasses
from dataclasses import dataclass

import torch
from transformers import TrainingArguments

from sts_regression.hub_names import Repository
from sts_regression.options import DataArguments, ModelArguments, TrainingOptions, check_finite
from sts_regression.training.option_checks import (
    check_companions,
    check_compiler,
    check_mappings,
    check_ranges,
    check_refused,
    check_schedule,
    check_trackers,
    greater_is_better,
)


@dataclass
class STSTrainingArguments(TrainingOptions, TrainingArguments):
    """transformers' TrainingArguments with defaults for graded pairs, and what they lack."""

    def __post_init__(self) -> None:
        check_mappings(self)
        if not 0 < self.layerwise_lr_decay <= 1:
            raise ValueError(
                f"`layerwise_lr_decay` must be greater than 0 and at most 1, but is {self.layerwise_lr_decay}. The "
                "paper uses 0.95."
            )
        if self.cpu_threads is not None and self.cpu_threads < 1:
            raise ValueError(f"`cpu_threads` must be at least 1, but is {self.cpu_threads}.")
        if not self.self_distillation >= 0:
            raise ValueError(f"`self_distillation` must be at least 0, but is {self.self_distillation}.")
        if self.model_soup > 1 and self.head_solver == "lbfgs":
            raise ValueError(
                "`model_soup` averages trainings that differ, and `--head_solver lbfgs` finds the same head in each. "
                "Leave one of them out."
            )
        if not 0 < self.wise_ft_alpha <= 1:
            raise ValueError(f"`wise_ft_alpha` must be greater than 0 and at most 1, but is {self.wise_ft_alpha}.")
        if self.model_soup < 1:
            raise ValueError(f"`model_soup` must be at least 1, but is {self.model_soup}.")
        if not self.schedule_stretch >= 1:
            raise ValueError(f"`schedule_stretch` must be at least 1, but is {self.schedule_stretch}.")
        if not self.head_learning_rate > 0:
            raise ValueError(f"`head_learning_rate` must be greater than 0, but is {self.head_learning_rate}.")
        check_finite(self)
        check_ranges(self)
        check_refused(self)
        check_companions(self)
        check_trackers(self)
        check_compiler(self)
        self.greater_is_better = greater_is_better(self.metric_for_best_model, self.greater_is_better)
        if not torch.accelerator.is_available():
            # Else each of several CPU processes would train for itself, unnoticed, and `--bf16` would be refused.
            self.use_cpu = True
        if self.fp16 and self.use_cpu:
            raise ValueError("`fp16` needs an accelerator. Give `--bf16` on a CPU.")  # it would train in float32
        do_eval = self.do_eval
        TrainingArguments.__post_init__(self)
        check_schedule(self)
        self.do_eval = (
            do_eval  # transformers sets it with `eval_strategy`; `parse_stages` decides with a view to the data
        )


OPTION_GROUPS = (ModelArguments, DataArguments, STSTrainingArguments)
OPTION_NAMES = tuple(option.name for group in OPTION_GROUPS for option in dataclasses.fields(group))


def repository_of(training_args: STSTrainingArguments) -> Repository | None:
    """
    Where the options of a training ask to publish it; `None` if they do not.

    Raises:
        ValueError: for options that contradict each other, or ask for what is not published.
    """
    if not training_args.push_to_hub:
        return None
    if not training_args.do_train:
        raise ValueError(
            "`push_to_hub` publishes what was trained. Train in the same run, or publish the folder of an earlier one "
            "with `sts-regression publish`."
        )
    if "checkpoint" in training_args.hub_strategy or training_args.hub_always_push:
        raise ValueError(
            "`hub_strategy` and `hub_always_push` have no checkpoints to publish: the finished run is published once, "
            "when it is whole. Leave them out."
        )
    return Repository(
        training_args.hub_model_id or "",
        private=training_args.hub_private_repo is not False,
        token=training_args.hub_token,
        revision=training_args.hub_revision,
        overwrite=training_args.overwrite_repository,
    )
