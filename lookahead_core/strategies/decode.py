"""Decoding: grow several continuations side by side, with one forward pass for all of them and their drafts."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from lookahead_core.engines.engine import Engine, NodeScores, group_by_tree
from lookahead_core.errors import CacheFull
from lookahead_core.speculation.draft_and_verify import Speculation
from lookahead_core.speculation.draft_value import PassLoad
from lookahead_core.strategies.continuation import Continuation, GeneratedToken
from lookahead_core.tree import Node


def decode(engine: Engine, continuations: Sequence[Continuation]) -> Iterator[list[tuple[int, GeneratedToken]]]:
    """Grow all continuations until they are over; a generator of lists of (index in `continuations`, token) pairs.

    Each list has the next token of each continuation that knows it, sorted by index, and is never empty; a forward pass
    is made only when no continuation knows one. If a continuation's options exclude every token, the others go on; when
    all are over, the RuledOutError with the lowest index is raised. CacheFull is raised as by `advance_in_one_pass`.
    """
    for continuation in continuations:
        continuation.choose_from_kept_row()
    while growing := [(index, one) for index, one in enumerate(continuations) if not one.over]:
        if known := [(index, one) for index, one in growing if one.next_token is not None]:
            yield [(index, one.take_next()) for index, one in known]
        else:
            advance_in_one_pass([one for _, one in growing], engine)
    for continuation in continuations:
        if continuation.error is not None:
            raise continuation.error


def advance_in_one_pass(continuations: Sequence[Continuation], engine: Engine) -> None:
    """Make one forward pass for all continuations, of which none may be over and at least one must be given.

    Drafts are made and verified in it. Afterwards each continuation knows its next token, and often further ones, but
    has taken none; or it is over because its options exclude every token. The nodes of rejected drafts are removed,
    also when an exception is raised: CacheFull, if the cache has no room even without drafts.
    """
    rejected: list[Node] = []
    try:
        rejected = _evaluate_and_accept(continuations, engine)
    finally:
        # Nodes made for drafts are removed first: every node that stays in the cache then has its whole path there.
        _remove(engine, [node for speculation in _speculations(continuations) for node in speculation.discard_draft()])
        if rejected:
            engine.free(rejected)


def _evaluate_and_accept(continuations: Sequence[Continuation], engine: Engine) -> list[Node]:
    """Evaluate the continuations' nodes and drafts, let each continuation accept drafts, and record the pass.

    Its cost is recorded in `engine.pass_costs`, unless it prefilled more than one token of a text or was shared, see
    `NodeScores.shared`. Returns the rejected draft nodes that were in the tree before, without a prediction and without
    a cache slot: they stay in the tree, and the caller frees the slots that the pass gave them. Other rejected nodes
    are left to `_remove`.
    """
    started = time.perf_counter()
    # A pass that prefills a prompt says nothing about the cost of a pass.
    is_decoding_pass = all(len(engine.nodes_to_prefill(one.node)) <= 1 for one in continuations)
    nodes: list[Node] = []
    load = PassLoad(len(continuations), _max_draft_nodes(engine, continuations))
    for continuation in continuations:
        nodes += continuation.nodes_to_evaluate(load)
    reused = [
        node
        for speculation in _speculations(continuations)
        for node in speculation.reused_nodes
        if engine.nodes_to_prefill(node)
    ]
    pass_started = time.perf_counter()
    scores = _score(engine, continuations, list(dict.fromkeys(nodes)))
    accepted = {id(one): one.accepted_greedily(scores) for one in continuations if one.is_greedy}
    seconds = time.perf_counter() - pass_started - scores.waited
    if greedy := [node for path in accepted.values() for node in path]:
        scores.store_predictions(greedy)
    for continuation in continuations:
        if not continuation.is_greedy:
            accepted[id(continuation)] = continuation.choose_and_accept(scores)
    for continuation in continuations:
        continuation.note_pass(accepted[id(continuation)], scores, seconds)
    if is_decoding_pass and not scores.shared:
        # Drafting and predictions are part of a pass's cost: fewer passes need them less often.
        engine.pass_costs.record(len(scores.nodes), time.perf_counter() - started - scores.waited)
    return [node for node in reused if node.prediction is None]


def _max_draft_nodes(engine: Engine, continuations: Sequence[Continuation]) -> float:
    """Return how many draft nodes a pass may have so that all other rows are, bit for bit, the same as without drafts.

    Infinite if the engine sets no limit (`Engine.batch_invariant_rows`); negative if the pass exceeds it even without
    drafts.
    """
    if engine.batch_invariant_rows is None:
        return math.inf
    return engine.batch_invariant_rows - sum(max(1, len(engine.nodes_to_prefill(one.node))) for one in continuations)


def _speculations(continuations: Sequence[Continuation]) -> list[Speculation]:
    """Return the speculations of those continuations that have one, in order."""
    return [one.speculation for one in continuations if one.speculation is not None]


def _score(engine: Engine, continuations: Sequence[Continuation], nodes: list[Node]) -> NodeScores:
    """Make the pass over `nodes` and return its scores; if the cache is full, discard all drafts and make it without.

    `nodes` are the continuations' own nodes and their draft nodes, each once. Without drafts, the scores are those of
    the continuations' own nodes only. CacheFull is raised if there are no drafts to discard, or if the cache is full
    even so. The scores have hidden states if a drafter needs them and the engine provides them.
    """
    speculations = _speculations(continuations)
    hidden = any(speculation.needs_hidden for speculation in speculations)
    try:
        return engine.score(nodes, hidden=hidden)
    except CacheFull:
        if not any(len(speculation.drafted) > 1 for speculation in speculations):
            raise
        _remove(engine, [node for speculation in speculations for node in speculation.discard_draft()])
        return engine.score(list(dict.fromkeys(one.node for one in continuations)), hidden=hidden)


def _remove(engine: Engine, draft_nodes: Sequence[Node]) -> None:
    """Remove from tree and cache those of the draft nodes that were rejected, or that no pass has evaluated.

    They are known by having no prediction: `Engine.score` stores none, and accepted nodes have got theirs since. Nodes
    with children that stay, the tree's `head` and the growers' last nodes are kept. `draft_nodes` may be of several
    trees and holds each node once.
    """
    for tree, nodes in group_by_tree(draft_nodes).items():
        if removed := tree.prune_unevaluated(nodes):
            engine.free(removed)
