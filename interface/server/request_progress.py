"""The progress of one request: collects the results of its passes and hands new ones to the page by long polling."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from interface.server.branch_request import BranchRequest
from interface.server.callers import leave_turn
from interface.server.prefetched_views import view_key

POLL_SECONDS = 20.0
"""Seconds after which a waiting `news` returns without anything new: some networks cut connections that idle longer."""
ABSENT = 30.0
"""Seconds without a call of `news` after which the page is considered closed."""

News = dict[str, Any]


class RequestProgress:
    """One request's state, latest view and prefetched views: `add` takes them from the passes, `news` returns new ones.

    `PageService` makes it, inside the server's event loop; `clock` returns seconds. `add` and `call_in_loop` may be
    called from any thread, everything else in that loop only. `over` is whether the request has ended, `superseded`
    whether because of a newer one. The state is a dictionary: `state` ("thinking" at first), and what results and
    `finish` add, such as `note` or `sentence`.
    """

    def __init__(self, request: BranchRequest, clock: Callable[[], float] = time.monotonic) -> None:
        self.request = request
        self._clock = clock
        self._waiting = 0
        self._last_poll = self._started = clock()
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._number = 0
        self._state: News = {"state": "thinking"}
        self._view: tuple[int, Any] = (0, None)
        self._ahead: list[tuple[int, str, Any]] = []
        self._tokens_ahead = 0
        self._end_delivered = False
        self.over = False
        self.superseded = False

    @property
    def settled(self) -> bool:
        """Whether the state is `settled`: the final view was added, or the page has stopped the request.

        A request that is settled need not have ended: prefetched views may follow.
        """
        return self._state["state"] == "settled"

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for the final view: it is not there yet, and the page was here lately."""
        return not (self.over or self.settled) and self.is_present

    @property
    def seconds(self) -> float:
        """Seconds since this was made."""
        return self._clock() - self._started

    def is_prefetched(self, token_ids: Sequence[int]) -> bool:
        """Whether the view after accepting these tokens of the final view has been prefetched."""
        key = view_key(token_ids)
        return any(known == key for _, known, _ in self._ahead)

    @property
    def wanted(self) -> bool:
        """Whether the page still needs this request, so that its session should not end.

        Only if `is_present`. While the request runs, not if it is settled and `news` is waiting, since only prefetched
        views are missing then. Once it is over, not if its end was delivered: `news` has returned since, or the page
        has stopped it.
        """
        if self.over:
            return not self._end_delivered and self.is_present
        return self.is_present and not (self.settled and self._waiting)

    @property
    def is_present(self) -> bool:
        """Whether `news` is waiting, or has returned within the last ABSENT seconds, or this was made within them."""
        return self._waiting > 0 or self._clock() - self._last_poll <= ABSENT

    def call_later(self, seconds: float, function: Any) -> None:
        """Schedule a call of `function`, without arguments, in the server's event loop after this many seconds.

        Callable in that loop only. The call comes even if the request has ended meanwhile.
        """
        self._loop.call_later(seconds, function)

    def add(self, result: News) -> None:
        """Add the result of one step, as `PageSession` yields it, soon, in the server's event loop; from any thread.

        `state`, `reading` and `note` replace those of the state, `view` the latest view; `ahead` is added to the
        prefetched views. Nothing happens if the result is empty or the request is over by then.
        """
        if result:  # most passes give nothing, and waking the loop takes time from the next one
            self.call_in_loop(self._add, result)

    def finish(self, **state: Any) -> None:
        """End the request and add these fields, such as `state` and `sentence`, to its state, which else stays.

        Waiting calls of `news` return. It does not stop the passes.
        """
        self._state |= state
        self.over = True
        self._change()

    def supersede(self) -> None:
        """End the request because the page has sent a newer one; its news then have `superseded` and no state."""
        self.superseded = True
        self.finish()

    def stop(self) -> None:
        """End the request because the page has stopped it: the state is `settled`, with `stopped`.

        The end counts as delivered, see `wanted`. It does not stop the passes.
        """
        self._end_delivered = True
        self.finish(state="settled", stopped=True)

    async def news(self, seen: int, most_seconds: float = POLL_SECONDS) -> News:
        """Wait for a change with a number above `seen`; return the state, and views newer than that.

        Waits `most_seconds` at most. Returns at once if there is such a change or the request is over; `seen` is 0 at
        first. The news hold `number` and `revision` of the request, and as `seen` the number of the last change; then
        for a superseded request only `superseded`, for others the state's fields, `over`, `tokens_ahead` (tokens
        prefetched so far), `view` if it is newer than `seen`, and `ahead`, the newer prefetched views by key (see
        `PageSession.ahead_steps`), or {}.
        """
        leave_turn()
        self._waiting += 1
        try:
            await self._wait_for_change(seen, most_seconds)
        finally:
            self._waiting -= 1
            self._last_poll = self._clock()
        self._end_delivered = self.over
        return self._since(seen)

    async def _wait_for_change(self, seen: int, most_seconds: float) -> None:
        """Wait until there is a change after number `seen`, the request is over, or `most_seconds` have passed."""
        while self._number <= seen and not self.over:
            changed = self._changed
            try:
                await asyncio.wait_for(changed.wait(), most_seconds)
            except asyncio.TimeoutError:
                break

    def _since(self, seen: int) -> News:
        """Return the news after change number `seen` at once, as `news` describes them."""
        news: News = {"number": self.request.number, "revision": self.request.revision, "seen": self._number}
        if self.superseded:
            return news | {"superseded": True}
        news |= self._state | {"over": self.over, "tokens_ahead": self._tokens_ahead}
        if self._view[0] > seen:
            news["view"] = self._view[1]
        news["ahead"] = {key: view for number, key, view in self._ahead if number > seen}
        return news

    def _add(self, result: News) -> None:
        if self.over:
            return
        for name in ("state", "reading", "note"):
            if name in result:
                self._state[name] = result[name]
        if "view" in result:
            self._state.pop("reading", None)
            self._view = self._number + 1, result["view"]
        if "ahead" in result:
            self._ahead.append((self._number + 1, *result["ahead"]))
            self._tokens_ahead = result["tokens_ahead"]
        self._change()

    def _change(self) -> None:
        """Count a change and wake all waiting calls of `news`."""
        self._number += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def call_in_loop(self, function: Any, *arguments: Any) -> None:
        """Schedule a call of `function` in the server's event loop, from any thread; nothing if the loop is closed."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)
