"""The whole page keeps texts through reloads, restarts, errors, other tabs, files and links."""

from __future__ import annotations

import json
import multiprocessing
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from interface.server.error_sentences import UNEXPECTED
from lookahead_core import Model
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit, expect
from tests.support.witness import around, packed, rows_of, talker, unpacked

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BLOCKED = "Not saved: this browser keeps nothing here. Export before you leave."
FULL = "Not saved: the browser's storage is full. Export now."
SILENT = "The server does not answer. Your text is safe here; trying again …"
SIGNED_OUT = "You are no longer signed in. Reload the page and sign in; your text is kept."
NO_STORAGE = """for (const name of ['indexedDB', 'localStorage', 'sessionStorage']) {
  Object.defineProperty(window, name, {get() { throw new DOMException('Denied.', 'SecurityError'); }});
}"""
NO_ROOM = "IDBObjectStore.prototype.put = () => { throw new DOMException('No room.', 'QuotaExceededError'); };"
GIVEN_UP = """const put = IDBObjectStore.prototype.put;
addEventListener('pageshow', () => { IDBObjectStore.prototype.put = put; });
addEventListener('pagehide', () => {
  IDBObjectStore.prototype.put = () => { throw new DOMException('Gone.', 'AbortError'); };
});"""
TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
TEXT = "The old keeper"


def chatty() -> Model:
    """A talker that takes instructions."""
    model = talker()
    model.tokenizer.chat_template = TEMPLATE
    return model


