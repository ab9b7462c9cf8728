"""Prefetching for several documents with one text: the lookaheads of all of them that are one click away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lookahead_core.document.clicks import possible_clicks
from lookahead_core.document.document import Document
from lookahead_core.document.joint_lookahead import steps_below
from lookahead_core.document.results import Lookahead
from lookahead_core.engines.deferred import PassNeeded
from lookahead_core.engines.dispatch import dispatcher_of
from lookahead_core.errors import LookaheadError
from lookahead_core.strategies.lookahead_options import LookaheadOptions


@dataclass(frozen=True, slots=True)
class PrefetchedViews:
    """The lookaheads that a click would lead to: each document's result after accepting the same tokens."""

    token_ids: tuple[int, ...]
    """The tokens to accept."""
    results: list[Lookahead]
    """In the order of the documents."""


def prefetch_joint_views(
    lookaheads: Sequence[tuple[Document, Lookahead, LookaheadOptions]], *, most_nodes: int = 512
) -> Iterator[PrefetchedViews | None]:
    """Compute the lookaheads that would follow each possible click; a generator that may be abandoned.

    A click accepts a branch of any result up to the end of one of its pieces, in all documents; clicks on first pieces
    come first, each group from the likeliest down. Yields None after each forward pass, which all documents share, and
    a `PrefetchedViews` for each click; one that would move a context window has none. Ends soon after `most_nodes`
    tokens went through the model, and at once if the documents re-open different typed tokens. Where workers compute,
    there are the views that one computes in the same task. Raises LookaheadError if a document's text is not the one
    that its result was computed for, or if a new view of a document begins meanwhile.
    """
    documents = [document for document, _, _ in lookaheads]
    if not documents or len({document.reopens for document in documents}) > 1:
        return
    dispatched = None
    if (dispatcher := dispatcher_of(documents[0].model.engine)) is not None:
        dispatched = dispatcher.prefetching([(document, result.options) for document, result, _ in lookaheads])
        if dispatched is None:
            return
    for document, result, _ in lookaheads:
        for branch in result.branches:
            document.token_ids_of(branch)  # raises if the text has changed since
    limit, views = _tokens_read(documents) + most_nodes, [document.tree.view for document in documents]
    for click in possible_clicks([result for _, result, _ in lookaheads]):
        if dispatched is None and _tokens_read(documents) >= limit:
            return
        if [document.tree.view for document in documents] != views:
            raise LookaheadError("The text has changed while views after it were prefetched; look ahead again.")
        ends = [document.after_tokens(click.token_ids, click.branch.healed) for document in documents]
        found = [end for end in ends if end is not None]
        if len(found) < len(documents):
            continue
        below = [(document, options, end) for (document, _, options), end in zip(lookaheads, found, strict=True)]
        last = None
        try:
            for last in steps_below(below, dispatched):  # noqa: B007
                yield None
        except PassNeeded:
            continue
        if last is not None:
            yield PrefetchedViews(click.token_ids, [result for result in last.results if result is not None])


def _tokens_read(documents: Sequence[Document]) -> int:
    """Return how many tokens went through the model for the trees of these documents."""
    return sum({id(document.tree): document.tree.work.tokens for document in documents}.values())
