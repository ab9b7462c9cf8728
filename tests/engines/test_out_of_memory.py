"""A forward pass that runs out of memory is made again, smaller and without idle caches, or ends in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.errors import NoRoom
from lookahead_core.tree import Node, TokenTree
from tests.conftest import tiny_llama
from tests.engines.test_engine_laws import assert_rows_equal_plain

SENTENCE = "There is no memory left"


def limit_tokens(model_copy: Any, most: int, error: Callable[[], Exception] | None = None) -> list[int]:
    """Let each forward pass with more tokens run out of memory; returns the tokens of all passes, as they come."""
    sizes: list[int] = []
    forward = model_copy.forward

    def limited(*arguments: Any, **options: Any) -> Any:
        tokens = options["input_ids"].numel()
        sizes.append(tokens)
        if tokens > most:
            raise error() if error else torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return forward(*arguments, **options)

    model_copy.forward = limited
    return sizes


def head_of(length: int, first: int = 3) -> Node:
    tree = TokenTree()
    head = tree.descend(tree.root, [first + number % 250 for number in range(length)])
    tree.move_head(head)
    return head


@pytest.mark.parametrize(("most", "largest"), [(100, 64), (10, 8)])
def test_a_pass_without_memory_is_made_again_in_smaller_ones(most: int, largest: int) -> None:
    hf_model = tiny_llama(300)
    engine = CachedEngine(hf_model, cache_bytes=2**24)
    engine.measure_slot_bytes()
    head = head_of(150)
    leaves = [head.tree.expand(head, token) for token in range(10, 40)]
    sizes = limit_tokens(engine.model_copy, most)
    rows = engine.evaluate(leaves)
    assert_rows_equal_plain(hf_model, leaves, rows)
    done = [size for size in sizes if size <= most]
    assert max(done) <= largest and sum(done) == 180, "each node is computed once, in small passes"
    head.tree.cache.check()


def test_what_is_cached_of_the_text_itself_is_not_computed_again() -> None:
    hf_model = tiny_llama(300)
    engine = CachedEngine(hf_model, cache_bytes=2**24)
    head = head_of(150)
    engine.evaluate([head])
    leaves = [head.tree.expand(head, token) for token in range(10, 60)]
    sizes = limit_tokens(engine.model_copy, 10)
    assert_rows_equal_plain(hf_model, leaves, engine.evaluate(leaves))
    assert sum(size for size in sizes if size <= 10) == 50


def test_a_text_is_prefilled_in_smaller_passes_too() -> None:
    hf_model = tiny_llama(300)
    engine = CachedEngine(hf_model, cache_bytes=2**24)
    head = head_of(150)
    limit_tokens(engine.model_copy, 70)
    engine.prefill([head])
    assert engine.nodes_to_prefill(head) == []
    assert_rows_equal_plain(hf_model, [head], engine.evaluate([head]))


def test_caches_of_other_texts_are_cleared_and_fewer_bytes_are_allowed_from_then_on() -> None:
    hf_model = tiny_llama(300)
    engine = CachedEngine(hf_model, cache_bytes=2**24)
    engine.measure_slot_bytes()
    others = [head_of(150, first) for first in (4, 5)]
    engine.evaluate(others[:1])
    engine.evaluate(others[1:])
    assert all(other.tree.cache.bytes for other in others)
    limit_tokens(engine.model_copy, 100)
    head = head_of(150)
    engine.evaluate([head])
    assert [other.tree.cache.bytes for other in others] == [0, 0]
    assert head.tree.cache.bytes
    assert engine.cache_bytes < 2**24
    assert_rows_equal_plain(hf_model, others, engine.evaluate(others))


def test_however_often_memory_runs_out_some_of_the_cache_is_left() -> None:
    engine = CachedEngine(tiny_llama(300), cache_bytes=2**24)
    engine.measure_slot_bytes()
    limit_tokens(engine.model_copy, 0)
    for _ in range(20):
        with pytest.raises(NoRoom, match=SENTENCE):
            engine.evaluate([head_of(5)])
    assert engine.cache_bytes >= 2**24 // 8


@pytest.mark.parametrize("make", [lambda model: CachedEngine(model, cache_bytes=2**24), UncachedEngine])
@pytest.mark.parametrize(
    "error", [MemoryError, lambda: RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")]
)
def test_without_memory_for_any_pass_there_is_a_sentence_and_later_everything_works(
    make: Callable[[Any], Any], error: Callable[[], Exception]
) -> None:
    hf_model = tiny_llama(300)
    engine = make(hf_model)
    head = head_of(30)
    forward = engine.model_copy.forward
    limit_tokens(engine.model_copy, 0, error)
    with pytest.raises(NoRoom, match=SENTENCE):
        engine.evaluate([head])
    engine.model_copy.forward = forward
    assert_rows_equal_plain(hf_model, [head], engine.evaluate([head]))


def test_without_a_cache_paths_are_computed_one_by_one() -> None:
    hf_model = tiny_llama(300)
    engine = UncachedEngine(hf_model)
    head = head_of(30)
    leaves = [head.tree.expand(head, token) for token in range(10, 20)]
    sizes = limit_tokens(engine.model_copy, 40)
    assert_rows_equal_plain(hf_model, leaves, engine.evaluate(leaves))
    assert sizes == [310, *[310] * sizes[1:].count(310), *[31] * 10]


@pytest.mark.parametrize("make", [lambda model: CachedEngine(model, cache_bytes=2**24), UncachedEngine])
def test_other_errors_are_raised_at_once(make: Callable[[Any], Any]) -> None:
    engine = make(tiny_llama(300))
    sizes = limit_tokens(engine.model_copy, 0, lambda: RuntimeError("inner workings"))
    with pytest.raises(RuntimeError, match="inner workings"):
        engine.evaluate([head_of(5)])
    assert len(sizes) == 1
