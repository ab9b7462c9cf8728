"""Jobs of the scheduler: each is a client's steps, which are suspended wherever they need a forward pass."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from lookahead_core.engines.engine import NodeScores
from lookahead_core.engines.feed import Feed
from lookahead_core.errors import Interrupted
from lookahead_core.tree import Node

log = logging.getLogger(__name__)
CLOSING_FAILED = "The steps of a request could not be closed."
INTERRUPTED = "The server's work was interrupted. Your text is safe; trying again …"


def as_exception(error: BaseException) -> Exception:
    """Return an Exception unchanged; for any other error, which would end a thread, an Interrupted with it as cause."""
    if isinstance(error, Exception):
        return error
    interrupted = Interrupted(INTERRUPTED)
    interrupted.__cause__ = error
    return interrupted


@dataclass(eq=False)
class PassRequest:
    """The pass that a suspended job needs, and its result.

    It is a `TreeGrower`: other jobs may use the same tree meanwhile, and must not remove its nodes.
    """

    nodes: Sequence[Node]
    """The nodes whose scores are needed, one or more; with `prefill` those whose keys and values are still needed."""
    hidden: bool = False
    """Whether the scores need hidden states."""
    prefill: bool = False
    """Whether no scores are needed, but only keys and values."""
    chunks: int = 0
    """The most passes that may prefill a part of the text before the pass for the scores."""
    done: bool = False
    """Whether the pass was made; then either `error` is set, or, without `prefill`, `scores`."""
    scores: NodeScores | None = None
    error: Exception | None = None
    seconds: float = 0.0
    """The duration of the pass, when it was made."""

    @property
    def frontier(self) -> Sequence[Node]:
        return self.nodes


class Job:
    """A client's steps and its callbacks; `run` runs them until they need a pass, end a step, or are exhausted.

    The steps run in a coroutine of their own (a greenlet), in the thread that calls `run`, which must always be the
    same. So they can be suspended in the middle of a step, in whatever function they are.
    """

    def __init__(
        self,
        client: Hashable,
        number: int,
        steps: Iterator[Any],
        on_step: Callable[[Any], None],
        on_end: Callable[[Exception | None], None],
        payers: tuple[Hashable, ...] = (),
        background: bool = False,
        notify: Callable[[], None] = lambda: None,
        prefetch: bool = False,
    ) -> None:
        """`on_step` gets the result of each step; `end` calls `on_end`. `number` is higher than that of older jobs.

        `payers` are those for whom the job's time counts. A `background` job lets others go first, see `FairShares`.
        `notify` lets the scheduler look again at which jobs can run, from any thread. Nobody waits for a `prefetch`.
        """
        self.notify = notify
        self.prefetch = prefetch
        self._feed: Feed[Any] | None = None
        self.client, self.number, self.on_end = client, number, on_end
        self.request: PassRequest | None = None
        """The pass for which the job is suspended; None if it is not suspended for one."""
        self.dropped = False
        """Whether the scheduler has dropped the job; it must then be closed, and not run again."""
        self.pass_seconds = 0.0
        """The job's share of the seconds of all passes that were made for it."""
        self.payers, self.background, self.charged = payers, background, 0.0
        self._steps, self._on_step = steps, on_step
        self._coroutine: Any = None
        self._own_seconds, self._resumed_at = 0.0, 0.0

    @staticmethod
    def current() -> Job | None:
        """Return the job whose steps call this; None if the caller is no part of a job's steps."""
        job: Job | None = getattr(getcurrent(), "job", None)
        return job

    @staticmethod
    def current_seconds(outside: float) -> float:
        """Return `seconds` of the job whose steps call this; `outside` if the caller is no part of a job's steps."""
        job = Job.current()
        return outside if job is None else job.seconds

    @property
    def waits(self) -> bool:
        """Whether the job is suspended for a pass that is still to be made."""
        return self.request is not None and not self.request.done

    @property
    def waits_outside(self) -> bool:
        """Whether the job is suspended until a server answers."""
        return self._feed is not None and not self._feed.ready

    @property
    def pending(self) -> PassRequest:
        """The pass for which the job is suspended; AssertionError if there is none."""
        assert self.request is not None
        return self.request

    @property
    def seconds(self) -> float:
        """The seconds that the job's steps have run so far, with its share of passes and without the time it waited.

        Only for the job's own steps to read.
        """
        return self.used + time.perf_counter() - self._resumed_at

    @property
    def used(self) -> float:
        """The same seconds, for others to read while the job is suspended or has ended."""
        return self._own_seconds + self.pass_seconds

    def run(self) -> tuple[bool, Exception | None]:
        """Run the steps until `request` is set, until one step has ended, or to their end.

        Returns whether the job has ended, and the error of its steps or of `on_step` if one was raised, see
        `as_exception`. The job must not wait for a pass, see `waits`.
        """
        if self._coroutine is None:
            self._coroutine = greenlet(self._run_steps)
        try:
            self._coroutine.switch()
        except BaseException as error:
            return True, as_exception(error)
        return self._coroutine.dead, None

    def wait_for(self, request: PassRequest) -> None:
        """Suspend the job's steps, which call this, until `request` is done; raise its error, if it has one."""
        trees = {node.tree for node in request.nodes}
        for tree in trees:
            tree.growers.add(request)
        self.request = request
        try:
            self._suspend()
        finally:
            self.request = None
            for tree in trees:
                tree.growers.discard(request)
        if request.error is not None:
            raise request.error

    def wait_for_feed(self, feed: Feed[Any]) -> None:
        """Suspend the job's steps, which call this, until `feed` is ready. The time counts as that of a pass."""
        started, self._feed = time.perf_counter(), feed
        try:
            self._suspend()
        finally:
            self._feed = None
            self.pass_seconds += time.perf_counter() - started

    def close(self, make_pass: Callable[[Job], None]) -> None:
        """End the steps where they are, and close them if they are a generator; log an error, and raise none.

        Passes that they need while they clean up are made with `make_pass`. Nothing happens to steps that have ended.
        """
        self.dropped = True
        try:
            if self._coroutine is None:
                self._close_steps()
                return
            if not self._coroutine.dead:
                self._coroutine.throw(GreenletExit)
            while not self._coroutine.dead:
                if self.waits:
                    make_pass(self)
                self._coroutine.switch()
        except BaseException:
            log.exception(CLOSING_FAILED)

    def end(self, error: Exception | None) -> None:
        """Call `on_end`; log an error of it, which must not end the thread for other clients."""
        try:
            self.on_end(error)
        except BaseException:
            log.exception("The client could not be told that its request has ended.")

    def _run_steps(self) -> None:
        coroutine = getcurrent()
        coroutine.job = self
        self._resumed_at = time.perf_counter()
        try:
            for result in self._steps:
                if self.dropped:
                    break
                self._on_step(result)
                self._suspend()
        finally:
            try:
                self._close_steps()
            except Exception:
                log.exception(CLOSING_FAILED)
            self._own_seconds += time.perf_counter() - self._resumed_at
            # The coroutine refers to this method: without a cycle, a document is freed as soon as its job ends.
            del coroutine.job

    def _suspend(self) -> None:
        """Suspend the job's steps, which call this, until the next `run` or `close`."""
        self._own_seconds += time.perf_counter() - self._resumed_at
        try:
            getcurrent().parent.switch()
        finally:
            self._resumed_at = time.perf_counter()

    def _close_steps(self) -> None:
        if isinstance(self._steps, Generator):
            self._steps.close()
