"""Whose pass is next: requests before prefetching, turn by turn, a pass at a time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lookahead_core import Document, LookaheadError, Model
from lookahead_core.errors import NoRoom
from lookahead_core.serving.scheduler import MAX_WAITING, Scheduler

ROOT = Path(__file__).parents[2]
PATIENCE = 120
"""Seconds until it is given up to wait for something: it decides nothing but when a test that fails ends."""


class Gate:
    """Steps that run when they are let, and say in which order they ran."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.begun = threading.Event()
        self.open = threading.Event()

    def steps(self, name: str, count: int) -> Iterator[str]:
        for _ in range(count):
            self.begun.set()
            self.open.wait(PATIENCE)
            self.order.append(name)
            yield name


class Answer:
    """What a job has told so far."""

    def __init__(self) -> None:
        self.facts: list[Any] = []
        self.error: Exception | None = None
        self.over = threading.Event()

    def end(self, error: Exception | None) -> None:
        self.error = error
        self.over.set()

    def wait(self) -> list[Any]:
        assert self.over.wait(PATIENCE)
        return self.facts


@pytest.fixture
def scheduler(tiny_model: Model) -> Scheduler:
    return Scheduler(tiny_model.engine)


def submit(scheduler: Scheduler, steps: Iterator[Any], client: str, prefetch: bool = False) -> Answer:
    answer = Answer()
    scheduler.submit(steps, client, on_step=answer.facts.append, on_end=answer.end, prefetch=prefetch)
    return answer


def hold(scheduler: Scheduler, gate: Gate) -> Answer:
    """Keep the model busy with one step until the gate opens."""
    first = submit(scheduler, gate.steps("first", 1), "somebody")
    assert gate.begun.wait(PATIENCE)
    return first


