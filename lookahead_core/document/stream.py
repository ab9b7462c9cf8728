"""A text as it comes, token by token: whole characters, stops that may span tokens, and odds with each step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from lookahead_core.document.results import Cost, average_probability
from lookahead_core.engines.engine import Engine
from lookahead_core.speculation.draft_and_verify import Pass
from lookahead_core.strategies.decode import Continuation, PickedToken, decode
from lookahead_core.text.boundaries import CONTEXT_CHARACTERS, WORD, boundary_levels
from lookahead_core.text.passage import TextEnd
from lookahead_core.tree import Prediction

SHOWN = 10
"""How many alternatives a step tells with their text."""


@dataclass(frozen=True, slots=True)
class StreamAlternative:
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
    _spot: TextEnd = field(repr=False, compare=False)
    stopped_by: str = ""
    """The string that ended the text, if one did."""

    @property
    def alternatives(self) -> tuple[StreamAlternative, ...]:
        """The likeliest tokens here, the one that came among them if it was one of them."""
        pairs = zip(self.said.token_ids[:SHOWN], self.said.logprobs, strict=False)
        return tuple(StreamAlternative(token_id, self._spot.decode(token_id)[0], value) for token_id, value in pairs)


class StreamReader:
    """Follows the text of a line and knows when it is over."""

    def __init__(self, line: Continuation, spot: TextEnd, before: str) -> None:
        self.line = line
        self.spot = spot
        self._stops = _StopStrings([stop for stop in line.options.stop if isinstance(stop, str)], before)
        self._words = _WordCount(line.options.max_words, before[-CONTEXT_CHARACTERS:])

    def read(self, pick: PickedToken) -> StreamStep:
        """The step of a token: what it shows, and whether it is the last one."""
        chosen, before, options, finish = pick.chosen, self.spot, self.line.options, pick.last
        raw = ""
        if finish != "end":
            raw, self.spot = self.spot.decode(chosen.token_id)
        if self._words.full(raw):
            raw, finish = ("", "words") if self._words.beyond else (raw, "words")
        text = self._stops.read(raw)
        path = self.line.path
        ids_stop = any(isinstance(ids, tuple) and tuple(path[-len(ids) :]) == ids for ids in options.stop_ids)
        if self._stops.found or ids_stop or (options.stop_when is not None and options.stop_when(tuple(path))):
            finish = "stop"
        if finish:
            text += self._stops.rest()
            self.line.over = True
        said = pick.said
        odds = (chosen.logprob, chosen.chance, chosen.rank, said.entropy)
        return StreamStep(chosen.token_id, text, *odds, finish, said, before, self._stops.found)


class _StopStrings:
    """Holds back what may belong to a stop string, until it is decided. One may begin before the new text."""

    def __init__(self, stops: Sequence[str], before: str) -> None:
        self.found = ""
        """The one that has come."""
        self._stops = stops
        self._reach = max(map(len, stops), default=1) - 1
        self._shown = before[len(before) - self._reach :] if self._reach else ""
        """The end of what is shown already."""
        self._held = ""

    def read(self, more: str) -> str:
        """What is sure to come before any stop string; the one that is complete first decides."""
        text, known = self._shown + self._held + more, len(self._shown)
        places = [(self._end(text, stop, known), stop) for stop in self._stops]
        ends = [(end, end - len(stop), stop) for end, stop in places if end]
        if ends:
            _, start, self.found = min(ends)
            self._held = ""
            return text[known : max(known, start)]
        keep = min(len(text) - known, max((_overlap(text, stop) for stop in self._stops), default=0))
        self._held = text[len(text) - keep :]
        sure = text[known : len(text) - keep]
        self._shown = (self._shown + sure)[-self._reach :] if self._reach else ""
        return sure

    def rest(self) -> str:
        """What was held back, when nothing follows any more."""
        held, self._held = self._held, ""
        return held

    def _end(self, text: str, stop: str, known: int) -> int:
        """Where this stop string first ends in what is not shown yet; 0 where it does not."""
        place = text.find(stop, max(0, known - len(stop) + 1))
        return place + len(stop) if place >= 0 else 0


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
        if former and boundary_levels([former], self._before, after=piece)[0] >= WORD:
            self.beyond = self._end_word()
        self._before = (self._before + former)[-CONTEXT_CHARACTERS:]
        self._letters |= any(character.isalnum() for character in piece)
        if not self.beyond and boundary_levels([piece], self._before)[0] >= WORD:
            return self._end_word()
        return self.beyond

    def _end_word(self) -> bool:
        self._count += self._letters
        self._letters = False
        return self._count >= (self.most or 0)


def _overlap(text: str, stop: str) -> int:
    """How many of the last characters of a text could be the first ones of a stop string."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)


def read_lines(engine: Engine, readers: Sequence[StreamReader]) -> Iterator[tuple[int, StreamStep]]:
    """All lines side by side, one pass a round: which of them went on, and by what."""
    for picks in decode(engine, [reader.line for reader in readers]):
        for index, pick in picks:
            yield index, readers[index].read(pick)


class Streams(Iterator[tuple[int, StreamStep]]):
    """The steps of several texts that come side by side, each with the number of its text."""

    def __init__(
        self, steps: Iterator[tuple[int, StreamStep]], cost: Callable[[], Cost], passes: Sequence[Sequence[Pass]]
    ) -> None:
        self.steps: list[list[StreamStep]] = [[] for _ in passes]
        """Those that have come, by text."""
        self.passes = passes
        """By text, what each forward pass has won for it."""
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
        """What all of them have cost so far."""
        return self._cost()


class Stream(Iterator[StreamStep]):
    """The steps of a text that comes; it remembers what has come so far. Leave it whenever you like."""

    def __init__(
        self, steps: Iterator[StreamStep], cost: Callable[[], Cost], seen_from: int, passes: Sequence[Pass]
    ) -> None:
        self.steps: list[StreamStep] = []
        """Those that have come."""
        self.passes = passes
        """What each forward pass has won, and what it took; none for what was known already."""
        self.seen_from = seen_from
        """The character from which on the model reads; 0 unless the text is longer than its context."""
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
        """All tokens that have come; also those whose text is not shown: an end token, those of a stop string, and the
        one that has shown that the last word is over."""
        return [step.token_id for step in self.steps]

    @property
    def finish(self) -> str:
        """Why it is over: "end", "length", "stop" or "words"; empty while it goes on."""
        return self.steps[-1].finish if self.steps else ""

    @property
    def average_probability(self) -> float | None:
        """The geometric mean of the probabilities of all tokens that have come; None where none have."""
        return average_probability([step.logprob for step in self.steps]) if self.steps else None

    @property
    def cost(self) -> Cost:
        """What it has cost so far."""
        return self._cost()

    @property
    def statistics(self) -> dict[str, list[float]]:
        """Of each pass, by the names that seed 001 gave them: tokens won (`edls`), tokens evaluated (`dls`), seconds of
        the pass (`fts`), and seconds of finding the draft (`qts`)."""
        return {
            "edls": [one.won for one in self.passes],
            "dls": [one.evaluated for one in self.passes],
            "fts": [one.seconds for one in self.passes],
            "qts": [one.drafting for one in self.passes],
        }

    def write(self, file: IO[str] | None = None) -> str:
        """Take the rest and write it as it comes, to the screen if nothing else is said; returns all text."""
        out = file or sys.stdout
        for step in self:
            out.write(step.text)
            out.flush()
        return self.text
