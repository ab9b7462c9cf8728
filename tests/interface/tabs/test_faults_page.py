"""Faults at random while somebody writes: no text is lost, the page says what is wrong, and its rows come back.

The whole of it, with every kind of fault at least once:
`LOOKAHEAD_FAULT_ROUNDS=20 python -m pytest -m slow -s tests/interface/tabs/test_faults_page.py`
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from interface.server.error_sentences import UNEXPECTED
from lookahead_core import Model
from lookahead_core.errors import NO_MEMORY
from lookahead_core.serving.job import INTERRUPTED
from tests.interface.tabs.test_stress_page import CURRENT, LETTERS, ROWS, Log
from tests.support import browser as browsers
from tests.support.browser import PATIENCE
from tests.support.faulty_server import LOST, FaultyServer, faulty_server
from tests.support.witness import rows_of, talker

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.long]

ROUNDS = int(os.environ.get("LOOKAHEAD_FAULT_ROUNDS", "6"))
SEED = int(os.environ.get("LOOKAHEAD_FAULT_SEED", "220"))
"""With this one, the first six rounds are of the model, the network, the server and the storage."""
SILENT = "The server does not answer. Your text is safe here; trying again …"
NO_NUMBERS = "it returned values that are no numbers"
OUTDATED = "The server has a newer version of this page. Reload the page; your text is kept."
FULL = "Not saved: the browser's storage is full. Export now."
COPY = "is open in another tab, so this is a copy of it."
FILL_STORAGE = """() => {
  window.put = IDBObjectStore.prototype.put;
  IDBObjectStore.prototype.put = () => { throw new DOMException('No room.', 'QuotaExceededError'); };
}"""
EMPTY_STORAGE = "() => { IDBObjectStore.prototype.put = window.put; }"
# A press of a visible token, chosen by a number from 0 to 1: the text up to it in its row, whether the row was inert,
# and whether the text box has changed. It is one step of a script: rows that are replaced meanwhile cannot be missed.
PRESS = """number => {
  const middle = one => {
    const {left, right, top, bottom} = one.getBoundingClientRect();
    return [(left + right) / 2, (top + bottom) / 2];
  };
  const seen = [...document.querySelectorAll('#branches [data-token]')].filter(one =>
    one.contains(document.elementFromPoint(...middle(one))));
  if (!seen.length) return null;
  const one = seen[Math.floor(number * seen.length)], [clientX, clientY] = middle(one);
  const options = {bubbles: true, cancelable: true, clientX, clientY, detail: 1};
  const row = one.closest('[data-branch]'), inert = row.matches('[data-inert]');
  const tokens = [...row.querySelectorAll('[data-token]')];
  const text = tokens.slice(0, tokens.indexOf(one) + 1).map(token => token.dataset.text).join('');
  const box = document.querySelector('#document textarea'), before = box.value;
  one.dispatchEvent(new PointerEvent('pointerdown', {...options, pointerType: 'mouse'}));
  one.dispatchEvent(new MouseEvent('click', options));
  return {text, inert, accepted: box.value !== before};
}"""
JUMP = """years => {
  const {now} = Date;
  Date.now = () => now() + years * 365 * 24 * 3600 * 1000;
}"""


@dataclass
class Writer:
    """Somebody who writes in one browser, while the server, the network and the browser fail."""

    context: Any
    server: FaultyServer
    model: Model
    dice: random.Random
    page: Any = None
    log: Log = field(default_factory=Log)
    accepted: int = 0
    refused: int = 0
    complaints: list[str] = field(default_factory=list)
    """Errors of the page's scripts that nothing has caught."""

    def open(self) -> None:
        """Open the page, in a new tab; it restores what was written."""
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(self.server.url)
        self.begin()

    def begin(self) -> None:
        """Wait until the page in this tab runs, and continue at the end of its text."""
        self.page.wait_for_selector("#status[data-state=ready]")
        self.page.wait_for_function(browsers.STARTED)
        if not self.log.text:
            self.page.evaluate(browsers.CHOOSE_ODDS, "tokens")
        self.page.click("#document textarea")
        self.page.keyboard.press("Control+End")
        self.log.move(len(self.log.text))

    def write(self) -> None:
        """Type, erase and click for a while; the text ends with a new word, so that rows for it must be requested."""
        for _ in range(6):
            self.dice.choice([self.type_word, self.type_word, self.erase, self.click, self.click])()
        self.type(" " + "".join(self.dice.choices("bdfgjkvz", k=4)))

    def type_word(self) -> None:
        self.type(self.dice.choice([" ", ""]) + self.dice.choice(LETTERS))

    def type(self, text: str) -> None:
        for character in text:
            self.page.keyboard.type(character)
            self.log.insert("key", character)

    def erase(self) -> None:
        self.page.keyboard.press("Backspace")
        self.log.erase()

    def click(self) -> None:
        """Click one of the tokens that are shown, current or not, and note whether it was accepted."""
        press = self.page.evaluate(PRESS, self.dice.random())
        if press is None:
            return
        if press["accepted"]:
            assert not press["inert"]
            self.log.insert("accepted", press["text"])
            self.accepted += 1
        else:
            self.log.done.append(("refused", press["text"]))
            self.refused += 1

    def click_current(self) -> None:
        """Wait for rows of the present text, and click one of them."""
        self.page.wait_for_function(CURRENT)
        self.click()

    def wait_for_status(self, sentence: str) -> None:
        self.wait_for_text("#status .sentence", sentence)

    def wait_for_text(self, selector: str, text: str) -> None:
        self.page.wait_for_function(
            "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)", arg=[selector, text]
        )

    @property
    def shown(self) -> str:
        return str(self.page.locator("#document textarea").input_value())

    def check(self) -> None:
        """The text is what was typed and accepted, and the rows are those of the text."""
        self.type("x")
        self.page.wait_for_selector("#branches[data-state=settled][data-stale=false]")
        assert self.shown == self.log.text
        rows = self.page.locator("#branches [data-branch]").evaluate_all(ROWS)
        assert rows == rows_of(self.model, self.log.text[: self.log.caret])
        self.page.wait_for_selector("#status[data-state=ready]")


