"""What the audit of the dependencies reads from pip-audit's report."""

from __future__ import annotations

from typing import Any

import pytest

from tests import audit_dependencies

REPORT: dict[str, Any] = {
    "dependencies": [
        {"name": "jinja2", "version": "2.4.1", "vulns": [
            {"id": "PYSEC-2014-8", "fix_versions": ["2.7.2"], "aliases": [], "description": ""},
            {"id": "PYSEC-2014-82", "fix_versions": [], "aliases": [], "description": ""},
        ]},
        {"name": "torch", "skip_reason": "Dependency not found on PyPI and could not be audited: torch (2.13.0)"},
        {"name": "pyyaml", "version": "6.0.3", "vulns": []},
    ],
    "fixes": [],
}  # fmt: skip


def test_each_weakness_is_a_line_and_what_was_not_looked_up_is_named() -> None:
    assert audit_dependencies.findings(REPORT) == (
        [
            "jinja2 2.4.1: PYSEC-2014-8, repaired in 2.7.2.",
            "jinja2 2.4.1: PYSEC-2014-82, repaired in no version.",
        ],
        ["torch"],
    )


def test_local_versions_are_looked_up_as_their_public_version() -> None:
    assert audit_dependencies.without_local_versions("torch==2.13.0+cpu\npyyaml==6.0.3\n") == (
        "torch==2.13.0\npyyaml==6.0.3\n"
    )


@pytest.mark.parametrize(
    ("dependencies", "words", "code"),
    [
        ([0, 1, 2], [], 1),
        ([1, 2], [], 0),
        ([1, 2], ["--required"], 1),
        ([2], ["--required"], 0),
    ],
)
def test_a_weakness_fails_and_a_package_that_was_not_looked_up_fails_where_that_is_required(
    dependencies: list[int], words: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Resolved:
        returncode, stdout, stderr = 0, "", ""

    report = {"dependencies": [REPORT["dependencies"][number] for number in dependencies]}
    monkeypatch.setattr(audit_dependencies, "pip_indexes", list)
    monkeypatch.setattr(audit_dependencies, "resolve", lambda *arguments: Resolved)
    monkeypatch.setattr(audit_dependencies, "audit", lambda pins: report)
    monkeypatch.setattr("sys.argv", ["audit", *words])
    assert audit_dependencies.main() == code
