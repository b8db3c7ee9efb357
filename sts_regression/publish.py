"""Publishes a finished training on the Hugging Face Hub, in one commit.

    python -m sts_regression.publish outputs/pairs-smooth_k2 --hub_model_id me/pairs-smooth_k2

Weights, configuration, tokenizer, model code, card, pictures, and what everybody may see of `run.json`: what goes
there is listed here. Pickles, checkpoints, states of the optimizer and options do not.
"""

import argparse
import fnmatch
import json
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, ModelCard, get_token
from huggingface_hub.errors import HTTPError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.hf_api import ModelInfo

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.model_card import check_card, check_language, check_license, model_card_of
from sts_regression.options import STSTrainingArguments
from sts_regression.public_record import is_hub_id, public_record
from sts_regression.run_folder import CARD_FILE, PICTURES, RUN_FILE

CONFIG_FILE = "config.json"
WEIGHTS = "model*.safetensors"
PUBLISHED = (
    *(CONFIG_FILE, WEIGHTS, "model.safetensors.index.json", "*_sts_regression.py"),
    *("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("chat_template.jinja", "vocab.txt", "vocab.json", "merges.txt", "bpe.codes"),
    *("spiece.model", "spm.model", "sentencepiece.bpe.model", "tokenizer.model"),
    *(CARD_FILE, RUN_FILE, *PICTURES),
)
KEPT = (".gitattributes", "LICENSE*", ".eval_results/*")  # what others, or the Hub itself, may have put beside these
PATHS_SHOWN = 3
REASON_LENGTH = 300  # characters of what the Hub says
ADVICE = {
    **dict.fromkeys(
        (401, 403),
        "Log in with a token that may write there, by `hf auth login` or in the environment variable HF_TOKEN.",
    ),
    409: "It belongs to somebody else, or has changed in between. Choose another name, or publish again.",
    412: "It has changed in between. Look at what changed, and publish again.",
}


@dataclass(frozen=True)
class Repository:
    """
    Where to publish.

    Attributes:
        hub_model_id: USER/NAME; a repository that does not exist is created.
        private: whether only its owner sees a repository that is created. One that exists stays as visible as it is.
        token: by default the one of `hf auth login`, or of the environment variable HF_TOKEN.
        revision: branch, created where there is none; by default main.
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


def repository_of(training_args: STSTrainingArguments) -> Repository | None:
    """
    Where the options of a training ask to publish it; `None` where they do not.

    Raises:
        ValueError: for options that contradict each other, or ask for what is not published.
    """
    if not training_args.push_to_hub:
        return None
    if not training_args.do_train:
        raise ValueError(
            "`push_to_hub` publishes what was trained. Train in the same run, or publish the folder of an earlier one "
            "with `python -m sts_regression.publish`."
        )
    if "checkpoint" in training_args.hub_strategy or training_args.hub_always_push:
        raise ValueError(
            "`hub_strategy` and `hub_always_push` have no checkpoints to publish: the finished run is published once, "
            "when it is whole. Leave them out."
        )
    return Repository(
        training_args.hub_model_id or "",
        private=training_args.hub_private_repo is not False,
        token=training_args.hub_token,
        revision=training_args.hub_revision,
        overwrite=training_args.overwrite_repository,
    )


def publish(
    folder: Path, repository: Repository, license: str | None = None, language: Sequence[str] | None = None
) -> str:
    """
    Publishes the finished training of a folder, which stays as it is.

    Args:
        folder: of the training.
        repository: where to.
        license, language: for the card, see [`model_card`].

    Returns:
        A line that says where it lies.

    Raises:
        ValueError: for a folder without a finished training, a repository that holds something else, and whatever the
            Hub refuses.
    """
    name = repository.hub_model_id
    contents = published_files(folder, name, license, language)
    info = check_repository(repository)
    api = HfApi(token=repository.token)
    with _in_one_line(repository, folder):
        if info is None:
            api.create_repo(name, private=repository.private)
            info = api.model_info(name)
        if repository.revision is not None:
            api.create_branch(name, branch=repository.revision, exist_ok=True)
        old = [path for path in _paths(info) if path not in contents and not _matches(path, KEPT)]
        commit = api.create_commit(
            name,
            [
                *(CommitOperationAdd(path, content) for path, content in contents.items()),
                *(CommitOperationDelete(path) for path in old),
            ],
            commit_message=f"Publish {folder.resolve().name}",
            revision=repository.revision,
            parent_commit=info.sha,  # the state that was looked at
        )
    state = "Up to date" if commit.oid == info.sha else "Published"
    visibility = "private" if info.private else "public"
    return f"{state}: {api.endpoint}/{name} ({visibility}), commit {commit.oid}"


def published_files(
    folder: Path, hub_model_id: str, license: str | None = None, language: Sequence[str] | None = None
) -> dict[str, Path | bytes]:
    """
    What is published of a folder, by name: files, or contents that differ from those of the folder.

    A card that was edited by hand is published as it stands; any other is written anew, with the Hub's name in it.

    Raises:
        ValueError: where the folder does not hold a finished training.
    """
    missing = [name for name in (CONFIG_FILE, WEIGHTS, RUN_FILE) if next(folder.glob(name), None) is None]
    if missing:
        raise ValueError(
            f"`run_folder` {str(folder)!r} holds no finished training: it lacks {', '.join(missing)}. Name the "
            "`output_dir` of one."
        )
    if not _is_config_of_ours(folder / CONFIG_FILE):
        raise ValueError(
            f"`run_folder` {str(folder)!r} holds a model of another kind. Name the `output_dir` of a training."
        )
    contents: dict[str, Path | bytes] = {
        path.name: path for path in sorted(folder.iterdir()) if path.is_file() and _matches(path.name, PUBLISHED)
    }
    record = public_record(json.loads((folder / RUN_FILE).read_text(encoding="utf-8")))
    contents[RUN_FILE] = (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode()
    contents[CARD_FILE] = _card(folder, hub_model_id, license, language).encode()
    return contents


def _card(folder: Path, hub_model_id: str, license: str | None, language: Sequence[str] | None) -> str:
    path = folder / CARD_FILE
    if not path.is_file():
        return model_card_of(folder, hub_model_id, license, language)
    written = path.read_text(encoding="utf-8")
    check_card(written)
    card = ModelCard(written)
    if written == model_card_of(folder, card.data.get("model_name")):  # the folder may have another name by now
        return model_card_of(folder, hub_model_id, license, language)
    card.data["license"] = license or card.data.get("license")
    card.data["language"] = list(language) if language else card.data.get("language")
    return str(card)


def check_repository(repository: Repository) -> ModelInfo | None:
    """
    Refuses a repository that holds something else than such a model, unless that may be replaced. Changes nothing.

    Returns:
        What is there; `None` where there is no such repository.

    Raises:
        ValueError: naming what it holds, or why that cannot be told.
    """
    if repository.token is None and get_token() is None:
        raise ValueError(
            "`hub_token`: publishing needs a token. Log in with `hf auth login`, or set the environment variable "
            "HF_TOKEN."
        )
    api, name = HfApi(token=repository.token), repository.hub_model_id
    is_ours = False
    with _in_one_line(repository), tempfile.TemporaryDirectory() as cache:
        try:
            info = _info(api, repository)
        except RepositoryNotFoundError:
            return None
        paths = [path for path in _paths(info) if not _matches(path, KEPT)]
        if CONFIG_FILE in paths and not repository.overwrite:
            config = api.hf_hub_download(name, CONFIG_FILE, revision=info.sha, cache_dir=cache)
            is_ours = _is_config_of_ours(Path(config))
    others = [path for path in paths if not _matches(path, PUBLISHED)]
    if paths and not repository.overwrite and (others or not is_ours):
        raise ValueError(
            f"`hub_model_id` {name!r} holds something else than a model of this kind (it has "
            f"{', '.join((others or paths)[:PATHS_SHOWN])}). Choose another name, or replace what it holds with "
            "`--overwrite_repository`."
        )
    return info


def _is_config_of_ours(path: Path) -> bool:
    config = json.loads(path.read_text(encoding="utf-8"))
    return isinstance(config, dict) and config.get("model_type") == STSRegressionConfig.model_type


def _info(api: HfApi, repository: Repository) -> ModelInfo:
    try:
        return api.model_info(repository.hub_model_id, revision=repository.revision)
    except RevisionNotFoundError:
        return api.model_info(repository.hub_model_id)  # a branch that is created begins with the state of main


def _paths(info: ModelInfo) -> list[str]:
    return [sibling.rfilename for sibling in info.siblings or []]


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


@contextmanager
def _in_one_line(repository: Repository, folder: Path | None = None) -> Iterator[None]:
    """Makes whatever the Hub, the network or the library raise a `ValueError` of one line, without the token."""
    try:
        yield
    except (OSError, RuntimeError, ValueError, HTTPError) as error:
        cause = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ is not None else error
        reason = " ".join(str(cause).split())[:REASON_LENGTH] or type(cause).__name__
        for secret in filter(None, (repository.token, get_token())):
            reason = reason.replace(secret, "…")
        name = repository.hub_model_id
        parts = [f"`hub_model_id` {name!r}: the Hub refuses, or cannot be reached ({reason})."]
        status = getattr(getattr(cause, "response", None), "status_code", None)
        if status in ADVICE:
            parts.append(ADVICE[status])
        if folder is not None:
            command = f"python -m sts_regression.publish {shlex.quote(str(folder))} --hub_model_id {name}"
            parts.append(f"The run is whole; publish it later with `{command}`.")
        raise ValueError(" ".join(parts)) from None


def main(argv: list[str] | None = None) -> None:
    """Publishes from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sts_regression.publish",
        description="Publishes a finished training on the Hugging Face Hub, in one commit.",
    )
    parser.add_argument("run_folder", type=Path, help="output_dir of the training")
    parser.add_argument(
        "--hub_model_id", required=True, help="USER/NAME of the repository; created where it is missing"
    )
    parser.add_argument("--hub_revision", help="branch; default: main")
    parser.add_argument("--public", action="store_true", help="let everybody see a repository that is created")
    parser.add_argument("--overwrite_repository", action="store_true", help="replace a repository of something else")
    parser.add_argument(
        "--license", help="licence of the model: an identifier of the Hub such as apache-2.0, or other"
    )
    parser.add_argument("--language", nargs="+", help="languages of its training pairs: codes such as en")
    args = parser.parse_args(argv)
    try:
        check_license(args.license)
        check_language(args.language)
        repository = Repository(
            args.hub_model_id,
            private=not args.public,
            revision=args.hub_revision,
            overwrite=args.overwrite_repository,
        )
        published = publish(args.run_folder, repository, args.license, args.language)
    except ValueError as error:
        sys.exit(f"{parser.prog}: error: {error}")
    sys.stdout.write(f"{published}\n")


if __name__ == "__main__":
    main()
