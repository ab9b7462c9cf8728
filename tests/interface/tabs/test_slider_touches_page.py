"""Sliders under a finger: a swipe that scrolls the page changes nothing, and a drag along the slider does."""

from __future__ import annotations

import pytest

from tests.support.browser import Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def swipe(phone: Visit, start: tuple[float, float], by: tuple[float, float]) -> None:
    """Move a finger from a point of the window by a distance, in ten steps."""
    session = phone.page.context.new_cdp_session(phone.page)

    def touch(kind: str, *points: dict[str, float]) -> None:
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    touch("touchStart", {"x": start[0], "y": start[1]})
    for step in range(1, 11):
        touch("touchMove", {"x": start[0] + by[0] * step / 10, "y": start[1] + by[1] * step / 10})
        phone.page.wait_for_timeout(16)
    touch("touchEnd")


@pytest.mark.parametrize("name", ["k", "depth", "temperature", "top-p"])
def test_a_slider_that_a_finger_scrolls_over_keeps_its_value_and_one_that_is_dragged_does_not(
    phone: Visit, name: str
) -> None:
    page = phone.page
    if name in ("temperature", "top-p"):
        page.locator("#controls .more-settings > summary").tap()
    slider = page.locator(f"#{name}")
    slider.evaluate("one => one.scrollIntoView({block: 'center'})")
    before, box, scrolled = slider.input_value(), slider.bounding_box(), page.evaluate("scrollY")
    for part in (0.2, 0.8):
        swipe(phone, (box["x"] + part * box["width"], box["y"] + box["height"] / 2), (0, 120))
        page.wait_for_timeout(300)
        assert page.evaluate("scrollY") < scrolled, "the page is scrolled"
        assert slider.input_value() == before
        assert page.locator(f"output[for={name}]").inner_text() == before
        slider.evaluate("one => one.scrollIntoView({block: 'center'})")
        page.wait_for_timeout(100)
        box = slider.bounding_box()
        scrolled = page.evaluate("scrollY")
    swipe(phone, (box["x"] + 0.1 * box["width"], box["y"] + box["height"] / 2), (0.25 * box["width"], 0))
    assert slider.input_value() != before
