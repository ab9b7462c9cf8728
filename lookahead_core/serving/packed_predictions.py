"""Predictions as compact strings, from which a page computes probabilities at any temperature itself."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lookahead_core.reheating import TAIL_BIN

if TYPE_CHECKING:
    import torch

    from lookahead_core.prediction import Prediction

TEMPERATURES = tuple(tenths / 10 for tenths in range(1, 21))
"""The temperatures that a page can choose."""
LOG_TOTAL_STEPS = 5000
"""Steps per nat of a packed log total. Log totals are below 13 for vocabularies of up to 400,000 tokens."""
LOGPROB_STEPS = 2000
"""Steps per nat of a packed log-probability difference."""
MAX_PACKED = 2**16 - 1
KEPT = 64
"""Tokens that a packed prediction keeps, unless another number is asked for."""


def pack(predictions: Sequence[Prediction], kept: int) -> list[str]:
    """Return each prediction as base64 of little-endian unsigned 16-bit integers, with its `kept` likeliest tokens.

    First come the log totals (see `_log_totals`) at each of `TEMPERATURES`, in steps of 1 / `LOG_TOTAL_STEPS` nat; then
    how far each token's log-probability lies below the likeliest one's, in steps of 1 / `LOGPROB_STEPS` nat. A token's
    probability is exp(-difference / temperature - log total at that temperature). Token ids are not packed. There are
    fewer tokens if the prediction keeps fewer.
    """
    if not predictions:
        return []
    totals = (_log_totals(predictions) * LOG_TOTAL_STEPS).round().clamp(0, MAX_PACKED).int().tolist()
    return [
        base64.b64encode(_bytes([*row, *_differences(prediction, kept)])).decode()
        for prediction, row in zip(predictions, totals, strict=True)
    ]


class PredictionPacker:
    """Packs predictions as `pack` does, each one only once: the views of a growing lookahead share most of them."""

    def __init__(self, kept: int = KEPT) -> None:
        """`kept` is that of `pack`."""
        self.kept = kept
        self._packed: dict[int, tuple[Prediction, str]] = {}
        """By id(): the prediction, so that its id stays its own, and its string."""

    def pack(self, predictions: Sequence[Prediction]) -> list[str]:
        """Return the strings of these predictions."""
        fresh = [prediction for prediction in predictions if id(prediction) not in self._packed]
        for prediction, packed in zip(fresh, pack(fresh, self.kept), strict=True):
            self._packed[id(prediction)] = prediction, packed
        return [self._packed[id(prediction)][1] for prediction in predictions]


def _bytes(values: list[int]) -> bytes:
    return struct.pack(f"<{len(values)}H", *values)


def _differences(prediction: Prediction, kept: int) -> list[int]:
    """Return how far the `kept` likeliest log-probabilities lie below the first, in steps of 1 / `LOGPROB_STEPS` nat.

    No value is above `MAX_PACKED`, which impossible tokens have. Fewer values if the prediction keeps fewer tokens.
    """
    top = prediction.logprobs[0]
    return [int(min((top - value) * LOGPROB_STEPS + 0.5, MAX_PACKED)) for value in prediction.logprobs[:kept]]


def _log_totals(predictions: Sequence[Prediction]) -> torch.Tensor:
    """Return the natural log of the sum of all tokens' weights at each of `TEMPERATURES`; the likeliest one weighs 1.

    A token's weight is its probability relative to the likeliest one's, to the power 1 / temperature. The shape is
    (predictions, temperatures), in float64. The weight of the tail is computed as in `reheat`, here for many
    predictions at once, at least one.
    """
    import torch  # here, since importing it takes seconds and the page is served before

    temperatures = torch.tensor(TEMPERATURES, dtype=torch.float64)
    logprobs = _padded(predictions, -math.inf)
    tops = logprobs[:, :1]
    kept = ((logprobs - tops)[:, None, :] / temperatures[:, None]).exp().sum(-1)
    bins = max(len(prediction.tail) for prediction in predictions)
    tails = torch.tensor([[*each.tail, *[0] * (bins - len(each.tail))] for each in predictions], dtype=torch.float64)
    spread = TAIL_BIN / temperatures / 2
    centres = (torch.arange(bins) + 0.5) * TAIL_BIN
    weights = tails @ ((-centres[:, None] / temperatures).exp() * spread.sinh() / spread)
    left = 1 - logprobs.exp().sum(-1)
    known = weights[:, TEMPERATURES.index(1.0)] * tops[:, 0].exp()
    scale = torch.where(left < 1e-3, 1.0, left / known)
    return (kept + weights * scale[:, None]).log()


def _padded(predictions: Sequence[Prediction], filler: float) -> torch.Tensor:
    """Return all log-probabilities that the predictions keep, as a float64 tensor of shape (predictions, most kept).

    Predictions of small vocabularies keep fewer: their rows are filled up with `filler` at the end. There must be at
    least one prediction.
    """
    import torch

    width = max(len(prediction.logprobs) for prediction in predictions)
    rows = [[*each.logprobs, *[filler] * (width - len(each.logprobs))] for each in predictions]
    return torch.tensor(rows, dtype=torch.float64)
