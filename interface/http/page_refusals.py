"""ASGI middleware: tells a page's script why its call was refused, and when to call again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from interface.http.request_gate import COMPONENT
from interface.http.request_path import route_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class PageRefusals:
    """ASGI middleware: where the app refuses a page's call of a server function (429), answers with news (200).

    Gradio's client in the browser drops the body of every response that is an error. The news have the state `full`,
    the refusal's `sentence`, `retry_after` in seconds, as in the header `Retry-After`, and `over`. All other responses
    pass unchanged.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or route_of(scope) != COMPONENT:
            await self.app(scope, receive, send)
            return
        refusal: list[Message] = []

        async def hold_refusal(message: Message) -> None:
            if refusal or (message["type"] == "http.response.start" and message["status"] == 429):
                refusal.append(message)
            else:
                await send(message)

        await self.app(scope, receive, hold_refusal)
        if refusal:
            await _news_of(refusal)(scope, receive, send)


def _news_of(refusal: list[Message]) -> JSONResponse:
    """Return the news for the ASGI messages of a refusal, which is one of `error_sentences.refusal`."""
    start, *parts = refusal
    content = json.loads(b"".join(part.get("body", b"") for part in parts))
    retry_after = int(Headers(raw=start["headers"])["retry-after"])
    return JSONResponse({"state": "full", "sentence": content["detail"], "retry_after": retry_after, "over": True})
