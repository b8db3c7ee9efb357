"""Trainer with layer-wise learning rates, the measures of this task, and checkpoints without pickled arguments."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from torch import Tensor, nn
from transformers import EvalPrediction, PreTrainedTokenizerBase, Trainer
from transformers.trainer import TRAINING_ARGS_NAME
from transformers.trainer_utils import IntervalStrategy, SaveStrategy

from sts_regression.arguments import STSTrainingArguments
from sts_regression.evaluation import PairScores, measure_scores, stack_scores, unstack_scores
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.tokenization import pair_collator

LAYER_PATTERN = re.compile(r"\.layers?\.(\d+)\.")


class STSTrainer(Trainer):
    """transformers' Trainer for [`STSRegressionModel`]."""

    args: STSTrainingArguments

    def __init__(
        self,
        model: STSRegressionModel,
        args: STSTrainingArguments,
        train_dataset: Dataset | None,
        eval_dataset: Dataset | None,
        tokenizer: PreTrainedTokenizerBase,
    ) -> None:
        """
        Args:
            model: to be trained or applied.
            args: options. Where the cosine cannot change or does not exist, the head selects the best checkpoint.
            train_dataset: tokenised pairs, see [`tokenize_pairs`].
            eval_dataset: likewise.
            tokenizer: saved with the model.
        """
        if train_dataset is None:
            args.eval_strategy, args.save_strategy, args.load_best_model_at_end = IntervalStrategy.NO, SaveStrategy.NO, False
        encoder_is_frozen = not any(parameter.requires_grad for parameter in model.encoder.parameters())
        if model.config.encoder_type == "cross-encoder" or encoder_is_frozen:
            args.metric_for_best_model = args.metric_for_best_model.replace("_cosine", "_head")
        super().__init__(
            model=model,
            args=args,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=tokenizer,
            data_collator=pair_collator(tokenizer),
            compute_metrics=self._measure_prediction,
            preprocess_logits_for_metrics=stack_scores,
        )

    def score(self, pairs: Dataset) -> PairScores:
        """The model's scores of tokenised pairs, labelled or not, in their order."""
        return unstack_scores(self.predict(pairs).predictions)

    def measure(self, pairs: Dataset, with_head: bool) -> tuple[dict[str, float], PairScores]:
        """Measures of [`measure_scores`] on tokenised, labelled pairs, and the scores behind them."""
        scores = self.score(pairs)
        return measure_scores(scores, np.array(pairs["labels"]), self.model.config.label_values, with_head), scores

    def _measure_prediction(self, prediction: EvalPrediction) -> dict[str, float]:
        scores = unstack_scores(prediction.predictions)
        return measure_scores(scores, prediction.label_ids, self.model.config.label_values)

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """The optimizer of transformers, its groups split by the layer-wise factor on the learning rate."""
        if self.optimizer is None and self.args.layerwise_lr_decay < 1:
            optimizer = super().create_optimizer(model)
            factors = learning_rate_factors(
                self.model if model is None else model, self.args.layerwise_lr_decay, self.args.embeddings_lr_decay
            )
            groups = []
            for group in optimizer.param_groups:
                by_factor = defaultdict(list)
                for parameter in group["params"]:
                    by_factor[factors[parameter]].append(parameter)
                groups += [{**group, "params": p, "lr": group["lr"] * factor} for factor, p in by_factor.items()]
            optimizer.param_groups = groups
        return super().create_optimizer(model)

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        super()._save(output_dir, state_dict)
        # A pickle of the arguments: run.json says the same, and nothing ours is ever unpickled.
        (Path(output_dir or self.args.output_dir) / TRAINING_ARGS_NAME).unlink(missing_ok=True)


def learning_rate_factors(model: nn.Module, decay: float, decay_embeddings: bool) -> dict[Tensor, float]:
    """
    Factor on the learning rate of each parameter: 1 for the head and the top layer, `decay` less for each layer below.

    Args:
        model: an [`STSRegressionModel`], possibly wrapped.
        decay: factor from one layer to the one below it.
        decay_embeddings: whether the embeddings count as the layer below the lowest. The paper's code leaves them at the
            full rate.
    """
    layer_of = {name: LAYER_PATTERN.search(name) for name, _ in model.named_parameters()}
    num_layers = 1 + max((int(match[1]) for match in layer_of.values() if match), default=-1)
    factors = {}
    for name, parameter in model.named_parameters():
        match = layer_of[name]
        if match:
            factors[parameter] = decay ** (num_layers - 1 - int(match[1]))
        else:
            factors[parameter] = decay**num_layers if decay_embeddings and "embed" in name else 1.0
    return factors
