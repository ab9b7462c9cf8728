"""The server side of the Highlights tab: analyse a text, grow branches at a word, and test its replacements."""

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
    from lookahead_core.analysis.highlight_results import Highlights

MOST_TEXT = 60_000
"""Characters of a text: the page receives several numbers for each token."""


@dataclass(frozen=True)
class HighlightsRequest(BranchRequest):
    """A request to analyse a text; or, with `start`, for branches in place of the token at that character."""

    start: int | None = None

    @classmethod
    def from_json(cls, payload: object) -> HighlightsRequest:
        """The request in a page's JSON. With an instruction, a user message with it and the text precedes the text."""
        fields = payload if isinstance(payload, dict) else {}
        text, start = fields.get("text"), fields.get("start")
        if isinstance(text, str) and len(text) > MOST_TEXT:
            raise ValueError(
                f"The text has {len(text):,} characters, and at most {MOST_TEXT:,} are allowed here: shorten it."
            )
        source = text if fields.get("instruction") else None
        fields = fields | {"source": source, "accepted": None, "ahead": False}
        request = cast("HighlightsRequest", super().from_json(fields))
        return request if start is None else replace(request, start=whole("start", start, 0, MOST_TEXT))


class HighlightsSession(PageSession):
    """One page's text and its last analysis."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._highlights: Highlights | None = None

    def answer_steps(self, request: BranchRequest) -> Iterator[View]:
        """Analyse the text, or grow branches at its character `start`: a generator with one step for each pass."""
        from lookahead_core.analysis.lookahead_within_text import lookahead_steps_at

        assert isinstance(request, HighlightsRequest)
        document = self._document_for(request)
        if request.start is None:
            yield from self._analyse(document, request)
        else:
            yield from self._views(lookahead_steps_at(document, request.start, **request.options), request)

    def fit_steps(self, request: HighlightsRequest) -> Iterator[News | None]:
        """Test which alternatives of the token at `start` fit the text behind it.

        A generator: None for each chunk of the prefill, then one answer. The answer is `{"unknown": True}` where this
        text was not the last one to be analysed.
        """
        from lookahead_core.analysis.replacements import drop_in_steps

        document, highlights = self.document, self._highlights
        is_last = document is not None and document.text == request.text and self._message == request.message
        if document is None or highlights is None or not is_last:
            yield {"unknown": True}
            return
        entry = next((entry for entry in highlights.entries if entry.start == request.start), None)
        if entry is None:
            raise ValueError("start must be the character at which a token of the text begins.")
        for fits in drop_in_steps(document, entry, entry.alternatives):
            yield None if fits is None else {"fits": [fit_as_json(fit) for fit in fits]}

    def _analyse(self, document: Document, request: BranchRequest) -> Iterator[View]:
        from lookahead_core.analysis.highlights import highlights_steps

        self._highlights = None
        for step in highlights_steps(document, request.options["k"]):
            if step.result is None:
                yield {"state": "thinking", "reading": [step.read, step.total]}
            else:
                self._highlights = step.result
                yield {"state": "settled", "view": as_json(step.result)}


class HighlightsService(PageService):
    """The server functions of the Highlights tab: those of every tab but `tree`, and `fit`."""

    def __init__(self, loader: ModelLoader) -> None:
        super().__init__(loader, HighlightsRequest.from_json, HighlightsSession)

    @property
    def functions(self) -> list[Callable[[Any], Awaitable[Any]]]:
        return [self._with_sentences(function) for function in (self.ask, self.more, self.stop, self.fit)]

    async def fit(self, payload: Any) -> News:
        """Return which alternatives of one token fit the text after it, as JSON; `unknown` if the page has no session.

        The scheduler runs the passes step by step between those of other pages.
        """
        request = HighlightsRequest.from_json(payload)
        page = self.open_pages.find(request.page)
        if page is None:
            return {"unknown": True}
        steps, answer = cast("HighlightsSession", page.session).fit_steps(request), None
        while answer is None:
            answer = await self.loader.scheduler.turn(next, steps)
        return answer
