"""The device that a model runs on, and the type that it computes in."""

from __future__ import annotations

from typing import Any

import torch

from lookahead_core.engines.cpu.packed_matrix import packs
from lookahead_core.errors import ModelError, is_out_of_memory
from lookahead_core.loading.quantization import is_quantized

DEVICES = ("auto", "cpu", "cuda", "mps")
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


def wanted_dtype(asked: torch.dtype | None, device: str, *, halves: bool) -> torch.dtype | None:
    """The type to load in: the one asked for, else half precision with `halves`, else None, the file's own."""
    if asked is None and halves:
        return torch.float16 if device == "cuda" and not torch.cuda.is_bf16_supported() else torch.bfloat16
    return asked


def place(hf_model: Any, device: str, dtype: torch.dtype | None) -> None:
    """Move a loaded model to its device, in place, and to the fastest type there if `dtype` is None."""
    spread = {str(where) for where in (getattr(hf_model, "hf_device_map", None) or {}).values()}
    if "disk" in spread or ("cpu" in spread and len(spread) > 1):
        raise ModelError(
            f"There is not enough room on {device} for the whole of {hf_model.name_or_path}: "
            'choose a smaller model, or quantize="4bit".'
        )
    try:
        if dtype is None and not is_quantized(hf_model):
            _cast(hf_model, fastest_dtype(device))
        if len(spread) < 2 and hf_model.device.type != device:
            hf_model.to(device)
    except Exception as error:
        if not is_out_of_memory(error):
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


def fastest_dtype(device: str) -> torch.dtype:
    """The type that a kind of device computes fastest in: decided by what it supports, not by measuring."""
    if device == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if device == "mps":
        return torch.bfloat16
    return torch.bfloat16 if _multiplies_bfloat16() else torch.float32


def _multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for products in bfloat16, and this PyTorch build uses them."""
    return torch.cpu._is_avx512_bf16_supported() and packs(torch.bfloat16)
