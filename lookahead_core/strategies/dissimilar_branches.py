"""The modes "diverse" and "surprising": grow many candidates, and choose branches that are unlike each other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from lookahead_core.strategies.branch_growth import BranchLeaf, Growth
from lookahead_core.strategies.dissimilar_choice import Candidates, worth
from lookahead_core.strategies.hidden_states import compared_nodes, evaluate_with_states, mean_states
from lookahead_core.strategies.row_similarity import row_similarities

CANDIDATES_PER_BRANCH = 4
"""Number of candidates per branch: a pass of so many nodes costs little more than one of k nodes."""
MOST_CANDIDATES = 64
"""Maximum number of candidates: predictions keep no more tokens."""
CANDIDATES_PER_BEGINNING = 4
"""Maximum number of candidates with the same first token, so that a likely one leaves room for others."""
SPLIT_LEVELS = 3
"""Number of tokens up to which candidates split; after that they grow greedily."""
COMPARED_TOKENS = 8
"""Maximum number of tokens of a candidate: only the chosen ones grow further."""


def candidate_count(k: int) -> int:
    """Return the number of candidates from which k branches are chosen."""
    return min(MOST_CANDIDATES, CANDIDATES_PER_BRANCH * k)


def choose_dissimilar(growth: Growth, leaves: Sequence[BranchLeaf]) -> Iterator[list[BranchLeaf]]:
    """Grow candidates and choose at most k of them; yield the branches chosen so far after each pass and at the end.

    `leaves` are the `candidate_count` most probable first tokens, or fewer, the most probable first; after a re-opened
    typed token a leaf may have two tokens. Up to `SPLIT_LEVELS` tokens, candidates split into their children, and the
    `candidate_count` of highest `worth` are kept, at most `CANDIDATES_PER_BEGINNING` below each of `leaves`. Then all
    grow greedily up to `COMPARED_TOKENS`.
    """
    count, beginnings = candidate_count(growth.options.k), frozenset(leaf.token_ids for leaf in leaves)
    likeliest = frozenset(leaf.token_ids for leaf in leaves[: growth.options.k])
    for level in range(1, min(growth.options.depth, COMPARED_TOKENS)):
        growing = [leaf for leaf in leaves if growth.can_grow(leaf)]
        passed = any(growth.prediction_after(leaf.node) is None for leaf in growing)
        if passed:
            evaluate_with_states(growth, [leaf.node for leaf in growing])
        leaves = _split(growth, leaves, count, beginnings) if level < SPLIT_LEVELS else _continued(growth, leaves)
        if passed:
            yield _chosen(growth, leaves, likeliest)
    if evaluate_with_states(growth, [node for leaf in leaves for node in compared_nodes(leaf)]):
        yield _chosen(growth, leaves, likeliest)
    yield _chosen(growth, leaves, likeliest)


def _chosen(growth: Growth, leaves: Sequence[BranchLeaf], likeliest: frozenset[tuple[int, ...]]) -> list[BranchLeaf]:
    """Return the branches that the mode chooses from these candidates, by the hidden states and words known so far.

    `likeliest` has the k most probable first tokens, each as a path: `surprising` prefers other beginnings.
    """
    options, states = growth.options, mean_states(leaves)
    growth.compared_by = "words" if states is None else "hidden states and words"
    similarities = row_similarities([growth.context.words_of(leaf.token_ids) for leaf in leaves], states)
    candidates = Candidates(leaves, similarities)
    if options.mode == "diverse":
        indices = candidates.choose_diverse(options.k, options.contrast)
    else:
        expected = {index for index, leaf in enumerate(leaves) if _beginning(leaf, likeliest) in likeliest}
        indices = candidates.choose_surprising(options.k, options.floor, expected)
    return [leaves[index] for index in indices]


def _split(
    growth: Growth, leaves: Sequence[BranchLeaf], count: int, beginnings: frozenset[tuple[int, ...]]
) -> list[BranchLeaf]:
    """Return the `count` children of highest `worth` among those of all leaves, the highest worth first.

    `beginnings` are paths of one or two tokens; at most `CANDIDATES_PER_BEGINNING` children begin with the same one. A
    leaf that cannot grow counts as its own only child. Children that are left out add no node to the tree. The
    predictions after leaves that can grow must be known.
    """
    extensions: list[tuple[float, tuple[int, ...], BranchLeaf, int | None]] = []
    for leaf in leaves:
        beginning = _beginning(leaf, beginnings)
        so_far = worth(leaf, len(beginning))
        prediction = growth.prediction_after(leaf.node) if growth.can_grow(leaf) else None
        if prediction is None or not prediction.token_ids:
            extensions.append((so_far, beginning, leaf, None))
            continue
        extensions += [
            (so_far + logprob - prediction.logprobs[0], beginning, leaf, rank)
            for rank, logprob in enumerate(prediction.logprobs[:CANDIDATES_PER_BEGINNING])
            if logprob > -math.inf
        ]
    kept: list[BranchLeaf] = []
    begun: Counter[tuple[int, ...]] = Counter()
    for _, beginning, leaf, rank in sorted(extensions, key=lambda extension: -extension[0]):
        if len(kept) < count and begun[beginning] < CANDIDATES_PER_BEGINNING:
            begun[beginning] += 1
            kept.append(leaf if rank is None else _child(growth, leaf, rank))
    return growth.distinct(kept)


def _beginning(leaf: BranchLeaf, beginnings: frozenset[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the first token of a leaf's path, or the first two if the first alone is none of `beginnings`."""
    return leaf.token_ids[:1] if leaf.token_ids[:1] in beginnings else leaf.token_ids[:2]


def _continued(growth: Growth, leaves: Sequence[BranchLeaf]) -> list[BranchLeaf]:
    """Return the leaves, each extended by its most probable next token if it can grow."""
    children = [growth.children(leaf, 1) if growth.can_grow(leaf) else [leaf] for leaf in leaves]
    return growth.distinct([child for siblings in children for child in siblings])


def _child(growth: Growth, leaf: BranchLeaf, rank: int) -> BranchLeaf:
    """Return a leaf extended by the token of this rank, from 0, in the prediction after the leaf; it must be known."""
    prediction = growth.prediction_after(leaf.node)
    assert prediction is not None
    return growth.extended(leaf, prediction.token_ids[rank], prediction.logprobs[rank], prediction)