@dataclass
class Faulty:
    """A talker whose model fails at the pass that a test names, counted from then on, in forked workers too."""

    model: Model = field(default_factory=chatty)
    passes_left: Any = field(default_factory=lambda: multiprocessing.Value("d", float("inf")))

    @property
    def until(self) -> float:
        return float(self.passes_left.value)

    def load(self, report: Callable[..., None]) -> Model:
        return around(self.model, self.count)

    def fail_at(self, number: int, visit: Visit) -> None:
        """At this pass of what comes next: nothing more is prefetched, in a forked worker neither."""
        visit.wait_until_prefetched()
        self.passes_left.value, before = 1e9, 0.0
        while before != (before := self.until):
            visit.page.wait_for_timeout(500)
        self.passes_left.value = number

    def wait_until_failed(self, visit: Visit) -> None:
        for _ in range(PATIENCE // 50):
            if self.until <= 0:
                return browsers.wait_until_idle()
            visit.page.wait_for_timeout(50)
        raise AssertionError("Nothing has failed.")

    def count(self) -> None:
        with self.passes_left.get_lock():
            self.passes_left.value -= 1
            fails = self.passes_left.value == 0
        if fails:
            raise RuntimeError("inner workings")


@pytest.fixture(scope="module")
def faulty() -> Faulty:
    return Faulty()


@pytest.fixture(scope="module")
def url(browser: Any, faulty: Faulty) -> Iterator[str]:
    with browsers.page_of(faulty.load) as started:
        yield started


@pytest.fixture
def person(browser: Any) -> Iterator[Any]:
    """A browser of one person, with storage of its own."""
    made = browser.new_context()
    made.set_default_timeout(PATIENCE)
    yield made
    made.close()


@pytest.fixture
def visit(page: Any, url: str) -> Iterator[Visit]:
    with browsers.visit_again(page, url) as opened:
        until_there(opened)
        yield opened


def until_there(visit: Visit) -> None:
    """The page has its model, and its scripts have run."""
    visit.wait_for_status("ready")
    visit.page.wait_for_selector("#branches [data-branch]", timeout=PATIENCE)


def write(visit: Visit, text: str = TEXT) -> None:
    visit.fill(text)
    visit.wait_until_settled()
    saved(visit)


def saved(visit: Visit) -> None:
    visit.page.wait_for_selector(".kept[data-state=saved]")


def told(visit: Visit) -> str:
    """What the notice says."""
    visit.page.wait_for_selector("#notice.said")
    return str(visit.page.locator("#notice .sentence").inner_text())


def said(visit: Visit) -> list[str]:
    """What the rows say."""
    return ["".join(visit.pieces(branch)) for branch in range(visit.rows)]


def names(visit: Visit) -> list[str]:
    visit.page.locator("#documents").click()
    visit.page.wait_for_selector("#documents-dialog[open]")
    found = visit.page.locator(".shelf .open .name").all_inner_texts()
    visit.page.keyboard.press("Escape")
    return list(found)


def switch_to(visit: Visit, name: str) -> None:
    visit.page.locator("#documents").click()
    visit.page.locator(".shelf .open").filter(has_text=name).first.click()
    visit.page.wait_for_selector("#documents-dialog:not([open])", state="attached")


def bring(visit: Visit, name: str, content: bytes) -> None:
    kind = "application/json" if name.endswith("json") else "text/plain"
    visit.page.locator("#import input[type=file]").set_input_files({"name": name, "mimeType": kind, "buffer": content})
    visit.page.wait_for_function("document.querySelector('#import input').value === ''")


def export(visit: Visit) -> dict[str, Any]:
    visit.page.locator("#export").click()
    with visit.page.expect_download() as download:
        visit.page.locator("#formats-dialog [data-format=all]").click()
    return dict(json.loads(Path(download.value.path()).read_text(encoding="utf-8")))


def set_control(visit: Visit, name: str, value: str) -> None:
    control = visit.control(name)
    if control.evaluate("one => one.tagName") == "SELECT":
        control.select_option(value)
    else:
        control.fill(value)


def get_controls(visit: Visit) -> dict[str, str]:
    wanted = ("k", "depth", "mode", "length", "temperature", "top-p", "order", "seed")
    return {name: visit.page.locator(f"#{name}").input_value() for name in wanted}


# Reloads and restarts


def test_after_a_reload_text_history_settings_and_branches_are_restored(visit: Visit) -> None:
    set_control(visit, "k", "3")
    write(visit)
    visit.token(1, 0).click()
    accepted = visit.text
    visit.wait_until_settled()
    visit.page.reload()
    until_there(visit)
    visit.wait_until_settled()
    assert visit.text == accepted
    assert said(visit) == rows_of(talker(), accepted, k=3)
    visit.page.locator("#undo").click()
    assert visit.text == TEXT
    visit.wait_until_settled()
    assert said(visit) == rows_of(talker(), TEXT, k=3)


NEVER_STORED = """() => {
  const {put} = IDBObjectStore.prototype;
  IDBObjectStore.prototype.put = function (...values) {
    const request = put.apply(this, values);
    const keepOpen = () => { try { this.get('nothing').onsuccess = keepOpen; } catch { /* committed */ } };
    keepOpen();
    return request;
  };
}"""
"""Keeps every transaction open that stores something: a reload aborts it."""


def test_a_reload_while_the_text_is_being_stored_loses_nothing(visit: Visit) -> None:
    write(visit)
    visit.page.wait_for_selector(".kept[data-state=saved]")
    visit.page.evaluate(NEVER_STORED)
    visit.type(" waited")
    visit.page.wait_for_selector(".kept[data-state=saving]")
    visit.page.wait_for_timeout(1500)
    visit.page.reload()
    until_there(visit)
    assert visit.text == f"{TEXT} waited"


def test_a_write_that_the_browser_gives_up_at_leaving_is_made_up_for_and_makes_no_copy(person: Any, url: str) -> None:
    person.add_init_script(GIVEN_UP)
    with browsers.visit(person, url) as visit:
        until_there(visit)
        write(visit)
        visit.type("!")
        visit.page.reload()
        until_there(visit)
        assert visit.text == f"{TEXT}!"
    with browsers.visit(person, url) as visit:
        until_there(visit)
        assert visit.text == f"{TEXT}!"
        visit.type("?")
        visit.page.reload()
        until_there(visit)
        visit.type("!")
        saved(visit)
        visit.page.wait_for_timeout(500)
        assert visit.text == f"{TEXT}!?!"
        visit.type(".")
        # The page is left, and shown again by the browser's Back button.
        visit.page.evaluate("for (const name of ['pagehide', 'pageshow']) dispatchEvent(new Event(name))")
        saved(visit)
        assert names(visit) == [f"{TEXT}!?!."]


def test_a_reload_inside_a_word_loses_no_key(visit: Visit) -> None:
    visit.type("The old kee", delay=5)
    visit.page.reload()
    until_there(visit)
    assert visit.text == "The old kee"
    visit.wait_until_settled()


@pytest.mark.parametrize("open_tab", ["Write", "Highlights"])
def test_keys_pressed_while_the_page_loads_again_are_for_the_open_tab(visit: Visit, open_tab: str) -> None:
    write(visit)
    saved(visit)
    visit.open_tab(open_tab)
    held: list[Any] = []
    visit.page.route("**/assets/*.js", lambda route: held.append(route), times=1)  # Gradio's own, which draws the page
    visit.page.reload(wait_until="commit")
    visit.page.wait_for_function("typeof earlyKeys === 'function'")
    visit.page.keyboard.type(" saw Xx")
    for key in ("Backspace", "Backspace", "Control+b", "Shift", "Enter", "I"):
        visit.page.keyboard.press(key)
    for route in held:
        route.continue_()
    visit.page.wait_for_function(browsers.STARTED)
    expect(visit.page.get_by_role("tab", name=open_tab, exact=True)).to_have_attribute("aria-selected", "true")
    expect(visit.page.locator("#document textarea")).to_have_value(TEXT + (" saw \nI" if open_tab == "Write" else ""))


FIELDS = {
    "Rewrite": ("rewrite", "#rewrite-source"),
    "Highlights": ("highlights", "#highlights-text"),
    "Type assistant": ("assistant", "#chat-text"),
    "Internals": ("internals", "#internals-text"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_what_is_typed_after_a_reload_before_the_script_of_a_tab_starts_follows_the_text_there(
    visit: Visit, name: str
) -> None:
    script, field = FIELDS[name]
    page, box = visit.page, visit.page.locator(field)
    visit.open_tab(name)
    box.fill(TEXT)
    held: list[Any] = []
    page.route(f"**/tabs/{script}/{script}.js", lambda route: held.append(route))
    page.reload(wait_until="commit")
    tab = page.get_by_role("tab", name=name, exact=True)
    tab.wait_for()
    if not box.is_visible():
        tab.click()
    box.focus()
    page.keyboard.type(" saw")
    expect(box).to_have_value(" saw")
    for route in held:
        route.continue_()
    page.unroute_all()
    expect(box).to_have_value(f"{TEXT} saw")
    page.keyboard.type("!")
    expect(box).to_have_value(f"{TEXT} saw!")


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made model as files, which a process of its own can load."""
    folder = tmp_path_factory.mktemp("talker")
    model = talker()
    model.hf_model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


def test_a_restarted_server_continues_the_same_text(person: Any, model_folder: Path, tmp_path: Path) -> None:
    port, arguments = browsers.free_port(), ("--model", str(model_folder), "--dtype", "float32")
    with browsers.app(tmp_path / "first", *arguments, port=port) as first:
        page = person.new_page()
        page.goto(first.url)
        visit = Visit(page)
        until_there(visit)
        write(visit)
        visit.token(1, 1).click()
        visit.wait_until_settled()
        accepted = visit.text
    visit.type(" and on")
    assert visit.wait_for_status("error").strip() == SILENT
    assert visit.text == accepted + " and on"
    for _ in range(2):  # it asks again, and the text stays
        asked = lambda request: '"ask"' in (request.post_data or "")  # noqa: E731
        visit.page.wait_for_event("requestfailed", asked, timeout=PATIENCE)
    assert visit.text == accepted + " and on"
    with browsers.app(tmp_path / "second", *arguments, port=port) as second:
        second.wait_for("Ready")
        visit.wait_until_settled()
        visit.wait_for_status("ready")
        assert visit.text == accepted + " and on"
        assert said(visit) == rows_of(talker(), accepted + " and on")
        visit.type("!")
        visit.wait_until_settled()
        assert visit.text == accepted + " and on!"
        assert "Traceback" not in second.said


def test_a_server_that_has_forgotten_a_sign_in_says_so_and_the_text_is_kept(
    person: Any, model_folder: Path, tmp_path: Path
) -> None:
    port, arguments = (
        browsers.free_port(),
        ("--model", str(model_folder), "--dtype", "float32", "--auth", "anna:secret"),
    )
    page = person.new_page()
    with browsers.app(tmp_path / "first", *arguments, port=port) as first:
        page.goto(first.url)
        visit = sign_in(page)
        until_there(visit)
        write(visit)
        visit.wait_until_settled()
    with browsers.app(tmp_path / "second", *arguments, port=port) as second:
        second.wait_for("Ready")
        visit.type(" and on")
        page.locator("#status .sentence", has_text=SIGNED_OUT).wait_for()
        assert visit.text == TEXT + " and on"
        page.reload()
        visit = sign_in(page)
        until_there(visit)
        visit.wait_until_settled()
        assert visit.text == TEXT + " and on"


def sign_in(page: Any) -> Visit:
    """Sign in on the page of an app with accounts."""
    page.get_by_label("username").fill("anna")
    page.get_by_label("password").fill("secret")
    page.get_by_role("button", name="Login").click()
    return Visit(page)


def test_the_page_waits_for_a_restarted_servers_model_and_shows_its_progress(visit: Visit) -> None:
    write(visit)
    loading = [{"state": "downloading", "sentence": "Downloading it", "fraction": 0.5}]
    visit.page.route("**/component_server/", lambda route: answer(route, loading))
    visit.fill(TEXT + " saw")
    assert visit.wait_for_status("downloading").strip() == "Downloading it"
    assert "when the model is ready" in visit.page.locator("#branches .note").inner_text()
    loading.clear()
    visit.wait_until_settled()
    visit.wait_for_status("ready")
    assert said(visit) == rows_of(talker(), TEXT + " saw")


def answer(route: Any, loading: list[Any]) -> None:
    """In place of a server that has no model, as long as there is something to say of it."""
    body = json.loads(route.request.post_data)
    if body["fn_name"] != "ask" or not loading:
        return route.fallback()
    given = {name: body["data"][name] for name in ("number", "revision")}
    return route.fulfill(json=given | {"state": "waiting", "over": True, "loading": loading[0]})


# Mistakes of the model


def test_a_failing_model_leaves_the_text_and_the_next_edit_works(visit: Visit, faulty: Faulty) -> None:
    write(visit)
    faulty.fail_at(3, visit)
    visit.fill(TEXT + " saw")
    assert visit.wait_for_status("error").strip() == UNEXPECTED
    visit.wait_for_view("error")
    assert visit.text == TEXT + " saw"
    assert faulty.until <= 0
    visit.type(" it")
    visit.wait_until_settled()
    visit.wait_for_status("ready")
    assert visit.text == TEXT + " saw it"
    assert said(visit) == rows_of(talker(), TEXT + " saw it")


def test_an_error_in_prefetching_is_not_shown(visit: Visit, faulty: Faulty) -> None:
    set_control(visit, "depth", "1")
    write(visit)
    faulty.fail_at(3, visit)  # after the one pass of the text itself
    visit.fill(TEXT + " saw")
    visit.wait_until_settled()
    faulty.wait_until_failed(visit)
    visit.wait_until_asked()
    assert visit.page.locator("#status").get_attribute("data-state") == "ready"
    chosen = visit.pieces(4)[0]
    visit.token(4, 0).click()
    visit.wait_until_settled()
    assert visit.text == TEXT + " saw" + chosen


# Storage


def test_blocked_storage_gets_a_sentence_and_everything_else_works(person: Any, url: str) -> None:
    person.add_init_script(NO_STORAGE)
    with browsers.visit(person, url) as visit:
        until_there(visit)
        assert told(visit) == BLOCKED
        visit.fill(TEXT)
        visit.wait_until_settled()
        chosen = visit.pieces(0)[0]
        visit.token(0, 0).click()
        visit.wait_until_settled()
        assert visit.text == TEXT + chosen
        assert told(visit) == BLOCKED
        assert visit.page.locator(".kept").get_attribute("data-state") == "unsaved"
        assert export(visit)["text"] == TEXT + chosen
        assert visit.text == TEXT + chosen


def test_full_storage_gets_a_sentence_and_everything_else_works(person: Any, url: str) -> None:
    person.add_init_script(NO_ROOM)
    with browsers.visit(person, url) as visit:
        until_there(visit)
        visit.fill(TEXT)
        assert told(visit) == FULL
        visit.wait_until_settled()
        with visit.page.expect_download() as download:
            visit.page.locator("#notice .action").click()
        assert TEXT in Path(download.value.path()).read_text(encoding="utf-8")
        visit.token(0, 0).click()
        visit.wait_until_settled()
        assert visit.text.startswith(TEXT + " ")


def test_a_document_in_a_second_tab_is_a_copy_and_both_are_kept(visit: Visit, url: str) -> None:
    write(visit)
    with browsers.visit(visit.page.context, url) as other:
        other.wait_for_status("ready")
        assert told(other) == f"“{TEXT}” is open in another tab, so this is a copy of it."
        assert other.text == TEXT
        other.wait_until_settled()
        for opened, words in ((visit, " here"), (other, " there")):
            opened.type(words)
            opened.wait_until_settled()
            saved(opened)
        assert (visit.text, other.text) == (TEXT + " here", TEXT + " there")
        visit.page.reload()
        until_there(visit)
        assert visit.text == TEXT + " here"
        assert sorted(names(visit)) == [f"{TEXT} (copy)", f"{TEXT} here"]
        assert other.text == TEXT + " there"


# Files

BAD_FILES = {
    "broken.json": (b'{"format": "lookahead", "text": "ab', "is broken: it is not whole JSON"),
    "foreign.json": (b'{"cells": [], "text": "no"}', "not a document of Lookahead"),
    "huge.json": (b'{"format": "lookahead", "text": "' + b"a" * (5 * 1024 * 1024) + b'"}', "larger than 5 MB"),
    "huge.txt": (b"a" * (5 * 1024 * 1024 + 1), "larger than 5 MB"),
    "picture.txt": (b"\x89PNG\r\n\x1a\n\x00\x00\x00", "not a text in UTF-8"),
    "deep.json": (b"[" * 200_000, "is broken"),
}


def test_a_broken_huge_or_foreign_file_gets_a_sentence_and_changes_nothing(visit: Visit) -> None:
    write(visit)
    rows = said(visit)
    for name, (content, sentence) in BAD_FILES.items():
        bring(visit, name, content)
        assert sentence in told(visit)
        assert name in told(visit)
        visit.page.locator("#notice .dismiss").click()
        assert visit.text == TEXT
        assert said(visit) == rows
    assert names(visit) == [TEXT]
    visit.type(" saw")
    visit.wait_until_settled()


def test_a_file_of_a_long_text_opens_and_shows_where_the_models_context_begins(visit: Visit) -> None:
    text = "The old keeper climbed the stairs. " * 900
    bring(visit, "long.txt", text.encode())
    visit.wait_until_settled()
    assert visit.text == text
    assert "The model reads from character" in visit.page.locator("#branches .note").inner_text()


def test_an_export_restores_text_history_settings_and_seed_elsewhere(visit: Visit, browser: Any, url: str) -> None:
    choices = {"mode": "sampled", "k": "4", "depth": "3", "temperature": "0.8", "top-p": "0.9", "seed": "42"}
    for name, value in choices.items():
        set_control(visit, name, value)
    write(visit)
    for branch in (0, 1):
        visit.token(branch, 0).click()
        visit.wait_until_settled()
    visit.page.locator("#undo").click()
    visit.wait_until_settled()
    text, rows, controls = visit.text, said(visit), get_controls(visit)
    file = export(visit)
    assert (file["text"], file["seed"]) == (text, 42)
    assert file["settings"]["k"] == 4
    assert file["model"] and file["view"]["branches"] and file["tree"]["trunk"]
    elsewhere = browser.new_context()
    with browsers.visit(elsewhere, url) as other:
        until_there(other)
        other.fill("Not to be touched")
        saved(other)
        bring(other, "brought.json", json.dumps(file).encode())
        other.wait_until_settled()
        assert (other.text, said(other), get_controls(other)) == (text, rows, controls)
        assert get_controls(other).items() >= choices.items()
        other.page.locator("#redo").click()
        assert other.text != text
        for _ in range(2):
            other.page.locator("#undo").click()
        assert other.text == TEXT
        assert sorted(names(other)) == ["Not to be touched", text], "a file without a name has its text's"
        bring(other, "brought.json", json.dumps(file).encode())
        other.wait_until_settled()
        assert sorted(names(other)) == ["Not to be touched", text, f"{text} (copy)"], "opened a second time"
    elsewhere.close()


# Links


def link_of(visit: Visit) -> str:
    visit.page.locator("#share").click()
    visit.page.wait_for_selector("#share-dialog[open]")
    link = str(visit.page.locator("#share-link").input_value())
    visit.page.keyboard.press("Escape")
    return link


def test_a_copied_link_and_an_exported_file_are_announced_and_the_focus_stays(visit: Visit) -> None:
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    write(visit, TEXT)
    visit.page.locator("#share").click()
    copy = visit.page.locator("#share-copy")
    copy.focus()
    visit.page.keyboard.press("Enter")
    said = "() => document.querySelector('#share-dialog [role=status]').textContent"
    visit.page.wait_for_function(f"() => ({said})() === 'The link is copied.'")
    assert copy.evaluate("one => one === document.activeElement")
    assert visit.page.evaluate("navigator.clipboard.readText()") == visit.page.locator("#share-link").input_value()
    visit.page.keyboard.press("Escape")
    export(visit)
    told = str(visit.page.locator("#notice [role=status]").text_content())
    assert told.startswith("Exported: ")
    assert told.endswith(".json.")


def test_a_link_opens_as_a_document_of_its_own_with_its_settings(visit: Visit, browser: Any, url: str) -> None:
    for name, value in {"k": "3", "depth": "7", "mode": "sampled", "seed": "77"}.items():
        set_control(visit, name, value)
    write(visit, TEXT + " 🙂\nسلام")
    link, controls, rows = link_of(visit), get_controls(visit), said(visit)
    assert link.startswith(url)
    classmate = browser.new_context()
    with browsers.visit(classmate, url) as other:
        until_there(other)
        write(other, "Of the classmate's own")
        theirs = get_controls(other)
    with browsers.visit(classmate, link) as other:
        until_there(other)
        other.wait_until_settled()
        assert other.text == TEXT + " 🙂\nسلام"
        assert get_controls(other) == controls
        assert said(other) == rows
        assert told(other).startswith("The link is open, as a document of its own. It was made with ")
        assert other.page.evaluate("location.href") == url
        other.type("!")
        saved(other)
        other.page.reload()
        until_there(other)
        assert other.text == TEXT + " 🙂\nسلام!"
        assert len(names(other)) == 2
        switch_to(other, "Of the classmate's own")
        other.page.wait_for_function("document.querySelector('#document textarea').value.startsWith('Of the')")
        assert other.text == "Of the classmate's own"
        assert get_controls(other) == theirs
        other.page.evaluate("link => { location.href = link; }", link)
        other.page.wait_for_function("document.querySelector('#document textarea').value.startsWith('The old')")
        saved(other)
        assert len(names(other)) == 3
        assert "Of the classmate's own" in names(other)
    classmate.close()
    assert visit.text == TEXT + " 🙂\nسلام"


def accepted_state(visit: Visit) -> dict[str, Any]:
    """What must not depend on how a text was opened: rows, odds, marks, and the token ids that the server is told."""
    visit.wait_until_settled()
    visit.wait_until_asked()
    asked = [given for given in visit.asked if "text" in given]
    # A slow page may send two requests for one text. Only the first one names the accepted tokens.
    page, revision = asked[-1]["page"], asked[-1]["revision"]
    request = next(given for given in asked if (given["page"], given["revision"]) == (page, revision))
    return {
        "rows": said(visit),
        "odds": visit.page.locator("#branches [data-token]").evaluate_all("all => all.map(one => one.dataset.p)"),
        "chosen": visit.page.locator(".mirror .chosen").all_text_contents(),
        "ids": [ids for _, ids, _ in request["accepted"]],
    }


def test_a_link_a_file_and_a_reload_keep_the_accepted_tokens_and_their_marks(visit: Visit, browser: Any) -> None:
    """The text ends in pieces of words, which the tokenizer would cut otherwise."""
    write(visit, TEXT)
    for _ in range(3):
        visit.token(1, 0).click()
        visit.wait_until_settled()
    link, file = link_of(visit), json.dumps(export(visit)).encode()
    saved(visit)
    visit.page.reload()
    until_there(visit)
    reloaded = accepted_state(visit)
    assert len(reloaded["ids"]) == 3
    assert reloaded["chosen"]
    with browsers.visit(browser, link) as other:
        until_there(other)
        assert accepted_state(other) == reloaded
        again = json.dumps(export(other)).encode()
    write(visit, "Something else")
    for content in (file, again):
        bring(visit, "mine.json", content)
        visit.page.wait_for_function(
            "text => document.querySelector('#document textarea').value.startsWith(text)", arg=TEXT
        )
        assert accepted_state(visit) == reloaded, "also from a file of a document that has no history"


def test_a_link_keeps_a_change_of_a_row_and_no_change_for_another_model(visit: Visit, browser: Any) -> None:
    write(visit)
    visit.page.keyboard.press("Alt+ArrowDown")
    visit.page.keyboard.press("F2")
    visit.page.locator(".row-editor").fill("never")
    visit.page.keyboard.press("Enter")
    browsers.expect(visit.page.locator("#branches [data-edited]")).not_to_have_count(0)
    visit.wait_until_settled()
    link, rows = link_of(visit), said(visit)
    with browsers.visit(browser, link) as other:
        until_there(other)
        other.wait_until_settled()
        edited = other.page.locator("#branches [data-edited]")
        browsers.expect(edited).not_to_have_count(0)
        assert said(other) == rows
        other.page.locator("#undo").click()
        browsers.expect(edited).to_have_count(0)
        foreign = packed(unpacked(link) | {"model": "Another-7B", "text": TEXT + "s"})
        other.page.evaluate("link => { location.href = link; }", foreign)
        other.page.wait_for_function("document.querySelector('#document textarea').value.endsWith('s')")
        other.wait_until_settled()
        browsers.expect(edited).to_have_count(0)


def test_the_model_of_a_link_is_named_where_another_one_is_loaded(browser: Any, visit: Visit) -> None:
    write(visit)
    here = link_of(visit)
    with browsers.visit(browser, visit.page.url) as other:
        until_there(other)  # only then the page knows which model is here
        other.page.evaluate("link => { location.href = link; }", here)
        assert told(other) == "The link is open, as a document of its own. It was made with the same model."
    with browsers.visit(browser, visit.page.url + packed(unpacked(here) | {"model": "Another-7B"})) as other:
        other.wait_for_status("ready")
        assert "It was made with Another-7B" in told(other)


def test_a_text_over_eight_kilobytes_is_offered_as_a_file(visit: Visit) -> None:
    dice = random.Random(5)
    text = " ".join("".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(2500))
    visit.fill(text)
    visit.page.locator("#share").click()
    visit.page.locator("#share-dialog .over").get_by_text("Send a file instead").wait_for()
    assert visit.page.locator("#share-link").is_hidden()
    with visit.page.expect_download() as download:
        visit.page.locator("#share-file").click()
    assert json.loads(Path(download.value.path()).read_text(encoding="utf-8"))["text"] == text
    assert visit.text == text


def test_a_link_of_this_computer_only_says_so_and_what_to_do(visit: Visit) -> None:
    write(visit)
    visit.page.locator("#share").click()
    dialog = visit.page.locator("#share-dialog")
    sentence, command = dialog.locator(".over .sentence"), dialog.locator("details code").first
    sentence.wait_for()
    assert sentence.inner_text().startswith("Only this computer can open this link.")
    assert sentence.bounding_box()["y"] < dialog.locator("#share-link").bounding_box()["y"], "it is read first"
    assert "python" not in dialog.inner_text() and not command.is_visible()
    dialog.locator("summary").click()
    assert command.inner_text() == "python app.py --share"
    with visit.page.expect_download() as download:
        visit.page.locator("#share-file").click()
    assert json.loads(Path(download.value.path()).read_text(encoding="utf-8"))["text"] == visit.text


def test_the_instruction_of_a_link_is_shown_before_it_is_sent(visit: Visit, browser: Any) -> None:
    visit.page.locator("#instruction-toggle").click()
    visit.page.locator("#instruction").fill("Speak like a pirate.")
    write(visit)
    link = link_of(visit)
    with browsers.visit(browser, link) as other:
        other.page.wait_for_selector("#offer-dialog[open]")
        assert other.page.locator(".offered").inner_text() == "Speak like a pirate."
        other.wait_for_status("ready")
        other.wait_until_settled()
        other.wait_until_asked()
        assert other.asked and "pirate" not in json.dumps(other.calls)
        assert other.text == TEXT
        with other.page.expect_request(lambda one: "Speak like a pirate." in (one.post_data or "")):
            other.page.locator("#offer-use").click()
        other.wait_until_settled()
        assert other.text == TEXT
    with browsers.visit(browser, link) as other:
        other.page.locator("#offer-leave").click()
        other.page.locator("#document textarea").press_sequentially(" saw")
        other.wait_for_status("ready")
        other.wait_until_settled()
        other.wait_until_asked()
        assert other.asked and "pirate" not in json.dumps(other.calls)
        assert other.text == TEXT + " saw"


def test_the_rows_of_a_document_go_when_another_one_is_opened(tiny: Visit) -> None:
    page, rows = tiny.page, tiny.page.locator("#branches .branch")
    tiny.type("The old keeper ")
    tiny.wait_until_settled()
    page.locator("#documents").click()
    page.locator("#new-document").click()
    tiny.type("Cats like ")
    tiny.wait_until_settled()
    expect(page.locator(".kept")).to_have_text("saved in this browser")
    page.reload()  # no rows of the first document are known any more
    tiny.wait_until_settled()
    page.locator("#documents").click()
    with browsers.requests_held(page):
        page.locator(".shelf li").filter(has_text="The old keeper").locator(".open").click()
        expect(page.locator("#document textarea")).to_have_value("The old keeper ")
        expect(rows).to_have_count(0)
        page.keyboard.press("Alt+1")
        assert tiny.text == "The old keeper "
    tiny.wait_until_settled()
    expect(rows).to_have_count(5)
