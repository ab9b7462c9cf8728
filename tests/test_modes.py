"""The modes of lookahead, against slow searches of their own that share no code with them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lookahead_core import Document, load_model
from tests.families import make, plain_rows

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]


@pytest.fixture(scope="module")
def model() -> Any:
    hf_model = make("llama")
    hf_model.generation_config.eos_token_id = 7
    return load_model(hf_model, tokenizer=None)


class Odds:
    """Plain forwards, remembered."""

    def __init__(self, hf_model: Any) -> None:
        self.hf_model = hf_model
        self.known: dict[tuple[int, ...], list[tuple[float, int]]] = {}

    def after(self, path: tuple[int, ...]) -> list[tuple[float, int]]:
        """Probabilities and ids after the prompt and a path, likeliest first."""
        if path not in self.known:
            (logits,) = plain_rows(self.hf_model, [PROMPT + list(path)])
            probabilities = logits.softmax(-1).tolist()
            self.known[path] = sorted(((p, i) for i, p in enumerate(probabilities)), reverse=True)
        return self.known[path]

    def of(self, path: tuple[int, ...]) -> float:
        return math.prod(
            next(p for p, i in self.after(path[:place]) if i == token_id) for place, token_id in enumerate(path)
        )


@pytest.fixture(scope="module")
def odds(model: Any) -> Odds:
    return Odds(model.hf_model)


def paths(result: Any) -> list[tuple[int, ...]]:
    return [branch.token_ids for branch in result.branches]


def test_every_level_branches_at_each_of_the_first_levels_then_goes_on_greedily(model: Any, odds: Odds) -> None:
    def grow(path: tuple[int, ...]) -> list[tuple[int, ...]]:
        if len(path) == 5 or (path and path[-1] == 7):
            return [path]
        ways = 3 if len(path) < 2 else 1
        return [full for _, token_id in odds.after(path)[:ways] for full in grow((*path, token_id))]

    result = Document(model, token_ids=PROMPT).lookahead(mode="every_level", k=3, branch_levels=2, depth=5)
    assert paths(result) == grow(())
    for branch in result.branches:
        assert branch.share == pytest.approx(odds.of(branch.token_ids[:2]), rel=1e-3)
    assert result.coverage == pytest.approx(sum(branch.share for branch in result.branches))


@pytest.mark.parametrize(("cutoff", "slope"), [(0.05, 1.0), (0.05, 1.5), (0.9, 1.0), (0.0, 1.0)])
def test_forks_split_only_where_another_token_passes_the_cutoff(
    model: Any, odds: Odds, cutoff: float, slope: float
) -> None:
    leaves: list[tuple[int, ...]] = [()]
    for level in range(4):
        grown = []
        for path in leaves:
            if path and path[-1] == 7:
                grown.append(path)
                continue
            ways = odds.after(path)[:3]
            chosen = [ways[0], *(way for way in ways[1:] if way[0] >= cutoff * slope**level)]
            grown += [(*path, token_id) for _, token_id in chosen]
        kept = sorted(grown, key=odds.of, reverse=True)[:6]
        leaves = [path for path in grown if path in kept]
    document = Document(model, token_ids=PROMPT)
    result = document.lookahead(mode="forks", k=6, depth=4, cutoff=cutoff, slope=slope, split_limit=3)
    assert sorted(paths(result)) == sorted(leaves)


@pytest.mark.parametrize(("budget", "width"), [(1, 1), (12, 1), (12, 4), (40, 16)])
def test_best_first_grows_the_most_probable_frontier_nodes_within_its_budget(
    model: Any, odds: Odds, budget: int, width: int
) -> None:
    frontier = [(token_id,) for _, token_id in odds.after(())[:4]]
    done: list[tuple[int, ...]] = []
    spent = 0
    while spent < budget:
        open_ones = [path for path in frontier if path[-1] != 7 and len(path) < 4]
        chosen = sorted(open_ones, key=odds.of, reverse=True)[: min(width, budget - spent)]
        if not chosen:
            break
        spent += len(chosen)
        frontier = [path for path in frontier if path not in chosen]
        frontier += [(*path, token_id) for path in chosen for _, token_id in odds.after(path)[:4]]
    expected = sorted(frontier + done, key=odds.of, reverse=True)[:4]
    document = Document(model, token_ids=PROMPT)
    result = document.lookahead(mode="best_first", k=4, depth=4, budget=budget, width=width)
    assert paths(result) == expected
    assert result.cost.tokens <= len(PROMPT) + budget


@pytest.mark.parametrize("mode", ["likely", "every_level", "forks", "best_first"])
def test_shares_are_of_what_sets_a_row_apart_and_never_add_up_to_more_than_one(
    model: Any, odds: Odds, mode: str
) -> None:
    result = Document(model, token_ids=PROMPT).lookahead(mode=mode, k=6, depth=5, cutoff=0.02)
    rows = paths(result)
    assert len(set(rows)) == len(rows)
    for branch in result.branches:
        others = [path for path in rows if path != branch.token_ids]
        length = next(
            size
            for size in range(1, len(branch.token_ids) + 1)
            if all(path[:size] != branch.token_ids[:size] for path in others)
        )
        assert branch.share == pytest.approx(odds.of(branch.token_ids[:length]), rel=1e-3)
        assert branch.probability == pytest.approx(odds.of(branch.token_ids), rel=1e-3)
    assert result.coverage == pytest.approx(sum(branch.share for branch in result.branches))
    assert sum(odds.of(branch.token_ids) for branch in result.branches) <= result.coverage <= 1 + 1e-6
