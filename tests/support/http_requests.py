"""Requests over plain HTTP to a page that runs in this process."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from lookahead_core import Model
from tests.support.browser import page_of

PATIENCE = 120
"""Seconds after which a wait is given up. It decides only when a failing test ends."""


@contextmanager
def served(model: Model, **options: Any) -> Iterator[str]:
    """The address of the page, run in this process with these options of `page_of`, once its model is loaded."""
    with page_of(lambda report: model, **options) as url:
        wait_until_ready(url)
        yield url


def wait_until_ready(url: str) -> None:
    """Wait until the page's model is loaded; fail after `PATIENCE` seconds."""
    end = time.monotonic() + PATIENCE
    while http_request(url, "POST", "/api/lookahead", {"text": "a"})[0] == 503:
        assert time.monotonic() < end
        time.sleep(0.05)


def http_request(url: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Send one request; return the status and the content of its response, parsed if it is JSON."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(method, path, content, {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    return response.status, json.loads(text) if text[:1] in "{[" else text
