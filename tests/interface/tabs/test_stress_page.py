"""Keys, pastes, input methods and clicks at random moments while the model is slow: no key is ever lost."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

import pytest

from tests.support import browser as browsers
from tests.support.witness import REFUSAL, WITNESS, around, rows_of, talker

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.long]

RUNS = int(os.environ.get("LOOKAHEAD_STRESS_RUNS", "5"))
AT_ONCE = 5
"""More would make the browser slower than the keys."""
KEYS = 300
KEY = 0.025
"""Seconds from one key to the next."""
PASS = 1.0
"""Seconds that the model takes for a pass."""
LEAST = 5
"""How many clicks must have been accepted in each run, and how many refused."""
PATIENCE = 60_000
LETTERS = ["the", "sea", "kee", "Ω", "é", "ship", ",", ".", "  ", "lamp", "\n", "99", "again", "<b>", "'s", "ж"]
PASTED = ["a grey 🙂 morning", "line one\nline two", "中文字符", "مرحبا", "  "]
COMPOSED = [("に", "にほ", "日本"), ("ㅎ", "하", "한"), ("k", "ka", "か")]
# The middle of a token that can be seen and pressed, chosen by a number from 0 to 1.
SPOT = """number => {
  const middle = one => {
    const {left, right, top, bottom} = one.getBoundingClientRect();
    return [(left + right) / 2, (top + bottom) / 2];
  };
  const seen = [...document.querySelectorAll('#branches [data-token]')].filter(one =>
    one.contains(document.elementFromPoint(...middle(one))));
  return seen.length ? middle(seen[Math.floor(number * seen.length)]) : null;
}"""
ROWS = "rows => rows.map(row => [...row.querySelectorAll('[data-token]')].map(one => one.dataset.text).join(''))"
CURRENT = "document.querySelector('#branches[data-stale=false] [data-branch] [data-token]')"
Row = tuple[str, ...]


@dataclass
class Log:
    """What was done in one run, and the text that follows from that alone."""

    text: str = ""
    caret: int = 0
    done: list[Row] = field(default_factory=list)

    def insert(self, what: str, text: str) -> None:
        self.text = self.text[: self.caret] + text + self.text[self.caret :]
        self.caret += len(text)
        self.done.append((what, text))

    def accept(self, text: str) -> None:
        """Insert an accepted text, and after the caret a space where the next word would join its last one."""
        before, after = self.text[: self.caret], self.text[self.caret :]
        begins_word = text[0].isspace() or not before or before[-1].isspace()
        joins_words = after[:1].isalnum() and (text[-1].isalnum() or text[-1] in ",.;:!?…)")
        self.insert("accepted", text)
        if begins_word and joins_words:
            self.text = f"{self.text[: self.caret]} {after}"

    def erase(self) -> None:
        self.text = self.text[: max(0, self.caret - 1)] + self.text[self.caret :]
        self.move(-1)

    def move(self, by: int) -> None:
        self.caret = min(len(self.text), max(0, self.caret + by))
        self.done.append(("caret", str(self.caret)))


@dataclass
class Writer:
    """Somebody who writes on one page, by a seed of their own."""

    page: Any
    devtools: Any
    dice: random.Random
    clipboard: asyncio.Lock
    log: Log = field(default_factory=Log)
    accepted: int = 0
    refused: int = 0
    awaited: int = 0
    next_key: float = 0.0
    times: list[float] = field(default_factory=list)

    async def write(self) -> None:
        acts = [self.accept] * 8 + [self.refuse] * 8 + [self.erase] * 5 + [self.rest] * 3
        acts += [self.paste] * 2 + [self.compose] * 2 + [self.wander] * 3
        self.dice.shuffle(acts)
        for place, act in enumerate([self.accept, *acts]):
            while len(self.times) < KEYS * place / len(acts):
                await self.type(self.dice.choice(LETTERS))
            await act()

    async def type(self, text: str) -> None:
        for character in text:
            await self.on_time()
            await self.page.keyboard.type(character)
            self.log.insert("key", character)

    async def on_time(self) -> None:
        """Wait for the moment of the next key."""
        now = time.monotonic()
        self.next_key = max(self.next_key + KEY, now)
        await asyncio.sleep(self.next_key - now)
        self.times.append(self.next_key)

    async def accept(self) -> None:
        """Wait for branches, and choose one."""
        if not self.log.text:
            await self.type("The")
        await self.page.wait_for_function(CURRENT, timeout=PATIENCE)
        await self.choose()

    async def refuse(self) -> None:
        """Choose among branches that are older than the text."""
        await self.type(self.dice.choice(["s", " k", ", a"]))
        await self.choose()

    async def choose(self) -> None:
        if self.dice.random() < 0.3:
            keys = f"Alt+{'Shift+' if self.dice.random() < 0.5 else ''}Digit{self.dice.randint(1, 5)}"
            await self.page.keyboard.press(keys)
        elif (spot := await self.page.evaluate(SPOT, self.dice.random())) is not None:
            await self.page.mouse.click(*spot)
        await self.take()

    async def take(self) -> None:
        """What the page's witness has seen of the last choice: what was pressed was inserted, or refused visibly."""
        seen = await self.page.evaluate("witness.take()")
        assert all(REFUSAL in note for note in seen["notes"])
        for press in seen["presses"]:
            assert press["refused"] or not press["inert"]
            if press["waits"]:
                assert not press["inert"] and not press["refused"]
                await self.wait_for(press)
            elif press["refused"]:
                self.log.done.append(("refused", press["text"]))
                self.refused += 1
            else:
                self.log.accept(press["text"])
                self.accepted += 1

    async def wait_for(self, press: Any) -> None:
        """A whole branch still grows: wait for it, or give it up. The row that was seen is inserted whole, or none."""
        how = self.dice.choice(["wait", "Escape", "z"])
        if how == "wait":
            await self.page.wait_for_selector("#branches:not([data-awaits])", timeout=PATIENCE)
        else:
            await self.page.keyboard.press(how)
        typed = "z" if how == "z" else ""
        shown, before, after = await self.shown, self.log.text[: self.log.caret], self.log.text[self.log.caret :]
        assert shown.startswith(before) and shown.endswith(after)
        inserted = shown[len(before) : len(shown) - len(after)]
        # The page may have added a space, which is no part of the row; a typed key is inserted before that space.
        inserted = inserted.rstrip(" ").removesuffix(typed)
        assert how != "wait" or inserted
        if inserted:
            assert inserted.startswith(press["text"])
            assert press["pinned"] or inserted in rows_of(talker(), before)
            self.log.accept(inserted)
            self.accepted += 1
            self.awaited += 1
        if typed:
            self.log.insert("key", typed)
        assert self.log.text == shown

    async def erase(self) -> None:
        for _ in range(self.dice.randint(1, 6)):
            await self.on_time()
            await self.page.keyboard.press("Backspace")
            self.log.erase()

    async def rest(self) -> None:
        await asyncio.sleep(self.dice.uniform(0.1, 1.5))

    async def paste(self) -> None:
        text = self.dice.choice(PASTED)
        async with self.clipboard:  # all pages share it
            await self.page.evaluate("text => navigator.clipboard.writeText(text)", text)
            await self.page.keyboard.press("Control+v")
        self.log.insert("pasted", text)

    async def compose(self) -> None:
        """As an input method does: signs that come and go, a choice that must not break them, and what is meant."""
        await self.page.wait_for_function(CURRENT, timeout=PATIENCE)
        *growing, meant = self.dice.choice(COMPOSED)
        for text in growing:
            place = {"selectionStart": len(text), "selectionEnd": len(text)}
            await self.devtools.send("Input.imeSetComposition", {"text": text, **place})
            await asyncio.sleep(KEY)
        if (spot := await self.page.evaluate(SPOT, self.dice.random())) is not None:
            await self.page.mouse.click(*spot)
            presses = (await self.page.evaluate("witness.take()"))["presses"]
            assert all(press["refused"] for press in presses)  # none where the rows have moved away meanwhile
        await self.devtools.send("Input.insertText", {"text": meant})
        self.log.insert("composed", meant)

    async def wander(self) -> None:
        """To the middle of the text, and on from there; or back to its end."""
        if self.log.caret < len(self.log.text):
            await self.page.keyboard.press("Control+End")
            self.log.move(len(self.log.text))
        else:
            for _ in range(self.dice.randint(1, 9)):
                await self.page.keyboard.press("ArrowLeft")
                self.log.move(-1)

    @property
    async def shown(self) -> str:
        return str(await self.page.locator("#document textarea").input_value())

    async def settled(self) -> list[str]:
        """What the rows say once they are those of the text as it stands; what was pinned before is gone."""
        await self.type("x")
        await self.page.wait_for_selector("#branches[data-state=settled][data-stale=false]", timeout=PATIENCE)
        return list(await self.page.locator("#branches [data-branch]").evaluate_all(ROWS))


