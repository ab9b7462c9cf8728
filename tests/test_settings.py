"""Settings from environment variables, and the classes of errors."""

from __future__ import annotations

import os
from dataclasses import FrozenInstanceError, asdict
from pathlib import Path

import pytest

from lookahead_core.errors import (
    CacheFull,
    LookaheadError,
    ModelError,
    NoRoom,
    TextError,
    is_caused_by,
    is_out_of_memory,
)
from lookahead_core.settings import Settings

DEFAULTS = {
    "model": "",
    "draft_model": "",
    "device": "auto",
    "device_map": "",
    "dtype": "auto",
    "engine": "auto",
    "compute": "auto",
    "trust_remote_code": False,
    "cache_mb": 2048,
    "hub_timeout": 3.0,
    "server_key": "",
    "server_seconds": 60.0,
    "address": "",
    "auth": "",
    "root_path": "",
    "log": "text",
    "metrics_token": "",
    "mcp": False,
    "trusted_proxies": "",
    "person_requests": 3000,
    "person_characters": 60_000_000,
    "person_calls": 8,
    "person_seconds": 2.0,
    "address_people": 40,
    "request_tokens": 800,
    "ahead_tokens": 512,
    "call_seconds": 60.0,
    "page_seconds": 300.0,
}
"""As the README lists them; the cache folder depends on the machine."""


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*DEFAULTS, "cache_dir"):
        monkeypatch.delenv(f"LOOKAHEAD_{name.upper()}", raising=False)


def test_settings_that_are_not_set_have_their_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOKAHEAD_CACHE_MB", "  ")
    settings = asdict(Settings.from_env())
    assert settings.pop("cache_dir")
    assert settings == DEFAULTS


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("model", " gpt2 ", "gpt2"),
        ("draft_model", "distilgpt2", "distilgpt2"),
        ("device", "cuda", "cuda"),
        ("device_map", "balanced", "balanced"),
        ("dtype", "bfloat16", "bfloat16"),
        ("engine", "uncached", "uncached"),
        ("compute", "plain", "plain"),
        ("trust_remote_code", "1", True),
        ("trust_remote_code", "Yes", True),
        ("trust_remote_code", "true", True),
        ("trust_remote_code", "0", False),
        ("trust_remote_code", "no", False),
        ("trust_remote_code", "FALSE", False),
        ("cache_dir", "/some/where", Path("/some/where")),
        ("cache_mb", "1", 1),
        ("hub_timeout", "0.25", 0.25),
        ("server_key", "a-key", "a-key"),
        ("server_seconds", "5", 5.0),
        ("address", "https://example.org/", "https://example.org/"),
        ("auth", "ada:one", "ada:one"),
        ("root_path", "/class", "/class"),
        ("mcp", "true", True),
        ("trusted_proxies", "10.0.0.0/8", "10.0.0.0/8"),
        ("person_requests", "5", 5),
        ("person_characters", "5", 5),
        ("person_calls", "5", 5),
        ("person_seconds", "0.5", 0.5),
        ("address_people", "5", 5),
        ("request_tokens", "5", 5),
        ("ahead_tokens", "5", 5),
        ("call_seconds", "0.5", 0.5),
        ("page_seconds", "0.5", 0.5),
    ],
)
def test_each_setting_comes_from_its_variable(
    name: str, raw: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"LOOKAHEAD_{name.upper()}", raw)
    settings = Settings.from_env()
    assert getattr(settings, name) == value
    assert type(getattr(settings, name)) is type(value) or name == "cache_dir"
    others = asdict(Settings.from_env()).keys() - {name, "cache_dir"}
    assert {other: getattr(settings, other) for other in others} == {other: DEFAULTS[other] for other in others}


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("CACHE_MB", "0", "LOOKAHEAD_CACHE_MB is '0', and must be more than 0"),
        ("CACHE_MB", "-1", "LOOKAHEAD_CACHE_MB is '-1', and must be more than 0"),
        ("CACHE_MB", "1.5", "LOOKAHEAD_CACHE_MB is '1.5', and must be a number"),
        ("HUB_TIMEOUT", "0", "LOOKAHEAD_HUB_TIMEOUT is '0', and must be more than 0"),
        ("HUB_TIMEOUT", "-0.5", "LOOKAHEAD_HUB_TIMEOUT is '-0.5', and must be more than 0"),
        ("HUB_TIMEOUT", "nan", "LOOKAHEAD_HUB_TIMEOUT is 'nan', and must be more than 0"),
        ("TRUST_REMOTE_CODE", "perhaps", "LOOKAHEAD_TRUST_REMOTE_CODE is 'perhaps', and must be one of 1, true, yes"),
    ],
)
def test_an_error_about_a_setting_names_its_variable_and_value(
    name: str, raw: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"LOOKAHEAD_{name}", raw)
    with pytest.raises(ValueError, match=message):
        Settings.from_env()


def test_the_cache_folder_follows_xdg_cache_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Settings().cache_dir == tmp_path / "lookahead"
    for nothing in ("", None):
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("XDG_CACHE_HOME", nothing) if nothing is not None else monkeypatch.delenv("XDG_CACHE_HOME")
        assert Settings().cache_dir == tmp_path / "home" / ".cache" / "lookahead"


def test_a_mebibyte_is_1048576_bytes() -> None:
    assert Settings(cache_mb=3).cache_bytes == 3_145_728


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().cache_mb = 1  # type: ignore[misc]


def test_errors_have_an_http_status() -> None:
    assert [kind.status for kind in (LookaheadError, ModelError, TextError)] == [400, 400, 400]
    assert [kind.status for kind in (NoRoom, CacheFull)] == [503, 503]


def chained_error() -> BaseException:
    """A LookaheadError that was raised from an OSError, while a KeyError was handled."""
    try:
        try:
            raise KeyError("first")
        except KeyError:
            raise OSError("second: the disk is full")  # noqa: B904
    except OSError as error:
        try:
            raise LookaheadError("third") from error
        except LookaheadError as last:
            return last


@pytest.mark.parametrize(
    ("kind", "message", "found"),
    [
        (LookaheadError, "", True),
        (LookaheadError, "third", True),
        (OSError, "", True),
        (OSError, "disk is full", True),
        (KeyError, "first", True),
        ((ValueError, KeyError), "", True),
        # Type and message must be those of one error in the chain.
        (LookaheadError, "disk is full", False),
        (OSError, "third", False),
        (ValueError, "", False),
        (Exception, "fourth", False),
    ],
)
def test_a_cause_is_found_by_its_type_and_message(
    kind: type[BaseException] | tuple[type[BaseException], ...], message: str, found: bool
) -> None:
    assert is_caused_by(chained_error(), kind, message) is found


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"), True),
        (RuntimeError("a matrix is not square"), False),
        (None, False),
    ],
)
def test_out_of_memory_is_recognised_by_type_or_message(error: BaseException | None, expected: bool) -> None:
    assert is_out_of_memory(error) is expected  # type: ignore[arg-type]


def test_a_setting_that_is_not_a_number_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOKAHEAD_CACHE_MB", "plenty")
    with pytest.raises(ValueError, match="LOOKAHEAD_CACHE_MB is 'plenty', and must be a number"):
        Settings.from_env()
    monkeypatch.setenv("LOOKAHEAD_CACHE_MB", "-3")
    with pytest.raises(ValueError, match="must be more than 0"):
        Settings.from_env()
    monkeypatch.setenv("LOOKAHEAD_CACHE_MB", "64")
    assert Settings.from_env().cache_bytes == 64 * 1024 * 1024
    assert os.environ["LOOKAHEAD_CACHE_MB"] == "64"
