"""Tabs with rows in small windows: rows are in sight, and the Tab key goes from top to bottom."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.support.browser import PATIENCE, Visit, expect, middle_of
from tests.support.witness import packed

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIZES = {"laptop": (1280, 720), "phone": (390, 844), "laptop at 200 %": (640, 360)}
PREFIXES = {"Rewrite": "rewrite-", "Type assistant": "chat-"}
LONG = " ".join(f"The keeper saw ship {number} and slept." for number in range(14))
SEEN = """branches => [...branches.querySelectorAll('.branch')].filter(row => {
  const {left, top, bottom} = row.getBoundingClientRect();
  return [top + 2, bottom - 2].every(y => row.contains(document.elementFromPoint(left + 60, y)));
}).length"""
PART_SEEN = """one => {
  const {top, bottom, height} = one.getBoundingClientRect();
  return (Math.min(bottom, innerHeight) - Math.max(top, 0)) / Math.min(height || 1, innerHeight);
}"""
"""Which part of an element is seen; if it is larger than the window, how much of the window it fills."""
LINES = """one => {
  const range = new Range();
  range.selectNodeContents(one);
  return [...range.getClientRects()].map(({left, right}) => [left, right]);
}"""
"""The left and right edges of the pieces of an element's text."""
STOPS = """card => [...card.querySelectorAll('input, select, button, [tabindex], summary')]
  .filter(one => one.tabIndex >= 0 && !one.disabled && one.checkVisibility() && !one.matches('.skip'))
  .map(one => { const {top, bottom} = one.getBoundingClientRect(); return [top, bottom, one.id || one.className]; })"""
COVERED_BY_MARK = """() => {
  const covers = [...document.querySelectorAll('.cover')].filter(one => one.checkVisibility());
  return covers.flatMap(cover => {
    cover.querySelector('.earlier').textContent = 'For the text before';
    cover.dataset.earlier = '';
    for (const animation of document.getAnimations()) animation.finish();
    const mark = cover.querySelector('.earlier').getBoundingClientRect();
    const found = [...cover.querySelectorAll('.sum > *, .fork-name, .stack')].filter(one => {
      const range = document.createRange();
      range.selectNodeContents(one);
      const {top, right, bottom} = range.getBoundingClientRect();
      const end = Math.min(one.getBoundingClientRect().right, right);
      const meets = end > mark.left && bottom > mark.top + 1 && top < mark.bottom - 1;
      return meets && one.checkVisibility({visibilityProperty: true});
    });
    delete cover.dataset.earlier;
    return found.map(({className}) => className);
  });
}"""
"""The parts of the line above the rows that the mark of earlier rows would cover."""


@pytest.fixture(autouse=True)
def _usual_size(tiny: Visit) -> Iterator[None]:
    yield
    tiny.page.set_viewport_size({"width": 1280, "height": 720})


def open_with_rows(visit: Visit, tab: str, size: tuple[int, int]) -> Any:
    """The branch view of a tab that shows five rows; the page is not scrolled."""
    page, prefix = visit.page, PREFIXES[tab]
    page.set_viewport_size({"width": size[0], "height": size[1]})
    visit.open_tab(tab)
    page.get_by_role("button", name="Try an example").locator("visible=true").click()
    page.wait_for_selector(f"#{prefix}branches[data-state=settled][data-stale=false] .branch", timeout=PATIENCE)
    expect(page.locator(f"#{prefix}branches .branch")).to_have_count(5)
    page.evaluate("scrollTo(0, 0)")
    return page.locator(f"#{prefix}branches")


@pytest.mark.parametrize("tab", PREFIXES)
def test_rows_begin_in_the_upper_half_of_a_laptops_window_and_all_are_seen(tiny: Visit, tab: str) -> None:
    branches = open_with_rows(tiny, tab, SIZES["laptop"])
    assert branches.locator(".branch").first.bounding_box()["y"] < 360
    assert branches.evaluate(SEEN) == 5


def test_on_a_projector_five_rows_are_seen_before_the_page_is_scrolled(tiny: Visit) -> None:
    tiny.page.set_viewport_size({"width": 911, "height": 512})
    tiny.type("The old keeper ")
    tiny.wait_until_settled()
    assert tiny.page.locator("#branches").evaluate(SEEN) == 5
    places = [tiny.page.locator(f"#controls {one}").bounding_box() for one in (".views", "#stop", "#pause")]
    assert len({round(place["y"] + place["height"] / 2) for place in places}) == 1, "on one line"
    assert all(place["width"] >= 24 and place["height"] >= 24 for place in places)
    for name in ("Stop", "Pause"):
        expect(tiny.page.locator("#controls").get_by_role("button", name=name)).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("size", [(390, 844), (911, 512)])
