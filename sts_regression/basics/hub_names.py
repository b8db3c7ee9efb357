"""What options name on the Hugging Face Hub: repositories, licences, languages.

Nothing here asks the Hub or loads torch, so that every module can check such options early.
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
    Where to publish.

    Attributes:
        hub_model_id: USER/NAME; a repository that does not exist is created.
        private: whether only its owner sees a repository that is created. One that exists stays as visible as it is.
        token: by default the one of `hf auth login`, or of the environment variable HF_TOKEN.
        revision: branch, created if it does not exist; main by default.
        overwrite: whether a repository that holds something else may be replaced.

    Raises:
        ValueError: for what cannot name a repository of somebody.
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
    """Whether a text may be the name of a repository on the Hub."""
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return name is not None


def check_license(license: str | None) -> None:
    """Raises `ValueError` for a text that no licence of the Hub can have as its identifier."""
    if license is not None and not LICENSE_PATTERN.fullmatch(license):
        raise ValueError(
            f"`license` must be an identifier of the Hub such as apache-2.0, mit, cc-by-sa-4.0 or other, but is "
            f"{license!r}."
        )


def check_language(language: Sequence[str] | None) -> None:
    """Raises `ValueError` for anything but codes of languages."""
    for name in language or []:
        if not LANGUAGE_PATTERN.fullmatch(name):
            raise ValueError(f"`language` must hold codes of ISO 639 such as en or deu, but holds {name!r}.")
