"""Averages of weights: of a trained encoder and the untouched one (WiSE-FT), and of several models (model soups)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.head_sts_regression import reverses_cosine, start_as_cosine
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.training.lora import UNSCALED_FACTORS


def copy_weights(encoder: nn.Module) -> dict[str, Tensor]:
    """A copy of the weights by name."""
    return {name: parameter.detach().clone() for name, parameter in encoder.named_parameters()}


@torch.no_grad()
def interpolate(encoder: nn.Module, start: Mapping[str, Tensor], alpha: float) -> None:
    """
    Moves the weights back towards earlier weights (WiSE-FT, Wortsman et al. 2022).

    Args:
        encoder: changed in place. With LoRA, only one of two factors is moved, since the change is their product.
        start: the earlier weights by name, see [`copy_weights`].
        alpha: share of the present weights, from 0 to 1.
    """
    for name, parameter in encoder.named_parameters():
        if not any(factor in name for factor in UNSCALED_FACTORS):
            parameter.copy_(torch.lerp(start[name].to(parameter.device), parameter, alpha))


class StartingWeights:
    """
    The weights of the untouched encoder: those that were given, a copy of the model's own, or none.

    Attributes:
        are_given: whether they are those of another encoder than the one that is trained. They are never copied from
            the model, even if they were dropped.
    """

    def __init__(self, given: Mapping[str, Tensor] | None = None) -> None:
        """
        Args:
            given: weights by name, of another encoder than the one that is trained.
        """
        self.are_given = given is not None
        self._weights = given  # `None`: none are kept

    def keep(self, model: STSRegressionModel) -> None:
        """Keeps a copy of the weights of the model's encoder, unless others were given."""
        if not self.are_given:
            encoder: nn.Module = model.encoder  # may be wrapped by PEFT
            self._weights = copy_weights(encoder)

    def drop(self) -> None:
        """Frees the memory of a whole encoder."""
        self._weights = None

    def average_into(self, model: STSRegressionModel, alpha: float) -> None:
        """Moves the encoder towards the weights that are kept, if any, see [`interpolate`]."""
        if self._weights is not None:
            interpolate(model.encoder, self._weights, alpha)

    def restore(self, model: STSRegressionModel) -> None:
        """
        Sets the encoder to the weights that are kept. A head on the cosine that learned to reverse it starts anew.

        Raises:
            ValueError: if none are kept.
        """
        if self._weights is None:
            raise ValueError(
                "The weights of the untouched encoder were not kept. Set `keep_start_if_better` before training."
            )
        interpolate(model.encoder, self._weights, 0.0)
        if model.config.score_function == "cosine" and reverses_cosine(model.head, model.config):
            start_as_cosine(model.head, model.config)

    @contextmanager
    def in_place(self, model: STSRegressionModel) -> Iterator[None]:
        """Gives the encoder the weights that were given, if any, for the duration of a `with` block."""
        if not self.are_given:
            yield
            return
        own = copy_weights(model.encoder)
        self.restore(model)
        try:
            yield
        finally:
            interpolate(model.encoder, own, 0.0)


def mean_weights(folders: Sequence[Path], config: STSRegressionConfig) -> dict[str, Tensor]:
    """
    The mean of the weights of trained models (model soup, Wortsman et al. 2022).

    Args:
        folders: checkpoints of one architecture, at least one.
        config: the configuration of the model that takes the mean.

    Returns:
        A state dict in float32. Values that are not floating-point numbers come from the first checkpoint.
    """
    return mean_of(
        STSRegressionModel.from_pretrained(folder, config=config, dtype=torch.float32).state_dict()
        for folder in folders
    )


def mean_of(states: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """
    The first of some state dicts, changed in place to their mean; values that are not floating-point numbers stay.

    Args:
        states: state dicts of one architecture, at least one. Of the others, one at a time is held.
    """
    remaining = iter(states)
    mean = next(remaining)
    # Tied weights are one tensor with several names.
    distinct = {value.data_ptr(): name for name, value in mean.items() if value.is_floating_point()}
    for count, state in enumerate(remaining, start=2):
        for name in distinct.values():
            mean[name].lerp_(state[name].to(mean[name]), 1 / count)
    return mean
