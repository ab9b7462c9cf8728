"""What heads learn from: vectors, and the tokens that came after them; some are kept apart to try the heads on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from lookahead_core.speculation.heads import HeadsProduct

HELD_OUT = 12
"""One start of so many is kept apart, with all texts that go on from it."""
ROWS = 256
"""So many vectors are tried at once."""
NOTHING = -1
"""Stands for a token that did not come any more, or that heads do not guess."""


@dataclass(frozen=True)
class HeadDataset:
    """Vectors, and for each head what it should guess from them, by places among the kept tokens.

    Heads learn from all that the model thought likely, not from the one token that came: that says more of each place.
    """

    kept: torch.Tensor
    vectors: torch.Tensor
    came: torch.Tensor
    """The token that came from each vector."""
    targets: torch.Tensor
    """By vector and head: what the model thought likeliest where the head's token came."""
    odds: torch.Tensor
    """How likely it thought each of them; nothing for those that are not kept."""
    held_vectors: torch.Tensor
    held_came: torch.Tensor
    held_ids: torch.Tensor
    """By id, since tokens that no head guesses count as well."""

    @classmethod
    def of(cls, rounds: Sequence[dict[str, Any]], count: int, most: int) -> HeadDataset:
        """From all that was written."""
        rounds = [one for one in rounds if one["lengths"]]
        if not rounds:
            return cls(*(torch.empty(0),) * 8)
        vectors = torch.cat([one["vectors"] for one in rounds])
        ids, held = _targets(rounds, count)
        came = torch.cat([one["token_ids"] for one in rounds])
        kept = _most_frequent(came[~held], most)
        thoughts, odds = _thoughts(rounds, count)
        targets = places_of(thoughts[~held], kept)
        odds = odds[~held].masked_fill_(targets == NOTHING, 0)
        odds /= odds.sum(-1, keepdim=True).clamp_min(torch.finfo(odds.dtype).tiny)
        return cls(kept, vectors[~held], came[~held], targets, odds, vectors[held], came[held], ids[held])


def _targets(rounds: Sequence[dict[str, Any]], count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """For each token what came 1, 2, … places after it, and whether it is kept apart."""
    rows, held = [], []
    for one in rounds:
        for ids, start in zip(one["token_ids"].split(one["lengths"]), one["starts"], strict=True):
            longer = functional.pad(ids, (0, count), value=NOTHING)
            rows.append(longer.unfold(0, count, 1)[1:])
            held.append(torch.full((len(ids),), start % HELD_OUT == 0))
    return torch.cat(rows), torch.cat(held)


def _thoughts(rounds: Sequence[dict[str, Any]], count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """For each token what the model thought likeliest 1, 2, … places after it, and how likely."""
    found: dict[str, list[torch.Tensor]] = {"thought_ids": [], "thought_odds": []}
    for one in rounds:
        for name, rows in found.items():
            for part in one[name].split(one["lengths"]):
                longer = functional.pad(part, (0, 0, 0, count), value=NOTHING)
                rows.append(longer.unfold(0, count, 1)[1:].transpose(1, 2))
    return torch.cat(found["thought_ids"]), torch.cat(found["thought_odds"])


def _most_frequent(token_ids: torch.Tensor, count: int) -> torch.Tensor:
    """The most frequent ids, in rising order."""
    counts = torch.bincount(token_ids)
    order = counts.argsort(descending=True, stable=True)[:count]
    return order[counts[order] > 0].sort().values


def places_of(token_ids: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Where ids stand among the kept ones."""
    places = torch.searchsorted(kept, token_ids).clamp_max(len(kept) - 1)
    return torch.where(kept[places] == token_ids, places, NOTHING)


def measure(product: HeadsProduct, lessons: HeadDataset) -> list[tuple[float, float]]:
    """For each head, how often its first guess is right, and how often one of its first four is."""
    right = torch.zeros(lessons.held_ids.shape[1], 2)
    kept = product.kept.cpu()
    parts = (lessons.held_vectors, lessons.held_came, lessons.held_ids)
    for vectors, came, ids in zip(*(part.split(ROWS) for part in parts), strict=True):
        scores = product(vectors, came)
        guesses = kept[scores.topk(min(4, scores.shape[-1])).indices.cpu()]
        hits = guesses == ids.t()[:, :, None]
        right += torch.stack([hits[..., 0].sum(1), hits.any(-1).sum(1)], 1)
    total = (lessons.held_ids != NOTHING).sum(0).clamp_min(1)
    return [(first, four) for first, four in (right / total[:, None]).tolist()]
