"""The log-probability of one token after each row, from the compiled output matrix, without rows of logits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.cpu.compiled_layers import CompiledLayers, compile_layers, registers
from lookahead_core.engines.cpu.llama_layers import float32_reference
from lookahead_core.engines.cpu.output_head import CompiledHead
from lookahead_core.engines.cpu.packed_matrix import packs
from lookahead_core.engines.cpu.prepare import COMPILED, prepare
from lookahead_core.engines.engine import NextTokenEngine
from lookahead_core.tree import Node
from tests.engines.cpu.test_llama_layers import random_model
from tests.engines.test_engine_laws import random_tree

pytestmark = pytest.mark.skipif(
    registers() is None or not packs(torch.float32), reason="nothing is compiled for this processor"
)


@pytest.fixture(scope="module")
def layers() -> CompiledLayers:
    compiled, reason = compile_layers(
        list(random_model("llama", saved_in_bfloat16=True).model.layers), float32_reference
    )
    assert compiled is not None, reason
    return compiled


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """One thread, and three, by which no number of columns is divisible."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def head_of(layers: CompiledLayers, groups: int, width: int = 96) -> CompiledHead:
    """A random output matrix of so many column groups."""
    weight = torch.randn(groups * layers.shape.group_width, width, generator=torch.Generator().manual_seed(groups))
    return CompiledHead(weight.bfloat16(), layers)


@pytest.mark.parametrize("groups", [1, 2, 8, 9, 50])
def test_they_equal_a_log_softmax_in_float64(layers: CompiledLayers, threads: int, groups: int) -> None:
    head = head_of(layers, groups)
    generator = torch.Generator().manual_seed(1)
    # With 2,000 rows threads work at the same time, however busy the machine is.
    for count, scale in ((1, 1.0), (5, 0.01), (64, 1.0), (65, 1.0), (200, 8.0), (2000, 1.0)):
        rows = scale * torch.randn(count, 96, generator=generator)
        vocabulary = len(head.weight)
        chosen = torch.randint(vocabulary, (count,), generator=generator)
        chosen[0], chosen[-1] = 0, vocabulary - 1
        expected = torch.log_softmax(rows.double() @ head.weight.double().T, -1)[torch.arange(count), chosen]
        found = head.next_logprobs(rows, chosen.tolist())
        assert (found.shape, found.dtype) == ((count,), torch.float32)
        assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-5, abs=2e-5)


def test_a_row_has_the_same_bits_whichever_other_rows_there_are(layers: CompiledLayers) -> None:
    head = head_of(layers, 9)
    rows, chosen = torch.randn(150, 96, generator=torch.Generator().manual_seed(2)), list(range(150))
    whole = head.next_logprobs(rows, chosen)
    for size in (1, 7, 64):
        parts = [head.next_logprobs(rows[first : first + size], chosen[first : first + size])
                 for first in range(0, 150, size)]  # fmt: skip
        assert torch.equal(torch.cat(parts), whole)


def test_a_certain_token_has_a_tiny_surprise_and_an_impossible_one_a_large_one(layers: CompiledLayers) -> None:
    head = head_of(layers, 3)
    rows = 40 * head.weight[:5].float()
    certain, impossible = head.next_logprobs(rows, range(5)), head.next_logprobs(rows, [7] * 5)
    assert certain.tolist() == [0.0] * 5
    assert bool((impossible < -500).all()) and bool(impossible.isfinite().all())


def test_rows_of_half_precision_and_no_rows_are_taken_and_wrong_ones_refused(layers: CompiledLayers) -> None:
    head = head_of(layers, 2)
    rows = torch.randn(3, 96, generator=torch.Generator().manual_seed(3)).bfloat16()
    assert torch.equal(head.next_logprobs(rows, [1, 2, 3]), head.next_logprobs(rows.float(), [1, 2, 3]))
    assert head.next_logprobs(rows[:0], []).shape == (0,)
    for wrong in ([1, 2], [1, 2, -1], [1, 2, len(head.weight)]):
        with pytest.raises(ValueError, match=r"^3 rows need as many token ids from 0 to \d+\.$"):
            head.next_logprobs(rows, wrong)
    with pytest.raises(ValueError, match="takes rows of 96 numbers, and was given 95"):
        head.next_logprobs(rows[:, :95], [1, 2, 3])


def test_an_engine_computes_them_for_trees_that_share_a_pass_and_stores_no_predictions() -> None:
    hf_model = random_model("llama", saved_in_bfloat16=True)
    compiled, plain = CachedEngine(hf_model, cache_bytes=1 << 30), CachedEngine(hf_model, cache_bytes=1 << 30)
    assert prepare(compiled.model_copy).few_rows == COMPILED
    assert isinstance(compiled.model_copy.get_output_embeddings(), CompiledHead)

    def fresh_nodes() -> list[Node]:
        """Nodes of three trees without a cache, not in the order of their depths."""
        return [node for seed in range(3) for node in random_tree(8, seed)[1]]

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
    assert compiled.passes == 1 and computed == [0], "one pass, without rows of logits"
