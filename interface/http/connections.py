"""Stop the work of a request whose client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import Request

T = TypeVar("T")


async def while_connected(request: Request, answer: Awaitable[T]) -> T | None:
    """Return the result of `answer` or raise its error; if the client disconnects first, cancel it and return None.

    The request's body must have been received before. Cancelling this cancels `answer` too.
    """
    answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else None
    finally:
        answering.cancel()
        leaving.cancel()


async def _disconnected(request: Request) -> None:
    """Wait, without a time limit, until the client disconnects; the request's body must have been received before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
