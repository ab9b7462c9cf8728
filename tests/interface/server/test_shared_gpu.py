"""Shared GPUs: for whom a task is dispatched, how long it may take, and what refusals say."""

from __future__ import annotations

import contextvars
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
import torch
from gradio.context import LocalContext
from starlette.datastructures import Headers

from interface.server.page_session import paint_steps
from interface.server.shared_gpu import MOST_SECONDS, MOST_TOKEN, Visitor, dispatch_with, duration, load, refusal
from lookahead_core import Document, Model, Settings
from lookahead_core.engines.dispatch import COMPUTING, WAITING
from lookahead_core.engines.probe import difference
from lookahead_core.errors import NoRoom, WorkerLost
from lookahead_core.loading import load_model as models
from lookahead_core.loading.from_transformers import no_report
from lookahead_core.serving.dispatching_engine import DispatchingEngine
from tests.conftest import tiny_llama
from tests.support.forking_gpu import ForkingGpu


class EchoWorker:
    """A worker that answers with its task."""

    def compute(self, task: bytes) -> Iterator[bytes]:
        yield task


def decorator_of(error: Exception | None = None, seen: list[Any] | None = None) -> Callable[..., Any]:
    """A decorator whose functions raise an error, and note the token of the request that Gradio holds."""

    def decorate(*, duration: Callable[[bytes, float], int]) -> Callable[..., Any]:
        def decorated(function: Callable[..., Iterator[bytes]]) -> Callable[..., Iterator[bytes]]:
            def call(task: bytes, seconds: float) -> Iterator[bytes]:
                request = LocalContext.request.get(None)
                if seen is not None:
                    seen.append((request and request.headers.get("x-ip-token"), duration(task, seconds)))
                if error is not None:
                    raise error
                yield from function(task, seconds)

            return call

        return decorated

    return decorate


def run(dispatch: Any, caller: Any = None, seconds: float = 7.2) -> list[bytes]:
    return contextvars.copy_context().run(lambda: list(dispatch(b"task", seconds, caller)))


def test_the_visitors_token_and_the_duration_reach_the_platform() -> None:
    seen: list[Any] = []
    dispatch = dispatch_with(decorator_of(seen=seen), EchoWorker())  # type: ignore[arg-type]
    assert run(dispatch, Visitor("abc")) == [b"task"]
    assert run(dispatch, Visitor(None), seconds=1e6) == [b"task"]
    assert run(dispatch) == [b"task"]
    assert seen == [("abc", 8), (None, MOST_SECONDS), (None, 8)]


def test_the_platform_finds_the_page_whose_connections_a_worker_closes() -> None:
    pages: list[Any] = []

    def decorate(*, duration: Any) -> Any:
        def call(task: bytes, seconds: float) -> Iterator[bytes]:
            pages.append(LocalContext.blocks.get(None))
            yield task

        return lambda function: call

    dispatch = dispatch_with(decorate, EchoWorker(), lambda: "the page")  # type: ignore[arg-type]
    run(dispatch, Visitor("abc"))
    run(dispatch)
    assert pages == ["the page", "the page"]


def test_a_visitor_is_known_by_the_pages_headers_or_by_those_of_the_request() -> None:
    def visitor(payload: object, **headers: str) -> Visitor:
        token = LocalContext.request.set(SimpleNamespace(headers=Headers(headers)))  # type: ignore[arg-type]
        try:
            return Visitor.of(payload)
        finally:
            LocalContext.request.reset(token)

    assert visitor({"visitor": {"x-ip-token": "abc"}}).token == "abc"
    assert visitor({}, **{"X-IP-Token": "def"}).token == "def"
    assert visitor({"visitor": {"x-ip-token": "abc"}}, **{"x-ip-token": "def"}).token == "abc"
    for wrong in (5, "", "a" * (MOST_TOKEN + 1), "a\nb", "é", ["a"]):
        assert visitor({"visitor": {"x-ip-token": wrong}}).token is None, wrong
    for payload in (None, [], {"visitor": "abc"}, {"visitor": ["x-ip-token"]}):
        assert visitor(payload).token is None
    assert Visitor.of({}).token is None


