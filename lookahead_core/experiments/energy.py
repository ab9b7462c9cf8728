"""Energy of a computation: measured by the hardware's own counters where they can be read, otherwise estimated."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POWERCAP = Path("/sys/class/powercap")
"""Folder of the processor's energy counters (RAPL) on Linux; most systems let only root read them."""
WATTS_OF_BUSY_CORE = 3.5
"""Watts of a busy virtual core in a data centre: the value of Cloud Carbon Footprint's methodology for AWS."""
ESTIMATE = f"estimated: {WATTS_OF_BUSY_CORE} W for each busy core, as Cloud Carbon Footprint does"
RAPL = "measured by the processor (RAPL), everything that runs on it included"
NVML = "measured by the GPU (NVML), everything that runs on it included"


@dataclass(frozen=True)
class EnergyCounter:
    """A count of joules that only grows: the difference of two reads is the energy between them."""

    read: Callable[[], float]
    """Returns the joules so far."""
    source: str
    """How the joules are known: ESTIMATE, RAPL or NVML."""


def energy_counter(device: str = "cpu") -> EnergyCounter:
    """Return the best counter for a model on a device: NVML on CUDA, else RAPL; the estimate if they are missing."""
    found = _nvml_counter(device) if device.startswith("cuda") else _rapl_counter()
    return found or EnergyCounter(lambda: time.process_time() * WATTS_OF_BUSY_CORE, ESTIMATE)


@dataclass
class _RaplDomain:
    """The counter of one processor package, in microjoules, which begins again at 0 after `limit`."""

    file: Path
    limit: int
    last: int = 0
    total: int = 0

    def read(self) -> int:
        """Return the microjoules since this was made."""
        now = int(self.file.read_text())
        self.total += (now - self.last) % self.limit
        self.last = now
        return self.total


def _rapl_counter() -> EnergyCounter | None:
    """Return a counter of all processor packages; None if there are none, or they cannot be read."""
    domains = []
    for folder in sorted(POWERCAP.glob("intel-rapl:[0-9]")):
        try:
            limit = int((folder / "max_energy_range_uj").read_text()) + 1
            domains.append(_RaplDomain(folder / "energy_uj", limit, int((folder / "energy_uj").read_text())))
        except (OSError, ValueError):
            return None
    if not domains:
        return None
    return EnergyCounter(lambda: sum(domain.read() for domain in domains) / 1e6, RAPL)


def _nvml_counter(device: str) -> EnergyCounter | None:
    """Return the counter of an NVIDIA GPU; None without the package `nvidia-ml-py`, or if the GPU has no counter."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handle: Any = pynvml.nvmlDeviceGetHandleByIndex(int(device.partition(":")[2] or 0))
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    except Exception:
        return None
    return EnergyCounter(lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000, NVML)