@asynccontextmanager
async def somebody(browser: Any, url: str, seed: int, clipboard: asyncio.Lock) -> AsyncIterator[Writer]:
    """A person with a page of their own."""
    context = await browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    await page.add_init_script(WITNESS)
    await page.goto(url)
    await page.wait_for_selector("#status[data-state=ready]", timeout=PATIENCE)
    await page.wait_for_function("document.querySelector('#branches')?.branchView", timeout=PATIENCE)
    await page.evaluate(browsers.CHOOSE_ODDS, "tokens")
    await page.click("#document textarea")
    yield Writer(page, await context.new_cdp_session(page), random.Random(seed), clipboard)
    assert not complaints
    await context.close()


@contextmanager
def slow_page() -> Iterator[str]:
    """A server of one's own, so that a pass takes as long as it would for a person alone."""
    # In shared memory for the workers that the server forks. It has no lock, which a killed worker would never release.
    hurry = multiprocessing.RawValue("b", False)

    def take_a_pass() -> None:
        end = time.monotonic() + PASS
        while not hurry.value and time.monotonic() < end:
            time.sleep(0.02)

    try:
        with browsers.page_of(lambda report: around(talker(), take_a_pass)) as url:
            yield url
    finally:
        hurry.value = True  # what is still being prefetched need not be waited for