REFUSALS = [
    (
        "ZeroGPU quota exceeded",
        "You have exceeded your free ZeroGPU quota (60s requested vs. 3s left). Try again in 23:10:04. ",
        "used up; the next ones come in 23:10:04.",
    ),
    ("ZeroGPU quota exceeded", "Space app has reached its GPU limit. Try re-running outside of examples", "sign in"),
    ("ZeroGPU queue timeout", 'No GPU was available after 60s. <a href="x">Sign up</a>', "none was free"),
    ("ZeroGPU quota exceeded", "No GPU was available after 60s. Try re-running", "none was free"),
    ("ZeroGPU client error", "No GPU was available", "none was free"),
    ("ZeroGPU illegal duration", "The requested GPU duration (900s) is larger than the maximum", "fewer or shorter"),
    ("ZeroGPU pending credits exceeded", "You have too many ZeroGPU credits allocated", "other pages"),
    ("ZeroGPU worker error", "RuntimeError", "error on the server"),
    ("ZeroGPU client error", "Expired ZeroGPU proxy token", "try again soon"),
]


@pytest.mark.parametrize(("title", "message", "words"), REFUSALS)
def test_each_refusal_becomes_a_sentence_without_markup(title: str, message: str, words: str) -> None:
    error = gr.Error(message, title=title)
    with pytest.raises(NoRoom) as raised:
        run(dispatch_with(decorator_of(error), EchoWorker()))  # type: ignore[arg-type]
    assert words in str(raised.value)
    assert str(raised.value).endswith(".") and "<" not in str(raised.value) and "ZeroGPU" not in str(raised.value)
    assert not isinstance(raised.value, WorkerLost)


def test_an_aborted_call_counts_as_a_worker_that_is_gone() -> None:
    assert isinstance(refusal("ZeroGPU worker error", "GPU task aborted"), WorkerLost)


def test_a_call_asks_for_whole_seconds_within_the_limit() -> None:
    for seconds in (0.1, 5, 30.5, 1e9):
        assert duration(b"", seconds) == min(MOST_SECONDS, math.ceil(seconds))


@dataclass
class FakeStep:
    """A step of a lookahead."""

    waiting: str = ""
    tokens_read: int = 0
    tokens_to_read: int = 0


def test_a_request_that_waits_long_for_a_gpu_says_so_until_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [FakeStep(WAITING), FakeStep(WAITING), FakeStep(COMPUTING), FakeStep(), FakeStep(COMPUTING), FakeStep()]
    quick = list(paint_steps(iter(steps), lambda step: "view"))
    assert not any("note" in answer for answer in quick)
    monkeypatch.setattr("interface.server.page_session.QUEUE_NOTE_AFTER", -1.0)
    answers = list(paint_steps(iter(steps), lambda step: "view"))
    thinking = {"state": "thinking"}
    assert answers[:3] == [{**thinking, "note": WAITING}, {}, {**thinking, "note": None}]
    assert answers[3]["view"] == "view"
    assert answers[-1] == {"state": "settled", "view": "view"}


def test_a_model_is_loaded_for_workers_which_make_its_engine_anew(
    tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = models.load_model(tiny_model.hf_model, tokenizer=tiny_model.tokenizer)
    monkeypatch.setattr("lookahead_core.load_model", lambda **options: loaded)
    gpu = ForkingGpu()
    model = load(Settings(), None, None, lambda duration: gpu)
    assert isinstance(model.engine, DispatchingEngine)
    found, expected = (Document(each, "Once upon").lookahead(heal=True) for each in (model, tiny_model))
    assert [branch.token_ids for branch in found.branches] == [branch.token_ids for branch in expected.branches]
    assert loaded.engine.passes <= 1, "nothing is computed in this process but what the load itself computes"
    gpu.close()


def test_loading_for_workers_does_not_initialise_cuda_in_this_process(
    tmp_path: Path, byte_tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_llama(len(byte_tokenizer)).save_pretrained(tmp_path)
    byte_tokenizer.save_pretrained(tmp_path)
    asked: list[int] = []
    # In a build of torch for CUDA this function initialises CUDA, and processes forked afterwards cannot use a GPU.
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: bool(asked.append(1)))
    difference.cache_clear()
    load(Settings(model=str(tmp_path)), None, no_report, lambda duration: lambda function: function)
    assert not asked
    assert not torch.cuda.is_current_stream_capturing()
    assert asked, "the function is in its place again"
