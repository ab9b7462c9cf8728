"""Trees that calls have read before: whoever comes with the same beginning pays for the rest only."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from lookahead_core.tree import TokenTree
from lookahead_core.validation import check_integer


class TreePool:
    """At most so many trees, each with one user at a time; the longest unused ones go first.

    Those that were idle for long go when the next one comes or leaves.

    A tree holds what the model says after tokens, and nothing of who asked: an answer is the same with it and without.
    """

    def __init__(self, *, most: int = 8, seconds: float = 1800.0, clock: Callable[[], float] = time.monotonic) -> None:
        check_integer("most", most, 0, 1_000_000)
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.RLock()  # what is left unfinished may be given back in the midst of this
        self._free: list[tuple[TokenTree, float]] = []

    @contextmanager
    def borrow(self, token_ids: Sequence[int]) -> Iterator[TokenTree]:
        """The tree that holds most of these, where that is more than half of them; else a new one."""
        tree = self._take(token_ids)
        try:
            yield tree
        finally:
            self._give_back(tree)

    def __len__(self) -> int:
        return len(self._free)

    def _take(self, token_ids: Sequence[int]) -> TokenTree:
        with self._lock:
            self._forget_idle()
            held = [(_known(tree, token_ids), place) for place, (tree, _) in enumerate(self._free)]
            known, place = max(held, default=(0, 0))
            return self._free.pop(place)[0] if known * 2 > len(token_ids) else TokenTree()

    def _give_back(self, tree: TokenTree) -> None:
        with self._lock:
            self._free.append((tree, self._clock()))
            self._forget_idle()
            del self._free[: max(0, len(self._free) - self._most)]

    def _forget_idle(self) -> None:
        oldest = self._clock() - self._seconds
        self._free = [(tree, used) for tree, used in self._free if used >= oldest]


def _known(tree: TokenTree, token_ids: Sequence[int]) -> int:
    """How many of these the tree has, from the root down."""
    node, known = tree.root, 0
    for token_id in token_ids:
        if token_id not in node.children:
            break
        node, known = node.children[token_id], known + 1
    return known
