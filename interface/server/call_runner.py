"""Run the calls of programs: check their arguments, queue their passes among all others, and limit their time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from interface.server.branch_request import MOST_CHARACTERS, whole
from interface.server.call_check import CallCheck
from interface.server.callers import leave_turn
from lookahead_core.errors import LookaheadError

if TYPE_CHECKING:
    from interface.server.model_loading import ModelLoader
    from lookahead_core.serving.calls import Calls, Reading

NAMES = (
    "next_token", "continue_messages", "logprobs", "highlights", "gen_revisions", "lookahead", "generate",
    "beam_search", "compress",
)  # fmt: skip
SECONDS = 60.0
"""Seconds of model time of one call, all its steps together, after which it is ended; waiting does not count."""
AT_ONCE = 8
"""Calls that may run at once: a page's pass is shared with those of calls, or waits for at most one pass of each."""
MOST_CHECKED = 64
"""Calls that may wait to be checked; each holds its arguments in memory."""
CAPS = {
    "k": 20, "n_branch_tokens": 20, "depth": 40, "n_future_tokens": 40, "max_new_tokens": 512, "max_length": 1024,
    "n": 10, "num_beams": 20, "budget": 512,
}  # fmt: skip
"""Upper limits of whole-number arguments of calls from programs; the methods of `Calls` allow more."""
MOST_STOPS, LONGEST_STOP = 20, 200
"""The most stop strings of a call, and characters of each: they are searched for after every token."""


class NotReady(LookaheadError):
    """The LookaheadError raised while the model is not loaded yet, and for good if loading has failed; status 503."""

    status = 503


class TooMany(LookaheadError):
    """Raised, with a sentence that says which, if AT_ONCE calls are running or MOST_CHECKED wait for their check.

    The HTTP status is 429.
    """

    status = 429


class TooMuch(LookaheadError):
    """Raised if a call has used up its model time, see SECONDS; HTTP status 413."""

    status = 413


