"""A title that repeats the name of its control is read twice by a screen reader."""

from __future__ import annotations

import re
from pathlib import Path

INTERFACE = Path(__file__).parents[3] / "interface"
NAMED = re.compile(r'<[^>]*aria-label="(?P<name>[^"]*)"[^>]*>')


def test_no_title_repeats_the_name_of_its_control() -> None:
    tags = [found for file in INTERFACE.rglob("*.html") for found in NAMED.finditer(file.read_text(encoding="utf-8"))]
    assert len(tags) > 20
    assert [found[0] for found in tags if f' title="{found["name"]}"' in found[0]] == []
