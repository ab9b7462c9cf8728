"""The flat cache against a plain list: which node has which slot, what the slots hold, and the allocated memory."""

from __future__ import annotations

import random

import pytest
import torch

from lookahead_core.engines.cache import FlatCache
from lookahead_core.engines.joint_cache import JointLayer, joint_cache, joint_masks
from lookahead_core.tree import Node, TokenTree

LAYERS, HEADS, WIDTH = 3, 2, 5


def states_of(nodes: list[Node], layer: int, part: int) -> torch.Tensor:
    """Keys (part 1) or values (part 2) of nodes: numbers that identify node, layer and part."""
    numbers = [node.token_id * 100 + layer * 10 + part for node in nodes]
    return torch.tensor(numbers, dtype=torch.float32)[None, None, :, None].expand(1, HEADS, -1, WIDTH)


def write(cache: FlatCache, nodes: list[Node]) -> None:
    """Do what a pass does: update each layer with keys and values, then add the nodes."""
    for number, layer in enumerate(cache.layers):
        assert layer.get_seq_length() == cache.used
        assert layer.get_mask_sizes(len(nodes)) == (cache.used + len(nodes), 0)
        keys, values = layer.update(states_of(nodes, number, 1), states_of(nodes, number, 2))
        assert keys.shape == values.shape == (1, HEADS, cache.used + len(nodes), WIDTH)
    cache.add(nodes)


def assert_holds(cache: FlatCache, held: list[Node]) -> None:
    """The cache holds exactly these nodes, with their own keys and values."""
    cache.check()
    assert set(cache.slots) == set(held)
    assert cache.holes == cache.used - len(held)
    for number, layer in enumerate(cache.layers):
        if not layer.is_initialized:
            assert layer.bytes == 0
            continue
        assert layer.bytes == 2 * HEADS * WIDTH * 4 * cache.capacity
        for node in held:
            for part, kept in ((1, layer.keys), (2, layer.values)):
                assert torch.equal(kept[:, :, cache.slots[node]], states_of([node], number, part)[:, :, 0])
    assert cache.bytes == sum(layer.bytes for layer in cache.layers)
    for node in held:
        path = node.tree.path(node)
        assert cache.visible_below(node) == sum(1 << cache.slots[seen] for seen in path)
    assert cache.visible_below(None) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_random_operations_leave_every_node_with_its_own_keys_and_values(seed: int) -> None:
    dice = random.Random(seed)
    tree, cache, held = TokenTree(), FlatCache(LAYERS), []
    for number in range(40):
        action = dice.choice(["pass", "pass", "pass", "free", "free", "compact", "reserve", "clear"])
        if action == "pass":
            parents = [dice.choice([tree.root, *held]) for _ in range(dice.randint(1, 6))]
            fresh = [tree.expand(parent, 1 + number * 10 + place) for place, parent in enumerate(parents)]
            before = cache.capacity
            limit = dice.choice([0, 10, 1000])
            slots = cache.used + len(fresh)
            cache.reserve(slots, limit)
            grown = before if slots <= before else min(max(slots, 2 * before), max(slots, limit))
            assert cache.capacity == grown
            write(cache, fresh)
            held += fresh
        elif action == "free":
            free = [node for node in held if not any(child in held for child in node.children.values())]
            free = dice.sample(free, min(len(free), dice.randint(1, 4)))
            cache.free([*free, tree.expand(tree.root, 99_999)])
            held = [node for node in held if node not in free]
            last = max((cache.slots[node] for node in held), default=-1)
            assert cache.used == last + 1, "freed slots at the end are given back at once"
        elif action == "compact":
            order = sorted(held, key=cache.slots.__getitem__)
            before = cache.capacity
            cache.compact()
            assert [cache.slots[node] for node in order] == list(range(len(held)))
            assert cache.capacity == (len(held) if 2 * len(held) < before else before)
        elif action == "reserve":
            slots = dice.randint(0, 40)
            assert cache.capacity_for(slots) == (
                cache.capacity if slots <= cache.capacity else max(slots, 2 * cache.capacity)
            )
        elif dice.random() < 0.3:
            cache.clear()
            held = []
            assert (cache.capacity, cache.used, cache.bytes) == (0, 0, 0)
        assert cache.wasteful is (2 * len(held) < cache.capacity)
        assert_holds(cache, held)


