"""Whoever calls from code: each call takes its turns with everybody else's, and none may hold the model for long."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from interface.server.branch_request import MOST_CHARACTERS, whole
from interface.server.call_check import CallCheck
from lookahead_core.errors import LookaheadError

if TYPE_CHECKING:
    from interface.server.model_loading import ModelLoader
    from lookahead_core.serving.calls import Calls

NAMES = (
    "next_token", "continue_messages", "logprobs", "highlights", "gen_revisions", "lookahead", "generate",
    "beam_search",
)  # fmt: skip
SECONDS = 60.0
"""How long one call may hold the model, all its passes together."""
AT_ONCE = 8
"""How many calls may take turns at once: people who write wait for at most so many passes, and find room to ask."""
MOST_CHECKED = 64
"""How many calls may wait to be checked, each with all that it was sent."""
CAPS = {
    "k": 20, "n_branch_tokens": 20, "depth": 40, "n_future_tokens": 40, "max_new_tokens": 512, "max_length": 1024,
    "n": 10, "num_beams": 20,
}  # fmt: skip
"""The most that may be asked for from outside; the functions themselves allow more."""
MOST_STOPS, LONGEST_STOP = 20, 200
"""Strings to stop at are looked for after every token: so many at most, and so many characters each."""


class NotReady(LookaheadError):
    """There is no model, or not yet."""

    status = 503


class TooMany(LookaheadError):
    """So many calls are running already."""

    status = 429


class TooMuch(LookaheadError):
    """A call has held the model for as long as it may."""

    status = 413


class CallRunner:
    """Answers calls by name, once the model is there."""

    def __init__(self, loader: ModelLoader, seconds: float = SECONDS) -> None:
        self.loader = loader
        self._seconds = seconds
        self._running = self._checking = 0

    async def answer(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What the call of that name gives; or an error whose text is a sentence."""
        self._require_model()
        given = checked(name, arguments)
        await self._rehearse(name, given)
        if self._running >= AT_ONCE:
            raise TooMany(f"{AT_ONCE} calls are running already, which is all: wait for an answer, and ask again.")
        self._running += 1
        try:
            return await self._turns(self._held(name, given))
        finally:
            self._running -= 1

    @cached_property
    def _calls(self) -> Calls:
        from lookahead_core.serving.calls import Calls

        assert self.loader.model is not None
        return Calls(self.loader.model)

    @cached_property
    def _rehearsal(self) -> CallCheck:
        assert self.loader.model is not None
        return CallCheck(self.loader.model)

    async def _rehearse(self, name: str, given: Mapping[str, Any]) -> None:
        """Raise now what the call would only raise when it is its turn."""
        if self._checking >= MOST_CHECKED:
            raise TooMany(f"{MOST_CHECKED} calls are waiting to be checked already: ask again soon.")
        self._checking += 1
        try:
            await self._rehearsal.check(name, given)
        finally:
            self._checking -= 1

    def _require_model(self) -> None:
        loading = self.loader.loading
        if loading.state == "error":
            raise NotReady(f"There is no model to ask. {loading.sentence}")
        if self.loader.model is None:
            raise NotReady(f"The model is not there yet ({loading.sentence}): try again soon.")

    def _held(self, name: str, arguments: Mapping[str, Any]) -> Iterator[dict[str, Any] | None]:
        """The steps of a call, as long as it may go on."""
        spent, began = 0.0, time.perf_counter()
        # What has held the model for too long gives back what it has borrowed now, and in this thread.
        with closing(self._calls.steps(name, arguments)) as steps:
            for fact in steps:
                spent += time.perf_counter() - began
                if fact is None and spent > self._seconds:
                    raise TooMuch(
                        f"This call has held the model for {self._seconds:g} seconds, which is all: ask for less."
                    )
                yield fact
                began = time.perf_counter()

    async def _turns(self, steps: Iterator[dict[str, Any] | None]) -> dict[str, Any]:
        loop, person = asyncio.get_running_loop(), object()
        answer: asyncio.Future[dict[str, Any]] = loop.create_future()
        found: list[dict[str, Any]] = []

        def end(error: Exception | None) -> None:
            # Whoever called may have left, and the server may have ended meanwhile.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, answer, found, error)

        def step(fact: dict[str, Any] | None) -> None:
            if fact is not None:
                found.append(fact)

        self.loader.scheduler.submit(steps, person, step=step, end=end)
        try:
            return await answer
        finally:
            self.loader.scheduler.stop(person)  # who has left waits for nothing any more


def _settle(answer: asyncio.Future[dict[str, Any]], found: list[dict[str, Any]], error: Exception | None) -> None:
    if answer.done():
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(found[-1])


def function_of(name: str) -> Callable[..., dict[str, Any]]:
    """The core's own function of that name."""
    from lookahead_core.serving.calls import Calls

    return getattr(Calls, name)  # type: ignore[no-any-return]


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """What the call of that name takes, with the types it is annotated with."""
    taken = inspect.signature(function_of(name), eval_str=True).parameters
    return dict(list(taken.items())[1:])


def checked(call: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that the call knows, within what may be asked for from outside; or a sentence."""
    known = parameters_of(call)
    for name in arguments:
        if name not in known:
            raise ValueError(f"{str(name)[:40]!r} is no argument of this call; it takes {', '.join(known)}.")
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in arguments:
            raise ValueError(f"{name} is missing; this call takes {', '.join(known)}.")
    given = dict(arguments)
    for name, value in arguments.items():
        if name in CAPS and value is not None:
            given[name] = whole(name, value, 1, CAPS[name])
        if isinstance(value, str) and len(value) > MOST_CHARACTERS:
            raise ValueError(f"{name} has {len(value):,} characters, and {MOST_CHARACTERS:,} are allowed: shorten it.")
    _check_stops(arguments.get("stop"))
    return given


def _check_stops(stops: Any) -> None:
    """What is no list of strings the call itself refuses."""
    if not isinstance(stops, list):
        return
    if len(stops) > MOST_STOPS:
        raise ValueError(f"stop has {len(stops):,} strings, and {MOST_STOPS} are allowed: leave some out.")
    if any(isinstance(one, str) and len(one) > LONGEST_STOP for one in stops):
        raise ValueError(f"stop has a string of more than {LONGEST_STOP} characters: shorten it.")
