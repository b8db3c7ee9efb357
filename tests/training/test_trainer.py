"""Learning rates, selection of the best checkpoint, averaging, self-distillation, accumulation, and threads."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset, concatenate_datasets
from transformers import (
    AlbertConfig,
    BertConfig,
    DistilBertConfig,
    ModernBertConfig,
    PretrainedConfig,
    PreTrainedTokenizerBase,
    TrainerState,
)
from transformers import RobertaConfig as Roberta

from sts_regression.basics.distributed import set_cpu_threads
from sts_regression.basics.seals import seal_model
from sts_regression.configuration_sts_regression import LOSS_TYPES
from sts_regression.losses_sts_regression import mse, similarity_distillation
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.embedding_store import add_anchors
from sts_regression.models.tokenization import tokenize_pairs
from sts_regression.training import trainer as trainer_module
from sts_regression.training.learning_rates import learning_rates
from sts_regression.training.run_record import describe_training
from sts_regression.training.trainer import BATCH_LOSSES, STSTrainer
from sts_regression.training.training_arguments import STSTrainingArguments

MakeModel = Callable[..., STSRegressionModel]
SIZES: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}
NO_EVALUATION: dict[str, Any] = {"eval_strategy": "no", "save_strategy": "no", "load_best_model_at_end": False}
ENCODERS: dict[str, PretrainedConfig] = {
    "bert": BertConfig(vocab_size=50, **SIZES),
    "roberta": Roberta(vocab_size=50, **SIZES),
    "modernbert": ModernBertConfig(vocab_size=50, pad_token_id=0, **SIZES),
    "distilbert": DistilBertConfig(vocab_size=50, dim=32, n_layers=3, n_heads=4, hidden_dim=64),
}


@pytest.fixture
def arguments(tmp_path: Path) -> Callable[..., STSTrainingArguments]:
    def make(**options: Any) -> STSTrainingArguments:
        defaults = {"output_dir": str(tmp_path), "report_to": "none", "use_cpu": True, "disable_tqdm": True}
        return STSTrainingArguments(**{**defaults, **options})

    return make


@pytest.fixture
def pairs(tokenizer: PreTrainedTokenizerBase) -> Dataset:
    words = ["cat", "dog", "man", "park", "water", "house", "red", "big"]
    columns = {"sentence1": words, "sentence2": words[::-1], "label": [float(i % 6) for i in range(8)]}
    return tokenize_pairs(Dataset.from_dict(columns), tokenizer, "bi-encoder")


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("decay_embeddings", [True, False])
def test_learning_rates_fall_from_layer_to_layer(
    make_model: MakeModel, arguments: Callable[..., STSTrainingArguments], name: str, decay_embeddings: bool
) -> None:
    args = arguments(
        learning_rate=1.0, head_learning_rate=3.0, layerwise_lr_decay=0.5, embeddings_lr_decay=decay_embeddings
    )
    model = make_model(ENCODERS[name])
    rates = learning_rates(model, args)
    by_name = {parameter_name: rates[parameter] for parameter_name, parameter in model.named_parameters()}
    for parameter_name, rate in by_name.items():
        if parameter_name.startswith("head."):
            assert rate == 3.0
        elif "embed" in parameter_name:
            assert rate == (0.125 if decay_embeddings else 1.0)
        else:
            layer = next((int(part) for part in parameter_name.split(".") if part.isdigit()), 2)
            assert rate == 0.5 ** (2 - layer), parameter_name
    assert len(set(by_name.values())) == (5 if decay_embeddings else 4)


class Wrapper(torch.nn.Module):
    """Names parameters as DDP does."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module


def compiled(model: torch.nn.Module) -> torch.nn.Module:
    return torch.compile(model)  # type: ignore[return-value] # nothing is compiled before the first call


