"""What a person does on the Write tab while an answer is under way, a dialog is open, or a button is pressed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import browser as browsers
from tests.support.browser import Visit, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = "Once upon a"
INSERT = (
    "text => { document.querySelector('#document textarea').focus(); document.execCommand('insertText', false, text) }"
)


INSERT_BEHIND = """text => {
  const box = document.querySelector('#document textarea');
  box.setRangeText(text, box.value.length, box.value.length, 'end');
  box.dispatchEvent(new InputEvent('input', {inputType: 'insertText', data: text, bubbles: true}));
}"""
"""Behind an open dialog the text takes no focus."""


@pytest.fixture
def visit(tiny: Visit) -> Visit:
    tiny.type(TEXT)
    tiny.wait_until_settled()
    return tiny


def hold(visit: Visit, function: str) -> list[Any]:
    """Hold back calls of a server function; the routes of those that came."""
    held: list[Any] = []

    def wait(route: Any) -> None:
        if f'"fn_name":"{function}"' in (route.request.post_data or "").replace(" ", ""):
            held.append(route)
        else:
            route.continue_()

    visit.page.route("**/component_server/", wait)
    return held


TABS = """count => {
  for (let press = 0; press < count; press += 1)
    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Tab', bubbles: true, cancelable: true}));
}"""
"""Tab is pressed several times before the page paints anything."""


def test_of_quick_presses_of_tab_one_inserts_and_each_other_says_why_not(visit: Visit) -> None:
    visit.control("depth").fill("1")
    visit.wait_until_settled()
    visit.wait_until_prefetched()
    visit.page.locator("#document textarea").focus()
    visit.page.wait_for_function(browsers.ANNOUNCED, arg=None, timeout=browsers.PATIENCE)
    (piece,) = visit.pieces(0)
    visit.listen("#branches .announcement")
    visit.page.evaluate(TABS, 3)
    assert visit.text == TEXT + piece
    because = "The grey text has just changed: press Tab again to insert it."
    expect(visit.page.locator("#branches .note .words")).to_have_text(because)
    visit.page.wait_for_function("words => spoken.some(one => one.endsWith(words))", arg=because)
    browsers.accept_grey_text(visit.page)
    assert len(visit.text) > len(TEXT + piece)
    expect(visit.page.locator("#branches .note .words")).not_to_have_text(because)


def test_a_reload_keeps_the_field_of_the_guess(visit: Visit) -> None:
    visit.control("guess-first").check()
    expect(visit.page.locator("#guess")).to_be_visible()
    visit.page.reload()
    visit.wait_for_status("ready")
    expect(visit.page.locator("#branches .note .words")).to_contain_text("The rows are hidden")
    expect(visit.page.locator("#guess")).to_be_visible()
    visit.page.locator("#guess-skip").click()
    expect(visit.page.locator("#guess")).to_be_hidden()
    expect(visit.page.locator("#branches .branch").first).to_be_visible()


def test_tab_keeps_the_focus_while_the_grey_text_is_computed(visit: Visit) -> None:
    """Else the focus would move to a button, and what is typed next would be lost."""
    page, box = visit.page, visit.page.locator("#document textarea")
    visit.page.route("**/component_server/", lambda route: None)
    box.press("End")
    page.keyboard.type(" He")
    page.keyboard.press("Tab")
    expect(box).to_be_focused()
    expect(page.locator("#branches .note .words")).to_contain_text("The grey text is not there yet")
    page.keyboard.type(" writes every night.")
    assert visit.text == f"{TEXT} He writes every night."
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(box).not_to_be_focused()


def test_a_guess_that_is_skipped_while_it_is_scored_does_not_count(visit: Visit) -> None:
    visit.control("guess-first").check()
    held = hold(visit, "guess")
    visit.page.locator("#guess").fill("time")
    with visit.page.expect_request("**/component_server/"):
        visit.page.locator("#guess-done").click()
    visit.page.locator("#guess-skip").click()
    said = visit.page.locator(".guess-said")
    expect(said).to_have_text("Skipped: this guess does not count.")
    with visit.page.expect_response("**/component_server/"):
        held[0].continue_()
    visit.page.evaluate(browsers.REST)
    assert said.inner_text() == "Skipped: this guess does not count."
    expect(visit.page.locator(".guess-total")).to_be_hidden()
    expect(visit.page.locator("#document textarea")).to_be_focused()


def test_while_a_guess_is_scored_that_is_said_and_no_other_can_be_made(visit: Visit) -> None:
    visit.control("guess-first").check()
    held, page = hold(visit, "guess"), visit.page
    page.locator("#guess").fill("elephant")
    with page.expect_request("**/component_server/"):
        page.locator("#guess").press("Enter")
    said, button = page.locator(".guess-said"), page.locator("#guess-done")
    expect(said).to_have_text("Checking “elephant” …")
    expect(button).to_be_disabled()
    expect(page.locator("#guess")).not_to_be_editable()
    held[0].continue_()
    expect(said).to_contain_text("bits of surprise")
    expect(button).to_be_enabled()
    expect(page.locator("form.guess")).to_be_focused()


def test_a_guess_whose_text_changes_while_it_is_scored_is_said_not_to_count(visit: Visit) -> None:
    visit.control("guess-first").check()
    held, page = hold(visit, "guess"), visit.page
    page.locator("#guess").fill("friends")
    with page.expect_request("**/component_server/"):
        page.locator("#guess-done").click()
    said, dropped = page.locator(".guess-said"), "The text has changed: “friends” was not counted."
    visit.type(" and")
    expect(said).to_have_text(dropped)
    expect(page.locator("#guess")).to_have_value("")
    expect(page.locator("#guess-done")).to_be_enabled()
    with page.expect_response("**/component_server/"):
        held[0].continue_()
    page.evaluate(browsers.REST)
    assert said.inner_text() == dropped
    expect(page.locator(".guess-total")).to_be_hidden()
    page.locator("#guess").fill("t")
    expect(said).to_be_empty()


def test_each_document_has_its_own_switch_for_guesses(visit: Visit) -> None:
    def open_other(number: int) -> None:
        visit.page.locator("#documents").click()
        visit.page.locator(".shelf .open").nth(number).click()

    switch = visit.control("guess-first")
    switch.check()
    visit.page.wait_for_selector(".kept[data-state=saved]")
    visit.page.locator("#documents").click()
    visit.page.locator("#new-document").click()
    visit.type("Without guesses")
    switch.uncheck()
    visit.page.wait_for_selector(".kept[data-state=saved]")
    for checked in (True, False):
        open_other(1)
        expect(visit.page.locator("#document textarea")).to_have_value(TEXT if checked else "Without guesses")
        assert switch.is_checked() is checked


def test_the_undo_keys_do_nothing_behind_a_dialog(visit: Visit) -> None:
    visit.page.locator("#help").click()
    expect(visit.page.locator("#help-dialog")).to_be_visible()
    visit.page.keyboard.press("Control+z")
    visit.page.keyboard.press("Escape")
    expect(visit.page.locator("#help-dialog")).to_be_hidden()
    assert visit.text == TEXT
    visit.page.keyboard.press("Control+z")
    assert visit.text != TEXT, "on the page they undo as before"


def test_a_node_that_was_pressed_for_an_older_text_refuses_visibly(visit: Visit) -> None:
    visit.choose("view", "tree")
    node = visit.page.locator("#tree .node[data-state=ahead] .hit").first
    expect(node).to_be_visible()
    node.hover()
    visit.page.mouse.down()
    visit.page.evaluate(INSERT, " time, there was")
    visit.wait_until_settled()
    visit.page.mouse.up()
    expect(visit.page.locator("#branches[data-refused]")).to_be_attached()
    assert visit.text == f"{TEXT} time, there was"


def test_a_pressed_node_is_accepted_even_if_a_paint_removes_its_element(visit: Visit) -> None:
    visit.choose("view", "tree")
    node = visit.page.locator("#tree .node[data-state=ahead]").first
    expect(node).to_be_visible()
    added = str(node.get_attribute("data-text"))
    node.locator(".hit").hover()
    visit.page.mouse.down()
    visit.page.evaluate("document.querySelectorAll('#tree .node[data-state=ahead]').forEach(one => one.remove())")
    visit.page.mouse.up()
    expect(visit.page.locator("#document textarea")).to_have_value(TEXT + added)


def test_the_list_of_the_history_follows_a_text_that_changes_behind_it(visit: Visit) -> None:
    for _ in range(2):
        visit.wait_until_settled()
        visit.token(0, 0).click()
    visit.wait_until_settled()
    text = visit.text
    for _ in range(2):
        visit.page.locator("#undo").click()
    visit.page.locator("#history").click()
    entries = visit.page.locator("#history-dialog .moments li")
    expect(entries).to_have_count(2)
    visit.page.evaluate(INSERT_BEHIND, " time")
    expect(entries).to_have_count(1)
    entries.first.locator("button").click()
    assert visit.text == text


@pytest.mark.parametrize("text", ["The old keeper", "The old keeper saw", "The old keeper saw the ship"])
def test_tab_inserts_the_grey_text_after_a_click_into_the_text_and_a_key_back_to_its_end(
    tiny: Visit, text: str
) -> None:
    page, box = tiny.page, tiny.page.locator("#document textarea")
    tiny.fill(text)
    tiny.wait_until_settled()
    page.locator("#copy").click()
    box.click(position={"x": 60, "y": 20})
    page.keyboard.press("Control+End")
    page.wait_for_timeout(1000)
    page.keyboard.press("Tab")
    expect(box).not_to_have_value(text)
