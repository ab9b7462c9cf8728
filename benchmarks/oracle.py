"""The least number of passes of a drafter that copies from the text: it always knows the right position."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def passes_of_an_oracle(prompt: Sequence[int], written: Sequence[int]) -> int:
    """The passes for `written` if every draft is right and continues while its bigrams occurred in the text before.

    A pass wins its draft and one more token. No drafter that copies continuations of single tokens needs fewer passes.
    """
    text = [*prompt, *written]
    seen = set(itertools.pairwise(prompt))
    passes, position = 0, len(prompt)
    while position < len(text):
        passes += 1
        while position < len(text) and (pair := (text[position - 1], text[position])) in seen:
            position += 1
        if position < len(text):
            seen.add(pair)
            position += 1
    return passes
