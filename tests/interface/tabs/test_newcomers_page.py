"""What a newcomer meets in the tabs beside the writer's: examples, one instruction field, and names for everything."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = "After careful consideration of the risks, the old keeper climbed the stairs again and again.\n\nThen he slept."
LONG = " ".join(f"the keeper saw ship {number} and slept." for number in range(60))
OUTSIDE = """element => {
  const {left, right, top, bottom} = element.getBoundingClientRect();
  return left < 0 || right > innerWidth || top < 0 || bottom > innerHeight;
}"""
COVERED = """([popover, word]) => {
  const one = popover.getBoundingClientRect();
  return [...word.getClientRects()].some(other =>
    one.left < other.right && one.right > other.left && one.top < other.bottom && one.bottom > other.top);
}"""


@pytest.fixture
def visit(small: Visit) -> Visit:
    return small


@pytest.fixture
def default_visit(real: Visit) -> Visit:
    """The page with the default model, for what depends on what the model says."""
    return real


def tab(visit: Visit, name: str) -> Any:
    visit.open_tab(name)
    return visit.page


def test_ten_highlights_are_shown_at_first_by_a_named_threshold_and_the_slider_reaches_all(
    default_visit: Visit,
) -> None:
    page = tab(default_visit, "Highlights")
    page.get_by_role("button", name="Try an example").locator("visible=true").click()
    marked, slider = page.locator("#highlights [data-marked]"), page.locator("#highlights-count")
    browsers.expect(marked).to_have_count(10)
    most = int(slider.get_attribute("max"))
    assert most > 10
    browsers.expect(page.locator(".read .of")).to_contain_text("At each its first choice was at least")
    slider.fill(str(most))
    assert marked.count() == most


@pytest.mark.parametrize("width", [1280, 390])
def test_next_highlight_shows_and_announces_each_one_and_keeps_the_focus(visit: Visit, width: int) -> None:
    page = tab(visit, "Highlights")
    page.set_viewport_size({"width": width, "height": 800})
    try:
        visit.analyse(LONG)
        marked, button = page.locator("#highlights [data-marked]"), page.locator("#highlights-next")
        about, said = page.locator("#highlights-about"), page.locator(".read > .announcement")
        button.focus()
        for number in (1, 2, 3):
            page.keyboard.press("Enter")
            browsers.expect(button).to_be_focused()
            browsers.expect(marked.nth(number - 1)).to_have_attribute("data-shown", "")
            browsers.expect(page.locator("[data-shown]")).to_have_count(1)
            browsers.expect(said).to_contain_text(f"Highlight {number} of {marked.count()}. The model expected ")
            # Signs are seen as signs, and said by their names.
            rank = said.inner_text().rsplit(" was its ", 1)[1]
            browsers.expect(about.locator(".headline")).to_have_text(re.compile(f" was its {re.escape(rank)}$"))
            assert not page.evaluate(COVERED, [about.element_handle(), marked.nth(number - 1).element_handle()])
            assert not marked.nth(number - 1).evaluate(OUTSIDE) and not button.evaluate(OUTSIDE)
            browsers.expect(about.locator(".meaning")).to_be_attached()
            assert not page.evaluate(COVERED, [about.element_handle(), button.element_handle()])
        page.keyboard.press("Escape")
        browsers.expect(about).to_be_hidden()
        page.keyboard.press("Enter")
        browsers.expect(marked.nth(3)).to_have_attribute("data-shown", "")
        page.keyboard.press("Tab")
        browsers.expect(about).to_be_hidden()
        browsers.expect(page.locator("[data-shown]")).to_have_count(0)
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


HEAR = """region => {
  window.heard = [];
  new MutationObserver(() => heard.push(region.textContent)).observe(region, {childList: true, subtree: true});
}"""


def test_the_end_of_an_analysis_is_announced_once_and_its_progress_is_not(visit: Visit) -> None:
    page = tab(visit, "Highlights")
    page.locator(".read > .announcement").evaluate(HEAR)
    visit.analyse(LONG)
    browsers.expect(page.locator(".read > .announcement")).to_contain_text("10 places are marked, of ")
    (heard,) = page.evaluate("heard")
    assert " that the model did not expect. At each its first choice was " in heard
    assert heard.endswith("likelier.")
    assert page.locator(".read .says").evaluate("one => one.role ?? one.ariaLive") is None
    slider = page.locator("#highlights-count")
    slider.fill("3")
    assert slider.get_attribute("aria-valuetext").startswith("3 of ")
    browsers.expect(slider).to_have_accessible_description(page.locator(".read .of").inner_text())


def test_a_token_of_internals_is_announced_once_where_it_is_clicked(visit: Visit) -> None:
    page = tab(visit, "Internals")
    said = page.locator("#internals > .announcement")
    said.evaluate(HEAR)
    page.locator("#internals-text").fill("The keeper slept.")
    page.wait_for_selector("#internals[data-state=settled] .box", timeout=PATIENCE)
    box = page.locator("#internals .box").nth(1)
    box.focus()
    page.keyboard.press("Enter")
    browsers.expect(said).to_contain_text("of the model, raw")
    page.locator("#internals-temperature").fill("0.5")
    counted, clicked = page.evaluate("heard")
    assert counted.endswith("Choose a token to see what the model expected there.")
    spoken = page.locator("#internals .what").inner_text().replace("␣", "space, ")
    assert clicked.startswith(f"{spoken}: Choice ") and clicked.endswith("bits.")
    assert page.locator("#internals [role=status]").count() == 0, "nothing is said twice"


HEAR_LABEL = """() => {
  window.changes = [];
  new MutationObserver(all => {
    for (const {target} of all) if (target.closest?.('label[for=chat-text]')) changes.push(target.textContent);
  }).observe(document.body, {childList: true, subtree: true});
}"""


def test_whose_message_is_written_is_announced_as_one_sentence_and_only_when_it_changes(visit: Visit) -> None:
    visit.page.evaluate(HEAR_LABEL)
    page = tab(visit, "Type assistant")
    label = page.locator("label[for=chat-text]")
    assert page.evaluate("changes") == [], "the tab is opened with the whole sentence"
    browsers.expect(label).to_have_text("You write the first message as User")
    assert label.get_attribute("aria-atomic") == "true"
    visit.listen(".talking :is([aria-live=polite], [role=status])")
    box = page.locator("#chat-text")
    box.press_sequentially("Hello.")
    assert page.evaluate("spoken") == [], "it is the same message"
    box.press("Control+Enter")
    browsers.expect(label).to_have_text("You write the next message as Assistant")
    assert page.evaluate("spoken") == ["You write the next message as Assistant"], "the focus was in the box before"
    box.press_sequentially("Good day.")
    page.evaluate("window.spoken = []")
    page.locator("#send").click()
    browsers.expect(label).to_have_text("You write the next message as User")
    browsers.expect(box).to_be_focused()
    assert page.evaluate("spoken") == [], "the box, which takes the focus, has the sentence as its name"
    assert "user" not in str(box.get_attribute("placeholder")).lower(), "and its placeholder does not say it again"
    page.locator(".talking .undo").click()
    browsers.expect(label).to_have_text("You write the next message as Assistant")
    assert page.evaluate("spoken") == ["You write the next message as Assistant"], "the focus stays on the button"


def test_the_first_control_of_the_page_leads_to_the_text_of_the_open_tab(visit: Visit) -> None:
    page, button = visit.page, visit.page.locator(".masthead .skip")
    page.evaluate("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
    assert button.bounding_box()["width"] <= 1, "it is seen only while it has the focus"
    page.keyboard.press("Tab")
    browsers.expect(button).to_be_focused()
    assert button.bounding_box()["width"] > 50
    browsers.expect(button).to_be_in_viewport(ratio=1)
    fields = {
        "Write": "#document textarea",
        "Rewrite": "#rewrite-source",
        "Highlights": "#highlights-text",
        "Type assistant": "#chat-text",
        "Internals": "#internals-text",
        "Lab": "[role=tabpanel][aria-label=Lesson]",
    }
    for name, field in fields.items():
        visit.open_tab(name)
        browsers.expect(button).to_have_text("Skip to the lesson" if name == "Lab" else "Skip to the text")
        button.press("Enter")
        browsers.expect(page.locator(field)).to_be_focused()
    visit.open_tab("Masks")
    browsers.expect(button).to_have_text("Skip to the prompt")
    button.press("Enter")
    browsers.expect(page.locator("#masks-prompt")).to_be_focused()


def test_a_slider_is_announced_by_itself_alone(visit: Visit) -> None:
    for name in ("Rewrite", "Highlights", "Type assistant", "Internals"):
        tab(visit, name)
    outputs = visit.page.locator(":is(.rewriting, .highlighting, .assisting, .looking-inside) output")
    assert outputs.count() == 7
    assert outputs.evaluate_all("all => all.every(one => one.ariaLive === 'off')")


def test_an_empty_conversation_of_internals_offers_an_example(visit: Visit) -> None:
    page = tab(visit, "Internals")
    page.get_by_label("A conversation").check()
    button = page.get_by_role("button", name="Try an example").locator("visible=true")
    assert button.count() == 1
    button.click()
    browsers.expect(page.locator("#internals-conversation textarea").last).to_be_focused()
    page.wait_for_selector("#internals[data-state=settled] .box[data-template]", timeout=PATIENCE)
    browsers.expect(button).to_have_count(0)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_word_shows_one_large_sentence_beside_its_line_and_figures_on_demand(visit: Visit, width: int) -> None:
    page = tab(visit, "Highlights")
    page.set_viewport_size({"width": width, "height": 800})
    try:
        visit.analyse(TEXT)
        about, words = page.locator("#highlights-about"), page.locator("#highlights [data-marked]")
        for place in range(words.count()):
            words.nth(place).focus()
            about.wait_for(state="visible")
            headline = about.locator(".headline")
            browsers.expect(headline).to_contain_text("The model expected ")
            # The card may just be painted anew, so the size is that of the headline that stays.
            # On a phone, which no class reads from the back row, it lies over the page.
            large = f"one => one && parseFloat(getComputedStyle(one).fontSize) >= {24 if width == 1280 else 16}"
            page.wait_for_function(f"() => ({large})(document.querySelector('#highlights-about .headline'))")
            assert "%" not in about.inner_text() and "entropy" not in about.inner_text()
            assert not page.evaluate(COVERED, [about.element_handle(), words.nth(place).element_handle()])
            assert not about.evaluate(OUTSIDE)
        page.locator("#highlights-with-figures").check()
        words.first.focus()
        browsers.expect(about).to_contain_text("entropy")
        browsers.expect(about).to_contain_text("%")
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


@pytest.mark.parametrize("width", [1280, 390])
def test_the_last_column_of_the_table_is_whole(visit: Visit, width: int) -> None:
    page = tab(visit, "Highlights")
    page.set_viewport_size({"width": width, "height": 800})
    try:
        visit.analyse(TEXT)
        page.locator("#highlights-with-figures").check()
        page.locator(".read .figures summary").click()
        page.locator(".read tbody tr").first.wait_for()
        assert page.locator(".read .wide").evaluate("one => one.scrollWidth <= one.clientWidth")
        assert page.locator(".read tbody tr td:last-child").first.is_visible()
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


def test_words_of_white_space_have_names(visit: Visit) -> None:
    page = tab(visit, "Highlights")
    visit.analyse(TEXT)
    blank = page.locator("#highlights .word.blank")
    assert blank.count()
    for word in blank.all():
        assert word.get_attribute("aria-label").startswith("line break")


def test_branches_that_are_only_to_be_read_do_not_offer_to_be_inserted(visit: Visit) -> None:
    page = tab(visit, "Highlights")
    visit.analyse(TEXT)
    page.locator("#highlights .word").nth(4).click()
    branches = page.locator("#highlights-branches")
    page.wait_for_selector("#highlights-branches[data-state=settled][data-stale=false]", timeout=PATIENCE)
    tokens = branches.locator("[data-token]")
    assert tokens.count() and branches.locator("[data-token]:not([aria-disabled=true])").count() == 0
    tokens.first.hover()
    page.wait_for_timeout(300)
    assert branches.locator(".ban").is_hidden()
    assert tokens.first.evaluate("one => getComputedStyle(one).cursor") == "default"
    assert "write up to" not in branches.inner_text() and "insert it" not in branches.inner_text()
    page.locator("#highlights-rest .more").click()
    assert branches.locator("button.other:not([aria-disabled=true])").count() == 0


EXAMPLES = {
    "Rewrite": ("#rewrite-source", "#rewrite-branches[data-state=settled][data-stale=false]"),
    "Highlights": ("#highlights-text", "#highlights[data-state=settled] [data-marked]"),
    "Internals": ("#internals-text", "#internals[data-state=settled] .character"),
    "Type assistant": (None, "#chat .message"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_empty_tab_offers_an_example(visit: Visit, name: str) -> None:
    page = tab(visit, name)
    field, result = EXAMPLES[name]
    button = page.get_by_role("button", name="Try an example").locator("visible=true")
    assert button.count() == 1
    button.click()
    page.wait_for_selector(result, timeout=PATIENCE)
    assert page.get_by_role("button", name="Try an example").locator("visible=true").count() == 0
    if field:
        assert page.locator(field).input_value()
        page.locator(field).fill("")
        browsers.expect(page.get_by_role("button", name="Try an example").locator("visible=true")).to_have_count(1)


@pytest.mark.parametrize("name", ["Rewrite", "Highlights"])
def test_an_empty_tab_takes_the_text_of_write(visit: Visit, name: str) -> None:
    page = tab(visit, name)
    button = page.get_by_role("button", name="Take your text from Write").locator("visible=true")
    button.click()
    browsers.expect(page.get_by_text("There is no text in Write yet.").locator("visible=true")).to_be_visible()
    tab(visit, "Write")
    visit.type("The old keeper")
    tab(visit, name)
    button.click()
    browsers.expect(page.locator(EXAMPLES[name][0])).to_have_value("The old keeper")
    browsers.expect(page.locator(EXAMPLES[name][0])).to_be_focused()
    browsers.expect(button).to_have_count(0)


def test_ready_instructions_and_ones_own_are_one_field(visit: Visit) -> None:
    page = tab(visit, "Rewrite")
    field, ready = page.locator("#rewrite-instruction"), page.locator("#rewrite-ready")
    outer, inner = field.bounding_box(), ready.bounding_box()
    assert outer["x"] <= inner["x"] and inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1
    assert outer["y"] <= inner["y"] + 1 and inner["y"] + inner["height"] <= outer["y"] + outer["height"] + 1
    ready.select_option("Summarize this document in one sentence.")
    assert field.input_value() == "Summarize this document in one sentence."
    field.press("End")
    field.press_sequentially(" Briefly.")
    assert field.input_value().endswith("sentence. Briefly.") and ready.input_value() == ""


def test_the_persons_messages_are_right_and_the_assistants_left(visit: Visit) -> None:
    page = tab(visit, "Type assistant")
    for text in ("Hello.", "Good morning."):
        page.locator("#chat-text").fill(text)
        page.locator("#send").click()
    user, assistant = (page.locator(f"#chat [data-role={role}]").bounding_box() for role in ("user", "assistant"))
    assert user["x"] > assistant["x"]
    assert user["x"] + user["width"] > assistant["x"] + assistant["width"]


def test_the_tokens_of_one_character_are_held_together_under_it(visit: Visit) -> None:
    page = tab(visit, "Internals")
    page.locator("#internals-text").fill("a 🦊")
    character = page.locator("#internals .character")
    character.wait_for()
    assert character.locator(".whole").inner_text() == "🦊"
    boxes = character.locator(".box")
    assert boxes.count() == character.locator(".box[data-part]").count() > 1
    names = boxes.evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
    assert all(f"part {place} of {len(names)} of “🦊”" in name for place, name in enumerate(names, 1))


def test_placeholders_look_like_placeholders(visit: Visit) -> None:
    style = "one => { const {color, fontStyle} = getComputedStyle(one, '::placeholder'); return [color, fontStyle]; }"
    for name, field in {
        "Write": "#document textarea",
        "Rewrite": "#rewrite-source",
        "Highlights": "#highlights-text",
        "Type assistant": "#chat-text",
        "Internals": "#internals-text",
    }.items():
        page = tab(visit, name)
        color, slant = page.locator(field).evaluate(style)
        ink = page.locator(field).evaluate("one => getComputedStyle(one).color")
        assert (slant, color != ink) == ("italic", True), name


def test_all_progress_bars_look_alike(visit: Visit) -> None:
    style = """all => all.map(one => {
      one.hidden = false;
      const {height, borderRadius, backgroundColor, appearance} = getComputedStyle(one);
      return JSON.stringify([height, borderRadius, backgroundColor, appearance]);
    })"""
    for name in ("Highlights", "Internals"):
        page = tab(visit, name)
        page.locator("progress").last.wait_for(state="attached")
    assert len(set(page.locator("progress").evaluate_all(style))) == 1
    assert page.locator("progress").count() >= 3


def test_a_new_document_takes_the_focus(visit: Visit) -> None:
    visit.fill("The keeper")
    visit.page.locator("#documents").click()
    visit.page.locator("#new-document").click()
    visit.page.wait_for_function("document.querySelector('#document textarea').value === ''")
    assert visit.page.evaluate("document.activeElement.matches('#document textarea')")


def leaves_with(page: Any) -> list[str]:
    """Which questions the page asks when it is left after a key was pressed."""
    asked: list[str] = []

    def hear(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", hear)
    page.reload()
    page.remove_listener("dialog", hear)
    return asked


def test_the_page_asks_before_it_is_left_only_where_something_would_be_lost(visit: Visit) -> None:
    page = tab(visit, "Highlights")
    page.locator("#highlights-text").press_sequentially("The keeper")
    tab(visit, "Internals")
    page.locator("#internals-text").press_sequentially("The keeper")
    assert leaves_with(page) == [], "both are kept, and were only analysed"
    tab(visit, "Highlights")
    page.wait_for_function("document.querySelector('#highlights-text')?.value === 'The keeper'")
    page.locator("#highlights-text").press_sequentially(".")
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    assert leaves_with(page) == ["beforeunload"], "it could not be kept"
    visit.wait_for_status("ready")
    tab(visit, "Type assistant")
    page.locator("#chat-text").press_sequentially("Good morning")
    assert leaves_with(page) == ["beforeunload"], "it is written there, and goes with the tab"


@pytest.mark.parametrize("name", ["Rewrite", "Highlights", "Type assistant", "Internals"])
def test_a_reload_opens_the_tab_that_was_open_and_a_link_goes_first(visit: Visit, name: str) -> None:
    page = tab(visit, name)
    page.reload()
    visit.wait_for_status("ready")
    browsers.expect(page.get_by_role("tab", name=name, exact=True)).to_have_attribute("aria-selected", "true")
    page.evaluate("location.hash = '#lab-lesson'")
    page.reload()
    visit.wait_for_status("ready")
    browsers.expect(page.get_by_role("tab", name="Lab")).to_have_attribute("aria-selected", "true")
