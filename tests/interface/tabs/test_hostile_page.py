"""Texts from anywhere stay text and never run; no number of clicks, keys or requests breaks the page."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lookahead_core import Model
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit
from tests.support.scripted_model import parrot
from tests.support.witness import WITNESS, packed, talker

pytestmark = pytest.mark.browser

PAYLOADS = [
    "<img src=x onerror=window.pwned=1>",
    "</script><script>window.pwned=1</script>",
    "${window.pwned=1}",
    "{{window.pwned=1}}",
    "`${window.pwned=1}`",
    "\u202eright\u202c to \u2067left\u2069\u200f",
    "</textarea><svg onload=window.pwned=1>",
    '"><iframe srcdoc="<script>parent.pwned=1</script>">',
    "javascript:window.pwned=1",
]
TEMPLATE = "{% for message in messages %}<|start|>{{ message['content'] }}<|end|>{% endfor %}"
# Every element of the kinds that the payloads spell, from now on.
MADE = """
window.made = [];
const kinds = 'img, svg, iframe, script, textarea';
new MutationObserver(changes => {
  for (const {addedNodes} of changes) {
    for (const node of addedNodes) {
      if (!node.querySelectorAll) continue;
      const found = [...node.querySelectorAll(kinds), ...(node.matches(kinds) ? [node] : [])];
      made.push(...found.map(one => one.outerHTML));
    }
  }
}).observe(document, {subtree: true, childList: true});
"""

# An image and a frame that are begun now fail and load after those that a text could have begun before.
LOADED = """async () => {
  const image = new Image(), frame = document.createElement('iframe');
  const failed = new Promise(done => { image.onerror = done; }), loaded = new Promise(done => { frame.onload = done; });
  image.src = 'data:image/png,x';
  frame.srcdoc = '<script>parent.loaded = true</script>';
  document.body.append(frame);
  await Promise.all([failed, loaded]);
  frame.remove();
  return window.loaded;
}"""


@pytest.fixture(scope="module")
def hostile_model() -> Model:
    """A model that says the payloads, each a token, in rows one after the other."""
    texts = [f"The{payload}{PAYLOADS[place - 1]} end." for place, payload in enumerate(PAYLOADS)]
    model = parrot(texts, PAYLOADS)
    model.tokenizer.chat_template = TEMPLATE
    return model


@pytest.fixture(scope="module")
def hostile_page(browser: Any, hostile_model: Model) -> Iterator[str]:
    with browsers.page_of(lambda report: hostile_model) as url:
        yield url


@pytest.fixture(scope="module")
def talking_page(browser: Any) -> Iterator[str]:
    with browsers.page_of(lambda report: talker()) as url:
        yield url


@pytest.fixture
def hostile(page: Any, hostile_page: str) -> Iterator[Visit]:
    with unharmed(page, hostile_page) as opened:
        yield opened


@pytest.fixture
def talking(page: Any, talking_page: str) -> Iterator[Visit]:
    with unharmed(page, talking_page) as opened:
        yield opened


@contextmanager
def unharmed(page: Any, url: str) -> Iterator[Visit]:
    """A visit in which nothing runs and no element comes up that a text spells, whatever is done."""
    asked: list[str] = []

    def ask(dialog: Any) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    with browsers.visit_again(page, url) as opened:
        page.on("dialog", ask)
        opened.wait_for_status("ready")
        opened.page.wait_for_selector(".cover[data-stored=true]", timeout=PATIENCE)
        opened.page.evaluate(f"() => {{ {WITNESS} {MADE} }}")
        yield opened
        assert opened.page.evaluate("made") == []
        assert opened.page.evaluate(LOADED), "a script of a frame is run here"
        page.remove_listener("dialog", ask)
        assert opened.page.evaluate("window.pwned === undefined"), "something that was text has run"
        assert asked == []


def settled(visit: Visit) -> None:
    visit.wait_until_settled()


def set_slider(visit: Visit, name: str, value: int) -> None:
    visit.page.locator(f"#{name}").fill(str(value))


def bring(visit: Visit, name: str, content: str | bytes, kind: str = "text/plain") -> None:
    buffer = content if isinstance(content, bytes) else content.encode()
    visit.page.locator("#import input[type=file]").set_input_files({"name": name, "mimeType": kind, "buffer": buffer})
    visit.page.wait_for_function("document.querySelector('#import input').value === ''")


@pytest.mark.slow
def test_typed_text_stays_exactly_as_typed(hostile: Visit) -> None:
    text = "\n".join(PAYLOADS)
    hostile.page.locator("#document textarea").focus()
    for character in text:
        hostile.page.keyboard.insert_text(character)
    assert hostile.text == text
    settled(hostile)
    assert hostile.text == text
    hostile.page.wait_for_function(
        "text => document.querySelector('.mirror-page').textContent.replace(/\\u200b/g, '').startsWith(text)", arg=text
    )


@pytest.mark.slow
def test_the_models_text_is_shown_and_inserted_as_text(hostile: Visit) -> None:
    set_slider(hostile, "k", len(PAYLOADS))
    for payload in PAYLOADS:
        hostile.fill("The")
        settled(hostile)
        rows = {hostile.pieces(branch)[0]: branch for branch in range(hostile.rows)}
        assert rows.keys() == set(PAYLOADS)
        button = hostile.token(rows[payload], 0)
        assert button.inner_text().startswith(payload)
        button.hover()
        button.click()
        assert hostile.text == "The" + payload
        settled(hostile)
    hostile.page.locator("#history").click()
    assert hostile.page.locator(".moment b").all_inner_texts()
    hostile.page.keyboard.press("Escape")


@pytest.mark.slow
def test_everything_else_and_banned_tokens_are_text(hostile: Visit) -> None:
    set_slider(hostile, "k", 1)
    hostile.fill("The")
    settled(hostile)
    hostile.page.locator("#rest .more").click()
    others = hostile.page.locator("#rest [data-rest]").evaluate_all("all => all.map(one => one.dataset.text)")
    shown = [hostile.pieces(0)[0], *others]
    assert set(PAYLOADS) <= set(shown)
    assert hostile.page.locator("#rest .other .word").first.inner_text() == others[0].strip()
    set_slider(hostile, "k", len(PAYLOADS))
    for _ in PAYLOADS:
        settled(hostile)
        hostile.page.locator("#branches [data-branch='0'] [data-token='0']").focus()
        hostile.page.keyboard.press("Delete")
    chips = hostile.page.locator(".never button .word").all_inner_texts()
    assert set(chips) & set(PAYLOADS)
    hostile.page.locator("#rest [data-rest]").first.click()
    assert hostile.text.startswith("The")


@pytest.mark.slow
def test_the_name_of_a_document_is_text_everywhere(hostile: Visit) -> None:
    for payload in PAYLOADS:
        hostile.fill("Mine")
        hostile.page.locator("#documents").click()
        hostile.page.locator(".shelf li").first.get_by_text("Rename").click()
        hostile.page.locator(".shelf input").fill(payload)
        hostile.page.keyboard.press("Enter")
        hostile.page.locator(".shelf .open .name").first.get_by_text(payload, exact=True).wait_for()
        hostile.page.keyboard.press("Escape")
        assert hostile.page.locator("#documents .name").text_content() == payload
        hostile.page.locator("#export").click()
        with hostile.page.expect_download() as download:
            hostile.page.locator("#formats-dialog [data-format=all]").click()
        assert not set(download.value.suggested_filename) & set('<>/"\u202e')
        hostile.page.locator("#documents").click()
        hostile.page.locator(".shelf li").first.get_by_text("Delete").click()
        said = f"“{payload}” is deleted; a new, empty document is open."
        hostile.page.locator("#notice .sentence").get_by_text(said).wait_for()
        hostile.page.locator("#notice .action").click()
        hostile.page.wait_for_function("document.querySelector('#document textarea').value === 'Mine'")


@pytest.mark.slow
def test_an_instruction_is_text_and_never_enters_the_document(hostile: Visit) -> None:
    hostile.page.locator("#instruction-toggle").click()
    hostile.fill("The")
    for payload in PAYLOADS:
        with hostile.page.expect_request(lambda one, said=payload: asked(one).get("instruction") == said):
            hostile.page.locator("#instruction").fill(payload)
        settled(hostile)
        assert hostile.text == "The"
        assert not any(hostile.pieces(branch)[:1] == ["<|start|>"] for branch in range(hostile.rows))


def asked(request: Any) -> dict[str, Any]:
    """What a request to the server's functions says."""
    if not request.url.rstrip("/").endswith("component_server"):
        return {}
    given = json.loads(request.post_data)["data"]
    return given if isinstance(given, dict) else {}


