"""Drafters: the protocol that guesses of next tokens come through, their checks, and the accuracy of past guesses.

To add a drafter, write a class with the members of `Drafter` and pass an object of it in the option `drafters`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch

from lookahead_core.engines.engine import NodeScores
from lookahead_core.tree import Node
from lookahead_core.validation import short_repr

MAX_KINDS = 4096
"""Maximum number of (drafter, kind of guess) pairs whose accuracy is kept; the least recently learned is dropped."""
PROBABILITY_TOLERANCE = 1e-3
"""How far from 1 the probabilities in `Guess.source` may add up, because of rounding."""


class Guess(NamedTuple):
    """A drafter's guess of the next token: its id, the odds that it is right, and the kind of guess.

    If the token was sampled, the guess also has the probabilities that it was sampled from.
    """

    token_id: int
    odds: float
    """The probability that it is right if all guesses above it are: an estimate, which `GuessAccuracy` corrects."""
    sign: Hashable
    """The kind of guess: any hashable value. The accuracy of guesses is counted per drafter and kind."""
    source: torch.Tensor | None = None
    """The probabilities of all tokens, of shape (vocabulary,), that it was sampled from; None if it was not sampled."""


Way = Guess
"""`Guess` under its name in earlier versions, for drafters written for them."""


class Drafter(Protocol):
    """The protocol of an object that guesses the next tokens of one document.

    A drafter follows a draft by means of states: any objects except None that only it interprets. A drafter that is
    slow sets `dear = True`; it is then used only where it gains time, and where the drafters before it in the list are
    uncertain.
    """

    name: str
    """The drafter's name in results and in error messages."""
    hidden: bool
    """Whether `start` needs the model's last hidden states, the input of its output matrix."""

    def read(self, token_ids: Sequence[int]) -> None:
        """Learn the text: called with all its token ids before each stream, also if they have not changed.

        They include those that the model does not read, because the text is longer than its context.
        """
        ...

    def hear(self, path: Sequence[int], new: int, scores: NodeScores, nodes: Sequence[Node]) -> None:
        """Learn from a forward pass: the last `new` token ids of `path`, at least one, are new since `read` or `hear`.

        `path` holds the token ids that the model reads: the whole text, or the part of it that fits the context.
        `scores` holds the scores of all nodes in the pass, which may include nodes of other texts; `nodes` are those of
        this text: its last node before the pass, and all draft nodes below it, accepted or rejected.
        """
        ...

    def start(self, path: Sequence[int], vector: torch.Tensor | None, reach: int) -> Any:
        """Return the state at the end of `path` for a draft at most `reach` tokens deep; None to guess nothing.

        `path` holds the token ids that the model reads, as for `hear`. `vector`, of shape (hidden size,), is the hidden
        state of its last token but one, from which the last token was chosen. None where the latest pass did not give
        it: before the first pass, after a token that needed no pass, where no drafter sets `hidden`, and in engines
        without hidden states.
        """
        ...

    def ways(self, state: Any) -> Sequence[Guess]:
        """Return guesses of the next token in this state, preferably the most probable first; empty if there are none.

        At most the first 64 are used, and ids outside the vocabulary are ignored. A stream stops with a ValueError at
        the first of them that is not valid, see `checked_guesses`.
        """
        ...

    def follow(self, state: Any, token_id: int) -> Any:
        """Return the state after one more token, which any drafter may have guessed; None to guess nothing after it.

        `state` must not change: the same one is followed by several tokens.
        """
        ...


def checked_guesses(drafter: Drafter, guesses: Iterable[Guess], vocabulary: int) -> Iterator[Guess]:
    """Yield the guesses that a drafter returned; raise a ValueError that names the drafter at the first invalid one.

    A ValueError is also raised if `guesses`, what `ways` returned, is not iterable. Errors are raised only while the
    result is iterated. `vocabulary` is the number of token ids, each of which must have a probability in `source`.
    """
    if not isinstance(guesses, Iterable):
        raise ValueError(
            f"The drafter {drafter.name} returns {short_repr(guesses)}; `ways` must return a list of guesses."
        )
    for guess in guesses:
        if problem := _problem(guess, vocabulary):
            raise ValueError(f"The drafter {drafter.name} returns {problem}.")
        yield guess


