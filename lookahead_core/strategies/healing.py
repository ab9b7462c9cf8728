"""The last typed token re-opened: odds given what was typed, and the likeliest ways that begin with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lookahead_core.engines.rows import Rows
from lookahead_core.strategies.growth import Growth, Leaf, allowed
from lookahead_core.tree import Node, Prediction


@dataclass(slots=True)
class Typed:
    """The last typed token, to be re-opened: its text, and the tokens whose text begins with it."""

    text: bytes
    token_ids: Sequence[int]
    said: Prediction | None = None
    """What the model says after the head's parent, given what was typed; once it is known."""
    through: float = 0.0
    """The log-probability of the typed token itself among them."""

    def hear(self, row: torch.Tensor, token_id: int) -> torch.Tensor:
        """Take the odds among these tokens from the parent's row; returns them as a row, all others ruled out."""
        # A tokenizer may know more tokens than the model has odds for.
        allowed = torch.tensor([token_id for token_id in self.token_ids if token_id < len(row)], device=row.device)
        logprobs = row[allowed].log_softmax(0)
        said = Rows(logprobs[None]).predictions()[0]
        # These are odds among a few, of which the model gave no scores.
        token_ids = tuple(allowed[list(said.token_ids)].tolist())
        self.said = dataclasses.replace(said, token_ids=token_ids, log_total=None)
        given = torch.full_like(row, -torch.inf).index_copy(0, allowed, logprobs)
        self.through = float(given[token_id])
        return given


def healed(growth: Growth, head: Node, typed: Typed) -> list[Leaf]:
    """The likeliest paths below the head's parent that begin with what was typed, odds given that.

    The typed token itself inserts nothing, so it stands for the ways to go on from it; it stands whatever is banned.
    """
    assert head.parent is not None
    count = growth.options.k
    if _others(growth, head, typed) is None or growth.offered(head, count) is None:
        rows = growth.engine.evaluate([head.parent, head])
        given = typed.hear(rows[0], head.token_id)
        head.tree.note(head.parent, (typed.text, growth.banned), allowed(given, growth.banned))
        growth.keep(head, rows[1], count)
    base = Leaf(head.parent, (), (), typed.text)
    leaves = [growth.then(base, *pair) for pair in _others(growth, head, typed) or () if pair[0] != head.token_id]
    leaves += growth.ways(base.then(head.token_id, typed.through), count)
    return sorted(growth.distinct(leaves), key=lambda leaf: -leaf.logprob)[:count]


def _others(growth: Growth, head: Node, typed: Typed) -> list[tuple[int, float]] | None:
    """The likeliest tokens that begin with what was typed, one more than are shown since one of them is the head's."""
    assert head.parent is not None
    if typed.said is None:
        return None
    noted = (head.parent.notes or {}).get((typed.text, growth.banned))
    return growth.permitted(typed.said, growth.options.k + 1, noted)
