"""load_model: make a `Model` with a fitting engine from a name, a folder, a file or a loaded transformers model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.cpu.prepare import COMPUTE, PLAIN, Computation, prepare
from lookahead_core.engines.probe import fit, why_no_graphs
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.errors import ModelError
from lookahead_core.loading.default_model import DEFAULT_NAME
from lookahead_core.loading.device import DEVICES, check_device_map, compute_device, load_dtype, move_to_device
from lookahead_core.loading.from_transformers import no_report
from lookahead_core.loading.quantization import (
    QUANTIZE,
    check_quantized_products,
    describe_quantization,
    is_quantized,
    quantization_config,
)
from lookahead_core.loading.server import addresses_of, connect
from lookahead_core.loading.sources import load_weights
from lookahead_core.loading.special_tokens import first_end_tokens, first_start_token
from lookahead_core.model import Model
from lookahead_core.settings import Settings
from lookahead_core.text.codec import TextCodec

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""Values of the option `dtype`, besides "auto"."""
ENGINES = ("auto", "cached", "uncached")
"""Values of the option `engine`."""
GRAPHS = "CUDA graphs"
"""How passes of few rows are computed on a GPU."""
OWN_TOKENIZER: Any = object()
"""Default of `tokenizer`: the one that comes with the model. None means no tokenizer."""


def load_model(
    source: Any = None,
    *,
    tokenizer: Any = OWN_TOKENIZER,
    revision: str | None = None,
    model_name: str | None = None,
    dtype: str = "auto",
    device: str = "auto",
    device_map: Any = None,
    quantize: str | None = None,
    engine: str = "auto",
    trust_remote_code: bool = False,
    settings: Settings | None = None,
    report: Callable[[str, float | None], None] = no_report,
) -> Model:
    """Return a `Model` from a Hub id, a folder, a .gguf file, a loaded transformers model or a server's address.

    None is the model of the settings, or the default model if they name none. A loaded model stays on its device and in
    its dtype, its own behaviour does not change, and it has no tokenizer unless you pass one; options that would load
    it otherwise raise ValueError. For any other source `tokenizer` replaces the model's own; None means none. `dtype`
    is a name such as "float32"; "auto" is the fastest of the device, or half precision with `quantize`, which is "4bit"
    or "8bit". `device` is "cpu", "cuda" or "mps"; `device_map`, which may be given in its place, is that of
    transformers, or the same as JSON. `engine` is "cached" or "uncached". `settings` has the values of options that are
    "auto" or not set; None reads the environment. `report` is called with a sentence and a fraction of the progress, or
    None where that is unknown.

    An address, such as "http://host:8000/v1", is that of a server with an OpenAI-compatible completions call that gives
    token ids and log-probabilities, as vLLM's. `model_name` is needed if it serves several models, and is for servers
    only. Its `tokenizer` may also be a folder or Hub id; without one the folder or Hub id is used that the server
    names. Options that would load a model otherwise raise ValueError.

    Several addresses, as a list or separated by commas, are replicas: servers of the same model. A document stays on
    one of them, and goes on at another if that one no longer answers.

    Raises ValueError for a wrong option, and ModelError, which says what to do, if the model cannot be loaded.
    """
    if not isinstance(settings, Settings | None):
        raise ValueError(f"settings is {type(settings).__name__}, and must be a Settings, or None for the environment.")
    settings = settings or Settings.from_env()
    if addresses := addresses_of(settings.model if source is None else source):
        _check_server_options(
            dtype=dtype, device=device, engine=engine, device_map=device_map, quantize=quantize, revision=revision
        )
        settings = replace(settings, trust_remote_code=trust_remote_code or settings.trust_remote_code)
        report("Connecting to the model's server", None)
        return connect(addresses, model_name, tokenizer, OWN_TOKENIZER, settings)
    if not (tokenizer is None or tokenizer is OWN_TOKENIZER or hasattr(tokenizer, "all_special_ids")):
        raise ValueError(f"tokenizer is {tokenizer!r}, and must be a tokenizer of transformers, or None.")
    engine = settings.engine if engine == "auto" else engine
    is_loaded = source is not None and not isinstance(source, str | os.PathLike)
    if not is_loaded:
        dtype = settings.dtype if dtype == "auto" else dtype
        if device == "auto" and device_map is None:
            device, device_map = settings.device, settings.device_map or None
        trust_remote_code = trust_remote_code or settings.trust_remote_code
    device_map = _parsed_device_map(device_map)
    check_device_map(device_map, device)
    _check_options(dtype, device, engine, quantize, settings.compute)
    if is_loaded:
        _check_loaded_model(
            source,
            dtype=dtype,
            device=device,
            device_map=device_map,
            quantize=quantize,
            revision=revision,
            model_name=model_name,
            trust_remote_code=trust_remote_code or None,
        )
        name = getattr(source, "name_or_path", "") or type(source).__name__
        return _assemble(name, source, None if tokenizer is OWN_TOKENIZER else tokenizer, engine, settings)
    name = os.fspath(source or settings.model)
    if model_name is not None:
        raise ValueError(f"model_name is {model_name!r}, and is for the address of a server; leave it out.")
    device_type = compute_device(device, device_map)
    half_precision = quantize is not None or (device_map is not None and device_type != "cpu")
    torch_dtype = load_dtype(DTYPES.get(dtype), device_type, half_precision=half_precision)
    hf_model, own_tokenizer = load_weights(
        name,
        revision=revision,
        trust_remote_code=trust_remote_code,
        dtype=torch_dtype,
        device_map=device_map,
        quantization=quantization_config(quantize, device_type, torch_dtype),
        settings=settings,
        report=report,
    )
    move_to_device(hf_model, device_type, torch_dtype)
    if quantize is not None:
        check_quantized_products(hf_model, name or DEFAULT_NAME)
    tokenizer = own_tokenizer if tokenizer is OWN_TOKENIZER else tokenizer
    return _assemble(name or DEFAULT_NAME, hf_model, tokenizer, engine, settings)


