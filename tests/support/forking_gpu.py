"""A stand-in for the decorator of shared GPUs: forked workers, pickled arguments, and workers killed between calls."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import pickle
import random
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from lookahead_core import Model
from lookahead_core.errors import WorkerLost
from lookahead_core.serving.dispatching_engine import DispatchingEngine
from lookahead_core.serving.worker_tasks import Worker

PATIENCE = 120
"""Seconds until a worker without an answer is given up: only a test that fails waits as long."""
_context = multiprocessing.get_context("fork")


class ForkingGpu:
    """Decorates generator functions as shared GPUs do: one worker for each function, forked at its first call.

    Arguments and results are pickled. Before a call, the worker is killed with the probability `kills`, and a new one
    is forked. With `ends_after`, the next call's worker ends itself after so many results. `refusal` is raised instead
    of a call. Closing the generator is noticed after its next result. With `paced`, a worker sends as many results as
    `let` allows.
    """

    def __init__(self, *, kills: float = 0.0, seed: int = 0, paced: bool = False) -> None:
        self.kills = kills
        self.refusal: Exception | None = None
        self.ends_after: int | None = None
        self.calls: list[tuple[Any, ...]] = []
        """The arguments of all calls, as the worker got them."""
        self.forks = 0
        self.stopped = 0
        """Calls that were closed before their end."""
        self._pace = _context.Semaphore(0) if paced else None
        self._random = random.Random(seed)
        self._workers: list[Any] = []

    def let(self, results: int) -> None:
        """Let the worker send so many more results."""
        for _ in range(results):
            self._pace.release()  # type: ignore[union-attr]

    def __call__(self, function: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        lock, kept = threading.Lock(), list[Any]()

        @functools.wraps(function)
        def call(*arguments: Any) -> Iterator[Any]:
            if self.refusal is not None:
                raise self.refusal
            with lock:
                if kept and (self._random.random() < self.kills or not kept[0].process.is_alive()):
                    self._workers.remove(kept[0])
                    kept.pop().kill()
                if not kept:
                    kept.append(_Worker(function, self._pace))
                    self._workers += kept
                    self.forks += 1
                ends_after, self.ends_after = self.ends_after, None
                self.calls.append(arguments)
                yield from self._results(kept[0], pickle.dumps((arguments, ends_after)))

        return call

    def _results(self, worker: _Worker, sent: bytes) -> Iterator[Any]:
        worker.stop.clear()
        ended = False
        try:
            worker.pipe.send_bytes(sent)
            while True:
                kind, value = worker.receive()
                if kind != "result":
                    ended = True
                    if kind == "error":
                        raise RuntimeError(value)  # as there, of other errors only the class's name comes back
                    return
                yield value
        except (EOFError, OSError):
            ended = True
            worker.process.join()
            raise WorkerLost("The worker has ended.") from None
        finally:
            if not ended:
                self.stopped += 1
                worker.stop.set()
                while worker.receive()[0] == "result":
                    pass

    def kill(self) -> None:
        """Kill all workers; the next call forks a new one."""
        for worker in self._workers:
            worker.kill()

    def close(self) -> None:
        """Kill all workers, and forget them."""
        self.kill()
        self._workers.clear()


def on_workers(model: Model, **options: Any) -> tuple[Model, ForkingGpu]:
    """The model with an engine that dispatches to forked workers, and the decorator, made with `options`."""
    from interface.server.shared_gpu import dispatch_with

    gpu = ForkingGpu(**options)
    engine = DispatchingEngine(dispatch_with(lambda duration: gpu, Worker(lambda: model)))
    return replace(model, engine=engine), gpu


class _Worker:
    def __init__(self, function: Callable[..., Iterator[Any]], pace: Any) -> None:
        self.pipe, other = _context.Pipe()
        self.stop = _context.Event()
        arguments = function, self.pipe, other, self.stop, pace
        self.process = _context.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()
        other.close()

    def receive(self) -> Any:
        assert self.pipe.poll(PATIENCE), "the worker does not answer"
        return pickle.loads(self.pipe.recv_bytes())

    def kill(self) -> None:
        """End the process. The connection stays open: another thread may wait at it, and gets its end."""
        self.process.kill()
        self.process.join()


def _close_sockets(kept: int) -> None:
    """Close the sockets that the parent has open: a connection ends when no process has it open any more."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if int(name) != kept and os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                os.close(int(name))


def _serve(function: Callable[..., Iterator[Any]], parents: Any, pipe: Any, stop: Any, pace: Any) -> None:
    """The worker: answer calls until the parent's end of the pipe is closed."""
    import torch

    parents.close()
    _close_sockets(pipe.fileno())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)  # the threads of the parent are not in a forked process
    while True:
        try:
            arguments, ends_after = pickle.loads(pipe.recv_bytes())
        except EOFError:
            return
        try:
            for number, result in enumerate(function(*arguments)):
                if number == ends_after:
                    os.kill(os.getpid(), signal.SIGKILL)
                if pace is not None:
                    pace.acquire()
                if stop.is_set():
                    break
                pipe.send_bytes(pickle.dumps(("result", result)))
        except Exception as error:
            pipe.send_bytes(pickle.dumps(("error", type(error).__name__)))
        else:
            pipe.send_bytes(pickle.dumps(("end", None)))
