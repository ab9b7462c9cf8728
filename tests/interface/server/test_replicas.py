"""Several servers of the model behind the page: a person is told once when their text moves, and operators see it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from interface import ModelLoader
from interface.http import operations
from interface.server.page_service import PageService
from lookahead_core import Model, load_model
from lookahead_core.engines.remote import replicas, server_errors
from lookahead_core.engines.remote.placement import ranking
from tests.interface.http.test_operations import metrics
from tests.support.completions_server import CompletionsServer
from tests.support.requests_to_pages import PAGE, ask

MOVED = "The server that computed your text has stopped. Another one goes on with it; nothing is lost."
COLUMNS = [{"temperature": 1}, {"temperature": 0.5}]


@pytest.fixture
def servers(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[CompletionsServer]]:
    monkeypatch.setattr(server_errors, "BACK_OFF", 0.01)
    monkeypatch.setattr(replicas, "FIRST_CHECK", 60.0)
    started = [CompletionsServer(tiny_model.hf_model, most_logprobs=-1) for _ in range(2)]
    yield started
    for server in started:
        if not server.dead:
            server.close()


@pytest.fixture
def loader(servers: list[CompletionsServer], byte_tokenizer: Any) -> Iterator[ModelLoader]:
    addresses = [server.address for server in servers]
    found = ModelLoader(lambda report: load_model(addresses, tokenizer=byte_tokenizer))
    found.run()
    yield found
    found.scheduler.engine.close()  # type: ignore[attr-defined]


def home(service: PageService, servers: list[CompletionsServer]) -> CompletionsServer:
    page = service.open_pages.find(PAGE)
    assert page is not None
    first = ranking([server.address for server in servers], page.session.session_key)[0]
    return next(server for server in servers if server.address == first)


@pytest.mark.parametrize("columns", [None, COLUMNS])
def test_a_page_is_told_once_that_another_server_goes_on_with_its_text(
    loader: ModelLoader, servers: list[CompletionsServer], columns: Any
) -> None:
    service = PageService(loader)
    fields = {"k": 3, "depth": 3, "ahead": False, **({"columns": columns} if columns else {})}

    async def visit() -> list[Any]:
        notes = []
        for number in range(1, 6):
            news = await ask(service, number, text="The sea" + " and" * number, **fields)
            assert news[-1]["state"] == "settled", news[-1]
            notes.append(next((one["note"] for one in reversed(news) if one.get("note")), None))
            if number == 2:
                home(service, servers).kill()
        return notes

    assert asyncio.run(visit()) == [None, None, MOVED, None, None]


def test_health_and_metrics_count_servers_and_moves_without_addresses_and_keys(
    loader: ModelLoader, servers: list[CompletionsServer]
) -> None:
    client, service = TestClient(Starlette(routes=operations.routes(loader))), PageService(loader)
    assert client.get("/health").json() == {"status": "ready", "replicas": 2, "replicas_answering": 2}
    asyncio.run(ask(service, 1, text="The sea", k=2, depth=2))
    lost = home(service, servers)
    lost.kill()
    asyncio.run(ask(service, 2, text="The sea and", k=2, depth=2))
    assert client.get("/health").json() == {"status": "ready", "replicas": 2, "replicas_answering": 1}
    found = metrics(loader)
    answering = [found[f"lookahead_replica_answering{{{number}}}"] for number in (1, 2)]
    assert answering == [float(server is not lost) for server in servers]
    assert found["lookahead_replica_moves_total"] == 1
    page = service.open_pages.find(PAGE)
    assert page is not None
    text = operations.metrics_text(loader, 0)
    assert page.session.session_key not in text and "127.0.0.1" not in text
    next(server for server in servers if server is not lost).kill()
    news = asyncio.run(ask(service, 3, text="The sea and the", k=2, depth=2))
    assert news[-1]["state"] == "full" and "cannot be reached" in news[-1]["sentence"]
    answer = client.get("/health")
    assert answer.status_code == 503 and answer.json()["status"] == "waiting"
    assert metrics(loader)["lookahead_health{waiting}"] == 1
