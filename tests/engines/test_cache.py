"""The cached engine's memory: compaction, errors in the middle of it, and which caches are cleared for lack of room."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lookahead_core import CacheFull
from lookahead_core.engines import cache as cache_module
from lookahead_core.engines.cache import SlotLayer
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.tree import Node, TokenTree
from tests.conftest import tiny_llama
from tests.engines.test_engine_laws import assert_rows_equal_plain
from tests.test_tree import Grower

SLOT_BYTES = 2 * 2 * 2 * 8 * 4
"""Keys and values of two layers with two key heads of width 8, in float32."""


def engine_with(slots: int) -> tuple[Any, CachedEngine]:
    """A tiny model, and an engine whose cache may hold this many slots."""
    hf_model = tiny_llama(300)
    engine = CachedEngine(hf_model, cache_bytes=slots * SLOT_BYTES)
    engine.measure_slot_bytes()
    return hf_model, engine


def evaluate_text(engine: CachedEngine, length: int, first: int = 3) -> Node:
    """The head of a new tree with a text of this length, evaluated."""
    tree = TokenTree()
    head = tree.descend(tree.root, range(first, first + length))
    tree.move_head(head)
    engine.evaluate([head])
    return head


def tree_with_holes(engine: CachedEngine) -> tuple[TokenTree, list[Node]]:
    """A tree with more kept nodes than holes, so that compaction moves slots over slots that are still to be moved."""
    tree = TokenTree()
    head = tree.descend(tree.root, range(3, 9))
    tree.move_head(head)
    hidden = tree.path(tree.descend(head, range(50, 56)))
    kept = tree.path(tree.descend(head, range(100, 120)), head)
    engine.evaluate([head])
    engine.evaluate(hidden[6:])
    engine.evaluate(kept)
    tree.new_view()
    tree.mark_visible(kept[-1])
    pruned = tree.prune()
    assert set(pruned) == set(hidden[6:])
    engine.free(pruned)
    return tree, kept


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*range(1, 5), None])
def test_predictions_are_right_after_compaction_that_fails_at_any_step(
    fault: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf_model, engine = engine_with(1000)
    tree, kept = tree_with_holes(engine)
    assert tree.cache.holes == 6
    steps: list[str] = []
    index_select = torch.Tensor.index_select

    def failing(tensor: torch.Tensor, *args: Any) -> torch.Tensor:
        # Keys and values of two layers are moved one after the other: four steps.
        steps.append("moved")
        if len(steps) == fault:
            raise MemoryError
        return index_select(tensor, *args)

    monkeypatch.setattr(torch.Tensor, "index_select", failing)
    if fault is None:
        engine.compact(tree)
        assert len(steps) == 4
    else:
        with pytest.raises(MemoryError):
            engine.compact(tree)
    monkeypatch.undo()
    tree.cache.check()
    assert tree.cache.holes == 0
    leaves = [tree.expand(node, 7) for node in kept]
    assert_rows_equal_plain(hf_model, leaves, engine.evaluate(leaves))


def test_an_error_while_the_cache_grows_leaves_no_layer_with_old_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    hf_model, engine = engine_with(1000)
    head = evaluate_text(engine, 20)
    resize, calls = SlotLayer.resize, []

    def failing(layer: SlotLayer, capacity: int) -> None:
        calls.append(layer)
        if len(calls) == 2:
            raise MemoryError
        resize(layer, capacity)

    monkeypatch.setattr(SlotLayer, "resize", failing)
    longer = head.tree.descend(head, range(100, 150))
    # The engine clears the cache and tries again, with smaller passes.
    assert_rows_equal_plain(hf_model, [longer], engine.evaluate([longer]))
    monkeypatch.undo()
    head.tree.cache.check()
    assert_rows_equal_plain(hf_model, [longer], engine.evaluate([longer]))


def test_the_least_recently_used_cache_is_cleared_first() -> None:
    _, engine = engine_with(100)
    first, second, third = (evaluate_text(engine, 30, start) for start in (3, 50, 100))
    engine.evaluate([first.tree.expand(first, 200)])
    held = [head.tree.cache for head in (first, second, third)]
    assert all(cache.bytes for cache in held)
    evaluate_text(engine, 30, 150)
    assert [bool(cache.bytes) for cache in held] == [True, False, True]
    evaluate_text(engine, 30, 200)
    assert [bool(cache.bytes) for cache in held] == [True, False, False]


def test_caches_in_the_same_pass_are_not_cleared_for_each_other() -> None:
    hf_model, engine = engine_with(100)
    heads = [evaluate_text(engine, 30, start) for start in (3, 50)]
    longer = [head.tree.descend(head, range(200, 230)) for head in heads]
    # Both need 60 slots and 100 are allowed: they are evaluated one after the other instead of together.
    assert_rows_equal_plain(hf_model, longer, engine.evaluate(longer))
    assert sum(cache.bytes for cache in engine._caches) <= 100 * SLOT_BYTES


def test_a_text_that_fills_the_cache_exactly_fits_and_one_token_more_does_not() -> None:
    _, engine = engine_with(40)
    assert evaluate_text(engine, 40).tree.cache.used == 40
    with pytest.raises(CacheFull, match="shorten the text"):
        evaluate_text(engine, 41)


@pytest.mark.parametrize(("more", "left"), [(15, 40), (16, 0)])
def test_hidden_nodes_are_pruned_once_a_pass_would_leave_less_than_a_quarter_of_the_cache_free(
    more: int, left: int
) -> None:
    _, engine = engine_with(100)
    for cache in engine._caches:
        cache.clear()
    head = evaluate_text(engine, 20)
    tree = head.tree
    hidden = tree.path(tree.descend(head, range(100, 140)), head)
    engine.evaluate(hidden)
    tree.new_view()
    engine.evaluate([tree.descend(head, range(200, 200 + more))])
    assert tree.size == 20 + left + more
    assert sum(node in tree.cache.slots for node in hidden) == left


def test_a_large_cache_keeps_the_slots_of_recent_views_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "TRIM_ABOVE", 40)
    hf_model, engine = engine_with(1000)
    head = evaluate_text(engine, 8)
    tree = head.tree
    views = []
    for first in range(20, 200, 20):
        tree.new_view()
        branches = [tree.descend(head, [token, token + 1]) for token in range(first, first + 10, 2)]
        engine.evaluate([head, *branches])
        views.append(branches)
        tree.cache.check()
        assert tree.cache.used <= 40, "the trunk's 8 slots, and two or three views of 10"
        shown = [node for recent in views[-2:] for branch in recent for node in tree.path(branch)]
        assert tree.cache.slots.keys() >= set(shown), "the current view and the one before keep theirs"
    assert tree.size == 8 + 9 * 10, "all nodes stay in the tree"
    assert not any(branch in tree.cache.slots for branch in views[0])
    old = views[0][:3]
    assert_rows_equal_plain(hf_model, old, engine.evaluate(old))
    tree.cache.check()


def test_slots_that_a_large_view_needs_are_not_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "TRIM_ABOVE", 16)
    hf_model, engine = engine_with(1000)
    head = evaluate_text(engine, 12)
    tree = head.tree
    tree.new_view()
    branches = [tree.descend(head, range(token, token + 3)) for token in range(20, 120, 10)]
    for depth in range(1, 4):
        level = [tree.path(branch, head)[depth - 1] for branch in branches]
        assert_rows_equal_plain(hf_model, level, engine.evaluate(level))
        assert len(tree.cache.slots) == 12 + 10 * depth, "nothing is computed twice"


def test_a_prefilled_path_keeps_its_slots_though_no_view_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "TRIM_ABOVE", 8)
    _, engine = engine_with(1000)
    tree = TokenTree()
    aside = tree.path(tree.descend(tree.root, range(3, 33)))
    for _ in range(3):
        tree.new_view()
    engine.prefill(aside[:20])
    engine.prefill(aside[20:])
    assert set(tree.cache.slots) == set(aside)
    tree.cache.check()


def test_the_paths_to_a_growers_frontier_keep_their_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "TRIM_ABOVE", 20)
    _, engine = engine_with(1000)
    tree = TokenTree()
    grower = Grower([tree.descend(tree.root, range(3, 8))])
    tree.growers.add(grower)
    engine.evaluate(grower.frontier)
    for first in range(20, 100, 10):
        tree.new_view()
        engine.evaluate([tree.descend(tree.root, range(first, first + 8))])
    assert tree.cache.used <= 40
    assert set(tree.path(grower.frontier[0])) <= set(tree.cache.slots)
