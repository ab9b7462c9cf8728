"""A model ready to be looked ahead with: what to load, from where, in which type, and which engine fits it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from lookahead_core.engines import products
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.engine import Engine
from lookahead_core.engines.probe import fit
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.errors import ModelError
from lookahead_core.settings import Settings
from lookahead_core.text import TextCodec
from lookahead_core.weights import DEFAULT_NAME, load_weights, out_of_memory, silent

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DEVICES = ("auto", "cpu", "cuda", "mps")
ENGINES = ("auto", "cached", "uncached")
FROM_TOKENIZER: Any = object()
"""Stands for "the tokenizer that comes with the model", since None means that there is none."""


@dataclass(frozen=True)
class Model:
    """What documents share: the weights, the words and the engine."""

    name: str
    hf_model: Any
    """What transformers loaded, and left as it was."""
    tokenizer: Any
    codec: TextCodec
    engine: Engine
    engine_reason: str
    """Why this engine: empty for the cached one."""
    end_token_ids: frozenset[int]
    start_ids: tuple[int, ...]
    """What stands before every text; or, where nothing does, what an empty text starts from."""
    vocabulary: int
    context_length: int | None

    @property
    def dtype(self) -> str:
        return str(self.hf_model.dtype).removeprefix("torch.")

    @property
    def device(self) -> str:
        return str(self.hf_model.device)

    def describe(self) -> str:
        """One line for people: name, device, type, engine."""
        kind = "uncached" if self.engine_reason else "cached"
        return f"{self.name.rstrip('/').rsplit('/')[-1]} · {self.device.upper()} · {self.dtype} · {kind}"


def load_model(
    source: Any = None,
    *,
    tokenizer: Any = FROM_TOKENIZER,
    revision: str | None = None,
    model_name: str | None = None,
    dtype: str = "auto",
    device: str = "auto",
    engine: str = "auto",
    trust_remote_code: bool = False,
    settings: Settings | None = None,
    report: Callable[[str, float | None], None] = silent,
) -> Model:
    """A model by Hub id, folder or .gguf file; the default where nothing is said; or around one already held.

    A model already held stays on its device and in its type, and behaves afterwards as it did before. `model_name` is
    for servers, which this version does not speak to yet.
    """
    settings = settings or Settings.from_env()
    engine = settings.engine if engine == "auto" else engine
    if source is not None and not isinstance(source, str | os.PathLike):
        _check(dtype, device, engine)
        return _around(source, None if tokenizer is FROM_TOKENIZER else tokenizer, dtype, device, engine, settings)
    dtype = settings.dtype if dtype == "auto" else dtype
    device = settings.device if device == "auto" else device
    _check(dtype, device, engine)
    name = os.fspath(source or settings.model)
    if model_name is not None or name.startswith(("http://", "https://")):
        raise ModelError(f"{name} is the address of a server, and this version loads models only by name or folder.")
    wanted = None if dtype == "auto" else DTYPES[dtype]
    hf_model, own = load_weights(
        name, revision=revision, trust_remote_code=trust_remote_code, dtype=wanted, settings=settings, report=report
    )
    hf_model = _placed(hf_model, _device(device), wanted)
    words = own if tokenizer is FROM_TOKENIZER else tokenizer
    return _assemble(name or DEFAULT_NAME, hf_model, words, engine, settings)


def _check(dtype: str, device: str, engine: str) -> None:
    for name, value, allowed in (
        ("dtype", dtype, ("auto", *DTYPES)),
        ("device", device, DEVICES),
        ("engine", engine, ENGINES),
    ):
        if value not in allowed:
            raise ValueError(f"{name} is {value!r}, and must be one of {', '.join(allowed)}.")


def _around(hf_model: Any, tokenizer: Any, dtype: str, device: str, engine: str, settings: Settings) -> Model:
    """A model that somebody holds already; it is used where and as it is."""
    if not (isinstance(hf_model, nn.Module) and hasattr(hf_model, "config") and hf_model.get_output_embeddings()):
        raise ModelError(f"{type(hf_model).__name__} is not a language model of transformers; give one, or a name.")
    held = {"dtype": str(hf_model.dtype).removeprefix("torch."), "device": hf_model.device.type}
    for name, value in (("dtype", dtype), ("device", device)):
        if value not in ("auto", held[name]):
            raise ValueError(f"{name} is {value!r}, but the model you hold has {held[name]}; convert it first.")
    name = getattr(hf_model, "name_or_path", "") or type(hf_model).__name__
    return _assemble(name, hf_model, tokenizer, engine, settings)


def _assemble(name: str, hf_model: Any, tokenizer: Any, engine: str, settings: Settings) -> Model:
    if getattr(hf_model.config, "is_encoder_decoder", False):
        raise ModelError(f"{name} reads one text and writes another; choose a model that continues a text.")
    codec = TextCodec(tokenizer)
    chosen, reason = _engine(hf_model, engine, settings)
    text_config = hf_model.config.get_text_config(decoder=True)
    return Model(
        name=name,
        hf_model=hf_model,
        tokenizer=tokenizer,
        codec=codec,
        engine=chosen,
        engine_reason=reason,
        end_token_ids=end_tokens(hf_model, tokenizer),
        start_ids=codec.start_ids or _start_token(text_config, tokenizer),
        vocabulary=hf_model.get_input_embeddings().weight.shape[0],
        context_length=context_length(text_config),
    )


def _engine(hf_model: Any, asked: str, settings: Settings) -> tuple[Engine, str]:
    """The engine asked for; or the cached one, where it has been shown to fit."""
    if asked == "uncached":
        return UncachedEngine(hf_model), "it was asked for"
    found = fit(hf_model)
    if not found.cached:
        if asked == "cached":
            raise ModelError(f'This model cannot use the cached engine: {found.reason}; leave engine at "auto".')
        return UncachedEngine(hf_model), found.reason
    cached = CachedEngine(hf_model, cache_bytes=settings.cache_bytes, attention=found.attention)
    products.prepare(cached.twin)
    cached.weigh_a_slot()
    return cached, ""


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
        return int(length * rotation.get("factor", 1.0))
    return length


def _start_token(config: Any, tokenizer: Any) -> tuple[int, ...]:
    """What an empty text starts from, where the tokenizer puts nothing before a text."""
    for holder in (tokenizer, config):
        found = getattr(holder, "bos_token_id", None)
        if isinstance(found, int):
            return (found,)
    return ()


def _device(asked: str) -> str:
    """The device asked for, or the best one there is."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if asked == "auto":
        return next(name for name, available in there.items() if available)
    if not there[asked]:
        raise ModelError(f'There is no {asked} device on this machine; leave device at "auto" or say "cpu".')
    return asked