def _check_server_options(**options: Any) -> None:
    """Raise a ValueError for the first option that is set and that a server has decided already."""
    for name, value in options.items():
        if value not in ("auto", None):
            raise ValueError(f"{name} is {value!r}, but the server has loaded the model already; leave it out.")


def _parsed_device_map(device_map: Any) -> Any:
    """Return the device map; parsed if it is a string of JSON (from a command line, for example), else as it is."""
    if not isinstance(device_map, str):
        return device_map
    try:
        return json.loads(device_map)
    except ValueError:
        return device_map


def _check_options(dtype: str, device: str, engine: str, quantize: str | None, compute: str) -> None:
    """Raise a ValueError that names the first option with a wrong value, and its allowed values, if there is one."""
    for name, value, allowed in (
        ("dtype", dtype, ("auto", *DTYPES)),
        ("device", device, DEVICES),
        ("engine", engine, ENGINES),
        ("quantize", quantize, (None, *QUANTIZE)),
        ("LOOKAHEAD_COMPUTE", compute, COMPUTE),
    ):
        if value not in allowed:
            raise ValueError(f"{name} is {value!r}, and must be one of {', '.join(map(str, allowed))}.")


def _check_loaded_model(hf_model: Any, *, dtype: str, device: str, **loading_options: Any) -> None:
    """Raise ModelError if this is no language model of transformers, ValueError if an option asks to load it otherwise.

    `dtype` (such as "float32") and `device` (a type) may be "auto" or what the model has; all `loading_options` must be
    None.
    """
    is_model = isinstance(hf_model, nn.Module) and hasattr(hf_model, "config")
    if not (is_model and hf_model.get_output_embeddings()):
        raise ModelError(f"{type(hf_model).__name__} is not a language model of transformers; give one, or a name.")
    actual = {"dtype": str(hf_model.dtype).removeprefix("torch."), "device": hf_model.device.type}
    for name, value in (("dtype", dtype), ("device", device)):
        if value not in ("auto", actual[name]):
            raise ValueError(f"{name} is {value!r}, but the model you hold has {actual[name]}; convert it first.")
    for name, value in loading_options.items():
        if value is not None:
            raise ValueError(f"{name} is {value!r}, but the model you hold is loaded already; give its name instead.")


