"""Steering in the Write tab: towards a word or away from it, and changing a token of a row, in a browser."""

from __future__ import annotations

from typing import Any

import pytest

from lookahead_core import Document, Model
from tests.support.browser import PATIENCE, Visit, expect, requests_held, wait_until_idle

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PROMPT = "Once upon a time, an old keeper looked out over the"
ROWS = "#branches .branch"


def steer(visit: Visit, word: str, choice: str = "towards") -> None:
    visit.control("steer-word").fill(word)
    visit.page.locator("#steer").select_option(choice)


def changed(visit: Visit) -> Any:
    return visit.page.locator("#branches .token[data-edited]")


def test_towards_a_word_the_rows_lead_to_it_and_the_head_says_how_likely_it_is(visit: Visit) -> None:
    visit.type(PROMPT)
    visit.wait_until_settled()
    steer(visit, "sea")
    odds = visit.page.locator("#coverage .word-odds")
    expect(odds).to_contain_text("“sea”")
    visit.wait_until_settled()
    expect(odds).to_contain_text(", as a whole word")
    expect(visit.page.locator("#branches .note")).to_contain_text("which may go on as a longer word")
    expect(odds).to_contain_text("within 5 tokens")
    marked = visit.page.locator(f"{ROWS} .token[data-word]")
    assert "".join(marked.first.get_attribute("data-text")).strip() == "sea"
    assert marked.count() >= visit.rows > 1
    for row in range(visit.rows):
        assert "".join(visit.pieces(row)).endswith("sea")
    inserted = "".join(visit.pieces(1))
    visit.token(1, len(visit.pieces(1)) - 1).click()
    assert visit.text == PROMPT + inserted
    visit.listen("#branches .announcement")
    visit.control("steer-word").fill("")
    visit.wait_until_asked()
    expect(odds).to_be_hidden()
    visit.wait_until_settled()
    assert visit.rows == 5
    assert "Rows are no longer steered by a word." in " ".join(visit.page.evaluate("spoken"))


FIRST_ROW = "() => document.querySelector('#branches .branch').getBoundingClientRect().top + scrollY"
"""Its place in the page: a new focus may scroll."""
RECORD_PLACES = f"""() => {{
  window.places = [];
  const note = () => places.push(({FIRST_ROW})());
  note();
  new MutationObserver(note).observe(document.querySelector('#coverage'), {{
    attributes: true, characterData: true, childList: true, subtree: true,
  }});
}}"""


@pytest.mark.parametrize("size", [(1366, 768), (911, 512), (390, 844)])
def test_the_odds_of_a_word_to_steer_by_move_no_row(visit: Visit, size: tuple[int, int]) -> None:
    odds, page = visit.page.locator("#coverage .word-odds"), visit.page
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    try:
        page.locator(".more-settings").evaluate("details => { details.open = true; }")
        visit.type(PROMPT)
        visit.wait_until_settled()
        page.evaluate(RECORD_PLACES)
        for word in ("sea", "an extraordinarily improbable wish", ""):
            visit.put("steer-word", word)
            visit.wait_until_asked()
            visit.wait_until_settled()
            if not word:
                expect(odds).to_be_hidden()
                continue
            expect(odds).to_contain_text(f"“{word}”")
            assert odds.inner_text() in odds.get_attribute("data-tip"), "also what is cut off at its end"
        assert len(page.evaluate("places")) > 2
        assert len(set(page.evaluate("places"))) == 1
        visit.put("steer-word", "mountains")
        visit.wait_until_asked()
        visit.wait_until_settled()
        visit.token(1, 0).evaluate("token => token.focus({preventScroll: true})")
        page.keyboard.press("Delete")
        expect(page.locator("#coverage .without")).to_contain_text("without “")
        visit.wait_until_asked()
        visit.wait_until_settled()
        expect(odds).to_contain_text("“mountains”")
        assert len(set(page.evaluate("places"))) == 1, "nor with a banned token"
        if size == (1366, 768):
            page.set_viewport_size({"width": 1280, "height": 800})
            assert odds.evaluate("one => one.scrollWidth <= one.clientWidth"), "whole beside the banned token"
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


