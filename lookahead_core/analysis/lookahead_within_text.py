"""Lookaheads from the middle of a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lookahead_core.analysis.text_spans import first_character, node_before, reading_windows, text_end_before, token_at
from lookahead_core.document.document import Document
from lookahead_core.document.results import LookaheadStep
from lookahead_core.errors import LookaheadError
from lookahead_core.strategies.keywords import takes_options
from lookahead_core.strategies.lookahead_options import LookaheadOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lookahead_core.strategies.keywords import LookaheadKeywords


@takes_options(LookaheadOptions)
def lookahead_steps_at(document: Document, start: int, **options: Unpack[LookaheadKeywords]) -> Iterator[LookaheadStep]:
    """Yield the steps of a lookahead from the middle of the text, as if it ended before the token at character `start`.

    The text stays as it is, and a new view of the tree begins. The options are those of `Document.lookahead`; `heal`
    has no effect. The first step raises ValueError for a wrong option or if no token begins at `start`, and
    LookaheadError if the model reads no token before it. A later step raises LookaheadError if another view has begun,
    as by setting the text or by another lookahead.
    """
    checked_options = LookaheadOptions.of(options)
    document.require_room(checked_options.depth)
    token = token_at(document, start)
    window = next(window for window in reading_windows(document) if window.begin <= token < window.end)
    context, opening = document.model.context_length, document.passage.start_count
    document.new_view()
    read_from = window.start
    if context is not None:
        read_from = max(read_from, token - (context - opening - checked_options.depth))
    origin = node_before(document, token, read_from)
    if not origin.depth:
        raise LookaheadError("Nothing precedes the first word, so there is nothing to look ahead from.")
    text_end, seen_from = text_end_before(document, token), first_character(document, read_from)
    yield from document.grow_branches(checked_options, origin, text_end, seen_from)
