"""The results of highlights: what the model predicted at every token of a given text, as frozen facts."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from lookahead_core.document.results import Cost

NONE_FOUND = "No possible edits found."


@dataclass(frozen=True, slots=True)
class HighlightAlternative:
    """One of the model's likeliest tokens at an entry of the text; the text's own token may be one of them."""

    token_id: int
    text: str | None
    """The characters that it would add: empty for an end token, None if there is no whole character."""
    probability: float
    """The model's probability of it, 0 to 1."""
    ended: bool
    """Whether it is an end token."""


@dataclass(frozen=True, slots=True)
class HighlightEntry:
    """A token of a text and the model's prediction of it; several tokens if only together they make whole characters.

    Rank, entropy and alternatives belong to the first of its tokens that was not the likeliest, or to its first token.
    If nothing precedes it, there is no prediction: losses, rank and entropy are None, and there are no alternatives.
    """

    start: int
    """Index of its first character in the text."""
    end: int
    """Index after its last character."""
    token: str
    """Its characters."""
    token_ids: tuple[int, ...]
    word: tuple[int, int]
    """Start and end, as characters, of the word that it is part of, with the white space before the word."""
    loss: float | None
    """Negative log-probability of all its tokens, in nats."""
    excess_loss: float | None
    """`loss` minus the loss of the likeliest token at each position, in nats; 0 if its tokens are the likeliest."""
    rank: int | None
    """Rank of the token in the prediction, 1 for the likeliest."""
    entropy: float | None
    """Entropy of the prediction, in nats."""
    alternatives: tuple[HighlightAlternative, ...]
    """The likeliest tokens, likeliest first."""
    first_token: int
    """Index in `document.token_ids` of its first token."""
    offset: int
    """Index in `token_ids` of the token that rank, entropy and alternatives belong to."""
    read_from: int
    """Index in `document.token_ids` of the first text token that the model read for the prediction."""
    seen_from: int
    """Index of the character at which that token begins; 0 unless the text is longer than the model's context."""

    @property
    def most_likely(self) -> HighlightAlternative | None:
        """The model's likeliest token at this entry, which may be the text's own; None without a prediction.

        If the entry has several tokens, it is an alternative to the one at `offset`.
        """
        return self.alternatives[0] if self.alternatives else None

    @property
    def differs(self) -> bool:
        """Whether one of the entry's tokens was not the model's likeliest one; False without a prediction."""
        return self.rank is not None and self.rank > 1


@dataclass(frozen=True)
class Highlights:
    """The model's predictions at all tokens of a text: the result of `highlights`."""

    entries: tuple[HighlightEntry, ...]
    """In the order of the text, which they cover without gaps."""
    cost: Cost

    @property
    def candidates(self) -> tuple[HighlightEntry, ...]:
        """The entries at which the model predicted another token (`differs` is True), the highest loss first."""
        return tuple(sorted((entry for entry in self.entries if entry.differs), key=lambda entry: -(entry.loss or 0)))

    @property
    def marks(self) -> tuple[HighlightEntry, ...]:
        """The entries to mark: of each word that has any of `candidates`, the one with the highest excess loss.

        The highest excess loss comes first: there the model's choice was likelier than the text's by the largest
        factor.
        """
        worst: dict[tuple[int, int], HighlightEntry] = {}
        for entry in sorted(self.candidates, key=lambda entry: -(entry.excess_loss or 0)):
            worst.setdefault(entry.word, entry)
        return tuple(worst.values())

    @functools.cached_property
    def highest_loss(self) -> float:
        """The highest finite loss, in nats; the first entry's counts only if no other entry has one; 0 without any."""
        return max(_finite_losses(self.entries[1:]) or _finite_losses(self.entries[:1]), default=0.0)

    def relative_loss(self, entry: HighlightEntry) -> float | None:
        """Return an entry's loss divided by `highest_loss`; None if it has no loss, or if the highest loss is 0.

        Above 1 only for the first entry and for an infinite loss.
        """
        return entry.loss / self.highest_loss if entry.loss is not None and self.highest_loss else None

    @property
    def message(self) -> str:
        """A sentence to show if `candidates` is empty; "" otherwise."""
        return "" if any(entry.differs for entry in self.entries) else NONE_FOUND


def _finite_losses(entries: Sequence[HighlightEntry]) -> list[float]:
    return [entry.loss for entry in entries if entry.loss is not None and entry.loss < math.inf]


@dataclass(frozen=True, slots=True)
class HighlightsStep:
    """The progress of highlights, after a forward pass or at the end."""

    read: int
    """Number of tokens with a known prediction so far."""
    total: int
    """Number of tokens of the text."""
    result: Highlights | None = None
    """The result, in the last step only."""
