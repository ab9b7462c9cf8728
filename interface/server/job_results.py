"""Run the steps of one call or request as a job of the scheduler, and wait for its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from interface.server.callers import CALLER, leave_turn

if TYPE_CHECKING:
    from lookahead_core.serving.scheduler import Scheduler

T = TypeVar("T")


async def job_result(
    scheduler: Scheduler, steps: Iterator[dict[str, Any] | T | None], on_step: Callable[[T], None] | None = None
) -> dict[str, Any]:
    """Run all steps in the scheduler's thread and return the last dictionary among them, of which there must be one.

    `on_step` is called, in the same thread, with each step that is neither None nor a dictionary. Raises the error of a
    step, and NoRoom if the scheduler takes no more jobs. To cancel this stops the steps after the running one.
    """
    loop, client = asyncio.get_running_loop(), object()
    answer: asyncio.Future[dict[str, Any]] = loop.create_future()
    results: list[dict[str, Any]] = []

    def end(error: Exception | None) -> None:
        # RuntimeError: the server has ended meanwhile.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, answer, results, error)

    def step(fact: dict[str, Any] | T | None) -> None:
        if isinstance(fact, dict):
            results.append(fact)
        elif fact is not None and on_step is not None:
            on_step(fact)

    scheduler.submit(steps, client, on_step=step, on_end=end, payers=CALLER.get().payers)
    leave_turn()
    try:
        return await answer
    finally:
        scheduler.stop(client)


def _settle(answer: asyncio.Future[dict[str, Any]], results: list[dict[str, Any]], error: Exception | None) -> None:
    """End the future with `error`, or if that is None with the last of `results`, of which there must be one then.

    Does nothing if the future is done already, such as cancelled.
    """
    if answer.done():
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(results[-1])
