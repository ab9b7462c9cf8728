"""What is told of a mistake, by whichever door it goes out."""

from __future__ import annotations

import logging

from starlette.responses import JSONResponse

from lookahead_core.errors import LookaheadError

UNFORESEEN = "Something went wrong on the server; your text is untouched. Change it a little to try again."


class Refused(LookaheadError):
    """A request that is not answered, and the sentence why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def sentence(error: Exception) -> str:
    """What to tell a person: our own mistakes as they say it, others without their inner workings."""
    if isinstance(error, LookaheadError | ValueError):
        return str(error)
    logging.getLogger(__name__).error("A request could not be answered.", exc_info=error)
    return UNFORESEEN


def status(error: Exception) -> int:
    """The same as a number of HTTP."""
    if isinstance(error, LookaheadError):
        return error.status
    return 400 if isinstance(error, ValueError) else 500


def refusal(error: Exception, **headers: str) -> JSONResponse:
    """The same as an answer of HTTP."""
    return JSONResponse({"detail": sentence(error)}, status_code=status(error), headers=headers)
