"""Whose pass is next: people turn by turn, read-ahead when nobody waits. Itself an engine, around the real one."""

from __future__ import annotations

import asyncio
import atexit
import functools
import logging
import threading
import weakref
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from lookahead_core.engines.engine import Engine, NodeScores
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.errors import NoRoom
from lookahead_core.tree import Node, TokenTree

T = TypeVar("T")
MOST_WAITING = 256
"""How many people may wait at once."""
ENDING = "The server is ending; start it again to go on."
_OVER: Any = object()
_SCHEDULERS: weakref.WeakSet[Scheduler] = weakref.WeakSet()


@dataclass(eq=False, slots=True)
class _Job:
    """Steps that are somebody's, each at most one pass; who asked hears of every step, and of the end."""

    steps: Iterator[Any]
    step: Callable[[Any], None]
    end: Callable[[Exception | None], None]


class Scheduler:
    """Runs everybody's steps in one thread, one at a time: whatever touches a shared document happens there.

    A person has one request and one read-ahead at a time; a newer one silently takes the place of the older one, and a
    request stops the read-ahead of the same person. What runs is stopped after its step. Steps that are dropped are
    closed in the same thread, since tidying up may touch a shared document as well.
    """

    def __init__(self, engine: Engine, *, idle: float = 30.0) -> None:
        self.engine = engine
        self._idle = idle
        self._change = threading.Condition()
        self._people: dict[Hashable, _Job] = {}
        self._ahead: dict[Hashable, _Job] = {}
        self._dropped: list[_Job] = []
        self._thread: threading.Thread | None = None
        self._closed = False
        _SCHEDULERS.add(self)

    def submit(
        self,
        steps: Iterator[T],
        person: Hashable,
        *,
        step: Callable[[T], None],
        end: Callable[[Exception | None], None],
        ahead: bool = False,
    ) -> None:
        """Run these steps when it is this person's turn; `step` and `end` are called in the scheduler's thread."""
        with self._change:
            if self._closed:
                raise NoRoom(ENDING)
            self._drop(self._ahead, person)
            queue = self._ahead if ahead else self._people
            if len(queue) >= MOST_WAITING and person not in queue:
                raise NoRoom("So many people are asking at once that there is no turn left; try again soon.")
            if person in queue:
                self._dropped.append(queue[person])
            queue[person] = _Job(steps, step, end)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="scheduler", daemon=True)
                self._thread.start()
            self._change.notify()

    def stop(self, person: Hashable) -> None:
        """Drop what this person waits for; what runs ends after its step."""
        with self._change:
            self._drop(self._people, person)
            self._drop(self._ahead, person)
            self._change.notify()

    def close(self) -> None:
        """End all that waits with an error, once the running step is over, and take nothing more.

        It waits for that step: an interpreter must not end in the middle of a pass.
        """
        with self._change:
            self._closed = True
            self._change.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    @property
    def pass_costs(self) -> PassCosts:
        return self.engine.pass_costs

    @property
    def batch_invariant_rows(self) -> int | None:
        return self.engine.batch_invariant_rows

    @property
    def passes(self) -> int:
        return self.engine.passes

    @property
    def awake(self) -> bool:
        """Whether the thread is there; it ends after a while without work."""
        return self._thread is not None

    async def turn(self, function: Callable[..., T], *arguments: Any) -> T:
        """One turn for something that is no pass, without blocking."""
        return await asyncio.wrap_future(self._ask(function, *arguments))

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        return self._call(self.engine.evaluate, nodes)

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        return self._call(functools.partial(self.engine.score, hidden=hidden), nodes)

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        return self._call(self.engine.nodes_to_prefill, node)

    def prefill(self, nodes: Sequence[Node]) -> None:
        self._call(self.engine.prefill, nodes)

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        steps = self.engine.roll_out(nodes, depth, stop)
        while (frontier := self._call(next, steps, None)) is not None:
            yield frontier

    def free(self, nodes: Sequence[Node]) -> None:
        self._call(self.engine.free, nodes)

    def compact(self, tree: TokenTree) -> None:
        self._call(self.engine.compact, tree)

    def cache_usage(self, tree: TokenTree) -> tuple[int, int]:
        return self.engine.cache_usage(tree)

    def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        """One turn for whoever calls from another thread; within the scheduler's own a turn is running already."""
        if threading.current_thread() is self._thread:
            return function(*arguments)
        return self._ask(function, *arguments).result()

    def _ask(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        answer: Future[T] = Future()

        def steps() -> Iterator[T]:
            # A turn that was cancelled while it waited is not taken; one that runs cannot be cancelled any more.
            if answer.set_running_or_notify_cancel():
                yield function(*arguments)

        def end(error: Exception | None) -> None:
            if error is not None and not answer.done():
                answer.set_exception(error)

        self.submit(steps(), answer, step=answer.set_result, end=end)
        return answer

    def _drop(self, queue: dict[Hashable, _Job], person: Hashable) -> None:
        if person in queue:
            self._dropped.append(queue.pop(person))

    def _work(self) -> None:
        while (turn := self._next()) is not None:
            queue, person, job = turn
            over, error = _step(job)
            with self._change:
                current = queue.get(person) is job
                if current:
                    del queue[person]
                    if not over:
                        queue[person] = job  # at the end of the queue: turn by turn
            if over:
                _close(job)
            if over and current:
                _end(job, error)

    def _leave(self) -> list[_Job]:
        """All jobs, taken out of their queues."""
        left = [*self._people.values(), *self._ahead.values()]
        self._people.clear()
        self._ahead.clear()
        return left

    def _next(self) -> tuple[dict[Hashable, _Job], Hashable, _Job] | None:
        """Whose turn it is; nothing after a while without anybody, and then the thread is over."""
        while True:
            with self._change:
                self._change.wait_for(lambda: self._people or self._ahead or self._dropped or self._closed, self._idle)
                dropped, self._dropped = self._dropped, []
                left = self._leave() if self._closed else []
                queue = self._people or self._ahead
                if not queue and not dropped and not left:
                    self._thread = None
                    return None
                person = next(iter(queue), None)
                job = queue.get(person)
            for gone in (*dropped, *left):
                _close(gone)
            for waiting in left:
                _end(waiting, NoRoom(ENDING))
            if job is not None:
                return queue, person, job


def _step(job: _Job) -> tuple[bool, Exception | None]:
    """Run one step; tells whether it was the last, and what went wrong."""
    try:
        fact = next(job.steps, _OVER)
        if fact is not _OVER:
            job.step(fact)
    except Exception as error:
        return True, error
    return fact is _OVER, None


def _close(job: _Job) -> None:
    """Let steps that nobody waits for tidy up; what goes wrong then does not end the thread for the others."""
    try:
        if isinstance(job.steps, Generator):
            job.steps.close()
    except Exception:
        logging.getLogger(__name__).exception("Steps that were dropped could not be closed.")


def _end(job: _Job, error: Exception | None) -> None:
    """Tell who asked that it is over; whoever cannot hear it any more does not end the thread for the others."""
    try:
        job.end(error)
    except Exception:
        logging.getLogger(__name__).exception("The end of a request could not be told.")


@atexit.register
def _close_all() -> None:
    for scheduler in list(_SCHEDULERS):
        scheduler.close()
