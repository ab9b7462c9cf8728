"""A bounded store of one value per key, which forgets values that were not used for long."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from lookahead_core.errors import NoRoom

T = TypeVar("T")
FULL = "Too many people are writing here just now, so there is no room for another text; try again soon."


class ExpiringStore(Generic[T]):
    """Values by key, at most `capacity`: when full, a new key replaces the longest unused value that is not busy.

    Values that are not busy also make room, the longest unused first, while all together have more than `max_bytes`.
    Values that were not used for long are forgotten too. All methods may be called from any thread.
    """

    def __init__(
        self,
        make: Callable[[], T],
        *,
        capacity: int = 64,
        max_idle_seconds: float = 3600.0,
        max_bytes: float = math.inf,
        bytes_of: Callable[[T], int] = lambda value: 0,
        is_busy: Callable[[T], bool] = lambda value: False,
        choose: Callable[[Mapping[str, T]], str | None] | None = None,
        on_forget: Callable[[str, T], Any] = lambda key, value: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`make` makes a value for a new key; `is_busy` returns whether a value must stay although room is needed.
        `choose`, if it is set, returns the key of the value to forget when room is needed, or None if all must stay; it
        gets all values, the longest unused first.

        Values that were not used for more than `max_idle_seconds` are forgotten at the next `get_or_make`, `find` or
        `forget_idle`, busy or not. `bytes_of` returns the present size of a value; sizes are added up at each
        `get_or_make`. `on_forget` is called with each forgotten key and value. The functions are called while the store
        is locked, so they must not use it. `clock` returns the time in seconds.
        """
        self._make = make
        self._capacity = capacity
        self._max_idle_seconds = max_idle_seconds
        self._max_bytes = max_bytes
        self._bytes_of = bytes_of
        self._is_busy = is_busy
        self._choose = choose or (lambda values: next((key for key in values if not is_busy(values[key])), None))
        self._on_forget = on_forget
        self._clock = clock
        self._lock = threading.Lock()
        self._values: OrderedDict[str, tuple[T, float]] = OrderedDict()
        """Each value with the time of its last use, the longest unused first."""

    def get_or_make(self, key: str) -> T:
        """Return the value of this key, made if there is none. Counts as a use.

        Raises NoRoom if a value must be made, and the store is full of busy values.
        """
        with self._lock:
            self._forget_idle()
            if key not in self._values:
                self._make_room()
            used = self._used(key, self._values[key][0] if key in self._values else self._make())
            self._forget_large(key)
            return used

    def find(self, key: str) -> T | None:
        """Return the value of this key; None if there is none, or none any more. Counts as a use."""
        with self._lock:
            self._forget_idle()
            return self._used(key, self._values[key][0]) if key in self._values else None

    def forget_idle(self) -> None:
        """Forget the values that were not used for more than `max_idle_seconds`, as the next use of the store would."""
        with self._lock:
            self._forget_idle()

    def values(self) -> list[T]:
        """Return all values; does not count as a use."""
        with self._lock:
            return [value for value, _ in self._values.values()]

    def __len__(self) -> int:
        return len(self._values)

    def _used(self, key: str, value: T) -> T:
        self._values[key] = value, self._clock()
        self._values.move_to_end(key)
        return value

    def _make_room(self) -> None:
        while len(self._values) >= self._capacity:
            key = self._choose({key: value for key, (value, _) in self._values.items()})
            if key is None:
                raise NoRoom(FULL)
            self._forget(key)

    def _forget_large(self, used: str) -> None:
        """Forget values that are not busy, the longest unused first, while all have more than `max_bytes`.

        The one whose key is used now stays.
        """
        if self._max_bytes == math.inf:
            return
        sizes = {key: self._bytes_of(value) for key, (value, _) in self._values.items()}
        over = sum(sizes.values()) - self._max_bytes
        for key, size in sizes.items():
            if over > 0 and key != used and size and not self._is_busy(self._values[key][0]):
                self._forget(key)
                over -= size

    def _forget_idle(self) -> None:
        oldest = self._clock() - self._max_idle_seconds
        while self._values and next(iter(self._values.values()))[1] < oldest:
            self._forget(next(iter(self._values)))

    def _forget(self, key: str) -> None:
        value, _ = self._values.pop(key)
        self._on_forget(key, value)
