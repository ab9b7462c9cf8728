"""The flat KV cache of one tree: one slot per node, written once and shared by all branches below the node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from lookahead_core.tree import Node, TokenTree

TRIM_ABOVE = 512
"""Number of used slots above which those of nodes outside of the two latest views are freed. Attention compares each
row of a pass with all used slots: five rows of the default model took 16 ms with 480 slots and 36 ms with 3,300."""


class OtherMemory(Protocol):
    """Memory outside of a cache that has the newest keys and values of its slots, see `FlatCache.moved_to`."""

    def give_back(self) -> None:
        """Copy the slots that are only there to the cache, which is then no longer there."""
        ...


class UnlimitedLayer(CacheLayerMixin):
    """A cache layer of transformers without sliding windows, and without a limit on its number of tokens."""

    is_sliding = False

    def __init__(self) -> None:
        CacheLayerMixin.__init__(self)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the number of tokens that a pass of `query_length` tokens attends to, and that of the first one."""
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        return -1

    def get_max_cache_shape(self) -> int:
        """Return -1, for no limit; the name of `get_max_length` in transformers before 5.23."""
        return -1


class SlotLayer(UnlimitedLayer):
    """The keys and values of one layer of the model, as a cache layer of transformers: one slot for each cached node.

    Both have the shape (1, heads, capacity, width). The model's forward calls `update`; its first call allocates them.
    The `FlatCache` that creates the layer decides which node has which slot.
    """

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, cache: FlatCache) -> None:
        super().__init__()
        self.cache = cache
        self.bytes = 0
        """Allocated bytes of keys and values."""

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Allocate keys and values for the cache's capacity, with arbitrary contents.

        Their heads, width, dtype and device are those of the given states, which are not written.
        """
        self.keys = _empty_slots_like(key_states, self.cache.capacity)
        self.values = _empty_slots_like(value_states, self.cache.capacity)
        self.is_initialized = True
        self._count_bytes()

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the keys and values of a pass behind the used slots; return those of the used slots and of the pass.

        All have the shape (1, heads, slots, width); the results are views. The written slots are not in use until
        `FlatCache.add` assigns them; an `update` before that overwrites them. `FlatCache.reserve` must have made enough
        room. Further arguments are ignored.
        """
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.cache.used
        end = start + key_states.shape[-2]
        self.keys[:, :, start:end] = key_states
        self.values[:, :, start:end] = value_states
        return self.keys[:, :, :end], self.values[:, :, :end]

    def resize(self, capacity: int) -> None:
        """Reallocate keys and values for a capacity in slots, and copy the used ones; nothing if none are allocated.

        The capacity must not be less than the used slots.
        """
        if self.is_initialized:
            self.keys = _resized(self.keys, capacity, self.cache.used)
            self.values = _resized(self.values, capacity, self.cache.used)
            self._count_bytes()

    def gather(self, slots: torch.Tensor) -> None:
        """Copy the keys and values of these slots (a 1-D tensor of indices) to the first slots, in this order.

        Slots may be source and target at once. Does nothing if no memory is allocated.
        """
        if self.is_initialized:
            for states in (self.keys, self.values):
                states[:, :, : len(slots)] = states.index_select(2, slots.to(states.device))

    def release(self) -> None:
        """Free the memory of keys and values; the next `update` allocates them again."""
        if self.is_initialized:
            self.keys = self.values = torch.empty(0)
            self.is_initialized = False
            self._count_bytes()

    def _count_bytes(self) -> None:
        """Update `bytes`, and the sum over all layers in `FlatCache.bytes`, after an allocation has changed."""
        counted = sum(states.numel() * states.element_size() for states in (self.keys, self.values))
        self.cache.bytes += counted - self.bytes
        self.bytes = counted

    def get_seq_length(self) -> int:
        return self.cache.used


def _empty_slots_like(states: torch.Tensor, capacity: int) -> torch.Tensor:
    return states.new_empty((*states.shape[:2], capacity, states.shape[3]))


