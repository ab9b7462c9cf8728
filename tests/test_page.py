"""The page, in a real browser: typing is sacred, a click inserts exactly what the button says, errors are sentences."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lookahead_core import Document, Model
from tests import browser as browsers
from tests.browser import PATIENCE, App, Visit

pytestmark = pytest.mark.browser

PROMPT = "Once upon a time"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def running(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    with browsers.app(tmp_path_factory.mktemp("app") / "log", *browsers.model_arguments()) as started:
        started.wait_for("Ready")
        yield started


@pytest.fixture
def visit(browser: Any, running: App) -> Iterator[Visit]:
    """The page of `python app.py` with a real model."""
    with browsers.visit(browser, running.url) as opened:
        opened.wait_for_status("ready")
        yield opened


@pytest.fixture(scope="module")
def tiny_page(browser: Any, tiny_model: Model) -> Iterator[str]:
    with browsers.page_of(lambda report: tiny_model) as url:
        yield url


@pytest.fixture
def tiny(browser: Any, tiny_page: str) -> Iterator[Visit]:
    """The same page with a tiny model, for what does not depend on what the model says."""
    with browsers.visit(browser, tiny_page) as opened:
        opened.wait_for_status("ready")
        yield opened


def test_a_click_inserts_exactly_the_tokens_up_to_it_and_new_branches_follow(visit: Visit) -> None:
    visit.type(PROMPT)
    before = visit.wait_until_settled()
    pieces = visit.pieces(1)
    assert len(pieces) >= 3
    visit.token(1, 2).click()
    assert visit.text == PROMPT + "".join(pieces[:3])
    assert visit.wait_until_settled() > before
    assert visit.rows == 5
    assert visit.text == PROMPT + "".join(pieces[:3])


def test_what_is_read_is_only_what_the_click_brought(visit: Visit) -> None:
    visit.type(PROMPT)
    visit.wait_until_settled()
    visit.token(0, 2).click()
    visit.wait_until_settled()
    meter = visit.page.locator("#meter")
    assert int(meter.get_attribute("data-tokens")) <= 5 * 5, "the prompt is not read again"
    assert int(meter.get_attribute("data-passes")) <= 5


def test_typing_over_branches_loses_no_key(visit: Visit) -> None:
    long = " and then, one day, she looked up from her book and saw the sea."
    visit.type(PROMPT)
    visit.wait_until_settled()
    visit.type(long, delay=15)
    assert visit.text == PROMPT + long
    visit.wait_until_settled()
    assert visit.text == PROMPT + long


def test_typing_and_clicking_in_turns_keeps_every_character(visit: Visit) -> None:
    expected = ""
    for words in (PROMPT, " and", " so", ", they"):
        visit.type(words)
        visit.wait_until_settled()
        expected += words + "".join(visit.pieces(0)[:2])
        visit.token(0, 1).click()
        assert visit.text == expected
    visit.wait_until_settled()
    assert visit.text == expected


def test_a_stale_branch_refuses_the_click_and_says_so(visit: Visit) -> None:
    visit.type(PROMPT)
    visit.wait_until_settled()
    # Both in one turn of the page's script, so that no answer can come between them.
    visit.page.evaluate(
        """() => {
            document.querySelector('#document textarea').focus();
            document.execCommand('insertText', false, ' long ago');
            document.querySelector('#branches [data-token]').click();
        }"""
    )
    assert visit.text == PROMPT + " long ago"
    assert visit.page.locator("#branches[data-refused]").count() == 1
    assert "not inserted" in visit.page.locator("#branches .note").inner_text()
    visit.wait_until_settled()
    assert visit.text == PROMPT + " long ago"


def test_accepting_happens_at_the_caret_and_leaves_what_follows_it(tiny: Visit) -> None:
    tiny.type(PROMPT + ". The end.")
    tiny.wait_until_settled()
    tiny.page.evaluate(f"document.querySelector('#document textarea').setSelectionRange({len(PROMPT)}, {len(PROMPT)})")
    tiny.wait_for_view("thinking")
    tiny.wait_until_settled()
    first = tiny.pieces(0)[0]
    tiny.token(0, 0).click()
    assert tiny.text == PROMPT + first + ". The end."


def test_a_selection_is_never_overwritten_by_a_click(tiny: Visit) -> None:
    tiny.fill(PROMPT)
    tiny.wait_until_settled()
    tiny.page.locator("#document textarea").select_text()
    tiny.token(0, 0).click()
    assert tiny.text == PROMPT


def test_arrows_and_enter_choose_a_token_and_focus_stays_among_the_branches(tiny: Visit) -> None:
    tiny.fill(PROMPT)
    tiny.wait_until_settled()
    tiny.page.locator("#branches [data-token][tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowRight"):
        tiny.page.keyboard.press(key)
    pieces = tiny.pieces(1)
    tiny.page.keyboard.press("Enter")
    assert tiny.text == PROMPT + "".join(pieces[:2])
    assert tiny.page.evaluate("document.activeElement.matches('#branches [data-token]')")
    tiny.wait_until_settled()
    assert tiny.page.evaluate("document.activeElement.matches('#branches [data-token]')")


def test_an_ending_is_a_chip_with_its_odds_and_inserts_nothing(tiny: Visit, tiny_model: Model) -> None:
    text, ended = text_that_may_end(tiny_model)
    for slider, value in (("k", "20"), ("depth", "40")):
        tiny.page.locator(f"#{slider} input[type=range]").fill(value)
    tiny.fill(text)
    tiny.wait_until_settled()
    row = tiny.page.locator(f"#branches [data-branch='{ended}']")
    chip = row.locator(".end")
    assert row.get_attribute("data-end") == "true"
    assert chip.inner_text().startswith("end ")
    chip.click()
    assert tiny.text == text
    others = tiny.page.locator("#branches [data-branch]:not([data-end=true]) .end")
    assert others.count() == 0


def text_that_may_end(model: Model) -> tuple[str, int]:
    """A text after which the model sees an ending, and in which branch."""
    words = ["sea", "sky", "stairs", "keeper", "again", "time", "old", "risks", "careful", "small"]
    for text in (f"The {one} {other}." for one in words for other in words):
        for index, branch in enumerate(Document(model, text).lookahead(k=20, depth=40, heal=True).branches):
            if branch.ended and branch.pieces:
                return text, index
    raise AssertionError("The tiny model never ends.")


def test_fewer_branches_come_when_the_slider_moves(tiny: Visit) -> None:
    tiny.fill(PROMPT)
    before = tiny.wait_until_settled()
    tiny.page.locator("#k input[type=range]").fill("3")
    tiny.page.wait_for_function(
        "before => Number(document.querySelector('#branches').dataset.revision) > before", arg=before, timeout=PATIENCE
    )
    tiny.wait_until_settled()
    assert tiny.rows == 3


def test_an_emptied_box_shows_no_branches(tiny: Visit) -> None:
    tiny.fill(PROMPT)
    tiny.wait_until_settled()
    tiny.fill("")
    tiny.wait_for_view("empty")
    tiny.page.wait_for_function("!document.querySelector('#branches [data-branch]')", timeout=PATIENCE)


def test_markup_in_a_text_stays_text(tiny: Visit) -> None:
    tiny.type("<b>bold</b> ${1+1} {{value}} `x` <img src=x onerror=alert(1)> light", delay=2)
    tiny.wait_until_settled()
    assert tiny.page.locator("#branches img, #branches b b, #status img").count() == 0
    assert tiny.rows == 5


def test_a_text_that_is_too_long_gets_a_sentence_and_stays(tiny: Visit) -> None:
    tiny.fill("a b " * 50_001)
    assert "200,000" in tiny.wait_for_status("error")
    assert len(tiny.text) == 200_004
    tiny.fill(PROMPT)
    tiny.wait_until_settled()
    tiny.wait_for_status("ready")


def test_a_text_longer_than_the_context_says_from_where_the_model_reads(tiny: Visit) -> None:
    tiny.fill("The old keeper climbed the stairs again. " * 100)
    tiny.wait_until_settled()
    assert "The model reads from character" in tiny.page.locator("#branches .note").inner_text()


def test_nothing_scrolls_sideways_on_a_narrow_phone(browser: Any, tiny_page: str) -> None:
    with browsers.visit(browser, tiny_page, viewport={"width": 360, "height": 740}) as opened:
        opened.wait_for_status("ready")
        opened.fill(PROMPT)
        opened.wait_until_settled()
        assert opened.page.evaluate("document.documentElement.scrollWidth") == 360
        sizes = opened.page.locator("#branches [data-token]").evaluate_all(
            "tokens => tokens.map(token => [token.offsetWidth, token.offsetHeight])"
        )
        assert all(width >= 24 and height >= 24 for width, height in sizes), "a finger can meet every token"


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_is_a_sentence_on_the_page(browser: Any, tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere")
    with browsers.app(tmp_path / "log", "--model", missing) as started:
        with browsers.visit(browser, started.url) as opened:
            sentence = opened.wait_for_status("error")
            assert missing in sentence
            opened.type("My text stays")
            opened.wait_for_view("error")
            assert opened.text == "My text stays"
        assert sentence in started.said
        assert "Traceback" not in started.said
        assert started.process.poll() is None


def test_the_page_is_usable_before_the_model_is_there(browser: Any, tiny_model: Model) -> None:
    arrived = threading.Event()

    def load(report: Any) -> Model:
        report("Downloading Tiny", 0.25)
        arrived.wait(120)
        return tiny_model

    with browsers.page_of(load) as url, browsers.visit(browser, url) as opened:
        assert "Downloading Tiny" in opened.wait_for_status("downloading")
        opened.type("The lighthouse")
        arrived.set()
        opened.wait_for_status("ready")
        opened.wait_until_settled()
        assert opened.text == "The lighthouse"
        assert opened.rows == 5
