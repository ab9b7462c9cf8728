"""Predictions from the log-probabilities of the likeliest tokens alone, with the sum of all others exact.

The shape of the tail, for the entropy and other temperatures, is estimated: the other tokens are taken to follow a
power law of their rank (Zipf's law) that begins at the last known token and adds up to the mass that is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from lookahead_core.engines.prediction_rows import TAIL_BINS, TOP_TOKENS
from lookahead_core.errors import InvalidLogits
from lookahead_core.prediction import Prediction
from lookahead_core.reheating import TAIL_BIN

MOST_EXPONENT = 64.0
"""The steepest power law that is tried: its first token has nearly all of the mass."""
HALVINGS = 40
"""Steps of the bisection for the exponent."""
LEAST_MASS = 1e-6
"""A smaller mass outside the known tokens is not described: rounding would decide it."""


def truncated_prediction(logprobs: Mapping[int, float], vocabulary: int, first: int | None = None) -> Prediction:
    """Return the prediction of the TOP_TOKENS likeliest tokens of these natural log-probabilities by token id.

    It is marked as `truncated` unless they are all of the `vocabulary`. Of tokens with equal values `first` comes
    first, then the lowest id. Raises InvalidLogits for values that are not log-probabilities.
    """
    if any(math.isnan(value) or value > 1e-3 for value in logprobs.values()) or max(logprobs.values()) == -math.inf:
        raise InvalidLogits
    order = sorted(logprobs, key=lambda token_id: (-logprobs[token_id], token_id != first, token_id))[:TOP_TOKENS]
    values = tuple(logprobs[token_id] for token_id in order)
    known = [math.exp(value) for value in values]
    entropy = -math.fsum(mass * value for mass, value in zip(known, values, strict=True) if mass)
    rest, others = 1 - math.fsum(known), vocabulary - len(order)
    if others <= 0:
        return Prediction(tuple(order), values, entropy)
    if rest < LEAST_MASS or values[-1] == -math.inf:
        return Prediction(tuple(order), values, entropy, truncated=True)
    exponent = _exponent(rest / known[-1], len(order), vocabulary)
    tail = _histogram(values[0] - values[-1], exponent, len(order), vocabulary)
    return Prediction(tuple(order), values, entropy + _tail_entropy(tail, rest, values[0]), tail, truncated=True)


def _exponent(total: float, rank: int, vocabulary: int) -> float:
    """Return the exponent s with which the sum of (rank / r) ** s over the ranks r after `rank` is `total`.

    The sum is taken as an integral. 0, an even tail, if no power law adds up to so much.
    """
    low, high = 0.0, MOST_EXPONENT
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _sum_of_powers(middle, rank, vocabulary) > total else (low, middle)
    return low


def _sum_of_powers(exponent: float, rank: int, vocabulary: int) -> float:
    first, last = (rank + 0.5) / rank, (vocabulary + 0.5) / rank
    if abs(exponent - 1) < 1e-9:
        return rank * math.log(last / first)
    powers: float = last ** (1 - exponent) - first ** (1 - exponent)
    return rank * powers / (1 - exponent)


def _histogram(distance: float, exponent: float, rank: int, vocabulary: int) -> tuple[int, ...]:
    """Return `Prediction.tail` of a power law that begins `distance` nats below the likeliest token, at `rank`."""
    tail, before = [0] * TAIL_BINS, float(rank)
    for index in range(TAIL_BINS):
        reach = ((index + 1) * TAIL_BIN - distance) / max(exponent, 1e-9)
        limit = math.log(vocabulary / rank)
        after = float(rank) if reach < 0 else vocabulary if reach >= limit else rank * math.exp(reach)
        after = vocabulary if index == TAIL_BINS - 1 else after
        tail[index] = round(after) - round(before)
        before = after
    return tuple(tail)


def _tail_entropy(tail: tuple[int, ...], rest: float, highest: float) -> float:
    """Return the entropy that the tokens of a tail add, whose probabilities add up to `rest`.

    The tokens of a bin count as equal; `highest` is the log-probability of the likeliest token of all.
    """
    weights = [count * math.exp(highest - (index + 0.5) * TAIL_BIN) for index, count in enumerate(tail)]
    scale = rest / math.fsum(weights)
    return -math.fsum(
        scale * weight * (math.log(scale) + highest - (index + 0.5) * TAIL_BIN)
        for index, weight in enumerate(weights)
        if weight
    )