def test_a_new_cache_has_no_memory_and_was_never_used() -> None:
    cache = FlatCache(LAYERS)
    assert (cache.capacity, cache.used, cache.holes, cache.bytes, cache.last_use) == (0, 0, 0, 0, 0)
    assert not cache.wasteful
    assert len(cache.hf_cache.layers) == LAYERS


def test_layers_tell_transformers_that_they_do_not_slide_and_have_no_maximum_length() -> None:
    """`get_max_cache_shape` is the name in older releases."""
    single = FlatCache(1).layers[0]
    for layer in (single, JointLayer([single], (1,))):
        assert layer.is_sliding is False
        assert layer.get_max_length() == layer.get_max_cache_shape() == -1


def test_several_caches_share_a_pass_and_each_gets_its_own_rows() -> None:
    trees = [TokenTree(), TokenTree()]
    caches = [FlatCache(LAYERS), FlatCache(LAYERS)]
    cached = [[tree.expand(tree.root, number + 1)] for number, tree in enumerate(trees)]
    for cache, nodes in zip(caches, cached, strict=True):
        cache.reserve(8, 8)
        write(cache, nodes)
    fresh = [
        [tree.expand(tree.root, 10 * number + place) for place in range(count)]
        for number, (tree, count) in enumerate(zip(trees, (2, 3), strict=True), 1)
    ]
    joint = joint_cache(caches, (2, 3))
    all_nodes = fresh[0] + fresh[1]
    assert joint.layers[0].get_seq_length() == 1
    assert joint.layers[0].get_mask_sizes(5) == (6, 0)
    for number, layer in enumerate(joint.layers):
        keys, values = layer.update(states_of(all_nodes, number, 1), states_of(all_nodes, number, 2))
        assert keys.rows == values.rows == (2, 3)
        assert [tuple(tensor.shape) for tensor in keys.tensors] == [(1, HEADS, 3, WIDTH), (1, HEADS, 4, WIDTH)]
    for cache, nodes, more in zip(caches, cached, fresh, strict=True):
        cache.add(more)
        assert_holds(cache, nodes + more)


def test_masks_of_several_caches_are_stacked_along_the_rows() -> None:
    one, other = torch.ones(1, 1, 2, 3), torch.full((1, 1, 1, 5), 2.0)
    expected = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [2, 2, 2, 2, 2]], dtype=torch.float32)
    assert torch.equal(joint_masks([one, other])[0, 0], expected)
    named = joint_masks([{"full": one, "sliding": other}, {"full": other, "sliding": one}])
    assert torch.equal(named["full"][0, 0], expected)
    assert torch.equal(named["sliding"][0, 0], expected[[2, 0, 1]])


@pytest.mark.parametrize(
    "break_invariant",
    [
        lambda cache: cache.visible.append(0),
        lambda cache: setattr(cache, "capacity", 1),
        lambda cache: cache.nodes.__setitem__(0, None),
        lambda cache: cache.visible.__setitem__(1, 1),
        lambda cache: cache.depths.__setitem__(0, 9),
        lambda cache: setattr(cache.layers[1], "keys", cache.layers[1].keys[:, :, 1:]),
        lambda cache: setattr(cache.layers[1], "values", cache.layers[1].values[:, :, 1:]),
        lambda cache: cache.slots.pop(next(iter(cache.slots))),
    ],
)
def test_check_notices_each_broken_invariant(break_invariant: object) -> None:
    tree, cache = TokenTree(), FlatCache(LAYERS)
    nodes = tree.path(tree.descend(tree.root, [1, 2, 3]))
    cache.reserve(3, 3)
    write(cache, nodes)
    cache.check()
    break_invariant(cache)  # type: ignore[operator]
    with pytest.raises(AssertionError):
        cache.check()
