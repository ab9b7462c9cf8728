"""Whether the others found the branches that ours found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap

import torch
from transformers import PreTrainedModel

from benchmarks.contestants import COLD, SAME_BRANCHES
from benchmarks.results import Measure

# Two logits nearer than this part of the largest are a tie that the order of additions decides.
TIE = 2e-5
Ids = tuple[int, ...]


def with_agreement(measures: Sequence[Measure]) -> Iterator[tuple[Measure, int | None]]:
    """Each measure with the number of its branches that are ours; None for those who look for other ones."""
    ours = _ours(measures)
    for measure in measures:
        yield measure, sum(starmap(_same, _pairs(ours, measure))) if measure.method in SAME_BRANCHES else None


def check_agreement(judge: PreTrainedModel, ids: list[int], measures: Sequence[Measure]) -> None:
    """Raise if a branch is not ours and a plain forward of the judge sees no tie where they part; for fp32."""
    ours = _ours(measures)
    for measure in measures:
        if measure.method in SAME_BRANCHES:
            for mine, other in _pairs(ours, measure):
                if not _same(mine, other) and not is_tie(judge, ids, mine, other):
                    raise AssertionError(f"{measure.method} found {other} where ours found {mine}, after {ids}.")


def _ours(measures: Sequence[Measure]) -> Measure:
    return next(measure for measure in measures if measure.method == COLD)


def _pairs(ours: Measure, theirs: Measure) -> Iterable[tuple[Ids, Ids]]:
    return zip(ours.branches, theirs.branches, strict=True)


def _same(mine: Ids, other: Ids) -> bool:
    """Rank by rank; a branch of ours that met an end token is compared up to it."""
    return mine == other[: len(mine)]


@torch.inference_mode()
def is_tie(model: PreTrainedModel, ids: list[int], mine: Ids, other: Ids) -> bool:
    split = next(place for place, pair in enumerate(zip(mine, other, strict=False)) if pair[0] != pair[1])
    context = torch.tensor([[*ids, *mine[:split]]], device=model.device)
    logits = model(context, use_cache=False, logits_to_keep=1).logits[0, -1].float()
    gap = logits[mine[split]] - logits[other[split]]
    return bool(gap.abs() <= TIE * logits.abs().max())
