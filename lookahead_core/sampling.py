"""How a token is drawn from a row of log-probabilities: pure functions, and noise that depends on its place alone."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch

FEW = (1024, 8192)
"""How many of the likeliest tokens are looked at before a whole row is sorted, which takes several times longer."""
GAMMA = 0x9E3779B97F4A7C15 - 2**64
FACTORS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)
"""The constants of SplitMix64, as signed numbers."""


def without(row: torch.Tensor, token_ids: Iterable[int]) -> torch.Tensor:
    """The row with these tokens ruled out; the others' values stay as they are."""
    gone = torch.tensor(sorted(token_ids), dtype=torch.int64, device=row.device)
    return row.index_fill(0, gone, -math.inf)


def heat(row: torch.Tensor, temperature: float) -> torch.Tensor:
    """Log-probabilities at another temperature; at 0 the most likely token has all of it."""
    if temperature == 0:
        cold = torch.full_like(row, -math.inf)
        cold[row.argmax()] = 0.0
        return cold
    return (row / temperature).log_softmax(-1)


def nucleus(row: torch.Tensor, top_p: float) -> torch.Tensor:
    """The likeliest tokens that reach `top_p` together, the one that crosses it included; the others are ruled out."""
    if top_p >= 1:
        return row
    values, token_ids = _sorted(row, top_p)
    odds = values.exp()
    # The mass before a token decides, so that the first one is kept whatever the bound.
    kept = token_ids[odds.cumsum(-1) - odds < top_p]
    return torch.full_like(row, -math.inf).index_copy(0, kept, row[kept])


def _sorted(row: torch.Tensor, enough: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and ids, likeliest first: so many as have the mass asked for, or all."""
    for size in FEW:
        if size < len(row):
            values, token_ids = row.topk(size)
            if float(values.exp().sum()) >= enough:
                return values, token_ids
    return row.sort(descending=True, stable=True)


def noise(seed: int, stream: int, position: int, size: int) -> torch.Tensor:
    """Gumbel noise for each token id: the same numbers on every machine, in any company, for any `size`.

    Added to log-probabilities, its largest sum is a fair draw; and since it depends on nothing but the place, a draw
    made again, cached or not, alone or among others, is the same draw.
    """
    state = torch.zeros(1, dtype=torch.int64)
    for part in (seed, stream, position):
        state = _mixed((state ^ part) + GAMMA)
    bits = _mixed(torch.arange(1, size + 1) * GAMMA + state)
    # 52 bits and a half: never 0 and never 1, whose logarithms would be endless.
    uniform = (_shifted(bits, 12).double() + 0.5) * 2.0**-52
    return -torch.log(-torch.log(uniform))


def _mixed(state: torch.Tensor) -> torch.Tensor:
    """SplitMix64's way to make all bits of a number depend on all others; whole numbers wrap around."""
    state = (state ^ _shifted(state, 30)) * FACTORS[0]
    state = (state ^ _shifted(state, 27)) * FACTORS[1]
    return state ^ _shifted(state, 31)


def _shifted(state: torch.Tensor, places: int) -> torch.Tensor:
    """To the right as if there were no sign."""
    return (state >> places) & (2 ** (64 - places) - 1)


def draw(row: torch.Tensor, *, temperature: float, top_p: float, seed: int, stream: int, position: int) -> int:
    """The token that a stream takes at a place of the text. Computed where noise is the same on every machine."""
    odds = nucleus(heat(row.detach().cpu().double(), temperature), top_p)
    if temperature == 0:
        return int(odds.argmax())
    return int((odds + noise(seed, stream, position, len(odds))).argmax())
