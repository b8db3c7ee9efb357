"""Publishing, against a server on this machine that speaks the part of the Hub's API that is needed."""

import ast
import base64
import hashlib
import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from huggingface_hub import ModelCard, constants

import run_sts
from sts_regression.basics.hub_names import Repository
from sts_regression.command.arguments import parse_stages
from sts_regression.hub.publish import main, publish, published_files
from sts_regression.hub.repository import REASON_LENGTH, in_one_line
from sts_regression.training.training_arguments import repository_of

TOKEN, MODEL_ID = "hf_secret", "me/grades"
REPOSITORY = Repository(MODEL_ID)
WORDS = ("cat", "dog", "man", "park")
RESUMED = ("--resume_from_checkpoint=true",)
LFS_SUFFIXES = (".safetensors", ".png")
PUBLISHED = {
    *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "README.md", "run.json"),
    *("configuration_sts_regression.py", "encoder_sts_regression.py"),
    *("head_sts_regression.py", "losses_sts_regression.py"),
    *("modeling_sts_regression.py", "packing_sts_regression.py", "pipeline_sts_regression.py"),
    *("modules.json", "config_sentence_transformers.json"),
    *(f"encoder/{name}" for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")),
    *(f"encoder/{name}" for name in ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json")),
    *("loss_curve.png", "scores.png"),
}

Files = dict[str, bytes]
Reliability = Callable[[str, int, int, int], None]

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>' to upload:DeprecationWarning")  # huggingface_hub's


class LocalHub(ThreadingHTTPServer):
    """Repositories as lists of commits, each the files of a state; the first is the Hub's own."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server_port}"
        self.repositories: dict[str, list[Files]] = {}
        self.branches: dict[str, int] = {}  # commits on main before those of a branch
        self.private: dict[str, bool] = {}
        self.stored: Files = {}  # large files by their SHA-256
        self.requests: list[str] = []
        self.failures: dict[str, int | None] = {}  # status by part of a path; `None` breaks the connection off

    def create(self, model_id: str, private: bool, **files: bytes) -> None:
        self.repositories[model_id] = [{".gitattributes": b"", **files}]
        self.private[model_id] = private

    def files(self, model_id: str = MODEL_ID) -> Files:
        return self.repositories[model_id][-1]

    def oid(self, model_id: str) -> str:
        return f"{len(self.repositories[model_id]):040x}"


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    server: LocalHub

    def do_POST(self) -> None:
        self.answer()

    do_GET = do_HEAD = do_PUT = do_POST

    def log_message(self, *args: Any) -> None:
        pass

    def answer(self) -> None:
        hub, path = self.server, unquote(self.path.partition("?")[0])
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        hub.requests.append(f"{self.command} {path}")
        for part, status in hub.failures.items():
            if part in path:
                if status is None:
                    self.close_connection = True
                    return
                self.reply({"error": f"not with {self.headers['Authorization']}"}, status)  # as careless as can be
                return
        is_allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if match := re.fullmatch(r"/lfs/(\w+)", path):
            hub.stored[match[1]] = body
            self.reply({})
        elif path == "/api/validate-yaml":
            card = ModelCard(json.loads(body)["content"])
            errors = [] if card.data.get("license") in (None, "mit") else [{"message": '"license" must be one of […]'}]
            self.reply({"errors": errors, "warnings": []}, 400 if errors else 200)
        elif not is_allowed:
            self.reply({}, 401, {"X-Error-Message": "Invalid credentials in Authorization header"})
        elif path == "/api/repos/create":
            asked = json.loads(body)
            model_id = f"{asked['organization']}/{asked['name']}"
            hub.create(model_id, asked["visibility"] == "private")
            self.reply({"url": f"{hub.endpoint}/{model_id}"})
        elif match := re.fullmatch(r"(?:/api/models)?/(\w+/[\w-]+?)(\.git/info/lfs|/|$)(.*)", path):
            if match[1] in hub.repositories:
                self.answer_for(match[1], match[3], body)
            else:
                self.reply({}, 404, {"X-Error-Code": "RepoNotFound"})
        else:
            self.reply({}, 404)

    def answer_for(self, model_id: str, path: str, body: bytes) -> None:
        hub = self.server
        files = hub.files(model_id)
        if path == "/objects/batch":
            objects = json.loads(body)["objects"]
            for entry in objects:
                entry["actions"] = {"upload": {"href": f"{hub.endpoint}/lfs/{entry['oid']}"}}
            self.reply({"objects": objects})
        elif match := re.fullmatch(r"resolve/\w+/(.+)", path):
            if match[1] in files:
                headers = {
                    "ETag": f'"{hashlib.sha256(files[match[1]]).hexdigest()}"',
                    "X-Repo-Commit": hub.oid(model_id),
                }
                self.reply(files[match[1]], 200, headers)
            else:
                self.reply({}, 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": hub.oid(model_id)})
        elif path.startswith("preupload/"):
            names = [entry["path"] for entry in json.loads(body)["files"]]
            self.reply({"files": [self.upload_mode(name, files) for name in names]})
        elif path.startswith("commit/"):
            self.commit(model_id, [json.loads(line) for line in body.splitlines()])
        elif path.startswith("branch/"):
            hub.branches[path.removeprefix("branch/")] = len(hub.repositories[model_id])
            self.reply({})
        elif path.startswith("revision/") and path.removeprefix("revision/") not in {"main", *hub.branches}:
            self.reply({}, 404, {"X-Error-Code": "RevisionNotFound"})
        elif path == "" or path.startswith("revision/"):
            siblings = [{"rfilename": name} for name in files]
            info = {"id": model_id, "sha": hub.oid(model_id), "private": hub.private[model_id], "siblings": siblings}
            self.reply(info)
        else:
            self.reply({}, 404, {"X-Error-Code": "EntryNotFound"})

    def upload_mode(self, name: str, files: Files) -> dict[str, Any]:
        is_large, content = name.endswith(LFS_SUFFIXES), files.get(name)
        entry = {"path": name, "uploadMode": "lfs" if is_large else "regular", "shouldIgnore": False}
        if content is not None:
            git = hashlib.sha1(f"blob {len(content)}\0".encode() + content)
            entry["oid"] = hashlib.sha256(content).hexdigest() if is_large else git.hexdigest()
        return entry

    def commit(self, model_id: str, lines: list[dict[str, Any]]) -> None:
        hub, files = self.server, dict(self.server.files(model_id))
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                assert value["parentCommit"] == hub.oid(model_id)
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = hub.stored[value["oid"]]
            else:
                del files[value["path"]]
        hub.repositories[model_id].append(files)
        oid = hub.oid(model_id)
        self.reply({"commitUrl": f"{hub.endpoint}/{model_id}/commit/{oid}", "commitOid": oid})

    def reply(self, content: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    with LocalHub() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, server.endpoint)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", server.endpoint)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def trained(tiny_encoder_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished training on grades with names, in a folder that tests must leave as it is."""
    folder = tmp_path_factory.mktemp("trained")
    run_sts.run_stages([*training_options(tiny_encoder_path, folder), f"--output_dir={folder / 'grades-mse'}"])
    return folder / "grades-mse"


def training_options(encoder: Path, folder: Path) -> list[str]:
    lines = [f"a {WORDS[i % 4]},the {WORDS[i * i % 4]} {i % 3},{i % 3}\n" for i in range(12)]
    (folder / "grades.csv").write_text("sentence1,sentence2,label\n" + "".join(lines))
    files = [f"--{split}_file={folder / 'grades.csv'}" for split in ("train", "validation", "test")]
    options = ["--leak_filter=none", "--num_train_epochs=1", "--report_to=none", "--loss=mse", "--disable_tqdm=true"]
    options += ["--logging_steps=1", "--per_device_train_batch_size=4"]
    return [f"--model_name_or_path={encoder}", *files, *options]


def contents(folder: Path) -> Files:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_training_is_published_in_one_commit_and_loads_anywhere(
    hub: LocalHub,
    tiny_encoder_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_in_subprocess: Callable[..., str],
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    folder = tmp_path / "run"
    options = ["--push_to_hub", f"--hub_model_id={MODEL_ID}", f"--hub_token={TOKEN}", "--num_train_epochs=2"]
    options.append("--save_total_limit=1")  # keeps a checkpoint
    run_sts.run_stages([*training_options(tiny_encoder_path, tmp_path), f"--output_dir={folder}", *options])
    assert [len(hub.repositories[MODEL_ID]), hub.private[MODEL_ID]] == [2, True]
    assert set(hub.files()) == {".gitattributes", *PUBLISHED}
    assert list(folder.glob("checkpoint-*"))
    assert (folder / "report.html").is_file()  # which quotes pairs, and stays
    for name, content in hub.files().items():
        for secret in (TOKEN, str(tmp_path), str(tiny_encoder_path), str(Path.cwd())):
            assert secret.encode() not in content, (name, secret)
    assert not [name for name, content in contents(folder).items() if TOKEN.encode() in content]

    [code] = re.findall(r"```python\n([^`]*AutoModel[^`]*)```", hub.files()["README.md"].decode(), re.DOTALL)
    assert f'from_pretrained("{MODEL_ID}"' in code
    reached = {"HF_ENDPOINT": hub.endpoint, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": TOKEN}
    from_hub = run_in_subprocess(code, env={**reached, "HF_HOME": str(tmp_path / "empty-home")})
    here: dict[str, Any] = {"print": lambda score: here.update(score=score)}
    exec(code.replace(MODEL_ID, str(folder)), here)
    assert ast.literal_eval(from_hub)[0]["score"] == pytest.approx(here["score"][0]["score"], abs=1e-6)

    again = Repository(MODEL_ID, token=TOKEN)
    assert publish(folder, again).startswith("Up to date: ")
    assert len(hub.repositories[MODEL_ID]) == 2
    run_sts.run_stages([*training_options(tiny_encoder_path, tmp_path), *options, *RESUMED, f"--output_dir={folder}"])
    assert len(hub.repositories[MODEL_ID]) == 2  # finished, and published already
    (folder / "scores.png").write_bytes(b"another picture")
    assert publish(folder, again).startswith("Published: ")
    assert len(hub.repositories[MODEL_ID]) == 3


def test_the_command_publishes_a_folder_for_everybody(
    hub: LocalHub, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(trained), f"--hub_model_id={MODEL_ID}", "--public", "--license=mit", "--language", "en", "de"])
    assert capsys.readouterr().out == f"Published: {hub.endpoint}/{MODEL_ID} (public), commit {hub.oid(MODEL_ID)}\n"
    card = ModelCard(hub.files()["README.md"].decode()).data.to_dict()
    assert (hub.private[MODEL_ID], card["license"], card["language"]) == (False, "mit", ["en", "de"])
    assert ModelCard.load(trained / "README.md").data.get("license") is None


def test_a_branch_is_published_on_and_created_where_it_is_missing(hub: LocalHub, trained: Path) -> None:
    hub.create(MODEL_ID, private=True)
    publish(trained, Repository(MODEL_ID, revision="second"))
    publish(trained, Repository(MODEL_ID, revision="second"), license="mit")
    assert list(hub.branches) == ["second"]
    assert [request for request in hub.requests if "/commit/" in request] == [
        f"POST /api/models/{MODEL_ID}/commit/second"
    ] * 2


def test_a_folder_may_have_been_renamed(hub: LocalHub, trained: Path, tmp_path: Path) -> None:
    publish(shutil.copytree(trained, tmp_path / "renamed"), REPOSITORY)
    card = hub.files()["README.md"].decode()
    assert (trained.name in card, "renamed" in card, MODEL_ID in card) == (False, False, True)


def test_a_card_that_was_edited_is_published_as_it_stands(hub: LocalHub, trained: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(trained, tmp_path / "edited")
    card = (folder / "README.md").read_text() + "\nBuilt for the letters of one office.\n"
    (folder / "README.md").write_text(card)
    publish(folder, REPOSITORY)
    assert hub.files()["README.md"].decode() == card
    publish(folder, REPOSITORY, license="mit")
    published = ModelCard(hub.files()["README.md"].decode())
    assert (published.text, published.data["license"]) == (ModelCard(card).text, "mit")
    (folder / "README.md").write_text("A good model.\n")
    with pytest.raises(ValueError, match=r"README\.md has no metadata\. Put a YAML block"):
        publish(folder, REPOSITORY)


OTHERS: list[Files] = [
    {"config.json": b'{"model_type": "bert"}', "model.safetensors": b""},
    {"config.json": b'{"model_type": "sts_regression"}', "pytorch_model.bin": b""},
    {"README.md": b"Mine."},
]


@pytest.mark.parametrize("files", OTHERS, ids=lambda files: " ".join(files))
def test_a_repository_of_something_else_is_refused_unless_it_may_be_replaced(
    hub: LocalHub, trained: Path, files: Files
) -> None:
    hub.create(MODEL_ID, private=True, **files, **{"LICENSE": b"", ".eval_results/sts.yaml": b""})
    before = hub.files()
    with pytest.raises(
        ValueError, match=r"`hub_model_id` 'me/grades' does not hold a model.*`--overwrite_repository`"
    ):
        publish(trained, REPOSITORY)
    assert hub.repositories[MODEL_ID] == [before]
    publish(trained, Repository(MODEL_ID, overwrite=True))
    assert set(hub.files()) == {".gitattributes", "LICENSE", ".eval_results/sts.yaml", *PUBLISHED}


def test_what_an_earlier_training_published_and_this_one_lacks_goes(hub: LocalHub, trained: Path) -> None:
    hub.create(MODEL_ID, private=True, **{"config.json": b'{"model_type": "sts_regression"}', "sts_tasks.png": b""})
    publish(trained, REPOSITORY)
    assert set(hub.files()) == {".gitattributes", *PUBLISHED}


@pytest.mark.parametrize(
    ("part", "status", "message"),
    [
        ("/api/models/me/grades", 401, "401.*Log in with a token that may write there, by `hf auth login`"),
        ("/api/repos/create", 403, "403.*Log in with a token that may write there, by `hf auth login`"),
        ("/api/repos/create", 409, "409.*belongs to another user"),
        ("/commit/", 412, "412.*changed in the meantime"),
        ("/commit/", 500, r"500.*The run is complete; publish it later with `sts-regression publish "),
        ("/commit/", None, "disconnected.*The run is complete; publish it later"),
    ],
)
def test_a_failure_is_one_line_without_the_token_and_leaves_the_run_whole(
    hub: LocalHub, trained: Path, part: str, status: int | None, message: str
) -> None:
    before = contents(trained)
    hub.failures[part] = status
    with pytest.raises(ValueError, match=message) as raised:
        publish(trained, REPOSITORY)
    assert "\n" not in str(raised.value)
    assert TOKEN not in str(raised.value)
    assert raised.value.__suppress_context__  # nor in a traceback
    assert contents(trained) == before
    hub.failures.clear()
    assert publish(trained, REPOSITORY).startswith("Published: ")


def test_no_part_of_a_token_is_told_if_the_reason_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    token = "hf_" + "x" * 40
    for before in range(REASON_LENGTH - len(token), REASON_LENGTH):
        with pytest.raises(ValueError, match="the Hub refused") as raised:
            with in_one_line(Repository(MODEL_ID, token=token)):
                raise OSError("." * before + token)
        assert "hf_" not in str(raised.value)


def test_what_the_hub_says_of_the_card_is_passed_on(hub: LocalHub, trained: Path) -> None:
    with pytest.raises(ValueError, match='"license" must be one of'):
        publish(trained, REPOSITORY, license="mti")
    assert len(hub.repositories[MODEL_ID]) == 1


def test_nothing_is_trained_for_a_repository_that_cannot_be_published_to(
    hub: LocalHub, tiny_encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [*training_options(tiny_encoder_path, tmp_path), f"--output_dir={tmp_path / 'run'}", "--push_to_hub"]
    hub.create(MODEL_ID, private=True, **OTHERS[0])
    with pytest.raises(ValueError, match="does not hold a model of this kind"):
        run_sts.run_stages([*options, f"--hub_model_id={MODEL_ID}"])
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(ValueError, match="`hub_token`: publishing needs a token"):
        run_sts.run_stages([*options, f"--hub_model_id={MODEL_ID}"])
    assert not (tmp_path / "run").exists()


def test_options_of_transformers_keep_their_meaning() -> None:
    options = ["--push_to_hub", "--hub_model_id=me/x", "--hub_token=t", "--hub_revision=b", "--hub_private_repo=false"]
    [stage] = parse_stages([*options, "--overwrite_repository"])
    assert repository_of(stage.training_args) == Repository("me/x", False, "t", "b", overwrite=True)
    assert repository_of(parse_stages([])[0].training_args) is None
    assert TOKEN not in repr(Repository(MODEL_ID, token=TOKEN))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "`hub_model_id` must name a repository as USER/NAME, .* but is ''"),
        (["--hub_model_id=grades"], "as USER/NAME, .* but is 'grades'"),
        (["--hub_model_id=me/a b"], "as USER/NAME, .* but is 'me/a b'"),
        (["--hub_model_id=me/x", "--do_eval"], "`push_to_hub` publishes the model of a training"),
        (["--hub_model_id=me/x", "--hub_strategy=all_checkpoints"], "`hub_strategy` and `hub_always_push` have no"),
        (["--hub_model_id=me/x", "--license=Apache 2"], "`license` must be an identifier of the Hub .* 'Apache 2'"),
        (["--hub_model_id=me/x", "--language", "en", "English"], "`language` must hold codes .* holds 'English'"),
    ],
)
def test_options_that_cannot_be_followed_are_refused_at_once(options: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_stages(["--push_to_hub", *options])


def test_files_of_others_are_not_published(trained: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(trained, tmp_path / "run")
    for name in ("other_sts_regression.py", "model-old.safetensors", "encoder/notes.txt", "encoder/1_Pooling/key"):
        (folder / name).write_text("private")
    assert set(published_files(folder)) == PUBLISHED


@pytest.mark.parametrize("name", ["vocab.txt", "encoder", "encoder/1_Pooling", "tokenizer.json"])
def test_a_symbolic_link_is_not_followed(
    hub: LocalHub, trained: Path, tmp_path: Path, name: str, reliability: Reliability
) -> None:
    folder = shutil.copytree(trained, tmp_path / "run")
    secret = tmp_path / "id_rsa"
    if (folder / name).is_dir():
        (folder / name).rename(secret)
    else:
        secret.write_text("private")
        (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(secret)
    with pytest.raises(
        ValueError, match=rf"`run_folder`: {name}.* symbolic link, and only files in the folder itself"
    ):
        publish(folder, REPOSITORY)
    assert hub.repositories == {}
    reliability("symbolic links among the files to publish", 1, 0, 1)


def test_a_folder_without_a_finished_training_is_refused(
    tmp_path: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(
        SystemExit, match=r"error: `run_folder` .* it lacks config\.json, run\.json, model\.safetensors"
    ):
        main([str(tmp_path / "absent"), f"--hub_model_id={MODEL_ID}"])
    folder = shutil.copytree(trained, tmp_path / "other")
    (folder / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ValueError, match="holds a model of another kind"):
        publish(folder, REPOSITORY)
