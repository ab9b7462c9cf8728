"""Leaves of a lookahead that end before their last token."""

from __future__ import annotations

from lookahead_core.prediction import Prediction
from lookahead_core.strategies.branch_growth import BranchLeaf
from lookahead_core.tree import TokenTree


def test_a_shortened_leaf_stands_at_the_node_of_its_last_token() -> None:
    tree = TokenTree()
    leaf = BranchLeaf(tree.root, (), ())
    for token_id in (5, 6, 7):
        leaf = leaf.extended(token_id, -0.5, Prediction((token_id,), (-0.5,), 0.0))
    whole = leaf.completed(3)
    short = leaf.completed(1)
    assert tree.token_ids(whole.node) == [5, 6, 7] and whole.tokens_past_end == ()
    assert tree.token_ids(short.node) == [5]
    assert (short.token_ids, short.logprobs, short.tokens_past_end, short.complete) == ((5,), (-0.5,), (6, 7), True)
