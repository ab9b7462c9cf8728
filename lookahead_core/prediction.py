"""`Prediction`: the next-token distribution after a node, compressed to some hundred bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from lookahead_core.reheating import reheat


@dataclass(frozen=True, slots=True)
class Prediction:
    """The next-token distribution after a node, compressed: the most likely tokens, and a histogram of all others."""

    token_ids: tuple[int, ...]
    """The most likely tokens, most likely first."""
    logprobs: tuple[float, ...]
    """Their natural log-probabilities."""
    entropy: float
    """The entropy of the whole distribution, in nats."""
    tail: tuple[int, ...] = ()
    """`tail[i]`: how many other tokens lie `i` to `i + 1` bins of `TAIL_BIN` nats below the most likely one; the last
    bin also counts all that lie further below."""
    row: object | None = field(default=None, repr=False, compare=False)
    """All log-probabilities as a tensor indexed by token id; only if the caller requested the row."""
    log_total: float | None = field(default=None, repr=False, compare=False)
    """The log of the softmax denominator: logit = log-probability + `log_total`; None if it is unknown."""
    truncated: bool = False
    """Whether only the log-probabilities of `token_ids` are known, as from a server. They and the sum of all others
    are exact; `entropy`, `tail` and re-heated values are then estimates."""

    def reheated(self, temperature: float) -> tuple[tuple[float, ...], float]:
        """Return the probabilities of `token_ids` at another temperature, in order, and the sum of all others.

        They need no forward pass, add up to 1, and are within 1 % of the full distribution's up to temperature 2. There
        must be a token. Raises ValueError unless the temperature is positive.
        """
        return reheat(self.logprobs, self.tail, temperature)
