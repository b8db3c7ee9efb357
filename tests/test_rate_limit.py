"""Each client may call so often and no more; memory stays bounded; refusals come before anything is read."""

import asyncio
import json
from typing import Any

import pytest

from sts_regression.rate_limit import RateLimit, RequestLimits, client_network

responses = pytest.importorskip("starlette.responses", reason="the demo extra is not installed")


class Clock:
    """Seconds that pass only when told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def send(limits: RequestLimits, host: str, method: str = "POST", **headers: str) -> tuple[int, Any]:
    """Status of the answer to a request without a body, and the answer."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        raise AssertionError("the body was read")

    async def keep(message: Any) -> None:
        sent.append(message)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "client": (host, 1), "headers": raw}
    asyncio.run(limits(scope, receive, keep))
    return sent[0]["status"], sent[1]["body"]


def make_limits(rate_limit: RateLimit) -> RequestLimits:
    return RequestLimits(responses.PlainTextResponse("scored"), rate_limit, max_body_bytes=10)


def test_calls_come_back_one_by_one() -> None:
    clock = Clock()
    limit = RateLimit(3, seconds=60, clock=clock)
    assert [limit.allows("a") for _ in range(5)] == [True, True, True, False, False]
    clock.now += 19
    assert not limit.allows("a")
    clock.now += 1.5  # a third of the time gives back a third of the calls
    assert [limit.allows("a") for _ in range(2)] == [True, False]
    clock.now += 1000
    assert [limit.allows("a") for _ in range(4)] == [True, True, True, False]


def test_clients_do_not_share_their_calls() -> None:
    limit = RateLimit(1, seconds=60)
    assert limit.allows("a")
    assert not limit.allows("a")
    assert limit.allows("b")


def test_the_clients_that_called_longest_ago_are_forgotten() -> None:
    clock = Clock()
    limit = RateLimit(1, seconds=60, max_clients=3, clock=clock)
    for client in ("a", "b", "a", "c", "d"):
        limit.allows(client)
    assert limit.num_clients == 3
    assert not limit.allows("a")  # called again after b
    assert limit.allows("b")
    for number in range(100):
        limit.allows(str(number))
    assert limit.num_clients == 3


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_what_is_one_client(host: str, client: str) -> None:
    assert client_network(host) == client


def test_a_client_that_calls_too_often_is_told_so() -> None:
    limits = make_limits(RateLimit(1, seconds=60))
    assert send(limits, "203.0.113.7") == (200, b"scored")
    status, body = send(limits, "203.0.113.7")
    assert status == 429
    assert json.loads(body) == {"detail": "Too many requests. Wait a minute, then try again."}
    assert send(limits, "203.0.113.8")[0] == 200
    assert send(limits, "203.0.113.7", method="GET")[0] == 200  # costs nothing: pages, pictures, answers


def test_a_body_that_is_too_long_is_refused_unread() -> None:
    limits = make_limits(RateLimit(10, seconds=60))
    assert send(limits, "203.0.113.7", content_length="10")[0] == 200
    status, body = send(limits, "203.0.113.7", content_length="11")
    assert (status, json.loads(body)) == (413, {"detail": "The request is too long. Send less at once."})


def test_what_is_no_request_passes() -> None:
    passed = []

    async def app(scope: Any, *channels: Any) -> None:
        passed.append(scope["type"])

    limits: Any = RequestLimits(app, RateLimit(1, 60), 10)
    asyncio.run(limits({"type": "lifespan"}, None, None))
    assert passed == ["lifespan"]
