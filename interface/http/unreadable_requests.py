"""Answer malformed HTTP requests with a sentence before their connection closes. Replaces uvicorn's own answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

SENTENCE = "The server cannot read this HTTP request: it is malformed, cut off, or its headers are too long."
_DETAIL = json.dumps({"detail": SENTENCE}).encode()
_ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_DETAIL), _DETAIL)
)
LINGER = 5.0
"""Seconds until the connection closes; bytes that still come are dropped. Closing earlier may lose the answer."""


class _Answering(asyncio.Protocol):
    """Mixin to be placed before uvicorn's HTTP protocol class; uvicorn makes one object for each connection.

    It responds to malformed requests with 400 and SENTENCE, and closes the connection LINGER seconds later; uvicorn
    would close it at once, and the client might not get the response.
    """

    transport: Any
    cycle: Any
    flow: Any
    loop: asyncio.AbstractEventLoop
    _refused = False

    def send_400_response(self, msg: str) -> None:
        """Respond with 400 and SENTENCE, and close after LINGER seconds; uvicorn calls this for a malformed request.

        Ignores `msg`. If an app is still working on a request of this connection, its response is dropped; if it has
        begun to respond, the connection is closed without a 400.
        """
        self._refused = True
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # wakes the handler that waits for the body, and drops its answer
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.close()
                return
        self.transport.write(_ANSWER)
        self.transport.write_eof()
        self.flow.resume_reading()
        self.loop.call_later(LINGER, self.transport.close)

    def data_received(self, data: bytes) -> None:
        """Pass received bytes on to uvicorn's HTTP parser; drop them if this connection has had a 400 already."""
        if not self._refused:
            super().data_received(data)

    def eof_received(self) -> bool | None:
        """Respond with 400 if the client stops sending before a request's body is complete, and no response has begun.

        asyncio calls this, and closes the connection unless the result is true; the result is that of uvicorn's class.
        """
        cycle = self.cycle
        if not self._refused and cycle is not None and cycle.more_body and not cycle.response_started:
            self.send_400_response("")
        return super().eof_received()


def answer_unreadable_requests(server: Any) -> None:
    """Make a started uvicorn server respond to malformed and incomplete requests with 400 and a sentence.

    It changes the server's configuration, once for each server; connections that are already open keep uvicorn's way.
    """
    known = server.config.http_protocol_class
    server.config.http_protocol_class = type("Connection", (_Answering, known), {})