def test_the_list_of_everything_else_is_seen_when_it_opens(tiny: Visit, size: tuple[int, int]) -> None:
    tiny.page.set_viewport_size({"width": size[0], "height": size[1]})
    tiny.type("The old keeper ")
    tiny.wait_until_settled()
    more = tiny.page.locator("#rest .more")
    more.scroll_into_view_if_needed()
    more.click()
    tiny.page.wait_for_function(f"({PART_SEEN})(document.querySelector('#others')) > 0.8")
    expect(more).to_be_in_viewport()


@pytest.mark.parametrize("size", [(1366, 768), (1280, 800)])
def test_a_long_list_of_everything_else_scrolls_within_itself_and_the_page_stays(
    tiny: Visit, size: tuple[int, int]
) -> None:
    page, others = tiny.page, tiny.page.locator("#rest .others")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    tiny.type("The old keeper ")
    tiny.wait_until_settled()
    page.locator("#rest .more").click()
    page.wait_for_timeout(700)
    assert page.evaluate("scrollY") == 0, "the text is where it was"
    expect(others).to_be_in_viewport(ratio=1)
    assert others.evaluate("one => one.scrollHeight > one.clientHeight")
    others.locator("button").last.scroll_into_view_if_needed()
    page.evaluate("scrollTo(0, 0)")
    assert others.evaluate("one => one.scrollTop > 0")
    others.locator("button").last.click()
    tiny.wait_until_settled()
    assert others.evaluate("one => one.scrollTop") == 0, "the list after another text is seen from its beginning"


def test_a_second_click_where_the_list_of_everything_else_was_opened_inserts_nothing(tiny: Visit) -> None:
    page, more = tiny.page, tiny.page.locator("#rest .more")
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.type("The old keeper ")
    tiny.wait_until_settled()
    text = tiny.text
    more.evaluate("one => one.scrollIntoView({block: 'end', behavior: 'instant'})")
    place = middle_of(more)
    page.mouse.click(*place)
    page.wait_for_function(
        "place => Math.abs(document.querySelector('#rest .more').getBoundingClientRect().top - place) > 40",
        arg=place[1],
    )
    page.wait_for_timeout(700)  # the scroll has ended
    page.mouse.click(*place)
    page.wait_for_timeout(300)
    assert tiny.text == text
    page.locator("#rest .others button").first.click()
    assert tiny.text != text, "a pointer that has moved inserts"


def press(visit: Visit, place: tuple[float, float], at: float, count: int = 1) -> None:
    """A tap, or on a page without touch a click, at a point of the window and at a time in seconds."""
    x, y = place
    client = visit.page.context.new_cdp_session(visit.page)
    if visit.page.evaluate("navigator.maxTouchPoints > 0"):
        for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points, "timestamp": at})
    else:
        for kind in ("mousePressed", "mouseReleased"):
            event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": count, "timestamp": at}
            client.send("Input.dispatchMouseEvent", event)
    client.detach()


@pytest.fixture(params=["a click", "a tap"])
def pressed(request: pytest.FixtureRequest) -> Visit:
    """The page with a mouse and a text beside it, or on a phone."""
    return request.getfixturevalue("tiny" if request.param == "a click" else "phone")


def test_a_double_click_or_double_tap_on_a_token_inserts_once_and_a_later_one_again(pressed: Visit) -> None:
    pressed.fill("The old keeper looked out over the")
    for pause, again in ((0.05, False), (0.25, False), (0.35, True)):
        pressed.wait_until_settled()
        pressed.page.wait_for_timeout(500)
        text, place, now = pressed.text, middle_of(pressed.token(0, 0)), time.time() - 1
        press(pressed, place, now)
        first = pressed.text
        assert first != text
        pressed.wait_until_settled()
        press(pressed, (place[0] + 10, place[1]), now + pause, 2)
        assert (pressed.text != first) is again, pause


def test_a_double_click_or_double_tap_on_pause_pauses_and_a_later_click_goes_on(pressed: Visit) -> None:
    pressed.fill("The old keeper looked out over the")
    pressed.wait_until_settled()
    pause = pressed.page.locator("#pause")
    pause.scroll_into_view_if_needed()
    pressed.page.wait_for_timeout(500)
    place, now = middle_of(pause), time.time() - 1
    press(pressed, place, now)
    expect(pause).to_contain_text("Go on")
    press(pressed, place, now + 0.1, 2)
    pressed.wait_until_asked()
    expect(pause).to_contain_text("Go on")
    press(pressed, place, now + 0.6)
    expect(pause).to_contain_text("Pause")


