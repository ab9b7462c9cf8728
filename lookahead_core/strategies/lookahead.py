"""The lookahead modes, and the search towards a word. Sampled and dissimilar branches have files of their own."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from lookahead_core.engines.engine import Engine, prefill_in_chunks
from lookahead_core.strategies.branch_growth import BranchLeaf, BranchStart, Growth, GrowthContext, GrowthStep
from lookahead_core.strategies.decode import advance_in_one_pass
from lookahead_core.strategies.dissimilar_branches import candidate_count, choose_dissimilar
from lookahead_core.strategies.healing import ReopenedToken, healed_leaves
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.next_word_leaves import word_leaves
from lookahead_core.strategies.sampled_branches import grow_sampled
from lookahead_core.strategies.word_search import WordSearch
from lookahead_core.tree import Node

NO_CONTEXT = GrowthContext()
"""The default context: the model reads the whole text, branches end by number of tokens, and nothing is drafted."""


def lookahead(
    engine: Engine,
    head: Node,
    options: LookaheadOptions,
    end_token_ids: frozenset[int],
    typed: ReopenedToken | None = None,
    context: GrowthContext = NO_CONTEXT,
) -> Iterator[GrowthStep]:
    """Grow branches below the node `head`, the end of the text; a generator of steps, of which the last is the result.

    There is a step after each chunk of prefill, when the first tokens are known, after each further forward pass, and
    at the end, also if no pass was needed. With `typed`, `head` is the last typed token and is re-opened: branches
    begin below its parent. `head` must not be the root, and with `typed` no child of the root. Raises CacheFull if the
    cache has no room.
    """
    for tokens_to_read in prefill_in_chunks(engine, head):
        yield GrowthStep((), tokens_to_read)
    growth = Growth(engine, options, end_token_ids, context)
    grow = _grow_towards if options.towards else grow_sampled if options.mode == "sampled" else _grow
    for leaves in grow(growth, head, typed):
        yield GrowthStep(tuple(leaves), start=growth.start, word=growth.word_odds, compared_by=growth.compared_by)


def continue_greedily(growth: Growth, leaf: BranchLeaf) -> Iterator[BranchLeaf]:
    """Extend a leaf greedily until it can grow no more; yield it after each pass and at the end."""
    if not growth.can_grow(leaf):
        yield leaf
        return
    for (grown,) in _grow_likely(growth, [leaf]):
        yield grown


def _grow_towards(growth: Growth, head: Node, typed: ReopenedToken | None) -> Iterator[Sequence[BranchLeaf]]:
    """Search for the word of the option `towards`; after each round yield the k likeliest leaves that reach it so far.

    While there is none, the leaves of the k likeliest first tokens are yielded. If the search finds none, these leaves
    are then continued as in the mode "likely". Sets `growth.word_odds`.
    """
    assert growth.context.words is not None
    search = WordSearch(growth, growth.context.words, head, typed)
    first: list[BranchLeaf] = []
    for _ in search.passes():
        growth.word_odds = search.odds
        # Their predictions are known from the first round.
        first = first or _beginnings(growth, head, typed, growth.options.k)
        yield search.leaves or first
    if not search.leaves and first:
        yield from _grow_likely(growth, first)


def _grow(growth: Growth, head: Node, typed: ReopenedToken | None) -> Iterator[Sequence[BranchLeaf]]:
    """Grow branches in any mode but "sampled"; yield the leaves of the first tokens, then what the mode yields.

    With `odds="words"`, the first leaves are those of the likeliest first words, yielded after each pass of their
    search.

    In mode "forks", of the first leaves only those whose path has at least the probability `cutoff` are kept, at most
    `split_limit`; the most probable one in any case. If there are no first leaves, since all tokens have probability 0,
    an empty list is all that is yielded.
    """
    options = growth.options
    if options.odds == "words":
        leaves: list[BranchLeaf] = []
        for leaves in word_leaves(growth, head, typed):
            yield leaves
        if leaves:
            yield from _grow_likely(growth, leaves)
        return
    count = candidate_count(options.k) if options.mode in _DISSIMILAR else options.k
    if options.mode == "every_level" and options.branch_total:
        count = _first_count(options.branch_total, min(options.branch_levels, options.depth))
    leaves = _beginnings(growth, head, typed, count)
    if options.mode == "forks":
        leaves = [leaf for leaf in leaves if leaf.logprob >= math.log(options.cutoff or 1e-9)] or leaves[:1]
        leaves = leaves[: options.split_limit]
    yield leaves[: options.k] if options.mode in _DISSIMILAR else leaves
    if leaves:
        yield from _GROW_BY_MODE[options.mode](growth, leaves)


def _beginnings(growth: Growth, head: Node, typed: ReopenedToken | None, count: int) -> list[BranchLeaf]:
    """Return the `count` likeliest first leaves: those of `_first_leaves`, or with `typed` of `healed_leaves`."""
    return _first_leaves(growth, head, count) if typed is None else healed_leaves(growth, head, typed, count)


def _first_leaves(growth: Growth, head: Node, count: int) -> list[BranchLeaf]:
    """Return the leaves of the `count` likeliest tokens after `head`, the likeliest first, and set `growth.start`.

    There are fewer if fewer tokens have a probability above 0. Takes one forward pass if the prediction after `head` is
    not known yet.
    """
    base = BranchLeaf(head, (), ())
    growth.evaluate([base])
    prediction = growth.prediction_after(head)
    assert prediction is not None
    growth.start = BranchStart(prediction, excluded=growth.excluded_after(head))
    return growth.children(base, count)


def _grow_likely(growth: Growth, leaves: Sequence[BranchLeaf]) -> Iterator[Sequence[BranchLeaf]]:
    """Extend each leaf greedily until it can grow no more; yield all leaves after each pass and at the end.

    `leaves` are one or more, of paths below the same node. Of leaves whose paths become equal only the first is kept.
    """
    # Without bans and with depth as the only end, an engine may be faster than with one pass per level.
    grow = _grow_level_by_level
    if growth.is_greedy_to_depth:
        grow = _roll_out if growth.context.drafted_continuation is None else _grow_with_drafts
    yield from grow(growth, leaves)


def _roll_out(growth: Growth, leaves: Sequence[BranchLeaf]) -> Iterator[list[BranchLeaf]]:
    """Let `Engine.roll_out` extend all leaves greedily; yield all leaves after each pass and at the end.

    `leaves` must not be empty, and all must begin below the same base node. `growth.is_greedy_to_depth` must be True.
    """
    bottom = leaves[0].node.depth - len(leaves[0].token_ids) + growth.options.depth
    for _ in growth.engine.roll_out([leaf.node for leaf in leaves], bottom, growth.end_token_ids):
        leaves = growth.follow_all_known(leaves)
        yield leaves
    yield growth.follow_all_known(leaves)


def _grow_with_drafts(growth: Growth, leaves: Sequence[BranchLeaf]) -> Iterator[list[BranchLeaf]]:
    """Extend leaves greedily with drafts, so that a pass may add several tokens to a leaf.

    Yields all leaves after each pass and at the end. Needs a context with `drafted_continuation`, and
    `growth.is_greedy_to_depth`.
    """
    continuation_after = growth.context.drafted_continuation
    assert continuation_after is not None
    leaves = growth.follow_all_known(leaves)
    depth = growth.options.depth
    continuations = [
        continuation_after(leaf.node, depth - len(leaf.token_ids)) for leaf in leaves if growth.can_grow(leaf)
    ]
    while growing := [continuation for continuation in continuations if not continuation.over]:
        advance_in_one_pass(growing, growth.engine)
        for continuation in growing:
            continuation.take_all_known()
        leaves = growth.follow_all_known(leaves)
        yield leaves
    yield leaves


def _grow_level_by_level(growth: Growth, leaves: Sequence[BranchLeaf]) -> Iterator[list[BranchLeaf]]:
    """Extend leaves greedily, at most one forward pass per level; yield all leaves after each pass and at the end.

    Of leaves whose paths become equal only the first is kept, see `Growth.distinct`.
    """
    leaves = growth.follow_all_known(leaves)
    while growth.evaluate([leaf for leaf in leaves if growth.can_grow(leaf)]):
        leaves = growth.follow_all_known(leaves)
        yield leaves
    yield leaves


def _grow_every_level(growth: Growth, leaves: list[BranchLeaf]) -> Iterator[Sequence[BranchLeaf]]:
    """Split every leaf that can grow, up to level `branch_levels`, then extend all leaves greedily.

    Each leaf is split into k, or with `branch_total` so that all leaves of the last level together are that many. The
    leaves passed in are level 1. Yields all leaves after each pass and at the end.
    """
    options = growth.options
    totals = _even_parts(options.branch_total, len(leaves))
    for levels in range(min(options.branch_levels, options.depth) - 1, 0, -1):
        passed = growth.evaluate([leaf for leaf in leaves if growth.can_grow(leaf)])
        grown: list[tuple[BranchLeaf, int]] = []
        for leaf, total in zip(leaves, totals, strict=True):
            children = _children_or_self(growth, leaf, _first_count(total, levels) if total else options.k)
            grown += zip(children, _even_parts(total, len(children)), strict=True)
        total_of = {id(leaf): total for leaf, total in grown}
        leaves = growth.distinct([leaf for leaf, _ in grown])
        totals = [total_of[id(leaf)] for leaf in leaves]
        if passed:
            yield leaves
    yield from _grow_likely(growth, leaves)


def _first_count(total: int, levels: int) -> int:
    """Return the least number whose power of `levels` is at least `total`: how many nodes the first level needs."""
    return next(count for count in itertools.count(1) if count**levels >= total)


def _even_parts(total: int, count: int) -> list[int]:
    """Return `count` whole numbers that add up to `total` and differ by at most one, the larger ones first."""
    return [total // count + (index < total % count) for index in range(count)] if count else []


def _children_or_self(growth: Growth, leaf: BranchLeaf, count: int) -> list[BranchLeaf]:
    """Return the leaf's `count` most probable children (`Growth.children`), or the leaf itself if it cannot grow.

    The prediction after a leaf that can grow must be known. There are fewer children if it holds fewer tokens, and none
    if all tokens that are not banned have probability 0.
    """
    return growth.children(leaf, count) if growth.can_grow(leaf) else [leaf]


def _grow_forks(growth: Growth, leaves: list[BranchLeaf]) -> Iterator[Sequence[BranchLeaf]]:
    """Extend leaves level by level, splitting some of them; keep the k rows with the highest `_fork_logprob` each time.

    No path left out would have a higher share beside the kept ones than any of these has. A leaf splits if more tokens
    than the most probable one have at least the cutoff as probability after it. The cutoff is `cutoff` times `slope` at
    the first level here, and `slope` times as high at each further one. Yields the kept leaves after each pass and at
    the end.
    """
    options = growth.options
    # A typed token inserts nothing: the first leaves below it have two tokens, and forks begin after them.
    first_sizes = {leaf.token_ids[:1]: len(leaf.token_ids) for leaf in leaves}

    def rank(leaf: BranchLeaf) -> float:
        return _fork_logprob(leaf, first_sizes.get(leaf.token_ids[:1], 1))

    for level in range(1, options.depth):
        growing = [leaf for leaf in leaves if growth.can_grow(leaf)]
        if not growing:
            break
        passed = growth.evaluate(growing)
        cutoff = options.cutoff * options.slope**level
        grown = [child for leaf in leaves for child in _split(growth, leaf, cutoff)]
        leaves = _highest(growth.distinct(grown), options.k, rank)
        if passed:
            yield leaves
    yield leaves


def _fork_logprob(leaf: BranchLeaf, least: int) -> float:
    """Return the log-probability of a path up to its last fork: its last token that is not the likeliest one there.

    It is that of the first `least` tokens if there is no such token after them. The path has this share beside those
    ranked higher: they include the path that goes on with the likeliest token at that fork.
    """
    steps = zip(leaf.token_ids, leaf.predictions, strict=True)
    forks = [size for size, (token_id, said) in enumerate(steps, start=1) if (token_id,) != said.token_ids[:1]]
    return math.fsum(leaf.logprobs[: max([least, *forks])])


def _split(growth: Growth, leaf: BranchLeaf, cutoff: float) -> list[BranchLeaf]:
    """Return the leaf's most probable child, and up to `split_limit` - 1 others of at least the probability `cutoff`.

    The probability is that of the child's token after the leaf, not of the path. Tokens of probability 0 are left out,
    so the list may be empty. If the leaf cannot grow, the list holds only the leaf. If it can, the prediction after it
    must be known.
    """
    if not growth.can_grow(leaf):
        return [leaf]
    prediction, children = growth.prediction_after(leaf.node), growth.children(leaf, growth.options.split_limit)
    assert prediction is not None
    # Tokens of probability 0 have no child; they are last in a prediction, so the others stay aligned.
    odds = zip(children, map(math.exp, prediction.logprobs), strict=False)
    return children[:1] + [child for child, probability in itertools.islice(odds, 1, None) if probability >= cutoff]


def _highest(leaves: Sequence[BranchLeaf], count: int, rank: Callable[[BranchLeaf], float]) -> list[BranchLeaf]:
    """Return the `count` leaves with the highest `rank`, or all if there are fewer, in their original order."""
    chosen = heapq.nlargest(count, range(len(leaves)), key=lambda index: rank(leaves[index]))
    return [leaves[index] for index in sorted(chosen)]


def _grow_best_first(growth: Growth, leaves: list[BranchLeaf]) -> Iterator[Sequence[BranchLeaf]]:
    """Split the `width` most probable leaves at a time into k, until `budget` nodes are split or no leaf can grow.

    A split leaf is replaced in the list by its k most probable children. Yields the k most probable leaves after each
    pass, in the order of that list, and at the end once more, then with the most probable first. Nodes that need no
    pass count for the budget too.
    """
    options, spent = growth.options, 0
    while spent < options.budget:
        growing = [leaf for leaf in leaves if growth.can_grow(leaf)]
        chosen = heapq.nlargest(min(options.width, options.budget - spent), growing, key=attrgetter("logprob"))
        if not chosen:
            break
        passed = growth.evaluate(chosen)
        spent += len(chosen)
        opened = {leaf.token_ids for leaf in chosen}
        grown = [[leaf] if leaf.token_ids not in opened else growth.children(leaf, options.k) for leaf in leaves]
        leaves = growth.distinct(list(itertools.chain.from_iterable(grown)))
        if passed:
            yield _highest(leaves, options.k, attrgetter("logprob"))
    yield sorted(_highest(leaves, options.k, attrgetter("logprob")), key=lambda leaf: -leaf.logprob)


def _grow_dissimilar(growth: Growth, leaves: Sequence[BranchLeaf]) -> Iterator[Sequence[BranchLeaf]]:
    """Choose k dissimilar branches from candidates that begin with `leaves`, and extend the chosen ones greedily.

    Yields the branches chosen so far after each pass, and the final ones at the end.
    """
    for leaves in choose_dissimilar(growth, leaves):  # noqa: B020
        yield leaves
    yield from _grow_likely(growth, leaves)


_DISSIMILAR = ("diverse", "surprising")
"""The modes that choose branches from several times as many candidates."""
_GROW_BY_MODE = {
    "likely": _grow_likely,
    "every_level": _grow_every_level,
    "forks": _grow_forks,
    "best_first": _grow_best_first,
    "diverse": _grow_dissimilar,
    "surprising": _grow_dissimilar,
}
"""By mode: the generator that grows the leaves of the first tokens, of which there must be one at least."""
