"""Grow greedy branches below many nodes at once, in as few forward passes as one lookahead takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lookahead_core.engines.engine import Engine, best_token
from lookahead_core.tree import Node


def grow_together(
    engine: Engine, origins: Sequence[Node], k: int, depth: int, end_token_ids: frozenset[int]
) -> Iterator[None]:
    """Grow the k most probable tokens after each origin, and their greedy continuations down to `depth` tokens.

    `depth` counts from the origin, which must not be a root. A continuation also ends after an end token. A generator
    that yields None after each forward pass. Afterwards a lookahead below any origin, with this `k` and `depth` and
    otherwise default options, needs no forward pass.
    """
    if _evaluate(engine, origins):
        yield
    frontier = [
        (_child(origin, token_id), origin.depth + depth) for origin in origins for token_id in _top_tokens(origin, k)
    ]
    while frontier := [
        (node, bottom) for node, bottom in frontier if node.depth < bottom and node.token_id not in end_token_ids
    ]:
        if _evaluate(engine, [node for node, _ in frontier]):
            yield
        frontier = [(_child(node, best_token(node)), bottom) for node, bottom in frontier]


def _evaluate(engine: Engine, nodes: Sequence[Node]) -> bool:
    """Evaluate those of the nodes that have no prediction yet, in one forward pass; return whether there were any."""
    pending = list(dict.fromkeys(node for node in nodes if node.prediction is None))
    if pending:
        engine.evaluate(pending)
    return bool(pending)


def _top_tokens(node: Node, count: int) -> tuple[int, ...]:
    """Return the `count` most probable tokens after an evaluated node, the most probable first."""
    assert node.prediction is not None
    return node.prediction.token_ids[:count]


def _child(node: Node, token_id: int) -> Node:
    """Return the node's child for this token, created if it does not exist."""
    return node.tree.expand(node, token_id)
