"""load_model: from a name, a folder, a file or a model already held to a `Model` with the engine that fits it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.cpu.prepare import COMPUTE, prepare
from lookahead_core.engines.probe import fit
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.errors import ModelError
from lookahead_core.loading.default_model import DEFAULT_NAME
from lookahead_core.loading.device import DEVICES, check_map, kind_of_device, place, wanted_dtype
from lookahead_core.loading.from_transformers import silent
from lookahead_core.loading.quantization import QUANTIZE, configuration, require_products, told
from lookahead_core.loading.sources import load_weights
from lookahead_core.model import Model
from lookahead_core.settings import Settings
from lookahead_core.text.codec import TextCodec

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
ENGINES = ("auto", "cached", "uncached")
FROM_TOKENIZER: Any = object()
"""Stands for "the tokenizer that comes with the model", since None means that there is none."""


def load_model(
    source: Any = None,
    *,
    tokenizer: Any = FROM_TOKENIZER,
    revision: str | None = None,
    model_name: str | None = None,
    dtype: str = "auto",
    device: str = "auto",
    device_map: Any = None,
    quantize: str | None = None,
    engine: str = "auto",
    trust_remote_code: bool = False,
    settings: Settings | None = None,
    report: Callable[[str, float | None], None] = silent,
) -> Model:
    """A model by Hub id, folder or .gguf file; the default where nothing is said; or around one already held.

    A model already held stays on its device and in its type, and behaves afterwards as it did before. `quantize` is
    "4bit" or "8bit", in half precision where no type is said; `device_map` is what transformers takes by that name, or
    the same as JSON. `model_name` is for servers, which this version does not speak to yet.
    """
    settings = settings or Settings.from_env()
    engine = settings.engine if engine == "auto" else engine
    held = source is not None and not isinstance(source, str | os.PathLike)
    if not held:
        dtype = settings.dtype if dtype == "auto" else dtype
        if device == "auto" and device_map is None:
            device, device_map = settings.device, settings.device_map or None
        trust_remote_code = trust_remote_code or settings.trust_remote_code
    device_map = _parsed_map(device_map)
    check_map(device_map, device)
    _check(dtype, device, engine, quantize, settings.compute)
    if held:
        named = {"revision": revision, "model_name": model_name, "trust_remote_code": trust_remote_code or None}
        _check_held(source, dtype=dtype, device=device, device_map=device_map, quantize=quantize, **named)
        name = getattr(source, "name_or_path", "") or type(source).__name__
        return _assemble(name, source, None if tokenizer is FROM_TOKENIZER else tokenizer, engine, settings)
    name = os.fspath(source or settings.model)
    if model_name is not None or name.startswith(("http://", "https://")):
        raise ModelError(f"{name} is the address of a server, and this version loads models only by name or folder.")
    kind = kind_of_device(device, device_map)
    on_a_processor = device_map is None or kind == "cpu"
    wanted = wanted_dtype(DTYPES.get(dtype), kind, halves=quantize is not None or not on_a_processor)
    hf_model, own = load_weights(
        name,
        revision=revision,
        trust_remote_code=trust_remote_code,
        dtype=wanted,
        device_map=device_map,
        quantization=configuration(quantize, kind, wanted),
        settings=settings,
        report=report,
    )
    place(hf_model, kind, wanted)
    if quantize is not None:
        require_products(hf_model, name or DEFAULT_NAME)
    words = own if tokenizer is FROM_TOKENIZER else tokenizer
    return _assemble(name or DEFAULT_NAME, hf_model, words, engine, settings)


def _parsed_map(device_map: Any) -> Any:
    """The device map; one in a string of JSON, from a command line or the environment, as what it says."""
    if not isinstance(device_map, str):
        return device_map
    try:
        return json.loads(device_map)
    except ValueError:
        return device_map


def _check(dtype: str, device: str, engine: str, quantize: str | None, compute: str) -> None:
    for name, value, allowed in (
        ("dtype", dtype, ("auto", *DTYPES)),
        ("device", device, DEVICES),
        ("engine", engine, ENGINES),
        ("quantize", quantize, (None, *QUANTIZE)),
        ("LOOKAHEAD_COMPUTE", compute, COMPUTE),
    ):
        if value not in allowed:
            raise ValueError(f"{name} is {value!r}, and must be one of {', '.join(map(str, allowed))}.")


def _check_held(hf_model: Any, *, dtype: str, device: str, **for_names_only: Any) -> None:
    """A model that somebody holds already is used where and as it is."""
    if not (isinstance(hf_model, nn.Module) and hasattr(hf_model, "config") and hf_model.get_output_embeddings()):
        raise ModelError(f"{type(hf_model).__name__} is not a language model of transformers; give one, or a name.")
    held = {"dtype": str(hf_model.dtype).removeprefix("torch."), "device": hf_model.device.type}
    for name, value in (("dtype", dtype), ("device", device)):
        if value not in ("auto", held[name]):
            raise ValueError(f"{name} is {value!r}, but the model you hold has {held[name]}; convert it first.")
    for name, value in for_names_only.items():
        if value is not None:
            raise ValueError(f"{name} is {value!r}, but the model you hold is loaded already; give its name instead.")


def _assemble(name: str, hf_model: Any, tokenizer: Any, engine: str, settings: Settings) -> Model:
    if getattr(hf_model.config, "is_encoder_decoder", False):
        raise ModelError(f"{name} reads one text and writes another; choose a model that continues a text.")
    codec = TextCodec(tokenizer)
    chosen, reason = _engine(hf_model, engine, settings)
    text_config = hf_model.config.get_text_config(decoder=True)
    vocabulary = hf_model.get_input_embeddings().weight.shape[0]
    return Model(
        name=name,
        hf_model=hf_model,
        tokenizer=tokenizer,
        codec=codec,
        engine=chosen,
        engine_reason=reason,
        end_token_ids=frozenset(token_id for token_id in end_tokens(hf_model, tokenizer) if token_id < vocabulary),
        start_ids=codec.start_ids or _start_token(text_config, tokenizer),
        vocabulary=vocabulary,
        context_length=context_length(text_config),
        quantization=told(hf_model),
        computation=chosen.computation,
    )


def _engine(hf_model: Any, asked: str, settings: Settings) -> tuple[CachedEngine | UncachedEngine, str]:
    """The engine asked for; or the cached one, where it has been shown to fit."""
    if asked == "uncached":
        return _uncached(hf_model), "it was asked for"
    found = fit(hf_model)
    if not found.cached:
        if asked == "cached":
            raise ModelError(f'This model cannot use the cached engine: {found.reason}; leave engine at "auto".')
        return _uncached(hf_model), found.reason
    cached = CachedEngine(hf_model, cache_bytes=settings.cache_bytes, attention=found.attention)
    cached.computation = prepare(cached.model_copy, compute=settings.compute)
    cached.measure_slot_bytes()
    return cached, ""


def _uncached(hf_model: Any) -> UncachedEngine:
    engine = UncachedEngine(hf_model)
    engine.check_forward()
    return engine


def end_tokens(hf_model: Any, tokenizer: Any) -> frozenset[int]:
    """The generation config's end tokens (one or several), else the config's, else the tokenizer's."""
    for holder in (getattr(hf_model, "generation_config", None), hf_model.config, tokenizer):
        found = getattr(holder, "eos_token_id", None)
        if found is not None:
            return frozenset(found if isinstance(found, list | tuple) else [found])
    return frozenset()


def context_length(config: Any) -> int | None:
    """How many tokens the model can see, if anything limits it; a rotation that grows goes on by its factor."""
    length = getattr(config, "max_position_embeddings", None) or getattr(config, "max_seq_len", None)
    rotation = getattr(config, "rope_parameters", None) or {}
    if length and rotation.get("rope_type") == "dynamic":
        return int(length * rotation["factor"])
    return length


def _start_token(config: Any, tokenizer: Any) -> tuple[int, ...]:
    """What an empty text starts from, where the tokenizer puts nothing before a text."""
    for holder in (tokenizer, config):
        found = getattr(holder, "bos_token_id", None)
        if isinstance(found, int):
            return (found,)
    return ()
