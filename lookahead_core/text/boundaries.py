"""Where words, clauses, sentences and lines end, in a text that comes in pieces. Knows no tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

NOTHING, WORD, CLAUSE, SENTENCE, LINE = range(5)
"""Boundary levels: what is complete after a piece. A level includes all lower ones."""

LINE_BREAKS = "\n\r\x0b\x0c\x85\u2028\u2029"
SENTENCE_ENDS = ".!?…。．！？｡؟۔।॥‼⁇⁈⁉።"
CLAUSE_ENDS = ",;:–—，、；：､،؛﹐﹑﹔﹕፣"
CLOSERS = "\"'”’»›)]}）］｝」』】〉》〕*_"
JOINERS = "'’-‐‑_·@&/"
"""Signs that join two parts of a word, as in "light-house"."""
OPENERS = "#@¿¡"
"""Signs that begin a word or sentence."""
QUOTES = "\"'*_`"
"""Signs that open after white space, and close elsewhere."""
GLUE = "\u200d\ufe0f"
"""Characters that join emoji: the zero-width joiner and the variation selector."""
ABBREVIATIONS = frozenset(("mr", "mrs", "ms", "dr", "prof", "st", "vs", "cf", "etc", "g", "e", "no", "vol", "fig"))
"""Words after which a full stop ends no sentence; "e.g." and "i.e." by their last letter."""
CONTEXT_CHARACTERS = 24
"""How many characters before the first piece are looked at."""
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, kana and Han: scripts that put no spaces between words."""
_LAST_WORD = re.compile(r"(\w*)\.$")


def is_space_separated(character: str) -> bool:
    """Whether the character is a letter or digit of a script that puts spaces between words; False for "".

    Thai, Lao, Burmese, Khmer, kana and Han are taken as the scripts that put none.
    """
    return character.isalnum() and not _UNSPACED.match(character)


def boundary_levels(pieces: Sequence[str], before: str = "", after: str = "", final: bool = False) -> tuple[int, ...]:
    """Return what is complete after each piece, in order: 0 nothing, 1 a word, 2 a clause, 3 a sentence, 4 a line.

    `before` is the text before the first piece, of which the last `CONTEXT_CHARACTERS` count, and `after` the known
    text after the last. With `final` and no `after`, nothing follows the last piece, and its level is 4. A piece that
    holds a line break has level 4; any other has level 0 while all pieces so far are white space. If a boundary depends
    on the next character and that is unknown, the level is lower.
    """
    head = before[-CONTEXT_CHARACTERS:]
    text = head + "".join(pieces) + after
    levels, index = [], len(head)
    for piece in pieces:
        index += len(piece)
        finished = final and index == len(text)
        levels.append(LINE if finished else _level(text, len(head), index, piece))
    return tuple(levels)


def _level(text: str, start: int, index: int, piece: str) -> int:
    """Return the boundary level at `index` of a text, 0 to 4 as in `boundary_levels`.

    `piece` is the piece that ends at `index`: a line break anywhere in it makes the level 4. `start` is the index at
    which the first piece begins; if only white space lies between `start` and `index`, the level is 0. The text after
    `index` is the known text that follows.
    """
    if any(character in LINE_BREAKS for character in piece):
        return LINE
    end = start + len(text[start:index].rstrip())
    if end == start:
        return NOTHING
    following = text[end : end + 1]
    sign = len(text[:end].rstrip(CLOSERS)) - 1
    if sign >= 0 and following and following not in CLOSERS:
        if text[sign] in SENTENCE_ENDS and _is_sentence_end(text, sign, following):
            return SENTENCE
        if text[sign] in CLAUSE_ENDS and not (_digit(text, sign - 1) and _digit(text, sign + 1)):
            return CLAUSE
    return WORD if ends_word(text, index) else NOTHING


def _is_sentence_end(text: str, sign: int, following: str) -> bool:
    """Whether the sign at index `sign`, one of `SENTENCE_ENDS`, ends a sentence.

    `following` is the first character after the sign and its closing quotes or brackets. False if that is another of
    `SENTENCE_ENDS`, or "". A "." that follows none of them ends no sentence before a letter or digit (as in
    numbers and file names), nor after one of `ABBREVIATIONS` or a single capital letter except "I".
    """
    if following in SENTENCE_ENDS:
        return False
    if text[sign] not in ".．" or (sign and text[sign - 1] in SENTENCE_ENDS):
        return True
    if following.isalnum():
        return False
    word = _LAST_WORD.search(text[: sign + 1])
    last = word[1] if word else ""
    return last.lower() not in ABBREVIATIONS and not (len(last) == 1 and last.isupper() and last != "I")


def ends_word(text: str, index: int) -> bool:
    """Whether the text just before `index`, at least 1, is complete as a word: also after white space and most signs.

    False if that depends on the next character and the text ends at `index`.
    """
    last, following = text[index - 1], text[index : index + 1]
    if last.isspace() or following.isspace():
        return True
    if following and (_extends_previous(following) or last == GLUE[0]):
        return False
    if is_sign(last):
        return _closes_word(text, index)
    if _UNSPACED.match(last):
        return True
    return bool(following) and (
        _interrupts_word(text, index) if is_sign(following) else bool(_UNSPACED.match(following))
    )


def _interrupts_word(text: str, index: int) -> bool:
    """Whether the sign at `index` ends the word before it: True if `_joins` is false for the sign.

    Otherwise True only if the text goes on after the sign, and not with a letter or digit (after "." and ",": a digit).
    """
    if not _joins(text, index):
        return True
    after_sign = text[index + 1 : index + 2]
    return bool(after_sign) and not (_digit(text, index + 1) if text[index] in ".," else after_sign.isalnum())


def _closes_word(text: str, index: int) -> bool:
    """Whether a word is complete after the sign at `index - 1`; `index` is at least 1.

    False for an opening bracket or quote, a currency sign and one of `OPENERS`. False too for a sign for which `_joins`
    is true, if a letter or digit follows it or if the text ends at `index`. Otherwise True.
    """
    last, following = text[index - 1], text[index : index + 1]
    earlier = text[index - 2 : index - 1]
    if unicodedata.category(last) in ("Ps", "Pi", "Sc") or last in OPENERS:
        return False
    if last in QUOTES and (not earlier or earlier.isspace()):
        return False
    if _joins(text, index - 1):
        return bool(following) and not following.isalnum()
    return True


def _joins(text: str, index: int) -> bool:
    """Whether the sign at `index` may lie inside a word or number, by the character before it.

    True for "." or "," after a digit, and for one of `JOINERS` after a letter or digit. What follows is not looked at.
    """
    if text[index] in ".,":
        return _digit(text, index - 1)
    return text[index] in JOINERS and text[index - 1 : index].isalnum()


def _digit(text: str, index: int) -> bool:
    return 0 <= index < len(text) and text[index].isdigit()


def is_sign(character: str) -> bool:
    """Whether a character is none of these: letter, mark, number, white space, zero-width joiner.

    So punctuation, symbols, and control and format characters that are not white space are signs.
    """
    return not (character.isspace() or unicodedata.category(character)[0] in "LNM" or character == GLUE[0])


def _extends_previous(character: str) -> bool:
    """Whether one character belongs to the one before it.

    True for a combining mark, a skin-tone modifier of emoji, the zero-width joiner and a variation selector.
    """
    modifier = "\U0001f3fb" <= character <= "\U0001f3ff"
    return modifier or character in GLUE or unicodedata.category(character)[0] == "M"
