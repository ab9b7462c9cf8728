"""Layers compiled for the processor compute what transformers' own layers do."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from lookahead_core import Settings, load_model
from lookahead_core.engines.cache import FlatCache
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.cpu import compiled_layers, prepare
from lookahead_core.engines.cpu.compiled_layers import (
    ROWS,
    CompiledLayers,
    compile_layers,
    multiplies_pairs,
    paired_inputs,
    paired_outputs,
    registers,
)
from lookahead_core.engines.cpu.llama_layers import CompiledForward, float32_reference, use_compiled_layers
from lookahead_core.engines.cpu.output_head import CompiledHead
from lookahead_core.engines.cpu.packed_matrix import PackedLinear, packs
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.tree import Node, TokenTree
from tests.engines.cpu.test_llama_layers import LLAMA_SHAPED, random_model
from tests.engines.test_engine_laws import assert_rows_equal_plain, evaluate_in_passes, random_tree
from tests.support.families import GROUPED
from tests.support.parameters import mostly_slow

pytestmark = pytest.mark.skipif(
    registers() is None or not packs(torch.float32), reason="nothing is compiled for this processor"
)
WEIGHTS = ["input_norm", "qkv", "bias", "query_norm", "key_norm", "o_proj", "mlp_norm", "gate_up", "down"]
KINDS = [kind for kind in compiled_layers.REGISTERS if registers() and kind[1] <= registers()[0]]
"""Registers that this processor has, widest first: one with AVX-512 has those of AVX2 as well."""
SLOW = [pytest.mark.slow]


@pytest.fixture(params=[pytest.param(kind, marks=SLOW[: kind != KINDS[0]], id=kind[0]) for kind in KINDS])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compile for the widest registers of this processor, and among the slow tests for the others too."""
    name, *found = request.param
    monkeypatch.setattr(compiled_layers, "registers", lambda: tuple(found))
    return str(name)


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """One thread, and three, by which no number of columns is divisible."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets the number of rows of each call of compiled layers from now on."""
    counts: list[int] = []
    call = CompiledLayers.__call__
    monkeypatch.setattr(
        CompiledLayers, "__call__", lambda self, rows, *given: counts.append(len(rows)) or call(self, rows, *given)
    )
    return counts


def compiled_of(hf_model: Any) -> CompiledLayers | None:
    """A model's layers, compiled; None where they cannot be."""
    return compile_layers(list(hf_model.model.layers), float32_reference)[0]


def engine_of(hf_model: Any) -> CachedEngine:
    """An engine with compiled layers."""
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    engine.computation = prepare.prepare(engine.model_copy)
    assert engine.computation.few_rows == prepare.COMPILED
    return engine


@pytest.mark.slow
@pytest.mark.parametrize("family", mostly_slow(LLAMA_SHAPED, 2))
def test_through_compiled_layers_every_prediction_equals_a_plain_forward(family: str, kind: str) -> None:
    hf_model = random_model(family, saved_in_bfloat16=True)
    engine = engine_of(hf_model)
    for seed, size in ((0, 1), (1, 7), (2, 100), (3, 20)):
        _, nodes = random_tree(8, seed)
        assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, size, seed))


@pytest.mark.parametrize("family", mostly_slow(LLAMA_SHAPED, 2))
def test_through_compiled_layers_trees_that_share_a_pass_are_kept_apart(family: str, threads: int) -> None:
    hf_model = random_model(family, saved_in_bfloat16=True)
    nodes: list[Node] = [node for seed in range(3) for node in random_tree(8, seed)[1]]
    assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine_of(hf_model), nodes, 12, 5))


both_types = pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(dtype, marks=pytest.mark.skipif(not packs(dtype), reason=f"{dtype} cannot be packed here"))
        for dtype in (torch.float32, torch.bfloat16)
    ],
)