def _problem(guess: Any, vocabulary: int) -> str:
    """Return a phrase that says what is wrong with a guess; empty if it is valid.

    Checked are the types of its fields, and that `source` can be what the token was sampled from. The range of `odds`
    is not checked. An id outside the vocabulary is valid in a guess without `source`; it is never drafted.
    """
    if not isinstance(guess, Guess):
        return f"{short_repr(guess)} as a guess; it must be a `Guess`"
    if type(guess.token_id) is not int:
        return f"{short_repr(guess.token_id)} as a token id; it must be a whole number"
    if not isinstance(guess.odds, int | float):
        return f"{short_repr(guess.odds)} as odds; they must be a number"
    try:
        hash(guess.sign)
    except TypeError:
        return f"{short_repr(guess.sign)} as a sign; it must be hashable"
    if guess.source is not None and not _is_source(guess.source, guess.token_id, vocabulary):
        return f"a source that token {guess.token_id} was not sampled from; it must be one probability for each token"
    return ""


def _is_source(source: Any, token_id: int, vocabulary: int) -> bool:
    """Whether this is a floating-point tensor of `vocabulary` probabilities, above 0 for this token, with the sum 1.

    The sum may differ from 1 by less than PROBABILITY_TOLERANCE. False for an id outside the vocabulary.
    """
    if not isinstance(source, torch.Tensor) or source.shape != (vocabulary,) or not source.is_floating_point():
        return False
    adds_up = abs(float(source.cpu().sum(dtype=torch.float64)) - 1) < PROBABILITY_TOLERANCE
    return adds_up and float(source.min()) >= 0 and 0 <= token_id < vocabulary and float(source[token_id]) > 0


class GuessAccuracy:
    """Counts how often the guesses of each drafter and kind were right, and corrects the odds of later guesses.

    A document has one, which all its streams use.
    """

    PRIOR_WEIGHT = 8.0
    """How many observed guesses the drafter's own estimate counts for."""
    DECAY = 0.98
    """Factor on earlier counts at each observation: texts change, so old observations count less."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Hashable], tuple[float, float]] = {}
        """By drafter and kind: the number of right guesses, and of all guesses; earlier ones count less."""

    def odds(self, drafter: str, guess: Guess) -> float:
        """Return the corrected probability that a guess is right if all above it are; `drafter` is its drafter's name.

        It is the weighted mean of `guess.odds`, which counts as much as PRIOR_WEIGHT guesses, and of the share of this
        drafter's earlier guesses of the same kind that were right. Without earlier ones it is `guess.odds`.
        """
        right, total = self._counts.get((drafter, guess.sign), (0.0, 0.0))
        return (right + self.PRIOR_WEIGHT * guess.odds) / (total + self.PRIOR_WEIGHT)

    def learn(self, drafter: str, guess: Guess, right: bool) -> None:
        """Count a guess of the drafter of this name; `right` says whether its token came next.

        Earlier guesses of the same drafter and kind then count less. Of more than MAX_KINDS kinds, the one that learned
        least recently is dropped.
        """
        before, total = self._counts.pop((drafter, guess.sign), (0.0, 0.0))
        self._counts[drafter, guess.sign] = (before * self.DECAY + right, total * self.DECAY + 1)
        if len(self._counts) > MAX_KINDS:
            del self._counts[next(iter(self._counts))]


def decile(probability: float) -> int:
    """Return the tenth that a probability from 0 to 1 lies in, 0 to 9: guesses in the same tenth are of one kind."""
    return min(9, int(probability * 10))