def test_a_double_click_or_double_tap_on_a_token_of_the_tree_inserts_once(pressed: Visit) -> None:
    page, text = pressed.page, "The old keeper looked out over the"
    pressed.fill(text)
    pressed.wait_until_settled()
    page.locator("#controls .views label:has(input[value=tree])").click()
    pressed.wait_until_settled()  # nodes are drawn anew while they grow
    for index in range(0, 12, 3):
        node = page.locator("#tree .node[data-state=ahead]").nth(index)
        node.evaluate("one => one.scrollIntoView({block: 'nearest'})")  # the drawing may still replace it
        page.wait_for_timeout(500)
        place, now = middle_of(node), time.time() - 1
        press(pressed, place, now)
        first = pressed.text
        assert first != text
        press(pressed, place, now + 0.2, 2)
        page.wait_for_timeout(200)
        assert pressed.text == first, index
        pressed.fill(text)
        pressed.wait_until_settled()


def test_a_tap_in_the_list_of_everything_else_closes_it_and_shows_the_rows(phone: Visit) -> None:
    page = phone.page
    phone.type("The old keeper looked out over the")
    phone.wait_until_settled()
    page.locator("#rest .more").tap()
    choice = page.locator("#rest .others button").nth(8)
    text = phone.text
    choice.scroll_into_view_if_needed()
    choice.tap()
    assert phone.text != text
    expect(page.locator("#rest .others")).to_be_hidden()
    expect(page.locator("#branches .branch").first).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("size", [(1366, 768), (911, 512), (390, 844)])
def test_what_is_said_of_a_copy_or_an_export_moves_no_button_and_no_row(tiny: Visit, size: tuple[int, int]) -> None:
    page, said = tiny.page, tiny.page.locator("#notice .sentence")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    tiny.type("The old keeper ")
    tiny.wait_until_settled()
    if page.locator("#more").is_visible():
        page.locator("#more").click()
    tops = """() => ['undo', 'copy', 'export', 'as-is', 'branches'].map(name => {
      return scrollY + document.getElementById(name).getBoundingClientRect().top;
    })"""
    before = page.evaluate(tops)
    page.locator("#copy").click()
    expect(said).to_be_visible()
    assert page.evaluate(tops) == before
    expect(said).to_be_in_viewport(ratio=1)
    page.locator("#export").click()
    page.locator("#formats-dialog [data-format=text]").click()
    expect(said).to_contain_text("Exported")
    assert page.evaluate(tops) == before
    page.locator("#share").click()
    copy = page.locator("#share-copy")
    expect(copy).to_be_visible()
    place = copy.bounding_box()
    copy.click()
    expect(copy).not_to_have_text("Copy")
    assert copy.bounding_box() == place
    page.keyboard.press("Escape")


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1280, 900), (390, 844)])
def test_undo_stays_where_it_is_when_clicked_words_fill_the_text_box(tiny: Visit, width: int, height: int) -> None:
    tiny.page.set_viewport_size({"width": width, "height": height})
    undo, box = tiny.page.locator("#undo"), tiny.page.locator("#document textarea")
    tiny.type(" ".join(["The keeper saw a ship."] * 8), delay=0)
    before, lines = undo.bounding_box(), box.evaluate("one => one.scrollHeight")
    for _ in range(40):
        tiny.wait_until_settled()
        tiny.token(0, 0).click()
        tiny.page.keyboard.press("Enter")
        if box.evaluate("one => one.scrollHeight") > lines + 200:
            break
    assert box.evaluate("one => one.scrollHeight > one.clientHeight")
    assert undo.bounding_box() == before
    assert before["y"] + before["height"] < height


@pytest.mark.parametrize("width", [1280, 1366])
def test_the_first_ban_leaves_the_label_of_more_settings_as_it_is(tiny: Visit, width: int) -> None:
    tiny.page.set_viewport_size({"width": width, "height": 768})
    tiny.fill("The old keeper")
    tiny.wait_until_settled()
    label, ban = tiny.page.locator("#controls .more-settings summary"), tiny.page.locator("#controls .never button")
    before = label.bounding_box(), label.inner_text()
    tiny.token(0, 0).hover()
    tiny.page.locator("#branches .ban").click()
    expect(ban).to_be_visible()
    assert (label.bounding_box(), label.inner_text()) == before
    assert ban.bounding_box()["x"] >= before[0]["x"] + before[0]["width"], "the two do not overlap"
    ban.click()


def test_a_long_source_and_a_long_new_text_move_no_row_and_stay_in_sight(tiny: Visit) -> None:
    branches = open_with_rows(tiny, "Rewrite", SIZES["laptop"])
    before = branches.locator(".branch").first.bounding_box()["y"]
    for name in ("source", "text"):
        tiny.page.locator(f"#rewrite-{name}").fill(LONG)
    tiny.page.evaluate("scrollTo(0, 0)")
    assert branches.locator(".branch").first.bounding_box()["y"] == before
    box = tiny.page.locator("#rewrite-text").bounding_box()
    assert box["y"] + box["height"] <= 720


