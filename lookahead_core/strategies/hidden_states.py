"""The last hidden states of nodes, kept in their memos, as a measure of what branches mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from lookahead_core.strategies.branch_growth import BranchLeaf, Growth
from lookahead_core.tree import Node

_NOTE_KEY = "hidden state"


def evaluate_with_states(growth: Growth, nodes: Iterable[Node]) -> bool:
    """Compute the predictions and hidden states of these nodes, as far as they are not known; return whether any.

    Takes at most one forward pass. An engine without hidden states makes predictions only. Predictions are those
    without banned tokens, as by `Growth.evaluate`.
    """
    missing = [node for node in dict.fromkeys(nodes) if not _is_noted(node) or growth.prediction_after(node) is None]
    if not missing:
        return False
    scores = growth.engine.score(missing, hidden=True)
    scores.store_predictions(missing)
    if growth.exclusion:
        for node, row in zip(missing, scores.logprobs_of(missing), strict=True):
            growth.note_without_banned(node, row)
    for node in missing:
        state = scores.hidden_state(node)
        node.tree.memoize(node, _NOTE_KEY, None if state is None else state.float().cpu().clone())
    return True


def compared_nodes(leaf: BranchLeaf) -> list[Node]:
    """Return the nodes whose hidden states represent a leaf: those of all its tokens but the last, from the first on.

    The last token's state would need a further pass. A leaf of one token is represented by that token.
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
    """Return the `mean_state` of all leaves, of shape (leaves, width); None if a leaf has none, or without leaves."""
    states = [state for state in map(mean_state, leaves) if state is not None]
    return torch.stack(states) if states and len(states) == len(leaves) else None


def _is_noted(node: Node) -> bool:
    """Whether the node's memo has its hidden state, or a note that the engine has none."""
    return _NOTE_KEY in (node.memo or {})
