"""Trainer with layer-wise learning rates, the measures of this task, and checkpoints without pickled arguments."""

import copy
import itertools
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from datasets import Dataset
from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler
from transformers import EvalPrediction, PreTrainedTokenizerBase, Trainer, TrainerCallback
from transformers.trainer import TRAINING_ARGS_NAME
from transformers.trainer_pt_utils import LengthGroupedSampler
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, PredictionOutput, TrainOutput

from sts_regression.basics.distributed import joint_loss, of_class
from sts_regression.basics.quiet import draws_bars
from sts_regression.basics.seals import check_seal, seal_model
from sts_regression.basics.stopping import deferring
from sts_regression.data.columns import MAPPED_FROM
from sts_regression.evaluation.measures import PairScores, measure_scores, stack_scores, unstack_scores
from sts_regression.losses_sts_regression import similarity_distillation
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.embedding_store import EmbeddedPairs, embed_tokenized
from sts_regression.models.loading import LAYER
from sts_regression.models.sentence_transformers_files import write_modules
from sts_regression.models.tokenization import SeededLengthSampler, SeededSampler, as_model_inputs, pair_collator
from sts_regression.training.checkpoints import (
    EvaluateBeforeSaving,
    FindBestCheckpoint,
    NoteFirstStep,
    OrderOfEpoch,
    StopWithCheckpoint,
    delete_old_checkpoints,
    explaining,
    is_any_asked_to_stop,
    reading_state,
    writing_checkpoint,
)
from sts_regression.training.head_solver import solve_head
from sts_regression.training.learning_rates import learning_rates, split_by_rate
from sts_regression.training.lora import ADAPTER_FOLDER, load_adapter, merge_adapter, save_adapter
from sts_regression.training.numerics import NumericsCheck, Step, raise_for_step, rows_of_batches
from sts_regression.training.training_arguments import STSTrainingArguments
from sts_regression.training.training_checks import BATCH_LOSSES, adapt_options, check_training
from sts_regression.training.weight_averaging import StartingWeights, mean_of, mean_weights

if TYPE_CHECKING:
    from peft import PeftModel

LABEL_POWERS = {"mse": 2, "smooth_k2": 2, "l1": 1, "translated_relu": 1}  # the unit of a loss is this power of a label
EMBEDDED_AT_ONCE = 100_000  # pairs, to score them; the embeddings of more would fill the memory
DEFAULT_OUTPUT_DIR = "outputs/trainer"


