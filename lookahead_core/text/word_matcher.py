"""`WordMatcher`: finds a whole word in a text that comes in pieces, by characters; knows no tokens."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace

from lookahead_core.text.boundaries import is_space_separated
from lookahead_core.text.codec import split_bytes


@dataclass(frozen=True, slots=True)
class WordState:
    """The state of a `WordMatcher` at the end of a text."""

    matched: frozenset[int] = frozenset()
    """The numbers n for which the text ends with the first n characters of the word, and these may begin the word:
    if the word begins with a letter, no letter is before them. Several numbers if the word overlaps itself."""
    after_letter: bool = False
    """Whether the last character is a letter or digit of a script with spaces between words, or a mark on one."""
    partial: bytes = b""
    """The bytes of an incomplete character at the end."""
    found: bool = False
    """Whether the text contains the word, and its end is known. Once true, it stays true."""


class WordMatcher:
    """Finds a word or phrase as a whole word; upper and lower case are different.

    If the word begins or ends with a letter or digit, no letter, digit or mark may be right before or after it, except
    in scripts without spaces between words. So the end of a word is known one character later.
    """

    def __init__(self, word: str) -> None:
        """`word` must not be empty."""
        self.word = word
        self._bound_before = is_space_separated(word[0])
        self._bound_after = is_space_separated(word[-1]) or _is_mark(word[-1])

    def start(self, before: bytes) -> WordState:
        """Return the state at the end of the text `before`. A word inside that text does not count as found.

        The last bytes of the text suffice: four for each character of the word, and eight more.
        """
        state = WordState()
        text, partial = split_bytes(b"", before)
        for character in text:
            state = replace(self._step(state, character), found=False)
        return WordState(state.matched - {len(self.word)}, state.after_letter, partial)

    def advance(self, state: WordState, more: bytes) -> WordState:
        """Return the state after `more` bytes of text; bytes that are not UTF-8 count as signs."""
        if state.found or not more:
            return state
        text, partial = split_bytes(state.partial, more)
        for character in text:
            state = self._step(state, character)
            if state.found:
                return state
        return replace(state, partial=partial)

    def is_spelled(self, state: WordState) -> bool:
        """Whether the text ends with the whole word, and the next character shows whether the word ends there."""
        return not state.found and len(self.word) in state.matched

    def is_begun(self, state: WordState) -> bool:
        """Whether the text ends with a beginning of the word, or with a part of its next character."""
        return not state.found and bool(self.open_beginnings(state))

    def open_beginnings(self, state: WordState) -> list[bytes]:
        """Return the missing rest of the word, in UTF-8, for each beginning of the word that the text ends with.

        An incomplete character at the end of the text counts as part of a beginning if the word goes on with it.
        """
        counts = {count for count in state.matched if count < len(self.word)}
        if state.partial and self._may_begin(state):
            counts.add(0)
        missing = [self.word[count:].encode() for count in sorted(counts)]
        return [rest[len(state.partial) :] for rest in missing if rest.startswith(state.partial)]

    def continues_word(self, character: str) -> bool:
        """Whether a character right after the word makes it part of a longer word."""
        return self._bound_after and _in_word(character)

    def _step(self, state: WordState, character: str) -> WordState:
        """Return the state after one more whole character."""
        bounded = self.is_spelled(state) and not self.continues_word(character)
        counts = [
            *(count for count in state.matched if count < len(self.word)),
            *([0] if self._may_begin(state) else []),
        ]
        matched = frozenset(count + 1 for count in counts if self.word[count] == character)
        found = bounded or (not self._bound_after and len(self.word) in matched)
        return WordState(matched, _in_word(character), found=found)

    def _may_begin(self, state: WordState) -> bool:
        return not (self._bound_before and state.after_letter)


def _in_word(character: str) -> bool:
    return is_space_separated(character) or _is_mark(character)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")
