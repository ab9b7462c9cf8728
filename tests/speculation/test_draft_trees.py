"""Draft trees equal a reference search on lists: which guesses are verified together, by odds and cost."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from lookahead_core.engines.engine import NodeScores
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.speculation.draft_and_verify import Speculation
from lookahead_core.speculation.draft_tree import DraftNode
from lookahead_core.speculation.draft_value import PassLoad
from lookahead_core.speculation.drafters.protocol import Guess, GuessAccuracy
from lookahead_core.tree import TokenTree
from tests.support.drafting import Scripted

VOCABULARY, END = 40, 39
PROMPT = (3, 4, 5)
TREES = 250


class Table(PassCosts):
    """Passes that cost what a table says, and from its end on as much more for each node as its last step."""

    def __init__(self, steps: Sequence[float]) -> None:
        super().__init__()
        self.steps = list(steps)

    def record(self, nodes: int, seconds: float) -> None:
        pass

    def cost(self, nodes: int) -> float:
        known = self.steps[: nodes - 1] + [self.steps[-1]] * (nodes - 1 - len(self.steps))
        return 1 + sum(known)

    @property
    def min_node_cost(self) -> float:
        return min(self.steps)


class Fixed(Scripted):
    """Guesses after each path what a table says."""

    def __init__(self, name: str, guesses: dict[tuple[int, ...], list[tuple[int, float]]]) -> None:
        self.name = name
        self.guesses = guesses

    def ways(self, state: Any) -> Sequence[Guess]:
        found = self.guesses.get(tuple(state)[len(PROMPT) :], [])
        return [Guess(token_id, odds, (self.name, token_id, odds)) for token_id, odds in found]


def random_drafter(dice: random.Random, name: str, deep: int) -> Fixed:
    """Guesses below each other down to some depth, a few at each place."""
    guesses: dict[tuple[int, ...], list[tuple[int, float]]] = {}
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        path = waiting.pop()
        if len(path) < deep and dice.random() < 0.8:
            tokens = dice.sample([*range(6), END], dice.randint(1, 4))
            guesses[path] = [(token_id, dice.choice([0.99, 0.9, 0.7, 0.5, 0.3, 0.1])) for token_id in tokens]
            waiting += [(*path, token_id) for token_id in tokens if token_id != END]
    return Fixed(name, guesses)


def likelihoods(drafters: Sequence[Fixed], path: tuple[int, ...]) -> dict[int, float]:
    """How likely each token is guessed after a path: by the surest of all, and together no more than one allows."""
    found: dict[int, float] = {}
    for drafter in drafters:
        for token_id, odds in drafter.guesses.get(path, []):
            if token_id != END:
                found[token_id] = max(found.get(token_id, 0.0), min(0.995, odds))
    surest = max(found.values(), default=0.0)
    others = sum(found.values()) - surest
    share = min(1.0, (1 - surest) / others) if others else 1.0
    return {token_id: odds if odds == surest else odds * share for token_id, odds in found.items()}


def expected_tree(
    drafters: Sequence[Fixed], max_depth: int, costs: PassCosts, lines: int, further: int, least: float = 0.0
) -> list[tuple[int, ...]]:
    """The likeliest guesses, as many as win most for what the pass costs; a few more are looked at beyond that."""
    open_ones: dict[tuple[int, ...], float] = {}

    def open_below(path: tuple[int, ...], odds: float) -> None:
        if len(path) < max_depth:
            for token_id, likely in likelihoods(drafters, path).items():
                open_ones[(*path, token_id)] = odds * likely

    open_below((), 1.0)
    chosen: list[tuple[int, ...]] = []
    expected, best, worth = float(lines), 0, lines / costs.cost(lines)
    while open_ones and len(chosen) < min(64, best + further):
        path = max(open_ones, key=lambda one: open_ones[one])
        odds = open_ones.pop(path)
        if odds < least or odds * costs.cost(lines + len(chosen)) <= expected * costs.min_node_cost:
            break
        chosen.append(path)
        expected += odds
        open_below(path, odds)
        if expected / costs.cost(lines + len(chosen)) > worth:
            best, worth = len(chosen), expected / costs.cost(lines + len(chosen))
    return chosen[:best]


def drafted(speculation: Speculation, max_depth: int, load: PassLoad) -> tuple[list[tuple[int, ...]], TokenTree]:
    tree = TokenTree()
    head = tree.descend(tree.root, PROMPT)
    nodes = speculation.draft(head, PROMPT, max_depth, load, None)
    assert nodes[0] is head
    paths = [tuple(tree.token_ids(node))[len(PROMPT) :] for node in nodes]
    assert speculation.drafted[0] is head and set(speculation.drafted) == set(nodes)
    assert all(speculation.has_drafted(node) for node in nodes)
    assert [path[:-1] in paths[:place] for place, path in enumerate(paths)][1:] == [True] * (len(paths) - 1)
    return paths[1:], tree


def steps_of(dice: random.Random) -> list[float]:
    """Smooth costs, and ones that jump at some sizes, as those of matrix products do."""
    flat = dice.choice([0.01, 0.05, 0.2])
    return [flat if dice.random() < 0.8 else dice.choice([0.3, 1.0]) for _ in range(70)]


@pytest.mark.parametrize("part", range(2))
def test_a_draft_holds_the_most_probable_guesses_with_the_most_expected_tokens_per_second(part: int) -> None:
    sizes = set()
    for seed in range(part * TREES, part * TREES + TREES):
        dice = random.Random(seed)
        drafters = [random_drafter(dice, name, dice.randint(1, 5)) for name in ("one", "other")[: dice.randint(1, 2)]]
        costs, max_depth, lines = Table(steps_of(dice)), dice.randint(1, 6), dice.randint(1, 3)
        least = dice.choice([0.0, 0.35])
        speculation = Speculation(drafters, GuessAccuracy(), costs, frozenset({END}), VOCABULARY, min_odds=least)
        load = PassLoad(lines)
        paths, _ = drafted(speculation, max_depth, load)
        expected = expected_tree(drafters, max_depth, costs, lines, 12, least)
        assert sorted(paths) == sorted(expected), seed
        assert load.nodes == lines + len(paths)
        odds = math.fsum(guess.odds for guess in speculation._draft.by_node.values())  # type: ignore[union-attr]
        assert load.expected == pytest.approx(lines + odds - 1)
        sizes.add(len(paths))
    assert {0, 1, 2, 3} < sizes and max(sizes) > 6


def test_among_equally_probable_guesses_the_first_is_drafted_and_nodes_are_in_depth_first_order() -> None:
    guesses = {(): [(1, 0.5), (2, 0.45)], (1,): [(3, 0.9), (4, 0.05)], (2,): [(5, 0.9)], (1, 3): [(6, 0.9)]}
    speculation = Speculation(
        [Fixed("one", guesses)], GuessAccuracy(), Table([0.001] * 70), frozenset({END}), VOCABULARY
    )
    paths, _ = drafted(speculation, 9, PassLoad(1))
    assert paths == [(1,), (1, 3), (1, 3, 6), (1, 4), (2,), (2, 5)], "below each node its likeliest guess comes first"


def test_a_draft_has_at_most_64_nodes_and_takes_at_most_64_guesses_per_drafter_and_node() -> None:
    many = {(): [(token_id, 0.01) for token_id in range(90)]}
    costs = Table([1e-9] * 200)
    speculation = Speculation([Fixed("one", many)], GuessAccuracy(), costs, frozenset(), 200)
    paths, _ = drafted(speculation, 3, PassLoad(1))
    assert sorted(paths) == [(token_id,) for token_id in range(64)]
    deep = {(0,) * size: [(0, 0.99)] for size in range(90)}
    paths, _ = drafted(Speculation([Fixed("one", deep)], GuessAccuracy(), costs, frozenset(), 200), 100, PassLoad(1))
    assert paths == [(0,) * size for size in range(1, 65)]
    late = {(): [(token_id, 0.001) for token_id in range(100, 170)] + [(5, 0.9)]}
    paths, _ = drafted(Speculation([Fixed("one", late)], GuessAccuracy(), costs, frozenset(), 200), 1, PassLoad(1))
    assert (5,) not in paths, "nobody listens so long"


def test_invalid_ids_and_end_tokens_are_not_drafted() -> None:
    guesses = {(): [(-1, 0.9), (VOCABULARY, 0.9), (END, 0.9), (VOCABULARY - 2, 0.5), (0, 0.4)]}
    speculation = Speculation(
        [Fixed("one", guesses)], GuessAccuracy(), Table([0.001] * 9), frozenset({END}), VOCABULARY
    )
    paths, _ = drafted(speculation, 3, PassLoad(1))
    assert paths == [(VOCABULARY - 2,), (0,)]


def test_the_noise_adjustment_gets_the_depth_and_token_of_a_guess() -> None:
    guesses = {(): [(1, 0.5), (2, 0.4)], (1,): [(3, 0.5)], (2,): [(3, 0.5)]}
    seen: list[tuple[int, int, float]] = []

    def luck(depth: int, token_id: int, odds: float) -> float:
        seen.append((depth, token_id, odds))
        return 0.9 if token_id in (2, 3) else 0.01

    speculation = Speculation([Fixed("one", guesses)], GuessAccuracy(), Table([0.2] * 9), frozenset({END}), VOCABULARY)
    tree = TokenTree()
    head = tree.descend(tree.root, PROMPT)
    nodes = speculation.draft(head, PROMPT, 5, PassLoad(1), luck)
    assert [tuple(tree.token_ids(node))[3:] for node in nodes] == [(), (2,), (2, 3)]
    assert seen == [(0, 1, 0.5), (0, 2, 0.4), (1, 3, 0.5)]


def test_no_draft_is_deeper_than_the_remaining_length() -> None:
    guesses = {(): [(1, 0.99)], (1,): [(1, 0.99)], (1, 1): [(1, 0.99)]}
    for max_depth in range(4):
        speculation = Speculation([Fixed("one", guesses)], GuessAccuracy(), Table([0.01] * 9), frozenset(), VOCABULARY)
        paths, tree = drafted(speculation, max_depth, PassLoad(1))
        assert paths == [(1,) * size for size in range(1, max_depth + 1)]
        assert tree.size == len(PROMPT) + max_depth and len(speculation.created_nodes) == max_depth


def test_a_draft_tells_which_of_its_nodes_it_has_made_and_which_it_has_found_unread() -> None:
    guesses = {(): [(1, 0.9), (2, 0.08)], (1,): [(3, 0.9)]}
    speculation = Speculation([Fixed("one", guesses)], GuessAccuracy(), Table([0.001] * 9), frozenset(), VOCABULARY)
    tree = TokenTree()
    head = tree.descend(tree.root, PROMPT)
    there = tree.descend(head, [1])
    read = tree.descend(head, [2])
    read.prediction = object()  # type: ignore[assignment]
    speculation.draft(head, PROMPT, 5, PassLoad(1), None)
    assert speculation.reused_nodes == [there] and speculation.created_nodes == [there.children[3]]
    assert speculation.discard_draft() == [there.children[3]] and speculation.created_nodes == []
    assert speculation.drafted == [head] and not speculation.has_drafted(there)
    assert speculation.drafted_below(head) == []


def test_equal_guesses_of_two_drafters_are_merged_except_under_rejection() -> None:
    source = torch.full((VOCABULARY,), 1 / VOCABULARY)

    class Drawn(Fixed):
        def ways(self, state: Any) -> Sequence[Guess]:
            return [way._replace(source=source) for way in super().ways(state)]

    drafters = [Drawn("one", {(): [(1, 0.6)]}), Drawn("other", {(): [(1, 0.7), (END, 0.2)]})]
    made = {
        apart: Speculation(
            drafters, GuessAccuracy(), Table([0.01] * 9), frozenset({END}), VOCABULARY, separate_duplicates=apart
        )
        for apart in (False, True)
    }
    for apart, speculation in made.items():
        tree = TokenTree()
        head = tree.descend(tree.root, PROMPT)
        load = PassLoad(1)
        nodes = speculation.draft(head, PROMPT, 5, load, None)
        assert [node.token_id for node in nodes[1:]] == [1]
        guess: DraftNode = speculation._draft.by_node[nodes[1]]  # type: ignore[union-attr]
        tried = [token_id for token_id, _ in speculation.drafted_below(head)]
        if apart:
            assert tried == [1, 1, END], "each draw is tried, an end as well"
            assert load.nodes == 4 and guess.drafters == ("other",)
        else:
            assert tried == [1] and guess.drafters == ("one", "other") and load.nodes == 2
            assert guess.odds == pytest.approx(0.7), "two who guess the same are no surer than the surer one"


def test_accuracy_combines_the_drafters_estimate_with_observed_guesses() -> None:
    """The drafter's word counts for eight guesses; each guess counts for 0.98 of the one after it."""
    trust, way = GuessAccuracy(), Guess(7, 0.5, "sign")
    assert trust.odds("one", way) == 0.5
    results = [True, True, False, True]
    for right in results:
        trust.learn("one", way, right)
    weights = [0.98**age for age in range(len(results))][::-1]
    right = sum(weight for weight, one in zip(weights, results, strict=True) if one)
    assert trust.odds("one", way) == pytest.approx((right + 8 * 0.5) / (sum(weights) + 8))
    assert trust.odds("one", way._replace(odds=0.9)) == pytest.approx((right + 8 * 0.9) / (sum(weights) + 8))
    assert trust.odds("other", way) == trust.odds("one", way._replace(sign="other")) == 0.5


