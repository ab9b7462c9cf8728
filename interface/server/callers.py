"""Who has sent a request: an address, and a person there; and the turn in which the request is handled."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass

PROGRAMS = "programs"
"""The person of all calls of programs from one address, unless they sign in."""


@dataclass(frozen=True)
class Caller:
    """The sender of a request; limits hold for both fields."""

    address: str = ""
    """The network address, for IPv6 its first 64 bits; "" if it is unknown."""
    person: str = ""
    """A name of an account, the id of a page, or PROGRAMS; "" if the request has none of them.

    It is unique within the address only.
    """

    @property
    def payers(self) -> tuple[Hashable, ...]:
        """For the scheduler: for whom the model time of the caller's jobs counts; nobody if the address is unknown."""
        return (self.address, self.person) if self.address else ()


CALLER: ContextVar[Caller] = ContextVar("caller", default=Caller())  # noqa: B039  # it is frozen
"""The caller of the request that is handled in this context."""
LEAVE: ContextVar[Callable[[], None]] = ContextVar("leave", default=lambda: None)
"""Ends the turn of the request that is handled in this context; see `leave_turn`."""


def leave_turn() -> None:
    """Let the next request of this caller be handled; to be called before a request waits, for the model or for news.

    A turn ends only once, and otherwise at the beginning of the response.
    """
    LEAVE.get()()
