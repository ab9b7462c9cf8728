"""The page on a model's server that gives only the 20 likeliest tokens: rows of tokens, and sentences for the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lookahead_core import load_model
from tests.support import browser as browsers
from tests.support.browser import Visit, expect
from tests.support.completions_server import CompletionsServer
from tests.support.witness import talker

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FEW = "The model's server gives the odds of its 20 likeliest tokens only"
REMEDY = "start it with --max-logprobs -1"


@pytest.fixture
def limited(browser: object) -> Iterator[Visit]:
    model = talker()
    server = CompletionsServer(model.hf_model, most_logprobs=20)
    with (
        browsers.page_of(lambda report: load_model(server.address, tokenizer=model.tokenizer)) as url,
        browsers.visit(browser, url, odds="words") as visit,
    ):
        visit.wait_for_status("ready")
        yield visit
    server.close()


def test_rows_of_tokens_are_shown_and_clicked_and_what_is_missing_is_said(limited: Visit) -> None:
    limited.type("the sea and the o")
    limited.wait_until_settled()
    expect(limited.page.locator("#branches")).to_contain_text(FEW)
    assert limited.rows == 5
    inserted = limited.pieces(0)[0]
    limited.token(0, 0).click()
    limited.wait_until_settled()
    assert limited.text == "the sea and the o" + inserted


def test_sampled_rows_highlights_and_internals_are_a_sentence_and_the_page_goes_on(limited: Visit) -> None:
    limited.type("the sea and")
    limited.wait_until_settled()
    limited.control("mode").select_option("sampled")
    limited.wait_for_view("error")
    expect(limited.page.locator("#status")).to_contain_text(REMEDY)
    limited.control("mode").select_option("likely")
    limited.wait_until_settled()
    for tab, field, line in (
        ("Highlights", "#highlights-text", ".read .says .sentence"),
        ("Internals", "#internals-text", "#internals .says .sentence"),
    ):
        limited.open_tab(tab)
        limited.page.locator(field).fill("the sea and the old keeper")
        expect(limited.page.locator(line).first).to_contain_text(REMEDY)
