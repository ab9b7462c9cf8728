"""Decoder layers of the Llama shape: which are compiled, and what a model computes with compiled layers in it."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import pytest
import torch

from lookahead_core import Document, load_model
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.cpu import llama_layers
from lookahead_core.engines.cpu.compiled_layers import ROWS, compile_layers, registers
from lookahead_core.engines.cpu.llama_layers import CompiledForward, has_llama_shape, use_compiled_layers
from lookahead_core.engines.cpu.prepare import COMPILED, prepare
from lookahead_core.tree import Node, TokenTree
from tests.conftest import tiny_llama
from tests.engines.test_engine_laws import assert_rows_equal_plain, evaluate_in_passes, random_tree
from tests.support.families import CACHED, make
from tests.support.parameters import mostly_slow

LLAMA_SHAPED = ("llama", "mistral", "qwen2", "qwen3")
"""Families that are compiled."""
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


@pytest.mark.slow
@compiling
@pytest.mark.parametrize("family", mostly_slow(LLAMA_SHAPED, 2))
@pytest.mark.parametrize("limit", mostly_slow([8, 64], 1))
def test_with_compiled_layers_every_prediction_equals_a_plain_forward(family: str, limit: int) -> None:
    hf_model = random_model(family, limit)
    for seed, size in ((0, 1), (1, 7), (2, 100)):
        engine = compiled_engine(hf_model)
        _, nodes = random_tree(limit, seed, nodes=2 * ROWS)
        assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, size, seed))


@compiling
def test_a_compiled_forward_does_not_keep_its_model_alive() -> None:
    engine = compiled_engine(random_model("llama"))
    model_copy, held = weakref.ref(engine.model_copy), engine.model_copy.forward
    gc.disable()  # a strong reference would make a cycle that only the garbage collector frees
    try:
        del engine
        assert isinstance(held, CompiledForward) and model_copy() is None
    finally:
        gc.enable()


@compiling
@pytest.mark.parametrize("part", ["", "norm", "rotary_emb", "layers.1", "layers.0.mlp.up_proj"])
def test_models_with_hooks_are_not_compiled_and_their_hooks_are_called(part: str) -> None:
    hf_model = random_model("llama", saved_in_bfloat16=True)
    called: list[torch.nn.Module] = []
    hf_model.model.get_submodule(part).register_forward_hook(lambda module, *given: called.append(module))
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    assert use_compiled_layers(engine.model_copy) == "somebody has registered forward hooks"
    root = TokenTree().root
    engine.evaluate([root.tree.expand(root, 3)])
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


@pytest.mark.slow
@compiling
@pytest.mark.parametrize("family", mostly_slow(LLAMA_SHAPED, 2))
@pytest.mark.parametrize("size", [12, 3 * ROWS])
def test_with_compiled_layers_trees_that_share_a_pass_are_kept_apart(family: str, size: int) -> None:
    hf_model = random_model(family)
    engine = compiled_engine(hf_model)
    nodes: list[Node] = [node for seed in range(3) for node in random_tree(8, seed, nodes=ROWS + 20 * seed)[1]]
    assert_rows_equal_plain(hf_model, nodes, evaluate_in_passes(engine, nodes, size, 5))


@pytest.mark.slow
@compiling
@pytest.mark.parametrize("family", CACHED)
def test_layers_are_compiled_in_exactly_the_families_of_the_llama_shape(family: str) -> None:
    hf_model = random_model(family, saved_in_bfloat16=True)
    engine = CachedEngine(hf_model, cache_bytes=1 << 30)
    assert (prepare(engine.model_copy).few_rows == COMPILED) == (family in LLAMA_SHAPED)


@compiling
def test_a_layer_with_another_activation_is_found_by_comparison() -> None:
    hf_model = random_model("llama", saved_in_bfloat16=True)
    hf_model.model.layers[-1].mlp.act_fn = torch.nn.GELU()
    assert has_llama_shape(hf_model)
    model_copy = CachedEngine(hf_model, cache_bytes=1 << 30).model_copy
    assert use_compiled_layers(model_copy) == "a compiled layer differs from the same layer in float32"


@pytest.mark.parametrize("family", ["qwen2_sliding", "granite"])
def test_models_with_several_kinds_of_layers_or_other_computation_are_not_compiled(family: str) -> None:
    assert not has_llama_shape(random_model(family))


@pytest.mark.parametrize("part", ["self_attn", "mlp"])
def test_layers_with_an_additional_module_are_not_compiled(part: str) -> None:
    hf_model = random_model("llama")
    assert has_llama_shape(hf_model)
    getattr(hf_model.model.layers[0], part).extra = torch.nn.Dropout()
    assert not has_llama_shape(hf_model)


def test_layers_with_quantised_weights_are_not_compiled() -> None:
    class Quantised(torch.nn.Parameter):
        """A parameter subclass in a plain linear layer, as torchao makes them."""

    hf_model = tiny_llama(300)
    assert has_llama_shape(hf_model)
    layer = hf_model.model.layers[1].mlp.up_proj
    layer.weight = Quantised(layer.weight.data)
    assert not has_llama_shape(hf_model)


@compiling
def test_a_load_compiles_the_layers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[int] = []

    def count(layers: Any, reference: Any) -> Any:
        compiled.append(len(layers))
        return compile_layers(layers, reference)

    monkeypatch.setattr(llama_layers, "compile_layers", count)
    hf_model = random_model("llama", 64, saved_in_bfloat16=True)
    hf_model.config.initializer_range = 0.03  # no earlier test has probed this configuration
    model = load_model(hf_model, tokenizer=None)
    assert isinstance(model.engine.model_copy.forward, CompiledForward)  # type: ignore[attr-defined]
    assert compiled == [len(hf_model.model.layers)]


@compiling
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_layers_leave_the_given_model_unchanged(dtype: torch.dtype) -> None:
    hf_model = random_model("llama", 200, saved_in_bfloat16=True).to(dtype)
    ids = torch.randint(0, 90, (1, 90), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        before = hf_model(ids).logits[0]
        exact = copy.deepcopy(hf_model).float()(ids).logits[0, -1]
    model = load_model(hf_model, tokenizer=None)
    assert isinstance(model.engine.model_copy.forward, CompiledForward)  # type: ignore[attr-defined]
    assert not isinstance(hf_model.forward, CompiledForward)
    document = Document(model, token_ids=ids[0].tolist())
    row = document.predict(row=True).row
    document.lookahead(k=3, depth=4)
    with torch.no_grad():
        assert torch.equal(hf_model(ids).logits[0], before)
    bound = 1e-5 if dtype is torch.float32 else 3e-2
    assert row is not None
    assert float((row - exact.log_softmax(-1)).abs().max()) <= bound * float(exact.abs().max())
