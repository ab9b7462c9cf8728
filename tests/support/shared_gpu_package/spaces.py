"""Stands for the package `spaces` in a process of the app, on a machine without shared GPUs."""

from __future__ import annotations

import os
from typing import Any

from tests.support.forking_gpu import ForkingGpu

_gpu = ForkingGpu(kills=float(os.environ.get("TEST_KILLS", "0.3")), seed=1)


def GPU(task: Any = None, *, duration: Any = None) -> Any:  # its name there
    """The decorator, with the stand-in's workers."""
    return _gpu if task is None else _gpu(task)
