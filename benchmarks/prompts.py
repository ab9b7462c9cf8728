"""Prompts that the process has never seen: real English, cut at random, with a beginning nobody shares."""

from __future__ import annotations

import random
from pydoc_data.topics import topics
from typing import Any

FRESH_IDS = 4


class Prompts:
    """Draws token ids; no two draws begin alike, so no cache can hold any part of a new one."""

    def __init__(self, tokenizer: Any, seed: int = 0) -> None:
        # Python's own manual comes with Python: some 100,000 tokens of prose, and no file to carry.
        text = "\n".join(topics[name] for name in sorted(topics))
        self._corpus: list[int] = tokenizer.encode(text[:400_000], add_special_tokens=False)
        self._words = sorted(set(self._corpus) - set(tokenizer.all_special_ids))
        self._random = random.Random(seed)
        self._beginnings: set[tuple[int, ...]] = set()

    def draw(self, length: int) -> list[int]:
        """Ids for one repeat of one case."""
        beginning = self._new_beginning()
        rest = length - len(beginning)
        start = self._random.randrange(len(self._corpus) - rest)
        return [*beginning, *self._corpus[start : start + rest]]

    def _new_beginning(self) -> tuple[int, ...]:
        beginning = tuple(self._random.choices(self._words, k=FRESH_IDS))
        # One shared first id would already be a token that a prefix cache could spare.
        if any(beginning[0] == other[0] for other in self._beginnings):
            return self._new_beginning()
        self._beginnings.add(beginning)
        return beginning
