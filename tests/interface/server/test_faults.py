"""Faults in the server: what ends, what goes on, and what a page is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import torch

from interface import ModelLoader
from interface.server import page_service, request_progress
from interface.server.error_sentences import UNEXPECTED
from interface.server.page_service import PageService
from interface.server.session_lifetime import OpenPages
from lookahead_core import Model
from lookahead_core.errors import NO_MEMORY
from lookahead_core.serving.expiring_store import ExpiringStore
from lookahead_core.serving.job import INTERRUPTED
from tests.interface.server.test_page_service import Page, expected, rows


@pytest.fixture
def service(tiny_model: Model) -> PageService:
    loader = ModelLoader(lambda report: tiny_model)
    loader.run()
    return PageService(loader)


def fail_at(service: PageService, monkeypatch: pytest.MonkeyPatch, number: int, error: Callable[[], Any]) -> None:
    """Let the pass with this number, counted from 1, raise an error."""
    engine, calls = service.loader.scheduler.engine, []
    plain = engine.score

    def score(nodes: Any, hidden: bool = False) -> Any:
        calls.append(len(nodes))
        if len(calls) == number:
            raise error()
        return plain(nodes, hidden=hidden)

    monkeypatch.setattr(engine, "score", score)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "state", "sentence"),
    [
        (lambda: torch.OutOfMemoryError("CUDA out of memory."), "error", NO_MEMORY),
        (MemoryError, "error", NO_MEMORY),
        (lambda: RuntimeError("inner workings"), "error", UNEXPECTED),
        (SystemExit, "full", INTERRUPTED),
    ],
)
def test_after_an_error_in_a_pass_the_page_has_a_sentence_and_the_same_request_is_answered(
    service: PageService,
    tiny_model: Model,
    monkeypatch: pytest.MonkeyPatch,
    error: Callable[[], Any],
    state: str,
    sentence: str,
) -> None:
    page = Page(service)
    asyncio.run(page.view("The sea"))
    fail_at(service, monkeypatch, 2, error)
    last = asyncio.run(page.ask("The sea and", k=3, depth=6))[-1]
    assert (last["state"], last["sentence"], last["over"]) == (state, sentence, True)
    view = asyncio.run(page.view("The sea and", k=3, depth=6))
    assert rows(view) == expected(tiny_model, "The sea and", k=3, depth=6)


@pytest.mark.parametrize(("error", "same"), [(lambda: ValueError("Wrong."), True), (RuntimeError, False)])
def test_an_unexpected_error_ends_the_session_and_an_expected_one_keeps_it(
    service: PageService, monkeypatch: pytest.MonkeyPatch, error: Callable[[], Any], same: bool
) -> None:
    page = Page(service)
    asyncio.run(page.view("The sea"))
    before = service.open_pages.find(page.name)
    assert before is not None
    session = before.session
    fail_at(service, monkeypatch, 1, error)
    asyncio.run(page.ask("The sea and"))
    assert (before.session is session) == same


@pytest.mark.parametrize("returns", [False, True])
def test_the_work_of_a_page_that_does_not_poll_ends_and_comes_back_with_it(
    service: PageService, tiny_model: Model, monkeypatch: pytest.MonkeyPatch, returns: bool
) -> None:
    monkeypatch.setattr(page_service, "ABSENT", 0.0)
    monkeypatch.setattr(request_progress, "ABSENT", -1.0)
    page, scheduler = Page(service), service.loader.scheduler

    async def visit() -> Any:
        first = await page.functions["ask"](page.request("The sea", k=20, depth=40))
        while not scheduler.is_idle:
            await asyncio.sleep(0.001)
        known = service.open_pages.find(page.name)
        assert known is not None and known.progress is None, "it has ended before its last pass"
        later = await page.functions["more"]({"page": page.name, "number": 1, "seen": first["seen"]})
        monkeypatch.undo()
        return later, await page.view("The sea", k=3, depth=4) if returns else None

    passes = tiny_model.engine.passes
    later, view = asyncio.run(visit())
    assert later["unknown"], "a page that comes back asks again"
    if returns:
        assert rows(view) == expected(tiny_model, "The sea", k=3, depth=4)
    else:
        assert tiny_model.engine.passes - passes < 40


def test_the_work_of_a_page_that_polls_goes_on(service: PageService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_service, "ABSENT", 0.0)
    news = asyncio.run(Page(service).ask("The sea", k=5, depth=20))
    assert news[-1]["state"] == "settled"


def test_values_that_were_unused_for_longest_are_forgotten_while_all_are_too_large() -> None:
    sizes = {"a": 10, "b": 0, "c": 30, "d": 20}
    forgotten: list[str] = []
    names = iter(sizes)
    store = ExpiringStore(
        lambda: next(names), max_bytes=60, bytes_of=lambda name: sizes[name], is_busy=lambda name: name == "c",
        on_forget=lambda key, value: forgotten.append(value),
    )  # fmt: skip
    for name in sizes:
        store.get_or_make(name)
    assert not forgotten, "60 bytes are allowed"
    sizes["d"] = 25
    store.get_or_make("d")
    assert forgotten == ["a"], "the longest unused one, and no more than is needed; an empty one frees nothing"
    sizes["c"] = 100
    store.get_or_make("d")
    assert forgotten == ["a"], "neither a busy one nor the one that is used"


@pytest.mark.slow
def test_sessions_whose_trees_are_too_large_end_and_are_rebuilt(service: PageService, tiny_model: Model) -> None:
    first, second = Page(service, "page-of-somebody-1"), Page(service, "page-of-somebody-2")
    asyncio.run(first.view("The sea", k=5, depth=20))
    held = service.open_pages.find(first.name)
    assert held is not None and held.session.document is not None
    assert held.session.tree_bytes == 10_000 * held.session.document.tree.size >= 10_000 * 50
    service.open_pages = OpenPages(service.loader, page_service.PageSession, 64, held.session.tree_bytes)
    for page, text in ((first, "The sea"), (second, "The sky"), (first, "The sea")):
        view = asyncio.run(page.view(text, k=5, depth=20))
        assert rows(view) == expected(tiny_model, text, k=5, depth=20, stop_at_repetition=True)
    asyncio.run(first.ask("The sea and"))
    assert len(service.open_pages) == 1
