"""Grow greedy branches below many nodes at once, in as few forward passes as one lookahead takes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from lookahead_core.engines.engine import Engine, best_token, predict
from lookahead_core.engines.server_engine import RollOut, server_engine_of
from lookahead_core.tree import Node


def grow_together(
    engine: Engine, origins: Sequence[Node], k: int, depth: int, end_token_ids: frozenset[int]
) -> Iterator[None]:
    """Grow k branches of `depth` tokens below each origin: the k most probable tokens, each continued greedily.

    A generator that yields None after each forward pass, or level of a server's answer; each serves all origins. They
    may be of several trees, and none may be a root. A branch also ends after an end token; its last node is not
    evaluated. Afterwards, until nodes are pruned, a lookahead below any origin needs no forward pass with this `k` and
    `depth` and otherwise default options. Raises CacheFull if a cache has no room.
    """
    if _evaluate(engine, origins):
        yield
    frontier = [
        (_child(origin, token_id), origin.depth + depth) for origin in origins for token_id in _top_tokens(origin, k)
    ]
    if (servers := server_engine_of(engine)) is not None:
        parts = [RollOut([node], bottom, end_token_ids) for node, bottom in frontier]
        with contextlib.closing(servers.roll_out_all(parts)) as levels:
            yield from (None for _ in levels)
        return
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
        predict(engine, pending)
    return bool(pending)


def _top_tokens(node: Node, count: int) -> tuple[int, ...]:
    """Return the ids of the `count` most probable tokens after an evaluated node, the most probable first.

    There are fewer if the node's prediction holds fewer.
    """
    assert node.prediction is not None
    return node.prediction.token_ids[:count]


def _child(node: Node, token_id: int) -> Node:
    """Return the node's child for this token, created if it does not exist."""
    return node.tree.expand(node, token_id)
