"""Who asks for much does not hold up the others: the order of steps, by a clock that only the steps move."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from lookahead_core import Document, Model
from lookahead_core.serving import job, shared_passes
from lookahead_core.serving.fair_shares import FairShares
from lookahead_core.serving.job import Job
from lookahead_core.serving.outside_reading import read_outside
from lookahead_core.serving.scheduler import Scheduler
from lookahead_core.serving.shared_passes import PassLimits
from tests.support.witness import around

PATIENCE = 20
"""Seconds after which a failing test gives up."""


class Clock:
    """In place of the module time: seconds go by only when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (job, shared_passes):
        monkeypatch.setattr(module, "time", made)
    return made


class Crowd:
    """Jobs of one scheduler whose steps take set times; `order` is who ran, step by step, and for how long."""

    def __init__(self, model: Model, clock: Clock) -> None:
        self.scheduler = Scheduler(model.engine)
        self.order: list[tuple[str, float]] = []
        self._clock = clock

    def steps(self, name: str, count: int, seconds: float) -> Iterator[None]:
        for _ in range(count):
            self._clock.now += seconds
            self.order.append((name, seconds))
            yield

    def add(
        self, client: str, count: int, seconds: float, payers: tuple[Any, ...], kind: str = "", background: bool = False
    ) -> threading.Event:
        over = threading.Event()
        self.scheduler.submit(
            self.steps(kind or client, count, seconds),
            client,
            on_step=lambda step: None,
            on_end=lambda error: over.set(),
            payers=payers,
            background=background,
        )
        return over

    def run(self, begin: Any) -> list[tuple[str, float]]:
        """Call `begin` in the scheduler's thread, so that all jobs are there before the first step; run all of them."""
        events: list[threading.Event] = []
        held = threading.Event()

        def first() -> Iterator[None]:
            events.extend(begin())
            held.set()
            yield

        self.scheduler.submit(first(), "first", on_step=lambda step: None, on_end=lambda error: None)
        assert held.wait(PATIENCE)
        for event in events:
            assert event.wait(PATIENCE)
        return self.order


def seconds_before_the_end_of(name: str, order: list[tuple[str, float]]) -> float:
    """Seconds of the steps of others up to the last step of `name`."""
    last = max(place for place, (who, _) in enumerate(order) if who == name)
    return sum(seconds for who, seconds in order[:last] if who != name)


@pytest.mark.parametrize("people", [1, 20], ids=["of one person", "of many at one address"])
@pytest.mark.parametrize("seconds", [0.05, 1.0])
def test_a_quiet_person_waits_for_others_about_as_long_as_for_the_own_passes(
    tiny_model: Model, clock: Clock, people: int, seconds: float
) -> None:
    crowd = Crowd(tiny_model, clock)

    def begin() -> list[threading.Event]:
        for number in range(20):
            person = number % people
            crowd.add(f"flood {number}", 200, seconds, ("far", ("far", person)), kind="flood")
        return [crowd.add("quiet", 100, 0.05, ("near", ("near", "one")))]

    order = crowd.run(begin)
    own = 100 * 0.05
    # Until the others are ahead by two seconds, all take turns. Then it is half and half, a few steps more or less,
    # and what is forgotten of the two seconds. Without shares they would have twenty times as many steps.
    assert seconds_before_the_end_of("quiet", order) <= 1.4 * own + 2 + 8 * seconds + 0.5
    assert seconds_before_the_end_of("quiet", order) >= own / 2, "who asks for much is not stopped either"


def test_a_round_ends_early_if_its_passes_put_an_address_ahead(tiny_model: Model, clock: Clock) -> None:
    model = around(tiny_model, lambda: setattr(clock, "now", clock.now + 1.0))
    scheduler = Scheduler(model.engine, limits=PassLimits(shared=1, reading=128))
    ended: list[tuple[str, float]] = []
    jobs = [*((f"flood {number}", 3) for number in range(20)), ("quiet", 2)]

    def begin() -> Iterator[None]:
        """Submit all jobs, in the scheduler's thread, so that all are there before the first pass."""
        for name, depth in jobs:
            scheduler.submit(
                Document(replace(model, engine=scheduler), "a").lookahead_steps(k=1, depth=depth),
                name,
                on_step=lambda step: None,
                on_end=lambda error, name=name: ended.append((name, clock.now)),  # type: ignore[misc]
                payers=(name.split()[0],),
            )
        yield

    scheduler.submit(begin(), "first", on_step=lambda step: None, on_end=lambda error: None)
    limit = time.monotonic() + PATIENCE
    while len(ended) < len(jobs) and time.monotonic() < limit:
        time.sleep(0.01)
    scheduler.close()
    assert clock.now == 62.0, "each pass takes a second, and has one row"
    # Three passes of the twenty put their address ahead by more than two seconds; then it is the other one's turn.
    # After a second of its own the twenty are ahead by less, until they have had one pass.
    assert dict(ended)["quiet"] <= 3 + 1 + 1 + 1 + 3


def test_a_job_that_waits_for_a_server_does_not_stop_the_others(tiny_model: Model, clock: Clock) -> None:
    crowd = Crowd(tiny_model, clock)
    answer, served = threading.Event(), threading.Event()

    def source() -> Iterator[int]:
        yield 1 if answer.wait(PATIENCE) else 0

    def waiter() -> Iterator[None]:
        for number in read_outside([source()]):  # type: ignore[list-item]
            assert number
            served.set()
            yield

    def begin() -> list[threading.Event]:
        nothing = {"on_step": lambda step: None, "on_end": lambda error: None}
        crowd.scheduler.submit(waiter(), "waiter", **nothing, payers=("near", ("near", 1)))
        return [crowd.add("flood", 50, 1.0, ("far", ("far", 1)))]

    try:
        assert len(crowd.run(begin)) == 50, "the other address has used nothing, and needs no turn before its answer"
    finally:
        answer.set()
    assert served.wait(PATIENCE)


