"""Products asked for in another way are the same products, and cost the model in hand nothing."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from lookahead_core import Document, load_model
from lookahead_core.engines import products
from lookahead_core.engines.native import registers
from lookahead_core.engines.output import AT_ONCE, Float32Head, SharpHead
from lookahead_core.engines.packed import (
    APART,
    PackedLinear,
    packed,
    product,
    product_plus,
    product_times,
    silu_product,
    stacked,
)
from lookahead_core.engines.products import FlippedLinear, Joined, JoinedPart
from lookahead_core.engines.rows import KEPT
from lookahead_core.engines.twin import twin_of
from lookahead_core.engines.ways import (
    FEW,
    MANY,
    _most_in_half,
    attention_widens,
    halved,
    halved_product,
    is_exact_in_half,
    most_in_half,
    packs,
    plain_is_faster,
    single_rows_fold,
)
from tests.conftest import tiny_llama

DTYPES = (torch.float32, torch.bfloat16)
HALVES = bool(most_in_half(torch.ones(1, 1)))
packed_dtypes = pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(dtype, marks=pytest.mark.skipif(not packs(dtype), reason=f"{dtype} cannot be packed here"))
        for dtype in DTYPES
    ],
)


@pytest.mark.parametrize("rows", [1, 2, 5, 63, 64, 200])
@pytest.mark.parametrize("bias", [True, False])
def test_a_product_from_the_left_is_the_same_product(rows: int, bias: bool) -> None:
    torch.manual_seed(rows)
    linear = nn.Linear(48, 80, bias=bias)
    given = torch.randn(1, rows, 48)
    with torch.inference_mode():
        made = FlippedLinear(linear)(given)
        assert made.is_contiguous()
        assert torch.allclose(made, linear(given), atol=1e-5)


@packed_dtypes
@pytest.mark.parametrize("bias", [True, False])
def test_a_product_with_a_packed_matrix_is_the_same_product(dtype: torch.dtype, bias: bool) -> None:
    linear = nn.Linear(48, 81, bias=bias).to(dtype)
    with torch.inference_mode():
        layer = PackedLinear(linear)
        for rows in (0, 1, 2, 5, 63, 200):
            given = torch.randn(1, rows, 48).to(dtype)
            made = layer(given)
            assert (made.shape, made.dtype) == ((1, rows, 81), dtype)
            bound = 1e-5 if dtype is torch.float32 else 0.03
            assert torch.allclose(made.float(), linear(given).float(), atol=bound)


@packed_dtypes
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("faster", "few"), [(True, 0), (False, 0), (True, 16), (False, 5)])
@pytest.mark.parametrize("halves", [True, False])
def test_what_comes_after_a_product_is_the_same_however_many_rows_there_are(
    dtype: torch.dtype, bias: bool, faster: bool, few: int, halves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookahead_core.engines.packed.plain_is_faster", lambda: faster)
    monkeypatch.setattr("lookahead_core.engines.packed.most_in_half", lambda weight: few if HALVES else 0)
    layers = [nn.Linear(48, width, bias=bias).to(dtype) for width in (32, 17)]
    if halves:
        layers = [layer.half().to(dtype) for layer in layers]  # which keeps them all, as bfloat16 would not
    bound = 1e-5 if dtype is torch.float32 else 0.05
    with torch.inference_mode():
        matrix = packed(*stacked(layers), layers)
        assert bool(matrix.plain) == (faster and dtype is torch.float32)
        assert bool(matrix.halves) == (halves and dtype is torch.float32 and bool(few and HALVES))
        for rows in {1, APART - 1, APART, few or 1, few + 1, MANY - 1, MANY, 300}:
            given, others = torch.randn(1, rows, 48).to(dtype), torch.randn(1, rows, 49).to(dtype)
            kept = given.clone(), others.clone()
            plain = torch.cat([layer(given).float() for layer in layers], -1)
            for made, expected in (
                (product(matrix, given), plain),
                (silu_product(matrix, given), nn.functional.silu(plain)),
                (product_plus(matrix, given, others), plain + others.float()),
                (product_times(matrix, given, others), plain * others.float()),
            ):
                assert (made.dtype, made.shape) == (dtype, expected.shape)
                assert torch.allclose(made.float(), expected, atol=bound, rtol=bound)
            assert torch.equal(given, kept[0]) and torch.equal(others, kept[1])


def test_half_precision_stands_for_matrices_only_that_it_keeps() -> None:
    torch.manual_seed(0)
    drawn = torch.randn(64, 64) * 0.05
    assert not is_exact_in_half(drawn)
    assert is_exact_in_half(drawn.bfloat16().float()) and is_exact_in_half(drawn.half().float())
    # A tiny number among large ones: float32 would tell, sixteen bits could not.
    drawn[0, :2] = torch.tensor([0.2, 9e-8])
    tiny = drawn.clamp(-0.2, 0.2).bfloat16()
    assert not is_exact_in_half(tiny.float()) and is_exact_in_half(tiny)
    assert not is_exact_in_half((tiny.double() * 1e-4).bfloat16()) and not is_exact_in_half(tiny * 1e6)
    for spoiled in (1e5, 3e-6, float("nan"), float("inf")):
        matrix = drawn.bfloat16().float() * (1e-3 if spoiled < 1e-3 else 1)
        matrix[3, 4] = spoiled
        assert not is_exact_in_half(matrix)


@pytest.mark.skipif(not HALVES, reason="no products with halved matrices here")
@pytest.mark.parametrize("width", [1, 640, 641, 1536, 4099])
@pytest.mark.parametrize("bias", [True, False])
def test_a_product_with_a_halved_matrix_is_as_exact_as_a_plain_one(width: int, bias: bool) -> None:
    torch.manual_seed(width)
    weight = torch.randn(70, width).bfloat16().float()
    added = torch.randn(70) if bias else None
    given = torch.randn(1, 5, width)
    exact = nn.functional.linear(given.double(), weight.double(), added.double() if bias else None)
    made, plain = halved_product(given, halved(weight, added)), nn.functional.linear(given, weight, added)
    worst = float((plain.double() - exact).abs().max())
    assert float((made.double() - exact).abs().max()) <= 4 * worst + 1e-6 * float(exact.abs().max())


@pytest.mark.skipif(not packs(torch.float32), reason="nothing to compare with")
def test_which_way_is_faster_for_how_many_rows_is_measured_once() -> None:
    wide, narrow = torch.ones(3, 1000), torch.ones(3, 500)
    measured = (plain_is_faster, _most_in_half, single_rows_fold)
    misses = []
    for _ in range(2):
        assert {plain_is_faster(), single_rows_fold(torch.float32)} <= {True, False}
        assert {most_in_half(wide), most_in_half(narrow), most_in_half(wide.bfloat16())} <= {0, *FEW}
        misses.append([way.cache_info().misses for way in measured])
    assert misses[0] == misses[1] and most_in_half(wide.bfloat16()) == most_in_half(narrow.bfloat16())
    assert attention_widens(torch.bfloat16) in (True, False)
    assert not attention_widens(torch.float32) and not attention_widens(torch.float64)


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_neighbours_multiplied_as_one_give_each_its_part(bias: bool, pack: bool) -> None:
    dtype = torch.bfloat16 if packs(torch.bfloat16) or not pack else torch.float32
    layers = [nn.Linear(48, width, bias=bias).to(dtype) for width in (32, 16, 16)]
    parts = [JoinedPart(joined, index) for joined in [Joined(layers, pack=pack)] for index in range(3)]
    with torch.inference_mode():
        for rows in (1, 7, 90):
            given = torch.randn(1, rows, 48).to(dtype)
            for layer, part in zip(layers, parts, strict=True):
                assert torch.allclose(part(given).float(), layer(given).float(), atol=0.02)


def test_the_head_in_float32_is_what_bfloat16_rounds() -> None:
    head = nn.Linear(64, 500, bias=False).bfloat16()
    hidden = (torch.randn(1, 5, 64) * 4).bfloat16()
    with torch.inference_mode():
        exact = hidden.double() @ head.weight.double().t()
        assert torch.allclose(Float32Head(head)(hidden).double(), exact, rtol=1e-5, atol=1e-5)
        assert not torch.allclose(head(hidden).double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not packs(torch.bfloat16), reason="this processor multiplies no packed matrices of this type")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("height", [50, 500, 20_000])
@pytest.mark.parametrize("rows", [0, 1, 3, AT_ONCE, AT_ONCE + 1])
def test_the_likeliest_logits_are_known_in_float32_and_the_others_as_bfloat16_rounds(
    rows: int, height: int, bias: bool
) -> None:
    torch.manual_seed(height)
    head = nn.Linear(64, height, bias=bias).bfloat16()
    hidden = (torch.randn(1, rows, 64) * 9).bfloat16()
    with torch.inference_mode():
        found = SharpHead(head)(hidden)[0]
        exact = hidden[0].double() @ head.weight.double().t() + (head.bias.double() if bias else 0)
    assert (found.shape, found.dtype) == ((rows, height), torch.float32)
    assert torch.allclose(found.double(), exact, rtol=2**-8, atol=1e-2)
    likeliest = exact.topk(min(KEPT // 2, height)).indices
    assert torch.allclose(found.double().gather(1, likeliest), exact.gather(1, likeliest), rtol=1e-6, atol=1e-4)
    assert height <= KEPT or not rows or not torch.allclose(found.double(), exact, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_prepared_twin_predicts_what_a_plain_one_does_and_leaves_the_model_alone(
    dtype: torch.dtype, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if packed and not packs(dtype):
        pytest.skip(f"{dtype} cannot be packed here")
    monkeypatch.setattr(products, "packing_pays", lambda weights, **options: packed)
    hf_model = tiny_llama(300).to(dtype)
    kinds = [type(module) for module in hf_model.modules()]
    plain, prepared = twin_of(hf_model), twin_of(hf_model)
    products.prepare(prepared)
    ids = torch.randint(0, 300, (1, 40), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        one, other = plain(ids).logits.float(), prepared(ids).logits.float()
    bound = 1e-5 if dtype is torch.float32 else 3e-2
    assert float((one - other).abs().max()) <= bound * float(one.abs().max())
    if dtype is torch.bfloat16 or packed:
        assert any(isinstance(module, JoinedPart) for module in prepared.modules())
    assert any(isinstance(module, PackedLinear) for module in prepared.modules()) == packed
    assert not packed or not any(type(module) is nn.Linear for module in prepared.modules())
    assert [type(module) for module in hf_model.modules()] == kinds
    assert {id(p) for p in hf_model.parameters()} >= {id(p) for p in plain.parameters()}


def test_whether_packing_pays_is_measured_and_never_fails() -> None:
    weights = [torch.randn(64, 48) for _ in range(4)]
    assert products.packing_pays(weights) in (True, False)
    assert not products.packing_pays([])
    assert not products.packing_pays([weights[0], weights[1].bfloat16()])
    assert not products.packing_pays([torch.zeros(64, 48, dtype=torch.float64)])


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
        assert not packs(dtype) and not products.packing_pays([torch.zeros(64, 48, dtype=dtype)])
        hf_model = tiny_llama(300).to(dtype)
        model = load_model(hf_model, tokenizer=None)
        assert not any(isinstance(module, PackedLinear) for module in model.engine.twin.modules())  # type: ignore[attr-defined]
        row = Document(model, token_ids=[1, 2, 3]).predict(row=True).row
        assert row is not None
        with torch.no_grad():
            plain = hf_model(torch.tensor([[1, 2, 3]])).logits[0, -1].float().log_softmax(-1)
        assert float((row - plain).abs().max()) <= (1e-5 if dtype is torch.float32 else 0.1)
    finally:
        packs.cache_clear()


def test_a_twin_shares_the_parameters_of_the_model_in_hand() -> None:
    hf_model = tiny_llama(300)
    held = {parameter.data_ptr() for parameter in hf_model.parameters()}
    model = load_model(hf_model, tokenizer=None)
    Document(model, token_ids=[1, 2, 3]).lookahead(k=2, depth=3)
    assert {p.data_ptr() for p in model.engine.twin.parameters()} <= held  # type: ignore[attr-defined]


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
            plain = twin_of(model.hf_model)(torch.arange(2, 200)[None]).logits[0, -1].float().log_softmax(-1)
        assert float((row - plain).abs().max()) <= (1e-4 if model.dtype == "float32" else 0.2)


def test_loading_leaves_the_programs_dice_alone() -> None:
    hf_model = tiny_llama(300)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_model(hf_model, tokenizer=None)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.skipif(not HALVES, reason="no products with halved matrices here")
def test_halved_matrices_count_among_the_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "packing_pays", lambda weights, **options: True)
    hf_model = tiny_llama(300)
    weights = sum(layer.weight.numel() for layer in hf_model.modules() if type(layer) is nn.Linear)
    for bytes_a_weight, bearable in ((5, False), (6, True)):
        monkeypatch.setattr(products, "COPY_BYTES", bytes_a_weight * weights)
        prepared = twin_of(hf_model)
        products.prepare(prepared)
        assert any(isinstance(module, PackedLinear) for module in prepared.modules()) == bearable


def test_the_memory_of_copies_is_bounded_and_a_larger_head_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    hf_model = tiny_llama(300).bfloat16()
    monkeypatch.setattr(products, "COPY_BYTES", 1000)
    prepared = twin_of(hf_model)
    products.prepare(prepared)
    copies = JoinedPart | Float32Head | SharpHead | PackedLinear
    assert not any(isinstance(module, copies) for module in prepared.modules())


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


@pytest.mark.parametrize("fault", ["raise ImportError", "raise OSError", OLD], ids=["none", "broken", "too old"])
def test_without_llvm_or_with_one_that_cannot_be_loaded_all_else_is_there(fault: str, tmp_path: Path) -> None:
    (tmp_path / "llvmlite").mkdir()
    (tmp_path / "llvmlite" / "__init__.py").write_text(fault)
    code = "import lookahead_core; from lookahead_core.engines import native; assert native.registers() is None"
    paths = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(Path(__file__).parent.parent)!r}]; "
    subprocess.run([sys.executable, "-c", paths + code], check=True, cwd=tmp_path)
