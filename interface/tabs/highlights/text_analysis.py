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
from lookahead_core.errors import LookaheadError

if TYPE_CHECKING:
    from lookahead_core import Document, Model
    from lookahead_core.analysis.highlight_results import Highlights

MOST_TEXT = 60_000
"""The most characters of a text: the page receives several numbers for each token."""

MOST_TOKENS = 30_000
"""The most tokens of a text."""
MOST_ALTERNATIVES = 100_000
"""The most alternatives of all tokens of a text together: about ten megabytes."""


@dataclass(frozen=True)
class HighlightsRequest(BranchRequest):
    """A request to analyse a text; or, with `start`, for branches in place of one of its tokens.

    `HighlightsSession.answer_steps` answers it. `fit_steps` takes one too, to test the alternatives of that token.
    """

    start: int | None = None
    """The index of the character at which that token begins; None to analyse the text."""

    @classmethod
    def from_json(cls, payload: object) -> HighlightsRequest:
        """Return the request in a page's JSON; raise ValueError with a sentence if a field is invalid.

        The fields are those of BranchRequest and `start`; the text has at most MOST_TEXT characters. `accepted`,
        `ahead` and `source` are ignored. With an instruction the text is also the source: it is analysed as the answer
        to a user message that holds instruction and text.
        """
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
    """The session of a page of the Highlights tab: analyses a text, grows branches inside of it, tests replacements.

    It keeps the text's document and the last finished analysis.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._highlights: Highlights | None = None

    def answer_steps(self, request: BranchRequest) -> Iterator[View]:
        """Analyse the text; or with `start`, grow branches as if the text ended before the token that begins there.

        A generator of JSON values, as in `PageSession.answer_steps`: one for each pass, and a last one with the state
        "settled" and as `view` the highlights (see `as_json`) or the branches. `request` must be a HighlightsRequest.
        Raises ValueError if no token begins at `start`, and LookaheadError if there is no text to analyse, nothing
        before that token, or too little room (see `_document_for`).
        """
        from lookahead_core.analysis.lookahead_within_text import lookahead_steps_at

        assert isinstance(request, HighlightsRequest)
        document = self._document_for(request)
        if request.start is None:
            yield from self._analyse(document, request)
        else:
            steps = lookahead_steps_at(document, request.start, **request.options, stop_at_repetition=True)
            yield from self._views(steps, request)

    def fit_steps(self, request: HighlightsRequest) -> Iterator[News | None]:
        """Test which alternatives of the entry that begins at character `start` fit the text after its word.

        A generator: None for each chunk of the text that is prefilled again, then one answer, `{"fits": [...]}`: the
        `fit_as_json` of each of the entry's alternatives, likeliest first. The answer is `{"unknown": True}` if the
        page's last request was for another text or instruction, or no analysis has ended. Raises ValueError if no entry
        begins at `start`, and LookaheadError if the entry is of an older text.
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
        """Yield JSON values: the progress after each pass, and at last the highlights, which are kept for `fit_steps`.

        The progress is `reading`, a list [tokens with a prediction, tokens of the text]. Each entry has at most `k`
        alternatives, an option of the request; fewer in a long text, with a sentence that says so: MOST_ALTERNATIVES.
        Raises LookaheadError if the text is empty or has more than MOST_TOKENS.
        """
        from lookahead_core.analysis.highlights import highlights_steps

        self._highlights = None
        count, wanted = len(document.token_ids), request.options["k"]
        if count > MOST_TOKENS:
            raise LookaheadError(f"The text has {count:,} tokens, and at most {MOST_TOKENS:,} are allowed: shorten it.")
        k = min(wanted, max(1, MOST_ALTERNATIVES // max(1, count)))
        few = f"In a text of {count:,} tokens each has {k} alternatives; choose a part of it to see more."
        for step in highlights_steps(document, k):
            if step.result is None:
                yield {"state": "thinking", "reading": [step.read, step.total]}
            else:
                self._highlights = step.result
                view = as_json(step.result)
                if k < wanted and not view["sentence"]:
                    view["sentence"] = few
                yield {"state": "settled", "view": view}


class HighlightsService(PageService):
    """The server functions of the Highlights tab: those of PageService, but `fit` in place of `tree`.

    Its requests are HighlightsRequests, its sessions HighlightsSessions.
    """

    def __init__(self, loader: ModelLoader) -> None:
        super().__init__(loader, HighlightsRequest.from_json, HighlightsSession)

    @property
    def functions(self) -> list[Callable[[Any], Awaitable[Any]]]:
        return [self._with_sentences(function) for function in (self.ask, self.more, self.stop, self.fit)]

    async def fit(self, payload: Any) -> News:
        """Return `{"fits": [...]}`: which alternatives of the text's token at `start` fit, see `fit_steps`.

        The payload is that of `ask`. The result comes once, after all passes; passes of other pages may run between
        them. It is `{"unknown": True}` if the page has no session, or has not analysed this text last. Raises
        ValueError for an invalid request or `start`, TooMuch once it has used up its model time, and NoRoom if the
        scheduler takes no more jobs.
        """
        request = HighlightsRequest.from_json(payload)
        page = self.open_pages.find(request.page)
        if page is None:
            return {"unknown": True}
        return await self._result_of(cast("HighlightsSession", page.session).fit_steps(request))
