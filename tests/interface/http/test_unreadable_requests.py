"""Malformed HTTP: the client gets an answer, and handlers that wait for the body are released."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from interface.http import unreadable_requests
from tests.support.browser import free_port

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
App = Callable[[Any, Any, Any], Awaitable[None]]


@asynccontextmanager
async def serving(app: App) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server of this app, as the page's server is."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", lifespan="off"))
    running = asyncio.ensure_future(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    unreadable_requests.answer_unreadable_requests(server)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        server.should_exit = True
        await running


async def refused(reader: asyncio.StreamReader) -> None:
    """Read an answer to its end: it says that there is no more."""
    head, _, content = (await asyncio.wait_for(reader.read(), 30)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"connection: close" in head
    assert json.loads(content) == {"detail": unreadable_requests.SENTENCE}


@pytest.fixture(autouse=True)
def _nothing_is_logged_but_that_it_is_no_http(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    assert {record.message for record in caplog.records} <= {"Invalid HTTP request received."}


def test_a_handler_that_waits_for_the_body_gets_a_disconnection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unreadable_requests, "LINGER", 600.0)
    heard: list[str] = []
    over = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while not heard or heard[-1] != "http.disconnect":
            heard.append((await receive())["type"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"nobody hears this"})
        over.set()

    async def talk() -> None:
        async with serving(app) as (reader, writer):
            writer.write(HEAD + b"5\r\nabcde\r\n")
            while not heard:
                await asyncio.sleep(0.01)
            writer.write(b"no number\r\n")
            await refused(reader)
            await asyncio.wait_for(over.wait(), 30)

    asyncio.run(talk())
    assert set(heard) == {"http.request", "http.disconnect"}


def test_bytes_after_the_answer_are_dropped() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("There is no request.")

    async def talk() -> None:
        async with serving(app) as (reader, writer):
            writer.write(b"\x00\r\n\r\n")
            await refused(reader)
            for _ in range(50):
                writer.write(b"\x00" * 100_000 + b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
                await writer.drain()

    asyncio.run(talk())


def test_an_unread_body_is_dropped() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        await go.wait()

    async def talk() -> None:
        async with serving(app) as (reader, writer):
            writer.write(HEAD + b"186a0\r\n" + b"x" * 100_000 + b"\r\nno number\r\n")
            writer.write(b"x" * 10_000_000)
            await asyncio.wait_for(writer.drain(), 30)
            await refused(reader)
            go.set()

    asyncio.run(talk())


def test_an_incomplete_body_after_an_answer_gets_no_second_answer() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def talk() -> bytes:
        async with serving(app) as (reader, writer):
            writer.write(HEAD + b"5\r\nabcde\r\n")
            first = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
            writer.write_eof()
            return first + await asyncio.wait_for(reader.read(), 30)

    found = asyncio.run(talk())
    assert found.startswith(b"HTTP/1.1 413") and found.count(b"HTTP/1.1") == 1


def test_a_refused_connection_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unreadable_requests, "LINGER", 0.05)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("There is no request.")

    async def talk() -> None:
        async with serving(app) as (reader, writer):
            writer.write(b"\x00\r\n\r\n")
            await refused(reader)
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(until_closed(writer), 30)

    asyncio.run(talk())


async def until_closed(writer: asyncio.StreamWriter) -> None:
    """Write on: what the other side has closed takes no more in the end."""
    while True:
        writer.write(b"\x00")
        await writer.drain()
        await asyncio.sleep(0.01)


def test_an_answer_that_has_begun_is_not_followed_by_another() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"10")]})
        await send({"type": "http.response.body", "body": b"12345", "more_body": True})
        begun.set()
        await go.wait()

    async def talk() -> bytes:
        async with serving(app) as (reader, writer):
            writer.write(HEAD + b"5\r\nabcde\r\n")
            await begun.wait()
            writer.write(b"no number\r\n")
            found = await asyncio.wait_for(reader.read(), 30)
            go.set()
            return found

    found = asyncio.run(talk())
    assert found.endswith(b"12345") and found.count(b"HTTP/1.1") == 1
