"""The n-gram index: a bounded store of token ids that finds earlier occurrences of a path's longest known suffix."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from operator import mul
from typing import Any

import numpy as np

from lookahead_core.validation import short_repr

RUN_LENGTHS = (1, 2, 4, 8, 16)
"""The lengths of the n-grams that are indexed, in tokens. Here they are called runs."""
MAX_RUN = RUN_LENGTHS[-1]
"""The length of the longest run, in tokens."""
MAX_MATCH = 2 * MAX_RUN
"""Maximum number of tokens compared to measure a match."""
MAX_ID = 2**31 - 1
"""Highest token id that fits the four bytes per token."""
BREAK = -1
"""Stored between two texts, instead of a token id."""

MAX_SINGLE_ADDS = 24
"""Up to this many tokens are added one by one, which is faster than NumPy for few tokens."""
BATCH_SIZE = 65_536
"""Maximum number of tokens that NumPy adds at once; it bounds the temporary memory."""
INITIAL_CAPACITY = 64
"""Number of tokens that a new index has room for, if its maximum is not lower; the room doubles up to the maximum."""

HASH_BASE, HASH_MULTIPLIER, UINT64_MASK = 0x9E6C_63D0_876A_68E5, 0x9E37_79B9_7F4A_7C15, 2**64 - 1
"""A run's hash is a polynomial in HASH_BASE modulo 2**64; its slot is the high bits of hash times multiplier."""
_BASE_POWERS = [pow(HASH_BASE, exponent, 2**64) for exponent in range(MAX_RUN)]


