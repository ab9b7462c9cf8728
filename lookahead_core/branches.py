"""What a lookahead shows: branches with their text and odds, as frozen facts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lookahead_core.passage import Spot
from lookahead_core.strategies.lookahead import Leaf
from lookahead_core.tree import Node


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of a branch's tokens that ends on a whole character: what one click can insert."""

    text: str
    token_ids: tuple[int, ...]
    probability: float
    """Of these tokens after those before them."""
    tokens: int
    """How many of the branch's tokens to accept so that the text ends with this piece."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A path below the head."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    pieces: tuple[Piece, ...]
    share: float
    """The probability of what sets this branch apart from the others."""
    probability: float
    """The probability of the whole path."""
    ended: bool
    healed: bool = False
    """Whether the first token stands in place of the last one typed; the odds are then given what was typed."""
    origin: Node | None = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        """Exactly the characters that accepting the branch inserts."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a result has cost, and what is kept for it."""

    passes: int
    tokens: int
    """Tokens that went through the model."""
    seconds: float
    live_slots: int
    cache_bytes: int


@dataclass(frozen=True, slots=True)
class Lookahead:
    """A whole view: branches, what share of all that could come they hold, and what they cost."""

    branches: tuple[Branch, ...]
    coverage: float
    cost: Cost
    given: str = ""
    """The typed characters that every branch begins with, where the last token was re-opened."""
    seen_from: int = 0
    """The character from which on the model reads; 0 unless the text is longer than its context."""


@dataclass(frozen=True, slots=True)
class LookaheadStep:
    """What stands after one more forward pass. The view is built only when it is asked for."""

    tokens_read: int
    tokens_to_read: int
    """Tokens of the text still to be read before there are branches."""
    _build: Callable[[], Lookahead] = field(repr=False)

    @property
    def result(self) -> Lookahead:
        return self._build()


def make_branches(leaves: Sequence[Leaf], spot: Spot, stop: frozenset[int], origin: Node) -> tuple[Branch, ...]:
    """Branches from the leaves of a lookahead, in the leaves' order."""
    apart = _apart([leaf.token_ids for leaf in leaves])
    return tuple(_branch(leaf, count, spot, stop, origin) for leaf, count in zip(leaves, apart, strict=True))


def _branch(leaf: Leaf, apart: int, spot: Spot, stop: frozenset[int], origin: Node) -> Branch:
    logprobs = leaf.logprobs
    return Branch(
        token_ids=leaf.token_ids,
        logprobs=logprobs,
        pieces=_pieces(leaf, spot, stop),
        share=math.exp(math.fsum(logprobs[:apart])),
        probability=math.exp(math.fsum(logprobs)),
        ended=bool(leaf.token_ids) and leaf.token_ids[-1] in stop,
        healed=leaf.healed,
        origin=origin,
    )


def _apart(paths: Sequence[tuple[int, ...]]) -> list[int]:
    """For each path, the length of the shortest beginning that no other path shares."""
    order = sorted(range(len(paths)), key=lambda index: paths[index])
    lengths = [1] * len(paths)
    for first, second in itertools.pairwise(order):
        same = _common(paths[first], paths[second])
        for index in (first, second):
            lengths[index] = max(lengths[index], same + 1)
    return lengths


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return index
    return min(len(first), len(second))


def _pieces(leaf: Leaf, spot: Spot, stop: frozenset[int]) -> tuple[Piece, ...]:
    """The branch cut where characters are whole; an end token, and a character never completed, are in no piece."""
    pieces: list[Piece] = []
    begun = 0
    for index, token_id in enumerate(leaf.token_ids):
        if token_id in stop:
            break
        text, spot = spot.then(token_id, 0 if index else len(leaf.typed))
        if text:
            token_ids = leaf.token_ids[begun : index + 1]
            odds = math.exp(math.fsum(leaf.logprobs[begun : index + 1]))
            pieces.append(Piece(text, token_ids, odds, index + 1))
            begun = index + 1
    return tuple(pieces)
