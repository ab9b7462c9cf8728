"""One pass over several trees: their tokens form one row, and each tree's rows attend to its own cache only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from lookahead_core.engines.cache import FlatCache, SlotLayer


@dataclass(frozen=True, slots=True)
class JointTensors:
    """Keys, or values, of several caches; `tree_attention` takes them in place of one tensor."""

    rows: tuple[int, ...]
    """For each cache, how many rows of the pass attend to it."""
    tensors: tuple[torch.Tensor, ...]


class JointLayer(CacheLayerMixin):
    """The same layer of several caches. `update` splits the states of a pass and passes each cache its rows."""

    is_sliding = False

    def __init__(self, layers: Sequence[SlotLayer], rows: tuple[int, ...]) -> None:
        CacheLayerMixin.__init__(self)
        self.layers, self.rows = layers, rows

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing: each cache's own layer allocates its slots."""

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """Write the states of a pass into all caches; return keys and values as `JointTensors`."""
        parts = zip(
            self.layers,
            torch.split(key_states, list(self.rows), 2),
            torch.split(value_states, list(self.rows), 2),
            strict=True,
        )
        keys, values = zip(*(layer.update(key, value) for layer, key, value in parts), strict=True)
        return JointTensors(self.rows, keys), JointTensors(self.rows, values)

    def get_seq_length(self) -> int:
        return max(layer.get_seq_length() for layer in self.layers)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        return -1

    def get_max_cache_shape(self) -> int:
        """The name of `get_max_length` in transformers before 5.23."""
        return -1


def joint_cache(caches: Sequence[FlatCache], rows: tuple[int, ...]) -> Cache:
    """A cache for a model's forward that gives each of these caches its number of the pass's rows."""
    columns = zip(*(cache.layers for cache in caches), strict=True)
    return Cache(layers=[JointLayer(layers, rows) for layers in columns])


def caches_of(hf_cache: Cache, rows: int) -> tuple[list[list[SlotLayer]], list[int]]:
    """For each cache in `hf_cache`: its layers, and its number of the pass's rows; `rows` is their sum."""
    layers: list[Any] = hf_cache.layers
    if not isinstance(layers[0], JointLayer):
        return [layers], [rows]
    return [list(column) for column in zip(*(layer.layers for layer in layers), strict=True)], list(layers[0].rows)


def joint_masks(masks: Sequence[Any]) -> Any:
    """The masks of several caches stacked along the rows, padded on the right; by layer type if they are given so."""
    if isinstance(masks[0], Mapping):
        return {kind: _stacked([mask[kind] for mask in masks]) for kind in masks[0]}
    return _stacked(masks)


def _stacked(masks: Sequence[torch.Tensor]) -> torch.Tensor:
    width = max(mask.shape[-1] for mask in masks)
    return torch.cat([torch.nn.functional.pad(mask, (0, width - mask.shape[-1])) for mask in masks], dim=2)
