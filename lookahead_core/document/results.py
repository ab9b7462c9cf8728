"""The results of lookaheads and beam searches: frozen branches with their text and their probabilities."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lookahead_core.prediction import Prediction
from lookahead_core.strategies.beam import FATES
from lookahead_core.strategies.beam_options import BeamOptions
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.word_odds import WordOdds
from lookahead_core.tree import Node


def average_probability(logprobs: Sequence[float]) -> float:
    """Return the geometric mean of probabilities, 0 to 1, from their natural logarithms; there must be at least one."""
    return math.exp(math.fsum(logprobs) / len(logprobs))


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of a branch's tokens that ends on a whole character: the unit that one click inserts.

    Tokens without text (half a character, a control token that is no end token) belong to the piece after them.
    """

    text: str
    """Its characters, at least one."""
    token_ids: tuple[int, ...]
    probability: float
    """Probability of these tokens after the tokens before them, 0 to 1."""
    tokens: int
    """Number of the branch's tokens up to the end of this piece: accept so many to insert it and the pieces before."""
    ends: int = 0
    """What is complete after it, as far as known: 0 nothing, 1 a word, 2 a clause, 3 a sentence, 4 a line."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A continuation of the text: a path below the node of the text's last token; if healed, below that node's parent.

    A lookahead or a beam search makes it, and `Document.accept` takes it. If tokens are banned, all its probabilities
    are renormalised without them. If it is healed, they are conditional on the typed token's text.
    """

    token_ids: tuple[int, ...]
    """Its tokens, with the end token if it ended."""
    logprobs: tuple[float, ...]
    """Natural log-probability of each token."""
    pieces: tuple[Piece, ...]
    """Its text in pieces that can be accepted one by one. An end token and a trailing half character are in none."""
    share: float
    """Probability of the shortest beginning that no other branch has, 0 to 1; equal branches have the same share. The
    beginning of a healed branch inserts at least a character: the typed token alone is no beginning."""
    probability: float
    """Probability of the whole path, 0 to 1."""
    ended: bool
    """Whether the last token is an end token, or stands for the end of a chat message."""
    healed: bool = False
    """Whether the first token replaces the last typed one."""
    said: tuple[Prediction, ...] = field(default=(), repr=False, compare=False)
    """For each token, the prediction that its log-probability comes from."""
    repeats: bool = False
    """Whether it ends here because it repeats itself, or the end of the text; only with `stop_at_repetition`."""
    next_word: str | None = None
    """Its first word, with `odds="words"`; "" if the text ends at once. `share` is then the word's probability. None
    with token odds."""
    next_word_tokens: int = 0
    """Number of its tokens that spell `next_word`."""
    share_error: float = 0.0
    """Maximum error of `share`, up or down: with `odds="words"` not all tokenizations are searched. Else 0."""
    _origin: weakref.ref[Node] | None = field(default=None, repr=False, compare=False)
    word_tokens: tuple[int, int] | None = field(default=None, repr=False)
    """The tokens that hold the word of the option `towards`, as [start, end); None if the branch reaches none."""
    edited_tokens: tuple[int, int] | None = field(default=None, repr=False)
    """The tokens of the text that `Document.continue_branch` inserted, as [start, end); None for other branches."""
    earlier_edits: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    """The tokens of texts that earlier edits of the same branch had inserted before that text, each as [start, end)."""

    @property
    def text(self) -> str:
        """The text of all pieces: the characters that accepting the branch inserts.

        A plain-text ending of a chat message that `closed` has cut off is not in it.
        """
        return "".join(piece.text for piece in self.pieces)

    @property
    def logprob(self) -> float:
        """Sum of the tokens' natural log-probabilities."""
        return math.fsum(self.logprobs)

    @property
    def average_probability(self) -> float:
        """Geometric mean of the tokens' probabilities, 0 to 1, an end token included; there must be a token."""
        return average_probability(self.logprobs)

    @property
    def origin(self) -> Node | None:
        """The node at the end of the text that it was grown from: the last token, also if the branch replaces it.

        None once that node is gone, because it was pruned or its tree is gone: a branch keeps neither alive.
        """
        return self._origin() if self._origin is not None else None


