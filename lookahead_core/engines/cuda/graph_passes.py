"""Forward passes of few tokens on an NVIDIA GPU, each size recorded once as a CUDA graph and replayed from then on.

Python launches the thousand kernels of a pass one by one, which takes several times as long as the GPU needs for them;
a recorded graph is launched as a whole. A graph reads and writes the same memory each time. So the keys and values of
one tree at a time, the latest that had such a pass, are in slots of fixed memory, `StaticSlots`.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache

from lookahead_core.engines.cache import FlatCache, UnlimitedLayer
from lookahead_core.engines.masks import MaskPlan, unpack
from lookahead_core.tree import Node

log = logging.getLogger(__name__)

ROWS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)
"""Numbers of rows of the recorded passes; a pass of another number has unused rows up to the next one."""
WIDTHS = (512, 1024, 2048, 4096)
"""Numbers of slots of the recorded passes; a text that needs more than the last is computed without graphs."""
RECORD_AT = 2
"""Which pass of a size records the graph: not the first, since recording takes several times as long as a pass."""

Outputs = tuple[torch.Tensor, torch.Tensor]
"""The logits of a pass in float32, of shape (rows, vocabulary), and the inputs of the output matrix, (rows, width)."""
Forward = Callable[[dict[str, Any]], Outputs]
"""A function that calls the model with these arguments, and returns the outputs for all rows."""


class StaticLayer(UnlimitedLayer):
    """The keys and values of one layer in the slots of a `StaticSlots`, as a cache layer of transformers."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, slots: StaticSlots, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Allocate memory like that of `keys` and `values`, of shape (1, heads, any number of slots, width)."""
        super().__init__()
        self.slots = slots
        # Zeros: masked slots are multiplied by 0, and must be finite.
        self.keys, self.values = (
            states.new_zeros((*states.shape[:2], slots.capacity, states.shape[3])) for states in (keys, values)
        )
        self.is_initialized = True

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Do nothing: the memory is allocated from the beginning."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the keys and values of a pass to the slots that it has been given; return those of all its slots.

        The results are views of shape (1, heads, `StaticSlots.width`, width). Further arguments are ignored.
        """
        assert self.slots.targets is not None
        self.keys.index_copy_(2, self.slots.targets, key_states)
        self.values.index_copy_(2, self.slots.targets, value_states)
        return self.keys[:, :, : self.slots.width], self.values[:, :, : self.slots.width]

    def get_seq_length(self) -> int:
        return self.slots.width

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.slots.width, 0


class StaticSlots:
    """Fixed memory for the keys and values of one tree at a time, copied from and to its `FlatCache`.

    While a cache is here (`FlatCache.moved_to`), slots that were added since are only here; `give_back` copies them to
    the cache. The slots have the same numbers in both.
    """

    def __init__(self, like: FlatCache, capacity: int) -> None:
        """Allocate `capacity` slots in each layer.

        Heads, width, dtype and device are those of the cache `like`, whose own memory must be allocated.
        """
        self.capacity = capacity
        self.width = capacity
        """The slots that the pass being recorded reads: so many from the first one on."""
        self.targets: torch.Tensor | None = None
        """The slots that this pass writes: a tensor of their numbers, one for each row."""
        self.layers = [StaticLayer(self, layer.keys, layer.values) for layer in like.layers]
        self.hf_cache = Cache(layers=list(self.layers))
        self._cache: weakref.ref[FlatCache] | None = None
        self._copied = 0
        """The cache's own memory is up to date in slots below this number."""

    def move_in(self, cache: FlatCache) -> None:
        """Make this the place of the keys and values of `cache`; nothing if it is already."""
        if cache.moved_to is not self:
            self.give_back()
            self._copy(cache, self, 0, cache.used)
            self._copied = cache.used
            self._cache, cache.moved_to = weakref.ref(cache), self
        # Slots that were freed since are written anew.
        self._copied = min(self._copied, cache.used)

    @torch.inference_mode()
    def give_back(self) -> None:
        """Copy the slots that are only here to their cache, which is then no longer here; nothing without a cache.

        All slots become 0. They might hold values that are not finite, and these would spoil passes that mask them.
        """
        cache = None if self._cache is None else self._cache()
        if cache is not None:
            self._copy(self, cache, self._copied, cache.used)
            cache.moved_to = None
        if self._cache is not None:
            for layer in self.layers:
                layer.keys.zero_()
                layer.values.zero_()
        self._cache = None

    @staticmethod
    def _copy(source: FlatCache | StaticSlots, target: FlatCache | StaticSlots, first: int, end: int) -> None:
        """Copy keys and values of the slots from `first` to `end`, which is excluded, in all layers."""
        if first >= end:
            return
        for ours, theirs in zip(source.layers, target.layers, strict=True):
            for name in ("keys", "values"):
                getattr(theirs, name)[:, :, first:end] = getattr(ours, name)[:, :, first:end]


