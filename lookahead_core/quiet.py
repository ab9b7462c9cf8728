"""Some libraries tell at import what they lack. Whoever sits at a page or a terminal can do nothing about it."""

from __future__ import annotations

import logging

TALKERS = ("torchao", "torch.utils._pytree")


def hush() -> None:
    """Let them tell of errors only; for programs, before they load a model. A library leaves others' logs alone."""
    for name in TALKERS:
        logging.getLogger(name).setLevel(logging.ERROR)
