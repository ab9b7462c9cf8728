"""`load_model`: options for a loaded model, end and start tokens, and refused sources."""

from __future__ import annotations

import copy
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from lookahead_core import Document, Model, ModelError, Settings, TextError, load_model
from lookahead_core.loading.load_model import context_length, end_tokens
from tests.conftest import tiny_llama
from tests.support.families import make


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, byte_tokenizer: Any) -> Path:
    place = tmp_path_factory.mktemp("models") / "tiny"
    tiny_llama(len(byte_tokenizer)).save_pretrained(place)
    byte_tokenizer.save_pretrained(place)
    return place


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("revision", "main"),
        ("model_name", "tiny"),
        ("trust_remote_code", True),
        ("quantize", "8bit"),
        ("device_map", "auto"),
    ],
)
def test_options_for_loading_by_name_are_refused_for_a_loaded_model(name: str, value: Any) -> None:
    sentence = f"{name} is {value!r}, but the model you hold is loaded already; give its name instead."
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        load_model(tiny_llama(96), tokenizer=None, **{name: value})


@pytest.mark.parametrize("value", ["main", "v1"])
def test_a_revision_of_a_folder_or_a_file_is_refused(folder: Path, tmp_path: Path, value: str) -> None:
    (file := tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    for source in (folder, file):
        with pytest.raises(
            ModelError, match=f"revision is '{value}', but .*{source.name} is a path on this machine: leave"
        ):
            load_model(source, revision=value)


@pytest.mark.parametrize("name", ["dtype", "device"])
def test_a_model_in_hand_stays_in_its_type_and_on_its_device(name: str) -> None:
    held = {"dtype": "float32", "device": "cpu"}[name]
    other = {"dtype": "bfloat16", "device": "mps"}[name]
    assert getattr(load_model(tiny_llama(96), tokenizer=None, **{name: held}), name) == held
    with pytest.raises(ValueError, match=f"{name} is '{other}', but the model you hold has {held}; convert it first"):
        load_model(tiny_llama(96), tokenizer=None, **{name: other})


def test_settings_for_loading_by_name_leave_a_model_in_hand_alone() -> None:
    settings = Settings(dtype="bfloat16", device="mps", device_map="auto", trust_remote_code=True)
    model = load_model(tiny_llama(96), tokenizer=None, settings=settings)
    assert (model.dtype, model.device) == ("float32", "cpu")


@pytest.mark.parametrize("source", [3, object(), torch.nn.Linear(2, 2), transformers.BertConfig()])
def test_a_source_that_is_no_language_model_is_refused(source: Any) -> None:
    with pytest.raises(ModelError, match=f"{type(source).__name__} is not a language model of transformers; give one"):
        load_model(source)


def test_models_without_an_output_matrix_and_encoder_decoder_models_are_refused() -> None:
    bare = tiny_llama(96).model
    with pytest.raises(ModelError, match="LlamaModel is not a language model of transformers"):
        load_model(bare)
    shape = {"d_model": 16, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2, "vocab_size": 96}
    with pytest.raises(ModelError, match="is an encoder-decoder model; choose a model that continues a text"):
        load_model(transformers.T5ForConditionalGeneration(transformers.T5Config(**shape)))


def test_a_name_on_a_server_is_refused_for_a_model_of_this_machine() -> None:
    with pytest.raises(ValueError, match="model_name is 'x', and is for the address of a server; leave it out"):
        load_model("some/name", model_name="x")


@pytest.mark.parametrize(
    "options", [{"dtype": "float32"}, {"device": "cpu"}, {"engine": "cached"}, {"quantize": "8bit"}, {"revision": "x"}]
)
def test_options_that_a_server_has_decided_are_refused(options: dict[str, str]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=f"{name} is .*, but the server has loaded the model already; leave it out"):
        load_model("http://host:8000/v1", **options)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"dtype": "float12"}, "dtype is 'float12', and must be one of auto, float32, bfloat16, float16."),
        ({"device": "toaster"}, "device is 'toaster', and must be one of auto, cpu, cuda, mps."),
        ({"engine": "steam"}, "engine is 'steam', and must be one of auto, cached, uncached."),
    ],
)
def test_a_wrong_value_is_named_with_the_allowed_ones(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        load_model(tiny_llama(96), **given)


def test_the_device_map_of_the_settings_applies_if_no_device_is_given(folder: Path) -> None:
    spread = Settings(device_map='{"": "cpu"}', dtype="float32")
    assert load_model(folder, settings=spread).device == "cpu"
    for wrong in ("nowhere", "{nowhere", '{"": 1.5}', "-2"):
        settings = replace(spread, device_map=wrong)
        with pytest.raises(ValueError, match=r"device_map is .*, and must be auto, balanced"):
            load_model(folder, settings=settings)
        assert load_model(folder, device="cpu", settings=settings).device == "cpu"
    with pytest.raises(ValueError, match="device is 'cpu' and device_map is 'auto': give one of them"):
        load_model(folder, settings=Settings(device="cpu", device_map="auto"))


def test_a_device_map_may_be_a_string(folder: Path) -> None:
    assert load_model(folder, dtype="float32", device_map='{"": "cpu"}').device == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(ModelError, match="There is no cuda device on this machine"):
            load_model(folder, device_map="0")


OWN = """
import transformers

class OwnConfig(transformers.LlamaConfig):
    model_type = "own"

class OwnForCausalLM(transformers.LlamaForCausalLM):
    config_class = OwnConfig
"""


def test_a_models_own_code_runs_only_if_it_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    place = tmp_path / "own"
    hf_model = tiny_llama(96)
    hf_model.config.auto_map = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnForCausalLM"}
    hf_model.save_pretrained(place)
    config = (place / "config.json").read_text().replace('"model_type": "llama"', '"model_type": "own"')
    (place / "config.json").write_text(config)
    (place / "own.py").write_text(OWN)
    for message in ({"trust_remote_code": True}, {"settings": Settings(trust_remote_code=True)}):
        assert type(load_model(place, dtype="float32", **message).hf_model).__name__ == "OwnForCausalLM"
    with pytest.raises(ModelError, match="runs code of its own: if you trust it, set trust_remote_code=True"):
        load_model(place, dtype="float32")


# What a model is told by its parts.


def holding(**values: Any) -> Any:
    return transformers.PretrainedConfig(**{"eos_token_id": None, "bos_token_id": None} | values)


def test_end_tokens_are_the_generation_configs_else_the_configs_else_the_tokenizers(byte_tokenizer: Any) -> None:
    hf_model = tiny_llama(96, eos_token_id=7)
    hf_model.generation_config.eos_token_id = [3, 5]
    assert end_tokens(hf_model, byte_tokenizer) == {3, 5}
    hf_model.generation_config.eos_token_id = 4
    assert end_tokens(hf_model, byte_tokenizer) == {4}
    hf_model.generation_config.eos_token_id = None
    assert end_tokens(hf_model, byte_tokenizer) == {7}
    hf_model.config.eos_token_id = 0
    assert end_tokens(hf_model, byte_tokenizer) == {0}, "0 is an id like any other"
    hf_model.config.eos_token_id = None
    byte_tokenizer.eos_token = "<|start|>"
    assert end_tokens(hf_model, byte_tokenizer) == {1}
    byte_tokenizer.eos_token = "<|end|>"
    assert end_tokens(hf_model, None) == frozenset()


def test_end_tokens_beyond_the_vocabulary_end_nothing() -> None:
    hf_model = tiny_llama(96)
    hf_model.generation_config.eos_token_id = [95, 96]
    model = load_model(hf_model, tokenizer=None)
    assert (model.end_token_ids, model.vocabulary) == ({95}, 96)


def test_an_empty_text_starts_from_the_start_token_of_the_tokenizer_else_the_config(
    byte_tokenizer: Any, fallback_tokenizer: Any
) -> None:
    assert load_model(tiny_llama(len(fallback_tokenizer)), tokenizer=fallback_tokenizer).start_ids == (1,)
    assert load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer).start_ids == (1,)
    hf_model = tiny_llama(96, bos_token_id=7)
    assert load_model(hf_model, tokenizer=None).start_ids == (7,)
    hf_model.config.bos_token_id = None
    assert load_model(hf_model, tokenizer=None).start_ids == ()