class PassInputs:
    """The tensors that a recorded pass reads."""

    def __init__(self, rows: int, width: int, device: torch.device) -> None:
        self.numbers = torch.zeros((3, rows), dtype=torch.int64, device=device)
        """For each row its token id, its position in the text, and its slot."""
        self.visible = torch.zeros((rows, width), dtype=torch.bool, device=device)
        """Which slots each row attends to."""
        self.depths = torch.zeros(width, dtype=torch.int32, device=device)
        """The depth of each slot's node in the tree; only filled in for models with sliding windows."""

    def fill(self, cache: FlatCache, nodes: Sequence[Node], visible: Sequence[int], slides: bool) -> None:
        """Set the inputs for these nodes, whose slots follow the used ones of `cache`.

        `visible` has, for each node, an integer whose bits are the slots that it attends to. Unused rows repeat the
        last node: what they write to slots that all others mask is then as finite as its own keys and values.
        """
        start, rows = cache.used, self.numbers.shape[1]
        repeated = [*nodes, *[nodes[-1]] * (rows - len(nodes))]
        numbers = [
            [node.token_id for node in repeated],
            [node.depth - 1 for node in repeated],
            list(range(start, start + rows)),
        ]
        self.numbers.copy_(torch.tensor(numbers))
        bits = [*visible, *[visible[-1]] * (rows - len(nodes))]
        self.visible.copy_(unpack(bits, self.visible.shape[1], torch.device("cpu")))
        if slides:
            own = torch.tensor([node.depth for node in nodes], dtype=torch.int32)
            self.depths[: start + len(nodes)] = torch.cat([cache.depths[:start], own]).to(self.depths.device)

    def masks(self, plan: MaskPlan, dtype: torch.dtype) -> torch.Tensor | Mapping[str, torch.Tensor]:
        """Return the attention masks of the pass, see `MaskPlan.masks`; computed on the device."""
        distances = (self.numbers[1] + 1)[:, None] - self.depths if plan.slides else None
        return plan.masks(self.visible, dtype, distances)


@dataclass(frozen=True)
class Recording:
    """A recorded pass."""

    inputs: PassInputs
    replay: Callable[[], None]
    """Runs the pass on `inputs`, and writes the outputs."""
    outputs: Outputs
    """The tensors that hold the outputs of the latest replay; the next one overwrites them."""


def record_graph(run: Callable[[], Outputs], pool: Any) -> tuple[Callable[[], None], Outputs]:
    """Run a computation on the GPU once, and record it as a CUDA graph; return a function that replays it.

    Also returns the tensors that each replay overwrites. `pool` is a handle of memory that recorded graphs share.
    """
    stream, current = torch.cuda.Stream(), torch.cuda.current_stream()
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        run()
    current.wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    # Other threads go on using the GPU meanwhile, on their own streams.
    with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
        outputs = run()
    return graph.replay, outputs


