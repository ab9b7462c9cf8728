"""The server function that scores a guessed next word, for pages that hide their branches until it is guessed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

from interface.server.branch_request import BranchRequest
from interface.server.page_service import PageService
from interface.server.request_progress import News

if TYPE_CHECKING:
    from lookahead_core import Document

DIGITS = 6
"""Significant digits of the probability."""


class GuessService(PageService):
    """The server functions of PageService, and `guess`."""

    @property
    def functions(self) -> list[Callable[[Any], Awaitable[Any]]]:
        return [*super().functions, self._with_sentences(self.guess)]

    async def guess(self, payload: Any) -> News:
        """Return how likely the next word after a page's text is the field `guess`, see `guess_odds`.

        The payload is that of `ask`, with `guess`, a string. The result has `probability`, `error` (how much it may be
        wrong), `texts` (the continuations that count as the guess) and `words` (true: it counts that the word ends). It
        is `{"unknown": True}` if the page has no session, or if its last request was for another text or prompt.
        Passes of other pages may run between those of the guess. Raises ValueError for an invalid request or guess, and
        NoRoom if the scheduler takes no more jobs.
        """
        request, guess = BranchRequest.from_json(payload), payload.get("guess")
        if not isinstance(guess, str):
            raise ValueError("guess must be a text.")
        page = self.open_pages.find(request.page)
        document = None if page is None else page.session.document_of(request)
        if document is None:
            return {"unknown": True}
        steps, answer = _answers(document, guess), None
        while answer is None:
            answer = await self.loader.scheduler.turn(next, steps)
        return answer


def _answers(document: Document, guess: str) -> Iterator[News | None]:
    """Yield None after each forward pass, and at last the answer to the page."""
    from lookahead_core.analysis.guess_odds import guess_odds_steps

    for odds in guess_odds_steps(document, guess, heal=True):
        if odds is None:
            yield None
        else:
            probability, error = (float(f"{value:.{DIGITS}g}") for value in (odds.probability, odds.error))
            yield {"probability": probability, "error": error, "texts": list(odds.texts), "words": True}
