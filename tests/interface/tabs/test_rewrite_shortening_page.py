"""The Rewrite tab in a browser, with a source that is too long: it is shortened, shown struck through, and restored."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lookahead_core import Model, compress
from tests.interface.tabs.test_rewrite_page import Rewriting, open_tab, reloaded
from tests.support import browser as browsers
from tests.support.browser import PATIENCE

SERVER = re.compile("component_server")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

SOURCE = "\n\n".join(
    f"The sea 🙂 was grey, and the keeper Anna Vold watched it again. He had {number} lamps, and the stairs were long."
    for number in range(40, 56)
)


@pytest.fixture
def rewriting(tiny: browsers.Visit) -> Rewriting:
    return open_tab(tiny)


def too_long(rewriting: Rewriting, source: str = SOURCE) -> Any:
    """The buttons that are offered once this source was refused."""
    rewriting.page.locator("#rewrite-source").fill(source)
    rewriting.page.wait_for_selector("#rewrite-branches[data-state=error]", timeout=PATIENCE)
    rewriting.page.locator(".shortening.said").wait_for()
    return rewriting.page.locator(".shortening button:visible")


def shorten(rewriting: Rewriting, label: str) -> None:
    before = rewriting.revision
    rewriting.page.get_by_role("button", name=label).click()
    rewriting.page.locator(".marked-source del").first.wait_for()
    rewriting.settle(before)


def test_a_source_that_is_too_long_is_shortened_and_shown_struck_through_and_restored(
    rewriting: Rewriting, tiny_model: Model
) -> None:
    page = rewriting.page
    rewriting.fill("text", "The keeper")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or ""))
    labels = too_long(rewriting).all_inner_texts()
    assert labels[-1] == "Shorten to 1/4" and set(labels) <= {"Shorten to 1/2", "Shorten to 1/4"}
    assert "The source is too long for this model" in page.locator(".shortening .sentence").inner_text()
    shorten(rewriting, "Shorten to 1/4")
    expected = compress(tiny_model, SOURCE, 0.25)
    marked = page.locator(".marked-source")
    assert marked.evaluate("element => element.textContent") == SOURCE
    removed = marked.locator("del").evaluate_all("all => all.map(one => one.textContent).join('')")
    expected_removed = "".join(SOURCE[span.start : span.end] for span in expected.removed)
    assert re.sub(r"\s", "", removed) == re.sub(r"\s", "", expected_removed)
    sentence = page.locator(".shortening .sentence").inner_text()
    assert f"reads {expected.tokens_after:,} of the {expected.tokens_before:,} tokens" in sentence
    assert "struck through" in sentence
    asked = [body for body in sent if '"fn_name":"ask"' in body.replace(" ", "")]
    assert expected.text.split("\n")[0] in asked[-1].encode().decode("unicode_escape", errors="replace")
    assert rewriting.rows()[0] and rewriting.text == "The keeper"
    assert page.evaluate("document.activeElement.className") == "whole", "focus is where the person can go back"
    box = page.locator("#rewrite-source")
    assert not box.is_visible() and box.input_value() == SOURCE
    page.get_by_role("button", name="Use the whole source").click()
    assert box.is_visible() and box.input_value() == SOURCE and not marked.is_visible()
    assert page.evaluate("document.activeElement.id") == "rewrite-source"
    page.wait_for_selector("#rewrite-branches[data-state=error]", timeout=PATIENCE)
    rewriting.fill("source", "The keeper slept.")
    assert page.locator(".shortening .sentence").inner_text() == ""
    assert rewriting.text == "The keeper"


def test_a_shortened_source_is_restored_after_a_reload(rewriting: Rewriting) -> None:
    too_long(rewriting)
    shorten(rewriting, "Shorten to 1/4")
    marked = rewriting.page.locator(".marked-source").inner_html()
    rewriting.click()
    text = rewriting.text
    again = reloaded(rewriting)
    assert again.page.locator(".marked-source").inner_html() == marked
    assert again.page.locator("#rewrite-source").input_value() == SOURCE
    assert again.text == text


def test_shortening_can_be_stopped_and_editing_the_source_ends_it(rewriting: Rewriting) -> None:
    page = rewriting.page
    too_long(rewriting)
    held: list[Any] = []

    def hold(route: Any) -> None:
        """Hold the calls back until they are of no use any more."""
        name = (route.request.post_data_json or {}).get("fn_name")
        if name == "shorten":
            held.append(route)
        else:
            route.continue_()

    page.route(SERVER, hold)
    page.get_by_role("button", name="Shorten to 1/4").click()
    stop = page.locator(".shortening .halt")
    assert page.evaluate("document.activeElement.className") == "halt"
    stop.click()
    assert page.locator("#rewrite-source").input_value() == SOURCE and not stop.is_visible()
    page.get_by_role("button", name="Shorten to 1/4").click()
    page.locator("#rewrite-source").evaluate(
        "box => { box.value = 'The keeper slept.'; box.dispatchEvent(new Event('input', {bubbles: true})); }"
    )
    assert not stop.is_visible() and page.locator(".shortening .sentence").inner_text() == ""
    for route in held:
        route.continue_()
    rewriting.settle()
    assert page.locator("#rewrite-source").input_value() == "The keeper slept."
    assert not page.locator(".marked-source").is_visible()
    page.unroute(SERVER)


def test_the_page_shows_how_far_the_source_is_read_until_it_is_stopped(rewriting: Rewriting) -> None:
    page = rewriting.page
    too_long(rewriting)
    held: list[Any] = []

    def answer(route: Any) -> None:
        """Hold the call back, and answer for the server how far it is."""
        name = (route.request.post_data_json or {}).get("fn_name")
        if name == "shorten":
            held.append(route)
        elif name == "shortening_progress":
            route.fulfill(json={"reading": [2048, 8192]})
        else:
            route.continue_()

    page.route(SERVER, answer)
    page.get_by_role("button", name="Shorten to 1/4").click()
    figures, bar = page.locator(".shortening .reading"), page.locator(".shortening progress")
    figures.wait_for()
    assert figures.inner_text() == "2,048 of 8,192 tokens read" and bar.evaluate("bar => bar.value") == 0.25
    assert "The model reads the source" in page.locator(".shortening [role=status]").inner_text()
    page.locator(".shortening .halt").click()
    assert not figures.is_visible() and not bar.is_visible()
    for route in held:
        route.continue_()
    page.unroute(SERVER)


def test_a_source_too_long_to_shorten_gets_a_sentence_and_no_button(rewriting: Rewriting) -> None:
    assert too_long(rewriting, SOURCE * 12).count() == 0
    assert "shorten it yourself" in rewriting.page.locator(".shortening .sentence").inner_text()


LOOKS = [
    {"viewport": {"width": 390, "height": 844}},
    {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
]


@pytest.mark.parametrize("look", LOOKS, ids=["a phone", "dark"])
def test_the_offer_and_the_shortened_source_fit_and_axe_finds_no_violation(
    page: Any, tiny_page: str, look: dict[str, Any]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with browsers.visit_again(page, tiny_page, **look) as opened:
        opened.wait_for_status("ready")
        rewriting = open_tab(opened)
        too_long(rewriting)
        for _ in range(2):
            assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            found = Axe().run(opened.page, context={"include": [[".told"]]}).response["violations"]
            assert [(one["id"], node["html"][:120]) for one in found for node in one["nodes"]] == []
            if not opened.page.locator(".marked-source").is_visible():
                shorten(rewriting, "Shorten to 1/4")


def test_the_error_of_one_tab_is_not_shown_above_another(rewriting: Rewriting) -> None:
    page = rewriting.page
    too_long(rewriting)
    status = "document.querySelector('#status').dataset.state === {!r}"
    page.wait_for_function(status.format("error"))
    page.get_by_role("tab", name="Write", exact=True).click()
    page.wait_for_function(status.format("ready"))
    page.get_by_role("tab", name="Rewrite", exact=True).click()
    page.wait_for_function(status.format("error"))
    rewriting.fill("source", "The sea.")
    page.wait_for_function(status.format("ready"))