class GraphPasses:
    """Computes the passes of a model that fit a recorded size, by CUDA graphs.

    A size that cannot be recorded ends that: `compute` then returns None for all passes.
    """

    def __init__(
        self,
        forward: Forward,
        plan: MaskPlan,
        dtype: torch.dtype,
        *,
        record: Callable[[Callable[[], Outputs], Any], tuple[Callable[[], None], Outputs]] = record_graph,
        record_at: int = RECORD_AT,
    ) -> None:
        """`forward` calls the model, whose masks are of `plan` and `dtype`."""
        self._forward, self._plan, self._dtype = forward, plan, dtype
        self._record, self._record_at = record, record_at
        self._slots: StaticSlots | None = None
        self._recordings: dict[tuple[int, int], Recording] = {}
        self._uses: dict[tuple[int, int], int] = {}
        self._pool: Any = None
        self.replays = 0
        """Passes that were computed by a recorded graph."""
        self.failure = ""
        """The error that ended the use of graphs; "" if there was none."""

    def compute(self, cache: FlatCache, nodes: Sequence[Node], visible: Sequence[int]) -> Outputs | None:
        """Return the outputs of a pass over nodes of one tree; None if it has to be computed otherwise.

        `visible` has, for each node, an integer whose bits are the slots that it attends to; the nodes' own slots
        follow the used ones of `cache`, and are written, but not assigned: that is for `FlatCache.add`. None for a pass
        without cached tokens before it, for one of too many rows or slots, and for the first uses of a size. The
        outputs are overwritten by the next pass.
        """
        size = self._size(cache, len(nodes))
        if size is None or not self._is_due(size):
            return None
        try:
            slots = self._slots_for(cache, size[1])
            slots.move_in(cache)
            recording = self._recordings.get(size)
            if recording is None:
                recording = self._recordings[size] = self._recorded(slots, size, cache, nodes, visible)
            else:
                recording.inputs.fill(cache, nodes, visible, self._plan.slides)
            recording.replay()
        except Exception as error:
            log.warning("CUDA graphs are not used any more.", exc_info=True)
            self.failure = f"{type(error).__name__}: {error}"
            self.release()
            return None
        self.replays += 1
        logits, hidden = recording.outputs
        return logits[: len(nodes)], hidden[: len(nodes)]

    def release(self) -> None:
        """Give the slots back to their cache, and free all memory; sizes are recorded again when they are needed."""
        if self._slots is not None:
            self._slots.give_back()
        self._slots, self._pool = None, None
        self._recordings.clear()

    def _size(self, cache: FlatCache, nodes: int) -> tuple[int, int] | None:
        """Return the rows and slots of the smallest recorded size that a pass fits; None if there is none."""
        if self.failure or not cache.layers[0].is_initialized:
            return None
        rows = next((rows for rows in ROWS if rows >= nodes), None)
        width = None if rows is None else next((width for width in WIDTHS if width >= cache.used + rows), None)
        return None if rows is None or width is None else (rows, width)

    def _is_due(self, size: tuple[int, int]) -> bool:
        """Count a pass of this size, and return whether it is to be computed by a graph: from the `record_at`-th on."""
        self._uses[size] = self._uses.get(size, 0) + 1
        return self._uses[size] >= self._record_at

    def _slots_for(self, cache: FlatCache, width: int) -> StaticSlots:
        """Return slots of at least this width; larger ones are allocated if needed, and all graphs recorded again."""
        if self._slots is None or self._slots.capacity < width:
            self.release()
            self._slots = StaticSlots(cache, width)
        return self._slots

    def _recorded(
        self, slots: StaticSlots, size: tuple[int, int], cache: FlatCache, nodes: Sequence[Node], visible: Sequence[int]
    ) -> Recording:
        """Record a pass of this size with these nodes as its inputs; recording runs it, and so writes their slots."""
        inputs = PassInputs(*size, slots.layers[0].keys.device)
        inputs.fill(cache, nodes, visible, self._plan.slides)

        def run() -> Outputs:
            slots.width, slots.targets = size[1], inputs.numbers[2]
            return self._forward(
                {
                    "input_ids": inputs.numbers[0:1],
                    "position_ids": inputs.numbers[1:2],
                    "attention_mask": inputs.masks(self._plan, self._dtype),
                    "past_key_values": slots.hf_cache,
                    "use_cache": True,
                }
            )

        if self._pool is None and torch.cuda.is_available():
            self._pool = torch.cuda.graph_pool_handle()
        return Recording(inputs, *self._record(run, self._pool))
