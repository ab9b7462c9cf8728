"""Timing in turns, so that a slow minute of the machine affects all methods alike."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TypeVar

import torch

Value = TypeVar("Value")


def timed(call: Callable[[], Value], device: torch.device) -> tuple[float, Value]:
    """Return the seconds of wall time of one call, and its result; garbage is collected before.

    On a GPU the time lasts until its work is done.
    """
    gc.collect()
    wait_for(device)
    start = perf_counter()
    value = call()
    wait_for(device)
    return perf_counter() - start, value


def wait_for(device: torch.device) -> None:
    """Wait until all work on a CUDA device is done, since calls return before that; nothing for other devices."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def rotated(contestants: Sequence[Value], repeat: int) -> list[Value]:
    """Return the contestants, rotated to the left by `repeat`, so that none always runs first."""
    first = repeat % len(contestants)
    return [*contestants[first:], *contestants[:first]]
