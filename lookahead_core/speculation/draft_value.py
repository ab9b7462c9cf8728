"""What a guess is worth in a forward pass: the pass's load, the payoff of costly drafters, odds given the noise."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.speculation.drafters.protocol import Drafter, Guess

NoiseAdjustment: TypeAlias = Callable[[int, int, float], float]
"""A function (depth, token id, odds) -> odds that corrects a guess's odds by the sampling noise.

The depth is that of the draft node before the guessed token, 0 for the draft's root. The odds are those that the guess
is right if the path above it is.
"""


class PassLoad:
    """The size of a forward pass over one or several continuations, updated while drafts are added to it.

    `nodes` is the number of nodes that it evaluates, `expected` the number of tokens that it is expected to gain, and
    `spare` the number of draft nodes that may still be added.
    """

    def __init__(self, continuations: int, spare: float = math.inf) -> None:
        """Begin with one node, which gains one token, for each of so many continuations, and no draft nodes.

        `spare` is the number of draft nodes that may be added to the pass; if not above 0, none may be.
        """
        self.nodes = continuations
        self.expected = float(continuations)
        self.spare = spare

    def add(self, odds: float) -> None:
        """Count one more draft node; `odds` is the probability that its whole path is accepted."""
        self.nodes += 1
        self.spare -= 1
        self.expected += odds

    def remove(self, odds: float) -> None:
        """Undo `add` with the same odds."""
        self.nodes -= 1
        self.spare += 1
        self.expected -= odds

    def tokens_per_second(self, costs: PassCosts) -> float:
        """Return the expected number of tokens divided by the cost of the pass, in the unit of `costs`: for comparison.

        Costs are seconds only once a pass was measured; until then a pass with one node costs 1.
        """
        return self.expected / costs.cost(self.nodes)


class DrafterPayoff:
    """Decides in which passes a costly drafter is used, by the seconds it gained and took in recent passes.

    A `Speculation` has one for each of its drafters that sets `dear`.
    """

    REQUIRED_RATIO = 1.5
    """Minimum ratio of seconds gained to seconds taken: the drafter's rejected guesses cost time in the pass too."""
    DECAY = 0.15
    """Weight of the latest pass in the moving averages."""
    RETRY_INTERVAL = 6
    """A drafter that does not pay is still used in one pass of this many, to notice when it would pay again."""

    def __init__(self) -> None:
        self._gained = self._spent = 0.0
        self._passes = 0
        self.seconds = 0.0
        """How long `timed_ways` has taken for the current draft."""

    def begin_pass(self) -> bool:
        """Count a pass, set `seconds` to 0, and return whether to use the drafter in this pass.

        It is used until it has taken any time, then if it gained at least REQUIRED_RATIO times the seconds it took, and
        in every RETRY_INTERVAL-th pass whatever it gained.
        """
        self._passes += 1
        self.seconds = 0.0
        return self._gained >= self.REQUIRED_RATIO * self._spent or self._passes % self.RETRY_INTERVAL == 0

    def timed_ways(self, drafter: Drafter, state: Any) -> Sequence[Guess]:
        """Return `drafter.ways(state)`, and add the time that it took to `seconds`."""
        started = time.perf_counter()
        guesses = drafter.ways(state)
        self.seconds += time.perf_counter() - started
        return guesses

    def note_gain(self, seconds: float) -> None:
        """Update the moving averages of the seconds that the drafter gained and took, if it was used in this pass.

        What it took is the attribute `seconds`. The parameter `seconds` is what it gained: the number of accepted
        tokens that it alone guessed, times the pass's duration divided by the number of tokens that the pass won.
        """
        if self.seconds:
            self._gained += self.DECAY * (seconds - self._gained)
            self._spent += self.DECAY * (self.seconds - self._spent)


def noise_adjustment(noise: Callable[[int, int], float]) -> NoiseAdjustment:
    """Return the function (depth, token id, odds) -> odds that gives a guess's odds when its Gumbel noise is known.

    `noise(depth, token_id)` returns that noise; at depth 0 the token follows the draft's root. Odds of 0 and 1 are
    returned unchanged. Sampling takes the largest sum of log-probability and noise; the largest sum of all other tokens
    is distributed like noise shifted by the logarithm of their total probability.
    """

    def adjusted(depth: int, token_id: int, odds: float) -> float:
        if not 0 < odds < 1:
            return odds
        return math.exp(-(1 - odds) * math.exp(-(math.log(odds) + noise(depth, token_id))))

    return adjusted


_LOG_ODDS_STEPS = tuple(round(2 * math.log(max(each, 1) / max(1000 - each, 1))) for each in range(1001))


def log_odds_step(odds: float) -> int:
    """Return twice the natural log-odds of a probability, rounded to a whole number from -14 to 14.

    `odds` is the probability, from 0 to 1, of which only three decimals count.
    """
    return _LOG_ODDS_STEPS[int(1000 * odds)]
