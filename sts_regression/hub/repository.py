"""A model's repository on the Hugging Face Hub: its files, whether they may be replaced, and errors of the Hub."""

import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import HfApi, get_token
from huggingface_hub.errors import HTTPError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.hf_api import ModelInfo
from huggingface_hub.utils import filter_repo_objects

from sts_regression import SHIPPED_MODULES
from sts_regression.basics.files import reason_of
from sts_regression.basics.hub_names import Repository
from sts_regression.models.sentence_transformers_files import (
    CONFIG_FILE,
    ENCODER_FILES,
    ENCODER_FOLDER,
    MODEL_FILES,
    is_config_of_ours,
)
from sts_regression.training.run_folder import CARD_FILE, PICTURES, RUN_FILE

PUBLISHED = [
    *MODEL_FILES,
    *(f"{module}.py" for module in SHIPPED_MODULES),
    *(f"{ENCODER_FOLDER}/{name}" for name in ENCODER_FILES),
    *(CARD_FILE, RUN_FILE, *PICTURES),
]
PUBLISHED_BY_ANY_VERSION = [*PUBLISHED, "*_sts_regression.py", f"{ENCODER_FOLDER}/*"]
KEPT = [".gitattributes", "LICENSE*", ".eval_results/*"]  # files that others, or the Hub itself, may have added
PATHS_SHOWN = 3
REASON_LENGTH = 300  # characters quoted from an error of the Hub
ADVICE = {
    **dict.fromkeys(
        (401, 403),
        "Log in with a token that may write there, by `hf auth login` or in the environment variable HF_TOKEN.",
    ),
    409: "It belongs to another user, or has changed in the meantime. Choose another name, or publish again.",
    412: "It has changed in the meantime. Check the changes, and publish again.",
}


def check_repository(repository: Repository) -> ModelInfo | None:
    """
    Refuses a repository that holds anything but a model of this kind, unless it may be replaced. Changes nothing.

    Returns:
        The state of the repository; `None` if it does not exist.

    Raises:
        ValueError: for such a repository, and if the Hub cannot be asked; the message names files, or the reason.
    """
    if repository.token is None and get_token() is None:
        raise ValueError(
            "`hub_token`: publishing needs a token. Log in with `hf auth login`, or set the environment variable "
            "HF_TOKEN."
        )
    api, name = HfApi(token=repository.token), repository.hub_model_id
    is_ours = False
    with in_one_line(repository), tempfile.TemporaryDirectory() as cache:
        try:
            info = _info(api, repository)
        except RepositoryNotFoundError:
            return None
        paths = replaced_paths(info)
        if CONFIG_FILE in paths and not repository.overwrite:
            config = api.hf_hub_download(name, CONFIG_FILE, revision=info.sha, cache_dir=cache)
            is_ours = is_config_of_ours(Path(config))
    others = list(filter_repo_objects(paths, ignore_patterns=PUBLISHED_BY_ANY_VERSION))
    if paths and not repository.overwrite and (others or not is_ours):
        raise ValueError(
            f"`hub_model_id` {name!r} does not hold a model of this kind (it has "
            f"{', '.join((others or paths)[:PATHS_SHOWN])}). Choose another name, or replace its files with "
            "`--overwrite_repository`."
        )
    return info


def _info(api: HfApi, repository: Repository) -> ModelInfo:
    try:
        return api.model_info(repository.hub_model_id, revision=repository.revision)
    except RevisionNotFoundError:
        return api.model_info(repository.hub_model_id)  # a new branch begins with the state of main


def replaced_paths(info: ModelInfo) -> list[str]:
    """The files of a repository that publishing replaces or removes."""
    return list(filter_repo_objects((file.rfilename for file in info.siblings or []), ignore_patterns=KEPT))


@contextmanager
def in_one_line(repository: Repository, folder: Path | None = None) -> Iterator[None]:
    """Turns errors of the Hub, the network or the library into a `ValueError` of one line, without the token."""
    try:
        yield
    except (OSError, RuntimeError, ValueError, HTTPError) as error:
        cause = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ is not None else error
        reason = reason_of(cause)
        for secret in filter(None, (repository.token, get_token())):
            reason = reason.replace(secret, "…")  # before it is cut, which may leave a part of a token
        reason = reason[:REASON_LENGTH]
        name = repository.hub_model_id
        parts = [f"`hub_model_id` {name!r}: the Hub refused the request or cannot be reached ({reason})."]
        status = getattr(getattr(cause, "response", None), "status_code", None)
        if status in ADVICE:
            parts.append(ADVICE[status])
        if folder is not None:
            command = f"sts-regression publish {shlex.quote(str(folder))} --hub_model_id {name}"
            parts.append(f"The run is complete; publish it later with `{command}`.")
        raise ValueError(" ".join(parts)) from None
