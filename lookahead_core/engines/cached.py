"""The cached engine: all pending nodes of a tree in one row of tokens, over one flat cache, kept apart by a mask."""

from __future__ import annotations

import inspect
import itertools
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from lookahead_core.engines import engine as base
from lookahead_core.engines import small_copy as twins
from lookahead_core.engines.cache import FlatCache
from lookahead_core.engines.cpu.prepare import Computation
from lookahead_core.engines.engine import MAX_LAST_CHUNK, PREFILL_CHUNK, NodeScores, group_by_tree, select_logits
from lookahead_core.engines.joint_cache import joint_masks, joint_states
from lookahead_core.engines.masks import MaskPlan, unpack
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.errors import CacheFull
from lookahead_core.settings import MEBIBYTE
from lookahead_core.tree import Node, TokenTree


@dataclass(frozen=True, slots=True)
class PassSegment:
    """The nodes of one tree in a pass, and which of them are asked for."""

    tree: TokenTree
    nodes: list[Node]
    asked: list[int]


class CachedEngine:
    """Predictions with every node's keys and values computed once."""

    def __init__(self, hf_model: Any, *, cache_bytes: int, attention: str = twins.ATTENTION) -> None:
        self.twin = twins.twin_of(hf_model)
        if attention != self.twin.config._attn_implementation:
            self.twin.set_attn_implementation(attention)
        self.joins = attention == twins.ATTENTION
        """Whether several trees can share a pass: only our own attention keeps their caches apart."""
        self.plan = MaskPlan.of(self.twin.config)
        self.cache_bytes = cache_bytes
        self.passes = 0
        self.pass_costs = PassCosts()
        self.computation = Computation("as transformers computes them", "as transformers computes them")
        self._layers = self.twin.config.get_text_config(decoder=True).num_hidden_layers
        self._keeps_logits = "logits_to_keep" in inspect.signature(self.twin.forward).parameters
        self._caches: weakref.WeakSet[FlatCache] = weakref.WeakSet()
        self._lock = threading.RLock()
        self._slot_bytes = 1
        self._uses = 0

    @property
    def batch_invariant_rows(self) -> int | None:
        return None if self.twin.dtype is torch.float32 else self.computation.exact_rows or None

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        with self._lock, torch.inference_mode():
            return base.evaluate(self._scored(nodes, hidden=False), nodes)

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        with self._lock, torch.inference_mode():
            return NodeScores.joined(list(self._scored(nodes, hidden=hidden)))

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        with self._lock:
            slots = self._cache(node.tree).slots
            missing: list[Node] = []
            current: Node | None = node
            while current is not None and current.depth and current not in slots:
                missing.append(current)
                current = current.parent
            missing.reverse()
            return missing

    def prefill(self, nodes: Sequence[Node]) -> None:
        with self._lock, torch.inference_mode():
            for tree, members in group_by_tree(nodes).items():
                self._claim([tree])
                # Meanwhile another document may have needed the room: what is missing above comes along.
                missing = {node: None for member in members for node in self.nodes_to_prefill(member)}
                due = [(tree, sorted(missing, key=lambda node: node.depth))]
                for segments in _passes(due, set(), PREFILL_CHUNK):
                    self._pass(segments)

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

    def weigh_a_slot(self) -> None:
        """Learn from one token what a slot takes, so that the bound on bytes holds from the first text on."""
        tree = TokenTree()
        self.prefill([tree.expand(tree.root, 0)])

    def _cache(self, tree: TokenTree) -> FlatCache:
        if tree.cache is None:
            tree.cache = FlatCache(self._layers)
            self._caches.add(tree.cache)
        return tree.cache

    def _claim(self, trees: Iterable[TokenTree]) -> None:
        """Note that these trees' caches are needed now, and must not make room for each other."""
        self._uses += 1
        for tree in trees:
            self._cache(tree).last_use = self._uses

    def _due(self, tree: TokenTree, nodes: Sequence[Node]) -> list[Node]:
        """All that is missing above the nodes and the nodes themselves, parents first."""
        for node in nodes:
            tree.mark_visible(node)
        fresh = {missing: None for node in nodes for missing in self.nodes_to_prefill(node)}
        # Nodes that have a slot but whose row is asked for again go last: their second copy is dropped after the pass.
        again = [node for node in dict.fromkeys(nodes) if node not in fresh]
        return [*sorted(fresh, key=lambda node: node.depth), *again]

    def _scored(self, nodes: Sequence[Node], *, hidden: bool) -> Iterator[NodeScores]:
        """What is asked for, pass after pass."""
        groups = group_by_tree(nodes)
        try:
            yield from self._passed(groups, PREFILL_CHUNK if self.joins else 0, hidden)
        except CacheFull:
            if len(groups) == 1:
                raise
            # There is no room for all trees at once; one after the other may take each other's.
            for tree, members in groups.items():
                yield from self._passed({tree: members}, 0, hidden)

    def _passed(self, groups: dict[TokenTree, list[Node]], joined: int, hidden: bool) -> Iterator[NodeScores]:
        self._claim(groups)
        due = [(tree, self._due(tree, members)) for tree, members in groups.items()]
        for segments in _passes(due, {node for members in groups.values() for node in members}, joined):
            scores, vectors = self._pass(segments, hidden)
            asked = [segment.nodes[index] for segment in segments for index in segment.asked]
            if asked:
                yield NodeScores(asked, scores, vectors)

    def _pass(self, segments: list[PassSegment], hidden: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
        """One forward pass over all nodes as one row of tokens; the model's scores for those asked for."""
        caches = [self._cache(segment.tree) for segment in segments]
        self._make_room(segments, caches)
        pairs = list(zip(segments, caches, strict=True))
        fresh = [[node for node in segment.nodes if node not in cache.slots] for segment, cache in pairs]
        masks = [self._masks(cache, segment.nodes) for segment, cache in pairs]
        together = len(segments) > 1
        sizes = tuple(len(segment.nodes) for segment in segments)
        nodes = [node for segment in segments for node in segment.nodes]
        device = self.twin.device
        arguments: dict[str, Any] = {
            "input_ids": torch.tensor([[node.token_id for node in nodes]], device=device),
            "position_ids": torch.tensor([[node.depth - 1 for node in nodes]], device=device),
            "attention_mask": joint_masks(masks) if together else masks[0],
            "past_key_values": joint_states(caches, sizes) if together else caches[0].states,
            "use_cache": True,
        }
        starts = itertools.accumulate(sizes, initial=0)
        asked = [start + index for start, segment in zip(starts, segments, strict=False) for index in segment.asked]
        wanted = torch.tensor(asked, dtype=torch.int64, device=device)
        if self._keeps_logits:
            arguments["logits_to_keep"] = wanted
        with _heads_input(self.twin, hidden) as vectors:
            logits = select_logits(self.twin(**arguments).logits, wanted, len(nodes))[0]
        self.passes += 1
        for (segment, cache), added in zip(pairs, fresh, strict=True):
            cache.add(added)
            segment.tree.work.passes += 1
            segment.tree.work.tokens += len(segment.nodes)
        if self._slot_bytes == 1:
            self._slot_bytes = max(1, caches[0].bytes // caches[0].capacity)
        known = select_logits(vectors[0], wanted, len(nodes))[0] if vectors else None
        return logits.float(), known

    def _masks(self, cache: FlatCache, nodes: list[Node]) -> Any:
        """Each row sees its ancestors, in the cache or in this pass, and itself."""
        start = cache.used
        places = {node: start + index for index, node in enumerate(nodes)}
        sights: dict[Node, int] = {}
        for node, place in places.items():
            above = sights.get(node.parent) if node.parent in places and node.parent not in cache.slots else None
            sights[node] = (cache.sight_of(node.parent) if above is None else above) | 1 << place
        device = self.twin.device
        seen = unpack(list(sights.values()), start + len(nodes), device)
        distances = None
        if self.plan.slides:
            depths = torch.tensor([node.depth for node in nodes], dtype=torch.int32)
            distances = depths.to(device)[:, None] - torch.cat([cache.depths[:start], depths]).to(device)
        return self.plan.masks(seen, self.twin.dtype, distances)

    def _make_room(self, segments: list[PassSegment], caches: list[FlatCache]) -> None:
        """Slots for a pass, within the bound on bytes: close gaps, forget what nobody sees, then let idle caches go."""
        for segment, cache in zip(segments, caches, strict=True):
            self._make_room_in(cache, segment.tree, len(segment.nodes))

    def _make_room_in(self, cache: FlatCache, tree: TokenTree, slots: int) -> None:
        if cache.used + slots <= cache.capacity:
            return
        if cache.wasteful:
            cache.compact()
        if cache.room_after(cache.used + slots) > self._allowed(cache):
            self._forget_unseen(tree, cache, slots)
        if cache.used + slots > self._allowed(cache):
            self._drop_idle(cache, cache.used + slots)
        if cache.used + slots > self._allowed(cache):
            raise CacheFull(self._full(cache.used + slots))
        cache.reserve(cache.used + slots, self._allowed(cache))

    def _allowed(self, cache: FlatCache) -> int:
        """How many slots this cache may have beside all the others."""
        others = sum(other.bytes for other in self._caches if other is not cache)
        return max(0, self.cache_bytes - others) // self._slot_bytes

    def _forget_unseen(self, tree: TokenTree, cache: FlatCache, slots: int) -> None:
        """Prune what nobody can see, longest unseen first, until there is room for so many slots, and some over."""
        while (len(cache.slots) + slots) * 4 > self._allowed(cache) * 3:
            gone = tree.prune(PREFILL_CHUNK)
            if not gone:
                break
            cache.free(gone)
        cache.compact()

    def _drop_idle(self, cache: FlatCache, slots: int) -> None:
        """Empty caches that nobody needs now, longest unused first, until this one may have its slots."""
        for other in sorted(self._caches, key=lambda other: other.last_use):
            if other.last_use < cache.last_use and slots > self._allowed(cache):
                other.clear()

    def _full(self, slots: int) -> str:
        needed, held = slots * self._slot_bytes // MEBIBYTE + 1, self.cache_bytes // MEBIBYTE
        return (
            f"There is no room in the cache: the text and what is shown need {needed} MiB, and {held} MiB are allowed; "
            "shorten the text, ask for fewer or shorter branches, or raise LOOKAHEAD_CACHE_MB."
        )


@contextmanager
def _heads_input(twin: Any, wanted: bool) -> Iterator[list[torch.Tensor]]:
    """Where the vectors come that the output matrix is multiplied with, if they are wanted."""
    seen: list[torch.Tensor] = []
    if not wanted:
        yield seen
        return
    hook = twin.get_output_embeddings().register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    try:
        yield seen
    finally:
        hook.remove()


def _passes(due: Iterable[tuple[TokenTree, list[Node]]], wanted: set[Node], joined: int) -> Iterator[list[PassSegment]]:
    """Passes of at most `MAX_LAST_CHUNK` nodes; several trees share one that has no more than `joined`."""
    waiting: list[PassSegment] = []
    size = 0
    for tree, nodes in due:
        while nodes:
            chunk = nodes if len(nodes) <= MAX_LAST_CHUNK else nodes[:PREFILL_CHUNK]
            nodes = nodes[len(chunk) :]
            if waiting and size + len(chunk) > joined:
                yield waiting
                waiting, size = [], 0
            waiting.append(PassSegment(tree, chunk, [index for index, node in enumerate(chunk) if node in wanted]))
            size += len(chunk)
    if waiting:
        yield waiting