def test_a_word_that_is_taken_away_before_its_rows_are_there_steers_nothing(visit: Visit) -> None:
    visit.type(PROMPT)
    visit.wait_until_settled()
    before = [visit.pieces(row) for row in range(visit.rows)]
    with requests_held(visit.page):
        steer(visit, "sea")
        visit.wait_until_asked()
        visit.control("steer-word").fill("")
        visit.wait_until_asked()
    visit.wait_until_asked()
    wait_until_idle()
    visit.wait_until_settled()
    assert [visit.pieces(row) for row in range(visit.rows)] == before
    expect(visit.page.locator("#coverage .word-odds")).to_be_hidden()


def test_a_word_to_avoid_is_in_no_row_and_the_coverage_says_so(visit: Visit) -> None:
    visit.type(PROMPT)
    visit.listen("#branches .announcement")
    steer(visit, "sea", "avoid")
    expect(visit.page.locator("#coverage .without")).to_contain_text("without the word “sea”")
    visit.wait_until_settled()
    assert visit.rows == 5
    assert not any("sea" in "".join(visit.pieces(row)).split() for row in range(5))
    assert "away from the word “sea”" in " ".join(visit.page.evaluate("spoken"))
    visit.page.wait_for_selector(".kept[data-state=saved]")
    visit.page.reload()
    visit.wait_for_status("ready")
    expect(visit.page.locator("#coverage .without")).to_contain_text("without the word “sea”")
    visit.page.locator("#documents").click()
    visit.page.locator("#new-document").click()
    expect(visit.control("steer-word")).to_have_value("")


def test_the_choice_to_avoid_a_word_is_kept_over_a_reload_before_there_is_a_word(tiny: Visit) -> None:
    kind = tiny.page.locator("#steer")
    tiny.control("steer-word").fill("")
    kind.select_option("avoid")
    tiny.page.reload()
    tiny.wait_for_status("ready")
    expect(kind).to_have_value("avoid")


@pytest.mark.parametrize("key", ["F2", "e", "E", "button"])
def test_a_token_is_changed_and_the_rest_of_the_row_follows_from_there(
    visit: Visit, default_model: Model, key: str
) -> None:
    visit.type(PROMPT + ".")
    visit.wait_until_settled()
    before = [visit.pieces(row) for row in range(5)]
    if key == "button":
        visit.token(2, 1).hover()
        visit.page.locator("#branches .change").click()
    else:
        visit.token(2, 1).focus()
        # Playwright sends “E” without Shift, as Caps Lock does.
        visit.page.keyboard.press(key)
    field = visit.page.locator(".row-editor")
    expect(field).to_have_value(before[2][1].strip())
    field.fill("zebra")
    field.press("Tab" if key == "E" else "Enter")
    expect(changed(visit).first).to_be_visible()
    visit.wait_until_settled()
    assert visit.text == PROMPT + "."
    text = "".join(piece for piece in changed(visit).evaluate_all("all => all.map(one => one.dataset.text)"))
    assert text.strip() == "zebra"
    row = next(row for row in range(5) if "zebra" in "".join(visit.pieces(row)))
    pieces = visit.pieces(row)
    # A word that replaces a token keeps its leading space, and one that replaces a comma gets a space.
    assert "".join(pieces).startswith(before[2][0] + " zebra")
    assert [visit.pieces(other) for other in range(5) if other != row] == [one for one in before if one != before[2]]
    document = Document(default_model, PROMPT + ".")
    typed = "".join(pieces[:1]) + text
    last = next(index for index in range(len(pieces)) if "".join(pieces[: index + 1]).endswith("zebra"))
    ids = visit.token(row, last).get_attribute("data-ids")
    visit.token(row, last).click()
    assert visit.text == PROMPT + "." + typed
    assert ids
    visit.wait_until_settled()
    expect(changed(visit)).to_have_count(0)
    assert visit.text == PROMPT + "." + typed
    chosen = visit.page.locator(".mirror .chosen").all_text_contents()
    assert "".join(chosen).strip() == "".join(pieces[:1]).strip(), "what was written into the row was typed, not chosen"
    asked = [given for name, given in visit.calls if name == "ask"][-1]
    assert document.text + typed == asked["text"]
    assert asked["edits"] == []


