"""While one page runs the cache experiment, another person's click waits for the pass in flight and no other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interface import ModelLoader
from interface.server.branch_request import BranchRequest
from interface.server.page_service import PageService
from interface.server.page_session import PageSession
from interface.tabs.lab.cache_session import CacheRequest, CacheSession
from lookahead_core import Model, Settings
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.serving.scheduler import Scheduler
from tests.support.requests_to_pages import all_news

LAB = {"page": "a-page-of-the-lab", "number": 1, "revision": 1, "text": "The old keeper"}
WRITER = {"page": "a-page-of-a-writer", "k": 3, "depth": 5, "ahead": False}


@pytest.mark.slow
def test_a_click_waits_for_one_pass_of_an_experiment(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts the passes without the cache, by far the longest ones, between a click and its complete view."""
    events: list[str] = []
    score, submit = UncachedEngine.score, Scheduler.submit

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        events.append("pass begins")
        scores = score(self, *arguments, **options)
        events.append("pass ends")
        return scores

    def noted(self: Any, steps: Any, client: Any, *, on_step: Any, **options: Any) -> None:
        def step(news: Any) -> None:
            on_step(news)
            if client == WRITER["page"] and news.get("state") == "settled":
                events.append("view")

        if client == WRITER["page"]:
            events.append("click")
        submit(self, steps, client, on_step=step, **options)

    monkeypatch.setattr(UncachedEngine, "score", counted)
    monkeypatch.setattr(Scheduler, "submit", noted)
    loader = ModelLoader(lambda report: tiny_model, Settings())
    loader.run()
    lab = PageService(loader, CacheRequest.from_json, CacheSession)
    writer = PageService(loader, BranchRequest.from_json, PageSession)

    async def run() -> list[Any]:
        experiment = {"k": 5, "depth": 100, "levels": 1}
        running = asyncio.ensure_future(all_news(lab, LAB | {"experiment": experiment}))
        for number in range(1, 9):
            so_far = events.count("pass ends")
            while events.count("pass ends") < so_far + 3:
                await asyncio.sleep(0.001)
            text = f"The old lighthouse keeper {number}"
            news = await all_news(writer, WRITER | {"number": number, "revision": number, "text": text})
            assert news[-1]["state"] == "settled"
        return await running

    news = asyncio.run(run())
    found = [one["view"]["steps"] for one in news if one.get("view")]
    assert news[-1]["state"] == "settled" and len(found[-1]) == 100, "the experiment goes on to its end"
    clicks = [place for place, event in enumerate(events) if event == "click"]
    views = [place for place, event in enumerate(events) if event == "view"]
    waits = [events[click:view].count("pass begins") for click, view in zip(clicks, views, strict=True)]
    # One may begin after the click is noted and before the scheduler has it: the pass in flight.
    assert len(waits) == 8 and max(waits) <= 1
