"""`NextWordOdds`: a next word with bounds of its probability."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NextWordOdds:
    """A next word with bounds of its probability, and its likeliest tokenization."""

    text: str
    """Its characters, white space before it included; "" stands for the end of the text."""
    low: float
    """Lower bound: the probability of all paths that are known to spell it and end it, 0 to 1."""
    high: float
    """Upper bound: `low` plus the probability of all paths that may still spell it."""
    token_ids: tuple[int, ...]
    """Its likeliest tokenization, and often one further token: the likeliest one that shows that the word ends."""
    logprobs: tuple[float, ...]
    """The natural log-probability of each of `token_ids`."""
    size: int
    """The number of `token_ids` that spell the word."""

    @property
    def share(self) -> float:
        """The estimated probability of the word: the middle between `low` and `high`."""
        return (self.low + self.high) / 2

    @property
    def error(self) -> float:
        """Maximum difference between `share` and the exact probability."""
        return (self.high - self.low) / 2
