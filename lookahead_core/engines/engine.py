"""The Engine protocol, which computes predictions for nodes of token trees, and what all engines share."""

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
"""Tokens per pass while a long text is prefilled. Between chunks a caller can show progress, or stop."""
MAX_LAST_CHUNK = 768
"""Tokens in the last chunk at most: a short remainder in a pass of its own would cost more than its share."""


class Engine(Protocol):
    """Computes next-token predictions for nodes of token trees.

    `evaluate` is the basic operation. The other methods let several callers share an engine and stop between passes.
    """

    @property
    def pass_costs(self) -> PassCosts:
        """Measured seconds of forward passes, by number of nodes."""
        ...

    @property
    def batch_invariant_rows(self) -> int | None:
        """The largest pass in which a row's bits do not depend on the other rows of the pass.

        None if there is no such limit, and in float32, where rows differ by rounding errors only.
        """
        ...

    @property
    def passes(self) -> int:
        """Forward passes so far, for all trees together."""
        ...

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        """Return one row of log-probabilities per node, and store a compact prediction on each node.

        The rows are in the order of `nodes` and valid until the next call. Ancestors that are not in the cache yet are
        computed first.
        """
        ...

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        """Return the logits of nodes without storing predictions, for drafts that may be rejected.

        `NodeScores.store_predictions` stores them later. With `hidden`, the result also has the hidden states that the
        output matrix is multiplied with, if this engine can give them.
        """
        ...

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        """Return the nodes on the path from the root to `node` that are not in the cache, topmost first.

        `node` may be among them; the root is not. Empty for an engine without a cache.
        """
        ...

    def prefill(self, nodes: Sequence[Node]) -> None:
        """Compute keys and values of nodes into the cache, without predictions."""
        ...

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        """Grow each node greedily until a node has this depth in the tree or a token of `stop`.

        A generator: after each pass it yields the nodes that it has just added, one per growing branch. The caller
        may abandon it after any pass.
        """
        ...

    def free(self, nodes: Sequence[Node]) -> None:
        """Free the cache slots of nodes that their tree has removed."""
        ...

    def compact(self, tree: TokenTree) -> None:
        """Close the gaps that freed slots have left in a tree's cache."""
        ...

    def cache_usage(self, tree: TokenTree) -> tuple[int, int]:
        """The number of slots in use for a tree, and the bytes allocated for its cache."""
        ...


class NodeScores:
    """The logits of some nodes, one row per node. Log-probabilities and predictions are computed when asked for."""

    def __init__(self, nodes: Sequence[Node], logits: torch.Tensor, hidden: torch.Tensor | None = None) -> None:
        self.nodes = list(nodes)
        self.logits = logits
        self.hidden = hidden
        self._rows = LogitRows(logits)
        self._row_of = {node: row for row, node in enumerate(self.nodes)}
        self._logprobs: dict[Node, torch.Tensor] = {}

    @classmethod
    def joined(cls, parts: Sequence[NodeScores]) -> NodeScores:
        """The scores of several passes as one object; hidden states only if every part has them."""
        if len(parts) == 1:
            return parts[0]
        vectors = [part.hidden for part in parts if part.hidden is not None]
        hidden = torch.cat(vectors) if len(vectors) == len(parts) else None
        return cls([node for part in parts for node in part.nodes], torch.cat([part.logits for part in parts]), hidden)

    @functools.cached_property
    def best_tokens(self) -> list[int]:
        """The most likely token after each node, in the order of `nodes`; the lowest id of a tie."""
        return self._rows.best.tolist()

    def best_token(self, node: Node) -> int:
        """The most likely token after a node."""
        return self.best_tokens[self._row_of[node]]

    def hidden_state(self, node: Node) -> torch.Tensor | None:
        """The vector that the output matrix was multiplied with for a node; None if the engine did not return it."""
        return None if self.hidden is None else self.hidden[self._row_of[node]]

    def logprob_row(self, node: Node) -> torch.Tensor:
        """The log-probabilities after a node. The first call also stores the node's prediction."""
        if node not in self._logprobs:
            self.store_predictions([node])
            self._logprobs[node] = self.logprobs_of([node])[0]
        return self._logprobs[node]

    def top_k(self, nodes: Sequence[Node], count: int) -> tuple[list[list[int]], list[list[float]]]:
        """For each node its `count` most likely tokens, and their probabilities as `LogitRows.top_k` estimates them."""
        return self._select(nodes).top_k(count)

    def logits_of(self, nodes: Sequence[Node]) -> torch.Tensor:
        """The logits of these nodes, one row per node."""
        return self._select(nodes).logits

    def logprobs_of(self, nodes: Sequence[Node]) -> torch.Tensor:
        """The log-probabilities after these nodes, one row per node."""
        return self._select(nodes).logprobs

    def store_predictions(self, nodes: Iterable[Node]) -> None:
        """Store a compact prediction on each of these nodes, and mark them as visible in their tree."""
        chosen = list(nodes)
        for node, prediction in zip(chosen, self._select(chosen).predictions(), strict=True):
            node.prediction = prediction
            node.tree.mark_visible(node)

    def _select(self, nodes: Sequence[Node]) -> LogitRows:
        return self._rows.select([self._row_of[node] for node in nodes])


