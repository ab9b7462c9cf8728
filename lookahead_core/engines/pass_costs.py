"""What a pass takes on this machine, by how many nodes are in it: learnt from the passes that there were."""

from __future__ import annotations

import bisect
import itertools
import threading

SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Sizes at which a time is kept; between them it is a straight line."""
SLOPE = 0.03
"""What another node costs, as a share of a pass with one, before anything was seen: facts of a processor."""
DOUBT = 0.005
"""How fast the belief fades that a size is dear: a few hundred passes."""
FORGETS = 0.1
"""The share of what was seen before that a pass of the same size replaces."""


class PassCosts:
    """Seconds of a pass by its number of nodes, as ratios that can be trusted from the first pass on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[int, float] = {}
        self._curve = [_usual(place) for place in range(len(SIZES))]

    def record(self, nodes: int, seconds: float) -> None:
        """A pass of so many nodes took so long."""
        if not 1 <= nodes <= SIZES[-1]:
            return
        place = bisect.bisect_left(SIZES, nodes)
        with self._lock:
            # Whatever else the machine did meanwhile: so many nodes never cost more than so many passes.
            seconds = min(seconds, nodes * self._seen.get(0, seconds))
            # Another program can only slow a pass down: what is faster is believed sooner.
            # The first pass of a size is often slow, and may be the last if that is believed.
            before = self._seen.get(place, self._curve[place] if self._seen else seconds)
            share = FORGETS if seconds > before else 3 * FORGETS
            self._seen[place] = before + share * (seconds - before)
            self._doubt(place)
            self._curve = self._drawn()

    def _doubt(self, place: int) -> None:
        """What was dear once fades: passes of a size that is thought dear are not made, so nothing corrects it."""
        for other, value in self._seen.items():
            usual = self._seen[place] * _usual(other) / _usual(place)
            if value > usual:
                self._seen[other] = value + DOUBT * (usual - value)

    def cost(self, nodes: int) -> float:
        """What a pass of so many nodes costs, in a unit that is the same for all sizes."""
        place = bisect.bisect_left(SIZES, nodes)
        if place == len(SIZES):
            return self._curve[-1] * nodes / SIZES[-1]
        if nodes == SIZES[place]:
            return self._curve[place]
        low, high = SIZES[place - 1], SIZES[place]
        return self._curve[place - 1] + (nodes - low) / (high - low) * (self._curve[place] - self._curve[place - 1])

    @property
    def min_node_cost(self) -> float:
        """What one more node costs where it costs least."""
        steps = itertools.pairwise(zip(SIZES, self._curve, strict=True))
        return min((after - before) / (high - low) for (low, before), (high, after) in steps)

    def _drawn(self) -> list[float]:
        """The curve through what was seen; where nothing was, it goes on with the usual slope, and it never falls."""
        known = sorted(self._seen)
        curve = []
        for place in range(len(SIZES)):
            nearest = min(known, key=lambda other: abs(other - place))
            value = self._seen.get(place, self._seen[nearest] * _usual(place) / _usual(nearest))
            curve.append(max(value, curve[-1]) if curve else value)
        return curve


def _usual(place: int) -> float:
    """What a size costs on a processor, where one node costs 1."""
    return 1 + SLOPE * (SIZES[place] - 1)
