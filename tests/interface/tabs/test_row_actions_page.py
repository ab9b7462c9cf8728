"""Keys and touch among the rows: what they do can be undone, the focus follows it, and it is announced."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import Any

import pytest

from tests.support import browser as browsers
from tests.support.browser import Visit, expect, requests_held
from tests.support.witness import EngineWithHook, talker

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = "My dog is"


@pytest.fixture
def visit(tiny: Visit) -> Visit:
    return tiny


def press(visit: Visit, *keys: str) -> None:
    for key in keys:
        visit.page.keyboard.press(key)


def write(visit: Visit, text: str = TEXT) -> None:
    visit.type(text)
    visit.wait_until_settled()
    visit.listen("#branches .announcement")


def pin_a_row(visit: Visit) -> Any:
    """Write, accept the next word of the first row, and return what is left of that row."""
    write(visit)
    press(visit, "Alt+1")
    pinned = visit.page.locator("#branches .branch[data-pinned]")
    expect(pinned).to_have_count(1)
    visit.wait_until_settled()
    return pinned


def wait_until_announced(visit: Visit, *either: str) -> None:
    """Wait until an announcement contains one of these texts; late rows have another one than quick rows."""
    is_heard = "either => spoken.some(one => either.some(words => one.includes(words)))"
    visit.page.wait_for_function(is_heard, arg=either, timeout=browsers.PATIENCE)


def heard(visit: Visit) -> str:
    return str(visit.page.locator("#branches .announcement").text_content())


def focused(visit: Visit) -> str:
    """What has the focus: a piece of a row, the text box, or another element's name."""
    return str(
        visit.page.evaluate("""() => {
          const {localName, className} = document.activeElement;
          return className.includes('token') ? 'token' : localName;
        }""")
    )


def test_one_key_leads_to_the_rows_from_the_first_button_of_the_page_too(visit: Visit) -> None:
    visit.fill(TEXT)
    visit.wait_until_settled()
    visit.page.get_by_role("button", name="Skip to the text").focus()
    press(visit, "Alt+ArrowDown")
    assert focused(visit) == "token"


def test_the_undo_key_lifts_a_ban_that_was_the_last_action(visit: Visit) -> None:
    # In one input: keys that a busy computer takes late would be several steps.
    visit.page.locator("#document textarea").click()
    visit.page.keyboard.insert_text(TEXT)
    visit.wait_until_settled()
    visit.listen("#branches .announcement")
    press(visit, "Alt+ArrowDown", "Delete")
    chips = visit.page.locator("#controls .never button")
    expect(chips).to_have_count(1)
    wait_until_announced(visit, "Banned: ", "Banning ")
    press(visit, "Control+z")
    expect(chips).to_have_count(0)
    assert visit.text == TEXT
    assert focused(visit) == "token"
    wait_until_announced(visit, "Undone: the ban of ", "Allowing ")
    press(visit, "Control+Shift+z")
    expect(chips).to_have_count(1)
    press(visit, "Control+z", "Control+z")
    expect(chips).to_have_count(0)
    assert visit.text == "", "the text was written before"
    assert focused(visit) in ("token", "textarea")
    press(visit, "Control+Shift+z")
    assert visit.text == TEXT


def test_a_ban_in_another_row_leaves_the_rest_of_an_accepted_branch(visit: Visit) -> None:
    pinned, chips = pin_a_row(visit), visit.page.locator("#controls .never button")
    words = pinned.locator(".tokens").inner_text()
    visit.token(1, 0).focus()
    press(visit, "Delete")
    expect(chips).to_have_count(1)
    visit.wait_until_settled()
    assert pinned.locator(".tokens").inner_text() == words
    pinned.locator(".token").first.focus()
    press(visit, "Delete")
    expect(chips).to_have_count(2)
    expect(pinned).to_have_count(0)
    press(visit, "Control+z")
    expect(chips).to_have_count(1)
    expect(pinned).to_have_count(1)
    visit.wait_until_settled()
    assert pinned.locator(".tokens").inner_text() == words


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("settings", [False, True])
def test_rows_stay_where_they_are_when_tokens_are_banned(visit: Visit, width: int, settings: bool) -> None:
    visit.page.set_viewport_size({"width": width, "height": 900})
    write(visit)
    if settings:
        visit.page.locator("#controls summary").click()
    places = "[...document.querySelectorAll('#branches .branch')].map(row => row.getBoundingClientRect().top + scrollY)"
    before = visit.page.evaluate(places)
    visit.page.locator("#document textarea").focus()
    press(visit, "Alt+ArrowDown")
    for number in (1, 2, 3, 4):
        press(visit, "Delete")
        expect(visit.page.locator("#controls .never button")).to_have_count(number)
        visit.wait_until_settled()
        expect(visit.page.locator("#coverage .without")).to_contain_text("without")
        assert visit.page.evaluate(places) == before


def test_the_button_to_the_branches_answers_to_the_key_that_it_names(visit: Visit) -> None:
    write(visit)
    button = visit.page.locator("#to-branches")
    button.focus()
    expect(button).to_have_attribute("aria-keyshortcuts", "Alt+ArrowDown")
    press(visit, "Alt+ArrowDown")
    assert focused(visit) == "token"


def test_after_any_undo_by_key_the_focus_is_somewhere(visit: Visit) -> None:
    write(visit)
    press(visit, "Alt+ArrowDown", "Control+z")
    visit.page.wait_for_selector("#branches[data-state=empty]")
    assert visit.text == ""
    assert focused(visit) in ("token", "textarea")


def test_the_undo_key_on_a_chip_leads_to_the_next_chip_and_then_to_the_settings(visit: Visit) -> None:
    write(visit)
    press(visit, "Alt+ArrowDown", "Delete")
    chips = visit.page.locator("#controls .never button")
    expect(chips).to_have_count(1)
    visit.wait_until_settled()
    press(visit, "Delete")
    expect(chips).to_have_count(2)
    chips.last.focus()
    press(visit, "Control+z")
    expect(chips).to_have_count(1)
    expect(chips).to_be_focused()
    press(visit, "Control+Shift+z")
    expect(chips).to_have_count(2)
    expect(chips.first).to_be_focused()
    press(visit, "Control+z", "Control+z")
    expect(chips).to_have_count(0)
    expect(visit.page.locator("#controls summary")).to_be_focused()
    press(visit, "2")
    assert visit.text == TEXT


def test_a_chip_that_is_removed_comes_back_with_undo(visit: Visit) -> None:
    write(visit)
    press(visit, "Alt+ArrowDown", "Delete")
    chips = visit.page.locator("#controls .never button")
    chips.click()
    expect(chips).to_have_count(0)
    visit.page.locator("#undo").click()
    expect(chips).to_have_count(1)
    assert visit.text == TEXT


def test_what_a_key_did_is_announced_with_the_rows_that_follow(visit: Visit) -> None:
    write(visit)
    said = visit.page.locator("#branches .announcement")
    press(visit, "Alt+1")
    wait_until_announced(visit, "Inserted: ")
    expect(said).to_contain_text("These 5 hold")
    press(visit, "Control+z")
    wait_until_announced(visit, "Undone: ")
    press(visit, "Control+Shift+z")
    wait_until_announced(visit, "Redone: ")
    expect(said).to_contain_text("These 5 hold")
    visit.wait_until_settled()
    expect(visit.page.locator(".mirror .ghost")).not_to_be_empty()
    press(visit, "Escape")
    expect(said).to_have_text("Grey text hidden until the text changes.")
    press(visit, "Alt+p")
    expect(said).to_contain_text("Branching is paused.")
    press(visit, "Alt+p")
    wait_until_announced(visit, "Branching goes on.")
    assert "paused" not in heard(visit)


