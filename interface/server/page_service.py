"""The server functions that a page's scripts call: start, poll and stop a request, and export the tree.

When the session of a page begins and ends is in `session_lifetime.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from interface.server.branch_request import MOST_NUMBER, BranchRequest, page_id, whole
from interface.server.callers import CALLER, leave_turn
from interface.server.error_sentences import as_news, end_of_request, kind, sentence
from interface.server.job_results import job_result
from interface.server.logs import log_event
from interface.server.model_loading import ModelLoader
from interface.server.page_session import PageSession
from interface.server.request_progress import ABSENT, POLL_SECONDS, News, RequestProgress
from interface.server.session_lifetime import MOST_PAGES, OpenPage, OpenPages
from interface.server.shared_gpu import Visitor
from interface.server.time_limit import limited
from lookahead_core.engines.dispatch import dispatcher_of
from lookahead_core.engines.server_engine import most_known
from lookahead_core.errors import Interrupted, LookaheadError, NoRoom

if TYPE_CHECKING:
    from lookahead_core import Model

AHEAD_AFTER = 0.15
"""Seconds between the final view and the first prefetch, whose pass would delay the answer to the next key."""

OTHERS_AFTER = 1.0
"""Seconds after which a page that waits says how many others do."""


class PageService:
    """The server functions that the scripts of one or more tabs call, and a session for each page that calls them.

    A page is one tab's script in one browser window, known by a random id. `ask` starts a request and returns its first
    news (a dictionary with its state and results), `more` its further news; a page's newer request ends its older one.
    All are coroutines of the server's event loop, and none of them blocks it: passes run in the scheduler's thread.
    """

    def __init__(
        self,
        loader: ModelLoader,
        parse: Callable[[Any], BranchRequest] = BranchRequest.from_json,
        session: Callable[[Model], PageSession] = PageSession,
        most: int = MOST_PAGES,
    ) -> None:
        """`parse` makes a request from a page's JSON, or raises ValueError; `session` makes a page's session.

        At most `most` pages have a session at once. The model of `loader` may still be loading; `session` is called
        with it later, at the first request of each page.
        """
        self.loader = loader
        self.open_pages = OpenPages(loader, session, most)
        self._parse = parse
        loader.services.append(self)

    @property
    def functions(self) -> list[Callable[[Any], Awaitable[Any]]]:
        """`ask`, `more`, `stop` and `tree`, in this order, for a page's script to call.

        They raise nothing: they return an error as news, see `_with_sentences`.
        """
        return [self._with_sentences(function) for function in (self.ask, self.more, self.stop, self.tree)]

    async def ask(self, payload: Any) -> News:
        """Start the request in a page's JSON, wait for its first news and return them, see `RequestProgress.news`.

        Without a model the request is not checked: the state is `waiting`, and `loading` is `LoadingState.as_json()`,
        maybe an error. The state is `full`, with a `sentence`, if all sessions are busy or the scheduler takes no more
        jobs. Both have `number`, `revision` and `over`: nothing was started. Raises ValueError for an invalid request.
        """
        if self.loader.model is None:
            loading = self.loader.loading.as_json()
            return _request_id(payload) | {"state": "waiting", "over": True, "loading": loading}
        request = self._limited(self._parse(payload))
        if dispatcher_of(self.loader.scheduler) is not None:
            request = replace(request, visitor=Visitor.of(payload))
        try:
            return await self._news(self._progress_of(request), 0)
        except NoRoom as error:
            self._count_error("ask", error)
            return _request_id(payload) | {"state": "full", "sentence": sentence(error), "over": True}

    async def more(self, payload: Any) -> News:
        """Wait for a request's news after change number `seen` and return them, see `RequestProgress.news`.

        The payload has `page`, `number` (of the request) and `seen` (from the last news). The result has `unknown` at
        once if this is not the page's latest request, or if the page has no session. Raises ValueError for an invalid
        payload.
        """
        page, number = self.open_pages.find(page_id(payload)), _request_number(payload)
        progress = None if page is None else page.progress_of(number)
        seen = whole("seen", payload.get("seen"), 0, MOST_NUMBER)
        return _request_id(payload) | {"unknown": True} if progress is None else await self._news(progress, seen)

    async def stop(self, payload: Any) -> None:
        """Stop the page's requests up to the payload's `number`, included, also those that arrive only later.

        The payload has `page` and `number`. A step that is running is finished. Does nothing if the page has no
        session. Raises ValueError for an invalid payload.
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
        """Return the token tree of a page's document as `tree_as_json` does, for a file that the page saves.

        The payload has `page`. None if that page has no session or no document yet. Raises ValueError for an invalid
        payload, and NoRoom if the scheduler takes no more jobs.
        """
        page = self.open_pages.find(page_id(payload))
        if page is None:
            return None
        leave_turn()
        return await self.loader.scheduler.turn(page.session.tree, payers=CALLER.get().payers)

    async def _result_of(self, steps: Iterator[News | None]) -> News:
        """Run the steps of a request that is answered once, and return its answer: the only step that is not None.

        Raises TooMuch once they have used up their model time; to cancel this stops them after the running one.
        """
        scheduler, seconds = self.loader.scheduler, self.loader.settings.page_seconds
        return await job_result(scheduler, limited(scheduler, steps, seconds, "request", lambda step: step is not None))

    def _limited(self, request: BranchRequest) -> BranchRequest:
        """Return the request with the settings' limits; raise ValueError if it asks for too many tokens.

        Without odds of words if the model's server gives those of some tokens only.
        """
        if most_known(self.loader.scheduler) is not None:
            request = request.without_words()
        settings, options = self.loader.settings, request.options
        tokens = options["k"] * options["depth"] * max(1, len(request.columns))
        if tokens > settings.request_tokens:
            raise ValueError(
                f"These branches have up to {tokens} tokens, and at most {settings.request_tokens} are allowed here: "
                "choose fewer or shorter ones."
            )
        return replace(request, ahead_tokens=min(request.ahead_tokens, settings.ahead_tokens))

    async def _news(self, progress: RequestProgress, seen: int) -> News:
        """Return the progress's news; while it has none and others wait too, a `note` that says so, each second."""
        crowded = progress.is_awaited and self.loader.scheduler.request_count > 1
        news = await progress.news(seen, OTHERS_AFTER if crowded else POLL_SECONDS)
        others = self.loader.scheduler.request_count - 1
        if news.get("state") == "thinking" and others > 0 and progress.seconds >= OTHERS_AFTER:
            news.setdefault("note", others_sentence(others))
        return news

    def _count_click(self, latest: RequestProgress, request: BranchRequest) -> None:
        """Count a request that follows a click on the latest view, by whether the view behind it is known already."""
        last = request.accepted[-1] if request.accepted else None
        if last is not None and last.before == len(latest.request.text) < len(request.text):
            self.loader.counts.clicks[latest.is_prefetched(last.token_ids)] += 1

    def _count_error(self, function: str, error: Exception) -> None:
        self.loader.counts.count_error(error)
        log_event("error", function=function, kind=kind(error))

    def _progress_of(self, request: BranchRequest) -> RequestProgress:
        """Start a request, end the page's older one, and return the new one's progress.

        If the page's latest request has the same number, nothing is started, and that one's progress is returned. A
        request with a lower number, or one that the page has stopped, is not started either: its progress has ended.
        Begins a session if the page has none. Raises NoRoom if no session can begin, or if the scheduler takes no more
        jobs; in the latter case the older request has ended.
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
                self._count_click(latest, request)
                latest.supersede()
            page.progress = None
            self._start(page, progress)
            page.progress = progress
            progress.call_later(ABSENT / 6, lambda: self._check_presence(page, progress))
        return progress

    def _check_presence(self, page: OpenPage, progress: RequestProgress) -> None:
        """End the work of a page that has not polled for ABSENT seconds; else check again later.

        Does nothing if the request is over or no longer the page's latest one.
        """
        if progress.over or page.progress is not progress:
            return
        if progress.is_present:
            progress.call_later(ABSENT / 6, lambda: self._check_presence(page, progress))
        else:
            self.open_pages.end_work(progress.request.page, page)

    def _start(self, page: OpenPage, progress: RequestProgress) -> None:
        """Submit the steps of the request of `progress` to the scheduler, and return at once.

        Their results go to `progress`, in place of an older job of the page; at the end `_answered` is called. Raises
        NoRoom if the scheduler takes no more jobs.
        """

        session = page.session

        def end(error: Exception | None) -> None:
            progress.call_in_loop(self._answered, page, session, progress, error)

        scheduler, seconds = self.loader.scheduler, self.loader.settings.page_seconds
        steps = session.answer_steps(progress.request)
        steps = limited(scheduler, steps, seconds, "request", lambda step: step.get("state") in ("settled", "empty"))
        scheduler.submit(
            steps,
            progress.request.page,
            on_step=progress.add,
            on_end=end,
            payers=CALLER.get().payers,
            background=session.background,
        )

    def _answered(
        self, page: OpenPage, session: PageSession, progress: RequestProgress, error: Exception | None
    ) -> None:
        """End a request after its last step, with `end_of_request(error)` if `error` is not None.

        After an Interrupted error, and after an unexpected one, the page gets a new session in place of `session`. A
        request without an error that is settled and has `ahead` set does not end yet: after AHEAD_AFTER seconds
        prefetching begins, and the request ends after that.
        """
        if error is not None:
            self._count_error("ask", error)
            self._renew_after(error, page, session)
            progress.finish(**end_of_request(error))
            return
        if progress.settled:
            self._count_view(progress)
        if progress.request.ahead and progress.settled:
            progress.call_later(AHEAD_AFTER, lambda: self._prefetch(page, session, progress))
        else:
            progress.finish()

    def _renew_after(self, error: Exception, page: OpenPage, session: PageSession) -> None:
        """Give a page a new session in place of this one if `error` may have left its document in any state."""
        expected = isinstance(error, LookaheadError | ValueError) and not isinstance(error, Interrupted)
        if page.session is session and not expected:
            self.open_pages.renew(page)

    def _count_view(self, progress: RequestProgress) -> None:
        """Count a complete view, and log its options and the time it took."""
        seconds, request = progress.seconds, progress.request
        self.loader.counts.view_seconds.add(seconds)
        options = {name: request.options[name] for name in ("k", "depth", "mode")}
        log_event("view", seconds=round(seconds, 3), characters=len(request.text), **options)

    def _prefetch(self, page: OpenPage, session: PageSession, progress: RequestProgress) -> None:
        """Submit the prefetching steps of a request, which ends after them; nothing if it has ended already.

        An error of these steps is logged and ends the request like their end. If the scheduler takes no more jobs,
        nothing is prefetched and the request ends at once.
        """
        if progress.over:
            return

        def end(error: Exception | None) -> None:
            if error is not None:
                logging.getLogger(__name__).warning("Prefetching views has ended early (%s).", kind(error))
                progress.call_in_loop(self._renew_after, error, page, session)
            progress.call_in_loop(progress.finish)

        steps, client = session.ahead_steps(progress.request), progress.request.page
        try:
            self.loader.scheduler.submit(steps, client, on_step=progress.add, on_end=end, prefetch=True)
        except LookaheadError:
            progress.finish()  # the scheduler's queue is full: nothing is prefetched

    def _with_sentences(self, function: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        """Return a server function of the same name that returns errors instead of raising them.

        An error is returned as news: `number` and `revision` of the payload, state `error`, `as_news`, and `over`.
        """

        async def answer(payload: Any) -> Any:
            try:
                return await function(payload)
            except Exception as error:
                self._count_error(function.__name__, error)
                return _request_id(payload) | {"state": "error", **as_news(error), "over": True}

        answer.__name__ = function.__name__
        return answer


def others_sentence(others: int) -> str:
    """Return the sentence for a page that waits while so many others wait too; `others` is 1 or more."""
    requests = "other requests" if others > 1 else "other request"
    return f"The model has {others} {requests} at the same time, so this may take longer."


def _request_number(payload: Any) -> int:
    """Return `number`, the request's number, from `payload`, a page's JSON object.

    `payload` must be a dict. Raises ValueError unless `number` is a whole number from 0 to MOST_NUMBER.
    """
    return whole("number", payload.get("number"), 0, MOST_NUMBER)


def _request_id(payload: Any) -> News:
    """Return a dictionary with `number` and `revision` of a request's JSON, each 0 if it is missing or invalid."""
    fields = payload if isinstance(payload, dict) else {}
    return {name: fields[name] if _is_count(fields.get(name)) else 0 for name in ("number", "revision")}


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_NUMBER
