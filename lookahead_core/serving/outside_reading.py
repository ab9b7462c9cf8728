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
    try:
        while True:
            # Another job may go on with this generator: each step of `Scheduler.roll_out` may be one of its own.
            job = Job.current()
            if job is not None and not feed.ready:
                # The mode is the thread's: other jobs must not inherit it.
                with torch.inference_mode(mode=False):
                    job.wait_for_feed(feed)
            try:
                item = feed.take()
            except StopIteration:
                return
            yield item
    finally:
        feed.close()
