"""Quantized models keep the laws against the same model run plainly; unsupported cases raise errors."""

from __future__ import annotations

import functools
import os
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from lookahead_core import Document, Model, ModelError, load_model
from lookahead_core.engines.cpu.packed_matrix import PackedLinear
from lookahead_core.engines.probe import small_config
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.loading import device as placement
from lookahead_core.loading.quantization import QUANTIZE, quantization_config
from lookahead_core.tree import Node, TokenTree
from tests.loading.test_sources import tiny_llama, write_gguf
from tests.support.families import make, plain_rows
from tests.support.parameters import mostly_slow

VOCABULARY = 400
LAW = {"float32": 1e-5, "bfloat16": 3e-2}
"""How far from a plain forward a prediction may be, as a share of the largest logit: as for plain weights."""


def llama(**changes: Any) -> Any:
    """Two layers with opinions, of widths that suit every kernel."""
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2}
    shape |= {"num_hidden_layers": 2, "vocab_size": VOCABULARY, "bos_token_id": None, "eos_token_id": 0}
    torch.manual_seed(0)
    hf_model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape | changes)).eval()
    for parameter in hf_model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.15)
    return hf_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, byte_tokenizer: Any) -> Path:
    """The model and its tokenizer, as somebody keeps them."""
    place = tmp_path_factory.mktemp("models") / "tiny"
    llama().save_pretrained(place)
    byte_tokenizer.save_pretrained(place)
    return place


def rounded_by_bitsandbytes(folder: Path, quantize: str, dtype: torch.dtype = torch.float32) -> Any:
    """A model in hand, as this library asks for it on a GPU; its kernels run on processors as well."""
    requested = quantization_config(quantize, "cuda", dtype)
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, quantization_config=requested).eval()


def grown(seed: int = 0, prompt: int = 20, nodes: int = 24) -> list[Node]:
    dice, tree = random.Random(seed), TokenTree()
    head = tree.descend(tree.root, (dice.randrange(VOCABULARY) for _ in range(prompt)))
    tree.move_head(head)
    below = [head]
    for _ in range(nodes):
        below.append(tree.expand(dice.choice(below), dice.randrange(VOCABULARY)))
    return list(dict.fromkeys(below))


def ids_of(node: Node) -> list[int]:
    return [each.token_id for each in node.tree.path(node)]


def distance(model: Model, nodes: Iterable[Node], hf_model: Any = None) -> float:
    """The largest difference from plain forwards, as a share of the largest logit."""
    nodes = random.Random(1).sample(list(nodes), len(list(nodes)))
    rows = torch.cat([model.engine.evaluate(nodes[start : start + 7]).clone() for start in range(0, len(nodes), 7)])
    logits = torch.stack(plain_rows(hf_model or model.hf_model, [ids_of(node) for node in nodes]))
    return float((rows - logits.log_softmax(-1)).abs().max() / logits.abs().max())


def assert_greedy(model: Model, start: list[int], k: int, depth: int, tolerance: float) -> None:
    """Each branch takes at each step a token whose plain logit is the largest, ties by the tolerance."""
    result = Document(model, token_ids=start).lookahead(k=k, depth=depth)
    (first,) = plain_rows(model.hf_model, [start])
    slack = tolerance * float(first.abs().max())
    least = float(first.topk(k).values[-1])
    assert len(result.branches) == k
    for branch in result.branches:
        taken = list(branch.token_ids)
        assert len(taken) == depth or taken[-1] in model.end_token_ids
        assert float(first[taken[0]]) >= least - slack
        rows = plain_rows(model.hf_model, [start + taken[:length] for length in range(1, len(taken))])
        assert all(float(row[token]) >= float(row.max()) - slack for row, token in zip(rows, taken[1:], strict=True))


def rounded(hf_model: nn.Module) -> list[str]:
    return [name for name, value in hf_model.named_parameters() if type(value) is not nn.Parameter]


