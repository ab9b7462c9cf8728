"""Decoder layers of the Llama shape: which are compiled, and what a model computes with compiled layers in it."""

from __future__ import annotations

import copy
import weakref
from typing import Any

import pytest
import torch
import transformers

from lookahead_core import Document, load_model
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.cpu.compiled_layers import ROWS, registers
from lookahead_core.engines.cpu.llama_layers import DirectForward, LayerRun, llama_layers, use_compiled_layers
from lookahead_core.engines.cpu.prepare import COMPILED, prepare
from lookahead_core.tree import Node, TokenTree
from tests.conftest import tiny_llama
from tests.engines.test_engine_laws import assert_rows_equal_plain, evaluate_in_passes, random_tree
from tests.support.families import CACHED, make

LLAMA_SHAPED = ("llama", "mistral", "qwen2", "qwen2_sliding", "qwen3", "granite")
"""Families whose layers have the Llama shape, and compute what Llama's do."""
compiling = pytest.mark.skipif(registers() is None, reason="nothing is compiled for this processor")


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


def compiled_engine(hf_model: Any) -> CachedEngine:
    """An engine on a model with weights that bfloat16 holds exactly, which is changed to that."""
    for parameter in hf_model.parameters():
        parameter.data = parameter.data.bfloat16().to(parameter.dtype)
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    assert use_compiled_layers(engine.model_copy) == ""
    return engine


@compiling
@pytest.mark.parametrize("family", LLAMA_SHAPED)
@pytest.mark.parametrize("limit", [8, 64])
def test_with_compiled_layers_every_prediction_equals_a_plain_forward(family: str, limit: int) -> None:
    hf_model = random_model(family, limit)
    for seed, size in ((0, 1), (1, 7), (2, 100)):
        engine = compiled_engine(hf_model)
        runs = [module for module in engine.model_copy.modules() if isinstance(module, LayerRun)]
        spans = [(run.first, len(run.layers)) for run in runs]
        assert spans == ([(0, 1), (1, 1)] if family == "qwen2_sliding" else [(0, 2)])
        _, nodes = random_tree(limit, seed, nodes=2 * ROWS)
        assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, size, seed))


@compiling
@pytest.mark.parametrize("family", LLAMA_SHAPED)
def test_only_models_without_other_computation_use_the_direct_forward(family: str) -> None:
    engine = compiled_engine(random_model(family))
    direct = vars(engine.model_copy).get("forward")
    assert isinstance(direct, DirectForward) == (family not in ("qwen2_sliding", "granite"))
    if direct is not None:
        # A strong reference would make a cycle that only the garbage collector frees.
        assert isinstance(direct._model_copy, weakref.ProxyTypes)


@compiling
@pytest.mark.parametrize("part", ["", "norm", "rotary_emb"])
def test_modules_with_hooks_are_still_called(part: str) -> None:
    hf_model = random_model("llama")
    called: list[torch.nn.Module] = []
    hf_model.model.get_submodule(part).register_forward_hook(lambda module, *given: called.append(module))
    engine = compiled_engine(hf_model)
    root = TokenTree().root
    for token_id in (3, 4):
        # The second time the position is known, and the rotary embedding could be looked up.
        called.clear()
        engine.evaluate([root.tree.expand(root, token_id)])
        assert called


@compiling
def test_rotary_embedding_follows_the_position_however_far_it_is() -> None:
    hf_model = random_model("llama", 64)
    engine = compiled_engine(hf_model)
    root = TokenTree().root
    near = root.tree.descend(root, [3, 1, 4])
    far = root.tree.descend(near, [index % 7 + 1 for index in range(50)])
    for nodes in ([near], [far], [near, far]):
        assert_rows_equal_plain(hf_model, nodes, engine.evaluate(nodes))


@compiling
@pytest.mark.parametrize("family", LLAMA_SHAPED)
@pytest.mark.parametrize("size", [12, 3 * ROWS])
def test_with_compiled_layers_trees_that_share_a_pass_are_kept_apart(family: str, size: int) -> None:
    hf_model = random_model(family)
    engine = compiled_engine(hf_model)
    nodes: list[Node] = [node for seed in range(3) for node in random_tree(8, seed, nodes=ROWS + 20 * seed)[1]]
    assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, size, 5))


@compiling
@pytest.mark.parametrize("family", CACHED)
def test_layers_are_compiled_in_exactly_the_families_of_the_llama_shape(family: str) -> None:
    hf_model = random_model(family, saved_in_bfloat16=True)
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    assert (prepare(engine.model_copy).few_rows == COMPILED) == (family in LLAMA_SHAPED)


@compiling
def test_a_model_that_only_looks_llama_shaped_is_found_by_comparison() -> None:
    hf_model = random_model("granite", saved_in_bfloat16=True)
    for multiplier, reason in ((1.0, ""), (0.5, "a compiled layer differs from the same layer in float32")):
        hf_model.config.residual_multiplier = multiplier
        for layer in hf_model.model.layers:
            layer.residual_multiplier = multiplier
        assert llama_layers(hf_model)
        assert use_compiled_layers(CachedEngine(hf_model, cache_bytes=1 << 30).model_copy) == reason


def test_layers_that_differ_between_the_first_and_the_last_are_not_compiled() -> None:
    config = transformers.SmolLM3Config(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=8, num_attention_heads=4,
        num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(0)
    hf_model = transformers.SmolLM3ForCausalLM(config).eval()
    assert not all(config.no_rope_layers), "some of its layers have no rotary embedding"
    assert not llama_layers(hf_model)


@pytest.mark.parametrize("part", ["self_attn", "mlp"])
def test_layers_with_an_additional_module_are_not_compiled(part: str) -> None:
    hf_model = random_model("llama")
    assert llama_layers(hf_model)
    getattr(hf_model.model.layers[0], part).extra = torch.nn.Dropout()
    assert not llama_layers(hf_model)


def test_layers_with_quantised_weights_are_not_compiled() -> None:
    class Quantised(torch.nn.Parameter):
        """A parameter subclass in a plain linear layer, as torchao makes them."""

    hf_model = tiny_llama(300)
    assert llama_layers(hf_model)
    layer = hf_model.model.layers[1].mlp.up_proj
    layer.weight = Quantised(layer.weight.data)
    assert not llama_layers(hf_model)


@compiling
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_layers_leave_the_given_model_unchanged(dtype: torch.dtype) -> None:
    hf_model = random_model("llama", 200, saved_in_bfloat16=True).to(dtype)
    ids = torch.randint(0, 90, (1, 90), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        before = hf_model(ids).logits[0]
        exact = copy.deepcopy(hf_model).float()(ids).logits[0, -1]
    model = load_model(hf_model, tokenizer=None)
    assert any(isinstance(module, LayerRun) for module in model.engine.model_copy.modules())  # type: ignore[attr-defined]
    assert not any(isinstance(module, LayerRun) for module in hf_model.modules())
    document = Document(model, token_ids=ids[0].tolist())
    row = document.predict(row=True).row
    document.lookahead(k=3, depth=4)
    with torch.no_grad():
        assert torch.equal(hf_model(ids).logits[0], before)
    bound = 1e-5 if dtype is torch.float32 else 3e-2
    assert row is not None
    assert float((row - exact.log_softmax(-1)).abs().max()) <= bound * float(exact.abs().max())
