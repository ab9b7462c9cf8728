"""Branches that are drawn: k streams, each with noise of its own, so that what was drawn once is drawn again."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import torch

from lookahead_core.strategies.branch_growth import BranchLeaf, BranchStart, Growth
from lookahead_core.strategies.healing import ReopenedToken, evaluated_start, known_start
from lookahead_core.strategies.sampling import draw, shaped
from lookahead_core.tree import Node, Prediction


def sampled(growth: Growth, head: Node, typed: ReopenedToken | None) -> Iterator[Sequence[BranchLeaf]]:
    """All streams one token further with each pass; streams that drew the same stay as many rows as they are."""
    draws = StreamDraws(growth)
    leaves = draws.beginnings(head) if typed is None else draws.healed(head, typed)
    yield leaves
    while growing := [index for index, leaf in enumerate(leaves) if growth.is_open(leaf)]:
        passed = draws.evaluate([(leaves[index].node, index) for index in growing])
        for index in growing:
            leaves[index] = draws.then(leaves[index], index)
        if passed:
            yield leaves
    yield leaves


@dataclass(frozen=True, slots=True)
class StreamDraws:
    """What each stream draws after each node: noted there, since it takes the full row."""

    growth: Growth

    def beginnings(self, head: Node) -> list[BranchLeaf]:
        """The first token of each stream."""
        streams = range(self.growth.options.k)
        self.evaluate([(head, stream) for stream in streams])
        said = self.growth.said(head)
        assert said is not None
        self.growth.start = BranchStart(said)
        return [self.then(BranchLeaf(head, (), ()), stream) for stream in streams]

    def evaluate(self, wanted: Sequence[tuple[Node, int]]) -> bool:
        """Draw after these nodes for these streams, in one pass; tells whether one was needed."""
        missing = [(node, stream) for node, stream in wanted if not self._is_known(node, stream)]
        nodes = list(dict.fromkeys(node for node, _ in missing))
        if nodes:
            pairs = zip(nodes, self.growth.engine.evaluate(nodes), strict=True)
            rows = {node: self.growth.take(node, row) for node, row in pairs}
            for node, stream in missing:
                self._draw(node, stream, rows[node])
        return bool(nodes)

    def then(self, leaf: BranchLeaf, stream: int) -> BranchLeaf:
        """A leaf, and the token that this stream has drawn after it."""
        said = self.growth.said(leaf.node)
        assert said is not None
        return self._taken(leaf, stream, said)

    def healed(self, head: Node, typed: ReopenedToken) -> list[BranchLeaf]:
        """The first tokens where the last typed one is re-opened: drawn among those that begin with what was typed.

        A stream that draws the typed token itself, which inserts nothing, goes on from it at once.
        """
        assert head.parent is not None
        streams = range(self.growth.options.k)
        start = known_start(self.growth, head, typed)
        if start is None or any(self._missing(head, typed, stream) for stream in streams):
            start, first, after = evaluated_start(self.growth, head, typed)
            for stream in streams:
                self._draw(head.parent, stream, first, typed.text)
                if self._missing(head, typed, stream):
                    self._draw(head, stream, after)
        self.growth.start = start
        base = BranchLeaf(head.parent, (), (), typed=typed.text)
        leaves = [self._taken(base, stream, start.said) for stream in streams]
        return [self.then(leaf, stream) if leaf.node is head else leaf for stream, leaf in enumerate(leaves)]

    def _taken(self, leaf: BranchLeaf, stream: int, said: Prediction) -> BranchLeaf:
        """The token that a stream has drawn after a leaf; in place of the last one typed where no other came yet."""
        drawn = self._drawn(leaf.node, stream, leaf.typed if not leaf.token_ids else b"")
        assert drawn is not None
        return self.growth.then(leaf, *drawn, said)

    def _missing(self, head: Node, typed: ReopenedToken, stream: int) -> bool:
        """Whether a stream's first token that inserts something is not drawn yet."""
        assert head.parent is not None
        first = self._drawn(head.parent, stream, typed.text)
        return first is None or (first[0] == head.token_id and not self._is_known(head, stream))

    def _is_known(self, node: Node, stream: int) -> bool:
        """Whether no pass is needed for what a stream draws after a node, and for the odds there."""
        return self._drawn(node, stream) is not None and self.growth.said(node) is not None

    def _draw(self, node: Node, stream: int, row: torch.Tensor, typed: bytes = b"") -> None:
        """Draw from a row of log-probabilities, from which what is banned is left out already."""
        options = self.growth.options
        odds = shaped(row, temperature=options.temperature, top_p=options.top_p)
        token_id = draw(odds, seed=options.seed, stream=stream, position=self._position(node))
        node.tree.memoize(node, self._key(node, stream, typed), (token_id, float(row[token_id])))

    def _drawn(self, node: Node, stream: int, typed: bytes = b"") -> tuple[int, float] | None:
        return (node.memo or {}).get(self._key(node, stream, typed))

    def _position(self, node: Node) -> int:
        """Where in the whole text the token after a node stands."""
        return node.depth + self.growth.place.unread

    def _key(self, node: Node, stream: int, typed: bytes) -> Hashable:
        options = self.growth.options
        drawing = (options.seed, options.temperature, options.top_p)
        return drawing, stream, self._position(node), typed, self.growth.banned
