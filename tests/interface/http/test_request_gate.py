"""Hostile requests over plain sockets: each gets a 4xx and a sentence, on every route."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import select
import socket
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest

from interface.http import request_gate, unreadable_requests
from interface.http.caller_gate import set_caller
from interface.http.request_path import route_of
from interface.http.same_origin import ForeignOrigin, require_own_page
from interface.server.callers import Caller
from interface.server.rate_limits import PERSON_TURNS, CallerLimits
from lookahead_core import Settings
from tests.support.http_requests import http_request
from tests.support.requests_to_pages import PAGE

CALL = json.dumps({"text": "a", "k": 1, "depth": 1}).encode()
LOOKAHEAD, COMPONENT = "/api/lookahead", "/gradio_api/component_server"
PATHS = [LOOKAHEAD, COMPONENT, "/gradio_api/queue/join", "/gradio_api/run/lookahead", "/gradio_api/upload", "/"]
CLOSE = "Connection: close"
CHUNKED = "Transfer-Encoding: chunked"


@pytest.fixture(scope="module")
def component(address: str) -> int:
    """The number of the component that answers the page's requests."""
    components = http_request(address, "GET", "/config")[1]["components"]
    return next(one["id"] for one in components if "ask" in one["props"].get("server_fns", []))


def head(path: str, *headers: str, method: str = "POST", version: str = "1.1") -> bytes:
    lines = [f"{method} {path} HTTP/{version}", "Host: 127.0.0.1", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def chunks(body: bytes, size: int = 50_000) -> bytes:
    pieces = [body[place : place + size] for place in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""])


def sized(path: str, body: bytes, *headers: str, **options: str) -> bytes:
    return head(path, f"Content-Length: {len(body)}", *headers, **options) + body


def answer(url: str, pieces: Sequence[bytes], ends: bool = False) -> tuple[int, str]:
    """Status and content of what comes back; all is sent before anything is read, as most programs do it."""
    place = urlsplit(url)
    with socket.create_connection((str(place.hostname), int(place.port or 0)), timeout=30) as connection:
        for piece in pieces:
            connection.sendall(piece)
        if ends:
            connection.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response.status, response.read().decode()


LARGE = b'{"text": "' + b"x" * 8_000_000 + b'"}'
"""More than connections hold: who answers and closes before all of it is read cuts its sender off."""


@pytest.mark.parametrize("path", PATHS)
def test_a_too_large_body_is_read_and_refused_whether_chunked_or_not(
    address: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_gate, "MOST_BYTES", {"": 100_000})
    for request in (
        [sized(path, LARGE, CLOSE)],
        [head(path, CHUNKED, CLOSE), chunks(LARGE)],
        [sized(path, LARGE[:200_000], "Origin: https://evil.example")],
        [sized(path, LARGE[:200_000], method="PUT")],
        [sized(path, LARGE[:200_000], version="1.0")],
    ):
        status, text = answer(address, request)
        assert (status, json.loads(text)["detail"][:40]) == (413, "The request has more than 100,000 bytes:")


def test_the_limit_of_a_body_counts_all_its_parts_together(address: str) -> None:
    most = 1_000_000
    text = b'{"k": 1, "depth": 1, "text": "a"%s}'
    fits = text % (b" " * (most - len(text) + 2))
    assert len(fits) == most
    for size in (most, 100_000, 999):
        assert answer(address, [head(LOOKAHEAD, CHUNKED), chunks(fits, size)])[0] == 200
        assert answer(address, [head(LOOKAHEAD, CHUNKED), chunks(fits + b" ", size)])[0] == 413


def test_a_page_may_send_larger_bodies_than_a_call(address: str, component: int) -> None:
    given = {"page": PAGE, "number": 1, "revision": 1, "text": "a", "source": "x" * 5_000_000}
    status, news = http_request(address, "POST", COMPONENT, called(component, "ask", given))
    assert status == 200 and "100,000 are allowed" in news["sentence"]


def test_a_too_large_body_is_refused_before_a_client_with_expect_sends_it(address: str) -> None:
    for headers in ((), (CLOSE,)):
        request = head(LOOKAHEAD, "Expect: 100-continue", "Content-Length: 50000000", *headers)
        assert answer(address, [request])[0] == 413
    assert answer(address, [head(LOOKAHEAD, "Expect: 100-continue", f"Content-Length: {len(CALL)}"), CALL])[0] == 200


