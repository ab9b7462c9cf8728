"""The flat cache: closing gaps, faults in the middle of it, and whose keys and values are dropped for lack of room."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lookahead_core import CacheFull
from lookahead_core.engines.cache import SlotLayer
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.tree import Node, TokenTree
from tests.conftest import tiny_llama
from tests.engines.test_engine_laws import assert_rows_equal_plain

SLOT_BYTES = 2 * 2 * 2 * 8 * 4
"""Keys and values of two layers with two key heads of width 8, in float32."""


def engine_with(slots: int) -> tuple[Any, CachedEngine]:
    """A tiny model, and an engine whose cache may hold this many slots."""
    hf_model = tiny_llama(300)
    engine = CachedEngine(hf_model, cache_bytes=slots * SLOT_BYTES)
    engine.measure_slot_bytes()
    return hf_model, engine


def read(engine: CachedEngine, length: int, first: int = 3) -> Node:
    """The end of a text of its own tree, in the cache."""
    tree = TokenTree()
    head = tree.descend(tree.root, range(first, first + length))
    tree.move_head(head)
    engine.evaluate([head])
    return head


def scattered(engine: CachedEngine) -> tuple[TokenTree, list[Node]]:
    """A tree whose kept nodes lie behind holes that are wider than they are many: moved slots overlap old ones."""
    tree = TokenTree()
    head = tree.descend(tree.root, range(3, 9))
    tree.move_head(head)
    unseen = tree.path(tree.descend(head, range(50, 56)))
    kept = tree.path(tree.descend(head, range(100, 120)), head)
    engine.evaluate([head])
    engine.evaluate(unseen[6:])
    engine.evaluate(kept)
    tree.new_view()
    tree.mark_visible(kept[-1])
    gone = tree.prune()
    assert set(gone) == set(unseen[6:])
    engine.free(gone)
    return tree, kept


@pytest.mark.parametrize("fault", [*range(1, 5), None])
def test_predictions_are_right_after_compaction_that_fails_at_any_step(
    fault: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf_model, engine = engine_with(1000)
    tree, kept = scattered(engine)
    assert tree.cache.holes == 6
    steps: list[str] = []
    index_select = torch.Tensor.index_select

    def failing(tensor: torch.Tensor, *given: Any) -> torch.Tensor:
        # Keys and values of two layers are moved one after the other: four steps.
        steps.append("moved")
        if len(steps) == fault:
            raise MemoryError
        return index_select(tensor, *given)

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


def test_a_fault_while_the_cache_grows_leaves_no_layer_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    hf_model, engine = engine_with(1000)
    head = read(engine, 20)
    resize, calls = SlotLayer.resize, []

    def failing(layer: SlotLayer, capacity: int) -> None:
        calls.append(layer)
        if len(calls) == 2:
            raise MemoryError
        resize(layer, capacity)

    monkeypatch.setattr(SlotLayer, "resize", failing)
    longer = head.tree.descend(head, range(100, 150))
    with pytest.raises(MemoryError):
        engine.evaluate([longer])
    monkeypatch.undo()
    head.tree.cache.check()
    assert_rows_equal_plain(hf_model, [longer], engine.evaluate([longer]))


def test_the_cache_that_was_used_longest_ago_is_dropped_first() -> None:
    _, engine = engine_with(100)
    first, second, third = (read(engine, 30, start) for start in (3, 50, 100))
    engine.evaluate([first.tree.expand(first, 200)])
    held = [head.tree.cache for head in (first, second, third)]
    assert all(cache.bytes for cache in held)
    read(engine, 30, 150)
    assert [bool(cache.bytes) for cache in held] == [True, False, True]
    read(engine, 30, 200)
    assert [bool(cache.bytes) for cache in held] == [True, False, False]


def test_caches_in_the_same_pass_are_not_dropped_for_each_other() -> None:
    hf_model, engine = engine_with(100)
    heads = [read(engine, 30, start) for start in (3, 50)]
    longer = [head.tree.descend(head, range(200, 230)) for head in heads]
    # Both need 60 slots and 100 are allowed: they are evaluated one after the other instead of together.
    assert_rows_equal_plain(hf_model, longer, engine.evaluate(longer))
    assert sum(cache.bytes for cache in engine._caches) <= 100 * SLOT_BYTES


def test_a_text_that_fills_the_cache_exactly_fits_and_one_token_more_does_not() -> None:
    _, engine = engine_with(40)
    assert read(engine, 40).tree.cache.used == 40
    with pytest.raises(CacheFull, match="shorten the text"):
        read(engine, 41)
