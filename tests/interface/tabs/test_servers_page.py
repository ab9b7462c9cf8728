"""A model's server that comes late, or whose answers fail: the page says so, keeps the text, and goes on by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from interface.server import model_loading
from lookahead_core import Model, load_model
from tests.support import browser as browsers
from tests.support.browser import Visit, expect
from tests.support.completions_server import CompletionsServer
from tests.support.witness import rows_of, talker

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = "the sea and the old"


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
