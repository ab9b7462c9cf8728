"""The log-probability of one token after each row, without the rows of logits of a whole pass in memory."""

from __future__ import annotations

import pytest
import torch

from lookahead_core.engines.cached import HEAD_ROWS, CachedEngine
from lookahead_core.engines.cpu.compiled_layers import registers
from lookahead_core.engines.cpu.output_head import CompiledHead
from lookahead_core.engines.cpu.packed_matrix import packs
from lookahead_core.engines.cpu.prepare import COMPILED, prepare
from lookahead_core.engines.engine import NextTokenEngine
from lookahead_core.engines.prediction_rows import token_logprobs
from lookahead_core.tree import Node
from tests.engines.cpu.test_llama_layers import random_model
from tests.engines.test_engine_laws import random_tree


@pytest.mark.parametrize("vocabulary", [1, 9, 800])
def test_they_equal_a_log_softmax_in_float64(vocabulary: int) -> None:
    generator = torch.Generator().manual_seed(vocabulary)
    for count, scale in ((1, 1.0), (5, 0.01), (64, 1.0), (65, 30.0), (200, 8.0)):
        logits = scale * torch.randn(count, vocabulary, generator=generator)
        chosen = torch.randint(vocabulary, (count,), generator=generator)
        chosen[0], chosen[-1] = 0, vocabulary - 1
        expected = torch.log_softmax(logits.double(), -1)[torch.arange(count), chosen]
        found = token_logprobs(logits, chosen.tolist())
        assert found == pytest.approx(expected.tolist(), rel=1e-5, abs=2e-5)


def test_a_row_has_the_same_bits_whichever_other_rows_there_are() -> None:
    logits, chosen = torch.randn(150, 800, generator=torch.Generator().manual_seed(2)), list(range(150))
    whole = token_logprobs(logits, chosen)
    for size in (1, 7, 64):
        parts = [token_logprobs(logits[first : first + size], chosen[first : first + size])
                 for first in range(0, 150, size)]  # fmt: skip
        assert [value for part in parts for value in part] == whole


def test_a_certain_token_has_no_surprise_and_an_impossible_one_a_large_one() -> None:
    logits = 1000 * torch.eye(5, 800)
    assert token_logprobs(logits, range(5)) == [0.0] * 5
    assert token_logprobs(logits, [7] * 5) == [-1000.0] * 5
    assert token_logprobs(logits[:0], []) == []


@pytest.mark.skipif(registers() is None or not packs(torch.float32), reason="nothing is compiled for this processor")
def test_an_engine_computes_them_for_trees_that_share_a_pass_and_stores_no_predictions() -> None:
    hf_model = random_model("llama", saved_in_bfloat16=True)
    compiled, plain = CachedEngine(hf_model, cache_bytes=1 << 30), CachedEngine(hf_model, cache_bytes=1 << 30)
    assert prepare(compiled.model_copy).few_rows == COMPILED
    assert isinstance(compiled.model_copy.get_output_embeddings(), CompiledHead)

    def fresh_nodes() -> list[Node]:
        """Nodes of three trees without a cache, not in the order of their depths."""
        return [node for seed in range(9) for node in random_tree(8, seed)[1]]

    nodes = fresh_nodes()
    ids = [(7 * index) % 90 for index in range(len(nodes))]
    rows = torch.log_softmax(plain.score(nodes).logits_of(nodes).double(), -1)
    expected = [float(row[one]) for row, one in zip(rows, ids, strict=True)]
    computed: list[int] = []
    compiled.model_copy.get_output_embeddings().register_forward_hook(
        lambda _, arguments, logits: computed.append(logits.shape[-2])
    )
    for engine in (compiled, plain):
        assert isinstance(engine, NextTokenEngine)
        nodes = fresh_nodes()
        assert engine.next_logprobs(nodes, ids) == pytest.approx(expected, rel=1e-4, abs=1e-4)
        assert all(node.prediction is None for node in nodes)
    rest = len(ids) % HEAD_ROWS
    assert compiled.passes == 1 and len(ids) > HEAD_ROWS and rest
    assert computed == [0, *[HEAD_ROWS] * (len(ids) // HEAD_ROWS), rest], "one pass without logits, then a few rows"
