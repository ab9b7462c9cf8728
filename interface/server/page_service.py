"""What the page's scripts may ask of the server. Whatever goes wrong here comes out as a sentence."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from interface.server.branch_request import MOST_NUMBER, BranchRequest, page_of, whole
from interface.server.error_sentences import sentence
from interface.server.model_loading import ModelLoader
from interface.server.page_session import PageSession
from interface.server.request_progress import News, RequestProgress
from lookahead_core.errors import LookaheadError, NoRoom
from lookahead_core.serving.expiring_store import ExpiringStore

if TYPE_CHECKING:
    from lookahead_core import Model

AHEAD_AFTER = 0.15
"""Seconds of quiet before reading ahead: who types on is not made to wait for it."""


MOST_PLACES = 64
"""Pages that have a document here at once; where all of them wait for an answer, others are told to try again."""


class PageSlot:
    """A page's document, and its latest request."""

    def __init__(self, desk: PageSession) -> None:
        self.desk = desk
        self.run: RequestProgress | None = None
        self.stopped = -1
        """The highest number of a request that the page has stopped."""

    def at(self, number: int) -> RequestProgress | None:
        """The request of that number, if it is still the latest."""
        return self.run if self.run is not None and self.run.asked.number == number else None

    @property
    def busy(self) -> bool:
        """Whether a page still waits for what is computed here."""
        return self.run is not None and self.run.wanted


class PageService:
    """`ask` starts a request and gives the first news of it, `more` waits for further ones. Both never block."""

    def __init__(
        self,
        loader: ModelLoader,
        asked: Callable[[Any], BranchRequest] = BranchRequest.of,
        desk: Callable[[Model], PageSession] = PageSession,
        most: int = MOST_PLACES,
    ) -> None:
        """`asked` makes a request of what a page has sent, and `desk` is where such requests are answered."""
        self.loader = loader
        self.places: ExpiringStore[PageSlot] = ExpiringStore(
            self._place, most=most, busy=lambda place: place.busy, gone=self._leave
        )
        self._asked = asked
        self._desk = desk

    @property
    def functions(self) -> list[Callable[[Any], Awaitable[Any]]]:
        """What a page's script may call, by name."""
        return [self._named(function) for function in (self.ask, self.more, self.stop, self.tree)]

    async def ask(self, given: Any) -> News:
        """Branches for a text; gives what there is after the first pass."""
        if self.loader.model is None:
            return _known(given) | {"state": "waiting", "over": True, "loading": self.loader.loading.as_json()}
        asked = self._asked(given)
        try:
            return await self._run_of(asked).news(0)
        except NoRoom as error:
            return _known(given) | {"state": "full", "sentence": sentence(error), "over": True}

    async def more(self, given: Any) -> News:
        """What has come of a request since the page last heard of it."""
        run = self._run(given)
        seen = whole("seen", given.get("seen"), 0, MOST_NUMBER)
        return _known(given) | {"unknown": True} if run is None else await run.news(seen)

    async def stop(self, given: Any) -> None:
        """Leave the request of that number where it is, and older ones, also one that arrives only later."""
        page, number = _page_and_number(given)
        place = self.places.find(page)
        if place is None:
            return
        place.stopped = max(place.stopped, number)
        run = place.run
        if run is not None and run.asked.number <= number and not run.over:
            self.loader.scheduler.stop(page)
            run.stop()

    async def tree(self, given: Any) -> Any:
        """Everything known of a page's document, for a file."""
        page = page_of(given)
        place = self.places.find(page)
        return None if place is None else await self.loader.scheduler.turn(place.desk.tree)

    def _run(self, given: Any) -> RequestProgress | None:
        page, number = _page_and_number(given)
        place = self.places.find(page)
        return None if place is None else place.at(number)

    def _run_of(self, asked: BranchRequest) -> RequestProgress:
        """The run of a request: a new one, unless it is there already or a newer one is."""
        place = self.places.hold(asked.page)
        before, run = place.run, RequestProgress(asked)
        if before is not None and before.asked.number == asked.number:
            return before  # the same request, sent twice by a browser or a network
        if before is not None and before.asked.number > asked.number:
            run.supersede()
        elif asked.number <= place.stopped:
            run.stop()
        else:
            if before is not None:
                before.supersede()
            place.run = None
            self._begin(place.desk, run)
            place.run = run
        return run

    def _begin(self, desk: PageSession, run: RequestProgress) -> None:
        def end(error: Exception | None) -> None:
            run.in_loop(self._answered, desk, run, error)

        self.loader.scheduler.submit(desk.answers(run.asked), run.asked.page, step=run.told, end=end)

    def _answered(self, desk: PageSession, run: RequestProgress, error: Exception | None) -> None:
        """The view is there, or a mistake; from here on the page reads, and what it may click is read ahead."""
        if error is not None:
            run.finish(state="error", sentence=sentence(error))
        elif run.asked.ahead and run.settled:
            run.after(AHEAD_AFTER, lambda: self._read_ahead(desk, run))
        else:
            run.finish()

    def _read_ahead(self, desk: PageSession, run: RequestProgress) -> None:
        if run.over:
            return

        def end(error: Exception | None) -> None:
            if error is not None:
                logging.getLogger(__name__).warning("Reading ahead has ended early: %s", error)
            run.in_loop(run.finish)

        try:
            self.loader.scheduler.submit(desk.ahead(run.asked), run.asked.page, step=run.told, end=end, ahead=True)
        except LookaheadError:
            run.finish()  # so many people are there that nobody is read ahead for

    def _leave(self, page: str, place: PageSlot) -> None:
        """A place that is forgotten: nothing more is computed there."""
        self.loader.scheduler.stop(page)
        if place.run is not None and not place.run.over:
            place.run.finish()

    def _place(self) -> PageSlot:
        assert self.loader.model is not None
        return PageSlot(self._desk(self.loader.model))

    def _named(self, function: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        """The function as Gradio wants it, with mistakes as sentences."""

        async def answer(given: Any) -> Any:
            try:
                return await function(given)
            except Exception as error:
                return _known(given) | {"state": "error", "sentence": sentence(error), "over": True}

        answer.__name__ = function.__name__
        return answer


def _page_and_number(given: Any) -> tuple[str, int]:
    return page_of(given), whole("number", given.get("number"), 0, MOST_NUMBER)


def _known(given: Any) -> News:
    """Number and revision of a request, as far as they make sense."""
    found = given if isinstance(given, dict) else {}
    return {name: found[name] if _countable(found.get(name)) else 0 for name in ("number", "revision")}


def _countable(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_NUMBER
