"""Stop conditions of a stream that depend on its text: stop strings, and a maximum number of words."""

from __future__ import annotations

from collections.abc import Sequence

from lookahead_core.text.boundaries import CONTEXT_CHARACTERS, WORD, boundary_levels


class StopStrings:
    """Finds stop strings in a text that comes in parts, and holds back characters that may belong to one.

    `before` is the text before the first part: a stop string may begin there, but must end in the new text.
    """

    def __init__(self, stops: Sequence[str], before: str) -> None:
        self.found = ""
        """The stop string that has come; empty until then."""
        self._stops = stops
        self._reach = max(map(len, stops), default=1) - 1
        self._shown = before[-self._reach :] if self._reach else ""
        """The end of the text released so far."""
        self._held = ""

    def add(self, more: str) -> str:
        """Add new characters; return those, held ones included, that are now certain to come before any stop string.

        Sets `found` if a stop string is complete; of several, the one that is complete first counts. Its characters and
        all after it are dropped, and nothing may be added then.
        """
        text, known = self._shown + self._held + more, len(self._shown)
        found = [(self._end(text, stop, known), stop) for stop in self._stops]
        matches = [(end, end - len(stop), stop) for end, stop in found if end]
        if matches:
            _, start, self.found = min(matches)
            self._held = ""
            return text[known : max(known, start)]
        keep = min(len(text) - known, max((_overlap(text, stop) for stop in self._stops), default=0))
        self._held = text[len(text) - keep :]
        certain = text[known : len(text) - keep]
        self._shown = (self._shown + certain)[-self._reach :] if self._reach else ""
        return certain

    def rest(self) -> str:
        """Return the characters still held back, and hold none; to be called at the end of the text."""
        held, self._held = self._held, ""
        return held

    def _end(self, text: str, stop: str, known: int) -> int:
        """Return the index after the first `stop` in `text` that ends beyond its first `known` characters; else 0."""
        start = text.find(stop, max(0, known - len(stop) + 1))
        return start + len(stop) if start >= 0 else 0


class WordLimit:
    """Finds where a text that comes in pieces, one per token, has had `limit` words; None is no limit.

    `before` is the text before the first piece; a word begun there counts if a piece goes on with it. Whether a word
    has ended may be certain only after the next piece.
    """

    def __init__(self, limit: int | None, before: str) -> None:
        self._limit = limit
        self.beyond = False
        """Whether the last piece already belongs to the word after the last allowed one."""
        self._before = before[-CONTEXT_CHARACTERS:]
        self._piece = ""
        self._has_letters = False
        self._count = 0

    def add(self, piece: str) -> bool:
        """Add a piece; return whether the last allowed word has ended, with or before this piece.

        In the latter case `beyond` is set, and the piece is not part of the allowed text. False without a limit, and
        for an empty piece. Runs without a letter or digit do not count as words, and a piece counts as one at most.
        """
        if self._limit is None or not piece:
            return False
        former, self._piece = self._piece, piece
        if former and boundary_levels([former], self._before, after=piece)[0] >= WORD:
            self.beyond = self._end_word()
        self._before = (self._before + former)[-CONTEXT_CHARACTERS:]
        self._has_letters |= any(character.isalnum() for character in piece)
        if not self.beyond and boundary_levels([piece], self._before)[0] >= WORD:
            return self._end_word()
        return self.beyond

    def _end_word(self) -> bool:
        self._count += self._has_letters
        self._has_letters = False
        return self._count >= (self._limit or 0)


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest proper prefix of a stop string that the text ends with; 0 if there is none."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)