class NgramIndex:
    """A bounded store of texts as token ids, in which `find` finds earlier occurrences of the end of a path.

    Runs of 1, 2, 4, 8 and 16 tokens are indexed. The position of a token is the number of tokens and breaks between
    texts that were ever added before it. When the store is full, the oldest tokens are overwritten.
    """

    max_run = MAX_RUN
    """Length of the longest indexed run."""
    max_steps = 32
    """Maximum number of positions visited per run length in `find`, hash collisions included."""

    def __init__(self, most: int = 65_536) -> None:
        """Make an empty index that keeps the latest `most` tokens; a break between two texts counts as a token.

        A ValueError is raised unless `most` is a whole number from 1 to MAX_ID.
        """
        if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MAX_ID:
            raise ValueError(f"most is {short_repr(most)}, and must be a whole number of tokens from 1 to {MAX_ID}.")
        self.max_tokens = most
        self._end = 0
        """The position of the next token."""
        self._tail: list[int] = []
        """The last tokens of the current text, at most MAX_RUN, also those that were overwritten."""
        self._tokens = array("i")
        """The tokens, as a ring buffer: position modulo capacity."""
        self._tables: list[_RunTable] = []
        """One table per run length."""
        self._reserve(INITIAL_CAPACITY)

    @property
    def size(self) -> int:
        """Number of stored tokens; a break between texts counts as one."""
        return min(self._end, self.max_tokens)

    @property
    def bytes(self) -> int:
        """Memory of the index, in bytes."""
        return sys.getsizeof(self._tokens) + sum(table.bytes for table in self._tables) + sys.getsizeof(self._tail)

    def add(self, token_ids: Sequence[int]) -> None:
        """Append tokens to the current text, also none; if the store is full, the oldest tokens are overwritten.

        A ValueError is raised, and nothing is added, unless all are whole numbers from 0 to MAX_ID.
        """
        tokens = _as_int32(token_ids)
        if len(tokens) <= MAX_SINGLE_ADDS:
            for token_id in tokens:
                self._add_one(token_id)
            return
        piece = min(BATCH_SIZE, self.max_tokens)
        for start in range(0, len(tokens), piece):
            self._add_many(tokens[start : start + piece])

    def begin_text(self) -> None:
        """Begin a new text after the current one; does nothing while the current one is empty.

        No run spans the two texts, and `find` returns no position of a text's first token.
        """
        if self._tail:
            self._append(BREAK)
            self._tail.clear()

    def find(self, path: Sequence[int], count: int = 4) -> tuple[list[int], int]:
        """Return the positions right after earlier occurrences of the path's end, and the first one's match length.

        The path's end is its longest run (16, 8, 4, 2 or 1 tokens) that is found; if none is, or the path is empty, the
        result is `([], 0)`. Returned are at most `count` positions, the latest of those visited (see `max_steps`),
        sorted by match length, the longest first, then the latest first. The match length is the number of tokens
        before a position that equal the path's last ones, at most MAX_MATCH. Each position holds a token. A ValueError
        is raised if `count` is below 1, or if the end of `path` holds something else than token ids.
        """
        if count < 1:
            raise ValueError(f"count is {short_repr(count)}, and must be 1 or more.")
        tail = _as_int32(path[-MAX_MATCH:])
        hashes = _run_hashes(tail)
        for table, value in zip(reversed(self._tables[: len(hashes)]), reversed(hashes), strict=True):
            if found := self._matching_positions(table, value, tail, count):
                matched = [(self._match_length(position, table.length, tail), position) for position in found]
                matched.sort(reverse=True)
                return [position for _, position in matched], matched[0][0]
        return [], 0

    def token_at(self, position: int) -> int | None:
        """Return the token id at a position; None if it is overwritten, not added yet, or a break between texts."""
        if not self._oldest <= position < self._end:
            return None
        token_id = self._tokens[position % self._capacity]
        return None if token_id == BREAK else token_id

    @property
    def _oldest(self) -> int:
        """The oldest position that is still stored; 0 if the index is empty."""
        return max(0, self._end - self.max_tokens)

    @property
    def _capacity(self) -> int:
        """Number of tokens that the ring buffer has room for at present."""
        return len(self._tokens)

    def _matching_positions(self, table: _RunTable, value: int, tail: array[int], count: int) -> list[int]:
        """Return at most `count` positions right after stored runs that equal the end of `tail`, the latest first.

        The runs have the table's length, and `tail` is at least as long; `value` is the hash of its end. At most
        `max_steps` positions are visited, so there may be more than are returned.
        """
        tokens, capacity, last = self._tokens, len(self._tokens), tail[-1]
        run, found = tail[-table.length :], []
        for position in islice(table.positions(table.slot(value), self._oldest), self.max_steps):
            # One token rules out most collisions.
            if tokens[(position - 1) % capacity] == last and self._before(position, table.length) == run:
                found.append(position)
                if len(found) == count:
                    break
        return found

    def _match_length(self, position: int, known: int, tail: array[int]) -> int:
        """Return how many tokens right before a position equal the end of `tail`, counted backwards from both ends.

        The nearest `known` are known to be equal, and are counted. The result is at most the length of `tail`.
        """
        limit = min(len(tail), position - self._oldest)
        before = self._before(position, limit)
        while known < limit and before[-known - 1] == tail[-known - 1]:
            known += 1
        return known

    def _before(self, position: int, length: int) -> array[int]:
        """Return the `length` tokens and breaks before a position, the oldest first; all must still be stored."""
        stop = position % self._capacity
        start = stop - length
        return self._tokens[start:stop] if start >= 0 else self._tokens[start:] + self._tokens[:stop]

    def _add_one(self, token_id: int) -> None:
        """Append a token to the current text, and link its position to the runs of that text before it."""
        position, tail = self._end, self._tail
        self._append(token_id)
        for table, value in zip(self._tables, _run_hashes(tail), strict=False):
            table.link(value, position)
        tail.append(token_id)
        if len(tail) > MAX_RUN:
            del tail[0]

    def _add_many(self, tokens: array[int]) -> None:
        """Append tokens to the current text with NumPy, and link their positions to the runs before them.

        There must be at least one, at most BATCH_SIZE, and at most `max_tokens`.
        """
        self._reserve(self._end + len(tokens))
        start = self._end % self._capacity
        fits = min(len(tokens), self._capacity - start)
        self._tokens[start : start + fits] = tokens[:fits]
        self._tokens[: len(tokens) - fits] = tokens[fits:]
        self._link_runs(self._end, array("i", self._tail) + tokens, skip=len(self._tail))
        self._end += len(tokens)
        self._tail = (self._tail + tokens[-MAX_RUN:].tolist())[-MAX_RUN:]

    def _append(self, token_id: int) -> None:
        """Store a token id or BREAK at the next position; do not link it to the runs before it, nor add it to the tail.

        If the buffer is full and may still grow, `_reserve` enlarges it first and makes the tables anew; at
        `max_tokens`, the oldest token is overwritten.
        """
        if self._end >= self._capacity < self.max_tokens:
            self._reserve(self._end + 1)
        self._tokens[self._end % self._capacity] = token_id
        self._end += 1

    def _reserve(self, wanted: int) -> None:
        """Make room for `wanted` tokens: the next power of two, at least INITIAL_CAPACITY, at most `max_tokens`.

        If the index is empty, or its room is less than that, the buffer and the tables are made anew with the stored
        tokens; else nothing changes.
        """
        capacity = min(self.max_tokens, max(INITIAL_CAPACITY, 1 << (wanted - 1).bit_length()))
        held = self._tokens if self._end else array("i")
        if capacity <= len(held):
            return
        self._tables = []  # frees their memory before the new ones are made
        self._tokens = held + array("i", [0]) * (capacity - len(held))
        self._tables = [_RunTable(length, capacity) for length in RUN_LENGTHS]
        for start in range(0, self._end, BATCH_SIZE):
            first = max(0, start - MAX_RUN)
            self._link_runs(start, self._tokens[first : min(start + BATCH_SIZE, self._end)], skip=start - first)

    def _link_runs(self, position: int, tokens: array[int], skip: int) -> None:
        """Add the positions of these tokens to the tables, without those of breaks and of the first `skip` tokens.

        A position is added to the table of each run length for which there is a run, without a break, right before it;
        the first `skip` tokens may be part of such a run. `position` is that of the first token after them.
        """
        ids = np.frombuffer(tokens, dtype=np.int32)
        positions = np.arange(position - skip, position - skip + len(ids))
        breaks = np.where(ids == BREAK, np.arange(len(ids)), -1)
        tokens_since_break = np.arange(len(ids)) - np.maximum.accumulate(breaks) - 1
        hashes = ids.astype(np.uint64)
        for table in self._tables:
            if table.length > 1:
                half = table.length // 2
                hashes[half:] += np.uint64(_BASE_POWERS[half]) * hashes[:-half]
            after_runs = np.flatnonzero(tokens_since_break >= table.length)
            after_runs = after_runs[after_runs >= skip]
            table.link_many(hashes[after_runs - 1], positions[after_runs])

    def check(self) -> None:
        """Check for tests: raise AssertionError unless exactly the stored runs of tokens can be found."""
        assert self.size <= self._capacity <= self.max_tokens, (
            "the capacity holds the tokens and is at most the maximum"
        )
        known = [self._tokens[position % self._capacity] for position in range(self._oldest, self._end)]
        recent = known[-MAX_RUN:]
        text = recent[len(recent) - recent[::-1].index(BREAK) :] if BREAK in recent else recent
        forgotten = 0 if BREAK in recent else len(self._tail) - len(text)
        assert len(self._tail) <= MAX_RUN, "the tail is no longer than a run"
        assert self._tail[forgotten:] == text, "the tail is the end of the text"
        for table in self._tables:
            table.check(self._expected_positions(known, table.length), self._oldest)

    def _expected_positions(self, known: list[int], length: int) -> dict[int, int]:
        """Return, by position, the hash of the run of `length` tokens right before it, for `check`.

        Only positions that hold a token and have such a run of stored tokens, without a break, are in it. `known` are
        all stored tokens and breaks, the oldest first.
        """
        windows = ((stop, known[stop - length : stop]) for stop in range(length, len(known)) if known[stop] != BREAK)
        return {self._oldest + stop: _run_hashes(window)[-1] for stop, window in windows if BREAK not in window}


