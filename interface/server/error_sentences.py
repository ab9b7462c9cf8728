"""Errors as people and programs see them: a sentence, an HTTP status, a response."""

from __future__ import annotations

import logging

from starlette.responses import JSONResponse

from lookahead_core.errors import LookaheadError

UNEXPECTED = "Something went wrong on the server; your text is untouched. Change it a little to try again."
"""The sentence for errors that are neither a LookaheadError nor a ValueError."""


class Refused(LookaheadError):
    """A request that is refused with an HTTP status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def sentence(error: Exception) -> str:
    """Return the text of a LookaheadError or ValueError; for others return UNEXPECTED and log the traceback."""
    if isinstance(error, LookaheadError | ValueError):
        return str(error)
    logging.getLogger(__name__).error("A request could not be answered.", exc_info=error)
    return UNEXPECTED


def status(error: Exception) -> int:
    """Return the HTTP status of an error: a LookaheadError's own, 400 for ValueError, and 500 for any other."""
    if isinstance(error, LookaheadError):
        return error.status
    return 400 if isinstance(error, ValueError) else 500


def refusal(error: Exception, **headers: str) -> JSONResponse:
    """Return the HTTP response for an error: its `status`, and JSON with its `sentence` as `detail`."""
    return JSONResponse({"detail": sentence(error)}, status_code=status(error), headers=headers)
