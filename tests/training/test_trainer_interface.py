"""STSTrainer as one uses it in Python: raw pairs in, with one's own measures and callbacks."""

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from transformers import EvalPrediction, PreTrainedTokenizerBase, TrainerCallback

from sts_regression import STSRegressionModel, STSTrainer, STSTrainingArguments
from sts_regression.models.tokenization import tokenize_pairs
from sts_regression.training.training_checks import BATCH_LOSSES

MakeModel = Callable[..., STSRegressionModel]
PAIRS = Dataset.from_dict(
    {
        "sentence1": [f"the {word}" for word in ("cat", "dog", "man", "park")] * 2,
        "sentence2": [f"a {word}" for word in ("dog", "dog", "red house", "water")] * 2,
        "label": [0, 5, 2, 3.5, 1, 4, 2, 3],
        "source": ["news"] * 8,  # a column that nobody asks for
    }
)


@pytest.fixture
def args(tmp_path: Path) -> STSTrainingArguments:
    return STSTrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=1, per_device_train_batch_size=4, report_to="none"
    )


def test_raw_pairs_train_as_tokenised_ones(
    make_model: MakeModel, args: STSTrainingArguments, tokenizer: PreTrainedTokenizerBase
) -> None:
    losses = []
    for pairs in (PAIRS, tokenize_pairs(PAIRS, tokenizer, "bi-encoder")):
        model = copy.deepcopy(make_model())
        trainer = STSTrainer(
            model=model.eval(), args=args, train_dataset=pairs, eval_dataset=pairs, processing_class=tokenizer
        )
        losses.append(trainer.evaluate()["eval_loss"])
        trainer.train()
        assert model.config.head_is_trained
        losses.append(trainer.evaluate()["eval_spearman_head"])
    assert losses[:1] == losses[2:3]
    assert losses[0] > 0


def test_arguments_are_left_as_they_were(
    make_model: MakeModel, args: STSTrainingArguments, tokenizer: PreTrainedTokenizerBase
) -> None:
    before = args.to_dict()
    for pairs in (None, PAIRS):
        trainer = STSTrainer(make_model(loss_type="cosent"), args, pairs, pairs, tokenizer)
        assert trainer.args is not args
    assert args.to_dict() == before


def test_own_measures_and_callbacks_are_used(
    make_model: MakeModel, args: STSTrainingArguments, tokenizer: PreTrainedTokenizerBase
) -> None:
    seen = []

    class Note(TrainerCallback):
        def on_evaluate(self, *given: Any, **further: Any) -> None:
            seen.append(further["metrics"]["eval_spread"])

    def spread(prediction: EvalPrediction) -> dict[str, float]:
        scores = np.asarray(prediction.predictions)
        assert scores.shape == (8, 2)  # score and cosine
        return {"spread": float(scores[:, 1].std())}

    args.metric_for_best_model, args.greater_is_better = "eval_spread", False
    STSTrainer(make_model(), args, PAIRS, PAIRS, tokenizer, compute_metrics=spread, callbacks=[Note()]).train()
    assert len(seen) == 1


def test_several_sets_are_evaluated_by_name(
    make_model: MakeModel, args: STSTrainingArguments, tokenizer: PreTrainedTokenizerBase
) -> None:
    trainer = STSTrainer(make_model(), args, None, {"first": PAIRS, "second": PAIRS}, tokenizer)
    measures = trainer.evaluate()
    assert measures["eval_first_spearman_cosine"] == measures["eval_second_spearman_cosine"]


@pytest.mark.parametrize("measure", ["spearman_cosine", "first_spearman_cosine", "second_pearson_head"])
def test_one_of_several_sets_selects_the_checkpoint(
    make_model: MakeModel, args: STSTrainingArguments, tokenizer: PreTrainedTokenizerBase, measure: str
) -> None:
    args.metric_for_best_model = measure
    trainer = STSTrainer(make_model(), args, PAIRS, {"first": PAIRS, "second": PAIRS}, tokenizer)
    trainer.train()
    best = trainer.state.best_metric
    assert best is not None
    chosen = measure if measure.startswith(("first", "second")) else f"first_{measure}"
    assert any(entry.get(f"eval_{chosen}") == best for entry in trainer.state.log_history)


def test_a_lower_error_on_one_of_several_sets_is_better(
    make_model: MakeModel, args: STSTrainingArguments, tokenizer: PreTrainedTokenizerBase
) -> None:
    grades = PAIRS.map(lambda row: {"label": float(round(row["label"]))})
    args.metric_for_best_model = "second_mae_head"
    trainer = STSTrainer(make_model(), args, grades, {"first": grades, "second": grades}, tokenizer)
    assert trainer.args.greater_is_better is False


