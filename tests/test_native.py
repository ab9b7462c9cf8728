"""Layers compiled for the processor compute what transformers' own do, and stand only where they can and are faster."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import transformers

from lookahead_core import load_model
from lookahead_core.engines import lean, native, products
from lookahead_core.engines.cache import FlatCache
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.native import NativeHead, NativeLayers, aligned, native_layers, paired, registers
from lookahead_core.engines.output import SharpHead
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.engines.ways import most_in_half, packs
from lookahead_core.tree import Node, TokenTree
from tests.families import GROUPED
from tests.test_engine_laws import assert_rows_equal_plain, evaluate_in_passes, random_tree
from tests.test_lean import COMMON, with_opinions

pytestmark = pytest.mark.skipif(
    registers() is None or not packs(torch.float32), reason="nothing is compiled for this processor"
)
KINDS = native.REGISTERS[[found[1:] for found in native.REGISTERS].index(registers()) :] if registers() else ()
"""Registers that this processor has: what it can do with long ones it can do with short ones."""


@pytest.fixture(autouse=True)
def compiled_whenever_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is faster is another question."""
    monkeypatch.setattr(native, "most_rows", lambda *given: 40)


@pytest.fixture(params=KINDS, ids=[kind[0] for kind in KINDS])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Registers that are long, or short."""
    name, *found = request.param
    monkeypatch.setattr(native, "registers", lambda: tuple(found))
    return str(name)


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Alone, or shared by threads among which nothing can be shared evenly."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def compiled_of(hf_model: Any) -> NativeLayers | None:
    """A model's layers, compiled, where they can be; what else could be done is not asked."""
    lean_layers = lean.LeanLayers(list(hf_model.model.layers), 0, False, True)
    return lean_layers.native


def engine_of(hf_model: Any) -> CachedEngine:
    """An engine whose layers are compiled."""
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    narrow = hf_model.dtype is torch.bfloat16
    if narrow:
        engine.twin.set_output_embeddings(SharpHead(engine.twin.get_output_embeddings()))
    assert isinstance(lean.use_lean_layers(engine.twin, widens=narrow), NativeLayers)
    return engine


@pytest.mark.parametrize("family", COMMON)
def test_through_compiled_layers_every_prediction_equals_a_plain_forward(family: str, kind: str) -> None:
    hf_model = with_opinions(family, saved_in_half=True)
    engine = engine_of(hf_model)
    for seed, size in ((0, 1), (1, 7), (2, 100), (3, 20)):
        _, nodes = random_tree(8, seed)
        assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, size, seed))


@pytest.mark.parametrize("family", COMMON)
def test_through_compiled_layers_trees_that_share_a_pass_are_kept_apart(family: str, threads: int) -> None:
    hf_model = with_opinions(family, saved_in_half=True)
    nodes: list[Node] = [node for seed in range(3) for node in random_tree(8, seed)[1]]
    assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine_of(hf_model), nodes, 12, 5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_through_compiled_layers_a_text_has_the_same_bits_however_many_of_its_tokens_come_at_once(
    dtype: torch.dtype, kind: str
) -> None:
    if not packs(dtype):
        pytest.skip("this processor multiplies no packed matrices of this type")
    engine, found = engine_of(with_opinions("llama", saved_in_half=True).to(dtype)), []
    for size in (1, 2, 5, 9, 16, 40):
        tree = TokenTree()
        nodes = list(itertools.accumulate(range(1, 41), tree.expand, initial=tree.root))[1:]
        scores = [engine.score(nodes[first : first + size], hidden=True) for first in range(0, 40, size)]
        found.append(torch.cat([one.hidden for one in scores if one.hidden is not None]))
    assert len(found[0]) == 40 and all(torch.equal(one, found[0]) for one in found)


@pytest.mark.parametrize(
    "shape",
    [
        {"hidden_size": 704, "intermediate_size": 1376, "head_dim": 128, "num_attention_heads": 4},
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
        _, nodes = random_tree(8, size)
        assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, size, size))