def test_on_a_projector_the_whole_new_text_is_in_sight_with_five_rows(tiny: Visit) -> None:
    branches = open_with_rows(tiny, "Rewrite", (911, 512))
    assert branches.evaluate(SEEN) == 5
    expect(tiny.page.locator("#rewrite-text")).to_be_in_viewport(ratio=1)
    tiny.page.locator("#rewrite-text").fill(LONG)
    tiny.page.evaluate("scrollTo(0, 0)")
    expect(tiny.page.locator("#rewrite-text")).to_be_in_viewport(ratio=1)


def test_on_a_projector_the_whole_placeholder_and_four_lines_of_a_source_are_seen(tiny: Visit) -> None:
    tiny.page.set_viewport_size({"width": 911, "height": 512})
    tiny.open_tab("Rewrite")
    source, hidden = tiny.page.locator("#rewrite-source"), "one => one.scrollHeight - one.clientHeight"
    assert source.evaluate(hidden) == 0
    expect(tiny.page.locator("#rewrite-text")).to_be_in_viewport(ratio=1)
    source.fill("The keeper slept.\nThe lamp went out.\nA ship came.\nNobody saw it.")
    assert source.evaluate(hidden) == 0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tab", PREFIXES)
def test_the_tab_key_goes_down_through_the_controls_and_the_rows(tiny: Visit, tab: str, size: str) -> None:
    branches = open_with_rows(tiny, tab, SIZES[size])
    stops = branches.locator("xpath=ancestor::*[contains(@class, 'card')][1]").evaluate(STOPS)
    names = [name for *_, name in stops]
    first = names.index(f"{PREFIXES[tab]}k") == 0
    assert first == (SIZES[size][0] > 760) and "sum" in names, "on a phone the rows come right under the text"
    for (top, _, before), (_, bottom, after) in pairwise(stops):
        assert bottom > top, f"{after} stands above {before}, which the Tab key reaches first"


@pytest.mark.parametrize("size", SIZES)
def test_the_tab_key_goes_down_the_write_tab_too_as_the_window_becomes_narrow(tiny: Visit, size: str) -> None:
    page, width = tiny.page, SIZES[size][0]
    tiny.type("The old keeper ")
    tiny.wait_until_settled()
    tiny.control("mode")
    page.locator("#depth").focus()
    page.set_viewport_size({"width": width, "height": SIZES[size][1]})
    tiny.wait_for_two_frames()  # the controls are moved when the window is painted in its new size
    expect(page.locator("#depth")).to_be_focused()
    card = page.locator("#branches").locator("xpath=ancestor::*[contains(@class, 'card')][1]")
    rows, guess = card.evaluate(STOPS), tiny.control("guess-first")
    names = [name for *_, name in rows]
    assert (names.index("k") < names.index("sum")) == (width > 760), "on a phone the rows come right under the text"
    guess.check()
    expect(page.locator("#guess")).to_be_visible()
    guessing = card.evaluate(STOPS)
    assert {"k", "guess", "mode"} <= {name for *_, name in guessing}
    for stops in (rows, guessing):
        for (top, _, before), (_, bottom, after) in pairwise(stops):
            assert bottom > top, f"{after} stands above {before}, which the Tab key reaches first"


def test_on_a_phone_two_rows_are_seen_under_the_text_before_the_page_is_scrolled(phone: Visit) -> None:
    phone.page.set_viewport_size({"width": 390, "height": 664})  # what a phone's browser leaves of 844
    phone.type("The old lighthouse keeper")
    phone.wait_until_settled()
    phone.page.evaluate("scrollTo(0, 0)")
    expect(phone.page.locator("#document textarea")).to_be_in_viewport(ratio=1)
    for row in range(2):
        expect(phone.page.locator(f"#branches [data-branch='{row}']").first).to_be_in_viewport(ratio=1)


def test_a_link_opened_on_a_phone_begins_with_the_text_and_two_rows(phone: Visit) -> None:
    page, said = phone.page, phone.page.locator("#notice")
    page.set_viewport_size({"width": 390, "height": 664})  # what a phone's browser leaves of 844
    model = page.locator("#status .sentence").inner_text().split(" · ")[0]
    phone.fill("Before.")
    phone.wait_until_settled()
    for text in ("The old keeper slept.", LONG):
        page.evaluate("document.activeElement.blur()")  # as after a tap on the link
        page.evaluate("scrollTo({top: 9999, behavior: 'instant'})")
        page.evaluate("fragment => { location.hash = fragment; }", packed({"text": text, "model": model}))
        expect(page.locator("#document textarea")).to_have_value(text)
        phone.wait_until_settled()
        expect(said).to_contain_text("It was made with the same model.")
        end = said.bounding_box()["y"] + said.bounding_box()["height"]
        assert end <= page.get_by_role("tab", name="Write", exact=True).bounding_box()["y"], "it covers nothing below"
        expect(page.locator("#document textarea")).to_be_in_viewport(ratio=1)
        for row in range(2):
            expect(page.locator(f"#branches [data-branch='{row}']").first).to_be_in_viewport(ratio=1)


