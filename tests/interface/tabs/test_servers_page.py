"""A model's server that comes late, or whose answers fail: the page says so, keeps the text, and goes on by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from interface.server import model_loading
from lookahead_core import Model, load_model
from lookahead_core.settings import Settings
from tests.support import browser as browsers
from tests.support.browser import Visit, expect
from tests.support.completions_server import CompletionsServer
from tests.support.witness import rows_of, talker

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = "the sea and the old"
GOES_ON = "The page goes on by itself once it answers."
FAULTS = {
    "slow": "has not answered for 2 seconds",
    "cut 0": "was interrupted",
    "500": "has failed (500)",
    "half 0": "has ended its answer in the middle",
    "garbage 0": "cannot be read",
    "html": "cannot be read",
    "error 0": "has failed (500)",
    "429 11": "is too busy (429); try again in 11 seconds",
}
"""Faults of a proxy before the server, with words of the sentence that the page shows for each."""


@pytest.fixture(scope="module")
def model() -> Model:
    return talker()


@pytest.fixture
def server(model: Model) -> Iterator[CompletionsServer]:
    served = CompletionsServer(model.hf_model)
    yield served
    if not served.dead:
        served.close()


def rows(visit: Visit) -> list[str]:
    return ["".join(visit.pieces(row)) for row in range(visit.rows)]


def test_a_page_that_is_opened_before_the_server_says_so_and_becomes_ready_when_it_comes(
    browser: object, server: CompletionsServer, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_loading, "FIRST_RETRY", 0.2)
    server.kill()
    with (
        browsers.page_of(lambda report: load_model(server.address, tokenizer=model.tokenizer)) as url,
        browsers.visit(browser, url) as visit,
    ):
        shown = visit.wait_for_status("waiting")
        assert "cannot be reached" in shown and "The page waits, and goes on by itself." in shown
        visit.type(TEXT)
        expect(visit.page.locator("#branches")).to_contain_text("Branches appear here when the model is ready.")
        server.start()
        visit.wait_until_settled()
        visit.wait_for_status("ready")
        assert visit.text == TEXT and rows(visit) == rows_of(model, TEXT)


@pytest.fixture
def faulty(browser: object, server: CompletionsServer, model: Model) -> Iterator[Visit]:
    """A page whose model's server has a time limit of two seconds, and keeps faults that last three."""
    server.slow_seconds = 3.0
    settings = Settings(server_seconds=2.0)
    with (
        browsers.page_of(
            lambda report: load_model(server.address, tokenizer=model.tokenizer, settings=settings)
        ) as url,
        browsers.visit(browser, url) as visit,
    ):
        visit.wait_for_status("ready")
        yield visit


def test_each_fault_of_a_proxy_is_a_sentence_and_the_page_goes_on_by_itself_when_it_is_over(
    faulty: Visit, server: CompletionsServer, model: Model
) -> None:
    text = "the"
    faulty.type(text)
    faulty.wait_until_settled()
    for number, (fault, sentence) in enumerate(FAULTS.items()):
        server.lasting_fault = fault
        word = f" sea {'abcdefgh'[number]}"
        faulty.type(word)
        text += word
        status = faulty.page.locator("#status[data-state=error]")
        expect(status).to_contain_text(sentence)
        expect(status).to_contain_text(GOES_ON)
        # Typing goes on meanwhile.
        faulty.type("x")
        text += "x"
        assert faulty.text == text
        server.lasting_fault = ""
        faulty.wait_until_settled()
        faulty.wait_for_status("ready")
        assert faulty.text == text and rows(faulty) == rows_of(model, text), fault


def test_the_page_waits_as_long_as_a_busy_server_asks(faulty: Visit, server: CompletionsServer) -> None:
    faulty.type("the")
    faulty.wait_until_settled()
    del server.bodies[:]
    server.lasting_fault = "503 12"
    faulty.fill("the xylophone, 7")  # one change, and so one request: no prefetched view is of this text
    expect(faulty.page.locator("#status[data-state=error]")).to_contain_text("try again in 12 seconds")
    server.lasting_fault = ""
    sent = len(server.bodies)
    faulty.page.wait_for_timeout(9000)
    assert len(server.bodies) == sent
    faulty.wait_until_settled()
    assert len(server.bodies) > sent


def test_highlights_say_so_too_and_go_on_by_themselves(browser: object, model: Model) -> None:
    server = CompletionsServer(model.hf_model, most_logprobs=-1)
    with (
        browsers.page_of(lambda report: load_model(server.address, tokenizer=model.tokenizer)) as url,
        browsers.visit(browser, url) as visit,
    ):
        visit.wait_for_status("ready")
        visit.open_tab("Highlights")
        server.lasting_fault = "500"
        visit.page.locator("#highlights-text").fill(TEXT)
        expect(visit.page.locator(".read .says .sentence").first).to_contain_text("has failed (500)")
        server.lasting_fault = ""
        visit.page.wait_for_selector("#highlights[data-state=settled]")
        assert visit.page.locator("#highlights-text").input_value() == TEXT
    server.close()
