"""Settings from LOOKAHEAD_* environment variables, read once and passed on as an object."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, TypeAlias

Network: TypeAlias = IPv4Network | IPv6Network
SPACE_PROXIES = "10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, fc00::/7"
"""The proxies that are trusted on a Space: those in private networks."""
MEBIBYTE = 1024 * 1024
"""Bytes."""


def _default_cache_dir() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lookahead"


@dataclass(frozen=True)
class Settings:
    """The settings that a user makes without code; each field has the environment variable that its docstring names."""

    model: str = ""
    """The model: a Hub id, a folder, a .gguf file, or the addresses of its servers, separated by commas; empty for the
    default. LOOKAHEAD_MODEL"""
    draft_model: str = ""
    """A smaller model with the same tokens, for the Lab's page on speculation: as `model`; empty for none.
    LOOKAHEAD_DRAFT_MODEL"""
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
    server_key: str = field(default="", repr=False)
    """The API key of a model's server, sent with each request to it; empty for none. LOOKAHEAD_SERVER_KEY"""
    server_seconds: float = 60.0
    """Seconds to wait for the next part of an answer of a model's server. LOOKAHEAD_SERVER_SECONDS"""
    address: str = ""
    """The public address of the page, for the links that it makes. LOOKAHEAD_ADDRESS"""
    auth: str = field(default="", repr=False)
    """Names and passwords of those who may use the page: name:password, separated by commas. LOOKAHEAD_AUTH"""
    root_path: str = ""
    """The path or URL under which a proxy serves the page; empty for the root of its host. LOOKAHEAD_ROOT_PATH"""
    log: str = "text"
    """text for warnings and errors as lines of text, json for one JSON object a line. LOOKAHEAD_LOG"""
    metrics_token: str = field(default="", repr=False)
    """The token that opens /metrics; empty for programs on the same computer only. LOOKAHEAD_METRICS_TOKEN"""
    mcp: bool = False
    """Whether the calls are offered as MCP tools. LOOKAHEAD_MCP"""
    trusted_proxies: str = ""
    """Addresses and networks of proxies whose X-Forwarded-For is believed, separated by commas; empty for none, and on
    a Space for its own proxy. LOOKAHEAD_TRUSTED_PROXIES"""
    person_requests: int = 3000
    """Requests of one person in a minute. LOOKAHEAD_PERSON_REQUESTS"""
    person_characters: int = 60_000_000
    """Characters that one person may send in a minute, in bytes of UTF-8. LOOKAHEAD_PERSON_CHARACTERS"""
    person_calls: int = 8
    """Calls of programs that one person may have running at once. LOOKAHEAD_PERSON_CALLS"""
    person_seconds: float = 2.0
    """Seconds of model time by which one person may be ahead of others who wait. LOOKAHEAD_PERSON_SECONDS"""
    address_people: int = 40
    """The limits of one network address, as a multiple of those of one person. LOOKAHEAD_ADDRESS_PEOPLE"""
    request_tokens: int = 800
    """The largest k times depth of a request. LOOKAHEAD_REQUEST_TOKENS"""
    ahead_tokens: int = 512
    """Tokens that are prefetched after each view of a page. LOOKAHEAD_AHEAD_TOKENS"""
    call_seconds: float = 60.0
    """Seconds of model time of one call of a program. LOOKAHEAD_CALL_SECONDS"""
    page_seconds: float = 300.0
    """Seconds of model time of one request of a page. LOOKAHEAD_PAGE_SECONDS"""

    @property
    def cache_bytes(self) -> int:
        """`cache_mb` in bytes."""
        return self.cache_mb * MEBIBYTE

    @property
    def proxy_networks(self) -> tuple[Network, ...]:
        """`trusted_proxies` as networks; if it is empty, none, and on a Space SPACE_PROXIES.

        Raises ValueError for a part that is neither an address nor a network.
        """
        text = self.trusted_proxies or (SPACE_PROXIES if "SPACE_ID" in os.environ else "")
        try:
            return tuple(ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip())
        except ValueError:
            raise ValueError(
                f"LOOKAHEAD_TRUSTED_PROXIES is {text!r}, and must be addresses or networks, separated by commas, "
                "such as 172.17.0.1, 10.0.0.0/8."
            ) from None

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