@pytest.mark.skipif(not packs(torch.bfloat16), reason="bfloat16 is not packed here")
@pytest.mark.parametrize("family", COMMON)
def test_a_narrow_model_is_closer_to_what_its_weights_say_through_compiled_layers(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = []
    for most in (0, 40):
        monkeypatch.setattr(native, "most_rows", lambda *given, most=most: most)
        monkeypatch.setattr("lookahead_core.engines.packed.most_in_half", lambda weight: 0)
        hf_model = with_opinions(family, saved_in_half=True)
        engine = CachedEngine(copy.deepcopy(hf_model).bfloat16(), cache_bytes=1 << 30)
        engine.twin.set_output_embeddings(SharpHead(engine.twin.get_output_embeddings()))
        assert (lean.use_lean_layers(engine.twin, widens=True) is None) == (most == 0)
        for seed, size in ((1, 7), (2, 100), (0, 1)):
            _, nodes = random_tree(8, seed)
            rows, expected = evaluate_in_passes(engine, nodes, size, seed), UncachedEngine(hf_model).evaluate(nodes)
            assert float((rows - expected).abs().max()) <= 3e-2 * float(expected.abs().max())
        apart.append(float((rows - expected).abs().mean()))
    assert apart[1] < 0.85 * apart[0]


@pytest.mark.skipif(not packs(torch.bfloat16), reason="bfloat16 is not packed here")
def test_what_compiled_layers_put_into_a_narrow_cache_is_rounded_to_the_nearest(kind: str) -> None:
    hf_model = with_opinions("llama", saved_in_half=True)
    kept = []
    for model in (hf_model, copy.deepcopy(hf_model).bfloat16()):
        engine, tree = engine_of(model), TokenTree()
        engine.evaluate([tree.descend(tree.root, range(1, 21))])
        assert isinstance(tree.cache, FlatCache)
        # Of the first layer, before which nothing was rounded. (Keys are turned by angles that were.)
        kept.append(tree.cache.layers[0].values[:, :, :20])
    wide, narrow = kept
    assert narrow.dtype is torch.bfloat16 and torch.equal(wide.bfloat16(), narrow)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_compiled_output_matrix_gives_what_the_plain_one_gives(dtype: torch.dtype, kind: str) -> None:
    if not packs(dtype):
        pytest.skip("this processor multiplies no packed matrices of this type")
    hf_model = with_opinions("llama", saved_in_half=True)
    layers = lean.use_lean_layers(CachedEngine(hf_model, cache_bytes=1 << 30).twin)
    assert layers is not None
    layers.most = 40
    plain = torch.nn.Linear(704, 64 * layers.shape.columns, bias=False).bfloat16().to(dtype)
    assert layers.takes(plain)
    head = products._packed_head(plain, layers)
    assert isinstance(head, NativeHead)
    with torch.no_grad():
        for count in (0, 1, 6, 11, 40, 41):
            rows = torch.randn(1, count, 704, generator=torch.Generator().manual_seed(count))
            given = rows if count <= 40 or dtype is torch.float32 else rows.to(dtype)
            expected = rows.double() @ plain.weight.double().t()
            bound = 1e-6 if given.dtype is torch.float32 else 2e-2
            assert head(given).shape == expected.shape
            assert torch.allclose(head(given).double(), expected, rtol=0, atol=bound * 704**0.5)


def test_matrices_are_laid_out_at_the_beginning_of_a_line_and_two_columns_to_a_number() -> None:
    weight = torch.arange(32 * 3).view(32, 3).bfloat16()
    found = paired(weight, 8)
    assert found.shape == (2, 3, 8, 2) and found.data_ptr() % 64 == 0
    assert found.view(torch.bfloat16)[1, 2, 5].tolist() == [weight[16 + 5, 2].item(), weight[16 + 8 + 5, 2].item()]
    assert aligned(torch.ones(5)).data_ptr() % 64 == 0


def other_norm(hf_model: Any) -> None:
    hf_model.model.layers[1].input_layernorm.variance_epsilon = 0.5


def other_width(hf_model: Any) -> None:
    mlp = hf_model.model.layers[1].mlp
    mlp.gate_proj, mlp.up_proj = (torch.nn.Linear(64, 64, bias=False).bfloat16().float() for _ in range(2))
    mlp.down_proj = torch.nn.Linear(64, 64, bias=False).bfloat16().float()


def more_digits(hf_model: Any) -> None:
    hf_model.model.layers[1].mlp.up_proj.weight.data += 1e-5


@pytest.mark.parametrize("change", [other_norm, other_width, more_digits])
def test_layers_that_the_kernels_would_change_are_not_compiled(change: Any) -> None:
    hf_model = with_opinions("llama", saved_in_half=True)
    assert compiled_of(hf_model) is not None
    change(hf_model)
    assert compiled_of(hf_model) is None
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    assert lean.use_lean_layers(engine.twin) is None
    _, nodes = random_tree(8, 1)
    assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, 7, 1))


