"""The Engine protocol, which computes predictions for nodes of token trees, and what all engines share."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

import torch

from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.engines.prediction_rows import LogitRows, renormalised_among, token_logprobs
from lookahead_core.errors import InvalidLogits, ModelError
from lookahead_core.prediction import Prediction
from lookahead_core.tree import Node, TokenTree

log = logging.getLogger(__name__)
PREFILL_CHUNK = 512
"""Tokens per pass while a long text is prefilled. Between chunks a caller can show progress, or stop."""
MAX_LAST_CHUNK = 768
"""Tokens in the last chunk at most: a short remainder in a pass of its own would cost more than its share."""


class Engine(Protocol):
    """Protocol of the objects that compute next-token predictions for nodes of token trees with one model.

    `evaluate` is the basic operation. `prefill` and `roll_out` divide long work into passes, between which a caller can
    stop. `free`, `compact` and `cache_usage` concern the KV cache; the uncached engine has none.
    """

    @property
    def pass_costs(self) -> PassCosts:
        """The estimates of a forward pass's cost by its number of nodes; they change when callers `record` passes."""
        ...

    @property
    def batch_invariant_rows(self) -> int | None:
        """The most nodes of a pass in which a row's bits do not depend on the other rows of the pass.

        None if that holds for passes of all sizes, and also if it holds for no size: callers then do not limit passes.
        """
        ...

    @property
    def passes(self) -> int:
        """The number of forward passes so far, for all trees together."""
        ...

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        """Return the log-probabilities after each node, of shape (nodes, vocabulary); set each node's `prediction`.

        The rows are in the order of `nodes`, float32, and valid until the next call. `nodes` are one or more, also of
        several trees, without roots; those with a prediction are computed again. Ancestors that are not in the cache
        yet are computed with them. All become visible in their trees. Raises CacheFull if a cache has no room.
        """
        ...

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        """Return the logits of nodes, chosen as for `evaluate`, but store no predictions, as drafts may be rejected.

        `NodeScores.store_predictions` stores them later. The result's rows are in the order of its `nodes`, which may
        be another than that of the argument. With `hidden`, it also has the hidden states that the output matrix is
        multiplied with; an engine without a cache has none. Raises CacheFull if a cache has no room.
        """
        ...

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        """Return the nodes on the path from the root to `node` that are not in the cache, topmost first.

        `node` may be among them; the root is not. Empty in an engine without a cache. Nothing is computed.
        """
        ...

    def prefill(self, nodes: Sequence[Node]) -> None:
        """Compute keys and values of nodes and their ancestors into the cache, as far as missing; no predictions.

        Nodes may be of several trees. Raises CacheFull if a cache has no room. Does nothing in an engine without one.
        """
        ...

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        """Generator: grow a branch of most likely tokens below each node, until its end is at `depth` or in `stop`.

        `depth` counts from the root; `stop` holds token ids. A node at `depth` or deeper, or with such an id, gets no
        branch. Each step adds one node to every unfinished branch. If that needed a pass, it yields these new nodes;
        steps from existing predictions yield nothing. The last ends are not evaluated. The caller may abandon the
        generator; nodes that were added stay. Raises CacheFull like `evaluate`.
        """
        ...

    def free(self, nodes: Sequence[Node]) -> None:
        """Free the cache slots of nodes that their tree has removed; `nodes` must include all nodes below them.

        Nodes without a slot are ignored. A cache with more than half of its slots empty is then compacted. Does nothing
        in an engine without a cache.
        """
        ...

    def compact(self, tree: TokenTree) -> None:
        """Close the gaps that freed slots have left in a tree's cache; free memory if less than half of it is in use.

        Does nothing for a tree without a cache.
        """
        ...

    def cache_usage(self, tree: TokenTree) -> tuple[int, int]:
        """Return the number of cache slots that nodes of a tree have, and the bytes allocated for its cache.

        (0, 0) for a tree without a cache.
        """
        ...


