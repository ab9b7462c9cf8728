"""Where float32 and bfloat16 part: the same tokens read by a model in both precisions, and their logits compared."""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.errors import ModelError
from lookahead_core.tree import Node

PRECISIONS = (torch.float32, torch.bfloat16)
MOST_PARAMETERS = 1_000_000_000
"""The most parameters of a model of which a copy in the other precision is made: 2 GB, or 4 GB in float32."""
_COPIES: weakref.WeakKeyDictionary[Any, dict[torch.dtype, UncachedEngine]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class PrecisionStep:
    """The predictions of all branches at one depth, in float32 and in bfloat16."""

    depth: int
    """The position of the predicted tokens in their branches, from 1."""
    relative_difference: float
    """The largest difference in a row of logits as a part of the row's largest logit in float32, over all rows."""
    other_tokens: int
    """Number of branches whose most likely token at this depth differs between the precisions."""


def engines_of_precisions(hf_model: Any) -> list[UncachedEngine]:
    """Return an engine for each of PRECISIONS with the weights of a model; a copy is kept as long as the model.

    Raises ModelError if the model has more than MOST_PARAMETERS, or its weights are quantized.
    """
    if getattr(hf_model, "is_quantized", False) or not hf_model.dtype.is_floating_point:
        raise ModelError("The weights of this model are quantized, so they cannot be compared in two precisions.")
    if sum(parameter.numel() for parameter in hf_model.parameters()) > MOST_PARAMETERS:
        raise ModelError(
            f"Precisions are compared for models of at most {MOST_PARAMETERS:,} parameters, since a copy is needed, "
            "and this one has more."
        )
    made = _COPIES.setdefault(hf_model, {})
    for dtype in PRECISIONS:
        if dtype not in made:
            own = hf_model if hf_model.dtype == dtype else copy.deepcopy(hf_model).to(dtype)
            made[dtype] = UncachedEngine(own)
    return [made[dtype] for dtype in PRECISIONS]


def precision_steps(
    engines: Sequence[UncachedEngine], branches: Sequence[Sequence[Node]]
) -> Iterator[tuple[PrecisionStep, ...]]:
    """Compare the logits of both engines at all nodes of each branch; yield the result so far after each pass.

    A branch is a list of nodes, each the parent of the next one; its first node predicts the token at depth 1. All
    branches have the same length. The first result is empty, the last one has a step for each depth.
    """
    found: tuple[PrecisionStep, ...] = ()
    for nodes in branches:
        logits = []
        for engine in engines:
            logits.append(engine.score(nodes).logits_of(nodes).float().cpu())
            if len(logits) < len(engines):
                yield found
        exact, rounded = logits
        relative = ((exact - rounded).abs().amax(-1) / exact.abs().amax(-1)).nan_to_num(math.inf).tolist()
        other = (exact.argmax(-1) != rounded.argmax(-1)).tolist()
        before = found or [PrecisionStep(depth, 0.0, 0) for depth in range(1, len(nodes) + 1)]
        found = tuple(
            PrecisionStep(step.depth, max(step.relative_difference, difference), step.other_tokens + differs)
            for step, difference, differs in zip(before, relative, other, strict=True)
        )
        yield found
