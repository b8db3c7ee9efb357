"""Losses and gradients that are no numbers, constant predictions, half precision, and texts without tokens."""

import itertools
import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from transformers import BertConfig, DebertaConfig, PreTrainedTokenizerBase

from sts_regression.configuration_sts_regression import LOSS_TYPES, POOLINGS, STSRegressionConfig
from sts_regression.evaluation.measures import PairScores, measure_scores
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import model_scorer
from sts_regression.models.tokenization import tokenize_pairs
from sts_regression.training import training_arguments
from sts_regression.training.checkpoints import checkpoints
from sts_regression.training.numerics import SKIPPED_AT_MOST, NumericsCheck, Step
from sts_regression.training.run_record import describe_determinism
from sts_regression.training.trainer import STSTrainer
from sts_regression.training.training_arguments import STSTrainingArguments
from sts_regression.training.weight_averaging import copy_weights

Reliability = Callable[[str, int, int, int], None]
MakeModel = Callable[..., STSRegressionModel]
WORDS = ["cat", "dog", "man", "park", "water", "house", "red", "big"]
BAD_ROW = 5
# Of the spread of scores and cosines; docs/launching.md states them. bfloat16 keeps 8 bits of a number, float16 11.
LARGEST_SHARES = {torch.bfloat16: 0.05, torch.float16: 0.05 / 8}


@pytest.fixture
def make_trainer(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> Callable[..., STSTrainer]:
    """`make_trainer(labels=…, words=…, **options)`: of eight pairs, two a step, an epoch of four steps."""

    def make(labels: list[float] | None = None, words: list[str] = WORDS, **options: Any) -> STSTrainer:
        columns = {"sentence1": words, "sentence2": words[::-1], "label": labels or [float(i % 6) for i in range(8)]}
        pairs = tokenize_pairs(Dataset.from_dict(columns), tokenizer, "bi-encoder")
        args = STSTrainingArguments(
            **{
                **{"output_dir": str(tmp_path), "report_to": "none", "use_cpu": True, "disable_tqdm": True},
                **{"per_device_train_batch_size": 2, "num_train_epochs": 2, **options},
            }
        )
        return STSTrainer(make_model(loss_type="mse"), args, pairs, pairs, tokenizer)

    return make


@pytest.mark.parametrize(
    "options", [{}, {"gradient_accumulation_steps": 2}, {"train_sampling_strategy": "group_by_length"}], ids=str
)
def test_a_loss_that_is_no_number_stops_the_training_before_it_costs_the_weights(
    make_trainer: Callable[..., STSTrainer], tmp_path: Path, options: dict[str, Any], reliability: Reliability
) -> None:
    trainer = make_trainer(**options)
    dataset: Any = trainer.train_dataset
    training_step, bad_token = trainer.training_step, dataset[BAD_ROW]["input_ids"][0][1]

    def nan_for_one_row_in_the_second_epoch(model: Any, inputs: dict[str, Any], *args: Any) -> Any:
        if checkpoints(tmp_path) and bool((inputs["input_ids"][:, 0, 1] == bad_token).any()):
            inputs["labels"] = inputs["labels"] * math.nan
        return training_step(model, inputs, *args)

    trainer.training_step = nan_for_one_row_in_the_second_epoch  # type: ignore[method-assign]
    steps = 4 // options.get("gradient_accumulation_steps", 1)
    with pytest.raises(
        ValueError,
        match=r"the loss is nan in step \d, on rows .*numerics\.json lists all of them\. Look at these pairs",
    ):
        trainer.train()
    report = json.loads((tmp_path / "numerics.json").read_text())
    assert (report["quantity"], report["precision"], report["process"]) == ("loss", "no", 0)
    assert steps < report["step"] <= 2 * steps
    assert BAD_ROW in report["rows"]
    assert len(report["rows"]) == 2
    assert "nan" in report["losses"]
    assert [path.name for path in checkpoints(tmp_path)] == [f"checkpoint-{steps}"]
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())
    reliability("NaN or infinite losses and gradients: training stops", 1, 0, 1)


def test_a_gradient_that_is_no_number_stops_the_training(
    make_trainer: Callable[..., STSTrainer], tmp_path: Path, reliability: Reliability
) -> None:
    trainer = make_trainer(max_grad_norm=0)
    trainer.model.head.weight.register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(ValueError, match=r"the gradient is (inf|nan) in step 1, on rows .* lower `--learning_rate`"):
        trainer.train()
    assert json.loads((tmp_path / "numerics.json").read_text())["quantity"] == "gradient"
    assert not checkpoints(tmp_path)
    reliability("NaN or infinite losses and gradients: training stops", 1, 0, 1)