def test_the_context_length_is_that_of_the_config_times_the_factor_of_dynamic_rope() -> None:
    assert context_length(holding()) is None
    assert context_length(holding(max_seq_len=70)) == 70
    assert context_length(holding(max_position_embeddings=60, max_seq_len=70)) == 60
    dynamic = {"rope_type": "dynamic", "factor": 2.5}
    assert context_length(holding(max_position_embeddings=60, rope_parameters=dynamic)) == 150
    linear = {"rope_type": "linear", "factor": 2.5}
    assert context_length(holding(max_position_embeddings=60, rope_parameters=linear)) == 60
    assert context_length(holding(rope_parameters=dynamic)) is None


def test_a_model_is_described_in_one_line(tiny_model: Model, folder: Path) -> None:
    named = replace(tiny_model, name="some/where/tiny/")
    assert named.describe() == "tiny · CPU · float32 · cached"
    assert replace(named, quantization="4 bit").describe() == "tiny · CPU · float32 · 4 bit · cached"
    model = load_model(folder, dtype="float32", engine="uncached")
    assert (model.name, model.engine_reason) == (str(folder), "it was asked for")
    assert model.describe() == "tiny · CPU · float32 · uncached"


def test_a_model_in_hand_goes_by_its_own_name_or_that_of_its_class() -> None:
    hf_model = tiny_llama(96)
    assert load_model(hf_model, tokenizer=None).name == "LlamaForCausalLM"
    hf_model.name_or_path = "mine"
    assert load_model(hf_model).name == "mine"
    assert load_model(hf_model).tokenizer is None


