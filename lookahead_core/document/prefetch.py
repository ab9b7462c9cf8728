"""Prefetching: computes the lookaheads that are one click away while no request waits, the likeliest click first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lookahead_core.document.document import Document
from lookahead_core.document.results import Branch, Lookahead
from lookahead_core.strategies.grow_many import grow_together
from lookahead_core.strategies.keywords import takes_options
from lookahead_core.strategies.lookahead_options import LookaheadOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lookahead_core.strategies.keywords import LookaheadKeywords

WIDTH = 32
"""Nodes per forward pass: so many cost little more than one, and a request that comes meanwhile waits for one pass."""


@dataclass(frozen=True, slots=True)
class PrefetchedView:
    """The lookahead that a click would lead to: the result after accepting the first tokens of a branch."""

    token_ids: tuple[int, ...]
    """The tokens to accept."""
    result: Lookahead


@dataclass(frozen=True, slots=True)
class _Click:
    """A possible click on a piece of a branch, which would accept the branch's first `tokens` tokens."""

    branch: Branch
    tokens: int


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
    checked_options, work, model = LookaheadOptions.of(options), document.tree.work, document.model
    limit = work.tokens + most_nodes
    for clicks in _grouped(_clicks(result), max(1, WIDTH // checked_options.k)):
        if work.tokens >= limit:
            return
        if checked_options.is_plain:
            after = [document.after(click.branch, click.tokens) for click in clicks]
            origins = [end[0] for end in after if end]
            k, depth = checked_options.k, checked_options.depth
            for _ in grow_together(model.engine, origins, k, depth, model.end_token_ids):
                yield None
        for click in clicks:
            if work.tokens >= limit and not checked_options.is_plain:
                return
            yield from _prepared(document, click, options, limit)


def _prepared(
    document: Document, click: _Click, options: LookaheadKeywords, limit: int
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
        yield PrefetchedView(click.branch.token_ids[: click.tokens], last.result)


def _clicks(result: Lookahead) -> list[_Click]:
    """Return a click for each piece of each branch; of clicks that accept the same token ids only the first branch's.

    Clicks on first pieces come first, then all others; each of the two from the likeliest path to the least likely.
    """
    found: dict[tuple[int, ...], tuple[bool, float, _Click]] = {}
    for branch in result.branches:
        for index, piece in enumerate(branch.pieces):
            path = branch.token_ids[: piece.tokens]
            logprob = math.fsum(branch.logprobs[: piece.tokens])
            found.setdefault(path, (index > 0, -logprob, _Click(branch, piece.tokens)))
    return [click for _, _, click in sorted(found.values(), key=lambda entry: entry[:2])]


def _grouped(clicks: Sequence[_Click], size: int) -> Iterator[Sequence[_Click]]:
    for start in range(0, len(clicks), size):
        yield clicks[start : start + size]
