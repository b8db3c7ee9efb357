"""Limits on what one client may send to a web page: how often, and how much at once."""

import ipaddress
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.responses import JSONResponse
    from starlette.types import ASGIApp, Receive, Scope, Send

MAX_CLIENTS = 10_000  # remembered


class RateLimit:
    """
    A number of calls that each client may make at once, and gets back evenly over some time (a token bucket).

    Of more clients than `max_clients`, those that called longest ago are forgotten: memory is bounded whoever calls.

    Args:
        calls: how many, at least 1.
        seconds: in how many seconds.
        max_clients: how many clients are remembered.
        clock: seconds from some beginning on.
    """

    def __init__(
        self,
        calls: int,
        seconds: float,
        max_clients: int = MAX_CLIENTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._calls, self._seconds, self._max_clients, self._clock = calls, seconds, max_clients, clock
        self._left: dict[str, tuple[float, float]] = {}  # calls left, and when; last caller last

    @property
    def num_clients(self) -> int:
        """How many clients are remembered."""
        return len(self._left)

    def allows(self, client: str) -> bool:
        """Whether the client may call now; if so, the call is counted."""
        now = self._clock()
        left, since = self._left.pop(client, (float(self._calls), now))
        left = min(self._calls, left + (now - since) * self._calls / self._seconds)
        is_allowed = left >= 1
        self._left[client] = (left - is_allowed, now)
        if len(self._left) > self._max_clients:
            del self._left[next(iter(self._left))]
        return is_allowed


class RequestLimits:
    """
    ASGI middleware that refuses what clients send too often or too much of, before anything reads it.

    Args:
        app: the application behind it.
        rate_limit: of each client's POST requests.
        max_body_bytes: longest body of a request that states its length.
    """

    def __init__(self, app: "ASGIApp", rate_limit: RateLimit, max_body_bytes: int) -> None:
        self._app, self._rate_limit, self._max_body_bytes = app, rate_limit, max_body_bytes

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Handles one request, whose client is where it comes from as far as the server's trusted proxies tell."""
        refusal = self._refusal(scope) if scope["type"] == "http" and scope["method"] == "POST" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, scope: "Scope") -> "JSONResponse | None":
        from starlette.responses import JSONResponse  # of the extra `demo`

        if not self._rate_limit.allows(client_network(scope["client"][0] if scope.get("client") else "")):
            return JSONResponse({"detail": "Too many requests. Wait a minute, then try again."}, status_code=429)
        length = dict(scope["headers"]).get(b"content-length", b"")
        if length.isdigit() and int(length) > self._max_body_bytes:
            return JSONResponse({"detail": "The request is too long. Send less at once."}, status_code=413)
        return None


def client_network(host: str) -> str:
    """What is one client: an IPv4 address, or the 64-bit network of an IPv6 address, all of which one may have."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return host if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))
