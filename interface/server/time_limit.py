"""Limit the model time of one request or call."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, TypeVar

from lookahead_core.errors import LookaheadError

if TYPE_CHECKING:
    from lookahead_core.serving.scheduler import Scheduler

T = TypeVar("T")


class TooMuch(LookaheadError):
    """Raised if a request has used up its model time; HTTP status 413."""

    status = 413


def limited(
    scheduler: Scheduler, steps: Iterator[T], seconds: float, kind: str, is_result: Callable[[T], bool]
) -> Iterator[T]:
    """Yield the steps of a request that may use the model for at most `seconds`; `kind` names it in the error.

    Raises TooMuch in place of a step that is no result if all steps so far have taken longer. To be run by the
    scheduler, whose `job_seconds` count.
    """
    # Closing returns the call's tree to the pool at once, in the scheduler's thread.
    with closing(steps) if isinstance(steps, Generator) else nullcontext():
        for fact in steps:
            if not is_result(fact) and scheduler.job_seconds > seconds:
                raise TooMuch(
                    f"This {kind} has used the model for {seconds:g} seconds, which is the limit: ask for less."
                )
            yield fact
