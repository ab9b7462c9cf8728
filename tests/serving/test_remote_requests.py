"""Requests to a model's server through the scheduler: few of them, and of several people at the same time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from interface import ModelLoader
from interface.server.page_service import PageService
from lookahead_core import Document, Model, load_model, lookahead_batch
from lookahead_core.document.prefetch import prefetch_views
from lookahead_core.engines.remote import server_errors
from lookahead_core.serving.scheduler import Scheduler
from tests.support.completions_server import CompletionsServer
from tests.support.requests_to_pages import all_news, ask

EVENT = 0.05
"""Seconds that the slow server takes for each token of a request."""
COLUMNS = [{"temperature": 1, "instruction": "Be brief."}, {"temperature": 1, "instruction": "Be long."}]


@pytest.fixture
def server(tiny_model: Model) -> Iterator[CompletionsServer]:
    served = CompletionsServer(tiny_model.hf_model)
    yield served
    served.close()


@pytest.fixture
def loader(server: CompletionsServer, byte_tokenizer: Any) -> Iterator[ModelLoader]:
    found = ModelLoader(lambda report: load_model(server.address, tokenizer=byte_tokenizer))
    found.run()
    del server.bodies[:]
    yield found
    found.scheduler.close()
    found.scheduler.engine.close()  # type: ignore[attr-defined]


def sizes(server: CompletionsServer) -> list[tuple[int, int]]:
    """The number of prompts and of new tokens of each request."""
    return [(len(body["prompt"]), body["max_tokens"]) for body in server.bodies]


def request(person: int, number: int = 1, **fields: Any) -> dict[str, Any]:
    asked = {"text": f"The sea {person} and", "k": 4, "depth": 6, "ahead": False, **fields}
    return {"page": f"a-page-of-person-{person}", "number": number, "revision": number, **asked}


def seconds_of(service: PageService, people: int, number: int) -> float:
    async def visit() -> None:
        found = await asyncio.gather(*(all_news(service, request(person, number)) for person in range(people)))
        assert all(news[-1]["state"] == "settled" for news in found)

    started = time.perf_counter()
    asyncio.run(visit())
    return time.perf_counter() - started


def test_a_lookahead_of_a_page_takes_two_requests(loader: ModelLoader, server: CompletionsServer) -> None:
    news = asyncio.run(ask(PageService(loader), text="The sea.", k=5, depth=8, ahead=False))
    assert news[-1]["state"] == "settled" and sizes(server) == [(1, 1), (5, 7)]


def test_the_rows_of_a_page_grow_as_tokens_come(loader: ModelLoader, server: CompletionsServer) -> None:
    server.event_seconds = 0.05
    news = asyncio.run(ask(PageService(loader), text="The sea.", k=3, depth=8, ahead=False))
    lengths = [max(len(branch["ids"]) for branch in one["view"]["branches"]) for one in news if "view" in one]
    assert lengths == sorted(lengths) and len(set(lengths)) >= 3 and lengths[-1] == 8


def test_columns_and_batches_take_two_requests_for_all(
    loader: ModelLoader, server: CompletionsServer, tiny_model: Model, byte_tokenizer: Any
) -> None:
    news = asyncio.run(ask(PageService(loader), text="The sea.", k=3, depth=6, ahead=False, columns=COLUMNS))
    assert news[-1]["state"] == "settled" and sizes(server) == [(2, 1), (6, 5)]
    for branch in (one for view in news[-1].get("view", {}).get("views", []) for one in view["branches"]):
        assert len(branch["ids"]) == 6
    remote = load_model(server.address, tokenizer=byte_tokenizer)
    texts = ("The sea", "The sea and the sky")
    local = lookahead_batch([Document(tiny_model, text) for text in texts], k=3, depth=6)
    del server.bodies[:]
    found = lookahead_batch([Document(remote, text) for text in texts], k=3, depth=6)
    assert [[one.token_ids for one in each.branches] for each in found] == [
        [one.token_ids for one in each.branches] for each in local
    ]
    # Each document has its own salt.
    assert sorted(sizes(server)) == [(1, 1), (1, 1), (3, 5), (3, 5)]
    remote.engine.close()  # type: ignore[attr-defined]


@pytest.mark.slow
def test_views_after_clicks_take_two_requests_for_many_of_them(
    server: CompletionsServer, loader: ModelLoader, tiny_model: Model
) -> None:
    assert loader.model is not None
    document = Document(loader.model, "The sea and")
    result = document.lookahead(k=3, depth=4)
    del server.bodies[:]
    found = [view for view in prefetch_views(document, result, k=3, depth=4, most_nodes=60) if view is not None]
    assert found and len(server.bodies) <= 4
    for view in found:
        local = Document(tiny_model, token_ids=[*document.token_ids, *view.token_ids]).lookahead(k=3, depth=4)
        assert [each.token_ids for each in view.result.branches] == [each.token_ids for each in local.branches]


@pytest.mark.slow
def test_two_people_at_a_slow_server_are_served_in_about_the_time_of_one(
    loader: ModelLoader, server: CompletionsServer
) -> None:
    service = PageService(loader)
    server.event_seconds = EVENT
    seconds_of(service, 1, 1)
    alone = seconds_of(PageService(loader), 1, 2)
    together = seconds_of(PageService(loader), 2, 3)
    assert alone > 20 * EVENT and together < 1.4 * alone


def test_a_server_that_hangs_for_one_person_holds_up_nobody_else(
    loader: ModelLoader, server: CompletionsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.faults = ["slow", "429 1"]
    service = PageService(loader)

    async def visit() -> None:
        slow = asyncio.create_task(all_news(service, request(1)))
        while not server.bodies:
            await asyncio.sleep(0.01)
        busy = asyncio.create_task(all_news(service, request(2)))
        while len(server.bodies) < 2:
            await asyncio.sleep(0.01)
        await all_news(service, request(3))
        assert not slow.done() and not busy.done()
        assert (await slow)[-1]["state"] == (await busy)[-1]["state"] == "settled"

    asyncio.run(visit())


def test_a_newer_request_of_a_page_closes_the_connection_of_the_older_one(
    loader: ModelLoader, server: CompletionsServer
) -> None:
    service = PageService(loader)
    server.event_seconds = 0.02

    async def visit() -> Any:
        older = asyncio.create_task(all_news(service, request(1, 1, depth=40, k=8)))
        while len(server.bodies) < 2:
            await asyncio.sleep(0.01)
        newer = await all_news(service, request(1, 2, text="The sea and the old"))
        await older
        return newer

    assert asyncio.run(visit())[-1]["state"] == "settled"
    assert server.broken.wait(2) and server.written < 8 * 39
    assert loader.scheduler.is_idle


def test_a_request_of_a_page_that_leaves_ends_and_the_thread_ends_when_idle(
    server: CompletionsServer, byte_tokenizer: Any
) -> None:
    model = load_model(server.address, tokenizer=byte_tokenizer)
    scheduler = Scheduler(model.engine, idle=0.1)
    begun, ended = threading.Event(), threading.Event()
    server.event_seconds = 0.02
    document = Document(model, "The sea")
    scheduler.submit(
        document.lookahead_steps(k=4, depth=40),
        "somebody",
        on_step=lambda step: begun.set(),
        on_end=lambda error: ended.set(),
    )
    assert begun.wait(5)
    scheduler.stop("somebody")
    assert server.broken.wait(2) and not ended.is_set()
    until = time.monotonic() + 5
    while scheduler.has_thread and time.monotonic() < until:
        time.sleep(0.01)
    assert not scheduler.has_thread
    model.engine.close()  # type: ignore[attr-defined]


def test_faults_and_errors_reach_the_person_whose_request_had_them(
    loader: ModelLoader, server: CompletionsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_errors, "BACK_OFF", 0.01)
    service = PageService(loader)
    server.faults = ["cut", "", "cut", "half"]
    assert asyncio.run(all_news(service, request(1)))[-1]["state"] == "settled"
    server.faults = ["500"] * server_errors.ATTEMPTS
    (*_, last) = asyncio.run(all_news(service, request(2)))
    # The page shows the sentence and sends the request again.
    assert last["state"] == "full" and last["over"] and "has failed (500)" in last["sentence"]
    assert last["sentence"].endswith("The page goes on by itself once it answers.") and "again_after" not in last
    assert asyncio.run(all_news(service, request(2, 2)))[-1]["state"] == "settled"


def test_a_page_hears_how_long_a_busy_server_wants_to_be_left_alone(
    loader: ModelLoader, server: CompletionsServer
) -> None:
    service = PageService(loader)
    server.faults = ["429 30"]
    last = asyncio.run(all_news(service, request(1)))[-1]
    assert last["state"] == "full" and last["again_after"] == 30
    session = service.open_pages.find("a-page-of-person-1").session  # type: ignore[union-attr]
    assert asyncio.run(all_news(service, request(1, 2)))[-1]["state"] == "settled"
    # The document, its predictions and its salt are kept.
    assert service.open_pages.find("a-page-of-person-1").session is session  # type: ignore[union-attr]


def test_a_refusal_of_a_server_is_an_error_that_is_not_repeated(loader: ModelLoader, server: CompletionsServer) -> None:
    server.faults = ["400"]
    last = asyncio.run(all_news(PageService(loader), request(1)))[-1]
    assert last["state"] == "error" and "refuses the request (400" in last["sentence"]


def test_a_job_that_waits_in_inference_mode_leaves_the_mode_of_others_as_it_is(
    server: CompletionsServer, byte_tokenizer: Any
) -> None:
    server.most_logprobs = -1
    model = load_model(server.address, tokenizer=byte_tokenizer)
    scheduler = Scheduler(model.engine)
    server.event_seconds = 0.05
    document, modes, over = Document(model, "The sea"), list[bool](), threading.Semaphore(0)

    def waiting() -> Iterator[None]:
        with torch.inference_mode():
            scheduler.evaluate([document.head])
        yield

    def watching() -> Iterator[None]:
        for _ in range(100):
            modes.append(torch.is_inference_mode_enabled())
            time.sleep(0.001)
            yield

    for name, steps in (("one", waiting()), ("two", waiting()), ("three", watching())):
        scheduler.submit(steps, name, on_step=lambda step: None, on_end=lambda error: over.release())
    assert all(over.acquire(timeout=10) for _ in range(3))
    assert len(modes) == 100 and not any(modes)
    scheduler.close()
    model.engine.close()  # type: ignore[attr-defined]