@runtime_checkable
class NextTokenEngine(Protocol):
    """Protocol of engines that compute the log-probability of single tokens in a way of their own, without rows."""

    def next_logprobs(self, nodes: Sequence[Node], token_ids: Sequence[int]) -> list[float]:
        """Return the natural log-probability of one token after each node: `token_ids[i]` after `nodes[i]`.

        `nodes` are one or more, chosen as for `Engine.score`, each once. No predictions are stored. Raises CacheFull
        like it.
        """
        ...


class NodeScores:
    """The logits of some nodes, `nodes`, as `Engine.score` returns them.

    Log-probabilities and predictions are computed from them on request. Methods that take nodes raise KeyError for
    nodes that are not among `nodes`. Results may share memory with the logits, so callers must not change them.
    """

    def __init__(self, nodes: Sequence[Node], logits: torch.Tensor, hidden: torch.Tensor | None = None) -> None:
        """`logits` has the shape (nodes, vocabulary), and `hidden`, the inputs of the output matrix, (nodes, width).

        Row `i` of each belongs to `nodes[i]`. If a node comes twice, its last row counts.
        """
        self.nodes = list(nodes)
        self.logits = logits
        self.hidden = hidden
        self.shared = False
        """Whether the pass that computed the scores computed others too, so that its duration is not their cost."""
        self.waited = 0.0
        """Seconds that the caller of `Engine.score` waited beside the pass, while a scheduler did other work."""
        self._rows = LogitRows(logits)
        self._row_of = {node: row for row, node in enumerate(self.nodes)}
        self._logprobs: dict[Node, torch.Tensor] = {}

    @classmethod
    def joined(cls, parts: Sequence[NodeScores]) -> NodeScores:
        """Return the scores of one or several passes as one object, with hidden states only if every part has them.

        The nodes and rows are those of the parts, one part after the other. A single part is returned itself.
        """
        if len(parts) == 1:
            return parts[0]
        return parts[0]._join(parts)

    @staticmethod
    def _join(parts: Sequence[NodeScores]) -> NodeScores:
        """Implement `joined` for several parts of this class."""
        vectors = [part.hidden for part in parts if part.hidden is not None]
        hidden = torch.cat(vectors) if len(vectors) == len(parts) else None
        nodes = [node for part in parts for node in part.nodes]
        whole = NodeScores(nodes, torch.cat([part.logits for part in parts]), hidden)
        whole.shared = any(part.shared for part in parts)
        return whole

    def part(self, nodes: Sequence[Node], *, hidden: bool) -> NodeScores:
        """Return the scores of some of the nodes as an object of its own, with hidden states if `hidden` and present.

        Its rows are in the order of `nodes`, which must be without repetitions.
        """
        rows = [self._row_of[node] for node in nodes]
        vectors = self.hidden[rows] if hidden and self.hidden is not None else None
        part = NodeScores(nodes, self.logits_of(nodes), vectors)
        part.shared = True
        return part

    @functools.cached_property
    def best_tokens(self) -> list[int]:
        """The id of the most likely token after each node, in the order of `self.nodes`; the lowest id of a tie."""
        return self._rows.best.tolist()

    def best_token(self, node: Node) -> int:
        """Return the id of the most likely token after one of `self.nodes`; the lowest id of a tie."""
        return self.best_tokens[self._row_of[node]]

    def hidden_state(self, node: Node) -> torch.Tensor | None:
        """Return the output matrix's input for a node, of shape (width,); None if there are no hidden states."""
        return None if self.hidden is None else self.hidden[self._row_of[node]]

    def logprob_row(self, node: Node) -> torch.Tensor:
        """Return the log-probabilities after a node, of shape (vocabulary,), and keep them for further calls.

        The first call for a node also stores its prediction, see `store_predictions`.
        """
        if node not in self._logprobs:
            self.store_predictions([node])
            self._logprobs[node] = self.logprobs_of([node])[0]
        return self._logprobs[node]

    def top_k(self, nodes: Sequence[Node], count: int) -> tuple[list[list[int]], list[list[float]]]:
        """Return the ids of the `count` most likely tokens after each node, most likely first, and probabilities.

        Both are lists with one list for each of `nodes`, in order; `count` is lowered to the vocabulary's size. The
        probabilities are estimates: upper bounds, which may be far too high, see `LogitRows.top_k`.
        """
        return self._select(nodes).top_k(count)

    def logits_of(self, nodes: Sequence[Node]) -> torch.Tensor:
        """Return the logits of these nodes, of shape (nodes, vocabulary), in the order of `nodes`."""
        return self._select(nodes).logits

    def logprobs_of(self, nodes: Sequence[Node]) -> torch.Tensor:
        """Return the log-probabilities after these nodes, of shape (nodes, vocabulary), in the order of `nodes`."""
        return self._select(nodes).logprobs

    def top_rows(self, nodes: Sequence[Node], count: int) -> torch.Tensor:
        """Return log-probabilities like `logprobs_of`, of which only the `count` highest of each row must be right.

        Other entries may be -inf: a server may give only the likeliest tokens.
        """
        return self.logprobs_of(nodes)

    def among(self, node: Node, token_ids: Sequence[int], named: Sequence[int] = ()) -> tuple[Prediction, list[float]]:
        """Return the prediction after a node if the next token is one of `token_ids`, and log-probabilities in it.

        These are of the tokens `named`, in order; -inf for those that are not in `token_ids`. `token_ids` must be
        without repetitions. If the model gives all of them probability 0, the prediction is empty.
        """
        row, prediction = renormalised_among(self.logprobs_of([node])[0], token_ids)
        return prediction, row[list(named)].tolist()

    def next_logprobs(self, nodes: Sequence[Node], token_ids: Sequence[int]) -> list[float]:
        """Return the natural log-probability of one token after each of these nodes: `token_ids[i]` after `nodes[i]`.

        Rows are normalised a few at a time, and none is stored.
        """
        return token_logprobs(self.logits_of(nodes), token_ids)

    def store_predictions(self, nodes: Iterable[Node]) -> None:
        """Set `prediction` of each of these nodes, and mark the nodes as visible in their tree.

        A prediction that a node already has is replaced. Raises InvalidLogits if there are no probabilities after one
        of the nodes; then the caches of their trees are cleared, since keys and values may be invalid too.
        """
        chosen = list(nodes)
        try:
            predictions = self._select(chosen).predictions()
        except InvalidLogits:
            log.warning("The model has returned invalid logits; LOOKAHEAD_DTYPE=float32 may avoid them.")
            for tree in group_by_tree(chosen):
                if tree.cache is not None:
                    tree.cache.clear()
            raise
        for node, prediction in zip(chosen, predictions, strict=True):
            node.prediction = prediction
            node.tree.mark_visible(node)

    def _select(self, nodes: Sequence[Node]) -> LogitRows:
        return self._rows.select([self._row_of[node] for node in nodes])


