"""Rows of scores, and what is read off them: the likeliest tokens, how likely they all are, and compact predictions."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch

from lookahead_core.tree import TAIL_BIN, Prediction

TOP_TOKENS = 64
"""How many of the most likely tokens a compact prediction keeps."""
TAIL_BINS = 256
BLOCK = 64
"""The largest numbers of a row are sought among blocks of so many, which takes half the time."""


class LogitRows:
    """Scores, a row for each place. Each sweep over them is made when it is first asked for, and once."""

    def __init__(self, scores: torch.Tensor) -> None:
        self.scores = scores

    def some(self, places: Sequence[int]) -> LogitRows:
        """Some of the rows, with what is known of them."""
        if list(places) == list(range(len(self.scores))):
            return self
        chosen: slice | list[int] = list(places)
        if places and chosen == list(range(places[0], places[-1] + 1)):
            # Of rows that lie together nothing is copied.
            chosen = slice(places[0], places[-1] + 1)
        some = LogitRows(self.scores[chosen])
        for known in ("blocks", "best", "odds"):
            if known in vars(self):
                setattr(some, known, vars(self)[known][chosen])
        return some

    @functools.cached_property
    def blocks(self) -> torch.Tensor:
        """The largest score of each block."""
        return _in_blocks(self.scores).amax(-1)

    @functools.cached_property
    def best(self) -> torch.Tensor:
        """For each row the id of the most likely token: the first of a tie."""
        if self.scores.shape[-1] < BLOCK:
            return self.scores.max(-1).indices
        highest, block = self.blocks.max(-1)
        own = _in_blocks(self.scores)[torch.arange(len(block), device=block.device), block]
        found = block * BLOCK + own.max(-1).indices
        if self.scores.shape[-1] % BLOCK:
            whole = self.blocks.shape[-1] * BLOCK
            last, place = self.scores[:, whole:].max(-1)
            found = torch.where(last > highest, place + whole, found)
        return found

    @functools.cached_property
    def odds(self) -> torch.Tensor:
        """How likely each token is."""
        return self.scores.softmax(-1)

    @property
    def logprobs(self) -> torch.Tensor:
        """How likely each token is, as a logarithm."""
        return (self.scores - self._of_best(self.scores)).add_(self._of_best(self.odds).log())

    def top_k(self, count: int) -> tuple[list[list[int]], list[list[float]]]:
        """For each row so many of the likeliest tokens, and how likely they are among those that lie about them.

        That is more than among all, and much more where a row is undecided; all would be one more sweep over every row.
        """
        count = min(count, self.scores.shape[-1])
        places = _places(self.scores, count, self)
        if places is None:
            odds, token_ids = self.odds.topk(count)
        else:
            odds, found = self.scores.gather(1, places).softmax(-1).topk(count)
            token_ids = places.gather(1, found)
        return token_ids.tolist(), odds.tolist()

    def predictions(self) -> list[Prediction]:
        """Each row as a compact prediction."""
        token_ids = top_k_sorted(self.scores, min(TOP_TOKENS, self.scores.shape[-1]), self)
        best = token_ids[:, :1]
        highest, surety = self.scores.gather(1, best), self.odds.gather(1, best).log()
        # From the best score on: sums of large numbers would round what is left of them.
        below = self.scores - highest
        logprobs = below.gather(1, token_ids) + surety
        mean = torch.linalg.vecdot(self.odds, below)
        entropies = (-surety[:, 0] - mean).tolist()
        if any(map(math.isnan, entropies)):
            # Nothing times -inf is not a number: a model that rules a token out must not lose its entropy.
            mean = torch.linalg.vecdot(self.odds, below.clamp_min(torch.finfo(below.dtype).min))
            entropies = (-surety[:, 0] - mean).tolist()
        columns = (token_ids, logprobs, _tails(below, token_ids), (highest - surety)[:, 0])
        told = zip(entropies, *(column.tolist() for column in columns), strict=True)
        return [
            Prediction(tuple(ids), tuple(values), spread, tuple(tail), log_total=total)
            for spread, ids, values, tail, total in told
        ]

    def _of_best(self, numbers: torch.Tensor) -> torch.Tensor:
        return numbers.gather(1, self.best[:, None])


def top_k_sorted(scores: torch.Tensor, count: int, read: LogitRows | None = None) -> torch.Tensor:
    """The ids of the largest numbers of each row, largest first; of a tie, the lowest id first."""
    token_ids = top_k_ids(scores, count, read).sort(-1).values
    order = scores.gather(1, token_ids).sort(stable=True, dim=-1, descending=True).indices
    return token_ids.gather(1, order)


def top_k_ids(scores: torch.Tensor, count: int, read: LogitRows | None = None) -> torch.Tensor:
    """The ids of the largest numbers of each row, in any order; `read` is what is known of these rows."""
    places = _places(scores, count, read or LogitRows(scores))
    if places is None:
        return scores.topk(count).indices
    return places.gather(1, scores.gather(1, places).topk(count).indices)


def _places(scores: torch.Tensor, count: int, read: LogitRows) -> torch.Tensor | None:
    """For each row the ids among which so many of the largest numbers lie; None where that is hardly less than all."""
    width = scores.shape[-1]
    if width <= 4 * count * BLOCK:
        return None
    # They lie in the blocks whose largest numbers are largest.
    chosen = read.blocks.topk(count, sorted=False).indices
    places = (chosen[..., None] * BLOCK + torch.arange(BLOCK, device=scores.device)).flatten(1)
    if width % BLOCK:
        rest = torch.arange(width // BLOCK * BLOCK, width, device=scores.device).expand(len(scores), -1)
        places = torch.cat([places, rest], 1)
    return places


def _in_blocks(scores: torch.Tensor) -> torch.Tensor:
    """Rows cut into blocks; what is left over at their ends is left out."""
    whole = scores.shape[-1] // BLOCK * BLOCK
    return scores[:, :whole].unflatten(-1, (-1, BLOCK))


def _tails(below: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """For each row, how many tokens that are not kept lie how many bins below the most likely one; spoils `below`."""
    # Bytes are counted several times faster than wider numbers.
    bins = below.mul_(-1 / TAIL_BIN).clamp_(max=TAIL_BINS - 1).to(torch.uint8)
    all_of_them = torch.stack([torch.bincount(row, minlength=TAIL_BINS) for row in bins])
    of_rows = TAIL_BINS * torch.arange(len(bins), device=bins.device)[:, None]
    known = torch.bincount((bins.gather(1, kept) + of_rows).flatten(), minlength=all_of_them.numel())
    return all_of_them - known.view_as(all_of_them)
