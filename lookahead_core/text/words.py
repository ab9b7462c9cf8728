"""Where the first word of a text's continuation ends, by its characters alone. Knows no tokens."""

from __future__ import annotations

import unicodedata

from lookahead_core.text.boundaries import CONTEXT_CHARACTERS, LINE_BREAKS, ends_word, is_sign

END = " "
"""Stands for the end of the text: like white space, it ends a word."""


def first_word_size(characters: str, before: str = "", *, final: bool = False) -> int | None:
    """Return the number of characters of the first word in `characters`, which continue the text `before`.

    White space before a word belongs to it. If `before` ends inside a word that `characters` continue, the first word
    is the rest of that word. A run of signs is one word; so is a run of line breaks, with the white space before it.
    Other rules are those of `boundaries`. None if the size depends on characters that are not known yet. With `final`,
    the text ends after `characters`, and the size is always known; it is 0 if they are empty.
    """
    if characters.lstrip(" ").isalpha() and characters.isascii():
        return len(characters) if final else None  # the most frequent case, which is faster than the rules
    lead = len(characters) - len(characters.lstrip())
    if any(character in LINE_BREAKS for character in characters[:lead]):
        return _line_breaks_size(characters, final)
    head = before[-CONTEXT_CHARACTERS:]
    text = head + characters + (END if final else "")
    sizes = (size for size in range(lead + 1, len(text) - len(head)) if is_word_end(text, len(head) + size))
    return next(sizes, len(characters) if final else None)


def is_word_end(text: str, index: int) -> bool:
    """Whether a word certainly ends before the character at `index`, from 1 to the length of the text - 1.

    False if that depends on characters after the text. Words never end after white space, nor within a run of signs
    except before an opening bracket or quotation mark.
    """
    last, following = text[index - 1], text[index]
    if last.isspace():
        return False
    if is_sign(last) and is_sign(following) and unicodedata.category(following) not in ("Ps", "Pi"):
        return False
    return ends_word(text, index)


def _line_breaks_size(characters: str, final: bool) -> int | None:
    """Return the number of characters up to the end of the first run of line breaks; there must be one.

    None if the run may go on: `characters` end with it, and are not `final`.
    """
    size = next(index for index, character in enumerate(characters) if character in LINE_BREAKS)
    while size < len(characters) and characters[size] in LINE_BREAKS:
        size += 1
    return size if final or size < len(characters) else None
