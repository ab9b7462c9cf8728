"""Limits of what a person and an address may send in a minute, and of what is handled at once."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from weakref import WeakValueDictionary

from interface.server.callers import Caller
from lookahead_core.errors import LookaheadError
from lookahead_core.settings import Settings

MOST_KEYS = 20_000
"""People and addresses whose budgets are kept; the longest unused are forgotten first."""
PERSON_TURNS, ADDRESS_TURNS = 4, 16
"""Requests of one person, and of one address, that are handled at once; those that wait for the model do not count."""
REFUSAL_GAP = 0.005
"""Seconds between two refusals to one address: to refuse costs time too, which others lose."""
LONGEST_REFUSAL = 5.0
"""Seconds after which a refusal is sent in any case."""
REQUEST_GAP = 0.025
"""Seconds between two requests of one address, on average, while other addresses send requests too."""
BURST = 100
"""Requests of one address that may come at once before REQUEST_GAP is kept, about those that open a page."""
LONGEST_WAIT = 20.0
"""Seconds that a request waits at most because of REQUEST_GAP; if it would be more, the request is refused."""
OTHERS_WITHIN = 10.0
"""Seconds after its last request for which an address counts as one that sends requests."""


class TooOften(LookaheadError):
    """Raised if a person or an address has sent too much within a minute; HTTP status 429."""

    status = 429

    def __init__(self, sentence: str, retry_after: float) -> None:
        super().__init__(sentence)
        self.retry_after = math.ceil(retry_after)


class Budgets:
    """An amount for each key that is used up by `take`, and comes back evenly within a minute."""

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns the time in seconds."""
        self._most = float(per_minute)
        self._clock = clock
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, key: Hashable, amount: float = 1.0) -> float:
        """Use an amount, if there is so much left, and return 0.0; else the seconds until there is.

        An amount above the whole budget is used as the whole budget.
        """
        now, amount = self._clock(), min(amount, self._most)
        left, then = self._left.pop(key, (self._most, now))
        left = min(self._most, left + (now - then) * self._most / 60)
        missing = amount - left
        self._left[key] = (left if missing > 0 else left - amount), now
        if len(self._left) > MOST_KEYS:
            self._left.popitem(last=False)
        return missing * 60 / self._most if missing > 0 else 0.0

    def give_back(self, key: Hashable, amount: float) -> None:
        """Undo a `take` that returned 0.0."""
        left, then = self._left.get(key, (self._most, self._clock()))
        self._left[key] = min(self._most, left + min(amount, self._most)), then


class Turns:
    """Has at most `width` requests with the same key handled at once; further ones wait, in the order they came."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._free: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()

    async def enter(self, key: Hashable) -> Callable[[], None]:
        """Wait for a turn; return the function that ends it, which may be called again without effect."""
        free = self._free.get(key)
        if free is None:
            free = self._free[key] = asyncio.Semaphore(self._width)
        await free.acquire()
        held = [free]

        def leave() -> None:
            if held:
                held.pop().release()

        return leave


class Pace:
    """Spreads the requests of an address over time while other addresses send some too: each takes processor time.

    A request of an address that is alone need not wait, and what it sent while it was alone does not count later.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns the time in seconds."""
        self._clock = clock
        self._addresses: OrderedDict[str, tuple[float, float]] = (
            OrderedDict()
        )  # time of the last request, turn of the next

    def reserve(self, address: str) -> float:
        """Count a request of an address, and return for how many seconds it must wait.

        If that is LONGEST_WAIT or more, it must be refused, and is not counted.
        """
        now = self._clock()
        rested = now - (BURST - 1) * REQUEST_GAP
        _, turn = self._addresses.pop(address, (now, rested))
        others = next(reversed(self._addresses.values()), None)
        is_only_address = others is None or now - others[0] > OTHERS_WITHIN
        turn = rested if is_only_address else max(turn, rested)
        wait = max(0.0, turn - now)
        counted = not is_only_address and wait < LONGEST_WAIT
        self._addresses[address] = now, turn + REQUEST_GAP if counted else turn
        if len(self._addresses) > MOST_KEYS:
            self._addresses.popitem(last=False)
        return wait


class CallerLimits:
    """The limits of requests and characters, and the turns, of all people and addresses.

    An address has `address_people` times the limits of a person. Use it in the server's event loop only.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        requests, characters = settings.person_requests, settings.person_characters
        self._people = settings.address_people
        self._requests, self._address_requests = (Budgets(requests * many, clock) for many in (1, self._people))
        self._bytes, self._address_bytes = (Budgets(characters * many, clock) for many in (1, self._people))
        self._sentences = {
            "requests": f"at most {requests:,} requests a minute are allowed",
            "characters": f"at most {characters:,} characters a minute are allowed",
        }
        self._person_turns, self._address_turns = Turns(PERSON_TURNS), Turns(ADDRESS_TURNS)
        self._pace = Pace(clock)
        self._next_refusal: OrderedDict[str, float] = OrderedDict()
        self._clock = clock

    def admit_address(self, address: str) -> None:
        """Count a request of an address; raise TooOften if it is one too many."""
        self._require(self._address_requests.take(address), "requests", address_wide=True)

    def admit_bytes(self, address: str, size: int) -> None:
        """Count the bytes of a body for its address; raise TooOften if they are too many."""
        self._require(self._address_bytes.take(address, size), "characters", address_wide=True)

    def admit_person(self, caller: Caller, size: int) -> None:
        """Count a request and the bytes of its body, which `admit_bytes` has counted, for its person, if it has one.

        Raises TooOften if it is too much for the person; then the address has its bytes back, so that one person cannot
        use up what others at the address may send.
        """
        if not caller.person:
            return
        try:
            self._require(self._requests.take(caller), "requests")
            self._require(self._bytes.take(caller, size), "characters")
        except TooOften:
            self._address_bytes.give_back(caller.address, size)
            raise

    async def pace_request(self, address: str) -> None:
        """Wait until a request of this address may be handled, see `Pace`; raise TooOften if that is too long."""
        wait = self._pace.reserve(address)
        if wait >= LONGEST_WAIT:
            raise TooOften(
                f"That is too much at once: at most {1 / REQUEST_GAP:,.0f} requests a second are allowed for an "
                f"address while others use this server. Wait for {math.ceil(wait)} seconds.",
                wait,
            )
        if wait > 0:
            await asyncio.sleep(wait)

    async def pace_refusal(self, address: str) -> None:
        """Wait until the next refusal to this address may be sent, see REFUSAL_GAP and LONGEST_REFUSAL."""
        now = self._clock()
        at = max(now, self._next_refusal.pop(address, now)) + REFUSAL_GAP
        self._next_refusal[address] = at
        if len(self._next_refusal) > MOST_KEYS:
            self._next_refusal.popitem(last=False)
        await asyncio.sleep(min(at - now, LONGEST_REFUSAL))

    async def enter(self, caller: Caller) -> Callable[[], None]:
        """Wait until it is the turn of a request of this caller; return the function that ends the turn."""
        leave_person = await self._person_turns.enter(caller)
        try:
            leave_address = await self._address_turns.enter(caller.address)
        except BaseException:
            leave_person()
            raise

        def leave() -> None:
            leave_address()
            leave_person()

        return leave

    def _require(self, seconds: float, kind: str, *, address_wide: bool = False) -> None:
        if seconds > 0:
            whom = f"for a person, and {self._people} times as many for an address" if address_wide else "for a person"
            raise TooOften(
                f"That is too much at once: {self._sentences[kind]} {whom}. Wait for {math.ceil(seconds)} seconds.",
                seconds,
            )