@pytest.mark.slow
@both_types
def test_a_text_has_the_same_bits_however_many_of_its_tokens_share_a_pass(dtype: torch.dtype, kind: str) -> None:
    engine, found = engine_of(random_model("llama", saved_in_bfloat16=True).to(dtype)), []
    for size in (1, 2, 5, 9, 16, 40, ROWS):
        tree = TokenTree()
        nodes = list(itertools.accumulate(range(1, ROWS + 1), tree.expand, initial=tree.root))[1:]
        scores = [engine.score(nodes[first : first + size], hidden=True) for first in range(0, ROWS, size)]
        found.append(torch.cat([one.hidden for one in scores if one.hidden is not None]))
    assert len(found[0]) == ROWS and all(torch.equal(one, found[0]) for one in found)


@both_types
@pytest.mark.parametrize("family", mostly_slow(LLAMA_SHAPED, 2))
def test_a_path_has_the_same_bits_whatever_branches_lie_between_its_tokens(
    family: str, dtype: torch.dtype, kind: str
) -> None:
    engine = engine_of(random_model(family, saved_in_bfloat16=True).to(dtype))
    path = [7 * index % 90 + 1 for index in range(1, 19)]
    found = []
    for branches in (0, 1, 3):
        tree, node, vectors = TokenTree(), None, []
        for token_id in path:
            siblings = [tree.expand(node or tree.root, token_id + other) for other in range(1, branches + 1)]
            node = tree.expand(node or tree.root, token_id)
            # Siblings come before the path's own node, so that their slots lie between its ancestors.
            engine.score([*siblings, node])
            vectors.append(engine.score([node], hidden=True).hidden)
        found.append(torch.cat(vectors))
    assert all(torch.equal(one, found[0]) for one in found[1:])


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(
            {"hidden_size": 704, "intermediate_size": 1376, "head_dim": 128, "num_attention_heads": 4},
            marks=pytest.mark.slow,
        ),
        {"hidden_size": 32, "intermediate_size": 32, "head_dim": 32, "num_attention_heads": 8},
        {"hidden_size": 96, "intermediate_size": 64, "head_dim": 96, "num_attention_heads": 2, "rms_norm_eps": 0.1},
    ],
    ids=["long sums, wide heads", "as narrow as can be", "heads of six registers, and a norm that shrinks"],
)
def test_layers_of_any_widths_that_fit_give_what_a_plain_forward_gives(shape: dict[str, Any], kind: str) -> None:
    config = transformers.LlamaConfig(**GROUPED | shape | {"num_key_value_heads": 1})
    torch.manual_seed(0)
    hf_model = transformers.LlamaForCausalLM(config).eval()
    for parameter in hf_model.parameters():
        parameter.data.normal_(1, 0.3) if parameter.dim() == 1 else parameter.data.normal_(
            0, parameter.shape[1] ** -0.5
        )
        parameter.data = parameter.data.bfloat16().float()
    hf_model.lm_head.weight.data *= 4
    engine = engine_of(hf_model)
    for size in (5, 13, 29):
        _, nodes = random_tree(8, size, nodes=size)
        assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, size, size))


@pytest.mark.slow
@pytest.mark.skipif(not packs(torch.bfloat16), reason="bfloat16 is not packed here")
def test_in_bfloat16_long_sums_and_wide_heads_are_near_to_float32_and_have_the_same_bits_in_any_pass(kind: str) -> None:
    shape = {"hidden_size": 704, "intermediate_size": 1376, "head_dim": 128, "num_attention_heads": 4}
    torch.manual_seed(0)
    hf_model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED | shape)).eval().bfloat16()
    engine, plain, found = engine_of(hf_model), UncachedEngine(copy.deepcopy(hf_model).float()), []
    for size in (1, 5, 13, 29):
        _, nodes = random_tree(8, 0, nodes=29)
        found.append(evaluate_in_passes(engine, nodes, size, size))
    expected = plain.evaluate(nodes)
    assert float((found[0] - expected).abs().max()) <= 3e-2 * float(expected.abs().max())
    assert all(torch.equal(one, found[0]) for one in found)


