"""The web page, served: refusals, texts that stay text, and a visit with a browser; and its Space."""

import csv
import http.client
import importlib
import io
import json
import os
import re
import shutil
import socket
import threading
import time
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
from sts_regression.serving import demo
from sts_regression.serving.demo_panels import PAGE_TEMPLATE, PALETTE
from sts_regression.serving.demo_scoring import (
    MAX_FILE_BYTES,
    DemoModel,
    describe_limits,
    describe_model,
    rank,
    score_two,
    shown_score,
)

pytest.importorskip("gradio", reason="the demo extra is not installed")
demo_page = importlib.import_module("sts_regression.serving.demo_page")
demo_gate = importlib.import_module("sts_regression.serving.demo_gate")

ROOT = Path(run_sts.__file__).resolve().parent
SPACE = ROOT / "spaces"
API = "/gradio_api"
INJECTED = """<img src=x onerror="window.injected=1"><script>window.injected=1</script>"""
GRADES = ["<b>irrelevant</b>", "<img src=x onerror='window.injected=1'>", "highly relevant"]
ON_TWO, ON_LIST, ON_FILE = 3, 5, 6  # numbers of the page's functions
EXAMPLES = (0, 1, 2, 4)  # of those that the browser runs by itself
# Every route of Gradio. One that a new version adds is closed; say so here, or open it.
OPEN_ROUTES = """
GET /
HEAD /
GET /assets/{path:path}
GET /config
GET /favicon.ico
GET /gradio_api/app_id
GET /gradio_api/queue/data
POST /gradio_api/queue/join
GET /gradio_api/startup-events
POST /gradio_api/upload
GET /gradio_api/upload_progress
GET /robots.txt
GET /static/{path:path}
GET /theme.css
GET /gradio_api/file={path_or_url:path}
"""
CLOSED_ROUTES = """
GET /config/
POST /gradio_api/api/{api_name}
POST /gradio_api/api/{api_name}/
GET /gradio_api/app_id/
POST /gradio_api/call/v2/{api_name}
POST /gradio_api/call/v2/{api_name}/
GET /gradio_api/call/v2/{api_name}/{event_id}
POST /gradio_api/call/{api_name}
POST /gradio_api/call/{api_name}/
GET /gradio_api/call/{api_name}/{event_id}
POST /gradio_api/cancel
POST /gradio_api/component_server
POST /gradio_api/component_server/
GET /gradio_api/custom_component/{id}/{environment}/{type}/{file_name}
GET /gradio_api/deep_link
GET /gradio_api/dev/reload
GET /gradio_api/file/{path:path}
GET /gradio_api/heartbeat/{session_hash}
GET /gradio_api/info
GET /gradio_api/info/
GET /gradio_api/login_check
GET /gradio_api/login_check/
GET /gradio_api/openapi.json
POST /gradio_api/process_recording
GET /gradio_api/proxy={url_path:path}
HEAD /gradio_api/proxy={url_path:path}
GET /gradio_api/queue/status
POST /gradio_api/reset
POST /gradio_api/reset/
POST /gradio_api/run/{api_name}
POST /gradio_api/run/{api_name}/
GET /gradio_api/runs
GET /gradio_api/runs/
POST /gradio_api/stream/{event_id}
POST /gradio_api/stream/{event_id}/close
GET /gradio_api/stream/{session_hash}/{run}/{component_id}/playlist-file
GET /gradio_api/stream/{session_hash}/{run}/{component_id}/playlist.m3u8
GET /gradio_api/stream/{session_hash}/{run}/{component_id}/{segment_id}.{ext}
GET /gradio_api/theme.css
GET /gradio_api/token
GET /gradio_api/token/
POST /gradio_api/undo-vibe-edit
POST /gradio_api/undo-vibe-edit/
GET /gradio_api/user
GET /gradio_api/user/
POST /gradio_api/vibe-code
GET /gradio_api/vibe-code
GET /gradio_api/vibe-code/
POST /gradio_api/vibe-code/
POST /gradio_api/vibe-edit
POST /gradio_api/vibe-edit/
POST /gradio_api/vibe-starter-queries
POST /gradio_api/vibe-starter-queries/
POST /login
POST /login/
GET /logout
GET /manifest.json
GET /monitoring
GET /monitoring/summary
GET /monitoring/{key}
GET /openapi.json
HEAD /openapi.json
GET /pwa_icon
GET /pwa_icon/{size}
GET /svelte/{path:path}
HEAD /gradio_api/file={path_or_url:path}
"""

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
def pages() -> Iterator[list[Any]]:
    """The pages that the test has served; they are closed after it."""
    pages: list[Any] = []
    yield pages
    for page in pages:
        page.close(verbose=False)


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: list[Any]) -> Serve:
    """`serve(model)`: host and port of the served page."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "files"))
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "")  # so that the page's value is taken back
    monkeypatch.delenv("FORWARDED_ALLOW_IPS")

    def start(model: DemoModel) -> str:
        page = demo_page.build_page(model)
        pages.append(page)
        demo_page.launch_page(page, server_name="127.0.0.1", server_port=None, share=False, quiet=True)
        return urlsplit(page.local_url).netloc

    return start


def request(address: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
    response = connection.getresponse()
    answer = "" if response.getheader("content-type", "").startswith("text/event-stream") else response.read().decode()
    connection.close()
    return response.status, answer


def post(address: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
    text = None if body is None else json.dumps(body)
    status, answer = request(address, "POST", f"{API}{path}", text, **{"content_type": "application/json", **headers})
    return status, json.loads(answer) if answer.startswith("{") else {"detail": answer}


def upload(address: str, content: bytes, field: str = "files") -> tuple[int, str]:
    head = f'--x\r\nContent-Disposition: form-data; name="{field}"; filename="a.csv"\r\n\r\n'.encode()
    content_type = "multipart/form-data; boundary=x"
    return request(address, "POST", f"{API}/upload", head + content + b"\r\n--x--\r\n", content_type=content_type)


def join(address: str, function: int, *data: Any) -> tuple[int, dict[str, Any]]:
    return post(address, "/queue/join", {"fn_index": function, "session_hash": "test", "data": data})


def call(address: str, function: int, *data: Any) -> dict[str, Any]:
    """The answer of the page to a visitor: `success`, and `output` with `data` or `error`."""
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
        # Every input, and a file inside a value that is not a file.
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


def test_the_server_fetches_no_address(model: DemoModel, serve: Serve, looked_up: list[str]) -> None:
    address = serve(model)
    looked_up.clear()
    for route in ("file=", "file/", "proxy=", "proxy=https://x.hf.space/file="):
        for url in ("http://192.0.2.1/", "https://example.invalid/x.csv", "http%3A//example.invalid/", "//a.invalid/"):
            assert request(address, "GET", f"{API}/{route}{url}") == (404, '{"detail":"Not Found"}')
            assert request(address, "HEAD", f"{API}/{route}{url}") == (404, "")
    assert looked_up == []


def routes_of(router: Any) -> Iterator[str]:
    for route in router.routes:
        if hasattr(route, "original_router"):  # FastAPI's, of routes that belong to another router
            yield from routes_of(route.original_router)
        else:
            yield from (f"{method} {route.path}" for method in route.methods)


def test_every_route_is_open_or_closed(
    model: DemoModel,
    serve: Serve,
    pages: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    reliability: Callable[[str, int, int, int], None],
) -> None:
    monkeypatch.setitem(demo_gate.MAX_REQUESTS, "POST", 1_000)
    address = serve(model)
    opened, closed = OPEN_ROUTES.splitlines()[1:], CLOSED_ROUTES.splitlines()[1:]
    assert set(routes_of(pages[0].app)) == {*opened, *closed}
    before = set((tmp_path / "files").rglob("*"))
    for route in closed:
        method, path = re.sub(r"\{.*?\}", "x", route).split()
        assert request(address, method, path) == (404, "" if method == "HEAD" else '{"detail":"Not Found"}'), route
    assert set((tmp_path / "files").rglob("*")) == before
    for route in opened:
        method, path = re.sub(r"=\{.*?\}", f"={tmp_path / 'files' / 'x'}", route).split()
        assert demo_gate.is_open(method, re.sub(r"\{.*?\}", "x", path)), route
    reliability("routes of the web page", len(opened) + len(closed), len(opened), len(closed))


def test_what_is_too_long_is_refused_with_and_without_its_length(model: DemoModel, serve: Serve) -> None:
    address = serve(model)
    refusal = (413, {"detail": "Content Too Large"})
    length = str(demo_page.MAX_BODY_BYTES + 1)
    assert post(address, "/queue/join", content_length=length) == refusal
    assert request(address, "GET", "/", content_length=length)[0] == 413
    for characters, status in ((4_000, 200), (5_000, 414)):
        assert request(address, "GET", "/?" + "a" * characters)[0] == status
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.putrequest("POST", f"{API}/queue/join")
    connection.putheader("content-type", "application/json")
    connection.putheader("transfer-encoding", "chunked")
    connection.endheaders()
    try:
        for _ in range(demo_page.MAX_BODY_BYTES // 2**16 + 2):
            connection.send(b"10000\r\n" + b" " * 2**16 + b"\r\n")
    except OSError:
        pass  # the server hangs up before the end
    else:
        assert connection.getresponse().status == 413
    connection.close()


def test_a_file_that_is_too_large_is_not_stored(model: DemoModel, serve: Serve, tmp_path: Path) -> None:
    address = serve(model)
    assert upload(address, b"a" * (MAX_FILE_BYTES + 1))[0] == 413
    assert not list((tmp_path / "files").rglob("a.csv"))


def test_a_full_queue_refuses_and_the_rest_is_scored_one_by_one(
    model: DemoModel,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    reliability: Callable[[str, int, int, int], None],
) -> None:
    monkeypatch.setitem(demo_gate.MAX_REQUESTS, "POST", 1_000)
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
            ValueError, match=f"`server_port`: cannot serve on port {port} of 127.0.0.1 .* Give another"
        ):
            demo_page.launch_page(
                demo_page.build_page(model), server_name="127.0.0.1", server_port=port, share=False, quiet=True
            )


def test_proxies_must_be_named(model: DemoModel, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    page = demo_page.build_page(model)
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    message = r"`FORWARDED_ALLOW_IPS` is '\*', which lets each client choose .* Name the addresses of your proxies"
    with pytest.raises(ValueError, match=message):
        demo_page.launch_page(page, server_name="127.0.0.1", server_port=None, share=False, quiet=True)


@pytest.mark.parametrize(("proxies", "last"), [(None, 429), ("127.0.0.1", 404)])
def test_a_client_is_counted_under_an_address_that_it_cannot_make_up(
    model: DemoModel, serve: Serve, monkeypatch: pytest.MonkeyPatch, proxies: str | None, last: int
) -> None:
    if proxies:
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", proxies)
    address = serve(model)
    monkeypatch.setitem(demo_gate.MAX_REQUESTS, "GET", 60)
    monkeypatch.setattr(demo_gate, "monotonic", lambda: 0.0)
    statuses = [request(address, "GET", "/none", x_forwarded_for=f"192.0.2.{client}")[0] for client in range(61)]
    assert statuses[0] == 404
    assert statuses[-1] == last


def test_what_is_one_client() -> None:
    hosts = [
        "192.0.2.1",
        "::ffff:192.0.2.1",
        "2001:db8::1",
        "2001:db8::ffff:1",
        "2001:db8:0:1::1",
        "fe80::1%eth0",
        "::1",
        "x",
        "",
    ]
    clients = [
        "192.0.2.1",
        "192.0.2.1",
        "2001:db8::/64",
        "2001:db8::/64",
        "2001:db8:0:1::/64",
        "fe80::/64",
        "::/64",
        "x",
        "",
    ]
    assert [demo_gate.client_of({"client": (host, 1)}) for host in hosts] == clients
    assert demo_gate.client_of({"client": None}) == ""


def test_a_minute_later_a_client_may_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = demo_gate.Gate(None)
    limit = demo_gate.MAX_REQUESTS["POST"]
    allowed = []
    for now in (60.0, 119.0, 120.0):
        monkeypatch.setattr(demo_gate, "monotonic", lambda now=now: now)
        allowed.append(sum(gate._allows("192.0.2.1", method) for method in ["POST", "MADE-UP"] * limit))
    assert allowed == [limit, 0, limit]


def test_the_command_keeps_files_in_a_folder_of_its_own(model: DemoModel, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRADIO_TEMP_DIR", "GRADIO_ANALYTICS_ENABLED"):
        monkeypatch.setenv(name, "")
    folders: list[Path] = []

    def launch(page: Any, **options: Any) -> None:
        folders.append(Path(os.environ["GRADIO_TEMP_DIR"]))
        (folders[0] / "upload").mkdir()

    monkeypatch.setattr(demo, "load_demo_model", lambda *args: model)
    monkeypatch.setattr(demo_page, "launch_page", launch)
    monkeypatch.setattr(demo_page.gr.Blocks, "block_thread", lambda page: None)
    demo.main(["--model_name_or_path", "tiny"])
    assert [folder.exists() for folder in folders] == [False]


def test_connections_have_a_limit(
    model: DemoModel, serve: Serve, pages: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_page, "MAX_CONNECTIONS", 4)
    address = serve(model)
    held = [socket.create_connection((pages[0].server_name, pages[0].server_port)) for _ in range(4)]
    while len(pages[0].server.server_state.connections) < len(held):
        time.sleep(0.01)
    assert request(address, "GET", "/robots.txt")[0] == 503
    for connection in held:
        connection.close()


def test_uploads_have_a_quota(model: DemoModel, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    address = serve(model)
    pairs = b"sentence1,sentence2\na,b\n"
    status, answer = upload(address, pairs)
    assert status == 200
    file = {"path": json.loads(answer)[0], "meta": {"_type": "gradio.FileData"}}
    assert call(address, ON_FILE, file, "", "")["success"]
    monkeypatch.setattr(demo_gate, "MAX_STORED_BYTES", 2 * demo_gate.MAX_UPLOAD_BYTES)
    assert upload(address, pairs) == (507, demo_gate.FULL)
    assert call(address, ON_FILE, file, "", "")["success"]  # which is sure of its room
    monkeypatch.setattr(demo_gate, "MAX_STORED_BYTES", demo_gate.MAX_UPLOAD_BYTES)
    assert call(address, ON_FILE, file, "", "")["output"]["error"] == demo_gate.FULL
    assert call(address, ON_TWO, "a", "b")["success"]


def test_nothing_that_is_sent_stays(model: DemoModel, serve: Serve, pages: list[Any], tmp_path: Path) -> None:
    route_utils = importlib.import_module("gradio.route_utils")
    address = serve(model)
    pairs = b"sentence1,sentence2\na,b\n"
    path = json.loads(upload(address, pairs)[1])[0]
    assert call(address, ON_FILE, {"path": path, "meta": {"_type": "gradio.FileData"}}, "", "")["success"]
    assert upload(address, pairs, field="other") == (200, "[]")  # which Gradio stores and forgets
    files = tmp_path / "files"
    assert len([path for path in files.rglob("*") if path.is_file()]) == 3
    demo_gate.delete_leftovers(files, 60)
    assert len([path for path in files.rglob("*") if path.is_file()]) == 3
    route_utils.delete_files_created_by_app(pages[0], None)  # as Gradio does every ten minutes
    assert len([path for path in files.rglob("*") if path.is_file()]) == 1
    demo_gate.delete_leftovers(files, 0)
    demo_gate.delete_leftovers(files, 0)
    assert list(files.iterdir()) == []


def test_a_visit(
    model: DemoModel, serve: Serve, looked_up: list[str], open_browser: Callable[[], AbstractContextManager[Any]]
) -> None:
    expect = importlib.import_module("playwright.sync_api").expect
    address = serve(model)
    requested: list[str] = []
    refused: list[str] = []
    with open_browser() as browser:
        visit = browser.new_page()
        visit.on("request", lambda request: requested.append(request.url))
        visit.on("response", lambda response: refused.extend([response.url] if response.status >= 400 else []))
        visit.goto(f"http://{address}/")

        expect(visit.locator("header .lines")).to_have_text(describe_model(model))
        expect(visit.get_by_text(describe_limits())).to_be_visible()
        visit.get_by_label("First sentence").fill(INJECTED)
        visit.get_by_label("Second sentence").fill("a dog")
        visit.get_by_role("button", name="Score", exact=True).click()
        scores = score_two(model, INJECTED, "a dog")
        result = visit.get_by_role("region", name="Result")
        expect(result.locator(".headline")).to_have_text(f"{shown_score(scores['score'])} {scores['grade']}")
        expect(result.locator(".ticks span")).to_have_text(GRADES)
        expect(result.get_by_text(f"Cosine {shown_score(scores['cosine'])}")).to_be_visible()

        visit.get_by_role("tab", name="A list").click()
        sentences = ["the big house", INJECTED, "**a dog**", "${window.injected=1}", "{{value}}"]
        visit.get_by_label("Query").fill(f"the cat {INJECTED}")
        visit.get_by_label("Sentences, one per line").fill("\n".join(sentences))
        visit.get_by_role("button", name="Rank").click()
        ranked = rank(model, f"the cat {INJECTED}", "\n".join(sentences))
        rows = visit.get_by_role("region", name="Ranking")
        expect(rows.locator(".sentence")).to_have_text([row["sentence"] for row in ranked])
        expect(rows.locator(".value")).to_have_text([shown_score(row["score"]) for row in ranked])
        expect(rows.get_by_text("Ranked by score")).to_contain_text(INJECTED)

        visit.get_by_role("tab", name="A file").click()
        dropped = visit.get_by_role("tabpanel").get_by_test_id("file-upload").last
        name = "<img src=x onerror=window.injected=1>.csv"
        columns = [INJECTED, "other"]
        dropped.set_input_files({"name": name, "mimeType": "text/csv", "buffer": csv_bytes([columns, ["=1+1", "a"]])})
        expect(visit.get_by_text("<img src=x onerror=window.injected=1>")).to_be_visible()
        visit.get_by_role("button", name="Score the file").click()
        expect(visit.get_by_test_id("toast-text")).to_contain_text("cannot tell which of the columns ['<img src=x")
        visit.get_by_label("--sentence1_column").fill(INJECTED)
        visit.get_by_label("--sentence2_column").fill("other")
        visit.get_by_role("button", name="Score the file").click()
        with visit.expect_download() as download:
            visit.locator("a[download='scores.csv']").click()
        scored = list(csv.DictReader(Path(download.value.path()).open(encoding="utf-8", newline="")))
        assert [row["sentence1"] for row in scored] == ["'=1+1"]
        assert float(scored[0]["score"]) == pytest.approx(score_two(model, "=1+1", "a")["score"], abs=2e-6)

        assert visit.evaluate("window.injected") is None
    assert {urlsplit(url).netloc for url in requested if not url.startswith(("blob:", "data:"))} == {address}
    assert refused == []
    assert looked_up == []


def test_an_example_fills_the_boxes_without_a_request(
    model: DemoModel, serve: Serve, open_browser: Callable[[], AbstractContextManager[Any]]
) -> None:
    expect = importlib.import_module("playwright.sync_api").expect
    address = serve(model)
    with open_browser() as browser:
        visit = browser.new_page(viewport={"width": 390, "height": 844})
        visit.goto(f"http://{address}/")
        visit.get_by_role("button", name="Score", exact=True).click()
        expect(visit.get_by_test_id("toast-text")).to_contain_text("`First sentence` is empty")  # all is loaded
        requested: list[str] = []
        visit.on("request", lambda request: requested.append(request.url))
        for name, texts in demo_page.EXAMPLE_PAIRS.items():
            visit.get_by_role("button", name=f"{name} pair", exact=True).click()
            for side, text in zip(("First", "Second"), texts, strict=True):
                expect(visit.get_by_label(f"{side} sentence")).to_have_value(text)
        visit.get_by_role("tab", name="A list").click()
        visit.get_by_role("button", name="Example list").click()
        expect(visit.get_by_label("Query")).to_have_value(demo_page.EXAMPLE_QUERY)
        expect(visit.get_by_label("Sentences, one per line")).to_have_value("\n".join(demo_page.EXAMPLE_LIST))
        assert requested == []

        visit.get_by_role("button", name="Rank").click()
        expect(visit.locator("ol.ranked li")).to_have_count(len(demo_page.EXAMPLE_LIST))
        visit.get_by_role("button", name="Example list").click()
        expect(visit.locator("ol.ranked")).to_have_count(0)  # the result of other sentences
        assert visit.evaluate("document.documentElement.scrollWidth") == 390


def test_a_request_for_an_example_computes_nothing(model: DemoModel, serve: Serve) -> None:
    asked: list[list[str]] = []

    def scorer(first: list[str], second: list[str]) -> dict[str, np.ndarray]:
        asked.append(first)
        return model.scorer(first, second)

    address = serve(DemoModel(model.name, model.config, scorer, model.tokenizer))
    for function in EXAMPLES:
        for data in ([], ["a", "b"]):
            assert call(address, function, *data)["output"] == {"error": None}
    assert asked == []
    assert call(address, ON_TWO, "a", "b")["success"]
    assert asked == [["a"]]


@pytest.mark.parametrize(("scheme", "shade"), [pytest.param("light", 0, marks=pytest.mark.slow), ("dark", 1)])
def test_the_page_has_the_colours_of_the_report(
    model: DemoModel,
    serve: Serve,
    open_browser: Callable[[], AbstractContextManager[Any]],
    scheme: str,
    shade: int,
) -> None:
    address = serve(model)
    with open_browser() as browser:
        visit = browser.new_page(color_scheme=scheme)
        visit.goto(f"http://{address}/")
        visit.get_by_role("region", name="Result").wait_for()
        for element, name in (("body", "paper"), (".sts.card", "card"), ("label textarea", "card")):
            colour = visit.locator(element).first.evaluate("element => getComputedStyle(element).backgroundColor")
            hexadecimal = "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", colour)[:3])
            assert hexadecimal == PALETTE[name][shade]


def test_a_visitor_reads_why_a_request_is_refused(
    model: DemoModel,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    open_browser: Callable[[], AbstractContextManager[Any]],
) -> None:
    expect = importlib.import_module("playwright.sync_api").expect
    address = serve(model)
    with open_browser() as browser:
        visit = browser.new_page()
        visit.goto(f"http://{address}/")
        visit.get_by_role("tab", name="A file").click()
        monkeypatch.setattr(demo_gate, "MAX_STORED_BYTES", 0)
        large = {"name": "x.csv", "mimeType": "text/csv", "buffer": b"a" * MAX_FILE_BYTES}
        visit.get_by_role("tabpanel").get_by_test_id("file-upload").last.set_input_files(large)
        expect(visit.get_by_test_id("toast-text")).to_have_text(f"HTTP 507: {demo_gate.FULL}")
        visit.get_by_role("tab", name="Two sentences").click()
        monkeypatch.setitem(demo_gate.MAX_REQUESTS, "POST", 0)
        visit.get_by_role("button", name="Score", exact=True).click()
        expect(visit.get_by_text("Too many requests. Wait a minute, then try again.")).to_be_visible()


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
    assert str(PAGE_TEMPLATE.relative_to(ROOT)) in filter_repo_objects(files, allow_patterns=included)
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
