"""Rows of logits, and what is computed from them: most likely tokens, log-probabilities, compact predictions."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch

from lookahead_core.errors import InvalidLogits
from lookahead_core.prediction import Prediction
from lookahead_core.reheating import TAIL_BIN

TOP_TOKENS = 64
"""The number of most likely tokens that a compact prediction keeps."""
TAIL_BINS = 256
"""Bins of the histogram of all other tokens, each `TAIL_BIN` nats wide; the last one also counts all beyond it."""
BLOCK = 64
"""Columns of a row per block. Searching the blocks' maxima first makes a top-k over a row about twice as fast."""
SLICE = 8
"""Rows of logits that are normalised at once, so that they stay in the processor's cache."""
MIN_PRECISE = -60.0
"""Log-probabilities below this, in nats, are computed from logits: the probability may be too small for float32."""


class LogitRows:
    """Logits of shape (rows, vocabulary), and what is computed from them.

    `block_maxima`, `best` and `probabilities` are computed on first use and kept, so `logits` must not be changed.
    """

    def __init__(self, logits: torch.Tensor) -> None:
        self.logits = logits

    def select(self, indices: Sequence[int]) -> LogitRows:
        """Return some of the rows, in the order of `indices`, with the derived tensors that exist already.

        Returns `self` if these are all rows in order. Adjacent rows share memory with `self`; others are copied.
        """
        if list(indices) == list(range(len(self.logits))):
            return self
        chosen: slice | list[int] = list(indices)
        if indices and chosen == list(range(indices[0], indices[-1] + 1)):
            # Adjacent rows are selected by a slice, which copies nothing.
            chosen = slice(indices[0], indices[-1] + 1)
        selected = LogitRows(self.logits[chosen])
        for name in ("block_maxima", "best", "probabilities"):
            if name in vars(self):
                setattr(selected, name, vars(self)[name][chosen])
        return selected

    @functools.cached_property
    def block_maxima(self) -> torch.Tensor:
        """The largest logit of each block of BLOCK columns, of shape (rows, blocks); no block for the remainder."""
        return _in_blocks(self.logits).amax(-1)

    @functools.cached_property
    def best(self) -> torch.Tensor:
        """The id of each row's most likely token, of shape (rows,); the lowest id of a tie."""
        if self.logits.shape[-1] < BLOCK:
            return self.logits.max(-1).indices
        highest, block = self.block_maxima.max(-1)
        own = _in_blocks(self.logits)[torch.arange(len(block), device=block.device), block]
        token_ids = block * BLOCK + own.max(-1).indices
        if self.logits.shape[-1] % BLOCK:
            whole = self.block_maxima.shape[-1] * BLOCK
            last, offset = self.logits[:, whole:].max(-1)
            token_ids = torch.where(last > highest, offset + whole, token_ids)
        return token_ids

    @functools.cached_property
    def probabilities(self) -> torch.Tensor:
        """The softmax of each row, of shape (rows, vocabulary)."""
        return self.logits.softmax(-1)

    @property
    def logprobs(self) -> torch.Tensor:
        """The log-softmax of each row, of shape (rows, vocabulary), computed anew at each use.

        Each logit less that of the row's best token, plus the log of that token's entry in `probabilities`: this saves
        another sweep over the row, and a token whose probability underflows to 0 keeps a finite value.
        """
        return (self.logits - self._of_best(self.logits)).add_(self._of_best(self.probabilities).log())

    def top_k(self, count: int) -> tuple[list[list[int]], list[list[float]]]:
        """Return the ids of the `count` most likely tokens of each row, most likely first, and their probabilities.

        Both are lists with one list for each row; `count` is lowered to the vocabulary's size. In a vocabulary of more
        than `4 * count * BLOCK` tokens the probabilities are normalised over the blocks with the largest logits only,
        which saves a sweep over each row: they are upper bounds, far too high for a flat row. Otherwise they are exact.
        """
        count = min(count, self.logits.shape[-1])
        candidates = _candidates(self.logits, count, self)
        if candidates is None:
            probabilities, token_ids = self.probabilities.topk(count)
        else:
            probabilities, found = self.logits.gather(1, candidates).softmax(-1).topk(count)
            token_ids = candidates.gather(1, found)
        return token_ids.tolist(), probabilities.tolist()

    def predictions(self) -> list[Prediction]:
        """Return a `Prediction` for each row, in order, with its `TOP_TOKENS` most likely tokens, or all if fewer.

        `Prediction.row` is not set. Raises InvalidLogits if a row has NaN or plus infinity, or no finite number.
        """
        token_ids = top_k_sorted(self.logits, min(TOP_TOKENS, self.logits.shape[-1]), self)
        best = token_ids[:, :1]
        highest, best_logprob = self.logits.gather(1, best), self.probabilities.gather(1, best).log()
        # Relative to the best logit: sums of large numbers would lose precision.
        below = self.logits - highest
        logprobs = below.gather(1, token_ids) + best_logprob
        mean = torch.linalg.vecdot(self.probabilities, below)
        entropies = (-best_logprob[:, 0] - mean).tolist()
        if any(map(math.isnan, entropies)):
            # 0 * -inf is NaN: a token with logit -inf must not spoil the entropy.
            mean = torch.linalg.vecdot(self.probabilities, below.clamp_min(torch.finfo(below.dtype).min))
            entropies = (-best_logprob[:, 0] - mean).tolist()
            require_numbers(entropies)
        totals = (highest - best_logprob)[:, 0]
        columns = [
            column.tolist() for column in _on_cpu(token_ids, _tail_histograms(below, token_ids), logprobs, totals)
        ]
        return [
            Prediction(tuple(ids), tuple(values), entropy, tuple(tail), log_total=total)
            for entropy, ids, tail, values, total in zip(entropies, *columns, strict=True)
        ]

    def _of_best(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return the entry of `numbers`, of the shape of the logits, for each row's most likely token, as (rows, 1)."""
        return numbers.gather(1, self.best[:, None])


def renormalised_among(row: torch.Tensor, token_ids: torch.Tensor | Sequence[int]) -> tuple[torch.Tensor, Prediction]:
    """Renormalise a row of log-probabilities over these token ids; return the new row and its prediction.

    `row` has the shape (vocabulary,), and is not changed. `token_ids` is one-dimensional, without duplicates. All other
    tokens have log-probability -inf in the new row. The prediction has no `log_total`. If the model gives all of these
    tokens probability 0, the whole row is -inf and the prediction is empty.
    """
    chosen = torch.as_tensor(token_ids, dtype=torch.long, device=row.device)
    possible = chosen[row[chosen].isfinite()]
    renormalised = torch.full_like(row, -math.inf)
    if not len(possible):
        return renormalised, Prediction((), (), 0.0)
    logprobs = row[possible].log_softmax(0)
    prediction = LogitRows(logprobs[None]).predictions()[0]
    # The model's logits are over all tokens, so there is no log total for a subset.
    prediction = replace(prediction, token_ids=tuple(possible[list(prediction.token_ids)].tolist()), log_total=None)
    return renormalised.index_copy(0, possible, logprobs), prediction


def top_k_sorted(logits: torch.Tensor, count: int, rows: LogitRows | None = None) -> torch.Tensor:
    """Return the ids of the `count` largest logits of each row, of shape (rows, count), largest first.

    Equal logits come lowest id first; which of them are among the `count` largest is not defined. `count` must be at
    most the vocabulary's size. `rows` are these logits as `LogitRows`, if the caller has them: their block maxima are
    reused.
    """
    token_ids = top_k_ids(logits, count, rows).sort(-1).values
    order = logits.gather(1, token_ids).sort(stable=True, dim=-1, descending=True).indices
    return token_ids.gather(1, order)


def top_k_ids(logits: torch.Tensor, count: int, rows: LogitRows | None = None) -> torch.Tensor:
    """Return the ids of the `count` largest logits of each row, of shape (rows, count), in any order.

    `count` must be at most the vocabulary's size. `rows` are these logits as `LogitRows`, if the caller has them: their
    block maxima are reused.
    """
    candidates = _candidates(logits, count, rows or LogitRows(logits))
    if candidates is None:
        return logits.topk(count).indices
    return candidates.gather(1, logits.gather(1, candidates).topk(count).indices)


def _candidates(logits: torch.Tensor, count: int, rows: LogitRows) -> torch.Tensor | None:
    """Return ids of tokens among which are those of the `count` largest logits of each row; None in small vocabularies.

    The shape is (rows, candidates), in no particular order: all tokens of the `count` blocks with the largest maxima,
    and those after the last whole block. None if the vocabulary has at most `4 * count * BLOCK` tokens. `rows` must be
    the same logits.
    """
    width = logits.shape[-1]
    if width <= 4 * count * BLOCK:
        return None
    chosen = rows.block_maxima.topk(count, sorted=False).indices
    candidates = (chosen[..., None] * BLOCK + torch.arange(BLOCK, device=logits.device)).flatten(1)
    if width % BLOCK:
        rest = torch.arange(width // BLOCK * BLOCK, width, device=logits.device).expand(len(logits), -1)
        candidates = torch.cat([candidates, rest], 1)
    return candidates


def _in_blocks(logits: torch.Tensor) -> torch.Tensor:
    """Return a view of logits of shape (rows, blocks, BLOCK); columns after the last whole block are left out."""
    blocks = logits.shape[-1] // BLOCK
    return logits[:, : blocks * BLOCK].view(len(logits), blocks, BLOCK)


def _tail_histograms(below: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Return, per row, the histogram of the tokens outside `kept` by their distance to the most likely one.

    The result holds counts, of shape (rows, TAIL_BINS); bins are `TAIL_BIN` nats wide, and the last one also counts all
    beyond it. `below`, of shape (rows, vocabulary), holds the log-probability of each token less the highest of its
    row, in nats; it is overwritten. `kept`, of shape (rows, kept tokens), holds the ids that are not counted.
    """
    # Counting uint8 values is several times faster than counting wider integers.
    bins = below.mul_(-1 / TAIL_BIN).clamp_(max=TAIL_BINS - 1).to(torch.uint8)
    if bins.is_cuda:
        # `bincount` would wait for the GPU with each row.
        counts = bins.new_zeros((len(bins), TAIL_BINS), dtype=torch.int64)
        counts.scatter_add_(1, bins.long(), counts.new_ones(1, 1).expand_as(bins))
        return counts.scatter_add_(1, bins.gather(1, kept).long(), counts.new_full((1, 1), -1).expand_as(kept))
    totals = torch.stack([torch.bincount(row, minlength=TAIL_BINS) for row in bins])
    row_offsets = TAIL_BINS * torch.arange(len(bins), device=bins.device)[:, None]
    of_kept = torch.bincount((bins.gather(1, kept) + row_offsets).flatten(), minlength=totals.numel())
    return totals - of_kept.view_as(totals)


def _on_cpu(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Return these tensors on the CPU; from a GPU they are copied at once, so that the processor waits only once.

    Those with larger elements must come first, so that each begins at a multiple of its element's size.
    """
    if not tensors[0].is_cuda:
        return list(tensors)
    flat = [tensor.contiguous().flatten().view(torch.uint8) for tensor in tensors]
    parts = torch.cat(flat).cpu().split([len(part) for part in flat])
    return [part.view(tensor.dtype).view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]


def token_logprobs(logits: torch.Tensor, token_ids: Sequence[int]) -> list[float]:
    """Return the natural log-probability of one token for each row of logits: `token_ids[i]` in row i.

    `logits` has the shape (rows, vocabulary), float32. Rows are normalised a few at a time, and none is stored. Raises
    InvalidLogits like `LogitRows.predictions`.
    """
    ids = torch.tensor(token_ids, dtype=torch.int64, device=logits.device)[:, None]
    # All slices share a buffer: logsumexp allocates, and takes four times as long.
    buffer, own = torch.empty_like(logits[:SLICE]), logits.new_empty(len(logits))
    for first in range(0, len(logits), SLICE):
        rows = logits[first : first + SLICE]
        probabilities = torch.softmax(rows, -1, out=buffer[: len(rows)])
        own[first : first + SLICE] = probabilities.gather(1, ids[first : first + SLICE])[:, 0].log()
    imprecise = (own < MIN_PRECISE).nonzero()[:, 0]
    own[imprecise] = logits[imprecise].gather(1, ids[imprecise])[:, 0] - logits[imprecise].logsumexp(-1)
    values: list[float] = own.tolist()
    require_numbers(values)
    return values


def require_numbers(values: Iterable[float]) -> None:
    """Raise InvalidLogits if one of these values, which were computed from rows of logits, is NaN."""
    if any(map(math.isnan, values)):
        raise InvalidLogits