@pytest.mark.parametrize("quantize", QUANTIZE)
@pytest.mark.parametrize("dtype", LAW)
def test_every_prediction_is_that_of_a_plain_forward_of_the_rounded_model(
    folder: Path, quantize: str, dtype: str
) -> None:
    model = load_model(str(folder), quantize=quantize, dtype=dtype, engine="cached")
    assert len(rounded(model.hf_model)) == 14 and model.dtype == dtype
    assert distance(model, [*grown(0), *grown(1)]) <= LAW[dtype]


@pytest.mark.parametrize("quantize", QUANTIZE)
def test_a_lookahead_is_greedy_by_plain_forwards_of_the_rounded_model(folder: Path, quantize: str) -> None:
    for dtype, tolerance in LAW.items():
        model = load_model(str(folder), quantize=quantize, dtype=dtype)
        assert_greedy(model, list(range(2, 30)), k=4, depth=6, tolerance=tolerance)


@pytest.mark.parametrize("quantize", QUANTIZE)
def test_quantization_changes_the_predictions_but_not_much(folder: Path, quantize: str) -> None:
    model = load_model(str(folder), quantize=quantize, dtype="float32")
    (few,), (full,) = (plain_rows(each, [list(range(2, 30))]) for each in (model.hf_model, llama()))
    assert 1e-3 < float((few - full).abs().max() / full.abs().max()) < {"4bit": 0.5, "8bit": 0.05}[quantize]


def apart(hf_model: Any, nodes: list[Node]) -> float:
    """What company changes: rows evaluated together, by both engines, against each evaluated alone."""
    model = load_model(hf_model, tokenizer=None)
    largest = 0.0
    for engine in (model.engine, UncachedEngine(hf_model)):
        together = engine.evaluate(nodes).clone()
        engine.free([node for node in nodes if node.depth > nodes[0].depth])
        alone = torch.cat([engine.evaluate([node]).clone() for node in nodes])
        largest = max(largest, float((together - alone).abs().max() / alone.abs().max()))
    return largest


@functools.cache
def apart_unrounded(dtype: torch.dtype) -> float:
    """The same for weights that nobody has rounded."""
    return apart(llama().to(dtype), grown(2))


def makes(kind: str, quantize: str, folder: Path, dtype: torch.dtype) -> Any:
    if kind == "bitsandbytes":
        return rounded_by_bitsandbytes(folder, quantize, dtype)
    return load_model(str(folder), quantize=quantize, dtype=str(dtype).removeprefix("torch.")).hf_model


# Rounded activations (eight bits on a GPU) jump where a float moves over an edge, so they are as coarse as bfloat16.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "quantize", "dtype"),
    mostly_slow(
        [
            ("torchao", "8bit", torch.bfloat16),
            ("torchao", "4bit", torch.float32),
            ("torchao", "8bit", torch.float32),
            ("torchao", "4bit", torch.bfloat16),
            ("bitsandbytes", "4bit", torch.bfloat16),
            ("bitsandbytes", "8bit", torch.bfloat16),
        ],
        2,
    ),
)
def test_a_quantized_row_does_not_depend_on_the_other_rows_of_its_pass(
    folder: Path, kind: str, quantize: str, dtype: torch.dtype
) -> None:
    plain = apart_unrounded(dtype)
    floor = {torch.float32: 1e-6, torch.bfloat16: 1e-2}[dtype]
    assert apart(makes(kind, quantize, folder, dtype), grown(2)) <= max(2 * plain, floor)


def test_the_test_of_row_independence_detects_scales_over_all_rows() -> None:
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, PerTensor, quantize_

    hf_model = llama()
    quantize_(hf_model.model, Int8DynamicActivationInt8WeightConfig(granularity=PerTensor(), set_inductor_config=False))
    assert apart(hf_model, grown(2)) > 1e-3


@pytest.mark.slow
def test_on_a_gpu_no_outliers_are_chosen_over_all_rows_and_four_bits_round_weights_alone() -> None:
    eight, four = (quantization_config(bits, "cuda", torch.bfloat16) for bits in ("8bit", "4bit"))
    assert eight.load_in_8bit and eight.llm_int8_threshold == 0.0
    assert four.load_in_4bit and four.bnb_4bit_compute_dtype is torch.bfloat16


