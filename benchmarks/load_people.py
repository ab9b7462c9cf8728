"""Simulated people: what they type and click, and how long they wait between."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pydoc_data.topics import topics
from time import perf_counter

from benchmarks.load_page import LoadedPage

KEY_SECONDS = (0.09, 0.11, 0.14, 0.12, 0.19, 0.10, 0.13, 0.31, 0.12, 0.16, 0.11, 0.24, 0.10, 0.15, 0.12, 0.42)
"""Seconds between the keys of somebody who types 40 to 60 words a minute, repeated in this order."""
DELETE_SECONDS = 0.05
LONGEST = 2000
"""Characters after which a person begins another text."""
WORDS = " ".join(topics[name] for name in sorted(topics))[:200_000].split()
Style = Callable[["Person"], Awaitable[None]]


class Person:
    """Somebody who writes in one page until the time is over, in changing styles."""

    def __init__(self, page: LoadedPage, seed: int, pace: float) -> None:
        """`pace` multiplies all waits between keys and clicks."""
        self.page, self.pace, self.random = page, pace, random.Random(seed)
        self._keys = seed

    async def write_until(self, end: float) -> None:
        """Write until `perf_counter` reads `end`, then compare the server's text with the page's."""
        self.begin()
        styles = list(STYLES)
        while perf_counter() < end:
            self.random.shuffle(styles)
            for style in styles:
                await style(self)
                if self.random.random() < 0.2:
                    await self.page.check()
                if len(self.page.text) > LONGEST:
                    self.begin()
                if perf_counter() >= end:
                    break
        await self.page.check()
        await self.page.check_rows()

    def begin(self) -> None:
        """Begin a text that holds the person's secret twice, so that a model is likely to repeat it."""
        secret = self.page.secret
        self.page.begin(f"The keeper is called {secret}. {' '.join(self.words(12))}. Ask {secret}, said")

    def words(self, count: int) -> list[str]:
        """Return words in a row of an English text."""
        start = self.random.randrange(len(WORDS) - count)
        return WORDS[start : start + count]

    async def think(self, least: float, most: float) -> None:
        await asyncio.sleep(self.pace * self.random.uniform(least, most))

    async def type(self, text: str) -> None:
        """Type characters one by one."""
        for character in text:
            self.page.type(character)
            await asyncio.sleep(self.pace * KEY_SECONDS[self._keys % len(KEY_SECONDS)])
            self._keys += 1


async def type_words(person: Person) -> None:
    """Type a few words, with the secret among them at times, and read the branches."""
    words = person.words(person.random.randint(3, 8))
    if person.random.random() < 0.3:
        words.append(person.page.secret)
    await person.type(" " + " ".join(words))
    await person.page.settle()
    await person.think(0.8, 3)


async def click_words(person: Person) -> None:
    """Wait for the branches, read them, and click on a next word, several times."""
    for _ in range(person.random.randint(2, 6)):
        await person.page.settle()
        await person.think(0.6, 2.5)
        person.page.accept(person.random)


async def click_fast(person: Person) -> None:
    """Click as soon as there is anything to click on."""
    for _ in range(person.random.randint(3, 8)):
        for _ in range(200):
            if person.page.accept(person.random):
                break
            await asyncio.sleep(0.02)
        await person.think(0.1, 0.4)


async def click_rows(person: Person) -> None:
    """Take a whole row."""
    await person.page.settle()
    await person.think(1.5, 4)
    person.page.accept(person.random, whole=True)


async def correct(person: Person) -> None:
    """Delete the last characters and type others."""
    for _ in range(min(person.random.randint(3, 12), len(person.page.text) - 60)):
        person.page.delete(1)
        await asyncio.sleep(person.pace * DELETE_SECONDS)
    await person.type(" " + " ".join(person.words(2)))
    await person.think(0.3, 1)


STYLES: tuple[Style, ...] = (type_words, click_words, click_fast, click_rows, correct)
