"""Errors as people and programs see them: a sentence, an HTTP status, a response."""

from __future__ import annotations

import logging
from typing import Any

from starlette.responses import JSONResponse

from lookahead_core.engines.remote.server_errors import ServerFault
from lookahead_core.errors import NO_MEMORY, Interrupted, LookaheadError, is_out_of_memory

UNEXPECTED = "Something went wrong on the server; your text is untouched. Change it a little to try again."
"""The sentence for errors that are neither a LookaheadError nor a ValueError."""

GOES_ON = "The page goes on by itself once it answers."
"""What follows a sentence about the model's server: the page sends its request again."""

RETRY_AFTER = 1
"""Seconds after which a refused request may be sent again, unless its error says otherwise."""


class Refused(LookaheadError):
    """Raised to refuse a request: `status` is the HTTP status of the response, `sentence` its text."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def sentence(error: Exception) -> str:
    """Return the text of a LookaheadError or ValueError; for others return UNEXPECTED and log the traceback.

    If memory has run out, it is NO_MEMORY in place of UNEXPECTED.
    """
    if isinstance(error, LookaheadError | ValueError):
        return str(error)
    logging.getLogger(__name__).error("A request could not be answered.", exc_info=error)
    return NO_MEMORY if is_out_of_memory(error) else UNEXPECTED


def kind(error: Exception) -> str:
    """Return a word for an error in metrics and logs: its reason, or else the name of its class; never its text."""
    return error.reason if isinstance(error, LookaheadError) and error.reason else type(error).__name__


def as_news(error: Exception) -> dict[str, Any]:
    """Return a dictionary with the `sentence` that tells a page about an error.

    If the error is a LookaheadError with a reason, the dictionary also has `reason` and `details`.
    """
    fields: dict[str, Any] = {"sentence": sentence(error)}
    if isinstance(error, LookaheadError) and error.reason:
        fields |= {"reason": error.reason, "details": dict(error.details)}
    return fields


def end_of_request(error: Exception) -> dict[str, Any]:
    """Return the state with which an error ends a page's request, as news: `as_news(error)` and `state`.

    That is "full" for an Interrupted error and a ServerFault, after which the page sends the same request again: after
    `again_after` seconds if the model's server asks for them. It is "error" for all others.
    """
    news = as_news(error)
    if isinstance(error, ServerFault):
        news |= {"sentence": f"{news['sentence']} {GOES_ON}"} | ({"again_after": error.wait} if error.wait else {})
    return news | {"state": "full" if isinstance(error, Interrupted | ServerFault) else "error"}


def status(error: Exception) -> int:
    """Return the HTTP status of an error: a LookaheadError's own, 400 for ValueError, and 500 for any other."""
    if isinstance(error, LookaheadError):
        return error.status
    return 400 if isinstance(error, ValueError) else 500


def refusal(error: Exception, **headers: str) -> JSONResponse:
    """Return the HTTP response for an error: its `status`, and its `sentence` in the JSON object `{"detail": …}`.

    The keyword arguments are added as response headers. With the status 429 or 503 there is a header `Retry-After`. An
    unexpected error is logged, see `sentence`.
    """
    number = status(error)
    if number in (429, 503):
        headers["Retry-After"] = str(getattr(error, "retry_after", RETRY_AFTER))
    return JSONResponse({"detail": sentence(error)}, status_code=number, headers=headers)
