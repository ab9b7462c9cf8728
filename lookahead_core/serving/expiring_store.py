"""Documents by the person they belong to: bounded, expiring, and never another's."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from lookahead_core.errors import NoRoom

T = TypeVar("T")
FULL = "So many people are writing here that there is no room for another text just now; try again soon."


class ExpiringStore(Generic[T]):
    """At most so many things, one for each key. The longest unused one that is not busy makes room for a new one."""

    def __init__(
        self,
        make: Callable[[], T],
        *,
        most: int = 64,
        seconds: float = 3600.0,
        busy: Callable[[T], bool] = lambda thing: False,
        gone: Callable[[str, T], Any] = lambda key, thing: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`busy` says which things must stay; `gone` is told of each one that is forgotten.

        Things that nobody has held or found for so many seconds are forgotten.
        """
        self._make = make
        self._most = most
        self._seconds = seconds
        self._busy = busy
        self._gone = gone
        self._clock = clock
        self._lock = threading.Lock()
        self._held: OrderedDict[str, tuple[T, float]] = OrderedDict()

    def hold(self, key: str) -> T:
        """The thing that belongs to this key, made if there is none yet; raises NoRoom where all others are busy."""
        with self._lock:
            self._forget_idle()
            if key not in self._held:
                self._make_room()
            return self._used(key, self._held[key][0] if key in self._held else self._make())

    def find(self, key: str) -> T | None:
        """The same if it is there, and as recently used; nothing is made."""
        with self._lock:
            self._forget_idle()
            return self._used(key, self._held[key][0]) if key in self._held else None

    def __len__(self) -> int:
        return len(self._held)

    def _used(self, key: str, thing: T) -> T:
        self._held[key] = thing, self._clock()
        self._held.move_to_end(key)
        return thing

    def _make_room(self) -> None:
        while len(self._held) >= self._most:
            key = next((key for key, (thing, _) in self._held.items() if not self._busy(thing)), None)
            if key is None:
                raise NoRoom(FULL)
            self._forget(key)

    def _forget_idle(self) -> None:
        oldest = self._clock() - self._seconds
        while self._held and next(iter(self._held.values()))[1] < oldest:
            self._forget(next(iter(self._held)))

    def _forget(self, key: str) -> None:
        thing, _ = self._held.pop(key)
        self._gone(key, thing)
