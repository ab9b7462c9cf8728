"""The scheduler: runs the requests of many clients in one thread, and makes the forward passes that they need, jointly.

It has the engine protocol itself, around the real engine: a job that calls it for a pass is suspended until the pass is
made, together with those of other jobs, and other threads can use the model between these passes.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import itertools
import logging
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import torch

from lookahead_core.engines import engine as base
from lookahead_core.engines.dispatch import LookaheadDispatcher, dispatcher_of
from lookahead_core.engines.engine import Engine, NodeScores, next_logprobs
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.engines.server_engine import RollOut, ServerEngine, server_engine_of
from lookahead_core.errors import Interrupted, NoRoom
from lookahead_core.serving.fair_shares import FairShares
from lookahead_core.serving.job import INTERRUPTED, Job, PassRequest
from lookahead_core.serving.outside_reading import read_outside
from lookahead_core.serving.prefetch_gates import PrefetchGates
from lookahead_core.serving.shared_passes import GPU_LIMITS, PassLimits, make_pass, make_passes, row_count
from lookahead_core.tree import Node, TokenTree

log = logging.getLogger(__name__)
T = TypeVar("T")
MAX_WAITING = 256
"""Maximum number of clients with a request, and of clients with a prefetch."""
ENDING = "The server is shutting down; try again in a minute."
SCHEDULERS: weakref.WeakSet[Scheduler] = weakref.WeakSet()
"""All schedulers of this process; they are closed when the interpreter exits."""


class Scheduler:
    """Runs the steps of all clients in one thread, in rounds; prefetches if no request waits.

    In a round each request runs until it needs a forward pass, or to the end of a step without one; then passes are
    made, each for as many requests as fit into it. It also has the methods of `Engine`, so that a model's engine can be
    one. A client has at most one request and one prefetch. A newer request replaces the older one and drops the
    client's prefetch. A job that is dropped stops after the running pass, and its generator is closed in the same
    thread, since closing it may change a document. Everything that touches a document should run here.
    """

    def __init__(
        self, engine: Engine, *, idle: float = 30.0, ahead_seconds: float = 2.0, limits: PassLimits = GPU_LIMITS
    ) -> None:
        """`engine` computes. The thread ends after `idle` seconds without work, and starts again with the next job.

        A client who has used `ahead_seconds` more than another one who waits is late, see `FairShares`. `limits` are
        the largest sizes of passes.
        """
        self.engine = engine
        self._limits = limits
        self._gates = PrefetchGates(lambda: bool(self._requests))
        if (servers := server_engine_of(engine)) is not None:
            servers.reader, servers.new_gate = read_outside, self._gates.for_current_job
        self._idle = idle
        self._shares = FairShares(ahead_seconds)
        self._change = threading.Condition()
        self._requests: dict[Hashable, Job] = {}
        self._prefetches: dict[Hashable, Job] = {}
        self._dropped: list[Job] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None
        self.closed = False
        """Whether `close` was called."""
        SCHEDULERS.add(self)

    def submit(
        self,
        steps: Iterator[T],
        client: Hashable,
        *,
        on_step: Callable[[T], None],
        on_end: Callable[[Exception | None], None],
        prefetch: bool = False,
        payers: tuple[Hashable, ...] = (),
        background: bool = False,
    ) -> None:
        """Add a client's steps as its request, or with `prefetch` as its prefetch, and return at once.

        `payers` are those whose share of the time a request uses, such as the client's address. A `background` request
        lets all others go first, and still has its share of the time; see `FairShares`.

        Each step's result is passed to `on_step`; at the end `on_end` gets None or the error, NoRoom if the scheduler
        is closed before. Both are called in the scheduler's thread; `on_end` is not called for a job that is dropped.
        An error of `on_step` ends the job too. Raises NoRoom if `MAX_WAITING` other clients have a request (or
        prefetch), or if the scheduler is closed. The client's older prefetch is dropped in any case but the last.
        """
        with self._change:
            if self.closed:
                raise NoRoom(ENDING)
            self._drop(self._prefetches, client)
            queue = self._prefetches if prefetch else self._requests
            if len(queue) >= MAX_WAITING and client not in queue:
                raise NoRoom("Too many people are asking at once, and there is no turn left; try again soon.")
            self._mark_dropped(queue.get(client))
            number = next(self._numbers)
            queue[client] = Job(client, number, steps, on_step, on_end, payers, background, self._notify, prefetch)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="scheduler", daemon=True)
                self._thread.start()
            self._change.notify()

    def stop(self, client: Hashable) -> None:
        """Drop the client's request and prefetch, and return at once: a running pass is finished, and nothing after it.

        Their `on_end` is not called. Nothing happens if the client has neither.
        """
        with self._change:
            self._drop(self._requests, client)
            self._drop(self._prefetches, client)

    def close(self) -> None:
        """Finish the running pass, end all jobs by calling their `on_end` with a NoRoom error, and take no more.

        Returns when the thread has ended, or at once if it is called in that thread. The interpreter must not exit in
        the middle of a forward pass: a handler at exit calls this for all schedulers.
        """
        with self._change:
            self.closed = True
            self._change.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    @property
    def request_count(self) -> int:
        """Number of clients with a request that waits or runs; each call from another thread counts as a client."""
        return len(self._requests)

    @property
    def is_idle(self) -> bool:
        """Whether no request and no prefetch waits or runs; a dropped one does not count, even in its last step."""
        return not (self._requests or self._prefetches)

    @property
    def prefetch_count(self) -> int:
        """Number of clients with a prefetch that waits or runs."""
        return len(self._prefetches)

    @property
    def is_broken(self) -> bool:
        """Whether nobody gets an answer any more: it was closed, or its thread has died although there is work."""
        thread = self._thread
        return self.closed or (thread is not None and not thread.is_alive() and not self.is_idle)

    @property
    def has_thread(self) -> bool:
        """Whether the thread runs; it ends after `idle` seconds without work, and starts with the next job."""
        return self._thread is not None

    @property
    def pass_costs(self) -> PassCosts:
        """The engine's object that estimates the cost of a forward pass from its number of nodes."""
        return self.engine.pass_costs

    @property
    def batch_invariant_rows(self) -> int | None:
        """The most nodes of a pass of the engine in which a row's bits do not depend on the other rows.

        None if callers need not limit their passes.
        """
        return self.engine.batch_invariant_rows

    @property
    def passes(self) -> int:
        """The engine's number of forward passes so far, of all clients."""
        return self.engine.passes

    @property
    def dispatcher(self) -> LookaheadDispatcher | None:
        """The engine's dispatcher of whole lookaheads, see `dispatcher_of`; None if it computes in this process."""
        return dispatcher_of(self.engine)

    @property
    def server_engine(self) -> ServerEngine | None:
        """The engine if it computes on servers, see `server_engine_of`; else None."""
        return server_engine_of(self.engine)

    async def turn(self, function: Callable[..., T], *arguments: Any, payers: tuple[Hashable, ...] = ()) -> T:
        """Call a function in the scheduler's thread as a request of its own; return its result or raise its error.

        The function is not called if the awaiting task is cancelled before. Raises NoRoom like `submit`.
        """
        return await asyncio.wrap_future(self._submit_call(function, *arguments, payers=payers))

    @property
    def job_seconds(self) -> float:
        """The seconds of the job that reads this, see `Job.seconds`; 0.0 outside of jobs."""
        return Job.current_seconds(outside=0.0)

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        """Return the engine's log-probabilities, of shape (nodes, vocabulary), and store a prediction on each node.

        In a job's steps the pass may be shared with other jobs. In another thread this is a request of its own, for
        which the caller waits. Raises the engine's errors, and NoRoom like `submit`.
        """
        if threading.current_thread() is not self._thread:
            return self._call(self.evaluate, nodes)
        if self.server_engine is not None:
            return self.engine.evaluate(nodes)
        scores = self.score(nodes)
        with torch.inference_mode():
            return base.evaluate([scores], nodes)

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        """Return the logits of nodes, with `hidden` also hidden states; computed like those of `evaluate`.

        No predictions are stored, and the result's rows may be in another order than `nodes`. While other jobs need
        scores, the tokens of a text that is not in the cache are prefilled before, in chunks, see `PassLimits`.
        """
        if threading.current_thread() is not self._thread:
            return self._call(functools.partial(self.score, hidden=hidden), nodes)
        job, started = Job.current(), time.perf_counter()
        if job is None or self.server_engine is not None:
            # Servers answer each job's request by itself: several at the same time, while other jobs run.
            return self.engine.score(nodes, hidden=hidden)
        # Two long texts may free each other's slots between chunks. The number of chunks is bounded, so that this ends.
        chunks = row_count(self.engine, nodes) // self._limits.shared
        request = PassRequest(nodes, hidden=hidden, chunks=chunks)
        job.wait_for(request)
        assert request.scores is not None
        request.scores.waited = time.perf_counter() - started - request.seconds
        return request.scores

    def next_logprobs(self, nodes: Sequence[Node], token_ids: Sequence[int]) -> list[float]:
        """Return the natural log-probability of `token_ids[i]` after `nodes[i]`; done in the scheduler's thread.

        The pass is not shared.
        """
        return self._call(next_logprobs, self.engine, nodes, token_ids)

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        """Return the nodes on the path to `node` that are not in the engine's cache, topmost first.

        Done in the scheduler's thread. `node` may be among them.
        """
        return self._call(self.engine.nodes_to_prefill, node)

    def prefill(self, nodes: Sequence[Node]) -> None:
        """Compute keys and values of nodes and their ancestors into the engine's cache, as far as they are missing.

        Done in the scheduler's thread, and in chunks, see `PassLimits`.
        """
        if threading.current_thread() is not self._thread:
            return self._call(self.prefill, nodes)
        job = Job.current()
        if job is None:
            self.engine.prefill(nodes)
        elif nodes:
            job.wait_for(PassRequest(nodes, prefill=True))

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        """Grow each node greedily until its end is at `depth`, counted from the root, or has a token id in `stop`.

        A generator that yields after each pass the new ends of all branches that grew. Outside of the scheduler's
        thread, each step is a request of its own. A server makes one request for all levels.
        """
        servers = self.server_engine
        with contextlib.ExitStack() as stack:
            steps: Iterator[list[Node]] = base.roll_out(self, nodes, depth, stop)
            if servers is not None:
                steps = stack.enter_context(contextlib.closing(servers.roll_out_all([RollOut(nodes, depth, stop)])))
            while (frontier := self._call(next, steps, None)) is not None:
                yield frontier

    def free(self, nodes: Sequence[Node]) -> None:
        """Free the engine's cache slots of nodes that their tree has removed; done in the scheduler's thread."""
        self._call(self.engine.free, nodes)

    def compact(self, tree: TokenTree) -> None:
        """Close the gaps of freed slots in a tree's cache; done in the scheduler's thread."""
        self._call(self.engine.compact, tree)

    def cache_usage(self, tree: TokenTree) -> tuple[int, int]:
        """Return the number of slots in use for a tree and the bytes of its cache, in the caller's thread."""
        return self.engine.cache_usage(tree)

    def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return a function's result from the scheduler's thread, as a request that the caller waits for.

        Calls it at once if this is the scheduler's thread. Raises the function's error, and NoRoom like `submit`.
        """
        if threading.current_thread() is self._thread:
            return function(*arguments)
        return self._submit_call(function, *arguments).result()

    def _submit_call(self, function: Callable[..., T], *arguments: Any, payers: tuple[Hashable, ...] = ()) -> Future[T]:
        result: Future[T] = Future()

        def steps() -> Iterator[T]:
            # A call that was cancelled while it waited is not made; a running one can no longer be cancelled.
            if result.set_running_or_notify_cancel():
                yield function(*arguments)

        def on_end(error: Exception | None) -> None:
            if error is not None and not result.done():
                result.set_exception(error)

        self.submit(steps(), result, on_step=result.set_result, on_end=on_end, payers=payers)
        return result

    def _drop(self, queue: dict[Hashable, Job], client: Hashable) -> None:
        self._mark_dropped(queue.pop(client, None))

    def _mark_dropped(self, job: Job | None) -> None:
        """Have a job that was taken out of its queue closed before the next round; nothing for None."""
        if job is not None:
            job.dropped = True
            self._dropped.append(job)
            self._change.notify()
            self._gates.look_again()

    def _notify(self) -> None:
        with self._change:
            self._change.notify()

    @property
    def _queue(self) -> dict[Hashable, Job]:
        """The requests, or the prefetches if there is no request."""
        return self._requests or self._prefetches

    def _can_run(self) -> list[Job]:
        """Return the jobs of `_queue` that wait for no server, in order. The caller must hold the lock."""
        return [job for job in self._queue.values() if not job.waits_outside]

    def _work(self) -> None:
        """Make rounds until there is no more work: the scheduler's thread.

        An error outside of steps and passes ends all jobs with `INTERRUPTED`, and the thread goes on: nobody would ever
        get an answer from a dead one.
        """
        while True:
            try:
                while self._make_round():
                    pass  # no job and so no document is referred to while the thread waits for work
                return
            except BaseException:
                log.exception("The scheduler could not go on: all its jobs have ended.")
            self._end_all()

    def _end_all(self) -> None:
        """Close all jobs and end them with an Interrupted error; passes that they need to clean up fail with it too."""
        with self._change:
            jobs = self._clear()
        for job in jobs:
            job.close(_fail_pass)
            job.end(Interrupted(INTERRUPTED))

    def _make_round(self) -> bool:
        """Wait for jobs, run each until it needs a pass, and make passes; False if the thread is to end."""
        found = self._next_round()
        if found is None:
            return False
        queue, jobs = found
        if queue is self._requests:
            jobs = self._shares.in_turn(jobs)
        for job in jobs:
            if queue is self._prefetches and self._requests:
                break
            if self._have_become_late(jobs):
                return True
            if not job.waits and not job.dropped:
                self._run(queue, job)
        self._make_passes(jobs)
        return True

    def _have_become_late(self, jobs: Sequence[Job]) -> bool:
        """Whether some of a round's jobs are late now and were not at its beginning; the round then ends early.

        A job that waits for a server makes none late: it needs no turn yet.
        """
        with self._change:
            waiting = [job for job in self._requests.values() if not job.waits_outside]
        return self._shares.have_become_late(jobs, waiting)

    def _run(self, queue: dict[Hashable, Job], job: Job) -> None:
        """Run a job until it needs a pass or has ended a step, and put it at the end of its queue, or end it.

        A job that ends its step with a pass of the last round begins the next one, so that its next pass is one of this
        round's too.
        """
        had_pass = job.request is not None
        ended, error = job.run()
        if had_pass and not ended and job.request is None and not job.dropped:
            ended, error = job.run()
        if queue is self._requests:
            self._shares.charge(job)
        with self._change:
            current = not job.dropped
            if current:
                del queue[job.client]
                if not ended:
                    queue[job.client] = job
        if ended and current:
            self._gates.look_again()
            job.end(error)

    def _make_passes(self, jobs: Sequence[Job]) -> None:
        """Make the passes for which these jobs are suspended; for other requests, and while there is a request for
        prefetches, only free ones. It ends early if some of the jobs become late, or if a request comes meanwhile and
        the jobs are prefetches.
        """
        in_turn = set(jobs)
        with self._change:
            waiting = [job for job in self._requests.values() if job.waits]
            requests = [job for job in waiting if job in in_turn]
            prefetches = [job for job in self._prefetches.values() if job.waits]
            if self._requests and not requests:
                return
        others = [*(job for job in waiting if job not in in_turn), *prefetches]

        def is_over() -> bool:
            for job in waiting:
                self._shares.charge(job)
            return self._have_become_late(jobs) if requests else bool(self._requests)

        make_passes(self.engine, requests, others, self._limits, is_over)
        for job in waiting:
            self._shares.charge(job)

    def _next_round(self) -> tuple[dict[Hashable, Job], list[Job]] | None:
        """Wait for work; return the queue whose jobs are next, and these jobs in order.

        Requests come first, prefetches only if there is no request. Dropped jobs are closed here. If the scheduler is
        closed, all jobs are closed and end with NoRoom. None after that, or after the idle time without a job; then the
        thread is to end. Jobs that wait for a server are left out until it answers.
        """
        while True:
            with self._change:
                idle = None if self._queue else self._idle
                self._change.wait_for(lambda: self._can_run() or self._dropped or self.closed, idle)
                dropped, self._dropped = self._dropped, []
                ended = self._clear() if self.closed else []
                queue, jobs = self._queue, self._can_run()
                if not queue and not dropped and not ended:
                    self._thread = None
                    return None
            for job in (*dropped, *ended):
                job.close(lambda job: make_pass(self.engine, [job]))
            for job in ended:
                job.end(NoRoom(ENDING))
            if jobs:
                return queue, jobs

    def _clear(self) -> list[Job]:
        """Empty both queues, requests and prefetches; return their jobs. The caller must hold the lock."""
        jobs = [*self._requests.values(), *self._prefetches.values()]
        self._requests.clear()
        self._prefetches.clear()
        return jobs


def _fail_pass(job: Job) -> None:
    job.pending.error, job.pending.done = Interrupted(INTERRUPTED), True


@atexit.register
def _close_all() -> None:
    for scheduler in list(SCHEDULERS):
        scheduler.close()
