"""Health and metrics: the states that a container's check reads, counts made independently, and who may read them."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from interface import ModelLoader
from interface.http import operations
from interface.http.operations import metrics_text
from interface.server import page_service
from interface.server.page_service import PageService
from lookahead_core import Model, ModelError, load_model
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.serving.scheduler import Scheduler
from tests.conftest import tiny_llama
from tests.support.http_requests import http_request
from tests.support.requests_to_pages import PAGE, ask
from tests.support.witness import around

SAMPLE = re.compile(r'([a-z_]+)(?:\{([a-z]+)="([^"\\\n]*)"\})? ([0-9.e+-]+|\+Inf)')
"""A sample with at most one label, as all of ours have."""
TOKEN = {"Authorization": "Bearer of-the-operator"}


def parsed(text: str) -> dict[str, float]:
    """The samples of a text in Prometheus' format, by name and label; every line must be of that format."""
    found: dict[str, float] = {}
    kinds: dict[str, str] = {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds and kind in ("counter", "gauge", "histogram")
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            name = re.sub("_(bucket|sum|count)$", "", match[1]) if match[1] not in kinds else match[1]
            assert name in kinds, f"{line} has no type before it"
            key = f"{match[1]}{{{match[3]}}}" if match[2] else match[1]
            assert key not in found
            found[key] = float(match[4])
    return found


def metrics(loader: ModelLoader) -> dict[str, float]:
    return parsed(metrics_text(loader, operations.cache_bytes(loader)))


def loaded(model: Model) -> ModelLoader:
    loader = ModelLoader(lambda report: model)
    loader.run()
    return loader


@contextmanager
def watched(model: Model) -> Iterator[list[int]]:
    """The rows of each pass of a model's engine, taken from the token ids that its modules get."""
    rows: list[int] = []

    def watch(module: Any, arguments: Any, options: dict[str, Any]) -> None:
        mask = options.get("attention_mask")
        whole_paths = isinstance(model.engine, UncachedEngine) and mask is not None
        rows.append(int(mask.sum()) if whole_paths else options["input_ids"].numel())

    engine: Any = model.engine
    hook = engine.model_copy.register_forward_pre_hook(watch, with_kwargs=True)
    try:
        yield rows
    finally:
        hook.remove()


@pytest.mark.parametrize("engine", ["cached", "uncached"])
def test_passes_rows_and_tokens_are_those_that_the_model_was_given(engine: str, byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer, engine=engine)
    loader = loaded(model)
    before = metrics(loader)
    with watched(model) as rows:
        texts = ("The sea", "The sea and the sky", "The old keeper climbed the stairs again and again. " * 4)
        for number, text in enumerate(texts, start=1):
            asyncio.run(ask(PageService(loader), number, text=text, k=3, depth=4, ahead=number == 2))
    after = metrics(loader)
    rises = {name: after[name] - before[name] for name in after}
    assert rises["lookahead_passes_total"] == rises["lookahead_pass_rows_count"] == len(rows) > 10
    assert rises["lookahead_tokens_total"] == rises["lookahead_pass_rows_sum"] == sum(rows)
    for bound in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
        assert rises[f"lookahead_pass_rows_bucket{{{bound}}}"] == sum(size <= bound for size in rows), bound
    assert rises["lookahead_pass_rows_bucket{+Inf}"] == len(rows)
    caches = [cache.bytes for cache in getattr(model.engine, "_caches", ())]
    assert after["lookahead_cache_bytes"] == sum(caches) and (engine == "uncached") == (sum(caches) == 0)


def test_clicks_count_as_hits_if_their_view_was_prefetched_and_typing_counts_as_neither(tiny_model: Model) -> None:
    loader = loaded(tiny_model)
    service = PageService(loader)

    async def visit() -> tuple[int, int]:
        """Click and type; return the number of clicks whose view the page had got, and of those whose it had not."""
        hits, misses, text = 0, 0, "The sea and"
        accepted: list[Any] = []
        for turn in range(10):
            text += " typed" if turn % 3 == 2 else ""
            options = {"k": 3, "depth": 3, "ahead": turn % 2 == 0}
            news = await ask(service, turn, text=text, accepted=[] if turn % 3 == 2 else accepted, **options)
            branches = [each for one in news if "view" in one for each in one["view"]["branches"]]
            shown = [(each, each["pieces"][0]) for each in branches if each["pieces"]]
            branch, piece = next(one for one in reversed(shown) if "\ufffd" not in one[1]["text"])
            ids = branch["ids"][: piece["tokens"]]
            accepted, text = [[len(text), ids, branch["healed"]]], text + piece["text"]
            if turn % 3 != 1 and turn < 9:
                known = any(" ".join(map(str, ids)) in one["ahead"] for one in news)
                hits, misses = hits + known, misses + (not known)
        return hits, misses

    hits, misses = asyncio.run(visit())
    found = metrics(loader)
    assert (found["lookahead_prefetch_hits_total"], found["lookahead_prefetch_misses_total"]) == (hits, misses)
    assert hits + misses == 6 and hits and misses
    assert found["lookahead_view_seconds_count"] == 10
    assert found["lookahead_sessions"] == 1 and found["lookahead_people_waiting"] == 0


@pytest.mark.slow
def test_errors_are_counted_by_kind_and_responses_by_status(address: str) -> None:
    before = parsed(http_request(address, "GET", "/metrics")[1])
    for body in ({"text": 7}, {"text": "a", "k": 0}, {"text": "a", "secret": 1}):
        assert http_request(address, "POST", "/api/lookahead", body)[0] == 400
    assert http_request(address, "POST", "/api/lookahead", b"no JSON")[0] == 400
    assert http_request(address, "GET", "/api/nothing")[0] == 404
    assert http_request(address, "POST", "/api/lookahead", {"text": "a"})[0] == 200
    after = parsed(http_request(address, "GET", "/metrics")[1])
    rises = {name: value - before.get(name, 0) for name, value in after.items() if value != before.get(name, 0)}
    assert rises["lookahead_errors_total{ValueError}"] == 3 and rises["lookahead_errors_total{Refused}"] == 1
    assert rises["lookahead_responses_total{400}"] == 4 and rises["lookahead_responses_total{404}"] == 1
    assert rises["lookahead_responses_total{200}"] == 2, "the call, and the first request for metrics"
    assert rises["lookahead_calls_total{lookahead}"] == 1


def test_a_page_that_waits_hears_how_many_others_do_and_metrics_count_all_of_them(
    tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        if held.is_set():
            assert go.wait(60)

    loader = loaded(around(tiny_model, hold))
    service = PageService(loader)
    monkeypatch.setattr(page_service, "OTHERS_AFTER", 0.01)
    functions = {function.__name__: function for function in service.functions}

    def request(page: int) -> dict[str, Any]:
        name = f"page-of-somebody-{page}"
        return {"page": name, "number": 1, "revision": 1, "text": f"{page} sea", "k": 2, "depth": 2, "ahead": False}

    async def crowd() -> None:
        held.set()
        first = asyncio.ensure_future(functions["ask"](request(0)))
        others = [asyncio.ensure_future(functions["ask"](request(page))) for page in (1, 2, 3)]
        note = None
        while note != "The model has 3 other requests at the same time, so this may take longer.":
            await asyncio.sleep(0.001)
            answer = await functions["more"](request(0) | {"seen": 0})
            note = answer.get("note")
            assert "view" not in answer
        found = metrics(loader)
        assert found["lookahead_queue_requests"] == found["lookahead_people_waiting"] == 4
        assert found["lookahead_sessions"] == 4
        go.set()
        for asking in (first, *others):
            news = await asking
            while not news["over"]:
                page = request([first, *others].index(asking))
                news = await functions["more"](page | {"seen": news["seen"]})
            assert news["state"] == "settled" and not news.get("note")
        assert metrics(loader)["lookahead_people_waiting"] == metrics(loader)["lookahead_queue_requests"] == 0

    asyncio.run(crowd())


def test_alone_nobody_hears_of_others() -> None:
    expected = "The model has 1 other request at the same time, so this may take longer."
    assert page_service.others_sentence(1) == expected


def client(loader: ModelLoader, token: str = "", host: str = "127.0.0.1", url: str = "http://127.0.0.1") -> TestClient:
    """A program at an address that calls the routes of a server."""
    app = Starlette(routes=operations.routes(loader, token), middleware=[])
    return TestClient(app, base_url=url, client=(host, 50_000))


def test_health_says_loading_then_ready_and_broken_where_no_answer_will_come(tiny_model: Model) -> None:
    def health(loader: ModelLoader) -> tuple[int, Any]:
        response = client(loader, host="203.0.113.7").get("/health")
        assert response.headers["cache-control"] == "no-store"
        return response.status_code, response.json()

    loader = ModelLoader(lambda report: tiny_model)
    assert health(loader) == (503, {"status": "loading"})
    loader.run()
    assert health(loader) == (200, {"status": "ready"})
    loader.scheduler.close()
    assert health(loader) == (503, {"status": "broken"})

    def fail(report: Any) -> Model:
        raise ModelError("There is no such model: /home/somebody/secret.")

    failed = ModelLoader(fail)
    failed.run()
    assert health(failed) == (503, {"status": "broken"})


def test_a_scheduler_whose_thread_has_died_with_work_left_is_broken(
    tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = loaded(tiny_model)
    assert loader.model is not None
    scheduler = Scheduler(tiny_model.engine)
    monkeypatch.setattr(scheduler, "_work", lambda: None)
    loader.model = replace(loader.model, engine=scheduler)
    assert loader.health == "ready"
    scheduler.submit(iter([1]), "somebody", on_step=lambda step: None, on_end=lambda error: None)
    assert scheduler._thread is not None
    scheduler._thread.join(60)
    assert loader.health == "broken"


@pytest.mark.parametrize(
    ("token", "host", "url", "headers", "status"),
    [
        ("", "127.0.0.1", "http://127.0.0.1", {}, 200),
        ("", "127.0.0.1", "http://localhost:7860", {}, 200),
        ("", "203.0.113.7", "http://127.0.0.1", {}, 403),
        ("", "127.0.0.1", "http://example.org", {}, 403),
        ("", "127.0.0.1", "http://127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, 403),
        ("", "127.0.0.1", "http://127.0.0.1", {"X-Forwarded-Proto": "https"}, 403),
        ("", "127.0.0.1", "http://127.0.0.1", {"Forwarded": "for=127.0.0.1"}, 403),
        ("of-the-operator", "203.0.113.7", "http://example.org", TOKEN, 200),
        ("of-the-operator", "127.0.0.1", "http://127.0.0.1", {}, 401),
        ("of-the-operator", "127.0.0.1", "http://127.0.0.1", {"Authorization": "Bearer of-the"}, 401),
        ("of-the-operator", "127.0.0.1", "http://127.0.0.1", {"Authorization": "of-the-operator"}, 401),
    ],
)
def test_metrics_are_for_this_computer_or_for_whoever_has_the_token(
    token: str, host: str, url: str, headers: dict[str, str], status: int
) -> None:
    response = client(ModelLoader(lambda report: pytest.fail("loaded")), token, host, url).get(
        "/metrics", headers=headers
    )
    assert response.status_code == status
    assert ("lookahead_health" in response.text) == (status == 200)


def test_metrics_hold_no_text_and_no_id(tiny_model: Model) -> None:
    loader = loaded(tiny_model)
    service = PageService(loader)
    for number, options in enumerate(({}, {"mode": "zanzibar"}, {"k": "zanzibar"}, {"edits": "zanzibar"}), start=1):
        asyncio.run(ask(service, number, **({"text": "Zanzibar and the sea", "k": 2, "depth": 2} | options)))
    text = metrics_text(loader, 0)
    assert parsed(text)["lookahead_errors_total{ValueError}"] == 3
    assert "zanzibar" not in text.lower() and PAGE not in text


def test_the_page_serves_both_routes(address: str) -> None:
    assert http_request(address, "GET", "/health") == (200, {"status": "ready"})
    status, text = http_request(address, "GET", "/metrics")
    assert status == 200 and parsed(text)["lookahead_health{ready}"] == 1
    assert http_request(address, "POST", "/health")[0] == 405
