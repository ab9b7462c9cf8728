"""What rows of scores say of the tokens that came, against the definitions in double precision, token by token."""

from __future__ import annotations

import math

import pytest
import torch

from lookahead_core.analysis.token_facts import observe

SIZE = 50


def made(count: int, seed: int = 0) -> tuple[torch.Tensor, list[int]]:
    """Rows of scores, not log-probabilities, and tokens that came: likely, unlikely and in between."""
    dice = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, SIZE, generator=dice) * 3 + torch.randn(count, 1, generator=dice) * 20
    order = rows.argsort(descending=True)
    return rows, [int(order[place, place * 7 % SIZE]) for place in range(count)]


def assert_told(rows: torch.Tensor, came: list[int], k: int) -> None:
    found = list(observe(rows.clone(), came, k))
    assert len(found) == len(came)
    for told, row, token_id in zip(found, rows.double(), came, strict=True):
        logprobs = [float(value) for value in row - row.logsumexp(-1)]
        likelier = sum(value > float(row[token_id]) for value in row.tolist())
        assert told.logprob == pytest.approx(logprobs[token_id], abs=1e-4)
        entropy = -sum(math.exp(value) * value for value in logprobs if value > -math.inf)
        assert told.entropy == pytest.approx(entropy, abs=1e-4)
        expected = sorted(range(SIZE), key=lambda one: (-float(row[one]), one))[:k]
        assert [one for one, _ in told.likeliest] == expected
        assert [value for _, value in told.likeliest] == pytest.approx([logprobs[one] for one in expected], abs=1e-4)
        assert told.rank == (expected.index(token_id) if token_id in expected else likelier) + 1


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 21])
@pytest.mark.parametrize("k", [1, 4])
def test_figures_equal_their_definitions_however_many_rows_there_are(count: int, k: int) -> None:
    assert_told(*made(count), k)


def test_what_is_ruled_out_has_no_part_in_the_entropy_of_its_row_nor_in_that_of_others() -> None:
    rows, came = made(12)
    rows[3, came[3] + 1 - SIZE :] = -math.inf
    rows[3, : came[3]] = -math.inf
    rows[10, ::2] = -math.inf
    rows[10, came[10]] = 1.0
    assert_told(rows, came, 1)


def test_a_token_that_is_ruled_out_is_impossible_and_comes_last() -> None:
    rows, came = made(3)
    rows[1, came[1]] = -math.inf
    told = list(observe(rows, came, 2))[1]
    assert (told.logprob, told.rank) == (-math.inf, SIZE)


def test_of_equal_scores_the_smallest_id_comes_first_and_what_is_not_shown_shares_a_rank() -> None:
    rows = torch.zeros(2, SIZE)
    rows[:, 5], rows[:, 7], rows[:, 2] = 2.0, 1.0, 1.0
    first, second = observe(rows, [7, 40], 3)
    assert [one for one, _ in first.likeliest] == [5, 2, 7]
    assert (first.rank, second.rank) == (3, 4)


def test_no_more_is_shown_than_there_is() -> None:
    rows, came = made(2)
    assert_told(rows, came, SIZE)
    assert [len(told.likeliest) for told in observe(rows, came, SIZE + 9)] == [SIZE] * 2