@pytest.mark.parametrize(
    "part", ["mlp.up_proj", "mlp.down_proj", "self_attn.v_proj", "self_attn.o_proj", "input_layernorm"]
)
def test_layers_that_lack_some_of_their_weights_are_not_compiled(part: str) -> None:
    hf_model = with_opinions("llama", saved_in_half=True)
    cut = hf_model.model.layers[1].get_submodule(part)
    cut.weight.data = cut.weight.data[: len(cut.weight) // 2].clone()
    # What would be multiplied otherwise says so by itself.
    assert native_layers(hf_model.model.layers, torch.add, lean.exactly) is None


@pytest.mark.skipif(not most_in_half(torch.ones(1, 1)), reason="no products with halved matrices here")
@pytest.mark.parametrize(("most", "used"), [(16, True), (15, False)])
def test_there_is_one_way_for_few_rows_that_covers_all_of_them(
    most: int, used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookahead_core.engines.packed.most_in_half", lambda weight: 16)
    monkeypatch.setattr(native, "most_rows", lambda *given: most)
    hf_model = with_opinions("llama", saved_in_half=True)
    layers = lean.LeanLayers(list(hf_model.model.layers), 0, False, True)
    halves = [bool(matrix.halves) for layer in layers.run.layers for matrix in (layer.taken, layer.down)]
    assert (layers.native is not None, layers.few) == ((True, 0) if used else (False, 16))
    assert set(halves) == {not used}
    assert lean.LeanLayers(list(hf_model.model.layers), 0, False, False).native is None


def add_bias(hf_model: Any) -> None:
    hf_model.model.layers[1].mlp.down_proj.bias = torch.nn.Parameter(torch.ones(64))


def test_layers_with_a_bias_that_the_kernels_do_not_know_are_not_compiled() -> None:
    hf_model = with_opinions("llama", saved_in_half=True)
    add_bias(hf_model)
    assert native_layers(hf_model.model.layers, torch.add, lean.exactly) is None


def refused(*given: Any) -> None:
    raise OSError("Nothing here may be written and run")


@pytest.mark.parametrize("missing", ["llvm", "openmp", "registers", "memory"])
def test_where_nothing_can_be_compiled_layers_go_their_usual_way(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing == "llvm":
        monkeypatch.setattr(native, "binding", None)
    if missing == "openmp":
        monkeypatch.setattr(native, "_openmp", lambda: None)
    if missing == "registers":
        monkeypatch.setattr(native, "REGISTERS", ())
    if missing == "memory":
        native.functions_for.cache_clear()
        monkeypatch.setattr(native.binding, "check_jit_execution", refused)
    hf_model = with_opinions("llama", saved_in_half=True)
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    assert lean.use_lean_layers(engine.twin) is None
    _, nodes = random_tree(8, 1)
    assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, 7, 1))


def test_what_is_slower_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    compiled = NativeLayers(*shaped(with_opinions("llama", saved_in_half=True)))
    for ours, expected in ((1.0, native.TRIED_ROWS[0]), (3.0, 0)):
        monkeypatch.setattr(native, "fastest_turns", lambda ways, ours=ours: [ours, 2.0])
        assert native.most_rows(compiled, compiled) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("part", range(len(native.LAYER) if registers() else 0))
def test_what_comes_to_something_else_is_not_used(
    part: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers, shape = shaped(with_opinions("llama", saved_in_half=True).to(dtype))
    compiled = NativeLayers(layers[:1], shape)
    assert native.comes_to_the_same(compiled, lean.exactly(layers[0]))
    wrong = compiled._weights[0][part]
    wrong = wrong.view(torch.bfloat16) if wrong.dtype is torch.int16 else wrong
    wrong *= 1.2
    assert native.comes_to_the_same(compiled, lean.exactly(layers[0])) == (not wrong.numel())
    monkeypatch.setattr(native, "comes_to_the_same", lambda *given: False)
    assert native_layers(layers, torch.add, lean.exactly) is None


def shaped(hf_model: Any) -> tuple[Any, Any]:
    """Layers and their shape, here."""
    layers, found = hf_model.model.layers, registers()
    assert found is not None
    return layers, native._shape_of(layers[0], *found)


def test_what_does_not_fit_is_refused_before_anything_is_written() -> None:
    compiled = NativeLayers(*shaped(with_opinions("llama", saved_in_half=True)))
    rows, counts, starts, masks, keys, values, turning = native._trial(compiled, [2, 3], [5, 9])
    compiled(rows, counts, starts, masks, keys, values, turning)
    with pytest.raises(ValueError, match="do not fit"):
        compiled(rows, counts, [5, 10], [masks[0], masks[0].new_zeros(1, 1, 3, 13)], keys, values, turning)
    with pytest.raises(ValueError, match="mask"):
        compiled(rows, counts, starts, masks[::-1], keys, values, turning)
    with pytest.raises(ValueError, match="cache"):
        compiled(rows, counts, starts, masks, keys, [[one.double() for one in tree] for tree in values], turning)
    with pytest.raises(ValueError, match="cache"):
        compiled(rows, counts, starts, masks, keys, [[one[:, :, 1:] for one in tree] for tree in values], turning)
    with pytest.raises(ValueError, match="rows"):
        compiled(rows[:4], counts, starts, masks, keys, values, turning[:4])
    with pytest.raises(ValueError, match="turns"):
        compiled(rows, counts, starts, masks, keys, values, turning[:, 1:])


def test_what_is_no_number_stays_none_and_stays_where_it_is() -> None:
    hf_model = with_opinions("llama", saved_in_half=True)
    compiled = NativeLayers(*shaped(hf_model))
    usual = lean.LeanLayers(list(hf_model.model.layers), 0, False, False).usual
    given = native._trial(compiled, [2, 3], [5, 9])
    with torch.inference_mode():
        given[0][2, 7] = float("nan")
        ours, theirs = (way(*given) for way in (compiled, usual))
    assert torch.equal(ours.isnan(), theirs.isnan()) and 0 < int(ours.isnan().sum()) < ours.numel()


def test_passes_do_not_care_what_pytorch_makes_unasked_or_how_many_threads_it_has() -> None:
    compiled = NativeLayers(*shaped(with_opinions("llama", saved_in_half=True)))
    given = native._trial(compiled, [7], [30])
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
    compiled = [NativeLayers(*shaped(with_opinions("llama", saved_in_half=True))) for _ in range(3)]
    given = [native._trial(one, [count], [40]) for one, count in zip(compiled, (1, 6, 13), strict=True)]
    expected = [one(*some) for one, some in zip(compiled, given, strict=True)]
    with ThreadPoolExecutor(3) as pool:
        for _ in range(40):
            found = pool.map(lambda one, some: one(*some), compiled, given)
            assert all(map(torch.equal, found, expected))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_that_is_loaded_runs_through_compiled_layers_and_output_matrix(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not packs(dtype):
        pytest.skip("this processor multiplies no packed matrices of this type")
    monkeypatch.setattr(products, "packing_pays", lambda weights, **options: True)
    hf_model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED)).eval().bfloat16().to(dtype)
    engine: Any = load_model(hf_model, tokenizer=None).engine
    assert any(isinstance(one, lean.LeanLayers) and one.native is not None for one in engine.twin.modules())
    assert isinstance(engine.twin.get_output_embeddings(), NativeHead)
    _, nodes = random_tree(8, 1)
    plain = copy.deepcopy(hf_model).float()
    rows, expected = evaluate_in_passes(engine, nodes, 7, 1), UncachedEngine(plain).evaluate(nodes)
    bound = 1e-5 if dtype is torch.float32 else 3e-2
    assert float((rows - expected).abs().max()) <= bound * float(expected.abs().max())


@pytest.mark.parametrize("shape", [{"hidden_size": 72}, {"intermediate_size": 100}, {"head_dim": 20}, {"head_dim": 4}])
def test_widths_that_registers_do_not_divide_are_not_compiled(shape: dict[str, int]) -> None:
    hf_model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED | shape)).eval().bfloat16().float()
    assert compiled_of(hf_model) is None
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    lean.use_lean_layers(engine.twin)
    _, nodes = random_tree(8, 1)
    assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, 7, 1))
