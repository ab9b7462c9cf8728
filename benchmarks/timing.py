"""How things are timed: in turns, so that a slow minute of the machine falls on everybody alike."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TypeVar

import torch

Value = TypeVar("Value")


def timed(call: Callable[[], Value], device: torch.device) -> tuple[float, Value]:
    """The wall seconds of one call, with what it returned; garbage is collected before the clock starts."""
    gc.collect()
    wait_for(device)
    start = perf_counter()
    value = call()
    wait_for(device)
    return perf_counter() - start, value


def wait_for(device: torch.device) -> None:
    """Let a GPU finish what it was given; its calls return before their work is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def rotated(contestants: Sequence[Value], repeat: int) -> list[Value]:
    """Everybody once, in an order that moves on by one with each repeat: nobody always follows the same one."""
    first = repeat % len(contestants)
    return [*contestants[first:], *contestants[:first]]