FOLLOWED = """() => {
  const row = document.activeElement.closest('.branch');
  return row ? [...row.querySelectorAll('[data-edited]')].map(one => one.dataset.text) : [];
}"""


def test_the_focus_follows_a_changed_row_which_a_ban_leaves(visit: Visit) -> None:
    write(visit)
    edited = visit.page.locator("#branches [data-edited]")
    press(visit, "Alt+ArrowDown", "ArrowDown", "F2")
    visit.page.locator(".row-editor").fill("never")
    press(visit, "Enter")
    expect(edited).not_to_have_count(0)
    wait_until_announced(visit, "Changed: row ")
    assert "".join(visit.page.evaluate(FOLLOWED)).strip() == "never"
    assert visit.page.evaluate("document.activeElement.matches('[data-edited]')"), "the focus is on what was put there"
    press(visit, "End", "Delete")
    expect(visit.page.locator("#controls .never button")).to_have_count(1)
    wait_until_announced(visit, "Banned: ", "Banning ")
    visit.wait_until_settled()
    expect(edited).not_to_have_count(0)
    assert "".join(visit.page.evaluate(FOLLOWED)).strip() == "never"


def test_after_a_ban_the_focus_stays_on_its_token_while_new_rows_grow_slowly(page: Any) -> None:
    model = talker()
    hooked = replace(model, engine=EngineWithHook(model.engine, lambda: time.sleep(0.2)))
    with browsers.page_of(lambda report: hooked) as url, browsers.visit_again(page, url) as opened:
        opened.wait_for_status("ready")
        opened.fill("The old keeper")
        opened.wait_until_settled()
        opened.token(3, 3).focus()
        page.evaluate(
            """() => {
              window.focused = [];
              document.addEventListener('focusin', ({target}) => { focused.push(target.className); });
            }"""
        )
        page.keyboard.press("Delete")
        expect(page.locator("#controls .never button")).to_have_count(1)
        opened.wait_until_settled()
        assert page.evaluate("focused") == []
        expect(opened.token(3, 3)).to_be_focused()


def test_from_a_slider_the_keys_lead_to_the_rows_and_to_the_text_and_leave_its_value(visit: Visit) -> None:
    write(visit)
    for name in ("k", "temperature"):
        slider = visit.control(name)
        value = slider.input_value()
        for key, goal in (("Alt+ArrowDown", "token"), ("Alt+ArrowUp", "textarea")):
            slider.focus()
            press(visit, key)
            assert focused(visit) == goal
            assert slider.input_value() == value
        slider.focus()
        press(visit, "ArrowDown")
        assert slider.input_value() != value, "without Alt the key is the slider's"
        visit.wait_until_settled()


def test_from_any_control_the_keys_lead_to_the_rows_and_to_the_text(visit: Visit) -> None:
    write(visit)
    controls = ("#undo", "#redo", ".views input[value=rows]", ".cover .sum", "#controls summary", "#rest .more")
    for selector in controls:
        for key, goal in (("Alt+ArrowDown", "token"), ("Alt+ArrowUp", "textarea")):
            visit.page.locator(selector).first.focus()
            press(visit, key)
            assert focused(visit) == goal, (selector, key)
    press(visit, "Alt+ArrowDown", "Alt+ArrowDown")
    assert heard(visit) == "The focus is on the rows already: the arrow keys move it, Alt+↑ leads back."


def test_from_the_row_of_tabs_the_keys_lead_to_the_rows_and_to_the_text_of_the_open_tab(visit: Visit) -> None:
    write(visit)
    tabs = visit.page.get_by_role("tablist", name="Pages")
    for key, goal in (("Alt+ArrowDown", "token"), ("Alt+ArrowUp", "textarea")):
        tabs.get_by_role("tab", name="Write", exact=True).focus()
        press(visit, key)
        assert focused(visit) == goal
    visit.open_tab("Type assistant")
    for key, found in (("Alt+ArrowDown", "#chat-branches .rows"), ("Alt+ArrowUp", "#chat-text")):
        visit.page.wait_for_selector("#chat-branches[data-state=settled]", timeout=browsers.PATIENCE)
        tabs.get_by_role("tab", name="Type assistant").focus()
        press(visit, key)
        assert visit.page.evaluate("selector => !!document.activeElement.closest(selector)", found), key
    visit.open_tab("Internals")
    tabs.get_by_role("tab", name="Internals").focus()
    press(visit, "Alt+ArrowDown")
    expect(tabs.get_by_role("tab", name="Internals")).to_be_focused()


def test_after_enter_the_focus_is_on_the_rest_of_the_row_that_was_accepted(visit: Visit) -> None:
    write(visit)
    press(visit, "Alt+ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight")
    rest = visit.pieces(2)[2:]
    press(visit, "Enter")
    for _ in range(2):
        assert focused(visit) == "token"
        assert visit.page.evaluate("document.activeElement.closest('.branch').matches('[data-pinned]')")
        assert visit.page.evaluate("document.activeElement.dataset.text") == rest[0]
        visit.wait_until_settled()
    assert visit.text != TEXT


def test_after_enter_on_the_last_token_of_a_row_the_focus_is_on_the_first_of_the_next_rows(visit: Visit) -> None:
    write(visit)
    for row in (2, 0):
        press(visit, "Alt+ArrowDown", *["ArrowUp"] * 5, "Home", *["ArrowDown"] * row, "End", "Enter")
        visit.wait_until_settled()
        place = "document.activeElement === document.querySelector('#branches .branch .token')"
        assert visit.page.evaluate(place)
        visit.page.wait_for_timeout(500)
        assert visit.page.evaluate(place)


def test_a_ban_covers_no_word_of_the_settings_summary(visit: Visit) -> None:
    write(visit)
    visit.page.locator("#document textarea").focus()
    press(visit, "Alt+ArrowDown", "Delete")
    ban, summary = visit.page.locator("#controls .never button"), visit.page.locator("#controls .more-settings summary")
    expect(ban).to_be_visible()
    never, label = visit.page.locator("#controls .never").bounding_box(), summary.bounding_box()
    assert label["x"] + label["width"] <= never["x"]


def test_the_arrows_lead_to_everything_else_and_into_its_list(visit: Visit) -> None:
    write(visit)
    press(visit, "Alt+ArrowDown", *["ArrowDown"] * visit.rows)
    assert visit.page.evaluate("document.activeElement.matches('#branches .more')")
    press(visit, "Enter", "ArrowDown", "ArrowRight")
    expect(visit.page.locator("#branches [data-rest='1']")).to_be_focused()
    text = visit.page.locator("#branches [data-rest='1']").get_attribute("data-text")
    press(visit, "Tab", "Shift+Tab")
    expect(visit.page.locator("#branches [data-rest='1']")).to_be_focused()
    press(visit, "Enter")
    assert visit.text == TEXT + str(text)