def change(visit: Visit, text: str) -> None:
    visit.token(0, 1).focus()
    visit.page.keyboard.press("F2")
    visit.page.locator(".row-editor").fill(text)
    visit.page.keyboard.press("Enter")


def test_a_changed_row_is_left_out_while_a_word_is_gone_towards_and_the_page_says_so(visit: Visit) -> None:
    visit.type(PROMPT + ".")
    visit.wait_until_settled()
    change(visit, "zebra")
    expect(changed(visit).first).to_be_visible()
    visit.wait_until_settled()
    visit.listen("#branches .announcement")
    steer(visit, "sea")
    expect(changed(visit)).to_have_count(0)
    left_out = "The row that you changed is left out until the word to go towards is removed."
    visit.page.wait_for_function("words => spoken.join(' ').includes(words)", arg=left_out)
    assert "is gone" not in " ".join(visit.page.evaluate("spoken"))
    visit.wait_until_settled()
    change(visit, "horse")
    refusal = "To change a row, first remove the word to go towards."
    expect(visit.page.locator("#branches .note")).to_contain_text(refusal)
    visit.control("steer-word").fill("")
    expect(changed(visit).first).to_be_visible()
    visit.wait_until_settled()
    assert "zebra" in "".join(changed(visit).evaluate_all("all => all.map(one => one.dataset.text)"))


def test_escape_leaves_the_row_as_it_is_and_gives_the_focus_back(visit: Visit) -> None:
    visit.type(PROMPT + ".")
    visit.wait_until_settled()
    asked = len([name for name, _ in visit.calls if name == "ask"])
    visit.token(1, 0).focus()
    visit.page.keyboard.press("F2")
    field = visit.page.locator(".row-editor")
    field.fill("zebra 1")
    assert visit.text == PROMPT + "."
    field.press("Escape")
    expect(field).to_have_count(0)
    expect(visit.token(1, 0)).to_be_focused()
    assert len([name for name, _ in visit.calls if name == "ask"]) == asked
    assert visit.text == PROMPT + "."


def test_a_change_of_a_stale_row_is_refused_visibly(visit: Visit) -> None:
    visit.type(PROMPT + ".")
    visit.wait_until_settled()
    refused = visit.page.evaluate(
        """async () => {
            const branches = document.querySelector('#branches'), box = document.querySelector('#document textarea');
            const token = branches.querySelector('[data-token]');
            token.focus();
            token.dispatchEvent(new KeyboardEvent('keydown', {key: 'F2', bubbles: true}));
            const field = document.querySelector('.row-editor');
            field.value = 'zebra';
            box.setRangeText(' And', box.value.length, box.value.length, 'end');
            box.dispatchEvent(new InputEvent('input', {inputType: 'insertText', bubbles: true}));
            field.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));
            return branches.matches('[data-refused]');
        }"""
    )
    assert refused
    visit.wait_until_settled()
    assert visit.text == PROMPT + ". And"
    expect(changed(visit)).to_have_count(0)


def test_a_change_within_a_word_that_is_being_typed_continues_it(visit: Visit) -> None:
    visit.type("Once upon a time there was a little ho")
    visit.wait_until_settled()
    visit.token(0, 0).focus()
    visit.page.keyboard.press("F2")
    visit.page.locator(".row-editor").fill("bbit")
    visit.page.keyboard.press("Enter")
    expect(changed(visit).first).to_be_visible(timeout=PATIENCE)
    visit.wait_until_settled()
    row = next(row for row in range(5) if "".join(visit.pieces(row)).startswith("bbit"))
    pieces = visit.pieces(row)
    last = next(index for index in range(len(pieces)) if "".join(pieces[: index + 1]) == "bbit")
    visit.token(row, last).click()
    assert visit.text == "Once upon a time there was a little hobbit"
