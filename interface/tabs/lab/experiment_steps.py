"""The steps of an experiment as a page of the Lab gets them: none twice, none faster than they can be painted."""

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


def changed_steps(
    steps: Iterator[Step], has_result: Callable[[Step], bool], as_json: Callable[[Step], View]
) -> Iterator[View]:
    """Yield the steps of an experiment as JSON values, one for each step, and the last one again at the end.

    Each but the last has the state "thinking" and as `view` what `as_json` returns; or it is `{}`, if the step has no
    result yet or is equal to the one before. The last one has the state "settled".
    """
    view: View = {}
    shown: Step | None = None
    for step in steps:
        if step == shown or not has_result(step):
            yield {}
        else:
            shown, view = step, as_json(step)
            yield {"state": "thinking", "view": view}
    yield {"state": "settled", "view": view}
