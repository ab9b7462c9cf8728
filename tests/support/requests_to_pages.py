"""A page's requests to its service: one request, and all its news."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from interface.server.model_loading import ModelLoader
from interface.server.page_service import PageService
from lookahead_core import Model

PAGE = "a-page-of-somebody"


async def all_news(service: PageService, request: dict[str, Any]) -> list[Any]:
    """All news of one request, to its end."""
    functions = {function.__name__: function for function in service.functions}
    news = [await functions["ask"](request)]
    while not news[-1].get("over", True):
        known = {"page": request["page"], "number": request["number"]}
        news.append(await functions["more"](known | {"seen": news[-1]["seen"]}))
    return news


async def ask(service: PageService, number: int = 1, **given: Any) -> list[Any]:
    """The same for a page that asks once."""
    return await all_news(service, {"page": PAGE, "number": number, "revision": number} | given)


def news_from(
    model: Model, request_of: Callable[[object], Any], session: Callable[..., Any], **given: Any
) -> list[Any]:
    """All news of one request with these fields to a new service of such sessions, on `model`."""
    loader = ModelLoader(lambda report: model)
    loader.run()
    return asyncio.run(ask(PageService(loader, request_of, session), **given))
