"""Drafters for tests, some right most of the time and others misbehaving, and pass costs that do not change."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch

from lookahead_core.engines.engine import NodeScores
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.speculation.drafters.protocol import Guess
from lookahead_core.tree import Node


class Steady(PassCosts):
    """What passes usually cost, whatever a busy or slow machine makes of them: the same drafts everywhere."""

    def record(self, nodes: int, seconds: float) -> None:
        pass


class Scripted:
    """The base class: a state is the path so far, and nothing is learnt."""

    name = "scripted"
    hidden = False

    def read(self, token_ids: Sequence[int]) -> None:
        pass

    def hear(self, path: Sequence[int], new: int, scores: NodeScores, nodes: Sequence[Node]) -> None:
        pass

    def start(self, path: Sequence[int], vector: torch.Tensor | None, reach: int) -> Any:
        return tuple(path)

    def ways(self, state: Any) -> Sequence[Guess]:
        return ()

    def follow(self, state: Any, token_id: int) -> Any:
        return (*state, token_id)


class Saying(Scripted):
    """Drafts one token per state with high probability, given by a function of the path."""

    name = "saying"

    def __init__(self, says: Callable[[Sequence[int]], int]) -> None:
        self.says = says

    def ways(self, state: Any) -> Sequence[Guess]:
        return [Guess(self.says(state), 0.95, "said")]


class Oracle(Scripted):
    """Drafts the tokens of a known text, and a wrong token with probability `wrong`."""

    name = "oracle"

    def __init__(self, text: Sequence[int], vocabulary: int, wrong: float = 0.0, seed: int = 0) -> None:
        self.text = tuple(text)
        self.vocabulary = vocabulary
        self.wrong = wrong
        self.dice = random.Random(seed)

    def ways(self, state: Any) -> Sequence[Guess]:
        if state != self.text[: len(state)] or len(state) >= len(self.text):
            return [Guess(self.dice.randrange(self.vocabulary), 0.5, "lost")]
        right = self.text[len(state)]
        if self.dice.random() < self.wrong:
            return [Guess((right + 1) % self.vocabulary, 0.95, "right")]
        return [Guess(right, 0.95, "right"), Guess((right + 1) % self.vocabulary, 0.3, "other")]


class Random(Scripted):
    """Drafts random tokens with high probability."""

    name = "random"

    def __init__(self, vocabulary: int, seed: int = 0) -> None:
        self.vocabulary = vocabulary
        self.dice = random.Random(seed)

    def ways(self, state: Any) -> Sequence[Guess]:
        return [Guess(self.dice.randrange(self.vocabulary), 0.9, self.dice.randrange(9)) for _ in range(3)]


class Repeating(Scripted):
    """Drafts the last token again, three times per state."""

    name = "repeating"

    def ways(self, state: Any) -> Sequence[Guess]:
        return [Guess(state[-1], 0.99, "again")] * 3


class Beyond(Scripted):
    """Drafts invalid ids and end tokens, with invalid probabilities."""

    name = "beyond"

    def __init__(self, vocabulary: int, ends: Collection[int]) -> None:
        self.ids = [-1, vocabulary, 2**40, *ends, 1]

    def ways(self, state: Any) -> Sequence[Guess]:
        odds = (5.0, -1.0, math.nan, math.inf, 0.9, 0.9)
        return [Guess(token_id, value, None) for token_id, value in zip(self.ids, odds, strict=False)]


class Endless(Scripted):
    """Drafts the whole vocabulary after every state."""

    name = "endless"

    def __init__(self, vocabulary: int) -> None:
        self.all = [Guess(token_id, 1.0, "all") for token_id in range(vocabulary)]

    def ways(self, state: Any) -> Sequence[Guess]:
        return self.all


class Silent(Scripted):
    """Drafts nothing."""

    name = "silent"

    def start(self, path: Sequence[int], vector: torch.Tensor | None, reach: int) -> Any:
        return None


def hostile(vocabulary: int, ends: Collection[int] = ()) -> list[Scripted]:
    """All drafters that misbehave."""
    return [Random(vocabulary), Repeating(), Beyond(vocabulary, ends), Endless(vocabulary), Silent()]