def _resized(states: torch.Tensor, capacity: int, used: int) -> torch.Tensor:
    resized = _empty_slots_like(states, capacity)
    resized[:, :, :used] = states[:, :, :used]
    return resized


class FlatCache:
    """The KV cache of one tree: its layers, which node has which slot, and which slots each node attends to.

    The cached engine creates it when it first uses a tree, and keeps it in `tree.cache`. Slots are assigned in order.
    A freed slot becomes a hole until `compact` closes it; freed slots at the end are unused again.
    """

    def __init__(self, layers: int) -> None:
        self.capacity = 0
        """The number of allocated slots."""
        self.nodes: list[Node | None] = []
        """The node of each slot; None for a hole."""
        self.slots: dict[Node, int] = {}
        self.visible: list[int] = []
        """For each slot an integer whose bits are the slots that its node attends to, its own included."""
        self.depths = torch.zeros(0, dtype=torch.int32)
        """The depth in the tree of each slot's node, of shape (capacity,); 1 for a child of the root."""
        self.bytes = 0
        """Allocated bytes of keys and values, over all layers; counted when memory is allocated, since engines read it
        for all caches."""
        self.layers = [SlotLayer(self) for _ in range(layers)]
        self.hf_cache = Cache(layers=list(self.layers))
        """The cache object that the model's forward takes."""
        self.trim_above = TRIM_ABOVE
        """The engine calls `trim` before a pass after which more slots than these would be used."""
        self.last_use = 0
        """The number of the engine's latest use of this cache: the lowest number was used longest ago."""
        self.moved_to: OtherMemory | None = None
        """Where the newest keys and values are, if they are not in `layers`; see `take_back`."""

    @property
    def used(self) -> int:
        """The number of slots up to the last one that a node has, holes included."""
        return len(self.nodes)

    @property
    def holes(self) -> int:
        """The number of freed slots before the last slot in use."""
        return len(self.nodes) - len(self.slots)

    @property
    def wasteful(self) -> bool:
        """Whether more than half of the allocated slots hold no node, so that `compact` would free memory."""
        return len(self.slots) * 2 < self.capacity

    def visible_below(self, parent: Node | None) -> int:
        """Return an integer whose bits are the slots of `parent` and its ancestors; 0 for the root or None.

        Raises KeyError for any other node without a slot.
        """
        return self.visible[self.slots[parent]] if parent is not None and parent.depth else 0

    def reserve(self, slots: int, limit: int) -> None:
        """Raise the capacity to at least `slots`, used ones included; do nothing if it is that already.

        So that reallocations are rare, it at least doubles, unless that exceeds `limit`, also in slots: then it is
        `limit`, or `slots` if more. If the reallocation fails, the cache is cleared and the error is raised.
        """
        if slots > self.capacity:
            self._resize(min(self.capacity_for(slots), max(slots, limit)))

    def capacity_for(self, slots: int) -> int:
        """Return the capacity, in slots, after a `reserve` of this many without a limit; changes nothing."""
        return self.capacity if slots <= self.capacity else max(slots, 2 * self.capacity)

    def _resize(self, capacity: int) -> None:
        """Reallocate all layers for a capacity in slots, which must hold the used ones; these are copied.

        If that fails, the cache is cleared and the error is raised.
        """
        with self._cleared_on_error():
            for layer in self.layers:
                layer.resize(capacity)
        depths = torch.zeros(capacity, dtype=torch.int32)
        depths[: self.used] = self.depths[: self.used]
        self.depths, self.capacity = depths, capacity

    def take_back(self) -> None:
        """Bring `layers` up to date if keys and values are in other memory: to be called before `layers` are used."""
        if self.moved_to is not None:
            self.moved_to.give_back()

    def add(self, nodes: Sequence[Node]) -> None:
        """Assign the next slots to nodes, in this order, after a pass has written their keys and values there.

        Each node's parent must be the root, have a slot, or come earlier in `nodes`; otherwise KeyError is raised.
        No node may be the root or have a slot already, which is not checked. The capacity must hold the nodes.
        """
        self.depths[self.used : self.used + len(nodes)] = torch.tensor([node.depth for node in nodes])
        for node in nodes:
            slot = len(self.nodes)
            self.visible.append(self.visible_below(node.parent) | 1 << slot)
            self.nodes.append(node)
            self.slots[node] = slot

    def free(self, nodes: Iterable[Node]) -> None:
        """Free the slots of nodes, which become holes, or unused at the end; nodes without a slot are ignored.

        The tree is not changed. Descendants that have slots must be freed in the same call, which is not checked.
        """
        for node in nodes:
            if (slot := self.slots.pop(node, None)) is not None:
                self.nodes[slot] = None
        while self.nodes and self.nodes[-1] is None:
            self.nodes.pop()
            self.visible.pop()

    def trim(self, tree: TokenTree) -> None:
        """Free the slots of nodes that are neither in the current view of `tree` nor in the one before, and compact.

        `tree` is the tree of this cache. The trunk and the paths to growers' frontiers keep their slots. All nodes stay
        in the tree, with their predictions. `trim_above` becomes twice the number of slots that are left, at least
        TRIM_ABOVE, so that slots are rarely copied.
        """
        kept = tree.protected()
        self.free([node for node in self.slots if node.last_view < tree.view - 1 and node not in kept])
        self.compact()
        self.trim_above = max(TRIM_ABOVE, 2 * self.used)

    def compact(self) -> None:
        """Move the nodes, in the order of their slots, to the first slots, so that no holes remain.

        Then, if less than half of the capacity is used, reduce it to the used slots.
        If copying fails, the cache is cleared and the error is raised.
        """
        if self.holes:
            self.take_back()
            kept = [node for node in self.nodes if node is not None]
            slots = torch.tensor([self.slots[node] for node in kept], dtype=torch.int64)
            with self._cleared_on_error():
                for layer in self.layers:
                    layer.gather(slots)
                self.nodes, self.visible, self.slots = [], [], {}
                self.add(kept)
        if self.used * 2 < self.capacity:
            self._resize(self.used)

    def clear(self) -> None:
        """Free all slots and all memory; the tree keeps its nodes, and passes that need them compute them again."""
        self.nodes, self.visible, self.slots = [], [], {}
        self.depths, self.capacity, self.trim_above = torch.zeros(0, dtype=torch.int32), 0, TRIM_ABOVE
        for layer in self.layers:
            layer.release()

    @contextmanager
    def _cleared_on_error(self) -> Iterator[None]:
        """Context manager that clears the cache if its body raises, and lets the error pass.

        Layers that were changed before the error would contradict the others.
        """
        try:
            yield
        except BaseException:
            self.clear()
            raise

    def check(self) -> None:
        """Raise AssertionError if an invariant is violated; for tests.

        Slots, masks, depths and layers must agree, and the ancestors of each cached node must be cached.
        """
        assert len(self.visible) == self.used <= self.capacity
        assert all(self.nodes[slot] is node for node, slot in self.slots.items())
        assert len(self.slots) == sum(node is not None for node in self.nodes)
        for node, slot in self.slots.items():
            ancestors = node.tree.path(node)[:-1]
            assert all(ancestor in self.slots for ancestor in ancestors), "a cached node's whole path is cached"
            assert self.visible[slot] == sum(1 << self.slots[seen] for seen in [*ancestors, node])
            assert int(self.depths[slot]) == node.depth
        for layer in self.layers:
            assert not layer.is_initialized or layer.keys.shape[2] == layer.values.shape[2] == self.capacity
            assert layer.bytes == (layer.keys.nbytes + layer.values.nbytes if layer.is_initialized else 0)
        assert self.bytes == sum(layer.bytes for layer in self.layers)
