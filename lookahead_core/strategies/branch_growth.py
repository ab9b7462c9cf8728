"""What all modes grow with: leaves, the ways to go on from them, and when they are complete."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from lookahead_core.engines.engine import Engine
from lookahead_core.engines.prediction_rows import LogitRows
from lookahead_core.strategies.decode import Continuation
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.sampling import without
from lookahead_core.tree import Node, Prediction

Complete = Callable[[Sequence[int], bytes], int | None]
"""How many tokens of a path reach the end of what branches should end with, or None where that is still to come.

The bytes stand in the text already: the first ones of the path's first token.
"""


@dataclass(frozen=True, slots=True)
class GrowthContext:
    """What a document knows of the place where branches grow, and strategies, who see no text, do not."""

    unread: int = 0
    """How many tokens of the text the model does not read; with a node's depth they make its position in the text."""
    complete: Complete | None = None
    line: Callable[[Node, int], Continuation] | None = None
    """Makes the line of the likeliest tokens after a node, so many, drafted; None where nothing is to be drafted."""


@dataclass(frozen=True, slots=True)
class BranchLeaf:
    """The end of a path below a base, with the log-probability of each token on it."""

    node: Node
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    said: tuple[Prediction, ...] = ()
    """For each token, the prediction that its log-probability is of: without banned tokens, given what was typed."""
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

    def then(self, token_id: int, logprob: float, said: Prediction) -> BranchLeaf:
        """One token further down, with the prediction that it was taken from."""
        child = self.node.tree.expand(self.node, token_id)
        taken = (*self.token_ids, token_id), (*self.logprobs, logprob), (*self.said, said)
        return BranchLeaf(child, *taken, typed=self.typed)

    def ended(self, stop: frozenset[int]) -> bool:
        return bool(self.token_ids) and self.token_ids[-1] in stop

    def cut(self, size: int) -> BranchLeaf:
        """Done, with its first tokens only."""
        node = self.node
        for _ in self.token_ids[size:]:
            assert node.parent is not None
            node = node.parent
        kept, beyond = self.token_ids[:size], self.token_ids[size:]
        shorter = {"token_ids": kept, "logprobs": self.logprobs[:size], "said": self.said[:size]}
        return replace(self, node=node, **shorter, done=True, beyond=beyond)


@dataclass(frozen=True, slots=True)
class BranchStart:
    """The predictions where branches begin, without banned tokens."""

    said: Prediction
    """Of the first token; given what was typed, where the last token is re-opened."""
    typed: float = 0.0
    """The log-probability of the typed token in it, where the last token is re-opened."""
    after_typed: Prediction | None = None
    """Of the token after the typed one, where the last token is re-opened."""


@dataclass(frozen=True, slots=True)
class GrowthStep:
    """After a pass: the paths so far, and how much of the text is still to be read."""

    leaves: tuple[BranchLeaf, ...]
    tokens_to_read: int = 0
    start: BranchStart | None = None
    """Where the paths begin; None before that was evaluated."""


class Growth:
    """The ways to go on from leaves, one pass for all of them."""

    def __init__(self, engine: Engine, options: LookaheadOptions, stop: frozenset[int], place: GrowthContext) -> None:
        self.engine = engine
        self.options = options
        self.stop = stop
        self.place = place
        self.banned = frozenset(options.banned)
        self.start: BranchStart | None = None
        """Where branches begin, once that is evaluated."""

    @property
    def plain(self) -> bool:
        """Whether the most likely token is always taken, down to the bottom."""
        return not self.banned and self.place.complete is None

    def is_open(self, leaf: BranchLeaf) -> bool:
        """Whether a leaf is to be grown further."""
        return not leaf.done and len(leaf.token_ids) < self.options.depth and not leaf.ended(self.stop)

    def then(self, leaf: BranchLeaf, token_id: int, logprob: float, said: Prediction) -> BranchLeaf:
        """One token further down, or back up to where it is complete, if this token tells that it was."""
        grown = leaf.then(token_id, logprob, said)
        if self.place.complete is None or token_id in self.stop:
            return grown
        size = self.place.complete(grown.token_ids, grown.typed)
        return grown if size is None else grown.cut(size)

    def evaluate(self, leaves: Sequence[BranchLeaf]) -> bool:
        """Make the predictions after these leaves known, in one pass; tells whether one was needed."""
        nodes = list(dict.fromkeys(leaf.node for leaf in leaves if self.said(leaf.node) is None))
        if nodes:
            for node, row in zip(nodes, self.engine.evaluate(nodes), strict=True):
                self.take(node, row)
        return bool(nodes)

    def take(self, node: Node, row: torch.Tensor) -> torch.Tensor:
        """Note the prediction after a node without banned tokens; returns the row of log-probabilities without them."""
        if not self.banned:
            return row
        left, said = among(row, without(torch.zeros_like(row), self.banned).isfinite().nonzero()[:, 0])
        node.tree.memoize(node, self.banned, said)
        return left

    def said(self, node: Node) -> Prediction | None:
        """The prediction after a node without banned tokens; None where that takes a pass to know."""
        return (node.memo or {}).get(self.banned) if self.banned else node.prediction

    def ways(self, leaf: BranchLeaf, count: int, said: Prediction | None = None) -> list[BranchLeaf]:
        """The most likely ways to go on from a leaf, none that is impossible: by this prediction, or the leaf's own."""
        said = said or self.said(leaf.node)
        assert said is not None
        pairs = zip(said.token_ids[:count], said.logprobs, strict=False)
        return [self.then(leaf, token_id, value, said) for token_id, value in pairs if value > -math.inf]

    def slide(self, leaf: BranchLeaf) -> BranchLeaf:
        """As far down the most likely tokens as predictions reach."""
        while self.is_open(leaf) and self.said(leaf.node) is not None:
            ways = self.ways(leaf, 1)
            if not ways:
                break
            leaf = ways[0]
        return leaf

    def distinct(self, leaves: Sequence[BranchLeaf]) -> list[BranchLeaf]:
        """Each path once: leaves that differ only in what follows the end of a word have become the same."""
        if self.place.complete is None:
            return list(leaves)
        once: dict[tuple[int, ...], BranchLeaf] = {}
        for leaf in leaves:
            once.setdefault(leaf.token_ids, leaf)
        return list(once.values())


def among(row: torch.Tensor, token_ids: torch.Tensor) -> tuple[torch.Tensor, Prediction]:
    """The odds among some tokens alone: as a row of log-probabilities, all others ruled out, and as a prediction.

    The prediction has no tokens where the model rules all of these out.
    """
    some = token_ids[row[token_ids].isfinite()]
    ruled_out = torch.full_like(row, -math.inf)
    if not len(some):
        return ruled_out, Prediction((), (), 0.0)
    logprobs = row[some].log_softmax(0)
    said = LogitRows(logprobs[None]).predictions()[0]
    # The model gave scores among all tokens, and none among these.
    said = replace(said, token_ids=tuple(some[list(said.token_ids)].tolist()), log_total=None)
    return ruled_out.index_copy(0, some, logprobs), said