def model_fault(name: str, sentence: str) -> Callable[[Writer], None]:
    """A fault of the server's passes: the page says so, whatever is written meanwhile."""

    def happen(writer: Writer) -> None:
        writer.server.command(name)
        writer.write()
        writer.wait_for_status(sentence)
        writer.server.command("none")

    return happen


def network_ends(writer: Writer) -> None:
    writer.context.set_offline(True)
    writer.write()
    writer.wait_for_status(SILENT)
    writer.context.set_offline(False)


def proxy_answers(writer: Writer) -> None:
    """Whatever is asked of the server, a proxy answers with a page of its own."""
    answer = {"status": 502, "content_type": "text/html", "body": "<html><h1>502 Bad Gateway</h1></html>"}
    writer.page.route("**/component_server/", lambda route: route.fulfill(**answer))
    writer.write()
    writer.wait_for_status(SILENT)
    writer.page.unroute_all(behavior="wait")


def server_restarts(writer: Writer) -> None:
    writer.server.kill()
    writer.write()
    writer.wait_for_status(SILENT)
    writer.server.start()
    writer.write()


def server_is_redeployed(writer: Writer) -> None:
    """The open page is of another version than the server from now on: it says so, and is loaded again."""
    writer.server.kill()
    writer.write()
    writer.server.version = str(writer.dice.random())
    writer.server.start()
    writer.wait_for_status(OUTDATED)
    writer.write()
    writer.page.reload()
    writer.begin()
    assert writer.shown == writer.log.text


def storage_is_full(writer: Writer) -> None:
    writer.page.evaluate(FILL_STORAGE)
    writer.write()
    writer.wait_for_text("#notice .sentence", FULL)
    writer.page.evaluate(EMPTY_STORAGE)
    writer.type("k")
    writer.page.wait_for_selector(".kept[data-state=saved]")


