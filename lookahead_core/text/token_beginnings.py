"""`TokenBeginnings`: how the tokens of a vocabulary begin, for searches of words over several tokens."""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from lookahead_core.text.boundaries import is_space_separated

NO_TEXT, HALF_CHARACTER = 0, 1
"""Indexes in `TokenBeginnings.characters` for tokens without bytes, and for those that begin with half a character."""
LONGEST_CHARACTER = 4
"""Bytes of a character in UTF-8 at most."""


class TokenBeginnings:
    """How the tokens of a vocabulary begin: their first characters, and the tokens by their bytes."""

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
        """Cache for what others compute from these tokens alone."""

    def prefixes(self, spelled: bytes, least: int = 1) -> Iterator[int]:
        """Yield the ids of tokens that a word's tokenization may begin with; `spelled` are the bytes of the word.

        The tokens spell a beginning of it of at least `least` bytes, or the whole word and more characters with which
        it may end.
        """
        for size in range(least, len(spelled) + 1):
            yield from self._ids.get(spelled[:size], ())
        low = bisect.bisect_right(self._mixed, spelled)
        high = bisect.bisect_left(self._mixed, spelled + b"\xff" * LONGEST_CHARACTER)
        for each in self._mixed[low:high]:
            yield from self._ids[each]

    @staticmethod
    def _number(spelled: bytes, numbers: dict[str, int]) -> int:
        """Return the index of a token's first character in `characters`, and add the character to `numbers`."""
        if not spelled:
            return NO_TEXT
        first = spelled[:LONGEST_CHARACTER].decode(errors="ignore")[:1]
        if not first or not spelled.startswith(first.encode()):
            return HALF_CHARACTER
        return numbers.setdefault(first, len(numbers) + 2)


def _is_mixed(spelled: bytes) -> bool:
    """Whether a word may end within a token: unless it is a space or none, and then letters or digits alone."""
    text = spelled.decode(errors="replace")
    return not all(map(is_space_separated, text[text.startswith(" ") :]))