@pytest.mark.parametrize("quantize", QUANTIZE)
@pytest.mark.parametrize("dtype", LAW)
def test_quantised_layers_are_not_packed(folder: Path, quantize: str, dtype: str) -> None:
    model = load_model(str(folder), quantize=quantize, dtype=dtype, engine="cached")
    model_copy: Any = model.engine.model_copy  # type: ignore[attr-defined]
    kinds = [type(module) for module in model_copy.model.modules()]
    assert PackedLinear not in kinds
    assert {id(value) for value in model_copy.model.parameters()} == {id(p) for p in model.hf_model.model.parameters()}
    assert type(model_copy.lm_head) is not nn.Linear, "the output matrix is not quantised, and packed"


@pytest.mark.parametrize("quantize", QUANTIZE)
def test_the_rounded_model_in_hand_behaves_afterwards_as_it_did_before(folder: Path, quantize: str) -> None:
    model = load_model(str(folder), quantize=quantize, dtype="float32")
    assert_unchanged(model.hf_model, model)


def test_the_small_model_of_the_probe_is_not_quantized(folder: Path) -> None:
    config = load_model(str(folder), quantize="8bit").hf_model.config
    assert config.quantization_config and not hasattr(small_config(config), "quantization_config")


def assert_unchanged(hf_model: Any, model: Model | None = None) -> None:
    """Its logits to the bit, its modules, parameters and configuration, over a load and some work."""
    start = [list(range(2, 30))]
    before = plain_rows(hf_model, start) if model is None else None
    held = {name: (id(value), type(value)) for name, value in hf_model.named_parameters()}
    kinds, requested = [type(module) for module in hf_model.modules()], hf_model.config.quantization_config
    document = Document(model or load_model(hf_model, tokenizer=None), token_ids=start[0])
    before = before or plain_rows(hf_model, start)
    document.accept(document.lookahead(k=3, depth=4).branches[1], 2)
    document.lookahead(k=3, depth=4)
    assert torch.equal(before[0], plain_rows(hf_model, start)[0])
    assert {name: (id(value), type(value)) for name, value in hf_model.named_parameters()} == held
    assert [type(module) for module in hf_model.modules()] == kinds
    assert hf_model.config.quantization_config is requested


@pytest.mark.slow
@pytest.mark.parametrize("quantize", QUANTIZE)
def test_a_model_in_hand_that_bitsandbytes_rounded_keeps_the_laws(folder: Path, quantize: str) -> None:
    fresh, used = (rounded_by_bitsandbytes(folder, quantize, torch.bfloat16) for _ in range(2))
    assert_unchanged(used)
    assert_unchanged(fresh, load_model(fresh, tokenizer=None))
    model = load_model(rounded_by_bitsandbytes(folder, quantize, torch.bfloat16), tokenizer=None)
    assert model.quantization == quantize.replace("bit", " bit") and not model.engine_reason
    assert distance(model, [*grown(0), *grown(1)], used) <= LAW["bfloat16"]
    assert distance(model, grown(3)) <= LAW["bfloat16"]


def test_a_model_copy_shares_what_bitsandbytes_keeps_beside_its_parameters(folder: Path) -> None:
    for quantize in QUANTIZE:
        hf_model = rounded_by_bitsandbytes(folder, quantize, torch.bfloat16)
        layer = hf_model.model.layers[0].mlp.up_proj
        own = load_model(hf_model, tokenizer=None).engine.model_copy.model.layers[0].mlp.up_proj  # type: ignore[attr-defined]
        assert own is not layer and own.weight is layer.weight
        if quantize == "8bit":
            assert own.state is not layer.state and own.state.CB is layer.state.CB and own.state.SCB is layer.state.SCB
        else:
            assert own.quant_state is layer.quant_state


