"""A click or a change of a setting lets the browser style again the elements that change, and not the whole page."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.browser import Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = "The old lighthouse keeper climbed the stairs again and looked out over the sea. He"


def largest_restyling(visit: Visit, act: Callable[[], object]) -> int:
    """The largest number of elements that one style calculation covers, in the two frames after an action.

    Not the sum of all calculations: a transition of an underline adds one in each frame.
    """
    browser = visit.page.context.browser
    browser.start_tracing(page=visit.page, categories=["devtools.timeline"])
    act()
    visit.wait_for_two_frames()
    events = json.loads(browser.stop_tracing())["traceEvents"]
    return max(event["args"].get("elementCount", 0) for event in events if event["name"] == "UpdateLayoutTree")


def elements_of(visit: Visit) -> int:
    return int(visit.page.evaluate("document.querySelectorAll('*').length"))


def test_a_change_of_the_temperature_restyles_no_more_than_a_fifth_of_the_page_at_once(real: Visit) -> None:
    real.fill(TEXT)
    real.wait_until_settled()
    for value in (0.5, 1, 0.7):
        count = largest_restyling(real, lambda value=value: real.put("temperature", value))
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
