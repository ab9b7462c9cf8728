"""Where words, clauses, sentences and lines end, in a text that comes in pieces. Knows nothing of tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

NOTHING, WORD, CLAUSE, SENTENCE, LINE = range(5)
"""What may be complete after a piece; each of them completes those before it, too."""

BREAKS = "\n\r\x0b\x0c\x85\u2028\u2029"
SENTENCE_ENDS = ".!?…。．！？｡؟۔।॥‼⁇⁈⁉።"
CLAUSE_ENDS = ",;:–—，、；：､،؛﹐﹑﹔﹕፣"
CLOSERS = "\"'”’»›)]}）］｝」』】〉》〕*_"
JOINERS = "'’-‐‑_·@&/"
"""Signs that hold a word together where it goes on behind them."""
OPENERS = "#@¿¡"
QUOTES = "\"'*_`"
"""Signs that open where white space stands before them, and close elsewhere."""
GLUE = "\u200d\ufe0f"
ABBREVIATIONS = frozenset(("mr", "mrs", "ms", "dr", "prof", "st", "vs", "cf", "etc", "g", "e", "no", "vol", "fig"))
"""Words that a full stop belongs to; those of "e.g." and "i.e." by their last letter."""
CONTEXT_CHARACTERS = 24
"""How many characters of what stood before are looked at."""
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, kana and Han: scripts that put no spaces between words."""
_LAST_WORD = re.compile(r"(\w*)\.$")


def is_space_separated(character: str) -> bool:
    """Whether a word that begins with it stands apart from the one before it by a space."""
    return character.isalnum() and not _UNSPACED.match(character)


def boundary_levels(pieces: Sequence[str], before: str = "", after: str = "", final: bool = False) -> tuple[int, ...]:
    """What is complete after each piece, as far as known: 0 nothing, 1 a word, 2 a clause, 3 a sentence, 4 a line.

    `before` is what stood before the first piece, `after` what is known to follow the last; `over` says that nothing
    ever follows it. Where the next character decides and is not known, nothing is complete yet.
    """
    head = before[-CONTEXT_CHARACTERS:]
    text = head + "".join(pieces) + after
    flags, place = [], len(head)
    for piece in pieces:
        place += len(piece)
        finished = final and place == len(text)
        flags.append(LINE if finished else _end(text, len(head), place, piece))
    return tuple(flags)


def _end(text: str, start: int, place: int, piece: str) -> int:
    """What is complete at a place of a text whose pieces begin at `start`."""
    if any(character in BREAKS for character in piece):
        return LINE
    bare = start + len(text[start:place].rstrip())
    if bare == start:
        return NOTHING
    following = text[bare : bare + 1]
    sign = len(text[:bare].rstrip(CLOSERS)) - 1
    if sign >= 0 and following and following not in CLOSERS:
        if text[sign] in SENTENCE_ENDS and _is_sentence_end(text, sign, following):
            return SENTENCE
        if text[sign] in CLAUSE_ENDS and not (_digit(text, sign - 1) and _digit(text, sign + 1)):
            return CLAUSE
    return WORD if _ends_word(text, place) else NOTHING


def _is_sentence_end(text: str, sign: int, following: str) -> bool:
    """Whether a sentence ends with this sign: not inside numbers, names of files, abbreviations and runs of signs."""
    if following in SENTENCE_ENDS:
        return False
    if text[sign] not in ".．" or (sign and text[sign - 1] in SENTENCE_ENDS):
        return True
    if following.isalnum():
        return False
    word = _LAST_WORD.search(text[: sign + 1])
    last = word[1] if word else ""
    return last.lower() not in ABBREVIATIONS and not (len(last) == 1 and last.isupper() and last != "I")


def _ends_word(text: str, place: int) -> bool:
    last, following = text[place - 1], text[place : place + 1]
    if last.isspace() or following.isspace():
        return True
    if following and (_clings(following) or last == GLUE[0]):
        return False
    if _is_sign(last):
        return _closes(text, place)
    if _UNSPACED.match(last):
        return True
    return bool(following) and (_breaks_off(text, place) if _is_sign(following) else bool(_UNSPACED.match(following)))


def _breaks_off(text: str, place: int) -> bool:
    """Whether the sign at a place ends the word before it: what stands behind it decides where it can join."""
    if not _joins(text, place):
        return True
    behind = text[place + 1 : place + 2]
    return bool(behind) and not (_digit(text, place + 1) if text[place] in ".," else behind.isalnum())


def _closes(text: str, place: int) -> bool:
    """Whether nothing of the same word can follow the sign before a place."""
    last, following = text[place - 1], text[place : place + 1]
    earlier = text[place - 2 : place - 1]
    if unicodedata.category(last) in ("Ps", "Pi", "Sc") or last in OPENERS:
        return False
    if last in QUOTES and (not earlier or earlier.isspace()):
        return False
    if _joins(text, place - 1):
        return bool(following) and not following.isalnum()
    return True


def _joins(text: str, place: int) -> bool:
    """Whether the sign at a place may stand inside a word or a number, by what stands before it."""
    if text[place] in ".,":
        return _digit(text, place - 1)
    return text[place] in JOINERS and text[place - 1 : place].isalnum()


def _digit(text: str, place: int) -> bool:
    return 0 <= place < len(text) and text[place].isdigit()


def _is_sign(character: str) -> bool:
    """Neither a letter, a mark or a digit, nor white space."""
    return not (character.isspace() or unicodedata.category(character)[0] in "LNM" or character == GLUE[0])


def _clings(character: str) -> bool:
    """Whether a character belongs to the one before it: marks, and what changes an emoji."""
    modifier = "\U0001f3fb" <= character <= "\U0001f3ff"
    return modifier or character in GLUE or unicodedata.category(character)[0] == "M"
