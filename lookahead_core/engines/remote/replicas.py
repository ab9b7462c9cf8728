"""Replicas: the servers of one model; choosing one for a person's texts, and checking those that do not answer."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lookahead_core.engines.remote.completions import Completions
from lookahead_core.engines.remote.placement import ranking
from lookahead_core.engines.remote.server_errors import Retries, ServerFault

FIRST_CHECK = 0.5
"""Seconds until a replica that is out is checked for the first time; each further wait is twice as long."""
LONGEST_CHECK = 30.0
"""Seconds between two checks at most: so long after its return a replica may stay unused."""


@dataclass(eq=False)
class Replica:
    """One server of the model."""

    completions: Completions
    reason: str = ""
    """A sentence while it is out, which says why: it does not answer, or serves another model. Empty while it is in."""

    @property
    def address(self) -> str:
        return self.completions.connection.address


class Replicas:
    """The servers of one model, from any thread. Texts of one key stay on one server while it answers.

    A server that does not answer is taken out, if it is not the only one. A thread then checks it with back-off until
    it serves the model again; after that its texts return to it.
    """

    def __init__(self, replicas: Sequence[Replica], check: Callable[[Replica], str]) -> None:
        """`check` makes a request to a replica that is out; it returns why it stays out, or "" to take it in again."""
        self.all = tuple(replicas)
        self._by_address = {replica.address: replica for replica in replicas}
        self._check = check
        self._lock = threading.Lock()
        self._closed = threading.Event()
        for replica in replicas:
            if replica.reason:
                self._watch(replica)

    @property
    def address(self) -> str:
        """The addresses of all replicas, separated by commas."""
        return ", ".join(self._by_address)

    @property
    def answering(self) -> int:
        """The number of replicas that are in."""
        return sum(not replica.reason for replica in self.all)

    def choose(self, key: str) -> Replica:
        """Return the replica for the texts of a key: its first choice among those that are in, else its first one."""
        ranked = [self._by_address[address] for address in ranking(tuple(self._by_address), key)]
        return next((replica for replica in ranked if not replica.reason), ranked[0])

    def after_fault(self, replica: Replica, fault: ServerFault, retries: Retries) -> None:
        """Take a replica out, so that its next choice gets the request, or wait before the same one gets it again.

        A replica is taken out at once if it cannot be reached, and after the last attempt that `retries` allows. Raises
        the fault if there is no further attempt and no other replica.
        """
        others = any(not each.reason for each in self.all if each is not replica)
        if others and (fault.lost or retries.is_last(fault)):
            self._take_out(replica, str(fault))
            retries.note_progress()
            return
        if len(self.all) > 1 and retries.is_last(fault):
            self._take_out(replica, str(fault))
        retries.wait_after(fault)

    def close(self) -> None:
        """Close all connections, and end the checks."""
        self._closed.set()
        for replica in self.all:
            replica.completions.connection.close()

    def _take_out(self, replica: Replica, reason: str) -> None:
        with self._lock:
            was_in, replica.reason = not replica.reason, reason
        if was_in:
            self._watch(replica)

    def _watch(self, replica: Replica) -> None:
        # The thread holds no reference to this object: replicas that nobody uses any more are not checked for ever.
        arguments = (weakref.ref(self), replica, self._check, self._closed)
        threading.Thread(target=_check_until_in, args=arguments, name="replica", daemon=True).start()


def _check_until_in(
    owner: weakref.ref[Replicas], replica: Replica, check: Callable[[Replica], str], closed: threading.Event
) -> None:
    """Check a replica with back-off, and take it in when it serves the model again."""
    seconds = FIRST_CHECK
    while not closed.wait(seconds) and owner() is not None:
        try:
            replica.reason = check(replica)
        except Exception as error:
            replica.reason = str(error) or type(error).__name__
        if not replica.reason:
            return
        seconds = min(seconds * 2, LONGEST_CHECK)
