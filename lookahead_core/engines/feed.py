"""`Feed`: reads several slow generators at the same time, each in a thread of its own."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")
MOST_THREADS = 32
"""Generators of one feed that run at the same time."""
_END: Any = object()


class Feed(Generic[T]):
    """The items of several generators as they come, in order for each. The first error ends the feed.

    Only the feed's threads run the generators, and close them.
    """

    def __init__(self, sources: Sequence[Generator[T, None, None]], on_item: Callable[[], None] = lambda: None) -> None:
        """`on_item` is called after each item, and at the end, from the feed's threads."""
        self._sources, self._on_item = iter(sources), on_item
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._running = min(len(sources), MOST_THREADS)
        if not sources:
            self._items.put(_END)
        for _ in range(self._running):
            threading.Thread(target=self._run, name="feed", daemon=True).start()

    @property
    def ready(self) -> bool:
        """Whether `take` would return at once, or raise."""
        return not self._items.empty()

    def take(self) -> T:
        """Return the next item, for which it waits; raise StopIteration after the last one, or a generator's error."""
        item = self._items.get()
        if item is _END:
            self._items.put(_END)
            raise StopIteration
        if isinstance(item, BaseException):
            self.close()
            raise item
        found: T = item
        return found

    def items(self, wait: Callable[[], None] = lambda: None) -> Generator[T, None, None]:
        """Yield the items as they come, and close the feed at the end; `wait` is called before each is taken."""
        try:
            while True:
                wait()
                try:
                    item = self.take()
                except StopIteration:
                    return
                yield item
        finally:
            self.close()

    def close(self) -> None:
        """Close the generators, a running one when its next item comes, and return at once."""
        self._closed.set()

    def _run(self) -> None:
        try:
            while (source := self._next_source()) is not None:
                with contextlib.closing(source):
                    for item in source:
                        if self._closed.is_set():
                            break
                        self._put(item)
        except BaseException as error:
            self._closed.set()
            self._put(error)
        finally:
            with self._lock:
                self._running -= 1
                last = not self._running
            if last:
                self._put(_END)

    def _next_source(self) -> Generator[T, None, None] | None:
        with self._lock:
            return None if self._closed.is_set() else next(self._sources, None)

    def _put(self, item: Any) -> None:
        self._items.put(item)
        self._on_item()


def read_all(sources: Sequence[Generator[T, None, None]]) -> Generator[T, None, None]:
    """Yield the items of all generators as they come; a single one is read in the caller's thread.

    If this generator is closed, so are they.
    """
    if len(sources) == 1:
        with contextlib.closing(sources[0]) as source:
            yield from source
        return
    yield from Feed(sources).items()
