"""One request of a page and what has come of it so far, for the page to fetch as it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from interface.server.branch_request import BranchRequest

PATIENCE = 20.0
"""Seconds after which a page that waits for news is told that there is none; networks cut longer silences."""
ABSENT = 30.0
"""Seconds after which a page that does not ask for news is taken to be closed."""

News = dict[str, Any]


class RequestProgress:
    """Collects, in the server's thread, what the scheduler's tells; `news` waits for what a page does not know yet."""

    def __init__(self, asked: BranchRequest, clock: Callable[[], float] = time.monotonic) -> None:
        self.asked = asked
        self._clock = clock
        self._waiting = 0
        self._present = clock()
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._number = 0
        self._state: News = {"state": "thinking"}
        self._view: tuple[int, Any] = (0, None)
        self._ahead: list[tuple[int, str, Any]] = []
        self._tokens_ahead = 0
        self._heard_all = False
        self.over = False
        self.superseded = False

    @property
    def settled(self) -> bool:
        return self._state["state"] == "settled"

    @property
    def wanted(self) -> bool:
        """Whether a page has still to hear of it: what comes after the settled view it can do without."""
        if self.over:
            return not self._heard_all and self._is_present
        return self._is_present and not (self.settled and self._waiting)

    @property
    def _is_present(self) -> bool:
        return self._waiting > 0 or self._clock() - self._present <= ABSENT

    def after(self, seconds: float, function: Any) -> None:
        self._loop.call_later(seconds, function)

    def told(self, fact: News) -> None:
        """Take what a step has brought; may be called from any thread."""
        self.in_loop(self._take, fact)

    def finish(self, **state: Any) -> None:
        """There will be no more."""
        self._state |= state
        self.over = True
        self._change()

    def supersede(self) -> None:
        """A newer request has taken this one's place: whoever waits for news of it need not."""
        self.superseded = True
        self.finish()

    def stop(self) -> None:
        """The page wants no more of it, and will not ask for its end."""
        self._heard_all = True
        self.finish(state="settled", stopped=True)

    async def news(self, seen: int) -> News:
        """What has come since `seen`, as soon as there is something."""
        self._waiting += 1
        try:
            await self._newer(seen)
        finally:
            self._waiting -= 1
            self._present = self._clock()
        self._heard_all = self.over
        return self._since(seen)

    async def _newer(self, seen: int) -> None:
        """Until there is something newer, or patience ends."""
        while self._number <= seen and not self.over:
            changed = self._changed
            try:
                await asyncio.wait_for(changed.wait(), PATIENCE)
            except asyncio.TimeoutError:
                break

    def _since(self, seen: int) -> News:
        found: News = {"number": self.asked.number, "revision": self.asked.revision, "seen": self._number}
        if self.superseded:
            return found | {"superseded": True}
        found |= self._state | {"over": self.over, "tokens_ahead": self._tokens_ahead}
        if self._view[0] > seen:
            found["view"] = self._view[1]
        found["ahead"] = {key: view for number, key, view in self._ahead if number > seen}
        return found

    def _take(self, fact: News) -> None:
        if not fact or self.over:
            return
        for name in ("state", "reading", "note"):
            if name in fact:
                self._state[name] = fact[name]
        if "view" in fact:
            self._state.pop("reading", None)
            self._view = self._number + 1, fact["view"]
        if "ahead" in fact:
            self._ahead.append((self._number + 1, *fact["ahead"]))
            self._tokens_ahead = fact["tokens_ahead"]
        self._change()

    def _change(self) -> None:
        self._number += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def in_loop(self, function: Any, *arguments: Any) -> None:
        # The server may have ended while a pass was running: nobody is there to hear then.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)
