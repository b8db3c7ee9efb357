"""LoRA by PEFT: trains low-rank changes of the encoder's weights, and the head in full."""

import logging
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors.torch import load_file, save_file

from sts_regression.basics.files import first_line_of
from sts_regression.modeling_sts_regression import STSRegressionModel

if TYPE_CHECKING:
    from peft import PeftModel

logger = logging.getLogger(__name__)

ADAPTER_FOLDER = "adapter"  # in the folder of a run
HEAD_FILE = "head.safetensors"  # beside PEFT's files, which hold changes of the encoder only
ALL_LINEAR = "all-linear"  # PEFT's name for every linear layer
# One factor of a change B·A starts from zero. Scaling this factor scales the change; the other one stays as it is.
UNSCALED_FACTORS = (".lora_A.", ".lora_embedding_B.")


def add_lora(
    model: STSRegressionModel, r: int, alpha: int, dropout: float, target_modules: Sequence[str] | None = None
) -> "PeftModel":
    """
    Puts LoRA layers into the encoder and freezes its other weights; the head stays as it is.

    The model's classes and the names of its modules do not change. Until training begins, its scores do not either.

    Args:
        model: changed in place.
        r: rank of the change of a weight.
        alpha: the change is scaled by `alpha / r`.
        dropout: dropout probability on the inputs of the change.
        target_modules: names of modules, or the ends of names. Default: every linear layer.

    Returns:
        PEFT's wrapper around the same encoder, which saves, loads and merges the adapter.

    Raises:
        ValueError: if the encoder has no such modules.
    """
    from peft import LoraConfig, TaskType, get_peft_model

    everywhere = not target_modules or list(target_modules) == [ALL_LINEAR]
    config = LoraConfig(
        task_type=TaskType.FEATURE_EXTRACTION,
        r=r,
        lora_alpha=alpha,
        lora_dropout=dropout,
        target_modules=ALL_LINEAR if everywhere else list(target_modules or ()),
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # PEFT calls functions that transformers has renamed
            adapter = get_peft_model(model.encoder, config)
    except ValueError as error:
        raise ValueError(
            f"`lora_target_modules`: {first_line_of(error)} Leave it out for every linear layer."
        ) from error
    trained, total = adapter.get_nb_trainable_parameters()
    logger.info(f"LoRA trains {trained:,} parameters in place of the encoder's {total - trained:,}")
    return adapter


def save_adapter(adapter: "PeftModel", model: STSRegressionModel, folder: str | Path) -> None:
    """Writes the trained weights: the adapter in PEFT's format, and the head beside it."""
    folder = Path(folder)
    adapter.save_pretrained(str(folder))
    (folder / "README.md").unlink(missing_ok=True)  # PEFT's card, an empty form
    save_file(model.head.state_dict(), folder / HEAD_FILE)


def delete_adapter(folder: Path) -> None:
    """Deletes the adapter in the folder of a run, if there is one."""
    if (folder / ADAPTER_FOLDER / HEAD_FILE).is_file():
        shutil.rmtree(folder / ADAPTER_FOLDER)


def load_adapter(adapter: "PeftModel", model: STSRegressionModel, folder: str | Path) -> None:
    """Loads an adapter of [`save_adapter`] into a model that [`add_lora`] has prepared with the same options."""
    from peft import load_peft_weights, set_peft_model_state_dict

    set_peft_model_state_dict(adapter, load_peft_weights(str(folder), device="cpu"))
    model.head.load_state_dict(load_file(Path(folder) / HEAD_FILE))


def merge_adapter(adapter: "PeftModel") -> None:
    """Adds the trained changes to the encoder's weights, removes its LoRA layers and unfreezes it."""
    adapter.merge_and_unload().requires_grad_(True)
