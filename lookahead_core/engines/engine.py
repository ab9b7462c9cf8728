"""The one protocol that every engine keeps: predictions for nodes, whatever they are computed with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch

from lookahead_core.tree import TAIL_BIN, Node, Prediction, TokenTree

KEPT = 64
"""How many of the most likely tokens a compact prediction keeps."""
TAIL_BINS = 256
CHUNK = 512
"""What one pass takes of a long text: it is read in pieces, with a point to stop at between them."""
LAST_CHUNK = 768
"""The last piece may be so long: a short rest in a pass of its own would cost more than its share."""


class Engine(Protocol):
    """Where predictions come from. `evaluate` is the mechanism; the rest lets it be shared and stopped."""

    @property
    def passes(self) -> int:
        """How many forward passes there have been, for anybody."""
        ...

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        """Leave a prediction on each node and return their rows of log-probabilities, valid until the next call.

        Whatever stands above a node and was not read yet is read on the way.
        """
        ...

    def unread(self, node: Node) -> list[Node]:
        """The part of the path to `node` that `evaluate` would have to read, from the top."""
        ...

    def read(self, nodes: Sequence[Node]) -> None:
        """Take a chunk of a path into the cache without predicting anything."""
        ...

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        """Grow each node greedily down to that depth of the tree; yields after each pass, and may be left at any."""
        ...

    def forget(self, nodes: Sequence[Node]) -> None:
        """Give back what is kept for nodes that the tree has forgotten."""
        ...

    def compact(self, tree: TokenTree) -> None:
        """Close the gaps that forgotten nodes have left."""
        ...

    def usage(self, tree: TokenTree) -> tuple[int, int]:
        """Live slots, and bytes allocated for them."""
        ...


def roll_out(engine: Engine, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
    """What rolling out means, in terms of `evaluate`: one pass a level, all branches in it."""
    frontier = list(nodes)
    while frontier := [node for node in frontier if node.depth < depth and node.token_id not in stop]:
        pending = [node for node in frontier if node.prediction is None]
        if pending:
            engine.evaluate(pending)
        frontier = [node.tree.expand(node, best(node)) for node in frontier]
        if pending:
            yield frontier


def best(node: Node) -> int:
    """The most likely token after a node that has been evaluated."""
    assert node.prediction is not None
    return node.prediction.token_ids[0]


def summarise(rows: torch.Tensor, scores: torch.Tensor | None = None) -> list[Prediction]:
    """Compact predictions from rows of log-probabilities, and from the scores that the model gave, where it did."""
    logprobs, token_ids = rows.topk(min(KEPT, rows.shape[-1]))
    # exp(-inf) * -inf is not a number: a model that rules a token out must not lose its entropy.
    finite = rows.clamp_min(torch.finfo(rows.dtype).min)
    entropy = -(finite.exp() * finite).sum(-1)
    totals: list[float | None] = [None] * len(rows)
    if scores is not None:
        totals = (scores.gather(1, token_ids[:, :1]) - logprobs[:, :1])[:, 0].tolist()
    return [
        Prediction(tuple(ids), tuple(values), spread, tail, log_total=total)
        for ids, values, spread, tail, total in zip(
            token_ids.tolist(), logprobs.tolist(), entropy.tolist(), _tails(finite, logprobs), totals, strict=True
        )
    ]


def _tails(rows: torch.Tensor, kept: torch.Tensor) -> list[tuple[int, ...]]:
    """For each row, how many tokens that are not kept lie how many bins below the most likely one."""
    top = kept[:, :1]
    counts = _bin_counts(top - rows) - _bin_counts(top - kept)
    return [tuple(some) for some in counts.tolist()]


def _bin_counts(below: torch.Tensor) -> torch.Tensor:
    """How many values fall into each bin; bytes are counted several times faster than wider numbers."""
    bins = (below / TAIL_BIN).clamp_(max=TAIL_BINS - 1).to(torch.uint8)
    return torch.stack([torch.bincount(row, minlength=TAIL_BINS) for row in bins])


def grouped(nodes: Sequence[Node]) -> dict[TokenTree, list[Node]]:
    """Nodes by the tree they belong to: every tree has a cache of its own."""
    groups: dict[TokenTree, list[Node]] = {}
    for node in nodes:
        groups.setdefault(node.tree, []).append(node)
    return groups
