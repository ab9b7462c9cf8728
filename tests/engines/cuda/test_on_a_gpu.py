"""The laws on an NVIDIA GPU; run by `python -m pytest -m cuda` on a machine that has one."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers

from lookahead_core import Document, Model, load_model
from lookahead_core.analysis.highlights import highlights
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.experiments.energy import NVML, energy_counter
from lookahead_core.strategies.lookahead_options import MODES
from lookahead_core.tree import Node, TokenTree
from tests.conftest import tiny_llama
from tests.document.test_joint_lookaheads import assert_same, prompts
from tests.engines.test_engine_laws import LIMITS, assert_rows_equal_plain, evaluate_in_passes, random_tree
from tests.engines.test_out_of_memory import head_of
from tests.support.families import CACHED, FAMILIES, GROUPED, VOCABULARY, greedy, make
from tests.support.plain_forward import plain_logprobs

pytestmark = pytest.mark.cuda
GPU = "cuda"
NOT_RECORDED = {"mixtral", "falcon"}
"""Families whose forward waits for the GPU or copies to it, which a graph cannot record."""
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9]


def loaded(hf_model: Any, **options: Any) -> Model:
    return load_model(hf_model.to(GPU), **{"tokenizer": None} | options)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_prediction_equals_a_plain_forward_over_its_path(family: str, limit: int) -> None:
    hf_model = make(family, limit)
    model = loaded(hf_model)
    assert isinstance(model.engine, CachedEngine if family in CACHED else UncachedEngine), model.engine_reason
    for seed in (0, 1):
        _, nodes = random_tree(limit, seed)
        rows = evaluate_in_passes(model.engine, nodes, 7, seed)
        assert rows.device.type == GPU
        assert_rows_equal_plain(hf_model, nodes, rows)
    if isinstance(model.engine, CachedEngine):
        graphs = model.engine.graphs
        if family in NOT_RECORDED:
            assert graphs is None
            assert "CUDA graphs are not used" in model.computation.reason
            return
        assert graphs is not None, model.computation.reason
        assert graphs.replays >= 4, "the fifth pass of a size replays its graph"
        assert not graphs.failure


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma3", "bloom"])
@pytest.mark.parametrize("mode", MODES)
def test_a_lookahead_finds_the_same_branches_as_on_the_cpu(family: str, mode: str) -> None:
    on_cpu, on_gpu = load_model(make(family), tokenizer=None), loaded(make(family))
    for prompt in prompts(1):
        options: dict[str, Any] = {"k": 4, "depth": 8, "mode": mode, "seed": 3, "banned": {5}}
        found = Document(on_gpu, token_ids=prompt).lookahead(**options)
        assert_same(found, Document(on_cpu, token_ids=prompt).lookahead(**options))


def test_beams_are_those_of_the_cpu() -> None:
    on_cpu, on_gpu = load_model(make("llama"), tokenizer=None), loaded(make("llama"))
    found, expected = (
        Document(model, token_ids=PROMPT).beam_search(num_beams=4, max_new_tokens=8).branches
        for model in (on_gpu, on_cpu)
    )
    assert [beam.token_ids for beam in found] == [beam.token_ids for beam in expected]


@pytest.mark.parametrize("speculate", [False, True])
def test_a_greedy_stream_is_what_transformers_generates(speculate: bool) -> None:
    model = loaded(make("llama"))
    steps = Document(model, token_ids=PROMPT).stream(max_new_tokens=60, stop_ids=[], speculate=speculate)
    assert [step.token_id for step in steps] == greedy(model, PROMPT, 60)


@pytest.mark.parametrize("speculate", [False, True])
def test_a_drawn_stream_is_that_of_the_cpu(speculate: bool) -> None:
    streams = [
        Document(model, token_ids=PROMPT).stream(max_new_tokens=40, temperature=0.8, seed=3, speculate=speculate)
        for model in (loaded(make("llama")), load_model(make("llama"), tokenizer=None))
    ]
    found, expected = ([step.token_id for step in stream] for stream in streams)
    assert found == expected


def test_single_log_probabilities_are_those_of_a_plain_forward(byte_tokenizer: Any) -> None:
    model = loaded(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    ids = PROMPT * 8
    head = head_of(1)
    nodes = [head]
    for token_id in ids:
        nodes.append(nodes[-1].tree.expand(nodes[-1], token_id))
    found = model.engine.next_logprobs(nodes[:-1], ids)
    expected = plain_logprobs(model, [node.token_id for node in nodes])[:-1]
    assert found == pytest.approx([float(row[token]) for row, token in zip(expected, ids, strict=True)], abs=1e-4)
    document = Document(model, "The old keeper said that the sea and the sky were grey.")
    assert len(highlights(document).entries) > 5


def test_a_pass_that_finds_no_memory_on_the_gpu_is_made_again_in_smaller_ones() -> None:
    wide = transformers.LlamaConfig(**GROUPED | {"intermediate_size": 16_384, "max_position_embeddings": 4096})
    torch.manual_seed(0)
    hf_model = transformers.LlamaForCausalLM(wide).eval()
    model = loaded(hf_model)
    engine = model.engine
    few = [token % VOCABULARY for token in range(40)]
    engine.evaluate([head_at(few)])
    head = head_at([token % VOCABULARY for token in range(1500)])
    before = engine.passes
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    try:
        # A pass of 512 tokens needs several tensors of 32 MiB, one of 64 tokens such of 4 MiB.
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 44 * 2**20) / total)
        engine.prefill([head])
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert engine.passes - before > 3, "the limit was too high to be met"
    assert engine.nodes_to_prefill(head) == []
    assert_rows_equal_plain(hf_model, [head], engine.evaluate([head]))


def head_at(token_ids: list[int]) -> Node:
    tree = TokenTree()
    head = tree.descend(tree.root, token_ids)
    tree.move_head(head)
    return head


def test_trees_that_take_turns_in_recorded_passes_keep_their_keys_and_values() -> None:
    hf_model = tiny_llama(300).to(GPU)
    engine = CachedEngine(hf_model, cache_bytes=2**26)
    engine.use_graphs(record_at=1)
    heads = [head_of(length, first=length) for length in (20, 33, 47)]
    for turn in range(30):
        head = heads[turn % 3]
        leaves = [head.tree.expand(head, 10 * turn + token) for token in range(1 + turn % 7)]
        below = [leaf.tree.expand(leaf, 7) for leaf in leaves]
        engine.evaluate(leaves)
        assert_rows_equal_plain(hf_model, below, engine.evaluate(below))
        engine.free([*leaves, *below] if turn % 2 else [])
    assert engine.graphs is not None
    assert engine.graphs.replays >= 54


def waits(compute: Callable[[], object]) -> Counter[str]:
    """Run a computation; return how often each line waited for the GPU, as torch reports it."""
    torch.cuda.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            compute()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return Counter(f"{each.filename}:{each.lineno}" for each in caught if "synchroniz" in str(each.message))


def test_a_step_of_a_lookahead_waits_for_its_results_twice() -> None:
    model = loaded(make("llama"))
    counts = {}
    for depth in (8, 12):
        Document(model, token_ids=[*PROMPT, depth]).lookahead(k=5, depth=depth)  # records the graphs
        fresh = Document(model, token_ids=[*PROMPT, depth, depth])
        counts[depth] = waits(lambda fresh=fresh, depth=depth: fresh.lookahead(k=5, depth=depth))
    added = counts[12] - counts[8]
    # Copies of a pass's inputs to the GPU wait too, but for nothing: it has computed what came before.
    inputs = {where for where in added if "graph_passes" in where or "cached" in where}
    assert sum(added[where] for where in inputs) <= 4 * 3, added
    assert sum(added.values()) - sum(added[where] for where in inputs) <= 4 * 2, added


def test_energy_is_measured_by_the_gpu() -> None:
    counter = energy_counter(GPU)
    assert counter.source == NVML
    before = counter.read()
    matrix = torch.ones(4096, 4096, device=GPU)
    for _ in range(200):
        matrix = matrix @ matrix * 1e-4
    torch.cuda.synchronize()
    assert counter.read() > before


def test_a_folder_is_loaded_to_the_gpu_in_half_precision(tmp_path: Any, byte_tokenizer: Any) -> None:
    tiny_llama(len(byte_tokenizer)).save_pretrained(tmp_path)
    byte_tokenizer.save_pretrained(tmp_path)
    model = load_model(str(tmp_path))
    assert (model.device, model.dtype) == ("cuda:0", "bfloat16")
    result = Document(model, "The old keeper").lookahead(k=3, depth=4)
    assert len(result.branches) == 3
    assert "CUDA" in model.describe()
