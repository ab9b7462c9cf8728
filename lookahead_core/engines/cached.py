"""The cached engine: all pending nodes of a tree are one row of tokens over one flat cache, separated by a mask."""

from __future__ import annotations

import functools
import inspect
import itertools
import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from lookahead_core.engines import engine as base
from lookahead_core.engines.attention import ATTENTION
from lookahead_core.engines.cache import FlatCache
from lookahead_core.engines.cpu.output_head import CompiledHead
from lookahead_core.engines.cpu.prepare import Computation
from lookahead_core.engines.cuda.graph_passes import GraphPasses, Outputs
from lookahead_core.engines.engine import MAX_LAST_CHUNK, PREFILL_CHUNK, NodeScores, group_by_tree, select_logits
from lookahead_core.engines.joint_cache import joint_cache, joint_masks
from lookahead_core.engines.masks import MaskPlan, unpack
from lookahead_core.engines.memory_retry import with_smaller_passes
from lookahead_core.engines.model_copy import copy_sharing_parameters
from lookahead_core.engines.pass_costs import ROW_BOUNDS, PassCosts
from lookahead_core.engines.prediction_rows import token_logprobs
from lookahead_core.errors import CacheFull
from lookahead_core.histogram import Histogram
from lookahead_core.settings import MEBIBYTE
from lookahead_core.tree import Node, TokenTree

log = logging.getLogger(__name__)
T = TypeVar("T")
HEAD_ROWS = 64
"""Maximum rows of logits that `next_logprobs` computes at a time. So small a buffer is reused by the allocator; one for
a whole pass would be allocated anew, which takes longer than computing the logits."""
PASS_SIZES = (PREFILL_CHUNK, 64, 8)
"""Maximum number of tokens of a pass: the first, and after each lack of memory the next."""
SEPARATE_TREES = 3
"""Maximum number of trees that get a pass each with CUDA graphs: these take less time than one pass without a graph."""
LEAST_SHARE = 8
"""However often memory runs out, the caches may have the bytes that they were allowed at first, divided by this."""


@dataclass(frozen=True, slots=True)
class PassSegment:
    """The nodes of one tree in a forward pass, which may compute nodes of several trees."""

    tree: TokenTree
    nodes: list[Node]
    """The nodes, each after its ancestors unless these are cached; cached nodes to compute again come last."""
    wanted: list[int]
    """The indices, in `nodes`, of the nodes whose logits are requested; of the others only keys and values are kept."""


