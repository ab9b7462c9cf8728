"""Predictions as compact strings, from which a page computes probabilities at any temperature itself."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from lookahead_core.reheating import TAIL_BIN

if TYPE_CHECKING:
    from lookahead_core.prediction import Prediction

FloatArray: TypeAlias = npt.NDArray[np.float64]

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
    how far each token's log-probability lies below the likeliest one's, in steps of 1 / `LOGPROB_STEPS` nat, at most
    `MAX_PACKED`, which impossible tokens have. A token's probability is exp(-difference / temperature - log total at
    that temperature). Token ids are not packed. There are fewer tokens if the prediction keeps fewer.
    """
    if not predictions:
        return []
    logprobs = _padded([prediction.logprobs for prediction in predictions], -math.inf)
    tails = _padded([prediction.tail for prediction in predictions], 0)
    totals = (_log_totals(logprobs, tails) * LOG_TOTAL_STEPS).round()
    differences = np.floor((logprobs[:, :1] - logprobs[:, :kept]) * LOGPROB_STEPS + 0.5)
    rows = np.hstack([totals, differences]).clip(0, MAX_PACKED).astype("<u2")
    ends = [len(TEMPERATURES) + len(prediction.logprobs) for prediction in predictions]
    return [base64.b64encode(row[:end].tobytes()).decode() for row, end in zip(rows, ends, strict=True)]


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


def _log_totals(logprobs: FloatArray, tails: FloatArray) -> FloatArray:
    """Return the natural log of the sum of all tokens' weights at each of `TEMPERATURES`; the likeliest one weighs 1.

    A token's weight is its probability relative to the likeliest one's, to the power 1 / temperature. `logprobs` and
    `tails` have a row for each prediction, and so has the result, with a column for each temperature. The weight of the
    tail is computed as in `reheat`, here for many predictions at once.
    """
    temperatures = np.array(TEMPERATURES)
    tops = logprobs[:, :1]
    kept = np.exp((logprobs - tops)[:, None, :] / temperatures[:, None]).sum(-1)
    spread = TAIL_BIN / temperatures / 2
    centres = (np.arange(tails.shape[1]) + 0.5) * TAIL_BIN
    weights = tails @ (np.exp(-centres[:, None] / temperatures) * np.sinh(spread) / spread)
    left = 1 - np.exp(logprobs).sum(-1)
    known = weights[:, TEMPERATURES.index(1.0)] * np.exp(tops[:, 0])
    scale = np.divide(left, known, out=np.ones_like(left), where=left >= 1e-3)
    return np.log(kept + weights * scale[:, None])  # type: ignore[no-any-return]


def _padded(rows: Sequence[Sequence[float]], filler: float) -> FloatArray:
    """Return the rows, one or more, as a float64 array; shorter ones are filled up with `filler` at the end."""
    width = max(map(len, rows))
    return np.array([[*row, *[filler] * (width - len(row))] for row in rows], dtype=np.float64)
