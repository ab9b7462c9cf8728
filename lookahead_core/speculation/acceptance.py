"""The law by which drafts are accepted, and no dice: what the model says decides, a draft only saves passes.

Two ways keep the odds of a text what they are without drafts. By agreement: the token is chosen as if there were no
drafts, and one that was drafted is right or it is not; greedy or with coupled noise, the text stays the same. By
rejection (arXiv 2302.01318, with several drafted tokens one after the other): a drafted token is taken with the
probability min(1, p / q), else the next one is tried on what is left; the text is another one, its odds are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from lookahead_core.tree import Node

T = TypeVar("T")


def agreeing(head: Node, choose: Callable[[Node], int | None], drafted: Callable[[Node], bool]) -> Iterator[Node]:
    """The nodes from `head` on that stand: each the child that was chosen, as long as it was drafted."""
    node: Node | None = head
    while node is not None:
        yield node
        token_id = choose(node)
        child = None if token_id is None else node.children.get(token_id)
        node = child if child is not None and drafted(child) else None


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What became of the drafted tokens at one place."""

    token_id: int
    """The token that comes: a drafted one, or the draw from what they leave."""
    accepted: bool


def rejection(
    odds: torch.Tensor, drafted: Sequence[tuple[int, torch.Tensor | None]], dice: Iterable[float], last: float
) -> Acceptance:
    """Take one of the drafted tokens, or draw another, so that every token comes with its odds.

    `odds` are probabilities that add up to one. Each drafted token comes with the probabilities that it was drawn from,
    given that those before it were rejected; None stands for one that was no draw, but sure to be drafted. `dice` are
    numbers from 0 to 1, one for each drafted token, and `last` is the one for the draw.
    """
    left = odds
    for (token_id, source), die in zip(drafted, dice, strict=False):
        share = 1.0 if source is None else float(source[token_id])
        if float(left[token_id]) > die * share:
            return Acceptance(token_id, accepted=True)
        left = residual(left, token_id, source)
    return Acceptance(drawn(left, last), accepted=False)


def residual(odds: torch.Tensor, token_id: int, source: torch.Tensor | None) -> torch.Tensor:
    """What is left to draw from once a drafted token was rejected: what the draft's odds do not cover."""
    if source is None:
        left = odds.clone()
        left[token_id] = 0
    else:
        left = (odds - source).clamp_min(0)
    total = float(left.sum())
    # Where rounding leaves nothing, draft and model agree, and the model's odds are as good.
    return left / total if total > 0 else odds


def drawn(odds: torch.Tensor, die: float) -> int:
    """The token that a number from 0 to 1 falls on."""
    heights = odds.cpu().double().cumsum(-1)  # not all devices have numbers so wide
    place = int(torch.searchsorted(heights, die * float(heights[-1]), right=True))
    open_ids = odds.nonzero()[:, 0]
    return min(place, int(open_ids[-1]))


def agreement(said: Sequence[T], asked: Sequence[T], ends: Collection[T] = ()) -> int:
    """How many tokens two texts have in common from the beginning; after an end token nothing is compared."""
    for place, (one, other) in enumerate(zip(said, asked, strict=False)):
        if one != other:
            return place
        if one in ends:
            return place + 1
    return min(len(said), len(asked))
