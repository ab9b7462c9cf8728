"""ASGI middleware: with accounts, the calls over HTTP and MCP are for those who have signed in, as the page is."""

from __future__ import annotations

import hmac
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from interface.http.request_gate import GRADIO, route_of
from interface.server.error_sentences import Refused, refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

CLOSED = ("/api", f"{GRADIO}/mcp")
"""Routes that Gradio's own sign-in leaves open. It closes all that the page uses."""
CHALLENGE = 'Basic realm="Lookahead"'
SENTENCE = "Sign in on the page, or send your name and password with the request (HTTP Basic)."


class SignIn:
    """ASGI middleware: refuses requests for CLOSED routes without a valid sign-in (401), if the app has accounts.

    Valid is the cookie of a sign-in on the page, or a name and a password in the header `Authorization: Basic`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _is_closed(route_of(scope)) and not signed_in(scope):
            await refusal(Refused(401, SENTENCE), **{"WWW-Authenticate": CHALLENGE})(scope, receive, send)
            return
        await self.app(scope, receive, send)


def _is_closed(path: str) -> bool:
    return any(path == route or path.startswith(f"{route}/") for route in CLOSED)


def signed_in(scope: Scope) -> bool:
    """Whether the request of an ASGI scope comes from somebody with an account; True if the app has no accounts."""
    app: Any = scope["app"]
    if app.auth is None:
        return True
    cookies = HTTPConnection(scope).cookies
    tokens = (cookies.get(f"access-token-{kind}{app.cookie_id}") for kind in ("", "unsecure-"))
    return any(token in app.tokens for token in tokens if token) or _has_account(Headers(scope=scope), app.auth)


def _has_account(headers: Headers, accounts: dict[str, str]) -> bool:
    """Whether the header `Authorization` has a name and a password of `accounts`, in the form of HTTP Basic."""
    kind, _, encoded = headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return False
    try:
        name, _, password = b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        return False
    expected = accounts.get(name)
    return expected is not None and hmac.compare_digest(password.encode(), expected.encode())
