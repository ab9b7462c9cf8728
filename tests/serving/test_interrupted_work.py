"""Nothing that a step or a pass raises ends the scheduler's thread: others go on, and everybody hears of their end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lookahead_core import Document, Model
from lookahead_core.errors import Interrupted
from lookahead_core.serving.scheduler import Scheduler
from tests.serving.test_scheduler import submit

ENDS = [SystemExit, KeyboardInterrupt, GeneratorExit]
"""Errors that are no Exception: a thread that catches only those ends with them."""


def raising(error: type[BaseException]) -> Iterator[str]:
    yield "first"
    raise error


@pytest.mark.parametrize("error", ENDS)
def test_a_step_that_would_end_the_thread_ends_its_own_request_only(
    error: type[BaseException], tiny_model: Model
) -> None:
    scheduler = Scheduler(tiny_model.engine)
    wrong = submit(scheduler, raising(error), "a")
    right = submit(scheduler, iter(["one", "two", "three"]), "b")
    assert wrong.wait() == ["first"]
    assert right.wait() == ["one", "two", "three"]
    assert isinstance(wrong.error, Interrupted) and right.error is None
    assert submit(scheduler, iter(["again"]), "a").wait() == ["again"]


@pytest.mark.parametrize("error", ENDS)
def test_a_pass_that_would_end_the_thread_is_an_error_where_it_was_needed(
    error: type[BaseException], tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = Scheduler(tiny_model.engine)
    document = Document(tiny_model, "The sea")
    monkeypatch.setattr(tiny_model.engine, "score", failing_once(error, tiny_model.engine.score))

    def steps() -> Iterator[Any]:
        nodes = [document.tree.head]
        with pytest.raises(Interrupted):
            scheduler.score(nodes)
        yield scheduler.score(nodes).best_tokens

    answer = submit(scheduler, steps(), "a")
    assert len(answer.wait()) == 1 and answer.error is None


def failing_once(error: type[BaseException], function: Callable[..., Any]) -> Callable[..., Any]:
    calls: list[None] = []

    def failing(*arguments: Any, **options: Any) -> Any:
        calls.append(None)
        if len(calls) == 1:
            raise error
        return function(*arguments, **options)

    return failing


def test_an_error_of_a_round_itself_ends_all_that_waits_and_the_thread_takes_new_work(
    tiny_model: Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = Scheduler(tiny_model.engine)
    closed: list[str] = []
    begin = threading.Event()

    def steps(name: str) -> Iterator[str]:
        try:
            begin.wait(60)
            yield name
            yield name
        finally:
            closed.append(f"{name} in {threading.current_thread().name}")

    monkeypatch.setattr(Scheduler, "_make_passes", failing_once(SystemExit, Scheduler._make_passes))
    answers = [submit(scheduler, steps(name), name, prefetch=name == "c") for name in "abc"]
    begin.set()
    for answer in answers:
        answer.wait()
        assert isinstance(answer.error, Interrupted)
    assert "a in scheduler" in closed and all(one.endswith("in scheduler") for one in closed), (
        "what has begun is closed, in its own thread"
    )
    assert "could not go on" in caplog.text
    again = submit(scheduler, iter(["again"]), "a")
    assert again.wait() == ["again"] and again.error is None


def test_a_client_that_cannot_be_reached_at_the_end_stops_nobody(tiny_model: Model) -> None:
    scheduler = Scheduler(tiny_model.engine)

    def end(error: Exception | None) -> None:
        raise SystemExit

    scheduler.submit(iter([1]), "a", on_step=lambda fact: None, on_end=end)
    assert submit(scheduler, iter(["one"]), "b").wait() == ["one"]
