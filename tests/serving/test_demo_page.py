"""The web page, served: what it refuses, what it shows as text, and a visit with a browser; and its Space."""

import csv
import http.client
import importlib
import io
import json
import re
import shutil
import socket
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import yaml
from huggingface_hub.utils import filter_repo_objects
from transformers import PreTrainedTokenizerBase

import run_sts
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import model_scorer
from sts_regression.serving.demo_scoring import MAX_FILE_BYTES, DemoModel, describe_limits, rank, score_two

pytest.importorskip("gradio", reason="the demo extra is not installed")
demo_page = importlib.import_module("sts_regression.serving.demo_page")

ROOT = Path(run_sts.__file__).resolve().parent
SPACE = ROOT / "spaces"
API = "/gradio_api"
INJECTED = """<img src=x onerror="window.injected=1"><script>window.injected=1</script>"""
GRADES = ["<b>irrelevant</b>", "<img src=x onerror='window.injected=1'>", "highly relevant"]
ON_TWO, ON_LIST, ON_FILE = 0, 1, 2  # numbers of the page's functions

Serve = Callable[..., str]


@pytest.fixture
def model(make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase) -> DemoModel:
    model = make_model(label_values=[0, 1, 2], label_names=GRADES)
    return DemoModel("tiny", model.config, model_scorer(model, tokenizer), tokenizer)


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Hosts elsewhere that the server has looked up."""
    hosts: list[str] = []
    look_up = socket.getaddrinfo

    def keep(host: Any, *args: Any, **options: Any) -> Any:
        if host not in ("127.0.0.1", "localhost", b"127.0.0.1"):
            hosts.append(str(host))
        return look_up(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", keep)
    return hosts


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """`serve(model)`: host and port of the served page."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "files"))
    pages = []

    def start(model: DemoModel) -> str:
        page = demo_page.build_page(model)
        pages.append(page)
        options = {"prevent_thread_lock": True, "quiet": True}
        demo_page.launch_page(page, server_name="127.0.0.1", server_port=None, share=False, **options)
        return urlsplit(page.local_url).netloc

    yield start
    for page in pages:
        page.close(verbose=False)


