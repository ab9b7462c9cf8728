"""Several trees in one pass: their tokens make one row, and each tree's attention looks into its own cache only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from lookahead_core.engines.cache import FlatCache, SlotLayer


@dataclass(frozen=True, slots=True)
class JointTensors:
    """Keys, or values, of several caches: for each, how many rows of the pass look at it, and its tensor."""

    rows: tuple[int, ...]
    tensors: tuple[torch.Tensor, ...]


class JointLayer(CacheLayerMixin):
    """One layer of several caches: what a pass brings is handed to each, and what each holds is looked at apart."""

    is_sliding = False

    def __init__(self, layers: Sequence[SlotLayer], rows: tuple[int, ...]) -> None:
        super().__init__()
        self.layers, self.rows = layers, rows

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Each cache's own layer does it."""

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        brought = zip(self.layers, key_states.split(self.rows, 2), value_states.split(self.rows, 2), strict=True)
        keys, values = zip(*(layer.update(key, value) for layer, key, value in brought), strict=True)
        return JointTensors(self.rows, keys), JointTensors(self.rows, values)

    def get_seq_length(self) -> int:
        return max(layer.get_seq_length() for layer in self.layers)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        return -1

    def get_max_cache_shape(self) -> int:
        """Asked for by transformers before 5.23."""
        return -1


def joint_states(caches: Sequence[FlatCache], rows: tuple[int, ...]) -> Cache:
    """What a model takes as its cache, so that these caches get so many rows each."""
    columns = zip(*(cache.layers for cache in caches), strict=True)
    return Cache(layers=[JointLayer(layers, rows) for layers in columns])


def caches_of(states: Cache, first: int, last: int, rows: int) -> tuple[list[list[SlotLayer]], list[int]]:
    """Of each cache the layers from the first to before the last, and how many of a pass's rows it gets."""
    layers: list[Any] = states.layers[first:last]
    if not isinstance(layers[0], JointLayer):
        return [layers], [rows]
    return [list(column) for column in zip(*(layer.layers for layer in layers), strict=True)], list(layers[0].rows)


def joint_masks(masks: Sequence[Any]) -> Any:
    """Masks of the single caches, one below the other, each from the left; one for each kind of layer."""
    if isinstance(masks[0], Mapping):
        return {kind: _below_each_other([mask[kind] for mask in masks]) for kind in masks[0]}
    return _below_each_other(masks)


def _below_each_other(masks: Sequence[torch.Tensor]) -> torch.Tensor:
    width = max(mask.shape[-1] for mask in masks)
    return torch.cat([torch.nn.functional.pad(mask, (0, width - mask.shape[-1])) for mask in masks], dim=2)
