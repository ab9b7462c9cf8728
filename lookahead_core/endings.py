"""Where a template ends a message in plain words: a branch that begins these is an ending, and none of them is text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from lookahead_core.branches import Branch
from lookahead_core.chat import Conversation

B = TypeVar("B", bound=Branch)


def closed(branches: Iterable[B], conversation: Conversation, text: str) -> tuple[B, ...]:
    """Branches below a text, none of which goes on beyond the end of the message; the text may have begun that end."""
    before = text[max(0, len(text) - len(conversation.end_text) + 1) :] if conversation.end_text else ""
    return tuple(_closed(branch, conversation, before) for branch in branches)


def _closed(branch: B, conversation: Conversation, before: str) -> B:
    """The branch up to the piece with which the end begins, which stands for an end token then."""
    place = conversation.ends_at(before + branch.text)
    if place is None or not branch.pieces:
        return branch
    reaches = itertools.accumulate(len(piece.text) for piece in branch.pieces)
    kept = sum(len(before) + reach <= place for reach in reaches)
    tokens = branch.pieces[kept].tokens
    return replace(
        branch,
        token_ids=branch.token_ids[:tokens],
        logprobs=branch.logprobs[:tokens],
        said=branch.said[:tokens],
        pieces=branch.pieces[:kept],
        ended=True,
    )