def test_an_unknown_measure_of_one_of_several_sets_is_refused(
    make_model: MakeModel, args: STSTrainingArguments, tokenizer: PreTrainedTokenizerBase
) -> None:
    args.metric_for_best_model = "second_f1"
    with pytest.raises(ValueError, match="`metric_for_best_model`: f1 is not measured with this model"):
        STSTrainer(make_model(), args, PAIRS, {"first": PAIRS, "second": PAIRS}, tokenizer)


def test_raw_pairs_are_scored_as_tokenised_ones(
    make_model: MakeModel, args: STSTrainingArguments, tokenizer: PreTrainedTokenizerBase
) -> None:
    trainer = STSTrainer(make_model(), args, processing_class=tokenizer)
    tokenized = tokenize_pairs(PAIRS, tokenizer, "bi-encoder")
    assert trainer.evaluate(PAIRS)["eval_spearman_cosine"] == trainer.evaluate(tokenized)["eval_spearman_cosine"]
    raw, expected = (np.asarray(trainer.predict(pairs).predictions) for pairs in (PAIRS, tokenized))
    np.testing.assert_allclose(raw, expected, atol=1e-6)
    raw, expected = (np.asarray(trainer.score(pairs).cosine) for pairs in (PAIRS, tokenized))
    np.testing.assert_allclose(raw, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (
            PAIRS.rename_column("sentence2", "reply"),
            "`train_dataset` must have the columns sentence1, sentence2, label, but lacks 'sentence2'. It has",
        ),
        (
            PAIRS.map(lambda row: {"label": row["label"] * 20}),
            "`train_dataset`: row 1 has the label 100, which is not on the model's scale, 0 to 5.",
        ),
    ],
)
def test_pairs_that_do_not_fit_are_refused(
    make_model: MakeModel, args: STSTrainingArguments, tokenizer: PreTrainedTokenizerBase, pairs: Dataset, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        STSTrainer(make_model(), args, pairs, None, tokenizer)


def test_a_tokenizer_is_needed(make_model: MakeModel, args: STSTrainingArguments) -> None:
    with pytest.raises(ValueError, match="`processing_class` is missing"):
        STSTrainer(make_model(), args, PAIRS)


def test_other_pairs_are_not_evaluated_by_the_sources_of_the_development_pairs(
    make_model: MakeModel, args: STSTrainingArguments, tokenizer: PreTrainedTokenizerBase
) -> None:
    sources = np.array([0] * 4 + [1] * 4)
    trainer = STSTrainer(make_model(), args, PAIRS, PAIRS, tokenizer, eval_sources=sources)
    others = tokenize_pairs(PAIRS.select(range(6)), tokenizer, "bi-encoder")
    alone = STSTrainer(trainer.model, args, PAIRS, PAIRS, tokenizer)
    assert trainer.evaluate(others)["eval_spearman_cosine"] == alone.evaluate(others)["eval_spearman_cosine"]
    predicted, expected = (each.predict(others).metrics or {} for each in (trainer, alone))
    assert predicted["test_spearman_cosine"] == expected["test_spearman_cosine"]
    assert trainer.evaluate()["eval_spearman_cosine"] != alone.evaluate()["eval_spearman_cosine"]


@pytest.mark.parametrize(
    ("model_options", "options", "message"),
    [
        *(({"loss_type": loss}, {}, f"`--loss {loss}` compares the pairs of a batch") for loss in BATCH_LOSSES),
        ({}, {"self_distillation": 1.0}, "`self_distillation` compares the pairs of a batch"),
    ],
)
def test_batches_of_one_pair_are_refused_if_pairs_are_compared(
    make_model: MakeModel,
    args: STSTrainingArguments,
    tokenizer: PreTrainedTokenizerBase,
    model_options: dict[str, Any],
    options: dict[str, Any],
    message: str,
) -> None:
    args.per_device_train_batch_size = 1
    for name, value in options.items():
        setattr(args, name, value)
    with pytest.raises(ValueError, match=message):
        STSTrainer(make_model(**model_options), args, PAIRS, None, tokenizer)


def test_angle_needs_embeddings_of_even_length(
    make_model: MakeModel, args: STSTrainingArguments, tokenizer: PreTrainedTokenizerBase
) -> None:
    args.matryoshka_dims = [15]
    with pytest.raises(ValueError, match="`--loss angle` splits embeddings into halves, and cannot split one of 15"):
        STSTrainer(make_model(loss_type="angle"), args, PAIRS, None, tokenizer)