def test_the_keys_are_named_while_the_rows_have_the_focus_and_escape_closes_the_list(visit: Visit) -> None:
    write(visit)
    keys, more = visit.page.locator("#keys"), visit.page.locator("#rest .more")
    expect(keys).to_be_hidden()
    press(visit, "Alt+ArrowDown")
    expect(keys).to_be_visible()
    press(visit, *["ArrowDown"] * visit.rows, "Enter", "ArrowDown")
    expect(more).to_have_attribute("aria-expanded", "true")
    assert visit.page.evaluate("Boolean(document.activeElement.closest('#others'))")
    press(visit, "Escape")
    expect(more).to_have_attribute("aria-expanded", "false")
    expect(more).to_be_focused()
    press(visit, "Enter", "Escape")
    expect(more).to_have_attribute("aria-expanded", "false")


def test_the_first_focused_token_is_described_by_the_fork_and_the_keys_and_those_that_the_arrows_reach_are_not(
    visit: Visit,
) -> None:
    write(visit)
    fork = f"Fork: the text can go on here in {visit.rows} ways."
    keys, focus = f"{fork} {visit.page.locator('#keys').text_content()}", visit.page.locator("#branches .rows :focus")
    press(visit, "Alt+ArrowDown")
    expect(focus).to_have_accessible_description(keys)
    for arrow in ("ArrowDown", "ArrowUp"):
        press(visit, arrow)
        expect(focus).to_have_accessible_description("")
    press(visit, "Alt+ArrowUp", "Alt+ArrowDown")
    expect(focus).to_have_accessible_description(keys)
    press(visit, "Enter")
    visit.wait_until_settled()
    expect(focus).to_have_accessible_description("")
    visit.control("mode").select_option("every_level")
    visit.wait_until_settled()
    press(visit, "Alt+ArrowDown")
    ways = visit.page.locator("#branches .branch:not(:has(.fork))").count()
    assert 1 < ways < visit.rows
    expect(focus).to_have_accessible_description(re.compile(rf"^Fork: the text can go on here in {ways} ways\. Keys: "))


def test_a_finger_that_rests_shows_the_odds_and_inserts_nothing(phone: Visit) -> None:
    phone.fill(TEXT)
    phone.wait_until_settled()
    token = phone.token(1, 0)
    token.scroll_into_view_if_needed()
    phone.hold(token)
    expect(phone.page.locator("#branches .note .words")).to_contain_text("whole row")
    expect(phone.page.locator("#branches .note .ban")).to_be_visible()
    phone.wait_until_asked()
    assert phone.text == TEXT
    token.tap()
    phone.page.wait_for_function("text => document.querySelector('#document textarea').value !== text", arg=TEXT)


@pytest.mark.parametrize("distance", [10, 12, -14])
def test_a_short_swipe_that_begins_on_a_token_inserts_nothing_and_an_unsteady_tap_inserts_it(
    phone: Visit, distance: int
) -> None:
    write(phone)
    phone.page.evaluate("document.activeElement.blur()")
    widest = max(phone.page.locator("#branches [data-token]").all(), key=lambda token: token.bounding_box()["width"])
    assert widest.bounding_box()["width"] > 2 * abs(distance), "the finger goes up on the same token"
    phone.swipe(widest, distance)
    phone.page.wait_for_timeout(500)
    assert phone.text == TEXT
    phone.swipe(widest, 7, steps=1)
    phone.page.wait_for_function("text => document.querySelector('#document textarea').value !== text", arg=TEXT)


def test_tokens_are_high_enough_for_a_finger_in_rows_of_the_same_height(phone: Visit) -> None:
    write(phone)
    heights = "all => all.map(one => one.getBoundingClientRect().height)"
    assert min(phone.page.locator("#branches .branch .token").evaluate_all(heights)) >= 32
    assert set(phone.page.locator("#branches .branch").evaluate_all(heights)) == {52}


def test_where_there_is_only_a_finger_nothing_is_said_of_keys_that_it_does_not_have(phone: Visit) -> None:
    phone.fill(TEXT)
    phone.wait_until_settled()
    branches = phone.page.locator("#branches")
    branches.locator(".key").first.scroll_into_view_if_needed()
    phone.page.wait_for_timeout(300)
    box = branches.locator(".key").first.bounding_box()
    phone.page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    phone.page.wait_for_timeout(300)
    expect(phone.page.locator("body .tip")).to_be_hidden()
    phone.hold(phone.token(1, 0))
    branches.locator(".note .change").tap()
    assert branches.locator(".row-editor-keys button:visible").all_inner_texts() == ["Use it", "Cancel"]
    expect(branches.locator(".row-editor-keys .keys-only")).to_be_hidden()


def test_a_finger_has_a_place_to_tap_that_uses_what_was_typed_into_a_row(phone: Visit) -> None:
    phone.fill(TEXT)
    phone.wait_until_settled()
    phone.hold(phone.token(1, 0))
    phone.page.locator("#branches .note .change").tap()
    phone.page.locator(".row-editor").fill("never")
    place = phone.page.get_by_role("button", name="Use it")
    assert place.bounding_box()["height"] >= 40
    place.tap()
    expect(phone.page.locator(".row-editor")).to_have_count(0)
    expect(phone.page.locator("#branches [data-edited]")).not_to_have_count(0)
    assert phone.text == TEXT, "a tap that ends the change chooses nothing"


def test_the_buttons_of_a_change_are_in_sight_below_the_last_row_and_above_the_screen_keyboard(phone: Visit) -> None:
    page = phone.page
    phone.fill(TEXT)
    phone.wait_until_settled()
    page.evaluate("document.activeElement.blur()")
    last = page.locator("#branches .branch").last
    last.evaluate("row => scrollTo(0, scrollY + row.getBoundingClientRect().bottom - innerHeight)")
    phone.hold(last.locator(".token").first)
    page.locator("#branches .note .change").tap()
    field, buttons = page.locator(".row-editor"), page.locator(".row-editor-keys button")
    for height in (844, 500):
        page.set_viewport_size({"width": 390, "height": height})
        page.wait_for_timeout(300)
        for part in (field, buttons.first, buttons.last):
            expect(part).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("way", ["button", "swipe", "swipe of another row"])
def test_a_finger_leaves_a_row_as_it_is_by_a_button_or_by_a_swipe_of_a_row(phone: Visit, way: str) -> None:
    phone.control("depth").fill("20")
    phone.fill(TEXT)
    phone.wait_until_settled()
    rows = phone.page.locator("#branches .branch .tokens")
    hidden = rows.evaluate_all("all => all.map(one => one.scrollWidth - one.clientWidth)")
    *_, second, widest = sorted(range(len(hidden)), key=hidden.__getitem__)
    phone.page.evaluate("document.activeElement.blur()")
    phone.hold(phone.token(widest, 0))
    phone.page.locator("#branches .note .change").tap()
    field, cancel = phone.page.locator(".row-editor"), phone.page.get_by_role("button", name="Cancel")
    field.fill("never")
    box = cancel.bounding_box()
    assert min(box["width"], box["height"]) >= 40 and box["x"] + box["width"] <= 390
    if way == "button":
        cancel.tap()
    else:
        swiped = rows.nth(widest if way == "swipe" else second)
        swiped.evaluate("one => one.scrollBy({left: 60, behavior: 'instant'})")
        assert swiped.evaluate("one => Math.abs(one.scrollLeft)") > 8
    expect(field).to_have_count(0)
    expect(phone.token(widest, 0)).to_be_focused()
    expect(cancel).to_have_count(0)
    phone.wait_until_asked()
    assert phone.page.locator("#branches [data-edited]").count() == 0
    assert phone.text == TEXT


