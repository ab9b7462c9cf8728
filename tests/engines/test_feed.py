"""Several slow generators read at the same time: their items, errors and ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import closing

import pytest

from lookahead_core.engines.feed import MOST_THREADS, Feed, read_all


def slow(numbers: range, seconds: float = 0.05, closed: list[int] | None = None) -> Generator[int, None, None]:
    try:
        for number in numbers:
            time.sleep(seconds)
            yield number
    finally:
        if closed is not None:
            closed.append(numbers.start)


def test_slow_generators_take_the_time_of_one_and_keep_their_order() -> None:
    started = time.perf_counter()
    found = list(read_all([slow(range(start, start + 4)) for start in (0, 10, 20, 30)]))
    assert time.perf_counter() - started < 0.5
    for start in (0, 10, 20, 30):
        assert [each for each in found if each // 10 == start // 10] == list(range(start, start + 4))


def test_a_single_generator_runs_in_the_callers_thread() -> None:
    def only() -> Generator[int, None, None]:
        yield threading.get_ident()

    assert list(read_all([only()])) == [threading.get_ident()]


def test_no_generators_and_more_than_threads_have_all_items() -> None:
    assert list(read_all([])) == []
    many = [slow(range(start, start + 1), 0.0) for start in range(3 * MOST_THREADS)]
    assert sorted(read_all(many)) == list(range(3 * MOST_THREADS))


def test_an_error_is_raised_and_closes_the_other_generators() -> None:
    def failing() -> Generator[int, None, None]:
        yield 1
        time.sleep(0.1)
        raise ValueError("broken")

    closed: list[int] = []
    with pytest.raises(ValueError, match="broken"):
        list(read_all([failing(), slow(range(5, 500), closed=closed)]))
    time.sleep(0.2)
    assert closed == [5]


def test_closing_closes_all_generators_at_their_next_item() -> None:
    closed: list[int] = []
    with closing(read_all([slow(range(1, 500), closed=closed), slow(range(7, 500), closed=closed)])) as items:
        next(items)
    time.sleep(0.2)
    assert sorted(closed) == [1, 7]


def test_a_feed_calls_back_after_each_item_and_at_the_end() -> None:
    calls = threading.Semaphore(0)
    feed = Feed([slow(range(2), 0.0)], calls.release)
    assert all(calls.acquire(timeout=2) for _ in range(3))
    assert feed.ready and [feed.take(), feed.take()] == [0, 1]
    with pytest.raises(StopIteration):
        feed.take()
