"""What a model's scores say of the tokens that came: how likely each was, its rank, and what was likelier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from lookahead_core.engines.prediction_rows import top_k_sorted

SLICE = 8
"""Rows that are worked on at once, so that they stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """What a row says of the token that came."""

    logprob: float
    rank: int
    entropy: float
    likeliest: tuple[tuple[int, float], ...]
    """Token ids and their log-probabilities."""


def observe(rows: torch.Tensor, came: Sequence[int], k: int) -> Iterator[TokenFacts]:
    """What rows of the model's scores say of the tokens that came: a few sweeps over each, and no more."""
    own, top = torch.tensor(came, device=rows.device)[:, None], top_k_sorted(rows, min(k, rows.shape[-1]))
    mine, best = rows.gather(1, own), rows.gather(1, top)
    odds = torch.empty_like(rows[:SLICE])  # one place for all slices: fresh memory costs more than the sums in it
    slices = zip(rows.split(SLICE), top.split(SLICE), strict=True)
    first, mean = map(torch.cat, zip(*(_surest_and_mean(some, best, odds) for some, best in slices), strict=True))
    scale = best[:, 0] - first.log()
    # Among the alternatives the first of a tie comes first.
    among, places = (top == own).max(-1)
    ranks = 1 + places.masked_scatter(~among, _larger(rows, mine, (~among).nonzero()[:, 0]))
    columns = (mine[:, 0] - scale, ranks, scale - mean, top, best - scale[:, None])
    for logprob, rank, spread, ids, logprobs in zip(*(column.tolist() for column in columns), strict=True):
        yield TokenFacts(logprob, rank, spread, tuple(zip(ids, logprobs, strict=True)))


def _surest_and_mean(rows: torch.Tensor, top: torch.Tensor, odds: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How likely the likeliest token is, and the scores' mean by how likely each is. `odds` is room to work in."""
    odds = torch.softmax(rows, -1, out=odds[: len(rows)])
    first = odds.gather(1, top[:, :1])[:, 0]
    mean = odds.mul_(rows).sum(-1)
    if bool(mean.isnan().any()):  # what is ruled out has no part in it
        mean = rows.softmax(-1).mul_(rows.clamp_min(torch.finfo(rows.dtype).min)).sum(-1)
    return first, mean


def _larger(rows: torch.Tensor, numbers: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """In each of the rows at these places, how much of it is larger than its number."""
    # Bytes are added ten times faster than truths.
    found = [(rows[some] > numbers[some]).view(torch.uint8).sum(-1, dtype=torch.int64) for some in places.split(SLICE)]
    return torch.cat(found)
