"""Fused layers compute what transformers' own layers do, and are used only in families where a trial shows it."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
import transformers

from lookahead_core import Document, load_model
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.cpu.fused_layers import DirectForward, FusedLayers, llama_layers, use_fused_layers
from lookahead_core.engines.cpu.packed_matrix import packs
from lookahead_core.engines.probe import fit
from lookahead_core.tree import Node, TokenTree
from tests.conftest import tiny_llama
from tests.engines.test_engine_laws import assert_rows_equal_plain, evaluate_in_passes, random_tree
from tests.support.families import CACHED, FAMILIES, make

LLAMA_SHAPED = ("llama", "mistral", "qwen2", "qwen2_sliding", "qwen3", "granite")
"""Families whose layers have the Llama shape, and compute what Llama's do."""
packing = pytest.mark.skipif(not packs(torch.float32), reason="packed matrices need oneDNN")


def random_model(family: str, limit: int = 8, *, saved_in_bfloat16: bool = False) -> Any:
    """A model with random norms and biases, so that a test notices when one is left out."""
    hf_model = make(family, limit)
    torch.manual_seed(1)
    for parameter in hf_model.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.3 * torch.randn_like(parameter)
        if saved_in_bfloat16:
            parameter.data = parameter.data.bfloat16().float()
    return hf_model


def fused_engine(hf_model: Any) -> CachedEngine:
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    use_fused_layers(engine.twin)
    return engine


@packing
@pytest.mark.parametrize("family", LLAMA_SHAPED)
@pytest.mark.parametrize("limit", [8, 64])
def test_with_fused_layers_every_prediction_equals_a_plain_forward(family: str, limit: int) -> None:
    hf_model = random_model(family, limit)
    for seed, size in ((0, 1), (1, 7), (2, 100)):
        engine = fused_engine(hf_model)
        runs = [module for module in engine.twin.modules() if isinstance(module, FusedLayers)]
        assert [(run.first, run.last) for run in runs] == ([(0, 1), (1, 2)] if family == "qwen2_sliding" else [(0, 2)])
        _, nodes = random_tree(limit, seed)
        assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, size, seed))


@packing
@pytest.mark.parametrize("family", LLAMA_SHAPED)
def test_only_models_without_other_computation_use_the_bare_forward(family: str) -> None:
    engine = fused_engine(random_model(family))
    bare = vars(engine.twin).get("forward")
    assert isinstance(bare, DirectForward) == (family not in ("qwen2_sliding", "granite"))
    if bare is not None:
        # A strong reference would make a cycle that only the garbage collector frees.
        assert isinstance(bare._twin, weakref.ProxyTypes)


@packing
@pytest.mark.parametrize("part", ["", "norm", "rotary_emb"])
def test_modules_with_hooks_are_still_called(part: str) -> None:
    hf_model = random_model("llama")
    called: list[torch.nn.Module] = []
    hf_model.model.get_submodule(part).register_forward_hook(lambda module, *given: called.append(module))
    engine = fused_engine(hf_model)
    root = TokenTree().root
    for token_id in (3, 4):
        # The second time the position is known, and the rotary embedding could be looked up.
        called.clear()
        engine.evaluate([root.tree.expand(root, token_id)])
        assert called


@packing
def test_rotary_embedding_follows_the_position_however_far_it_is() -> None:
    hf_model = random_model("llama", 64)
    engine = fused_engine(hf_model)
    root = TokenTree().root
    near = root.tree.descend(root, [3, 1, 4])
    far = root.tree.descend(near, [index % 7 + 1 for index in range(50)])
    for nodes in ([near], [far], [near, far]):
        assert_rows_equal_plain(hf_model, nodes, engine.evaluate(nodes))


@packing
@pytest.mark.parametrize("family", LLAMA_SHAPED)
def test_with_fused_layers_trees_that_share_a_pass_are_kept_apart(family: str) -> None:
    hf_model = random_model(family)
    nodes: list[Node] = [node for seed in range(3) for node in random_tree(8, seed)[1]]
    assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(fused_engine(hf_model), nodes, 12, 5))


@pytest.mark.parametrize("family", FAMILIES)
def test_layers_are_fused_in_exactly_the_families_where_that_gives_the_same(family: str) -> None:
    found = fit(make(family))
    assert found.cached == (family in CACHED)
    assert found.fuses == (family in LLAMA_SHAPED and packs(torch.float32))


def test_a_model_that_only_looks_llama_shaped_is_found_by_the_trial() -> None:
    hf_model = make("granite")
    assert fit(hf_model).fuses
    hf_model.config.residual_multiplier = 0.5
    assert llama_layers(hf_model)
    assert not fit(hf_model).fuses


def test_layers_that_differ_below_those_tried_are_not_fused() -> None:
    config = transformers.SmolLM3Config(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=8, num_attention_heads=4,
        num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(0)
    hf_model = transformers.SmolLM3ForCausalLM(config).eval()
    assert not all(config.no_rope_layers), "some of its layers have no rotary embedding"
    found = fit(hf_model)
    assert found.cached and not found.fuses and not llama_layers(hf_model)


@packing
def test_layers_with_quantised_weights_are_not_fused() -> None:
    class Quantised(torch.nn.Parameter):
        """A parameter subclass in a plain linear layer, as torchao makes them."""

    hf_model = tiny_llama(300)
    assert llama_layers(hf_model)
    layer = hf_model.model.layers[1].mlp.up_proj
    layer.weight = Quantised(layer.weight.data)
    assert not llama_layers(hf_model)


@packing
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fused_layers_leave_the_given_model_unchanged(dtype: torch.dtype) -> None:
    if not packs(dtype):
        pytest.skip("this processor multiplies no packed matrices of this type")
    hf_model = tiny_llama(300).to(dtype)
    ids = torch.randint(0, 300, (1, 90), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        before = hf_model(ids).logits[0]
    model = load_model(hf_model, tokenizer=None)
    assert any(isinstance(module, FusedLayers) for module in model.engine.twin.modules())  # type: ignore[attr-defined]
    assert not any(isinstance(module, FusedLayers) for module in hf_model.modules())
    document = Document(model, token_ids=ids[0].tolist())
    row = document.predict(row=True).row
    document.lookahead(k=3, depth=4)
    with torch.no_grad():
        assert torch.equal(hf_model(ids).logits[0], before)
    bound = 1e-5 if dtype is torch.float32 else 3e-2
    expected = before[-1].float().log_softmax(-1)
    assert row is not None
    assert float((row - expected).abs().max()) <= bound * float(before[-1].abs().max())
