"""Branches below many nodes at once: what is known to be wanted later is grown in as few passes as one view takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lookahead_core.engines.engine import Engine, best_token
from lookahead_core.tree import Node


def grow_together(engine: Engine, origins: Sequence[Node], k: int, depth: int, stop: frozenset[int]) -> Iterator[None]:
    """The k likeliest tokens after each origin and what follows each greedily, so deep; a step for each pass.

    A lookahead below any of the origins finds all of it in the tree then.
    """
    if _evaluate(engine, origins):
        yield
    frontier = [(_below(origin, token_id), origin.depth + depth) for origin in origins for token_id in _top(origin, k)]
    while frontier := [(node, end) for node, end in frontier if node.depth < end and node.token_id not in stop]:
        if _evaluate(engine, [node for node, _ in frontier]):
            yield
        frontier = [(_below(node, best_token(node)), end) for node, end in frontier]


def _evaluate(engine: Engine, nodes: Sequence[Node]) -> bool:
    pending = list(dict.fromkeys(node for node in nodes if node.prediction is None))
    if pending:
        engine.evaluate(pending)
    return bool(pending)


def _top(node: Node, count: int) -> tuple[int, ...]:
    assert node.prediction is not None
    return node.prediction.token_ids[:count]


def _below(node: Node, token_id: int) -> Node:
    return node.tree.expand(node, token_id)