@pytest.mark.slow
def test_files_are_text_by_name_and_content(hostile: Visit) -> None:
    for payload in PAYLOADS:
        name = payload.replace("/", "∕")
        bring(hostile, f"{name}.txt", payload)
        assert hostile.text == payload
        assert name in hostile.page.locator("#notice .sentence").text_content()
        assert hostile.page.locator("#documents .name").text_content() == name
        left = {"at": 0, "start": 0, "removed": "", "inserted": payload, "caret": [0, 0], "time": 1, "context": payload}
        document = {
            "format": "lookahead", "version": 1, "name": payload, "text": f"The{payload}", "model": payload,
            "instruction": payload, "instructed": True, "spans": [[3, 3 + len(payload)]],
            "settings": {"mode": payload, "until": payload, "k": payload, "banned": [{"id": 3, "text": payload}]},
            "left": [left],
        }  # fmt: skip
        bring(hostile, "document.json", json.dumps(document), "application/json")
        hostile.page.wait_for_selector("#offer-dialog[open]")
        assert hostile.page.locator(".offered").text_content() == payload
        assert hostile.page.locator("#instruction").input_value() == ""
        hostile.page.locator("#offer-use").click()
        assert hostile.text == f"The{payload}"
        shown = f"{payload} (copy)" if name == payload else payload  # the text file may have the same name
        assert hostile.page.locator("#documents .name").text_content() == shown
        assert hostile.page.locator("#instruction").input_value() == payload
        assert hostile.page.locator(".never button").text_content() == f"{payload} ×"
        settled(hostile)
        bring(hostile, f"{name}.json", '{"foreign": "' + "x" * 9 + '"}', "application/json")
        assert name in hostile.page.locator("#notice .sentence").text_content()
        assert hostile.text == f"The{payload}"


