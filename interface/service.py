"""What the page's scripts may ask of the server. Whatever goes wrong here comes out as a sentence."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from interface.asked import MOST_NUMBER, Asked, page_of, whole
from interface.desk import Desk
from interface.loading import Loader
from interface.mistakes import sentence
from interface.run import News, Run
from lookahead_core.errors import LookaheadError
from lookahead_core.store import Store

if TYPE_CHECKING:
    from lookahead_core import Model

AHEAD_AFTER = 0.15
"""Seconds of quiet before reading ahead: who types on is not made to wait for it."""


class Place:
    """A page's document, and its latest request."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.run: Run | None = None

    def at(self, number: int) -> Run | None:
        """The request of that number, if it is still the latest."""
        return self.run if self.run is not None and self.run.asked.number == number else None


class Service:
    """`ask` starts a request and gives the first news of it, `more` waits for further ones. Both never block."""

    def __init__(
        self, loader: Loader, asked: Callable[[Any], Asked] = Asked.of, desk: Callable[[Model], Desk] = Desk
    ) -> None:
        """`asked` makes a request of what a page has sent, and `desk` is where such requests are answered."""
        self.loader = loader
        self.places: Store[Place] = Store(self._place)
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
        place = self.places.hold(asked.page)
        if place.run is not None:
            if place.run.asked.number >= asked.number:
                return _known(given) | {"superseded": True}
            place.run.supersede()
        place.run = run = Run(asked)
        self._begin(place.desk, run)
        return await run.news(0)

    async def more(self, given: Any) -> News:
        """What has come of a request since the page last heard of it."""
        run = self._run(given)
        seen = whole("seen", given.get("seen"), 0, MOST_NUMBER)
        return _known(given) | {"unknown": True} if run is None else await run.news(seen)

    async def stop(self, given: Any) -> None:
        """Leave a request where it is."""
        run = self._run(given)
        if run is not None:
            self.loader.scheduler.stop(run.asked.page)
            run.finish(state="settled", stopped=True)

    async def tree(self, given: Any) -> Any:
        """Everything known of a page's document, for a file."""
        page = page_of(given)
        place = self.places.find(page)
        return None if place is None else await self.loader.scheduler.turn(place.desk.tree)

    def _run(self, given: Any) -> Run | None:
        page, number = page_of(given), whole("number", given.get("number"), 0, MOST_NUMBER)
        place = self.places.find(page)
        return None if place is None else place.at(number)

    def _begin(self, desk: Desk, run: Run) -> None:
        def end(error: Exception | None) -> None:
            run.in_loop(self._answered, desk, run, error)

        self.loader.scheduler.submit(desk.answers(run.asked), run.asked.page, step=run.told, end=end)

    def _answered(self, desk: Desk, run: Run, error: Exception | None) -> None:
        """The view is there, or a mistake; from here on the page reads, and what it may click is read ahead."""
        if error is not None:
            run.finish(state="error", sentence=sentence(error))
        elif run.asked.ahead and run.settled:
            run.after(AHEAD_AFTER, lambda: self._read_ahead(desk, run))
        else:
            run.finish()

    def _read_ahead(self, desk: Desk, run: Run) -> None:
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

    def _place(self) -> Place:
        assert self.loader.model is not None
        return Place(self._desk(self.loader.model))

    def _named(self, function: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        """The function as Gradio wants it, with mistakes as sentences."""

        async def answer(given: Any) -> Any:
            try:
                return await function(given)
            except Exception as error:
                return _known(given) | {"state": "error", "sentence": sentence(error), "over": True}

        answer.__name__ = function.__name__
        return answer


def _known(given: Any) -> News:
    """Number and revision of a request, as far as they make sense."""
    found = given if isinstance(given, dict) else {}
    return {name: found[name] if _countable(found.get(name)) else 0 for name in ("number", "revision")}


def _countable(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_NUMBER
