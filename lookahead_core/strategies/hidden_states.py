"""The hidden states of nodes, kept in their memos: the vectors that the output matrix is multiplied with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from lookahead_core.strategies.branch_growth import BranchLeaf, Growth
from lookahead_core.tree import Node

_NOTE_KEY = "hidden state"


def evaluate_with_states(growth: Growth, nodes: Iterable[Node]) -> bool:
    """Make the predictions and hidden states of these nodes known, in one forward pass at most.

    Returns whether it took one. An engine that has no hidden states makes predictions only. Predictions are those
    without banned tokens, as by `Growth.evaluate`.
    """
    missing = [node for node in dict.fromkeys(nodes) if not _is_noted(node) or growth.prediction_after(node) is None]
    if not missing:
        return False
    scores = growth.engine.score(missing, hidden=True)
    scores.store_predictions(missing)
    for node, row in zip(missing, scores.logprobs_of(missing), strict=True):
        growth.note_without_banned(node, row)
        state = scores.hidden_state(node)
        node.tree.memoize(node, _NOTE_KEY, None if state is None else state.float().cpu().clone())
    return True


def compared_nodes(leaf: BranchLeaf) -> list[Node]:
    """Return the nodes of a leaf's tokens whose hidden states stand for it: all but the last, which needs no pass.

    The only token of a leaf of one token stands for itself.
    """
    nodes, node = [], leaf.node
    for _ in leaf.token_ids:
        nodes.append(node)
        assert node.parent is not None
        node = node.parent
    return nodes[1:][::-1] or nodes


def mean_state(leaf: BranchLeaf) -> torch.Tensor | None:
    """Return the mean of the known hidden states of `compared_nodes`, of shape (width,); None if none is known."""
    states = [(node.memo or {}).get(_NOTE_KEY) for node in compared_nodes(leaf)]
    known = [state for state in states if state is not None]
    return torch.stack(known).mean(0) if known else None


def mean_states(leaves: Sequence[BranchLeaf]) -> torch.Tensor | None:
    """Return `mean_state` of each leaf as a tensor of shape (leaves, width); None if one of them has none."""
    states = [state for state in map(mean_state, leaves) if state is not None]
    return torch.stack(states) if states and len(states) == len(leaves) else None


def _is_noted(node: Node) -> bool:
    """Whether it is known which hidden state the node has, or that the engine has none."""
    return _NOTE_KEY in (node.memo or {})
