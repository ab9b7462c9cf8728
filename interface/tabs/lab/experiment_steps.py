"""The steps of an experiment as a page of the Lab gets them: not more often than they can be painted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from interface.server.page_session import PAINT_INTERVAL, View

Step = TypeVar("Step")


def painted_steps(steps: Iterator[Step], as_json: Callable[[Step], View]) -> Iterator[View]:
    """Yield the steps of an experiment as JSON values, the whole result in the last one; there must be at least one.

    Each but the last has the state "thinking" and as `view` what `as_json` returns; or it is `{}`, since views are made
    at most every PAINT_INTERVAL seconds. The last one repeats the last step with the state "settled".
    """
    step, painted = None, -math.inf
    for step in steps:
        if time.monotonic() - painted < PAINT_INTERVAL:
            yield {}
            continue
        yield {"state": "thinking", "view": as_json(step)}
        painted = time.monotonic()
    assert step is not None
    yield {"state": "settled", "view": as_json(step)}
