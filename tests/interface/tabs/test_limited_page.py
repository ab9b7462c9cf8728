"""A page that the server refuses for too many requests says so, waits as long as it is told, and goes on by itself."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from lookahead_core import Model, Settings
from tests.support import browser as browsers
from tests.support.browser import Visit, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MOST = 20
"""Requests of one person in a minute, so that one comes back after three seconds."""
SENTENCE = f"That is too much at once: at most {MOST} requests a minute are allowed for a person. Wait for"
GOES_ON = "The page then goes on by itself."
ASKS = re.compile(r'"fn_name": ?"(ask|more)"')
"""In the body of a request for branches, or for their news."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def limited(browser: object, tiny_model: Model) -> Iterator[Visit]:
    with (
        browsers.page_of(lambda report: tiny_model, settings=Settings(person_requests=MOST)) as url,
        browsers.visit(browser, url) as visit,
    ):
        visit.wait_for_status("ready")
        yield visit


def test_who_types_faster_than_allowed_reads_why_and_the_rows_come_by_themselves(limited: Visit) -> None:
    status, answers, asked = limited.page.locator("#status .sentence"), [], []
    limited.page.on(
        "response", lambda one: answers.append((time.monotonic(), one)) if "component_server" in one.url else None
    )
    limited.page.on("request", lambda one: asked.append(time.monotonic()) if ASKS.search(one.post_data or "") else None)
    limited.type(LETTERS, delay=100)
    expect(status).to_contain_text(SENTENCE)
    expect(status).to_contain_text(GOES_ON)
    limited.wait_until_settled()
    limited.wait_for_status("ready")
    assert limited.text == LETTERS
    news = [(at, one.json() or {}) for at, one in answers]
    refused = [(at, one["retry_after"]) for at, one in news if "retry_after" in one]
    assert refused
    for at, wait in refused:
        following = [other for other in asked if other > at + 0.1]  # what was sent before the page has read it
        assert not following or following[0] - at > wait - 0.5, "nothing is sent while the page waits"


@pytest.mark.parametrize(
    ("tab", "field", "line"),
    [
        ("Highlights", "#highlights-text", ".read .says .sentence"),
        ("Internals", "#internals-text", "#internals .says .sentence"),
    ],
)
def test_a_tab_that_reads_a_text_says_it_too(limited: Visit, tab: str, field: str, line: str) -> None:
    page = limited.page
    limited.open_tab(tab)
    for number in range(3 * MOST):
        if SENTENCE in page.locator(line).inner_text():
            break
        page.locator(field).fill(f"The keeper saw ship {number}.")
        page.wait_for_timeout(500)
    expect(page.locator(line)).to_contain_text(SENTENCE)
    expect(page.locator(line)).to_contain_text(GOES_ON)
    page.wait_for_function("line => !document.querySelector(line).textContent.includes('too much')", arg=line)
    page.wait_for_selector("#highlights[data-state=settled] .word, #internals[data-state=settled] .box")
