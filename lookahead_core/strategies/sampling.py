"""How a token is chosen from a row of scores: pure functions, and noise that depends on its place alone.

A row holds a score for each token id: log-probabilities, or the model's own scores, which differ from them by one
number. What is ruled out has the score -inf. Functions that cut leave the scores of what they keep as they are; whoever
needs probabilities makes them add up to one at the end. The order in which the options of a stream are applied is that
of transformers, where it has them, and always the same:

1. repetition penalty (on the model's own scores), 2. n-grams that stood before, forbidden words, an end that comes too
early, forced words, 3. frequency and presence penalties, 4. temperature, 5. top-k, 6. top-p, 7. min-p, 8. typical.

Seed 003 has steps 3 and 4 the other way round: it divides by the temperature, and then subtracts the frequency penalty;
at temperature 0 it takes the likeliest token and applies no penalty. Here penalties come first, as in vLLM, and hold at
temperature 0 as well. For the seed's odds at a temperature above 0, multiply its frequency penalty by the temperature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import torch

FEW = (1024, 8192)
"""How many of the likeliest tokens are looked at before a whole row is sorted, which takes several times longer."""
COLDEST = 1e-6
"""Below this temperature the best token has all of it, and its scores would be too large to count with."""
GAMMA = 0x9E3779B97F4A7C15 - 2**64
FACTORS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)
"""The constants of SplitMix64, as signed numbers."""
ALL_BITS = 2**64 - 1


def without(row: torch.Tensor, token_ids: Iterable[int]) -> torch.Tensor:
    """The row with these tokens ruled out; the others' scores stay as they are."""
    gone = torch.tensor(sorted(token_ids), dtype=torch.int64, device=row.device)
    return row.index_fill(0, gone, -math.inf)


def only(row: torch.Tensor, token_ids: Iterable[int]) -> torch.Tensor:
    """The row with all but these tokens ruled out."""
    kept = torch.tensor(sorted(token_ids), dtype=torch.int64, device=row.device)
    return torch.full_like(row, -math.inf).index_copy(0, kept, row[kept])


def repeated(row: torch.Tensor, token_ids: Sequence[int], penalty: float) -> torch.Tensor:
    """Scores of tokens that stood before, divided by the penalty; multiplied where they are negative."""
    before = _once(token_ids, row)
    scores = row[before]
    return row.index_copy(0, before, torch.where(scores < 0, scores * penalty, scores / penalty))


def counted(row: torch.Tensor, token_ids: Sequence[int], frequency: float, presence: float) -> torch.Tensor:
    """Scores of tokens that stood before, less `frequency` for each time, and less `presence` once."""
    counts = torch.bincount(torch.tensor(token_ids, dtype=torch.int64), minlength=len(row))[: len(row)].to(row)
    return row - frequency * counts - presence * (counts > 0)


def _once(token_ids: Sequence[int], row: torch.Tensor) -> torch.Tensor:
    """Each of these tokens once, those that the row has."""
    found = torch.tensor(sorted(set(token_ids)), dtype=torch.int64, device=row.device)
    return found[found < len(row)]


def repeats(token_ids: Sequence[int], size: int) -> set[int]:
    """The tokens that would make the last ones an n-gram of this size that stood before."""
    if len(token_ids) < size:
        return set()
    windows = torch.tensor(token_ids, dtype=torch.int64).unfold(0, size, 1)
    same = (windows[:, :-1] == torch.tensor(token_ids[len(token_ids) - size + 1 :], dtype=torch.int64)).all(1)
    return set(windows[same, -1].tolist())


def heat(row: torch.Tensor, temperature: float) -> torch.Tensor:
    """Log-probabilities at another temperature; at 0 the most likely token has all of it."""
    if temperature < COLDEST:
        cold = torch.full_like(row, -math.inf)
        cold[row.argmax()] = 0.0
        return cold
    return (row / temperature).log_softmax(-1)


def likeliest(row: torch.Tensor, count: int, keep: int = 1) -> torch.Tensor:
    """So many of the likeliest tokens, and those that are as likely as the last of them (top-k)."""
    count = max(count, keep)
    if count >= len(row):
        return row
    return row.masked_fill(row < row.topk(count).values[-1], -math.inf)


def nucleus(row: torch.Tensor, top_p: float, keep: int = 1) -> torch.Tensor:
    """The likeliest tokens that have `top_p` together, the one that crosses it included (top-p)."""
    if top_p >= 1:
        return row
    values, token_ids = _sorted(row, top_p, keep)
    # The mass before a token decides, so that the first one is kept whatever the bound.
    inside = values.cumsum(-1) - values < top_p
    inside[:keep] = True
    kept = token_ids[inside]
    return torch.full_like(row, -math.inf).index_copy(0, kept, row[kept])


