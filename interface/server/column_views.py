"""The columns of a page: one text under several instructions or temperatures, continued in the same forward passes.

All of it runs in the scheduler's thread, like the page session that it belongs to.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from interface.server.branch_request import BranchRequest
from interface.server.column_request import Column, lookaheads_of
from interface.server.prefetched_views import AHEAD_BYTES, inserted, view_key, views_of

if TYPE_CHECKING:
    from interface.server.page_session import PageSession
    from lookahead_core import Document, Lookahead
    from lookahead_core.document.joint_lookahead import LookaheadBatchStep
    from lookahead_core.strategies.lookahead_options import LookaheadOptions

AHEAD_DEPTH = 2
"""Tokens of a branch in the prefetched views of columns, in modes whose rows may be short: so more clicks have one."""

View = dict[str, Any]


class ColumnViews:
    """Answers a page's requests with columns. The page's session owns it.

    There is one session for each instruction of the latest request. The page's own session is used for the instruction
    that its document has already, so that a change from rows to columns computes nothing again.
    """

    def __init__(self, make_session: Callable[[], PageSession], paint_steps: Callable[..., Iterator[View]]) -> None:
        """`make_session` returns a new session for an instruction; `paint_steps` is the function of `page_session`."""
        self._make_session = make_session
        self._paint_steps = paint_steps
        self._sessions: dict[str | None, PageSession] = {}
        self._lookaheads: tuple[list[Column], list[int]] = ([], [])
        self._shown: list[tuple[Column, PageSession, Lookahead]] = []

    @property
    def tree_bytes(self) -> int:
        """The approximate bytes of the trees of all sessions that are not the page's own; from any thread."""
        return sum(session.tree_bytes for session in list(self._sessions.values()))

    def notices(self) -> list[str]:
        """Return what `PageSession.take_notice` returns of all sessions that are not the page's own."""
        return [session.take_notice() for session in self._sessions.values()]

    def answer_steps(self, request: BranchRequest, owner: PageSession) -> Iterator[View]:
        """Answer a request with columns: a generator of JSON values, like `PageSession.answer_steps`.

        `owner` is the page's own session. The `view` is an object with `views`, a list of views, and `columns`, a list
        with the index of each column's view in it. A view is None until its first tokens are known; it stays None if
        there is neither a text nor an instruction. If that is so in all columns, the only step has the state "empty".
        """
        from lookahead_core.document.batch import lookahead_batch_steps

        self._shown = []
        instructions = dict.fromkeys(column.instruction for column in request.columns)
        requests = {
            instruction: replace(request, instruction=instruction, columns=())
            for instruction in instructions
            if request.text or instruction
        }
        if not requests:
            yield {"state": "empty"}
            return
        sessions = self._sessions_for(requests, owner)
        documents = {instruction: sessions[instruction].open(own) for instruction, own in requests.items()}
        by_temperature = request.options["mode"] == "sampled"
        self._lookaheads = distinct, indexes = lookaheads_of(request.columns, by_temperature=by_temperature)
        growing = [column for column in distinct if column.instruction in requests]
        each = [_own_options(column, documents[column.instruction], request) for column in growing]
        if growing == distinct:
            ahead = functools.partial(_all_ahead_options, distinct, request)
            owner.prepare_dispatch(documents[distinct[0].instruction], request, ahead)

        def view(step: LookaheadBatchStep) -> View:
            found = {
                column: sessions[column.instruction].closed(result, request.text)
                for column, result in zip(growing, step.results, strict=True)
                if result is not None
            }
            self._shown = [(column, sessions[column.instruction], result) for column, result in found.items()]
            views = [
                sessions[column.instruction].view_of(found[column], requests[column.instruction])
                if column in found
                else None
                for column in distinct
            ]
            return {"views": views, "columns": indexes}

        options = {**request.options, "heal": True, "stop_at_repetition": True}
        steps = lookahead_batch_steps([documents[column.instruction] for column in growing], each=each, **options)
        # The first step has nothing to paint: it comes before the first pass.
        yield from self._paint_steps(
            (step for step in steps if step.begun or step.tokens_to_read or step.waiting), view
        )

    def ahead_steps(self, request: BranchRequest) -> Iterator[View]:
        """Prefetch the views of all columns after possible clicks in any of them: a generator of passes and views.

        Like `PageSession.ahead_steps`, but `ahead` has a key and the views with the columns, as `answer_steps` yields
        them. There are none while a column has no view.
        """
        from lookahead_core.document.joint_prefetch import prefetch_joint_views

        distinct, indexes = self._lookaheads
        shown = {column: (session, result) for column, session, result in self._shown}
        if not shown or set(shown) != set(distinct):
            return
        sessions = [shown[column][0] for column in distinct]
        results = [shown[column][1] for column in distinct]
        documents = [session.document for session in sessions if session.document is not None]
        options = _all_ahead_options(distinct, request)
        began, sent = sum(document.tree.work.tokens for document in documents), 0
        for prepared in prefetch_joint_views(
            list(zip(documents, results, options, strict=True)), most_nodes=request.ahead_tokens
        ):
            if prepared is None:
                yield {}
                continue
            text = request.text + inserted(results, prepared.token_ids)
            closed = [session.closed(one, text) for session, one in zip(sessions, prepared.results, strict=True)]
            views, size = views_of(closed, AHEAD_BYTES // request.options["k"])
            sent += size
            if sent > AHEAD_BYTES:
                return
            tokens = sum(document.tree.work.tokens for document in documents) - began
            key = view_key(prepared.token_ids)
            yield {"ahead": (key, {"views": views, "columns": indexes}), "tokens_ahead": tokens}

    def document_of(self, request: BranchRequest) -> Document | None:
        """Return the document of the column with the request's instruction if it has the request's text; else None."""
        session = self._sessions.get(request.instruction)
        return None if session is None else session.document_of(request)

    def _sessions_for(
        self, requests: Mapping[str | None, BranchRequest], owner: PageSession
    ) -> dict[str | None, PageSession]:
        """Return a session for each request, by instruction; sessions of other instructions are dropped."""
        found: dict[str | None, PageSession] = {}
        for instruction, request in requests.items():
            if owner.continues(request):
                found[instruction] = owner
            else:
                found[instruction] = self._sessions.get(instruction) or self._make_session()
        self._sessions = {key: session for key, session in found.items() if session is not owner}
        return found


def _own_options(column: Column, document: Document, request: BranchRequest) -> dict[str, Any]:
    """Return the options of a column's lookahead."""
    own = request if column.temperature is None else request.at_temperature(column.temperature)
    # As in `PageSession.answer_steps`: the re-opened token counts for the depth of a branch.
    return {**own.options, "depth": own.options["depth"] + bool(document.reopens)}


def _all_ahead_options(columns: Sequence[Column], request: BranchRequest) -> list[LookaheadOptions]:
    """Return the options of the prefetched views of each column."""
    return [_ahead_options(column, request) for column in columns]


def _ahead_options(column: Column, request: BranchRequest) -> LookaheadOptions:
    """Return the options of a column's prefetched views."""
    from lookahead_core.strategies.lookahead_options import LookaheadOptions

    own = request if column.temperature is None else request.at_temperature(column.temperature)
    options = {**own.options, "stop_at_repetition": True}
    if options["mode"] in ("likely", "sampled"):
        options["depth"] = min(options["depth"], AHEAD_DEPTH)
    return LookaheadOptions.of(options)
