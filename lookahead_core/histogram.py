"""Counts of values by size, as monitoring systems read them: how many are at most each of some bounds."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Counts values by upper bounds, which must rise; `add` and `read` may be called from any thread."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        """The upper bounds, each included; values above the last one are counted too."""
        self._counts = [0] * (len(self.bounds) + 1)
        self._total = 0.0
        self._lock = threading.Lock()

    def add(self, value: float) -> None:
        """Count one more value."""
        with self._lock:
            self._counts[bisect_left(self.bounds, value)] += 1
            self._total += value

    def read(self) -> tuple[list[int], float]:
        """Return the number of values up to each bound, then that of all values; and the sum of all values."""
        with self._lock:
            counts, total = list(self._counts), self._total
        for index in range(1, len(counts)):
            counts[index] += counts[index - 1]
        return counts, total
