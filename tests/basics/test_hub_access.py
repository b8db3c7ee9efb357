"""A name that is no folder here, and a Hub that does not answer, are told at once."""

import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from huggingface_hub import constants
from huggingface_hub.errors import RepositoryNotFoundError

from sts_regression.basics import hub_access
from sts_regression.basics.hub_access import check_there
from sts_regression.data.sources import load_hub_pairs
from sts_regression.models.loading import find_model


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests to a Hub that cannot be reached."""
    asked: list[str] = []

    def refuse(url: str, **options: Any) -> None:
        asked.append(url)
        raise ConnectionError("[Errno -2] Name or service\n not known")

    monkeypatch.setattr(hub_access, "get_hf_file_metadata", refuse)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    return asked


@pytest.mark.parametrize(
    "name", ["./no/such", "../no", ".", "/no/such", "~/no", "no/", "no/such/folder", "no\\such", "C:\\no", "D:no"]
)
def test_what_looks_like_a_path_is_never_asked_for(
    requests: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if name == ".":
        check_there(name, "config.json")  # which is there
    else:
        with pytest.raises(ValueError, match=r"^there is no such folder$"):
            check_there(name, "config.json")
    assert requests == []


def test_a_file_and_an_empty_name_are_no_folder(requests: list[str], tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").touch()
    with pytest.raises(ValueError, match=r"^it is a file, but should be a folder$"):
        check_there(str(tmp_path / "pairs.csv"), "config.json")
    with pytest.raises(ValueError, match=r"^the name is empty$"):
        check_there(" ", "config.json")
    assert requests == []


def test_a_hub_that_does_not_answer_is_asked_once(requests: list[str]) -> None:
    reason = "there is no such folder, and the Hub at .* cannot be reached: [Errno -2] Name or service not known)."
    pattern = ".*".join(map(re.escape, reason.split(".*")))
    with pytest.raises(ValueError, match=rf"`model_name_or_path`: cannot load 'no/such' \({pattern} Give a folder"):
        find_model("no/such", revision="v1")
    with pytest.raises(ValueError, match=rf"`dataset_name`: could not load .*'no/pairs' \({pattern} Check the name"):
        load_hub_pairs("no/pairs", "train")
    assert [url.removeprefix(constants.ENDPOINT) for url in requests] == [
        "/no/such/resolve/v1/config.json",
        "/datasets/no/pairs/resolve/main/README.md",
    ]


def test_what_an_answer_says_is_left_to_the_library(requests: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(url: str, **options: Any) -> None:
        raise RepositoryNotFoundError("404", response=Mock())

    monkeypatch.setattr(hub_access, "get_hf_file_metadata", answer)
    check_there("no/such", "config.json")


@pytest.mark.parametrize("known", ["/cache/config.json", object()], ids=["kept", "known to have none"])
def test_what_is_in_the_cache_is_not_asked_for(
    requests: list[str], monkeypatch: pytest.MonkeyPatch, known: object
) -> None:
    monkeypatch.setattr(hub_access, "try_to_load_from_cache", lambda *args, **options: known)
    check_there("no/such", "config.json")
    assert requests == []


def test_offline_mode_asks_nothing_and_refuses_models_that_are_not_cached(
    requests: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match="the Hub's cache does not hold it, and HF_HUB_OFFLINE is set"):
        check_there("no/such", "config.json")
    check_there("no/such", "README.md", repo_type="dataset")  # may be in the cache of datasets
    assert requests == []