def test_a_held_token_is_seen_whole_beside_its_note_also_at_the_top_of_the_page(phone: Visit) -> None:
    phone.page.set_viewport_size({"width": 390, "height": 664})
    phone.fill(TEXT)
    phone.wait_until_settled()
    phone.page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    token, note = phone.token(1, 0), phone.page.locator("#branches .note")
    top = phone.page.locator("#branches").bounding_box()["y"]
    assert top + note.bounding_box()["height"] > 664, "the note cannot stand at the lower edge yet"
    phone.hold(token)
    expect(note.locator(".words")).to_contain_text("whole row")
    assert token.bounding_box()["y"] >= 0
    assert phone.page.evaluate(COVERED_ROWS) == []


COVERED_ROWS = """() => {
  const note = document.querySelector('#branches .note').getBoundingClientRect();
  return [...document.querySelectorAll('#branches :is(.branch, .rest)')].filter(row => {
    const {top, bottom} = row.getBoundingClientRect();
    return top < note.bottom - 1 && bottom > note.top + 1;
  }).map(row => row.textContent);
}"""
"""Returns the rows that the note lies over."""


SHOW_AT_THE_EDGE = "one => scrollBy(0, Math.max(0, one.getBoundingClientRect().bottom + 20 - innerHeight))"


@pytest.mark.parametrize("row", [0, 2, 4])
def test_what_is_said_of_a_held_token_covers_no_row_and_moves_none(phone: Visit, row: int) -> None:
    phone.fill(TEXT)
    phone.wait_until_settled()
    phone.page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    phone.token(row, 0).evaluate(SHOW_AT_THE_EDGE)
    before = phone.token(row, 0).bounding_box()
    phone.hold(phone.token(row, 0))
    expect(phone.page.locator("#branches .note .words")).to_contain_text("whole row")
    expect(phone.page.locator("#branches .note .change")).to_be_in_viewport(ratio=1)
    assert phone.page.evaluate(COVERED_ROWS) == []
    assert phone.token(row, 0).bounding_box()["y"] == pytest.approx(before["y"], abs=1)


@pytest.mark.parametrize("row", [0, 4])
def test_what_is_said_of_a_held_token_is_in_sight_and_does_not_cover_it(phone: Visit, row: int) -> None:
    phone.fill(TEXT)
    phone.wait_until_settled()
    token, note = phone.token(row, 0), phone.page.locator("#branches .note")
    # The row is the last one in sight, and its token far enough from the edge to be held.
    token.evaluate("one => scrollBy(0, one.closest('.branch').getBoundingClientRect().bottom - innerHeight)")
    assert note.bounding_box()["y"] >= 844, "the note has its own place below the window"
    phone.hold(token)
    expect(note.locator(".words")).to_contain_text("whole row")
    for part in (note.locator(".words"), note.locator(".change"), note.locator(".ban")):
        box = part.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 844
    assert token.bounding_box()["y"] >= 0
    assert phone.page.evaluate(COVERED_ROWS) == []
    inside = [note.locator(part).bounding_box() for part in (".words", ".actions")]
    needed = max(box["y"] + box["height"] for box in inside) - min(box["y"] for box in inside)
    assert note.bounding_box()["height"] <= needed + 24, "it covers no more of the page than it needs"
    phone.page.locator("#branches .branch .bar").nth(row).tap()
    expect(note.locator(".ban")).to_be_hidden()
    expect(phone.page.locator("#branches")).not_to_have_attribute("data-floats", re.compile("."))


@pytest.mark.parametrize("elsewhere", [".masthead h1", "#branches .more", "#branches .bar"])
def test_a_tap_outside_the_note_of_a_held_token_closes_it(phone: Visit, elsewhere: str) -> None:
    phone.fill(TEXT)
    phone.wait_until_settled()
    ban = phone.page.locator("#branches .note .ban")
    phone.token(1, 0).scroll_into_view_if_needed()
    phone.hold(phone.token(1, 0))
    expect(ban).to_be_visible()
    phone.page.locator(elsewhere).first.tap()
    expect(ban).to_be_hidden()
    if elsewhere.endswith(".more"):
        expect(phone.page.locator("#branches .others")).to_be_visible()


def test_a_row_that_is_swiped_closes_the_note_of_a_held_token(phone: Visit) -> None:
    phone.control("depth").fill("30")
    phone.fill(TEXT)
    phone.wait_until_settled()
    ban, token = phone.page.locator("#branches .note .ban"), phone.token(1, 0)
    token.scroll_into_view_if_needed()
    phone.hold(token)
    expect(ban).to_be_visible()
    token.evaluate("""token => {
      const row = token.closest('.tokens');
      row.scrollBy(getComputedStyle(row).direction === 'rtl' ? -60 : 60, 0);
    }""")
    expect(ban).to_be_hidden()


def test_for_a_finger_a_tapped_place_does_not_look_chosen(phone: Visit) -> None:
    phone.fill(TEXT)
    phone.wait_until_settled()
    phone.token(1, 0).tap()
    phone.page.wait_for_function("text => document.querySelector('#document textarea').value !== text", arg=TEXT)
    phone.wait_until_settled()
    drawn = """() => [...document.querySelectorAll('#branches :is(.branch, .token):hover')].map(getComputedStyle)
      .map(({boxShadow, backgroundColor}) => boxShadow + backgroundColor)"""
    assert set(phone.page.evaluate(drawn)) <= {"nonergba(0, 0, 0, 0)"}


def test_the_sentence_of_a_view_does_not_stay_over_what_it_shows(phone: Visit) -> None:
    tip = phone.page.locator("body .tip")
    for view in ("compare", "tree"):
        phone.page.locator(f"#controls .views label:has(input[value={view}])").tap()
        expect(phone.page.locator(f"#controls .views input[value={view}]")).to_be_checked()
        expect(tip).to_be_hidden()


def test_in_a_low_window_the_row_that_gets_the_focus_is_not_at_its_edge(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 640, "height": 360})
    try:
        write(visit)
        visit.page.evaluate("scrollTo(0, 0)")
        press(visit, "Alt+ArrowDown")
        bottom = visit.page.evaluate("document.activeElement.getBoundingClientRect().bottom")
        assert 0 < bottom <= 280
    finally:
        visit.page.set_viewport_size({"width": 1280, "height": 720})


def change(visit: Visit, *keys: str) -> None:
    """Press keys that lead to a token, and write "never" in its place."""
    press(visit, *keys, "F2")
    visit.page.locator(".row-editor").fill("never")
    press(visit, "Enter")
    expect(visit.page.locator("#branches [data-edited]")).not_to_have_count(0)


