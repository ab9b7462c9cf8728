"""What is read off rows of scores is what a plain computation over each of them gives."""

from __future__ import annotations

import math

import pytest
import torch

from lookahead_core.engines.prediction_rows import BLOCK, TAIL_BINS, TOP_TOKENS, LogitRows, top_k_ids, top_k_sorted
from lookahead_core.tree import TAIL_BIN

WIDTHS = (3, BLOCK, 300, 4 * TOP_TOKENS * BLOCK, 20_000, 20_000 + BLOCK // 2)


def scores(width: int, rows: int = 6) -> torch.Tensor:
    """Rows of which some numbers are the same, and some are ruled out."""
    drawn = torch.randn(rows, width, generator=torch.Generator().manual_seed(width)) * 4 + 9
    drawn[:, width // 2] = drawn[:, -1] = drawn.max(-1).values
    drawn[1, 1] = -math.inf
    return drawn


@pytest.mark.parametrize("width", WIDTHS)
def test_the_best_token_is_the_first_of_the_likeliest(width: int) -> None:
    rows = scores(width)
    expected = [row.tolist().index(float(row.max())) for row in rows]
    assert LogitRows(rows).best.tolist() == expected == top_k_sorted(rows, 1 if width < BLOCK else 3)[:, 0].tolist()
    last = rows.clone()
    last[:, -1] += 1
    assert LogitRows(last).best.tolist() == [width - 1] * len(rows)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_likeliest_come_in_order_and_of_a_tie_the_lowest_first(width: int) -> None:
    rows = scores(width)
    count = min(TOP_TOKENS, width)
    expected = [sorted(range(width), key=lambda place, row=row: (-row[place], place)) for row in rows.tolist()]
    assert top_k_sorted(rows, count).tolist() == [order[:count] for order in expected]
    assert [sorted(ids) for ids in top_k_ids(rows, count).tolist()] == [sorted(order[:count]) for order in expected]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [1, 4, TOP_TOKENS])
def test_what_is_likeliest_is_told_with_its_odds_among_the_likely(width: int, count: int) -> None:
    rows = scores(width)
    exact = rows.double().softmax(-1)
    token_ids, odds = LogitRows(rows).top_k(count)
    for ids, said, true in zip(token_ids, odds, exact, strict=True):
        expected = true.topk(min(count, width)).values
        assert len(set(ids)) == len(ids)
        assert torch.allclose(true[ids], expected)
        # All of a row's are told with the same excess: what is left out is less likely than any of them.
        likely = expected > 0
        assert not any(torch.tensor(said)[~likely])
        excess = torch.tensor(said).double()[likely] / expected[likely]
        assert torch.allclose(excess, excess[:1], rtol=1e-4)
        assert 1 - 1e-5 <= excess[0] <= (1 + 1e-5) / expected.sum()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_prediction_is_what_its_row_says(width: int) -> None:
    rows = scores(width)
    exact = rows.double().log_softmax(-1)
    assert torch.allclose(LogitRows(rows).logprobs.double(), exact, atol=1e-5)
    for row, plain, said in zip(rows, exact, LogitRows(rows).predictions(), strict=True):
        assert said.logprobs == pytest.approx(plain[list(said.token_ids)].tolist(), abs=1e-5)
        finite = plain[plain > -math.inf]
        assert said.entropy == pytest.approx(float(-(finite.exp() * finite).sum()), abs=2e-5)
        assert said.log_total == pytest.approx(float(row.double().logsumexp(-1)), abs=1e-5)
        others = [place for place in range(width) if place not in said.token_ids]
        below = ((row.max() - row[others]) / TAIL_BIN).clamp(max=TAIL_BINS - 1).int()
        assert sum(said.tail) == len(others)
        assert list(said.tail) == torch.bincount(below, minlength=TAIL_BINS).tolist()


@pytest.mark.parametrize("places", [[0], [0, 1, 2], [2, 3], [5, 0, 3], [1, 0, 2], [1, 1, 2], list(range(6))])
@pytest.mark.parametrize("known", [True, False])
def test_some_rows_say_what_they_say_among_all(places: list[int], known: bool) -> None:
    every = LogitRows(scores(20_000))
    if known:
        every.predictions()
    some = every.select(places)
    assert torch.equal(some.logits, every.logits[places])
    assert some.predictions() == [every.predictions()[place] for place in places]
    assert torch.equal(some.logprobs, every.logprobs[places])
