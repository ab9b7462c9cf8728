"""The set of the words in a text, for comparing texts."""

from __future__ import annotations

import re

from lookahead_core.text.boundaries import is_space_separated

_LETTERS_AND_DIGITS = re.compile(r"[^\W_]+")


def words_in(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, without signs and white space; numbers count as words.

    In scripts without spaces between words each character counts as a word.
    """
    runs = _LETTERS_AND_DIGITS.findall(text.casefold())
    return frozenset(word for run in runs for word in ([run] if is_space_separated(run[0]) else run))
