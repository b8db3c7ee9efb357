"""Publishes a finished run on the Hugging Face Hub, in one commit.

    sts-regression publish outputs/pairs-smooth_k2 --hub_model_id me/pairs-smooth_k2

It publishes weights, configuration, tokenizer, model code, card, plots, and the public part of `run.json`;
`repository.py` lists the files. Pickles, checkpoints, optimizer states and `options.json` are never published.
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
from sts_regression.hub.repository import PUBLISHED, check_repository, in_one_line, replaced_paths
from sts_regression.models.sentence_transformers_files import CONFIG_FILE, WEIGHTS, is_config_of_ours
from sts_regression.training.run_folder import CARD_FILE, RUN_FILE


def publish(
    folder: Path, repository: Repository, license: str | None = None, language: Sequence[str] | None = None
) -> str:
    """
    Publishes the finished run in a folder. The folder does not change.

    A card that was edited by hand is published as it is; any other card is written again, with the Hub id as name.

    Args:
        folder: the folder of the run.
        repository: the repository to publish to.
        license, language: entries of the card, see [`model_card`].

    Returns:
        A line with the address of the repository.

    Raises:
        ValueError: for a folder without a finished run, for a repository that holds something else, and if the Hub
            refuses the commit.
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
        # `upload_folder` might split the files into several commits.
        commit = api.create_commit(
            name,
            [
                *(CommitOperationAdd(path, content) for path, content in contents.items()),
                *(CommitOperationDelete(path) for path in replaced_paths(info) if path not in contents),
            ],
            commit_message=f"Publish {folder.resolve().name}",
            revision=repository.revision,
            parent_commit=info.sha,  # the state that was checked
        )
    state = "Up to date" if commit.oid == info.sha else "Published"
    visibility = "private" if info.private else "public"
    return f"{state}: {api.endpoint}/{name} ({visibility}), commit {commit.oid}"


def published_files(folder: Path) -> list[str]:
    """
    The files of a run that are published unchanged, with paths relative to its folder.

    Raises:
        ValueError: if one of them, or its folder, is a symbolic link, which may lead anywhere.
    """
    found = (path for pattern in PUBLISHED for path in folder.glob(pattern))
    listed = sorted(path.relative_to(folder).as_posix() for path in found)
    root = folder.resolve()
    for name in listed:
        if (root / name).resolve() != root / name:
            raise ValueError(
                f"`run_folder`: {name} is, or is reached through, a symbolic link, and only files in the folder "
                "itself are published. Copy the file into it."
            )
    return listed


def _check_finished(folder: Path) -> None:
    weights = [path for pattern in WEIGHTS for path in folder.glob(pattern)]
    missing = [name for name in (CONFIG_FILE, RUN_FILE) if not (folder / name).is_file()]
    missing += [] if weights else [WEIGHTS[0]]
    if missing:
        raise ValueError(
            f"`run_folder` {str(folder)!r} holds no finished run: it lacks {', '.join(missing)}. Name the "
            "`output_dir` of a finished run."
        )
    if not is_config_of_ours(folder / CONFIG_FILE):
        raise ValueError(
            f"`run_folder` {str(folder)!r} holds a model of another kind. Name the `output_dir` of a finished run."
        )


def _card(folder: Path, hub_model_id: str, license: str | None, language: Sequence[str] | None) -> str:
    path = folder / CARD_FILE
    if not path.is_file():
        return model_card_of(folder, hub_model_id, license, language)
    written = path.read_text(encoding="utf-8")
    check_card(written)
    card = ModelCard(written)
    if written == model_card_of(folder, card.data.get("model_name")):  # the folder may have been renamed since
        return model_card_of(folder, hub_model_id, license, language)
    card.data["license"] = license or card.data.get("license")
    card.data["language"] = list(language) if language else card.data.get("language")
    return str(card)


def main(argv: list[str] | None = None) -> None:
    """Publishes from the command line."""
    parser = CommandParser(
        prog="sts-regression publish",
        description="Publishes a finished run on the Hugging Face Hub, in one commit.",
    )
    parser.add_argument("run_folder", type=Path, help="output_dir of the run")
    parser.add_argument(
        "--hub_model_id", required=True, help="USER/NAME of the repository; created if it does not exist"
    )
    parser.add_argument("--hub_revision", help="branch; default: main")
    parser.add_argument("--public", action="store_true", help="make a new repository public")
    parser.add_argument(
        "--overwrite_repository", action="store_true", help="replace a repository that holds something else"
    )
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
