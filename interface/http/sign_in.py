"""ASGI middleware: with accounts, the calls over HTTP and MCP are for those who have signed in, as the page is."""

from __future__ import annotations

import hmac
from base64 import b64decode
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from interface.http.caller_gate import caller_of, set_caller
from interface.http.request_gate import COMPONENT, GRADIO
from interface.http.request_path import route_of
from interface.server.error_sentences import Refused, refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

CLOSED = ("/api", f"{GRADIO}/mcp", COMPONENT)
"""Routes that Gradio's own sign-in leaves open: the app's own, and MCP. It closes all others that the page uses."""
CHALLENGE = 'Basic realm="Lookahead"'
SENTENCE = "Sign in on the page, or send your name and password with the request (HTTP Basic)."


class SignIn:
    """ASGI middleware: refuses requests for CLOSED routes without a valid sign-in (401), if the app has accounts.

    Valid is the cookie of a sign-in on the page, or a name and a password in the header `Authorization: Basic`. The
    refusal has the header `WWW-Authenticate`, except to a page's script: browsers answer it with a dialog of their own,
    which takes all keys that are meant for the page.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            name = account_of(scope)
            if name is None and scope["app"].auth is not None and _is_closed(route := route_of(scope)):
                headers = {} if route == COMPONENT else {"WWW-Authenticate": CHALLENGE}
                await refusal(Refused(401, SENTENCE), **headers)(scope, receive, send)
                return
            if name is not None:
                set_caller(scope, replace(caller_of(scope), person=f"account {name}"))
        await self.app(scope, receive, send)


def _is_closed(path: str) -> bool:
    return any(path == route or path.startswith(f"{route}/") for route in CLOSED)


def account_of(scope: Scope) -> str | None:
    """Return the name of the account that has signed in; None without one, and if the app has no accounts."""
    app: Any = scope["app"]
    if app.auth is None:
        return None
    cookies = HTTPConnection(scope).cookies
    tokens = (cookies.get(f"access-token-{kind}{app.cookie_id}") for kind in ("", "unsecure-"))
    names = (app.tokens[token] for token in tokens if token and token in app.tokens)
    return next(names, None) or _account_in(Headers(scope=scope), app.auth)


def _account_in(headers: Headers, accounts: dict[str, str]) -> str | None:
    """Return the name in the header `Authorization`, in the form of HTTP Basic; None unless the password is right."""
    kind, _, encoded = headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        name, _, password = b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        return None
    expected = accounts.get(name)
    return name if expected is not None and hmac.compare_digest(password.encode(), expected.encode()) else None
