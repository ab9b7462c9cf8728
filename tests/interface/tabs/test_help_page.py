"""The help of the tabs in a browser: its button, its key, and what it explains."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.browser import Visit, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TABS = ["Rewrite", "Highlights", "Type assistant", "Internals", "Lab"]
PAGES_OF_LAB = ["Lesson", "Cache", "Decoding", "Masks", "Speculation"]


def help_of(visit: Visit) -> Any:
    return visit.page.locator(".help-dialog")


def explained(visit: Visit) -> dict[str, str]:
    """The terms of the help that is open, with their meanings."""
    lines = help_of(visit).locator("dl > div")
    found = lines.evaluate_all("lines => lines.map(line => [...line.children].map(one => one.textContent.trim()))")
    return {term: meaning for term, meaning in found}


@pytest.mark.parametrize("tab", TABS)
def test_each_tab_has_a_help_that_a_click_and_the_keyboard_open(tiny: Visit, tab: str) -> None:
    page = tiny.page
    tiny.open_tab(tab)
    button = page.locator(".help:visible")
    expect(button).to_have_count(1)
    button.click()
    expect(help_of(tiny)).to_be_visible()
    assert help_of(tiny).locator("h2").inner_text().startswith(f"Help: {tab}")
    assert "?" in explained(tiny)
    page.keyboard.press("Escape")
    expect(help_of(tiny)).to_be_hidden()
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(help_of(tiny)).to_be_visible()
    page.mouse.click(2, 2)
    expect(help_of(tiny)).to_be_hidden()
    page.get_by_role("tab", name=tab, exact=True).focus()
    page.keyboard.press("?")
    expect(help_of(tiny)).to_be_visible()
    page.keyboard.press("?")
    page.keyboard.press("Escape")
    expect(page.get_by_role("tab", name=tab, exact=True)).to_be_focused()


def test_in_write_the_key_opens_the_help_wherever_nothing_is_written(tiny: Visit) -> None:
    page, dialog = tiny.page, tiny.page.locator("#help-dialog")
    page.get_by_role("tab", name="Write", exact=True).focus()
    page.keyboard.press("?")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    tiny.type("Why?")
    expect(dialog).to_be_hidden()
    assert tiny.text == "Why?"


@pytest.mark.parametrize("name", PAGES_OF_LAB)
def test_each_page_of_the_lab_has_a_help_of_its_own(tiny: Visit, name: str) -> None:
    tiny.open_tab("Lab")
    tiny.open_tab(name)
    tiny.page.locator(".help:visible").click()
    expect(help_of(tiny).locator("h2")).to_have_text(f"Help: Lab, {name}")
    forms = tiny.page.locator(f"#{name.lower()}-form label[data-tip] > span:visible").all_inner_texts()
    assert set(forms) <= set(explained(tiny)) and (forms or name == "Lesson")


def test_in_internals_each_figure_is_explained_in_one_line_without_its_number(tiny: Visit) -> None:
    page = tiny.page
    tiny.open_tab("Internals")
    page.locator("#internals-text").fill("The keeper slept.")
    page.wait_for_selector("#internals[data-state=settled] .box")
    page.locator("#internals .box").nth(2).click()
    page.locator(".help:visible").click()
    lines = explained(tiny)
    assert {"position", "id", "Choice", "Raw", "Processed", "Entropy"} <= set(lines)
    assert len(set(lines.values())) == len(lines)
    assert not any(term.lower().startswith(("position ", "id ", "choice ", "raw ", "entropy ")) for term in lines)


def test_the_key_writes_a_question_mark_in_a_field_and_opens_the_help_among_rows(tiny: Visit) -> None:
    page = tiny.page
    tiny.open_tab("Rewrite")
    page.locator("#rewrite-source").fill("The keeper slept.")
    page.wait_for_selector("#rewrite-branches[data-state=settled][data-stale=false]")
    page.locator("#rewrite-text").focus()
    page.keyboard.press("?")
    assert page.locator("#rewrite-text").input_value() == "?"
    expect(help_of(tiny)).to_be_hidden()
    page.wait_for_selector("#rewrite-branches[data-state=settled][data-stale=false]")
    page.keyboard.press("Alt+ArrowDown")
    page.keyboard.press("?")
    expect(help_of(tiny)).to_be_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.closest('#rewrite-branches') !== null"), "the focus comes back"


def test_the_help_has_the_sentences_of_the_controls_and_the_keys_of_the_tab(tiny: Visit) -> None:
    page = tiny.page
    tiny.open_tab("Type assistant")
    page.locator(".help:visible").click()
    found = explained(tiny)
    assert found["Depth"].startswith("How many tokens long each branch is")
    assert found["Branches"] == page.locator("label", has=page.locator("#chat-k")).get_attribute("data-tip")
    assert "Put these messages away" in found["New conversation"]
    assert "passes the turn" in found["Ctrl Enter"] and "Alt 1 … 9" in found
    page.keyboard.press("Escape")
    tiny.open_tab("Highlights")
    page.locator(".help:visible").click()
    assert found.keys() != explained(tiny).keys() and "Next highlight" in explained(tiny)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_button_covers_nothing_and_the_help_fits_the_window(tiny: Visit, width: int) -> None:
    page = tiny.page
    page.set_viewport_size({"width": width, "height": 800})
    for tab in TABS:
        tiny.open_tab(tab)
        button = page.locator(".help:visible")
        covered = button.evaluate(
            """button => {
              const {left, right, top, bottom} = button.getBoundingClientRect();
              const range = document.createRange(), found = [];
              const walker = document.createTreeWalker(button.closest('.sheet'), NodeFilter.SHOW_TEXT);
              while (walker.nextNode()) {
                const element = walker.currentNode.parentElement;
                if (button.contains(element) || !element.checkVisibility()) continue;
                range.selectNodeContents(walker.currentNode);
                for (const box of range.getClientRects())
                  if (box.width && box.left < right && box.right > left && box.top < bottom && box.bottom > top)
                    found.push(walker.currentNode.textContent.trim());
              }
              return found.filter(Boolean);
            }"""
        )
        assert covered == [], tab
        button.click()
        box = help_of(tiny).bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= width and box["y"] + box["height"] <= 800
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("Escape")