def _assemble(name: str, hf_model: Any, tokenizer: Any, engine: str, settings: Settings) -> Model:
    """Return a loaded transformers model as a `Model` of this name, with the engine that `engine` selects.

    `tokenizer` may be None, and `engine` is one of ENGINES. Raises ModelError for an encoder-decoder model, and the
    errors of `_choose_engine`.
    """
    if getattr(hf_model.config, "is_encoder_decoder", False):
        raise ModelError(f"{name} is an encoder-decoder model; choose a model that continues a text.")
    vocabulary = hf_model.get_input_embeddings().weight.shape[0]
    codec = TextCodec(tokenizer, vocabulary)
    chosen, reason = _choose_engine(hf_model, engine, settings)
    text_config = hf_model.config.get_text_config(decoder=True)
    return Model(
        name=name,
        hf_model=hf_model,
        tokenizer=tokenizer,
        codec=codec,
        engine=chosen,
        engine_reason=reason,
        end_token_ids=frozenset(token_id for token_id in end_tokens(hf_model, tokenizer) if token_id < vocabulary),
        start_ids=codec.start_ids or first_start_token((tokenizer, text_config)),
        vocabulary=vocabulary,
        context_length=context_length(text_config),
        quantization=describe_quantization(hf_model),
        computation=chosen.computation,
    )


def _choose_engine(hf_model: Any, engine: str, settings: Settings) -> tuple[CachedEngine | UncachedEngine, str]:
    """Return the engine for a model, and why it is the uncached one; the reason is empty for the cached one.

    `engine` is one of ENGINES: "auto" gives the cached engine if the probe (`fit`) shows that the model can use it.
    Raises ModelError if "cached" cannot be used, or if the model fails in the uncached engine. Out-of-memory errors
    pass through.
    """
    if engine == "uncached":
        return _uncached(hf_model), "it was asked for"
    found = fit(hf_model)
    if not found.cached:
        if engine == "cached":
            raise ModelError(f'This model cannot use the cached engine: {found.reason}; leave engine at "auto".')
        return _uncached(hf_model), found.reason
    return engine_like(hf_model, found.attention, settings), ""


def engine_like(hf_model: Any, attention: str | None, settings: Settings) -> CachedEngine | UncachedEngine:
    """Return a cached engine with this attention, or with None an uncached engine; the choice is not checked.

    Also for a model whose engine was chosen before, such as one whose weights have been moved since.
    """
    if attention is None:
        return _uncached(hf_model)
    cached = CachedEngine(hf_model, cache_bytes=settings.cache_bytes, attention=attention)
    cached.computation = prepare(cached.model_copy, compute=settings.compute)
    if hf_model.device.type == "cuda" and settings.compute != "plain":
        _use_graphs(cached, hf_model, attention)
    cached.measure_slot_bytes()
    return cached


def _use_graphs(engine: CachedEngine, hf_model: Any, attention: str) -> None:
    """Let the engine of a model on a GPU use CUDA graphs if the model can; say so, or why not, in its `computation`."""
    if is_quantized(hf_model):
        reason = "the weights are quantized"
    elif len(set((getattr(hf_model, "hf_device_map", None) or {}).values())) > 1:
        reason = "the model is spread over several devices"
    else:
        reason = why_no_graphs(hf_model, attention)
    if reason:
        engine.computation = replace(engine.computation, reason=f"CUDA graphs are not used: {reason}")
        return
    engine.use_graphs()
    engine.computation = Computation(GRAPHS, PLAIN)


def _uncached(hf_model: Any) -> UncachedEngine:
    engine = UncachedEngine(hf_model)
    engine.check_forward()
    return engine


def end_tokens(hf_model: Any, tokenizer: Any) -> frozenset[int]:
    """Return the ids of the end tokens: `eos_token_id` of the generation config, else of the config or the tokenizer.

    The first of these three whose `eos_token_id` is not None counts; the result is empty if there is none. The
    tokenizer may be None.
    """
    return first_end_tokens((getattr(hf_model, "generation_config", None), hf_model.config, tokenizer))


def context_length(config: Any) -> int | None:
    """Return the context length in tokens that a model's text config states; None if it states none.

    With dynamic rotary scaling it is multiplied by the scaling's factor.
    """
    length = getattr(config, "max_position_embeddings", None) or getattr(config, "max_seq_len", None)
    rope = getattr(config, "rope_parameters", None) or {}
    if length and rope.get("rope_type") == "dynamic":
        return int(length * rope["factor"])
    return length