@pytest.mark.skipif(not packs(torch.bfloat16), reason="bfloat16 is not packed here")
@pytest.mark.parametrize("family", mostly_slow(LLAMA_SHAPED, 1))
def test_in_bfloat16_compiled_layers_are_closer_to_the_exact_odds_than_packed_matrices(family: str) -> None:
    hf_model = random_model(family, saved_in_bfloat16=True)
    differences = []
    for compute in ("packed", "auto"):
        engine = CachedEngine(copy.deepcopy(hf_model).bfloat16(), cache_bytes=1 << 30)
        prepare.prepare(engine.model_copy, compute=compute)
        for seed, size in ((1, 7), (0, 1)):
            _, nodes = random_tree(8, seed)
            rows, expected = evaluate_in_passes(engine, nodes, size, seed), UncachedEngine(hf_model).evaluate(nodes)
            assert float((rows - expected).abs().max()) <= 3e-2 * float(expected.abs().max())
        differences.append(float((rows - expected).abs().mean()))
    assert differences[1] < 0.85 * differences[0]


@pytest.mark.skipif(not packs(torch.bfloat16), reason="bfloat16 is not packed here")
@pytest.mark.parametrize("pairs", [False, True], ids=["rows of float32", "rows of bfloat16 if the processor can"])
def test_rows_and_what_is_put_into_a_narrow_cache_are_rounded_to_the_nearest(
    pairs: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not pairs:
        monkeypatch.setattr(compiled_layers, "multiplies_pairs", lambda lanes: False)
    hf_model = random_model("llama", saved_in_bfloat16=True)
    engine, tree, ids = engine_of(copy.deepcopy(hf_model).bfloat16()), TokenTree(), range(1, 21)
    shape = engine.model_copy.forward.compiled.shape
    assert shape.bf16_rows == (pairs and multiplies_pairs(shape.lanes))
    engine.evaluate([tree.descend(tree.root, ids)])
    assert isinstance(tree.cache, FlatCache)
    # Of the first layer, before which nothing else was rounded. (Keys are turned by angles that were.)
    found, layer = tree.cache.layers[0].values[0, :, :20], hf_model.model.layers[0]
    with torch.no_grad():
        rows = layer.input_layernorm(hf_model.model.embed_tokens(torch.tensor(ids)))
        if shape.bf16_rows:
            rows = rows.bfloat16()
        exact = (rows.double() @ layer.self_attn.v_proj.weight.double().T).unflatten(1, (-1, found.shape[2]))
    assert found.dtype is torch.bfloat16
    # A sum in float32 may be on the other side of the middle between two numbers of bfloat16.
    assert float((found != exact.transpose(0, 1).bfloat16()).double().mean()) <= 0.005
    if not shape.bf16_rows:
        wide_engine, wide_tree = engine_of(hf_model), TokenTree()
        wide_engine.evaluate([wide_tree.descend(wide_tree.root, ids)])
        assert isinstance(wide_tree.cache, FlatCache)
        assert torch.equal(wide_tree.cache.layers[0].values[0, :, :20].bfloat16(), found)


@both_types
def test_a_compiled_output_matrix_gives_what_the_plain_one_gives(dtype: torch.dtype, kind: str) -> None:
    layers = compiled_of(random_model("llama", saved_in_bfloat16=True))
    assert layers is not None
    plain = torch.nn.Linear(704, 64 * layers.shape.group_width, bias=False).bfloat16().to(dtype)
    assert layers.takes(plain)
    head = CompiledHead(plain.weight, layers)
    with torch.no_grad():
        for count in (0, 1, 6, 11, ROWS, ROWS + 1):
            rows = torch.randn(1, count, 704, generator=torch.Generator().manual_seed(count))
            given = rows.to(dtype)
            expected = given.double() @ plain.weight.double().t()
            found = head(given)
            assert (found.shape, found.dtype) == (expected.shape, torch.float32)
            assert torch.allclose(found.double(), expected, rtol=0, atol=1e-6 * 704**0.5)


@pytest.mark.parametrize(
    ("head", "taken"),
    [
        (torch.nn.Linear(64, 96, bias=False).bfloat16().float(), True),
        (torch.nn.Linear(64, 96, bias=True).bfloat16().float(), False),
        (torch.nn.Linear(64, 90, bias=False).bfloat16().float(), False),
        (torch.nn.Linear(64, 96, bias=False), False),
    ],
    ids=["fits", "has a bias", "no multiple of the registers", "not exact in bfloat16"],
)
def test_which_output_matrices_are_compiled(head: torch.nn.Linear, taken: bool) -> None:
    layers = compiled_of(random_model("llama", saved_in_bfloat16=True))
    assert layers is not None and layers.takes(head) == taken
    hf_model = random_model("llama", saved_in_bfloat16=True)
    hf_model.set_output_embeddings(head)
    engine = engine_of(hf_model)
    assert isinstance(engine.model_copy.get_output_embeddings(), CompiledHead) == taken
    assert engine.computation.exact_rows == (ROWS if taken else 0)


def test_matrices_are_laid_out_at_the_beginning_of_a_line_and_two_outputs_or_inputs_to_a_number() -> None:
    weight = torch.arange(32 * 3).view(32, 3).bfloat16()
    found = paired_outputs(weight, 8)
    assert found.shape == (2, 3, 8, 2) and found.data_ptr() % 64 == 0
    assert found.view(torch.bfloat16)[1, 2, 5].tolist() == [weight[16 + 5, 2].item(), weight[16 + 8 + 5, 2].item()]
    weight = torch.arange(32 * 4).view(32, 4).bfloat16()
    found = paired_inputs(weight, 8)
    assert found.shape == (2, 2, 2, 8, 2) and found.data_ptr() % 64 == 0
    assert found.view(torch.bfloat16)[1, 1, 1, 5].tolist() == weight[16 + 8 + 5, 2:].tolist()


def other_norm(hf_model: Any) -> None:
    hf_model.model.layers[1].input_layernorm.variance_epsilon = 0.5


def other_width(hf_model: Any) -> None:
    mlp = hf_model.model.layers[1].mlp
    mlp.gate_proj, mlp.up_proj = (torch.nn.Linear(64, 64, bias=False).bfloat16().float() for _ in range(2))
    mlp.down_proj = torch.nn.Linear(64, 64, bias=False).bfloat16().float()


def more_digits(hf_model: Any) -> None:
    hf_model.model.layers[1].mlp.up_proj.weight.data += 1e-5


REASONS = {
    other_norm: "differ in epsilon|differ in shape",
    other_width: "differ in shape",
    more_digits: "do not fit into bfloat16",
}


@pytest.mark.parametrize("change", REASONS)
def test_layers_that_the_kernels_would_change_are_not_compiled(change: Any) -> None:
    hf_model = random_model("llama", saved_in_bfloat16=True)
    assert compiled_of(hf_model) is not None
    change(hf_model)
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    assert re.search(REASONS[change], use_compiled_layers(engine.model_copy))
    assert not isinstance(engine.model_copy.forward, CompiledForward)
    _, nodes = random_tree(8, 1)
    assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, 7, 1))


