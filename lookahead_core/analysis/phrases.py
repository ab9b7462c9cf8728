"""Divides a text in pieces into phrases of words, and finds names and numbers among the words. Knows no model."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lookahead_core.analysis.text_spans import piece_levels
from lookahead_core.text.boundaries import CLAUSE, LINE, LINE_BREAKS, QUOTES, SENTENCE, WORD

PHRASE_WORDS = 20
"""Maximum number of words of a phrase: longer clauses are cut."""
FIRST_PERSON = ("I", "I'm", "I've", "I'd", "I'll")
"""English words with a capital letter that are not names."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text, made of whole pieces, with the white space before it and the signs after it."""

    start: int
    """Index of its first character in the text."""
    end: int
    """Index after its last character."""
    first_piece: int
    """Index of its first piece."""
    after_piece: int
    """Index after its last piece."""
    level: int
    """The boundary level after it, see `boundary_levels`."""
    protected: bool = False
    """Whether it is a name or a number."""


def phrases(pieces: Sequence[str]) -> list[list[Word]]:
    """Return the phrases of the text that `pieces` make together: lists of words, in order, which cover the text.

    A phrase ends at the end of a clause, sentence or line, and after `PHRASE_WORDS` words. White space without a word
    is part of the phrase before it.

    A word is protected if it has a digit, if it has a capital letter after its first letter, or if it begins with a
    capital letter inside a sentence, except `FIRST_PERSON`. Such a word is also protected at the beginning of a
    sentence, unless the text has it in lower case too.
    """
    text = "".join(pieces)
    words = _protect(text, list(_words(pieces, text)))
    found: list[list[Word]] = []
    ended = has_word = False
    for word in words:
        blank = text[word.start : word.end].isspace()
        if found and (blank or not ended):
            found[-1].append(word)
        else:
            found.append([word])
            ended = False
        has_word = has_word or not blank  # white space at the beginning of the text belongs to the first phrase
        ended = has_word and (ended or word.level >= CLAUSE or len(found[-1]) >= PHRASE_WORDS)
    return found


def _words(pieces: Sequence[str], text: str) -> Iterator[Word]:
    """Yield the words of a text, with `protected` False. Signs after a word belong to it; line breaks may be a word."""
    word: Word | None = None
    end = first = 0
    for index, (piece, level) in enumerate(zip(pieces, piece_levels(pieces), strict=True)):
        start, end = (word.end if word else 0), end + len(piece)
        spaces = text[start:end].isspace() and not any(sign in LINE_BREAKS for sign in text[start:end])
        if (level < WORD or spaces) and index + 1 < len(pieces):
            continue
        if word is not None and _is_attached(text, start, end):
            word = Word(word.start, end, word.first_piece, index + 1, max(word.level, level))
        else:
            if word is not None:
                yield word
            word = Word(start, end, first, index + 1, level)
        first = index + 1
    if word is not None:
        yield word


def _is_attached(text: str, start: int, end: int) -> bool:
    """Whether the characters from `start` to `end` are signs directly after a word, without white space between."""
    signs = all(unicodedata.category(character)[0] in "PS" or character.isspace() for character in text[start:end])
    return signs and not text[start].isspace() and not text[start - 1].isspace()


def _protect(text: str, words: Sequence[Word]) -> list[Word]:
    """Return copies of the words with `protected` set by the rules in `phrases`."""
    bare = [_bare(text[word.start : word.end]) for word in words]
    inside = list(_inside_sentences(text, words))
    names = {word for word, within in zip(bare, inside, strict=True) if within and _is_capitalised(word)}
    names -= {word[:1].upper() + word[1:] for word in bare if word[:1].islower()}
    return [
        Word(word.start, word.end, word.first_piece, word.after_piece, word.level, _is_protected(core, within, names))
        for word, core, within in zip(words, bare, inside, strict=True)
    ]


def _is_protected(word: str, inside: bool, names: set[str]) -> bool:
    if any(character.isdigit() for character in word) or any(character.isupper() for character in word[1:]):
        return word not in FIRST_PERSON
    return _is_capitalised(word) and (inside or word in names)


def _is_capitalised(word: str) -> bool:
    return (word[:1].isupper() or word[:1].istitle()) and word.replace("’", "'") not in FIRST_PERSON


def _bare(text: str) -> str:
    """Return a word without the signs and white space around it; "" if it has no letter or digit."""
    indexes = [index for index, character in enumerate(text) if character.isalnum()]
    return text[indexes[0] : indexes[-1] + 1] if indexes else ""


def _inside_sentences(text: str, words: Sequence[Word]) -> Iterator[bool]:
    """Yield for each word whether it is inside a sentence: False for the first one of a sentence, line or quotation."""
    level = LINE
    for word in words:
        characters = text[word.start : word.end].strip()
        quoted = level >= CLAUSE and bool(characters) and _is_opening(characters[0])
        white = text[word.start : word.end].partition(characters)[0] if characters else ""
        yield level < SENTENCE and not quoted and not any(sign in LINE_BREAKS for sign in white)
        if any(character.isalnum() for character in characters) or word.level >= LINE:
            level = word.level


def _is_opening(character: str) -> bool:
    return character in QUOTES or unicodedata.category(character) in ("Pi", "Ps")
