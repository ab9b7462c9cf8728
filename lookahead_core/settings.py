"""Settings from LOOKAHEAD_* environment variables, read once and passed on as an object."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

MEBIBYTE = 1024 * 1024
"""Bytes."""


def _default_cache_dir() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lookahead"


@dataclass(frozen=True)
class Settings:
    """The settings that a user makes without code; each field has the environment variable that its docstring names."""

    model: str = ""
    """The model: a Hub id, a folder or a .gguf file; empty for the default. LOOKAHEAD_MODEL"""
    device: str = "auto"
    """auto, cpu, cuda or mps. LOOKAHEAD_DEVICE"""
    device_map: str = ""
    """How a model is split over devices: auto, balanced, a device, JSON; empty for one device. LOOKAHEAD_DEVICE_MAP"""
    dtype: str = "auto"
    """auto, float32, bfloat16 or float16. LOOKAHEAD_DTYPE"""
    engine: str = "auto"
    """auto, cached or uncached. LOOKAHEAD_ENGINE"""
    compute: str = "auto"
    """How matrix products are computed on a CPU: auto, packed or plain. LOOKAHEAD_COMPUTE"""
    trust_remote_code: bool = False
    """Whether a model's own Python code may run. LOOKAHEAD_TRUST_REMOTE_CODE"""
    cache_dir: Path = field(default_factory=_default_cache_dir)
    """The folder for the converted default model. LOOKAHEAD_CACHE_DIR"""
    cache_mb: int = 2048
    """MiB that the KV caches of all documents may take together. LOOKAHEAD_CACHE_MB"""
    hub_timeout: float = 3.0
    """Seconds to wait for the Hub before other sources are tried. LOOKAHEAD_HUB_TIMEOUT"""
    address: str = ""
    """The public address of the page, for the links that it makes. LOOKAHEAD_ADDRESS"""
    auth: str = field(default="", repr=False)
    """Names and passwords of those who may use the page: name:password, separated by commas. LOOKAHEAD_AUTH"""
    root_path: str = ""
    """The path or URL under which a proxy serves the page; empty for the root of its host. LOOKAHEAD_ROOT_PATH"""
    mcp: bool = False
    """Whether the calls are offered as MCP tools. LOOKAHEAD_MCP"""

    @property
    def cache_bytes(self) -> int:
        """`cache_mb` in bytes."""
        return self.cache_mb * MEBIBYTE

    @classmethod
    def from_env(cls) -> Settings:
        """Return the settings from environment variables, with defaults for those that are not set or blank.

        Raises ValueError where a number or a yes or no is needed and the value is none, and for a number that is not
        above 0. Other values, such as an unknown device, are not checked here.
        """
        values: dict[str, Any] = {}
        for each in fields(cls):
            name = f"LOOKAHEAD_{each.name.upper()}"
            if raw := os.environ.get(name, "").strip():
                values[each.name] = _parse(name, raw, str(each.type))
        return cls(**values)


def _parse(name: str, raw: str, kind: str) -> object:
    """Return the value `raw` of the environment variable `name`, converted to the type that is named `kind`.

    `kind` is "bool" (for 1, true, yes, 0, false and no), "str", "Path", "int" or "float". Raises ValueError if the
    value cannot be converted, or is a number that is not above 0.
    """
    if kind == "bool":
        return _parse_bool(name, raw)
    parsers: dict[str, Callable[[str], Any]] = {"str": str, "Path": Path, "int": int, "float": float}
    try:
        value = parsers[kind](raw)
    except ValueError:
        raise ValueError(f"{name} is {raw!r}, and must be a number.") from None
    if kind in ("int", "float") and not value > 0:
        raise ValueError(f"{name} is {raw!r}, and must be more than 0.")
    return value


def _parse_bool(name: str, raw: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if raw.lower() not in words:
        raise ValueError(f"{name} is {raw!r}, and must be one of {', '.join(words)}.")
    return words[raw.lower()]
