"""Calls, sessions and tokens of one caller are limited, and nobody is locked out by another one."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from interface import ModelLoader
from interface.server.call_runner import CallRunner, TooMany
from interface.server.callers import CALLER, Caller
from interface.server.page_service import PageService
from interface.server.time_limit import TooMuch
from interface.tabs.highlights import text_analysis
from interface.tabs.highlights.text_analysis import HighlightsService
from lookahead_core import Model, Settings
from lookahead_core.document import prefetch
from lookahead_core.errors import LookaheadError
from tests.interface.http.test_endpoints import around
from tests.support.requests_to_pages import PAGE, all_news, ask

PATIENCE = 60
FLOOD, QUIET, NEIGHBOUR = Caller("192.0.2.1", "programs"), Caller("192.0.2.9", "programs"), Caller("192.0.2.1", "ada")


def loader_of(model: Model, **settings: Any) -> ModelLoader:
    loader = ModelLoader(lambda report: model, Settings(**settings))
    loader.run()
    return loader


@contextmanager
def held(model: Model) -> Iterator[tuple[Model, threading.Event]]:
    """The model, whose passes wait until the event is set."""
    go = threading.Event()
    go.set()

    def wait() -> None:
        assert go.wait(PATIENCE)

    try:
        yield around(model, wait), go
    finally:
        go.set()


def as_caller(caller: Caller, coroutine: Any) -> asyncio.Task[Any]:
    """Run a coroutine as the handling of a request of this caller."""
    before = CALLER.set(caller)
    try:
        return asyncio.ensure_future(coroutine)
    finally:
        CALLER.reset(before)


def test_a_caller_with_all_its_calls_running_is_refused_and_others_are_served(tiny_model: Model) -> None:
    with held(tiny_model) as (model, go):
        runner = CallRunner(loader_of(model, person_calls=3, address_people=2))

        async def flood() -> None:
            go.clear()
            given = {"text": "The sea", "k": 1, "depth": 1}
            running = [as_caller(FLOOD, runner.answer("lookahead", given)) for _ in range(3)]
            while sum(runner._running.values()) < 9:
                await asyncio.sleep(0.01)
            check, runner.__dict__["_call_check"] = runner._call_check, None  # it may not be checked either
            with pytest.raises(TooMany, match=r"3 calls of yours are running already.*again\.$"):
                await as_caller(FLOOD, runner.answer("lookahead", given))
            runner.__dict__["_call_check"] = check
            others = [as_caller(who, runner.answer("lookahead", given)) for who in (QUIET, NEIGHBOUR) for _ in range(3)]
            while sum(runner._running.values()) < 27:
                await asyncio.sleep(0.01)
            with pytest.raises(TooMany, match="6 calls from your network"):
                await as_caller(Caller(FLOOD.address, "ben"), runner.answer("lookahead", given))
            go.set()
            assert all(answer["branches"] for answer in await asyncio.gather(*running, *others))
            assert not runner._running and not runner._checking

        asyncio.run(flood())


def test_one_call_of_each_caller_is_checked_at_a_time(tiny_model: Model) -> None:
    runner, order = CallRunner(loader_of(tiny_model)), []

    class Check:
        async def check(self, name: str, arguments: Any) -> None:
            order.append(arguments["text"])
            for _ in range(3):
                await asyncio.sleep(0)
            raise ValueError

    runner.__dict__["_call_check"] = Check()

    async def run() -> None:
        calls = [as_caller(FLOOD, runner.answer("lookahead", {"text": f"flood {number}"})) for number in range(5)]
        calls.append(as_caller(QUIET, runner.answer("lookahead", {"text": "quiet"})))
        await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(run())
    assert order.index("quiet") == 1
    assert len(order) == 6


def pages_of(service: PageService) -> list[str]:
    return [page.address for page, _ in service.open_pages._values.values()]


def test_when_all_sessions_are_busy_the_caller_with_most_of_them_makes_room(tiny_model: Model) -> None:
    with held(tiny_model) as (model, go):
        service = PageService(loader_of(model), most=4)

        async def begin(caller: Caller, number: int) -> Any:
            request = {"page": f"a-page-{number:012}", "number": 1, "revision": 1, "text": "The sea", "ahead": False}
            return await as_caller(caller, service.ask(request))

        async def run() -> list[Any]:
            go.clear()
            first = [asyncio.ensure_future(begin(FLOOD, number)) for number in range(4)]
            while len(pages_of(service)) < 4:
                await asyncio.sleep(0.01)
            full = await begin(FLOOD, 4)
            others = [asyncio.ensure_future(begin(QUIET, number)) for number in (5, 6)]
            while pages_of(service).count(QUIET.address) < 2:
                await asyncio.sleep(0.01)
            again = await begin(QUIET, 7)
            go.set()
            return [full, again, *await asyncio.gather(*first, *others)]

        full, again, *news = asyncio.run(run())
    assert (full["state"], again["state"]) == ("full", "full"), "each address has half of the sessions"
    assert all(one["state"] in ("thinking", "settled") for one in news[-2:])


def test_an_address_with_many_pages_ends_its_own_idle_sessions_first(tiny_model: Model) -> None:
    service = PageService(loader_of(tiny_model), most=8)

    async def run() -> None:
        for number in range(30):
            caller = QUIET if number < 3 else FLOOD
            request = {"page": f"a-page-{number:012}", "number": 1, "revision": 1, "text": ""}
            await as_caller(caller, all_news(service, request))

    asyncio.run(run())
    assert pages_of(service).count(QUIET.address) == 3


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("lookahead", {"text": "a", "k": 3, "depth": 7}),
        ("lookahead", {"text": "a", "depth": 5}),
        ("continue_messages", {"messages": [], "n_future_tokens": 7, "n_branch_tokens": 3}),
        ("next_token", {"original_doc": "", "prompt": "p", "doc_in_progress": "", "n_future_tokens": 9, "depth": 1}),
    ],
)
def test_the_number_of_branches_times_their_length_is_limited(
    tiny_model: Model, name: str, given: dict[str, Any]
) -> None:
    runner = CallRunner(loader_of(tiny_model, request_tokens=20))
    with pytest.raises(ValueError, match="at most 20 tokens are allowed"):
        asyncio.run(runner.answer(name, given))
    assert asyncio.run(runner.answer("lookahead", {"text": "a", "k": 4, "depth": 5}))["branches"]
    with pytest.raises((ValueError, LookaheadError)):  # a count that is no number is refused where it is used
        asyncio.run(runner.answer("continue_messages", {"messages": [], "n_future_tokens": None}))


def test_limits_of_tokens_and_of_model_time_hold_for_pages(tiny_model: Model) -> None:
    service = PageService(loader_of(tiny_model, request_tokens=20, page_seconds=1e-9, ahead_tokens=7))
    with pytest.raises(ValueError, match="up to 21 tokens, and at most 20 are allowed"):
        asyncio.run(service.ask({"page": PAGE, "number": 1, "revision": 1, "text": "The sea", "k": 3, "depth": 7}))
    news = asyncio.run(ask(service, text="The sea", k=2, depth=3))
    assert news[-1]["state"] == "error" and "used the model for 1e-09 seconds" in news[-1]["sentence"]
    assert TooMuch.status == 413


def test_the_number_of_prefetched_tokens_is_a_setting(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[int] = []
    views = prefetch.prefetch_views

    def watched(*arguments: Any, most_nodes: int, **options: Any) -> Any:
        allowed.append(most_nodes)
        return views(*arguments, most_nodes=most_nodes, **options)

    monkeypatch.setattr(prefetch, "prefetch_views", watched)
    for count in (7, 100_000):
        service = PageService(loader_of(tiny_model, ahead_tokens=count))
        assert asyncio.run(ask(service, text="The sea", k=2, depth=3))[-1]["state"] == "settled"
    assert allowed == [7, 512], "a setting may be less than what the page's views hold, and no more"


def test_highlights_of_a_long_text_are_bounded(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    service = HighlightsService(loader_of(tiny_model))

    def answer(text: str) -> Any:
        """All news of the analysis of a text, in one."""
        found: dict[str, Any] = {}
        for news in asyncio.run(ask(service, next(numbers), text=text, k=5)):
            found |= news
        return found

    numbers = itertools.count(1)

    text = "the old sea keeper"
    usual = answer(text)["view"]
    assert {len(entry["alternatives"]) for entry in usual["entries"]} >= {5}
    count = len(usual["entries"])
    monkeypatch.setattr(text_analysis, "MOST_ALTERNATIVES", 2 * count + 3)
    bounded = answer(text + " ")["view"]
    assert max(len(entry["alternatives"]) for entry in bounded["entries"]) <= 3, "two, and the text's own token"
    assert "each has 2 alternatives" in bounded["sentence"]
    monkeypatch.setattr(text_analysis, "MOST_TOKENS", 3)
    refused = answer(text)
    assert refused["state"] == "error" and "at most 3 are allowed" in refused["sentence"]


def test_the_answer_of_the_call_highlights_is_bounded(tiny_model: Model) -> None:
    runner = CallRunner(loader_of(tiny_model))
    for given in ({"doc": "x" * 100_001, "k": 4}, {"doc": "d", "updated_doc": "x" * 80_001}):
        with pytest.raises(ValueError, match=r"and with k = \d at most .* are allowed: shorten it, or lower k"):
            asyncio.run(runner.answer("highlights", given))
