"""Passes in recorded sizes and fixed memory equal plain forward passes; here each replay calls the model again.

`test_on_a_gpu.py` holds the same laws with real CUDA graphs.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.cuda.graph_passes import ROWS, WIDTHS, Outputs
from lookahead_core.errors import InvalidLogits
from lookahead_core.tree import Node
from tests.conftest import tiny_llama
from tests.engines.test_engine_laws import assert_rows_equal_plain, evaluate_in_passes, random_tree
from tests.engines.test_out_of_memory import head_of
from tests.support.families import CACHED, make
from tests.support.parameters import mostly_slow


def calling_again(run: Callable[[], Outputs], pool: Any) -> tuple[Callable[[], None], Outputs]:
    """Stands for `record_graph`: the replay calls the model again, and writes the outputs to the same memory."""
    outputs = run()

    def replay() -> None:
        for kept, new in zip(outputs, run(), strict=True):
            kept.copy_(new)

    return replay, outputs


def engine_of(hf_model: Any, *, record_at: int = 1, record: Any = calling_again, mebibytes: int = 64) -> CachedEngine:
    engine = CachedEngine(hf_model, cache_bytes=mebibytes * 2**20)
    engine.use_graphs(record=record, record_at=record_at)
    return engine


@pytest.mark.parametrize("limit", mostly_slow((8, 64), 1))
@pytest.mark.parametrize("family", mostly_slow(CACHED, 10))
def test_every_prediction_equals_a_plain_forward_over_its_path(family: str, limit: int) -> None:
    hf_model = make(family, limit)
    engine = CachedEngine(hf_model, cache_bytes=2**26, attention=_attention(hf_model))
    engine.use_graphs(record=calling_again, record_at=1)
    for seed in (0, 1):
        _, nodes = random_tree(limit, seed)
        assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, 7, seed))
    assert engine.graphs is not None
    assert engine.graphs.replays >= 6
    assert not engine.graphs.failure


def _attention(hf_model: Any) -> str:
    from lookahead_core.engines.probe import fit

    return fit(hf_model).attention


def test_trees_that_take_turns_keep_their_keys_and_values() -> None:
    hf_model = tiny_llama(300)
    engine = engine_of(hf_model)
    dice = random.Random(4)
    heads = [head_of(length, first=length) for length in (20, 33, 47)]
    leaves: list[list[Node]] = [[head] for head in heads]
    for turn in range(120):
        some = leaves[dice.randrange(3)]
        tree = some[0].tree
        action = dice.random()
        if action < 0.15 and len(some) > 4:
            # A subtree is removed, as when a view is replaced; its slots become holes, or are used again.
            gone = dice.choice(some[1:])
            below = [node for node in some if gone in tree.path(node)]
            engine.free(below)
            some[:] = [node for node in some if node not in below]
        elif action < 0.25:
            engine.compact(tree)
        elif action < 0.3:
            tree.cache.clear()  # type: ignore[attr-defined]
        else:
            new = [tree.expand(dice.choice(some[-6:]), dice.randrange(300)) for _ in range(dice.choice((1, 5, 5, 11)))]
            new = list(dict.fromkeys(new))
            assert_rows_equal_plain(hf_model, new, engine.evaluate(new))
            some.extend(node for node in new if node not in some)
        if tree.cache is not None and turn % 10 == 0:
            tree.cache.check()  # type: ignore[attr-defined]
    assert engine.graphs is not None
    assert engine.graphs.replays > 40


def test_what_was_computed_by_a_graph_is_read_by_a_pass_without_one_and_the_reverse() -> None:
    hf_model = tiny_llama(300)
    engine = engine_of(hf_model)
    assert engine.graphs is not None
    head = head_of(100)
    engine.prefill([head])
    for first in (0, 100):  # afterwards the cache has room for the passes below, and need not be allocated anew
        engine.evaluate([head.tree.expand(head, first + number) for number in range(ROWS[-1] + 2)])
    few = [head.tree.expand(head, 250 + token) for token in range(4)]
    engine.evaluate(few)
    assert engine.graphs.replays == 1
    many = [few[number % 4].tree.expand(few[number % 4], 10 + number) for number in range(ROWS[-1] + 1)]
    assert_rows_equal_plain(hf_model, many, engine.evaluate(many))
    assert engine.graphs.replays == 1, "a pass of so many rows is not recorded"
    last = [many[-1].tree.expand(many[-1], 5)]
    assert_rows_equal_plain(hf_model, last, engine.evaluate(last))
    assert engine.graphs.replays == 2


def test_slots_that_are_freed_and_used_again_are_given_back_with_their_new_keys_and_values() -> None:
    hf_model = tiny_llama(300)
    engine = engine_of(hf_model)
    first, other = head_of(20), head_of(30, first=9)
    engine.prefill([first, other])
    for round_number in range(3):
        leaves = [first.tree.expand(first, 10 * round_number + token) for token in range(5)]
        engine.evaluate(leaves)
        engine.evaluate([other.tree.expand(other, round_number)])  # now the first text's are in its own memory
        leaves += [first.tree.expand(first, 10 * round_number + 9)]
        engine.evaluate(leaves[-1:])  # and now in the fixed memory again
        engine.free(leaves)
        again = [first.tree.expand(first, 100 + 10 * round_number + token) for token in range(4)]
        engine.evaluate(again)
        engine.evaluate([other.tree.expand(other, 50 + round_number)])
        below = [leaf.tree.expand(leaf, 9) for leaf in again]
        assert_rows_equal_plain(hf_model, below, engine.evaluate(below))
        engine.free([*again, *below])


def test_slots_move_when_gaps_are_closed() -> None:
    hf_model = tiny_llama(300)
    engine = engine_of(hf_model)
    head = head_of(20)
    engine.prefill([head])
    leaves = [head.tree.expand(head, token) for token in range(5)]
    engine.evaluate(leaves)
    engine.free(leaves[1:3])
    engine.compact(head.tree)
    below = [leaf.tree.expand(leaf, 9) for leaf in leaves[3:]]
    assert_rows_equal_plain(hf_model, below, engine.evaluate(below))
    assert engine.graphs is not None
    assert engine.graphs.replays == 2


def test_a_text_that_grows_beyond_a_recorded_width_moves_to_the_next_and_beyond_the_last_has_no_graphs() -> None:
    hf_model = tiny_llama(300, max_position_embeddings=8192)
    engine = engine_of(hf_model)
    assert engine.graphs is not None
    for length in (WIDTHS[0] - 3, WIDTHS[0] + 5, WIDTHS[1] + 5, WIDTHS[-1] - 1):
        head = head_of(length)
        engine.prefill([head])
        before = engine.graphs.replays
        leaves = [head.tree.expand(head, token) for token in range(2)]
        assert_rows_equal_plain(hf_model, leaves, engine.evaluate(leaves))
        assert engine.graphs.replays - before == (length < WIDTHS[-1] - 2)


def test_values_that_are_no_numbers_do_not_reach_the_next_text() -> None:
    hf_model = tiny_llama(300)
    engine = engine_of(hf_model)
    good, bad = head_of(20), head_of(40, first=9)
    engine.prefill([good, bad])
    with torch.no_grad():
        kept = hf_model.model.embed_tokens.weight[7].clone()
        hf_model.model.embed_tokens.weight[7] = float("nan")
        with pytest.raises(InvalidLogits):
            engine.evaluate([bad.tree.expand(bad, 7)])
        hf_model.model.embed_tokens.weight[7] = kept
    leaves = [good.tree.expand(good, token) for token in range(10, 13)]
    assert_rows_equal_plain(hf_model, leaves, engine.evaluate(leaves))
    assert engine.graphs is not None
    assert engine.graphs.replays == 2


def test_rows_that_are_not_used_spoil_no_others() -> None:
    hf_model = tiny_llama(300)
    engine = engine_of(hf_model)
    head = head_of(20)
    engine.prefill([head])
    with torch.no_grad():
        hf_model.model.embed_tokens.weight[0] = float("inf")  # a token that is in no text
    for token_ids in (range(10, 18), range(20, 27)):
        leaves = [head.tree.expand(head, token_id) for token_id in token_ids]
        assert_rows_equal_plain(hf_model, leaves, engine.evaluate(leaves))
    assert engine.graphs is not None
    assert engine.graphs.replays == 2


def test_a_size_is_recorded_at_its_second_use() -> None:
    recorded: list[int] = []

    def record(run: Callable[[], Outputs], pool: Any) -> Any:
        recorded.append(1)
        return calling_again(run, pool)

    engine = engine_of(tiny_llama(300), record=record, record_at=2)
    head = head_of(20)
    engine.prefill([head])
    counts = []
    for rows in (3, 3, 3, 7, 8):
        engine.evaluate([head.tree.expand(head, 10 + token) for token in range(rows)])
        counts.append(len(recorded))
    assert counts == [0, 1, 1, 1, 2], "7 and 8 rows are one size"


def test_where_recording_fails_everything_is_computed_without_graphs() -> None:
    hf_model = tiny_llama(300)
    calls: list[int] = []

    def record(run: Callable[[], Outputs], pool: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("operation not permitted when stream is capturing")
        return calling_again(run, pool)

    engine = engine_of(hf_model, record=record)
    assert engine.graphs is not None
    head = head_of(20)
    engine.prefill([head])
    for rows in (3, 4, 5):
        leaves = [head.tree.expand(head, 10 * rows + token) for token in range(rows)]
        below = [leaf.tree.expand(leaf, 5) for leaf in leaves]
        assert_rows_equal_plain(hf_model, [*leaves, *below], engine.evaluate([*leaves, *below]))
    assert len(calls) == 2
    assert "not permitted" in engine.graphs.failure
    assert engine.graphs.replays == 1


def test_when_memory_runs_out_the_fixed_memory_is_freed_and_nothing_is_lost() -> None:
    hf_model = tiny_llama(300)
    engine = engine_of(hf_model)
    assert engine.graphs is not None
    head = head_of(20)
    engine.prefill([head])
    leaves = [head.tree.expand(head, token) for token in range(5)]
    engine.evaluate(leaves)
    before = engine.passes
    engine.graphs.release()
    below = [leaf.tree.expand(leaf, 9) for leaf in leaves]
    assert_rows_equal_plain(hf_model, below, engine.evaluate(below))
    assert engine.passes == before + 1, "the leaves are still cached"


def test_a_text_that_is_gone_leaves_its_place_to_the_next() -> None:
    hf_model = tiny_llama(300)
    engine = engine_of(hf_model)
    for length in (20, 25):
        head = head_of(length)
        engine.prefill([head])
        leaves = [head.tree.expand(head, token) for token in range(5)]
        assert_rows_equal_plain(hf_model, leaves, engine.evaluate(leaves))
        del head, leaves
        gc.collect()
        assert engine.cache_bytes_in_use() == 0, "the fixed memory keeps no text alive"