def next_logprobs(engine: Engine, nodes: Sequence[Node], token_ids: Sequence[int]) -> list[float]:
    """Return the natural log-probability of one token after each node, by the engine's own way if it has one.

    See `NextTokenEngine.next_logprobs`.
    """
    if isinstance(engine, NextTokenEngine):
        return engine.next_logprobs(nodes, token_ids)
    return engine.score(nodes).next_logprobs(nodes, token_ids)


def prefill_in_chunks(engine: Engine, head: Node) -> Iterator[int]:
    """Generator: prefill the path to the node `head` in passes of `PREFILL_CHUNK` tokens.

    After each pass it yields how many tokens of the path are not in the cache. It ends when these are at most
    `MAX_LAST_CHUNK`, possibly without a pass: the caller's own pass computes them together with the nodes that it
    evaluates. The most passes are fixed at the start, so more tokens may be left if other trees have taken slots
    in the meantime. Raises CacheFull like `Engine.prefill`.
    """
    # Two long texts may free each other's slots between chunks. The number of rounds is bounded, so that this ends.
    for _ in range(len(engine.nodes_to_prefill(head)) // PREFILL_CHUNK):
        missing = engine.nodes_to_prefill(head)
        if len(missing) <= MAX_LAST_CHUNK:
            return
        engine.prefill(missing[:PREFILL_CHUNK])
        yield len(missing) - PREFILL_CHUNK


def predict(engine: Engine, nodes: Sequence[Node]) -> NodeScores:
    """Set `prediction` of these nodes, one or more, chosen as for `Engine.evaluate`, and return their scores.

    No rows of log-probabilities are computed, so this works on a server that returns only the likeliest tokens. Raises
    CacheFull like `Engine.score`.
    """
    scores = engine.score(nodes)
    with torch.inference_mode():
        scores.store_predictions(nodes)
    return scores


def evaluate_top(engine: Engine, nodes: Sequence[Node], count: int | None) -> torch.Tensor:
    """Implement `Engine.evaluate` for callers that read only the `count` highest log-probabilities of each row.

    Other entries may be -inf, see `NodeScores.top_rows`. None needs whole rows. `nodes` must be without repetitions.
    """
    if count is None:
        return engine.evaluate(nodes)
    scores = predict(engine, nodes)
    with torch.inference_mode():
        return scores.top_rows(nodes, count)


def evaluate(parts: Iterable[NodeScores], nodes: Sequence[Node]) -> torch.Tensor:
    """Implement `Engine.evaluate`: store the predictions of all nodes in `parts`; return log-probabilities of `nodes`.

    `parts` are the scores of the passes, and each of `nodes` must be in one of them (KeyError otherwise). The result
    has the shape (nodes, vocabulary), in the order of `nodes`, of which there must be one or more.
    """
    rows: dict[Node, torch.Tensor] = {}
    for scores in parts:
        scores.store_predictions(scores.nodes)
        rows.update(zip(scores.nodes, scores.logprobs_of(scores.nodes), strict=True))
    return torch.stack([rows[node] for node in nodes])


def roll_out(engine: Engine, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
    """Generator that implements `Engine.roll_out` with `Engine.score`.

    In each step it evaluates those ends of unfinished branches that have no prediction, in one call.
    """
    frontier = list(nodes)
    while frontier := [node for node in frontier if node.depth < depth and node.token_id not in stop]:
        pending = [node for node in frontier if node.prediction is None]
        if pending:
            predict(engine, pending)
        frontier = [node.tree.expand(node, best_token(node)) for node in frontier]
        if pending:
            yield frontier


def select_logits(logits: torch.Tensor, positions: torch.Tensor, length: int) -> torch.Tensor:
    """Return the logits at `positions`, of shape (batch, len(positions), vocabulary).

    `logits` is the output of a pass of `length` positions, of shape (batch, returned positions, vocabulary): a model
    that supports `logits_to_keep` has returned just `positions`, any other all of them. `positions` is a 1-D tensor of
    ascending indices without repetition, which is not checked. Raises ModelError if neither number of positions was
    returned. Hidden states can take the place of logits.
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
    """Return the id of the most likely token after a node; AssertionError if it has no prediction."""
    assert node.prediction is not None
    return node.prediction.token_ids[0]


def group_by_tree(nodes: Sequence[Node]) -> dict[TokenTree, list[Node]]:
    """Return the nodes of each tree, in the order of `nodes` and with its repetitions; trees by their first node."""
    groups: dict[TokenTree, list[Node]] = {}
    for node in nodes:
        groups.setdefault(node.tree, []).append(node)
    return groups


def unfinished(nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> list[Node]:
    """Follow known predictions below each node; return the ends that are above `depth` and not in `stop`, each once."""
    ends: dict[Node, None] = {}
    for node in nodes:
        while node.depth < depth and node.token_id not in stop and node.prediction is not None:
            node = node.tree.expand(node, best_token(node))
        if node.depth < depth and node.token_id not in stop:
            ends[node] = None
    return list(ends)
