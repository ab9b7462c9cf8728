"""Rejected drafts leave nothing behind; under rejection, end tokens and duplicate guesses keep their probability."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model, load_model
from lookahead_core.engines.engine import NodeScores
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.speculation.acceptance import sample_at
from lookahead_core.speculation.drafters.protocol import Guess
from tests.conftest import tiny_llama
from tests.speculation.test_acceptance import chi_square
from tests.support.drafting import Scripted


class Stepped(PassCosts):
    """A second node costs nothing, a third as much as both."""

    def record(self, nodes: int, seconds: float) -> None:
        """Whatever a pass takes."""

    def cost(self, nodes: int) -> float:
        return {1: 1.0, 2: 1.01}.get(nodes, 2.0)

    @property
    def min_node_cost(self) -> float:
        return 0.001


class Sure(Scripted):
    name = "sure"

    def ways(self, state: Any) -> list[Guess]:
        return [Guess(2, 0.6, "sure")]


class Drawing(Scripted):
    name = "drawing"

    def __init__(self) -> None:
        self.dice = random.Random(0)

    def ways(self, state: Any) -> list[Guess]:
        source = torch.tensor([0.1, 0.1, 0.6, 0.1, 0.1], dtype=torch.float64)
        return [Guess(sample_at(source, self.dice.random()), 0.5, "drawn", source)]


class Failing(Scripted):
    """Guesses, and fails when it is told what came of it for the third time."""

    name = "failing"
    heard = 0

    def ways(self, state: Any) -> list[Guess]:
        return [Guess(token_id, 0.9, token_id) for token_id in (7, 8, 9)]

    def hear(self, path: Any, new: int, scores: NodeScores, nodes: Any) -> None:
        self.heard += 1
        if self.heard > 2:
            raise RuntimeError("A drafter of somebody's own that fails.")


class Those(Scripted):
    """Guesses these tokens after four others."""

    name = "those"

    def __init__(self, token_ids: list[int]) -> None:
        self.token_ids = token_ids

    def ways(self, state: Any) -> list[Guess]:
        return [Guess(token_id, 0.9, token_id) for token_id in self.token_ids] if len(state) == 4 else []


def small(**options: Any) -> Model:
    return load_model(tiny_llama(5, **options), tokenizer=None)


def counted(model: Model, runs: int, **options: Any) -> list[int]:
    """How often each token comes first, over many streams by rejection."""
    counts: Counter[int] = Counter()
    for seed in range(runs):
        document = Document(model, token_ids=[1, 2, 3])
        steps = document.stream(max_new_tokens=2, temperature=1.0, seed=seed, speculate="rejection", **options)
        counts[next(iter(steps)).token_id] += 1
    return [counts[token_id] for token_id in range(5)]


def exact(model: Model) -> list[float]:
    return Document(model, token_ids=[1, 2, 3]).odds(temperature=1.0).exp().tolist()


@pytest.mark.slow
def test_an_end_that_was_drawn_comes_with_its_odds() -> None:
    model, little = small(eos_token_id=0), small(eos_token_id=0)
    assert exact(model)[0] > 0.05
    assert abs(chi_square(counted(model, 300, drafters=(), draft_model=little), exact(model))) < 5


@pytest.mark.slow
def test_under_rejection_a_token_keeps_its_probability_if_two_drafters_guess_it() -> None:
    model = small(eos_token_id=None)
    model.engine.pass_costs = Stepped()  # type: ignore[misc]
    assert abs(chi_square(counted(model, 2_000, drafters=[Sure(), Drawing()]), exact(model))) < 5


def test_a_drafter_that_fails_leaves_no_nodes_behind() -> None:
    document = Document(load_model(tiny_llama(300), tokenizer=None), token_ids=[5, 9, 13])
    for _ in range(3):
        with pytest.raises(RuntimeError, match="fails"):
            list(document.stream(max_new_tokens=10, speculate=True, drafters=[Failing()]))
        document.check()
        slots = document.tree.cache.slots
        idle = [node for node in document.tree.nodes() if node.prediction is None and node in slots]
        assert all(node in document.tree.path(document.head) for node in idle)
        assert not [
            n for n in document.tree.nodes() if n.prediction is None and not n.children and n.token_id in (7, 8)
        ]


def test_rejected_draft_nodes_that_were_pending_before_take_no_cache_slot() -> None:
    document = Document(load_model(tiny_llama(300, eos_token_id=None), tokenizer=None), token_ids=[5, 9, 13])
    first, second = (step.token_id for step in document.stream(max_new_tokens=2, speculate=False))
    unread = [token_id for token_id in range(20, 26) if token_id != second]
    document.tree.descend(document.head, [first])
    below = document.head.children[first]
    for token_id in unread:
        document.tree.expand(below, token_id)
    below.prediction = None
    steps = document.stream(max_new_tokens=3, speculate=True, drafters=[Those(unread)])
    list(steps)
    assert any(each.evaluated > 1 for each in steps.passes)
    document.check()
    assert not [node for node in document.tree.cache.slots if node.parent is below and node.token_id in unread]
