"""Generators of steps, of which only the last one has the result."""

from __future__ import annotations

import collections
from collections.abc import Generator, Iterable
from typing import TypeVar

T = TypeVar("T")


def last_step(steps: Iterable[T]) -> T:
    """Run a generator to its end and return the last value that it yields; it must yield one."""
    (last,) = collections.deque(steps, maxlen=1)
    return last


def passes_of(steps: Iterable[T]) -> Generator[None, None, T]:
    """Yield None for each value of a generator and return the last value, for `yield from`; there must be one."""
    for last in steps:  # noqa: B007
        yield None
    return last