def test_steps_may_be_looked_at_later() -> None:
    check = NumericsCheck(skips_steps=False)
    one, nan = torch.tensor(1.0), torch.tensor(math.nan)
    assert check.first_bad_step() is None
    for number, (losses, norm) in enumerate([([one], one), ([one, nan], one), ([one], nan)], start=1):
        check.add(Step(number, losses, norm))
    found = check.first_bad_step()
    assert found is not None
    assert (found["step"], found["quantity"], found["batches"]) == (2, "loss", [1])
    assert check.first_bad_step() is None


def test_float16_may_skip_steps_but_not_all() -> None:
    check = NumericsCheck(skips_steps=True)
    one, infinite = torch.tensor(1.0), torch.tensor(math.inf)
    for number in range(SKIPPED_AT_MOST):
        check.add(Step(number, [one], infinite))
        assert check.first_bad_step() is None
    check.add(Step(SKIPPED_AT_MOST, [one], infinite))
    assert check.first_bad_step() is not None
    check.add(Step(SKIPPED_AT_MOST, [one], one))
    check.add(Step(SKIPPED_AT_MOST, [one], infinite))
    assert check.first_bad_step() is None


def test_constant_predictions_have_a_best_checkpoint(make_trainer: Callable[..., STSTrainer], tmp_path: Path) -> None:
    trainer = make_trainer(words=["cat"] * 8)
    trainer.train()
    assert trainer.state.best_metric == 0
    assert trainer.state.best_global_step == 4  # the first of equals
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-4"]


@pytest.mark.parametrize("values", [[1.0, 1.0, 1.0], [1.0, 1.0 + 1e-16, 1.0], [1e-300, 2e-300, 1e-300], [1e-45, 0, 0]])
def test_correlations_of_all_but_constant_predictions_are_numbers(values: list[float]) -> None:
    scores = np.array(values)
    measures = measure_scores(PairScores(scores, scores), np.array([1.0, 2.0, 0.5]), [0.0, 5.0])
    assert all(math.isfinite(value) for value in measures.values()), measures


@pytest.mark.parametrize("empty", [False, True], ids=["one token", "no token"])
@pytest.mark.parametrize("encoding", ["auto", "padded"])
@pytest.mark.parametrize(("loss", "pooling"), list(itertools.product(LOSS_TYPES, POOLINGS)))
def test_texts_of_one_token_or_none_have_losses_and_gradients(
    make_model: MakeModel, loss: str, pooling: str, encoding: str, empty: bool
) -> None:
    model = make_model(loss_type=loss, pooling=pooling, encoding=encoding).train()
    generator = torch.Generator().manual_seed(0)
    input_ids = torch.randint(5, 20, (6, 2, 4), generator=generator)
    lengths = torch.randint(1, 5, (6, 2), generator=generator)
    lengths[0], lengths[1, 0] = 1, 1
    if empty:
        lengths[2], lengths[3, 0] = 0, 0
    mask = (torch.arange(4) < lengths[..., None]).long()
    labels = torch.tensor([0.0, 5.0, 2.0, 2.0, 1.0, 4.0])
    for rows in (slice(None), slice(1), slice(2, 3), slice(2, 4)):  # single pairs, and equal labels
        model.zero_grad()
        output = model(input_ids[rows], mask[rows], labels=labels[rows])
        output.loss.backward()
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        assert output.loss.isfinite()
        assert output.scores.isfinite().all()
        assert gradients
        assert all(gradient.isfinite().all() for gradient in gradients), rows


def largest_difference(
    model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, device: str, dtype: torch.dtype
) -> float:
    """Of the scores and cosines of 32 pairs between half and full precision, as a share of their spread."""
    texts = [f"the {first} {second}" for first, second in itertools.product(WORDS, WORDS)]
    batch = tokenizer(texts, padding=True, return_tensors="pt").to(device)
    inputs = {name: tensor.unflatten(0, (-1, 2)) for name, tensor in batch.items()}
    measured = []
    for enabled in (False, True):
        with torch.no_grad(), torch.autocast(device, dtype, enabled=enabled):
            output = model(**inputs)
        u, v = output.embeddings.float().unbind(1)
        measured.append(torch.stack([output.scores, torch.cosine_similarity(u, v)]))
    full, half = measured
    spread = full.amax(dim=1) - full.amin(dim=1)
    return float(((half - full).abs().amax(dim=1) / spread).max())


