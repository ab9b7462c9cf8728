"""Checks that all methods found the same branches as ours, except where two tokens are tied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap

import torch
from transformers import PreTrainedModel

from benchmarks.contestants import COLD, SAME_BRANCHES
from benchmarks.results import Measure

# Logits that differ by less than this share of the largest are a tie, decided by the order of additions.
TIE = 2e-5
Ids = tuple[int, ...]


def with_agreement(measures: Sequence[Measure]) -> Iterator[tuple[Measure, int | None]]:
    """Yield each measure of one prompt with the number of its branches that equal those of a cold run of ours.

    The number is None for methods that look for other branches.
    """
    ours = _ours(measures)
    for measure in measures:
        yield measure, sum(starmap(_same, _pairs(ours, measure))) if measure.method in SAME_BRANCHES else None


def check_agreement(judge: PreTrainedModel, ids: list[int], measures: Sequence[Measure]) -> None:
    """Raise AssertionError if a branch of one of SAME_BRANCHES differs from ours and `is_tie` is not true; for float32.

    `ids` is the prompt, and `judge` a plain transformers model of the same weights.
    """
    ours = _ours(measures)
    for measure in measures:
        if measure.method in SAME_BRANCHES:
            for mine, other in _pairs(ours, measure):
                if not _same(mine, other) and not is_tie(judge, ids, mine, other):
                    raise AssertionError(f"{measure.method} found {other} where ours found {mine}, after {ids}.")


def _ours(measures: Sequence[Measure]) -> Measure:
    """Return the measure of a cold run of ours."""
    return next(measure for measure in measures if measure.method == COLD)


def _pairs(ours: Measure, theirs: Measure) -> Iterable[tuple[Ids, Ids]]:
    return zip(ours.branches, theirs.branches, strict=True)


def _same(mine: Ids, other: Ids) -> bool:
    """Whether `other` begins with all of `mine`: ours ends at an end token, other methods go on."""
    return mine == other[: len(mine)]


@torch.inference_mode()
def is_tie(model: PreTrainedModel, ids: list[int], mine: Ids, other: Ids) -> bool:
    """Whether the first tokens in which two continuations of `ids` differ have logits within TIE of each other.

    The logits are those of a plain forward pass of `model`. The continuations must differ before the shorter one ends.
    """
    split = next(index for index, pair in enumerate(zip(mine, other, strict=False)) if pair[0] != pair[1])
    context = torch.tensor([[*ids, *mine[:split]]], device=model.device)
    logits = model(context, use_cache=False, logits_to_keep=1).logits[0, -1].float()
    gap = logits[mine[split]] - logits[other[split]]
    return bool(gap.abs() <= TIE * logits.abs().max())
