"""Products with packed matrices are the same products, and leave the given model unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lookahead_core import Document, Settings, load_model
from lookahead_core.engines.cpu import prepare
from lookahead_core.engines.cpu.output_head import Float32Head
from lookahead_core.engines.cpu.packed_matrix import PackedLinear, packs
from lookahead_core.engines.model_copy import copy_sharing_parameters
from tests.conftest import tiny_llama

DTYPES = (torch.float32, torch.bfloat16)
packed_dtypes = pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(dtype, marks=pytest.mark.skipif(not packs(dtype), reason=f"{dtype} cannot be packed here"))
        for dtype in DTYPES
    ],
)


@packed_dtypes
@pytest.mark.parametrize("bias", [True, False])
def test_a_product_with_a_packed_matrix_is_the_same_product(dtype: torch.dtype, bias: bool) -> None:
    linear = nn.Linear(48, 81, bias=bias).to(dtype)
    with torch.inference_mode():
        layer = PackedLinear(linear.weight, linear.bias)
        for rows in (0, 1, 2, 5, 63, 200):
            given = torch.randn(1, rows, 48).to(dtype)
            made = layer(given)
            assert (made.shape, made.dtype) == ((1, rows, 81), dtype)
            bound = 1e-5 if dtype is torch.float32 else 0.03
            assert torch.allclose(made.float(), linear(given).float(), atol=bound)


def test_the_float32_head_gives_logits_before_bfloat16_rounds_them() -> None:
    head = nn.Linear(64, 500, bias=False).bfloat16()
    hidden = (torch.randn(1, 5, 64) * 4).bfloat16()
    with torch.inference_mode():
        exact = hidden.double() @ head.weight.double().t()
        assert torch.allclose(Float32Head(head)(hidden).double(), exact, rtol=1e-5, atol=1e-5)
        assert not torch.allclose(head(hidden).double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("compute", prepare.COMPUTE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_prepared_model_copy_predicts_what_a_plain_one_does(dtype: torch.dtype, compute: str) -> None:
    hf_model = tiny_llama(300).to(dtype)
    kinds = [type(module) for module in hf_model.modules()]
    ids = torch.randint(0, 300, (1, 40), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        one = hf_model(ids).logits[0, -1].float().log_softmax(-1)
    # A copy with compiled layers takes the arguments of the cached engine alone.
    model = load_model(hf_model, tokenizer=None, settings=Settings(compute=compute))
    other = Document(model, token_ids=ids[0].tolist()).predict(row=True).row
    bound = 1e-5 if dtype is torch.float32 else 3e-2
    assert float((one - other).abs().max()) <= bound * float(one.abs().max())
    engine: Any = model.engine
    modules, done = list(engine.model_copy.modules()), engine.computation
    compiled = done.many_rows == prepare.COMPILED
    packing = compute != "plain" and packs(dtype) and not compiled
    assert any(isinstance(module, PackedLinear) for module in modules) == packing
    assert any(type(module) is nn.Linear for module in modules) == (not packing)
    assert compiled or done.many_rows == ("packed matrices" if packing else "as transformers computes them")
    assert not compiled or compute == "auto"
    assert [type(module) for module in hf_model.modules()] == kinds


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_model_too_large_for_copies_runs_on_its_own_weights(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "COPY_BYTES", 1000)
    hf_model = tiny_llama(300).to(dtype)
    prepared = copy_sharing_parameters(hf_model)
    done = prepare.prepare(prepared)
    assert not any(isinstance(module, Float32Head | PackedLinear) for module in prepared.modules())
    assert done.few_rows == done.many_rows == prepare.PLAIN
    if packs(dtype):
        assert "0 MiB are allowed" in done.reason
    monkeypatch.setattr(prepare, "COPY_BYTES", 3 << 20)
    sentence = "packed copies of the weights would take 5 MiB, and 3 MiB are allowed"
    assert prepare._why_too_large("packed", (5 << 20) + 1) == sentence


@packed_dtypes
def test_copies_of_exactly_the_allowed_size_are_made(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    hf_model = tiny_llama(300).to(dtype)
    size = sum(layer.weight.nbytes for layer in hf_model.modules() if type(layer) is nn.Linear)
    for allowed, bearable in ((size, True), (size - 1, False)):
        monkeypatch.setattr(prepare, "COPY_BYTES", allowed)
        prepared = copy_sharing_parameters(hf_model)
        prepare.prepare(prepared)
        assert any(isinstance(module, PackedLinear) for module in prepared.modules()) == bearable


def test_a_half_precision_head_is_copied_to_float32_where_nothing_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "packs", lambda dtype: False)
    hf_model = tiny_llama(300).bfloat16()
    for allowed in (300 * 32 * 4, 300 * 32 * 4 - 1):
        monkeypatch.setattr(prepare, "COPY_BYTES", allowed)
        prepared = copy_sharing_parameters(hf_model)
        done = prepare.prepare(prepared)
        assert isinstance(prepared.lm_head, Float32Head) == (allowed == 300 * 32 * 4)
        assert done.few_rows == done.many_rows == "as transformers computes them" and "bfloat16" in done.reason


def test_a_model_with_matrices_of_several_types_is_not_packed() -> None:
    hf_model = tiny_llama(300)
    hf_model.lm_head.double()
    prepared = copy_sharing_parameters(hf_model)
    assert "several types" in prepare.prepare(prepared).reason
    assert not any(isinstance(module, PackedLinear) for module in prepared.modules())


def test_how_to_compute_is_a_setting_that_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    for compute in prepare.COMPUTE:
        engine: Any = load_model(tiny_llama(300), tokenizer=None, settings=Settings(compute=compute)).engine
        packs_some = any(isinstance(module, PackedLinear) for module in engine.model_copy.modules())
        assert packs_some == (compute != "plain" and packs(torch.float32))
    monkeypatch.setenv("LOOKAHEAD_COMPUTE", "fast")
    with pytest.raises(ValueError, match="LOOKAHEAD_COMPUTE is 'fast', and must be one of auto, packed, plain"):
        load_model(tiny_llama(300), tokenizer=None)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("missing", [RuntimeError("needs the cpu support"), AttributeError("no such operator")])
def test_where_the_processor_or_its_library_cannot_pack_a_type_the_model_runs_plain(
    dtype: torch.dtype, missing: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object) -> None:
        raise missing

    monkeypatch.setattr(torch.ops.mkldnn, "_reorder_linear_weight", refuse)
    packs.cache_clear()
    try:
        assert not packs(dtype)
        hf_model = tiny_llama(300).to(dtype)
        model = load_model(hf_model, tokenizer=None)
        assert not any(isinstance(module, PackedLinear) for module in model.engine.model_copy.modules())  # type: ignore[attr-defined]
        row = Document(model, token_ids=[1, 2, 3]).predict(row=True).row
        assert row is not None
        with torch.no_grad():
            plain = hf_model(torch.tensor([[1, 2, 3]])).logits[0, -1].float().log_softmax(-1)
        assert float((row - plain).abs().max()) <= (1e-5 if dtype is torch.float32 else 0.1)
    finally:
        packs.cache_clear()


def test_a_model_copy_shares_the_parameters_of_the_users_model() -> None:
    hf_model = tiny_llama(300)
    held = {parameter.data_ptr() for parameter in hf_model.parameters()}
    model = load_model(hf_model, tokenizer=None)
    Document(model, token_ids=[1, 2, 3]).lookahead(k=2, depth=3)
    assert {p.data_ptr() for p in model.engine.model_copy.parameters()} <= held  # type: ignore[attr-defined]


def test_a_model_in_half_precision_keeps_its_rotation_in_full(tmp_path: Path) -> None:
    hf_model = tiny_llama(300)
    hf_model.save_pretrained(tmp_path)
    for dtype in ("bfloat16", "float32", "auto"):
        model = load_model(str(tmp_path), dtype=dtype)
        assert model.hf_model.model.rotary_emb.inv_freq.dtype is torch.float32
        assert torch.equal(model.hf_model.model.rotary_emb.inv_freq, hf_model.model.rotary_emb.inv_freq)
        if dtype != "auto":
            assert model.dtype == dtype
        row = Document(model, token_ids=list(range(2, 200))).predict(row=True).row
        with torch.no_grad():
            plain = (
                copy_sharing_parameters(model.hf_model)(torch.arange(2, 200)[None])
                .logits[0, -1]
                .float()
                .log_softmax(-1)
            )
        assert float((row - plain).abs().max()) <= (1e-4 if model.dtype == "float32" else 0.2)


def test_loading_leaves_the_programs_dice_alone() -> None:
    hf_model = tiny_llama(300)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_model(hf_model, tokenizer=None)
    assert torch.equal(torch.rand(3), expected)
