"""Acceptance by rejection: whatever is drafted, every token keeps the probability that the model gives it."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model, load_model
from lookahead_core.document.batch import stream_batch
from lookahead_core.engines.engine import NodeScores
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.speculation.acceptance import accept_by_rejection, residual, sample_at
from lookahead_core.speculation.draft_value import noise_adjustment
from lookahead_core.speculation.drafters.protocol import Guess
from lookahead_core.strategies.sampling import gumbel_noise, gumbel_noise_by_token
from lookahead_core.tree import Node
from tests.conftest import tiny_llama
from tests.strategies.test_sampling import reference_noise
from tests.support.drafting import Endless, Random, Repeating, Scripted
from tests.support.parameters import mostly_slow

LETTERS = 5
PLACES = range(8_000)
PROMPT = [1, 2, 3]
SURPRISING = 2.5
"""Standard deviations. All dice are seeded, so a test that passes once always does. What a bias adds to a chi-square
grows with the number of runs: with half the bound, half the runs find it."""
DRAWS = {"temperature": 1.3, "top_k": 4, "min_p": 0.02}


def odds_of(seed: int, size: int = LETTERS, spread: float = 1.0) -> torch.Tensor:
    dice = torch.Generator().manual_seed(seed)
    return torch.softmax(spread * torch.randn(size, generator=dice, dtype=torch.float64), -1)


def chi_square(counts: Sequence[int], odds: Sequence[float]) -> float:
    """How surprising the counts are, in standard deviations of what the statistic would be by chance."""
    total, pairs = sum(counts), [(count, share) for count, share in zip(counts, odds, strict=True) if share > 0]
    assert all(count == 0 for count, share in zip(counts, odds, strict=True) if share <= 0)
    statistic = sum((count - total * share) ** 2 / (total * share) for count, share in pairs)
    freedom = max(1, len(pairs) - 1)
    return (statistic - freedom) / math.sqrt(2 * freedom)


def sources(kind: str, dice: random.Random) -> list[tuple[int, torch.Tensor | None]]:
    """Drafted tokens: drawn from one distribution after the other, or sure to be drafted."""
    if kind == "sure":
        return [(token_id, None) for token_id in dice.sample(range(LETTERS), 3)]
    spread = {"alike": 0.3, "unlike": 3.0, "mixed": 1.5}[kind]
    draws = [odds_of(seed, spread=spread) for seed in (50, 51)]
    made: list[tuple[int, torch.Tensor | None]] = [(sample_at(source, dice.random()), source) for source in draws]
    return [*made, (2, None)] if kind == "mixed" else made


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sure", "alike", "unlike", "mixed"])
def test_a_token_comes_with_its_odds_whatever_was_drafted(kind: str) -> None:
    dice, odds = random.Random(1), odds_of(7)
    counts: Counter[int] = Counter()
    for _ in range(8_000):
        drafted = sources(kind, dice)
        counts[accept_by_rejection(odds, drafted, [dice.random() for _ in drafted], dice.random()).token_id] += 1
    assert abs(chi_square([counts[letter] for letter in range(LETTERS)], odds.tolist())) < 5


@pytest.mark.slow
def test_a_draft_is_taken_as_often_as_both_models_agree() -> None:
    """The share of drafts that hold is the sum of the smaller ones of both odds: as the paper says."""
    dice, odds, source = random.Random(2), odds_of(7), odds_of(8)
    taken = 0
    for _ in range(20_000):
        taken += accept_by_rejection(
            odds, [(sample_at(source, dice.random()), source)], [dice.random()], dice.random()
        ).accepted
    assert taken / 20_000 == pytest.approx(float(torch.minimum(odds, source).sum()), abs=0.02)


def test_the_residual_is_the_part_that_the_draft_does_not_cover() -> None:
    odds, source = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.6, 0.2])
    assert residual(odds, 1, source).tolist() == pytest.approx([1.0, 0.0, 0.0])
    assert residual(odds, 0, None).tolist() == pytest.approx([0.0, 0.6, 0.4])
    assert residual(odds, 0, odds).tolist() == pytest.approx(odds.tolist())


def test_noise_for_one_token_is_the_noise_for_all() -> None:
    ids = torch.arange(500)
    for seed, stream, position in ((0, 0, 0), (7, 2, 31), (2**53, 2**40, 8000)):
        one = gumbel_noise_by_token(seed, stream, position)
        expected = [reference_noise(seed, stream, position, token_id) for token_id in range(500)]
        assert [one(token_id) for token_id in range(500)] == pytest.approx(expected, rel=1e-12)
        assert gumbel_noise(seed, stream, position, ids).tolist() == pytest.approx(expected, rel=1e-12)


def test_odds_with_known_dice_are_on_average_the_odds_without() -> None:
    for odds in (0.01, 0.3, 0.9):
        bent = [
            noise_adjustment(lambda place, token_id: gumbel_noise_by_token(3, 0, place)(token_id))(place, 5, odds)
            for place in PLACES
        ]
        assert sum(bent) / len(bent) == pytest.approx(odds, rel=0.05)


@pytest.mark.parametrize("odds", [0.0, 1.0])
def test_odds_of_0_and_1_are_the_same_with_any_noise(odds: float) -> None:
    for noise in (-3.0, 0.0, 5.0):
        assert noise_adjustment(lambda depth, token_id, noise=noise: noise)(2, 5, odds) == odds


class Cheap(PassCosts):
    """Passes whose size hardly matters, however many texts share them: what is drafted at all is tried."""

    def record(self, nodes: int, seconds: float) -> None:
        pass

    def cost(self, nodes: int) -> float:
        return 1 + 1e-5 * nodes

    @property
    def min_node_cost(self) -> float:
        return 1e-5


class Table:
    """An engine that has computed everything already: for a hundred thousand short runs."""

    def __init__(self, model: Model, prompt: Sequence[int], depth: int) -> None:
        self.rows: dict[tuple[int, ...], torch.Tensor] = {}
        self.pass_costs, self.passes, self.batch_invariant_rows = Cheap(), 0, None
        document = Document(model, token_ids=prompt)
        for size in range(depth):
            for tail in itertools.product(range(LETTERS), repeat=size):
                node = document.tree.descend(document.head, tail)
                self.rows[(*prompt, *tail)] = model.engine.score([node]).logits[0].clone()

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        return NodeScores(nodes, torch.stack([self.rows[tuple(node.tree.token_ids(node))] for node in nodes]))

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        scores = self.score(nodes)
        scores.store_predictions(scores.nodes)
        return scores.logprobs_of(scores.nodes)

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        return []

    def free(self, nodes: Sequence[Node]) -> None:
        pass

    def cache_usage(self, tree: Any) -> tuple[int, int]:
        return 0, 0


class Knowing(Scripted):
    """Guesses one token with the odds of a wrong model, drawn, and says so."""

    name = "knowing"

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def ways(self, state: Any) -> Sequence[Guess]:
        source = odds_of(sum(state), spread=2.0)
        return [Guess(sample_at(source, self.dice.random()), 0.9, "drawn", source)]


class Doubting(Knowing):
    """Is hardly ever right, it says: alone its guesses do not pay."""

    def ways(self, state: Any) -> Sequence[Guess]:
        return [way._replace(odds=0.05) for way in super().ways(state)]


class Following(Scripted):
    """Is sure of what follows one of two tokens, and silent about the other: only below the one a draft pays."""

    name = "following"

    def ways(self, state: Any) -> Sequence[Guess]:
        return [Guess(state[-1], 0.99, "sure")] if state[-1] in (0, 4) and len(state) > len(PROMPT) else []


def small_model(weights: int = 0) -> Model:
    model = load_model(tiny_llama(LETTERS, weights, eos_token_id=None), tokenizer=None)
    table = Table(model, PROMPT, 3)
    object.__setattr__(model, "engine", table)
    return model


def exact(model: Model) -> dict[tuple[int, ...], float]:
    """The reference: the odds of each text of three tokens, each row cut and heated by hand."""
    rows = model.engine.rows  # type: ignore[attr-defined]

    def shares(path: tuple[int, ...]) -> list[float]:
        heated = [float(value) / DRAWS["temperature"] for value in rows[path].double().log_softmax(-1)]
        weights = [math.exp(value) for value in heated]
        kept = sorted(weights, reverse=True)[: int(DRAWS["top_k"])]
        weights = [weight if weight >= kept[-1] else 0.0 for weight in weights]
        weights = [weight if weight >= DRAWS["min_p"] * max(weights) else 0.0 for weight in weights]
        return [weight / sum(weights) for weight in weights]

    found = {}
    for text in itertools.product(range(LETTERS), repeat=3):
        found[text] = math.prod(shares((*PROMPT, *text[:place]))[letter] for place, letter in enumerate(text))
    return found


TEAMS: dict[str, Callable[[int], list[Scripted]]] = {
    "nobody": lambda seed: [],
    "drawn": lambda seed: [Knowing(seed)],
    "random": lambda seed: [Random(LETTERS, seed)],
    "drawn, and followed": lambda seed: [Doubting(seed), Following()],
    "drawn, and others": lambda seed: [Knowing(seed), Repeating(), Endless(LETTERS)],
}


def texts(
    model: Model, team: str, runs: int, together: int = 300, draft_model: Model | None = None
) -> Counter[tuple[int, ...]]:
    """What comes of so many runs, many side by side; more than a node keeps notes of."""
    found: Counter[tuple[int, ...]] = Counter()
    for seed in range(-(-runs // together)):
        documents = [Document(model, token_ids=PROMPT)] * min(together, runs - seed * together)
        given: dict[str, Any] = {"speculate": "rejection", "drafters": TEAMS[team](seed), "draft_model": draft_model}
        streams = stream_batch(documents, max_new_tokens=3, seed=seed, **given, **DRAWS)
        for _ in streams:
            pass
        found.update(tuple(step.token_id for step in steps) for steps in streams.steps)
        assert any(one.won > 1 for passes in streams.passes for one in passes), "drafts are made, and taken"
    return found


@pytest.mark.parametrize(
    ("team", "runs"),
    [
        ("drawn, and followed", 1_500),
        *(pytest.param(team, 10_000, marks=pytest.mark.slow) for team in ("drawn", "random", "drawn, and others")),
        pytest.param("drawn, and followed", 50_000, marks=[pytest.mark.slow, pytest.mark.long]),
    ],
)
def test_under_rejection_texts_keep_their_probabilities(team: str, runs: int) -> None:
    model = small_model()
    with torch.no_grad():
        require_odds(texts(model, team, runs), exact(model), runs)


@pytest.mark.parametrize(("weights", "runs"), mostly_slow([(0, 1_500), (1, 15_000)], 0))
def test_under_rejection_texts_keep_their_probabilities_with_a_sampling_draft_model(weights: int, runs: int) -> None:
    model, little = small_model(), small_model(weights)
    with torch.no_grad():
        require_odds(texts(model, "nobody", runs, draft_model=little), exact(model), runs)


def require_odds(counts: Counter[tuple[int, ...]], odds: dict[tuple[int, ...], float], runs: int) -> None:
    keys = sorted(odds, key=lambda text: -odds[text])
    # Rare texts are counted together, as a chi-square needs.
    common = [text for text in keys if odds[text] * runs >= 8]
    rare = [text for text in keys if odds[text] * runs < 8]
    observed = [*(counts[text] for text in common), sum(counts[text] for text in rare)]
    expected = [*(odds[text] for text in common), sum(odds[text] for text in rare)]
    assert abs(chi_square(observed, expected)) < SURPRISING
