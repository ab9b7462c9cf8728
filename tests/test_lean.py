"""Lean layers compute what transformers' own do, and stand only where that was shown."""

from __future__ import annotations

import copy
import weakref
from typing import Any

import pytest
import torch
import transformers

from lookahead_core import Document, load_model
from lookahead_core.engines import products
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.lean import LeanLayers, Run, Straight, common_layers, use_lean_layers
from lookahead_core.engines.output import SharpHead
from lookahead_core.engines.probe import fit
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.engines.ways import most_in_half, packs
from lookahead_core.tree import Node, TokenTree
from tests.conftest import tiny_llama
from tests.families import CACHED, FAMILIES, make
from tests.test_engine_laws import assert_rows_equal_plain, evaluate_in_passes, random_tree

COMMON = ("llama", "mistral", "qwen2", "qwen2_sliding", "qwen3", "granite")
"""Families whose layers are of the common shape; others only look so, or do not."""
packing = pytest.mark.skipif(not packs(torch.float32), reason="packed matrices need oneDNN")


def with_opinions(family: str, limit: int = 8, *, saved_in_half: bool = False) -> Any:
    """A model whose norms and biases are not ones and nothing: who forgets them is found out."""
    hf_model = make(family, limit)
    torch.manual_seed(1)
    for parameter in hf_model.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.3 * torch.randn_like(parameter)
        if saved_in_half:
            parameter.data = parameter.data.bfloat16().float()
    return hf_model


def lean_engine(hf_model: Any) -> CachedEngine:
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    use_lean_layers(engine.twin)
    return engine


@packing
@pytest.mark.parametrize("family", COMMON)
@pytest.mark.parametrize("limit", [8, 64])
def test_with_lean_layers_every_prediction_equals_a_plain_forward(family: str, limit: int) -> None:
    hf_model = with_opinions(family, limit)
    for seed, size in ((0, 1), (1, 7), (2, 100)):
        engine = lean_engine(hf_model)
        runs = [module for module in engine.twin.modules() if isinstance(module, LeanLayers)]
        assert [(run.first, run.last) for run in runs] == ([(0, 1), (1, 2)] if family == "qwen2_sliding" else [(0, 2)])
        _, nodes = random_tree(limit, seed)
        assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, size, seed))


@packing
@pytest.mark.parametrize("family", COMMON)
def test_a_model_with_nothing_beside_its_layers_is_gone_through_straight(family: str) -> None:
    engine = lean_engine(with_opinions(family))
    straight = vars(engine.twin).get("forward")
    assert isinstance(straight, Straight) == (family not in ("qwen2_sliding", "granite"))
    if straight is not None:
        # Else each would hold the other until somebody tidies up.
        assert isinstance(straight._twin, weakref.ProxyTypes)


@packing
@pytest.mark.parametrize("part", ["", "norm", "rotary_emb"])
def test_parts_that_somebody_listens_to_are_not_passed_by(part: str) -> None:
    hf_model = with_opinions("llama")
    heard: list[torch.nn.Module] = []
    hf_model.model.get_submodule(part).register_forward_hook(lambda module, *given: heard.append(module))
    engine = lean_engine(hf_model)
    root = TokenTree().root
    for token_id in (3, 4):
        # Also where nothing is new about where a row stands.
        heard.clear()
        engine.evaluate([root.tree.expand(root, token_id)])
        assert heard


@packing
def test_rows_are_turned_by_where_they_stand_however_far_that_is() -> None:
    hf_model = with_opinions("llama", 64)
    engine = lean_engine(hf_model)
    root = TokenTree().root
    near = root.tree.descend(root, [3, 1, 4])
    far = root.tree.descend(near, [index % 7 + 1 for index in range(50)])
    for nodes in ([near], [far], [near, far]):
        assert_rows_equal_plain(hf_model, nodes, engine.evaluate(nodes))


@packing
@pytest.mark.parametrize("family", COMMON)
def test_over_halved_matrices_every_prediction_equals_a_plain_forward(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not most_in_half(torch.ones(1, 1)):
        pytest.skip("no products with halved matrices here")
    monkeypatch.setattr("lookahead_core.engines.packed.most_in_half", lambda weight: 16)
    monkeypatch.setattr("lookahead_core.engines.lean.native_layers", lambda *given: None)
    hf_model = with_opinions(family, saved_in_half=True)
    for seed, size in ((0, 1), (1, 7), (2, 100)):
        engine = lean_engine(hf_model)
        assert engine.twin.model.layers[0].run.layers[0].taken.halves
        _, nodes = random_tree(8, seed)
        assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, size, seed))