@pytest.mark.parametrize("headers", [(), (CLOSE,)], ids=["kept open", "closed"])
@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_ends_too_early_is_refused_after_a_timeout(
    address: str, path: str, headers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_gate, "BODY_TIMEOUT", 0.05)
    for request in (
        head(path, f"Content-Length: {len(CALL) + 1}", *headers) + CALL,
        head(path, CHUNKED, *headers) + b"5\r\nabcde\r\n",
    ):
        status, text = answer(address, [request])
        assert status == 408
        assert "right length" in json.loads(text)["detail"]


def test_a_body_that_comes_byte_by_byte_is_refused_after_a_while(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_gate, "BODY_SECONDS", 0.3)
    place = urlsplit(address)
    with socket.create_connection((str(place.hostname), int(place.port or 0)), timeout=30) as connection:
        connection.sendall(head(LOOKAHEAD, "Content-Length: 100000"))
        for _ in range(200):
            connection.sendall(b" ")
            if select.select([connection], [], [], 0.05)[0]:
                break
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert response.status == 408 and "took more than 0.3 seconds" in json.loads(response.read())["detail"]


def test_a_body_whose_next_part_is_always_there_is_refused_at_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also when a part arrives at the moment at which the time is over."""
    monkeypatch.setattr(request_gate, "BODY_SECONDS", 0.02)

    async def refused() -> list[Any]:
        loop, sent = asyncio.get_running_loop(), []
        leaves = loop.time() + 1

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(0)
            if loop.time() > leaves:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": b" ", "more_body": True}

        async def send(message: Any) -> None:
            sent.append(message)

        async def app(*_: Any) -> None:
            pytest.fail("The app is called only with a whole body.")

        headers = [(b"host", b"a"), (b"content-length", b"900000")]
        scope = {"type": "http", "method": "POST", "path": LOOKAHEAD, "headers": headers, "client": ("127.0.0.1", 1)}
        await request_gate.RequestGate(app)(scope, receive, send)
        return sent

    for _ in range(20):
        first, *rest = asyncio.run(refused())
        assert first["status"] == 408
        assert b"took more than 0.02 seconds" in rest[0]["body"]


def test_bodies_that_are_still_coming_have_a_limit_together(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_gate, "MOST_HELD", 1_500_000)
    half = head(LOOKAHEAD, "Content-Length: 1000000") + b" " * 900_000
    place = urlsplit(address)
    first = socket.create_connection((str(place.hostname), int(place.port or 0)), timeout=30)
    try:
        first.sendall(half)
        time.sleep(0.5)
        status, text = answer(address, [half])
        assert status == 503 and "receiving too much" in json.loads(text)["detail"]
    finally:
        first.close()
    for _ in range(100):
        if answer(address, [sized(LOOKAHEAD, CALL + b" " * 900_000)])[0] == 200:
            break
        time.sleep(0.05)
    else:
        pytest.fail("The bytes of a body that a client left still count.")
    monkeypatch.setattr(request_gate, "MOST_BYTES", {"": 100_000})
    for _ in range(3):
        assert answer(address, [sized(LOOKAHEAD, LARGE, CLOSE)])[0] == 413, "what is not kept does not count"


@pytest.mark.parametrize("limit", ["MOST_HELD", "MOST_ADDRESS_HELD"])
def test_bodies_of_requests_that_wait_for_their_turn_have_a_limit(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, addresses = b"x" * 400, ["10.0.0.1", "10.0.0.2"]
    monkeypatch.setattr(request_gate, limit, 1000)
    answers: list[tuple[str, int]] = []

    async def send_all() -> None:
        free, limits = asyncio.Event(), CallerLimits(Settings())

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await free.wait()
            assert (await receive())["body"] == body
            await send({"type": "http.response.start", "status": 200, "headers": []})

        gate = request_gate.RequestGate(app, limits)

        async def request(address: str) -> None:
            async def receive() -> Any:
                return {"type": "http.request", "body": body}

            async def send(message: Any) -> None:
                if message["type"] == "http.response.start":
                    answers.append((address, message["status"]))

            headers = [(b"content-length", b"400")]
            scope = {"type": "http", "method": "POST", "path": LOOKAHEAD, "headers": headers, "app": None}
            set_caller(scope, Caller(address, "one"))
            await gate(scope, receive, send)

        # As many requests of the person as are handled at once, whose bodies count no longer, and three that wait.
        first = [asyncio.create_task(request(addresses[0])) for _ in range(PERSON_TURNS + 3)]
        await asyncio.sleep(0.05)
        assert answers == [(addresses[0], 503)]
        # Another address has its own bytes, within those of all.
        others = [asyncio.create_task(request(addresses[1])) for _ in range(PERSON_TURNS + 1)]
        await asyncio.sleep(0.05)
        expected = 503 if limit == "MOST_HELD" else None
        assert [status for address, status in answers if address == addresses[1]] == ([503] * 5 if expected else [])
        free.set()
        await asyncio.gather(*first, *others)
        assert not gate._held[None] and not gate._held[addresses[0]]

    asyncio.run(send_all())
    assert [status for _, status in answers].count(503) == (6 if limit == "MOST_HELD" else 1)


MALFORMED: dict[str, list[bytes]] = {
    "wrong chunk": [head(LOOKAHEAD, CHUNKED), b"zz\r\nabc\r\n0\r\n\r\n"],
    "wrong chunk after a right one": [head(LOOKAHEAD, CHUNKED) + b"5\r\nabcde\r\n", b"zz\r\nabc\r\n"],
    "shorter than the body": [head(LOOKAHEAD, "Content-Length: 3"), CALL],
    "negative length": [head(LOOKAHEAD, "Content-Length: -1"), CALL],
    "length in words": [head(LOOKAHEAD, "Content-Length: many"), CALL],
    "two lengths": [head(LOOKAHEAD, "Content-Length: 3", "Content-Length: 5"), CALL],
    "unknown coding": [head(LOOKAHEAD, "Transfer-Encoding: gzip"), CALL],
    "no length": [head(LOOKAHEAD, CLOSE), CALL],
    "other bytes in the address": [b"POST /api/\xff HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"],
    "other bytes in the origin": [b"POST /api/lookahead HTTP/1.1\r\nHost: a\r\nOrigin: \xff\r\n\r\n"],
    "no host": [b"POST /api/lookahead HTTP/1.1\r\nContent-Length: 0\r\n\r\n"],
    "no HTTP": [b"\x16\x03\x01\x02\r\n\r\n"],
    "no HTTP, and long": [b"\x00" * 200_000],
    "a header that is too long": [head(LOOKAHEAD, "X: " + "y" * 200_000, "Content-Length: 0")],
    "an address that is too long": [head(f"{LOOKAHEAD}?" + "y" * 200_000, "Content-Length: 0")],
    "a body with GET": [sized(LOOKAHEAD, CALL, method="GET")],
    "a method that there is not": [sized(LOOKAHEAD, CALL * 10_000, CLOSE, method="BREW")],
}


@pytest.mark.parametrize("pieces", MALFORMED.values(), ids=MALFORMED)
def test_malformed_http_is_answered(address: str, pieces: list[bytes]) -> None:
    status, text = answer(address, pieces)
    assert 400 <= status < 500 and json.loads(text)["detail"]
    assert answer(address, [sized(LOOKAHEAD, CALL)])[0] == 200


@pytest.mark.parametrize("path", PATHS)
def test_an_incomplete_body_is_answered_without_a_traceback(
    address: str, path: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    for request in (sized(path, CALL)[:-3], head(path, CHUNKED) + b"5\r\nabcde\r\n", sized(path, LARGE)[:200_000]):
        status, text = answer(address, [request], ends=True)
        assert (status, json.loads(text)["detail"]) == (400, unreadable_requests.SENTENCE)
        place = urlsplit(address)
        with socket.create_connection((str(place.hostname), int(place.port or 0)), timeout=30) as connection:
            connection.sendall(request)  # and it is gone
    assert answer(address, [sized(LOOKAHEAD, CALL)])[0] == 200
    assert "Traceback" not in caplog.text + "".join(capfd.readouterr())


@pytest.mark.parametrize("sent", [b"", b"GET /api HT", sized(LOOKAHEAD, CALL), sized(LOOKAHEAD, CALL) * 3])
def test_a_client_that_disconnects_before_or_after_its_request_leaves_no_trace(
    address: str, sent: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    place = urlsplit(address)
    with socket.create_connection((str(place.hostname), int(place.port or 0)), timeout=30) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert not connection.recv(1000).startswith(b"HTTP/1.1 400")
    assert answer(address, [sized(LOOKAHEAD, CALL)])[0] == 200
    assert "Traceback" not in caplog.text + "".join(capfd.readouterr())


def test_requests_on_one_connection_are_answered_in_order(address: str) -> None:
    place = urlsplit(address)
    with socket.create_connection((str(place.hostname), int(place.port or 0)), timeout=30) as connection:
        connection.sendall(sized(LOOKAHEAD, CALL) + sized(LOOKAHEAD, b"{}") + sized(LOOKAHEAD, CALL))
        connection.sendall(b"\x00no HTTP\r\n\r\n")
        with connection.makefile("rb") as lines:
            found = lines.read()
    assert re.findall(rb"HTTP/1.1 (\d+)", found) == [b"200", b"400", b"200", b"400"]


def called(component: Any, name: Any, given: Any = None) -> dict[str, Any]:
    """The body by which a page's script calls a function of the server."""
    return {"component_id": component, "fn_name": name, "session_hash": "a-session", "data": given}


