"""The progress of a request: each result is returned once, as soon as it is there, and so is the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from interface.server import request_progress
from interface.server.branch_request import BranchRequest
from interface.server.request_progress import RequestProgress

ASKED = BranchRequest(page="a-page-of-somebody", number=3, revision=8, text="The sea")


def told(talk: Callable[[RequestProgress], Awaitable[Any]]) -> Any:
    """What comes of a talk about one run."""

    async def begin() -> Any:
        return await talk(RequestProgress(ASKED))

    return asyncio.run(begin())


def test_each_result_is_returned_once() -> None:
    async def talk(run: RequestProgress) -> None:
        run.add({"state": "thinking", "reading": [5, 9]})
        first = await run.news(0)
        assert first == {
            "number": 3, "revision": 8, "seen": 1, "state": "thinking", "over": False, "reading": [5, 9], "ahead": {},
            "tokens_ahead": 0,
        }  # fmt: skip
        run.add({"state": "thinking", "view": "a view"})
        second = await run.news(1)
        assert (second["seen"], second["view"]) == (2, "a view")
        assert "reading" not in second, "it is read"
        run.add({"state": "settled", "view": "the view", "note": "a note"})
        run.add({"ahead": ("1 2", "one"), "tokens_ahead": 4})
        run.add({"ahead": ("3", "other"), "tokens_ahead": 6})
        await asyncio.sleep(0)
        third = await run.news(2)
        assert (third["view"], third["ahead"], third["tokens_ahead"]) == ("the view", {"1 2": "one", "3": "other"}, 6)
        assert (third["seen"], third["state"], third["note"]) == (5, "settled", "a note")
        run.finish()
        last = await run.news(5)
        assert (last["over"], last["ahead"], last["seen"], "view" in last) == (True, {}, 6, False)
        again = await run.news(4)
        assert (again["ahead"], "view" in again) == ({"3": "other"}, False), "only what came later"
        assert (await run.news(2))["view"] == "the view"

    told(talk)


def test_all_waiting_polls_return_at_once() -> None:
    async def talk(run: RequestProgress) -> None:
        waiting = [asyncio.ensure_future(run.news(0)) for _ in range(3)]
        await asyncio.sleep(0)
        run.add({})
        await asyncio.sleep(0)
        assert not any(one.done() for one in waiting), "nothing has come"
        run.add({"state": "thinking", "view": 1})
        assert [(await one)["view"] for one in waiting] == [1] * 3

    told(talk)


def test_a_poll_without_news_returns_after_a_timeout() -> None:
    async def talk(run: RequestProgress) -> Any:
        return await run.news(0, most_seconds=0.01)

    news = told(talk)
    assert (news["seen"], news["state"], news["over"]) == (0, "thinking", False)


def test_results_after_the_end_are_ignored() -> None:
    async def talk(run: RequestProgress) -> Any:
        run.finish(state="error", sentence="A sentence.")
        run.add({"state": "settled", "view": 1})
        await asyncio.sleep(0)
        return await run.news(0)

    news = told(talk)
    assert (news["state"], news["sentence"], news["over"], "view" in news) == ("error", "A sentence.", True, False)


def test_a_superseded_request_says_so_and_nothing_else() -> None:
    async def talk(run: RequestProgress) -> Any:
        waiting = asyncio.ensure_future(run.news(0))
        await asyncio.sleep(0)
        run.supersede()
        return await waiting

    assert told(talk) == {"number": 3, "revision": 8, "seen": 1, "superseded": True}


def test_a_stopped_request_is_settled_and_not_wanted() -> None:
    async def talk(run: RequestProgress) -> Any:
        assert run.wanted
        run.stop()
        assert not run.wanted
        return await run.news(0)

    news = told(talk)
    assert (news["state"], news["stopped"], news["over"]) == ("settled", True, True)


def test_a_request_is_wanted_until_its_end_is_delivered() -> None:
    async def talk(run: RequestProgress) -> None:
        run.add({"state": "settled", "view": 1})
        await asyncio.sleep(0)
        assert run.settled and run.wanted
        await run.news(0)
        assert run.wanted, "nobody waits for more just now, and somebody may ask in a moment"
        waiting = asyncio.ensure_future(run.news(1))
        await asyncio.sleep(0)
        assert not run.wanted, "the page has its view, and waits for what is prefetched"
        run.finish()
        assert run.wanted, "it has not heard that this was all"
        await waiting
        assert not run.wanted

    told(talk)


def test_a_waiting_page_counts_as_open() -> None:
    now = 0.0

    async def talk() -> None:
        nonlocal now
        run = RequestProgress(ASKED, lambda: now)
        waiting = asyncio.ensure_future(run.news(0))
        await asyncio.sleep(0)
        now = 1000.0
        assert run.wanted
        run.add({"state": "thinking", "view": 1})
        await waiting
        now += request_progress.ABSENT
        assert run.wanted
        now += 0.1
        assert not run.wanted

    asyncio.run(talk())


def test_results_after_the_server_has_ended_raise_nothing() -> None:
    async def talk(run: RequestProgress) -> RequestProgress:
        return run

    run = told(talk)
    run.add({"state": "settled"})
    assert not run.settled