@dataclass(frozen=True, slots=True)
class Other:
    """A likely first token, or with `odds="words"` a likely next word, that no branch of the lookahead begins with."""

    token_ids: tuple[int, ...]
    """One token; or two, if the first is the re-opened typed token itself and inserts nothing alone. With
    `odds="words"`, the likeliest tokenization of the word."""
    logprobs: tuple[float, ...]
    """Natural log-probability of each token."""
    text: str | None
    """The characters that it would insert; None for an end token, and if they are not whole characters."""
    ended: bool
    """Whether its last token is an end token."""
    said: tuple[Prediction, ...] = field(default=(), repr=False, compare=False)
    """For each token, the prediction that its log-probability comes from; of a word those of its first tokens alone."""
    share: float | None = None
    """With `odds="words"`, the probability of `text` as the next word; else None."""
    share_error: float = 0.0
    """Maximum error of `share`, up or down. It equals `share` if it is not known whether the word goes on."""


@dataclass(frozen=True, slots=True)
class NextWord:
    """A word that may come next, with its probability over all its tokenizations."""

    text: str
    """Its characters, white space before it included; if the text ends inside a word, those that complete it. "" stands
    for the end of the text."""
    probability: float
    """The probability that this word comes next and ends there, 0 to 1; up to `error`."""
    error: float
    """Maximum error of `probability`, up or down."""


@dataclass(frozen=True, slots=True)
class TypedToken:
    """The re-opened token of a lookahead with token healing, which some branches keep as their first token."""

    token_id: int
    logprob: float
    """Its natural log-probability among the tokens that begin with its text."""
    said: tuple[Prediction, Prediction] = field(repr=False, compare=False)
    """The prediction that `logprob` comes from, and that of the token after it, both without banned tokens."""


@dataclass(frozen=True, slots=True)
class BannedToken:
    """A banned token that would have been likely at the end of the text."""

    token_id: int
    text: str
    """All its characters; U+FFFD stands for parts of a character."""
    probability: float
    """Probability that it would have next if no token were banned, 0 to 1; conditional on a re-opened token."""


@dataclass(frozen=True, slots=True)
class Beam(Branch):
    """A branch that a beam search returned, with the score that the search ranks by.

    The score is the sum of the log-probabilities after all rules, divided by the length to the power `length_penalty`;
    with `stopping="seed"` it is not divided.
    """

    score: float = 0.0
    """What the search ranks by: the sum of log-probabilities after all rules, divided by the length to the power
    `length_penalty`; with `stopping="seed"` the plain sum."""


@dataclass(frozen=True, slots=True)
class BeamNode:
    """A candidate path of a beam search, described by its last token."""

    parent: int | None
    """Index in `Beams.tree` of the path without the last token; None if this is the first token."""
    token_id: int
    """The path's last token."""
    text: str
    """The characters that this token adds; may be empty."""
    logprob: float
    """The model's natural log-probability of the token, before any rules."""
    total: float
    """Sum of the path's log-probabilities after all rules and penalties."""
    step: int
    """Level of the search at which it was a candidate, from 1: the length of the path in tokens."""
    ended: bool
    """Whether the token is an end token."""
    fate: str
    """What became of the path: a key of `strategies.beam.FATES`."""

    @property
    def reason(self) -> str:
        """Why the search kept or dropped the path, as an English phrase."""
        return FATES[self.fate]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of computing a result: forward passes, tokens, seconds, and the cache in use."""

    passes: int
    """Number of forward passes."""
    tokens: int
    """Number of tokens that went through the model."""
    seconds: float
    """Seconds of wall-clock time, waiting included."""
    live_slots: int
    """Number of tokens whose keys and values the document's cache holds now."""
    cache_bytes: int
    """Bytes allocated for the document's cache now."""


