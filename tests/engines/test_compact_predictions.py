"""Compact predictions: what they keep of a row of log-probabilities, and how they are re-heated."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model
from lookahead_core.engines.prediction_rows import LogitRows
from lookahead_core.tree import Prediction


def made_rows() -> list[torch.Tensor]:
    """Rows of different shapes: peaked, flat, long-tailed, and the tiny vocabularies of toys."""
    dice = torch.Generator().manual_seed(0)
    flat = torch.randn(50_000, generator=dice) * 0.3
    normal = torch.randn(50_000, generator=dice) * 3
    peaked = normal.clone()
    peaked[7] += 25
    ranked = -1.1 * torch.log(torch.arange(1, 50_001).float())
    return [torch.log_softmax(row, -1) for row in (flat, normal, peaked, ranked, normal[:80], normal[:10])]


def assert_reheats(row: torch.Tensor) -> None:
    said: Prediction = LogitRows(row[None]).predictions()[0]
    for temperature in (0.5, 0.7, 1.0, 1.3, 1.5, 2.0):
        exact = torch.softmax(row.double() / temperature, -1)
        shares, rest = said.reheated(temperature)
        expected = exact[list(said.token_ids)]
        assert torch.allclose(torch.tensor(shares).double(), expected, rtol=0.01, atol=1e-9)
        assert rest == pytest.approx(1 - float(expected.sum()), abs=0.01)


@pytest.mark.parametrize("number", range(6))
def test_reheated_shares_are_within_one_per_cent_of_the_full_row_up_to_temperature_two(number: int) -> None:
    assert_reheats(made_rows()[number])


def test_the_default_models_odds_can_be_reheated(default_model: Model) -> None:
    document = Document(default_model, "After careful")
    row: Any = document.predict(row=True).row
    assert_reheats(row)
    _, rest = document.predict().reheated(1.5)
    assert rest == pytest.approx(0.60, abs=0.05), "the figure that a first measurement gave"


def test_a_prediction_counts_every_token_and_knows_its_entropy() -> None:
    for row in made_rows():
        said = LogitRows(row[None]).predictions()[0]
        assert len(said.token_ids) + sum(said.tail) == len(row)
        assert said.entropy == pytest.approx(float(-(row.exp() * row).sum()), rel=1e-4)
        assert said.logprobs == tuple(sorted(said.logprobs, reverse=True))


def test_a_token_that_is_ruled_out_leaves_the_odds_in_order() -> None:
    row = torch.log_softmax(torch.tensor([1.0, 2.0, -math.inf, 0.5]), -1)
    said = LogitRows(row[None]).predictions()[0]
    assert math.isfinite(said.entropy) and all(map(math.isfinite, said.reheated(1.5)[0]))
