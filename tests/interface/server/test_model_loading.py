"""Loading a model whose server does not answer yet: the page waits, says why, and goes on when the server comes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from interface import ModelLoader
from interface.http import operations
from interface.server import model_loading
from interface.server.call_runner import NotReady
from interface.server.page_service import PageService
from lookahead_core import Document, Model, load_model
from lookahead_core.engines.remote import server_errors
from lookahead_core.errors import ModelError
from tests.support.completions_server import CompletionsServer
from tests.support.requests_to_pages import ask


@pytest.fixture
def server(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[CompletionsServer]:
    """A server that does not answer before `start`."""
    monkeypatch.setattr(server_errors, "BACK_OFF", 0.01)
    monkeypatch.setattr(model_loading, "FIRST_RETRY", 0.05)
    served = CompletionsServer(tiny_model.hf_model)
    served.kill()
    yield served
    if not served.dead:
        served.close()


@pytest.fixture
def loader(server: CompletionsServer, byte_tokenizer: Any) -> Iterator[ModelLoader]:
    """A loader of the server's model that has begun to load."""
    found = ModelLoader(lambda report: load_model(server.address, tokenizer=byte_tokenizer)).start()
    yield found
    if server.dead:
        server.start()
    until(lambda: found.loading.done)
    if found.model is not None:
        found.scheduler.close()
        found.scheduler.engine.close()  # type: ignore[attr-defined]


def until(condition: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "It never came to that."
        time.sleep(0.01)


def test_a_page_without_a_server_says_so_and_becomes_ready_when_the_server_comes(
    loader: ModelLoader, server: CompletionsServer, capsys: pytest.CaptureFixture[str]
) -> None:
    until(lambda: loader.loading.state == "waiting")
    sentence = loader.loading.sentence
    assert "cannot be reached" in sentence and sentence.endswith("The page waits, and goes on by itself.")
    assert not loader.loading.done
    (news,) = asyncio.run(ask(PageService(loader), text="The sea"))
    assert news["state"] == "waiting" and news["loading"]["state"] == "waiting"
    with pytest.raises(NotReady, match=r"no model to answer yet\. .* cannot be reached"):
        asyncio.run(loader.caller.answer("lookahead", {"text": "The sea"}))
    server.start()
    until(lambda: loader.loading.state == "ready")
    assert asyncio.run(ask(PageService(loader), text="The sea", ahead=False))[-1]["state"] == "settled"
    until(lambda: "Ready" in capsys.readouterr().out)


def test_health_and_metrics_say_that_the_page_waits_for_a_server(loader: ModelLoader) -> None:
    client = TestClient(Starlette(routes=operations.routes(loader)))
    until(lambda: loader.loading.state == "waiting")
    answer = client.get("/health")
    assert (answer.status_code, answer.json()) == (503, {"status": "waiting"})
    assert 'lookahead_health{state="waiting"} 1' in operations.metrics_text(loader, 0)


def test_a_sentence_is_printed_once_while_it_stays_the_same(
    loader: ModelLoader, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = watched(monkeypatch)
    until(lambda: len(waits) > 4)
    assert capsys.readouterr().err.count("cannot be reached") == 1


def test_attempts_become_rarer_up_to_a_limit(
    server: CompletionsServer, monkeypatch: pytest.MonkeyPatch, byte_tokenizer: Any
) -> None:
    waits = watched(monkeypatch)
    monkeypatch.setattr(model_loading, "LONGEST_RETRY", 0.3)
    loader = ModelLoader(lambda report: load_model(server.address, tokenizer=byte_tokenizer)).start()
    until(lambda: len(waits) >= 5)
    server.start()
    until(lambda: loader.loading.state == "ready")
    assert waits[:5] == [0.05, 0.1, 0.2, 0.3, 0.3]
    loader.scheduler.close()
    loader.scheduler.engine.close()  # type: ignore[attr-defined]


def watched(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits of loaders from now on, which they only pretend."""
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        time.sleep(0.01)

    monkeypatch.setattr(model_loading, "sleep", wait)
    return waits


def test_a_server_that_fails_in_the_warm_up_is_waited_for_and_the_model_is_loaded_once(
    tiny_model: Model, monkeypatch: pytest.MonkeyPatch, byte_tokenizer: Any
) -> None:
    monkeypatch.setattr(server_errors, "BACK_OFF", 0.01)
    monkeypatch.setattr(model_loading, "FIRST_RETRY", 0.05)
    served, loads = CompletionsServer(tiny_model.hf_model), []

    def load(report: Any) -> Model:
        loads.append(load_model(served.address, tokenizer=byte_tokenizer))
        served.faults = ["500"] * (server_errors.ATTEMPTS + 1)
        return loads[-1]

    loader = ModelLoader(load)
    states: list[str] = []
    monkeypatch.setattr(model_loading, "sleep", lambda seconds: states.append(loader.loading.state))
    loader.run()
    assert states == ["waiting"] and loader.loading.state == "ready" and len(loads) == 1
    loader.scheduler.close()
    loader.scheduler.engine.close()  # type: ignore[attr-defined]
    served.close()


def test_other_errors_still_end_the_loading(tiny_model: Model) -> None:
    tries = threading.Semaphore(0)

    def load(report: Any) -> Model:
        tries.release()
        raise ModelError("There is no such model: choose another.")

    loader = ModelLoader(load)
    loader.run()
    assert loader.loading.state == "error" and tries.acquire(blocking=False) and not tries.acquire(blocking=False)


def test_on_a_cpu_a_pass_of_many_people_is_short_so_that_a_newcomer_soon_has_one(tiny_model: Model) -> None:
    loader = ModelLoader(lambda report: tiny_model)
    loader.run()
    rows = tiny_model.engine.pass_rows  # type: ignore[attr-defined]
    sizes: list[int] = []
    rows.add, count = lambda size: (sizes.append(size), count(size)), rows.add
    scheduler, go = loader.scheduler, threading.Event()
    scheduler.submit(iter(lambda: go.wait(20.0) and None, None), "holds the thread", on_step=print, on_end=print)
    ended = threading.Semaphore(0)
    for number in range(12):
        steps = Document(loader.model, f"The sea {number}").lookahead_steps(k=5, depth=3)
        scheduler.submit(steps, number, on_step=lambda step: None, on_end=lambda error: ended.release())
    go.set()
    assert all(ended.acquire(timeout=20.0) for _ in range(12))
    scheduler.close()
    assert 15 <= max(sizes) <= 28
