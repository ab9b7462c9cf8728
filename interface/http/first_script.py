"""ASGI middleware: puts a script at the beginning of the page, before Gradio's own scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders

from interface.http import assets
from interface.http.request_path import route_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PLACE = b"<head>"


class FirstScript:
    """ASGI middleware: inserts the script `assets.EARLY_KEYS` at the beginning of the `<head>` of the page at "/".

    Gradio inserts the `head` of `launch` only when its own scripts run, a tenth of a second after the page has come.
    The whole page must come in one message of ASGI. All other responses pass unchanged.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._script = b"<script>\n" + assets.scripts().contents[assets.EARLY_KEYS] + b"</script>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or route_of(scope) != "/":
            await self.app(scope, receive, send)
            return
        start: Message | None = None

        async def insert(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            if start is not None:
                headers, body = MutableHeaders(raw=start["headers"]), message.get("body", b"")
                if headers.get("content-type", "").startswith("text/html") and PLACE in body:
                    message["body"] = body.replace(PLACE, PLACE + self._script, 1)
                    headers["content-length"] = str(int(headers["content-length"]) + len(self._script))
                await send(start)
                start = None
            await send(message)

        await self.app(scope, receive, insert)