def until(condition: Callable[[], object]) -> None:
    """Wait for something that another thread does."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_people_take_turns_pass_by_pass(scheduler: Scheduler) -> None:
    gate = Gate()
    first = hold(scheduler, gate)
    answers = [submit(scheduler, gate.steps(name, 3), name) for name in "abc"]
    gate.open.set()
    for answer in (first, *answers):
        answer.wait()
    assert gate.order == ["first", *"abcabcabc"]


def test_prefetching_comes_after_all_requests(scheduler: Scheduler) -> None:
    gate = Gate()
    first = hold(scheduler, gate)
    ahead = submit(scheduler, gate.steps("ahead", 2), "a", prefetch=True)
    people = [submit(scheduler, gate.steps(name, 2), name) for name in "bc"]
    gate.open.set()
    for answer in (first, ahead, *people):
        answer.wait()
    assert gate.order == ["first", "b", "c", "b", "c", "ahead", "ahead"]


def test_a_request_stops_the_same_persons_prefetching_within_a_pass(scheduler: Scheduler) -> None:
    gate = Gate()
    submit(scheduler, gate.steps("ahead", 1000), "a", prefetch=True)
    assert gate.begun.wait(PATIENCE)
    request = submit(scheduler, gate.steps("request", 2), "a")
    gate.open.set()
    request.wait()
    # Prefetching goes turn by turn: whatever "a" still had to prefetch would have had its turn before this one.
    submit(scheduler, gate.steps("another", 1), "b", prefetch=True).wait()
    assert gate.order == ["ahead", "request", "request", "another"], "only the pass that ran when the request came"


def test_another_persons_request_comes_before_the_next_pass_of_prefetching(scheduler: Scheduler) -> None:
    gate = Gate()
    reading = submit(scheduler, gate.steps("ahead", 5), "a", prefetch=True)
    assert gate.begun.wait(PATIENCE)
    other = submit(scheduler, gate.steps("b", 2), "b")
    gate.open.set()
    other.wait()
    reading.wait()
    assert gate.order == ["ahead", "b", "b", *["ahead"] * 4]


def test_a_newer_request_takes_the_place_of_the_older_one_in_the_queue(scheduler: Scheduler) -> None:
    gate = Gate()
    first = hold(scheduler, gate)
    older = submit(scheduler, gate.steps("older", 1), "a")
    other = submit(scheduler, gate.steps("b", 1), "b")
    newer = submit(scheduler, gate.steps("newer", 1), "a")
    gate.open.set()
    for answer in (first, other, newer):
        answer.wait()
    assert gate.order == ["first", "newer", "b"]
    assert older.facts == []


def test_stopping_drops_what_waits_and_what_runs(scheduler: Scheduler) -> None:
    gate = Gate()
    first = hold(scheduler, gate)
    waiting = submit(scheduler, gate.steps("a", 3), "a")
    scheduler.stop("a")
    scheduler.stop("somebody")
    gate.open.set()
    submit(scheduler, iter(()), "b").wait()
    assert gate.order == ["first"]
    assert waiting.facts == []
    assert not first.over.is_set()


def test_what_is_dropped_tidies_up_in_the_same_thread_and_may_use_the_engine(
    tiny_model: Model, scheduler: Scheduler
) -> None:
    document, tidied = Document(tiny_model, "Hello"), []

    def steps() -> Iterator[str]:
        try:
            while True:
                yield "step"
        finally:
            scheduler.free([document.tree.expand(document.head, 5)])
            tidied.append(threading.current_thread().name)

    for count, drop in enumerate((scheduler.stop, lambda who: submit(scheduler, iter(()), who).wait(), None), start=1):
        begun = threading.Event()
        scheduler.submit(steps(), "a", on_step=lambda fact, begun=begun: begun.set(), on_end=lambda error: None)
        assert begun.wait(PATIENCE)
        scheduler.close() if drop is None else drop("a")
        until(lambda count=count: len(tidied) >= count)
        assert tidied == ["scheduler"] * count


def test_a_waiting_request_that_is_replaced_tidies_up_in_the_schedulers_thread(scheduler: Scheduler) -> None:
    gate, tidied = Gate(), []

    def steps() -> Iterator[str]:
        try:
            yield "older"
            yield "never"
        finally:
            tidied.append(threading.current_thread().name)

    begun = threading.Event()
    scheduler.submit(steps(), "a", on_step=lambda step: (begun.set(), gate.begun.wait(PATIENCE)), on_end=print)
    assert begun.wait(PATIENCE)
    first = submit(scheduler, gate.steps("first", 1), "b")
    gate.begun.set()
    until(lambda: list(scheduler._requests) == ["b", "a"])
    submit(scheduler, iter(()), "a")
    assert tidied == []
    gate.open.set()
    first.wait()
    until(lambda: tidied)
    assert tidied == ["scheduler"]


def test_an_error_while_a_dropped_request_is_closed_is_logged_and_ends_nothing(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    def steps() -> Iterator[str]:
        try:
            while True:
                yield "step"
        finally:
            raise RuntimeError("not tidy")

    begun = threading.Event()
    scheduler.submit(steps(), "a", on_step=lambda fact: begun.set(), on_end=lambda error: None)
    assert begun.wait(PATIENCE)
    scheduler.stop("a")
    assert submit(scheduler, iter("b"), "b").wait() == ["b"]
    until(lambda: any("could not be closed" in record.message for record in caplog.records))


def test_an_error_in_a_step_reaches_its_client_only(scheduler: Scheduler) -> None:
    def wrong() -> Iterator[int]:
        yield 1
        raise KeyError("mine")

    answer = submit(scheduler, wrong(), "a")
    answer.wait()
    assert answer.facts == [1]
    assert isinstance(answer.error, KeyError)
    assert submit(scheduler, iter([2]), "b").wait() == [2]


def test_steps_run_in_one_thread_and_never_side_by_side(scheduler: Scheduler) -> None:
    threads, inside = set(), threading.Lock()

    def steps() -> Iterator[None]:
        for _ in range(20):
            assert inside.acquire(blocking=False)
            threads.add(threading.get_ident())
            time.sleep(0.0005)
            inside.release()
            yield

    answers = [submit(scheduler, steps(), str(index)) for index in range(10)]
    for answer in answers:
        answer.wait()
        assert answer.error is None
    assert len(threads) == 1


def test_it_is_an_engine_around_the_real_one(tiny_model: Model, scheduler: Scheduler) -> None:
    shared = replace(tiny_model, engine=scheduler)
    expected = Document(tiny_model, "The old lighthouse").lookahead(k=4, depth=6)
    results: list[Any] = []

    def ask() -> None:
        results.append(Document(shared, "The old lighthouse").lookahead(k=4, depth=6))

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        assert [branch.token_ids for branch in result.branches] == [branch.token_ids for branch in expected.branches]
    document = Document(shared, "The old")
    document.lookahead(k=2, depth=2)
    assert scheduler.cache_usage(document.tree)[0] > 0
    document.prune()
    document.compact()
    document.check()


class Listening:
    """An engine around the real one that notes what it is asked, and in which thread."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.asked: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.engine, name)
        if not callable(found):
            return found

        def listened(*arguments: Any, **options: Any) -> Any:
            self.asked.append((name, threading.current_thread().name))
            return found(*arguments, **options)

        return listened


