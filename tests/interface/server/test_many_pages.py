"""More pages than sessions: each gets its view in the end, and no page takes a session that another one needs."""

from __future__ import annotations

import asyncio
import gc
import random
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from interface import ModelLoader
from interface.server import request_progress
from interface.server.page_service import PageService
from interface.server.page_session import PageSession
from lookahead_core import Model, load_model
from lookahead_core.errors import NoRoom
from lookahead_core.serving.expiring_store import ExpiringStore
from tests.conftest import CORPUS, tiny_llama
from tests.interface.server.test_page_service import Page, expected, rows

AGAIN = (0.01, 0.02, 0.04, 0.08, 0.16)
"""Seconds until a page that found no room asks again: those of the real page are fifty times as long."""


@dataclass
class Visitor:
    """A page as its script behaves towards the server, with a text of its own."""

    functions: dict[str, Callable[[Any], Awaitable[Any]]]
    name: str
    text: str
    number: int = 0
    answered: int = 0
    """Requests for which the server began to read the text."""
    refused: int = 0
    view: Any = None
    told: list[Any] = field(default_factory=list)

    async def settle(self, most: int = 2000) -> None:
        """Send requests until one gets a settled view, and receive its news to the end.

        Fails after `most` requests. A page that is refused until all others have their views needs far fewer.
        """
        while True:
            assert self.answered + self.refused < most, "It asks for ever."
            news = await self.ask()
            if news.get("state") == "full":
                assert news["over"] and news["sentence"].endswith("again soon.")
                await asyncio.sleep(AGAIN[min(self.refused, len(AGAIN) - 1)] * random.uniform(0.5, 1))
                self.refused += 1
                continue
            self.answered += 1
            while not news.get("unknown") and not news["over"]:
                self.take(news)
                given = {"page": self.name, "number": self.number, "seen": news["seen"]}
                news = await self.functions["more"](given)
            if not news.get("unknown"):
                self.take(news)
                return

    async def ask(self) -> Any:
        self.number += 1
        known = {"page": self.name, "number": self.number, "revision": 1, "text": self.text}
        return await self.functions["ask"](known | {"k": 2, "depth": 2})

    def take(self, news: Any) -> None:
        assert news.get("sentence") is None, news
        self.told.append(news)
        if news["state"] == "settled" and "view" in news:
            self.view = news["view"]


class CountedSession(PageSession):
    """A session that is counted as long as anything refers to it."""

    there: ClassVar[weakref.WeakSet[PageSession]] = weakref.WeakSet()

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.there.add(self)