def test_a_token_in_whose_place_nothing_is_written_stays_and_the_page_says_so(visit: Visit) -> None:
    write(visit)
    press(visit, "Alt+ArrowDown", "F2")
    visit.page.locator(".row-editor").fill("")
    press(visit, "Enter")
    wait_until_announced(visit, "Nothing was changed: no text was written in place of the token.")
    expect(visit.page.locator("#branches [data-edited]")).to_have_count(0)
    later = "A later sentence that a key does not end."
    visit.page.evaluate(
        "because => document.querySelector('#branches').dispatchEvent(new CustomEvent('refuse', {detail: {because}}))",
        later,
    )
    press(visit, "Shift")
    expect(visit.page.locator("#branches .note")).to_contain_text(later)


def test_a_token_is_not_changed_to_a_banned_word_and_the_page_says_so(visit: Visit) -> None:
    write(visit)
    word = visit.pieces(1)[0].strip()
    press(visit, "Alt+ArrowDown", "ArrowDown", "Delete")
    chip = visit.page.locator("#controls .never button")
    expect(chip).to_have_count(1)
    wait_until_announced(visit, "Banned: ", "Banning ")
    visit.wait_until_settled()
    before, edited = visit.pieces(2), visit.page.locator("#branches [data-edited]")
    visit.token(2, 0).focus()
    press(visit, "F2")
    visit.page.locator(".row-editor").fill(word)
    press(visit, "Enter")
    expect(visit.page.locator("#branches .note")).to_contain_text(f"Nothing was changed: “{word}” is banned.")
    wait_until_announced(visit, f"Nothing was changed: “{word}” is banned. To use it, first choose it beside “Never:”")
    expect(edited).to_have_count(0)
    assert visit.pieces(2) == before
    visit.page.wait_for_timeout(3000)
    expect(visit.page.locator("#branches .note")).to_contain_text("is banned.")
    press(visit, "Shift")
    expect(visit.page.locator("#branches .note")).not_to_contain_text("is banned.")
    press(visit, "F2")
    visit.page.locator(".row-editor").fill(word)
    press(visit, "Enter")
    expect(visit.page.locator("#branches .note")).to_contain_text("is banned.")
    visit.page.wait_for_timeout(3000)
    visit.token(3, 0).hover()
    expect(visit.page.locator("#branches .note")).to_contain_text(visit.pieces(3)[0].strip())
    expect(visit.page.locator("#branches .note").get_by_text("Change it")).to_be_visible()
    visit.page.mouse.move(0, 0)
    chip.click()
    expect(chip).to_have_count(0)
    visit.wait_until_settled()
    expect(edited).to_have_count(0)


def test_a_changed_row_goes_with_a_ban_of_its_own_word_and_while_rows_lead_to_a_word(visit: Visit) -> None:
    write(visit)
    change(visit, "Alt+ArrowDown", "ArrowRight")
    visit.wait_until_settled()
    edited = visit.page.locator("#branches [data-edited]")
    visit.page.locator(".more-settings").evaluate("details => { details.open = true; }")
    visit.control("steer-word").fill("house")
    press(visit, "Enter")
    expect(edited).to_have_count(0)
    visit.wait_until_settled()
    visit.control("steer-word").fill("")
    press(visit, "Enter")
    expect(edited).not_to_have_count(0)
    visit.wait_until_settled()
    edited.first.focus()
    press(visit, "Delete")
    expect(edited).to_have_count(0)
    visit.wait_until_settled()
    expect(edited).to_have_count(0)
    press(visit, "Control+z")
    expect(edited).not_to_have_count(0)


def test_below_the_field_of_a_change_stands_which_keys_end_it(visit: Visit) -> None:
    write(visit)
    keys = visit.page.locator(".row-editor-keys")
    press(visit, "Alt+ArrowDown", "End", "F2")
    expect(keys).to_have_text("Enter: use it · Esc: leave it", use_inner_text=True)
    name = visit.page.locator(".row-editor").get_attribute("aria-label")
    assert name.endswith(": Enter or Tab puts the new text there, Escape leaves it")
    field, line = visit.page.locator(".row-editor").bounding_box(), keys.bounding_box()
    view = visit.page.locator("#branches").bounding_box()
    assert field["y"] + field["height"] <= line["y"] <= field["y"] + field["height"] + 8
    assert view["x"] <= line["x"] and line["x"] + line["width"] <= view["x"] + view["width"]
    press(visit, "Escape")
    expect(keys).to_have_count(0)


def test_the_field_of_a_change_covers_no_token_after_it(visit: Visit) -> None:
    write(visit)
    tokens = visit.page.locator("#branches .token")
    boxes = "tokens => tokens.map(token => token.getBoundingClientRect()).map(({x, y, right}) => ({x, y, right}))"
    before = tokens.evaluate_all(boxes)
    later = visit.page.locator("#branches .branch").first.locator(".token").count() - 1
    assert later > 1
    press(visit, "Alt+ArrowDown", "F2")
    for typed in ("never", "never and under no circumstances at all"):
        visit.page.locator(".row-editor").fill(typed)
        field, now = visit.page.locator(".row-editor").bounding_box(), tokens.evaluate_all(boxes)
        end = field["x"] + field["width"]
        assert end < now[1]["x"] < end + 16, "the next token stands beside the field"
        moved = {round(one["x"] - old["x"], 2) for one, old in zip(now[1 : later + 1], before[1:], strict=False)}
        assert len(moved) == 1, "all later tokens of the row move by one distance"
        assert [now[0], *now[later + 1 :]] == [before[0], *before[later + 1 :]], "nothing else moves"
    press(visit, "Escape")
    assert tokens.evaluate_all(boxes) == before


def test_tokens_after_the_field_of_a_change_are_grey_until_it_is_closed(visit: Visit) -> None:
    write(visit)
    tokens = visit.page.locator("#branches .branch").first.locator(".token")
    assert tokens.count() > 2
    colour = "token => getComputedStyle(token).color"
    plain = tokens.first.evaluate(colour)
    press(visit, "Alt+ArrowDown", "ArrowRight", "F2")
    expect(visit.page.locator(".row-editor")).to_be_focused()
    assert tokens.first.evaluate(colour) == plain, "the tokens before it stay in the row"
    assert plain not in [tokens.nth(index).evaluate(colour) for index in range(2, tokens.count())]
    press(visit, "Escape")
    assert {tokens.nth(index).evaluate(colour) for index in range(tokens.count())} == {plain}


def test_both_changes_of_a_row_stay_marked_and_count_as_written(visit: Visit) -> None:
    write(visit)
    change(visit, "Alt+ArrowDown")
    visit.wait_until_settled()
    press(visit, "ArrowRight", "ArrowRight", "F2")
    visit.page.locator(".row-editor").fill("sky")
    press(visit, "Enter")
    edited = visit.page.locator("#branches [data-edited]")
    expect(edited.filter(has_text="y").last).to_be_visible()
    visit.wait_until_settled()
    marked = "".join(edited.evaluate_all("all => all.map(one => one.dataset.text)"))
    assert "never" in marked and "sky" in marked
    press(visit, "Enter")
    visit.wait_until_settled()
    chosen = "".join(visit.page.locator(".mirror .chosen").all_text_contents())
    assert "never" in visit.text and "sky" in visit.text
    assert "never" not in chosen and "sky" not in chosen


