"""A text as it comes, token by token: whole characters, stops that may span tokens, and odds with each step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from lookahead_core.boundaries import REACH, WORD, ends
from lookahead_core.branches import Cost
from lookahead_core.engines.engine import Engine
from lookahead_core.passage import Spot
from lookahead_core.strategies.decode import Line, Pick, decode
from lookahead_core.tree import Prediction

SHOWN = 10
"""How many alternatives a step tells with their text."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token that could have come."""

    token_id: int
    text: str
    logprob: float


@dataclass(frozen=True, slots=True)
class StreamStep:
    """One more token."""

    token_id: int
    text: str
    """The characters that are decided with it: whole ones, and none that may belong to a stop string."""
    logprob: float
    """What the model gave it."""
    chance: float
    """The log-probability that it had with all options applied; 0 where the best is taken."""
    rank: int
    """1 for the token that the model thought likeliest."""
    entropy: float
    """How undecided the model was, in nats."""
    finish: str
    """Why the text is over, if it is: "end", "length", "stop" or "words"."""
    said: Prediction = field(repr=False, compare=False)
    _spot: Spot = field(repr=False, compare=False)

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The likeliest tokens here, the one that came among them if it was one of them."""
        pairs = zip(self.said.token_ids[:SHOWN], self.said.logprobs, strict=False)
        return tuple(Alternative(token_id, self._spot.then(token_id)[0], value) for token_id, value in pairs)


class Reader:
    """Follows the text of a line and knows when it is over."""

    def __init__(self, line: Line, spot: Spot, before: str) -> None:
        self.line = line
        self.spot = spot
        self.written = 0
        """How many characters all tokens so far have spelled."""
        self._held = ""
        self._words = _WordCount(line.options.max_words, before[-REACH:])

    def read(self, pick: Pick) -> StreamStep:
        """The step of a token: what it shows, and whether it is the last one."""
        chosen, before, options = pick.chosen, self.spot, self.line.options
        raw = ""
        if pick.last != "end":
            raw, self.spot = self.spot.then(chosen.token_id)
        finish = pick.last
        self.written += len(raw)
        if self._words.full(raw):
            raw, finish = ("", "words") if self._words.beyond else (raw, "words")
        text, stopped = self._released(raw)
        path = self.line.path
        ids_stop = any(tuple(path[-len(ids) :]) == ids for ids in options.stop_ids)
        if stopped or ids_stop or (options.stop_when is not None and options.stop_when(tuple(path))):
            finish = "stop"
        if finish and not stopped:
            text, self._held = text + self._held, ""
        self.line.over = bool(finish)
        said = pick.said
        return StreamStep(
            chosen.token_id, text, chosen.logprob, chosen.chance, chosen.rank, said.entropy, finish, said, before
        )

    def _released(self, more: str) -> tuple[str, bool]:
        """What is sure to come before any stop string, and whether one has come."""
        stops = [stop for stop in self.line.options.stop if isinstance(stop, str)]
        text = self._held + more
        found = [place for stop in stops if (place := text.find(stop)) >= 0]
        if found:
            self._held = ""
            return text[: min(found)], True
        keep = max((_overlap(text, stop) for stop in stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep], False


class _WordCount:
    """Counts words in a text that comes in pieces; whether one is over may depend on what follows it."""

    def __init__(self, most: int | None, before: str) -> None:
        self.most = most
        self.beyond = False
        """Whether the last piece belongs to the word after the last one."""
        self._before = before
        self._piece = ""
        self._letters = False
        self._count = 0

    def full(self, piece: str) -> bool:
        """Whether the last word is over, with or before this piece."""
        if self.most is None or not piece:
            return False
        former, self._piece = self._piece, piece
        if former and ends([former], self._before, after=piece)[0] >= WORD:
            self.beyond = self._end_word()
        self._before = (self._before + former)[-REACH:]
        self._letters |= any(character.isalnum() for character in piece)
        if not self.beyond and ends([piece], self._before)[0] >= WORD:
            return self._end_word()
        return self.beyond

    def _end_word(self) -> bool:
        self._count += self._letters
        self._letters = False
        return self._count >= (self.most or 0)


def _overlap(text: str, stop: str) -> int:
    """How many of the last characters of a text could be the first ones of a stop string."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)


def read_lines(engine: Engine, readers: Sequence[Reader]) -> Iterator[tuple[int, StreamStep]]:
    """All lines side by side, one pass a round: which of them went on, and by what."""
    for picks in decode(engine, [reader.line for reader in readers]):
        for index, pick in picks:
            yield index, readers[index].read(pick)


class Streams(Iterator[tuple[int, StreamStep]]):
    """The steps of several texts that come side by side, each with the number of its text."""

    def __init__(self, steps: Iterator[tuple[int, StreamStep]], count: int, cost: Callable[[], Cost]) -> None:
        self.steps: list[list[StreamStep]] = [[] for _ in range(count)]
        """Those that have come, by text."""
        self._coming = steps
        self._cost = cost

    def __next__(self) -> tuple[int, StreamStep]:
        index, step = next(self._coming)
        self.steps[index].append(step)
        return index, step

    @property
    def texts(self) -> list[str]:
        """What has come of each text."""
        return ["".join(step.text for step in steps) for steps in self.steps]

    @property
    def cost(self) -> Cost:
        """What all of them have cost so far; a pass that several documents share counts for each of them."""
        return self._cost()


class Stream(Iterator[StreamStep]):
    """The steps of a text that comes; it remembers what has come so far. Leave it whenever you like."""

    def __init__(self, steps: Iterator[StreamStep], cost: Callable[[], Cost]) -> None:
        self.steps: list[StreamStep] = []
        """Those that have come."""
        self._coming = steps
        self._cost = cost

    def __next__(self) -> StreamStep:
        step = next(self._coming)
        self.steps.append(step)
        return step

    @property
    def text(self) -> str:
        """All text that has come."""
        return "".join(step.text for step in self.steps)

    @property
    def token_ids(self) -> list[int]:
        """All tokens that have come; with the end token, and with those of a stop string, whose text is not shown."""
        return [step.token_id for step in self.steps]

    @property
    def finish(self) -> str:
        """Why it is over: "end", "length", "stop" or "words"; empty while it goes on."""
        return self.steps[-1].finish if self.steps else ""

    @property
    def cost(self) -> Cost:
        """What it has cost so far."""
        return self._cost()

    def write(self, file: IO[str] | None = None) -> str:
        """Take the rest and write it as it comes, to the screen if nothing else is said; returns all text."""
        out = file or sys.stdout
        for step in self:
            out.write(step.text)
            out.flush()
        return self.text
