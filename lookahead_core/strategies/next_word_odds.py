"""`NextWordOdds`: a next word with bounds of its probability."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NextWordOdds:
    """A next word with bounds of its probability, and its likeliest tokenization."""

    text: str
    """Its characters, white space before it included; "" stands for the end of the text."""
    low: float
    """Probability of all paths of tokens that are known to spell it, 0 to 1."""
    high: float
    """`low`, and the probability of all paths that may spell it."""
    token_ids: tuple[int, ...]
    """Its likeliest tokenization, and after it the likeliest token that shows its end, if that needs a token."""
    logprobs: tuple[float, ...]
    """The natural log-probability of each of them."""
    size: int
    """How many of them it takes to spell the word."""

    @property
    def share(self) -> float:
        """Its probability, up to `error`."""
        return (self.low + self.high) / 2

    @property
    def error(self) -> float:
        """How much its probability differs from `share` at most."""
        return (self.high - self.low) / 2
