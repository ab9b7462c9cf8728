"""Choosing a token from a row of scores: penalties, temperature, top-k, top-p, min-p, typical sampling, seeded noise.

All functions here are pure. A row is a one-dimensional tensor with one score per token id: log-probabilities, or
logits, which differ from them by a constant. An excluded token has the score -inf. Functions that exclude tokens leave
the scores of the other tokens unchanged; callers normalise at the end if they need probabilities.

Options are always applied in this order, which is the order of transformers where it has the option:

1. repetition penalty (on logits), 2. no_repeat_ngram_size, forbidden phrases, min_new_tokens, forced phrases,
3. frequency and presence penalties, 4. temperature, 5. top-k, 6. top-p, 7. min-p, 8. typical.

One of the project's prototype notebooks, seed 003, swaps steps 3 and 4: it divides by the temperature first and
subtracts the frequency penalty afterwards, and at temperature 0 it takes the most probable token without any penalty.
Here penalties come first, as in vLLM, and apply at temperature 0 too. To reproduce that notebook's probabilities above
temperature 0, multiply its frequency penalty by the temperature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch

PARTIAL_SORT_SIZES = (1024, 8192)
"""Numbers of tokens that top-p tries with `topk` before it sorts the whole row, which takes several times longer."""
MIN_TEMPERATURE = 1e-6
"""Below this temperature the most probable token gets probability 1: the scaled scores would overflow."""
SPLITMIX_GAMMA = 0x9E3779B97F4A7C15 - 2**64
"""The increment of SplitMix64, as a signed 64-bit integer."""
SPLITMIX_FACTORS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)
"""The two multipliers of SplitMix64, as signed 64-bit integers."""
UINT64_MASK = 2**64 - 1


def exclude_tokens(row: torch.Tensor, token_ids: Iterable[int]) -> torch.Tensor:
    """Return a copy of the row with these tokens at -inf, all of which it must have a score for."""
    excluded = torch.tensor(sorted(token_ids), dtype=torch.int64, device=row.device)
    return row.index_fill(0, excluded, -math.inf)


def keep_only(row: torch.Tensor, token_ids: Iterable[int]) -> torch.Tensor:
    """Return a copy of a row of scores, of shape (vocabulary,), with every token at -inf that is not in `token_ids`.

    All of `token_ids` must be valid indices of the row.
    """
    kept = torch.tensor(sorted(token_ids), dtype=torch.int64, device=row.device)
    return torch.full_like(row, -math.inf).index_copy(0, kept, row[kept])


def apply_repetition_penalty(row: torch.Tensor, token_ids: Sequence[int], penalty: float) -> torch.Tensor:
    """Return a new row: the scores of `token_ids` are divided by the penalty, or multiplied where they are negative.

    `row` has the shape (vocabulary,). Repeated ids count once, and ids that the row has no score for are ignored.
    """
    used = _unique_in_vocabulary(token_ids, row)
    scores = row[used]
    return row.index_copy(0, used, torch.where(scores < 0, scores * penalty, scores / penalty))


def apply_count_penalties(
    row: torch.Tensor, token_ids: Sequence[int], frequency: float, presence: float
) -> torch.Tensor:
    """Return a new row, in which the scores of all tokens that occur in `token_ids` are lower.

    `frequency` is subtracted for each occurrence, and `presence` once; negative values raise the scores. `row` has the
    shape (vocabulary,). Ids that the row has no score for are ignored.
    """
    counts = torch.bincount(torch.tensor(token_ids, dtype=torch.int64), minlength=len(row))[: len(row)].to(row)
    return row - frequency * counts - presence * (counts > 0)


def _unique_in_vocabulary(token_ids: Sequence[int], row: torch.Tensor) -> torch.Tensor:
    """Return the distinct token ids that the row has a score for, ascending: int64, on the row's device."""
    unique = torch.tensor(sorted(set(token_ids)), dtype=torch.int64, device=row.device)
    return unique[unique < len(row)]


def ngram_completions(token_ids: Sequence[int], size: int) -> set[int]:
    """Return the ids which, appended to `token_ids`, would repeat an n-gram of `size` tokens that occurs in it.

    `size` is 1 or more; with 1 these are the ids in `token_ids`. Empty if `token_ids` is shorter than `size`.
    """
    if len(token_ids) < size:
        return set()
    windows = torch.tensor(token_ids, dtype=torch.int64).unfold(0, size, 1)
    same = (windows[:, :-1] == torch.tensor(token_ids[len(token_ids) - size + 1 :], dtype=torch.int64)).all(1)
    return set(windows[same, -1].tolist())