def test_a_quantized_model_describes_its_bits_and_takes_less_memory(folder: Path) -> None:
    sizes = {}
    for quantize, message in {None: "", "8bit": " · 8 bit", "4bit": " · 4 bit"}.items():
        model = load_model(str(folder), quantize=quantize, dtype="bfloat16")
        assert model.describe() == f"tiny · CPU · bfloat16{message} · cached"
        assert model.quantization == message.removeprefix(" · ")
        sizes[quantize] = sum(map(size, model.hf_model.model.layers.parameters()))
    assert sizes["4bit"] < 0.7 * sizes["8bit"] < 0.5 * sizes[None]
    assert load_model(str(folder), quantize="4bit").dtype == "bfloat16", "what such products are fastest in"


def size(parameter: torch.Tensor) -> int:
    parts = [*getattr(parameter, "tensor_data_names", ()), *getattr(parameter, "optional_tensor_data_names", ())]
    held = [getattr(parameter, name) for name in parts] if parts else [parameter]
    return sum(each.nbytes for each in held if each is not None)


def test_quantized_weights_keep_their_dtype(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "fastest_dtype", lambda device: torch.float32)
    for quantize, dtype in ((None, torch.float32), ("8bit", torch.bfloat16), ("4bit", torch.bfloat16)):
        hf_model = load_model(str(folder), quantize=quantize, dtype="bfloat16").hf_model
        placement.move_to_device(hf_model, "cpu", None)
        assert {value.dtype for value in hf_model.parameters()} == {dtype}


def test_matrices_that_four_bits_do_not_fit_stay_as_they_are(tmp_path: Path) -> None:
    llama(intermediate_size=72).save_pretrained(tmp_path)
    model = load_model(str(tmp_path), quantize="4bit", dtype="float32", engine="cached")
    assert not any("mlp" in name for name in rounded(model.hf_model)) and len(rounded(model.hf_model)) == 8
    assert distance(model, grown(0)) <= LAW["float32"]


def test_a_model_without_quantizable_weights_raises_an_error(tmp_path: Path) -> None:
    config = transformers.GPT2Config(n_embd=32, n_layer=1, n_head=2, vocab_size=64, bos_token_id=1, eos_token_id=2)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="no weights that can be quantized: leave quantize out"):
        load_model(str(tmp_path), quantize="8bit")


def test_quantized_weights_are_not_quantized_again(folder: Path, tmp_path: Path) -> None:
    gguf = write_gguf(tmp_path / "tiny.gguf", tiny_llama())
    with pytest.raises(ModelError, match=r"tiny\.gguf cannot be quantized at load: leave quantize out, or give"):
        load_model(str(gguf), quantize="4bit")
    assert load_model(str(gguf), tokenizer=None).quantization == ""
    rounded_by_bitsandbytes(folder, "4bit").save_pretrained(tmp_path / "stored")
    with pytest.raises(ModelError, match="stored is stored quantized already: leave quantize out"):
        load_model(str(tmp_path / "stored"), quantize="4bit")
    stored = load_model(str(tmp_path / "stored"))
    assert stored.quantization == "4 bit" and distance(stored, grown(0)) <= LAW["bfloat16"]


@pytest.mark.parametrize(("device", "library"), [("cpu", "torchao"), ("cuda", "bitsandbytes")])
def test_a_missing_quantization_library_is_named_in_the_error(
    device: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModelError, match=rf'quantize="8bit" on {device} needs a library: run `pip install "{library}>'):
        quantization_config("8bit", device, torch.bfloat16)
    with pytest.raises(ModelError, match="There is no quantization on mps: leave quantize out, or choose"):
        quantization_config("8bit", "mps", torch.bfloat16)


def test_a_missing_library_does_not_make_the_default_model_look_damaged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torchao.quantization", None)
    heard: list[str] = []
    with pytest.raises(ModelError, match="needs a library: run"):
        load_model(quantize="8bit", device="cpu", report=lambda sentence, fraction: heard.append(sentence))
    assert heard == []