@pytest.mark.skipif(
    not packs(torch.bfloat16) or not most_in_half(torch.ones(1, 1)), reason="neither bfloat16 nor halves packed here"
)
@pytest.mark.parametrize("family", COMMON)
def test_few_rows_of_a_narrow_model_are_closer_to_what_its_weights_say_in_float32(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = []
    monkeypatch.setattr("lookahead_core.engines.lean.native_layers", lambda *given: None)
    for few in (0, 6):
        monkeypatch.setattr("lookahead_core.engines.packed.most_in_half", lambda weight, few=few: few)
        hf_model = with_opinions(family, saved_in_half=True)
        exact = UncachedEngine(hf_model)
        engine = CachedEngine(copy.deepcopy(hf_model).bfloat16(), cache_bytes=1 << 30)
        engine.twin.set_output_embeddings(SharpHead(engine.twin.get_output_embeddings()))
        use_lean_layers(engine.twin, widens=True)
        for seed, size in ((1, 7), (2, 100), (0, 1)):
            _, nodes = random_tree(8, seed)
            rows, expected = evaluate_in_passes(engine, nodes, size, seed), exact.evaluate(nodes)
            assert float((rows - expected).abs().max()) <= 3e-2 * float(expected.abs().max())
        apart.append(float((rows - expected).abs().mean()))
    assert apart[1] < 0.85 * apart[0]


@packing
@pytest.mark.parametrize("family", COMMON)
def test_with_lean_layers_trees_that_share_a_pass_are_kept_apart(family: str) -> None:
    hf_model = with_opinions(family)
    nodes: list[Node] = [node for seed in range(3) for node in random_tree(8, seed)[1]]
    assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(lean_engine(hf_model), nodes, 12, 5))


@packing
@pytest.mark.parametrize("family", COMMON)
@pytest.mark.parametrize("otherwise", [False, True])
def test_uncompiled_and_attending_either_way_every_prediction_equals_a_plain_forward(
    family: str, otherwise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookahead_core.engines.lean.compiled", lambda run: run)
    for measured in ("attention_widens", "single_rows_fold"):
        monkeypatch.setattr(f"lookahead_core.engines.lean.{measured}", lambda dtype: otherwise)
    hf_model = with_opinions(family)
    for seed, size in ((0, 1), (1, 7), (2, 100)):
        engine = lean_engine(hf_model)
        assert any(isinstance(module, Run) for module in engine.twin.modules())
        _, nodes = random_tree(8, seed)
        assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, size, seed))


@packing
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_layers_are_compiled_in_every_family(dtype: torch.dtype) -> None:
    if not packs(dtype):
        pytest.skip("this processor multiplies no packed matrices of this type")
    for family in COMMON:
        engine = lean_engine(make(family).to(dtype))
        runs = [module.run for module in engine.twin.modules() if isinstance(module, LeanLayers)]
        assert runs and all(isinstance(run, torch.jit.ScriptModule) for run in runs)


@pytest.mark.parametrize("family", FAMILIES)
def test_layers_are_run_lean_in_those_families_only_in_which_that_is_the_same(family: str) -> None:
    found = fit(make(family))
    assert found.cached == (family in CACHED)
    assert found.lean == (family in COMMON and packs(torch.float32))


def test_a_family_that_only_looks_common_is_found_out_by_trying() -> None:
    hf_model = make("granite")
    assert fit(hf_model).lean
    hf_model.config.residual_multiplier = 0.5
    assert common_layers(hf_model)
    assert not fit(hf_model).lean


def test_layers_that_differ_further_down_than_is_tried_are_not_run_lean() -> None:
    config = transformers.SmolLM3Config(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=8, num_attention_heads=4,
        num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(0)
    hf_model = transformers.SmolLM3ForCausalLM(config).eval()
    assert not all(config.no_rope_layers), "some of its layers do not turn"
    found = fit(hf_model)
    assert found.cached and not found.lean and not common_layers(hf_model)


@packing
def test_layers_some_of_whose_weights_are_rounded_are_not_run_lean() -> None:
    class Rounded(torch.nn.Parameter):
        """What keeps rounded weights in a plain layer, as torchao does."""

    hf_model = tiny_llama(300)
    assert common_layers(hf_model)
    layer = hf_model.model.layers[1].mlp.up_proj
    layer.weight = Rounded(layer.weight.data)
    assert not common_layers(hf_model)


@packing
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lean_layers_leave_the_model_in_hand_as_it_was(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    if not packs(dtype):
        pytest.skip("this processor multiplies no packed matrices of this type")
    monkeypatch.setattr(products, "packing_pays", lambda weights, **options: True)
    hf_model = tiny_llama(300).to(dtype)
    ids = torch.randint(0, 300, (1, 90), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        before = hf_model(ids).logits[0]
    model = load_model(hf_model, tokenizer=None)
    assert any(isinstance(module, LeanLayers) for module in model.engine.twin.modules())  # type: ignore[attr-defined]
    assert not any(isinstance(module, LeanLayers) for module in hf_model.modules())
    document = Document(model, token_ids=ids[0].tolist())
    row = document.predict(row=True).row
    document.lookahead(k=3, depth=4)
    with torch.no_grad():
        assert torch.equal(hf_model(ids).logits[0], before)
    bound = 1e-5 if dtype is torch.float32 else 3e-2
    expected = before[-1].float().log_softmax(-1)
    assert row is not None
    assert float((row - expected).abs().max()) <= bound * float(before[-1].abs().max())