REQUEST = {"page": PAGE, "number": 1, "revision": 1, "text": "The sea", "k": 1, "depth": 1}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["text/plain", "application/json", "multipart/form-data; boundary=a"])
def test_pages_of_other_sites_reach_no_document(
    address: str, component: int, headers: dict[str, str], kind: str
) -> None:
    for path in (COMPONENT, f"{COMPONENT}/", "/gradio_api/upload"):
        body = called(component, "ask", REQUEST)
        status, found = http_request(address, "POST", path, body, **headers, **{"Content-Type": kind})
        assert (status, found["detail"][:20]) == (403, "Pages of other sites")


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_requests_without_a_preflight_reach_no_document(address: str, component: int, kind: str) -> None:
    body = called(component, "ask", REQUEST)
    status, found = http_request(address, "POST", COMPONENT, body, **{"Content-Type": kind})
    assert (status, found["detail"]) == (415, "The request must have the content type application/json.")


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON ; charset=utf-8"])
def test_the_servers_own_page_reaches_its_document(address: str, component: int, kind: str) -> None:
    for number, origin in enumerate((address.rstrip("/"), "http://localhost:1234")):
        body = called(component, "ask", REQUEST | {"page": f"page-{number}-of-{len(kind):016}"})
        status, news = http_request(address, "POST", COMPONENT, body, Origin=origin, **{"Content-Type": kind})
        assert status == 200 and news["state"] in ("thinking", "settled")


