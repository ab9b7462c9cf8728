"""The key for a whole branch in a browser: it names the row that was seen, and waits until that is complete."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.synchronize import Event
from typing import Any

import pytest

from tests.support import browser as browsers
from tests.support.browser import Visit
from tests.support.scripted_model import parrot
from tests.support.witness import REFUSAL, SAID, EngineWithHook, rows_of, talker

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = "The old keeper"
WAITS = "Branch 2 is inserted as soon as it is complete"


class EngineWithFirstRows(EngineWithHook):
    """Calls `before` before passes in which all five rows grow, and not before those of their first tokens."""

    def score(self, nodes: Any, *, hidden: bool = False) -> Any:
        return super().score(nodes, hidden=hidden) if len(nodes) >= 5 else self.engine.score(nodes, hidden=hidden)


@dataclass
class Slow:
    """A page whose rows grow while `going` is set."""

    visit: Visit
    going: Event = field(default_factory=multiprocessing.Event)

    def show_first_tokens(self, text: str) -> list[str]:
        """Write a text, and return the rows as they stand after their first tokens."""
        self.going.clear()
        self.visit.fill(text)
        self.visit.page.wait_for_selector("#branches[data-state=thinking][data-stale=false] [data-token]")
        assert self.visit.rows == 5
        return ["".join(self.visit.pieces(row)) for row in range(5)]

    def press(self, keys: str) -> None:
        self.visit.page.locator("#document textarea").press(keys)

    @property
    def awaited(self) -> Any:
        return self.visit.page.locator("#branches [data-awaited]")

    @property
    def note(self) -> Any:
        return self.visit.page.locator("#branches .note")


@pytest.fixture
def slow(page: Any) -> Iterator[Slow]:
    model, going = talker(), multiprocessing.Event()  # forked workers wait for it too
    going.set()
    hooked = replace(model, engine=EngineWithFirstRows(model.engine, lambda: going.wait(60) and None))
    with browsers.page_of(lambda report: hooked) as url, browsers.visit_again(page, url) as opened:
        opened.wait_for_status("ready")
        try:
            yield Slow(opened, going)
        finally:
            going.set()


def test_a_whole_branch_is_inserted_when_the_row_that_was_seen_is_complete(slow: Slow) -> None:
    rows = slow.show_first_tokens(TEXT)
    whole = rows_of(talker(), TEXT)[1]
    assert whole.startswith(rows[1]) and whole != rows[1]
    slow.press("Alt+Shift+2")
    browsers.expect(slow.note).to_contain_text(WAITS)
    browsers.expect(slow.visit.page.locator("#branches .announcement")).to_contain_text(WAITS)
    assert slow.awaited.get_attribute("data-branch") == "1"
    slow.visit.page.wait_for_timeout(300)
    assert slow.visit.text == TEXT
    slow.going.set()
    slow.visit.page.wait_for_function(
        "text => document.querySelector('#document textarea').value === text", arg=TEXT + whole, timeout=20_000
    )
    slow.visit.wait_until_settled()
    assert slow.awaited.count() == 0
    slow.press("Control+z")
    assert slow.visit.text == TEXT, "it was one step"


@contextmanager
def rows_that_grow(page: Any, depth: int, seconds: float) -> Iterator[Visit]:
    """The page, ready, with rows of this depth that grow by a token in so many seconds."""
    model = talker()
    hooked = replace(model, engine=EngineWithFirstRows(model.engine, lambda: time.sleep(seconds)))
    with browsers.page_of(lambda report: hooked) as url, browsers.visit_again(page, url) as opened:
        opened.wait_for_status("ready")
        opened.control("depth").fill(str(depth))
        yield opened


def test_what_tab_inserts_is_announced_once_however_long_the_rows_grow_and_however_fast_the_keys_are(page: Any) -> None:
    with rows_that_grow(page, depth=12, seconds=0.1) as opened:
        opened.listen("#branches .tab-announcement")
        opened.type(TEXT)
        opened.wait_until_settled()
        opened.page.wait_for_function("spoken.length > 0")
        for _ in range(3):
            opened.page.keyboard.press("Control+ArrowRight")
            opened.page.wait_for_timeout(150)
        opened.wait_until_settled()
        opened.page.wait_for_function("spoken.length > 1")
        told = opened.page.evaluate("spoken")
        assert len(told) == 2 and told[1].startswith("Tab inserts"), told


PRESS_TAB_ON_GROWN_TEXT = """() => {
  const box = document.querySelector('#document textarea');
  const said = document.querySelector('#branches .tab-announcement');
  const grey = () => document.querySelector('#branches').branchView.rows()[0].pieces.map(({text}) => text).join('');
  let announced = '';
  new MutationObserver(() => {
    const told = said.textContent && grey();
    requestAnimationFrame(() => setTimeout(() => setTimeout(() => { announced = told; })));   // once it is painted
  }).observe(said, {subtree: true, childList: true, characterData: true});
  new MutationObserver((changes, observer) => {
    if (!announced || grey().length <= announced.length) return;
    observer.disconnect();
    const before = box.value, grown = grey();
    box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Tab', bubbles: true, cancelable: true}));
    window.pressed = {announced, grown, inserted: box.value.slice(before.length)};
  }).observe(document.querySelector('.mirror'), {subtree: true, childList: true, characterData: true});
}"""
"""Presses Tab when the grey text has grown since it was announced."""


def test_tab_first_says_what_of_grey_text_that_grows_it_inserts_and_then_inserts_no_more(page: Any) -> None:
    with rows_that_grow(page, depth=40, seconds=0.6) as opened:
        opened.page.evaluate(PRESS_TAB_ON_GROWN_TEXT)
        opened.fill(TEXT)
        opened.page.wait_for_function("document.querySelector('.mirror .ghost').textContent")
        opened.page.keyboard.press("Tab")
        assert opened.text == TEXT
        opened.page.wait_for_function("window.pressed", timeout=20_000)
        pressed = opened.page.evaluate("window.pressed")
        assert pressed["grown"].startswith(pressed["announced"])
        assert pressed["inserted"] == pressed["announced"] != pressed["grown"]


NOTE_REFUSALS = """() => {
  const branches = document.querySelector('#branches');
  window.refusals = [];
  new MutationObserver(() => {
    if (branches.matches('[data-refused]')) window.refusals.push(branches.querySelector('.note').textContent);
  }).observe(branches, {subtree: true, childList: true, characterData: true, attributeFilter: ['data-refused']});
}"""
"""Notes the line under the rows whenever a refusal is shown."""


def test_rows_of_another_text_refuse_the_key_and_insert_nothing_later(slow: Slow) -> None:
    slow.visit.fill(TEXT)
    slow.visit.wait_until_settled()
    page = slow.visit.page
    # Until the key has been pressed the rows are still those of the earlier text.
    with browsers.requests_held(page):
        # A refusal is shown only briefly, so a script in the page records it.
        page.evaluate(NOTE_REFUSALS)
        slow.visit.type(" x", delay=0)
        slow.press("Alt+Shift+2")
        page.wait_for_function("refusal => window.refusals.some(note => note.includes(refusal))", arg=REFUSAL)
        assert slow.awaited.count() == 0
    slow.visit.wait_until_settled()
    assert slow.visit.text == TEXT + " x"


GIVE_UP = {
    "Esc": lambda slow: slow.press("Escape"),
    "Stop": lambda slow: slow.visit.page.locator("#stop").click(),
    "Pause": lambda slow: slow.press("Alt+p"),
    "a setting": lambda slow: slow.visit.control("k").fill("4"),
    "a key": lambda slow: slow.press("z"),
    "the caret": lambda slow: slow.press("ArrowLeft"),
    "another branch's next word": lambda slow: slow.press("Alt+1"),
}


@pytest.mark.parametrize("how", GIVE_UP)
def test_the_wait_for_a_branch_is_given_up(slow: Slow, how: str) -> None:
    rows = slow.show_first_tokens(TEXT)
    slow.press("Alt+Shift+2")
    browsers.expect(slow.note).to_contain_text(WAITS)
    GIVE_UP[how](slow)
    browsers.expect(slow.awaited).to_have_count(0)
    browsers.expect(slow.note).not_to_contain_text("as soon as")
    slow.going.set()
    if how == "Pause":
        slow.press("Alt+p")
    if how != "Stop":
        slow.visit.wait_until_settled()
    slow.visit.page.wait_for_timeout(500)
    expected = {"a key": TEXT + "z", "another branch's next word": TEXT + rows[0]}
    assert slow.visit.text == expected.get(how, TEXT)


def test_the_key_names_one_row_however_often_it_is_pressed(slow: Slow) -> None:
    slow.show_first_tokens(TEXT)
    slow.press("Alt+Shift+2")
    slow.press("Alt+Shift+3")
    assert slow.awaited.get_attribute("data-branch") == "2"
    slow.going.set()
    expected = TEXT + rows_of(talker(), TEXT)[2]
    slow.visit.page.wait_for_function(
        "text => document.querySelector('#document textarea').value === text", arg=expected, timeout=20_000
    )


@pytest.mark.parametrize("key", [1, 2])
def test_the_key_waits_also_before_there_are_any_rows(slow: Slow, key: int) -> None:
    # A text that TEXT does not begin with: of "The", the rows of TEXT may have been prefetched.
    slow.visit.fill("A ship")
    slow.visit.wait_until_settled()
    slow.visit.wait_until_prefetched()
    slow.visit.fill("")
    slow.visit.page.wait_for_selector("#branches[data-state=empty]")
    with browsers.requests_held(slow.visit.page):
        slow.going.clear()
        slow.visit.fill(TEXT)
        slow.press(f"Alt+Shift+{key}")
        browsers.expect(slow.note).to_contain_text(f"Branch {key} is inserted as soon as it is complete")
        browsers.expect(slow.visit.page.locator("#branches .announcement")).to_contain_text(f"Branch {key} is inserted")
        assert slow.visit.rows == 0
    browsers.expect(slow.awaited).to_have_attribute("data-branch", str(key - 1))
    assert slow.visit.text == TEXT
    slow.going.set()
    expected = TEXT + rows_of(talker(), TEXT)[key - 1]
    slow.visit.page.wait_for_function(
        "text => document.querySelector('#document textarea').value === text", arg=expected, timeout=20_000
    )


def test_the_key_waits_for_the_rest_of_a_branch_right_after_a_click_on_one_of_its_tokens(slow: Slow) -> None:
    slow.visit.fill(TEXT)
    slow.visit.wait_until_settled()
    slow.visit.wait_until_prefetched()
    inserted, left = "".join(slow.visit.pieces(2)[:3]), "".join(slow.visit.pieces(2)[3:])
    slow.going.clear()
    # In one turn of the page's script: before any answer.
    text, waits = slow.visit.page.evaluate(
        """() => {
          document.querySelector('#branches [data-branch="2"] [data-token="2"]').click();
          document.querySelector('#document textarea').dispatchEvent(
            new KeyboardEvent('keydown', {key: '!', code: 'Digit1', altKey: true, shiftKey: true, bubbles: true}));
          const waits = document.querySelector('#branches').matches('[data-awaits]');
          return [document.querySelector('#document textarea').value, waits];
        }"""
    )
    assert (text, waits) == (TEXT + inserted, True)
    slow.going.set()
    slow.visit.page.wait_for_function(
        "text => { const {value} = document.querySelector('#document textarea');"
        "return value.startsWith(text) && value.length > text.length }",
        arg=TEXT + inserted + left,
        timeout=20_000,
    )


@pytest.mark.parametrize("keys", ["Alt+1", "Alt+Shift+1"])
def test_a_key_for_a_row_that_only_ends_the_text_says_so(page: Any, keys: str) -> None:
    model = parrot(SAID[:1])
    with browsers.page_of(lambda report: model) as url, browsers.visit_again(page, url) as opened:
        opened.wait_for_status("ready")
        opened.fill(SAID[0])
        opened.wait_until_settled()
        ending = opened.page.locator("#branches [data-branch='0']")
        assert ending.locator("[data-token]").count() == 0
        opened.page.keyboard.press(keys)
        announced = opened.page.locator("#branches .announcement")
        browsers.expect(announced).to_have_text("Branch 1 ends the text here: it inserts nothing.")
        assert opened.text == SAID[0]
