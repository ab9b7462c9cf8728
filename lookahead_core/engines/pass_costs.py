"""Seconds of a forward pass by its number of nodes, estimated from the passes that were measured so far."""

from __future__ import annotations

import bisect
import itertools
import threading

SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Pass sizes, in nodes, for which an estimate is kept; between them the cost is interpolated linearly."""
PRIOR_SLOPE = 0.03
"""The assumed cost of one more node before measurements, as a share of a pass with one node; typical of CPUs."""
ROW_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Bounds, in rows, by which engines count their passes in `pass_rows`, a `Histogram`."""
UPDATE_RATE = 0.1
"""The weight (0 to 1) of a measurement that is slower than the estimate; a faster one has three times as much."""
DECAY_RATE = 0.005
"""The share of their excess by which each measurement lowers other sizes' estimates that are higher than it suggests:
the excess halves in 139 measurements."""


class PassCosts:
    """Estimates the relative cost of a forward pass from its number of nodes. Each engine has one.

    `record` learns from a measured pass. `cost` has no fixed unit, so compare costs only. Before the first measurement
    a pass with one node costs 1, and each further node, up to 64 nodes, 0.03.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._estimates: dict[int, float] = {}
        """Estimated seconds by index in `SIZES`, for the sizes that were measured."""
        self._curve = [_prior(index) for index in range(len(SIZES))]

    def record(self, nodes: int, seconds: float) -> None:
        """Learn from a pass with this many nodes, rounded up to a number in `SIZES`, that took `seconds`.

        Passes with no nodes or with more than 64 are ignored. `seconds` is cut to `nodes` times the estimate for one
        node, if there is one. A measurement above the estimate moves it less than one below it.
        """
        if not 1 <= nodes <= SIZES[-1]:
            return
        index = bisect.bisect_left(SIZES, nodes)
        with self._lock:
            # Other programs slow passes down: n nodes never cost more than n passes with one node.
            seconds = min(seconds, nodes * self._estimates.get(0, seconds))
            # For the same reason a faster measurement counts more than a slower one. The first pass of a size is often
            # slow and might be the last one if it were believed, so it only moves the estimate.
            before = self._estimates.get(index, self._curve[index] if self._estimates else seconds)
            rate = UPDATE_RATE if seconds > before else 3 * UPDATE_RATE
            self._estimates[index] = before + rate * (seconds - before)
            self._decay(index)
            self._curve = self._monotone_curve()

    def _decay(self, index: int) -> None:
        """Lower the estimates that are higher than that of `SIZES[index]`, scaled by the ratio of the priors, suggests.

        They lose the share `DECAY_RATE` of the excess. Sizes that seem expensive are avoided and so not measured again;
        without this their estimates would stay high. `SIZES[index]` must have an estimate.
        """
        for other, estimate in self._estimates.items():
            expected = self._estimates[index] * _prior(other) / _prior(index)
            if estimate > expected:
                self._estimates[other] = estimate + DECAY_RATE * (expected - estimate)

    def cost(self, nodes: int) -> float:
        """Return the estimated cost of a pass, in a unit common to all sizes; `nodes` must be at least 1.

        It never falls as the nodes grow. Above 64 nodes it grows in proportion to the nodes.
        """
        index = bisect.bisect_left(SIZES, nodes)
        if index == len(SIZES):
            return self._curve[-1] * nodes / SIZES[-1]
        if nodes == SIZES[index]:
            return self._curve[index]
        low, high = SIZES[index - 1], SIZES[index]
        return self._curve[index - 1] + (nodes - low) / (high - low) * (self._curve[index] - self._curve[index - 1])

    @property
    def min_node_cost(self) -> float:
        """The smallest increase of `cost` by one more node, anywhere between 1 and 64 nodes; it may be 0."""
        steps = itertools.pairwise(zip(SIZES, self._curve, strict=True))
        return min((after - before) / (high - low) for (low, before), (high, after) in steps)

    def _monotone_curve(self) -> list[float]:
        """Return the cost in seconds for each of `SIZES`, raised where needed so that no cost is below the one before.

        The cost of a size is its estimate, or else that of the nearest size that has one, times the ratio of their
        priors. There must be one estimate at least.
        """
        known = sorted(self._estimates)
        curve: list[float] = []
        for index in range(len(SIZES)):
            nearest = min(known, key=lambda other: abs(other - index))
            cost = self._estimates.get(index, self._estimates[nearest] * _prior(index) / _prior(nearest))
            curve.append(max(cost, curve[-1]) if curve else cost)
        return curve


def _prior(index: int) -> float:
    """Return the assumed cost of a pass with `SIZES[index]` nodes, where a pass with one node costs 1."""
    return 1 + PRIOR_SLOPE * (SIZES[index] - 1)
