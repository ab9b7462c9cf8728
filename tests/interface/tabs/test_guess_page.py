"""Guess first: the rows of the Write tab are hidden until the next word is guessed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support import browser as browsers
from tests.support.browser import Visit, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
HIDDEN = "The rows are hidden: guess the next word first, or skip the guess."
TEXT = "Once upon a"


@pytest.fixture
def visit(tiny: Visit) -> Visit:
    tiny.control("guess-first").check()
    tiny.type(TEXT)
    return tiny


def wait_for_answer(visit: Visit) -> None:
    visit.page.wait_for_selector("#branches[data-state=settled]")


def nothing_is_shown(visit: Visit) -> None:
    branches = visit.page.locator("#branches")
    assert visit.rows == 0
    assert branches.locator("button[data-token], button[data-rest]").count() == 0
    assert visit.page.locator("#branches .announcement").inner_text() in ("", HIDDEN)
    assert visit.page.locator("#coverage").is_hidden()
    assert visit.page.locator(".mirror .ghost").inner_text() == ""


def test_before_the_guess_nothing_of_the_rows_is_in_the_page(visit: Visit) -> None:
    wait_for_answer(visit)
    nothing_is_shown(visit)
    expect(visit.page.locator("#branches .note .words")).to_have_text(HIDDEN)
    for key in ("Alt+Digit1", "Alt+Shift+Digit1", "Alt+Digit9", "Control+ArrowRight"):
        visit.page.locator("#document textarea").focus()
        visit.page.keyboard.press(key)
        assert visit.text == TEXT, key
        expect(visit.page.locator("#branches[data-refused]")).to_be_visible()
    visit.page.keyboard.press("Tab")
    assert visit.text == TEXT
    nothing_is_shown(visit)


def test_a_guess_is_scored_and_shows_the_rows(visit: Visit) -> None:
    wait_for_answer(visit)
    visit.page.locator("#document textarea").focus()
    visit.page.keyboard.press("Alt+ArrowDown")
    expect(visit.page.locator("#guess")).to_be_focused()
    visit.listen(".guess-said")
    for _ in range(2):
        visit.page.keyboard.press("Alt+ArrowDown")
    assert visit.page.evaluate("spoken") == [HIDDEN, HIDDEN], "there are no rows that it could lead to"
    visit.page.keyboard.type("time")
    visit.page.keyboard.press("Enter")
    said = visit.page.locator(".guess-said")
    expect(said).to_contain_text("bits of surprise")
    expect(said).to_contain_text("“time”")
    assert visit.rows > 0
    expect(visit.page.locator(".guess-total .figures")).to_contain_text("1 guess")
    expect(visit.page.locator("#branches .announcement")).not_to_be_empty()
    said.hover()
    expect(visit.page.locator(".tip")).to_contain_text("Bits of surprise: 1 bit for a word with a chance of 50 %")
    visit.page.locator("#document textarea").focus()
    visit.page.keyboard.press("Alt+Digit1")
    expect(visit.page.locator("#guess")).to_be_visible()
    assert visit.text != TEXT
    assert visit.rows == 0


@pytest.mark.parametrize("button", ["guess-done", "guess-skip"])
def test_after_a_guess_by_key_a_second_enter_changes_nothing_and_the_result_says_where_the_keys_lead(
    visit: Visit, button: str
) -> None:
    wait_for_answer(visit)
    page, form, said = visit.page, visit.page.get_by_role("form", name="Guess the next word"), ".guess-said"
    page.locator("#guess").press_sequentially("time")
    page.locator("#guess" if button == "guess-done" else "#guess-skip").press("Enter")
    expect(page.locator(said)).to_contain_text("Alt+↓: to the rows, Alt+↑: to the text.")
    expect(form).to_be_focused()
    for key in ("Enter", "Backspace"):
        page.keyboard.press(key)
        assert visit.text == TEXT, key
    page.keyboard.press("Alt+ArrowDown")
    expect(visit.token(0, 0)).to_be_focused()
    assert form.get_attribute("tabindex") is None, "a click on it does not focus it"
    page.keyboard.press("Alt+ArrowUp")
    expect(page.locator("#document textarea")).to_be_focused()


def test_what_is_typed_after_a_guess_by_key_goes_into_the_text(visit: Visit) -> None:
    wait_for_answer(visit)
    visit.page.locator("#guess").press_sequentially("time")
    visit.page.locator("#guess").press("Enter")
    expect(visit.page.get_by_role("form", name="Guess the next word")).to_be_focused()
    visit.page.keyboard.type(" x1?")
    assert visit.text == TEXT + " x1?"


def test_after_a_guess_by_mouse_the_text_has_the_focus(visit: Visit) -> None:
    wait_for_answer(visit)
    visit.page.locator("#guess").fill("time")
    visit.page.locator("#guess-done").click()
    expect(visit.page.locator(".guess-said")).to_contain_text("row")
    expect(visit.page.locator("#document textarea")).to_be_focused()
    expect(visit.page.locator(".guess-said")).not_to_contain_text("Alt+↓")


def test_a_reset_score_is_announced_and_keeps_the_focus_in_the_form(visit: Visit) -> None:
    wait_for_answer(visit)
    page, said = visit.page, visit.page.locator(".guess-said")
    page.locator("#guess").fill("time")
    page.locator("#guess").press("Enter")
    expect(page.locator("form.guess")).to_be_focused()
    page.locator("#guess-reset").press("Enter")
    expect(said).to_have_text("The score is reset. Alt+↓: to the rows, Alt+↑: to the text.")
    expect(page.locator("form.guess")).to_be_focused()
    visit.type("n")
    wait_for_answer(visit)
    page.locator("#guess").fill("time")
    page.locator("#guess").press("Enter")
    expect(page.locator("form.guess")).to_be_focused()
    visit.type("o")
    wait_for_answer(visit)
    page.locator("#guess-reset").press("Enter")
    expect(said).to_have_text("The score is reset.")
    expect(page.locator("#guess")).to_be_focused()


def test_that_the_rows_are_hidden_is_seen_once_and_announced(tiny: Visit) -> None:
    tiny.listen(".guess-said")
    tiny.control("guess-first").check()
    said = tiny.page.locator(".guess-said")
    expect(said).to_have_text("Write something first: then you guess its next word.")
    tiny.type(TEXT)
    wait_for_answer(tiny)
    tiny.control("guess-first").uncheck()
    tiny.page.evaluate("spoken.splice(0)")
    tiny.control("guess-first").check()
    assert tiny.page.evaluate("spoken") == [HIDDEN]
    seen = tiny.page.get_by_text(HIDDEN).evaluate_all(
        "all => all.filter(one => one.checkVisibility() && one.offsetWidth > 1).map(one => one.className)"
    )
    assert seen == ["words"]
    tiny.page.evaluate("spoken.splice(0)")
    for _ in range(2):
        tiny.page.locator("#guess-done").click()
        expect(said).to_have_text("Type the word that you expect next.")
        assert tiny.page.evaluate("spoken.splice(0)") == ["Type the word that you expect next."], "each time"
    assert said.bounding_box()["width"] > 100


LATE = """() => document.querySelector('#branches').addEventListener('show', event => {
  if (event.detail.late || !event.detail.view) return;
  event.stopImmediatePropagation();
  const later = new CustomEvent('show', {detail: {...event.detail, late: true}});
  if (event.detail.state === 'settled') setTimeout(() => event.target.dispatchEvent(later), 1500);
}, {capture: true})"""


@pytest.mark.parametrize("late", [False, True])
def test_the_result_of_a_guess_is_announced_before_the_rows(visit: Visit, late: bool) -> None:
    wait_for_answer(visit)
    if late:  # the guess is scored before the page has the rows
        visit.fill("")
        visit.page.wait_for_selector("#branches[data-state=empty]")
        visit.page.evaluate(LATE)
        visit.fill("The old keeper")
    visit.page.locator("#guess").fill("time")
    visit.listen(".guess-said, #branches .announcement")
    visit.page.locator("#guess").press("Enter")
    expect(visit.page.locator("#branches .announcement")).to_contain_text(" hold ")
    checking, result, rows = visit.page.evaluate("spoken")
    assert checking == "Checking “time” …" and "bits of surprise" in result and rows.startswith("These 5 hold ")
    visit.fill("It was once upon")
    expect(visit.page.locator("#branches .announcement")).to_be_empty()
    wait_for_answer(visit)
    visit.page.evaluate("spoken.splice(0)")
    visit.page.locator("#guess-skip").click()
    expect(visit.page.locator("#branches .announcement")).to_contain_text(" hold ")
    assert visit.page.evaluate("spoken[0]") == "Skipped: this guess does not count."


def test_a_guess_that_is_a_row_is_said_to_be_one(visit: Visit) -> None:
    visit.fill(TEXT + " ")
    wait_for_answer(visit)
    visit.control("guess-first").uncheck()
    visit.wait_until_settled()
    visit.control("length").select_option("word")
    visit.wait_until_settled()
    row = next(index for index in range(visit.rows) if "".join(visit.pieces(index)).strip().isalpha())
    word = "".join(visit.pieces(row))
    visit.control("guess-first").check()
    visit.page.locator("#guess").fill(word)
    visit.page.locator("#guess-done").click()
    expect(visit.page.locator(".guess-said")).to_contain_text(f"row {row + 1}")


def test_a_guess_has_the_figure_of_its_row(visit: Visit) -> None:
    visit.control("odds").select_option("words")
    visit.control("guess-first").uncheck()
    visit.wait_until_settled()
    labels = [visit.page.locator(f"#branches [data-branch='{row}'] .share") for row in range(visit.rows)]
    said = [str(label.get_attribute("aria-label") or label.get_attribute("data-tip")) for label in labels]
    found = [(row, re.search(r"^\d.* next word, “(\w+)”", one)) for row, one in enumerate(said)]
    row, word = next((row, one[1]) for row, one in found if one)
    figure = labels[row].locator(".figure").inner_text()
    visit.control("guess-first").check()
    visit.page.locator("#guess").fill(word)
    visit.page.locator("#guess-done").click()
    expect(visit.page.locator(".guess-said")).to_contain_text(f"“{word}”: {figure} chance of this word")
    expect(visit.page.locator(".guess-said")).to_contain_text(f"row {row + 1}")
    expect(visit.page.locator(".guess-total .figures")).to_contain_text("1 guess")


def test_skipping_shows_the_rows_without_a_score(visit: Visit) -> None:
    wait_for_answer(visit)
    visit.page.locator("#guess-skip").click()
    assert visit.rows > 0
    expect(visit.page.locator(".guess-total")).to_be_hidden()
    visit.type("n")
    assert visit.rows == 0
    visit.page.keyboard.press("Backspace")
    visit.wait_until_settled()
    assert visit.rows > 0, "what was skipped once is not asked again"


def test_the_score_is_kept_through_a_reload_and_can_be_reset(visit: Visit) -> None:
    wait_for_answer(visit)
    visit.page.locator("#guess").fill("time")
    visit.page.locator("#guess-done").click()
    expect(visit.page.locator(".guess-total .figures")).to_contain_text("1 guess")
    visit.page.wait_for_selector(".kept[data-state=saved]")
    visit.page.reload()
    visit.wait_for_status("ready")
    expect(visit.page.locator(".guess-total .figures")).to_contain_text("1 guess")
    assert visit.control("guess-first").is_checked()
    wait_for_answer(visit)
    visit.page.locator("#guess-reset").click()
    expect(visit.page.locator(".guess-total")).to_be_hidden()


@pytest.mark.parametrize("button", ["guess-done", "guess-skip"])
def test_a_place_is_not_guessed_again_after_a_reload(visit: Visit, button: str) -> None:
    wait_for_answer(visit)
    visit.page.locator("#guess").fill("time")
    visit.page.locator(f"#{button}").click()
    expect(visit.page.locator("#guess")).to_be_hidden()
    visit.page.wait_for_selector(".kept[data-state=saved]")
    visit.page.reload()
    visit.wait_for_status("ready")
    expect(visit.page.locator("#branches .branch").first).to_be_visible()
    assert visit.control("guess-first").is_checked()
    expect(visit.page.locator("#guess")).to_be_hidden()
    visit.type("n")
    expect(visit.page.locator("#guess")).to_be_visible()
    assert visit.rows == 0, "another place is guessed"


def test_an_empty_guess_gets_a_sentence_and_a_text_that_changes_no_score(visit: Visit) -> None:
    wait_for_answer(visit)
    visit.page.locator("#guess-done").click()
    expect(visit.page.locator(".guess-said")).to_have_text("Type the word that you expect next.")
    assert visit.rows == 0


def test_switching_it_off_shows_the_rows_at_once(visit: Visit) -> None:
    wait_for_answer(visit)
    visit.control("guess-first").uncheck()
    assert visit.rows > 0
    expect(visit.page.locator(".guess")).to_be_hidden()


def test_a_guess_is_scored_under_the_settings_of_the_rows_and_says_so(visit: Visit) -> None:
    wait_for_answer(visit)
    visit.control("temperature").fill("0.5")
    visit.page.locator("#guess").fill("time")
    visit.page.locator("#guess-done").click()
    said = visit.page.locator(".guess-said")
    expect(said).to_contain_text("chance of this word at temperature 0.5")
    cold = said.inner_text()
    visit.fill(TEXT + " ")
    visit.fill(TEXT)
    visit.page.locator("#guess-first").uncheck()
    sent = [given for name, given in visit.calls if name == "guess"]
    assert sent[-1]["temperature"] == 0.5
    visit.control("temperature").fill("1")
    visit.fill("It was once upon a")
    visit.control("guess-first").check()
    wait_for_answer(visit)
    visit.page.locator("#guess").fill("time")
    visit.page.locator("#guess-done").click()
    expect(said).to_contain_text("chance of this word ·")
    assert said.inner_text() != cold


@pytest.mark.parametrize("shape", ["tree", "river"])
def test_the_tree_shows_nothing_that_is_hidden(visit: Visit, shape: str) -> None:
    visit.control("guess-first").uncheck()
    visit.wait_until_settled()
    visit.token(0, 0).click()
    visit.wait_until_settled()
    visit.page.keyboard.press("Control+z")
    visit.wait_until_settled()
    visit.choose("view", "tree")
    visit.choose("tree-shape", shape)
    visit.page.locator("#tree-session").check()
    ahead = visit.page.locator("#tree .node:is([data-state=ahead], [data-state=end], [data-state=rest])")
    expect(ahead.first).to_be_visible()
    visit.control("guess-first").check()
    expect(ahead).to_have_count(0)
    expect(visit.page.locator("#tree .tree-says")).to_have_text(HIDDEN)
    after = visit.page.locator("#tree .node[data-state=left]")
    assert after.count() == 1, "what was left behind is the person's own"
    assert after.get_attribute("data-p") is None
    assert "%" not in visit.page.locator("#tree").inner_text()
    visit.type("n")
    wait_for_answer(visit)
    expect(ahead).to_have_count(0)
    visit.page.locator("#guess-skip").click()
    expect(ahead.first).to_be_visible()


def test_the_line_on_tab_says_what_tab_does_before_and_after_the_guess(visit: Visit) -> None:
    wait_for_answer(visit)
    line = visit.page.locator("#tab-key")
    guessing = "While you guess there is no grey text: Tab leads past the settings to the field of your guess."
    writing = "While you write, Tab accepts the grey text; Esc, then Tab leaves the box."
    expect(line).to_have_text(guessing, use_inner_text=True)
    visit.page.locator("#document textarea").click()
    visit.page.keyboard.press("End")
    visit.page.keyboard.press("Tab")
    expect(visit.page.locator("#guess")).to_be_focused()
    visit.page.locator("#guess-skip").click()
    expect(line).to_have_text(writing, use_inner_text=True)


def test_it_is_announced_that_the_rows_are_hidden_again_after_a_row_was_chosen(visit: Visit) -> None:
    wait_for_answer(visit)
    visit.page.locator("#guess-skip").click()
    visit.wait_until_settled()
    said = visit.page.locator(".guess-said")
    expect(said).not_to_have_text(HIDDEN)
    visit.token(0, 0).click()
    expect(said).to_have_text(HIDDEN)
    wait_for_answer(visit)
    expect(said).to_have_text(HIDDEN)


def test_a_row_that_is_chosen_by_key_leads_to_the_next_guess(visit: Visit) -> None:
    wait_for_answer(visit)
    visit.page.locator("#guess-skip").click()
    visit.wait_until_settled()
    visit.token(0, 0).focus()
    visit.page.keyboard.press("Enter")
    expect(visit.page.locator("#guess")).to_be_focused()


def test_tab_leads_to_the_guess_from_a_text_box_that_tab_has_reached_too(visit: Visit) -> None:
    wait_for_answer(visit)
    box, guess = visit.page.locator("#document textarea"), visit.page.locator("#guess")
    box.focus()
    visit.page.keyboard.press("Shift+Tab")
    expect(box).not_to_be_focused()
    visit.page.keyboard.press("Tab")
    expect(box).to_be_focused()
    visit.page.keyboard.press("Tab")
    expect(guess).to_be_focused()


def test_without_a_mouse_the_text_box_is_described_by_what_tab_does_now_and_by_nothing_else(
    browser: Any, tiny_page: str
) -> None:
    context = browser.new_context(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    with browsers.visit(context, tiny_page) as phone:
        phone.wait_for_status("ready")
        session = context.new_cdp_session(phone.page)

        def described() -> str:
            nodes = session.send("Accessibility.getFullAXTree")["nodes"]
            named = [node for node in nodes if node.get("name", {}).get("value") == "Your text"]
            (box,) = (node for node in named if node["role"]["value"] == "textbox")
            return str(box["description"]["value"])

        assert "While you write" in described() and "While you guess" not in described()
        phone.control("guess-first").check()
        phone.fill(TEXT)
        wait_for_answer(phone)
        assert "While you guess" in described() and "While you write" not in described()
    context.close()


@pytest.mark.parametrize("way", ["tap", "Enter", "skip"])
def test_on_a_phone_no_text_field_has_the_focus_after_a_guess(phone: Visit, way: str) -> None:
    page, said = phone.page, phone.page.locator(".guess-said")
    phone.control("guess-first").check()
    phone.fill(TEXT)
    wait_for_answer(phone)
    page.locator("#guess").tap()
    page.locator("#guess").fill("time")
    if way == "Enter":
        page.keyboard.press("Enter")
    else:
        page.locator("#guess-done" if way == "tap" else "#guess-skip").tap()
    expect(said).to_contain_text("Skipped" if way == "skip" else "“time”: ")
    assert not page.evaluate("document.activeElement.matches('input, textarea')"), "the keyboard would cover the result"
    expect(said).not_to_contain_text("Alt+")


def test_on_a_phone_a_guess_whose_result_is_in_sight_does_not_move_the_page(phone: Visit) -> None:
    page, said = phone.page, phone.page.locator(".guess-said")
    phone.control("guess-first").check()
    phone.fill(TEXT)
    wait_for_answer(phone)
    page.locator("#guess").fill("time")
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    page.locator("#guess-done").tap()
    expect(said).to_contain_text("“time”: ")
    expect(said).to_be_in_viewport(ratio=1)
    page.wait_for_timeout(700)
    assert page.evaluate("scrollY") == 0


def test_on_a_phone_the_result_of_a_guess_is_in_sight_and_the_page_does_not_jump(phone: Visit) -> None:
    page, said = phone.page, phone.page.locator(".guess-said")
    phone.control("guess-first").check()
    phone.fill(TEXT)
    wait_for_answer(phone)
    page.locator("#guess").fill("time")
    page.locator("#guess").scroll_into_view_if_needed()
    begin = page.evaluate(
        "() => { addEventListener('scroll', () => { lowest = Math.min(lowest, scrollY); });"
        " return (window.lowest = scrollY); }"
    )
    page.locator("#guess-done").tap()
    expect(said).to_contain_text("“time”: ")
    expect(said).to_be_in_viewport(ratio=1)
    expect(page.locator("#branches .branch").first).to_be_in_viewport(ratio=1)
    page.wait_for_timeout(700)
    assert page.evaluate("lowest") == page.evaluate("scrollY") == begin


def test_on_a_phone_text_result_and_rows_are_seen_together_and_the_text_beside_the_next_guess(phone: Visit) -> None:
    page, text = phone.page, phone.page.locator("#document textarea")
    phone.fill(TEXT)
    wait_for_answer(phone)
    phone.control("guess-first").check()
    page.locator("#guess").fill("time")
    page.locator("#guess-done").tap()
    said, last = page.locator(".guess-said"), page.locator("#branches .branch").last
    expect(said).to_contain_text("“time”: ")
    for seen in (text, said, last):
        expect(seen).to_be_in_viewport(ratio=1)
    assert said.bounding_box()["y"] < page.locator("#branches .branch").first.bounding_box()["y"]
    phone.token(1, 0).tap()
    expect(page.locator("#guess")).to_be_visible()
    page.wait_for_timeout(500)
    for seen in (text, page.locator("#guess-done")):
        expect(seen).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("guess", ["the", "extraordinarily"])
def test_in_the_window_of_a_laptop_the_result_of_a_guess_moves_no_row(visit: Visit, guess: str) -> None:
    page, form = visit.page, visit.page.locator("#controls .guess")
    page.set_viewport_size({"width": 1280, "height": 800})
    before = form.bounding_box()
    page.locator("#guess").fill(guess)
    page.locator("#guess").press("Enter")
    expect(page.locator(".guess-said")).to_contain_text("Alt+↓")
    assert form.bounding_box() == before, "the rows below stay where they are"


def test_on_a_projector_the_score_of_several_guesses_covers_no_open_setting(visit: Visit) -> None:
    page, total = visit.page, visit.page.locator(".guess-total")
    page.set_viewport_size({"width": 911, "height": 512})
    for _ in range(3):
        page.locator("#guess").fill("the")
        page.locator("#guess").press("Enter")
        wait_for_answer(visit)
        visit.token(0, 0).click()
        expect(page.locator("#guess")).to_be_visible()
    page.locator("#guess").fill("the")
    page.locator("#guess").press("Enter")
    wait_for_answer(visit)
    expect(total).to_contain_text("4 guesses: ")
    order = page.locator("#order").bounding_box()
    assert order["x"] + order["width"] <= total.bounding_box()["x"]


@pytest.mark.parametrize(("by_key", "rows_seen"), [(True, 5), (False, 5), (True, 3)])
def test_on_a_projector_rows_are_seen_with_the_result_of_a_guess_and_the_score(
    visit: Visit, by_key: bool, rows_seen: int
) -> None:
    page, form, said = visit.page, visit.page.locator("#controls .guess"), visit.page.locator(".guess-said")
    total = form.locator(".guess-total")
    page.set_viewport_size({"width": 911, "height": 512})
    if rows_seen == 5:
        page.locator("#controls summary").click()  # closes the settings
    page.locator("#guess").fill("the")
    if by_key:
        page.locator("#guess").press("Enter")
    else:
        page.locator("#guess-done").click()
    wait_for_answer(visit)
    expect(said).to_contain_text("chance")
    expect(total).to_contain_text("1 guess: ")
    for part in (said, total):
        assert part.evaluate("one => parseFloat(getComputedStyle(one).fontSize)") >= 14
    beside = page.locator("#controls summary" if rows_seen == 5 else "#order").bounding_box()
    assert beside["x"] + beside["width"] <= total.bounding_box()["x"]
    assert total.bounding_box()["y"] + total.bounding_box()["height"] <= said.bounding_box()["y"] + 0.5
    assert total.locator(".figures").evaluate("one => one.getClientRects().length") == 1, "the score has one line"
    expect(page.locator("#branches .branch")).to_have_count(5)
    for row in page.locator("#branches .branch").all()[:rows_seen]:
        expect(row).to_be_in_viewport(ratio=0.99)
    assert said.evaluate("one => one.scrollHeight <= one.clientHeight + 1"), "all of the result is seen"
    assert form.evaluate("one => one.matches(':focus-visible')") is by_key
    expect(said.locator(".spoken-only", has_text="Alt+↓")).to_have_count(int(by_key))
    assert said.bounding_box()["x"] - form.bounding_box()["x"] >= 4, "the frame of the focus stands apart from it"
    rows = page.locator("#branches .rows").bounding_box()
    visit.token(1, 1).hover()
    expect(page.locator("#branches .note .words")).to_contain_text("up to here")
    note = page.locator("#branches .note").bounding_box()
    assert page.locator("#branches .rows").bounding_box() == rows
    assert note["y"] + note["height"] <= rows["y"] + 0.5
    for part in (said, total, page.locator("#coverage .held")):
        box = part.bounding_box()
        assert box["y"] + box["height"] <= note["y"] + 1, "the note covers none of them"
        inside = [box["x"] + 4, box["y"] + box["height"] - 4]
        assert part.evaluate("(one, at) => one.contains(document.elementFromPoint(...at))", inside)
    visit.type(" old")
    page.locator("#guess-done").click()
    expect(said).to_have_text("Type the word that you expect next.")
    assert said.evaluate("one => one.scrollHeight <= one.clientHeight"), "what is said beside the field is seen whole"
