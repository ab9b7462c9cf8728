"""What all modes grow with: leaves, the ways to go on from them, and when they are complete."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from lookahead_core.engines.engine import Engine
from lookahead_core.engines.rows import KEPT
from lookahead_core.sampling import without
from lookahead_core.strategies.decode import Line
from lookahead_core.strategies.options import Options
from lookahead_core.tree import Node, Prediction

Complete = Callable[[Sequence[int], bytes], int | None]
"""How many tokens of a path reach the end of what branches should end with, or None where that is still to come.

The bytes stand in the text already: the first ones of the path's first token.
"""


@dataclass(frozen=True, slots=True)
class Place:
    """What a document knows of the place where branches grow, and strategies, who see no text, do not."""

    unread: int = 0
    """How many tokens of the text the model does not read; with a node's depth they make its position in the text."""
    complete: Complete | None = None
    line: Callable[[Node, int], Line] | None = None
    """Makes the line of the likeliest tokens after a node, so many, drafted; None where nothing is to be drafted."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """The end of a path below a base, with the log-probability of each token on it."""

    node: Node
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    typed: bytes = b""
    """What was typed of the first token, where it stands in place of the last one typed."""
    done: bool = False
    """Whether it has reached the end of what was asked for, and is not to grow."""
    beyond: tuple[int, ...] = ()
    """Tokens that were looked at to know that it is done."""

    @property
    def healed(self) -> bool:
        return bool(self.typed)

    @property
    def logprob(self) -> float:
        return math.fsum(self.logprobs)

    def then(self, token_id: int, logprob: float) -> Leaf:
        """One token further down."""
        child = self.node.tree.expand(self.node, token_id)
        return Leaf(child, (*self.token_ids, token_id), (*self.logprobs, logprob), self.typed)

    def ended(self, stop: frozenset[int]) -> bool:
        return bool(self.token_ids) and self.token_ids[-1] in stop

    def cut(self, size: int) -> Leaf:
        """Done, with its first tokens only."""
        node = self.node
        for _ in self.token_ids[size:]:
            assert node.parent is not None
            node = node.parent
        kept, beyond = self.token_ids[:size], self.token_ids[size:]
        return replace(self, node=node, token_ids=kept, logprobs=self.logprobs[:size], done=True, beyond=beyond)


@dataclass(frozen=True, slots=True)
class Step:
    """After a pass: the paths so far, and how much of the text is still to be read."""

    leaves: tuple[Leaf, ...]
    tokens_to_read: int = 0


class Growth:
    """The ways to go on from leaves, one pass for all of them."""

    def __init__(self, engine: Engine, options: Options, stop: frozenset[int], place: Place) -> None:
        self.engine = engine
        self.options = options
        self.stop = stop
        self.place = place
        self.banned = frozenset(options.banned)

    @property
    def plain(self) -> bool:
        """Whether the most likely token is always taken, down to the bottom."""
        return not self.banned and self.place.complete is None

    def is_open(self, leaf: Leaf) -> bool:
        """Whether a leaf is to be grown further."""
        return not leaf.done and len(leaf.token_ids) < self.options.depth and not leaf.ended(self.stop)

    def then(self, leaf: Leaf, token_id: int, logprob: float) -> Leaf:
        """One token further down, or back up to where it is complete, if this token tells that it was."""
        grown = leaf.then(token_id, logprob)
        if self.place.complete is None or token_id in self.stop:
            return grown
        size = self.place.complete(grown.token_ids, grown.typed)
        return grown if size is None else grown.cut(size)

    def evaluate(self, leaves: Sequence[Leaf], count: int = 1) -> bool:
        """Make so many ways known after each of these leaves, in one pass; tells whether one was needed."""
        nodes = list(dict.fromkeys(leaf.node for leaf in leaves if self.offered(leaf.node, count) is None))
        if nodes:
            for node, row in zip(nodes, self.engine.evaluate(nodes), strict=True):
                self.keep(node, row, count)
        return bool(nodes)

    def keep(self, node: Node, row: torch.Tensor, count: int) -> None:
        """Note what a row offers, where so much is banned that the prediction does not tell."""
        if self.offered(node, count) is None:
            node.tree.note(node, self.banned, allowed(row, self.banned))

    def offered(self, node: Node, count: int) -> list[tuple[int, float]] | None:
        """The likeliest tokens after a node that may be shown; None where that takes a pass to know."""
        said = node.prediction
        return None if said is None else self.permitted(said, count, (node.notes or {}).get(self.banned))

    def permitted(
        self, said: Prediction, count: int, noted: list[tuple[int, float]] | None
    ) -> list[tuple[int, float]] | None:
        """The likeliest that are neither banned nor ruled out; None where neither prediction nor note holds enough."""
        pairs = zip(said.token_ids, said.logprobs, strict=True)
        good = ((token_id, value) for token_id, value in pairs if token_id not in self.banned and value > -math.inf)
        found = list(itertools.islice(good, count))
        if len(found) == count or not (self.banned and any(said.tail)):
            return found
        return None if noted is None else noted[:count]

    def ways(self, leaf: Leaf, count: int) -> list[Leaf]:
        """The most likely ways to go on from a leaf that has been evaluated."""
        return [self.then(leaf, *pair) for pair in self.offered(leaf.node, count) or ()]

    def slide(self, leaf: Leaf) -> Leaf:
        """As far down the most likely tokens as predictions reach."""
        while self.is_open(leaf):
            ways = self.ways(leaf, 1)
            if not ways:
                break
            leaf = ways[0]
        return leaf

    def distinct(self, leaves: Sequence[Leaf]) -> list[Leaf]:
        """Each path once: leaves that differ only in what follows the end of a word have become the same."""
        if self.place.complete is None:
            return list(leaves)
        once: dict[tuple[int, ...], Leaf] = {}
        for leaf in leaves:
            once.setdefault(leaf.token_ids, leaf)
        return list(once.values())


def allowed(row: torch.Tensor, banned: frozenset[int]) -> list[tuple[int, float]]:
    """The likeliest of a row that are not banned."""
    values, token_ids = without(row, banned).topk(min(KEPT, len(row)))
    pairs = zip(token_ids.tolist(), values.tolist(), strict=True)
    return [(token_id, value) for token_id, value in pairs if value > -math.inf]
