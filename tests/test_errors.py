"""Errors are recognised by their type or text, and through their causes."""

from __future__ import annotations

import pytest
import torch

from lookahead_core.errors import is_out_of_memory


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 80 bytes."),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    ],
)
def test_running_out_of_memory_is_recognised_on_every_device_and_through_causes(error: Exception) -> None:
    assert is_out_of_memory(error)
    outer = ValueError("The model cannot be loaded.")
    outer.__cause__ = error
    assert is_out_of_memory(outer)


def test_other_errors_are_not_taken_for_a_lack_of_memory() -> None:
    assert not is_out_of_memory(RuntimeError("The shapes do not match."))
