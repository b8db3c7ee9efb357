"""Encoders whose code lies in a repository on the Hub: it is found again, at the commit that it was first run at.

transformers looks for such code when a model is loaded by its own name, but not when it is a part of another: a fresh
process would take the encoder for one of its own classes, or for none. The encoder's configuration therefore notes
repository and commit, and the checkpoint that holds it builds configuration and model from these.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import PretrainedConfig, __version__
from transformers.dynamic_module_utils import get_class_from_dynamic_module

CODE_PACKAGE = "transformers_modules."  # where transformers puts code from the Hub, which it runs only where trusted


def is_remote(config: PretrainedConfig) -> bool:
    """Whether the configuration's class is code from the Hub; then somebody has trusted it in this process."""
    return type(config).__module__.startswith(CODE_PACKAGE)


def code_repository(options: Mapping[str, Any]) -> str | None:
    """The repository of a configuration's code as [`pin_code`] noted it; `None` where transformers has the class."""
    return options["auto_map"]["AutoModel"].partition("--")[0] if "code_revision" in options else None


def pin_code(config: PretrainedConfig) -> PretrainedConfig:
    """
    Notes in an encoder's configuration in which repository its code lies, and at which commit.

    Args:
        config: changed in place; left as it is where its class is one of transformers.

    Raises:
        ValueError: where the code could not be found again: in a local folder, or in two repositories.
    """
    if not is_remote(config):
        return config
    references = getattr(config, "auto_map", None) or {}
    names = {name: references[name] for name in ("AutoConfig", "AutoModel") if name in references}
    if Path(config.name_or_path).exists() and not all("--" in reference for reference in names.values()):
        raise ValueError(
            f"`encoder_config`: the code of the encoder lies beside it in {config.name_or_path!r}, where a checkpoint "
            "could not find it again. Publish the encoder on the Hub, and give its id there."
        )
    names = {name: r if "--" in r else f"{config.name_or_path}--{r}" for name, r in names.items()}
    if len(names) < 2 or len({reference.partition("--")[0] for reference in names.values()}) > 1:
        raise ValueError(
            f"`encoder_config`: {config.name_or_path!r} must name the code of its configuration and of its model "
            f"(`auto_map`), in one repository, but names {names}. Choose another encoder."
        )
    config.auto_map = names
    config.code_revision = type(config).__module__.split(".")[-2]  # transformers_modules.<repository>.<commit>.<file>
    return config


def load_config(options: Mapping[str, Any], is_trusted: bool) -> PretrainedConfig:
    """
    Builds the configuration of an encoder with code of its own.

    Args:
        options: what [`pin_code`] left of it.
        is_trusted: whether its code may be run.

    Raises:
        ValueError: where it may not, or does not run.
    """
    if not is_trusted:
        raise ValueError(
            f"the encoder runs code of {code_repository(options)}, which must be trusted. Read it, and load with "
            "`trust_remote_code=True`: by AutoModel in a process without this package, or by its `find_model`."
        )
    options = dict(options)
    auto_map, revision = options.pop("auto_map"), options.pop("code_revision")
    options.pop("model_type", None)
    config = _load_class(auto_map["AutoConfig"], revision)(**options)
    config.auto_map, config.code_revision = auto_map, revision
    return config


def model_class(config: PretrainedConfig) -> type:
    """The class of the encoder that goes with a configuration that [`pin_code`] has seen."""
    return _load_class(config.auto_map["AutoModel"], config.code_revision)


def _load_class(reference: str, revision: str) -> type:
    try:
        return get_class_from_dynamic_module(reference, reference.partition("--")[0], code_revision=revision)
    except Exception as error:  # code of others may raise anything
        raise ValueError(f"{reference} (revision {revision}): {code_failure(error)}") from error


def code_failure(error: Exception) -> str:
    """What is to be said of code from the Hub that failed."""
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return (
        f"the code from the Hub does not run with transformers {__version__} ({first_line}). Install the version that "
        "it was written for, or choose another encoder."
    )
