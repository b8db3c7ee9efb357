"""Checks once whether the Hub answers; its own client retries for half a minute before it gives up."""

import re
from pathlib import Path

from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError

from sts_regression.basics.files import first_line_of, is_file, reason_of

# Names that no repository on the Hub can have: `./run`, `/models/run`, `~/run`, `run/`, `a/b/c`, `C:\run`.
LOCAL_PATH = re.compile(r"[./~].*|.*/|.*/.*/.*|.*\\.*|[A-Za-z]:.*", re.DOTALL)

MODEL_REMEDY = "Give a folder that holds a model and its tokenizer, or an id on a reachable Hub."


def cannot_load(name: str, error: Exception, remedy: str = MODEL_REMEDY) -> ValueError:
    """The error for a model that is missing or damaged."""
    return ValueError(f"`model_name_or_path`: cannot load {name!r} ({first_line_of(error):.300}). {remedy}")


def is_folder(name: str) -> bool:
    """
    Whether a folder has this name; if not, it may be a repository on the Hub.

    Raises:
        ValueError: if it can be neither.
    """
    if not name.strip():
        raise ValueError("the name is empty")
    if is_file(name):
        raise ValueError("it is a file, but should be a folder")
    if Path(name).is_dir():
        return True
    if LOCAL_PATH.fullmatch(name):
        raise ValueError("there is no such folder")
    return False


def check_there(name: str, file: str, revision: str = "main", repo_type: str = "model") -> None:
    """
    Checks that a folder exists, or else that a Hub repository is cached or can be fetched.

    Args:
        name: a folder or a Hub id.
        file: a file in the repository.
        revision: branch, tag or commit on the Hub.
        repo_type: "model" or "dataset".

    Raises:
        ValueError: if a folder is missing, or the Hub is needed and does not answer.
    """
    if is_folder(name) or try_to_load_from_cache(name, file, revision=revision, repo_type=repo_type) is not None:
        return
    if constants.HF_HUB_OFFLINE:
        if repo_type == "dataset":
            return  # datasets has a cache of its own
        raise ValueError("there is no such folder, the Hub's cache does not hold it, and HF_HUB_OFFLINE is set")
    try:
        get_hf_file_metadata(hf_hub_url(name, file, revision=revision, repo_type=repo_type))
    except HfHubHTTPError:
        return  # the Hub answers; its error is reported when files are fetched
    except Exception as error:  # any kind: the HTTP library differs between versions
        raise ValueError(
            f"there is no such folder, and the Hub at {constants.ENDPOINT} cannot be reached: {reason_of(error):.100}"
        ) from error


def check_model(name: str, revision: str = "main") -> None:
    """Raises the error of [`cannot_load`] for a model that [`check_there`] refuses."""
    try:
        check_there(name, constants.CONFIG_NAME, revision)  # the first file that is fetched of a model
    except ValueError as error:
        raise cannot_load(name, error) from error