def test_behind_a_proxy_with_another_host_the_same_origin_is_believed(address: str, component: int) -> None:
    headers = {"Origin": "https://class.example", "Content-Type": "application/json"}
    for near, status in (("same-origin", 200), ("same-site", 403), ("cross-site", 403), ("none", 403)):
        body = called(component, "ask", REQUEST | {"page": f"page-behind-a-proxy-{status}"})
        assert http_request(address, "POST", COMPONENT, body, **headers, **{"Sec-Fetch-Site": near})[0] == status


@pytest.mark.parametrize(
    ("origin", "host", "near"),
    [
        ("http://localhost:8501", "127.0.0.1:7860", True),
        ("http://127.0.0.1", "localhost:7860", True),
        ("http://[::1]:1", "localhost", True),
        ("https://class.example", "class.example:7860", True),
        ("https://class.example", "CLASS.example", True),
        ("https://class.example", "other.example", False),
        ("https://class.example", "localhost", False),
        ("http://localhost", "class.example", False),
        ("null", "localhost", False),
        ("", "", False),
        ("http://", "", False),
        ("http://[", "localhost", False),
        ("http://localhost", "[", False),
    ],
)
def test_pages_of_the_same_host_and_of_this_computer_are_allowed(origin: str, host: str, near: bool) -> None:
    if near:
        require_own_page({"origin": origin, "host": host})
    else:
        with pytest.raises(ForeignOrigin):
            require_own_page({"origin": origin, "host": host})


