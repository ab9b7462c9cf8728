"""Sliders have the name that stands beside them. A label with an output before its input names the output only."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.support import browser as browsers

INTERFACE = Path(__file__).parents[3] / "interface"
PAGES = {
    file.relative_to(INTERFACE).as_posix(): text
    for file in sorted(INTERFACE.rglob("*.html"))
    if 'type="range"' in (text := file.read_text(encoding="utf-8"))
}
TABS = {
    "Write": ["Branches", "Depth", "Temperature", "Top-p"],
    "Rewrite": ["Branches"],
    "Highlights": ["Highlights"],
}


class Elements(HTMLParser):
    """The attributes of all elements, and the text directly inside each element that has an id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        if self.elements and (identifier := self.elements[-1][1].get("id")):
            self.texts.setdefault(identifier, data.strip())


@pytest.mark.parametrize("name", PAGES)
def test_each_slider_is_named_by_the_word_beside_it_and_its_label_focuses_it(name: str) -> None:
    page = Elements(PAGES[name])
    sliders = [attributes for _, attributes in page.elements if attributes.get("type") == "range"]
    labels = {attributes.get("for") for tag, attributes in page.elements if tag == "label"}
    assert sliders
    for slider in sliders:
        assert page.texts.get(slider.get("aria-labelledby") or "", "").replace("-", "").isalpha(), slider
        assert slider["id"] in labels


@pytest.mark.parametrize("name", PAGES)
def test_the_number_beside_a_slider_is_not_announced_by_itself(name: str) -> None:
    page = Elements(PAGES[name])
    sliders = {attributes["id"] for _, attributes in page.elements if attributes.get("type") == "range"}
    numbers = [attributes for tag, attributes in page.elements if tag == "output" and attributes.get("for") in sliders]
    assert len(numbers) == len(sliders)
    for number in numbers:
        assert number.get("aria-live") == "off", number


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("tab", TABS)
def test_the_accessibility_tree_names_each_slider(page: Any, small_page: str, tab: str) -> None:
    with browsers.visit_again(page, small_page) as visit:
        visit.wait_for_status("ready")
        page.get_by_role("tab", name=tab, exact=True).click()
        if tab == "Write":
            page.locator(".more-settings > summary").first.click()
        for name in TABS[tab]:
            browsers.expect(page.get_by_role("slider", name=name, exact=True)).to_be_visible()
