"""ASGI middleware: keeps Gradio's responses for the page and its configuration, which Gradio makes for each request."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware

from interface.http.request_path import route_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ROUTES = ("/", "/config")
"""The page and the description of its components: each takes Gradio some 20 ms of Python, however often it is asked."""
ORIGIN_HEADERS = ("host", "x-forwarded-host", "x-forwarded-proto", "x-gradio-server")
"""The headers from which Gradio makes the page's own address, which is all that depends on the request."""
MOST_RESPONSES = 8
"""Responses that are kept: of both routes, at a few addresses such as a proxy's and this machine's own."""


class PageCache:
    """ASGI middleware: sends the same response to all GET requests for the page, or its configuration, at one address.

    The response is compressed with gzip for those who accept it: the page has 600 kB, and 100 kB compressed.
    Requests with a query, and all requests of a server on which people sign in, are never answered from the cache.
    Responses that are errors or set cookies are not kept. The page must not change after its first request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._compressed = GZipMiddleware(app)
        self._responses: OrderedDict[Any, list[Message]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_the_same_for_all(scope):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = tuple(headers.get(name) for name in ORIGIN_HEADERS)
        accepts_gzip = "gzip" in headers.get("accept-encoding", "")
        key = (scope["path"], scope.get("root_path"), scope["scheme"], scope.get("server"), origin, accepts_gzip)
        kept = self._responses.get(key)
        if kept is None:
            kept = await self._ask(key, scope, receive)
        else:
            self._responses.move_to_end(key)
        for message in kept:
            await send(message)

    async def _ask(self, key: Any, scope: Scope, receive: Receive) -> list[Message]:
        """Return the messages of the app's response, and keep them if it is no error and sets no cookie."""
        messages: list[Message] = []

        async def collect(message: Message) -> None:
            messages.append(message)

        await self._compressed(scope, receive, collect)
        if messages and messages[0].get("status") == 200 and "set-cookie" not in Headers(raw=messages[0]["headers"]):
            self._responses[key] = messages
            if len(self._responses) > MOST_RESPONSES:
                self._responses.popitem(last=False)
        return messages


def _is_the_same_for_all(scope: Scope) -> bool:
    """Whether a request is for the page or its configuration, without a query, on a server without accounts."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["query_string"] or route_of(scope) not in ROUTES:
        return False
    gradio = scope["app"]
    return gradio.auth is None and gradio.auth_dependency is None