def test_a_pinned_row_that_is_changed_again_keeps_the_mark_of_its_first_change(visit: Visit) -> None:
    write(visit)
    change(visit, "Alt+ArrowDown", "ArrowRight")
    visit.wait_until_settled()
    press(visit, "Home", "Enter")
    pinned = visit.page.locator("#branches .branch[data-pinned]")
    expect(pinned).to_have_count(1)
    visit.wait_until_settled()
    edited = visit.page.locator("#branches [data-edited]")
    assert "never" in "".join(edited.evaluate_all("all => all.map(one => one.dataset.text)"))
    pinned.locator("[data-edited]").last.focus()
    press(visit, "ArrowRight", "F2")
    visit.page.locator(".row-editor").fill("sky")
    press(visit, "Enter")
    expect(edited.filter(has_text="y").last).to_be_visible()
    visit.wait_until_settled()
    marked = "".join(edited.evaluate_all("all => all.map(one => one.dataset.text)"))
    assert "never" in marked and "sky" in marked


def test_a_change_of_a_row_is_undone_and_made_again(visit: Visit) -> None:
    write(visit)
    undo, edited = visit.page.locator("#undo"), visit.page.locator("#branches [data-edited]")
    before = visit.page.locator("#branches .branch").all_inner_texts()
    change(visit, "Alt+ArrowDown", "ArrowDown")
    visit.wait_until_settled()
    press(visit, "Control+z")
    expect(edited).to_have_count(0)
    visit.wait_until_settled()
    assert visit.page.locator("#branches .branch").all_inner_texts() == before
    assert visit.text == TEXT
    wait_until_announced(visit, "Undone: the change to “never”.", "Undoing the change to “never”: ")
    press(visit, "Control+Shift+z")
    expect(edited).not_to_have_count(0)
    wait_until_announced(visit, "Redone: the change to row ")
    undo.click()
    expect(edited).to_have_count(0)
    press(visit, "Control+Shift+z")
    expect(edited).not_to_have_count(0)


@pytest.mark.parametrize("accept", ["Alt+1", "x"])
def test_a_change_of_a_row_comes_back_with_its_text(visit: Visit, accept: str) -> None:
    write(visit)
    edited = visit.page.locator("#branches [data-edited]")
    change(visit, "Alt+ArrowDown")
    visit.wait_until_settled()
    changed = visit.page.locator("#branches .branch").all_inner_texts()
    visit.page.locator("#document textarea").focus()
    press(visit, "Control+End", accept)
    assert visit.text != TEXT
    if accept == "x":
        expect(edited).to_have_count(0)
    press(visit, "Control+z")
    assert visit.text == TEXT
    expect(edited).not_to_have_count(0)
    visit.wait_until_settled()
    assert visit.page.locator("#branches .branch").all_inner_texts() == changed
    press(visit, "Control+z")
    expect(edited).to_have_count(0)
    assert visit.text == TEXT
    press(visit, "Control+z")
    assert visit.text == ""


def test_after_a_reload_bans_and_changes_of_rows_are_there_and_can_be_undone(visit: Visit) -> None:
    write(visit)
    edited, chips = visit.page.locator("#branches [data-edited]"), visit.page.locator("#controls .never button")
    press(visit, "Alt+ArrowDown", "ArrowDown", "Delete")
    expect(chips).to_have_count(1)
    visit.wait_until_settled()
    change(visit, "Alt+ArrowDown")
    visit.wait_until_settled()
    changed = visit.page.locator("#branches .branch").all_inner_texts()
    visit.page.wait_for_selector(".kept[data-state=saved]")
    visit.page.reload()
    visit.wait_until_settled()
    assert visit.page.locator("#branches .branch").all_inner_texts() == changed
    visit.page.locator("#undo").click()
    expect(edited).to_have_count(0)
    expect(chips).to_have_count(1)
    visit.page.locator("#undo").click()
    expect(chips).to_have_count(0)
    visit.page.locator("#redo").click()
    expect(chips).to_have_count(1)
    assert visit.text == TEXT


DELAYED = """() => {
  const {fetch} = window;
  window.fetch = (url, ...rest) => new Promise(done => setTimeout(() => done(fetch(url, ...rest)), 1200));
}"""


def test_while_a_change_is_computed_the_row_shows_it_and_a_click_inserts_nothing(visit: Visit) -> None:
    write(visit)
    visit.page.evaluate(DELAYED)
    change(visit, "Alt+ArrowDown", "ArrowDown")
    row = visit.page.locator("#branches .branch[data-changing]")
    expect(row).to_have_count(1)
    assert [one.strip() for one in row.locator(".token").evaluate_all(TEXTS)] == ["never"]
    row.locator(".token").first.click()
    assert visit.text == TEXT
    expect(visit.page.locator("#branches .note")).to_contain_text("being computed")
    visit.wait_until_settled()
    expect(visit.page.locator("#branches [data-edited]")).not_to_have_count(0)
    expect(row).to_have_count(0)


TEXTS = "all => all.map(one => one.dataset.text)"
FIRSTS = "document.querySelector('#branches').branchView.rows().map(({branch}) => branch.ids[0])"
"""The first tokens of the rows: further ones may nearly tie with others, and depend on what else a pass computes."""


@pytest.mark.parametrize("settle", [True, False])
def test_a_letter_that_is_typed_after_a_click_and_undone_leaves_the_accepted_tokens(visit: Visit, settle: bool) -> None:
    write(visit, "My dog")
    for token in (0, 0, 1):
        visit.token(0, token).click()
        visit.wait_until_settled()
        text, before = visit.text, visit.page.evaluate(FIRSTS)
        visit.page.locator("#document textarea").focus()
        press(visit, "Control+End", "x")
        if settle:
            visit.wait_until_settled()
        press(visit, "Control+z")
        visit.wait_until_settled()
        assert visit.text == text
        after = visit.page.evaluate(FIRSTS)
        assert after and set(after) == set(before), "no token is re-opened"
        visit.wait_until_asked()  # the rows are known already
        assert visit.asked[-1]["accepted"], "the server is told the accepted tokens again"


def test_a_redo_after_a_change_loses_neither(visit: Visit) -> None:
    write(visit)
    edited = visit.page.locator("#branches [data-edited]")
    change(visit, "Alt+1", "Control+z", "Alt+ArrowDown")
    press(visit, "Control+Shift+z")
    assert visit.text != TEXT
    press(visit, "Control+z")
    assert visit.text == TEXT
    expect(edited).not_to_have_count(0)


def change_by_mouse(visit: Visit) -> None:
    """Choose "Change it" for the first token, write "never" in its place, and wait for the rows."""
    visit.page.locator("#branches .token").first.hover()
    visit.page.locator("#branches .note .change").click()
    visit.page.locator(".row-editor").fill("never")
    press(visit, "Enter")
    expect(visit.page.locator("#branches [data-edited]")).not_to_have_count(0)
    visit.wait_until_settled()


def test_after_a_change_the_focus_is_on_its_row_wherever_it_was(visit: Visit) -> None:
    write(visit)
    visit.page.locator("#depth").focus()
    change_by_mouse(visit)
    assert focused(visit) == "token"


def test_who_changes_a_token_by_mouse_while_writing_goes_on_writing(visit: Visit) -> None:
    write(visit)
    visit.page.locator("#document textarea").click()
    change_by_mouse(visit)
    before = visit.text
    while not visit.page.locator("#document textarea").evaluate("box => box.value") > before:
        press(visit, "Tab")  # the first one may only announce what it inserts
        assert visit.page.evaluate("document.activeElement.matches('#document textarea')")