def test_people_who_use_about_as_much_take_turns_as_if_there_were_no_shares(tiny_model: Model, clock: Clock) -> None:
    crowd = Crowd(tiny_model, clock)

    def begin() -> list[threading.Event]:
        return [crowd.add(f"person {number}", 10, 0.1, ("class", ("class", number))) for number in range(5)]

    order = [who for who, _ in crowd.run(begin)]
    for place in range(0, 50, 5):
        assert len(set(order[place : place + 5])) == 5


def test_who_has_used_much_alone_is_served_as_fast_as_before_when_nobody_waits(tiny_model: Model, clock: Clock) -> None:
    crowd = Crowd(tiny_model, clock)

    def begin() -> list[threading.Event]:
        return [crowd.add(f"{number}", 30, 1.0, ("far", ("far", 1)), kind="flood") for number in range(4)]

    assert len(crowd.run(begin)) == 120


def test_a_job_of_nobody_is_never_late(tiny_model: Model, clock: Clock) -> None:
    crowd = Crowd(tiny_model, clock)

    def begin() -> list[threading.Event]:
        crowd.add("flood", 50, 1.0, ("far", ("far", 1)))
        return [crowd.add("nobody", 30, 1.0, ()), crowd.add("quiet", 5, 0.01, ("near", ("near", 1)))]

    order = crowd.run(begin)
    assert [who for who, _ in order[:45]].count("nobody") >= 20


@pytest.mark.parametrize("payers", [(), ("far", ("far", 1))])
def test_a_background_job_lets_others_go_first_and_still_ends(
    tiny_model: Model, clock: Clock, payers: tuple[Any, ...]
) -> None:
    crowd = Crowd(tiny_model, clock)

    def begin() -> list[threading.Event]:
        experiment = crowd.add("experiment", 40, 0.5, payers, background=True)
        return [experiment, crowd.add("click", 6, 0.02, ("near", ("near", 1)))]

    assert [who for who, _ in crowd.run(begin)] == ["click"] * 6 + ["experiment"] * 40


def test_a_background_job_has_half_of_the_time_while_others_never_stop(tiny_model: Model, clock: Clock) -> None:
    crowd = Crowd(tiny_model, clock)

    def begin() -> list[threading.Event]:
        writers = [crowd.add(f"writer {one}", 200, 0.02, ("near", ("near", one)), kind="writers") for one in range(3)]
        return [crowd.add("experiment", 10, 0.5, ("far", ("far", 1)), background=True), *writers]

    waited = seconds_before_the_end_of("experiment", crowd.run(begin))
    assert 0.7 * 10 * 0.5 <= waited <= 1.3 * 10 * 0.5


def test_a_background_job_waits_also_for_a_person_who_has_used_more(tiny_model: Model, clock: Clock) -> None:
    crowd = Crowd(tiny_model, clock)

    def begin() -> list[threading.Event]:
        experiment = crowd.add("experiment", 3, 0.01, ("new", ("new", 1)), background=True)
        return [experiment, crowd.add("writer", 8, 1.0, ("near", ("near", 1)))]

    assert crowd.run(begin)[0][0] == "writer"


def test_what_was_used_is_forgotten_by_halves() -> None:
    shares = FairShares()

    def charge(payer: str, seconds: float) -> None:
        made = Job("client", 0, iter(()), print, print, (payer,))
        made.pass_seconds = seconds
        shares.charge(made)

    charge("a", 4.0)
    assert shares.used(("a",)) == 4.0
    charge("b", 10.0)
    assert (shares.used(("a",)), shares.used(("b",)), shares.used(("c",))) == (2.0, 10.0, 0.0)
    charge("b", 20.0)
    assert (shares.used(("a",)), shares.used(("b",))) == (0.5, 22.5)


def test_persons_of_the_same_name_at_two_addresses_pay_for_themselves_only() -> None:
    shares = FairShares()
    far, near, reader = (
        Job(client, number, iter(()), print, print, payers)
        for number, (client, payers) in enumerate(
            [("far", ("far", "programs")), ("near", ("near", "programs")), ("reader", ("near", "reader"))]
        )
    )
    far.pass_seconds = 10.0
    shares.charge(far)
    assert shares.in_turn([near, reader]) == [near, reader]
    assert (shares.used(("far", "programs")), shares.used(("near", "programs"))) == (10.0, 0.0)


def test_who_asks_in_the_middle_of_a_round_does_not_wait_for_its_end(tiny_model: Model, clock: Clock) -> None:
    crowd = Crowd(tiny_model, clock)
    over: list[threading.Event] = []

    def last() -> Iterator[None]:
        yield  # one round, in which all others use a second each
        crowd.order.append(("asks", 0.0))
        over.append(crowd.add("quiet", 5, 0.01, ("near", ("near", 1))))
        yield

    def begin() -> list[threading.Event]:
        payers, nothing = ("far", ("far", 1)), {"on_step": lambda step: None, "on_end": lambda error: None}
        crowd.add("flood 0", 4, 1.0, payers, kind="flood")
        crowd.scheduler.submit(last(), "last", **nothing, payers=payers)
        return [crowd.add(f"flood {number}", 4, 1.0, payers, kind="flood") for number in range(1, 20)]

    order = [who for who, _ in crowd.run(begin)]
    asked = order.index("asks")
    assert order[asked + 1 : asked + 6] == ["quiet"] * 5
    assert order[asked:].count("flood") > 20