def test_guesses_that_no_drafter_made_before_count_for_less_where_guesses_of_the_same_odds_were_wrong() -> None:
    class Surprising(Fixed):
        """Gives each guess a sign of its own, so that nothing is learned about this drafter's guesses alone."""

        def ways(self, state: Any) -> Sequence[Guess]:
            return [guess._replace(sign=object()) for guess in super().ways(state)]

    drafter = Surprising("one", {(): [(1, 0.9)]})
    speculation = Speculation([drafter], GuessAccuracy(), Table([0.3] * 9), frozenset(), VOCABULARY)
    sizes = []
    for _ in range(30):
        paths, tree = drafted(speculation, 1, PassLoad(1))
        head = tree.descend(tree.root, PROMPT)
        scores = NodeScores([head], torch.zeros(1, VOCABULARY))
        speculation.learn_from_pass([*PROMPT, 2], 1, [head], scores, 0.1)
        sizes.append(len(paths))
    # After n wrong guesses the odds are about 8 * 0.9 / (8 + n), and a second node pays above 0.3.
    assert sizes[:10] == [1] * 10 and sizes[-1] == 0


@pytest.mark.parametrize("needs", [(False, False), (False, True), (True, False)])
def test_hidden_states_are_needed_if_one_drafter_uses_them(needs: tuple[bool, bool]) -> None:
    drafters = [Fixed(name, {}) for name in ("one", "other")]
    for drafter, hidden in zip(drafters, needs, strict=True):
        drafter.hidden = hidden
    speculation = Speculation(drafters, GuessAccuracy(), Table([0.1]), frozenset(), VOCABULARY)
    assert speculation.needs_hidden is any(needs)


