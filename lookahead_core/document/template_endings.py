"""Chat templates that end a message with plain text: cuts results there, so that this text counts as an end token."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TypeVar

from lookahead_core.document.coverage import coverage_of, with_new_shares
from lookahead_core.document.results import Beams, Branch, Lookahead
from lookahead_core.text.chat import Conversation

B = TypeVar("B", bound=Branch)
R = TypeVar("R", Lookahead, Beams)


def closed(result: R, conversation: Conversation, text: str) -> R:
    """Return the result with each branch cut where its chat template's message ending begins; itself if none has one.

    Only an ending in plain text counts. `text` is the text before the branches, whose last characters may belong to the
    ending. A branch is cut before the piece in which the ending begins, has `ended` set, and keeps that piece's tokens
    in place of an end token. Shares, probabilities and a lookahead's coverage are computed anew. Branches that have
    become equal are merged, except samples.
    """
    before = text[max(0, len(text) - len(conversation.turn_end_text) + 1) :] if conversation.turn_end_text else ""
    branches = [_cut(branch, conversation, before) for branch in result.branches]
    if all(new is old for new, old in zip(branches, result.branches, strict=True)):
        return result
    if isinstance(result, Beams):
        return replace(result, branches=with_new_shares(_distinct(branches)))
    if result.options.mode != "sampled":
        branches = _distinct(branches)
    return replace(result, branches=with_new_shares(branches), coverage=coverage_of(branches))


def _distinct(branches: list[B]) -> list[B]:
    """Return the first branch of each path of token ids, in order."""
    first: dict[tuple[int, ...], B] = {}
    for branch in branches:
        first.setdefault(branch.token_ids, branch)
    return list(first.values())


def _cut(branch: B, conversation: Conversation, before: str) -> B:
    """Return a copy of the branch, with `ended` set, that ends before the piece in which the message ending begins.

    The branch itself if there is no ending, or if it has no text. The tokens of the piece that is cut off first stay in
    `token_ids`: they stand for the end token. `before` are the characters before the branch; if the ending begins
    there, no piece is left. `share` and `probability` are not computed anew.
    """
    end = conversation.find_turn_end(before + branch.text)
    if end is None or not branch.pieces:
        return branch
    reaches = itertools.accumulate(len(piece.text) for piece in branch.pieces)
    kept = sum(len(before) + reach <= end for reach in reaches)
    tokens = branch.pieces[kept].tokens
    return replace(
        branch,
        token_ids=branch.token_ids[:tokens],
        logprobs=branch.logprobs[:tokens],
        said=branch.said[:tokens],
        pieces=branch.pieces[:kept],
        ended=True,
        repeats=False,
    )