@pytest.mark.parametrize(
    "wrap",
    [
        compiled,
        Wrapper,
        lambda model: compiled(Wrapper(model)),
        lambda model: Wrapper(compiled(model)),
    ],
    ids=["compiled", "DDP", "DDP, compiled", "compiled, in DDP"],
)
def test_wrapping_changes_no_learning_rate(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    wrap: Callable[[torch.nn.Module], torch.nn.Module],
) -> None:
    args = arguments(learning_rate=1.0, head_learning_rate=3.0, layerwise_lr_decay=0.5)
    model = make_model()
    wrapped = wrap(model)
    assert not any(name.startswith("head.") for name, _ in wrapped.named_parameters())
    expected = learning_rates(model, args)
    assert len(set(expected.values())) == 4  # of the head, two layers and the embeddings
    assert learning_rates(wrapped, args) == expected


def without_dropout(tokenizer: PreTrainedTokenizerBase) -> BertConfig:
    """An encoder that is the same in training and in evaluation."""
    return BertConfig(vocab_size=len(tokenizer), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **SIZES)


@pytest.mark.slow
def test_a_compiled_model_trains_as_one_that_is_not(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
) -> None:
    encoder_config = without_dropout(tokenizer)
    trained = []
    for compile_options in ({}, {"torch_compile": True, "torch_compile_backend": "eager"}):
        args = arguments(
            **{**NO_EVALUATION, **compile_options},
            **{"optim": "sgd", "max_steps": 2, "warmup_steps": 0},
            **{"learning_rate": 1e-3, "head_learning_rate": 1e-2, "layerwise_lr_decay": 0.5},
        )
        model = make_model(encoder_config)
        trainer = STSTrainer(model, args, pairs, pairs, tokenizer)
        trainer.score(pairs)  # as the command does; it wraps the model before there is an optimizer
        trainer.train()
        trained.append(model.state_dict())
    for name, value in trained[0].items():
        torch.testing.assert_close(trained[1][name], value, atol=1e-5, rtol=1e-4)


def test_the_optimizer_holds_every_parameter_once_at_its_rate(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
) -> None:
    args = arguments(layerwise_lr_decay=0.9, weight_decay=0.01)
    model = make_model()
    optimizer = STSTrainer(model, args, pairs, pairs, tokenizer).create_optimizer()
    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    assert sorted(map(id, held)) == sorted(map(id, model.parameters()))
    rates, names = learning_rates(model, args), {id(parameter): name for name, parameter in model.named_parameters()}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            assert group["lr"] == rates[parameter]
            is_undecayed = names[id(parameter)].endswith("bias") or "LayerNorm" in names[id(parameter)]
            assert group["weight_decay"] == (0.0 if is_undecayed else 0.01)


def test_the_encoder_is_averaged_with_the_one_it_started_from(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
) -> None:
    def train(alpha: float) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        torch.manual_seed(0)
        model = make_model()
        start = {name: value.clone() for name, value in model.state_dict().items()}
        args = arguments(wise_ft_alpha=alpha, num_train_epochs=2, learning_rate=1e-2, warmup_steps=0, **NO_EVALUATION)
        STSTrainer(model, args, pairs, None, tokenizer).train()
        return start, model.state_dict()

    start, tuned = train(1.0)
    _, averaged = train(0.25)
    assert any(not torch.equal(start[name], tuned[name]) for name in start if name.startswith("encoder."))
    for name, value in averaged.items():
        expected = tuned[name] if name.startswith("head.") else 0.75 * start[name] + 0.25 * tuned[name]
        torch.testing.assert_close(value, expected)


def test_an_averaged_model_may_be_given_up_for_its_start(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
    tmp_path: Path,
) -> None:
    member = make_model(score_function="cosine")
    with torch.no_grad():
        for parameter in member.encoder.parameters():
            parameter.add_(1.0)
    member.save_pretrained(tmp_path)
    seal_model(tmp_path)
    model = make_model(score_function="cosine")
    trainer = STSTrainer(model, arguments(keep_start_if_better=True, **NO_EVALUATION), pairs, None, tokenizer)
    start = {name: value.clone() for name, value in trainer.model.encoder.state_dict().items()}
    trainer.average([tmp_path])
    for name, parameter in trainer.model.encoder.named_parameters():
        torch.testing.assert_close(parameter.data, start[name] + 1.0)
    trainer.restore_untouched()
    for name, value in trainer.model.encoder.state_dict().items():
        torch.testing.assert_close(value, start[name])


