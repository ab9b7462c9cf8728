"""The sentence of a control stands beside its toolbar: it covers no control of it, and none of another toolbar."""

from __future__ import annotations

from collections.abc import Iterator
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
    page.locator(f"#controls .views input[value={view}]").check(force=True)
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
    expect(tip).to_contain_text("A word to steer by")
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