class _RunTable:
    """A hash table from runs of one length to the positions after them, chained from the latest to the oldest.

    `NgramIndex` has one for each run length. A run's slot is made of its hash, so the runs of several hashes may share
    one. `capacity` is the number of tokens that the index has room for; when it makes more room, it makes new tables.
    """

    def __init__(self, length: int, capacity: int) -> None:
        self.length = length
        self._capacity = capacity
        bits = max(1, (capacity - 1).bit_length())
        # A product's high bits depend on all bits of the hash.
        self._shift = 64 - bits
        self._latest = array("q", [0]) * (1 << bits)
        """By slot, the latest position; 0 for none, since no run precedes position 0."""
        self._gaps = array("i", [0]) * capacity
        """By position modulo capacity, the distance to the next older position in its slot; 0 if there is none."""

    @property
    def bytes(self) -> int:
        """Memory of the table, in bytes."""
        return sys.getsizeof(self._latest) + sys.getsizeof(self._gaps)

    def slot(self, value: int) -> int:
        """Return the slot, a number from 0, that belongs to a run's hash."""
        return (value * HASH_MULTIPLIER & UINT64_MASK) >> self._shift

    def positions(self, slot: int, oldest: int) -> Iterator[int]:
        """Yield the positions in a slot, the latest first, whose run begins at position `oldest` or later.

        Runs of other tokens may share the slot, so the caller compares the tokens.
        """
        position = self._latest[slot]
        while position - self.length >= oldest:
            yield position
            gap = self._gaps[position % self._capacity]
            if not gap:
                return
            position -= gap

    def link(self, value: int, position: int) -> None:
        """Add the position after the run that has the hash `value`; it must be later than all added before."""
        slot, latest, capacity = (value * HASH_MULTIPLIER & UINT64_MASK) >> self._shift, self._latest, self._capacity
        before = latest[slot]
        latest[slot] = position
        self._gaps[position % capacity] = position - before if before and position - before < capacity else 0

    def link_many(self, values: Any, positions: Any) -> None:
        """Add the positions after the runs that have the hashes `values`, as NumPy arrays of uint64 and int64.

        Positions ascend, are later than those added before, and span at most the capacity. None at all is allowed.
        """
        if not len(positions):
            return
        latest, gaps = np.frombuffer(self._latest, np.int64), np.frombuffer(self._gaps, np.int32)
        slots = (values * np.uint64(HASH_MULTIPLIER) >> np.uint64(self._shift)).astype(np.int64)
        order = np.argsort(slots, kind="stable")
        slots, positions = slots[order], positions[order]
        first_in_slot = np.flatnonzero(np.diff(slots, prepend=-1))
        before = np.concatenate([positions[:1], positions[:-1]])
        before[first_in_slot] = latest[slots[first_in_slot]]
        distance = positions - before
        gaps[positions % self._capacity] = np.where((before > 0) & (distance < self._capacity), distance, 0)
        latest[slots] = positions

    def check(self, expected: dict[int, int], oldest: int) -> None:
        """Check for tests: raise AssertionError unless exactly the expected positions are found, in their slots.

        `expected` holds, by position, the hash of the run of tokens before it; positions found are removed from it.
        Positions in the table whose run begins before `oldest` are not looked at.
        """
        for slot in range(len(self._latest)):
            reached = list(islice(self.positions(slot, oldest), self._capacity + 1))
            assert reached == sorted(set(reached), reverse=True), "the positions of a slot descend"
            for position in reached:
                assert position in expected, f"a position that no whole run precedes: {position}"
                assert self.slot(expected.pop(position)) == slot, f"a position in the slot of another run: {position}"
        assert not expected, f"positions that cannot be found: {list(expected)}"


def _run_hashes(tokens: Sequence[int]) -> list[int]:
    """Return the hashes of the last 1, 2, 4, 8 and 16 tokens, in this order, without lengths that `tokens` lacks.

    Hashes are integers of any size, of which only the low 64 bits count.
    """
    sums = list(accumulate(map(mul, reversed(tokens), _BASE_POWERS)))
    return [sums[length - 1] for length in RUN_LENGTHS if length <= len(sums)]


def _as_int32(token_ids: Sequence[int]) -> array[int]:
    """Return the ids in a new array of four-byte integers; raise a ValueError unless all are from 0 to MAX_ID.

    A ValueError is also raised if one is no integer, or if `token_ids` cannot be iterated.
    """
    try:
        tokens = array("i", list(token_ids))
        is_valid = not tokens or min(tokens) >= 0
    except (OverflowError, TypeError):
        is_valid = False
    if not is_valid:
        raise ValueError(f"token_ids holds something else than whole numbers from 0 to {MAX_ID}; give token ids.")
    return tokens
