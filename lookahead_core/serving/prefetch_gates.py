"""Gates that hold back the prefetching requests to a model's servers while somebody waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lookahead_core.engines.server_engine import OPEN, Gate
from lookahead_core.serving.job import Job


class PrefetchGates:
    """The gates of one scheduler's prefetches: each server has one of their requests at a time, and none while people
    wait. From any thread.
    """

    def __init__(self, somebody_waits: Callable[[], bool]) -> None:
        """`somebody_waits` returns whether there is a request that is no prefetch; `look_again` follows its changes."""
        self.somebody_waits = somebody_waits
        self.change = threading.Condition()
        self.busy: set[str] = set()
        """The addresses of the servers that have a prefetching request."""

    def for_current_job(self) -> Gate:
        """Return the gate for requests of the job that calls this: open unless it is a prefetch."""
        job = Job.current()
        return _PrefetchGate(self) if job is not None and job.prefetch else OPEN

    def look_again(self) -> None:
        """Let those who wait at a gate see whether somebody waits still."""
        with self.change:
            self.change.notify_all()


class _PrefetchGate(Gate):
    """The gate of one prefetch."""

    def __init__(self, gates: PrefetchGates) -> None:
        self._gates = gates
        self._abandoned = False

    @property
    def closed(self) -> bool:
        return self._gates.somebody_waits() or self._abandoned

    @contextmanager
    def turn(self, address: str) -> Iterator[bool]:
        gates = self._gates
        with gates.change:
            gates.change.wait_for(
                lambda: self._abandoned or not (address in gates.busy or gates.somebody_waits()),
            )
            may_go = not self._abandoned
            if may_go:
                gates.busy.add(address)
        try:
            yield may_go
        finally:
            if may_go:
                with gates.change:
                    gates.busy.discard(address)
                    gates.change.notify_all()

    def abandon(self) -> None:
        with self._gates.change:
            self._abandoned = True
            self._gates.change.notify_all()
