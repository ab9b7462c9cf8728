"""Positions in a document's text: which characters a token adds, which word it is part of, and the node before it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lookahead_core.document.document import Document
from lookahead_core.errors import LookaheadError
from lookahead_core.text.boundaries import WORD, boundary_levels
from lookahead_core.text.passage import TextEnd
from lookahead_core.tree import Node
from lookahead_core.validation import short_repr

BATCH = 64
"""Pieces whose word boundaries are found at once: the time grows with the square of the length of the text."""


@dataclass(frozen=True, slots=True)
class ReadingWindow:
    """Tokens of a long text that are predicted together, and where the model starts to read for them.

    The predicted tokens are those from `begin` to before `end`. The model reads the opening and then the text from
    `start` on, which fits into its context.
    """

    start: int
    """Index of the first text token that the model reads."""
    begin: int
    """Index of the first token whose prediction is made in this window."""
    end: int
    """Index after the last of those tokens."""


def reading_windows(document: Document, overlap: float = 0.5) -> list[ReadingWindow]:
    """Return the windows in which a text is read; one window if it fits into the model's context.

    They are in order, and each text token is predicted in one of them. In every window but the first, the model reads
    at least the share `overlap`, 0 to 1, of a window before each of these tokens, and at least one token. Raises
    LookaheadError if the document's opening leaves room for fewer than two tokens in the model's context.
    """
    length, first, context = len(document.token_ids), document.passage.start_count, document.model.context_length
    room = length if context is None else context - first
    if context is not None and room < 2:
        raise LookaheadError("The model's context has no room for text: shorten the instruction.")
    windows = [ReadingWindow(first, first, min(length, first + room + 1))]
    while (begin := windows[-1].end) < length:
        start = begin - max(1, int((room + 1) * overlap))
        windows.append(ReadingWindow(start, begin, min(length, start + room + 1)))
    return windows


def token_spans(document: Document) -> Iterator[tuple[int, int, int, int]]:
    """Yield the text in the shortest runs of tokens that add at least one whole character; often a single token.

    Each run is (first token, index after the last token, first character, index after the last character); tokens are
    counted as in `document.token_ids`. Start tokens or the opening, and tokens at the end that add no whole character,
    are in none.
    """
    tokens, first = document.passage.tokens, document.passage.start_count
    start = 0
    for index in range(first, len(tokens)):
        end = tokens[index].end
        if end > start:
            yield first, index + 1, start, end
            first, start = index + 1, end


def word_spans(pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Return, for each piece of a text, the word that it is part of: first character, and index after the last one.

    Words are made of whole pieces and leave no gaps: white space and signs in a piece belong to its word.
    """
    words: list[tuple[int, int]] = []
    end, start, count = 0, 0, 0
    for piece, complete in zip(pieces, _completes_word(pieces), strict=True):
        end, count = end + len(piece), count + 1
        if complete or len(words) + count == len(pieces):
            words += [(start, end)] * count
            start, count = end, 0
    return words


def _completes_word(pieces: Sequence[str]) -> Iterator[bool]:
    """Yield for each piece of a text whether a word ends with it; False for a last piece after which it may go on."""
    return (level >= WORD for level in piece_levels(pieces))


def piece_levels(pieces: Sequence[str]) -> Iterator[int]:
    """Yield for each piece of a text the level of the boundary after it, see `boundary_levels`, in linear time."""
    for start in range(0, len(pieces), BATCH):
        before = "".join(pieces[max(0, start - BATCH) : start])
        after = "".join(pieces[start + BATCH : start + 2 * BATCH])
        yield from boundary_levels(pieces[start : start + BATCH], before, after)


def node_before(document: Document, token: int, read_from: int) -> Node:
    """Return the node just before the text's token with index `token`, whose prediction is of that token.

    The node's path is the opening (or start tokens), which is always read, and the text from the token `read_from` on;
    missing nodes are created. It is the root if nothing is read before the token. Both indexes are those of
    `document.token_ids`, and neither may lie within the opening.
    """
    token_ids, tree = document.token_ids, document.tree
    opening = token_ids[: document.passage.start_count]
    return tree.descend(tree.root, itertools.chain(opening, token_ids[read_from:token]))


def text_end_before(document: Document, token: int) -> TextEnd:
    """Return the `TextEnd` from which the token with this index in `document.token_ids` is decoded."""
    if not token:
        return TextEnd(document.model.codec, b"", at_start=True)
    last = document.passage.tokens[token - 1]
    return TextEnd(document.model.codec, last.partial, at_start=not (last.end or last.partial))


def first_character(document: Document, token: int) -> int:
    """Return the index of the character at which the token with this index in `document.token_ids` begins.

    0 for start tokens and an opening. A token that begins within a character begins at that character.
    """
    return document.passage.tokens[token - 1].end if token else 0


def token_at(document: Document, start: int) -> int:
    """Return the index in `document.token_ids` of the token that begins at character `start`; ValueError if none does.

    If several tokens make that character together, the first of them.
    """
    token = next((first for first, _, begins, _ in token_spans(document) if begins == start), None)
    if token is None:
        raise ValueError(
            f"start is {short_repr(start)}, and must be the character at which a token of the text begins."
        )
    return token