def test_a_head_that_reverses_the_cosine_starts_anew_with_the_untouched_encoder(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
) -> None:
    model = make_model(score_function="cosine")
    start = model.head.weight.item()
    trainer = STSTrainer(model, arguments(keep_start_if_better=True, **NO_EVALUATION), pairs, None, tokenizer)
    trainer.train()
    for weight, expected in ((2.0, 2.0), (-2.0, start)):
        with torch.no_grad():
            model.head.weight.fill_(weight)
        trainer.restore_untouched()
        assert model.head.weight.item() == expected


def test_the_start_cannot_be_kept_with_an_adapter(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
) -> None:
    options = arguments(keep_start_if_better=True, **NO_EVALUATION)
    model, adapter = make_model(score_function="cosine"), Any
    with pytest.raises(ValueError, match="`keep_start_if_better` needs the untouched weights"):
        STSTrainer(model, options, pairs, None, tokenizer, adapter=adapter)


def test_the_log_holds_no_number_that_is_not_finite(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
) -> None:
    trainer = STSTrainer(make_model(), arguments(**NO_EVALUATION), pairs, None, tokenizer)
    trainer.state.log_history = [{"loss": 0.5, "grad_norm": math.inf, "step": 1}]  # a step that fp16 skips
    assert describe_training({}, trainer)["log_history"] == [{"loss": 0.5, "step": 1}]


@pytest.mark.parametrize(
    ("options", "freeze", "selected_by"),
    [
        ({}, False, "spearman_cosine"),
        ({}, True, "spearman_head"),
        ({"encoder_type": "cross-encoder"}, False, "spearman_head"),
    ],
)
def test_the_head_selects_where_the_cosine_cannot(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
    options: dict[str, str],
    freeze: bool,
    selected_by: str,
) -> None:
    model = make_model(**options)
    if freeze:
        model.freeze_encoder()
    trainer = STSTrainer(model, arguments(), pairs, pairs, tokenizer)
    assert trainer.args.metric_for_best_model == selected_by
    assert trainer.args.greater_is_better


@pytest.mark.parametrize(
    ("measure", "best_step"),
    [("mae_head", 2), ("eval_mae_head", 2), ("accuracy_head", 3), ("eval_kendall_cosine", 3)],
)
def test_the_best_checkpoint_is_that_of_the_least_error_or_the_greatest_measure(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
    measure: str,
    best_step: int,
) -> None:
    args = arguments(metric_for_best_model=measure, num_train_epochs=3)
    trainer = STSTrainer(make_model(), args, pairs, pairs, tokenizer)
    values = iter((0.5, 0.2, 0.9))
    trainer.compute_metrics = lambda _: {measure: next(values)}
    trainer.train()
    assert trainer.state.best_global_step == best_step


@pytest.mark.parametrize(("measure", "greater"), [("loss", False), ("eval_loss", False), ("pearson_cosine", True)])
def test_whether_more_is_better_may_be_said(
    arguments: Callable[..., STSTrainingArguments], measure: str, greater: bool
) -> None:
    for given in (None, greater):
        args = arguments(metric_for_best_model=measure, greater_is_better=given)
        assert args.greater_is_better is greater


def test_what_the_development_measure_schedules_knows_whether_more_is_better(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
) -> None:
    for measure, mode in (("spearman_cosine", "max"), ("eval_mae_head", "min")):
        args = arguments(lr_scheduler_type="reduce_lr_on_plateau", metric_for_best_model=measure)
        trainer = STSTrainer(make_model(), args, pairs, pairs, tokenizer)
        scheduler: Any = trainer.create_scheduler(3, trainer.create_optimizer())
        assert scheduler.mode == mode
    args = arguments(lr_scheduler_type="greedy", lr_scheduler_kwargs={"min_lr": 0.0, "patience": 3})
    assert args.lr_scheduler_kwargs == {"min_lr": 0.0, "patience": 3, "mode": "max"}