async def one_run(browser: Any, url: str, seed: int, clipboard: asyncio.Lock) -> Writer:
    async with somebody(browser, url, seed, clipboard) as writer:
        try:
            await writer.write()
            rows = await writer.settled()
            assert await writer.shown == writer.log.text
            assert writer.accepted >= LEAST and writer.refused >= LEAST
            assert rows == rows_of(talker(), writer.log.text[: writer.log.caret])
            assert await writer.shown == writer.log.text
        except BaseException as error:
            error.add_note(
                f"seed {seed}: {writer.log.done}\nshown: {await writer.shown!r}\nlogged: {writer.log.text!r}"
            )
            raise
        return writer


def test_with_a_slow_model_no_key_is_lost_and_no_stale_branch_is_inserted() -> None:
    for writer in asyncio.run(everybody()):
        gaps = [1000 * (later - sooner) for sooner, later in pairwise(writer.times)]
        print(f"{len(gaps)} gaps between keys, {median(gaps):.0f} ms in the median; ", end="")
        print(f"{writer.accepted} accepted ({writer.awaited} awaited), {writer.refused} refused")
        assert len(writer.times) >= KEYS


async def everybody() -> list[Writer]:
    clipboard = asyncio.Lock()
    free = asyncio.Semaphore(AT_ONCE)
    async with browsers.chromium_of_many() as browser:
        # The servers end before the browser: their forked workers hold the pipes to its driver open.
        with ExitStack() as servers:
            urls = [servers.enter_context(slow_page()) for _ in range(RUNS)]

            async def run(seed: int) -> Writer:
                async with free:
                    return await one_run(browser, urls[seed], seed, clipboard)

            return await asyncio.gather(*map(run, range(RUNS)))