@pytest.mark.parametrize("engine", ["auto", "uncached"])
def test_a_model_whose_products_do_not_support_quantization_raises_an_error_at_load(
    tmp_path: Path, engine: str
) -> None:
    make("falcon").save_pretrained(tmp_path / "falcon")
    with pytest.raises(ModelError, match="falcon computes in a way that quantized weights do not allow: leave quant"):
        load_model(str(tmp_path / "falcon"), quantize="8bit", engine=engine)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"quantize": "2bit"}, "quantize is '2bit', and must be one of None, 4bit, 8bit"),
        ({"quantize": True}, "quantize is True, and must be one of"),
        ({"quantize": 4}, "quantize is 4, and must be one of"),
        ({"device_map": "everywhere"}, "device_map is 'everywhere', and must be auto, balanced"),
        ({"device_map": {}}, "device_map is {}, and must be auto"),
        ({"device_map": {"": None}}, "device_map is .*, and must be auto"),
        ({"device_map": {1: "cpu"}}, "device_map is .*, and must be auto"),
        ({"device_map": True}, "device_map is True, and must be auto"),
        ({"device_map": -1}, "device_map is -1, and must be auto"),
        ({"device_map": "auto", "device": "cpu"}, "device is 'cpu' and device_map is 'auto': give one of them"),
    ],
)
def test_a_wrong_value_is_named_in_the_error(folder: Path, given: dict[str, Any], message: str) -> None:
    for source in (str(folder), llama()):
        with pytest.raises(ValueError, match=message):
            load_model(source, **given)


@pytest.mark.parametrize("given", [{"quantize": "4bit"}, {"device_map": "auto"}, {"device_map": {"": "cpu"}}])
def test_a_model_in_hand_is_neither_rounded_nor_moved(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"{next(iter(given))} is .*, but the model you hold is loaded already"):
        load_model(llama(), tokenizer=None, **given)


@pytest.mark.slow
@pytest.mark.parametrize("quantize", mostly_slow([None, *QUANTIZE], 1))
@pytest.mark.parametrize("device_map", ["auto", "sequential", "cpu", torch.device("cpu"), {"": "cpu"}])
def test_a_device_map_goes_to_transformers(
    folder: Path, device_map: Any, quantize: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if device_map in ("auto", "sequential") and torch.cuda.is_available():
        pytest.skip("there it means a GPU")
    requested: list[Any] = []
    load = transformers.PreTrainedModel.from_pretrained.__func__

    def listening(cls: Any, *given: Any, **message: Any) -> Any:
        requested.append(message.get("device_map"))
        return load(cls, *given, **message)

    monkeypatch.setattr(transformers.PreTrainedModel, "from_pretrained", classmethod(listening))
    model = load_model(str(folder), device_map=device_map, quantize=quantize, dtype="float32")
    assert requested == [device_map] and model.device == "cpu"
    assert distance(model, grown(0)) <= LAW["float32"]


def test_a_model_that_does_not_fit_its_devices_raises_an_error(folder: Path) -> None:
    hf_model = llama()
    for spread in ({"model": 0, "lm_head": "cpu"}, {"": "disk"}):
        hf_model.hf_device_map = spread
        with pytest.raises(ModelError, match=r"not enough room on cuda .*: choose a smaller model, or quantize="):
            placement.move_to_device(hf_model, "cuda", None)
    if not torch.cuda.is_available():
        with pytest.raises(ModelError, match="There is no cuda device on this machine"):
            load_model(str(folder), device_map={"": 0})


@pytest.mark.slow
@pytest.mark.parametrize(("quantize", "dtype"), [("4bit", "bfloat16"), ("8bit", "bfloat16"), ("8bit", "float32")])
def test_the_default_model_keeps_the_laws_in_few_bits(quantize: str, dtype: str) -> None:
    model = load_model(os.environ.get("LOOKAHEAD_TEST_MODEL") or None, quantize=quantize, dtype=dtype)
    assert model.describe().endswith(f" · CPU · {dtype} · {quantize[0]} bit · cached")
    assert len(rounded(model.hf_model)) == 7 * 30
    assert distance(model, grown(4, nodes=6)) <= LAW[dtype]
    start = model.tokenizer("After careful thought, the old lighthouse keeper").input_ids
    assert_greedy(model, start, k=2, depth=3, tolerance=LAW[dtype])
    assert Document(model, "Once upon a").lookahead(k=1, depth=1).branches[0].text == " time"