FOCUSED_TOKEN = """() => {
  const {dataset: {ids}} = document.activeElement, row = document.activeElement.closest('.branch');
  return {ids, line: Number(row?.dataset.branch), isEdited: document.activeElement.matches('[data-edited]')};
}"""


@pytest.mark.parametrize("way", ["Control+z", "button"])
def test_the_focus_goes_to_the_token_that_an_undo_brings_back(visit: Visit, way: str) -> None:
    write(visit)
    press(visit, "Alt+ArrowDown")
    before = visit.page.evaluate(FOCUSED_TOKEN)
    change(visit)
    visit.wait_until_settled()
    changed = visit.page.evaluate(FOCUSED_TOKEN)
    assert changed["line"] == before["line"], "the row stays in its place"
    for _ in range(2):
        if way == "button":
            visit.page.locator("#undo").click()
        else:
            press(visit, way)
        expect(visit.page.locator("#branches [data-edited]")).to_have_count(0)
        visit.wait_until_settled()
        assert visit.page.evaluate(FOCUSED_TOKEN) == before
        press(visit, "Control+Shift+z")
        expect(visit.page.locator("#branches [data-edited]")).not_to_have_count(0)
        visit.wait_until_settled()
        assert visit.page.evaluate(FOCUSED_TOKEN) == changed, "a redo leads to what was written"


def test_an_undo_of_a_change_leaves_the_focus_where_it_is_outside_of_the_rows(visit: Visit) -> None:
    write(visit)
    press(visit, "Alt+ArrowDown")
    change(visit)
    visit.wait_until_settled()
    visit.page.locator("#undo").focus()
    press(visit, "Enter")
    expect(visit.page.locator("#branches [data-edited]")).to_have_count(0)
    visit.wait_until_settled()
    expect(visit.page.locator("#undo")).to_be_focused()


def test_after_a_change_the_next_enter_inserts_the_whole_written_word(visit: Visit) -> None:
    write(visit)
    field, edited = visit.page.locator(".row-editor"), visit.page.locator("#branches [data-edited]")
    press(visit, "Alt+ArrowDown", "ArrowRight")
    for word in ("shimmering", "glittering"):
        press(visit, "F2")
        field.fill(word)
        press(visit, "Enter")
        expect(edited.last).to_be_focused()
        visit.wait_until_settled()
        assert edited.count() > 1, "the word has several tokens"
        press(visit, *["ArrowLeft"] * (edited.count() - 1))
        expect(edited.first).to_be_focused()
    press(visit, "F2")
    field.fill("shimmering")
    press(visit, "Enter")
    expect(edited.last).to_be_focused()
    visit.wait_until_settled()
    press(visit, "Enter")
    assert visit.text.endswith("shimmering")


def test_what_was_typed_over_a_token_is_used_where_the_focus_moves_elsewhere(visit: Visit) -> None:
    write(visit)
    field, edited = visit.page.locator(".row-editor"), visit.page.locator("#branches [data-edited]")
    press(visit, "Alt+ArrowDown", "F2")
    visit.page.locator("#document textarea").focus()
    expect(field).to_have_count(0)
    assert edited.count() == 0, "nothing was changed"
    press(visit, "Alt+ArrowDown", "F2")
    field.fill("never")
    visit.page.locator("#document textarea").click()
    expect(field).to_have_count(0)
    expect(edited).not_to_have_count(0)
    visit.wait_until_settled()
    assert focused(visit) == "textarea"
    press(visit, "Control+z")
    expect(edited).to_have_count(0)
    assert visit.text == TEXT


def test_the_field_of_a_change_grows_with_what_is_written_and_tab_leads_back_to_the_row(visit: Visit) -> None:
    write(visit)
    field = visit.page.locator(".row-editor")
    press(visit, "Alt+ArrowDown", "F2")
    visit.page.keyboard.type("half-remembered things of the past")
    assert field.evaluate("one => one.scrollWidth <= one.clientWidth")
    press(visit, "Tab")
    expect(field).to_have_count(0)
    assert focused(visit) == "token"


def test_a_change_of_the_pinned_row_that_is_undone_pins_it_again(visit: Visit) -> None:
    pinned, edited = pin_a_row(visit), visit.page.locator("#branches [data-edited]")
    before = pinned.inner_text()
    pinned.locator(".token").first.focus()
    change(visit)
    visit.wait_until_settled()
    press(visit, "Control+z")
    expect(edited).to_have_count(0)
    visit.wait_until_settled()
    assert pinned.inner_text() == before


def test_a_question_mark_among_the_rows_opens_the_help(visit: Visit) -> None:
    write(visit)
    press(visit, "Alt+ArrowDown", "Shift+?")
    expect(visit.page.locator("#help-dialog")).to_be_visible()
    press(visit, "Escape")
    assert focused(visit) == "token"


def test_a_mouse_that_rests_does_not_change_the_grey_text_after_a_click(visit: Visit) -> None:
    write(visit)
    ghost = visit.page.locator(".mirror .ghost")
    own = "[...document.querySelectorAll('#branches .branch:first-child .token')].map(one => one.dataset.text).join('')"
    visit.page.locator("#branches .branch").nth(2).locator(".token").first.click()
    visit.wait_until_settled()
    visit.page.wait_for_timeout(400)
    assert ghost.text_content() == visit.page.evaluate(own)
    box = visit.page.locator("#branches .branch").nth(2).locator(".token").first.bounding_box()
    assert box
    visit.page.mouse.move(box["x"] + 3, box["y"] + 3)
    visit.page.mouse.move(box["x"] + 5, box["y"] + 5)
    chosen = visit.page.locator("#branches .branch").nth(2).locator(".token").first.get_attribute("data-text")
    expect(ghost).to_have_text(str(chosen), use_inner_text=False)


MARKED = """() => [...document.querySelectorAll('#branches .rows :is(.token, .branch)')]
  .filter(one => getComputedStyle(one).backgroundColor !== 'rgba(0, 0, 0, 0)')
  .map(one => one.closest('.branch').dataset.branch)"""


def test_only_one_row_is_marked_as_chosen_where_the_mouse_and_the_focus_are_on_two(visit: Visit) -> None:
    def wait_until_marked(row: str) -> None:
        visit.page.wait_for_function(f"row => ({MARKED})().every(one => one === row)", arg=row, timeout=5000)
        assert set(visit.page.evaluate(MARKED)) == {row}

    write(visit)
    press(visit, "Alt+ArrowDown", "ArrowRight")
    wait_until_marked("0")
    visit.token(2, 0).hover()
    expect(visit.token(2, 0)).to_have_attribute("data-pointed", "")
    wait_until_marked("2")
    focus = visit.token(0, 1)
    expect(focus).to_be_focused()
    assert focus.evaluate("one => getComputedStyle(one).boxShadow") != "none", "the focus is still seen"
    press(visit, "ArrowDown")
    wait_until_marked("1")


