"""Settings from the environment, read once and handed down; nothing else reads the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from pathlib import Path

MEBIBYTE = 1024 * 1024


def _default_cache_dir() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lookahead"


@dataclass(frozen=True)
class Settings:
    """What a person may set without touching code; every field has an environment variable."""

    model: str = ""
    """What to load: a Hub id, a folder, a .gguf file; empty for the default. LOOKAHEAD_MODEL"""
    device: str = "auto"
    """auto, cpu, cuda or mps. LOOKAHEAD_DEVICE"""
    device_map: str = ""
    """How a model is spread over devices: auto, balanced, a device, JSON; empty for one device. LOOKAHEAD_DEVICE_MAP"""
    dtype: str = "auto"
    """auto, float32, bfloat16 or float16. LOOKAHEAD_DTYPE"""
    engine: str = "auto"
    """auto, cached or uncached. LOOKAHEAD_ENGINE"""
    compute: str = "auto"
    """How passes are computed on a processor: auto, packed or plain. LOOKAHEAD_COMPUTE"""
    trust_remote_code: bool = False
    """Whether code that comes with a model may run. LOOKAHEAD_TRUST_REMOTE_CODE"""
    cache_dir: Path = field(default_factory=_default_cache_dir)
    """Where the default model is kept once converted. LOOKAHEAD_CACHE_DIR"""
    cache_mb: int = 2048
    """The most memory, in MiB, that keys and values of all documents may take. LOOKAHEAD_CACHE_MB"""
    hub_timeout: float = 3.0
    """Seconds to wait for the Hub before looking elsewhere. LOOKAHEAD_HUB_TIMEOUT"""
    address: str = ""
    """Where other people reach the page, for the links that it makes. LOOKAHEAD_ADDRESS"""

    @property
    def cache_bytes(self) -> int:
        return self.cache_mb * MEBIBYTE

    @classmethod
    def from_env(cls) -> Settings:
        """The settings that the environment gives, defaults where it is silent."""
        values: dict[str, object] = {}
        for each in fields(cls):
            name = f"LOOKAHEAD_{each.name.upper()}"
            if raw := os.environ.get(name, "").strip():
                values[each.name] = _parse(name, raw, str(each.type))
        return cls(**values)  # type: ignore[arg-type]


def _parse(name: str, raw: str, kind: str) -> object:
    if kind == "bool":
        return _parse_truth(name, raw)
    readers = {"str": str, "Path": Path, "int": int, "float": float}
    try:
        value = readers[kind](raw)
    except ValueError:
        raise ValueError(f"{name} is {raw!r}, and must be a number.") from None
    if kind in ("int", "float") and not value > 0:
        raise ValueError(f"{name} is {raw!r}, and must be more than 0.")
    return value


def _parse_truth(name: str, raw: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if raw.lower() not in words:
        raise ValueError(f"{name} is {raw!r}, and must be one of {', '.join(words)}.")
    return words[raw.lower()]
