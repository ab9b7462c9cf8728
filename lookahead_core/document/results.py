"""What a lookahead and a beam search show: branches with their text and odds, as frozen facts."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lookahead_core.strategies.beam import FATES, BeamOptions
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.tree import Node, Prediction


def average_probability(logprobs: Sequence[float]) -> float:
    """The average token probability of a text: the geometric mean of its tokens' probabilities."""
    return math.exp(math.fsum(logprobs) / len(logprobs))


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of a branch's tokens that ends on a whole character: what one click can insert.

    Tokens without text (half a character, a control token that ends nothing) belong to the piece that follows them.
    """

    text: str
    token_ids: tuple[int, ...]
    probability: float
    """Of these tokens after those before them."""
    tokens: int
    """How many of the branch's tokens to accept so that the text ends with this piece."""
    ends: int = 0
    """What is complete after it, as far as known: 0 nothing, 1 a word, 2 a clause, 3 a sentence, 4 a line."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A path below the head."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    pieces: tuple[Piece, ...]
    share: float
    """The probability of what sets this branch apart from the others; equal branches have it together. Like all odds of
    a branch it is renormalised without banned tokens."""
    probability: float
    """The probability of the whole path."""
    ended: bool
    healed: bool = False
    """Whether the first token stands in place of the last one typed; the odds are then given what was typed."""
    said: tuple[Prediction, ...] = field(default=(), repr=False, compare=False)
    """For each token, the prediction that its log-probability is of: without banned tokens, given what was typed."""
    _origin: weakref.ref[Node] | None = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        """Exactly the characters that accepting the branch inserts."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def logprob(self) -> float:
        """The sum of the tokens' log-probabilities."""
        return math.fsum(self.logprobs)

    @property
    def average_probability(self) -> float:
        """The average token probability: the geometric mean over all tokens, an end token included."""
        return average_probability(self.logprobs)

    @property
    def origin(self) -> Node | None:
        """The node that it was grown from, while that is still there: a branch keeps no tree alive."""
        return self._origin() if self._origin is not None else None


@dataclass(frozen=True, slots=True)
class Other:
    """What could come first as well, and no branch begins with."""

    token_ids: tuple[int, ...]
    """One token; or two, where the first stands in place of the last one typed, and inserts nothing by itself."""
    logprobs: tuple[float, ...]
    text: str | None
    """What it would insert; None where it holds no whole character."""
    ended: bool
    """Whether it is an ending."""
    said: tuple[Prediction, ...] = field(default=(), repr=False, compare=False)
    """For each token, the prediction that its log-probability is of, as in a branch."""


@dataclass(frozen=True, slots=True)
class Beam(Branch):
    """A branch that a beam search found."""

    score: float = 0.0
    """What the search ranks by: the sum of its scores over a power of its length, or the plain sum."""


@dataclass(frozen=True, slots=True)
class BeamNode:
    """A path that a beam search looked at, told by its last token."""

    parent: int | None
    """Which node it goes on from, by its place in the list; none where it is a first token."""
    token_id: int
    text: str
    logprob: float
    total: float
    """The sum of the scores so far."""
    step: int
    ended: bool
    """Whether it is an end token."""
    fate: str
    """What became of it: a key of `FATES`."""

    @property
    def reason(self) -> str:
        """What became of it, in words."""
        return FATES[self.fate]


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
    rest: tuple[Other, ...] = ()
    """The likeliest first tokens that no branch begins with."""
    said: Prediction | None = field(default=None, repr=False, compare=False)
    """The prediction where all branches begin, without banned tokens; given what was typed, where the last token was
    re-opened."""
    options: LookaheadOptions = field(default_factory=LookaheadOptions, repr=False)
    read: int = 0
    """How many tokens of the text the model reads."""

    @property
    def alone(self) -> int:
        """How many tokens the model would have read with one request a branch, each from the start."""
        return sum(self.read - branch.healed + len(branch.token_ids) - 1 for branch in self.branches)


@dataclass(frozen=True, slots=True)
class Beams:
    """What a beam search found, and all that it looked at on the way."""

    branches: tuple[Beam, ...]
    """Best first."""
    tree: tuple[BeamNode, ...]
    """Every path that was ever among the candidates, parents first, the dead ones with the reason."""
    steps: int
    """How many levels it has gone down."""
    cost: Cost
    options: BeamOptions = field(repr=False)


@dataclass(frozen=True, slots=True)
class BeamStep:
    """What stands after one more level. The result is built only when it is asked for."""

    step: int
    _build: Callable[[], Beams] = field(repr=False)

    @property
    def result(self) -> Beams:
        return self._build()


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
