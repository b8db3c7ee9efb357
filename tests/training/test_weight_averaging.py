"""Means of weights."""

from collections.abc import Callable

import pytest
import torch
from transformers import BartConfig, BartModel, PreTrainedTokenizerBase

from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.training.weight_averaging import StartingWeights, copy_weights, mean_of

MakeModel = Callable[..., STSRegressionModel]
NOT_KEPT = "The weights of the untouched encoder were not kept. Set `keep_start_if_better` before training"


def shift(model: STSRegressionModel) -> None:
    """Stands for training."""
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            parameter.add_(1.0)


def test_a_start_that_is_not_kept_changes_nothing_and_is_not_restored(make_model: MakeModel) -> None:
    model, start = make_model(), StartingWeights()
    before = copy_weights(model.encoder)
    start.average_into(model, 0.5)
    with start.in_place(model):
        torch.testing.assert_close(copy_weights(model.encoder), before)
    with pytest.raises(ValueError, match=NOT_KEPT):
        start.restore(model)


def test_a_start_that_is_kept_is_averaged_restored_and_dropped(make_model: MakeModel) -> None:
    model, start = make_model(), StartingWeights()
    before = copy_weights(model.encoder)
    start.keep(model)
    shift(model)
    start.average_into(model, 0.5)
    torch.testing.assert_close(copy_weights(model.encoder), {name: value + 0.5 for name, value in before.items()})
    start.restore(model)
    torch.testing.assert_close(copy_weights(model.encoder), before)
    start.drop()
    with pytest.raises(ValueError, match=NOT_KEPT):
        start.restore(model)


def test_a_start_that_is_given_stands_in_for_the_models_own(make_model: MakeModel) -> None:
    other, model = make_model(), make_model()
    shift(model)
    given, own = copy_weights(other.encoder), copy_weights(model.encoder)
    start = StartingWeights(given)
    start.keep(model)
    with start.in_place(model):
        torch.testing.assert_close(copy_weights(model.encoder), given)
    torch.testing.assert_close(copy_weights(model.encoder), own)
    start.restore(model)
    torch.testing.assert_close(copy_weights(model.encoder), given)


def test_tied_weights_are_averaged_once(tokenizer: PreTrainedTokenizerBase) -> None:
    config = BartConfig(vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1)
    models = [BartModel(config) for _ in range(3)]
    for number, model in enumerate(models):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(number)
    mean = mean_of(model.state_dict() for model in models)
    tied = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    assert len({mean[name].data_ptr() for name in tied}) == 1
    for value in mean.values():
        torch.testing.assert_close(value, torch.ones_like(value))