def _placed(hf_model: Any, device: str, dtype: torch.dtype | None) -> Any:
    """The model on its device; where no type was asked for, in the faster one."""
    try:
        if dtype is None:
            _cast(hf_model, _faster_dtype(hf_model, device))
        return hf_model.to(device)
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise ModelError(
            f"There is not enough memory on {device} for this model; close other programs or choose a smaller one."
        ) from error


def _cast(hf_model: Any, dtype: torch.dtype) -> None:
    """Change the weights' type as transformers does at load: rotations, and what must stay in float32, stay so."""
    held = hf_model.dtype
    strict = {*(getattr(hf_model, "_keep_in_fp32_modules", None) or ())}
    strict |= {*(getattr(hf_model, "_keep_in_fp32_modules_strict", None) or ())}
    for name, parameter in hf_model.named_parameters():
        if parameter.dtype is held and parameter.is_floating_point() and not strict & set(name.split(".")):
            parameter.data = parameter.data.to(dtype)
    hf_model.config.dtype = dtype


def _faster_dtype(hf_model: Any, device: str) -> torch.dtype:
    """On a GPU half precision; on a processor whichever type runs one block's products faster, measured now."""
    if device == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    shapes = _block_shapes(hf_model)
    if device == "mps" or not shapes:
        return torch.bfloat16 if device == "mps" else torch.float32
    half = _block_seconds(shapes, torch.bfloat16, functional.linear)
    full = min(
        _block_seconds(shapes, torch.float32, functional.linear),
        _block_seconds(shapes, torch.float32, lambda rows, weight: products.linear_flipped(rows, weight, None)),
    )
    return torch.bfloat16 if half < full else torch.float32


def _block_shapes(hf_model: Any) -> list[torch.Size]:
    """The shapes of the products in one of the model's repeated blocks."""
    stacks = [module for module in hf_model.modules() if isinstance(module, nn.ModuleList) and len(module)]
    if not stacks:
        return []
    block = max(stacks, key=len)[0]
    return [weight.shape for weight in block.parameters() if weight.dim() == 2]


def _block_seconds(shapes: list[torch.Size], dtype: torch.dtype, product: Callable[..., torch.Tensor]) -> float:
    """The shortest time of one block's products with five rows."""
    dice = torch.Generator().manual_seed(0)
    pairs = [
        (torch.randn(5, shape[1], generator=dice).to(dtype), torch.randn(shape, generator=dice).to(dtype))
        for shape in shapes
    ]
    times = []
    for _ in range(9):
        start = time.perf_counter()
        for rows, weight in pairs:
            product(rows, weight)
        times.append(time.perf_counter() - start)
    return min(times)
