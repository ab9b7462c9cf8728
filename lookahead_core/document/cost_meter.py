"""Measures what a document costs from a moment on: passes, tokens, time and cache."""

from __future__ import annotations

import dataclasses
import time

from lookahead_core.document.results import Cost
from lookahead_core.engines.engine import Engine
from lookahead_core.tree import TokenTree


class CostMeter:
    """Measures the forward passes and tokens of one tree, and the wall-clock time, since the meter was made.

    A pass that computes nodes of several trees counts in full for each of them.
    """

    def __init__(self, engine: Engine, tree: TokenTree) -> None:
        self._engine = engine
        self._tree = tree
        self._began, self._before = time.perf_counter(), dataclasses.replace(tree.work)

    def cost(self) -> Cost:
        """Return the cost since the meter was made, and the slots and bytes of cache that the tree has now."""
        work, before = self._tree.work, self._before
        passes, tokens = work.passes - before.passes, work.tokens - before.tokens
        return Cost(passes, tokens, time.perf_counter() - self._began, *self._engine.cache_usage(self._tree))
