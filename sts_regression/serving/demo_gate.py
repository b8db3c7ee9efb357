"""Limits of the web page for strangers: the open routes, the number of requests, and the stored bytes.

Every other route is "404 Not Found". Gradio has some eighty routes; some of them fetch addresses or write files.
"""

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ipaddress import IPv6Address, IPv6Network, ip_address
from pathlib import Path
from time import monotonic, time

from gradio.utils import get_upload_folder
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

FILE = "/gradio_api/file="
UPLOAD = "/gradio_api/upload"
# Routes that a browser needs, and that Gradio itself requests when it starts or has lost the connection.
OPEN_ROUTES = {
    "HEAD": re.compile("/"),
    "GET": re.compile(
        r"/|/config|/theme\.css|/favicon\.ico|/robots\.txt|/(assets|static)/.+"
        r"|/gradio_api/(startup-events|app_id|queue/data|upload_progress)"
    ),
    "POST": re.compile(f"/gradio_api/queue/join|{UPLOAD}"),
}
MAX_REQUESTS = {"HEAD": 60, "GET": 1_200, "POST": 60}  # of one client in a minute; a first visit needs some 60
MAX_ADDRESS_BYTES = 4_096

FILE_SECONDS = 3_600  # how long a file is kept
DELETION_SECONDS = 600  # between two searches for old files
MAX_STORED_BYTES = 2**28
MAX_UPLOAD_BYTES = 10 * 2**20  # on the disk for one request: Gradio takes a thousand files, each in its own folder
BLOCK_BYTES = 4_096  # the least size of a file or a folder on the disk
FULL = "The page has reached its file limit. Try again in an hour, or score sentences without a file."


class Gate:
    """ASGI middleware that refuses requests beyond the limits before anything reads them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._minute, self._requests = 0.0, Counter[tuple[str, str]]()
        self._uploads = 0  # under way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request. Its client is the address that the server or its trusted proxies report."""
        is_upload = scope["type"] == "http" and scope["path"] == UPLOAD
        self._uploads += is_upload
        try:
            answer: Response | None = self._refusal(scope) if scope["type"] == "http" else None
            if is_upload and answer is None and not await run_in_threadpool(has_room, self._uploads):
                async for _ in Request(scope, receive).stream():
                    pass  # browsers read the answer only after they have sent everything
                answer = PlainTextResponse(FULL, status_code=507)
            await (answer or self._app)(scope, receive, send)
        finally:
            self._uploads -= is_upload

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        if not self._allows(client_of(scope), scope["method"]):
            return JSONResponse({"detail": "Too many requests. Wait a minute, then try again."}, status_code=429)
        if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_ADDRESS_BYTES:
            return JSONResponse({"detail": "URI Too Long"}, status_code=414)
        if not is_open(scope["method"], scope["path"]):
            return JSONResponse({"detail": "Not Found"}, status_code=404)
        return None

    def _allows(self, client: str, method: str) -> bool:
        """Whether a client may make a request now. Requests are counted in memory that is freed every minute."""
        minute = monotonic() // 60
        if minute != self._minute:
            self._minute, self._requests = minute, Counter()
        if method not in MAX_REQUESTS:  # clients can invent methods
            method = "POST"
        self._requests[client, method] += 1
        return self._requests[client, method] <= MAX_REQUESTS[method]


def is_open(method: str, path: str) -> bool:
    """Whether strangers may use a route. A file must lie in the page's own folder, and not be another address."""
    if method == "GET" and path.startswith(FILE):
        file = Path(path.removeprefix(FILE))
        return ".." not in file.parts and file.is_relative_to(get_upload_folder())
    return method in OPEN_ROUTES and OPEN_ROUTES[method].fullmatch(path) is not None


def client_of(scope: Scope) -> str:
    """The client of a request: an IPv4 address, or the 64-bit network of an IPv6 address, which has one owner."""
    host = scope["client"][0] if scope.get("client") else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Network((int(address), 64), strict=False))
    return str(getattr(address, "ipv4_mapped", None) or address)


def has_room(uploads: int = 0) -> bool:
    """Whether there is room for this many uploads and the scores of one file."""
    return stored_bytes(Path(get_upload_folder())) + (uploads + 1) * MAX_UPLOAD_BYTES <= MAX_STORED_BYTES


def stored_bytes(folder: Path) -> int:
    """The least size on the disk of a folder with all its content."""
    total = 0
    for place, _, names in os.walk(folder):
        total += BLOCK_BYTES
        for name in names:
            with suppress(OSError):  # deleted or moved in the meantime
                total += max(BLOCK_BYTES, Path(place, name).lstat().st_size)
    return total


@asynccontextmanager
async def deleting_leftovers(app: ASGIApp) -> AsyncIterator[None]:
    """The lifespan of an application that calls [`delete_leftovers`] at intervals."""

    async def repeat() -> None:
        while True:
            await asyncio.sleep(DELETION_SECONDS)
            await run_in_threadpool(delete_leftovers, Path(get_upload_folder()), FILE_SECONDS + DELETION_SECONDS)

    task = asyncio.create_task(repeat())
    yield
    task.cancel()


def delete_leftovers(folder: Path, seconds: float) -> None:
    """
    Deletes files and empty folders that are older than the given number of seconds.

    Gradio deletes files that it gave to a component. It leaves behind aborted uploads, files with names that it does
    not read, and all their folders.
    """
    latest = time() - seconds
    for place, folders, names in os.walk(folder, topdown=False):
        for path in (Path(place, name) for name in (*names, *folders)):
            with suppress(OSError):  # in use, not empty, or already gone
                if path.lstat().st_ctime <= latest:
                    path.rmdir() if path.is_dir() else path.unlink()