class STSTrainer(Trainer):
    """transformers' Trainer for [`STSRegressionModel`]."""

    args: STSTrainingArguments
    model: STSRegressionModel
    processing_class: PreTrainedTokenizerBase

    def __init__(
        self,
        model: STSRegressionModel,
        args: STSTrainingArguments | None = None,
        train_dataset: Dataset | EmbeddedPairs | None = None,
        eval_dataset: Dataset | EmbeddedPairs | Mapping[str, Dataset] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        *,
        compute_metrics: Callable[[EvalPrediction], dict[str, float]] | None = None,
        callbacks: Sequence[TrainerCallback] = (),
        anchors: np.ndarray | None = None,
        adapter: "PeftModel | None" = None,
        eval_sources: np.ndarray | None = None,
        untouched: Mapping[str, Tensor] | None = None,
    ) -> None:
        """
        Args:
            model: the model to train or apply.
            args: options; the Trainer works on a copy. If the cosine cannot change or does not exist, the score of the
                head selects the best checkpoint; if the loss trains no head, the cosine does.
            train_dataset: training pairs with the columns `sentence1`, `sentence2` and `label`, a number on the
                model's label scale. They may also be tokenised, see [`tokenize_pairs`], or embedded by a frozen
                encoder, see [`embed_pairs`].
            eval_dataset: development pairs in one of these forms, or several sets by name.
            processing_class: the model's tokenizer, saved with the model.
            compute_metrics: measures predictions of shape (pairs, 2), score and cosine, or (pairs, 1) of a
                cross-encoder. Default: [`measure_scores`].
            callbacks: further callbacks besides those of transformers.
            anchors: embeddings for `self_distillation`, see [`add_anchors`].
            adapter: the adapter of an encoder with LoRA layers, see [`add_lora`]. Checkpoints hold the adapter and the
                head; `train()` ends with the adapter saved in the run's folder and merged into the encoder.
            eval_sources: the corpus of each pair of `eval_dataset`, see [`measure_scores`].
            untouched: weights of the untouched encoder by name, if `model` starts from others.

        Raises:
            ValueError: for unsuitable options or pairs, see [`check_training`] and [`as_model_inputs`].
        """
        if processing_class is None:
            raise ValueError("`processing_class` is missing. Give the model's tokenizer.")
        config = model.config
        train_dataset = as_model_inputs("train_dataset", train_dataset, config, processing_class)
        eval_dataset = as_model_inputs("eval_dataset", eval_dataset, config, processing_class)
        self._first_step = NoteFirstStep()
        self.adapter = adapter
        self.eval_sources = eval_sources
        self._sources: np.ndarray | None = None  # of the pairs that are being evaluated
        self._sampler: SeededSampler | None = None
        args = STSTrainingArguments(output_dir=DEFAULT_OUTPUT_DIR) if args is None else copy.copy(args)
        # Trainer would delete old checkpoints before the new one is complete.
        self.save_total_limit, args.save_total_limit = args.save_total_limit, None
        adapt_options(
            args, model, eval_dataset, trains=train_dataset is not None, has_own_measures=compute_metrics is not None
        )
        self.label_values: list[float] = config.label_values
        if train_dataset is not None:
            check_training(args, model, train_dataset, eval_dataset, compute_metrics is not None, adapter is not None)
        self.trains_head: bool = config.trains_head
        if not self.trains_head:
            model.head.requires_grad_(False)  # DDP expects a gradient of every trainable weight
        label_range = self.label_values[-1] - self.label_values[0]
        self.distillation_scale = label_range ** LABEL_POWERS.get(config.loss_type, 0)
        super().__init__(
            model=model,
            args=args,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            data_collator=pair_collator(processing_class, anchors),
            compute_metrics=self._measure_prediction if compute_metrics is None else compute_metrics,
            preprocess_logits_for_metrics=stack_scores,  # type: ignore[arg-type] # annotated for a single output
            callbacks=[
                FindBestCheckpoint(),
                OrderOfEpoch(lambda: self._sampler),
                self._first_step,
                *callbacks,
                EvaluateBeforeSaving(),
                StopWithCheckpoint(
                    lambda: is_any_asked_to_stop(self.accelerator, self.state.global_step),
                    lambda: self._save_checkpoint(self.model, trial=None),
                ),
            ],
        )
        if self.is_fsdp_enabled:
            _shard_layers(self.accelerator.state.fsdp_plugin, model)
        mixes_already = self.accelerator.mixed_precision != "no" or self.splits_weights
        self._mixes = not mixes_already and args.trains_in_bfloat16  # in training alone
        self._start = StartingWeights(untouched)
        self.numerics = NumericsCheck(skips_steps=self.accelerator.mixed_precision == "fp16")
        self._losses: list[Tensor] = []  # losses of the batches of this step

    def evaluate(self, eval_dataset: Any = None, *args: Any, **kwargs: Any) -> dict[str, float]:
        """
        Evaluates as transformers does, on pairs in any form that the constructor takes.

        `eval_sources` are those of the Trainer's own development pairs.
        """
        is_own = eval_dataset is None or eval_dataset is self.eval_dataset
        self._sources = self.eval_sources if is_own else None
        eval_dataset = as_model_inputs("eval_dataset", eval_dataset, self.model.config, self.processing_class)
        try:
            return super().evaluate(eval_dataset, *args, **kwargs)
        finally:
            self._sources = None

    def predict(self, test_dataset: Any, *args: Any, **kwargs: Any) -> PredictionOutput:
        """Predicts as transformers does, for pairs in any form that the constructor takes."""
        return super().predict(
            as_model_inputs("test_dataset", test_dataset, self.model.config, self.processing_class), *args, **kwargs
        )

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader:
        """The loader of transformers, but without `dataloader_drop_last`: every pair is scored."""
        return self._with_every_pair(super().get_eval_dataloader, eval_dataset)

    def get_test_dataloader(self, test_dataset: Any) -> DataLoader:
        """The loader of transformers, but without `dataloader_drop_last`: every pair is scored."""
        return self._with_every_pair(super().get_test_dataloader, test_dataset)

    def _with_every_pair(self, make_loader: Callable[[Any], DataLoader], pairs: Any) -> DataLoader:
        drop_last, self.args.dataloader_drop_last = self.args.dataloader_drop_last, False
        try:
            return make_loader(pairs)
        finally:
            self.args.dataloader_drop_last = drop_last

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """
        Trains as transformers does, and completes the model.

        With `wise_ft_alpha`, it then averages the encoder with the untouched one. An adapter is merged into the
        encoder. Without the callback [`StopWithCheckpoint`], a signal ends the process at once.
        """
        if self.model_init is None:
            self._begin(self.model)
        stops = any(isinstance(callback, StopWithCheckpoint) for callback in self.callback_handler.callbacks)
        with deferring() if stops else nullcontext():
            output = super().train(*args, **kwargs)
        self._check_numerics()
        if self.save_total_limit == 1:  # leaves only the best one, as Trainer does
            self._delete_old_checkpoints(Path(self._get_output_dir(kwargs.get("trial"))), [])
        self._start.average_into(self.model, self.args.wise_ft_alpha)
        if not self.args.keep_start_if_better:
            self._start.drop()
        if self.adapter is not None:
            if self.args.should_save:
                save_adapter(self.adapter, self.model, Path(self.args.output_dir or "") / ADAPTER_FOLDER)
            merge_adapter(self.adapter)
            self.adapter = None
        return output

    def call_model_init(self, trial: Any = None) -> STSRegressionModel:
        """The model for a trial of transformers' `hyperparameter_search`."""
        if self.adapter is not None:
            raise ValueError("`model_init` makes a model without the adapter of `--use_peft`. Search without LoRA.")
        model: STSRegressionModel = super().call_model_init(trial)  # type: ignore[assignment] # said to be any module
        self._begin(model)
        return model

    def _begin(self, model: STSRegressionModel) -> None:
        """Keeps the weights that are needed after training, and updates the configuration."""
        if self.args.wise_ft_alpha < 1 or self.args.keep_start_if_better:
            self._start.keep(model)
        self._note_training(model)

    def _note_training(self, model: STSRegressionModel) -> None:
        """Updates the configuration for a newly trained head, whose earlier `grading` no longer applies."""
        model.config.head_is_trained = model.config.trains_head
        model.config.grading = None

    def restore_untouched(self) -> None:
        """
        Restores the weights of the untouched encoder; after training, this needs `keep_start_if_better`.

        A head on the cosine that learned to reverse it starts anew.

        Raises:
            ValueError: if these weights were not kept.
        """
        self._start.restore(self.model)

    def untouched_encoder(self) -> AbstractContextManager[None]:
        """Gives the model the weights of the untouched encoder for the duration of a `with` block before training."""
        return self._start.in_place(self.model)

    def average(self, members: Sequence[Path]) -> TrainOutput:
        """
        Sets the weights to the mean of trained models (model soup, Wortsman et al. 2022), in place of `train()`.

        Args:
            members: the folders of the trained models.
        """
        started = time.perf_counter()
        for folder in members:
            check_seal(folder)
        if self.args.keep_start_if_better:
            self._start.keep(self.model)
        self.model.load_state_dict(mean_weights(members, self.model.config))
        self._note_training(self.model)
        return TrainOutput(0, math.nan, {"train_runtime": time.perf_counter() - started})

    def average_with(self, others: Iterable[dict[str, Tensor]]) -> None:
        """
        Sets the weights to the mean of the present ones and others (a model soup).

        Args:
            others: state dicts of the model, of which one at a time is held.
        """
        mean_of(itertools.chain([self.model.state_dict()], others))  # changes the model's own tensors

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device
    ) -> tuple[list[Any], Tensor | int | None]:
        """The batches of a step, as in transformers, and the number of their pairs in all processes."""
        batches, _ = super().get_batch_samples(epoch_iterator, num_batches, device)
        num_pairs = torch.tensor(sum(len(batch["labels"]) for batch in batches), device=device)
        return batches, self.accelerator.gather(num_pairs).sum()

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor | Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor | tuple[Tensor, Any]:
        """
        The model's loss, plus the term of `self_distillation` if there are anchors. With `matryoshka_dims`, it is the
        mean of this loss and those of shortened embeddings.

        In training, the losses of a step's batches are weighted such that their mean, which Trainer takes, is the mean
        over the pairs of the step.

        Args:
            model: our model, which may be wrapped.
            inputs: inputs of the model, with `labels`, `anchors` for `self_distillation`, and `score_maps`, intercept
                and slope of shape (batch, 2), for `source_scales` and `group_intercepts`.
            return_outputs: whether to return the model's outputs, too.
            num_items_in_batch: number of pairs of the step in all processes, see [`~STSTrainer.get_batch_samples`].
        """
        anchors, maps = inputs.pop("anchors", None), inputs.pop("score_maps", None)
        mixed = (
            torch.autocast(self.args.device.type, torch.bfloat16) if self._mixes and model.training else nullcontext()
        )
        with self.accelerator.autocast(), mixed:
            _, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
        lengths = (self.args.matryoshka_dims or ()) if model.training else ()
        labels = inputs["labels"]
        shortened = (self.model(embeddings=outputs["embeddings"][..., :length], labels=labels) for length in lengths)
        losses = [self._loss_of(scored, labels, maps, anchors) for scored in (outputs, *shortened)]
        loss = torch.stack(losses).mean()
        if num_items_in_batch is not None:
            num_batches = self.current_gradient_accumulation_steps * self.accelerator.num_processes
            loss = loss * (num_batches * len(inputs["labels"]) / num_items_in_batch)
        return (loss, outputs) if return_outputs else loss

    def _loss_of(self, outputs: Any, labels: Tensor, maps: Tensor | None, anchors: Tensor | None) -> Tensor:
        own: Any = self.model
        loss, embeddings = outputs["loss"], outputs.get("embeddings")  # a cross-encoder has no embeddings
        if maps is not None:
            scores = maps[:, 0] + maps[:, 1] * outputs["scores"]
            loss = own.compute_loss(outputs["logits"], scores, embeddings, labels)
        elif own.config.loss_type in BATCH_LOSSES and own.training and self.accelerator.num_processes > 1:
            values = (outputs["logits"], outputs["scores"], embeddings, labels)
            loss = joint_loss(self.accelerator, own.compute_loss, *values)
        if anchors is None:
            return loss
        change = joint_loss(self.accelerator, similarity_distillation, embeddings, anchors)
        return loss + self.args.self_distillation * self.distillation_scale * change

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        """Runs a training step of transformers, and records its loss."""
        loss = super().training_step(*args, **kwargs)
        self._losses.append(loss.detach())
        return loss

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        norm = super()._get_grad_norm(model, grad_norm)
        step = self.state.global_step + 1
        self.numerics.add(Step(step, self._losses, norm))
        self._losses = []
        if self.args.device.type == "cpu" or step % self.state.logging_steps == 0:
            self._check_numerics()
        return norm

    def _check_numerics(self) -> None:
        """Stops training if a step since the last check had a NaN or infinite loss or gradient."""
        if (found := self.numerics.first_bad_step()) is None:
            return
        loader: Any = self.callback_handler.train_dataloader
        rows = rows_of_batches(loader, found["step"], found.pop("batches"), self.args.gradient_accumulation_steps)
        folder, precision = Path(self.args.output_dir or ""), self.accelerator.mixed_precision
        raise_for_step(found, rows, folder, precision, self.args.process_index)

    def solve_head(self) -> TrainOutput:
        """Solves for the head in place of `train()`, see [`solve_head`]. The pairs must be embedded."""
        assert isinstance(self.train_dataset, EmbeddedPairs)
        started = time.perf_counter()
        losses: list[float] = []

        def log(iteration: int, loss: float) -> None:
            losses.append(loss)
            self.state.log_history.append({"step": iteration, "loss": loss})

        self._begin(self.model)  # first: an earlier `grading` would map the scores that the solver fits
        iterations = solve_head(self.model, self.train_dataset, self.args.weight_decay, on_iteration=log)
        self.state.global_step = iterations
        seconds = time.perf_counter() - started
        return TrainOutput(iterations, losses[-1], {"train_runtime": seconds, "train_loss": losses[-1]})

    def score(self, pairs: Dataset | EmbeddedPairs) -> PairScores:
        """The model's scores of pairs in any form that the constructor takes, in their order."""
        self._prepare_once()
        pairs = as_model_inputs("pairs", pairs, self.model.config, self.processing_class)
        if isinstance(pairs, Dataset) and self._embeds_first(pairs):
            with self.accelerator.autocast():
                pairs = embed_tokenized(pairs, self.model, self.processing_class, draws_bars(self.args.disable_tqdm))
        compute_metrics, self.compute_metrics = self.compute_metrics, None
        try:
            predictions = np.asarray(self.predict(pairs).predictions)
            return unstack_scores(predictions, self.model.config.head_is_trained)
        finally:
            self.compute_metrics = compute_metrics

    def _embeds_first(self, pairs: Dataset) -> bool:
        """Whether each distinct text is encoded once, and not with each of its pairs."""
        converts_weights = self.args.bf16_full_eval or self.args.fp16_full_eval  # as `predict` begins
        return (
            self.model.config.encoder_type == "bi-encoder"
            and len(pairs) <= EMBEDDED_AT_ONCE
            and not (self.args.world_size > 1 or self.splits_weights or converts_weights)
        )

    @property
    def continued_from_step(self) -> int:
        """Number of steps that earlier commands trained before the last `train()` resumed; 0 if it did not resume."""
        return self._first_step.num_steps

    @property
    def splits_weights(self) -> bool:
        """Whether no process holds the whole model once it trains."""
        return self.is_fsdp_enabled or self.is_deepspeed_enabled

    def _prepare_once(self) -> None:
        """
        Wraps a model for training before it is scored for the first time.

        Otherwise accelerate would prepare it for scoring only, and the processes would train without exchanging
        gradients.
        """
        if self.accelerator.use_distributed and self.train_dataset is not None and self.optimizer is None:
            assert not self.splits_weights
            self.create_optimizer()
            self.model_wrapped, self.optimizer = self.accelerator.prepare(self.model, self.optimizer)

    def _measure_prediction(self, prediction: EvalPrediction) -> dict[str, float]:
        scores = unstack_scores(np.asarray(prediction.predictions), self.model.config.head_is_trained)
        return measure_scores(scores, np.asarray(prediction.label_ids), self.label_values, self._sources)

    def _get_eval_sampler(self, eval_dataset: Dataset | EmbeddedPairs) -> torch.utils.data.Sampler | None:
        # With batches grouped by length, transformers would shuffle the pairs, and with them the predictions.
        return SequentialSampler(eval_dataset) if self.args.world_size <= 1 else None

    def _get_train_sampler(self, train_dataset: Any = None) -> torch.utils.data.Sampler | None:
        sampler = super()._get_train_sampler(train_dataset)
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        if type(sampler) is LengthGroupedSampler:
            self._sampler = SeededLengthSampler(sampler.batch_size, sampler.lengths, seed)
        elif type(sampler) is RandomSampler and len(sampler) >= MAPPED_FROM:
            self._sampler = SeededSampler(len(sampler), seed)
        else:
            return sampler
        return self._sampler

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """The optimizer of transformers, with a parameter group for each learning rate."""
        if self.optimizer is not None:
            return self.optimizer
        optimizer = super().create_optimizer(model)
        split_by_rate(optimizer, learning_rates(self.model if model is None else model, self.args))
        return optimizer

    def create_scheduler(
        self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None
    ) -> torch.optim.lr_scheduler.LRScheduler:
        """The schedule of transformers, for `schedule_stretch` times the steps."""
        return super().create_scheduler(round(num_training_steps * self.args.schedule_stretch), optimizer)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        if self.adapter is None:
            super()._load_from_checkpoint(resume_from_checkpoint, model)
        else:
            load_adapter(self.adapter, self.model, resume_from_checkpoint)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        with reading_state(checkpoint):
            super()._load_optimizer_and_scheduler(checkpoint)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        with reading_state(checkpoint):
            super()._load_rng_state(checkpoint)

    def _load_best_model(self) -> None:
        check_seal(Path(self.state.best_model_checkpoint or ""))
        if self.adapter is None:
            super()._load_best_model()
        else:
            load_adapter(self.adapter, self.model, self.state.best_model_checkpoint or "")

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        self._check_numerics()
        run_dir = Path(self._get_output_dir(trial))
        folder = run_dir / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        with writing_checkpoint(folder) if self.args.should_save else nullcontext():
            super()._save_checkpoint(model, trial)
            self.accelerator.wait_for_everyone()  # each process writes a part
        self._delete_old_checkpoints(run_dir, [folder])

    def _delete_old_checkpoints(self, run_dir: Path, latest: list[Path]) -> None:
        best = [Path(self.state.best_model_checkpoint)] if self.state.best_model_checkpoint else []
        if self.args.should_save and (latest or best):
            delete_old_checkpoints(run_dir, {*latest, *best}, self.save_total_limit)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Saves the model as transformers does, and explains failures, see [`explaining`]."""
        folder = Path(output_dir or self.args.output_dir or "")
        with nullcontext() if _internal_call else explaining(folder):
            super().save_model(output_dir, _internal_call)
            if self.args.should_save and not _internal_call and self.adapter is None:
                seal_model(folder)

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        if not self.args.should_save:  # every process comes here
            return
        if self.adapter is not None:
            save_adapter(self.adapter, self.model, output_dir or self.args.output_dir or "")
            return
        with of_class(self.model, STSRegressionModel):
            super()._save(output_dir, state_dict)
        folder = Path(output_dir or self.args.output_dir or "")
        write_modules(folder, self.model.config, self.processing_class)
        # Deletes a pickle of the arguments: run.json holds them, and our code never reads pickles.
        (folder / TRAINING_ARGS_NAME).unlink(missing_ok=True)


def _shard_layers(plugin: Any, model: STSRegressionModel) -> None:
    """Makes FSDP shard the layers of the encoder: accelerate would shard BERT's embeddings twice, and fail."""
    layers = {type(module).__name__ for name, module in model.named_modules() if re.search(f"{LAYER}$", name)}
    plugin.transformer_cls_names_to_wrap = sorted(layers)
    plugin.mixed_precision_policy = None  # would cast the head, too; `compute_loss` casts instead