def test_on_a_phone_the_end_of_a_long_message_and_two_rows_are_seen_together(phone: Visit) -> None:
    page = phone.page
    phone.open_tab("Type assistant")
    box = page.locator("#chat-text")
    for message in ("Why is the sea salty?", LONG):
        box.fill(message)
        page.wait_for_selector("#chat-branches[data-state=settled][data-stale=false] .branch", timeout=PATIENCE)
        page.evaluate("scrollTo(0, 0)")
        expect(box).to_be_in_viewport(ratio=1)
        for row in range(2):
            expect(page.locator(f"#chat-branches [data-branch='{row}']").first).to_be_in_viewport(ratio=1)
        page.locator("#send").click()
        expect(box).to_have_value("")


@pytest.mark.parametrize("tab", ["Write", *PREFIXES])
def test_above_the_screen_keyboard_of_a_phone_the_line_of_the_caret_and_two_rows_are_seen(
    phone: Visit, tab: str
) -> None:
    page = phone.page
    if tab == "Write":
        phone.type("The old keeper")
        phone.wait_until_settled()
        box, branches = page.locator("#document textarea"), page.locator("#branches")
    else:
        branches = open_with_rows(phone, tab, SIZES["phone"])
        box = page.locator(f"#{PREFIXES[tab]}text")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    box.tap()
    box.press("End")
    page.set_viewport_size({"width": 390, "height": 500})
    for row in range(2):
        expect(branches.locator(f"[data-branch='{row}']").first).to_be_in_viewport(ratio=0.95)
    line = box.evaluate("one => one.getBoundingClientRect().top + parseFloat(getComputedStyle(one).paddingTop)")
    assert line >= -1, "the text has one line"


@pytest.mark.parametrize("tab", PREFIXES)
def test_on_a_phone_three_rows_are_seen_below_the_text_and_the_controls(tiny: Visit, tab: str) -> None:
    branches = open_with_rows(tiny, tab, SIZES["phone"])
    tiny.page.locator(f"#{PREFIXES[tab]}text").evaluate("box => scrollTo(0, box.getBoundingClientRect().top + scrollY)")
    assert branches.evaluate(SEEN) >= 3
    controls = tiny.page.locator(f"#{PREFIXES[tab]}controls").bounding_box()
    assert controls["height"] <= 100 and controls["width"] <= 390
    assert tiny.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_on_a_phone_sideways_rows_are_seen_beside_the_text_also_with_open_settings(tiny: Visit) -> None:
    tiny.page.set_viewport_size({"width": 844, "height": 390})
    tiny.type("The old keeper ")
    tiny.control("mode")
    tiny.wait_until_settled()
    tiny.page.locator("#document textarea").evaluate("box => scrollTo(0, box.getBoundingClientRect().top + scrollY)")
    assert tiny.page.locator("#branches").evaluate(SEEN) >= 3
    tops = [tiny.page.locator(place).bounding_box()["y"] for place in ("#branches", "#controls")]
    assert tops == sorted(tops), "the controls come below the rows"


@pytest.mark.parametrize("tab", PREFIXES)
def test_a_button_that_the_tab_key_finds_leads_from_the_text_to_the_rows(tiny: Visit, tab: str) -> None:
    branches = open_with_rows(tiny, tab, SIZES["laptop"])
    tiny.page.locator(f"#{PREFIXES[tab]}text").focus()
    tiny.page.keyboard.press("Escape")  # hides the grey text, which the Tab key would insert
    tiny.page.keyboard.press("Tab")
    skip = tiny.page.get_by_role("button", name="Go to the branches").locator("visible=true")
    expect(skip).to_be_focused()
    tiny.page.keyboard.press("Enter")
    assert branches.evaluate("one => one.contains(document.activeElement)")


