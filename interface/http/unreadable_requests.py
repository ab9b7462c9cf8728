"""Connections of the HTTP server: a request that cannot be read is answered before its connection is closed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

SENTENCE = "This is no HTTP request that can be read: it is malformed, cut off, or its first lines are too long."
_DETAIL = json.dumps({"detail": SENTENCE}).encode()
_ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_DETAIL), _DETAIL)
)
LINGER = 5.0
"""Seconds in which what still comes is read and dropped: closing a connection with unread bytes cuts the answer off."""


class _Answering(asyncio.Protocol):
    """What uvicorn's class of connections does otherwise where it closes one at once."""

    transport: Any
    cycle: Any
    flow: Any
    loop: asyncio.AbstractEventLoop
    _refused = False

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn where it can make nothing of what has come."""
        self._refused = True
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # whoever waits for the rest of the body, or answers, need not
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.close()
                return
        self.transport.write(_ANSWER)
        self.transport.write_eof()
        self.flow.resume_reading()
        self.loop.call_later(LINGER, self.transport.close)

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)

    def eof_received(self) -> bool | None:
        """The client sends no more; it may still read why a body that is not whole is refused."""
        cycle = self.cycle
        if not self._refused and cycle is not None and cycle.more_body and not cycle.response_started:
            self.send_400_response("")
        return super().eof_received()


def answer_unreadable_requests(server: Any) -> None:
    """Let a running server answer what it cannot read, on every connection from now on."""
    known = server.config.http_protocol_class
    server.config.http_protocol_class = type("Connection", (_Answering, known), {})
