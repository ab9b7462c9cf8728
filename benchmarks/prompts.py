"""Prompts that are new to the process: English text cut at random, behind a random beginning of its own."""

from __future__ import annotations

import random
from pydoc_data.topics import topics
from typing import Any

FRESH_IDS = 4
"""Random token ids at the beginning of a prompt."""


class Prompts:
    """Draws prompts as token ids. No two begin with the same token, so no prefix cache can help.

    Prompts with the same tokenizer and `seed` come in the same order.
    """

    def __init__(self, tokenizer: Any, seed: int = 0) -> None:
        # Python's own manual: about 100,000 tokens of prose that come with every Python.
        text = "\n".join(topics[name] for name in sorted(topics))
        self._corpus: list[int] = tokenizer.encode(text[:400_000], add_special_tokens=False)
        self._words = sorted(set(self._corpus) - set(tokenizer.all_special_ids))
        self._random = random.Random(seed)
        self._beginnings: set[tuple[int, ...]] = set()

    def draw(self, length: int) -> list[int]:
        """Return `length` token ids: FRESH_IDS random ones, then a random part of a text."""
        beginning = self._new_beginning()
        rest = length - len(beginning)
        start = self._random.randrange(len(self._corpus) - rest)
        return [*beginning, *self._corpus[start : start + rest]]

    def _new_beginning(self) -> tuple[int, ...]:
        beginning = tuple(self._random.choices(self._words, k=FRESH_IDS))
        # A shared first token could already be in a prefix cache.
        if any(beginning[0] == other[0] for other in self._beginnings):
            return self._new_beginning()
        self._beginnings.add(beginning)
        return beginning