def prefill_in_chunks(engine: Engine, head: Node) -> Iterator[int]:
    """Prefill the path to `head` in chunks; after each chunk, yield how many tokens are left.

    The last chunk is not computed: the caller's own pass computes it together with the nodes that it evaluates.
    """
    # Two long texts may free each other's slots between chunks. The number of rounds is bounded, so that this ends.
    for _ in range(len(engine.nodes_to_prefill(head)) // PREFILL_CHUNK):
        missing = engine.nodes_to_prefill(head)
        if len(missing) <= MAX_LAST_CHUNK:
            return
        engine.prefill(missing[:PREFILL_CHUNK])
        yield len(missing) - PREFILL_CHUNK


def evaluate(parts: Iterable[NodeScores], nodes: Sequence[Node]) -> torch.Tensor:
    """`Engine.evaluate` in terms of the scores of passes: store all predictions; return the rows of `nodes`."""
    rows: dict[Node, torch.Tensor] = {}
    for scores in parts:
        scores.store_predictions(scores.nodes)
        rows.update(zip(scores.nodes, scores.logprobs_of(scores.nodes), strict=True))
    return torch.stack([rows[node] for node in nodes])


def roll_out(engine: Engine, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
    """`Engine.roll_out` in terms of `Engine.evaluate`: one pass per level, with all branches in it."""
    frontier = list(nodes)
    while frontier := [node for node in frontier if node.depth < depth and node.token_id not in stop]:
        pending = [node for node in frontier if node.prediction is None]
        if pending:
            engine.evaluate(pending)
        frontier = [node.tree.expand(node, best_token(node)) for node in frontier]
        if pending:
            yield frontier


def select_logits(logits: torch.Tensor, positions: torch.Tensor, length: int) -> torch.Tensor:
    """The logits at `positions`, from a model's output of shape (batch, positions, vocabulary).

    A model that supports `logits_to_keep` returns just these rows; any other returns all `length` rows. Raises
    ModelError for any other number of rows.
    """
    if logits.shape[1] == len(positions):
        return logits
    if logits.shape[1] == length:
        return logits[:, positions]
    raise ModelError(
        f"The model returned logits for {logits.shape[1]} positions, but {len(positions)} of {length} were requested. "
        "Its forward method must return the positions that logits_to_keep names, or all positions."
    )


def best_token(node: Node) -> int:
    """The most likely token after an evaluated node."""
    assert node.prediction is not None
    return node.prediction.token_ids[0]


def group_by_tree(nodes: Sequence[Node]) -> dict[TokenTree, list[Node]]:
    """Nodes grouped by their tree, in order. Each tree has its own cache."""
    groups: dict[TokenTree, list[Node]] = {}
    for node in nodes:
        groups.setdefault(node.tree, []).append(node)
    return groups
