"""The rules by which drafted tokens are accepted. They are pure functions: random numbers are arguments.

There are two rules, and neither changes the probabilities of a text. Acceptance by agreement chooses each token as if
there were no drafts, and accepts a drafted token if it is the chosen one; greedy or with seeded noise, the text stays
the same. Acceptance by rejection (arXiv 2302.01318, with several drafted tokens one after the other) accepts a drafted
token with probability min(1, p / q), and tries the next one against the residual probabilities; the text differs, its
probabilities do not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from lookahead_core.tree import Node

T = TypeVar("T")


def accepted_path(
    head: Node, choose: Callable[[Node], int | None], is_drafted: Callable[[Node], bool]
) -> Iterator[Node]:
    """Yield `head`, the last node of the text, and then the accepted draft nodes below it, parents before children.

    `choose` is called once for every node, the last one too, after it was yielded. It returns the id of the token that
    follows the node, or None to stop. The next node is the child for that token, if there is one and `is_drafted` is
    True for it; else the path ends. This is acceptance by agreement.
    """
    node: Node | None = head
    while node is not None:
        yield node
        token_id = choose(node)
        child = None if token_id is None else node.children.get(token_id)
        node = child if child is not None and is_drafted(child) else None


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The token that rejection sampling gives after a node of a draft, and whether it is an accepted drafted token."""

    token_id: int
    """The next token's id: an accepted drafted token, or a sample from the residual probabilities."""
    accepted: bool
    """Whether a drafted token was accepted."""


def accept_by_rejection(
    probabilities: torch.Tensor,
    drafted: Sequence[tuple[int, torch.Tensor | None]],
    uniforms: Iterable[float],
    last_uniform: float,
) -> Acceptance:
    """Return the first drafted token that is accepted, or if none is, a token sampled from the residual probabilities.

    Whatever is drafted, the returned token has the distribution `probabilities`: the model's, of shape (vocabulary,),
    with the sum 1. `drafted` has pairs of a token id and the probabilities, of the same shape, that it was sampled from
    if those before it were rejected; None means that it was certain to be drafted. `uniforms` has one random number
    per pair, from 0 to below 1; a pair without one is ignored. `last_uniform` is for the residual sample.
    """
    remaining = probabilities
    for (token_id, source), uniform in zip(drafted, uniforms, strict=False):
        draft_probability = 1.0 if source is None else float(source[token_id])
        if float(remaining[token_id]) > uniform * draft_probability:
            return Acceptance(token_id, accepted=True)
        remaining = residual(remaining, token_id, source)
    return Acceptance(sample_at(remaining, last_uniform), accepted=False)


def residual(probabilities: torch.Tensor, token_id: int, source: torch.Tensor | None) -> torch.Tensor:
    """Return the probabilities to sample from after a drafted token was rejected: max(0, p - q), scaled to the sum 1.

    p is `probabilities`, of shape (vocabulary,). q is `source`, the probabilities that the token was sampled from; with
    None, q is 1 for `token_id` and 0 for all others. If max(0, p - q) is 0 for all tokens, p itself is returned.
    """
    if source is None:
        remaining = probabilities.clone()
        remaining[token_id] = 0
    else:
        remaining = (probabilities - source).clamp_min(0)
    total = float(remaining.sum())
    # If rounding leaves nothing, draft and model agree, and the model's probabilities are as good.
    return remaining / total if total > 0 else probabilities


def sample_at(probabilities: torch.Tensor, uniform: float) -> int:
    """Return the token id whose interval of the cumulative probabilities contains `uniform`, a number from 0 to 1.

    `probabilities` has shape (vocabulary,). They are first scaled to the sum 1; one must be above 0. A token of
    probability 0 is never returned.
    """
    cumulative = probabilities.cpu().double().cumsum(-1)  # not all devices have float64
    token_id = int(torch.searchsorted(cumulative, uniform * float(cumulative[-1]), right=True))
    possible = probabilities.nonzero()[:, 0]
    return min(token_id, int(possible[-1]))


def matching_prefix_length(first: Sequence[T], second: Sequence[T], ends: Collection[T] = ()) -> int:
    """Return how many items two sequences share from the beginning.

    The first shared item that is in `ends` is counted, and items after it are not compared.
    """
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return index
        if one in ends:
            return index + 1
    return min(len(first), len(second))
