"""Shared GPUs of Hugging Face (ZeroGPU): all GPU work is one decorated function, and refusals become sentences.

A call runs in a forked worker, which may be gone at the next call. See docs/deployment.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from lookahead_core.errors import NoRoom, WorkerLost

if TYPE_CHECKING:
    from lookahead_core import Model, Settings
    from lookahead_core.serving.dispatching_engine import Dispatch
    from lookahead_core.serving.worker_tasks import Worker

Decorator = Callable[..., Any]
"""`spaces.GPU`: takes a `duration` and a generator function, and returns a function that runs in a worker."""
TOKEN = "x-ip-token"
"""The header by which a visitor's quota is found."""
MOST_TOKEN = 8192
"""Characters of that header's value; a longer one is ignored."""
MOST_SECONDS = 60
"""The most seconds that a call asks for; visitors without an account have two minutes a day."""


@dataclass(frozen=True)
class Visitor:
    """For whom a GPU task is dispatched."""

    token: str | None
    """The value of the header TOKEN; None counts for the Space's own, small quota."""

    @classmethod
    def of(cls, payload: object) -> Visitor:
        """Return the visitor whose page has sent this JSON, within Gradio's call of a server function.

        The field `visitor` holds the headers that the page got from the site around it; else the request's own header
        counts.
        """
        from gradio.context import LocalContext

        sent = payload.get("visitor") if isinstance(payload, dict) else None
        token = sent.get(TOKEN) if isinstance(sent, dict) else None
        if token is None:
            headers = getattr(LocalContext.request.get(None), "headers", None)
            token = None if headers is None else headers.get(TOKEN)
        valid = isinstance(token, str) and 0 < len(token) <= MOST_TOKEN and token.isascii() and token.isprintable()
        return cls(token if valid else None)


def dispatch_with(decorate: Decorator, worker: Worker, page: Callable[[], Any] = lambda: None) -> Dispatch:
    """Return the function that runs tasks of a `DispatchingEngine` in workers: the one that `decorate` has decorated.

    A task's caller is a `Visitor` or None. `page` returns the `gr.Blocks` that is served: a forked worker closes its
    connections, which would not end otherwise. The function must run in a thread of its own, whose context it changes.
    """

    def compute(task: bytes, seconds: float) -> Iterator[bytes]:
        yield from worker.compute(task)

    decorated = decorate(duration=duration)(compute)

    def dispatch(task: bytes, seconds: float, caller: Any) -> Iterator[bytes]:
        import gradio as gr
        from gradio.context import LocalContext

        LocalContext.blocks.set(page())
        if isinstance(caller, Visitor):
            from starlette.datastructures import Headers

            headers = {"x-gradio-user": "app"} | ({TOKEN: caller.token} if caller.token else {})
            request: Any = SimpleNamespace(headers=Headers(headers))
            LocalContext.request.set(request)
        try:
            yield from decorated(task, seconds)
        except gr.Error as error:
            raise refusal(str(getattr(error, "title", "")), str(error.message)) from error

    return dispatch


def duration(task: bytes, seconds: float) -> int:
    """Return the seconds that a call asks for: `seconds`, rounded up, at most MOST_SECONDS."""
    return min(MOST_SECONDS, math.ceil(seconds))


def refusal(title: str, message: str) -> NoRoom:
    """Return the error for an error of the package spaces with this title and message: a sentence without markup.

    WorkerLost if a worker has ended, so that the task can be dispatched again.
    """
    again = re.search(r"Try again in ([\d:]+|\d+ days?, [\d:]+)", message)
    if "worker error" in title:
        if "aborted" in message:
            return WorkerLost("The GPU stopped in the middle of this; change the text a little to try again.")
        return NoRoom("The GPU could not compute this because of an error on the server; try again, or another text.")
    if "illegal duration" in title:
        return NoRoom("This needs more GPU time at once than you have: ask for fewer or shorter branches.")
    if "pending" in title:
        return NoRoom("You have asked for too much GPU time at once: wait until your other pages are done.")
    if "timeout" in title or "No GPU was available" in message:
        return NoRoom("All shared GPUs are busy: none was free within a minute. Try again soon.")
    if "quota" in title and again:
        return NoRoom(f"Your minutes on the shared GPUs are used up; the next ones come in {again[1]}.")
    if "quota" in title:
        return NoRoom("The minutes on the shared GPUs are used up: sign in to Hugging Face for your own, or wait.")
    return NoRoom("The shared GPUs do not answer; try again soon.")


def load(
    settings: Settings, revision: str | None, report: Any, decorate: Decorator, page: Callable[[], Any] = lambda: None
) -> Model:
    """Load the model for shared GPUs, and return it with an engine that dispatches all passes.

    `decorate` and `page` are arguments of `dispatch_with`. To be called in the main process before `launch`, which
    packs weights on a GPU for the workers. Nothing is computed on a GPU here. Raises the errors of `load_model`.
    """
    import torch

    from lookahead_core import load_model
    from lookahead_core.serving.dispatching_engine import DispatchingEngine
    from lookahead_core.serving.worker_tasks import Worker

    device = "cuda" if torch.cuda.is_available() else "cpu"
    half = "bfloat16" if device == "cuda" and settings.dtype == "auto" else settings.dtype
    # The engine is chosen and checked on the CPU; without compiled layers, which the worker would not use.
    on_cpu = replace(settings, device="cpu", device_map="", dtype=half, compute="plain")
    with _cuda_left_alone():
        loaded = load_model(revision=revision, settings=on_cpu, report=report)
    loaded.require_weights("A shared GPU").to(device)
    remake = computing_again(loaded, settings)
    return replace(loaded, engine=DispatchingEngine(dispatch_with(decorate, Worker(remake), page)))


@contextmanager
def _cuda_left_alone() -> Iterator[None]:
    """Context manager in whose body transformers does not ask CUDA whether a graph is being recorded.

    It asks in each forward pass without a whole mask, on a CPU too. The question initialises CUDA in this process, and
    then no worker that is forked from it can use a GPU.
    """
    import torch

    ask = torch.cuda.is_current_stream_capturing
    torch.cuda.is_current_stream_capturing = lambda: False
    try:
        yield
    finally:
        torch.cuda.is_current_stream_capturing = ask


def computing_again(loaded: Model, settings: Settings) -> Callable[[], Model]:
    """Return a function for workers: the model with a new engine of the same kind, which computes in the worker."""
    from lookahead_core.engines.cached import CachedEngine
    from lookahead_core.loading.load_model import engine_like

    attention = None
    if isinstance(loaded.engine, CachedEngine):
        attention = loaded.engine.model_copy.config._attn_implementation
    bare = replace(loaded, engine=None)  # type: ignore[arg-type]  # the engine on the CPU is not kept

    def remake() -> Model:
        return replace(bare, engine=engine_like(bare.hf_model, attention, settings))

    return remake
