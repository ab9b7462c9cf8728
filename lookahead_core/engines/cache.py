"""The flat cache: one slot for each node's keys and values, written once, shared by every branch below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from lookahead_core.tree import Node


class SlotLayer(CacheLayerMixin):
    """Keys and values of one layer, in slots allocated ahead; a pass writes where the cache tells it to."""

    is_sliding = False

    def __init__(self, cache: FlatCache) -> None:
        super().__init__()
        self.cache = cache

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys = _slots_like(key_states, self.cache.capacity)
        self.values = _slots_like(value_states, self.cache.capacity)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.cache.used
        end = start + key_states.shape[-2]
        self.keys[:, :, start:end] = key_states
        self.values[:, :, start:end] = value_states
        return self.keys[:, :, :end], self.values[:, :, :end]

    def resize(self, capacity: int) -> None:
        """Move to a room of another size; what is in use comes along."""
        if self.is_initialized:
            self.keys = _moved(self.keys, capacity, self.cache.used)
            self.values = _moved(self.values, capacity, self.cache.used)

    def keep(self, slots: torch.Tensor) -> None:
        """Close the gaps: the slots given, in their order, become the first ones."""
        if self.is_initialized:
            for kept in (self.keys, self.values):
                kept[:, :, : len(slots)] = kept.index_select(2, slots.to(kept.device))

    def drop(self) -> None:
        """Give the room back."""
        self.keys = self.values = None
        self.is_initialized = False

    @property
    def bytes(self) -> int:
        if not self.is_initialized:
            return 0
        return sum(kept.numel() * kept.element_size() for kept in (self.keys, self.values))

    def get_seq_length(self) -> int:
        return self.cache.used

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.cache.used + query_length, 0

    def get_max_length(self) -> int:
        return -1

    def get_max_cache_shape(self) -> int:
        """Asked for by transformers before 5.23."""
        return -1


def _slots_like(states: torch.Tensor, capacity: int) -> torch.Tensor:
    return states.new_empty((*states.shape[:2], capacity, states.shape[3]))


def _moved(kept: torch.Tensor, capacity: int, used: int) -> torch.Tensor:
    larger = _slots_like(kept, capacity)
    larger[:, :, :used] = kept[:, :, :used]
    return larger


class FlatCache:
    """Which node holds which slot, and who may see whom. Slots are given out in order; a freed one is a hole."""

    def __init__(self, layers: int) -> None:
        self.capacity = 0
        self.nodes: list[Node | None] = []
        self.slots: dict[Node, int] = {}
        self.sight: list[int] = []
        """For each slot, the slots that its node sees, itself included, as the bits of a number."""
        self.depths = torch.zeros(0, dtype=torch.int32)
        self.layers = [SlotLayer(self) for _ in range(layers)]
        self.states = Cache(layers=self.layers)
        self.last_use = 0

    @property
    def used(self) -> int:
        """How many slots have been given out, holes among them."""
        return len(self.nodes)

    @property
    def holes(self) -> int:
        return len(self.nodes) - len(self.slots)

    @property
    def wasteful(self) -> bool:
        """Whether most of the room is holes, or empty."""
        return len(self.slots) * 2 < self.capacity

    @property
    def bytes(self) -> int:
        return sum(layer.bytes for layer in self.layers)

    def sight_of(self, parent: Node | None) -> int:
        """What a child of `parent` sees before itself."""
        return self.sight[self.slots[parent]] if parent is not None and parent.depth else 0

    def reserve(self, slots: int, limit: int) -> None:
        """Have room for that many slots; up to the limit the room doubles, so that it is seldom moved."""
        if slots > self.capacity:
            self._resize(min(self.room_after(slots), max(slots, limit)))

    def room_after(self, slots: int) -> int:
        """The capacity that `reserve` leaves where there is no limit."""
        return self.capacity if slots <= self.capacity else max(slots, 2 * self.capacity)

    def _resize(self, capacity: int) -> None:
        with self._whole_or_nothing():
            for layer in self.layers:
                layer.resize(capacity)
        depths = torch.zeros(capacity, dtype=torch.int32)
        depths[: self.used] = self.depths[: self.used]
        self.depths, self.capacity = depths, capacity

    def add(self, nodes: Sequence[Node]) -> None:
        """Give the next slots to these nodes, parents first; their keys and values have just been written there."""
        self.depths[self.used : self.used + len(nodes)] = torch.tensor([node.depth for node in nodes])
        for node in nodes:
            slot = len(self.nodes)
            self.sight.append(self.sight_of(node.parent) | 1 << slot)
            self.nodes.append(node)
            self.slots[node] = slot

    def free(self, nodes: Iterable[Node]) -> None:
        """Take the slots of forgotten nodes back."""
        for node in nodes:
            if (slot := self.slots.pop(node, None)) is not None:
                self.nodes[slot] = None
        while self.nodes and self.nodes[-1] is None:
            self.nodes.pop()
            self.sight.pop()

    def compact(self) -> None:
        """Close all gaps, and give back the room that this leaves empty if it is most of it."""
        if self.holes:
            kept = [node for node in self.nodes if node is not None]
            slots = torch.tensor([self.slots[node] for node in kept], dtype=torch.int64)
            with self._whole_or_nothing():
                for layer in self.layers:
                    layer.keep(slots)
                self.nodes, self.sight, self.slots = [], [], {}
                self.add(kept)
        if self.used * 2 < self.capacity:
            self._resize(self.used)

    def clear(self) -> None:
        """Let everything go; what is needed again is read again."""
        self.nodes, self.sight, self.slots = [], [], {}
        self.depths, self.capacity = torch.zeros(0, dtype=torch.int32), 0
        for layer in self.layers:
            layer.drop()

    @contextmanager
    def _whole_or_nothing(self) -> Iterator[None]:
        """Layers are moved one by one: whatever stops that half way must not leave them at odds with each other."""
        try:
            yield
        except BaseException:
            self.clear()
            raise

    def check(self) -> None:
        """Raise AssertionError if anything that must always hold does not."""
        assert len(self.sight) == self.used <= self.capacity
        assert all(self.nodes[slot] is node for node, slot in self.slots.items())
        assert len(self.slots) == sum(node is not None for node in self.nodes)
        for node, slot in self.slots.items():
            above = node.tree.path(node)[:-1]
            assert all(ancestor in self.slots for ancestor in above), "a node in the cache has its whole path there"
            assert self.sight[slot] == sum(1 << self.slots[seen] for seen in [*above, node])
            assert int(self.depths[slot]) == node.depth
        for layer in self.layers:
            assert not layer.is_initialized or layer.keys.shape[2] == layer.values.shape[2] == self.capacity