class CallRunner:
    """Runs the calls of programs by name, with `answer`, which refuses them while the model is not loaded.

    At most AT_ONCE run at once; further ones are refused. Each may use `seconds` of model time: the time of its own
    steps, without the time that it waits. Use it in the server's event loop only.
    """

    def __init__(self, loader: ModelLoader, seconds: float = SECONDS) -> None:
        self.loader = loader
        self._seconds = seconds
        self._running = self._checking = 0

    async def answer(
        self, name: str, arguments: Mapping[str, Any], on_reading: Callable[[Reading], None] | None = None
    ) -> dict[str, Any]:
        """Return the result of the call with that name, which must be one of NAMES, as JSON values.

        `on_reading` is called with each `Reading` among the call's steps, in the scheduler's thread.

        Raises NotReady without a loaded model, ValueError for invalid arguments (see `checked`), TooMany if too many
        calls run or wait for their check, NoRoom if the scheduler takes no more jobs, TooMuch once the call has used up
        its model time, and any error of the call itself. To cancel it ends the call after its running step.
        """
        self._require_model()
        valid = checked(name, arguments)
        leave_turn()
        await self._check(name, valid)
        if self._running >= AT_ONCE:
            raise TooMany(
                f"{AT_ONCE} calls are running already, which is the limit: wait for one to end and call again."
            )
        self._running += 1
        self.loader.counts.calls[name] += 1
        try:
            return await self._run(self._limited_steps(name, valid), on_reading)
        finally:
            self._running -= 1

    @cached_property
    def _calls(self) -> Calls:
        from lookahead_core.serving.calls import Calls

        assert self.loader.model is not None
        return Calls(self.loader.model)

    @cached_property
    def _call_check(self) -> CallCheck:
        assert self.loader.model is not None
        return CallCheck(self.loader.model)

    async def _check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Raise the error, if any, that the call would raise before its first pass (see `CallCheck.check`).

        Raises TooMany if MOST_CHECKED calls wait for this already.
        """
        if self._checking >= MOST_CHECKED:
            raise TooMany(f"{MOST_CHECKED} calls are waiting to be checked already: call again soon.")
        self._checking += 1
        try:
            await self._call_check.check(name, arguments)
        finally:
            self._checking -= 1

    def _require_model(self) -> None:
        """Raise NotReady if the model is not loaded yet, or if loading has failed."""
        loading = self.loader.loading
        if loading.state == "error":
            raise NotReady(f"There is no model to answer. {loading.sentence}")
        if self.loader.model is None:
            raise NotReady(f"The model is not loaded yet ({loading.sentence}): try again soon.")

    def _limited_steps(self, name: str, arguments: Mapping[str, Any]) -> Iterator[dict[str, Any] | Reading | None]:
        """Yield a call's steps: None or a `Reading` after each pass, then the result.

        Raises TooMuch in place of a step before the result if all steps so far have taken more than the allowed
        seconds of model time.
        """
        scheduler = self.loader.scheduler
        # Closing returns the call's tree to the pool at once, in the scheduler's thread.
        with closing(self._calls.steps(name, arguments)) as steps:
            for fact in steps:
                if not isinstance(fact, dict) and scheduler.job_seconds > self._seconds:
                    raise TooMuch(
                        f"This call has used the model for {self._seconds:g} seconds, which is the limit: ask for less."
                    )
                yield fact

    async def _run(
        self, steps: Iterator[dict[str, Any] | Reading | None], on_reading: Callable[[Reading], None] | None
    ) -> dict[str, Any]:
        """Run all steps in the scheduler's thread and return the result, which must be among them.

        Raises the error of a step, and NoRoom if the scheduler takes no more jobs. To cancel this stops the steps after
        the running one.
        """
        loop, caller = asyncio.get_running_loop(), object()
        answer: asyncio.Future[dict[str, Any]] = loop.create_future()
        results: list[dict[str, Any]] = []

        def end(error: Exception | None) -> None:
            # RuntimeError: the server has ended meanwhile.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, answer, results, error)

        def step(fact: dict[str, Any] | Reading | None) -> None:
            if isinstance(fact, dict):
                results.append(fact)
            elif fact is not None and on_reading is not None:
                on_reading(fact)

        self.loader.scheduler.submit(steps, caller, on_step=step, on_end=end)
        try:
            return await answer
        finally:
            self.loader.scheduler.stop(caller)


def _settle(answer: asyncio.Future[dict[str, Any]], results: list[dict[str, Any]], error: Exception | None) -> None:
    """End the future with `error`, or if that is None with the last of `results`, of which there must be one then.

    Does nothing if the future is done already, such as cancelled.
    """
    if answer.done():
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(results[-1])


def function_of(name: str) -> Callable[..., dict[str, Any]]:
    """Return the method of `Calls` with that name, as a function whose first parameter is `self`.

    It is not checked that the name is one of NAMES.
    """
    from lookahead_core.serving.calls import Calls

    return getattr(Calls, name)  # type: ignore[no-any-return]


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of the call with that name, in order and by their names, without `self`.

    Their annotations are types, and no strings.
    """
    parameters = inspect.signature(function_of(name), eval_str=True).parameters
    return dict(list(parameters.items())[1:])


def checked(call: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a program's arguments for the call with that name, those with a limit in CAPS as int.

    Raises ValueError with a sentence for an unknown or missing argument, a string of more than MOST_CHARACTERS, a list
    of too many or too long stop strings, and a value in CAPS that is neither None nor a whole number from 1 to its
    limit. Other values are not checked, and defaults are not filled in.
    """
    known = parameters_of(call)
    for name in arguments:
        if name not in known:
            raise ValueError(f"{str(name)[:40]!r} is not an argument of this call; it takes {', '.join(known)}.")
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in arguments:
            raise ValueError(f"{name} is missing; this call takes {', '.join(known)}.")
    valid = dict(arguments)
    for name, value in arguments.items():
        if name in CAPS and value is not None:
            valid[name] = whole(name, value, 1, CAPS[name])
        if isinstance(value, str) and len(value) > MOST_CHARACTERS:
            raise ValueError(
                f"{name} has {len(value):,} characters, and at most {MOST_CHARACTERS:,} are allowed: shorten it."
            )
    _check_stops(arguments.get("stop"))
    return valid


def _check_stops(stops: Any) -> None:
    """Raise ValueError for a list of more than MOST_STOPS elements, or with a string of over LONGEST_STOP characters.

    `stops` is a call's argument `stop`. Any other value passes: the call itself refuses wrong types.
    """
    if not isinstance(stops, list):
        return
    if len(stops) > MOST_STOPS:
        raise ValueError(f"stop has {len(stops):,} strings, and at most {MOST_STOPS} are allowed: leave some out.")
    if any(isinstance(one, str) and len(one) > LONGEST_STOP for one in stops):
        raise ValueError(f"stop has a string of more than {LONGEST_STOP} characters: shorten it.")
