"""The machine and the versions of a run, printed with its figures."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

import torch
import transformers

from lookahead_core import Model


def describe(models: Mapping[str, Model]) -> dict[str, str]:
    """Return model, engine, dtypes, device, threads and versions as strings; `models` by dtype, not empty.

    Model, engine and device are those of the first one.
    """
    model = next(iter(models.values()))
    weights = model.hf_model
    return {
        "model": f"{Path(model.name).name}, {weights.num_parameters() / 1e6:.1f} M parameters",
        "engine": model.engine_reason or "cached",
        "types": ", ".join(models),
        "device": _device(weights.device),
        "threads": str(torch.get_num_threads()),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
    }


def _device(device: torch.device) -> str:
    """Return the name of the GPU, or of the processor and its number of cores."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()


def _processor() -> str:
    """Return the processor's name and number of cores from /proc/cpuinfo; without that, its name or architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.processor() or platform.machine()
