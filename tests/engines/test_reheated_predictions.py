"""Compact predictions: what they keep of a row of log-probabilities, and how exact re-heating is."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model
from lookahead_core.engines.prediction_rows import LogitRows
from lookahead_core.prediction import Prediction


def example_rows() -> list[torch.Tensor]:
    """Rows of log-probabilities: flat, normal, peaked, long-tailed, and of tiny vocabularies."""
    generator = torch.Generator().manual_seed(0)
    flat = torch.randn(50_000, generator=generator) * 0.3
    normal = torch.randn(50_000, generator=generator) * 3
    peaked = normal.clone()
    peaked[7] += 25
    ranked = -1.1 * torch.log(torch.arange(1, 50_001).float())
    return [torch.log_softmax(row, -1) for row in (flat, normal, peaked, ranked, normal[:80], normal[:10])]


def assert_reheats(row: torch.Tensor) -> None:
    """Re-heated probabilities of a row are within 1 % of the exact ones up to temperature 2."""
    prediction: Prediction = LogitRows(row[None]).predictions()[0]
    for temperature in (0.5, 0.7, 1.0, 1.3, 1.5, 2.0):
        exact = torch.softmax(row.double() / temperature, -1)
        shares, rest = prediction.reheated(temperature)
        expected = exact[list(prediction.token_ids)]
        assert torch.allclose(torch.tensor(shares).double(), expected, rtol=0.01, atol=1e-9)
        assert rest == pytest.approx(1 - float(expected.sum()), abs=0.01)


@pytest.mark.parametrize("number", range(6))
def test_reheated_probabilities_are_within_one_per_cent_of_the_full_row_up_to_temperature_two(number: int) -> None:
    assert_reheats(example_rows()[number])


def test_near_temperature_zero_the_likeliest_token_is_certain() -> None:
    for row in example_rows()[:4]:
        prediction: Prediction = LogitRows(row[None]).predictions()[0]
        for temperature in (1e-2, 1e-6, 1e-300, 5e-324):
            shares, rest = prediction.reheated(temperature)
            exact = torch.softmax((row.double() - row.double().max()) / temperature, -1)
            assert shares[0] == pytest.approx(float(exact.max()), rel=0.01) and sum(shares) + rest == pytest.approx(1)


def test_the_default_models_odds_can_be_reheated(default_model: Model) -> None:
    document = Document(default_model, "After careful")
    row: Any = document.predict(row=True).row
    assert_reheats(row)
    _, rest = document.predict().reheated(1.5)
    assert rest == pytest.approx(0.60, abs=0.05), "as measured on the full row"


def test_a_prediction_counts_every_token_and_has_the_entropy_of_its_row() -> None:
    for row in example_rows():
        prediction = LogitRows(row[None]).predictions()[0]
        assert len(prediction.token_ids) + sum(prediction.tail) == len(row)
        assert prediction.entropy == pytest.approx(float(-(row.exp() * row).sum()), rel=1e-4)
        assert prediction.logprobs == tuple(sorted(prediction.logprobs, reverse=True))


def test_a_token_with_logit_minus_infinity_leaves_entropy_and_probabilities_finite() -> None:
    row = torch.log_softmax(torch.tensor([1.0, 2.0, -math.inf, 0.5]), -1)
    prediction = LogitRows(row[None]).predictions()[0]
    assert math.isfinite(prediction.entropy) and all(map(math.isfinite, prediction.reheated(1.5)[0]))
