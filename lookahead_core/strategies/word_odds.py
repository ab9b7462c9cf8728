"""`WordOdds`: how likely the text is to reach a word."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WordOdds:
    """How likely the text is to reach a word: bounds of the probability, both exact, at temperature 1."""

    word: str
    within: int
    """The number of tokens within which the word's last letter comes. The token after it may decide that it ends."""
    low: float
    """The probability of the paths that were found, 0 to 1."""
    high: float
    """The same and the probability of all that was not looked at."""
