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
PAGES = [
    Path("README.md"),
    Path("benchmarks/README.md"),
    *(file.relative_to(ROOT) for file in (ROOT / "docs").glob("*.md")),
]
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


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text(encoding="utf-8")):
        assert (ROOT / page.parent / target).exists(), target


def test_every_setting_is_in_the_readme_and_no_other() -> None:
    named = set(re.findall(r"`(LOOKAHEAD_[A-Z_]+)`", TEXT))
    assert named == {f"LOOKAHEAD_{field.name.upper()}" for field in fields(Settings)}


def test_every_package_has_its_reason() -> None:
    for file in ("requirements.txt", "requirements-dev.txt"):
        for name in re.findall(r"^([a-z][a-z0-9-]+)", (ROOT / file).read_text(), re.M):
            assert re.search(rf"^\|.*\b{name}\b", TEXT, re.M), name