def post(address: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(address, timeout=60)
    options = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
    connection.request("POST", f"{API}{path}", None if body is None else json.dumps(body), options)
    response = connection.getresponse()
    answer = response.read().decode()
    connection.close()
    return response.status, json.loads(answer) if answer.startswith("{") else {"detail": answer}


def join(address: str, function: int, *data: Any) -> tuple[int, dict[str, Any]]:
    return post(address, "/queue/join", {"fn_index": function, "session_hash": "test", "data": data})


def call(address: str, function: int, *data: Any) -> dict[str, Any]:
    """What the page answers to a visitor: `success`, and `output` with `data` or `error`."""
    status, answer = join(address, function, *data)
    assert status == 200, answer
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", f"{API}/queue/data?session_hash=test")
    for line in connection.getresponse():
        message = json.loads(line[len("data: ") :]) if line.startswith(b"data: ") else {}
        if message.get("msg") == "process_completed":
            connection.close()
            return message
    raise AssertionError("no answer")


def test_our_errors_are_told_as_text_and_others_not_at_all(
    model: DemoModel, serve: Serve, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    address = serve(model)
    answer = call(address, ON_TWO, "", "a dog")
    assert not answer["success"]
    assert answer["output"]["error"] == "`First sentence` is empty. Write a sentence."
    assert "Traceback" not in capfd.readouterr().err

    def fail(*args: Any) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(demo_page, "score_two", fail)
    answer = call(address, ON_TWO, "the cat", "a dog")
    assert not answer["success"]
    assert "a secret" not in json.dumps(answer)


def test_a_message_is_escaped_and_short() -> None:
    assert demo_page.error_message(ValueError("<b>'x'</b>")) == "&lt;b&gt;&#x27;x&#x27;&lt;/b&gt;"
    assert demo_page.error_message(ValueError("x" * 501)) == "x" * 500 + "…"


def test_an_address_or_a_foreign_path_is_no_upload(
    model: DemoModel, serve: Serve, looked_up: list[str], tmp_path: Path
) -> None:
    address = serve(model)
    secret = tmp_path / "secret.csv"
    secret.write_text("sentence1,sentence2\na,b\n")
    looked_up.clear()
    for path in ("http://192.0.2.1/pairs.csv", "https://example.invalid/pairs.csv", str(secret)):
        file = {"path": path, "meta": {"_type": "gradio.FileData"}}
        # Every input that there is, and a file within what is none.
        for function, data in (
            (ON_TWO, [file, "b"]),
            (ON_TWO, ["a", file]),
            (ON_LIST, [file, "b"]),
            (ON_LIST, ["a", [file]]),
            (ON_FILE, [file, "", ""]),
            (ON_FILE, [{"x": file}, "", ""]),
            (ON_FILE, [None, file, ""]),
            (ON_FILE, [None, "", file]),
        ):
            answer = call(address, function, *data)
            assert not answer["success"]
            assert answer["output"]["error"] is None
    assert looked_up == []
    assert call(address, ON_FILE, None, "", "")["output"]["error"] == "`File` is missing. Upload one first."


def test_what_is_too_long_is_refused_with_and_without_its_length(model: DemoModel, serve: Serve) -> None:
    address = serve(model)
    refusal = (413, {"detail": "Content Too Large"})
    assert post(address, "/queue/join", content_length=str(demo_page.MAX_BODY_BYTES + 1)) == refusal
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.putrequest("POST", f"{API}/queue/join")
    connection.putheader("content-type", "application/json")
    connection.putheader("transfer-encoding", "chunked")
    connection.endheaders()
    try:
        for _ in range(demo_page.MAX_BODY_BYTES // 2**16 + 2):
            connection.send(b"10000\r\n" + b" " * 2**16 + b"\r\n")
    except OSError:
        pass  # the server hangs up on what it does not read
    else:
        assert connection.getresponse().status == 413
    connection.close()


def test_a_file_that_is_too_large_is_not_stored(model: DemoModel, serve: Serve, tmp_path: Path) -> None:
    address = serve(model)
    connection = http.client.HTTPConnection(address, timeout=60)
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\n'
    body = head + b"a" * (MAX_FILE_BYTES + 1) + b"\r\n--x--\r\n"
    connection.request("POST", f"{API}/upload", body, {"content-type": "multipart/form-data; boundary=x"})
    assert connection.getresponse().status == 413
    connection.close()
    assert not list((tmp_path / "files").rglob("a.csv"))


def test_a_full_queue_refuses_and_the_rest_is_scored_one_by_one(
    model: DemoModel, serve: Serve, reliability: Callable[[str, int, int, int], None]
) -> None:
    may_go_on, running = threading.Event(), threading.Semaphore(0)

    def scorer(first: list[str], second: list[str]) -> dict[str, np.ndarray]:
        running.release()
        assert may_go_on.wait(60)
        return model.scorer(first, second)

    address = serve(DemoModel(model.name, model.config, scorer, model.tokenizer))
    assert join(address, ON_TWO, "a", "b")[0] == 200
    assert running.acquire(timeout=60)
    waiting, number = demo_page.MAX_WAITING, 10 * demo_page.MAX_WAITING
    answers = [join(address, function, "a", "b") for function in (ON_TWO, ON_LIST) * (number // 2)]
    assert [status for status, _ in answers] == [200] * waiting + [503] * (number - waiting)  # of whichever tab
    assert answers[-1][1]["detail"] == f"Queue is full. Max size is {waiting} and size is {waiting}."
    assert not running.acquire(timeout=0.5)
    may_go_on.set()
    assert all(running.acquire(timeout=60) for _ in range(waiting))
    reliability("requests to the web page, ten times as many as its queue holds", number, waiting, number - waiting)


def test_a_port_that_cannot_be_had_is_told(model: DemoModel, serve: Serve) -> None:
    taken = int(serve(model).rpartition(":")[2])
    for port in (taken, 2**16):
        with pytest.raises(
            ValueError, match=f"`server_port`: cannot serve at port {port} of 127.0.0.1 .* Give another"
        ):
            demo_page.launch_page(
                demo_page.build_page(model), server_name="127.0.0.1", server_port=port, share=False, quiet=True
            )


def test_there_is_no_way_around_the_queue(model: DemoModel, serve: Serve) -> None:
    status, answer = post(serve(model), "/run/on_two", {"fn_index": ON_TWO, "data": ["the cat", "a dog"]})
    assert (status, "Please join the queue" in answer["detail"]) == (404, True)


def test_a_visit(
    model: DemoModel, serve: Serve, looked_up: list[str], open_browser: Callable[[], AbstractContextManager[Any]]
) -> None:
    expect = importlib.import_module("playwright.sync_api").expect
    address = serve(model)
    requested: list[str] = []
    with open_browser() as browser:
        visit = browser.new_page()
        visit.on("request", lambda request: requested.append(request.url))
        visit.goto(f"http://{address}/")

        expect(visit.get_by_label("Model", exact=True)).to_have_value(re.compile(re.escape(f"1 {GRADES[1]}, 2 ")))
        expect(visit.get_by_text(describe_limits())).to_be_visible()
        visit.get_by_label("First sentence").fill(INJECTED)
        visit.get_by_label("Second sentence").fill("a dog")
        visit.get_by_role("button", name="Score", exact=True).click()
        scores = score_two(model, INJECTED, "a dog")
        expect(visit.get_by_label("Score", exact=True)).to_have_value(f"{scores['score']:.4f}")
        expect(visit.get_by_label("Grade", exact=True)).to_have_value(scores["grade"])
        expect(visit.get_by_label("Cosine", exact=True)).to_have_value(f"{scores['cosine']:.4f}")

        visit.get_by_role("tab", name="A list").click()
        sentences = ["the big house", INJECTED, "**a dog**"]
        visit.get_by_label("Query").fill("the cat")
        visit.get_by_label("Sentences, one a line").fill("\n".join(sentences))
        visit.get_by_role("button", name="Rank").click()
        ranked = [row[1] for row in rank(model, "the cat", "\n".join(sentences))]
        expect(visit.locator("[data-testid^='cell-'][data-testid$='-1']")).to_have_text(ranked)

        visit.get_by_role("tab", name="A file").click()
        upload = visit.get_by_role("tabpanel").get_by_test_id("file-upload").last
        name = "<img src=x onerror=window.injected=1>.csv"
        columns = [INJECTED, "other"]
        upload.set_input_files({"name": name, "mimeType": "text/csv", "buffer": csv_bytes([columns, ["=1+1", "a"]])})
        expect(visit.get_by_text("<img src=x onerror=window.injected=1>")).to_be_visible()
        visit.get_by_role("button", name="Score the file").click()
        expect(visit.get_by_test_id("toast-text")).to_contain_text("cannot tell which of the columns ['<img src=x")
        visit.get_by_label("--sentence1_column").fill(INJECTED)
        visit.get_by_label("--sentence2_column").fill("other")
        visit.get_by_role("button", name="Score the file").click()
        with visit.expect_download() as download:
            visit.locator("a[download='scores.csv']").click()
        rows = list(csv.DictReader(Path(download.value.path()).open(encoding="utf-8", newline="")))
        assert [row["sentence1"] for row in rows] == ["'=1+1"]
        assert float(rows[0]["score"]) == pytest.approx(score_two(model, "=1+1", "a")["score"], abs=2e-6)

        assert visit.evaluate("window.injected") is None
    assert {urlsplit(url).netloc for url in requested if not url.startswith(("blob:", "data:"))} == {address}
    assert looked_up == []


def csv_bytes(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def test_the_space_has_what_the_package_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (SPACE / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted = {*project["dependencies"], *project["optional-dependencies"]["demo"]}
    assert {line for line in lines if not line.startswith("#")} == wanted
    front_matter = yaml.safe_load((SPACE / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    assert (front_matter["sdk"], front_matter["app_file"]) == ("gradio", "app.py")
    assert f"gradio=={front_matter['sdk_version']}\n" in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def test_the_documented_upload_makes_a_space_that_starts(
    run_in_subprocess: Callable[..., str], tmp_path: Path
) -> None:
    document = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")
    included, excluded = (re.findall(rf'--{option} "([^"]+)"', document) for option in ("include", "exclude"))
    files = [str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.py"), *(ROOT / "sts_regression").rglob("*"))]
    files += ["outputs/my-run/modeling_sts_regression.py"]  # beside every checkpoint
    for file in filter_repo_objects(files, allow_patterns=included, ignore_patterns=excluded):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    shutil.copytree(SPACE, tmp_path, dirs_exist_ok=True)
    run = (
        "import os, runpy, sys\ndel sys.modules['sts_regression']\nsys.path.insert(0, os.getcwd())\n"
        "try:\n    runpy.run_path('app.py', run_name='__main__')\nexcept SystemExit as end:\n    print(end)\n"
        "print(getattr(sys.modules.get('sts_regression'), '__file__', None))"
    )
    without = run_in_subprocess(run, cwd=tmp_path, env={"STS_REGRESSION_MODEL": ""})
    assert without == "app.py: error: set the variable `STS_REGRESSION_MODEL` to the Hub id of a model.\nNone\n"
    message, file = run_in_subprocess(run, cwd=tmp_path, env={"STS_REGRESSION_MODEL": "no-model"}).splitlines()
    assert "error: `model_name_or_path`: cannot load 'no-model'" in message
    assert Path(file).is_relative_to(tmp_path)
