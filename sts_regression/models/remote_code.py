"""Encoders with code of their own on the Hub: runs the code if it is trusted, and explains its failures."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import transformers
from transformers import CONFIG_MAPPING, AutoConfig, PretrainedConfig

from sts_regression.basics.files import first_line_of
from sts_regression.configuration_sts_regression import (
    STSRegressionConfig,
    code_failure,
    code_repository,
    load_config,
    pin_code,
)


def find_code(path: str, options: Mapping[str, Any], trust_remote_code: bool) -> str | None:
    """
    The repository whose code a model runs.

    Args:
        path: Hub id or folder of an encoder, or of one of our checkpoints.
        options: the configuration of the model.
        trust_remote_code: whether code from the Hub is preferred to a class of transformers.

    Returns:
        A Hub id or folder; `None` if transformers has the encoder's class.
    """
    if options.get("model_type") == STSRegressionConfig.model_type:
        return code_repository(options.get("encoder_config") or {})
    reference = (options.get("auto_map") or {}).get("AutoModel")
    # Some encoders have another class under a known `model_type`; without this check, transformers loads its own.
    has_known_class = all(hasattr(transformers, name) for name in options.get("architectures") or ())
    is_known = options.get("model_type") in CONFIG_MAPPING and has_known_class
    if reference is None or (is_known and not trust_remote_code):
        return None
    return reference.partition("--")[0] if "--" in reference else path


def read_code_config(
    path: str, options: Mapping[str, Any], repository: str, trust_remote_code: bool, revision: str
) -> PretrainedConfig:
    """
    The configuration of a model that runs code from the Hub, with the repository and commit of the code recorded.

    Args:
        path: Hub id or folder of the model.
        options: the content of its `config.json`.
        repository: the repository of the code, see [`find_code`].
        trust_remote_code: whether the code may be run.
        revision: branch, tag or commit of the model on the Hub.

    Raises:
        ValueError: if the code may not be run, does not run, or could not be found again.
    """
    if not trust_remote_code:
        raise ValueError(
            f"`model_name_or_path`: {path!r} runs code of {repository!r}. Read this code, then give "
            "`--trust_remote_code`."
        )
    with code_failures_explained(path, runs_code=True):
        if options["model_type"] != STSRegressionConfig.model_type:
            return pin_code(AutoConfig.from_pretrained(path, revision=revision, trust_remote_code=True))
        encoder_config = load_config(options["encoder_config"], is_trusted=True)
    return STSRegressionConfig.from_dict({**options, "encoder_config": encoder_config}, name_or_path=path)


@contextmanager
def code_failures_explained(path: str, runs_code: bool) -> Iterator[None]:
    """Turns any error while a model is built into a `ValueError` with the model's name."""
    try:
        yield
    except Exception as error:
        if isinstance(error, ValueError):
            reason = str(error)
        elif runs_code:
            reason = code_failure(error)
        else:
            kind = type(error).__name__
            reason = f"the model cannot be built ({kind}: {first_line_of(error):.300}). Fetch or save its files again."
        raise ValueError(f"`model_name_or_path`: {path!r}: {reason}") from error