@pytest.mark.parametrize(
    "part", ["mlp.up_proj", "mlp.down_proj", "self_attn.v_proj", "self_attn.o_proj", "input_layernorm"]
)
def test_layers_that_lack_some_of_their_weights_are_not_compiled(part: str) -> None:
    hf_model = random_model("llama", saved_in_bfloat16=True)
    cut = hf_model.model.layers[1].get_submodule(part)
    cut.weight.data = cut.weight.data[: len(cut.weight) // 2].clone()
    compiled, reason = compile_layers(hf_model.model.layers, float32_reference)
    assert compiled is None and reason


def test_layers_with_a_bias_that_the_kernels_do_not_know_are_not_compiled() -> None:
    hf_model = random_model("llama", saved_in_bfloat16=True)
    hf_model.model.layers[1].mlp.down_proj.bias = torch.nn.Parameter(torch.ones(64))
    assert compile_layers(hf_model.model.layers, float32_reference) == (None, "a projection has a bias")


def refused(*given: Any) -> None:
    raise OSError("Nothing here may be written and run")


@pytest.mark.parametrize("missing", ["llvm", "openmp", "registers", "memory"])
def test_where_nothing_can_be_compiled_packed_matrices_are_used(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing == "llvm":
        monkeypatch.setattr(compiled_layers, "binding", None)
    if missing == "openmp":
        monkeypatch.setattr(compiled_layers, "_openmp", lambda: None)
    if missing == "registers":
        monkeypatch.setattr(compiled_layers, "REGISTERS", ())
    if missing == "memory":
        compiled_layers.functions_for.cache_clear()
        monkeypatch.setattr(compiled_layers.binding, "check_jit_execution", refused)
    hf_model = random_model("llama", saved_in_bfloat16=True)
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    reason = prepare.prepare(engine.model_copy).reason
    assert ("Nothing here may be written and run" if missing == "memory" else "compiling needs Linux") in reason
    _, nodes = random_tree(8, 1)
    assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, 7, 1))


