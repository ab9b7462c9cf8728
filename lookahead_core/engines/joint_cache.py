"""One pass over several trees: their tokens form one row, and each tree's rows attend to its own cache only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache

from lookahead_core.engines.cache import FlatCache, SlotLayer, UnlimitedLayer


@dataclass(frozen=True, slots=True)
class JointTensors:
    """One layer's keys, or values, of several trees' caches; `tree_attention` takes them in place of one tensor.

    `JointLayer.update` makes them.
    """

    rows: tuple[int, ...]
    """For each cache, how many rows of the pass attend to it."""
    tensors: tuple[torch.Tensor, ...]
    """For each cache, its keys or values of shape (1, heads, slots, width); the numbers of slots differ."""


class JointLayer(UnlimitedLayer):
    """The same model layer in several trees' caches, as one cache layer of transformers for one pass.

    `rows` are counts: the first `rows[0]` rows of the pass go to `layers[0]`, the next `rows[1]` to `layers[1]`, and so
    on.
    """

    def __init__(self, layers: Sequence[SlotLayer], rows: tuple[int, ...]) -> None:
        super().__init__()
        self.layers, self.rows = layers, rows

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Do nothing: each cache's own layer allocates its slots."""

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """Write each cache's rows of the keys and values of a pass into its layer, see `SlotLayer.update`.

        Both have the shape (1, heads, sum of `rows`, width). Returns the keys and the values of all caches, each as
        `JointTensors`. Further arguments are ignored.
        """
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


def joint_cache(caches: Sequence[FlatCache], rows: tuple[int, ...]) -> Cache:
    """Return the cache object for a forward pass over several trees, which writes into each tree's own cache.

    `rows` are counts: the first `rows[0]` rows of the pass go to `caches[0]`, the next `rows[1]` to `caches[1]`, and so
    on. The model must use `tree_attention`. Each cache needs room for its rows before (`FlatCache.reserve`), and its
    own `FlatCache.add` after the pass.
    """
    columns = zip(*(cache.layers for cache in caches), strict=True)
    return Cache(layers=[JointLayer(layers, rows) for layers in columns])


def caches_of(hf_cache: Cache, rows: int) -> tuple[list[list[SlotLayer]], list[int]]:
    """Return two lists with an element for each tree in a pass: the layers of its cache, and its number of rows.

    `hf_cache` is the cache object of the pass, of one tree or from `joint_cache`; `rows` is the number of rows of the
    whole pass. The trees are in the order of their rows.
    """
    layers: list[Any] = hf_cache.layers
    if not isinstance(layers[0], JointLayer):
        return [layers], [rows]
    return [list(column) for column in zip(*(layer.layers for layer in layers), strict=True)], list(layers[0].rows)


def joint_masks(masks: Sequence[Any]) -> Any:
    """Return the masks of several caches, each of shape (1, 1, rows, slots), stacked along the rows, in order.

    Narrower masks get columns of zeros on the right up to the most slots; `tree_attention` cuts them off again. The
    masks may all be dictionaries by layer type instead, which give one dictionary of stacked masks.
    """
    if isinstance(masks[0], Mapping):
        return {kind: _stacked([mask[kind] for mask in masks]) for kind in masks[0]}
    return _stacked(masks)


def _stacked(masks: Sequence[torch.Tensor]) -> torch.Tensor:
    width = max(mask.shape[-1] for mask in masks)
    return torch.cat([torch.nn.functional.pad(mask, (0, width - mask.shape[-1])) for mask in masks], dim=2)
