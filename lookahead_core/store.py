"""Documents by the person they belong to: bounded, expiring, and never another's."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Store(Generic[T]):
    """At most so many things, one for each key; the longest unused ones go first, and idle ones after a while."""

    def __init__(
        self,
        make: Callable[[], T],
        *,
        most: int = 64,
        seconds: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._held: OrderedDict[str, tuple[T, float]] = OrderedDict()

    def hold(self, key: str) -> T:
        """What belongs to this key, made if there is nothing yet."""
        with self._lock:
            self._forget_idle()
            thing = self._held.pop(key)[0] if key in self._held else self._make()
            self._held[key] = thing, self._clock()
            while len(self._held) > self._most:
                self._held.popitem(last=False)
            return thing

    def find(self, key: str) -> T | None:
        """The same if it is there; nothing is made, nor kept for longer."""
        with self._lock:
            self._forget_idle()
            return self._held[key][0] if key in self._held else None

    def __len__(self) -> int:
        return len(self._held)

    def _forget_idle(self) -> None:
        oldest = self._clock() - self._seconds
        while self._held and next(iter(self._held.values()))[1] < oldest:
            self._held.popitem(last=False)