@pytest.mark.slow
@both_types
@pytest.mark.parametrize("name", mostly_slow(WEIGHTS, 4))
def test_wrong_weights_are_found_by_comparison_with_the_float32_reference(name: str, dtype: torch.dtype) -> None:
    layers, shape = shaped(random_model("llama", saved_in_bfloat16=True).to(dtype))
    compiled = CompiledLayers(layers[:1], shape)
    assert compiled_layers.agrees(compiled, float32_reference(layers[0]))
    assert list(compiled_layers.weight_shapes(shape)) == WEIGHTS
    wrong = compiled._weights[0][WEIGHTS.index(name)]
    wrong = wrong.view(torch.bfloat16) if wrong.dtype is torch.int16 else wrong
    wrong *= 1.2
    assert compiled_layers.agrees(compiled, float32_reference(layers[0])) == (not wrong.numel())


@pytest.mark.parametrize("place", [0, -1])
def test_layers_are_not_compiled_if_the_first_or_the_last_is_computed_wrongly(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = random_model("llama", saved_in_bfloat16=True).model.layers
    weights_of = CompiledLayers._weights_of

    def spoiled(self: CompiledLayers, layer: Any) -> list[torch.Tensor]:
        parts = weights_of(self, layer)
        return [part * 2 for part in parts] if layer is layers[place] else parts

    monkeypatch.setattr(CompiledLayers, "_weights_of", spoiled)
    assert compile_layers(layers, float32_reference) == (
        None,
        "a compiled layer differs from the same layer in float32",
    )


def shaped(hf_model: Any) -> tuple[Any, Any]:
    """Layers and their shape, here."""
    return hf_model.model.layers, compiled_layers.shape_of(hf_model.model.layers[0])


def test_what_does_not_fit_is_refused_before_anything_is_written() -> None:
    compiled = CompiledLayers(*shaped(random_model("llama", saved_in_bfloat16=True)))
    rows, rope, (one, other) = compiled_layers.random_pass(compiled, [(2, 5), (3, 9)])
    compiled(rows, rope, [one, other])
    with pytest.raises(ValueError, match="do not fit"):
        compiled(rows, rope, [one, replace(other, start=10, mask=other.mask.new_zeros(1, 1, 3, 13))])
    with pytest.raises(ValueError, match="mask"):
        compiled(rows, rope, [one, replace(other, mask=other.mask[..., :11])])
    with pytest.raises(ValueError, match="cache"):
        compiled(rows, rope, [one, replace(other, cache=[(keys, values.double()) for keys, values in other.cache])])
    with pytest.raises(ValueError, match="cache"):
        compiled(rows, rope, [one, replace(other, cache=[(keys, values[:, :, 1:]) for keys, values in other.cache])])
    with pytest.raises(ValueError, match="fit into"):
        compiled(rows, rope, [one, replace(other, cache=other.cache[:1])])
    with pytest.raises(ValueError, match="rows"):
        compiled(rows[:4], rope[:4], [one, other])
    with pytest.raises(ValueError, match="ropes"):
        compiled(rows, rope[:, 1:], [one, other])


def test_what_is_no_number_stays_none_and_stays_where_it_is() -> None:
    hf_model = random_model("llama", saved_in_bfloat16=True)
    compiled = CompiledLayers(*shaped(hf_model))
    rows, rope, trees = compiled_layers.random_pass(compiled, [(2, 5), (3, 9)])
    counts = [tree.count for tree in trees]
    with torch.inference_mode():
        rows[2, 7] = float("nan")
        ours, theirs = compiled(rows, rope, trees), []
        for tree, some, angles in zip(trees, rows.split(counts), rope.split(counts), strict=True):
            for index, layer in enumerate(hf_model.model.layers):
                alone = replace(tree, cache=[tree.cache[index]])
                some = float32_reference(layer)(some, angles, [alone])
            theirs.append(some)
    theirs = torch.cat(theirs)
    assert torch.equal(ours.isnan(), theirs.isnan()) and 0 < int(ours.isnan().sum()) < ours.numel()


def test_passes_do_not_care_what_pytorch_makes_unasked_or_how_many_threads_it_has() -> None:
    compiled = CompiledLayers(*shaped(random_model("llama", saved_in_bfloat16=True)))
    given = compiled_layers.random_pass(compiled, [(7, 30)])
    expected = compiled(*given)
    before = torch.get_num_threads()
    try:
        for dtype in (torch.bfloat16, torch.float64):
            torch.set_default_dtype(dtype)
            assert torch.equal(compiled(*given), expected)
        torch.set_default_dtype(torch.float32)
        for threads in (1, 7, 2):
            torch.set_num_threads(threads)
            assert torch.equal(compiled(*given), expected)
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(before)


def test_passes_of_several_models_at_once_are_kept_apart() -> None:
    compiled = [CompiledLayers(*shaped(random_model("llama", saved_in_bfloat16=True))) for _ in range(3)]
    given = [compiled_layers.random_pass(one, [(count, 40)]) for one, count in zip(compiled, (1, 6, 13), strict=True)]
    expected = [one(*some) for one, some in zip(compiled, given, strict=True)]
    with ThreadPoolExecutor(3) as pool:
        for _ in range(40):
            found = pool.map(lambda one, some: one(*some), compiled, given)
            assert all(map(torch.equal, found, expected))


@both_types
def test_a_loaded_model_says_how_it_computes(dtype: torch.dtype) -> None:
    hf_model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED)).eval().bfloat16().to(dtype)
    engine: Any = load_model(hf_model, tokenizer=None).engine
    assert engine.computation.few_rows == "layers compiled by LLVM" and engine.computation.exact_rows == ROWS
    assert isinstance(engine.model_copy.forward, CompiledForward)
    assert isinstance(engine.model_copy.get_output_embeddings(), CompiledHead)
    _, nodes = random_tree(8, 1)
    plain = copy.deepcopy(hf_model).float()
    rows, expected = evaluate_in_passes(engine, nodes, 7, 1), UncachedEngine(plain).evaluate(nodes)
    bound = 1e-5 if dtype is torch.float32 else 3e-2
    assert float((rows - expected).abs().max()) <= bound * float(expected.abs().max())