@pytest.mark.slow
def test_links_are_text_in_every_field(hostile: Visit) -> None:
    for payload in PAYLOADS:
        hostile.fill("Mine")
        settings = {"mode": payload, "order": payload, "banned": [{"id": 3, "text": payload}]}
        link = {"version": 1, "text": payload, "instruction": payload, "model": payload, "settings": settings}
        hostile.page.evaluate("fragment => { location.hash = fragment; }", packed(link))
        hostile.page.wait_for_selector("#offer-dialog[open]")
        assert hostile.text == payload
        assert hostile.page.locator(".offered").text_content() == payload
        assert f"made with {payload}" in hostile.page.locator("#notice .sentence").text_content()
        assert hostile.page.locator(".never button").text_content() == f"{payload} ×"
        hostile.page.locator("#offer-use").click()
        assert hostile.page.locator("#instruction").input_value() == payload
        settled(hostile)
        assert hostile.page.evaluate("location.hash") == ""


def accepted(visit: Visit) -> list[str]:
    """What was pressed and not refused, as the witness in the page has seen it."""
    presses = visit.page.evaluate("witness.take()")["presses"]
    assert all(press["refused"] for press in presses if press["inert"])
    return [press["text"] for press in presses if not press["refused"]]


@pytest.mark.slow
def test_a_hundred_clicks_without_a_pause_insert_exactly_the_clicked_tokens(talking: Visit) -> None:
    talking.fill("The old")
    settled(talking)
    places = [talking.token(branch, 0).bounding_box() for branch in range(5)]
    for number in range(100):
        place = places[number * 7 % 5]
        talking.page.mouse.click(place["x"] + 9, place["y"] + 9)
    taken = accepted(talking)
    assert taken
    assert talking.text == "The old" + "".join(taken)
    settled(talking)
    assert talking.text == "The old" + "".join(taken)
    for _ in taken:
        talking.page.locator("#undo").click()
    assert talking.text == "The old"


