"""Branches of any depth: the likely ones, all of the first levels, those where the model hesitates, the best first."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence

from lookahead_core.engines.engine import Engine, prefill_in_chunks
from lookahead_core.strategies.branch_growth import BranchLeaf, BranchStart, Growth, GrowthContext, GrowthStep
from lookahead_core.strategies.decode import look
from lookahead_core.strategies.healing import ReopenedToken, healed
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.sampled_branches import sampled
from lookahead_core.tree import Node

__all__ = ["BranchLeaf", "GrowthContext", "GrowthStep", "LookaheadOptions", "ReopenedToken", "lookahead"]

HERE = GrowthContext()


def lookahead(
    engine: Engine,
    head: Node,
    options: LookaheadOptions,
    stop: frozenset[int],
    typed: ReopenedToken | None = None,
    place: GrowthContext = HERE,
) -> Iterator[GrowthStep]:
    """Grow branches below `head`, or in place of it where it is re-opened; one step for each forward pass."""
    for left in prefill_in_chunks(engine, head):
        yield GrowthStep((), left)
    growth = Growth(engine, options, stop, place)
    for leaves in (sampled if options.mode == "sampled" else _grown)(growth, head, typed):
        yield GrowthStep(tuple(leaves), start=growth.start)


def _grown(growth: Growth, head: Node, typed: ReopenedToken | None) -> Iterator[Sequence[BranchLeaf]]:
    """The likeliest first tokens, and what their mode makes of them."""
    options = growth.options
    beginnings = _first(growth, head) if typed is None else healed(growth, head, typed)
    if options.mode == "forks":
        beginnings = [leaf for leaf in beginnings if leaf.logprob >= math.log(options.cutoff or 1e-9)] or beginnings[:1]
        beginnings = beginnings[: options.split_limit]
    yield beginnings
    if beginnings:
        yield from _GROWERS[options.mode](growth, beginnings)


def _first(growth: Growth, head: Node) -> list[BranchLeaf]:
    base = BranchLeaf(head, (), ())
    growth.evaluate([base])
    said = growth.said(head)
    assert said is not None
    growth.start = BranchStart(said)
    return growth.ways(base, growth.options.k)


def _greedy(growth: Growth, leaves: Sequence[BranchLeaf]) -> Iterator[Sequence[BranchLeaf]]:
    """Each leaf on its own, always the most likely token, to the bottom."""
    # Where nothing is banned and depth alone decides, an engine may have a faster way than pass by pass.
    grow = _stepped
    if growth.plain:
        grow = _rolled if growth.place.line is None else _drafted
    yield from grow(growth, leaves)


def _rolled(growth: Growth, leaves: Sequence[BranchLeaf]) -> Iterator[list[BranchLeaf]]:
    bottom = leaves[0].node.depth - len(leaves[0].token_ids) + growth.options.depth
    for _ in growth.engine.roll_out([leaf.node for leaf in leaves], bottom, growth.stop):
        leaves = [growth.slide(leaf) for leaf in leaves]
        yield leaves
    yield [growth.slide(leaf) for leaf in leaves]


def _drafted(growth: Growth, leaves: Sequence[BranchLeaf]) -> Iterator[list[BranchLeaf]]:
    """Several tokens a pass, where what follows can be guessed from the text."""
    line_of = growth.place.line
    assert line_of is not None
    leaves = [growth.slide(leaf) for leaf in leaves]
    room = growth.options.depth
    lines = [line_of(leaf.node, room - len(leaf.token_ids)) for leaf in leaves if growth.is_open(leaf)]
    while growing := [line for line in lines if not line.over]:
        look(growing, growth.engine)
        for line in growing:
            line.take_known()
        leaves = [growth.slide(leaf) for leaf in leaves]
        yield leaves
    yield leaves


def _stepped(growth: Growth, leaves: Sequence[BranchLeaf]) -> Iterator[list[BranchLeaf]]:
    leaves = growth.distinct([growth.slide(leaf) for leaf in leaves])
    while growth.evaluate([leaf for leaf in leaves if growth.is_open(leaf)]):
        leaves = growth.distinct([growth.slide(leaf) for leaf in leaves])
        yield leaves
    yield leaves


def _every_level(growth: Growth, leaves: list[BranchLeaf]) -> Iterator[Sequence[BranchLeaf]]:
    """All ways at each of the first levels, then greedily on."""
    options = growth.options
    for _ in range(min(options.branch_levels, options.depth) - 1):
        passed = growth.evaluate([leaf for leaf in leaves if growth.is_open(leaf)])
        grown = [way for leaf in leaves for way in _ways_or_self(growth, leaf, options.k)]
        leaves = growth.distinct(grown)
        if passed:
            yield leaves
    yield from _greedy(growth, leaves)


def _ways_or_self(growth: Growth, leaf: BranchLeaf, count: int) -> list[BranchLeaf]:
    return growth.ways(leaf, count) if growth.is_open(leaf) else [leaf]


def _forks(growth: Growth, leaves: list[BranchLeaf]) -> Iterator[Sequence[BranchLeaf]]:
    """Split where another token has enough probability, run on where not; the k likeliest paths go on."""
    options = growth.options
    for level in range(1, options.depth):
        growing = [leaf for leaf in leaves if growth.is_open(leaf)]
        if not growing:
            break
        passed = growth.evaluate(growing)
        cutoff = options.cutoff * options.slope**level
        grown = [way for leaf in leaves for way in _split(growth, leaf, cutoff)]
        leaves = _likeliest(growth.distinct(grown), options.k)
        if passed:
            yield leaves
    yield leaves


def _split(growth: Growth, leaf: BranchLeaf, cutoff: float) -> list[BranchLeaf]:
    if not growth.is_open(leaf):
        return [leaf]
    said, ways = growth.said(leaf.node), growth.ways(leaf, growth.options.split_limit)
    assert said is not None
    # What is impossible is none of the ways, and comes last in a prediction.
    odds = zip(ways, map(math.exp, said.logprobs), strict=False)
    return ways[:1] + [way for way, probability in itertools.islice(odds, 1, None) if probability >= cutoff]


def _likeliest(leaves: Sequence[BranchLeaf], count: int) -> list[BranchLeaf]:
    """The most probable ones, in the order in which they came."""
    chosen = heapq.nlargest(count, range(len(leaves)), key=lambda index: leaves[index].logprob)
    return [leaves[index] for index in sorted(chosen)]


def _best_first(growth: Growth, leaves: list[BranchLeaf]) -> Iterator[Sequence[BranchLeaf]]:
    """Always grow the most probable ends, as many at once as a pass takes cheaply, until the budget is spent."""
    options, spent = growth.options, 0
    while spent < options.budget:
        growing = [leaf for leaf in leaves if growth.is_open(leaf)]
        chosen = heapq.nlargest(min(options.width, options.budget - spent), growing, key=lambda leaf: leaf.logprob)
        if not chosen:
            break
        passed = growth.evaluate(chosen)
        spent += len(chosen)
        opened = {leaf.token_ids for leaf in chosen}
        grown = [[leaf] if leaf.token_ids not in opened else growth.ways(leaf, options.k) for leaf in leaves]
        leaves = growth.distinct(list(itertools.chain.from_iterable(grown)))
        if passed:
            yield _likeliest(leaves, options.k)
    yield sorted(_likeliest(leaves, options.k), key=lambda leaf: -leaf.logprob)


_GROWERS = {"likely": _greedy, "every_level": _every_level, "forks": _forks, "best_first": _best_first}
