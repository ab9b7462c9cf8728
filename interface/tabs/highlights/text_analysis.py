"""What the Highlights tab may ask of the server: a text to be read, branches at one of its words, and what fits in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from interface.server.branch_request import BranchRequest, whole
from interface.server.model_loading import ModelLoader
from interface.server.page_service import PageService
from interface.server.page_session import PageSession, View
from interface.server.request_progress import News
from interface.tabs.highlights.highlights_json import as_json, fit_as_json

if TYPE_CHECKING:
    from lookahead_core import Document, Model
    from lookahead_core.analysis.highlights import Highlights

MOST_TEXT = 60_000
"""Characters: the figures of each token go to the page."""


@dataclass(frozen=True)
class HighlightsRequest(BranchRequest):
    """A text to be read; or, with `start`, branches in place of what begins at that character."""

    start: int | None = None

    @classmethod
    def of(cls, given: object) -> HighlightsRequest:
        """With an instruction the model is told it, and the text as what it is about, before it reads the text."""
        found = given if isinstance(given, dict) else {}
        text, start = found.get("text"), found.get("start")
        if isinstance(text, str) and len(text) > MOST_TEXT:
            raise ValueError(f"The text has {len(text):,} characters, and {MOST_TEXT:,} are allowed here: shorten it.")
        source = text if found.get("instruction") else None
        asked = cast("HighlightsRequest", super().of(found | {"source": source, "accepted": None, "ahead": False}))
        return asked if start is None else replace(asked, start=whole("start", start, 0, MOST_TEXT))


class HighlightsSession(PageSession):
    """One page's text, and what was read in it."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._found: Highlights | None = None

    def answers(self, asked: BranchRequest) -> Iterator[View]:
        """How far the reading is, and then what was found; or branches as they grow at a word."""
        from lookahead_core.analysis.highlights import branches_steps

        assert isinstance(asked, HighlightsRequest)
        document = self._take(asked)
        if asked.start is None:
            yield from self._read(document, asked)
        else:
            yield from self._grown(branches_steps(document, asked.start, **asked.options), asked)

    def fit(self, asked: HighlightsRequest) -> Iterator[News | None]:
        """Which of the alternatives at a place drop in; unknown where another text was read last.

        A step for each chunk that is to be read before, with nothing in it.
        """
        from lookahead_core.analysis.replacements import drop_in_steps

        document, found = self.document, self._found
        if document is None or found is None or document.text != asked.text or self._message != asked.message:
            yield {"unknown": True}
            return
        entry = next((entry for entry in found.entries if entry.start == asked.start), None)
        if entry is None:
            raise ValueError("start must be the character at which a token of the text begins.")
        for fits in drop_in_steps(document, entry, entry.alternatives):
            yield None if fits is None else {"fits": [fit_as_json(fit) for fit in fits]}

    def _read(self, document: Document, asked: BranchRequest) -> Iterator[View]:
        from lookahead_core.analysis.highlights import highlights_steps

        self._found = None
        for step in highlights_steps(document, asked.options["k"]):
            if step.result is None:
                yield {"state": "thinking", "reading": [step.read, step.total]}
            else:
                self._found = step.result
                yield {"state": "settled", "view": as_json(step.result)}


class HighlightsService(PageService):
    """Reads a page's text and grows branches in it, as every tab asks for such; `fit` takes short turns between."""

    def __init__(self, loader: ModelLoader) -> None:
        super().__init__(loader, HighlightsRequest.of, HighlightsSession)

    @property
    def functions(self) -> list[Callable[[Any], Awaitable[Any]]]:
        return [self._named(function) for function in (self.ask, self.more, self.stop, self.fit)]

    async def fit(self, given: Any) -> News:
        """Whether the alternatives at a place drop in."""
        asked = HighlightsRequest.of(given)
        place = self.places.find(asked.page)
        if place is None:
            return {"unknown": True}
        steps, found = cast("HighlightsSession", place.desk).fit(asked), None
        while found is None:
            found = await self.loader.scheduler.turn(next, steps)
        return found
