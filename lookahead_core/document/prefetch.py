"""Prefetching: computes the lookaheads that are one click away while no request waits, the likeliest click first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lookahead_core.document.clicks import Click, possible_clicks
from lookahead_core.document.document import Document
from lookahead_core.document.joint_prefetch import prefetch_joint_views
from lookahead_core.document.results import Lookahead
from lookahead_core.engines.dispatch import dispatcher_of
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
    if dispatcher_of(document.model.engine) is not None:
        for views in prefetch_joint_views([(document, result, checked_options)], most_nodes=most_nodes):
            yield None if views is None else PrefetchedView(views.token_ids, views.results[0])
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


def _grouped(clicks: Sequence[Click], size: int) -> Iterator[Sequence[Click]]:
    for start in range(0, len(clicks), size):
        yield clicks[start : start + size]
