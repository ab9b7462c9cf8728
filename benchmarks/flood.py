"""How long a person waits while another address floods the server with requests."""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support import browser as browsers

NAME = "flood"
HELP = "Measure a person's waiting time before and during a flood of requests from another address."
QUIET, FLOOD = "127.0.0.1", "127.0.0.2"
"""Addresses of this computer from which the two send: Linux has all of 127.0.0.0/8."""
COMPONENT = "/gradio_api/component_server"
PATIENCE = 60.0
"""Seconds that the flood waits for an answer."""
TEXT = "The old lighthouse keeper climbed the stairs again and looked out over the sea. He had waited all night for it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand to its parser."""
    parser.add_argument("--requests", type=int, default=10_000, help="requests of the flood (10000)")
    parser.add_argument("--connections", type=int, default=64, help="connections of the flood (64)")
    parser.add_argument("--seconds", type=int, default=240, help="seconds after which the flood is ended (240)")
    parser.add_argument("--views", type=int, default=20, help="views of the quiet person before the flood (20)")
    parser.add_argument("--model", help="what to load in place of the default model")


def main(arguments: argparse.Namespace) -> int:
    """Measure, print the times and the statuses of the flood; return 0."""
    model = ["--model", arguments.model] if arguments.model else []
    with tempfile.TemporaryDirectory() as folder, browsers.app(Path(folder) / "log", *model) as app:
        app.wait_for("Ready:", 600)
        quiet = QuietPerson(app.url)
        for _ in range(3):
            quiet.view()
        before = [quiet.view() for _ in range(arguments.views)]
        context = multiprocessing.get_context("spawn")
        results: Any = context.Queue()
        options = (app.url, quiet.component, arguments.requests, arguments.connections, arguments.seconds, results)
        process = context.Process(target=_flood, args=options, daemon=True)
        process.start()
        results.get()  # it begins
        during = []
        while process.is_alive() and results.empty():
            during.append(quiet.view())
        sent = results.get()
        statuses, seconds = results.get()
        process.join()
        after = [quiet.view() for _ in range(arguments.views)]
        errors = app.said.count("Traceback")
    print(f"Flood: {sum(statuses.values())} requests in {sent:.0f} s, the last answer after {seconds:.0f} s:")
    print(f"statuses {dict(sorted(statuses.items()))}; 0 is no answer within {PATIENCE:g} s")
    for name, times in (("before", before), ("during", during), ("after", after)):
        print(f"{name:7} median {statistics.median(times):.3f} s, longest {max(times):.3f} s, {len(times)} views")
    print(f"Ratio of medians, during to before: {statistics.median(during) / statistics.median(before):.2f}")
    print(f"Tracebacks in the log: {errors}")
    return 0


class QuietPerson:
    """A page whose person types a word, waits for the view, and types on."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._number = 0
        self._page = f"a-quiet-page-{random.getrandbits(64):x}"
        components = self._send("GET", "/config")["components"]
        functions = [(one["id"], one["props"].get("server_fns") or []) for one in components]
        self.component = next(number for number, names in functions if "ask" in names and "tree" in names)

    def view(self) -> float:
        """Return the seconds until the view of a new text is complete, after a pause."""
        time.sleep(0.3)
        self._number += 1
        text = TEXT[: 40 + self._number * 7 % 60] + f" {self._number}"
        began = time.perf_counter()
        request = {"page": self._page, "number": self._number, "revision": self._number, "text": text, "ahead": False}
        news = self._call("ask", request | {"k": 5, "depth": 5})
        while news.get("state") == "thinking":
            known = {"page": self._page, "number": self._number, "seen": news["seen"]}
            news = self._call("more", known)
        if news.get("state") != "settled":
            raise RuntimeError(f"The quiet person got {news}.")
        return time.perf_counter() - began

    def _call(self, function: str, data: dict[str, Any]) -> dict[str, Any]:
        return self._send("POST", COMPONENT, _call_body(self.component, function, data))

    def _send(self, method: str, path: str, body: bytes | None = None) -> Any:
        connection = http.client.HTTPConnection(
            str(self._parts.hostname), self._parts.port, timeout=120, source_address=(QUIET, 0)
        )
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


def _call_body(component: int, function: str, data: dict[str, Any]) -> bytes:
    fields = {"component_id": component, "fn_name": function, "session_hash": "a-session", "data": data}
    return json.dumps(fields).encode()


def _flood(url: str, component: int, count: int, connections: int, seconds: int, results: Any) -> None:
    """Send the flood, on processors that have nothing else to do: a real one does not run on the server's machine.

    Puts into `results` None at its beginning, the seconds until its last request is sent, and then its statuses and the
    seconds until the last answer.
    """
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    statuses: Counter[int] = Counter()
    began = time.perf_counter()
    results.put(None)

    def put_time() -> None:
        results.put(time.perf_counter() - began)

    asyncio.run(_send_all(url, component, count, connections, began + seconds, statuses, put_time))
    results.put((statuses, time.perf_counter() - began))


async def _send_all(
    url: str,
    component: int,
    count: int,
    connections: int,
    end: float,
    statuses: Counter[int],
    on_sent: Callable[[], None],
) -> None:
    """Send `count` requests over so many connections, none after `end`; call `on_sent` when no more are sent."""
    dice = random.Random(1)

    def numbers() -> Iterator[int]:
        for number in range(count):
            if time.perf_counter() > end:
                break
            yield number
        on_sent()

    left = numbers()

    async def one_connection() -> None:
        for number in left:
            try:
                statuses[await asyncio.wait_for(_exchange(url, _request(component, number, dice)), PATIENCE)] += 1
            except (OSError, asyncio.TimeoutError, ValueError, IndexError):
                statuses[0] += 1

    await asyncio.gather(*(one_connection() for _ in range(connections)))


def _request(component: int, number: int, dice: random.Random) -> bytes:
    """Return a request of the flood: views of made-up pages, long calls, and pages."""
    kind = dice.random()
    if kind < 0.45:
        page = f"a-page-of-the-flood-{dice.randrange(60):04}"
        data = {"page": page, "number": number, "revision": number, "text": f"{TEXT} {number}", "k": 20, "depth": 40}
        path, body = COMPONENT, _call_body(component, "ask", data)
    elif kind < 0.9:
        path = "/api/lookahead"
        body = json.dumps({"text": f"{number} {TEXT * 10}", "k": 20, "depth": 40}).encode()
    else:
        return b"GET /config HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def _exchange(url: str, request: bytes) -> int:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, local_addr=(FLOOD, 0))
    try:
        writer.write(request)
        await writer.drain()
        answer = await reader.read()
        return 429 if b'"retry_after":' in answer else int(answer.split(b" ", 2)[1])  # a page is refused in its news
    finally:
        writer.close()
