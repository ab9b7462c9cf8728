"""ASGI middleware: finds out from which address a request comes, and refuses what exceeds the limit of the address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from interface.http.caller_address import address_of
from interface.http.request_path import route_of
from interface.server.callers import CALLER, Caller
from interface.server.error_sentences import refusal
from interface.server.rate_limits import CallerLimits, TooOften

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from lookahead_core.settings import Network


UNPACED = ("/lookahead/", "/assets/", "/static/", "/svelte/", "/theme.css", "/health", "/metrics")
"""Beginnings of the paths of requests that `Pace` does not count: files, of which a browser that opens the page asks
for about a hundred at once, and the requests of programs that watch over the server, which are not its users."""


class CallerGate:
    """ASGI middleware: sets CALLER for each HTTP request, and refuses one too many (429) before anything is read."""

    def __init__(self, app: ASGIApp, limits: CallerLimits, trusted: Sequence[Network] = ()) -> None:
        """`trusted` are the networks of trusted proxies."""
        self.app = app
        self._limits = limits
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        caller = Caller(address_of(scope, self._trusted))
        set_caller(scope, caller)
        try:
            self._limits.admit_address(caller.address)
            if not route_of(scope).startswith(UNPACED):
                await self._limits.pace_request(caller.address)
        except TooOften as error:
            await self._limits.pace_refusal(caller.address)
            await refusal(error)(scope, receive, send)
            return
        await self.app(scope, receive, send)


def set_caller(scope: Any, caller: Caller) -> None:
    """Set the caller of a request, in its scope too: Gradio's queue handles it in another context."""
    scope["lookahead.caller"] = caller
    CALLER.set(caller)


def caller_of(scope: Any) -> Caller:
    """Return the caller that `set_caller` has set in a scope; one without fields if there is none."""
    caller = scope.get("lookahead.caller")
    return caller if isinstance(caller, Caller) else Caller()