@pytest.mark.parametrize("dtype", LARGEST_SHARES, ids=str)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_half_precision_stays_near_float32(
    make_model: MakeModel,
    tiny_encoder_config: BertConfig,
    tokenizer: PreTrainedTokenizerBase,
    device: str,
    dtype: torch.dtype,
) -> None:
    tiny_encoder_config.initializer_range = 0.2  # with BERT's 0.02 all texts are nearly alike
    model = make_model(tiny_encoder_config).to(device)
    assert 0 < largest_difference(model, tokenizer, device, dtype) < LARGEST_SHARES[dtype]


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_trains_on_a_gpu(make_trainer: Callable[..., STSTrainer], precision: str) -> None:
    trainer = make_trainer(use_cpu=False, num_train_epochs=20, logging_steps=5, **{precision: True})
    assert trainer.train().global_step == 80
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())


def test_training_in_bfloat16_scores_in_float32(
    make_trainer: Callable[..., STSTrainer], tokenizer: PreTrainedTokenizerBase
) -> None:
    weights = []
    for precision in ("float32", "bfloat16"):
        torch.manual_seed(0)
        trainer = make_trainer(precision=precision)
        in_bfloat16: list[bool] = []
        layer = trainer.model.encoder.encoder.layer[0].output.dense  # type: ignore[index, union-attr]
        layer.register_forward_hook(
            lambda module, inputs, output, seen=in_bfloat16: seen.append(output.dtype == torch.bfloat16)
        )
        trainer.train()
        assert any(in_bfloat16) == (precision == "bfloat16")
        in_bfloat16.clear()
        dataset: Any = trainer.train_dataset
        scored = trainer.score(dataset)
        assert not any(in_bfloat16)
        assert in_bfloat16
        weights.append(copy_weights(trainer.model.encoder))
        scores = model_scorer(trainer.model, tokenizer)(WORDS, WORDS[::-1])
        assert scored.head is not None
        np.testing.assert_allclose(scored.head, scores["head"], atol=1e-6)
    assert any(not torch.equal(weights[0][name], value) for name, value in weights[1].items())


@pytest.mark.parametrize(("options", "trains"), [({}, False), ({"precision": "bfloat16"}, True)], ids=str)
def test_an_encoder_that_fails_in_bfloat16_trains_in_float32_by_default(
    options: dict[str, Any],
    trains: bool,
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training_arguments, "has_fast_bfloat16", lambda device_type: True)
    config = DebertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
    )
    columns = {"sentence1": WORDS, "sentence2": WORDS[::-1], "label": [float(i % 6) for i in range(8)]}
    options |= {"eval_strategy": "no", "save_strategy": "no", "load_best_model_at_end": False, "max_steps": 1}
    args = STSTrainingArguments(output_dir=str(tmp_path), report_to="none", use_cpu=True, do_train=True, **options)
    model = STSRegressionModel(STSRegressionConfig(encoder_config=config))
    trainer = STSTrainer(model, args, Dataset.from_dict(columns), None, tokenizer)
    assert trainer.args.trains_in_bfloat16 == trains
    with nullcontext() if not trains else pytest.raises(RuntimeError, match="BFloat16"):
        trainer.train()


@pytest.mark.parametrize(
    ("options", "is_fast", "trains"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"precision": "float32"}, True, False),
        ({"precision": "bfloat16"}, False, True),
        ({"bf16": True}, True, False),  # which scores in bfloat16, too
    ],
)
def test_bfloat16_is_used_if_the_hardware_is_made_for_it(
    options: dict[str, Any], is_fast: bool, trains: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_arguments, "has_fast_bfloat16", lambda device_type: is_fast)
    args = STSTrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to="none", do_train=True, **options)
    assert args.trains_in_bfloat16 == trains
    assert (describe_determinism(args)["precision"] == "bf16 in training") == trains


@pytest.mark.parametrize(
    ("capabilities", "is_fast"),
    [({"avx512_bf16": True}, True), ({"amx_bf16": True}, True), ({"avx512_f": True, "avx512_bf16": False}, False)],
)
def test_a_processor_says_whether_it_has_bfloat16(
    capabilities: dict[str, bool], is_fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert training_arguments.has_fast_bfloat16("cpu") == is_fast
    assert not training_arguments.has_fast_bfloat16("mps")
