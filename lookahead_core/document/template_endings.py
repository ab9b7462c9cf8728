"""Where a template ends a message in plain words: a branch that begins these is an ending, and none of them is text."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TypeVar

from lookahead_core.document.result_context import coverage_of, shared_anew
from lookahead_core.document.results import Beams, Branch, Lookahead
from lookahead_core.text.chat import Conversation

B = TypeVar("B", bound=Branch)
R = TypeVar("R", Lookahead, Beams)


def closed(result: R, conversation: Conversation, text: str) -> R:
    """The same result, with no branch beyond the end of the message; the text may have begun that end.

    Shares, probabilities and coverage are those of the branches as they are left. Branches that have become equal are
    one, except for samples, where the streams that drew the same stay as many branches as they are.
    """
    before = text[max(0, len(text) - len(conversation.turn_end_text) + 1) :] if conversation.turn_end_text else ""
    branches = [_closed(branch, conversation, before) for branch in result.branches]
    if all(one is other for one, other in zip(branches, result.branches, strict=True)):
        return result
    if isinstance(result, Beams):
        return replace(result, branches=shared_anew(_distinct(branches)))
    if result.options.mode != "sampled":
        branches = _distinct(branches)
    return replace(result, branches=shared_anew(branches), coverage=coverage_of(branches))


def _distinct(branches: list[B]) -> list[B]:
    """Of equal branches the first one."""
    once: dict[tuple[int, ...], B] = {}
    for branch in branches:
        once.setdefault(branch.token_ids, branch)
    return list(once.values())


def _closed(branch: B, conversation: Conversation, before: str) -> B:
    """The branch up to the piece with which the end begins, which stands for an end token then."""
    place = conversation.find_turn_end(before + branch.text)
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
