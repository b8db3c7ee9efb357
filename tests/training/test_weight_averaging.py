"""Means of weights."""

import torch
from transformers import BartConfig, BartModel, PreTrainedTokenizerBase

from sts_regression.training.weight_averaging import mean_of


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
