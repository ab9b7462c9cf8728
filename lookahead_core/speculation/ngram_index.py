"""Where the end of a text stood before: a bounded memory of tokens, in which the longest known suffix is found."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from operator import mul
from typing import Any

import numpy as np

LENGTHS = (1, 2, 4, 8, 16)
"""How long the runs of tokens are that are found."""
LONGEST = LENGTHS[-1]
AGREEMENT = 2 * LONGEST
"""Where a run is found, so many tokens are compared to tell how long it really is."""
MOST_ID = 2**31 - 1
BREAK = -1
"""Lies between two texts, in place of a token."""

FEW = 24
"""Up to so many tokens are added faster one by one."""
PIECE = 65_536
"""So many tokens are added at once: what that needs beside the memory stays small."""
LEAST = 64
"""The room that an index begins with; it doubles until it is what was asked for."""

BASE, GOLDEN, WORD = 0x9E6C_63D0_876A_68E5, 0x9E37_79B9_7F4A_7C15, 2**64 - 1
_POWERS = [pow(BASE, exponent, 2**64) for exponent in range(LONGEST)]


class NgramIndex:
    """A bounded memory of token ids. A place is a position, counted over all that was ever added, breaks included."""

    longest = LONGEST
    walk = 32
    """After so many places the search for a run of one length ends: most are passed by only where hashes collide."""

    def __init__(self, most: int = 65_536) -> None:
        if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_ID:
            raise ValueError(f"most is {most!r}, and must be a whole number of tokens from 1 to {MOST_ID}.")
        self.most = most
        self._end = 0
        self._tail: list[int] = []
        """The last tokens of the text that is being added, as many as a run may have."""
        self._make_room(LEAST)

    @property
    def size(self) -> int:
        """How many tokens are remembered, the breaks between texts counted as one each."""
        return min(self._end, self.most)

    @property
    def bytes(self) -> int:
        """The memory that all of it takes."""
        return sys.getsizeof(self._tokens) + sum(level.bytes for level in self._levels) + sys.getsizeof(self._tail)

    def add(self, token_ids: Sequence[int]) -> None:
        """Remember tokens, which go on right where the last ones ended; the oldest are forgotten for them."""
        tokens = _checked(token_ids)
        if len(tokens) <= FEW:
            for token_id in tokens:
                self._add_one(token_id)
            return
        piece = min(PIECE, self.most)
        for start in range(0, len(tokens), piece):
            self._add_many(tokens[start : start + piece])

    def begin_text(self) -> None:
        """What is added next is a new text: no run spans the break, and nothing follows what stands before it."""
        if self._tail:
            self._put(BREAK)
            self._tail.clear()

    def find(self, path: Sequence[int], count: int = 4) -> tuple[list[int], int]:
        """The latest places that follow the longest known suffix of a path, and how many tokens agree at the first.

        The first is the one where the most agrees. There is always a token at a place. Nothing known is `([], 0)`.
        """
        if count < 1:
            raise ValueError(f"count is {count!r}, and must be 1 or more.")
        tail = _checked(path[-AGREEMENT:])
        hashes = _hashes(tail)
        for level, value in zip(reversed(self._levels[: len(hashes)]), reversed(hashes), strict=True):
            if found := self._places(level, value, tail, count):
                agreed = [(self._agreement(place, level.length, tail), place) for place in found]
                agreed.sort(reverse=True)
                return [place for _, place in agreed], agreed[0][0]
        return [], 0

    def token_at(self, place: int) -> int | None:
        """The token at a place; None if it is forgotten, not there yet, or if another text begins there."""
        if not self._oldest <= place < self._end:
            return None
        token_id = self._tokens[place % self._room]
        return None if token_id == BREAK else token_id

    @property
    def _oldest(self) -> int:
        return max(0, self._end - self.most)

    @property
    def _room(self) -> int:
        return len(self._tokens)

    def _places(self, level: _Level, value: int, tail: array[int], count: int) -> list[int]:
        """The latest places that a run of this level's length stands before, of those that are not too far to walk."""
        tokens, room, last = self._tokens, len(self._tokens), tail[-1]
        run, found = tail[-level.length :], []
        for place in islice(level.places(level.slot(value), self._oldest), self.walk):
            # Most others are told apart by one token.
            if tokens[(place - 1) % room] == last and self._before(place, level.length) == run:
                found.append(place)
                if len(found) == count:
                    break
        return found

    def _agreement(self, place: int, known: int, tail: array[int]) -> int:
        """How many tokens before a place are those at the end of the path, where so many are known to be."""
        most = min(len(tail), place - self._oldest)
        before = self._before(place, most)
        while known < most and before[-known - 1] == tail[-known - 1]:
            known += 1
        return known

    def _before(self, place: int, length: int) -> array[int]:
        """The tokens before a place; the oldest may lie behind the newest."""
        stop = place % self._room
        start = stop - length
        return self._tokens[start:stop] if start >= 0 else self._tokens[start:] + self._tokens[:stop]

    def _add_one(self, token_id: int) -> None:
        place, tail = self._end, self._tail
        self._put(token_id)
        for level, value in zip(self._levels, _hashes(tail), strict=False):
            level.link(value, place)
        tail.append(token_id)
        if len(tail) > LONGEST:
            del tail[0]

    def _add_many(self, tokens: array[int]) -> None:
        """The same for many at once; there is room for all of them."""
        self._make_room(self._end + len(tokens))
        start = self._end % self._room
        fits = min(len(tokens), self._room - start)
        self._tokens[start : start + fits] = tokens[:fits]
        self._tokens[: len(tokens) - fits] = tokens[fits:]
        self._link(self._end, array("i", self._tail) + tokens, skip=len(self._tail))
        self._end += len(tokens)
        self._tail = (self._tail + tokens[-LONGEST:].tolist())[-LONGEST:]

    def _put(self, token_id: int) -> None:
        if self._end >= self._room < self.most:
            self._make_room(self._end + 1)
        self._tokens[self._end % self._room] = token_id
        self._end += 1

    def _make_room(self, wanted: int) -> None:
        """Room for so many, or for the most that there may be: all that is remembered is linked anew."""
        room = min(self.most, max(LEAST, 1 << (wanted - 1).bit_length()))
        held = self._tokens if self._end else array("i")
        if room <= len(held):
            return
        self._levels: list[_Level] = []
        self._tokens = held + array("i", [0]) * (room - len(held))
        self._levels = [_Level(length, room) for length in LENGTHS]
        for start in range(0, self._end, PIECE):
            first = max(0, start - LONGEST)
            self._link(start, self._tokens[first : min(start + PIECE, self._end)], skip=start - first)

    def _link(self, place: int, tokens: array[int], skip: int) -> None:
        """Link the runs before the places from this one on, which is that of the token after those to be skipped."""
        known = np.frombuffer(tokens, dtype=np.int32)
        places = np.arange(place - skip, place - skip + len(known))
        breaks = np.where(known == BREAK, np.arange(len(known)), -1)
        whole = np.arange(len(known)) - np.maximum.accumulate(breaks) - 1
        hashes = known.astype(np.uint64)
        for level in self._levels:
            if level.length > 1:
                half = level.length // 2
                hashes[half:] += np.uint64(_POWERS[half]) * hashes[:-half]
            there = np.flatnonzero(whole >= level.length)
            there = there[there >= skip]
            level.link_many(hashes[there - 1], places[there])

    def check(self) -> None:
        """Raise AssertionError unless the runs that can be found are those that stand in the memory."""
        assert self.size <= self._room <= self.most, "there is room for what is remembered, and not for more"
        known = [self._tokens[place % self._room] for place in range(self._oldest, self._end)]
        recent = known[-LONGEST:]
        text = recent[len(recent) - recent[::-1].index(BREAK) :] if BREAK in recent else recent
        forgotten = 0 if BREAK in recent else len(self._tail) - len(text)
        assert len(self._tail) <= LONGEST, "the tail is no longer than a run"
        assert self._tail[forgotten:] == text, "the tail is the end of the text"
        for level in self._levels:
            level.check(self._standing(known, level.length), self._oldest)

    def _standing(self, known: list[int], length: int) -> dict[int, int]:
        """Each place that a whole run of this length stands before, with the hash of the run."""
        windows = ((stop, known[stop - length : stop]) for stop in range(length, len(known)) if known[stop] != BREAK)
        return {self._oldest + stop: _hashes(window)[-1] for stop, window in windows if BREAK not in window}


