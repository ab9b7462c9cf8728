"""The one protocol that every engine keeps: predictions for nodes, whatever they are computed with."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import torch

from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.engines.prediction_rows import LogitRows
from lookahead_core.errors import ModelError
from lookahead_core.tree import Node, TokenTree

PREFILL_CHUNK = 512
"""What one pass takes of a long text: it is read in pieces, with a point to stop at between them."""
MAX_LAST_CHUNK = 768
"""The last piece may be so long: a short rest in a pass of its own would cost more than its share."""


class Engine(Protocol):
    """Where predictions come from. `evaluate` is the mechanism; the rest lets it be shared and stopped."""

    @property
    def pass_costs(self) -> PassCosts:
        """What passes of different sizes take."""
        ...

    @property
    def batch_invariant_rows(self) -> int | None:
        """In passes of up to this many rows, a row's bits do not depend on the pass's other rows.

        None where there is no such limit, and where none is needed: in float32 rows differ by rounding only.
        """
        ...

    @property
    def passes(self) -> int:
        """How many forward passes there have been, for anybody."""
        ...

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        """Leave a prediction on each node and return their rows of log-probabilities, valid until the next call.

        Whatever stands above a node and was not read yet is read on the way.
        """
        ...

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        """The first half of `evaluate`, for nodes that may turn out to be in vain: `tell` is the other half.

        With `hidden`, the vectors that the output matrix is multiplied with as well, where this engine has them.
        """
        ...

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        """The part of the path to `node` that `evaluate` would have to read, from the top."""
        ...

    def prefill(self, nodes: Sequence[Node]) -> None:
        """Take a chunk of a path into the cache without predicting anything."""
        ...

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        """Grow each node greedily down to that depth of the tree; yields after each pass, and may be left at any."""
        ...

    def free(self, nodes: Sequence[Node]) -> None:
        """Give back what is kept for nodes that the tree has forgotten."""
        ...

    def compact(self, tree: TokenTree) -> None:
        """Close the gaps that forgotten nodes have left."""
        ...

    def cache_usage(self, tree: TokenTree) -> tuple[int, int]:
        """Live slots, and bytes allocated for them."""
        ...


class NodeScores:
    """What the model gave for some nodes, before anything is made of it; log-probabilities only where asked for."""

    def __init__(self, nodes: Sequence[Node], logits: torch.Tensor, hidden: torch.Tensor | None = None) -> None:
        self.nodes = list(nodes)
        self.logits = logits
        self.hidden = hidden
        self._read = LogitRows(logits)
        self._places = {node: place for place, node in enumerate(self.nodes)}
        self._told: dict[Node, torch.Tensor] = {}

    @classmethod
    def joined(cls, parts: Sequence[NodeScores]) -> NodeScores:
        """What several passes gave, as one."""
        if len(parts) == 1:
            return parts[0]
        vectors = [part.hidden for part in parts if part.hidden is not None]
        hidden = torch.cat(vectors) if len(vectors) == len(parts) else None
        return cls([node for part in parts for node in part.nodes], torch.cat([part.logits for part in parts]), hidden)

    @functools.cached_property
    def best_tokens(self) -> list[int]:
        """For each node the most likely token: the first of a tie, as in a prediction."""
        return self._read.best.tolist()

    def best_token(self, node: Node) -> int:
        """The most likely token after a node."""
        return self.best_tokens[self._places[node]]

    def hidden_state(self, node: Node) -> torch.Tensor | None:
        """What the output matrix was multiplied with."""
        return None if self.hidden is None else self.hidden[self._places[node]]

    def logprob_row(self, node: Node) -> torch.Tensor:
        """One node's row of log-probabilities; its prediction is left as well, once for all who ask."""
        if node not in self._told:
            self.store_predictions([node])
            self._told[node] = self.logprobs_of([node])[0]
        return self._told[node]

    def top_k(self, nodes: Sequence[Node], count: int) -> tuple[list[list[int]], list[list[float]]]:
        """For each of these nodes the likeliest tokens, and how likely they are among the likely ones."""
        return self._of(nodes).top_k(count)

    def logits_of(self, nodes: Sequence[Node]) -> torch.Tensor:
        """The scores of these nodes, a row for each."""
        return self._of(nodes).scores

    def logprobs_of(self, nodes: Sequence[Node]) -> torch.Tensor:
        """The log-probabilities after these nodes, a row for each."""
        return self._of(nodes).logprobs

    def store_predictions(self, nodes: Iterable[Node]) -> None:
        """Leave predictions on these nodes."""
        told = list(nodes)
        for node, prediction in zip(told, self._of(told).predictions(), strict=True):
            node.prediction = prediction
            node.tree.mark_visible(node)

    def _of(self, nodes: Sequence[Node]) -> LogitRows:
        return self._read.some([self._places[node] for node in nodes])


def prefill_in_chunks(engine: Engine, head: Node) -> Iterator[int]:
    """Take a long text into the cache, and tell after each chunk how much is left; the last one is not taken."""
    # As many rounds as there are chunks now: where two long texts take each other's room, the last one reads it all.
    for _ in range(len(engine.nodes_to_prefill(head)) // PREFILL_CHUNK):
        unread = engine.nodes_to_prefill(head)
        if len(unread) <= MAX_LAST_CHUNK:
            return
        engine.prefill(unread[:PREFILL_CHUNK])
        yield len(unread) - PREFILL_CHUNK


def evaluate(parts: Iterable[NodeScores], nodes: Sequence[Node]) -> torch.Tensor:
    """What evaluating means, in terms of what passes give: every row told, in the order asked for."""
    rows: dict[Node, torch.Tensor] = {}
    for scores in parts:
        scores.store_predictions(scores.nodes)
        rows.update(zip(scores.nodes, scores.logprobs_of(scores.nodes), strict=True))
    return torch.stack([rows[node] for node in nodes])


def roll_out(engine: Engine, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
    """What rolling out means, in terms of `evaluate`: one pass a level, all branches in it."""
    frontier = list(nodes)
    while frontier := [node for node in frontier if node.depth < depth and node.token_id not in stop]:
        pending = [node for node in frontier if node.prediction is None]
        if pending:
            engine.evaluate(pending)
        frontier = [node.tree.expand(node, best_token(node)) for node in frontier]
        if pending:
            yield frontier


def select_logits(found: torch.Tensor, kept: torch.Tensor, length: int) -> torch.Tensor:
    """The rows at positions `kept` of what a model returned, of shape (batch, positions, width).

    A model that honours `logits_to_keep` returns these rows, any other all `length` rows. Anything else is an error.
    """
    if found.shape[1] == len(kept):
        return found
    if found.shape[1] == length:
        return found[:, kept]
    raise ModelError(
        f"The model returned logits for {found.shape[1]} positions where {len(kept)} of {length} were asked for; "
        "its forward must return those that logits_to_keep names, or all."
    )


def best_token(node: Node) -> int:
    """The most likely token after a node that has been evaluated."""
    assert node.prediction is not None
    return node.prediction.token_ids[0]


def group_by_tree(nodes: Sequence[Node]) -> dict[TokenTree, list[Node]]:
    """Nodes by the tree they belong to: every tree has a cache of its own."""
    groups: dict[TokenTree, list[Node]] = {}
    for node in nodes:
        groups.setdefault(node.tree, []).append(node)
    return groups
