"""Grow branches of next words below many nodes at once, with shared forward passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lookahead_core.engines.engine import Engine
from lookahead_core.strategies.branch_growth import BranchLeaf
from lookahead_core.strategies.next_word_leaves import NextWordBranches
from lookahead_core.strategies.next_word_search import node_of


def grow_words_together(engine: Engine, searches: Sequence[NextWordBranches]) -> Iterator[None]:
    """Search the next words of several lookaheads, and continue them greedily to their depth.

    A generator that yields None after each forward pass, which all lookaheads share. At its end the trees hold all
    that these lookaheads need, until nodes are pruned. The lookaheads must not re-open a typed token or ban tokens,
    and their branches must end by number of tokens alone. Raises CacheFull if a cache has no room.
    """
    searching = list(searches)
    frontier: list[tuple[BranchLeaf, NextWordBranches]] = []
    while searching or frontier:
        pending = {search: search.pending() for search in searching}
        over = [search for search in searching if not pending[search]]
        searching = [search for search in searching if pending[search]]
        frontier += [(leaf, search) for search in over for leaf in search.leaves()]
        frontier = [(search.growth.follow_known(leaf), search) for leaf, search in frontier]
        frontier = [(leaf, search) for leaf, search in frontier if search.growth.can_grow(leaf)]
        nodes = [node_of(each) for search in searching for each in pending[search]]
        nodes += [leaf.node for leaf, _ in frontier]
        if not nodes:
            return
        rows = iter(engine.evaluate(nodes))
        for search in searching:
            search.store_rows(pending[search], [next(rows) for _ in pending[search]])
            search.take_known()
        yield
