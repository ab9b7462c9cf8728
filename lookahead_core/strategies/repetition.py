"""Repetition: finds where a path of tokens begins to repeat itself."""

from __future__ import annotations

from collections.abc import Sequence

LEAST_BLOCK = 3
"""Number of tokens of the shortest repeated block: texts often repeat one or two tokens on purpose."""


def size_before_repetition(token_ids: Sequence[int], size: int) -> int | None:
    """Return how many tokens of a path to keep if it repeats itself or the text before it; None if it does not.

    The path is the last `size` of `token_ids`; the tokens before it are the end of the text. A path repeats itself if
    its last n tokens, at least LEAST_BLOCK, equal the n tokens before them, which may be those of the text. The
    smallest n counts. The result is `size` - n if both copies are in the path, else `size`.
    """
    for block in range(LEAST_BLOCK, min(size, len(token_ids) // 2) + 1):
        end = len(token_ids) - block
        if token_ids[-1] == token_ids[end - 1] and token_ids[end:] == token_ids[end - block : end]:
            return size - block if size >= 2 * block else size
    return None