# Which engine fits.


class Narrow(transformers.LlamaForCausalLM):
    """A model that cannot be made small."""

    said = "It has\nmany heads."

    def forward(self, input_ids: torch.Tensor | None = None, **options: Any) -> Any:
        if self.config.hidden_size == 64:
            raise RuntimeError(self.said)
        return super().forward(input_ids, **options)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("\n  The heads do not fit:\n  a trace", "(RuntimeError: The heads do not fit:)"),
        ("", "(RuntimeError)"),
    ],
)
def test_the_reason_for_the_uncached_engine_has_the_first_line_of_the_probes_error(
    said: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Narrow, "said", said)
    hf_model = Narrow(tiny_llama(96).config).eval()
    model = load_model(hf_model, tokenizer=None)
    assert model.engine_reason == f"a small model of its architecture fails with a cache {message}"
    with pytest.raises(ModelError) as raised:
        load_model(hf_model, tokenizer=None, engine="cached")
    assert str(raised.value) == (
        f"This model cannot use the cached engine: a small model of its architecture fails with a cache {message}; "
        'leave engine at "auto".'
    )


def test_the_error_for_a_model_that_does_not_fit_the_cached_engine_gives_the_reason() -> None:
    hf_model = make("bloom")
    assert load_model(hf_model).engine_reason
    with pytest.raises(ModelError, match=r'cannot use the cached engine: .*; leave engine at "auto"'):
        load_model(hf_model, engine="cached")
    uncached = Settings(engine="uncached")
    assert load_model(tiny_llama(96), settings=uncached).engine_reason == "it was asked for"
    assert load_model(tiny_llama(96), engine="cached", settings=uncached).engine_reason == ""


def test_settings_of_another_type_are_refused_with_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"^settings is str, and must be a Settings, or None for the environment"):
        load_model(tiny_llama(96), tokenizer=None, settings="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("tokenizer", ["gpt2", 3, object])
def test_what_is_no_tokenizer_is_refused_before_anything_is_loaded(tokenizer: Any) -> None:
    for source in (tiny_llama(96), "no/such-model"):
        with pytest.raises(ValueError, match="and must be a tokenizer of transformers, or None"):
            load_model(source, tokenizer=tokenizer)


def test_a_token_that_only_the_tokenizer_has_is_no_token_of_the_model(byte_tokenizer: Any) -> None:
    tokenizer = copy.deepcopy(byte_tokenizer)
    model = load_model(tiny_llama(len(tokenizer)), tokenizer=tokenizer)
    tokenizer.add_tokens(["<note>"])
    longer = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=tokenizer)
    document = Document(longer, "The sea")
    assert document.stream(max_new_tokens=5, forbidden=["note"], seed=1).write(io.StringIO()) == Document(
        model, "The sea"
    ).stream(max_new_tokens=5, forbidden=["note"], seed=1).write(io.StringIO())
    with pytest.raises(TextError, match="The model has no token for '<note>'; remove it"):
        document.text = "The sea <note>"
    document.text = "The sea is"
    assert document.lookahead(k=2, depth=2).branches