def test_unknown_components_and_functions_get_a_sentence_and_no_traceback(
    address: str, component: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    known, other = component, "There is no such component"
    wrong: list[tuple[str, Any, int, str]] = [
        *(
            (COMPONENT, called(number, "ask"), 404, other)
            for number in (99_999, -1, 10**40, None, "11", 1.5, True, 0, [1])
        ),
        *(
            (COMPONENT, called(known, name), 404, other)
            for name in ("nothing", "__class__", "__init__", "", 7, None, ["ask"])
        ),
        (COMPONENT, {"component_id": known, "fn_name": "ask", "data": 1}, 400, "needs session_hash"),
        (COMPONENT, {"component_id": known, "fn_name": "ask", "session_hash": 7, "data": 1}, 400, "needs session_hash"),
        (COMPONENT, {"component_id": known, "fn_name": "ask", "session_hash": "a"}, 400, "needs session_hash"),
        (COMPONENT, [1], 400, "JSON object"),
        (COMPONENT, b"{", 400, "must be JSON"),
        (COMPONENT, b"[" * 100_000, 400, "must be JSON"),
        (COMPONENT, b"\xff\xfe", 400, "must be JSON"),
    ]
    for way in ("run", "api", "call", "call/v2"):
        wrong.append((f"/gradio_api/{way}/nothing", {"data": []}, 404, "The functions are beam_search, "))
        for number in (99, -1, 10**40, "0", 0.5, True):
            wrong.append((f"/gradio_api/{way}/lookahead", {"data": [], "fn_index": number}, 404, "The functions are "))
    for number in (99, -1, 10**40, "0", None, False):
        body = {"data": [], "fn_index": number, "session_hash": "a-session"}
        wrong.append(("/gradio_api/queue/join", body, 404, "The functions are "))
    for path, body, status, words in wrong:
        found, answered = http_request(address, "POST", path, body)
        assert found == status and words in answered["detail"], (path, body, answered)
        assert answered["detail"].endswith(".")
    assert "Traceback" not in caplog.text + "".join(capfd.readouterr())


def test_a_body_message_without_more_body_is_the_last_one() -> None:
    """The ASGI specification gives `more_body` the default False."""
    bodies: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        bodies.append((await receive())["body"])

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": CALL}

    async def send(message: Any) -> None:
        raise AssertionError("The request is refused.")

    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(CALL)).encode())]
    scope = {"type": "http", "method": "POST", "path": LOOKAHEAD, "headers": [(b"host", b"here"), *headers]}
    asyncio.run(request_gate.RequestGate(app)(scope, receive, send))
    assert bodies == [CALL]


def test_gradios_own_errors_and_odd_addresses_get_a_sentence_and_no_traceback(
    address: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    for method, path, body in (
        ("POST", "/gradio_api/call/v2/lookahead", {"text": "a", "nothing": 1}),
        ("GET", "/static/" + "x" * 500, None),
        ("GET", "/gradio_api/heartbeat/a%00b", None),
        ("GET", "/static/%0d%0aSet-Cookie:%20a=b", None),
    ):
        status, found = http_request(address, method, path, body)
        assert status in (400, 404) and found["detail"], path
    assert "Traceback" not in caplog.text + "".join(capfd.readouterr())


def test_routes_are_recognised_behind_a_proxys_prefix() -> None:
    for path, root, route in (
        ("/api/lookahead", "", "/api/lookahead"),
        ("/api/lookahead/", "", "/api/lookahead"),
        ("/space/api/lookahead", "/space", "/api/lookahead"),
        ("/space/api/lookahead", "/space/", "/api/lookahead"),
        ("/api/lookahead", "/space", "/api/lookahead"),
        ("/spaced/api", "/space", "/spaced/api"),
        ("/", "", "/"),
        ("/space/", "/space", "/"),
    ):
        assert route_of({"path": path, "root_path": root}) == route
