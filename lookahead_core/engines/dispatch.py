"""The protocols of engines that dispatch whole lookaheads to a worker process, in which the model computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from lookahead_core.tree import TokenTree


T = TypeVar("T")
WAITING, COMPUTING = "Waiting for a free GPU.", "The GPU computes."
"""The values of `DispatchedLookahead.waiting`."""


class DispatchedLookahead(Protocol):
    """A lookahead that a worker computes: its predictions are inserted into trees of this process as they come.

    It may compute further predictions after those of the lookahead, for the clicks that may follow.
    """

    tokens_read: int
    """Number of the texts' tokens prefilled by the worker so far."""
    tokens_to_read: int
    """Number of the texts' tokens that the worker still has to prefill."""
    waiting: str
    """WAITING or COMPUTING: whether the worker has not begun yet, or computes."""
    over: bool
    """Whether no more predictions will come."""

    def advance(self) -> bool:
        """Wait a moment for predictions, insert those that have come, and return whether any have.

        Raises the worker's error, and WorkerLost or another NoRoom if there is no worker.
        """
        ...

    def close(self) -> None:
        """Stop the worker's computation at its next step; no more predictions are inserted."""
        ...


class LookaheadDispatcher(Protocol):
    """What `dispatcher_of` returns: begins lookaheads in a worker."""

    def begin(self, lookaheads: Sequence[tuple[Any, Any]]) -> DispatchedLookahead:
        """Begin one lookahead for each pair of document and `LookaheadOptions`, in a task of one call.

        An older one for the first document's tree is closed.
        """
        ...

    def prefetching(self, lookaheads: Sequence[tuple[Any, Any]]) -> DispatchedLookahead | None:
        """Return the lookahead whose task also computes the views that follow these, or begin one if there is none.

        That is the one that was begun in the current view of the first document, over or not. There is none if the view
        was known without a task. None if no prefetch was prepared, see `prepare`.
        """
        ...

    def prepare(self, tree: TokenTree, *, caller: Any = None, prefetch: Any = None) -> None:
        """Set for whom tasks of a tree are dispatched, and what its next lookahead prefetches in the same task.

        `caller` is passed on with each task, and `prefetch` is a `PrefetchRequest`, or None to prefetch nothing.
        """
        ...

    def steps(self, compute: Callable[[Any], Iterator[T]], first: T, *, seconds: float, caller: Any) -> Iterator[T]:
        """Yield what `compute(model)`, a generator, yields in a worker, as a task of its own.

        Where a moment passes without a result, the last one is yielded again, and `first` before there is one. If the
        worker ends, `compute` is called again. It can be pickled, as a function of a module or a partial of one, and so
        can its results. `seconds` is an upper estimate of its time, and `caller` is passed on with the task. Raises the
        errors of `compute`, and WorkerLost or another NoRoom if there is no worker.
        """
        ...


def dispatcher_of(engine: Any) -> LookaheadDispatcher | None:
    """Return the dispatcher of an `Engine`; None if the engine computes in this process."""
    found: LookaheadDispatcher | None = getattr(engine, "dispatcher", None)
    return found