def test_everything_that_an_engine_does_is_done_in_the_schedulers_thread(tiny_model: Model) -> None:
    engine = Listening(tiny_model.engine)
    scheduler = Scheduler(engine)  # type: ignore[arg-type]
    document = Document(replace(tiny_model, engine=scheduler), "The old keeper")
    head = document.head
    scheduler.prefill(scheduler.nodes_to_prefill(head)[:-1])
    assert [node.token_id for node in scheduler.nodes_to_prefill(head)] == [head.token_id]
    hidden = scheduler.score([head], hidden=True)
    assert hidden.hidden is not None and scheduler.score([head]).nodes == [head]
    row = scheduler.evaluate([head])[0]
    assert torch.equal(row.argmax(), document.predict(row=True).row.argmax())
    (leaf,) = [*scheduler.roll_out([head], head.depth + 3, frozenset())][-1]
    assert leaf.depth == head.depth + 3
    scheduler.free([leaf])
    scheduler.compact(document.tree)
    names = {"prefill", "nodes_to_prefill", "score", "free", "compact"}
    assert names <= {name for name, _ in engine.asked}
    assert {thread for name, thread in engine.asked if name in names} == {"scheduler"}
    for name in ("pass_costs", "passes", "batch_invariant_rows"):
        assert getattr(scheduler, name) == getattr(tiny_model.engine, name)
    assert scheduler.cache_usage(document.tree) == tiny_model.engine.cache_usage(document.tree)
    scheduler.close()


def test_an_unused_scheduler_can_be_closed_and_one_can_be_closed_from_within(
    scheduler: Scheduler, tiny_model: Model
) -> None:
    Scheduler(tiny_model.engine).close()
    threads: list[threading.Thread] = []

    def steps() -> Iterator[int]:
        threads.append(threading.current_thread())
        scheduler.close()
        yield 1

    answer = submit(scheduler, steps(), "a")
    assert answer.wait() == [1] and isinstance(answer.error, NoRoom)
    assert threads[0].daemon, "an interpreter need not wait for it"


