"""Token trees kept between calls, so that a call evaluates only what no earlier call with the same beginning has."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager

from lookahead_core.errors import InvalidLogits
from lookahead_core.tree import TokenTree
from lookahead_core.validation import check_integer


class TreePool:
    """Keeps at most `capacity` trees for later calls, each borrowed by one call at a time; drops the longest unused.

    Borrowed trees do not count. An answer is the same with and without the pool. It comes sooner with it, which would
    tell an owner what others have asked: a tree is lent to its owner only. All methods may be called from any thread.
    """

    def __init__(
        self, *, capacity: int = 8, max_idle_seconds: float = 1800.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Trees unused for more than `max_idle_seconds` are dropped when a tree is next borrowed or returned, and
        by `forget_idle`.

        With a `capacity` of 0 no tree is kept. `clock` returns the time in seconds.
        """
        check_integer("capacity", capacity, 0, 1_000_000)
        self._capacity = capacity
        self._max_idle_seconds = max_idle_seconds
        self._clock = clock
        self._lock = threading.RLock()  # re-entrant: garbage collection may return a tree within one of these methods
        self._free: list[tuple[TokenTree, Hashable, float]] = []
        """Each tree with its owner and the time of its return, the longest unused first."""

    @contextmanager
    def borrow(self, token_ids: Sequence[int], owner: Hashable = None) -> Iterator[TokenTree]:
        """A context manager: the owner's free tree that has the longest prefix of these tokens as a path, or a new one.

        A tree that has at most half of the tokens is not lent. The tree, also a new one, goes to the pool at the end,
        unless the call ends with InvalidLogits: then keys and values of the tree's cache may be invalid.
        """
        tree, valid = self._take(token_ids, owner), True
        try:
            yield tree
        except InvalidLogits:
            valid = False
            raise
        finally:
            if valid:
                self._return(tree, owner)

    def forget_idle(self) -> None:
        """Drop the trees that were unused for more than `max_idle_seconds`."""
        with self._lock:
            self._drop_idle()

    @property
    def free_trees(self) -> list[TokenTree]:
        """The trees that nobody has borrowed now, the longest unused first."""
        return [tree for tree, _, _ in self._free]

    def __len__(self) -> int:
        return len(self._free)

    def _take(self, token_ids: Sequence[int], owner: Hashable) -> TokenTree:
        with self._lock:
            self._drop_idle()
            own = [(tree, index) for index, (tree, its_owner, _) in enumerate(self._free) if its_owner == owner]
            candidates = [(_known_length(tree, token_ids), index) for tree, index in own]
            known, index = max(candidates, default=(0, 0))
            return self._free.pop(index)[0] if known * 2 > len(token_ids) else TokenTree()

    def _return(self, tree: TokenTree, owner: Hashable) -> None:
        with self._lock:
            self._free.append((tree, owner, self._clock()))
            self._drop_idle()
            del self._free[: max(0, len(self._free) - self._capacity)]

    def _drop_idle(self) -> None:
        oldest = self._clock() - self._max_idle_seconds
        self._free = [each for each in self._free if each[2] >= oldest]


def _known_length(tree: TokenTree, token_ids: Sequence[int]) -> int:
    """Return how many of these tokens, from the first on, are a path of the tree."""
    node, known = tree.root, 0
    for token_id in token_ids:
        if token_id not in node.children:
            break
        node, known = node.children[token_id], known + 1
    return known
