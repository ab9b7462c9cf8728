"""The protocol of engines that compute on servers: what they offer besides `Engine`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from lookahead_core.tree import Node, TokenTree

Reader = Callable[[Sequence[Generator[Any, None, None]]], Generator[Any, None, None]]
"""A function that yields the items of several generators as they come, such as `read_all`."""


class RollOut(NamedTuple):
    """The arguments of `Engine.roll_out` for some nodes."""

    nodes: Sequence[Node]
    depth: int
    stop: frozenset[int]


class ReplicaCounts(NamedTuple):
    """Which servers of a model answer, and how many texts have moved to another server. Holds nothing about texts."""

    answering: tuple[bool, ...]
    """Whether each server answers, in the order of their addresses."""
    moves: int
    """How often a text went on at another server because its own one no longer answered."""


class Gate:
    """Says when requests to servers may be made. This one is always open; others hold back what nobody waits for."""

    @property
    def closed(self) -> bool:
        """Whether a running request should be broken off, so that another one gets the rest later."""
        return False

    @contextmanager
    def turn(self, address: str) -> Iterator[bool]:
        """Context manager: wait until a request to this server may be made, and make it inside.

        It gives False if the gate was abandoned meanwhile; then no request may be made.
        """
        yield True

    def abandon(self) -> None:
        """Let whoever waits at the gate, or comes to it, make no more requests."""


OPEN = Gate()


class ServerEngine(Protocol):
    """Protocol of engines that compute on servers."""

    most: int
    """The number of likeliest tokens whose log-probabilities the servers give."""
    whole_rows: bool
    """Whether they also give those of all tokens."""
    conditional: bool
    """Whether they also give log-probabilities renormalised over tokens that a request names."""

    reader: Reader
    """Reads the answers of requests. A scheduler sets one that lets other jobs run meanwhile."""
    new_gate: Callable[[], Gate]
    """Returns the gate for requests that are to be made now. A scheduler sets one that holds back prefetching."""

    def roll_out_all(self, parts: Sequence[RollOut]) -> Generator[list[Node], None, None]:
        """See `Engine.roll_out`: grow the branches of all parts in one request for each person."""
        ...

    def take_notice(self, tree: TokenTree) -> str:
        """Return a sentence, once, after a tree has moved since its server does not answer any more; else ""."""
        ...

    def replica_counts(self) -> ReplicaCounts:
        """Return how the servers are now; from any thread."""
        ...


def server_engine_of(engine: Any) -> ServerEngine | None:
    """Return the engine that computes on servers behind an `Engine`; None if it computes in this process."""
    found: ServerEngine | None = getattr(engine, "server_engine", None)
    return found


def most_known(engine: Any) -> int | None:
    """Return the number of likeliest tokens whose odds an engine knows; None if it can know those of all tokens."""
    found = server_engine_of(engine)
    return None if found is None or found.whole_rows else found.most


def can_reopen(engine: Any) -> bool:
    """Return whether an engine can know the odds of all tokens that could replace a re-opened one (token healing)."""
    found = server_engine_of(engine)
    return found is None or found.whole_rows or found.conditional