def test_an_error_of_the_engine_is_raised_where_the_scheduler_was_called(
    tiny_model: Model, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(nodes: Sequence[Any], hidden: bool = False) -> torch.Tensor:
        raise AttributeError("an error of the engine")

    document = Document(replace(tiny_model, engine=scheduler), "The")
    monkeypatch.setattr(scheduler.engine, "score", fail)
    with pytest.raises(AttributeError, match="an error of the engine"):
        document.predict()


def test_a_request_beyond_the_limit_of_clients_is_refused(scheduler: Scheduler) -> None:
    gate = Gate()
    hold(scheduler, gate)
    for index in range(MAX_WAITING - 1):
        submit(scheduler, iter(()), str(index))
    with pytest.raises(LookaheadError, match="at once"):
        submit(scheduler, iter(()), "one too many")
    gate.open.set()


@pytest.mark.parametrize("ahead", [False, True])
def test_who_waits_in_a_crowd_may_ask_for_something_else(scheduler: Scheduler, ahead: bool) -> None:
    gate = Gate()
    hold(scheduler, gate)
    waiting = MAX_WAITING if ahead else MAX_WAITING - 1  # whoever holds the model counts among the people
    answers = {f"person {index}": submit(scheduler, iter("a"), f"person {index}", ahead) for index in range(waiting)}
    with pytest.raises(LookaheadError, match="no turn left"):
        submit(scheduler, iter("c"), "one too many", ahead)
    newer = submit(scheduler, iter("bb"), "person 7", ahead)
    gate.open.set()
    assert newer.wait() == ["b", "b"]
    assert not answers["person 7"].over.is_set(), "the older request has given its place away"
    for person, answer in answers.items():
        assert person == "person 7" or answer.wait() == ["a"]


def test_the_thread_ends_when_there_is_nothing_to_do_and_comes_back(tiny_model: Model) -> None:
    scheduler = Scheduler(tiny_model.engine, idle=0.05)
    for _ in range(3):
        assert submit(scheduler, iter([1]), "a").wait() == [1]
        until(lambda: not scheduler.has_thread)


ENDING = """
import itertools, threading, torch
from lookahead_core.serving.scheduler import Scheduler
begun, matrix = threading.Event(), torch.randn(1500, 1500)
def passes():
    for _ in itertools.count():
        begun.set()
        yield matrix @ matrix
Scheduler(None).submit(passes(), "somebody", on_step=lambda fact: None, on_end=print)
begun.wait()
"""


@pytest.mark.slow
def test_an_interpreter_that_ends_during_a_pass_ends_quietly() -> None:
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", ENDING], cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert (ended.returncode, ended.stderr) == (0, "")


def test_closing_tells_everybody_who_waits_and_lets_what_runs_finish(scheduler: Scheduler) -> None:
    gate = Gate()
    running, single = hold(scheduler, gate), []
    waiting = submit(scheduler, gate.steps("waiting", 2), "a")
    ahead = submit(scheduler, gate.steps("ahead", 2), "b", prefetch=True)
    stopped = submit(scheduler, gate.steps("stopped", 2), "c")
    scheduler.stop("c")

    def call() -> None:
        try:
            single.append(scheduler.nodes_to_prefill(None))  # type: ignore[arg-type]
        except LookaheadError as error:
            single.append(error)

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    until(lambda: scheduler.request_count == 3)
    closing = threading.Thread(target=scheduler.close, daemon=True)
    closing.start()
    until(lambda: scheduler.closed)
    gate.open.set()
    for thread in (closing, caller):
        thread.join(PATIENCE)
        assert not thread.is_alive()
    for answer in (running, waiting, ahead):
        answer.wait()
        assert isinstance(answer.error, NoRoom) and str(answer.error).startswith("The server is shutting down")
    assert gate.order == ["first"] == running.facts and not waiting.facts and not ahead.facts
    (error,) = single
    assert isinstance(error, NoRoom) and not stopped.over.is_set()


def test_what_ends_with_the_step_that_runs_while_it_is_closed_has_its_own_end(scheduler: Scheduler) -> None:
    begun, go = threading.Event(), threading.Event()

    def last() -> Iterator[int]:
        begun.set()
        go.wait(PATIENCE)
        return
        yield 1

    answer = submit(scheduler, last(), "a")
    assert begun.wait(PATIENCE)
    closing = threading.Thread(target=scheduler.close, daemon=True)
    closing.start()
    until(lambda: scheduler.closed)
    go.set()
    answer.wait()
    closing.join(PATIENCE)
    assert answer.error is None and not closing.is_alive()


def test_who_has_left_hears_of_no_end_though_the_last_step_was_running(scheduler: Scheduler) -> None:
    begun, go = threading.Event(), threading.Event()

    def last() -> Iterator[int]:
        begun.set()
        go.wait(20)
        yield from ()

    answer = submit(scheduler, last(), "a")
    assert begun.wait(20)
    scheduler.stop("a")
    go.set()
    submit(scheduler, iter(()), "b").wait()
    submit(scheduler, iter(()), "b").wait()
    assert not answer.over.is_set()


def test_a_call_that_runs_while_it_is_closed_has_its_answer(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    begun, go, found = threading.Event(), threading.Event(), []

    def slow(value: int) -> int:
        begun.set()
        go.wait(PATIENCE)
        return value + 1

    caller = threading.Thread(target=lambda: found.append(scheduler._call(slow, 4)), daemon=True)
    caller.start()
    assert begun.wait(PATIENCE)
    closing = threading.Thread(target=scheduler.close, daemon=True)
    closing.start()
    until(lambda: scheduler.closed)
    go.set()
    for thread in (caller, closing):
        thread.join(PATIENCE)
    assert found == [5] and not caplog.records


def test_a_turn_that_nobody_waits_for_any_more_is_not_taken(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    gate, ran = Gate(), []

    async def leave() -> None:
        turn = asyncio.ensure_future(scheduler.turn(ran.append, 1))
        await asyncio.sleep(0)
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
        gate.open.set()

    hold(scheduler, gate)
    asyncio.run(leave())
    assert submit(scheduler, iter([2]), "b").wait() == [2]
    assert not ran and not caplog.records


def test_after_its_end_nobody_waits_for_a_turn(scheduler: Scheduler) -> None:
    submit(scheduler, iter([1]), "a").wait()
    scheduler.close()
    assert not scheduler.has_thread
    with pytest.raises(LookaheadError, match="shutting down"):
        submit(scheduler, iter([1]), "a")