def test_a_slow_way_down_to_the_buttons_of_a_token_keeps_the_token(visit: Visit) -> None:
    write(visit)
    note, token = visit.page.locator("#branches .note"), visit.token(0, 0)
    token.hover()
    expect(note.locator(".ban")).to_be_visible()
    label = note.locator(".ban").inner_text()
    visit.move_slowly(browsers.middle_of(token), browsers.middle_of(note.locator(".change")))
    assert note.locator(".ban").inner_text() == label
    marked = visit.page.locator("#branches [data-pointed]")
    assert marked.count() == 1
    assert marked.evaluate("(one, token) => one === token", token.element_handle())
    visit.token(2, 0).hover()
    expect(note.locator(".ban")).not_to_have_text(label)
    assert marked.evaluate("(one, token) => one === token", visit.token(2, 0).element_handle())


def test_the_button_of_a_ban_names_the_token(visit: Visit) -> None:
    write(visit)
    press(visit, "Alt+ArrowDown")
    token = visit.page.locator("#branches .token").first
    name = token.get_attribute("aria-label") or ""
    part = "the part " if "a part of" in name else ""
    expect(visit.page.locator("#branches .note .ban")).to_have_text(f"Never {part}“{token.inner_text().strip()}”")


SEEN = """height => {
  const [note, token] = ['.note', '.token:focus']
    .map(one => document.querySelector(`#branches ${one}`)?.getBoundingClientRect());
  return note && token && note.bottom <= height + 1 && token.top >= 0 && token.bottom <= height;
}"""


@pytest.mark.parametrize("height", [800, 640, 480])
def test_by_keyboard_the_whole_note_on_a_token_is_seen(visit: Visit, height: int) -> None:
    visit.page.set_viewport_size({"width": 1280, "height": height})
    visit.page.locator("#controls summary").click()
    write(visit)
    note = visit.page.locator("#branches .note")
    press(visit, "Alt+ArrowDown")
    for _ in range(5):
        expect(note.locator(".change")).to_be_visible()
        visit.page.wait_for_function(SEEN, arg=height)
        press(visit, "ArrowDown")


def test_a_redo_brings_back_what_was_left_of_the_chosen_row(visit: Visit) -> None:
    write(visit)
    pinned = visit.page.locator("#branches .branch[data-pinned]")
    visit.page.locator("#branches .branch").nth(2).locator(".token").first.click()
    visit.wait_until_settled()
    left = pinned.inner_text()
    press(visit, "Control+z")
    expect(pinned).to_have_count(0)
    visit.wait_until_settled()
    press(visit, "Control+Shift+z")
    visit.wait_until_settled()
    expect(pinned).to_have_text(left, use_inner_text=True)


def test_a_text_of_the_history_has_the_rows_that_it_had(visit: Visit) -> None:
    write(visit)
    press(visit, "Alt+Shift+3")
    visit.wait_until_settled()
    accepted = visit.text
    before = visit.page.locator("#branches .branch").all_inner_texts()
    visit.fill("Once more")
    visit.wait_until_settled()
    visit.page.locator("#history").click()
    visit.page.locator("#history-dialog .moment").filter(has_text="accepted").first.click()
    assert visit.text == accepted
    visit.wait_until_asked()
    visit.wait_until_settled()
    assert visit.page.locator("#branches .branch").all_inner_texts() == before


MARKS_AT_THE_END = """() => {
  const notes = document.querySelectorAll('#branches .branch[data-reads=on] .stopped:not(.rest-of-choice):last-child');
  return [...notes].map(note => {
    const {left, right, top, bottom} = note.getBoundingClientRect();
    return document.elementFromPoint((left + right) / 2, (top + bottom) / 2) === note;
  });
}"""


def test_why_a_row_has_no_share_stays_in_sight_at_the_end_of_a_long_row(visit: Visit) -> None:
    write(visit)
    for name, value in (("depth", "40"), ("top-p", "0.1")):
        visit.control(name).fill(value)
    visit.wait_until_settled()
    long = visit.page.locator("#branches .branch[data-reads=on]:has(.stopped)")
    expect(long.first).to_be_visible()
    seen = visit.page.evaluate(MARKS_AT_THE_END)
    assert seen and all(seen)
    note, tokens = long.first.locator(".stopped").last.bounding_box(), long.first.locator(".tokens").bounding_box()
    assert note["x"] + note["width"] < tokens["x"] + tokens["width"], "within the row"
    # The row's last token can still be read on to, and then nothing lies over it.
    row = visit.page.locator("#branches .branch:has(.stopped)").first
    row.locator(".token").last.focus()
    token, note = row.locator(".token").last.bounding_box(), row.locator(".stopped").last.bounding_box()
    assert token["x"] + token["width"] <= note["x"] + 1


ROWS = """() => [...document.querySelectorAll('#branches .branch')].map(row =>
  [row.dataset.share, ...[...row.querySelectorAll('.token')].map(token => token.dataset.ids)])"""


def test_an_abandoned_text_has_the_rows_that_it_had_also_after_a_reload(visit: Visit) -> None:
    write(visit)
    press(visit, "Alt+1")
    visit.wait_until_settled()
    text, rows = visit.text, [one[:2] for one in visit.page.evaluate(ROWS)[1:]]
    press(visit, "Control+z", "Alt+2")
    visit.wait_until_settled()
    for reloaded in (False, True):
        if reloaded:
            visit.page.reload()
            visit.page.wait_for_selector("#status[data-state=ready]")
            visit.wait_until_settled()
        visit.page.locator("#history").click()
        visit.page.locator("#history-dialog .moment", has_text="left behind").first.click()
        visit.wait_until_settled()
        assert visit.text == text
        assert {tuple(one) for one in rows} <= {tuple(one[:2]) for one in visit.page.evaluate(ROWS)}
        press(visit, "Control+z")
        visit.wait_until_settled()


def test_who_goes_to_the_rows_from_the_middle_of_the_text_hears_where_they_continue(visit: Visit) -> None:
    write(visit)
    visit.page.keyboard.press("Alt+ArrowDown")
    visit.page.wait_for_timeout(300)
    assert "continue at the caret" not in heard(visit)
    visit.page.keyboard.press("Alt+ArrowUp")
    visit.page.keyboard.press("Control+ArrowLeft")
    visit.wait_until_settled()
    visit.page.keyboard.press("Alt+ArrowDown")
    expect(visit.page.locator("#branches .token:focus")).to_have_count(1)
    wait_until_announced(visit, "The rows continue at the caret, after ")


@pytest.mark.parametrize("key", ["Use it", "Enter"])
def test_after_a_finger_has_changed_a_token_the_note_covers_nothing_of_the_text(phone: Visit, key: str) -> None:
    page, note = phone.page, phone.page.locator("#branches .note")
    phone.fill(TEXT)
    phone.wait_until_settled()
    phone.hold(phone.token(2, 0))
    expect(page.locator("#branches")).to_have_attribute("data-floats", "above")
    note.locator(".change").tap()
    page.locator(".row-editor").fill("zebra")
    with requests_held(page):
        if key == "Enter":
            page.keyboard.press("Enter")
        else:
            page.get_by_role("button", name=key).tap()
        page.wait_for_timeout(300)
        assert note.bounding_box()["y"] >= page.locator("#branches .branch").last.bounding_box()["y"]
    phone.wait_until_settled()
    assert note.bounding_box()["y"] >= page.locator("#branches .branch").last.bounding_box()["y"]
