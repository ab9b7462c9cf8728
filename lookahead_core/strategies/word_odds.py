"""`WordOdds`: how likely the text is to reach a word."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WordOdds:
    """Bounds of the probability that the text reaches a word, at temperature 1; both bounds are exact."""

    word: str
    within: int
    """Maximum number of tokens up to the word's last letter; one token more may show that the word ends there."""
    low: float
    """Lower bound of the probability: the sum over the paths to the word that were found, 0 to 1."""
    high: float
    """`low` plus the probability of all paths that were not searched."""
