"""Reading the answers of servers in a job of the scheduler, while other jobs use its thread."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

import torch

from lookahead_core.engines.feed import Feed, read_all
from lookahead_core.serving.job import Job

T = TypeVar("T")


def read_outside(sources: Sequence[Generator[T, None, None]]) -> Generator[T, None, None]:
    """Do what `read_all` does; a job of a scheduler that calls this is suspended until an item has come.

    The generators run in other threads then. If the job is closed meanwhile, so are they, at their next item.
    """
    job = Job.current()
    if job is None:
        yield from read_all(sources)
        return
    feed = Feed(sources, job.notify)
    yield from feed.items(lambda: _suspend_until_ready(feed))


def _suspend_until_ready(feed: Feed[T]) -> None:
    """Suspend the current job until `take` of the feed would return at once; do nothing without a job."""
    # Another job may go on with the generator: each step of `Scheduler.roll_out` may be one of its own.
    job = Job.current()
    if job is not None and not feed.ready:
        # The mode is the thread's: other jobs must not inherit it.
        with torch.inference_mode(mode=False):
            job.wait_for_feed(feed)
