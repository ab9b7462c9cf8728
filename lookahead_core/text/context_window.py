"""The part of a long text that a model reads: its start tokens, and a window at its end that moves in strides."""

from __future__ import annotations


def window_start(length: int, context: int | None, room: int, first: int) -> int:
    """Return the index, among all `length` tokens, of the first one in the window; 0 if the model can read all of them.

    That is so if they and `room` more fit `context`, in tokens, or if that is None (no limit). Otherwise the model
    reads the first `first` tokens, start tokens, which `length` counts too, and those from the returned index on, which
    is at least `first`: then `room` more fit. `room + first` must be below `context`, which is not checked. As the text
    grows, the window moves by at most a quarter of the context at a time, so that a cache serves many steps.
    """
    if context is None or length + room <= context:
        return 0
    stride = max(1, min(context // 4, context - room - first))
    return -(-(length + room - context) // stride) * stride + first