class _Level:
    """The places that follow runs of one length: the latest for each slot, and for each place the one before it."""

    def __init__(self, length: int, room: int) -> None:
        self.length = length
        self._room = room
        bits = max(1, (room - 1).bit_length())
        # A product's high bits depend on all bits of the hash.
        self._shift = 64 - bits
        self._latest = array("q", [0]) * (1 << bits)
        """No place is 0, since a run stands before each."""
        self._gaps = array("i", [0]) * room
        """How far back the place before it in its slot lies; 0 where it is the first, or the other is forgotten."""

    @property
    def bytes(self) -> int:
        return sys.getsizeof(self._latest) + sys.getsizeof(self._gaps)

    def slot(self, value: int) -> int:
        return (value * GOLDEN & WORD) >> self._shift

    def places(self, slot: int, oldest: int) -> Iterator[int]:
        """The places in a slot, the latest first, as far back as their runs are remembered."""
        place = self._latest[slot]
        while place - self.length >= oldest:
            yield place
            gap = self._gaps[place % self._room]
            if not gap:
                return
            place -= gap

    def link(self, value: int, place: int) -> None:
        slot, latest, room = (value * GOLDEN & WORD) >> self._shift, self._latest, self._room
        before = latest[slot]
        latest[slot] = place
        self._gaps[place % room] = place - before if before and place - before < room else 0

    def link_many(self, values: Any, places: Any) -> None:
        """The same for places in rising order, not more than there is room for."""
        if not len(places):
            return
        latest, gaps = np.frombuffer(self._latest, np.int64), np.frombuffer(self._gaps, np.int32)
        slots = (values * np.uint64(GOLDEN) >> np.uint64(self._shift)).astype(np.int64)
        order = np.argsort(slots, kind="stable")
        slots, places = slots[order], places[order]
        other = np.flatnonzero(np.diff(slots, prepend=-1))
        before = np.concatenate([places[:1], places[:-1]])
        before[other] = latest[slots[other]]
        distance = places - before
        gaps[places % self._room] = np.where((before > 0) & (distance < self._room), distance, 0)
        latest[slots] = places

    def check(self, standing: dict[int, int], oldest: int) -> None:
        """Raise AssertionError unless each of these places is found by the hash of its run, and no other place is."""
        for slot in range(len(self._latest)):
            reached = list(islice(self.places(slot, oldest), self._room + 1))
            assert reached == sorted(set(reached), reverse=True), "the places of a slot go back"
            for place in reached:
                assert place in standing, f"a place that no whole run stands before: {place}"
                assert self.slot(standing.pop(place)) == slot, f"a place in the slot of another run: {place}"
        assert not standing, f"places that cannot be found: {list(standing)}"


def _hashes(tokens: Sequence[int]) -> list[int]:
    """The hashes of the last 1, 2, 4, 8 and 16 tokens, as far as there are so many; their low 64 bits count."""
    sums = list(accumulate(map(mul, reversed(tokens), _POWERS)))
    return [sums[length - 1] for length in LENGTHS if length <= len(sums)]


def _checked(token_ids: Sequence[int]) -> array[int]:
    """The ids in four bytes each, or a sentence where one does not fit."""
    try:
        tokens = array("i", list(token_ids))
    except (OverflowError, TypeError):
        tokens = None
    if tokens is None or (tokens and min(tokens) < 0):
        raise ValueError(f"token_ids holds something else than whole numbers from 0 to {MOST_ID}; give token ids.")
    return tokens
