"""Prefetching on a model's server: one request at a time for each server, and none while a person waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from interface import ModelLoader
from interface.server import page_service
from interface.server.page_service import PageService
from lookahead_core import Model, load_model
from lookahead_core.engines.remote import server_errors
from lookahead_core.engines.remote.completions import Completions
from tests.support.completions_server import CompletionsServer
from tests.support.requests_to_pages import all_news

K = 2
PEOPLE = 4


@pytest.fixture
def servers(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[CompletionsServer]]:
    monkeypatch.setattr(server_errors, "BACK_OFF", 0.01)
    monkeypatch.setattr(page_service, "AHEAD_AFTER", 0.01)
    started = [CompletionsServer(tiny_model.hf_model) for _ in range(2)]
    yield started
    for server in started:
        server.close()


def loader_of(servers: list[CompletionsServer], tokenizer: Any) -> ModelLoader:
    loader = ModelLoader(lambda report: load_model([server.address for server in servers], tokenizer=tokenizer))
    loader.run()
    for server in servers:
        del server.bodies[:]
        server.event_seconds = 0.002
    return loader


def close(loader: ModelLoader) -> None:
    loader.scheduler.close()
    loader.scheduler.engine.close()  # type: ignore[attr-defined]


def request(person: int, number: int = 1, **fields: Any) -> dict[str, Any]:
    asked = {"text": f"The sea {person}.", "k": K, "depth": 6, "ahead": True, **fields}
    return {"page": f"a-page-of-person-{person}", "number": number, "revision": number, **asked}


def is_prefetch(body: dict[str, Any]) -> bool:
    """Whether a request has more prompts than a view has rows: the views after several clicks."""
    return len(body["prompt"]) > K


class Sent(NamedTuple):
    """A request as it begins and as it ends."""

    what: str
    address: str
    prompts: int
    tokens: int

    @property
    def is_prefetch(self) -> bool:
        return self.prompts > K


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Sent]:
    """What the engine sends to servers from now on: "began" and "ended" of each request, in order."""
    found: list[Sent] = []
    tokens = Completions.tokens

    def noted(self: Completions, prompts: Any, count: int, *rest: Any, **options: Any) -> Iterator[Any]:
        what = self.connection.address, len(prompts), count
        found.append(Sent("began", *what))
        try:
            yield from tokens(self, prompts, count, *rest, **options)
        finally:
            found.append(Sent("ended", *what))

    monkeypatch.setattr(Completions, "tokens", noted)
    return found


def most_at_once(sent: list[Sent], address: str) -> int:
    """The largest number of prefetching requests that a server has had at the same time."""
    running, most = 0, 0
    for each in sent:
        if each.is_prefetch and each.address == address:
            running += 1 if each.what == "began" else -1
            most = max(most, running)
    return most


def views_ahead(news: list[Any]) -> dict[str, Any]:
    return {key: view for one in news for key, view in one.get("ahead", {}).items()}


def rows(view: Any) -> list[Any]:
    return [branch["ids"] for branch in view["branches"]]


def expected(model: Model, **fields: Any) -> dict[str, Any]:
    """The views that a model of this process prefetches for the request."""
    loader = ModelLoader(lambda report: model)
    loader.run()
    found = views_ahead(asyncio.run(all_news(PageService(loader), request(**fields))))
    loader.scheduler.close()
    return {key: rows(view) for key, view in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_a_server_has_one_prefetching_request_at_a_time_from_many_pages(
    servers: list[CompletionsServer], byte_tokenizer: Any, sent: list[Sent], count: int
) -> None:
    loader = loader_of(servers[:count], byte_tokenizer)
    service = PageService(loader)

    async def visit() -> list[Any]:
        return list(await asyncio.gather(*(all_news(service, request(person)) for person in range(PEOPLE))))

    found = asyncio.run(visit())
    assert all(views_ahead(news) for news in found)
    most = [most_at_once(sent, server.address) for server in servers[:count]]
    assert set(most) <= {0, 1} and any(most)
    close(loader)


@pytest.mark.slow
def test_a_person_who_asks_ends_a_prefetching_request_and_it_goes_on_after_the_persons_view(
    servers: list[CompletionsServer], byte_tokenizer: Any, tiny_model: Model, sent: list[Sent]
) -> None:
    server = servers[0]
    loader = loader_of([server], byte_tokenizer)
    service = PageService(loader)
    server.event_seconds = 0.02

    async def until(condition: Any) -> None:
        end = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < end
            await asyncio.sleep(0.002)

    def prefetches() -> list[int]:
        return [number for number, body in enumerate(server.bodies) if is_prefetch(body) and body["max_tokens"] > 1]

    async def visit() -> Any:
        first = asyncio.create_task(all_news(service, request(1)))
        await until(prefetches)
        written = server.written
        await until(lambda: server.written > written + K)
        second = asyncio.create_task(all_news(service, request(2, ahead=False, depth=12)))
        news = await second
        return await first, news

    ahead, news = asyncio.run(visit())
    assert news[-1]["state"] == "settled"
    (cut, *later) = prefetches()
    # The request was closed before its end, and no other one began before the person had the view.
    assert server.broken.is_set()
    began, ended = (sent.index(Sent(what, server.address, K, 11)) for what in ("began", "ended"))
    assert later and not any(each.is_prefetch and each.what == "began" for each in sent[began:ended])
    # What had come is part of the prompts of the next request, and the views are those of a model of this process.
    lengths = [sum(map(len, server.bodies[number]["prompt"])) for number in (cut, later[0])]
    assert lengths[0] + K < lengths[1]
    found = {key: rows(view) for key, view in views_ahead(ahead).items()}
    wanted = expected(tiny_model, person=1)
    both = found.keys() & wanted.keys()
    assert len(both) > K and all(found[key] == wanted[key] for key in both)
    close(loader)


def test_a_prefetch_that_waits_for_its_turn_ends_with_its_page_and_sends_nothing(
    servers: list[CompletionsServer], byte_tokenizer: Any
) -> None:
    server = servers[0]
    loader = loader_of([server], byte_tokenizer)
    service = PageService(loader)

    async def visit() -> None:
        found = [asyncio.create_task(all_news(service, request(person))) for person in range(3)]
        while loader.scheduler.prefetch_count < 3:
            await asyncio.sleep(0.002)
        functions = {function.__name__: function for function in service.functions}
        for person in range(3):
            await functions["stop"]({"page": f"a-page-of-person-{person}", "number": 1})
        await asyncio.gather(*found)
        await asyncio.sleep(0.2)
        sent = len(server.bodies)
        assert (await all_news(service, request(4, ahead=False)))[-1]["state"] == "settled"
        assert len(server.bodies) == sent + 2

    asyncio.run(visit())
    assert loader.scheduler.is_idle
    close(loader)