def _sorted(row: torch.Tensor, enough: float, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities and ids, likeliest first: at least so many, and so many as have the mass asked for."""
    total = row.logsumexp(-1)
    for size in FEW:
        if count <= size < len(row):
            values, token_ids = row.topk(size)
            odds = (values - total).exp()
            if float(odds.sum()) >= enough:
                return odds, token_ids
    values, token_ids = row.sort(descending=True, stable=True)
    return (values - total).exp(), token_ids


def near_best(row: torch.Tensor, share: float, keep: int = 1) -> torch.Tensor:
    """The tokens that are at least this share as likely as the likeliest one (min-p)."""
    if share <= 0:
        return row
    low = row < row.max() + math.log(share)
    low[row.topk(min(keep, len(row))).indices] = False
    return row.masked_fill(low, -math.inf)


def typical(row: torch.Tensor, mass: float, keep: int = 1) -> torch.Tensor:
    """The tokens whose surprise is nearest to the expected one, until they have this mass together."""
    if mass >= 1:
        return row
    logprobs = row.log_softmax(-1)
    odds = logprobs.exp()
    expected = -(odds * logprobs.clamp_min(torch.finfo(row.dtype).min)).sum()
    distances, token_ids = (-logprobs - expected).abs().sort(stable=True)
    last = min(int((odds[token_ids].cumsum(-1) < mass).sum()), len(row) - 1)
    inside = distances <= distances[last]
    inside[:keep] = True
    return torch.full_like(row, -math.inf).index_copy(0, token_ids[inside], row[token_ids[inside]])


def noise(seed: int, stream: int, position: int, token_ids: torch.Tensor) -> torch.Tensor:
    """Gumbel noise for token ids: the same numbers on every machine, in any company.

    Added to log-probabilities, its largest sum is a fair draw; and since it depends on nothing but the place, a draw
    made again, cached or not, alone or among others, is the same draw.
    """
    state = torch.zeros(1, dtype=torch.int64)
    for part in (seed, stream, position):
        state = _mixed((state ^ part) + GAMMA)
    bits = _mixed((token_ids + 1) * GAMMA + state)
    # 52 bits and a half: never 0 and never 1, whose logarithms would be endless.
    uniform = (_shifted(bits, 12).double() + 0.5) * 2.0**-52
    return -torch.log(-torch.log(uniform))


def noise_at(seed: int, stream: int, position: int) -> Callable[[int], float]:
    """The same noise for one token id at a time, in a microsecond or two."""
    state = 0
    for part in (seed, stream, position):
        state = _mixed_whole((state ^ part) + GAMMA)

    def of(token_id: int) -> float:
        bits = _mixed_whole((token_id + 1) * GAMMA + state)
        return -math.log(-math.log(((bits >> 12) + 0.5) * 2.0**-52))

    return of


def _mixed_whole(state: int) -> int:
    """`_mixed` for one whole number of 64 bits."""
    state &= ALL_BITS
    state = ((state ^ (state >> 30)) * FACTORS[0]) & ALL_BITS
    state = ((state ^ (state >> 27)) * FACTORS[1]) & ALL_BITS
    return state ^ (state >> 31)


def _mixed(state: torch.Tensor) -> torch.Tensor:
    """SplitMix64's way to make all bits of a number depend on all others; whole numbers wrap around."""
    state = (state ^ _shifted(state, 30)) * FACTORS[0]
    state = (state ^ _shifted(state, 27)) * FACTORS[1]
    return state ^ _shifted(state, 31)


def _shifted(state: torch.Tensor, places: int) -> torch.Tensor:
    """To the right as if there were no sign."""
    return (state >> places) & (2 ** (64 - places) - 1)


def shaped(
    row: torch.Tensor,
    *,
    temperature: float,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    typical_p: float = 1.0,
    keep: int = 1,
) -> torch.Tensor:
    """The scores to draw from: heated, then cut. At least `keep` tokens are kept by each cut; 0 is no top-k.

    Computed in double precision on the processor, where noise is the same on every machine.
    """
    odds = heat(row.detach().cpu().double(), temperature)
    if temperature < COLDEST:
        return odds
    if top_k:
        odds = likeliest(odds, top_k, keep)
    return typical(near_best(nucleus(odds, top_p, keep), min_p, keep), typical_p, keep)


def draw(odds: torch.Tensor, *, seed: int, stream: int, position: int) -> int:
    """The token that a stream takes at a place of the text, from scores to draw from."""
    open_ids = odds.isfinite().nonzero()[:, 0]
    if len(open_ids) == 1:
        return int(open_ids[0])
    return int(open_ids[(odds[open_ids] + noise(seed, stream, position, open_ids)).argmax()])