@pytest.mark.parametrize("keys", [["Alt+ArrowDown"], ["Tab", "Enter"]], ids=["key", "button"])
@pytest.mark.parametrize("tab", PREFIXES)
def test_without_rows_the_key_and_the_button_say_the_same(tiny: Visit, tab: str, keys: list[str]) -> None:
    page, prefix = tiny.page, PREFIXES[tab]
    page.route("**/component_server/", lambda route: None)  # no rows come before the pause
    tiny.open_tab(tab)
    page.locator(f"#{prefix}controls .pause").click()
    if tab == "Rewrite":
        page.locator("#rewrite-source").fill("The keeper slept.")
    page.locator(f"#{prefix}text").fill("The keeper")
    page.locator(f"#{prefix}text").focus()
    for key in keys:
        page.keyboard.press(key)
    said = page.locator(f"#{prefix}branches .announcement")  # the note shows it too, but not for long
    expect(said).to_have_text("There are no rows: branching is paused. “Go on”, or Alt+P, continues it.")
    page.unroute("**/component_server/")


@pytest.mark.parametrize("tab", ["Rewrite", "Highlights", "Internals"])
def test_an_example_is_seen_from_its_beginning(tiny: Visit, tab: str) -> None:
    tiny.page.set_viewport_size({"width": 390, "height": 500})
    tiny.open_tab(tab)
    tiny.page.get_by_role("button", name="Try an example").locator("visible=true").click()
    field = tiny.page.locator("textarea:focus")
    expect(field).to_have_count(1)
    assert field.evaluate("one => [one.scrollTop, one.selectionStart]") == [0, 0]


@pytest.mark.parametrize(("tab", "field"), [("Highlights", "highlights-text"), ("Rewrite", "rewrite-source")])
def test_a_text_fades_out_at_the_lower_edge_of_its_field_only_where_more_of_it_follows(
    tiny: Visit, tab: str, field: str
) -> None:
    page = tiny.page
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.open_tab(tab)
    box = page.locator(f"#{field}")
    frame = page.locator(f".leaf:has(#{field})")
    edge = "one => getComputedStyle(one).maskImage.includes('calc(100% - 16px)')"
    try:
        for text in ("The keeper slept.", LONG * 3):
            box.fill("")
            page.keyboard.insert_text(text)  # the browser scrolls to the caret at its end
            page.wait_for_timeout(300)
            assert frame.get_attribute("data-goes-on") is None and not box.evaluate(edge), text
        box.evaluate("one => { one.scrollTop = 0; }")
        page.wait_for_timeout(300)
        assert frame.get_attribute("data-goes-on") is not None and box.evaluate(edge)
    finally:
        box.fill("")


def test_rows_chosen_after_the_tree_move_the_page_no_further_than_needed(tiny: Visit) -> None:
    page = tiny.page
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.type("The keeper saw", delay=1)
    tiny.wait_until_settled()
    views = page.locator("#controls .views")
    views.locator("label", has_text="Tree").click()
    page.locator("#tree .node[data-state=ahead]").first.wait_for()
    page.wait_for_timeout(700)
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    views.locator("label", has_text="Rows").click()
    page.wait_for_timeout(1000)
    rows, top = page.locator("#branches .rows").bounding_box(), page.evaluate("scrollY")
    below = rows["y"] + rows["height"] - 512
    assert below <= 1
    assert top == 0 or below >= -1, "no further than to the end of the rows"


LETTERS = """svg => Math.min(...[...svg.querySelectorAll('.node tspan')].filter(one => one.textContent).map(one => {
  const drawn = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return drawn * parseFloat(getComputedStyle(one).fontSize);
}))"""

MEANING = re.compile("The thicker a line, the likelier|Width: the chance of the whole path")
"""The clause that says what the thickness of lines in a tree, or of a river, means."""


@pytest.mark.parametrize("size", [(853, 480), (911, 512), (1024, 600), (1280, 800)])
def test_the_tree_is_in_sight_and_readable_when_it_is_chosen_and_fitted_and_the_page_stays(
    tiny: Visit, size: tuple[int, int]
) -> None:
    page, drawing = tiny.page, tiny.page.locator("#tree .tree-scroll")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    tiny.fill("The keeper saw")
    tiny.wait_until_settled()
    page.evaluate("scrollTo(0, 0)")
    page.locator("#controls .views label:has(input[value=tree])").click()
    try:
        page.locator("#tree .node[data-state=ahead]").first.wait_for()
        for choice in (".fit", "label:has(input[value=river])", ".fit", "label:has(input[value=tree])"):
            page.wait_for_timeout(700)  # nothing scrolls the page
            assert page.evaluate("scrollY") == 0
            expect(drawing).to_be_in_viewport(ratio=1)
            if not drawing.evaluate("one => one.classList.contains('small')"):
                assert page.locator("#tree svg").evaluate(LETTERS) >= 11.99
                expect(page.locator("#tree .tree-says")).to_contain_text(MEANING)
            sign = page.locator("#tree .tree-says, #tree .too-small").locator("visible=true").last
            expect(sign).to_be_in_viewport(ratio=1)
            page.locator(f"#tree {choice}").click()
    finally:
        page.locator("#controls .views label:has(input[value=rows])").click()


