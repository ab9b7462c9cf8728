"""The README tells the truth: its code runs, its links lead somewhere, its settings and rooms exist."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import lookahead_core
from lookahead_core import Model, Settings

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()


def test_the_code_in_the_readme_runs(
    default_model: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.+?)\n```", TEXT, re.S)
    assert blocks
    # The model is the one that load_model() gives; it is not loaded a second time.
    monkeypatch.setattr(lookahead_core, "load_model", lambda: default_model)
    names: dict[str, Any] = {}
    for block in blocks:
        # One after the other, as somebody who reads on would type them.
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "tokens: only what had not been seen" in printed
    assert 0 < names["again"].cost.tokens < names["result"].cost.tokens
    assert names["document"].text == "After careful thought"


def test_every_link_and_every_room_in_the_readme_is_there() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (ROOT / target).exists(), target
    rooms = TEXT.split("## The rooms")[1].split("\n## ")[0]
    for line in re.findall(r"^\| (`.+?) \|", rooms, re.M):
        for name in re.findall(r"`([^`]+)`", line):
            core = ROOT / "lookahead_core"
            places = (ROOT, core, core / "engines", core / "engines" / "cpu", core / "strategies")
            assert any((place / name).exists() for place in places), name


def test_every_setting_is_in_the_readme_and_no_other() -> None:
    named = set(re.findall(r"`(LOOKAHEAD_[A-Z_]+)`", TEXT))
    assert named == {f"LOOKAHEAD_{field.name.upper()}" for field in fields(Settings)}


def test_every_package_has_its_reason() -> None:
    for file in ("requirements.txt", "requirements-dev.txt"):
        for name in re.findall(r"^([a-z][a-z0-9-]+)", (ROOT / file).read_text(), re.M):
            assert re.search(rf"^\|.*\b{name}\b", TEXT, re.M), name
