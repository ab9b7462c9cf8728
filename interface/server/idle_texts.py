"""Forgets the texts that nobody has used for long, also while nobody sends a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interface.server.model_loading import ModelLoader

GAP = 60.0
"""Seconds between two checks for idle texts."""


def forgets_idle_texts(loader: ModelLoader) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return the lifespan function of an ASGI app that forgets idle texts every GAP seconds while the app runs.

    These are the sessions of pages, see `OpenPages`, and the trees that are kept between calls, see `TreePool`.
    """

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        task = asyncio.create_task(_forget(loader))
        try:
            yield
        finally:
            task.cancel()

    return lifespan


async def _forget(loader: ModelLoader) -> None:
    while True:
        await asyncio.sleep(GAP)
        for service in loader.services:
            service.open_pages.forget_idle()
        loader.caller.forget_idle()