@dataclass(frozen=True, slots=True)
class Lookahead:
    """The result of a lookahead: branches, the probability that they cover, and their cost."""

    branches: tuple[Branch, ...]
    """In the order of their mode: the likeliest first token first, best path first, or in the order of the samples."""
    coverage: float
    """Probability of all texts that begin with a branch, up to where it differs from the other branches; 0 to 1. With
    `odds="words"`, of all texts that begin with one of the words: the sum of the shares."""
    cost: Cost
    given: str = ""
    """The typed characters of the re-opened token, which every branch begins with; empty without healing."""
    typed: TypedToken | None = None
    """The re-opened token; None without healing, and until its prediction is evaluated."""
    seen_from: int = 0
    """Index of the first character that the model reads; 0 unless the text is longer than the model's context."""
    rest: tuple[Other, ...] = ()
    """The likeliest first tokens, or with `odds="words"` words, that no branch begins with, likeliest first."""
    banned: tuple[BannedToken, ...] = ()
    """The banned tokens, and those that would spell a word to avoid, among the model's `TOP_TOKENS` likeliest next
    ones; with a re-opened token also all that begin with its text and have a probability above 0. Likeliest first."""
    said: Prediction | None = field(default=None, repr=False, compare=False)
    """The prediction of the first token, without banned tokens and conditional on a re-opened token; None until it is
    evaluated."""
    options: LookaheadOptions = field(default_factory=LookaheadOptions, repr=False)
    """The options that the result was made with."""
    read: int = 0
    """Number of tokens of the text that the model reads."""
    word: WordOdds | None = None
    """How likely the text is to reach the word of the option `towards`; None without it, and until it is evaluated."""
    compared_by: str = ""
    """By what the modes "diverse" and "surprising" compared branches: "hidden states and words", or "words" if the
    engine has no hidden states. Empty in other modes."""

    @property
    def odds_error(self) -> float:
        """The largest `share_error` of the branches; 0 with token odds."""
        return max((branch.share_error for branch in self.branches), default=0.0)

    @property
    def alone(self) -> int:
        """Number of tokens that the model would have read with one request per branch, without a cache between them.

        Each counts the tokens of the text that the model reads (`read`), without one that the branch replaces, and
        those of the branch but its last one.
        """
        return sum(self.read - branch.healed + len(branch.token_ids) - 1 for branch in self.branches)


@dataclass(frozen=True, slots=True)
class Beams:
    """The result of a beam search: the returned beams, and every candidate that the search considered."""

    branches: tuple[Beam, ...]
    """Best first."""
    tree: tuple[BeamNode, ...]
    """Every path that was ever a candidate, each after its parent."""
    steps: int
    """Number of levels searched."""
    cost: Cost
    options: BeamOptions = field(repr=False)
    """The options that the result was made with."""


@dataclass(frozen=True, slots=True)
class BeamStep:
    """The state of a beam search after one more level."""

    step: int
    """Number of levels searched so far."""
    _build: Callable[[], Beams] = field(repr=False)

    @property
    def result(self) -> Beams:
        """The result as it was at this step, with the best beams so far; built anew at each access."""
        return self._build()


@dataclass(frozen=True, slots=True)
class LookaheadStep:
    """The state of a lookahead and its result so far, after a forward pass, or at its start or end without a pass."""

    tokens_read: int
    """Number of the text's tokens prefilled by this lookahead so far."""
    tokens_to_read: int
    """Number of the text's tokens still to be prefilled before there are branches."""
    _build: Callable[[], Lookahead] = field(repr=False)
    waiting: str = ""
    """A sentence if the step has nothing new, as the lookahead waits for a worker (`engines.dispatch`); else empty."""

    @property
    def result(self) -> Lookahead:
        """The result as it was at this step, built anew at each access; no branches while the text is prefilled."""
        return self._build()