class CachedEngine:
    """An `Engine` that keeps the keys and values of nodes in a cache for each tree, so that later passes read them.

    It is for models that `probe.fit` accepts. Where all caches together would exceed `cache_bytes`, hidden nodes are
    pruned and caches of other trees are cleared; their nodes are computed again when they are needed. CacheFull is
    raised if the nodes to compute do not fit even so. Where a pass runs out of memory, the caches of other trees are
    cleared, `cache_bytes` is lowered, and smaller passes are tried; NoRoom is raised if even the smallest fails.
    """

    def __init__(self, hf_model: Any, *, cache_bytes: int, attention: str = ATTENTION) -> None:
        """Prepare a copy of `hf_model` that shares its parameters.

        `cache_bytes` bounds the caches of all trees together. `attention` is a name registered with transformers; only
        with `ATTENTION`, this project's own, several trees share passes.
        """
        self.model_copy = copy_sharing_parameters(hf_model)
        if attention != self.model_copy.config._attn_implementation:
            self.model_copy.set_attn_implementation(attention)
        self.joins = attention == ATTENTION
        """Whether several trees can share a pass: only this project's attention keeps their caches apart."""
        self.plan = MaskPlan.of(self.model_copy.config)
        self.cache_bytes = cache_bytes
        self._least_cache_bytes = cache_bytes // LEAST_SHARE
        self.passes = 0
        self.pass_rows = Histogram(ROW_BOUNDS)
        """The passes so far by their rows: one row for each node that a pass computes."""
        self.pass_costs = PassCosts()
        self.computation = Computation("as transformers computes them", "as transformers computes them")
        self._layers = self.model_copy.config.get_text_config(decoder=True).num_hidden_layers
        self._keeps_logits = "logits_to_keep" in inspect.signature(self.model_copy.forward).parameters
        self.graphs: GraphPasses | None = None
        """Computes the passes that it can by CUDA graphs; see `use_graphs`."""
        self._caches: weakref.WeakSet[FlatCache] = weakref.WeakSet()
        self._lock = threading.RLock()
        self._slot_bytes = 1
        self._uses = 0

    def use_graphs(self, **options: Any) -> None:
        """Compute passes of few tokens by CUDA graphs from now on; `options` are those of `GraphPasses`."""

        def forward(arguments: dict[str, Any]) -> Outputs:
            with _captured_head_input(self.model_copy, True, True) as captured:
                logits = self.model_copy(**arguments).logits
            return logits[0].float(), captured[0][0]

        self.graphs = GraphPasses(forward, self.plan, self.model_copy.dtype, **options)

    @property
    def batch_invariant_rows(self) -> int | None:
        return None if self.computation.is_uniform else self.computation.exact_rows or None

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        with self._lock, torch.inference_mode():
            return base.evaluate(self._score_in_passes(nodes, hidden=False), nodes)

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        with self._lock, torch.inference_mode():
            return NodeScores.joined(list(self._score_in_passes(nodes, hidden=hidden)))

    def next_logprobs(self, nodes: Sequence[Node], token_ids: Sequence[int]) -> list[float]:
        """See `NextTokenEngine.next_logprobs`; a compiled output matrix computes HEAD_ROWS rows of logits at a time."""
        head = self.model_copy.get_output_embeddings()
        if not isinstance(head, CompiledHead):
            return self.score(nodes).next_logprobs(nodes, token_ids)
        wanted, found = dict(zip(nodes, token_ids, strict=True)), dict[Node, float]()
        with self._lock, torch.inference_mode():
            for part in self._score_in_passes(nodes, hidden=True, logits=False):
                assert part.hidden is not None
                for first in range(0, len(part.nodes), HEAD_ROWS):
                    some = part.nodes[first : first + HEAD_ROWS]
                    logits = head(part.hidden[first : first + HEAD_ROWS])
                    values = token_logprobs(logits, [wanted[node] for node in some])
                    found.update(zip(some, values, strict=True))
        return [found[node] for node in nodes]

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        with self._lock:
            return self._uncached(node.tree, [node])

    def prefill(self, nodes: Sequence[Node]) -> None:
        with self._lock, torch.inference_mode():
            for tree, members in group_by_tree(nodes).items():
                self._mark_used([tree])
                for node in members:
                    tree.mark_visible(node)
                for _ in self._in_smaller_passes(functools.partial(self._prefill_steps, tree, members)):
                    pass

    def _prefill_steps(self, tree: TokenTree, nodes: Sequence[Node], most: int) -> Iterator[None]:
        """Generator: prefill nodes of one tree in passes of about `most` tokens; yields None after each pass."""
        # Another tree may have taken the slots of ancestors since the caller asked for `nodes_to_prefill`.
        for segments in _split_into_passes([(tree, self._uncached(tree, nodes))], set(), most, most):
            self._pass(segments)
            yield

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        return base.roll_out(self, nodes, depth, stop)

    def free(self, nodes: Sequence[Node]) -> None:
        with self._lock, torch.inference_mode():
            for tree, members in group_by_tree(nodes).items():
                if tree.cache is not None:
                    cache = self._cache(tree)
                    cache.free(members)
                    if cache.wasteful:
                        cache.compact()

    def compact(self, tree: TokenTree) -> None:
        with self._lock, torch.inference_mode():
            if tree.cache is not None:
                self._cache(tree).compact()

    def cache_usage(self, tree: TokenTree) -> tuple[int, int]:
        cache = tree.cache
        return (len(cache.slots), cache.bytes) if isinstance(cache, FlatCache) else (0, 0)

    def cache_bytes_in_use(self) -> int:
        """Return the bytes of the caches of all trees together; waits for the end of a running pass."""
        with self._lock:
            return sum(cache.bytes for cache in self._caches)

    def measure_slot_bytes(self) -> None:
        """Run one token through the model, so that the engine knows how many bytes a slot takes.

        `cache_bytes` is converted to slots with this number. The first pass of any kind sets it; it is 1 before.
        """
        tree = TokenTree()
        self.prefill([tree.expand(tree.root, 0)])

    def _cache(self, tree: TokenTree) -> FlatCache:
        """Return the cache of a tree, `tree.cache`; it is created there on first use."""
        cache = tree.cache
        if not isinstance(cache, FlatCache):
            cache = tree.cache = FlatCache(self._layers)
            self._caches.add(cache)
        return cache

    def _mark_used(self, trees: Iterable[TokenTree]) -> None:
        """Mark these trees' caches as used now, so that none of them is cleared to make room for another of them.

        Caches that do not exist yet are created.
        """
        self._uses += 1
        for tree in trees:
            self._cache(tree).last_use = self._uses

    def _pending(self, tree: TokenTree, nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes that passes must compute for the logits of `nodes`, which are in `tree`, without its root.

        First come uncached nodes and uncached ancestors, parents first; then those of `nodes` that are cached already:
        their second keys and values lie behind all new slots and are overwritten later. Each node is listed once. All
        of `nodes` are marked as visible in the tree.
        """
        for node in nodes:
            tree.mark_visible(node)
        uncached = dict.fromkeys(self._uncached(tree, nodes))
        return [*uncached, *(node for node in dict.fromkeys(nodes) if node not in uncached)]

    def _uncached(self, tree: TokenTree, nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes outside the cache among `nodes` and their ancestors, sorted by depth, without the root.

        `nodes` must be in `tree`. Nodes of one depth are in the order of `nodes`. Each ancestor is visited once,
        however many of its descendants are in `nodes`.
        """
        slots = self._cache(tree).slots
        found: dict[Node, None] = {}
        for node in nodes:
            current: Node | None = node
            while current is not None and current.depth and current not in slots and current not in found:
                found[current] = None
                current = current.parent
        return sorted(found, key=lambda node: node.depth)

    def _score_in_passes(self, nodes: Sequence[Node], *, hidden: bool, logits: bool = True) -> Iterator[NodeScores]:
        """Generator: make the forward passes that `nodes` need, and yield the scores of each pass that has any of them.

        Ancestors that are not cached are computed too, without scores. With `hidden`, the scores have hidden states;
        without `logits` these only, and no rows of logits. If several trees do not fit together, all are computed
        again, one after the other, so a node may come twice. Raises CacheFull if the nodes of one tree do not fit.
        NoRoom is raised if memory runs out even in the smallest passes.
        """
        groups = group_by_tree(nodes)

        def score(most: int) -> Iterator[NodeScores]:
            separate = self.graphs is not None and len(groups) <= SEPARATE_TREES
            try:
                yield from self._score_groups(groups, most if self.joins and not separate else 0, hidden, logits, most)
            except CacheFull:
                if len(groups) == 1:
                    raise
                # There is no room for all trees at once. One after the other, each may clear the caches of the others.
                for tree, members in groups.items():
                    yield from self._score_groups({tree: members}, 0, hidden, logits, most)

        yield from self._in_smaller_passes(score)

    def _in_smaller_passes(self, compute: Callable[[int], Iterator[T]]) -> Iterator[T]:
        """Generator: yield what `compute` yields for the most tokens of a pass; see `with_smaller_passes`."""
        return with_smaller_passes(compute, PASS_SIZES, self._free_memory)

    def _free_memory(self) -> None:
        """Clear the caches of all trees that the present pass does not need, and lower `cache_bytes` by a half.

        It stays above a share of what was allowed at first, see LEAST_SHARE.
        """
        if self.graphs is not None:
            self.graphs.release()
        for cache in self._caches:
            if cache.last_use < self._uses:
                cache.clear()
        self.cache_bytes = max(self.cache_bytes // 2, self._least_cache_bytes)

    def _score_groups(
        self, groups: dict[TokenTree, list[Node]], joined: int, hidden: bool, logits: bool, most: int
    ) -> Iterator[NodeScores]:
        """Generator: compute the nodes in `groups` and their uncached ancestors, and yield scores pass by pass.

        Scores are those of nodes in `groups`; passes with ancestors only yield nothing. Trees share passes of up to
        `joined` nodes; with 0 each has its own. A pass of one tree has about `most` nodes at most.
        With `hidden`, the scores have hidden states; without `logits`, no logits. Raises CacheFull, see `_make_room`.
        """
        self._mark_used(groups)
        pending = [(tree, self._pending(tree, members)) for tree, members in groups.items()]
        wanted = {node for members in groups.values() for node in members}
        for segments in _split_into_passes(pending, wanted, joined, most):
            rows, vectors = self._pass(segments, hidden, logits)
            nodes = [segment.nodes[index] for segment in segments for index in segment.wanted]
            if nodes:
                yield NodeScores(nodes, rows, vectors)

    def _pass(
        self, segments: list[PassSegment], hidden: bool = False, with_logits: bool = True
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Run one forward pass over the segments, each of another tree, and assign slots to the uncached nodes.

        Returns the logits of the requested nodes (`PassSegment.wanted`, in order, segment by segment) in float32, of
        shape (nodes, vocabulary), and with `hidden` the inputs of the output matrix for them, of shape (nodes, width);
        otherwise None. Without `with_logits`, there are 0 rows of logits. Raises CacheFull before the pass, see
        `_make_room`.
        """
        caches = [self._cache(segment.tree) for segment in segments]
        self._make_room(segments, caches)
        pairs = list(zip(segments, caches, strict=True))
        fresh = [[node for node in segment.nodes if node not in cache.slots] for segment, cache in pairs]
        visible = [_visible_slots(cache, segment.nodes) for segment, cache in pairs]
        nodes = [node for segment in segments for node in segment.nodes]
        starts = itertools.accumulate((len(segment.nodes) for segment in segments), initial=0)
        indices = [start + index for start, segment in zip(starts, segments, strict=False) for index in segment.wanted]
        wanted = torch.tensor(indices, dtype=torch.int64, device=self.model_copy.device)
        replayed = None
        if self.graphs is not None and len(segments) == 1 and with_logits:
            replayed = self.graphs.compute(caches[0], nodes, visible[0])
        vectors: torch.Tensor | None
        if replayed is None:
            logits, vectors = self._forward(segments, caches, visible, wanted, hidden, with_logits)
        else:
            logits, vectors = (output[wanted] for output in replayed)  # copies: the next replay overwrites the outputs
        self.passes += 1
        self.pass_rows.add(len(nodes))
        for (segment, cache), added in zip(pairs, fresh, strict=True):
            cache.add(added)
            segment.tree.work.passes += 1
            segment.tree.work.tokens += len(segment.nodes)
        if self._slot_bytes == 1:
            self._slot_bytes = max(1, caches[0].bytes // caches[0].capacity)
        return logits, vectors if hidden else None

    def _forward(
        self,
        segments: list[PassSegment],
        caches: list[FlatCache],
        visible: list[list[int]],
        wanted: torch.Tensor,
        hidden: bool,
        with_logits: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Call the model on the nodes of the segments, of which `_pass` has made caches and visible slots.

        Returns what `_pass` does; `wanted` are the rows of the requested nodes. Slots are written, but not assigned.
        """
        nodes = [node for segment in segments for node in segment.nodes]
        for cache in caches:
            cache.take_back()
        masks = [
            self._masks(cache, segment.nodes, slots)
            for segment, cache, slots in zip(segments, caches, visible, strict=True)
        ]
        joined = len(segments) > 1
        device = self.model_copy.device
        arguments: dict[str, Any] = {
            "input_ids": torch.tensor([[node.token_id for node in nodes]], device=device),
            "position_ids": torch.tensor([[node.depth - 1 for node in nodes]], device=device),
            "attention_mask": joint_masks(masks) if joined else masks[0],
            "past_key_values": joint_cache(caches, tuple(map(len, visible))) if joined else caches[0].hf_cache,
            "use_cache": True,
        }
        if self._keeps_logits:
            arguments["logits_to_keep"] = wanted
        with _captured_head_input(self.model_copy, hidden, with_logits) as captured:
            logits = self.model_copy(**arguments).logits
        logits = select_logits(logits, wanted, len(nodes))[0] if with_logits else logits[0]
        vectors = select_logits(captured[0], wanted, len(nodes))[0] if captured else None
        return logits.float(), vectors

    def _masks(self, cache: FlatCache, nodes: list[Node], visible: list[int]) -> Any:
        """Return the masks of one tree's nodes in a pass, as `MaskPlan.masks` does; `visible` is `_visible_slots`.

        The columns are the used slots of the cache, and then one for each of `nodes`.
        """
        start, device = cache.used, self.model_copy.device
        table = unpack(visible, start + len(nodes), device)
        distances = None
        if self.plan.slides:
            depths = torch.tensor([node.depth for node in nodes], dtype=torch.int32)
            distances = depths.to(device)[:, None] - torch.cat([cache.depths[:start], depths]).to(device)
        return self.plan.masks(table, self.model_copy.dtype, distances)

    def _make_room(self, segments: list[PassSegment], caches: list[FlatCache]) -> None:
        """Reserve slots for a pass within `cache_bytes`; raise CacheFull if that is impossible.

        `caches[i]` is the cache of `segments[i]`. Large caches are trimmed first, see `FlatCache.trim`. A cache without
        room is compacted if it is wasteful. If it cannot double then, hidden nodes of its tree are pruned, see
        `_prune`. If its nodes do not fit even so, caches that were used before it are cleared, see
        `_clear_idle_caches`. What was done before a CacheFull stays.
        """
        for segment, cache in zip(segments, caches, strict=True):
            self._make_room_in(cache, segment.tree, len(segment.nodes))

    def _make_room_in(self, cache: FlatCache, tree: TokenTree, slots: int) -> None:
        """Reserve slots in one tree's cache for `slots` more nodes, as `_make_room` says; may raise CacheFull."""
        if cache.used + slots > cache.trim_above:
            cache.trim(tree)
        if cache.used + slots <= cache.capacity:
            return
        if cache.wasteful:
            cache.compact()
        if cache.capacity_for(cache.used + slots) > self._slot_limit(cache):
            self._prune(tree, cache, slots)
        if cache.used + slots > self._slot_limit(cache):
            self._clear_idle_caches(cache, cache.used + slots)
        if cache.used + slots > self._slot_limit(cache):
            log.warning("The caches have no room for a text and its branches: LOOKAHEAD_CACHE_MB raises their limit.")
            raise CacheFull(self._cache_full_message(cache.used + slots))
        cache.reserve(cache.used + slots, self._slot_limit(cache))

    def _slot_limit(self, cache: FlatCache) -> int:
        """Return how many slots this cache may have in all, given `cache_bytes` and the bytes that all others hold."""
        others = sum(other.bytes for other in self._caches if other is not cache)
        return max(0, self.cache_bytes - others) // self._slot_bytes

    def _prune(self, tree: TokenTree, cache: FlatCache, slots: int) -> None:
        """Remove hidden nodes from the tree and its cache, least recently visible first, and compact the cache.

        They are removed in groups of `PREFILL_CHUNK` until the cached nodes and `slots` more take at most three
        quarters of `_slot_limit`, or until no prunable nodes remain; see `TokenTree.prune`. Hidden nodes are those that
        the tree's current view does not show.
        """
        while (len(cache.slots) + slots) * 4 > self._slot_limit(cache) * 3:
            pruned = tree.prune(PREFILL_CHUNK)
            if not pruned:
                break
            cache.free(pruned)
        cache.compact()

    def _clear_idle_caches(self, cache: FlatCache, slots: int) -> None:
        """Clear caches used before this one, least recently used first, until this one may have `slots` slots in all.

        Clears none if it may have them already. It may still not have them when all of those caches are cleared.
        """
        for other in sorted(self._caches, key=lambda other: other.last_use):
            if other.last_use >= cache.last_use or slots <= self._slot_limit(cache):
                return
            other.clear()

    def _cache_full_message(self, slots: int) -> str:
        needed, allowed = slots * self._slot_bytes // MEBIBYTE + 1, self.cache_bytes // MEBIBYTE
        return (
            f"The cache is full: the text and its branches need {needed} MiB, and {allowed} MiB are allowed. "
            "To go on, shorten the text, or ask for fewer or shorter branches."
        )


def _visible_slots(cache: FlatCache, nodes: list[Node]) -> list[int]:
    """Return, for each of `nodes`, an integer whose bits are the slots that it attends to: its own and its ancestors'.

    These must be cached or come earlier in `nodes`, which have the slots that follow the used ones, in order.
    """
    slots = {node: cache.used + index for index, node in enumerate(nodes)}
    visible: dict[Node, int] = {}
    for node, slot in slots.items():
        above = visible.get(node.parent) if node.parent in slots and node.parent not in cache.slots else None
        visible[node] = (cache.visible_below(node.parent) if above is None else above) | 1 << slot
    return list(visible.values())


@contextmanager
def _captured_head_input(model: Any, wanted: bool, with_logits: bool) -> Iterator[list[torch.Tensor]]:
    """Context manager that yields a list, to which each pass of `model` in its body appends the output matrix's input.

    That is a tensor of shape (1, positions, width), for the positions whose logits the pass computes. The list stays
    empty unless `wanted`. Without `with_logits`, which needs `wanted`, the output matrix computes no positions.
    """
    captured: list[torch.Tensor] = []
    if not wanted:
        yield captured
        return

    def capture(_: Any, arguments: tuple[torch.Tensor]) -> tuple[torch.Tensor] | None:
        captured.append(arguments[0])
        return None if with_logits else (arguments[0][:, :0],)

    hook = model.get_output_embeddings().register_forward_pre_hook(capture)
    try:
        yield captured
    finally:
        hook.remove()


def _split_into_passes(
    pending: Iterable[tuple[TokenTree, list[Node]]], wanted: set[Node], joined: int, most: int
) -> Iterator[list[PassSegment]]:
    """Generator: divide the nodes of each tree in `pending`, in order, into chunks; yield each pass's segments.

    Chunks have `most` nodes, the last of a tree up to MAX_LAST_CHUNK if `most` is PREFILL_CHUNK. Successive chunks
    share a pass if they have at most `joined` nodes together. The segments request the logits of those nodes that are
    in `wanted`.
    """
    segments: list[PassSegment] = []
    size, last = 0, MAX_LAST_CHUNK if most == PREFILL_CHUNK else most
    for tree, nodes in pending:
        while nodes:
            chunk = nodes if len(nodes) <= last else nodes[:most]
            nodes = nodes[len(chunk) :]
            if segments and size + len(chunk) > joined:
                yield segments
                segments, size = [], 0
            segments.append(PassSegment(tree, chunk, [index for index, node in enumerate(chunk) if node in wanted]))
            size += len(chunk)
    if segments:
        yield segments
