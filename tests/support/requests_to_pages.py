"""A page's requests to its service: one request, and all its news."""

from __future__ import annotations

from typing import Any

from interface.server.page_service import PageService

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
