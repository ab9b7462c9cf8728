"""How few passes a text would take if somebody always knew from where in it to copy on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def passes_of_an_oracle(prompt: Sequence[int], written: Sequence[int]) -> int:
    """The passes of drafts that are always right, and go on as long as each token has come after the same one before.

    A pass wins what was drafted and one token more. No drafter that copies what follows a token can do better.
    """
    text = [*prompt, *written]
    seen = set(itertools.pairwise(prompt))
    passes, place = 0, len(prompt)
    while place < len(text):
        passes += 1
        while place < len(text) and (pair := (text[place - 1], text[place])) in seen:
            place += 1
        if place < len(text):
            seen.add(pair)
            place += 1
    return passes
