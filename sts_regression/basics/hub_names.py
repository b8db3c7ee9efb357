"""Checks of names for the Hugging Face Hub: repositories, licences, languages.

Nothing here asks the Hub or loads torch, so every module can check such options early.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id

LICENSE_PATTERN = re.compile(r"[a-z0-9][a-z0-9.+-]*")
LANGUAGE_PATTERN = re.compile(r"[a-z]{2,3}|multilingual")


@dataclass(frozen=True)
class Repository:
    """
    A repository to publish to.

    Attributes:
        hub_model_id: USER/NAME; a repository that does not exist is created.
        private: whether a new repository is private. The visibility of an existing one does not change.
        token: token of the Hub. Default: that of `hf auth login`, or of the environment variable HF_TOKEN.
        revision: branch, created if it does not exist. Default: main.
        overwrite: whether a repository that holds something else may be replaced.

    Raises:
        ValueError: for a name that is not USER/NAME.
    """

    hub_model_id: str
    private: bool = True
    token: str | None = field(default=None, repr=False)
    revision: str | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        if not is_hub_id(self.hub_model_id) or "/" not in self.hub_model_id:
            raise ValueError(
                f"`hub_model_id` must name a repository as USER/NAME, of letters, digits, '-', '_' and '.', but is "
                f"{self.hub_model_id!r}."
            )


def is_hub_id(name: str | None) -> bool:
    """Whether a text is a valid name of a repository on the Hub."""
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return name is not None


def check_license(license: str | None) -> None:
    """Raises `ValueError` for a text that cannot be the identifier of a licence on the Hub."""
    if license is not None and not LICENSE_PATTERN.fullmatch(license):
        raise ValueError(
            f"`license` must be an identifier of the Hub such as apache-2.0, mit, cc-by-sa-4.0 or other, but is "
            f"{license!r}."
        )


def check_language(language: Sequence[str] | None) -> None:
    """Raises `ValueError` for texts that are not language codes."""
    for name in language or []:
        if not LANGUAGE_PATTERN.fullmatch(name):
            raise ValueError(f"`language` must hold codes of ISO 639 such as en or deu, but holds {name!r}.")
