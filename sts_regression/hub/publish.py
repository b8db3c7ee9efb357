"""Publishes a finished training on the Hugging Face Hub, in one commit.

    sts-regression publish outputs/pairs-smooth_k2 --hub_model_id me/pairs-smooth_k2

Weights, configuration, tokenizer, model code, card, pictures, and what everybody may see of `run.json`: what goes
there is listed in `hub_repository.py`. Pickles, checkpoints, states of the optimizer and options do not.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, ModelCard

from sts_regression.basics.hub_names import Repository, check_language, check_license
from sts_regression.basics.hub_tokens import CommandParser, without_tokens
from sts_regression.basics.tables import read_record
from sts_regression.hub.model_card import check_card, model_card_of
from sts_regression.hub.public_record import public_record
from sts_regression.hub.repository import (
    CONFIG_FILE,
    PUBLISHED,
    WEIGHTS,
    check_repository,
    in_one_line,
    is_config_of_ours,
    replaced_paths,
)
from sts_regression.training.run_folder import CARD_FILE, RUN_FILE


def publish(
    folder: Path, repository: Repository, license: str | None = None, language: Sequence[str] | None = None
) -> str:
    """
    Publishes the finished training of a folder, which stays as it is.

    A card that was edited by hand is published as it stands; any other is written anew, with the Hub's name in it.

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
    _check_finished(folder)
    record = public_record(read_record(folder / RUN_FILE))
    contents: dict[str, Path | bytes] = {
        **{file: folder / file for file in published_files(folder)},
        RUN_FILE: without_tokens(json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode(),
        CARD_FILE: without_tokens(_card(folder, name, license, language)).encode(),
    }
    info = check_repository(repository)
    api = HfApi(token=repository.token)
    with in_one_line(repository, folder):
        if info is None:
            api.create_repo(name, private=repository.private)
            info = api.model_info(name)
        if repository.revision is not None:
            api.create_branch(name, branch=repository.revision, exist_ok=True)
        # Not `upload_folder`: that may split what it uploads into several commits.
        commit = api.create_commit(
            name,
            [
                *(CommitOperationAdd(path, content) for path, content in contents.items()),
                *(CommitOperationDelete(path) for path in replaced_paths(info) if path not in contents),
            ],
            commit_message=f"Publish {folder.resolve().name}",
            revision=repository.revision,
            parent_commit=info.sha,  # the state that was looked at
        )
    state = "Up to date" if commit.oid == info.sha else "Published"
    visibility = "private" if info.private else "public"
    return f"{state}: {api.endpoint}/{name} ({visibility}), commit {commit.oid}"


def published_files(folder: Path) -> list[str]:
    """
    The files of a run that are published as they are, named from its folder.

    Raises:
        ValueError: if one of them, or its folder, is a symbolic link: it may lead anywhere.
    """
    found = (path for pattern in PUBLISHED for path in folder.glob(pattern))
    listed = sorted(path.relative_to(folder).as_posix() for path in found)
    root = folder.resolve()
    for name in listed:
        if (root / name).resolve() != root / name:
            raise ValueError(
                f"`run_folder`: {name} is, or lies behind, a symbolic link, and only files of the folder itself are "
                "published. Put the file there."
            )
    return listed


def _check_finished(folder: Path) -> None:
    weights = [path for pattern in WEIGHTS for path in folder.glob(pattern)]
    missing = [name for name in (CONFIG_FILE, RUN_FILE) if not (folder / name).is_file()]
    missing += [] if weights else [WEIGHTS[0]]
    if missing:
        raise ValueError(
            f"`run_folder` {str(folder)!r} holds no finished training: it lacks {', '.join(missing)}. Name the "
            "`output_dir` of one."
        )
    if not is_config_of_ours(folder / CONFIG_FILE):
        raise ValueError(
            f"`run_folder` {str(folder)!r} holds a model of another kind. Name the `output_dir` of a training."
        )


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


def main(argv: list[str] | None = None) -> None:
    """Publishes from the command line."""
    parser = CommandParser(
        prog="sts-regression publish",
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
        parser.end(error)
    sys.stdout.write(f"{published}\n")


if __name__ == "__main__":
    main()
