"""The least number of passes of a drafter that copies from the text, if it always chose the right position."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def passes_of_an_oracle(prompt: Sequence[int], written: Sequence[int]) -> int:
    """Return the number of passes to write the token ids `written` after `prompt` with perfect copied drafts.

    A draft goes on as long as its next bigram has occurred earlier in the text, and is always right; a pass gains the
    draft and one more token. No drafter that copies continuations of single tokens needs fewer passes.
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
