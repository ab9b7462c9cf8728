"""`LogitRows` gives what a plain computation over each row of logits gives."""

from __future__ import annotations

import math

import pytest
import torch

from lookahead_core.engines.prediction_rows import BLOCK, TAIL_BINS, TOP_TOKENS, LogitRows, top_k_ids, top_k_sorted
from lookahead_core.reheating import TAIL_BIN

WIDTHS = (3, BLOCK, 300, 4 * TOP_TOKENS * BLOCK, 20_000, 20_000 + BLOCK // 2)


def example_logits(width: int, rows: int = 6) -> torch.Tensor:
    """Random logits with ties and with minus infinity among them."""
    drawn = torch.randn(rows, width, generator=torch.Generator().manual_seed(width)) * 4 + 9
    drawn[:, width // 2] = drawn[:, -1] = drawn.max(-1).values
    drawn[1, 1] = -math.inf
    return drawn


@pytest.mark.parametrize("width", WIDTHS)
def test_the_best_token_is_the_first_of_the_top_k(width: int) -> None:
    rows = example_logits(width)
    expected = [row.tolist().index(float(row.max())) for row in rows]
    assert LogitRows(rows).best.tolist() == expected == top_k_sorted(rows, 1 if width < BLOCK else 3)[:, 0].tolist()
    last = rows.clone()
    last[:, -1] += 1
    assert LogitRows(last).best.tolist() == [width - 1] * len(rows)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_top_k_are_sorted_and_of_a_tie_the_lowest_id_comes_first(width: int) -> None:
    rows = example_logits(width)
    count = min(TOP_TOKENS, width)
    expected = [sorted(range(width), key=lambda place, row=row: (-row[place], place)) for row in rows.tolist()]
    assert top_k_sorted(rows, count).tolist() == [order[:count] for order in expected]
    assert [sorted(ids) for ids in top_k_ids(rows, count).tolist()] == [sorted(order[:count]) for order in expected]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [1, 4, TOP_TOKENS])
def test_the_top_k_come_with_probabilities_that_are_too_high_by_one_factor_per_row(width: int, count: int) -> None:
    rows = example_logits(width)
    exact = rows.double().softmax(-1)
    token_ids, probabilities = LogitRows(rows).top_k(count)
    for ids, estimates, true in zip(token_ids, probabilities, exact, strict=True):
        expected = true.topk(min(count, width)).values
        assert len(set(ids)) == len(ids)
        assert torch.allclose(true[ids], expected)
        # All estimates of a row are too high by the same factor, of at most 1 / (probability of the top k).
        likely = expected > 0
        assert not any(torch.tensor(estimates)[~likely])
        excess = torch.tensor(estimates).double()[likely] / expected[likely]
        assert torch.allclose(excess, excess[:1], rtol=1e-4)
        assert 1 - 1e-5 <= excess[0] <= (1 + 1e-5) / expected.sum()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_prediction_summarises_its_row(width: int) -> None:
    rows = example_logits(width)
    exact = rows.double().log_softmax(-1)
    assert torch.allclose(LogitRows(rows).logprobs.double(), exact, atol=1e-5)
    for row, plain, prediction in zip(rows, exact, LogitRows(rows).predictions(), strict=True):
        assert prediction.logprobs == pytest.approx(plain[list(prediction.token_ids)].tolist(), abs=1e-5)
        finite = plain[plain > -math.inf]
        assert prediction.entropy == pytest.approx(float(-(finite.exp() * finite).sum()), abs=2e-5)
        assert prediction.log_total == pytest.approx(float(row.double().logsumexp(-1)), abs=1e-5)
        others = [place for place in range(width) if place not in prediction.token_ids]
        below = ((row.max() - row[others]) / TAIL_BIN).clamp(max=TAIL_BINS - 1).int()
        assert sum(prediction.tail) == len(others)
        assert list(prediction.tail) == torch.bincount(below, minlength=TAIL_BINS).tolist()


@pytest.mark.parametrize("indices", [[0], [0, 1, 2], [2, 3], [5, 0, 3], [1, 0, 2], [1, 1, 2], list(range(6))])
@pytest.mark.parametrize("known", [True, False])
def test_selected_rows_give_what_they_give_among_all_rows(indices: list[int], known: bool) -> None:
    all_rows = LogitRows(example_logits(20_000))
    if known:
        all_rows.predictions()
    some = all_rows.select(indices)
    assert torch.equal(some.logits, all_rows.logits[indices])
    assert some.predictions() == [all_rows.predictions()[index] for index in indices]
    assert torch.equal(some.logprobs, all_rows.logprobs[indices])
