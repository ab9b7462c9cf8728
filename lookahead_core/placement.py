"""Where a model runs, and in which type: what was asked for, or what is fastest there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from lookahead_core.engines.packed import packed, product
from lookahead_core.engines.ways import fastest_turns, linear_flipped, packs
from lookahead_core.errors import ModelError, out_of_memory
from lookahead_core.quantized import is_quantized

DEVICES = ("auto", "cpu", "cuda", "mps")
CLEARLY = 1.1
STREAMED, MOST_BLOCKS = 30_000_000, 16
"""So many weights are multiplied to see which type is faster."""
SPREADS = ("auto", "balanced", "balanced_low_0", "sequential")
"""What a device map may be in a word; it may also be a device, or a dict from the names of modules to devices."""


def check_map(device_map: Any, device: str) -> None:
    """A ValueError unless it is a device map, and the only thing that says where the model goes."""
    if device_map is None:
        return
    if device != "auto":
        raise ValueError(f"device is {device!r} and device_map is {device_map!r}: give one of them.")
    if device_map in SPREADS:
        return
    names_modules = isinstance(device_map, dict) and all(isinstance(name, str) for name in device_map)
    places = device_map.values() if names_modules else [device_map]
    if not places or None in map(_kind, places):
        words = ", ".join(SPREADS)
        raise ValueError(f"device_map is {device_map!r}, and must be {words}, a device or a dict from modules to them.")


def _kind(place: Any) -> str | None:
    """The kind of one device in a map: numbers are GPUs, and what finds no room goes to the disk."""
    if isinstance(place, int) and not isinstance(place, bool):
        return "cuda" if place >= 0 else None
    if place == "disk":
        return "cpu"
    try:
        return torch.device(place).type if isinstance(place, str | torch.device) else None
    except RuntimeError:
        return None


def kind_of_device(device: str, device_map: Any) -> str:
    """The kind of device that does the work."""
    if device_map is None or device_map in SPREADS:
        return available(device if device_map is None else "auto")
    kinds = {_kind(place) for place in (device_map.values() if isinstance(device_map, dict) else [device_map])}
    return available(next(iter(kinds - {"cpu"}), "cpu"))


def available(asked: str) -> str:
    """The device asked for, or the best one there is."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if asked == "auto":
        return next(name for name, available in there.items() if available)
    if not there.get(asked):
        raise ModelError(f'There is no {asked} device on this machine; leave device at "auto" or say "cpu".')
    return asked


def wanted_dtype(asked: torch.dtype | None, device: str, *, measured: bool) -> torch.dtype | None:
    """The type to load in; where nothing is asked, half precision, or None if the faster one is measured later."""
    if asked is None and not measured:
        return torch.float16 if device == "cuda" and not torch.cuda.is_bf16_supported() else torch.bfloat16
    return asked


def place(hf_model: Any, device: str, dtype: torch.dtype | None) -> None:
    """Put a loaded model on its device, in the faster type where none was asked for; in place."""
    spread = {str(where) for where in (getattr(hf_model, "hf_device_map", None) or {}).values()}
    if "disk" in spread or ("cpu" in spread and len(spread) > 1):
        raise ModelError(
            f"There is not enough room on {device} for the whole of {hf_model.name_or_path}: "
            'choose a smaller model, or quantize="4bit".'
        )
    try:
        if dtype is None and not is_quantized(hf_model):
            _cast(hf_model, _faster_dtype(hf_model, device))
        if len(spread) < 2 and hf_model.device.type != device:
            hf_model.to(device)
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
    # What rounds less is given up only for what is clearly faster.
    full, half = _block_seconds(shapes, torch.float32), _block_seconds(shapes, torch.bfloat16)
    return torch.bfloat16 if half * CLEARLY < full else torch.float32


def _block_shapes(hf_model: Any) -> list[torch.Size]:
    """The shapes of the products in one of the model's repeated blocks."""
    stacks = [module for module in hf_model.modules() if isinstance(module, nn.ModuleList) and len(module)]
    if not stacks:
        return []
    block = max(stacks, key=len)[0]
    return [weight.shape for weight in block.parameters() if weight.dim() == 2]


@torch.inference_mode()
def _block_seconds(shapes: list[torch.Size], dtype: torch.dtype) -> float:
    """The shortest time of some blocks' products with five rows, asked for in the fastest way that there is."""
    count = min(MOST_BLOCKS, 1 + STREAMED // sum(shape.numel() for shape in shapes))
    # So many that they do not stay in the processor's caches; and half precision keeps them, as it does most.
    weights = [torch.ones(shape, dtype=dtype) for _ in range(count) for shape in shapes]
    pairs = [(torch.ones(5, weight.shape[1], dtype=dtype), weight) for weight in weights]
    ways: list[Callable[[], object]] = [
        lambda: [functional.linear(rows, weight) for rows, weight in pairs],
        lambda: [linear_flipped(rows, weight, None) for rows, weight in pairs],
    ]
    if packs(dtype):
        laid_out = [(rows, packed(weight, None)) for rows, weight in pairs]
        ways.append(lambda: [product(matrix, rows) for rows, matrix in laid_out])
    return min(fastest_turns(ways)) / count
