"""The server function that scores a guessed next word."""

from __future__ import annotations

import asyncio
import copy
import threading
from contextlib import suppress
from typing import Any

import pytest

from interface import ModelLoader
from interface.server.callers import LEAVE
from interface.server.guess_service import GuessService
from interface.server.page_session import PageSession
from lookahead_core import Document, Model, Settings, load_model
from lookahead_core.analysis.guess_odds import guess_odds
from tests.conftest import tiny_llama
from tests.interface.server.test_page_service import TEMPLATE
from tests.support.requests_to_pages import PAGE, all_news
from tests.support.witness import around

TEXT = "Once upon a"
REQUEST = {"page": PAGE, "number": 1, "revision": 1, "text": TEXT, "ahead": False}


@pytest.fixture
def service(tiny_model: Model) -> GuessService:
    loader = ModelLoader(lambda report: tiny_model)
    loader.run()
    return GuessService(loader)


def scored(service: GuessService, request: dict[str, Any], asked: dict[str, Any] = REQUEST) -> Any:
    """The answer to a guess after the text of `asked` was read."""
    guess = {function.__name__: function for function in service.functions}["guess"]

    async def run() -> Any:
        await all_news(service, asked)
        return await guess(request)

    return asyncio.run(run())


def test_a_guess_has_the_odds_of_the_document_with_its_last_token_reopened(
    service: GuessService, tiny_model: Model
) -> None:
    answer = scored(service, REQUEST | {"guess": "time"})
    wanted = guess_odds(Document(tiny_model, TEXT), "time", heal=True)
    assert answer["probability"] == pytest.approx(wanted.probability, rel=1e-4)
    assert answer["error"] == pytest.approx(wanted.error, rel=1e-4)
    assert answer["texts"] == [" time", "time"]
    assert answer["words"] is True


def test_a_guess_has_the_odds_of_rows_under_the_settings_of_the_page(service: GuessService, tiny_model: Model) -> None:
    first = Document(tiny_model, TEXT).lookahead(k=1, depth=1).branches[0].token_ids[0]
    settings = {"temperature": 0.7, "top_p": 0.95, "banned": [first], "avoid": "sea"}
    answer = scored(service, REQUEST | settings | {"guess": "time"})
    wanted = guess_odds(Document(tiny_model, TEXT), "time", heal=True, **settings)
    plain = guess_odds(Document(tiny_model, TEXT), "time", heal=True)
    assert answer["probability"] == pytest.approx(wanted.probability, rel=1e-4)
    assert wanted.probability != pytest.approx(plain.probability, rel=1e-2)
    for wrong in ({"temperature": 9}, {"top_p": "much"}, {"banned": [10**9]}):
        assert scored(service, REQUEST | {"guess": "time"} | wrong, REQUEST)["state"] == "error"


@pytest.mark.slow
def test_with_columns_a_guess_has_the_odds_of_the_first_one(byte_tokenizer: Any) -> None:
    tokenizer = copy.deepcopy(byte_tokenizer)
    tokenizer.chat_template = TEMPLATE
    model = load_model(tiny_llama(len(tokenizer)), tokenizer=tokenizer)
    loader = ModelLoader(lambda report: model)
    loader.run()
    for first in (None, "Write a poem."):
        columns = REQUEST | {"columns": [{"instruction": first}, {"instruction": "Be short."}]}
        answer = scored(GuessService(loader), columns | {"guess": "time"}, columns)
        alone = REQUEST | {"instruction": first}
        assert answer == scored(GuessService(loader), alone | {"guess": "time"}, alone)
        assert answer["probability"] > 0


def test_the_model_time_of_a_guess_is_limited(service: GuessService, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "probability" in scored(service, REQUEST | {"guess": "time"})
    monkeypatch.setattr(service.loader, "settings", Settings(page_seconds=1e-9))
    guess = {function.__name__: function for function in service.functions}["guess"]
    answer = asyncio.run(guess(REQUEST | {"guess": "days"}))
    assert answer["state"] == "error" and "used the model for 1e-09 seconds" in answer["sentence"]


def test_a_guess_whose_page_has_left_is_stopped(tiny_model: Model) -> None:
    busy, go = threading.Event(), threading.Event()

    def wait() -> None:
        busy.set()
        assert go.wait(60)

    go.set()
    loader = ModelLoader(lambda report: around(tiny_model, wait))
    loader.run()
    service = GuessService(loader)

    async def run() -> None:
        await all_news(service, REQUEST)
        go.clear()
        busy.clear()
        guess = asyncio.ensure_future(service.guess(REQUEST | {"guess": "timeless stories"}))
        await asyncio.to_thread(busy.wait, 60)
        assert loader.scheduler.request_count == 1
        guess.cancel()
        with suppress(asyncio.CancelledError):
            await guess
        assert loader.scheduler.request_count == 0, "the pass that runs is held, and nothing comes after it"
        go.set()

    asyncio.run(run())


def test_a_guess_after_another_text_or_prompt_is_unknown(service: GuessService) -> None:
    for other in ({"text": "Once"}, {"instruction": "Be brief."}, {"page": "another-page-of-somebody"}):
        assert scored(service, REQUEST | {"guess": "time"} | other) == {"unknown": True}


@pytest.mark.slow
@pytest.mark.parametrize("guess", [None, 7, ["time"], {}, "", "  ", "a" * 81])
def test_a_guess_that_is_no_word_gets_a_sentence(service: GuessService, guess: Any) -> None:
    answer = scored(service, REQUEST | {"guess": guess})
    assert answer["state"] == "error"
    assert answer["sentence"]
    assert "probability" not in answer


def test_an_invalid_request_gets_a_sentence(service: GuessService) -> None:
    for wrong in ({"page": 7}, {"text": None}, {"number": -1}):
        assert scored(service, REQUEST | {"guess": "time"} | wrong)["state"] == "error"


def test_a_guess_and_a_tree_hold_no_turn_while_they_wait_for_the_model(service: GuessService) -> None:
    events: list[str] = []

    async def run() -> None:
        await all_news(service, REQUEST)
        LEAVE.set(lambda: events.append("turn left"))
        assert (await service.guess(REQUEST | {"guess": "time"}))["probability"]
        events.append("guess answered")
        assert await service.tree({"page": PAGE})
        events.append("tree answered")

    asyncio.run(run())
    assert events == ["turn left", "guess answered", "turn left", "tree answered"]


def test_a_guess_looks_at_the_document_in_the_thread_of_the_scheduler(
    service: GuessService, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, document_of = [], PageSession.document_of

    def recorded(session: PageSession, request: Any) -> Any:
        threads.append(threading.current_thread())
        return document_of(session, request)

    monkeypatch.setattr(PageSession, "document_of", recorded)
    assert scored(service, REQUEST | {"guess": "time"})["probability"]
    assert threads and threading.current_thread() not in threads
