"""Prefetching: computes the lookaheads that are one click away while no request waits, the likeliest click first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lookahead_core.document.document import Document
from lookahead_core.document.joint_lookahead import steps_below
from lookahead_core.document.results import Branch, Lookahead
from lookahead_core.engines.deferred import PassNeeded
from lookahead_core.engines.dispatch import DispatchedLookahead, dispatcher_of
from lookahead_core.strategies.grow_many import grow_together
from lookahead_core.strategies.grow_next_words import grow_words_together
from lookahead_core.strategies.keywords import takes_options
from lookahead_core.strategies.lookahead_options import LookaheadOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lookahead_core.strategies.keywords import LookaheadKeywords

WIDTH = 32
"""Nodes per forward pass: so many cost little more than one, and a request that comes meanwhile waits for one pass."""
WORD_NODES = 16
"""Assumed number of nodes per forward pass of one next-word search."""


@dataclass(frozen=True, slots=True)
class PrefetchedView:
    """The lookahead that a click would lead to: the result after accepting the first tokens of a branch."""

    token_ids: tuple[int, ...]
    """The tokens to accept."""
    result: Lookahead


@dataclass(frozen=True, slots=True)
class Click:
    """A possible click on a piece of a branch, which would accept the branch's first `tokens` tokens."""

    branch: Branch
    tokens: int

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The tokens that it would accept."""
        return self.branch.token_ids[: self.tokens]


@takes_options(LookaheadOptions)
def prefetch_views(
    document: Document, result: Lookahead, *, most_nodes: int = 512, **options: Unpack[LookaheadKeywords]
) -> Iterator[PrefetchedView | None]:
    """Compute the lookahead that would follow each possible click in `result`; a generator that may be abandoned.

    A click accepts a branch up to the end of one of its pieces; clicks on first pieces come first, each group from the
    likeliest down. Yields None after each forward pass and at some steps without one, and a `PrefetchedView` for each
    finished lookahead; a click that would move the context window has none. Ends soon after `most_nodes` tokens went
    through the model. Raises LookaheadError unless the document's text stays the one that `result` was computed for,
    and may do so if a new view begins meanwhile. The options are those of `Document.lookahead`; `heal` has no effect.
    """
    checked_options, work = LookaheadOptions.of(options), document.tree.work
    if (dispatcher := dispatcher_of(document.model.engine)) is not None:
        dispatched = dispatcher.prefetching([(document, result.options)])
        yield from _dispatched(document, result, checked_options, dispatched)
        return
    limit, together = work.tokens + most_nodes, checked_options.is_greedy_to_depth
    nodes_per_view = WORD_NODES if checked_options.odds == "words" else checked_options.k
    for clicks in _grouped(possible_clicks([result]), max(1, WIDTH // nodes_per_view)):
        if work.tokens >= limit:
            return
        if together:
            yield from _grow_together(document, clicks, checked_options)
        for click in clicks:
            if work.tokens >= limit and not together:
                return
            yield from _prepared(document, click, options, limit)


def _dispatched(
    document: Document, result: Lookahead, options: LookaheadOptions, dispatched: DispatchedLookahead | None
) -> Iterator[PrefetchedView | None]:
    """Yield what `prefetch_views` does, as far as the worker of a lookahead also computes these views.

    No pass is made here. Nothing is yielded if `dispatched` is None.
    """
    for click in possible_clicks([result]) if dispatched is not None else ():
        end = document.after(click.branch, click.tokens)
        if end is None:
            continue
        last = None
        try:
            for last in steps_below([(document, options, end)], dispatched):  # noqa: B007
                yield None
        except PassNeeded:
            continue
        if last is not None and (found := last.results[0]) is not None:
            yield PrefetchedView(click.token_ids, found)


def _grow_together(document: Document, clicks: Sequence[Click], options: LookaheadOptions) -> Iterator[None]:
    """Evaluate all nodes that the views after these clicks need, in shared forward passes; yield after each pass.

    `options.is_greedy_to_depth` must be true. Clicks that would move the context window are left out.
    """
    ends = [end for click in clicks if (end := document.after(click.branch, click.tokens))]
    engine, end_token_ids = document.model.engine, document.model.end_token_ids
    if options.odds == "words":
        return grow_words_together(engine, [document.next_word_branches(*end, options) for end in ends])
    return grow_together(engine, [node for node, _ in ends], options.k, options.depth, end_token_ids)


def _prepared(
    document: Document, click: Click, options: LookaheadKeywords, limit: int
) -> Iterator[PrefetchedView | None]:
    """Yield None after each step of the lookahead that follows a click, and its `PrefetchedView` at the end.

    Yields nothing if the click would move the context window. `limit` is compared with `document.tree.work.tokens`, the
    tokens computed since the tree was made: once these have reached it, and this lookahead has computed some of them,
    it stops without a view if it needs another step.
    """
    work, last, over = document.tree.work, None, False
    began = work.tokens
    for step in document.steps_after(click.branch, click.tokens, **options):
        if over:
            return
        yield None
        last, over = step, work.tokens >= limit and work.tokens > began
    if last is not None:
        yield PrefetchedView(click.token_ids, last.result)


def possible_clicks(results: Sequence[Lookahead]) -> list[Click]:
    """Return a click for each piece of each branch of these results; of clicks that accept the same tokens only one.

    Clicks on first pieces come first, then all others; each of the two from the likeliest path in any result to the
    least likely.
    """
    found: dict[tuple[tuple[int, ...], bool], tuple[tuple[bool, float], Click]] = {}
    for branch in (branch for result in results for branch in result.branches):
        for index, piece in enumerate(branch.pieces):
            click = Click(branch, piece.tokens)
            key, rank = (click.token_ids, branch.healed), (index > 0, -math.fsum(branch.logprobs[: piece.tokens]))
            if key not in found or rank < found[key][0]:
                found[key] = rank, click
    return [click for _, click in sorted(found.values(), key=lambda entry: entry[0])]


def _grouped(clicks: Sequence[Click], size: int) -> Iterator[Sequence[Click]]:
    for start in range(0, len(clicks), size):
        yield clicks[start : start + size]
