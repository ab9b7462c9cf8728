"""The uncached engine: how paths are batched, the limits of a batch, and what is counted."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers

from lookahead_core.engines.uncached import UncachedEngine, rope_types
from lookahead_core.tree import Node, TokenTree
from tests.conftest import tiny_llama
from tests.support.families import make, plain_rows


def engine_with_shapes(hf_model: Any) -> tuple[UncachedEngine, list[tuple[int, int, int]]]:
    """An engine, and a list that each pass appends to: rows, their length, and the number of positions to keep."""
    engine, shapes = UncachedEngine(hf_model), []

    def record(module: Any, args: Any, kwargs: dict[str, Any]) -> None:
        assert kwargs["use_cache"] is False
        assert torch.equal(kwargs["position_ids"][0], torch.arange(kwargs["input_ids"].shape[1]))
        shapes.append((*kwargs["input_ids"].shape, len(kwargs["logits_to_keep"])))

    engine.model_copy.register_forward_pre_hook(record, with_kwargs=True)
    return engine, shapes


def leaves(lengths: list[int], seed: int = 0) -> list[Node]:
    """Nodes at the ends of paths of these lengths, each in its own tree."""
    generator = random.Random(seed)
    return [
        tree.descend(tree.root, [generator.randrange(96) for _ in range(length)])
        for length in lengths
        for tree in [TokenTree()]
    ]


def assert_equal_plain(hf_model: Any, nodes: list[Node], rows: torch.Tensor) -> None:
    """The rows are the log-probabilities of a plain forward pass over each path."""
    for node, row in zip(nodes, rows, strict=True):
        expected = plain_rows(hf_model, [node.tree.token_ids(node)])[0].log_softmax(-1)
        assert torch.allclose(row, expected, atol=1e-4)


@pytest.mark.slow
def test_a_batch_has_at_most_8192_tokens_padding_included() -> None:
    hf_model = tiny_llama(96, max_position_embeddings=4096, eos_token_id=None)
    engine, shapes = engine_with_shapes(hf_model)
    nodes = leaves([1000, 3, 2000, 2048, 2047, 500, 2048, 9, 10])
    rows = engine.evaluate(nodes).clone()
    # The longest first: four rows of 2,048, and then those of up to 1,000.
    assert [shape[:2] for shape in shapes] == [(4, 2048), (5, 1000)]
    assert_equal_plain(hf_model, nodes[1:2] + nodes[3:5], torch.stack([rows[1], rows[3], rows[4]]))
    assert engine.passes == 2


def test_a_batch_gives_at_most_256_rows_of_logits() -> None:
    hf_model = tiny_llama(96, eos_token_id=None)
    engine, shapes = engine_with_shapes(hf_model)
    tree = TokenTree()
    path = tree.path(tree.descend(tree.root, [place % 96 for place in range(300)]))
    rows = engine.evaluate(path).clone()
    assert [shape[2] for shape in shapes] == [256, 44]
    assert_equal_plain(
        hf_model, path[:1] + path[43:45] + path[-1:], torch.stack([rows[0], rows[43], rows[44], rows[-1]])
    )
    shapes.clear()
    short = leaves([*range(1, 31)] * 10)
    rows = engine.evaluate(short).clone()
    assert all(rows * kept <= 256 for rows, _, kept in shapes)
    assert len(shapes) < 20
    assert_equal_plain(hf_model, short[:30], rows[:30])


@pytest.mark.parametrize("family", ["llama_dynamic_rope", "phi3_longrope"])
def test_with_length_dependent_ropes_all_paths_of_a_batch_have_one_length(family: str) -> None:
    hf_model = make(family)
    engine = UncachedEngine(hf_model)
    shapes: list[tuple[int, int]] = []
    engine.model_copy.register_forward_pre_hook(
        lambda module, args, kwargs: shapes.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    nodes = leaves([30, 5, 30, 12, 5, 5])
    rows = engine.evaluate(nodes).clone()
    assert shapes == [(2, 30), (1, 12), (3, 5)]
    assert_equal_plain(hf_model, nodes, rows)


def test_passes_and_tokens_are_counted_for_each_tree_and_for_all() -> None:
    engine = UncachedEngine(make("llama"))
    assert engine.passes == 0
    one, other = leaves([7, 4])
    sibling = one.tree.descend(one.tree.root, [1, 2, 3])
    engine.evaluate([one, other, sibling])
    assert engine.passes == 1
    assert (one.tree.work.passes, one.tree.work.tokens) == (1, 10)
    assert (other.tree.work.passes, other.tree.work.tokens) == (1, 4)
    engine.evaluate([other])
    assert engine.passes == 2
    assert (one.tree.work.passes, other.tree.work.passes) == (1, 2)
    assert engine.cache_usage(one.tree) == (0, 0)
    assert engine.nodes_to_prefill(one) == []


@pytest.mark.parametrize(
    ("parameters", "types"),
    [
        (None, {"default"}),
        ({"rope_theta": 10000.0}, {"default"}),
        ({"rope_type": "dynamic", "factor": 2.0}, {"dynamic"}),
        # One entry for each layer type.
        (
            {
                "full_attention": {"rope_type": "longrope", "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
            {"longrope", "default"},
        ),
        ({"full_attention": {"rope_theta": 1e6}}, {"default"}),
    ],
)
def test_rope_types_are_read_from_a_configuration(parameters: Any, types: set[str]) -> None:
    config = transformers.LlamaConfig()
    config.rope_parameters = parameters
    assert rope_types(config) == types


def test_a_configuration_without_rope_parameters_has_the_default_type() -> None:
    config = SimpleNamespace()
    config.get_text_config = lambda decoder: config
    assert rope_types(config) == {"default"}
