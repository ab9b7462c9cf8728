"""Experiments on shared GPUs: all of one is computed in a single task of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from lookahead_core.engines.dispatch import LookaheadDispatcher

T = TypeVar("T")


def steps_in_worker(
    dispatcher: LookaheadDispatcher,
    function: Callable[..., Iterator[T]],
    prompt: str,
    options: Mapping[str, Any],
    first: T,
    *,
    seconds: float,
    caller: Any,
) -> Iterator[T]:
    """Yield what `function(model, prompt, **options)` yields in a worker; the last result again in moments without one.

    `first` is yielded until there is a result. The other arguments are those of `LookaheadDispatcher.steps`, whose
    errors are raised.
    """
    found = first
    for step in dispatcher.steps(function, prompt, options, seconds=seconds, caller=caller):
        found = found if step is None else step
        yield found
