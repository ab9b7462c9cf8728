"""The server function that scores a guess of the next word, for *Guess first* of the Write tab."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from interface.server.branch_request import BranchRequest
from interface.server.page_service import PageService
from interface.server.request_progress import News

if TYPE_CHECKING:
    from interface.server.page_session import PageSession

DIGITS = 6
"""Number of significant digits of a probability."""


class GuessService(PageService):
    """The server functions of PageService, and `guess`."""

    @property
    def functions(self) -> list[Callable[[Any], Awaitable[Any]]]:
        return [*super().functions, self._with_sentences(self.guess)]

    async def guess(self, payload: Any) -> News:
        """Return the probability that the next word after a page's text is the guess in `payload`: see `guess_odds`.

        The payload is that of `ask`, with the string `guess`. The result has `probability`, `error` (its maximum
        error), `texts` (the continuations that count as the guess) and `words` (always True: the word must end there).
        They are the odds of the page's rows: `temperature`, `top_p`, `banned` and `avoid` of the payload count in every
        mode. With columns they are those of the first column's instruction. It is `{"unknown": True}` if the page has
        no session, or if its last request was for another text or prompt.
        Passes of other pages may run between those of the guess. Raises ValueError for an invalid request or guess,
        TooMuch once it has used up its model time, and NoRoom if the scheduler takes no more jobs.
        """
        request, guess = BranchRequest.from_json(payload), payload.get("guess")
        if not isinstance(guess, str):
            raise ValueError("guess must be a text.")
        if request.columns:
            request = replace(request, instruction=request.columns[0].instruction, columns=())
        page = self.open_pages.find(request.page)
        if page is None:
            return {"unknown": True}
        names = [name for name in ("temperature", "top_p") if name in payload]
        options = {name: payload[name] for name in names}
        options |= {name: request.options[name] for name in ("banned", "avoid") if name in request.options}
        return await self._result_of(_answers(page.session, request, guess, options))


def _answers(
    session: PageSession, request: BranchRequest, guess: str, options: dict[str, Any]
) -> Iterator[News | None]:
    """Yield None after each forward pass, and at the end the result of `GuessService.guess`.

    Begins with the document that the session has then: runs in the scheduler's thread, as all of a session does.
    `options` are those of a lookahead that `guess_odds_steps` takes.
    """
    from lookahead_core.analysis.guess_odds import guess_odds_steps
    from lookahead_core.strategies.lookahead_options import LookaheadOptions

    document = session.document_of(request)
    if document is None:
        yield {"unknown": True}
        return
    for odds in guess_odds_steps(document, guess, LookaheadOptions.of(options), heal=True):
        if odds is None:
            yield None
        else:
            probability, error = (float(f"{value:.{DIGITS}g}") for value in (odds.probability, odds.error))
            yield {"probability": probability, "error": error, "texts": list(odds.texts), "words": True}