def test_drafters_get_the_hidden_state_that_the_last_token_was_chosen_from_or_none() -> None:
    class Watching(Fixed):
        """Notes the hidden states that its drafts start with."""

        def start(self, path: Sequence[int], vector: torch.Tensor | None, reach: int) -> Any:
            seen.append(None if vector is None else vector.tolist())
            return super().start(path, vector, reach)

    seen: list[list[float] | None] = []
    speculation = Speculation([Watching("one", {})], GuessAccuracy(), Table([0.3] * 9), frozenset(), VOCABULARY)
    tree, path = TokenTree(), list(PROMPT)
    head = tree.descend(tree.root, path)
    for tokens in ([7], [8], [9, 10], [11]):
        speculation.draft(head, path, 3, PassLoad(1), None)
        scores = NodeScores([head], torch.zeros(1, VOCABULARY), torch.full((1, 4), float(path[-1])))
        speculation.learn_from_pass([*path, tokens[0]], 1, [head], scores, 0.1)
        path += tokens
        head = tree.descend(head, tokens)
    speculation.draft(head, path, 3, PassLoad(1), None)
    # After token 10, which took no pass, there is no hidden state of token 9.
    assert seen == [None, [5.0] * 4, [7.0] * 4, None, [10.0] * 4]


def test_the_odds_of_a_guess_are_clamped() -> None:
    guesses = {(): [(1, 9.0), (2, -3.0)], (1,): [(1, 0.99)]}
    speculation = Speculation([Fixed("one", guesses)], GuessAccuracy(), Table([0.01] * 9), frozenset(), VOCABULARY)
    paths, _ = drafted(speculation, 5, PassLoad(1))
    assert paths == [(1,), (1, 1)]
    odds = sorted((guess.odds for guess in speculation._draft.by_node.values()), reverse=True)  # type: ignore[union-attr]
    assert odds == pytest.approx([1.0, 0.995, 0.995 * 0.99])


def test_removing_a_node_from_a_pass_load_undoes_adding_it() -> None:
    load = PassLoad(2, spare=3)
    load.add(0.25)
    assert (load.nodes, load.expected, load.spare) == (3, 2.25, 2)
    load.remove(0.25)
    assert (load.nodes, load.expected, load.spare) == (2, 2.0, 3)
