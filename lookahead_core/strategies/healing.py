"""The last typed token re-opened: odds given what was typed, and the likeliest ways that begin with it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch

from lookahead_core.strategies.branch_growth import BranchLeaf, BranchStart, Growth, among
from lookahead_core.tree import Node


@dataclass(frozen=True, slots=True)
class ReopenedToken:
    """The last typed token, to be re-opened: its text, and the tokens whose text begins with it."""

    text: bytes
    token_ids: Sequence[int]


def healed(growth: Growth, head: Node, typed: ReopenedToken) -> list[BranchLeaf]:
    """The likeliest paths below the head's parent that begin with what was typed, odds given that.

    The typed token itself inserts nothing, so it stands for the ways to go on from it; it stands whatever is banned.
    """
    assert head.parent is not None
    start = known_start(growth, head, typed)
    if start is None:
        start, *_ = evaluated_start(growth, head, typed)
    growth.start = start
    count = growth.options.k
    base = BranchLeaf(head.parent, (), (), typed=typed.text)
    # One more than are shown, since one of them may be the head's.
    leaves = [leaf for leaf in growth.ways(base, count + 1, start.said) if leaf.token_ids != (head.token_id,)]
    leaves += growth.ways(base.then(head.token_id, start.typed, start.said), count)
    return sorted(growth.distinct(leaves), key=lambda leaf: -leaf.logprob)[:count]


def known_start(growth: Growth, head: Node, typed: ReopenedToken) -> BranchStart | None:
    """Where branches begin that start with what was typed; None where that takes a pass to know."""
    assert head.parent is not None
    return (head.parent.memo or {}).get(_key(growth, head, typed))


def evaluated_start(growth: Growth, head: Node, typed: ReopenedToken) -> tuple[BranchStart, torch.Tensor, torch.Tensor]:
    """The same by a pass; and the rows of log-probabilities of the first token, and of the one after the typed one."""
    assert head.parent is not None
    before, after = growth.engine.evaluate([head.parent, head])
    after = growth.take(head, after)
    after_typed = growth.said(head)
    assert after_typed is not None
    # A tokenizer may know more tokens than the model has odds for.
    gone = growth.banned - {head.token_id}
    fitting = [token_id for token_id in typed.token_ids if token_id < len(before) and token_id not in gone]
    first, said = among(before, torch.tensor(fitting, device=before.device))
    start = BranchStart(said, float(first[head.token_id]), after_typed)
    head.tree.memoize(head.parent, _key(growth, head, typed), start)
    return start, first, after


def _key(growth: Growth, head: Node, typed: ReopenedToken) -> Hashable:
    return typed.text, head.token_id, growth.banned