def own_texts(count: int, characters: int) -> list[str]:
    """Texts that have nothing in common, not even their beginnings."""
    words = " ".join(CORPUS[:2]).split()
    shuffled = [random.Random(seed).choices(words, k=characters // 3) for seed in range(count)]
    return [f"{place} {' '.join(some)}"[:characters] for place, some in enumerate(shuffled)]


@pytest.fixture(scope="module")
def reader(byte_tokenizer: Any) -> Model:
    """A model that sees long texts, and reads them fast."""
    return load_model(tiny_llama(len(byte_tokenizer), max_position_embeddings=4096), tokenizer=byte_tokenizer)


def loaded(model: Model) -> ModelLoader:
    loader = ModelLoader(lambda report: model)
    loader.run()
    return loader


@pytest.mark.parametrize(
    ("pages", "most", "characters"),
    [(14, 4, 500), pytest.param(200, 64, 3000, marks=pytest.mark.slow)],
    ids=["a few", "a class"],
)
def test_more_pages_than_slots_all_get_their_views_and_no_text_is_evaluated_twice(
    reader: Model, pages: int, most: int, characters: int
) -> None:
    CountedSession.there.clear()
    service = PageService(loaded(reader), session=CountedSession, most=most)
    functions = {function.__name__: function for function in service.functions}
    texts = own_texts(pages, characters)
    visitors = [Visitor(functions, f"page-of-somebody-{place}", text) for place, text in enumerate(texts)]
    held: list[int] = []

    async def visit(visitor: Visitor) -> None:
        await visitor.settle()
        held.append(len(service.open_pages))

    async def all_of_them() -> None:
        await asyncio.gather(*map(visit, visitors))
        await asyncio.wait_for(few_documents(), 60)

    async def few_documents() -> None:
        # A document that was forgotten in the middle of a pass lives on until the pass ends.
        while gc.collect() >= 0 and len(CountedSession.there) > most:
            await asyncio.sleep(0.05)

    asyncio.run(all_of_them())
    assert max(held) <= most
    assert sum(visitor.refused for visitor in visitors) > 0, "there was not room for all"
    answered = [visitor.answered for visitor in visitors]
    assert max(answered) <= 2
    assert answered.count(1) >= 0.9 * pages
    for visitor in visitors[:: max(1, pages // 10)]:
        assert rows(visitor.view) == expected(reader, visitor.text, k=2, depth=2)


def test_a_waiting_page_never_loses_its_session_to_another(tiny_model: Model) -> None:
    service = PageService(loaded(tiny_model), most=2)

    async def visit() -> list[Any]:
        first, second, third = (Page(service, f"page-of-somebody-{place}") for place in range(3))
        one = await first.functions["ask"](first.request("The sea", depth=40))
        two = await second.functions["ask"](second.request("The sky", depth=40))
        refused = await third.ask("The keeper")
        assert not one["over"] and not two["over"]
        assert [news["state"] for news in refused] == ["full"]
        assert (refused[0]["number"], refused[0]["revision"]) == (1, 1)
        settled = [await self_settled(page, news) for page, news in ((first, one), (second, two))]
        return [*settled, (await third.ask("The keeper"))[-1]["state"]]

    assert asyncio.run(visit()) == ["settled"] * 3


async def self_settled(page: Page, news: Any) -> str:
    """The state that a request comes to, by asking for all the rest of its news."""
    while not news["over"]:
        news = await page.functions["more"]({"page": page.name, "number": page.number, "seen": news["seen"]})
        assert not news.get("unknown")
    return str(news["state"])


def test_a_page_that_only_prefetches_makes_room_for_another(tiny_model: Model) -> None:
    service = PageService(loaded(tiny_model), most=1)

    async def visit() -> tuple[Any, Any]:
        first, second = Page(service, "page-of-somebody-1"), Page(service, "page-of-somebody-2")
        news = await first.functions["ask"](first.request("The sea", k=5, depth=9, ahead=True))
        while news["state"] != "settled":
            news = await first.functions["more"]({"page": first.name, "number": 1, "seen": news["seen"]})
        waiting = asyncio.ensure_future(
            first.functions["more"]({"page": first.name, "number": 1, "seen": news["seen"]})
        )
        await asyncio.sleep(0)
        found = await second.ask("The sky")
        return await waiting, found

    told, found = asyncio.run(visit())
    assert (told["over"], told["state"], told.get("unknown")) == (True, "settled", None)
    assert found[-1]["state"] == "settled"


def test_a_closed_page_makes_room(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    service = PageService(loaded(tiny_model), most=1)

    async def visit() -> list[str]:
        first, second = Page(service, "page-of-somebody-1"), Page(service, "page-of-somebody-2")
        await first.functions["ask"](first.request("The sea", depth=40))
        states = [(await second.ask("The sky"))[-1]["state"]]
        monkeypatch.setattr(request_progress, "ABSENT", -1.0)
        return [*states, (await second.ask("The sky"))[-1]["state"]]

    assert asyncio.run(visit()) == ["full", "settled"]


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_store_is_bounded_and_drops_the_least_recently_used_entry() -> None:
    clock, gone = Clock(), []
    store: ExpiringStore[object] = ExpiringStore(
        object, capacity=3, max_idle_seconds=10, on_forget=lambda key, value: gone.append(key), clock=clock
    )
    kept = {name: store.get_or_make(name) for name in "abc"}
    assert store.get_or_make("a") is kept["a"]
    assert store.find("b") is kept["b"]
    store.get_or_make("d")
    assert gone == ["c"], "b was found and a was held since"
    assert len(store) == 3
    store.get_or_make("e")
    assert gone == ["c", "a"]
    assert store.find("a") is None
    assert len(store) == 3, "to look for a thing makes none"


def test_the_store_drops_idle_entries_also_when_no_entry_is_added() -> None:
    clock, gone = Clock(), []
    store: ExpiringStore[object] = ExpiringStore(
        object, max_idle_seconds=10, on_forget=lambda key, value: gone.append(key), clock=clock
    )
    first = store.get_or_make("a")
    clock.now = 10.0
    assert store.find("a") is first, "ten seconds are not too long, and from now on it is fresh"
    clock.now = 20.0
    assert store.get_or_make("b") is not first
    clock.now = 20.1
    assert store.find("a") is None
    assert gone == ["a"]
    clock.now = 30.0
    assert store.find("b") is not None


def test_the_store_never_drops_a_busy_entry() -> None:
    clock, busy = Clock(), {"a", "b"}
    names: dict[int, str] = {}
    store: ExpiringStore[list[str]] = ExpiringStore(
        list, capacity=2, is_busy=lambda value: names[id(value)] in busy, clock=clock
    )
    for name in "ab":
        names[id(store.get_or_make(name))] = name
    with pytest.raises(NoRoom, match="try again soon"):
        store.get_or_make("c")
    assert store.find("a") is not None and store.find("b") is not None
    assert store.get_or_make("a") is store.find("a"), "who is there needs no room"
    busy.remove("b")
    names[id(store.get_or_make("c"))] = "c"
    assert store.find("b") is None and store.find("a") is not None
