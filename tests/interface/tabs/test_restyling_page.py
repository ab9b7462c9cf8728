"""A click or a change of a setting lets the browser style again the elements that change, and not the whole page."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.browser import Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = "The old lighthouse keeper climbed the stairs again and looked out over the sea. He"
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
SET_TEMPERATURE = """value => {
  const slider = document.getElementById('temperature');
  slider.value = value;
  slider.dispatchEvent(new Event('input', {bubbles: true}));
}"""


def largest_restyling(visit: Visit, act: Callable[[], object]) -> int:
    """The most elements whose style the browser computes at once in the two frames after an action.

    Not their sum: transitions of the underlines compute some again in each frame.
    """
    browser = visit.page.context.browser
    browser.start_tracing(page=visit.page, categories=["devtools.timeline"])
    act()
    visit.page.evaluate(TWO_FRAMES)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    return max(event["args"].get("elementCount", 0) for event in events if event["name"] == "UpdateLayoutTree")


def elements_of(visit: Visit) -> int:
    return int(visit.page.evaluate("document.querySelectorAll('*').length"))


def test_a_change_of_the_temperature_restyles_no_more_than_a_fifth_of_the_page_at_once(real: Visit) -> None:
    real.fill(TEXT)
    real.wait_until_settled()
    for value in (0.5, 1, 0.7):
        count = largest_restyling(real, lambda value=value: real.page.evaluate(SET_TEMPERATURE, value))
        assert 0 < count < elements_of(real) / 5
        real.wait_until_settled()


def test_a_click_on_a_token_restyles_no_more_than_a_fifth_of_the_page_at_once(real: Visit) -> None:
    real.fill(TEXT)
    real.wait_until_settled()
    for _ in range(3):
        token = real.token(0, 0)
        token.hover()
        count = largest_restyling(real, lambda token=token: token.evaluate("button => button.click()"))
        assert 0 < count < elements_of(real) / 5
        real.wait_until_settled()
