"""`TokenBeginnings`: an index of a vocabulary by first characters, for searches of words over several tokens."""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from lookahead_core.text.boundaries import is_space_separated

NO_TEXT, HALF_CHARACTER = 0, 1
"""Indexes in `TokenBeginnings.characters` of tokens without bytes, and of those that begin inside a character."""
LONGEST_CHARACTER = 4
"""Maximum number of bytes of a character in UTF-8."""


class TokenBeginnings:
    """An index of a vocabulary: the first character of each token, and the tokens by their bytes."""

    def __init__(self, spelled: Sequence[bytes]) -> None:
        """`spelled` has the bytes of each token, by id; b"" for special tokens."""
        numbers: dict[str, int] = {}
        self.first = array("q", (self._number(each, numbers) for each in spelled))
        """For each token id, the index of its first character in `characters`."""
        self.characters: list[str] = ["", "", *numbers]
        """The distinct first characters; "" at `NO_TEXT` and `HALF_CHARACTER`."""
        self._ids: dict[bytes, list[int]] = {}
        for token_id, each in enumerate(spelled):
            if each:
                self._ids.setdefault(each, []).append(token_id)
        self._mixed = sorted(each for each in self._ids if _is_mixed(each))
        self.derived: dict[Any, Any] = {}
        """A cache for values that are computed from these tokens alone, by any key."""

    def prefixes(self, spelled: bytes, least: int = 1) -> Iterator[int]:
        """Yield the ids of tokens with which a tokenization of a word may begin; `spelled` has the word's bytes.

        Such a token equals the first bytes of the word, `least` or more; or it is longer than the word, begins with it,
        and a word may end inside the token.
        """
        for size in range(least, len(spelled) + 1):
            yield from self._ids.get(spelled[:size], ())
        low = bisect.bisect_right(self._mixed, spelled)
        high = bisect.bisect_left(self._mixed, spelled + b"\xff" * LONGEST_CHARACTER)
        for each in self._mixed[low:high]:
            yield from self._ids[each]

    @staticmethod
    def _number(spelled: bytes, numbers: dict[str, int]) -> int:
        """Return the index of a token's first character in `characters`; a new character is added to `numbers`."""
        if not spelled:
            return NO_TEXT
        first = spelled[:LONGEST_CHARACTER].decode(errors="ignore")[:1]
        if not first or not spelled.startswith(first.encode()):
            return HALF_CHARACTER
        return numbers.setdefault(first, len(numbers) + 2)


def _is_mixed(spelled: bytes) -> bool:
    """Whether a word may end inside a token. Not if it is letters or digits, at most with one space before them."""
    text = spelled.decode(errors="replace")
    return not all(map(is_space_separated, text[text.startswith(" ") :]))
