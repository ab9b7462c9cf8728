"""The page and its configuration are made once for an address, and for each request wherever they may differ."""

from __future__ import annotations

import asyncio
import http.client
import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from interface.http.page_cache import MOST_RESPONSES, PageCache
from lookahead_core import Model
from tests.support.browser import page_of


class CountingApp:
    """An ASGI app whose responses are numbered, with this status and these headers."""

    def __init__(self, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self.calls, self.status, self.headers = 0, status, headers

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.calls += 1
        await send({"type": "http.response.start", "status": self.status, "headers": list(self.headers)})
        await send({"type": "http.response.body", "body": str(self.calls).encode()})


def get(cache: PageCache, path: str = "/", **changes: Any) -> str:
    """The body of the response to a GET request."""
    gradio = SimpleNamespace(auth=changes.pop("auth", None), auth_dependency=changes.pop("auth_dependency", None))
    headers = [(name.encode(), value.encode()) for name, value in changes.pop("headers", {"host": "here"}).items()]
    scope = {"type": "http", "method": "GET", "path": path, "scheme": "http", "query_string": b"", "app": gradio}
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    asyncio.run(cache(scope | {"headers": headers} | changes, None, send))  # type: ignore[arg-type]
    return b"".join(message.get("body", b"") for message in messages).decode(errors="replace")


def test_the_page_and_its_configuration_are_made_once_each() -> None:
    cache = PageCache(app := CountingApp())
    assert [get(cache, path) for path in ("/", "/config", "/", "/config", "/config/")] == ["1", "2", "1", "2", "3"]
    assert app.calls == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"headers": {"host": "there"}},
        {"headers": {"host": "here", "x-forwarded-host": "there"}},
        {"headers": {"host": "here", "x-forwarded-proto": "https"}},
        {"headers": {"host": "here", "x-gradio-server": "http://there"}},
        {"scheme": "https"},
        {"root_path": "/below"},
        {"path": "/below/", "root_path": "/below"},
        {"server": ("there", 80)},
    ],
)
def test_a_request_at_another_address_has_a_response_of_its_own(changes: dict[str, Any]) -> None:
    cache = PageCache(CountingApp())
    assert [get(cache), get(cache, **changes), get(cache), get(cache, **changes)] == ["1", "2", "1", "2"]


@pytest.mark.parametrize(
    "changes",
    [
        {"query_string": b"deep_link=abc"},
        {"method": "HEAD"},
        {"method": "POST"},
        {"path": "/api/lookahead"},
        {"auth": {"ada": "secret"}},
        {"auth_dependency": print},
    ],
)
def test_what_may_differ_from_request_to_request_is_made_for_each(changes: dict[str, Any]) -> None:
    cache = PageCache(CountingApp())
    get(cache)
    assert [get(cache, **changes), get(cache, **changes), get(cache)] == ["2", "3", "1"]


@pytest.mark.parametrize(
    "app", [CountingApp(status=500), CountingApp(status=429), CountingApp(headers=((b"set-cookie", b"a=b"),))]
)
def test_errors_and_cookies_are_not_kept(app: CountingApp) -> None:
    cache = PageCache(app)
    assert [get(cache), get(cache)] == ["1", "2"]


def test_few_responses_are_kept_and_those_used_last() -> None:
    cache = PageCache(app := CountingApp())
    for number in range(MOST_RESPONSES * 3):
        get(cache, headers={"host": f"address {number}"})
        assert get(cache) == "2", "the address that is asked for again and again is kept"
    assert len(cache._responses) == MOST_RESPONSES
    assert app.calls == MOST_RESPONSES * 3 + 1


def test_a_response_is_compressed_once_for_those_who_accept_it_and_never_for_others() -> None:
    class LongApp(CountingApp):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            self.calls += 1
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"page " * 1000})

    cache = PageCache(app := LongApp())
    compressed = {"headers": {"host": "here", "accept-encoding": "gzip, deflate, br"}}
    sizes = [len(get(cache, **changes)) for changes in (compressed, {}, compressed, {})]
    assert sizes[0] == sizes[2] < 1000 and sizes[1] == sizes[3] == 5000 and app.calls == 2


@pytest.mark.slow
def test_the_real_page_is_the_same_at_each_request_and_names_the_address_that_was_asked(tiny_model: Model) -> None:
    with page_of(lambda report: tiny_model) as url:
        place = urlsplit(url)

        def ask(path: str, host: str) -> tuple[str, dict[str, str]]:
            connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
            connection.request("GET", path, headers={"Host": host})
            response = connection.getresponse()
            return response.read().decode(), {name.lower(): value for name, value in response.getheaders()}

        roots = {}
        for host in (place.netloc, "writers.example", place.netloc, "writers.example"):
            text, headers = ask("/config", host)
            assert headers["content-type"] == "application/json" and int(headers["content-length"]) == len(
                text.encode()
            )
            roots.setdefault(host, []).append(json.loads(text)["root"])
            page, _ = ask("/", host)
            assert "window.gradio_config" in page and f"http://{host}" in page
        assert roots == {host: [f"http://{host}"] * 2 for host in (place.netloc, "writers.example")}
