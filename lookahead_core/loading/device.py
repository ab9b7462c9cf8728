"""Device and dtype of a model: validation, choice, and moving a loaded model."""

from __future__ import annotations

from typing import Any

import torch

from lookahead_core.engines.cpu.packed_matrix import packs
from lookahead_core.errors import ModelError, is_out_of_memory
from lookahead_core.loading.quantization import is_quantized

DEVICES = ("auto", "cpu", "cuda", "mps")
"""Values of the option `device`."""
DEVICE_MAP_NAMES = ("auto", "balanced", "balanced_low_0", "sequential")
"""Named values of `device_map`; it may also be a device, or a dict from module names to devices."""


def check_device_map(device_map: Any, device: str) -> None:
    """Raise ValueError if `device_map` is invalid, or if it is not None and `device` is not "auto".

    Valid are None, one of DEVICE_MAP_NAMES, a device (a name, a number from 0, a `torch.device` or "disk"), and a dict
    from module names to devices that is not empty. Whether a device is available is not checked.
    """
    if device_map is None:
        return
    if device != "auto":
        raise ValueError(f"device is {device!r} and device_map is {device_map!r}: give one of them.")
    if device_map in DEVICE_MAP_NAMES:
        return
    names_modules = isinstance(device_map, dict) and all(isinstance(name, str) for name in device_map)
    devices = device_map.values() if names_modules else [device_map]
    if not devices or None in map(_device_type, devices):
        names = ", ".join(DEVICE_MAP_NAMES)
        raise ValueError(
            f"device_map is {device_map!r}, and must be {names}, a device or a dict from module names to devices."
        )


def _device_type(device: Any) -> str | None:
    """Return the type, such as "cuda", of one entry of a device map; None if the entry is invalid.

    A number from 0 is a GPU; "disk" counts as the CPU, since those weights are computed there.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        return "cuda" if device >= 0 else None
    if device == "disk":
        return "cpu"
    try:
        return torch.device(device).type if isinstance(device, str | torch.device) else None
    except RuntimeError:
        return None


def compute_device(device: str, device_map: Any) -> str:
    """Return the type of the device that computes: "cpu", "cuda" or "mps".

    `device`, such a type or "auto", counts only if `device_map` is None. A device map must be valid, see
    `check_device_map`. One of DEVICE_MAP_NAMES means the best available device, and a single device its own type. A
    dict means a type in it other than the CPU, or the CPU if there is none. Raises ModelError if the type is not
    available on this machine.
    """
    if device_map is None or device_map in DEVICE_MAP_NAMES:
        return available_device(device if device_map is None else "auto")
    devices = device_map.values() if isinstance(device_map, dict) else [device_map]
    types = {_device_type(device) for device in devices} - {"cpu", None}
    return available_device(next(filter(None, types), "cpu"))


def available_device(device: str) -> str:
    """Return `device`, a type without an index; for "auto" the first available of "cuda", "mps" and "cpu".

    Raises ModelError if it is none of these, or not available on this machine.
    """
    is_available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        return next(name for name, available in is_available.items() if available)
    if not is_available.get(device):
        raise ModelError(f'There is no {device} device on this machine; leave device at "auto" or say "cpu".')
    return device


def load_dtype(dtype: torch.dtype | None, device: str, *, half_precision: bool) -> torch.dtype | None:
    """Return the dtype to load in: `dtype` unless it is None, else a 16-bit one if `half_precision`, else None.

    The 16-bit dtype is bfloat16, or float16 on a "cuda" device without bfloat16. None means the dtype of the file.
    """
    if dtype is None and half_precision:
        return torch.float16 if device == "cuda" and not torch.cuda.is_bf16_supported() else torch.bfloat16
    return dtype


def move_to_device(hf_model: Any, device: str, dtype: torch.dtype | None) -> None:
    """Move a loaded model to a type of device, in place; cast it first if no dtype was asked for.

    `dtype` is the one that the model was loaded in on request: then nothing is cast. With None it is cast to the
    fastest dtype of the device, unless it is quantized. A model that is spread over several devices is not moved.
    Raises ModelError for an error that `is_out_of_memory` recognises (others pass through), or if a device map has put
    a part of the weights on the disk, or beside a GPU on the CPU.
    """
    devices = {str(each) for each in (getattr(hf_model, "hf_device_map", None) or {}).values()}
    if "disk" in devices or ("cpu" in devices and len(devices) > 1):
        raise ModelError(
            f"There is not enough room on {device} for the whole of {hf_model.name_or_path}: "
            'choose a smaller model, or quantize="4bit".'
        )
    try:
        if dtype is None and not is_quantized(hf_model):
            _cast(hf_model, fastest_dtype(device))
        if len(devices) < 2 and hf_model.device.type != device:
            hf_model.to(device)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise ModelError(
            f"There is not enough memory on {device} for this model; close other programs or choose a smaller one."
        ) from error


def _cast(hf_model: Any, dtype: torch.dtype) -> None:
    """Cast the parameters that have the model's own dtype to `dtype`, in place, as transformers does at load.

    Buffers, such as rotary frequencies, and parameters that the model marks as float32, keep their dtype. Also sets the
    config's dtype.
    """
    loaded_dtype = hf_model.dtype
    keep_float32 = {*(getattr(hf_model, "_keep_in_fp32_modules", None) or ())}
    keep_float32 |= {*(getattr(hf_model, "_keep_in_fp32_modules_strict", None) or ())}
    for name, parameter in hf_model.named_parameters():
        if (
            parameter.dtype is loaded_dtype
            and parameter.is_floating_point()
            and not keep_float32 & set(name.split("."))
        ):
            parameter.data = parameter.data.to(dtype)
    hf_model.config.dtype = dtype


def fastest_dtype(device: str) -> torch.dtype:
    """Return the dtype that a type of device computes fastest in, judged by its features and not measured.

    It is bfloat16 on "mps"; on "cuda" bfloat16, or float16 for a GPU without it; on a CPU bfloat16 if the processor has
    AVX-512 instructions for it and PyTorch can multiply packed matrices of it, else float32.
    """
    if device == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if device == "mps":
        return torch.bfloat16
    return torch.bfloat16 if _multiplies_bfloat16() else torch.float32


def _multiplies_bfloat16() -> bool:
    """Whether this processor has AVX-512 bfloat16 instructions, and PyTorch multiplies packed bfloat16 matrices."""
    return torch.cpu._is_avx512_bf16_supported() and packs(torch.bfloat16)
