"""Sends random requests to a server and collects what went wrong: a 5xx without a sentence, a traceback, a lockout."""

from __future__ import annotations

import http.client
import io
import json
import logging
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from interface.server.error_sentences import UNEXPECTED
from tests.fuzz.endpoints import ENDLESS, Endpoint
from tests.fuzz.requests import HostileRequest, request_to

PATIENCE = 120
"""Seconds to wait for a response; a server that needs longer has failed."""
SENTENCE = UNEXPECTED[:32].encode()
LOGGERS = ("", "uvicorn", "uvicorn.error", "asyncio")


@dataclass
class Report:
    """What a campaign has found."""

    statuses: Counter[int] = field(default_factory=Counter)
    endpoints: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    """For each request that failed: what was wrong, and the request."""

    @property
    def summary(self) -> str:
        counts = ", ".join(f"{count} × {status}" for status, count in sorted(self.statuses.items()))
        return f"{sum(self.statuses.values())} requests to {len(self.endpoints)} endpoints: {counts}"


class _Log(logging.Handler):
    """Keeps log records with a traceback, and all errors."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self.lines.append(logging.Formatter("%(name)s %(message)s").format(record))


class _Copy(io.TextIOBase):
    """Writes to a stream and keeps what was written."""

    def __init__(self, stream: object) -> None:
        self.text = ""
        self._stream = stream

    def write(self, text: str) -> int:
        self.text += text
        return len(text)


@contextmanager
def watched() -> Iterator[list[str]]:
    """Collect tracebacks and errors that are logged or written to stderr; the list has them at the end."""
    found: list[str] = []
    log, copy, before = _Log(), _Copy(sys.stderr), sys.stderr
    for name in LOGGERS:
        logging.getLogger(name).addHandler(log)
    sys.stderr = copy
    try:
        yield found
    finally:
        sys.stderr = before
        for name in LOGGERS:
            logging.getLogger(name).removeHandler(log)
        found += dict.fromkeys(log.lines)  # several loggers may pass on the same record
        if "Traceback" in copy.text:
            found.append(copy.text[copy.text.index("Traceback") :][:6000])


def send(url: str, request: HostileRequest, source: str = "127.0.0.1") -> tuple[int, bytes]:
    """Return status and content of a response; of an endless stream only the beginning."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        str(parts.hostname), parts.port, timeout=PATIENCE, source_address=(source, 0)
    )
    try:
        connection.request(request.endpoint.method, request.path, request.body, request.headers)
        response = connection.getresponse()
        stream = response.headers.get_content_type() == "text/event-stream"
        if stream and request.endpoint.path.startswith(ENDLESS):
            return response.status, b""
        if stream:
            connection.sock.settimeout(5)
            with suppress(TimeoutError):
                return response.status, response.read()
            return response.status, b""
        return response.status, response.read()
    finally:
        connection.close()


def run(url: str, endpoints: list[Endpoint], seed: int, count: int, threads: int = 4) -> Report:
    """Send `count` random requests to each endpoint, from several threads at once, and return the report."""
    report, lock, dice = Report(), threading.Lock(), random.Random(seed)
    orders = [endpoint for endpoint in endpoints for _ in range(count)]
    dice.shuffle(orders)

    def part(number: int) -> None:
        own, sent = random.Random(f"{seed} {number}"), []
        for endpoint in orders[number::threads]:
            request = request_to(endpoint, own, sent)
            sent.append(request)
            problem = None
            try:
                status, content = send(url, request)
            except ValueError:
                continue  # this client refuses to send such a request
            except (OSError, http.client.HTTPException) as error:
                status, content, problem = 0, b"", f"no response ({error!r})"
            problem = problem or problem_of(status, content)
            with lock:
                report.statuses[status] += 1
                report.endpoints.add(endpoint.name)
                if problem:
                    report.failures.append(f"{problem}: {request.shown}")

    with watched() as logged, ThreadPoolExecutor(threads) as pool:
        list(pool.map(part, range(threads)))
    report.failures += [f"logged: {line}" for line in logged]
    return report


def problem_of(status: int, content: bytes) -> str | None:
    """Return what is wrong with a response; None if nothing is."""
    if b"Traceback (most recent" in content or b'File "/' in content:
        return f"{status} with a traceback {content[:300]!r}"
    if SENTENCE in content:
        return f"{status} with the sentence for unexpected errors"
    if status < 500:
        return None
    try:
        sentence = json.loads(content).get("detail", "")
    except (ValueError, AttributeError):
        sentence = ""
    return None if status == 503 and sentence.endswith(".") else f"{status} {content[:300]!r}"
