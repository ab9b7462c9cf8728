"""Branches that are drawn: k streams, each with noise of its own, so that what was drawn once is drawn again."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import torch

from lookahead_core.sampling import draw, shaped, without
from lookahead_core.strategies.growth import Growth, Leaf, Step
from lookahead_core.strategies.healing import Typed
from lookahead_core.tree import Node


def sampled(growth: Growth, head: Node, typed: Typed | None) -> Iterator[Step]:
    """All streams one token further with each pass; streams that drew the same stay as many rows as they are."""
    draws = Draws(growth)
    if typed is None:
        leaves = [Leaf(head, (), ())] * growth.options.k
    else:
        leaves = draws.healed(head, typed)
        yield Step(tuple(leaves))
    while growing := [index for index, leaf in enumerate(leaves) if growth.is_open(leaf)]:
        passed = draws.evaluate([(leaves[index].node, index) for index in growing])
        for index in growing:
            leaves[index] = draws.then(leaves[index], index)
        if passed:
            yield Step(tuple(leaves))
    yield Step(tuple(leaves))


@dataclass(frozen=True, slots=True)
class Draws:
    """What each stream draws after each node: noted there, since it takes the full row."""

    growth: Growth

    def evaluate(self, wanted: Sequence[tuple[Node, int]]) -> bool:
        """Draw after these nodes for these streams, in one pass; tells whether one was needed."""
        missing = [(node, stream) for node, stream in wanted if self._drawn(node, stream) is None]
        nodes = list(dict.fromkeys(node for node, _ in missing))
        if nodes:
            rows = dict(zip(nodes, self.growth.engine.evaluate(nodes), strict=True))
            for node, stream in missing:
                self._draw(node, stream, rows[node])
        return bool(nodes)

    def then(self, leaf: Leaf, stream: int, typed: bytes = b"") -> Leaf:
        """A leaf, and the token that this stream has drawn after it."""
        drawn = self._drawn(leaf.node, stream, typed)
        assert drawn is not None
        return self.growth.then(leaf, *drawn)

    def healed(self, head: Node, typed: Typed) -> list[Leaf]:
        """The first tokens where the last typed one is re-opened: drawn among those that begin with what was typed.

        A stream that draws the typed token itself, which inserts nothing, goes on from it at once.
        """
        assert head.parent is not None
        streams = range(self.growth.options.k)
        if typed.said is None or any(self._missing(head, typed, stream) for stream in streams):
            rows = self.growth.engine.evaluate([head.parent, head])
            given = typed.hear(rows[0], head.token_id)
            for stream in streams:
                self._draw(head.parent, stream, given, typed.text, but=head.token_id)
                if self._missing(head, typed, stream):
                    self._draw(head, stream, rows[1])
        base = Leaf(head.parent, (), (), typed.text)
        leaves = [self.then(base, stream, typed.text) for stream in streams]
        return [self.then(leaf, stream) if leaf.node is head else leaf for stream, leaf in enumerate(leaves)]

    def _missing(self, head: Node, typed: Typed, stream: int) -> bool:
        """Whether a stream's first token that inserts something is not drawn yet."""
        assert head.parent is not None
        first = self._drawn(head.parent, stream, typed.text)
        return first is None or (first[0] == head.token_id and self._drawn(head, stream) is None)

    def _draw(self, node: Node, stream: int, row: torch.Tensor, typed: bytes = b"", but: int = -1) -> None:
        """Draw from a row, what is banned left out, all but the token that stands already."""
        options = self.growth.options
        allowed = without(row, self.growth.banned - {but})
        odds = shaped(allowed, temperature=options.temperature, top_p=options.top_p)
        token_id = draw(odds, seed=options.seed, stream=stream, position=self._position(node))
        node.tree.note(node, self._key(node, stream, typed), (token_id, float(row[token_id])))

    def _drawn(self, node: Node, stream: int, typed: bytes = b"") -> tuple[int, float] | None:
        return (node.notes or {}).get(self._key(node, stream, typed))

    def _position(self, node: Node) -> int:
        """Where in the whole text the token after a node stands."""
        return node.depth + self.growth.place.unread

    def _key(self, node: Node, stream: int, typed: bytes) -> Hashable:
        options = self.growth.options
        drawing = (options.seed, options.temperature, options.top_p)
        return drawing, stream, self._position(node), typed, self.growth.banned
