"""The sentence of a control stands beside its toolbar and covers no control; that of a figure covers no row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support import browser as browsers
from tests.support.browser import Visit, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TOOLBARS = ":is(.controls, .column-head, .compare-foot)"
COVERED = """toolbars => {
  const tip = document.querySelector('.tip').getBoundingClientRect();
  const meets = ({left, top, right, bottom}) =>
    left < tip.right && tip.left < right && top < tip.bottom && tip.top < bottom;
  return [...document.querySelectorAll(`${toolbars} :is(button, input, select, textarea, summary, label)`)]
    .filter(one => one.checkVisibility() && one.getBoundingClientRect().width > 1 && meets(one.getBoundingClientRect()))
    .map(one => one.outerHTML.slice(0, 80));
}"""
INSIDE = """() => {
  const {left, top, right, bottom} = document.querySelector('.tip').getBoundingClientRect();
  return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
}"""


@pytest.fixture
def visit(page: Any, tiny_page: str) -> Iterator[Visit]:
    with browsers.visit_again(page, tiny_page) as opened:
        opened.wait_for_status("ready")
        opened.type("The old keeper")
        opened.wait_until_settled()
        yield opened
    page.set_viewport_size({"width": 1280, "height": 720})


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("view", ["rows", "tree", "compare"])
@pytest.mark.parametrize("settings", [False, True])
def test_no_sentence_covers_a_control(visit: Visit, view: str, width: int, settings: bool) -> None:
    page = visit.page
    page.set_viewport_size({"width": width, "height": 844})
    visit.choose("view", view)
    if settings:
        page.locator("#controls summary").click()
    page.wait_for_timeout(300)
    tips = page.locator(f"{TOOLBARS} [data-tip]:visible, .compare-foot [data-tip]:visible")
    assert tips.count() >= 5
    for control in tips.all():
        tip = page.locator(".tip")
        for _ in range(3):  # a hover may scroll, and what scrolls away has no sentence
            page.mouse.move(0, 0)
            control.hover()
            page.wait_for_timeout(100)
            if tip.is_visible():
                break
        expect(tip).to_be_visible()
        expect(tip).to_have_text(str(control.get_attribute("data-tip")))
        assert page.evaluate(INSIDE)
        assert page.evaluate(COVERED, TOOLBARS) == []


def test_a_sentence_follows_the_focus_and_leaves_with_escape_or_when_something_is_written(visit: Visit) -> None:
    page, tip = visit.page, visit.page.locator(".tip")
    visit.control("steer-word").focus()
    expect(tip).to_contain_text("One word to steer by")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(tip).to_be_visible()
    page.keyboard.type("s")
    expect(tip).to_be_hidden()
    page.locator("#document textarea").focus()
    page.locator("#depth").hover()
    expect(tip).to_contain_text("Depth:")
    page.locator("#document textarea").hover()
    expect(tip).to_be_hidden()


NAMES = ("k", "length", "depth", "mode", "odds", "temperature", "top-p", "steer-word", "order", "guess-first")
ROWS_COVERED = """() => {
  const tip = document.querySelector('.tip').getBoundingClientRect();
  const meets = ({left, top, right, bottom}) =>
    left < tip.right && tip.left < right && top < tip.bottom && tip.top < bottom;
  return [...document.querySelectorAll('#branches .branch')].filter(row => meets(row.getBoundingClientRect())).length;
}"""


def test_the_line_about_the_model_is_explained_and_is_no_tab_stop(visit: Visit) -> None:
    status, tip = visit.page.locator("#status"), visit.page.locator(".tip")
    status.hover()
    expect(tip).to_contain_text("is the language model; CPU is the device that computes it; float32 is the type")
    expect(status.locator(".sentence")).to_have_attribute("aria-description", tip.inner_text())
    box, shown = status.bounding_box(), tip.bounding_box()
    assert 0 <= shown["y"] - box["y"] - box["height"] < 20, "right under it"
    assert status.get_attribute("title") is None, "no second sentence covers the first"
    assert status.locator("[tabindex]").count() == 0 and status.get_attribute("tabindex") is None


def test_a_sentence_that_was_closed_stays_closed_while_the_focus_stays(visit: Visit) -> None:
    page, tip = visit.page, visit.page.locator(".tip")
    for key in ("Escape", "ArrowRight"):
        page.locator("#document textarea").focus()
        page.keyboard.press("Shift")
        page.locator("#depth").focus()
        expect(tip).to_contain_text("Depth:")
        page.keyboard.press(key)
        page.locator("#document textarea").hover()
        page.mouse.move(3, 3)
        expect(tip).to_be_hidden()
    page.locator("#depth").hover()
    expect(tip).to_contain_text("Depth:")


def test_the_control_that_a_sentence_is_about_is_marked(visit: Visit) -> None:
    page, marked = visit.page, visit.page.locator("[data-explained]")
    page.locator("#controls summary").click()
    for name in ("temperature", "mode"):
        page.locator(f"#{name}").hover()
        expect(marked).to_have_count(1)
        expect(marked.locator(f"#{name}")).to_have_count(1)
        assert marked.evaluate("one => getComputedStyle(one).outlineStyle") == "dashed"
    page.locator("#document textarea").hover()
    expect(marked).to_have_count(0)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1280, 720), (1000, 720), (853, 600)])
def test_the_sentence_of_a_control_covers_no_row(visit: Visit, width: int, height: int) -> None:
    page, tip = visit.page, visit.page.locator(".tip")
    page.set_viewport_size({"width": width, "height": height})
    page.locator("#controls summary").click()
    for scrolled in (0, 60, 140):
        page.evaluate(f"scrollTo(0, {scrolled})")
        for name in NAMES:
            page.locator("#document textarea").evaluate("box => box.focus({preventScroll: true})")
            page.keyboard.press("Shift")
            page.locator(f"#{name}").evaluate("control => control.focus({preventScroll: true})")
            expect(tip).to_be_visible()
            assert page.evaluate(INSIDE), (name, scrolled)
            assert page.evaluate(ROWS_COVERED) == 0, (name, scrolled)
            assert page.evaluate(COVERED, TOOLBARS) == [], (name, scrolled)


TEXT_COVERED = """() => {
  const {left, top, bottom} = document.querySelector('.tip').getBoundingClientRect();
  const lines = [...document.querySelectorAll('#document .mirror-page > div')].map(one => one.getBoundingClientRect());
  const end = document.querySelector('#document').getBoundingClientRect();
  return lines.some(one => left < one.right && top < Math.min(one.bottom, end.bottom) && one.top < bottom);
}"""


@pytest.mark.parametrize("words", [3, 120])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (911, 512)])
def test_the_sentence_of_depth_covers_neither_the_text_nor_a_row(
    visit: Visit, width: int, height: int, words: int
) -> None:
    page = visit.page
    page.set_viewport_size({"width": width, "height": height})
    visit.fill("word " * words)
    visit.wait_until_settled()
    page.locator("#document textarea").focus()
    page.keyboard.press("Shift")
    page.locator("#depth").focus()
    expect(page.locator(".tip")).to_be_visible()
    assert page.evaluate(INSIDE)
    assert page.evaluate(ROWS_COVERED) == 0
    assert not page.evaluate(TEXT_COVERED)


@pytest.mark.parametrize("width", [1280, 390])
def test_share_coverage_and_authorship_are_explained_over_no_row(visit: Visit, width: int) -> None:
    page, tip = visit.page, visit.page.locator(".tip")
    page.set_viewport_size({"width": width, "height": 844})
    for selector, words in {
        "#coverage .sum": "Coverage: the shares of these rows together",
        "#branches [data-branch='2'] .share": "not how good it is",
        "#document ~ .strip": "grey was typed, pasted or there before, green was chosen",
    }.items():
        page.mouse.move(0, 0)
        figure = page.locator(selector)
        figure.scroll_into_view_if_needed()
        page.wait_for_timeout(100)
        figure.hover()
        expect(tip).to_contain_text(words)
        assert page.evaluate(INSIDE)
        assert page.evaluate(ROWS_COVERED) == 0
        assert page.evaluate(COVERED, TOOLBARS) == []


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1024, 768)])
@pytest.mark.parametrize("words", [50, 300])
def test_the_sentence_of_a_share_covers_no_text(visit: Visit, width: int, height: int, words: int) -> None:
    page = visit.page
    page.set_viewport_size({"width": width, "height": height})
    visit.fill("keeper " * words)
    visit.wait_until_settled()
    for share in page.locator("#branches .share").all():
        page.mouse.move(0, 0)
        share.hover()
        expect(page.locator(".tip")).to_be_visible()
        assert page.evaluate(INSIDE)
        assert not page.evaluate(TEXT_COVERED)
        assert page.evaluate(ROWS_COVERED) == 0


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (911, 512)])
def test_the_sentence_of_everything_else_covers_no_row_at_the_end_of_a_window(
    visit: Visit, width: int, height: int
) -> None:
    page, more = visit.page, visit.page.locator("#rest .more")
    page.set_viewport_size({"width": width, "height": height})
    more.evaluate("one => scrollTo(0, scrollY + one.getBoundingClientRect().bottom - innerHeight)")
    page.mouse.move(0, 0)
    more.hover()
    expect(page.locator(".tip")).to_contain_text("Everything else: the chance")
    assert page.evaluate(INSIDE)
    assert page.evaluate(ROWS_COVERED) == 0
    assert page.evaluate(COVERED, TOOLBARS) == []


def test_the_keyboard_reaches_what_coverage_share_authorship_and_word_odds_mean(visit: Visit) -> None:
    page, tip = visit.page, visit.page.locator(".tip")
    visit.control("steer-word").fill("keeper")
    visit.wait_until_asked()
    visit.wait_until_settled()
    expect(page.locator("#coverage .word-odds")).to_be_visible()
    reached = {}
    page.locator("#document textarea").focus()
    page.keyboard.press("Escape")
    for _ in range(40):
        page.keyboard.press("Tab")
        name = page.evaluate("document.activeElement.className")
        if name in ("strip", "sum", "word-odds"):
            expect(tip).to_be_visible()
            reached[name] = tip.inner_text()
    assert "green was chosen" in reached["strip"]
    assert "Coverage" in reached["sum"] and "Share" in reached["sum"]
    assert "an upper bound" in reached["word-odds"]
    assert "It may be more than the rows hold: only the likeliest ways are rows." in reached["word-odds"]


def test_a_focus_that_scrolls_the_page_keeps_its_sentence(visit: Visit) -> None:
    page, tip = visit.page, visit.page.locator(".tip")
    page.set_viewport_size({"width": 1280, "height": 110})
    strip = page.locator("#document ~ .strip")
    assert strip.bounding_box()["y"] > 110
    page.keyboard.press("Tab")
    strip.focus()
    page.wait_for_timeout(300)
    assert page.evaluate("scrollY") > 0
    expect(tip).to_contain_text("green was chosen")
    expect(tip).to_be_visible()
    before = tip.bounding_box()["y"]
    page.mouse.wheel(0, 20)
    page.wait_for_timeout(300)
    expect(tip).to_be_visible()
    assert tip.bounding_box()["y"] != before
    assert page.evaluate(INSIDE)


@contextmanager
def phone_with_rows(browser: Any, url: str) -> Iterator[Visit]:
    """A visit with a phone, whose rows after "The old keeper" are settled."""
    look = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with browsers.visit(browser, url, **look) as opened:
        opened.wait_for_status("ready")
        opened.type("The old keeper")
        opened.wait_until_settled()
        yield opened


def brought_into_sight(page: Any, selector: str) -> Any:
    """The first element of a selector, once the page has scrolled to it."""
    found = page.locator(selector).first
    found.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    return found


def test_a_tap_elsewhere_shows_no_sentence_of_the_field_that_has_the_focus(browser: Any, tiny_page: str) -> None:
    with phone_with_rows(browser, tiny_page) as opened:
        page, tip = opened.page, opened.page.locator(".tip")
        opened.choose("view", "compare")
        page.locator("#compare .add").tap()
        expect(page.locator("#compare textarea").last).to_be_focused()
        page.locator("#compare .column-name").nth(1).tap()
        page.wait_for_timeout(300)
        expect(tip).to_be_hidden()


def test_a_tap_shows_the_sentence_of_a_figure_until_the_next_tap(browser: Any, tiny_page: str) -> None:
    with phone_with_rows(browser, tiny_page) as opened:
        page, tip = opened.page, opened.page.locator(".tip")
        for selector, words in {
            "#coverage .sum": "Coverage: the shares of these rows together",
            "#branches [data-branch='0'] .share": "not how good it is",
            "#document ~ .strip": "green was chosen",
        }.items():
            brought_into_sight(page, selector).tap()
            page.wait_for_timeout(300)
            expect(tip).to_contain_text(words)
            expect(tip).to_be_visible()
            page.locator("#branches .note .words").tap()
            expect(tip).to_be_hidden()
        page.locator("#branches .more").tap()
        expect(page.locator("#branches .others")).to_be_visible()
        page.wait_for_timeout(300)
        expect(tip).to_be_hidden()  # it would cover the beginnings that the tap has listed
        assert opened.text == "The old keeper"


def test_a_tap_beside_a_slider_or_a_token_explains_and_changes_nothing(browser: Any, tiny_page: str) -> None:
    with phone_with_rows(browser, tiny_page) as opened:
        page, tip = opened.page, opened.page.locator(".tip")
        for selector, words in {
            "#depth-name": "Depth: how many tokens",
            "#k-name": "How many branches",
            "#branches .bracket": "A fork: here",
        }.items():
            box = brought_into_sight(page, selector).bounding_box()
            page.touchscreen.tap(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2)
            expect(tip).to_contain_text(words)
            expect(tip).to_be_visible()
        assert (opened.control("depth").input_value(), opened.control("k").input_value()) == ("5", "5")
        assert opened.text == "The old keeper"


@pytest.mark.parametrize("width", [1280, 390])
def test_in_the_tree_no_sentence_covers_the_coverage_or_the_toolbar(visit: Visit, width: int) -> None:
    page = visit.page
    visit.choose("view", "tree")
    covered = """() => {
      const tip = document.querySelector('.tip').getBoundingClientRect();
      return [...document.querySelectorAll('.cover .sum, #tree .controls :is(button, label)')].filter(one => {
        const {left, top, right, bottom} = one.getBoundingClientRect();
        return left < tip.right && tip.left < right && top < tip.bottom && tip.top < bottom;
      }).length;
    }"""
    for height in (500, 620, 720, 844):
        page.set_viewport_size({"width": width, "height": height})
        for control in page.locator("#tree label[data-tip], .cover .sum").filter(visible=True).all():
            for block in ("start", "center", "end"):
                page.mouse.move(0, 0)
                control.evaluate("(one, block) => one.scrollIntoView({block})", block)
                page.wait_for_timeout(150)
                control.hover()
                if page.locator(".tip").is_visible():
                    assert page.evaluate(covered) == 0, (height, block, page.locator(".tip").inner_text())


HIDDEN_WITHOUT_ROW = """async share => {
  const row = share.closest('.branch'), rows = row.parentElement;
  row.remove();
  await Promise.resolve();  // observers have run: the page paints nothing meanwhile
  const {hidden} = document.querySelector('.tip');
  rows.append(row);
  return hidden;
}"""


@pytest.mark.parametrize("change", ["another row", "no row"])
def test_the_sentence_of_a_figure_follows_its_row(visit: Visit, change: str) -> None:
    page, tip = visit.page, visit.page.locator(".tip")
    share = page.locator("#branches .branch .share").last
    share.hover()
    expect(tip).to_be_visible()
    assert tip.inner_text() == share.get_attribute("data-tip")
    if change == "another row":
        share.evaluate("share => share.dataset.tip = 'Another sentence.'")
        expect(tip).to_have_text("Another sentence.")
    else:
        assert share.evaluate(HIDDEN_WITHOUT_ROW), "the sentence goes with its row"


@pytest.mark.parametrize("size", [(1280, 800), (1280, 720), (853, 480), (390, 844)])
def test_the_sentence_of_a_fork_stands_near_its_sign(visit: Visit, size: tuple[int, int]) -> None:
    page, tip = visit.page, visit.page.locator(".tip")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    visit.control("mode").select_option("every_level")
    visit.wait_until_asked()
    visit.wait_until_settled()
    signs = page.locator("#branches .rows .fork")
    assert signs.count()
    for sign in signs.all():
        page.mouse.move(0, 0)
        sign.scroll_into_view_if_needed()
        page.wait_for_timeout(150)
        sign.hover()
        expect(tip).to_contain_text("this row is the same as row")
        assert page.evaluate(INSIDE)
        shown, own = tip.bounding_box(), sign.bounding_box()
        above, below = own["y"] - shown["y"] - shown["height"], shown["y"] - own["y"] - own["height"]
        assert max(above, below) <= 160


def test_a_swipe_shows_no_sentence_and_scrolls_its_row_also_from_the_sign_at_the_end(
    browser: Any, tiny_page: str
) -> None:
    with phone_with_rows(browser, tiny_page) as opened:
        page, tip = opened.page, opened.page.locator(".tip")
        opened.control("depth").fill("12")
        opened.wait_until_asked()
        opened.wait_until_settled()
        page.evaluate("document.activeElement.blur()")
        row, text = page.locator("#branches .branch[data-reads]").first, opened.text
        number, tokens = (
            row.get_attribute("data-branch"),
            f"#branches [data-branch='{row.get_attribute('data-branch')}'] .tokens",
        )
        brought_into_sight(page, tokens)
        opened.swipe(row.locator(".share"), 60)
        page.wait_for_timeout(300)
        assert tip.is_hidden() and page.locator(tokens).evaluate("one => one.scrollLeft") == 0
        opened.swipe(row.locator(".onward"), -200)
        page.wait_for_timeout(700)
        assert tip.is_hidden() and page.locator(tokens).evaluate("one => one.scrollLeft") > 150
        page.locator(tokens).evaluate("one => { one.scrollLeft = 0; }")
        page.wait_for_timeout(300)
        x, y = browsers.middle_of(page.locator(f"#branches [data-branch='{number}'] .onward"))
        page.touchscreen.tap(x, y)
        page.wait_for_function("tokens => document.querySelector(tokens).scrollLeft > 100", arg=tokens, timeout=5000)
        assert opened.text == text and tip.is_hidden()
