"""What of a long text a model reads: its start tokens, and the end of it, which moves on in strides."""

from __future__ import annotations


def window_start(length: int, context: int | None, room: int, first: int) -> int:
    """Up to where a text of so many tokens is left out, its first ones kept, so that there is room behind it.

    What is left out grows by a quarter of the context at a time, so that a cache lives through many steps.
    """
    if context is None or length + room <= context:
        return 0
    stride = max(1, min(context // 4, context - room - first))
    return -(-(length + room - context) // stride) * stride + first