def test_every_pair_is_scored_where_training_drops_the_last_ones(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
) -> None:
    batches = {"per_device_train_batch_size": 3, "per_device_eval_batch_size": 3}
    model = make_model()
    whole = STSTrainer(model, arguments(**batches), pairs, pairs, tokenizer)
    trainer = STSTrainer(model, arguments(**batches, dataloader_drop_last=True), pairs, pairs, tokenizer)
    assert [len(batch["labels"]) for batch in trainer.get_train_dataloader()] == [3, 3]
    assert sum(len(batch["labels"]) for batch in trainer.get_eval_dataloader()) == 8
    np.testing.assert_array_equal(trainer.score(pairs).head, whole.score(pairs).head)
    assert trainer.args.dataloader_drop_last


def test_a_text_of_several_pairs_is_encoded_once_to_score_them(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = {
        "sentence1": ["the cat"] * 4,
        "sentence2": ["a dog", "water", "the cat", "a dog"],
        "label": [0, 1, 5, 1],
    }
    pairs = tokenize_pairs(Dataset.from_dict(columns), tokenizer, "bi-encoder")
    model = make_model().eval()
    trainer = STSTrainer(model, arguments(per_device_eval_batch_size=2), processing_class=tokenizer)
    expected = np.asarray(trainer.predict(pairs).predictions)
    encode, numbers = model.get_text_features, []

    def count(**inputs: Any) -> torch.Tensor:
        numbers.append(len(inputs["input_ids"]))
        return encode(**inputs)

    monkeypatch.setattr(model, "get_text_features", count)
    scores = trainer.score(pairs)
    assert sum(numbers) == 3
    assert scores.cosine is not None
    np.testing.assert_allclose(scores.cosine, expected[:, 1], atol=1e-6)


def test_processes_with_batches_of_their_own_number_are_refused(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    args = arguments(accelerator_config={"even_batches": False})
    STSTrainer(make_model(), args, pairs, pairs, tokenizer)
    monkeypatch.setattr(STSTrainingArguments, "world_size", 2)
    with pytest.raises(ValueError, match=r"`accelerator_config`: without `even_batches`, a process .* Leave it out\."):
        STSTrainer(make_model(), args, pairs, pairs, tokenizer)


def test_layers_without_a_number_have_no_rates_of_their_own(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
) -> None:
    model = make_model(AlbertConfig(vocab_size=len(tokenizer), embedding_size=16, **SIZES))  # its layers share weights
    with pytest.raises(ValueError, match=r"`layerwise_lr_decay` is 0\.9, but .* numbered layers\. Leave it out"):
        STSTrainer(model, arguments(layerwise_lr_decay=0.9), pairs, pairs, tokenizer)
    STSTrainer(model, arguments(), pairs, pairs, tokenizer)


def test_one_process_uses_one_gpu(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
) -> None:
    args = arguments(per_device_train_batch_size=4)
    args._n_gpu = 8
    trainer = STSTrainer(make_model(), args, pairs, pairs, tokenizer)
    assert (trainer.args.n_gpu, trainer.args.train_batch_size) == (1, 4)


def test_the_cosine_selects_where_no_head_is_trained(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
) -> None:
    args = arguments(metric_for_best_model="spearman_head")
    trainer = STSTrainer(make_model(loss_type="cosent"), args, pairs, pairs, tokenizer)
    assert trainer.args.metric_for_best_model == "spearman_cosine"
    assert "eval_spearman_head" not in trainer.evaluate()


TEXTS = {"sentence1": ["cat", "a big red dog", "man in the park"], "sentence2": ["dog", "the cat", "red water"]}


@pytest.fixture
def anchored(make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> tuple[Dataset, np.ndarray]:
    pairs = Dataset.from_dict({**TEXTS, "label": [0.0, 2.0, 5.0]})
    inputs = tokenize_pairs(pairs, tokenizer, "bi-encoder")
    return add_anchors(inputs, pairs, make_model(), tokenizer, tmp_path / "embeddings")


@pytest.mark.parametrize("options", [{}, {"train_sampling_strategy": "group_by_length"}], ids=str)
def test_each_pair_meets_the_embeddings_of_its_own_sentences(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    anchored: tuple[Dataset, np.ndarray],
    options: dict[str, str],
) -> None:
    inputs, anchors = anchored
    model = make_model().eval()
    repeated = concatenate_datasets([inputs, inputs.select([1])])  # as `--train_weights` repeats pairs
    args = arguments(per_device_train_batch_size=2, self_distillation=1.0, **options)
    trainer = STSTrainer(model, args, repeated, repeated, tokenizer, anchors=anchors)
    seen = 0
    for batch in trainer.get_train_dataloader():
        seen += len(batch["labels"])
        given = batch.pop("anchors")
        torch.testing.assert_close(model(**batch).embeddings, given, atol=1e-5, rtol=1e-5)
    assert seen == 4


@pytest.mark.parametrize("strategy", ["group_by_length", "random"])
def test_seed_and_epoch_decide_the_order_of_batches_by_length_and_of_many_pairs(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
    strategy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trainer_module, "MAPPED_FROM", len(pairs))

    def order(epoch: int, **options: int) -> list[list[int]]:
        args = arguments(train_sampling_strategy=strategy, per_device_train_batch_size=1, **options)
        loader: Any = STSTrainer(make_model(), args, pairs, pairs, tokenizer).get_train_dataloader()
        loader.set_epoch(epoch)
        return list(loader.batch_sampler)

    first = order(0)
    assert sorted(first) == [[row] for row in range(len(pairs))]
    assert all(type(row) is int for [row] in first)
    torch.rand(3)  # other code that draws random numbers
    assert order(0) == first
    assert order(1) != first
    assert order(0, data_seed=1000) != first
    # A run that is resumed within its second epoch.
    args = arguments(train_sampling_strategy=strategy, per_device_train_batch_size=1)
    trainer = STSTrainer(make_model(), args, pairs, pairs, tokenizer)
    loader: Any = trainer.get_train_dataloader()
    trainer.callback_handler.on_epoch_begin(args, TrainerState(epoch=1.4), trainer.control)
    assert list(loader.batch_sampler) == order(1)


@pytest.mark.parametrize(
    ("loss", "unit"),
    [("smooth_k2", 25), ("mse", 25), ("l1", 5), ("translated_relu", 5), ("pearson", 1), ("cosent", 1)],
)
def test_self_distillation_is_weighed_in_the_unit_of_the_loss(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    anchored: tuple[Dataset, np.ndarray],
    loss: str,
    unit: float,
) -> None:
    inputs, anchors = anchored
    model = make_model(loss_type=loss).eval()
    shifted = anchors + np.linspace(0, 1, anchors.size, dtype=np.float32).reshape(anchors.shape)
    trainer = STSTrainer(model, arguments(self_distillation=3.0), inputs, inputs, tokenizer, anchors=shifted)
    batch = trainer.data_collator([inputs[i] for i in range(3)])
    given = batch["anchors"]
    total, outputs = trainer.compute_loss(model, dict(batch), return_outputs=True)
    added = similarity_distillation(outputs["embeddings"], given)
    assert added > 1e-4
    torch.testing.assert_close(total - outputs["loss"], 3 * unit * added)


def test_shortened_embeddings_are_trained_as_whole_ones_are(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    anchored: tuple[Dataset, np.ndarray],
) -> None:
    inputs, anchors = anchored
    model = make_model(without_dropout(tokenizer), loss_type="mse", score_function="cosine")
    args = arguments(matryoshka_dims=[16, 4], self_distillation=3.0)
    trainer = STSTrainer(model, args, inputs, inputs, tokenizer, anchors=anchors + 0.1)
    batch = trainer.data_collator([inputs[i] for i in range(3)])
    given, labels = batch["anchors"], batch["labels"]
    loss, outputs = trainer.compute_loss(model.train(), dict(batch), return_outputs=True)
    expected = []
    for length in (32, 16, 4):
        embeddings = outputs["embeddings"][..., :length]
        scores = model.score_embeddings(embeddings[:, 0], embeddings[:, 1])
        expected.append(mse(scores, labels) + 3 * 25 * similarity_distillation(embeddings, given))
    torch.testing.assert_close(loss, torch.stack(expected).mean())
    whole: Any = trainer.compute_loss(model.eval(), dict(batch))
    torch.testing.assert_close(whole, expected[0])


def test_accumulated_gradients_equal_those_of_the_whole_batch(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    pairs: Dataset,
) -> None:
    encoder_config = without_dropout(tokenizer)
    trained = []
    for batch_size, steps in ((8, 1), (2, 4)):
        args = arguments(
            per_device_train_batch_size=batch_size,
            gradient_accumulation_steps=steps,
            max_steps=1,
            warmup_steps=0,
            optim="sgd",
            learning_rate=1.0,
            head_learning_rate=1.0,
            max_grad_norm=0,
            **NO_EVALUATION,
        )
        model = make_model(encoder_config)
        STSTrainer(model, args, pairs, pairs, tokenizer).train()
        trained.append(model.state_dict())
    untrained = make_model(encoder_config).state_dict()
    for name, value in trained[0].items():
        torch.testing.assert_close(trained[1][name], value, atol=1e-6, rtol=1e-5)
    assert not torch.equal(trained[0]["head.weight"], untrained["head.weight"])


@pytest.mark.parametrize(
    ("loss", "self_distillation", "batch_size", "accumulated"),
    [*((loss, 0.0, 4, 3) for loss in LOSS_TYPES), ("mse", 2.0, 4, 3), ("mse", 0.0, 3, 4), ("mse", 0.0, 10, 2)],
)
def test_a_step_is_the_mean_over_its_pairs_in_whatever_batches(
    make_model: MakeModel,
    arguments: Callable[..., STSTrainingArguments],
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    loss: str,
    self_distillation: float,
    batch_size: int,
    accumulated: int,
) -> None:
    words = ["cat", "dog", "man", "park", "water", "house", "red", "big", "the cat", "a dog"]
    pairs = Dataset.from_dict(
        {"sentence1": words, "sentence2": words[::-1], "label": [float(i % 6) for i in range(10)]}
    )
    model = make_model(
        without_dropout(tokenizer),
        loss_type=loss,
    )
    inputs = tokenize_pairs(pairs, tokenizer, "bi-encoder")
    inputs, anchors = add_anchors(inputs, pairs, model, tokenizer, tmp_path / "embeddings")
    args = arguments(
        **{**NO_EVALUATION, "per_device_train_batch_size": batch_size, "gradient_accumulation_steps": accumulated},
        **{"max_steps": 1, "warmup_steps": 0, "optim": "sgd", "learning_rate": 1e-2, "head_learning_rate": 1e-2},
        **{"max_grad_norm": 0, "weight_decay": 0, "logging_steps": 1, "train_sampling_strategy": "sequential"},
        self_distillation=self_distillation,
    )
    trainer = STSTrainer(model, args, inputs, inputs, tokenizer, anchors=anchors + 0.1)

    compares_pairs = loss in BATCH_LOSSES or self_distillation > 0
    starts = range(0, 10, batch_size if compares_pairs else 10)
    expected = torch.zeros(())
    for start in starts:
        rows = [inputs[i] for i in range(start, min(start + starts.step, 10))]
        batch_loss, _ = trainer.compute_loss(model, trainer.data_collator(rows), return_outputs=True)
        expected = expected + batch_loss * len(rows) / 10
    expected.backward()
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    step = {name: 1e-2 * weight.grad for name, weight in trained.items() if weight.grad is not None}
    after = {name: weight.detach() - step[name] for name, weight in trained.items()}
    model.zero_grad()

    trainer.train()
    assert trainer.state.log_history[0]["loss"] == pytest.approx(expected.item(), rel=1e-5)
    for name, weight in trained.items():
        torch.testing.assert_close(weight, after[name], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("environment", "given", "expected"),
    [
        ({"OMP_NUM_THREADS": "1", "ACCELERATE_MIXED_PRECISION": "no"}, None, 6),
        ({"OMP_NUM_THREADS": "1", "LOCAL_WORLD_SIZE": "2"}, None, 3),
        ({"OMP_NUM_THREADS": "1"}, None, None),
        ({"OMP_NUM_THREADS": "4", "ACCELERATE_MIXED_PRECISION": "no"}, None, None),
        ({}, 5, 5),
    ],
)
def test_a_launcher_does_not_leave_the_cpu_idle(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], given: int | None, expected: int | None
) -> None:
    for name in ("OMP_NUM_THREADS", "ACCELERATE_MIXED_PRECISION", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    chosen: list[int] = []
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(6)), raising=False)
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    set_cpu_threads(given)
    assert chosen == ([] if expected is None else [expected])
