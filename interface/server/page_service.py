"""The server functions that a page's scripts call: start, poll and stop a request, and export the tree.

When the session of a page begins and ends is in `session_lifetime.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from interface.server.branch_request import MOST_NUMBER, BranchRequest, page_id, whole
from interface.server.error_sentences import sentence
from interface.server.model_loading import ModelLoader
from interface.server.page_session import PageSession
from interface.server.request_progress import News, RequestProgress
from interface.server.session_lifetime import MOST_PAGES, OpenPages
from lookahead_core.errors import LookaheadError, NoRoom

if TYPE_CHECKING:
    from lookahead_core import Model

AHEAD_AFTER = 0.15
"""Seconds between the final view and the first prefetch, whose pass would delay the answer to the next key."""


class PageService:
    """The server functions of one tab, and a session for each open page.

    `ask` starts a request and returns its first news (state and results), `more` its further news. The functions are
    coroutines of the server's event loop, and none of them blocks it: passes run in the scheduler's thread.
    """

    def __init__(
        self,
        loader: ModelLoader,
        parse: Callable[[Any], BranchRequest] = BranchRequest.from_json,
        session: Callable[[Model], PageSession] = PageSession,
        most: int = MOST_PAGES,
    ) -> None:
        """`parse` makes a request from a page's JSON; `session` makes the object that answers a page's requests.

        At most `most` pages have a session at once. The model of `loader` may still be loading.
        """
        self.loader = loader
        self.open_pages = OpenPages(loader, session, most)
        self._parse = parse

    @property
    def functions(self) -> list[Callable[[Any], Awaitable[Any]]]:
        """`ask`, `more`, `stop` and `tree`, for a page's script to call; they return errors as news with a sentence."""
        return [self._with_sentences(function) for function in (self.ask, self.more, self.stop, self.tree)]

    async def ask(self, payload: Any) -> News:
        """Start the request in a page's JSON and return its first news, see `RequestProgress.news`.

        Without a model the state is `waiting`, with the progress or error of loading, and the request is not checked.
        It is `full` if all sessions are busy or the scheduler has too many jobs. Raises ValueError if it is invalid.
        """
        if self.loader.model is None:
            loading = self.loader.loading.as_json()
            return _request_id(payload) | {"state": "waiting", "over": True, "loading": loading}
        request = self._parse(payload)
        try:
            return await self._progress_of(request).news(0)
        except NoRoom as error:
            return _request_id(payload) | {"state": "full", "sentence": sentence(error), "over": True}

    async def more(self, payload: Any) -> News:
        """Wait for a request's news after change number `seen` and return them.

        The payload has `page`, `number` and `seen`. The result has `unknown` if this is not the page's latest request,
        or if the page has no session. Raises ValueError for an invalid payload.
        """
        page, number = self.open_pages.find(page_id(payload)), _request_number(payload)
        progress = None if page is None else page.progress_of(number)
        seen = whole("seen", payload.get("seen"), 0, MOST_NUMBER)
        return _request_id(payload) | {"unknown": True} if progress is None else await progress.news(seen)

    async def stop(self, payload: Any) -> None:
        """Stop the page's request with the payload's `number` and older ones, also those that arrive later.

        Does nothing if the page has no session. Raises ValueError for an invalid payload.
        """
        key, number = page_id(payload), _request_number(payload)
        page = self.open_pages.find(key)
        if page is None:
            return
        page.stopped = max(page.stopped, number)
        progress = page.progress
        if progress is not None and progress.request.number <= number and not progress.over:
            self.loader.scheduler.stop(key)
            progress.stop()

    async def tree(self, payload: Any) -> Any:
        """Return the tree of a page's document as JSON, for an exported file; None without a session or a document."""
        page = self.open_pages.find(page_id(payload))
        return None if page is None else await self.loader.scheduler.turn(page.session.tree)

    def _progress_of(self, request: BranchRequest) -> RequestProgress:
        """Return the progress of a request; start it unless it is a duplicate, superseded or stopped.

        Raises NoRoom if no further page can have a session, or if the scheduler's queue is full.
        """
        page = self.open_pages.get_or_make(request.page)
        latest, progress = page.progress, RequestProgress(request)
        if latest is not None and latest.request.number == request.number:
            return latest  # browsers and networks may send a request twice
        if latest is not None and latest.request.number > request.number:
            progress.supersede()
        elif request.number <= page.stopped:
            progress.stop()
        else:
            if latest is not None:
                latest.supersede()
            page.progress = None
            self._start(page.session, progress)
            page.progress = progress
        return progress

    def _start(self, session: PageSession, progress: RequestProgress) -> None:
        """Submit a request's steps to the scheduler, with `progress` for their results; NoRoom if its queue is full."""

        def end(error: Exception | None) -> None:
            progress.call_in_loop(self._answered, session, progress, error)

        steps = session.answer_steps(progress.request)
        self.loader.scheduler.submit(steps, progress.request.page, on_step=progress.add, on_end=end)

    def _answered(self, session: PageSession, progress: RequestProgress, error: Exception | None) -> None:
        """After the last step, end the request, with `error` if there is one; but first prefetch, if `ahead` is set.

        Prefetching begins after `AHEAD_AFTER` seconds.
        """
        if error is not None:
            progress.finish(state="error", sentence=sentence(error))
        elif progress.request.ahead and progress.settled:
            progress.call_later(AHEAD_AFTER, lambda: self._prefetch(session, progress))
        else:
            progress.finish()

    def _prefetch(self, session: PageSession, progress: RequestProgress) -> None:
        """Submit the prefetching steps of a request that has not ended; it ends after them."""
        if progress.over:
            return

        def end(error: Exception | None) -> None:
            if error is not None:
                logging.getLogger(__name__).warning("Prefetching views has ended early: %s", error)
            progress.call_in_loop(progress.finish)

        steps, page = session.ahead_steps(progress.request), progress.request.page
        try:
            self.loader.scheduler.submit(steps, page, on_step=progress.add, on_end=end, prefetch=True)
        except LookaheadError:
            progress.finish()  # the scheduler's queue is full: nothing is prefetched

    def _with_sentences(self, function: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        """Return a server function of the same name that returns an error as news: state `error` with a sentence."""

        async def answer(payload: Any) -> Any:
            try:
                return await function(payload)
            except Exception as error:
                return _request_id(payload) | {"state": "error", "sentence": sentence(error), "over": True}

        answer.__name__ = function.__name__
        return answer


def _request_number(payload: Any) -> int:
    """Return the request's number in a page's JSON object; raise ValueError if it is invalid."""
    return whole("number", payload.get("number"), 0, MOST_NUMBER)


def _request_id(payload: Any) -> News:
    """Return `number` and `revision` of a request's JSON, each 0 if it is missing or invalid."""
    fields = payload if isinstance(payload, dict) else {}
    return {name: fields[name] if _is_count(fields.get(name)) else 0 for name in ("number", "revision")}


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_NUMBER
