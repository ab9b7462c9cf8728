"""`DeferredEngine`: requests forward passes instead of making them, so that several computations can share them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from lookahead_core.engines import engine as base
from lookahead_core.engines.engine import Engine, NodeScores
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.engines.server_engine import RollOut, server_engine_of
from lookahead_core.tree import Node, TokenTree


class PassNeeded(Exception):
    """Raised by a `DeferredEngine` where a computation needs scores of nodes that no pass has computed yet."""


class DeferredEngine:
    """An `Engine` without passes of its own, for a computation that is repeated until all its scores are known.

    `evaluate` and `score` raise PassNeeded if scores are missing; `pending` then holds the nodes. The caller computes
    their scores in one pass with those of other computations, adds them with `add`, and runs the computation again from
    its beginning. That is cheap for a lookahead, since the predictions of earlier runs are in the tree.
    """

    def __init__(self, engine: Engine) -> None:
        """`engine` is the one with which the caller makes the passes; this one uses only its cache and its figures."""
        self._engine = engine
        self._known: list[tuple[NodeScores, bool]] = []
        self._used: list[NodeScores] = []
        self.pending: list[Node] = []
        """The nodes whose scores the last run lacked; empty if it lacked none."""
        self.rolling: RollOut | None = None
        """The branches to grow below `pending`, if that run lacked those and no single scores."""
        self.hidden = False
        """Whether that run also needs the hidden states of `pending`."""

    @property
    def pass_costs(self) -> PassCosts:
        return self._engine.pass_costs

    @property
    def batch_invariant_rows(self) -> int | None:
        return self._engine.batch_invariant_rows

    @property
    def passes(self) -> int:
        return self._engine.passes

    def add(self, scores: NodeScores, *, hidden: bool) -> None:
        """Add the scores of a pass for the next run. `hidden`: whether hidden states were requested in that pass.

        Earlier scores that the last run did not use are dropped, since their predictions are in the tree.
        """
        used = {id(each) for each in self._used}
        self._known = [entry for entry in self._known if id(entry[0]) in used]
        self._known.append((scores, hidden))
        self._used, self.pending, self.hidden = [], [], False

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        parts = self._find(nodes, hidden=False)
        with torch.inference_mode():
            rows: dict[Node, torch.Tensor] = {}
            for scores, members in parts:
                scores.store_predictions(members)
                rows.update(zip(members, scores.logprobs_of(members), strict=True))
            return torch.stack([rows[node] for node in nodes])

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        parts = self._find(nodes, hidden=hidden)
        with torch.inference_mode():
            return NodeScores.joined([scores.part(members, hidden=hidden) for scores, members in parts])

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        """Return no nodes: the caller has prefilled long texts before, and shorter ones are computed with the pass."""
        return []

    def prefill(self, nodes: Sequence[Node]) -> None:
        """Do nothing, since `nodes_to_prefill` returns nothing."""

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        """See `Engine.roll_out`. Where servers compute, PassNeeded comes with `rolling` for all levels at once."""
        if server_engine_of(self._engine) is None:
            return base.roll_out(self, nodes, depth, stop)
        return self._roll_out_on_servers(nodes, depth, stop)

    def _roll_out_on_servers(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        """Yield the ends of the branches as far as they are known, and raise PassNeeded; nothing if all are known."""
        if ends := base.unfinished(nodes, depth, stop):
            yield ends
            self.pending, self.rolling = ends, RollOut(ends, depth, stop)
            raise PassNeeded

    def free(self, nodes: Sequence[Node]) -> None:
        self._engine.free(nodes)

    def compact(self, tree: TokenTree) -> None:
        self._engine.compact(tree)

    def cache_usage(self, tree: TokenTree) -> tuple[int, int]:
        return self._engine.cache_usage(tree)

    def _find(self, nodes: Sequence[Node], *, hidden: bool) -> list[tuple[NodeScores, list[Node]]]:
        """Return pairs of scores and the nodes among `nodes` that they are used for: the newest scores of each node.

        With `hidden`, only passes in which hidden states were requested count. Raises PassNeeded, with `pending` and
        `hidden` set, if a node has no scores.
        """
        newest = {node: scores for scores, has in self._known if has or not hidden for node in scores.nodes}
        parts: dict[int, tuple[NodeScores, list[Node]]] = {}
        for node in dict.fromkeys(nodes):
            if node in newest:
                parts.setdefault(id(newest[node]), (newest[node], []))[1].append(node)
        self._used += [scores for scores, _ in parts.values()]
        self.pending = [node for node in dict.fromkeys(nodes) if node not in newest]
        self.hidden = hidden
        if self.pending:
            raise PassNeeded
        return list(parts.values())
