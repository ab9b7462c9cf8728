"""A browser that holds what an earlier version stored: the page opens all of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interface.http import assets
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, STARTED, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORED = Path(__file__).parents[1] / "fixtures" / "5b825e5" / "browser_storage.json"
TEXT = "The old lighthouse 🗼 stood\non the edge and it had"
RESTORE = """async stored => {
  const {name, version, stores} = stored.indexedDB;
  const opened = await new Promise((resolve, reject) => {
    const request = indexedDB.open(name, version);
    request.onupgradeneeded = () => {
      for (const store of Object.keys(stores)) request.result.createObjectStore(store, {keyPath: 'id'});
    };
    Object.assign(request, {onsuccess: () => resolve(request.result), onerror: () => reject(request.error)});
  });
  const transaction = opened.transaction(Object.keys(stores), 'readwrite');
  for (const [store, values] of Object.entries(stores)) {
    for (const value of values) transaction.objectStore(store).put(value);
  }
  await new Promise((resolve, reject) => Object.assign(transaction, {oncomplete: resolve, onabort: reject}));
  opened.close();
  for (const [key, value] of Object.entries(stored.localStorage)) localStorage.setItem(key, value);
  for (const [key, value] of Object.entries(stored.sessionStorage)) sessionStorage.setItem(key, value);
}"""


@pytest.fixture
def returning(page: Any, tiny_page: str) -> Iterator[Any]:
    """The page of a browser that was here before, with everything that the earlier version stored."""
    browsers.forget(page, tiny_page)
    page.evaluate(RESTORE, json.loads(STORED.read_text(encoding="utf-8")))
    page.goto(tiny_page)
    page.wait_for_selector("#document textarea", timeout=PATIENCE)
    page.wait_for_function(STARTED)
    yield page
    page.goto(f"{tiny_page}{assets.scripts().address('web/core/text_words.js').lstrip('/')}")


def test_the_document_that_was_open_is_open_with_its_history_settings_and_instruction(returning: Any) -> None:
    box = returning.locator("#document textarea")
    expect(box).to_have_value(TEXT)
    assert returning.locator("#documents .name").inner_text() == "Lighthouse “one”: ü"
    assert returning.locator("#instruction").input_value() == "Tell a quiet story for children."
    names = ("k", "depth", "temperature", "mode", "seed", "odds")
    values = {name: returning.locator(f"#{name}").input_value() for name in names}
    expected = {"k": "4", "depth": "6", "temperature": "0.8", "mode": "sampled", "seed": "123456", "odds": "tokens"}
    assert values == expected, "that version had odds of tokens alone"
    assert "was" in returning.locator("#controls .never button").inner_text()
    for text in (TEXT[: -len(" had")], "The old lighthouse 🗼 stood\non the edge"):
        returning.locator("#undo").click()
        assert box.input_value() == text


def test_the_other_document_is_in_the_list_and_opens(returning: Any) -> None:
    returning.locator("#documents").click()
    expect(returning.locator("#documents-dialog li")).to_have_count(2)
    returning.locator("#documents-dialog .open", has_text="A second text.").click()
    expect(returning.locator("#document textarea")).to_have_value("A second text.")


TABS = {
    "Rewrite": {
        "rewrite-source": "The ship came home late.",
        "rewrite-instruction": "Say it as a pirate would.",
        "rewrite-text": "Arr",
    },
    "Highlights": {"highlights-text": "The cat sat on the moon.", "highlights-prompt": "Be brief."},
    "Type assistant": {"chat-text": "Good morning"},
    "Internals": {"internals-text": "Tokens"},
}


def test_every_tab_has_its_stored_text(returning: Any) -> None:
    for tab, fields in TABS.items():
        returning.get_by_role("tab", name=tab).click()
        for name, text in fields.items():
            expect(returning.locator(f"#{name}")).to_have_value(text)
    expect(returning.locator("#chat .content")).to_have_text("Hello there.")


@pytest.mark.parametrize(("tab", "prefix"), [("Rewrite", "rewrite-"), ("Type assistant", "chat-")])
def test_a_tab_whose_settings_were_not_stored_has_the_usual_ones(returning: Any, tab: str, prefix: str) -> None:
    returning.get_by_role("tab", name=tab).click()
    expect(returning.locator(f"#{prefix}text")).not_to_have_value("")
    assert [returning.locator(f"#{prefix}{name}").input_value() for name in ("k", "depth", "length")] == [
        "5",
        "5",
        "tokens",
    ]