def apply_temperature(row: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return normalised log-probabilities at this temperature, from logits or log-probabilities of shape (vocabulary,).

    Below MIN_TEMPERATURE the most probable token has log-probability 0, and all others -inf.
    """
    if temperature < MIN_TEMPERATURE:
        greedy = torch.full_like(row, -math.inf)
        greedy[row.argmax()] = 0.0
        return greedy
    return (row / temperature).log_softmax(-1)


def apply_top_k(row: torch.Tensor, count: int, keep: int = 1) -> torch.Tensor:
    """Return the row with all tokens at -inf except the `count` most probable ones, and those tied with the last one.

    At least `keep` tokens are kept, with their scores unchanged. A row with no more tokens than that is
    returned itself.
    """
    count = max(count, keep)
    if count >= len(row):
        return row
    return row.masked_fill(row < row.topk(count).values[-1], -math.inf)


def apply_top_p(row: torch.Tensor, top_p: float, keep: int = 1) -> torch.Tensor:
    """Return the row with all tokens at -inf except the fewest most probable ones that together have at least `top_p`.

    At least `keep` tokens are kept, with their scores unchanged. The probabilities are the softmax of the row; from
    `top_p` 1 on, the row is returned unchanged.
    """
    if top_p >= 1:
        return row
    probabilities, token_ids = _most_probable(row, top_p, keep)
    # The mass before a token decides, so the first token is always kept.
    inside = probabilities.cumsum(-1) - probabilities < top_p
    inside[:keep] = True
    kept = token_ids[inside]
    return torch.full_like(row, -math.inf).index_copy(0, kept, row[kept])


def _most_probable(row: torch.Tensor, mass: float, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the probabilities and the ids of the most probable tokens of a row, most probable first.

    There are at least `count`, which together have at least the probability `mass`; otherwise all tokens of the row.
    There may be more than that takes. The probabilities are the softmax of the whole row.
    """
    total = row.logsumexp(-1)
    for size in PARTIAL_SORT_SIZES:
        if count <= size < len(row):
            values, token_ids = row.topk(size)
            probabilities = (values - total).exp()
            if float(probabilities.sum()) >= mass:
                return probabilities, token_ids
    values, token_ids = row.sort(descending=True, stable=True)
    return (values - total).exp(), token_ids


def apply_min_p(row: torch.Tensor, min_p: float, keep: int = 1) -> torch.Tensor:
    """Return the row with all tokens at -inf except those at least `min_p` times as probable as the most probable one.

    At least `keep` tokens are kept, with their scores unchanged. From `min_p` 0 down, the row is returned unchanged.
    """
    if min_p <= 0:
        return row
    low = row < row.max() + math.log(min_p)
    low[row.topk(min(keep, len(row))).indices] = False
    return row.masked_fill(low, -math.inf)


def apply_typical_p(row: torch.Tensor, mass: float, keep: int = 1) -> torch.Tensor:
    """Return the row with all tokens at -inf except those whose surprisal is closest to the row's entropy.

    The surprisal is the negative log-probability, after a softmax of the row. As many tokens are kept, with their
    scores unchanged, as it takes for their probabilities to add up to `mass`; also those whose surprisal is as close as
    that of the last of them, and at least `keep` tokens. From `mass` 1 on, the row is returned unchanged.
    """
    if mass >= 1:
        return row
    logprobs = row.log_softmax(-1)
    probabilities = logprobs.exp()
    entropy = -(probabilities * logprobs.clamp_min(torch.finfo(row.dtype).min)).sum()
    distances, token_ids = (-logprobs - entropy).abs().sort(stable=True)
    last = min(int((probabilities[token_ids].cumsum(-1) < mass).sum()), len(row) - 1)
    inside = distances <= distances[last]
    inside[:keep] = True
    return torch.full_like(row, -math.inf).index_copy(0, token_ids[inside], row[token_ids[inside]])


def gumbel_noise(seed: int, stream: int, position: int, token_ids: torch.Tensor) -> torch.Tensor:
    """Return Gumbel noise for these token ids (int64, on the CPU), of the same shape in float64.

    The argmax of log-probabilities plus this noise is an exact sample. The noise depends on the arguments alone and is
    the same on every machine, so a repeated draw gives the same token, with or without a cache and in any batch.
    `stream` numbers independent draws of one seed; `position` is the sampled token's position in the text.
    """
    state = torch.zeros(1, dtype=torch.int64)
    for part in (seed, stream, position):
        state = _splitmix((state ^ part) + SPLITMIX_GAMMA)
    bits = _splitmix((token_ids + 1) * SPLITMIX_GAMMA + state)
    # 52 bits plus a half: never 0 and never 1, where the logarithms are infinite.
    uniform = (_logical_right_shift(bits, 12).double() + 0.5) * 2.0**-52
    return -torch.log(-torch.log(uniform))


def gumbel_noise_by_token(seed: int, stream: int, position: int) -> Callable[[int], float]:
    """Return a function from one token id to its Gumbel noise: that of `gumbel_noise` with the same arguments.

    The two may differ by the rounding of the logarithm. The function takes one or two microseconds, which is less than
    `gumbel_noise` takes for a few tokens.
    """
    state = 0
    for part in (seed, stream, position):
        state = _splitmix_int((state ^ part) + SPLITMIX_GAMMA)

    def noise_of(token_id: int) -> float:
        bits = _splitmix_int((token_id + 1) * SPLITMIX_GAMMA + state)
        return -math.log(-math.log(((bits >> 12) + 0.5) * 2.0**-52))

    return noise_of


def _splitmix_int(state: int) -> int:
    """Return `_splitmix` of one integer, taken modulo 2**64, as an unsigned 64-bit integer."""
    state &= UINT64_MASK
    state = ((state ^ (state >> 30)) * SPLITMIX_FACTORS[0]) & UINT64_MASK
    state = ((state ^ (state >> 27)) * SPLITMIX_FACTORS[1]) & UINT64_MASK
    return state ^ (state >> 31)


def _splitmix(state: torch.Tensor) -> torch.Tensor:
    """Return int64 values with their bits mixed as SplitMix64 does: each output bit depends on all input bits."""
    state = (state ^ _logical_right_shift(state, 30)) * SPLITMIX_FACTORS[0]
    state = (state ^ _logical_right_shift(state, 27)) * SPLITMIX_FACTORS[1]
    return state ^ _logical_right_shift(state, 31)


def _logical_right_shift(state: torch.Tensor, bits: int) -> torch.Tensor:
    """Return int64 values shifted right by `bits`, 1 to 63, with zeros instead of copies of the sign bit."""
    unsigned: torch.Tensor = (state >> bits) & (2 ** (64 - bits) - 1)
    return unsigned


def apply_temperature_and_cuts(
    row: torch.Tensor,
    *,
    temperature: float,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    typical_p: float = 1.0,
    keep: int = 1,
) -> torch.Tensor:
    """Return the scores to sample from: temperature, then top-k, top-p, min-p and typical sampling, for one row.

    `row` holds logits or log-probabilities of shape (vocabulary,). Each cut keeps at least `keep` tokens; below
    MIN_TEMPERATURE only the most probable one is left, whatever `keep` is. The defaults mean no cut. The result is
    float64 on the CPU, where the noise is the same on every machine: log-probabilities at this temperature, with -inf
    for excluded tokens, and not normalised after the cuts.
    """
    scores = apply_temperature(row.detach().cpu().double(), temperature)
    if temperature < MIN_TEMPERATURE:
        return scores
    if top_k:
        scores = apply_top_k(scores, top_k, keep)
    return apply_typical_p(apply_min_p(apply_top_p(scores, top_p, keep), min_p, keep), typical_p, keep)


def sample_token(scores: torch.Tensor, *, seed: int, stream: int, position: int) -> int:
    """Return the token id that a stream draws at a position of the text, sampled from the softmax of `scores`.

    `scores` is a result of `apply_temperature_and_cuts`: one-dimensional, on the CPU, and at least one score is finite.
    The same arguments give the same token; seed, stream and position are those of `gumbel_noise`.
    """
    return next(sample_tokens(scores, seed=seed, streams=[stream], position=position))


def sample_tokens(scores: torch.Tensor, *, seed: int, streams: Iterable[int], position: int) -> Iterator[int]:
    """Yield for each stream the token id that `sample_token` returns, whose other arguments are the same."""
    allowed = scores.isfinite().nonzero()[:, 0]
    possible = scores[allowed]
    for stream in streams:
        if len(allowed) == 1:
            yield int(allowed[0])
        else:
            yield int(allowed[(possible + gumbel_noise(seed, stream, position, allowed)).argmax()])
