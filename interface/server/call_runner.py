"""Run the calls of programs: queue their passes among all others, and limit their number and their model time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from interface.server.call_arguments import check_tokens, checked
from interface.server.call_check import CallCheck
from interface.server.callers import CALLER, Caller, leave_turn
from interface.server.job_results import job_result
from interface.server.rate_limits import Turns
from interface.server.time_limit import limited
from lookahead_core.errors import LookaheadError

if TYPE_CHECKING:
    from interface.server.model_loading import ModelLoader
    from lookahead_core.serving.calls import Reading
    from lookahead_core.serving.tree_pool import TreePool

MOST_RUNNING = 128
"""Calls that may run at once, of all people; those of one address are at most half of them. Each holds a tree."""
MOST_CHECKED = 64
"""Calls of one person that may wait to be checked; each holds its arguments in memory."""
ALL = object()


class NotReady(LookaheadError):
    """The LookaheadError raised while the model is not loaded yet, and for good if loading has failed; status 503."""

    status = 503


class TooMany(LookaheadError):
    """Raised, with a sentence that says which, if too many calls are running, or MOST_CHECKED wait for their check.

    The HTTP status is 429.
    """

    status = 429


class CallRunner:
    """Runs the calls of programs by name, with `answer`, which refuses them while the model is not loaded.

    A person may have so many running as the settings say, an address those of several people, and all together
    MOST_RUNNING; further ones are refused. Each may use `seconds` of model time: the time of its own steps, without the
    time that it waits. Use it in the server's event loop only.
    """

    def __init__(self, loader: ModelLoader, seconds: float | None = None) -> None:
        """`seconds` are those of the loader's settings if None."""
        self.loader = loader
        self._settings = loader.settings
        self._seconds = loader.settings.call_seconds if seconds is None else seconds
        self._running: Counter[Hashable] = Counter()
        """Running calls of each caller, each address, and ALL."""
        self._checking: Counter[Caller] = Counter()
        self._check_turns = Turns(1)

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
        check_tokens(name, valid, self._settings.request_tokens)
        leave_turn()
        caller = CALLER.get()
        self._require_free(caller)  # before the check, which costs more than the refusal
        await self._check(name, valid)
        self._require_free(caller)
        holders = (ALL, caller.address, caller)
        self._running.update(holders)
        self.loader.counts.calls[name] += 1
        try:
            return await job_result(self.loader.scheduler, self._limited_steps(name, valid, caller), on_reading)
        finally:
            self._running.subtract(holders)
            for holder in holders:
                if not self._running[holder]:
                    del self._running[holder]

    def forget_idle(self) -> None:
        """Drop the trees that no call has used for long."""
        if self.loader.model is not None:
            self._tree_pool.forget_idle()

    def _require_free(self, caller: Caller) -> None:
        """Raise TooMany if the caller, its address, or all people together have as many calls running as they may."""
        person = self._settings.person_calls
        address = min(person * self._settings.address_people, MOST_RUNNING // 2)
        end = "which is the limit: wait for one to end and call again."
        if self._running[caller] >= person:
            raise TooMany(f"{person} calls of yours are running already, {end}")
        if caller.address and self._running[caller.address] >= address:
            raise TooMany(f"{address} calls from your network are running already, {end}")
        if self._running[ALL] >= MOST_RUNNING:
            raise TooMany(f"{MOST_RUNNING} calls of all people are running already, {end}")

    @cached_property
    def _tree_pool(self) -> TreePool:
        from lookahead_core.serving.tree_pool import TreePool

        return TreePool()

    @cached_property
    def _call_check(self) -> CallCheck:
        assert self.loader.model is not None
        return CallCheck(self.loader.model)

    async def _check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Raise the error, if any, that the call would raise before its first pass (see `CallCheck.check`).

        Raises TooMany if MOST_CHECKED calls of the caller wait for this already. One call of each caller is checked at
        a time, so that nobody waits for all those of another one.
        """
        caller = CALLER.get()
        if self._checking[caller] >= MOST_CHECKED:
            raise TooMany(f"{MOST_CHECKED} calls of yours are waiting to be checked already: call again soon.")
        self._checking[caller] += 1
        try:
            leave = await self._check_turns.enter(caller)
            try:
                await self._call_check.check(name, arguments)
            finally:
                leave()
        finally:
            self._checking[caller] -= 1
            if not self._checking[caller]:
                del self._checking[caller]

    def _require_model(self) -> None:
        """Raise NotReady if the model is not loaded yet, or if loading has failed."""
        loading = self.loader.loading
        if loading.state == "error":
            raise NotReady(f"There is no model to answer. {loading.sentence}")
        if loading.state == "waiting":
            raise NotReady(f"There is no model to answer yet. {loading.sentence}")
        if self.loader.model is None:
            raise NotReady(f"The model is not loaded yet ({loading.sentence}): try again soon.")

    def _limited_steps(
        self, name: str, arguments: Mapping[str, Any], caller: Caller
    ) -> Iterator[dict[str, Any] | Reading | None]:
        """Yield a call's steps: None or a `Reading` after each pass, then the result; see `limited`."""
        from lookahead_core.serving.calls import Calls

        assert self.loader.model is not None
        steps = Calls(self.loader.model, self._tree_pool, owner=caller).steps(name, arguments)
        yield from limited(self.loader.scheduler, steps, self._seconds, "call", lambda fact: isinstance(fact, dict))
