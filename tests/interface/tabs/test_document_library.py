"""Documents are kept in the browser, in files and in links; a document that cannot be kept gets a sentence."""

from __future__ import annotations

import base64
import json
import random
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support import browser as browsers
from tests.support.browser import expect, importing
from tests.support.workbench import workbench

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FOLDER = Path(__file__).parents[3] / "interface" / "tabs" / "writer"
PAPER = (FOLDER / "paper.html").read_text(encoding="utf-8")
STYLES = [FOLDER.parents[1] / "web" / "ui" / "sheet.css", FOLDER / "paper.css"]
STYLE = "\n".join(file.read_text(encoding="utf-8") for file in STYLES)
MOUNT = importing("""async () => {
  const {mountSheet} = await import('/lookahead/tabs/writer/writer_sheet.js');
  window.applied = [];
  window.here = 'Here-135M';
  window.settings = {k: 5, depth: 5, seed: 7};
  window.paper = mountSheet({
    element: document.body,
    hooks: {
      settings: () => window.settings,
      applySettings: settings => window.applied.push(settings),
      view: () => ({branches: [{ids: [1]}]}),
      tree: async () => ({root: 0}),
      model: () => window.here,
      publicAddress: () => window.address ?? null,
    },
  });
  await paper.ready;
}""")
BLOCKED = "Not saved: this browser keeps nothing here. Export before you leave."
FULL = "Not saved: the browser's storage is full. Export now."
NO_STORAGE = """for (const name of ['indexedDB', 'localStorage', 'sessionStorage']) {
  Object.defineProperty(window, name, {get() { throw new DOMException('Denied.', 'SecurityError'); }});
}"""
NO_ROOM = """() => {
  IDBObjectStore.prototype.put = function () { throw new DOMException('No room.', 'QuotaExceededError'); };
}"""
TAP = "button => button.dispatchEvent(new PointerEvent('click', {bubbles: true, pointerType: 'touch'}))"
HEAR_FOCUS = """() => {
  window.focused = [];
  document.addEventListener('focusin', ({target}) => { focused.push(target.localName); });
}"""
SIZE: Any = {"width": 1280, "height": 720}
PAYLOADS = [
    '<img src=x onerror="window.pwned=1">',
    "</script><script>window.pwned=1</script>",
    "${window.pwned=1} {{window.pwned=1}} {{{window.pwned=1}}}",
    "`${window.pwned=1}`",
    "right\u202eto\u202c left \u2067mark\u2069 \u200f",
    "</textarea><svg onload=window.pwned=1>",
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with workbench(f"<style>{STYLE}</style>{PAPER}") as url:
        yield url


@dataclass
class Tab:
    """A page with the paper on it."""

    page: Any
    url: str
    mistakes: list[str] = field(default_factory=list)

    def open(self, fragment: str = "") -> Tab:
        self.page.on("pageerror", lambda error: self.mistakes.append(str(error)))
        self.page.goto(self.url + fragment)
        self.page.evaluate(MOUNT)
        return self

    def beside(self, address: str) -> Tab:
        """Another tab of the same browser."""
        return Tab(self.page.context.new_page(), address).open()

    def reload(self) -> None:
        self.page.reload()
        self.page.evaluate(MOUNT)

    def find(self, selector: str) -> Any:
        return self.page.locator(selector)

    def get(self, expression: str) -> Any:
        return self.page.evaluate(f"() => {expression}")

    def type(self, text: str) -> None:
        self.find("#document textarea").press_sequentially(text)

    def fill(self, text: str) -> None:
        self.find("#document textarea").fill(text)

    def accept(self, text: str) -> None:
        assert self.page.evaluate("text => paper.draft.accept(text, {ids: [1], revision: paper.draft.sync()})", text)

    def wait_until(self, state: str = "saved") -> None:
        self.page.wait_for_selector(f".kept[data-state={state}]")

    def save(self) -> None:
        self.page.evaluate("() => paper.library.flush()")
        self.wait_until()

    def rename(self, name: str) -> None:
        self.find("#documents").click()
        self.find(".shelf li").first.get_by_text("Rename").click()
        self.find(".shelf input").fill(name)
        self.page.keyboard.press("Enter")
        self.find(".shelf .open").first.get_by_text(name, exact=True).wait_for()
        self.page.keyboard.press("Escape")

    def bring(self, name: str, content: bytes | str, kind: str = "application/json") -> None:
        buffer = content if isinstance(content, bytes) else content.encode()
        self.find("#import input[type=file]").set_input_files({"name": name, "mimeType": kind, "buffer": buffer})
        self.page.wait_for_function("document.querySelector('#import input').value === ''")

    def export(self, kind: str = "all") -> tuple[str, str]:
        self.find("#export").click()
        with self.page.expect_download() as download:
            self.find(f"#formats-dialog [data-format={kind}]").click()
        return download.value.suggested_filename, Path(download.value.path()).read_text(encoding="utf-8")

    def names(self) -> list[str]:
        self.find("#documents").click()
        self.page.wait_for_selector("#documents-dialog[open]")
        found = self.find(".shelf .open .name").all_inner_texts()
        self.page.keyboard.press("Escape")
        return list(found)

    def choose_new(self) -> None:
        self.find("#documents").click()
        self.find("#new-document").click()

    def choose(self, name: str, button: str | None = None) -> None:
        """A row of the documents: open it, or press one of its buttons."""
        self.find("#documents").click()
        row = self.find(".shelf li").filter(has_text=name).first
        (row.get_by_text(button) if button else row.locator(".open")).click()

    @property
    def text(self) -> str:
        return str(self.find("#document textarea").input_value())

    @property
    def said(self) -> str:
        return str(self.find("#notice .sentence").inner_text())


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    """A browser of one person, with storage of its own."""
    made = browser.new_context()
    made.set_default_timeout(browsers.PATIENCE)
    yield made
    made.close()


@pytest.fixture
def tab(page: Any, address: str) -> Iterator[Tab]:
    browsers.forget(page, address)
    page.set_viewport_size(SIZE)
    opened = Tab(page, address).open()
    yield opened
    for other in page.context.pages:
        if other is not page:
            other.close()
    assert not opened.mistakes
    assert opened.get("window.pwned === undefined"), "nothing that was text has run"


def pack(value: object) -> str:
    """A fragment as a stranger would make it."""
    return pack_bytes(json.dumps(value).encode())


def pack_bytes(content: bytes) -> str:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(content) + packer.flush()
    return "#t=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def test_text_caret_and_history_are_restored_after_a_reload(tab: Tab) -> None:
    tab.type("The keeper")
    tab.accept(" saw")
    tab.page.keyboard.press("Control+z")
    tab.page.keyboard.press("Home")
    tab.get("paper.draft.sync()")
    tab.wait_until()
    tab.reload()
    assert tab.text == "The keeper"
    assert tab.get("paper.draft.caret") == 0
    tab.find("#redo").click()
    assert tab.text == "The keeper saw"
    assert tab.get("paper.draft.spans") == [[10, 14]]


def test_the_last_key_before_a_reload_is_kept(tab: Tab) -> None:
    expected = "first"
    tab.type(expected)
    tab.save()
    for word in (" and", " then", " the", " last", "!"):
        tab.type(word)
        tab.reload()
        expected += word
        assert tab.text == expected
        tab.find("#document textarea").focus()
        tab.page.keyboard.press("Control+End")


def test_a_notice_does_not_cover_the_field_of_the_instruction(tab: Tab) -> None:
    tab.find("#instruction-toggle").click()
    tab.page.evaluate("() => paper.notice('The text is deleted.', {label: 'Undo', run() {}})")
    size = tab.page.viewport_size
    for height in (512, 640, 800):
        tab.page.set_viewport_size({"width": 1280, "height": height})
        for top in range(0, 500, 40):
            tab.page.evaluate("top => scrollTo({top, behavior: 'instant'})", top)
            notice, field = (tab.find(name).bounding_box() for name in ("#notice.said", "#instruction"))
            assert notice["y"] + notice["height"] <= field["y"] or notice["y"] >= field["y"] + field["height"]
    tab.page.set_viewport_size(size)


def test_text_typed_before_the_scripts_load_is_never_lost(context: Any, address: str) -> None:
    for typed in ("early bird", "the second"):
        page = context.new_page()
        page.goto(address)
        page.locator("#document textarea").fill(typed)
        page.evaluate(MOUNT)
        assert page.locator("#document textarea").input_value() == typed
        page.evaluate("() => paper.library.flush()")
    tab = Tab(page, address)
    assert "What you typed is a new document." in tab.said
    assert sorted(tab.names()) == ["early bird", "the second"]
    tab.find("#notice .action").click()
    tab.page.wait_for_function("paper.draft.text === 'early bird'")
    page.goto("about:blank")
    page.goto(address + pack({"text": "from a link"}))
    page.locator("#document textarea").fill("typed again")
    page.evaluate(MOUNT)
    assert tab.text == "from a link"
    assert sorted(tab.names()) == ["early bird", "from a link (from a link)", "the second", "typed again"]


@pytest.mark.parametrize("has_focus", [True, False])
def test_text_typed_while_a_tab_loads_again_goes_to_the_end_of_its_document(tab: Tab, has_focus: bool) -> None:
    tab.type("The keeper")
    tab.page.keyboard.press("Home")
    tab.save()
    tab.page.reload()
    tab.type(" saw")
    if not has_focus:
        tab.get("document.activeElement.blur()")
    tab.page.evaluate(MOUNT)
    assert tab.text == "The keeper saw"
    assert tab.get("paper.draft.caret") == len(tab.text)
    assert len(tab.names()) == 1
    tab.find("#undo").click()
    assert tab.text == "The keeper"


@pytest.mark.parametrize("width", [1280, 390])
def test_a_second_click_on_rename_meets_no_other_button(tab: Tab, width: int) -> None:
    tab.page.set_viewport_size({"width": width, "height": 800})
    tab.type("A dog story")
    tab.find("#documents").click()
    box = tab.find(".shelf li").first.get_by_text("Rename").bounding_box()
    tab.page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    field = tab.find(".shelf li").first.locator("input")
    expect(field).to_be_focused()
    field.fill("Dogs")
    tab.page.keyboard.press("Enter")
    expect(tab.find(".shelf li .name").first).to_have_text("Dogs")
    assert tab.text == "A dog story"


def test_documents_are_created_named_copied_deleted_and_restored(tab: Tab) -> None:
    tab.type("One")
    tab.rename("A story")
    assert tab.find("#documents .name").inner_text() == "A story"
    assert tab.find("#documents").get_attribute("aria-label") == "Documents: A story"
    tab.find("#documents").click()
    tab.find("#new-document").click()
    assert tab.text == ""
    tab.page.keyboard.press("Control+z")
    assert tab.text == "", "another document has another history"
    tab.type("Two")
    assert tab.names() == ["Two", "A story"]
    tab.choose("A story", "Duplicate")
    tab.find(".shelf .name").get_by_text("A story (copy)").wait_for()
    assert "A story (copy)" in tab.get("document.activeElement.textContent"), "a screen reader reads the copy's name"
    assert tab.find("#documents-dialog [aria-live]").inner_text() == "The copy “A story (copy)” is made."
    tab.page.keyboard.press("Escape")
    tab.choose("A story (copy)")
    tab.page.wait_for_function("paper.draft.text === 'One'")
    tab.choose("A story (copy)", "Delete")
    tab.page.wait_for_function("paper.draft.text === ''")
    assert "A story (copy)" not in tab.names()
    assert "“A story (copy)” is deleted; a new, empty document is open." in tab.said
    tab.find("#notice .action").click()
    tab.page.wait_for_function("paper.draft.text === 'One'")
    tab.page.wait_for_function("document.activeElement === paper.draft.box")
    assert "“A story (copy)” is restored." in tab.said
    assert sorted(tab.names()) == ["A story", "A story (copy)", "Two"]
    tab.choose("Two", "Delete")
    expect(tab.find("#notice .sentence")).to_have_text("“Two” is deleted.")
    tab.find("#notice .action").click()
    tab.page.wait_for_function("async () => (await paper.library.list()).length === 3")
    assert sorted(tab.names()) == ["A story", "A story (copy)", "Two"]
    assert "is restored." in tab.said
    tab.find("#documents").click()
    tab.find("#new-document").click()
    expect(tab.find("#notice .sentence")).to_have_text("")


def line_of_the_other_document(tab: Tab) -> Any:
    """Write the documents One and Two, open their list by key, and return the line of One, once it is visible."""
    tab.type("One")
    tab.find("#documents").click()
    tab.find("#new-document").click()
    tab.type("Two")
    tab.find("#documents").focus()
    tab.page.keyboard.press("Enter")
    line = tab.find(".shelf li").filter(has_text="One")
    line.wait_for()
    return line


@pytest.mark.parametrize("touch", [False, True])
def test_an_opened_document_is_announced_and_its_text_has_the_focus(tab: Tab, touch: bool) -> None:
    opener = line_of_the_other_document(tab).locator(".open")
    if touch:
        opener.evaluate(TAP)
    else:
        opener.focus()
        tab.page.keyboard.press("Enter")
    expect(tab.find(".opened[role=status]")).to_have_text("“One” is open.")
    assert tab.text == "One"
    # On a phone the focus would open the keyboard over the rows.
    expect(tab.find("#documents" if touch else "#document textarea")).to_be_focused()


@pytest.mark.parametrize("then", ["new", "other"])
def test_a_deletion_can_still_be_undone_when_another_document_is_open(tab: Tab, then: str) -> None:
    tab.type("One")
    tab.find("#documents").click()
    tab.find("#new-document").click()
    tab.type("Two")
    tab.choose("Two", "Delete")
    tab.page.wait_for_function("paper.draft.text === ''")
    if then == "other":
        tab.choose("One")
        tab.page.wait_for_function("paper.draft.text === 'One'")
    else:
        tab.type("Three")
        tab.find("#documents").click()
        tab.find("#new-document").click()
    expect(tab.find("#notice .sentence")).to_have_text("“Two” is deleted.")
    tab.find("#notice .action").click()
    tab.page.wait_for_function("paper.draft.text === 'Two'")


def test_a_notice_about_the_open_document_closes_with_it_whatever_it_says(tab: Tab) -> None:
    tab.type("Two")
    tab.find("#documents").click()
    tab.find("#new-document").click()
    tab.page.evaluate("paper.notice('“Two” is deleted.', {label: 'Undo', run() {}})")
    tab.choose("Two")
    expect(tab.find("#notice .sentence")).to_have_text("")


@pytest.mark.parametrize("ending", ["undone", "undone by Ctrl+Z", "closed", "clicked", "replaced"])
def test_after_a_deletion_by_keyboard_undo_has_the_focus_which_is_never_lost(tab: Tab, ending: str) -> None:
    line_of_the_other_document(tab).get_by_text("Delete").focus()
    tab.page.keyboard.press("Enter")
    expect(tab.find("#notice .action")).to_be_focused()
    said = tab.find("#notice [role=status]").text_content()
    assert said == "“One” is deleted. The button Undo has the focus."
    if ending.startswith("undone"):
        tab.page.evaluate(HEAR_FOCUS)
        tab.page.keyboard.press("Enter" if ending == "undone" else "Control+z")
        expect(tab.find("#notice .sentence")).to_have_text("“One” is restored.")
        assert tab.get("focused") == ["textarea"], "it goes there at once"
        expect(tab.find("#document textarea")).to_be_focused()
        assert sorted(tab.names()) == ["One", "Two"]
        return
    if ending == "closed":
        tab.page.keyboard.press("Tab")
        tab.page.keyboard.press("Enter")
    elif ending == "clicked":
        tab.find("#notice .dismiss").click()
    else:
        tab.page.evaluate("paper.notice('Another sentence.')")
    expect(tab.find("#document textarea")).to_be_focused()


def test_forget_everything_asks_once_and_clears_every_tab(tab: Tab) -> None:
    tab.type("A secret")
    tab.save()
    other = tab.beside(tab.url)
    other.page.wait_for_function("paper.draft.text === 'A secret'")
    tab.find("#documents").click()
    tab.find("#forget").click()
    assert tab.text == "A secret"
    tab.find("#forget-really").click()
    for opened in (tab, other):
        opened.page.wait_for_function("paper.draft.text === ''")
        assert opened.names() == ["Untitled"]
    assert tab.get("paper.draft.left.length + paper.draft.steps.length") == 0
    assert tab.get("localStorage.length + sessionStorage.length") == 0
    tab.reload()
    assert tab.text == ""


def test_a_forgotten_text_that_was_left_and_shown_again_does_not_come_back(tab: Tab) -> None:
    tab.type("A secret")
    # The page is left while the text is unsaved, and shown again by the browser's Back button.
    tab.get("dispatchEvent(new Event('pagehide'))")
    assert "A secret" in tab.get("sessionStorage.getItem('lookahead:left')")
    tab.find("#documents").click()
    tab.find("#forget").click()
    tab.find("#forget-really").click()
    tab.page.wait_for_function("paper.draft.text === ''")
    expect(tab.find("#notice .sentence")).to_have_text("Everything that this browser kept is forgotten.")
    assert tab.get("sessionStorage.length") == 0
    tab.reload()
    assert tab.text == ""


def test_a_document_in_a_second_tab_is_a_copy_and_says_so(tab: Tab) -> None:
    tab.type("Shared")
    tab.save()
    other = tab.beside(tab.url)
    other.find("#notice.said").wait_for()
    assert "open in another tab" in other.said
    assert other.find("#documents .name").inner_text() == "Shared (copy)"
    other.type(" no more")
    other.save()
    tab.type(" still")
    tab.save()
    assert tab.text == "Shared still"
    assert other.text == "Shared no more"
    assert sorted(tab.names()) == ["Shared (copy)", "Shared still"]
    tab.reload()
    assert tab.text == "Shared still"


CHANGE_ELSEWHERE = """new Promise(resolve => {
  const opening = indexedDB.open('lookahead', 1);
  opening.onsuccess = () => {
    const transaction = opening.result.transaction(['records', 'cards'], 'readwrite');
    for (const name of ['records', 'cards']) {
      const store = transaction.objectStore(name), all = store.getAll();
      const theirs = {text: 'Theirs', title: 'Theirs', version: 99};
      all.onsuccess = () => all.result.forEach(found => store.put({...found, ...theirs}));
    }
    transaction.oncomplete = () => { opening.result.close(); resolve(); };
  };
})"""
"""Stores a later version of each document, as another tab would."""


def test_a_document_changed_in_another_tab_is_saved_as_a_copy(tab: Tab) -> None:
    tab.type("Mine")
    tab.save()
    tab.get(CHANGE_ELSEWHERE)
    tab.type(" too")
    tab.save()
    assert tab.text == "Mine too"
    assert "was changed in another tab" in tab.said
    assert sorted(tab.names()) == ["Mine too (copy)", "Theirs"]


def test_a_copy_has_the_name_of_its_own_text_when_another_document_is_open(tab: Tab) -> None:
    tab.type("Mine")
    tab.save()
    tab.get(CHANGE_ELSEWHERE)
    tab.type(" too")
    tab.choose_new()
    tab.type("Another one")
    tab.save()
    tab.page.wait_for_function("async () => (await paper.library.list()).length === 3")
    assert sorted(tab.names()) == ["Another one", "Mine too (copy)", "Theirs"]


def test_blocked_storage_is_reported_and_the_page_works(context: Any, address: str) -> None:
    context.add_init_script(NO_STORAGE)
    tab = Tab(context.new_page(), address).open()
    assert tab.said == BLOCKED
    tab.type("Only here")
    tab.wait_until("unsaved")
    assert tab.find(".kept").inner_text() == "not saved"
    tab.find("#documents").click()
    tab.find("#new-document").click()
    tab.type("Another")
    tab.choose("Only here")
    tab.page.wait_for_function("paper.draft.text === 'Only here'")
    assert asks_before_leaving(tab)
    _, content = tab.export()
    assert json.loads(content)["text"] == "Only here"
    assert asks_before_leaving(tab), "the other document would be lost"
    tab.choose("Another", "Delete")
    expect(tab.find("#notice .sentence")).to_have_text("“Another” is deleted.")
    assert not asks_before_leaving(tab)
    assert not tab.mistakes


def test_full_storage_is_reported_until_there_is_room(context: Any, address: str) -> None:
    page = context.new_page()
    tab = Tab(page, address).open()
    tab.type("Kept")
    tab.save()
    tab.get("void (window.put = IDBObjectStore.prototype.put)")
    tab.page.evaluate(NO_ROOM)
    tab.type(" and not")
    tab.wait_until("unsaved")
    assert tab.said == FULL
    assert asks_before_leaving(tab)
    tab.get("void (IDBObjectStore.prototype.put = window.put)")
    tab.type(" yet")
    tab.wait_until("saved")
    assert tab.said == ""
    assert not asks_before_leaving(tab)
    tab.reload()
    assert tab.text == "Kept and not yet"


def test_a_refused_document_is_kept_in_memory_until_there_is_room(context: Any, address: str) -> None:
    tab = Tab(context.new_page(), address).open()
    tab.get("void (window.put = IDBObjectStore.prototype.put)")
    tab.get("""void (IDBObjectStore.prototype.put = function (record) {
      if (/Refused/.test(record.text ?? '')) throw new DOMException('No room.', 'QuotaExceededError');
      return window.put.call(this, record);
    })""")
    tab.type("Refused")
    tab.wait_until("unsaved")
    tab.choose_new()
    assert asks_before_leaving(tab)
    tab.type("Small")
    expect(tab.find("#notice .sentence")).to_have_text("Not saved: “Refused”. Open it under Documents and export it.")
    assert tab.find(".kept").get_attribute("data-state") == "unsaved"
    assert asks_before_leaving(tab)
    assert sorted(tab.names()) == ["Refused", "Small"]
    tab.choose("Refused")
    tab.page.wait_for_function("paper.draft.text === 'Refused'")
    tab.choose("Small")
    tab.page.wait_for_function("paper.draft.text === 'Small'")
    tab.get("void (IDBObjectStore.prototype.put = window.put)")
    tab.type("!")
    tab.wait_until("saved")
    assert tab.said == ""
    assert not asks_before_leaving(tab)
    tab.reload()
    assert sorted(tab.names()) == ["Refused", "Small!"]


def asks_before_leaving(tab: Tab) -> bool:
    event = "new Event('beforeunload', {cancelable: true})"
    return bool(tab.get(f"!dispatchEvent({event})"))


def test_an_export_holds_everything_and_opens_again_as_a_new_document(tab: Tab) -> None:
    tab.type("The 🙂")
    tab.accept(" saw")
    tab.page.keyboard.press("Control+z")
    tab.accept(" went")
    tab.find("#instruction-toggle").click()
    tab.find("#instruction").fill("Be brief.")
    tab.rename("My / story?")
    name, content = tab.export()
    assert name == "My story.json"
    kept = json.loads(content)
    assert kept["format"] == "lookahead"
    expected = {"name": "My / story?", "text": "The 🙂 went", "instruction": "Be brief.", "seed": 7}
    assert {key: kept[key] for key in expected} == expected
    assert kept["settings"] == {"k": 5, "depth": 5, "seed": 7}
    assert kept["model"] == "Here-135M"
    assert kept["view"] == {"branches": [{"ids": [1]}]}
    assert kept["tree"] == {"root": 0}
    assert [entry["inserted"] for entry in kept["left"]] == [" saw"]
    tab.fill("Something else")
    tab.bring("again.json", content)
    assert tab.text == "The 🙂 went"
    assert tab.find("#documents .name").inner_text() == "My / story? (copy)"
    assert tab.get("paper.instruction()") == "Be brief."
    assert tab.get("applied.at(-1)") == {"odds": "tokens", "k": 5, "depth": 5, "seed": 7}
    assert tab.get("paper.draft.spans") == [[6, 11]]
    tab.find("#undo").click()
    assert tab.text == "The 🙂"
    tab.find("#history").click()
    tab.find(".moment[data-kind=left]").click()
    assert tab.text == "The 🙂 saw"
    assert tab.get("paper.draft.hasFocus"), "what is typed next goes into the text"
    assert len(tab.names()) == 2


def test_plain_text_can_be_exported_and_imported(tab: Tab) -> None:
    tab.fill("Line one\nline two 🙂")
    name, content = tab.export("text")
    assert name.endswith(".txt")
    assert content == "Line one\nline two 🙂"
    tab.bring("notes.md", "\ufeffFirst\r\nsecond", "text/markdown")
    assert tab.text == "First\nsecond"
    assert tab.find("#documents .name").inner_text() == "notes"
    assert len(tab.names()) == 2


def test_the_authorship_of_a_document_is_imported_with_its_authors(tab: Tab) -> None:
    tab.fill("The")
    tab.accept(" sea")
    authors = "paper.draft.authors.map(({length, author}) => [length, author])"
    name, content = tab.export("authorship-json")
    assert tab.get(authors) == [[3, "typed"], [4, "chosen"]]
    tab.fill("Something else")
    tab.bring(name, content)
    assert (tab.text, tab.get("paper.draft.spans")) == ("The sea", [[3, 7]])
    assert tab.get(authors) == [[3, "typed"], [4, "chosen"]]
    assert tab.export("authorship-json")[1] == content


BAD_FILES = {
    "broken": ("x.json", b'{"format": "lookahead", "text": "ab', "broken"),
    "foreign": ("x.json", b'{"cells": []}', "not a document of Lookahead"),
    "list": ("x.json", b"[1, 2]", "not a document of Lookahead"),
    "no text": ("x.json", b'{"format": "lookahead", "text": 7}', "without a text"),
    "newer": ("x.json", b'{"format": "lookahead", "version": 99, "text": "a"}', "newer"),
    "huge": ("x.txt", b"a" * (5 * 1024 * 1024 + 1), "larger than 5 MB"),
    "not utf-8": ("x.txt", "Grüße".encode("latin-1"), "not a text in UTF-8"),
    "binary": ("x.txt", b"\x00\x01\x02", "not a text in UTF-8"),
    "empty": ("x.json", b"", "broken"),
}


@pytest.mark.parametrize("has_mouse", [True, False])
def test_the_text_of_a_file_has_the_focus_where_no_screen_keyboard_would_open(tab: Tab, has_mouse: bool) -> None:
    if not has_mouse:
        tab.get("void (window.matchMedia = query => ({matches: query === '(hover: none)'}))")
    tab.find("#import input").focus()
    tab.bring("x.txt", "The sea", "text/plain")
    assert tab.text == "The sea"
    expect(tab.find("#document textarea" if has_mouse else "#import input")).to_be_focused()


def test_the_words_of_another_document_are_counted_in_the_moment_in_which_it_is_opened(tab: Tab) -> None:
    tab.type("One two three")
    tab.choose_new()
    tab.type("Four")
    expect(tab.find(".count")).to_have_text("1 word, 0 from rows")
    tab.get("""paper.draft.addEventListener('change', () => {
      requestAnimationFrame(() => { window.counted ??= document.querySelector('.count').textContent; });
    })""")
    tab.choose("One two three")
    tab.page.wait_for_function("window.counted")
    assert tab.get("window.counted") == "3 words, 0 from rows"


def test_an_unreadable_file_gets_a_sentence_and_changes_nothing(tab: Tab) -> None:
    tab.type("Mine")
    for kind, (name, content, sentence) in BAD_FILES.items():
        tab.bring(name, content, "application/json" if name.endswith("json") else "text/plain")
        assert sentence in tab.said, kind
        assert name in tab.said, kind
        assert tab.text == "Mine"
        tab.find("#notice .dismiss").click()
    assert tab.names() == ["Mine"]
    tab.page.evaluate("paper.draft.box.focus()")
    tab.bring("x.json", b"{", "application/json")
    tab.find("#notice .dismiss").wait_for()
    tab.page.evaluate("paper.draft.box.focus()")
    tab.find("#notice .dismiss").focus()
    tab.page.keyboard.press("Enter")
    assert tab.get("document.activeElement === paper.draft.box"), "the focus returns to where it came from"


def test_invalid_fields_of_a_file_are_ignored(tab: Tab) -> None:
    step = {"start": 0, "removed": "", "inserted": "Hi", "before": [0, 0], "after": [2, 2], "kind": "eval", "time": 1}
    value = {
        "format": "lookahead", "text": "Hi", "name": ["no"], "caret": -4, "spans": [[0, 99], "x", [1, 0]], "model": {},
        "history": {"steps": [step], "position": 9}, "left": [{"at": 1}, None], "settings": [1], "instruction": 5,
        "__proto__": {"polluted": 1}, "unknown": "x",
    }  # fmt: skip
    tab.bring("odd.json", json.dumps(value))
    assert tab.text == "Hi"
    assert tab.get("[paper.draft.spans, paper.draft.steps, paper.draft.left]") == [[], [], []]
    assert tab.get("paper.instruction()") is None
    assert tab.get("applied") == []
    assert tab.get("({}).polluted") is None


def test_settings_are_kept_with_the_document_and_setting_them_again_changes_nothing(tab: Tab) -> None:
    tab.type("One")
    tab.save()
    tab.get("paper.settingsChanged()")
    assert tab.get("paper.library.state") == "saved"
    tab.get("void (settings.k = 9)")
    tab.get("paper.settingsChanged()")
    tab.save()
    tab.reload()
    assert tab.get("applied") == [{"odds": "tokens", "k": 9, "depth": 5, "seed": 7}]


def test_a_file_dropped_on_the_text_opens(tab: Tab) -> None:
    tab.type("Mine")
    tab.page.evaluate(
        """() => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File(['Dropped'], 'note.txt', {type: 'text/plain'}));
          const target = document.querySelector('#document textarea');
          for (const name of ['dragover', 'drop']) {
            const event = new DragEvent(name, {dataTransfer, bubbles: true, cancelable: true});
            if (target.dispatchEvent(event)) throw new Error(name);
          }
        }"""
    )
    tab.page.wait_for_function("paper.draft.text === 'Dropped'")
    assert sorted(tab.names()) == ["Mine", "note"]


def link(tab: Tab) -> str:
    tab.find("#share").click()
    tab.page.wait_for_selector("#share-dialog[open]")
    return str(tab.find("#share-link").input_value())


def test_a_link_brings_text_settings_and_a_sentence_about_its_model(tab: Tab) -> None:
    text = "The 🙂 keeper\nسلام " + PAYLOADS[0]
    tab.fill(text)
    tab.find("#instruction-toggle").click()
    tab.find("#instruction").fill("Be brief.")
    tab.save()
    address = link(tab)
    assert address.startswith(tab.url + "#t=")
    other = tab.beside(address)
    assert other.text == text
    assert other.get("location.hash") == ""
    assert other.get("applied.at(-1)") == {"odds": "tokens", "k": 5, "depth": 5, "seed": 7}
    assert other.said == "The link is open, as a document of its own. It was made with the same model."
    assert other.find("#offer-dialog .offered").inner_text() == "Be brief."
    assert other.get("paper.instruction()") is None, "it is shown before it is used"
    other.find("#offer-use").click()
    assert other.get("paper.instruction()") == "Be brief."
    other.save()
    assert len(other.names()) == 2
    other.reload()
    assert other.text == text
    assert other.get("paper.instruction()") == "Be brief."
    assert tab.text == text


def test_a_long_text_of_a_link_begins_in_sight_and_ends_in_sight_once_it_is_written_on(
    context: Any, address: str
) -> None:
    text = "\n".join(f"Line {number}" for number in range(60))
    tab = Tab(context.new_page(), address).open(pack({"text": text}))
    tab.page.wait_for_function("paper.draft.text.startsWith('Line 0')")
    tab.page.wait_for_timeout(500)
    box = tab.page.locator("#document textarea")
    assert box.evaluate("box => [box.scrollTop, box.scrollHeight > 2 * box.clientHeight]") == [0, True]
    sign = "box => getComputedStyle(box.parentElement, '::after').content"
    assert "…" in box.evaluate(sign), "the text goes on below"
    box.press("Control+End")
    box.press("x")
    tab.page.wait_for_timeout(300)
    assert box.evaluate(sign) == "none"
    assert box.evaluate("box => box.scrollHeight - box.clientHeight - box.scrollTop") <= 1


def test_the_instruction_of_a_link_can_be_declined(context: Any, address: str) -> None:
    tab = Tab(context.new_page(), address).open(pack({"text": "Hi", "instruction": PAYLOADS[0], "model": "There-1B"}))
    assert tab.find("#offer-dialog .offered").inner_text() == PAYLOADS[0]
    tab.find("#offer-leave").click()
    assert tab.get("paper.instruction()") is None
    assert "made with There-1B; here Here-135M goes on with it" in tab.said


@pytest.mark.parametrize("model", ["Here-135M", "There-1B"])
def test_the_model_of_a_link_is_named_once_the_page_knows_its_own(tab: Tab, model: str) -> None:
    tab.page.evaluate("window.here = null")
    tab.page.evaluate("fragment => { location.hash = fragment; }", pack({"text": "Theirs", "model": model}))
    tab.page.wait_for_function("paper.draft.text === 'Theirs'")
    assert tab.said == "The link is open, as a document of its own."
    tab.page.evaluate("() => { window.here = 'Here-135M'; document.dispatchEvent(new Event('lookahead:ready')); }")
    assert ("made with the same model" in tab.said) == (model == "Here-135M")
    assert ("made with There-1B; here Here-135M goes on" in tab.said) == (model == "There-1B")


def test_a_link_put_into_the_address_of_an_open_page_opens_too(tab: Tab) -> None:
    tab.type("Mine")
    tab.page.evaluate("fragment => { location.hash = fragment; }", pack({"text": "Theirs"}))
    tab.page.wait_for_function("paper.draft.text === 'Theirs' && location.hash === ''")
    assert sorted(tab.names()) == ["Mine", "Theirs (from a link)"]


HOSTILE = {
    "no base64": ("#t=%%%", "broken"),
    "cut": (pack({"text": "The old lighthouse keeper climbed the stairs"})[:-9], "broken"),
    "noise": ("#t=AAAAAAAA", "broken"),
    "nothing": ("#t=", "broken"),
    "no json": (pack_bytes(b"hello"), "broken"),
    "no utf-8": (pack_bytes(b'{"text": "\xff"}'), "broken"),
    "a bomb": (pack({"text": "a" * 30_000_000}), "more than a text of 1 MB"),
    "huge": ("#t=" + "A" * 600_000, "more than a text of 1 MB"),
    "a list": (pack(["text"]), "no text"),
    "no text": (pack({"text": {"toString": 1}}), "no text"),
    "newer": (pack({"version": 2, "text": "a"}), "newer"),
}


def test_a_hostile_link_gets_a_sentence_and_changes_nothing(context: Any, address: str) -> None:
    tab = Tab(context.new_page(), address)
    for kind, (fragment, sentence) in HOSTILE.items():
        tab.page.goto("about:blank")
        tab.open(fragment)
        assert sentence in tab.said, kind
        assert tab.text == ""
        assert tab.get("location.hash") == ""
        assert tab.names() == ["Untitled"]
    assert not tab.mistakes


def test_invalid_settings_of_a_link_are_ignored(context: Any, address: str) -> None:
    packed = pack({"text": "Hi", "settings": ["k"], "seed": "x", "instruction": 9, "model": [1]})
    tab = Tab(context.new_page(), address).open(packed)
    assert tab.text == "Hi"
    assert tab.get("applied") == []
    assert tab.get("document.querySelector('#offer-dialog').open") is False


def test_the_instruction_of_a_file_is_shown_before_it_is_used_unless_it_is_known_here(tab: Tab) -> None:
    def bring(instruction: str, **more: Any) -> None:
        document = {"format": "lookahead", "version": 1, "text": "Hi", "instruction": instruction, "instructed": True}
        file = {"name": "a.json", "mimeType": "application/json", "buffer": json.dumps({**document, **more}).encode()}
        tab.page.set_input_files("#import input", file)

    opened = "document.querySelector('#offer-dialog').open"
    bring("Be brief.")
    tab.page.wait_for_function(opened)
    assert tab.find("#offer-dialog .offered").inner_text() == "Be brief."
    assert tab.get("paper.instruction()") is None, "it is shown before it is used"
    tab.find("#offer-leave").click()
    assert tab.get("paper.instruction()") is None
    bring("Be brief.")
    tab.page.wait_for_function(opened)
    tab.find("#offer-use").click()
    assert tab.get("paper.instruction()") == "Be brief."
    bring("Be brief.", text="Another")
    tab.page.wait_for_function("paper.draft.text === 'Another'")
    assert tab.get(opened) is False, "this browser has that instruction already"
    assert tab.get("paper.instruction()") == "Be brief."
    bring("Be long.", instructed=False, text="A third")
    tab.page.wait_for_function("paper.draft.text === 'A third'")
    assert (tab.get(opened), tab.get("paper.instruction()")) == (False, None), "it is not in force"


def test_a_text_too_long_for_a_link_is_offered_as_a_file(tab: Tab) -> None:
    dice = random.Random(0)
    tab.fill(" ".join(str(dice.randrange(100_000)) for _ in range(6000)))
    assert link(tab) == ""
    assert "Send a file instead" in tab.find("#share-dialog .over").inner_text()
    with tab.page.expect_download() as download:
        tab.find("#share-file").click()
    assert download.value.suggested_filename.endswith(".json")


def test_the_link_says_who_can_open_it(tab: Tab) -> None:
    tab.type("Hi")
    link(tab)
    sentence = tab.find("#share-dialog .over .sentence").inner_text()
    assert sentence.startswith("Only this computer can open this link."), "what it means comes first"
    assert re.search("a file.*, or ask the person who runs this page", sentence)
    assert "python" not in sentence, "a visitor need not know commands"
    assert tab.find("#share-link").is_visible() and tab.find("#share-file").is_visible()
    tab.page.keyboard.press("Escape")
    tab.get("window.address = 'https://example.org/space/'")
    assert link(tab).startswith("https://example.org/space/#t=")
    assert tab.find("#share-dialog .over").is_hidden() and tab.find("#share-dialog details").is_hidden()
    found = tab.page.evaluate(
        importing("""async hosts => {
          const {publicAddress} = await import('/lookahead/web/core/public_address.js');
          return hosts.map(host => publicAddress(new URL(`http://${host}:7860/?a=1#t=x`)).sentence.slice(0, 9));
        }"""),
        ["localhost", "127.3.2.1", "[::1]", "0.0.0.0", "192.168.0.7", "127.example.org", "user.hf.space"],
    )
    assert found == ["Only this"] * 4 + ["Only comp", "", ""]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_text_is_never_executed(tab: Tab, payload: str) -> None:
    tab.fill(payload)
    tab.accept(payload)
    tab.page.keyboard.press("Control+z")
    tab.accept(payload)
    tab.page.evaluate("payload => paper.ghost(payload)", payload)
    tab.find("#instruction-toggle").click()
    tab.find("#instruction").fill(payload)
    tab.rename(payload)
    _, content = tab.export()
    tab.bring("payload.json", content.replace('"payload"', '"x"'))
    assert tab.text == payload * 2
    tab.find("#history").click()
    assert tab.find(".moment").count() == 2
    tab.page.keyboard.press("Escape")
    tab.page.evaluate("payload => paper.notice(payload, {label: payload, run() {}})", payload)
    assert tab.find("#notice .sentence").text_content() == payload
    assert tab.get("document.querySelectorAll('img, svg, script').length") == 0
    named = tab.get("[...document.querySelectorAll('#documents .name')].map(name => name.textContent)")
    assert named == [f"{payload} (copy)"], "the document of that name is in this browser too"


def test_the_instruction_belongs_to_the_document_and_is_sent(tab: Tab) -> None:
    tab.page.evaluate(
        """() => {
          window.told = [];
          paper.draft.addEventListener('instruction', event => told.push(event.detail.instruction));
        }"""
    )
    tab.type("One")
    tab.find("#instruction-toggle").click()
    assert tab.get("paper.instruction()") is None, "an empty one is none"
    tab.find("#instruction").fill("Be brief.")
    tab.page.wait_for_function("told.at(-1) === 'Be brief.'")
    tab.find("#as-is").click()
    assert tab.get("[paper.instruction(), told.at(-1)]") == [None, None]
    tab.find("#instruction-toggle").click()
    assert tab.get("paper.instruction()") == "Be brief."
    tab.find("#documents").click()
    tab.find("#new-document").click()
    assert tab.get("paper.instruction()") is None
    tab.choose("One")
    tab.page.wait_for_function("paper.instruction() === 'Be brief.'")


def test_marks_and_ghost_text_align_with_the_text(tab: Tab) -> None:
    words = "The old lighthouse keeper climbed the stairs once more and then "
    tab.fill(words * 2)
    tab.accept("and looked")
    tab.fill(tab.text + "")
    tab.page.evaluate("() => { paper.draft.load({text: 'abc def', spans: [[3, 7]]}); paper.ghost(' ghi'); }")
    tab.page.wait_for_selector("#document textarea[data-ghost=shown]")
    assert tab.find(".mirror .chosen").inner_text() == "def"
    assert tab.find(".mirror .ghost").text_content() == " ghi"
    assert tab.get("paper.ghostShown")
    tab.page.evaluate("paper.ghost('.\\n\\n')")
    tab.page.wait_for_function("document.querySelector('.mirror .ghost').textContent === '.↵↵'")
    tab.find("#document textarea").focus()
    tab.page.keyboard.press("Home")
    tab.page.wait_for_selector("#document textarea[data-ghost='']")
    assert not tab.get("paper.ghostShown")
    tab.page.keyboard.press("End")
    tab.page.wait_for_selector("#document textarea[data-ghost=shown]")
    tab.type("!")
    assert not tab.get("paper.ghostShown"), "after a change it is for another text"


@pytest.mark.parametrize("text", ["word " * 90, "a\n" * 30, "مرحبا بالعالم " * 40, "中文字符" * 120, "x" * 400 + "\n"])
def test_the_mirror_breaks_lines_where_the_text_box_does(tab: Tab, text: str) -> None:
    tab.page.evaluate("text => paper.draft.load({text, spans: [[3, 9]]})", text)
    tab.page.wait_for_function("text => document.querySelector('.mirror-page').textContent.startsWith(text)", arg=text)
    heights = """(() => {
      const box = document.querySelector('#document textarea'), page = document.querySelector('.mirror-page');
      return [box.scrollHeight, Math.max(box.clientHeight, page.offsetHeight)];
    })()"""
    box, mirror = tab.get(heights)
    assert box == mirror


def test_a_word_that_just_fits_is_on_the_same_line_in_the_mirror_and_in_the_text_box(tab: Tab) -> None:
    sentence = "Mara found the key and the two"
    tab.page.evaluate("text => paper.draft.load({text})", " ".join([sentence] * 12))
    lines = tab.page.evaluate(
        """async sentence => {
          const box = document.querySelector('#document textarea'), page = document.querySelector('.mirror-page');
          const {font, paddingLeft, paddingRight} = getComputedStyle(box);
          const probe = Object.assign(document.createElement('span'), {textContent: sentence});
          Object.assign(probe.style, {position: 'absolute', whiteSpace: 'pre', font});
          document.body.append(probe);
          const fits = probe.getBoundingClientRect().width + parseFloat(paddingLeft) + parseFloat(paddingRight);
          const found = [];
          Object.assign(box.style, {minHeight: '0', maxHeight: 'none', overflow: 'hidden'});
          for (const more of [-0.4, -0.1, 0.1, 0.4, 0.6, 0.9]) {
            box.style.width = `${fits + more}px`;
            for (let frame = 0; frame < 4; frame += 1) await new Promise(requestAnimationFrame);
            found.push([box.scrollHeight, page.offsetHeight]);
          }
          return found;
        }""",
        sentence,
    )
    assert len({box for box, _ in lines}) > 1, "with some of these widths the last word is on the next line"
    assert [box for box, _ in lines] == [mirror for _, mirror in lines]


def test_a_very_long_text_is_typed_without_delay(tab: Tab) -> None:
    tab.page.evaluate("text => paper.draft.load({text})", ("The keeper saw a ship. " * 40 + "\n") * 1000)
    tab.find("#document textarea").focus()
    tab.page.keyboard.press("Control+End")
    spent = tab.page.evaluate(
        """() => {
          const start = performance.now();
          for (let turn = 0; turn < 20; turn += 1) document.execCommand('insertText', false, 'x');
          return (performance.now() - start) / 20;
        }"""
    )
    assert tab.text.endswith("\n" + "x" * 20)
    assert spent < 200
    assert tab.get("document.querySelector('.mirror').textContent.length") < 30_000


def test_words_and_chosen_words_are_counted_in_any_script(tab: Tab) -> None:
    tab.fill("The old lighthouse keeper climbed the stairs")
    tab.accept(" for the last time.")
    tab.type(" At the top he")
    tab.find(".count").get_by_text("15 words, 4 from rows").wait_for()
    assert tab.find(".strip .of-chosen").count() == 1
    tab.fill("中文 и ещё don't")
    tab.find(".count").get_by_text("5 words, 0 from rows").wait_for()


def test_every_target_is_large_enough_and_the_toolbar_fits_a_phone(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 360, "height": 740})
    tab.type("Hi")
    assert tab.find("#share").is_hidden()
    tab.find("#more").click()
    tab.find("#share").wait_for()
    small = """[...document.querySelectorAll('.sheet button:not(.skip), #import')].filter(one => {
      if (!one.checkVisibility()) return false;
      const box = one.getBoundingClientRect();
      return box.width < 24 || box.height < 24 || box.right > innerWidth;
    }).map(one => one.id)"""
    assert tab.get(small) == []
    assert tab.get("document.documentElement.scrollWidth") <= 360


def test_the_text_can_be_copied(tab: Tab) -> None:
    tab.fill("Take this")
    tab.get("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    tab.find("#copy").click()
    tab.page.wait_for_function("document.querySelector('#notice .sentence').textContent === 'The text is copied.'")
    tab.find("#document textarea").focus()
    tab.page.keyboard.press("Control+End")
    tab.page.keyboard.press("Control+v")
    assert tab.text == "Take thisTake this"