def test_compiled_layers_are_left_out_if_asked_or_if_their_copies_are_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hf_model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED)).eval().bfloat16().float()
    size = sum(2 * one.weight.numel() for one in hf_model.modules() if type(one) is torch.nn.Linear)
    for compute, allowed, compiles in (("auto", size, True), ("auto", size - 1, False), ("packed", size, False)):
        monkeypatch.setattr(prepare, "COPY_BYTES", allowed)
        engine: Any = load_model(hf_model, tokenizer=None, settings=Settings(compute=compute)).engine
        assert (engine.computation.exact_rows == ROWS) == compiles
        assert bool(engine.computation.reason) != compiles


@both_types
def test_small_trees_of_a_large_pass_share_calls_of_compiled_layers(
    dtype: torch.dtype, called: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    engine = engine_of(random_model("llama", saved_in_bfloat16=True).to(dtype))
    called.clear()  # those by which compiled layers were checked

    def nodes_of(counts: list[int]) -> list[Node]:
        trees = [TokenTree() for _ in counts]
        return [
            tree.expand(tree.root, token) for tree, count in zip(trees, counts, strict=True) for token in range(count)
        ]

    counts = [5] * 20 + [ROWS + 3, 5, 5]
    together = engine.evaluate(nodes_of(counts))
    assert called == [60, 40, ROWS, 13], "as many trees as fit into a call, and the rest of a larger tree with others"
    alone = torch.cat([engine.evaluate(nodes_of([count])) for count in counts])
    assert torch.equal(together, alone)


@both_types
@pytest.mark.parametrize("amx", [False, True])
def test_a_larger_pass_is_compiled_in_parts_except_in_bfloat16_with_amx(
    dtype: torch.dtype, amx: bool, called: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    engine = engine_of(random_model("llama", saved_in_bfloat16=True).to(dtype))
    called.clear()  # those by which compiled layers were checked
    for count in (ROWS, ROWS + 1):
        tree = TokenTree()
        engine.evaluate([tree.descend(tree.root, [1 + index % 90 for index in range(count)])])
    assert called == ([ROWS] if amx and dtype is torch.bfloat16 else [ROWS, ROWS, 1])
    packed = any(isinstance(module, PackedLinear) for module in engine.model_copy.modules())
    assert packed == (amx and dtype is torch.bfloat16), "packed copies are made only where they are used"


@pytest.mark.parametrize("shape", [{"hidden_size": 72}, {"intermediate_size": 100}, {"head_dim": 20}, {"head_dim": 4}])
def test_widths_that_registers_do_not_divide_are_not_compiled(shape: dict[str, int]) -> None:
    hf_model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED | shape)).eval().bfloat16().float()
    assert compiled_of(hf_model) is None
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    assert "multiples of the processor's registers" in prepare.prepare(engine.model_copy).reason
    _, nodes = random_tree(8, 1)
    assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, 7, 1))


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or importlib.util.find_spec("llvmlite") is None,
    reason="nothing is compiled on such machines",
)
def test_on_processors_with_these_registers_layers_can_be_compiled() -> None:
    flags = Path("/proc/cpuinfo").read_text().split()
    assert (registers() is not None) == ("avx2" in flags and "fma" in flags)


OLD = """class binding: pass
class ir:
    def PointerType(pointee): pass"""


IMPORT_WITH_EACH_FAULT = """
import importlib, sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
stub = Path(sys.argv[1], "llvmlite", "__init__.py")
stub.parent.mkdir()
for fault in sys.argv[2:]:
    stub.write_text(fault)
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if "llvm" in name or name.endswith("compiled_layers")]:
        del sys.modules[name]
    compiled_layers = importlib.import_module("lookahead_core.engines.cpu.compiled_layers")
    assert compiled_layers.registers() is None, fault
"""


@pytest.mark.slow
def test_without_llvm_or_with_one_that_cannot_be_loaded_all_else_is_there(tmp_path: Path) -> None:
    """Without it, with one that is broken, and with one that is too old."""
    faults = ["raise ImportError", "raise OSError", OLD]
    command = [sys.executable, "-B", "-c", IMPORT_WITH_EACH_FAULT, str(tmp_path), *faults]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[3])