def test_on_a_phone_the_drawing_is_in_sight_when_the_tree_is_chosen_below_it(tiny: Visit) -> None:
    page = tiny.page
    page.set_viewport_size({"width": 390, "height": 844})
    tiny.fill("The keeper saw")
    tiny.wait_until_settled()
    views, shown = page.locator("#controls .views"), page.locator("#tree .tree-scroll")
    views.evaluate("one => scrollTo(0, scrollY + one.getBoundingClientRect().top - 40)")
    assert shown.evaluate(PART_SEEN) < 0.5
    views.locator("label:has(input[value=tree])").click()
    try:
        page.wait_for_function(f"one => ({PART_SEEN})(one) > 0.9", arg=shown.element_handle())
    finally:
        views.locator("label:has(input[value=rows])").click()


def test_on_a_phone_the_first_lines_of_the_drawing_are_in_sight_when_the_tree_is_chosen(tiny: Visit) -> None:
    page, shown = tiny.page, tiny.page.locator("#tree .tree-scroll")
    page.set_viewport_size({"width": 390, "height": 760})
    tiny.fill("The keeper saw")
    tiny.wait_until_settled()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    tiny.choose("view", "tree")
    try:
        page.wait_for_function(f"one => ({PART_SEEN})(one) > 0.99", arg=shown.element_handle(), timeout=5000)
    finally:
        tiny.choose("view", "rows")


def test_a_row_that_was_scrolled_is_seen_from_its_beginning_when_it_is_another_one_or_shorter(tiny: Visit) -> None:
    tiny.page.set_viewport_size({"width": 390, "height": 844})
    tiny.control("depth").fill("24")
    tiny.fill("The keeper saw")
    tiny.wait_until_settled()
    tokens = tiny.page.locator("#branches .branch .tokens").first
    try:
        for name, value, seen in [
            ("depth", "26", "same part"),
            ("temperature", "0.5", None),
            ("depth", "16", "beginning"),
        ]:
            tokens.evaluate("one => { one.scrollLeft = 40; }")
            tiny.page.wait_for_selector("#branches .branch .tokens[data-scrolled]")
            before = "".join(tiny.pieces(0))
            tiny.control(name).fill(value)
            tiny.wait_until_settled()
            tiny.page.wait_for_timeout(300)
            kept = "".join(tiny.pieces(0)).startswith(before)
            assert tokens.evaluate("one => one.scrollLeft") == (40 if kept else 0), (name, value)
            assert seen is None or kept == (seen == "same part")
    finally:
        tiny.control("temperature").fill("1")
        tiny.control("depth").fill("5")


@pytest.mark.parametrize(("size", "shown"), [((911, 512), True), ((390, 844), True), ((1280, 800), False)])
def test_the_name_of_the_figure_is_shown_where_the_words_below_the_rows_are_out_of_sight(
    tiny: Visit, size: tuple[int, int], shown: bool
) -> None:
    page, name = tiny.page, tiny.page.locator("#coverage .figure-name")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    tiny.fill("The keeper saw")
    tiny.wait_until_settled()
    assert name.is_visible() == shown
    middles = [middle_of(page.locator(f"#coverage {part}"))[1] for part in (".held", ".figure-name")] if shown else [0]
    assert max(middles) - min(middles) < 4, "on one line"


def test_in_a_low_window_the_fork_is_named_and_explained_above_the_rows(tiny: Visit) -> None:
    page, name = tiny.page, tiny.page.locator("#coverage .fork-name")
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.fill("The keeper saw")
    tiny.wait_until_settled()
    expect(page.locator("#branches [data-bracket]").first).to_be_visible()
    expect(name.locator(".at-bracket")).to_have_text("Bracket: a fork, 5 ways to go on")
    assert name.bounding_box()["height"] < 25, "one line"
    expect(name).to_be_in_viewport(ratio=1)
    figure = page.locator("#coverage .figure-name").bounding_box()
    assert figure["x"] + figure["width"] <= name.bounding_box()["x"], "the two do not overlap"
    assert abs(figure["y"] - name.bounding_box()["y"]) < 4, "on one line"
    name.focus()
    expect(page.locator(".tip")).to_contain_text("can go on in more than one way")
    page.locator("#branches .token").nth(1).hover()
    expect(page.locator("#branches .actions .change")).to_be_visible()
    expect(page.locator("#coverage .figure-name")).to_have_css("visibility", "hidden")  # a button lies over its end
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(name).to_be_hidden()
    expect(page.locator("#branches .marks .unforked")).to_be_in_viewport(ratio=1)


