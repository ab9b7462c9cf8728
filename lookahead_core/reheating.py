"""Re-heating: the probabilities of a compressed distribution at another temperature, without a forward pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

TAIL_BIN = 0.125
"""Width, in nats, of a histogram bin of `Prediction.tail`: re-heating is within 1 % up to temperature 2."""
MIN_TAIL_PROBABILITY = 1e-3
"""Below this probability of the tail at temperature 1 its weight is not corrected: rounding would decide it."""


def reheat(logprobs: Sequence[float], tail: Sequence[int], temperature: float) -> tuple[tuple[float, ...], float]:
    """Return the probabilities of the kept tokens at a temperature, and the sum of those of all other tokens.

    `logprobs` are the kept tokens' log-probabilities at temperature 1, most likely first, at least one; `tail` counts
    all other tokens by their distance to the most likely one, in bins of `TAIL_BIN` nats. Raises ValueError unless the
    temperature is positive.
    """
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature!r}, and must be more than 0.")
    weights = [math.exp((value - logprobs[0]) / temperature) for value in logprobs]
    rest = _tail_weight(tail, temperature) * _tail_scale(logprobs, tail)
    total = sum(weights) + rest
    return tuple(weight / total for weight in weights), rest / total


def _tail_weight(tail: Sequence[int], temperature: float) -> float:
    """Return the tail's weight relative to the most likely token's, with tokens spread evenly over each bin.

    Both weights are those at `temperature`, which must be positive.
    """
    spread = TAIL_BIN / temperature / 2
    fill = math.sinh(spread) / spread
    return fill * sum(
        count * math.exp(-(index + 0.5) * TAIL_BIN / temperature) for index, count in enumerate(tail) if count
    )


def _tail_scale(logprobs: Sequence[float], tail: Sequence[int]) -> float:
    """Return the factor with which the tail gets its exact probability at temperature 1: 1 less the kept ones.

    1 if that probability is below `MIN_TAIL_PROBABILITY`; else `tail` must not be empty.
    """
    exact = 1 - math.fsum(map(math.exp, logprobs))
    if exact < MIN_TAIL_PROBABILITY:
        return 1.0
    return exact / (_tail_weight(tail, 1.0) * math.exp(logprobs[0]))
