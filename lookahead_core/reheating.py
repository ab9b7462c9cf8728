"""Re-heating: the probabilities of a compressed distribution at another temperature, without a forward pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

TAIL_BIN = 0.125
"""Width, in nats, of a histogram bin of `Prediction.tail`: re-heating is within 1 % up to temperature 2."""
MIN_TAIL_PROBABILITY = 1e-3
"""Below this probability of the tail at temperature 1 its weight is not corrected: rounding would decide it."""


def reheat(logprobs: Sequence[float], tail: Sequence[int], temperature: float) -> tuple[tuple[float, ...], float]:
    """Return the probabilities of the kept tokens at a temperature, in order, and the sum of those of all other tokens.

    `logprobs` are the kept tokens' natural log-probabilities at temperature 1, most likely first, at least one.
    `tail[i]` is the number of other tokens whose log-probability is `i` to `i + 1` bins of `TAIL_BIN` nats below the
    most likely one's. Raises ValueError unless the temperature is positive.
    """
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature!r}, and must be more than 0.")
    weights = [math.exp((value - logprobs[0]) / temperature) for value in logprobs]
    rest = _tail_weight(tail, temperature) * _tail_scale(logprobs, tail)
    total = sum(weights) + rest
    return tuple(weight / total for weight in weights), rest / total


def _tail_weight(tail: Sequence[int], temperature: float) -> float:
    """Return the tail's probability divided by the most likely token's, both at `temperature`, which must be positive.

    `tail` is as in `reheat`; its tokens are taken to be spread evenly over each bin. 0 for an empty tail.
    """
    width = TAIL_BIN / temperature
    fill = -math.expm1(-width) / width
    return fill * sum(count * math.exp(-index * width) for index, count in enumerate(tail) if count)


def _tail_scale(logprobs: Sequence[float], tail: Sequence[int]) -> float:
    """Return the factor for `_tail_weight` with which the tail's probability at temperature 1 is exact.

    The exact one is 1 less the sum of the kept tokens' probabilities. The factor is 1 if that is below
    `MIN_TAIL_PROBABILITY`; else `tail` must count at least one token. The arguments are as in `reheat`.
    """
    exact = 1 - math.fsum(map(math.exp, logprobs))
    if exact < MIN_TAIL_PROBABILITY:
        return 1.0
    return exact / (_tail_weight(tail, 1.0) * math.exp(logprobs[0]))