def test_in_a_low_window_the_sign_of_a_fork_in_the_rows_is_named_above_them(tiny: Visit) -> None:
    page, name = tiny.page, tiny.page.locator("#coverage .fork-name")
    tiny.control("mode").select_option("every_level")
    page.locator("#controls summary").click()
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.fill("The keeper saw")
    tiny.wait_until_settled()
    expect(page.locator("#branches .rows .fork").first).to_be_visible()
    expect(name.locator(".fork").locator("visible=true")).to_have_count(1)
    caption, last_line = page.locator("#coverage .of").evaluate(LINES)[-1][1], name.evaluate(LINES)[-1][0]
    assert caption < last_line, "the two do not overlap"


@pytest.mark.parametrize("tab", ["Rewrite", "Type assistant"])
def test_in_a_low_window_everything_else_is_seen_below_five_rows(tiny: Visit, tab: str) -> None:
    branches = open_with_rows(tiny, tab, (911, 512))
    summary = branches.locator(".more .summary").bounding_box()
    assert summary["y"] + summary["height"] <= 512 and summary["height"] < 25, "one line"


def test_in_a_low_window_the_first_line_of_a_source_is_not_faint(tiny: Visit) -> None:
    tiny.page.set_viewport_size({"width": 911, "height": 512})
    tiny.open_tab("Rewrite")
    assert tiny.page.locator("#rewrite-source").evaluate("one => parseFloat(getComputedStyle(one).paddingTop)") >= 12


def test_in_a_low_window_a_source_that_was_scrolled_is_seen_with_whole_lines(tiny: Visit) -> None:
    page, source = tiny.page, tiny.page.locator("#rewrite-source")
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.open_tab("Rewrite")
    source.fill(LONG * 2)
    for scrolled, lines in ((0, 0), (40, 1), (70, 3), (30, 1)):
        source.evaluate("(one, to) => { one.scrollTop = to; }", scrolled)
        page.wait_for_timeout(500)  # the lines settle after the scroll
        top, line = source.evaluate("one => [one.scrollTop, parseFloat(getComputedStyle(one).lineHeight)]")
        assert abs(top - line * lines) < 1, scrolled
    source.fill("")


def test_in_a_low_window_the_mark_of_an_example_covers_no_word_above_the_rows(tiny: Visit) -> None:
    page = tiny.page
    page.set_viewport_size({"width": 911, "height": 512})
    mark = page.locator("#coverage .stored")
    expect(mark).to_be_in_viewport(ratio=1)
    words = [page.locator(f"#coverage {part}").bounding_box() for part in (".of", ".fork-name")]
    box = mark.bounding_box()
    for one in words:
        apart = one["x"] + one["width"] <= box["x"] or box["x"] + box["width"] <= one["x"]
        assert apart or one["y"] + one["height"] <= box["y"] or box["y"] + box["height"] <= one["y"]


@pytest.mark.parametrize("view", ["Rows", "Compare"])
def test_the_mark_of_earlier_rows_covers_no_word_and_moves_no_row(tiny: Visit, view: str) -> None:
    tiny.type("The old keeper ")
    tiny.wait_until_settled()
    tiny.page.locator("#controls .views").get_by_text(view).click()
    tiny.page.locator(".branch-view[data-state=settled] .branch").locator("visible=true").first.wait_for()
    tops = "() => [...document.querySelectorAll('.desk .branch')].map(row => row.getBoundingClientRect().top)"
    for width, height in ((1280, 800), (1100, 800), (1000, 700), (911, 512), (800, 700), (390, 844)):
        tiny.page.set_viewport_size({"width": width, "height": height})
        before = tiny.page.evaluate(tops)
        assert tiny.page.evaluate(COVERED_BY_MARK) == [], (width, height)
        assert tiny.page.evaluate(tops) == before


def test_on_a_projector_three_and_a_half_rows_and_the_coverage_are_seen_below_more_settings(tiny: Visit) -> None:
    page = tiny.page
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.fill("The keeper saw")
    tiny.wait_until_settled()
    tiny.control("mode")
    page.evaluate("scrollTo(0, 0)")
    assert page.locator("#branches").evaluate(SEEN) >= 3
    assert page.locator("#branches .branch").nth(3).evaluate(PART_SEEN) >= 0.5
    expect(page.locator("#coverage .sum .of")).to_be_hidden()
    for part in (".sum .held", ".stack"):
        expect(page.locator(f"#coverage {part}")).to_be_in_viewport(ratio=1)
    for control in page.locator("#controls .settings-row").locator("select, input").locator("visible=true").all():
        box = control.bounding_box()
        assert control.evaluate("one => parseFloat(getComputedStyle(one).fontSize)") >= 12
        assert box["height"] >= 16 and box["x"] + box["width"] <= 886
    page.locator("#controls summary").click()
    expect(page.locator("#coverage .sum .of")).to_be_visible()