def second_tab_opens(writer: Writer) -> None:
    """The same document in two tabs: the second one has a copy, and each keeps its own text."""
    writer.page.wait_for_selector(".kept[data-state=saved]")
    other = Writer(
        writer.context, writer.server, writer.model, writer.dice, log=Log(writer.log.text, len(writer.log.text))
    )
    other.open()
    other.wait_for_text("#notice .sentence", COPY)
    other.write()
    writer.page.bring_to_front()
    writer.write()
    other.page.bring_to_front()
    other.check()
    other.page.close()
    writer.page.bring_to_front()


def tab_closes(writer: Writer) -> None:
    """The tab is closed in mid-pass, and the page is opened again: there is nothing to say of that."""
    writer.write()
    writer.page.wait_for_selector(".kept[data-state=saved]")
    writer.page.close()
    writer.open()
    assert writer.shown == writer.log.text


def sessions_end(writer: Writer) -> None:
    """The server forgets all documents: the page sends its own again, and there is nothing to say of that."""
    writer.server.command("forget")
    writer.write()


def clocks_jump(writer: Writer) -> None:
    """The clocks of browser and server jump, forward or back: nothing depends on them."""
    writer.page.evaluate(JUMP, writer.dice.choice([-3, 3]))
    writer.server.command("clock")
    writer.write()


def disk_is_full(writer: Writer) -> None:
    """No file of the server can grow, not even its log: nothing is written for a page, and there is nothing to say."""
    writer.server.command("disk")
    writer.write()
    writer.server.command("error")
    writer.write()
    writer.wait_for_status(UNEXPECTED)
    writer.server.command("none")


FAULTS: dict[str, Callable[[Writer], None]] = {
    "out of memory": model_fault("memory", NO_MEMORY),
    "logits without numbers": model_fault("numbers", NO_NUMBERS),
    "a thread that would die": model_fault("thread", INTERRUPTED),
    "a worker that dies": model_fault("worker", LOST),
    "an unexpected error": model_fault("error", UNEXPECTED),
    "no network": network_ends,
    "a proxy that answers": proxy_answers,
    "a restarted server": server_restarts,
    "a redeployed server": server_is_redeployed,
    "full storage": storage_is_full,
    "a second tab": second_tab_opens,
    "a closed tab": tab_closes,
    "forgotten sessions": sessions_end,
    "clocks that jump": clocks_jump,
    "a full disk": disk_is_full,
}
"""Kinds of faults. For each, a sentence must be shown, but for the last four: nothing is to be said of them."""


def drawn(rounds: int, dice: random.Random) -> Iterator[str]:
    """Names of faults at random: each kind once before any comes again."""
    names: list[str] = []
    for _ in range(rounds):
        names = names or dice.sample(list(FAULTS), len(FAULTS))
        yield names.pop()


@contextmanager
def writer_of(browser: Any, server: FaultyServer) -> Iterator[Writer]:
    context = browser.new_context()
    writer = Writer(context, server, talker(), random.Random(SEED))
    writer.open()
    yield writer
    context.close()


def test_no_fault_loses_text_and_the_rows_come_back(browser: Any, tmp_path: Path) -> None:
    with faulty_server(browsers.free_port(), tmp_path / "log") as server, writer_of(browser, server) as writer:
        writer.type("The old")
        writer.click_current()
        for number, name in enumerate(drawn(ROUNDS, random.Random(SEED)), 1):
            try:
                FAULTS[name](writer)
                writer.check()
                writer.click_current()
            except BaseException as error:
                status = writer.page.locator("#status").inner_text()
                error.add_note(
                    f"round {number}, {name}, seed {SEED}: {writer.log.done[-40:]}\nstatus: {status!r}\n"
                    f"shown: {writer.shown!r}\nright: {writer.log.text!r}\n{server.log.read_text()[-3000:]}"
                )
                raise
            print(f"round {number}: {name}; {len(writer.log.text)} characters, ", end="")
            print(f"{writer.accepted} clicks accepted, {writer.refused} refused")
        assert writer.shown == writer.log.text
        assert not writer.complaints