@pytest.mark.slow
def test_a_hundred_keys_without_a_pause_all_take_effect(talking: Visit) -> None:
    talking.fill("The old")
    settled(talking)
    talking.page.locator("#document textarea").focus()
    for number in range(100):
        talking.page.keyboard.press(f"Alt+Digit{1 + number * 7 % 5}")
    taken = accepted(talking)
    assert taken
    assert talking.text == "The old" + "".join(taken)
    settled(talking)
    for _ in taken:
        talking.page.keyboard.press("Control+z")
    assert talking.text == "The old"
    for _ in taken:
        talking.page.keyboard.press("Control+Shift+z")
    assert talking.text == "The old" + "".join(taken)
    talking.page.keyboard.type("x" * 100)
    assert talking.text == "The old" + "".join(taken) + "x" * 100
    settled(talking)


@pytest.mark.slow
def test_a_too_long_text_stays_and_gets_a_sentence_and_the_next_edit_works(talking: Visit) -> None:
    text = "a b " * 50_000 + "c"
    talking.fill(text)
    assert "200,000" in talking.wait_for_status("error")
    assert talking.text == text
    talking.fill("The old")
    settled(talking)
    talking.wait_for_status("ready")


def post(url: str, body: object) -> str:
    """What the server answers."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


DEEP: Any = "deep"
for _ in range(50):
    DEEP = [DEEP]
NONSENSE: list[Any] = [
    None, [], {}, 7, "text", DEEP, {"page": 7}, {"page": "short"}, {"page": DEEP, "number": DEEP},
    {"page": "x" * 32}, {"page": "x" * 32, "number": 1}, {"page": "x" * 32, "number": 10**400, "seen": -1},
    {"page": "x" * 32, "number": float("nan"), "seen": float("inf")}, {"page": "../../../../etc/passwd", "number": 1},
    {"page": "x" * 32, "number": 2, "revision": 1, "text": "The", "mode": DEEP, "k": "5"},
    {"page": "x" * 32, "number": 3, "revision": 1, "text": "The", "mode": ["likely"], "banned": [[]]},
    {"page": "x" * 32, "number": 4, "revision": 1, "text": {"a": 1}, "accepted": DEEP},
    {"page": "x" * 32, "number": 5, "revision": 1, "text": "\ud800", "accepted": [[0, [10**30], True]]},
    {"page": "x" * 32, "number": 6, "revision": 1, "text": "The", "mode": "sampled", "temperature": "x", "seed": DEEP},
]  # fmt: skip


@pytest.mark.slow
def test_invalid_requests_and_other_pages_never_get_a_text(talking: Visit) -> None:
    sent: list[Any] = []
    talking.page.on(
        "request", lambda one: sent.append(one) if one.url.rstrip("/").endswith("component_server") else None
    )
    talking.fill("The secret harbour of Nobody")
    settled(talking)
    url, body = sent[0].url, json.loads(sent[0].post_data)
    for name in ("tree", "more", "stop", "ask"):
        for given in [*NONSENSE, *strangers(body["data"])]:
            answer = post(url, body | {"fn_name": name, "session_hash": "stranger", "data": given})
            assert "secret" not in answer
            assert not any(sign in answer for sign in ("Traceback", 'File "', "Error:", "site-packages")), answer
            told = json.loads(answer)
            assert told is None or told.keys() & {"sentence", "state", "unknown", "superseded", "trunk"}, (name, given)
    talking.type(" and")
    settled(talking)
    assert talking.text == "The secret harbour of Nobody and"


def strangers(known: dict[str, Any]) -> list[dict[str, Any]]:
    """Requests of somebody who knows all of another's request except its page, and guesses that."""
    page = known["page"]
    guesses = [page[:-1] + ("0" if page[-1] != "0" else "1"), page.upper() + "A", page[:16], page + "a", "*" * 32]
    return [{"page": guess, "number": known["number"], "seen": 0} for guess in guesses]


@pytest.mark.slow
def test_the_page_id_is_in_no_link_and_no_file(talking: Visit) -> None:
    sent: list[str] = []
    talking.page.on("request", lambda one: sent.append(asked(one)["page"]) if asked(one) else None)
    talking.fill("The old keeper")
    settled(talking)
    page = sent[0]
    assert not any(page in url for url in talking.requests)
    talking.page.locator("#export").click()
    with talking.page.expect_download() as download:
        talking.page.locator("#formats-dialog [data-format=all]").click()
    assert page not in Path(download.value.path()).read_text(encoding="utf-8")
