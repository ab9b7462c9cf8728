"""What engines whose passes are made by servers offer besides the `Engine` protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from lookahead_core.tree import TokenTree


class ReplicaCounts(NamedTuple):
    """How the servers of a model are. The numbers tell nothing about texts."""

    answering: tuple[bool, ...]
    """Whether each server answers, in the order of their addresses."""
    moves: int
    """How often a text went on at another server because its own one no longer answered."""


class ElsewhereEngine(Protocol):
    """Protocol of engines that compute on servers."""

    def take_notice(self, tree: TokenTree) -> str:
        """Return a sentence, once, after a tree has moved since its server does not answer any more; else ""."""
        ...

    def replica_counts(self) -> ReplicaCounts:
        """Return how the servers are now; from any thread."""
        ...


def elsewhere_of(engine: Any) -> ElsewhereEngine | None:
    """Return the engine that computes on servers behind an `Engine`; None if it computes in this process."""
    found: ElsewhereEngine | None = getattr(engine, "elsewhere", None)
    return found
