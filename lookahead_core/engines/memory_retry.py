"""Forward passes that run out of memory: tried again in smaller passes, after memory was freed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from lookahead_core.errors import NO_MEMORY, NoRoom, is_out_of_memory

log = logging.getLogger(__name__)
T = TypeVar("T")


def with_smaller_passes(
    compute: Callable[[int], Iterator[T]], sizes: Sequence[int], free: Callable[[], None]
) -> Iterator[T]:
    """Generator: yield what `compute` yields for the first of `sizes`, the most tokens of a pass.

    If it runs out of memory, `free` is called, memory that torch keeps for later is freed, and `compute` is called with
    the next size, from the beginning: what it has yielded before comes again. Raises NoRoom after the last size, and
    other errors unchanged.
    """
    last: Exception | None = None
    for size in sizes:
        try:
            yield from compute(size)
            return
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            log.warning("Memory has run out in passes of up to %d tokens.", size)
            last = error.with_traceback(None)  # a traceback refers to the tensors of the pass
        free()
        _empty_torch_caches()
    raise NoRoom(NO_MEMORY) from last


def _empty_torch_caches() -> None:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()
